"""From a TCP campaign's trials to its points: goodput, share of the wire limit, CPU time at both ends, what limits a point
and what a byte and a packet cost."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, models, published, style
from analysis.attributes import host, interconnects, settings, short_names
from analysis.claims.quantities import at, quantity
from analysis.derive import at_only_level, over_factors
from analysis.fitting.block_fit import Attempt, attempt
from analysis.statements import (
    Statement,
    above,
    at_place,
    estimated,
    evidence_of,
    of_every_point,
    origin,
    unless_across,
)
from analysis.statistics.intervals import average, mean_over, rates, ratios
from analysis.wire import tcp_payload, wire_limit, wire_limit_both_ways
from analysis.wording import counted, number, percent

FULL = 0.99  # from this share of a full wire on, the path is the limit
EXCESS = 1.001  # of the wire limit: a larger share means a faulty shaper; the ends' clocks differ by less
LINK_BOUND, HOST_BOUND, SHAPER = "link-bound", "host-bound", "shaper"
WAYS = {"both": "both ways", "forward": "one way", "reverse": "one way, back"}
# What `compared` calls the variables of points.
OF_POINTS = {
    "goodput": "Goodput",
    "total": "Goodput of both ways",
    "megabytes": "Goodput of both ways in the source's MB/s",
    "cpu_local": "CPU time of the sender in a second",
    "cpu_remote": "CPU time of the receiver in a second",
    "cost_local": "CPU time of the sender for a byte",
    "cost_remote": "CPU time of the receiver for a byte",
    "cost": "CPU time of both ends for a byte",
}
ENDS = {"local": "sender", "remote": "receiver"}  # netperf's names of both machines
# Share of the machine's CPU time. If more belongs to no node, it may include an end's work.
MOST_UNATTRIBUTED = 0.10
COST_MODEL = models.find("cpu_cost")
GIGA = 1e9
OUTSIDE = 0.17  # fraction of a doubling of the MTU between two published marks


def points(dataset: xr.Dataset) -> xr.Dataset:
    """Lay a campaign's iperf3 trials out over dims (block, path, mtu, direction).

    Variables: `goodput` one way or forward and `total` of all ways [bit/s], `share` of the wire
    limit [1], `cpu_local` and `cpu_remote` [processors], `cost_local` and `cost_remote` [s/B]: CPU
    time of an end, and that for each byte, both ways and warm-up included. These are NaN if more
    than MOST_UNATTRIBUTED of the machine's CPU time belongs to no node. `busy` is the number of the
    machine's processors in use. Over (path, mtu, direction): `limit` [bit/s] of all ways, NaN
    without a rate, and `full` [bit/s], which a path in full use reaches. Raises FalloffError if
    there is no iperf3 trial.
    """
    # Otherwise each step below carries all settings along.
    dataset = dataset.reset_coords()
    total = dataset.goodput + xr.where(dataset.direction == "both", dataset.goodput_reverse, 0)
    given = settings(dataset)
    seconds = given["duration_s"] + given["omit_s"]
    unattributed = dataset.unattributed_cpu_time / dataset.host_cpu_time
    is_attributed = (np.abs(unattributed) <= MOST_UNATTRIBUTED) & (total > 0)
    cpu_time = {
        end: dataset.cpu_time.where(dataset.node == dataset[role]).sum("node", min_count=1)
        for end, role in ENDS.items()
    }
    laid_out = over_factors(
        dataset,
        "iperf3",
        goodput=dataset.goodput,
        total=total,
        busy=dataset.host_cpu_time / seconds,
        **{f"cpu_{end}": time.where(is_attributed) / seconds for end, time in cpu_time.items()},
    )
    for end in ENDS:
        laid_out[f"cost_{end}"] = laid_out[f"cpu_{end}"] / (laid_out.total / 8)
    described = interconnects(dataset)
    rates = [described[path].get("rate_bit_s", np.nan) for path in laid_out.path.values]
    rate, is_both = xr.DataArray(rates, {"path": laid_out.path}), laid_out.direction == "both"
    one_way, both_ways = (limit(rate, laid_out.mtu) for limit in (wire_limit, wire_limit_both_ways))
    limit = one_way * xr.where(is_both, 2, 1)
    full = xr.where(is_both, 2 * both_ways, one_way)
    return laid_out.assign(limit=limit, full=full, share=laid_out.total / limit).assign_attrs(
        dataset.attrs
    )


def stamps(points: xr.Dataset) -> xr.DataArray:
    """What limits each point, over (path, mtu, direction), judged by its harmonic mean over the
    blocks.

    LINK_BOUND: at least FULL of what a full wire carries. HOST_BOUND: less. SHAPER: beyond the wire
    limit, so the shaper counts wrongly. Empty if there is no limit or no reading.
    """
    mean = mean_over(points.total, "block", "rate")
    known = mean.notnull() & points.limit.notnull()
    bound = xr.where(mean >= FULL * points.full, LINK_BOUND, HOST_BOUND)
    return xr.where(mean > EXCESS * points.limit, SHAPER, bound).where(known, "")


def fills_the_wire(
    dataset: xr.Dataset, points: xr.Dataset, shares: xr.Dataset
) -> Iterator[Statement]:
    """Does TCP fill the wire one way, by the lowest share of all points? Then every point's share, and what limits it.

    `points` is from `points`, and `shares` of the wire limit [1] are means with intervals over (path, mtu, direction).
    """
    source, names, limited = origin(dataset), short_names(dataset), stamps(points)
    one_way = limited.where(limited.direction != "both", "")
    links = "links with a set rate" if evidence_of(dataset) == "emulated" else "the wire"
    subject = f"TCP fills {links}, one way (lowest point)"
    lowest = shares["mean"].where(one_way != "").fillna(np.inf).argmin(...)
    # An interval on both sides of a full wire's share does not say which of the two is the limit.
    enough = (FULL * points.full / points.limit).broadcast_like(limited)

    def answer(words: str, at: xr.Dataset, least: xr.DataArray) -> str:
        return unless_across(words, (at.low.item(), at.high.item()), least.item())

    words = "no" if (one_way == HOST_BOUND).any() else "yes"
    words = answer(words, shares.isel(lowest), enough.isel(lowest))
    about = {"primary": True, "words": words}
    if (one_way == "").all():
        reason = "no path with a rate has a valid run"
        about |= {"words": "undecided", "reason": reason}
    has_limit = points.limit.notnull().any(["mtu", "direction"])
    planned = one_way.sel(path=has_limit, direction=one_way.direction != "both")
    yield of_every_point(_share(source, subject, shares.isel(lowest), **about), planned != "")
    each = shares.sel(path=has_limit).stack(point=("path", "mtu", "direction"))
    for path, mtu, direction in each.point.values.tolist():
        at = {"path": path, "mtu": mtu, "direction": direction}
        subject = f"TCP's share of the wire limit: {names[path]}, MTU {mtu}, {direction}"
        about = {"words": limited.sel(at).item()}
        if about["words"] != SHAPER:
            about["words"] = answer(about["words"], shares.sel(at), enough.sel(at))
        else:
            about = {"words": "refused", "reason": "the shaper lets more pass than the limit"}
        yield _share(source, subject, shares.sel(at), **about)


def _share(source: dict, subject: str, at: xr.Dataset, **further) -> Statement:
    return estimated(source, subject, "share", at_place(at, "mean"), int(at.blocks), **further)


def not_the_wire(dataset: xr.Dataset, points: xr.Dataset) -> str:
    """The points that the machine limits, and those at which the shaper lets too much pass, in sentences (Markdown); empty
    if there are none."""
    limited, sentences = stamps(points), []
    bound, wrong = limited == HOST_BOUND, int((limited == SHAPER).sum())
    if bound.any():
        mtus = [str(mtu) for mtu in limited.mtu[bound.any(["path", "direction"])].values]
        busy = number(float(points.busy.mean("block").where(bound).min()))
        sentences.append(
            f"At {counted(int(bound.sum()), 'point')}, with MTU {' and '.join(mtus)}, the mean is below a full wire and the machine is the limit: at least {busy} "
            f"of its {counted(host(dataset).get('cpus', 0), 'processor')} were busy. These say nothing of the path."
        )
    if wrong:
        sentences.append(f"**The shaper lets too much pass at {counted(wrong, 'point')}**.")
    return " ".join(sentences)


def lowest_printed(nemo: pd.DataFrame) -> str:
    """The lowest share of the wire that Nemo's builders printed one way, in a sentence; empty without any. `nemo` is from
    `published.nemo_points`."""
    one_way = nemo.query("direction == 'forward'")
    if one_way.empty:
        return ""
    lowest = one_way.loc[one_way.share.idxmin()]
    device = published.facts("nemo")["device"][lowest.device]
    return f"Nemo printed down to {percent(lowest.share)} of the wire, for its {device} at MTU {lowest.mtu} [@nemo]."


def byte_cost(dataset: xr.Dataset) -> xr.DataArray:
    """CPU time of a byte [s/B] at the sending and the receiving end, over (end, block, mtu), MTUs ascending.

    Raises FalloffError if there is no iperf3 trial, or there are several paths or directions.
    """
    laid_out = at_only_level(points(dataset), "path", "direction").sortby("mtu")
    names = dict(zip(ENDS, ("sending", "receiving")))
    ends = xr.concat(
        [laid_out[f"cost_{end}"].rename("cost").assign_coords(end=names[end]) for end in ENDS],
        "end",
        coords="minimal",
        compat="override",
    )
    return ends.transpose("end", "block", "mtu")


def saved(cost: xr.DataArray) -> xr.Dataset:
    """The share [1] of a byte's CPU time at the smallest MTU that the largest saves: `mean`, `low`, `high`, `blocks` over
    (end). `cost` is from `byte_cost`."""
    left = ratios(np.log(cost.isel(mtu=-1, drop=True) / cost.isel(mtu=0, drop=True)))
    ends = {"mean": 1 - left.ratio, "low": 1 - left.high, "high": 1 - left.low}
    return xr.Dataset(ends | {"blocks": left.blocks})


def fitted_costs(cost: xr.DataArray) -> dict[str, Attempt]:
    """The cost of each byte plus that of each packet over its payload, fitted to every block, by end. `cost` is from
    `byte_cost`."""
    payload = tcp_payload(cost.mtu.values)
    return {
        end: attempt(COST_MODEL, payload, cost.sel(end=end).values)
        for end in cost.end.values.tolist()
    }


def packets_part(model: Attempt, mtu: int) -> tuple[float, float, float]:
    """The packet's part [1] of a byte's CPU time at an MTU [B], by a fit: geometric mean over the blocks and its 95 % t
    interval; NaN where the model does not follow the data."""
    if not (model.fitted and model.follows):
        return (np.nan,) * 3
    per_byte, per_packet = model.fitted.by_block.T / [[1], [tcp_payload(mtu)]]
    mean, low, high = average(per_packet / (per_byte + per_packet), "ratio")
    return float(mean), float(low), float(high)


def costs_of_bytes(
    dataset: xr.Dataset, cost: xr.DataArray, fits: Mapping[str, Attempt]
) -> Iterator[Statement]:
    """For each end: do packets take most of the CPU time at the smallest MTU, and does a byte take less at the largest?"""
    source, savings = origin(dataset), saved(cost)
    least, largest = int(cost.mtu.min()), int(cost.mtu.max())
    for end, model in fits.items():
        part, saving = packets_part(model, least), savings.sel(end=end)
        subject = f"At MTU {least} packets take most of the {end} end's CPU time"
        about = {"words": above(part[1:], 0.5), "reason": model.reason, "primary": end == "sending"}
        yield estimated(source, subject, "share", part, model.blocks, **about)
        subject = f"A byte takes less CPU time at MTU {largest} than at {least}, {end} end"
        ends, blocks = at_place(saving, "mean"), int(saving.blocks)
        yield estimated(source, subject, "fall", ends, blocks, words=above(ends[1:], 0))


def printed_savings() -> list[float]:
    """The share of a byte's CPU time [1] that Nemo's jumbo frames saved, at the sending and the receiving end of its cable."""
    tests = published.table("nemo_netperf").query("path == 'crossover' and direction == 'forward'")
    tests = tests.set_index("mtu").sort_index()
    costs = [tests[f"cpu_{end}_percent"] / tests.goodput_kib_s for end in ENDS]
    return [float(1 - cost.iloc[-1] / cost.iloc[0]) for cost in costs]


def goodput_over_mtu(
    dataset: xr.Dataset, points: xr.Dataset, nemo: pd.DataFrame, today: xr.Dataset | None = None
) -> Figure:
    """Total goodput [Gbit/s] over the MTU, a panel for each path with a rate, with the wire limit, what Nemo printed, and the
    mean of each point of a run of `today`.

    `points` and `today` are from `points`, and `nemo` from `published.nemo_points`.
    """
    now = None if today is None else rates(today.total)["mean"] / GIGA
    has_limit, names = points.limit.notnull().any(["mtu", "direction"]), short_names(dataset)
    paths = points.path[has_limit].values.tolist() or points.path.values.tolist()
    directions, mtus = points.direction.values.tolist(), points.mtu.values
    with style.styled():
        figure, panels = drawing.new_figures(3.4, len(paths), sharex=True, sharey=True)
        for axes, path in zip(panels, paths):
            limit = points.limit.sel(path=path).transpose("mtu", "direction") / GIGA
            for ways in np.unique(limit, axis=1).T:
                axes.plot(mtus, ways, color=style.INK, lw=0.8, label="wire limit")
            for rank, direction in enumerate(directions):
                x = drawing.beside(mtus, rank, len(directions))
                values = points.total.sel(path=path, direction=direction) / GIGA
                label = "both ways" if direction == "both" else direction
                drawing.runs(axes, direction, x, values, label)
                if now is not None:
                    mean = now.reindex(path=[path], mtu=mtus, direction=[direction]).squeeze()
                    axes.plot(x, mean, **drawing.TODAY)
            _printed(axes, nemo, path, mtus)
            axes.set_title(names[path])
            axes.set_ylim(0, None)
            drawing.doubling_axis(axes, [mtus.min(), mtus.max()], "MTU [B]")
        panels[0].set_ylabel("goodput [Gbit/s]")
        drawing.legend_below(figure, panels, 2)
    return figure


def _printed(axes: Axes, nemo: pd.DataFrame, path: str, mtus: np.ndarray) -> None:
    """Nemo's points on a path: a mark for each device, outside the runs and side by side."""
    marks = dict(zip(nemo.device.unique(), style.PUBLISHED_DEVICES))
    middle = float(np.sqrt(mtus.min() * mtus.max()))
    here = nemo[nemo.path == path]
    for rank, (device, tests) in enumerate(here.groupby("device", sort=False), start=1):
        mark = {"marker": marks[device], "mew": 1.5, "ms": 5, "ls": ""}
        for test in tests.itertuples():
            outwards = 1 if test.mtu > middle else -1
            place = test.mtu * 2 ** (outwards * (drawing.SIDESTEP + OUTSIDE * rank))
            axes.plot(place, test.total / GIGA, color=style.look(test.direction).color, **mark)
        label = f"published: {published.facts('nemo')['device'][device]}"
        axes.plot([], [], color=style.INK, label=label, **mark)


