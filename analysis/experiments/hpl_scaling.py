"""Does HPL's efficiency fall off with the number of nodes? GigE against 10GE against links without a limit."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, style, todays_run
from analysis.attributes import short_names, testbed
from analysis.contrasts import Contrast, contrasts, differences, log_ratios
from analysis.derive import PACED, points
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import Finding, known, of_control, of_fall, origin, today_of
from analysis.fitting.adequacy import CLOSE
from analysis.fitting.compare import Comparison, Law, laws
from analysis.statistics.intervals import rates, ratios
from analysis.links import links, networks
from analysis.statistics import design as designs
from analysis.statistics.judgement import (
    FALLS_OFF,
    FLAT,
    REFUSED,
    RISES,
    SIZE_OPEN,
    Judgement,
    judge,
)
from analysis.statistics.reproduction import Reproduction, reproduction
from analysis.wording import (
    UNKNOWN,
    counted,
    estimate,
    fixed,
    listed,
    number,
    percent,
    percent_range,
    plain,
    probability,
)

FIGURES = {"share": ("hpl_scaling",), "falls": ("hpl_scaling",)}  # what each rests on
MODEL = "universal_scalability"  # of n times the share, as `fitting.compare` has it
NOTHING = 0.0005  # a loss of less is told as nothing
# Of a doubling: between two networks, and from a mean to its runs.
SIDESTEP, RUNS_ASIDE = 0.13, 0.06


@dataclass(frozen=True)
class Scaling:
    """The campaign's dataset and all that follows from it; what there are no data for is empty or None.

    `points` is from `derive.points`. `contrasts` are the judged statements, the primary ones first; `with_every_run` judges
    the same falls in the same order from every valid run, whether or not the rest of its block is valid. `links` and
    `networks` are the testbed's survey of itself. `today` says of each statement that another run, the dataset `today_run`,
    has too, whether that reproduces it.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    contrasts: tuple[Contrast, ...]
    with_every_run: tuple[Judgement, ...]
    laws: tuple[Law, ...]
    links: pd.DataFrame
    networks: pd.DataFrame
    today: tuple[Reproduction, ...]
    today_run: xr.Dataset | None

    @property
    def evidence(self) -> str:
        """The kind of the data."""
        return self.points.evidence.item()

    @property
    def shares(self) -> xr.Dataset:
        """The share [1] over (interconnect, nodes): `ratio` (geometric mean), 95 % t interval `low`, `high`, `blocks`."""
        return ratios(np.log(self.points.share))


def analyse(hpl_scaling: xr.Dataset, today: xr.Dataset | None = None) -> Scaling:
    """Derive points, statements, laws and links; raises FalloffError when there is no HPL trial."""
    derived = points(hpl_scaling)
    judged = contrasts(derived)
    again = () if today is None else contrasts(points(today))
    return Scaling(
        dataset=hpl_scaling,
        points=derived,
        contrasts=judged,
        with_every_run=tuple(_with_every_run(derived, contrast) for contrast in judged),
        laws=tuple(laws(derived)),
        links=links(hpl_scaling),
        networks=networks(hpl_scaling),
        today=reproductions(judged, again),
        today_run=today,
    )


def reproductions(
    reference: tuple[Contrast, ...], today: tuple[Contrast, ...]
) -> tuple[Reproduction, ...]:
    """Whether another run reproduces the statements that both have, in the reference's order."""
    again = {contrast.place: contrast for contrast in today}
    return tuple(
        reproduction(
            then.what,
            then.differences.values,
            again[then.place].differences.values,
            then.verdict.margin,
            (then.verdict.answer, again[then.place].verdict.answer),
            exact=then.verdict.evidence == "simulated",
        )
        for then in reference
        if then.place in again
    )


def _with_every_run(derived: xr.Dataset, contrast: Contrast) -> Judgement:
    ratio = log_ratios(derived, contrast.network, contrast.reference)
    fall = differences(ratio, contrast.start, contrast.end)
    return judge(
        fall.values,
        contrast.verdict.margin,
        contrast.verdict.evidence,
        designs.read(derived).one_sided,
    )


def share_over_nodes(study: Scaling) -> Figure:
    """Share of the known rate [%] over nodes: every run, and geometric means with 95 % t intervals."""
    with style.styled():
        figure, axes = drawing.new_figure(3.4)
        nodes = study.points.nodes.values
        for interconnect, sidestep, short in drawing.series(study.points):
            place = nodes * 2 ** (SIDESTEP * sidestep)
            share = 100 * study.points.share.sel(interconnect=interconnect)
            drawing.runs(axes, interconnect, place / 2**RUNS_ASIDE, share, "")
            drawing.intervals(axes, interconnect, place, share, "ratio")
            look = style.look(interconnect)
            axes.plot([], [], look.marker, color=look.color, mfc="white", label=short)
        drawing.node_axis(axes, nodes)
        axes.set_ylabel(f"HPL rate [% of {study.points.share.attrs['of']}]")
        axes.legend(loc="lower left")
        return figure


