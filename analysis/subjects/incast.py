"""Many senders to one receiver in synchronised blocks: how much of the receiver's link they fill, and where that collapses.

A block is complete when the last part of it is, so that a sender whose last packets were dropped, and who waits for TCP's
retransmission timeout, leaves the link idle for all (Phanishayee et al., FAST 2008).
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import attributes, drawing, style
from analysis.derive import at_only_level, over_factors, slowed
from analysis.statements import (
    Statement,
    above,
    bullets,
    estimated,
    judged_ratio,
    of_every_point,
    origin,
    unless_across,
)
from analysis.statistics import design as designs
from analysis.statistics.intervals import over_blocks, t_interval
from analysis.statistics.judgement import UNDECIDED, judge_control
from analysis.wire import wire_limit
from analysis.wording import byte_size, counted, fixed, micro, number

COLLAPSED = 0.5  # less than this share of the link's payload rate
LONG, SHORT = 0.2, 0.001  # s: TCP's least retransmission timeout
TIMEOUTS = {LONG: "timeouts from 200 ms on", SHORT: "timeouts from 1 ms on"}
SETUPS = {
    "cubic": "Linux: CUBIC, 256 KiB, 64 KiB a port",
    "reno": "Reno instead of CUBIC",
    "acks": "Reno as in 2008, without RACK",
    "small_blocks": "blocks of 32 KiB from each sender",
    "large_blocks": "blocks of 1 MiB from each sender",
    "shared": "512 KiB that all ports share",
    "marks": "marks from 20 frames on (ECN)",
    "pause": "pauses above 32 KiB",
}


def share_of_link(runs: xr.Dataset) -> xr.DataArray:
    """Goodput over the most TCP payload that the receiver's link carries [1], over (block, *factors but the network); NaN
    where a trial gave no reading.

    The link's rate is that of the trial's own scale of time. Raises FalloffError if there is no trial of incast, or there
    are several networks.
    """
    networks = attributes.interconnects(runs)
    rates = [networks[name]["rate_bit_s"] for name in runs.interconnect.values]
    mtus = {networks[name]["mtu"] for name in set(runs.interconnect.values)}
    carried = wire_limit(xr.DataArray(rates, dims="trial") / slowed(runs), mtus.pop())
    laid_out = over_factors(runs, "incast", share=runs.goodput / carried)
    share = at_only_level(laid_out.assign_attrs(runs.attrs), "interconnect").share
    return share.assign_attrs(units="1", long_name="share of the receiver's link")


def collapses_at(share: xr.DataArray, below: float = COLLAPSED) -> xr.DataArray:
    """The number of senders from which on the share stays below a level [1], over all dims of `share` but `senders`;
    infinite if the most senders are not below it, NaN if a value that decides it is missing.

    It is linear in the logarithm of the number between the last value above and the next. A dip with few senders, after
    which the share recovers, is none.
    """
    return xr.apply_ufunc(
        _last_crossing,
        share.sortby("senders"),
        kwargs={"senders": np.sort(share.senders.values), "below": below},
        input_core_dims=[["senders"]],
        vectorize=True,
    )


def _last_crossing(share: np.ndarray, senders: np.ndarray, below: float) -> float:
    after = np.nan  # the share at the next larger number
    for place in reversed(range(len(share))):
        value = share[place]
        if np.isnan(value):
            return np.nan
        if value >= below:
            if place + 1 == len(share):
                return np.inf
            step = (value - below) / (value - after)
            return float(senders[place] * (senders[place + 1] / senders[place]) ** step)
        after = value
    return float(senders[0])


def mean_collapse(collapse: xr.DataArray) -> tuple[float, float, float]:
    """(mean, low, high) of the senders at which goodput collapses, over (block): the geometric mean with its 95 % t interval.

    Infinite where it does in no block; unknown (NaN) where some blocks collapse and others do not, or no trial decides.
    """
    known = collapse.dropna("block")
    if not known.size or np.isinf(known).any() and not np.isinf(known).all():
        return np.nan, np.nan, np.nan
    if np.isinf(known).all():
        return np.inf, np.nan, np.nan
    means = over_blocks(known, "ratio")
    return float(means["mean"]), float(means.low), float(means.high)


def growth_with_buffer(collapse: xr.DataArray) -> tuple[float, float, float]:
    """(estimate, low, high) of b in senders = a buffer^b: the slope of the logarithm of the senders at which goodput
    collapses over that of the buffer, with its 95 % t interval over the blocks.

    `collapse` is over (block, buffer_bytes). Buffers at which it is not reached in a block are left out there, so that b is
    rather too small. NaN with fewer than two buffers.
    """
    slopes = []
    for block in collapse.transpose("block", "buffer_bytes").values:
        known = np.isfinite(block)
        if known.sum() >= 2:
            buffers = np.log2(collapse.buffer_bytes.values[known])
            slopes.append(np.polyfit(buffers, np.log2(block[known]), 1)[0])
    if not slopes:
        return np.nan, np.nan, np.nan
    mean, low, high = t_interval(slopes)
    return float(mean), float(low), float(high)


def lowest_share(share: xr.DataArray) -> tuple[float, float, float]:
    """(mean, low, high) of the share at the point with the lowest mean over the blocks, with its 95 % t interval; `share` is
    over (block, ...)."""
    points = share.stack(point=[dim for dim in share.dims if dim != "block"])
    means = over_blocks(points, "ratio")
    if not np.isfinite(means["mean"]).any():
        return np.nan, np.nan, np.nan
    place = int(means["mean"].argmin("point"))
    return tuple(float(means[name][place]) for name in ("mean", "low", "high"))


def collapses(runs: xr.Dataset, share: xr.DataArray) -> Iterator[Statement]:
    """From how many senders on the goodput collapses with Linux's long timeouts, for each buffer a port. The one of the
    design's baseline is primary."""
    chosen = attributes.design(runs).get("baseline", {}).get("buffer_bytes")
    (name,) = set(attributes.names_in_text(runs)[one] for one in set(runs.interconnect.values))
    collapse, most = collapses_at(share).sel(rto_min_s=LONG), int(share.senders.max())
    for buffer in collapse.buffer_bytes.values:
        at = collapse.sel(buffer_bytes=buffer)
        estimate = mean_collapse(at)
        words = "yes" if np.isfinite(estimate[0]) else "no" if np.isinf(estimate[0]) else UNDECIDED
        # An interval that reaches below one sender or beyond the most that were tried does not say where it collapses.
        words = unless_across(words, estimate[1:], 1, most)
        yield estimated(
            origin(runs),
            f"Goodput over {name} collapses with {byte_size(buffer)} a port from this many senders on",
            "senders",
            estimate,
            int(at.notnull().sum()) or at.sizes["block"],
            words=words,
            reason=f"not up to {most} senders" if words == "no" else "",
            primary=bool(buffer == chosen),
        )