def compared(
    dataset: xr.Dataset,
    points: xr.Dataset,
    name: str,
    variable: str,
    of: tuple[str, int, str],
    against: tuple[str, int, str] | None = None,
    times: float = 1.0,
) -> Statement:
    """`times` a variable of `points`, one path, MTU [B] and direction over another in the same block, or alone; refused where
    the machine limits one of them, or CPU time belongs to nobody."""
    names, values, texts, limited, ran = short_names(dataset), [], [], [], True
    for path, mtu, direction in filter(None, (of, against)):
        place = {"path": path, "mtu": mtu, "direction": direction}
        ran = ran and all(level in points[factor].values for factor, level in place.items())
        values.append(at(points[variable], **place))
        texts.append(f"the {names.get(path, path)} at MTU {mtu} {WAYS[direction]}")
        limited += [texts[-1]] if at(stamps(points), **place) == HOST_BOUND else []
    refused = ""
    if ran and not all(one.notnull().any() for one in values):
        refused = "too much CPU time belongs to neither end, such as the shaper's"
    if limited:
        refused = f"the machine limits {' and '.join(limited)}, not the wire"
    found = times * values[0] / (1.0 if against is None else values[1])
    text = f"{OF_POINTS[variable]} over {' against '.join(texts)}"
    return quantity(dataset, name, text, found, refused=refused)


def ends_compared(dataset: xr.Dataset | None, cost: xr.DataArray | None) -> list[Statement]:
    """CPU time for a byte at the largest MTU over that at the smallest, at each end, and the receiver's over the sender's at
    the smallest; none without `cost`, which is from `byte_cost`."""
    if dataset is None or cost is None:
        return []
    least, largest = int(cost.mtu[0]), int(cost.mtu[-1])
    text = f"CPU time for a byte at MTU {largest} over that at {least}"
    saved, basic = cost.isel(mtu=-1) / cost.isel(mtu=0), cost.isel(mtu=0)
    return [
        quantity(dataset, "byte_of_sender", f"{text}, sending end", saved.sel(end="sending")),
        quantity(dataset, "byte_of_receiver", f"{text}, receiving end", saved.sel(end="receiving")),
        quantity(
            dataset,
            "receiver_over_sender",
            f"CPU time for a byte at MTU {least}, the receiver's over the sender's",
            basic.sel(end="receiving") / basic.sel(end="sending"),
        ),
    ]
