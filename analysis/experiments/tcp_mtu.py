"""TCP over cable, switch and router: goodput over the MTU, one way and both ways, and CPU time for
a byte."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes

from analysis import drawing, exhibit, models, published, style
from analysis.attributes import design, host, short_names
from analysis.derive import at_only_level
from analysis.findings import (
    FAILED,
    Finding,
    above,
    at_place,
    evidence_of,
    failed_today,
    gave_nothing,
    interval_in_words,
    of_estimate,
    origin,
    resting_on,
    run_of_today,
)
from analysis.fitting.block_fit import Attempt, attempt
from analysis.statistics.intervals import average, rates, ratios
from analysis.tcp import ENDS, FULL, HOST_BOUND, LINK_BOUND, SHAPER, points, stamps
from analysis.wire import tcp_payload
from analysis.wording import counted, listed, number, paragraphs, percent

# The campaigns and files of data/ behind each figure.
FIGURES = {"tcp_mtu": ("tcp_mtu", "published/nemo.toml", "published/nemo_netperf.csv")}
OPENS = {"tcp_cost": {"y": "cpu_time"}}
COST_MODEL = models.find("cpu_cost")
GIGA = 1e9
OUTSIDE = 0.17  # fraction of a doubling of the MTU between two published marks
Estimate = tuple[float, ...]  # value and both ends of its 95 % t interval over the blocks, or NaN


@dataclass(frozen=True)
class End:
    """CPU time for a byte at one end, over `blocks` blocks.

    `saved` [1] is the share of the cost at the smallest MTU that the largest MTU saves. `model` is
    the fitted cost over the payload of a packet; `packet_part` is the packet's share [1] of the
    cost at the smallest MTU according to the model.
    """

    name: str
    saved: Estimate
    blocks: int
    model: Attempt
    packet_part: Estimate


@dataclass(frozen=True)
class Cost:
    """CPU time for a byte at the sending and the receiving end, on one path one way; `points` are over (block, mtu)."""

    dataset: xr.Dataset
    points: xr.Dataset
    ends: tuple[End, ...]

    @property
    def mtus(self) -> tuple[int, int]:
        """The smallest and the largest MTU [B]."""
        return int(self.points.mtu.min()), int(self.points.mtu.max())


@dataclass(frozen=True)
class TcpMtu:
    """The campaign's dataset and all results.

    `points` and `stamps` are those of `analysis.tcp`; `shares` of the wire limit [1] are harmonic
    means with 95 % t intervals over (path, mtu, direction). `published` has a row for each of the
    source's tests on a device like one of the paths (see `published.nemo_points`). `cost` is None
    without its campaign. `today` is the comparison with a shorter run of today, in the form of
    `Finding.today`.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    stamps: xr.DataArray
    shares: xr.Dataset
    published: pd.DataFrame
    cost: Cost | None = None
    today: dict | None = None

    @property
    def paths(self) -> list[str]:
        """The paths with a rate, and so with a wire limit."""
        has_limit = self.points.limit.notnull().any(["mtu", "direction"])
        return self.points.path[has_limit].values.tolist()

    @property
    def one_way(self) -> list[str]:
        """The directions that are used one at a time."""
        return [way for way in self.points.direction.values.tolist() if way != "both"]


def analyse(
    tcp_mtu: xr.Dataset, tcp_cost: xr.Dataset | None = None, today: xr.Dataset | None = None
) -> TcpMtu:
    """Derive the points of a campaign over the MTU; `today` is a shorter run of it.

    Raises FalloffError if one holds no iperf3 trial, or `tcp_cost` has several paths or directions.
    """
    laid_out = points(tcp_mtu)
    limited = stamps(laid_out)
    return TcpMtu(
        dataset=tcp_mtu,
        points=laid_out,
        stamps=limited,
        shares=rates(laid_out.share),
        published=published.nemo_points(design(tcp_mtu).get("published", {})),
        cost=None if tcp_cost is None else cost_of(tcp_cost),
        today=None if today is None else _today(limited, today),
    )