def falls(study: Scaling) -> Figure:
    """The fall of each statement [%]: every block, the mean, its interval, the margin, the answer, and today's mean."""
    with style.styled():
        figure, axes = drawing.new_figure(1.0 + 0.6 * len(study.contrasts))
        margin = designs.read(study.dataset).margin
        band = (100 * (1 - 1 / (1 - margin)), 100 * margin)
        axes.axvspan(*band, color=style.MARGIN, zorder=0, label=f"margin {100 * margin:g} %")
        axes.axvline(0, color=style.INK, linewidth=0.8)
        for row, contrast in enumerate(study.contrasts):
            look = style.look(contrast.network)
            blocks = -100 * np.expm1(contrast.differences.dropna("block").values)
            below = row + 0.16 + 0.16 * np.linspace(0, 1, len(blocks))
            axes.plot(
                blocks,
                below,
                look.marker,
                color=look.color,
                alpha=0.6,
                markersize=3.5,
                label="one block",
            )
            drawing.judgement(axes, row, contrast, look)
        rows = {contrast.what: row for row, contrast in enumerate(study.contrasts)}
        for found in study.today:
            drawing.today_mark(axes, rows[found.what], found)
        drawing.rows(axes, [_row_name(study, contrast) for contrast in study.contrasts])
        axes.set_xlabel("fall [%]")
        drawing.legend_below(figure, axes, 4)
        return figure


def _row_name(study: Scaling, contrast: Contrast) -> str:
    nodes = f"{contrast.start} to {contrast.end} nodes"
    return f"{_pair(study, contrast)}\n{nodes}, n = {contrast.verdict.blocks}"


def _pair(study: Scaling, contrast: Contrast) -> str:
    names = short_names(study.dataset)
    return f"{names[contrast.network]} / {names[contrast.reference]}"


def method(study: Scaling) -> str:
    """How it was measured, Markdown."""
    name = plain(testbed(study.dataset)["name"])
    ran = {
        "emulated": "Real HPL runs exchange real TCP messages between emulated nodes on one machine.",
        "simulated": f"HPL's own code runs in a simulation of the cluster {name}.",
    }.get(study.evidence, f"HPL runs on the nodes of the cluster {name}.")
    paced = (
        "Each node is paced to a known rate, and shares are of that. Nodes, links and matrices are scaled down together, so that "
        'bytes cost as large a share of the time as in the paper (section "The scale model").'
    )
    control = (
        "The control has no limit on its links." if designs.read(study.dataset).control else ""
    )
    falls_are = "A fall is how much of the ratio of two networks' rates is lost from one node count to another."
    is_paced = study.points.share.attrs["of"] == PACED
    return " ".join(filter(None, (ran, paced if is_paced else "", control, falls_are)))


def finding(study: Scaling) -> str:
    """The verdicts of the planned statements and what limits them, in plain English (Markdown)."""
    primary = [contrast for contrast in study.contrasts if contrast.primary]
    refused = any(contrast.verdict.answer == REFUSED for contrast in primary)
    verdicts = [] if refused else [_verdict(study, it, it is primary[0]) for it in primary]
    about_verdicts = " ".join(filter(None, (*verdicts, _on_one_node(study, primary))))
    limits = [_levels(study), _left_out(study, primary), _host_bound(study)]
    parts = (
        about_verdicts,
        " ".join(filter(None, limits)),
        todays_run.in_words(_compared(study, primary_only=True))
        if study.today_run is not None
        else "",
        plain(study.dataset.attrs.get("caveat", "")),
    )
    return "\n\n".join(filter(None, parts))


def _verdict(study: Scaling, contrast: Contrast, first: bool) -> str:
    judged, (name, against) = contrast.verdict, _named(study, contrast)
    nodes = f"from {contrast.start} to {contrast.end} nodes"
    basis = _basis_in_words(judged, first)
    if judged.answer == FALLS_OFF:
        return f"**{name} falls off**: against {against}, HPL loses {percent(judged.fall)} of its rate {nodes}{basis}."
    if judged.answer == FLAT:
        return (
            f"**{name} stays flat** against {against} {nodes}: HPL {_change(judged.fall)}{basis}."
        )
    if judged.answer == RISES:
        return f"**{name} gains on {against}** {nodes}: HPL {_change(judged.fall)}{basis}."
    if judged.answer == SIZE_OPEN:
        return f"**{name} falls against {against}** {nodes}. Whether by more than the margin of {percent(judged.margin, 0)} is open."
    return f"Whether {name} falls against {against} {nodes} is open. {plain(judged.reason)}"