def growth(runs: xr.Dataset, share: xr.DataArray) -> Statement:
    """Whether the senders at which goodput collapses grow with the buffer, and to which power of it."""
    estimate = growth_with_buffer(collapses_at(share).sel(rto_min_s=LONG))
    return estimated(
        origin(runs),
        "The number of senders at which it collapses grows with the buffer, to this power",
        "exponent",
        estimate,
        share.sizes["block"],
        words=above(estimate[1:], 0) or UNDECIDED,
    )


def short_timeouts(runs: xr.Dataset, share: xr.DataArray) -> Statement:
    """Whether a least timeout of 1 ms prevents the collapse: the lowest share of the link of all points with it."""
    short = share.sel(rto_min_s=SHORT, drop=True)
    estimate = lowest_share(short)
    statement = estimated(
        origin(runs),
        "A least timeout of 1 ms prevents the collapse; the least share of the link at any point",
        "share",
        estimate,
        share.sizes["block"],
        words=above(estimate[1:], COLLAPSED) or UNDECIDED,
        primary=True,
        margin=COLLAPSED,
    )
    return of_every_point(statement, short.notnull().any("block"))


def at_two_dilations(runs: xr.Dataset, share: xr.DataArray) -> list[Statement]:
    """Whether incast is the same at another scale of time: the senders at which goodput collapses with long timeouts, and the
    share of the link with short ones, as ratios of the design's second dilation to its first.

    `share` is over (block, dilation, rto_min_s, senders). With short timeouts a block's ratio is the geometric mean over the
    senders.
    """
    first, second = attributes.design(runs)["factors"]["dilation"]
    margin = designs.read(runs).margin

    def ratio(values: xr.DataArray) -> xr.DataArray:
        return np.log(values.sel(dilation=second) / values.sel(dilation=first))

    onset = ratio(collapses_at(share).sel(rto_min_s=LONG))
    filled = ratio(share.sel(rto_min_s=SHORT)).mean("senders")
    return [
        judged_ratio(origin(runs), f"{what} at dilation {second} over {first}", control)
        for what, values in (
            ("Senders at which goodput collapses with long timeouts", onset),
            ("Goodput with short timeouts", filled),
        )
        for control in [judge_control(values.values, margin)]
    ]