def _today(reference: xr.DataArray, run: xr.Dataset) -> dict | None:
    """Whether path or machine limits the same points today, or that the run failed; None if no
    point was run in both."""
    if gave_nothing(run):
        return failed_today(run)
    today = points(run)
    then, now = xr.align(reference, stamps(today))
    known = (then != "") & (now != "")
    count, same = int(known.sum()), int((known & (then == now)).sum())
    if not count:
        return None
    return {
        "answer": "reproduced" if same == count else "not reproduced",
        "judged_as": f"{same} of {counted(count, 'point')} limited by the same",
        "n": today.sizes["block"],
        **run_of_today(run),
    }


def _in_words(today: dict) -> str:
    if today["answer"] == FAILED:
        return f"**Today's run failed**: {today['failed']}"
    failed = f" Of today's run {today['failed']}" if today["failed"] else ""
    return f"Today's shorter run has {today['judged_as']} as here.{failed}"


def cost_of(dataset: xr.Dataset) -> Cost:
    """Fit the cost model to both ends; the data go from the client to the server.

    Raises FalloffError if there is no iperf3 trial, or there are several paths or directions.
    """
    laid_out = at_only_level(points(dataset), "path", "direction")
    names = zip(("sending", "receiving"), ENDS)
    ends = tuple(_end(name, laid_out[f"cost_{end}"]) for name, end in names)
    return Cost(dataset, laid_out, ends)


def _end(name: str, cost: xr.DataArray) -> End:
    cost = cost.transpose("block", "mtu").sortby("mtu")
    payload, packet_part = tcp_payload(cost.mtu.values), (np.nan,) * 3
    model = attempt(COST_MODEL, payload, cost.values)
    if model.fitted:
        per_byte, per_packet = model.fitted.by_block.T / [[1], [payload.min()]]
        packet_part = tuple(map(float, average(per_packet / (per_byte + per_packet), "ratio")))
    left = ratios(np.log(cost.isel(mtu=-1, drop=True) / cost.isel(mtu=0, drop=True)))
    ratio, low, high = at_place(left)
    return End(name, (1 - ratio, 1 - high, 1 - low), int(left.blocks), model, packet_part)


def finding(study: TcpMtu) -> str:
    """How well TCP fills the wire, and what larger frames save at both ends, in plain English
    (Markdown)."""
    wrong = int((study.stamps == SHAPER).sum())
    has_both = "both" in study.points.direction
    sentences = [
        _of_ways(study, study.one_way, "One way"),
        _of_source(study),
        _of_ways(study, ["both"], "Both ways at once") if has_both else "",
        f"**The shaper lets too much pass at {counted(wrong, 'point')}**." if wrong else "",
        _in_words(study.today) if study.today else "",
    ]
    return paragraphs(sentences, _of_cost(study.cost) if study.cost else ())


def _of_ways(study: TcpMtu, directions: Sequence[str], ways: str) -> str:
    """The number of points of these directions at which TCP fills the wire, and the lowest
    share."""
    limited, dataset = study.stamps.sel(direction=directions), study.dataset
    full, bound, judged = limited == LINK_BOUND, limited == HOST_BOUND, limited != ""
    if not judged.any():
        return f"**{ways}, it cannot be said whether TCP fills the wire**: no path with a rate has a valid run."
    how_many = "all" if full.sum() == judged.sum() else f"{int(full.sum())} of"
    head = f"**{ways}, TCP fills the wire at {how_many} {int(judged.sum())} points"
    if bound.any():
        mtus = [str(mtu) for mtu in limited.mtu[bound.any(["path", "direction"])].values]
        busy = number(float(study.points.busy.mean("block").where(bound).min()))
        return (
            f"{head}**. At {counted(int(bound.sum()), 'point')}, with MTU {' and '.join(mtus)}, the machine is the limit: at least "
            f"{busy} of its {counted(host(dataset).get('cpus', 0), 'processor')} were busy. These say nothing of the path "
            f"({resting_on(dataset, study.points.sizes['block'])})."
        )
    lowest = _lowest(study, judged)
    share, *ends = at_place(lowest, "mean")
    rates = ", at the rates that were set" if evidence_of(dataset) == "emulated" else ""
    return (
        f"{head}{rates}**: at least {percent(share)} of its limit ({resting_on(dataset, int(lowest.blocks), interval_in_words(ends))}). "
        f"From {percent(FULL, 0)} on it counts as full."
    )