def _named(study: Scaling, contrast: Contrast) -> tuple[str, str]:
    """The two networks as a sentence names them."""
    names, control = short_names(study.dataset), designs.read(study.dataset).control
    unlimited = "links without a limit"
    return tuple(
        unlimited if level == control else names[level]
        for level in (contrast.network, contrast.reference)
    )


def _change(fall: float) -> str:
    """What happens to the rate; an interval that follows has the same sign."""
    if abs(fall) < NOTHING:
        return "loses nothing"
    return f"loses {percent(fall)}" if fall > 0 else f"gains {percent(-fall)}"


def _basis_in_words(judged: Judgement, whole: bool) -> str:
    """The interval in parentheses; `whole` with the number of blocks, the margin and the evidence."""
    interval = judged.interval
    if interval is not None and judged.answer in (FLAT, RISES) and judged.fall <= -NOTHING:
        interval = -interval[1], -interval[0]
    parts = []
    if interval:
        parts.append(f"{100 * judged.confidence:g} % interval {percent_range(interval)}")
    if whole and interval:
        parts.append(counted(judged.blocks, "block"))
    if whole:
        parts += [f"margin {percent(judged.margin, 0)}", f"{judged.evidence} evidence"]
    return f" ({', '.join(parts)})" if parts else ""


def _on_one_node(study: Scaling, primary: list[Contrast]) -> str:
    """The negative control: without a network the networks must not differ."""
    controls = {
        (it.network, it.reference): (it, it.control) for it in primary if it.control is not None
    }
    failed = [it for it, control in controls.values() if control.kind == "violated"]
    if failed:
        contrast = failed[0]
        name, against = _named(study, contrast)
        return (
            "**No verdict is given, because the negative control failed.** On one node no network is used, and yet "
            f"{name} has {fixed(contrast.control.ratio, 3)} times the rate of {against}."
        )
    if any(control.kind == "undecided" for _, control in controls.values()):
        return "Whether the networks are equally fast on one node, where none is used, is open."
    if not controls:
        return ""
    off = max(max(abs(end - 1) for end in control.interval) for _, control in controls.values())
    return f"On one node, where no network is used, the networks are equally fast within {percent(off)}."


def _levels(study: Scaling) -> str:
    """What HPL reaches on the most nodes, network by network."""
    most = study.shares.isel(nodes=-1)
    names, control = short_names(study.dataset), designs.read(study.dataset).control
    where = {name: "without a limit" if name == control else f"on {names[name]}" for name in names}
    of = f" of {study.points.share.attrs['of']}"
    reached = []
    for name in most.interconnect.values.tolist():
        share = float(most.ratio.sel(interconnect=name))
        if np.isfinite(share):
            reached.append(f"{percent(share)}{'' if reached else of} {where[name]}")
    if not reached:
        return ""
    return f"On {counted(int(most.nodes), 'node')} HPL reaches {listed(reached)}."


def _left_out(study: Scaling, primary: list[Contrast]) -> str:
    """How many runs are invalid, and what the falls would be with every valid one."""
    reasons, blocks = study.points.reason, study.points.sizes["block"]
    invalid = ~reasons.isin(["", "not run"])
    judged = max((contrast.verdict.blocks for contrast in primary), default=0)
    if judged == blocks and not invalid.any():
        return ""
    held_by = int(invalid.any([dim for dim in invalid.dims if dim != "block"]).sum())
    why = f", since {held_by} hold an invalid run" if judged + held_by == blocks else ", as planned"
    text = f"The verdicts rest on {judged} of the {blocks} blocks{why}."
    if invalid.any():
        count = int(invalid.sum())
        text = f"{count} of {reasons.size} runs {'is' if count == 1 else 'are'} invalid. {text}"
    changes = [
        abs(every.fall - contrast.verdict.fall)
        for contrast, every in zip(study.contrasts, study.with_every_run)
        if contrast.primary and None not in (every.fall, contrast.verdict.fall)
    ]
    if not changes:
        return text
    change = fixed(100 * max(changes), 1)
    return f"{text} With every valid run no fall changes by more than {change} percentage points."