def in_words(
    stated: list[Statement], ten_gige: list[Statement], setups: xr.DataArray | None
) -> str:
    """The statements on Gigabit Ethernet, those on 10 Gigabit Ethernet, and what else moves the collapse (Markdown)."""
    parts = [bullets([*stated, *ten_gige])]
    if setups is not None:
        known = setups.setup.values
        at = {name: mean_collapse(setups.sel(setup=name))[0] for name in SETUPS if name in known}
        moved = [
            f"{SETUPS[name]}: {fixed(value, 1)}" for name, value in at.items() if np.isfinite(value)
        ]
        never = [SETUPS[name] for name, value in at.items() if np.isinf(value)]
        if moved:
            parts.append(
                f"One thing changed at a time, it collapses at these senders. {'; '.join(moved)}."
            )
        if never:
            parts.append(f"It never does with {'; '.join(never)}.")
    return "\n\n".join(parts)


def kept_up(*campaigns: xr.Dataset | None) -> str:
    """How many frames a second the program that is the switch handed over at most in a trial of these campaigns, how late,
    and how many trials were refused because it was too late (Markdown); empty if nothing was counted."""
    rates, late, trials, refused = [], [], 0, 0
    for runs in (one for one in campaigns if one is not None and "switch_late" in one):
        ok = (runs.status == "ok").values
        # The first block of a trial is not timed, and its frames are counted.
        seconds = runs.block_time.mean("run") * (runs.block_time.notnull().sum("run") + 1)
        rates += (runs.port_frames.sum("node") / seconds).values[ok].tolist()
        late += runs.switch_late.values[ok].tolist()
        trials += ok.size
        refused += sum(reason.startswith("switch:") for reason in runs.reason.values[~ok].tolist())
    if not (np.isfinite(rates).any() and np.isfinite(late).any()):
        return ""
    most = np.nanmax(rates)
    return (
        f"The program that is the switch carried up to {number(most)} frames a second, and handed them over {micro(np.nanmax(late))} late on average "
        f"in its worst accepted trial. {refused} of {counted(trials, 'trial')} were refused because it was later than a full frame takes on the wire."
    )


def over_senders(share: xr.DataArray) -> Figure:
    """The share of the link [1] over the senders by buffer, a panel for each timeout."""
    buffers = share.buffer_bytes.values
    with style.styled():
        figure, panels = drawing.new_figures(3.2, 2, sharey=True)
        for axes, (timeout, words) in zip(panels, TIMEOUTS.items()):
            axes.set_title(words)
            for rank, buffer in enumerate(buffers):
                series, values = (
                    f"buffer {rank + 1}",
                    share.sel(rto_min_s=timeout, buffer_bytes=buffer),
                )
                senders = drawing.beside(values.senders.values.astype(float), rank, len(buffers))
                means = over_blocks(values, "ratio")
                label = f"{byte_size(buffer)} a port"
                drawing.runs_and_means(axes, series, senders, values, means, label)
                axes.plot(senders, means["mean"], color=style.look(series).color, lw=0.8, alpha=0.6)
            axes.axhline(COLLAPSED, color=style.INK, linewidth=0.9, linestyle=":")
            drawing.doubling_axis(axes, share.senders.values, "senders")
        panels[0].set_ylabel("share of the receiver's link [1]")
        panels[0].set_ylim(0, 1.05)
        drawing.legend_below(figure, panels, 4)
    return figure


def by_setup(collapse: xr.DataArray, senders: np.ndarray) -> Figure:
    """A row for each setup: the senders at which goodput collapses in each block; `senders` are those that were tried."""
    setups = [setup for setup in SETUPS if setup in collapse.setup.values]
    most = float(max(senders))
    never = most * 1.35
    with style.styled():
        figure, axes = drawing.new_figure(3.0)
        for row, setup in enumerate(setups):
            values = collapse.sel(setup=setup).values
            shown = np.where(np.isinf(values), never, values)
            axes.plot(
                shown, np.full(len(shown), row), "o", color=style.look("gige").color, alpha=0.7
            )
        drawing.rows(axes, [SETUPS[setup] for setup in setups])
        drawing.doubling_axis(axes, np.unique(senders), "senders")
        axes.axvline(most * 1.12, color=style.FAINT, linewidth=0.9)
        axes.set_xlim(1.6, never * 1.15)
    return figure