def _lowest(study: TcpMtu, chosen: xr.DataArray) -> xr.Dataset:
    """The lowest share of the wire limit among the chosen points."""
    shares = study.shares.sel(direction=chosen.direction)
    return shares.isel(shares["mean"].where(chosen).argmin(...))


def _of_source(study: TcpMtu) -> str:
    """The source's lowest share one way, on devices like the emulated ones."""
    one_way = study.published.query("direction == 'forward'")
    if one_way.empty:
        return ""
    lowest = one_way.loc[one_way.share.idxmin()]
    device = published.facts("nemo")["device"][lowest.device]
    return f"This checks the emulation, and cannot repeat the {percent(lowest.share)} that Nemo printed for its {device} at MTU {lowest.mtu} [@nemo]."


def _of_cost(cost: Cost) -> Iterator[str]:
    """The saving of the largest MTU at each end where it is certain, and the packet's part at the
    sending end."""
    least, largest = cost.mtus
    sure = [end for end in cost.ends if end.saved[1] > 0]
    for end in sure:
        saved, *ends = end.saved
        basis = resting_on(cost.dataset, end.blocks, interval_in_words(ends))
        yield (
            f"**At the {end.name} end a byte takes {percent(saved)} less CPU time at MTU {largest} than at MTU {least}** "
            f"({basis})."
        )
    sending = cost.ends[0]
    if not sure:
        yield f"What larger frames save of the CPU time is open. {sending.model.refused}"
    else:
        yield f"From what Nemo printed follow {listed([*map(percent, printed_savings())])} for its own machines."
    part, *ends = sending.packet_part
    if sending.model.follows and np.isfinite(ends).all():
        yield (
            f"At MTU {least} the cost of each packet is {percent(part, 0)} of the sender's time ({interval_in_words(ends)}), and the "
            "cost of each byte the rest [@chase]."
        )


def printed_savings() -> list[float]:
    """The share of a byte's CPU time [1] that the source's jumbo frames saved, at the sending and
    the receiving end of its cable."""
    tests = published.table("nemo_netperf").query("path == 'crossover' and direction == 'forward'")
    tests = tests.set_index("mtu").sort_index()
    costs = [tests[f"cpu_{end}_percent"] / tests.goodput_kib_s for end in ENDS]
    return [float(1 - cost.iloc[-1] / cost.iloc[0]) for cost in costs]


def findings(study: TcpMtu) -> Iterator[Finding]:
    """Every point's share of the wire limit, the lowest one-way share first, and the cost, as
    data."""
    source, names = origin("tcp_mtu", study.dataset), short_names(study.dataset)

    def of_share(statement: str, at: xr.Dataset, **further) -> Finding:
        share = at_place(at, "mean")
        return of_estimate(source, statement, "share", share, int(at.blocks), **further)

    limited = study.stamps.sel(direction=study.one_way)
    if (limited != "").any():
        about = {"answer": "no" if (limited == HOST_BOUND).any() else "yes", "today": study.today}
        links = "links with a set rate" if evidence_of(study.dataset) == "emulated" else "the wire"
        statement = f"TCP fills {links}, one way (lowest point)"
        yield of_share(statement, _lowest(study, limited != ""), primary=True, **about)
    places = ("path", "mtu", "direction")
    shares = study.shares.sel(path=study.paths).stack(point=places)
    for place in shares.point.values.tolist():
        statement = f"TCP's share of the wire limit: {names[place[0]]}, MTU {place[1]}, {place[2]}"
        stamp = study.stamps.sel(dict(zip(places, place))).item()
        yield of_share(statement, shares.sel(point=place), answer=stamp)
    if study.cost:
        yield from _findings_of_cost(study.cost)