def _host_bound(study: Scaling) -> str:
    """The networks whose links the machine could not fill."""
    names, surveyed = short_names(study.dataset), study.networks
    if not len(surveyed):
        return ""
    slow = surveyed[(surveyed.limit == "host-bound") & surveyed.wire_limit.notna()]
    return " ".join(
        f"The machine limits {names[name]}: one link carries {percent(row.goodput / row.wire_limit, 0)} of what its wire "
        f"allows ({number(row.goodput / 1e9)} Gbit/s)."
        for name, row in slow.iterrows()
    )


def _compared(study: Scaling, primary_only: bool) -> dict[str, Reproduction | None]:
    """What today's run says of each statement, None where it lacks its node counts."""
    found = {it.what: it for it in study.today}
    return {
        _statement(study, contrast): found.get(contrast.what)
        for contrast in study.contrasts
        if contrast.primary or not primary_only
    }


def _statement(study: Scaling, contrast: Contrast) -> str:
    return f"{_pair(study, contrast)} from {contrast.start} to {contrast.end} nodes"


def findings(study: Scaling) -> Iterator[Finding]:
    """Every fall, and the negative control of the planned ones, as data."""
    source, names = origin("hpl_scaling", study.dataset), short_names(study.dataset)
    again = {found.what: found for found in study.today}
    for it in study.contrasts:
        statement = f"{names[it.network]} falls against {names[it.reference]} from {it.start} to {it.end} nodes"
        today = today_of(again.get(it.what), study.today_run)
        yield of_fall(source, statement, it.verdict, primary=it.primary, today=today)
    planned = [it for it in study.contrasts if it.primary and it.control is not None]
    for (network, reference), control in {(it.network, it.reference): it.control for it in planned}.items():
        statement = f"{names[network]} is as fast as {names[reference]} without a network"
        yield of_control(source, statement, control)


def figures(study: Scaling) -> dict[str, Exhibit]:
    """Shares over nodes, and the falls against their margin."""
    networks_shown = ", ".join(
        short_names(study.dataset)[it] for it in study.points.interconnect.values
    )
    return {
        "share": Exhibit(
            "share",
            share_over_nodes(study),
            f"HPL's rate over nodes, as a share of {study.points.share.attrs['of']}",
            _basis(study, "95 % t intervals"),
            f"Share of the nodes' known rate over the number of nodes, a series for each of {networks_shown}",
            "Small marks are single runs; open marks and bars are geometric means with their intervals. Networks stand side by "
            f"side at each node count.{_why_no_curve(study)}",
            rests_on=FIGURES["share"],
        ),
        "falls": Exhibit(
            "falls",
            falls(study),
            "How much of the ratio of two networks' rates is lost from one node count to another",
            _judged(study),
            "The fall of each statement with its blocks, interval, margin and answer",
            "Small marks are single blocks, n of them in each row; large marks and bars are geometric means with their intervals. "
            "Shaded is the margin, set before the run."
            + (" Diamonds are today's run." if study.today else ""),
            rests_on=FIGURES["falls"],
        ),
    }


def _why_no_curve(study: Scaling) -> str:
    """On which networks no law follows what was measured."""
    names, followed = (
        short_names(study.dataset),
        {law.interconnect for law in study.laws if law.follows},
    )
    without = [names[name] for name in study.points.interconnect.values if name not in followed]
    return (
        f" No curve is drawn: no law of scalability follows {listed(without)}." if without else ""
    )


def _basis(study: Scaling, intervals: str, n: int = 0) -> Basis:
    """What it rests on; `n` blocks, or all of them."""
    if study.evidence == "simulated":
        return Basis("simulated")
    return Basis(study.evidence, n or study.points.sizes["block"], intervals)


def _judged(study: Scaling) -> Basis:
    """What the verdicts rest on."""
    blocks = max((contrast.verdict.blocks for contrast in study.contrasts), default=0)
    return _basis(study, f"{_level(study)} t intervals", blocks)


def _level(study: Scaling) -> str:
    return percent(1 - 2 * designs.read(study.dataset).one_sided, 0)


def falls_table(study: Scaling) -> Table:
    """The verdict on every statement, and the fall with every valid run."""
    rows = [
        (
            f"**{_pair(study, it)}**" if it.primary else _pair(study, it),
            f"{it.start} to {it.end}",
            it.verdict.answer,
            percent(it.verdict.fall),
            percent_range(it.verdict.interval),
            str(it.verdict.blocks),
            percent(every.fall) + (f" ({every.blocks})" if every.blocks else ""),
        )
        for it, every in zip(study.contrasts, study.with_every_run)
    ]
    corrected = [it.verdict.p_holm for it in study.contrasts if it.verdict.p_holm is not None]
    holm = f" (largest p {probability(max(corrected))})" if corrected else ""
    columns = (
        "Networks",
        "Nodes",
        "Answer",
        "Fall",
        f"{_level(study)} interval",
        "Blocks",
        "Fall with every valid run (blocks)",
    )
    margin = percent(designs.read(study.dataset).margin, 0)
    caption = (
        f"The fall of the ratio of two networks' rates. Flat: the interval lies inside the margin of {margin}; falls off: it is "
        "a fall beyond it. The bold statements were planned, and are tested in this order; Holm's procedure corrects the "
        f"others for each other{holm}."
    )
    return Table("scaling-falls", columns, "lllrrrr", rows, caption, _judged(study))


def points_table(study: Scaling) -> Table:
    """Rate and share of every network and node count."""
    names, shares, rate = short_names(study.dataset), study.shares, rates(study.points.rate)
    rows = []
    for n in study.points.nodes.values.tolist():
        for name in study.points.interconnect.values.tolist():
            place = {"nodes": n, "interconnect": name}
            ran, share, speed = study.points.sel(place), shares.sel(place), rate.sel(place)
            order, grid = _whole(ran.N), f"{_whole(ran.P)} × {_whole(ran.Q)}"
            done = estimate(speed["mean"], speed.low, speed.high)
            reached = estimate(*(100 * share[end] for end in ("ratio", "low", "high")))
            rows.append((str(n), names[name], order, grid, done, reached, str(int(share.blocks))))
    columns = (
        "Nodes",
        "Network",
        "N",
        "Grid",
        "Rate [Gflop/s] (95 % interval)",
        "Share [%] (95 % interval)",
        "Blocks",
    )
    caption = f"HPL's rate (harmonic mean) and its share of {study.points.share.attrs['of']} (geometric mean)"
    return Table(
        "scaling-points", columns, "rlrlllr", rows, caption, _basis(study, "95 % t intervals")
    )


def laws_table(study: Scaling) -> Table:
    """Every law that the data can carry, and whether it follows them."""
    names, most = short_names(study.dataset), int(study.points.nodes.max())
    rows = [
        (
            names[law.interconnect],
            law.comparison.model.title,
            number(100 * law.miss),
            "yes" if law.follows else "no",
            _foretold(law.comparison),
        )
        for law in study.laws
        if law.comparison.pooled
    ]
    columns = (
        "Network",
        "Model",
        "Largest miss [%]",
        "Follows",
        f"Error at {most} nodes [%] (95 % interval)",
    )
    caption = (
        "Models of the share over nodes. A model follows its data if it misses no mean by more than "
        f"{percent(CLOSE, 0)}, or no lack of fit can be shown; only then may its curve be drawn. The last column: what the "
        "model predicts for the most nodes from the fewer ones, less what was measured."
    )
    basis = _basis(study, "95 % t intervals")
    return Table("scaling-laws", columns, "llrll", rows, caption, basis)


def _foretold(comparison: Comparison) -> str:
    if comparison.held_out is None:
        return UNKNOWN
    error, (low, high) = comparison.held_out.error, comparison.held_out.interval
    return estimate(100 * error, 100 * low, 100 * high)


def links_table(study: Scaling) -> Table | None:
    """What the testbed's links carry, beside what their wire allows; None without a survey."""
    names, counts = short_names(study.dataset), study.links.groupby("interconnect").size()
    if not len(study.networks):
        return None
    words = {"link-bound": "its wire", "host-bound": "the machine"}
    rows = [
        (
            names[name],
            str(int(counts[name])),
            number(known(row.wire_limit / 1e9)),
            number(known(row.goodput / 1e9)),
            number(known(100 * row.goodput / row.wire_limit)),
            words.get(row.limit, UNKNOWN),
            number(known(1e6 * row.round_trip_time)),
        )
        for name, row in study.networks.iterrows()
    ]
    columns = (
        "Network",
        "Links",
        "Wire allows [Gbit/s]",
        "Goodput [Gbit/s]",
        "Of that [%]",
        "Limited by",
        "Round trip [µs]",
    )
    caption = f"TCP over single links, before the campaign ({study.evidence} evidence, medians of the links)."
    return Table("scaling-links", columns, "lrrrrlr", rows, caption)


def today_table(study: Scaling) -> Table | None:
    """Whether today's run reproduces each statement; None without a run of today."""
    if study.today_run is None:
        return None
    basis = _basis(study, "90 % t intervals")
    return todays_run.table("scaling-today", _compared(study, primary_only=False), "Fall", basis)


def _whole(values: xr.DataArray) -> str:
    """A setting that is the same in every block."""
    most = values.max()
    return str(int(most)) if np.isfinite(most) else UNKNOWN