def _findings_of_cost(cost: Cost) -> Iterator[Finding]:
    source, (least, largest) = origin("tcp_mtu", cost.dataset), cost.mtus
    for end in cost.ends:
        part, model = end.packet_part, end.model
        statement = f"At MTU {least} packets take most of the {end.name} end's CPU time"
        about = {"answer": above(part[1:], 0.5), "reason": model.refused}
        about["primary"] = end is cost.ends[0]
        yield of_estimate(source, statement, "share", part, model.blocks, **about)
        statement = f"A byte takes less CPU time at MTU {largest} than at {least}, {end.name} end"
        yield of_estimate(source, statement, "fall", end.saved, end.blocks)


def figures(study: TcpMtu) -> dict[str, exhibit.Exhibit]:
    """Total goodput [Gbit/s] over the MTU, one panel per path, with the wire limit and the
    published points."""
    paths, names = study.paths or study.points.path.values, short_names(study.dataset)
    directions, mtus = study.points.direction.values.tolist(), study.points.mtu.values
    with style.styled():
        figure, panels = drawing.new_figures(3.4, len(paths), sharex=True, sharey=True)
        for axes, path in zip(panels, paths):
            limit = study.points.limit.sel(path=path).transpose("mtu", "direction") / GIGA
            for ways in np.unique(limit, axis=1).T:
                axes.plot(mtus, ways, color=style.INK, lw=0.8, label="wire limit")
            for rank, direction in enumerate(directions):
                x = drawing.beside(mtus, rank, len(directions))
                values = study.points.total.sel(path=path, direction=direction) / GIGA
                label = "both ways" if direction == "both" else direction
                drawing.runs(axes, direction, x, values, label)
            _published(axes, study, path)
            axes.set_title(names[path])
            axes.set_ylim(0, None)
            drawing.doubling_axis(axes, [mtus.min(), mtus.max()], "MTU [B]")
        panels[0].set_ylabel("goodput [Gbit/s]")
        drawing.legend_below(figure, panels, 2)
    return exhibit.only(
        FIGURES,
        figure,
        "TCP's goodput over the MTU on each path: one way, back, and the sum of both ways at once",
        exhibit.Basis.of_dataset(study.dataset, "every run is drawn"),
        "Goodput over the MTU for each path, with the wire limit and what Nemo printed",
        "Lines are the wire limit, one way and both ways. What Nemo printed (published) has the colour of its direction. All "
        "marks are moved sideways from their MTU, so that none hides another.",
    )


def _published(axes: Axes, study: TcpMtu, path: str) -> None:
    """The source's points on a path: one mark per device, outside the emulated ones and side by
    side."""
    marks = dict(zip(study.published.device.unique(), style.PUBLISHED_DEVICES))
    middle = float(np.sqrt(study.points.mtu.min() * study.points.mtu.max()))
    here = study.published[study.published.path == path]
    for rank, (device, tests) in enumerate(here.groupby("device", sort=False), start=1):
        mark = {"marker": marks[device], "mew": 1.5, "ms": 5, "ls": ""}
        for test in tests.itertuples():
            outwards = 1 if test.mtu > middle else -1
            place = test.mtu * 2 ** (outwards * (drawing.SIDESTEP + OUTSIDE * rank))
            axes.plot(place, test.total / GIGA, color=style.look(test.direction).color, **mark)
        label = f"published: {published.facts('nemo')['device'][device]}"
        axes.plot([], [], color=style.INK, label=label, **mark)
