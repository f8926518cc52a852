"""TCP over cable, switch and router: goodput over the MTU, one way and both, and CPU time for a byte."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, models, published, style
from analysis.attributes import design, host, short_names
from analysis.derive import at_only_level
from analysis.exhibit import Basis, Exhibit
from analysis.findings import T_INTERVAL, Finding, evidence_of, known, of_estimate, origin
from analysis.fitting.adequacy import follows
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.statistics.intervals import average, rates, ratios
from analysis.statistics.judgement import UNDECIDED
from analysis.tcp import (
    ENDS,
    HOST_BOUND,
    LINK_BOUND,
    MOST_UNATTRIBUTED,
    SHAPER,
    points,
    stamps,
)
from analysis.wire import tcp_payload
from analysis.wording import counted, number, percent, percent_range
from runners.record import FalloffError

# The campaigns, and the files of data/, that each figure rests on.
FIGURES = {
    "tcp_mtu": ("tcp_mtu", "published/nemo.toml", "published/nemo_netperf.csv"),
    "tcp_cost": ("tcp_cost",),
}
OPENS = {"tcp_cost": {"y": "cpu_time"}}
COST_MODEL = models.find("cpu_cost")
GIGA, NANO = 1e9, 1e-9
SIDESTEP = 0.14  # of a doubling of the MTU, between two marks
OUTSIDE = 0.2  # the same, between two published marks
APART = 1.4  # ticks closer than this factor would collide
NOT_KNOWN = (np.nan, np.nan, np.nan)
Estimate = tuple[float, float, float]  # value and its 95 % t interval over the blocks; NaN: unknown


@dataclass(frozen=True)
class End:
    """CPU time for a byte at one end: `values` [s/B] over (block, mtu).

    `fitted` is the cost model over the payload [B] of a packet; None where the data do not allow it, and
    `refused` says why. `followed` says whether the model may be drawn through the means. `packet_part` is
    the packet's share [1] of the cost at the least MTU by the model. `saved` [1] is what the largest MTU
    saves of the cost at the least, in so many `blocks`.
    """

    name: str
    values: xr.DataArray
    fitted: BlockFit | None
    refused: str
    followed: bool
    packet_part: Estimate
    saved: Estimate
    blocks: int


@dataclass(frozen=True)
class Cost:
    """CPU time for a byte at the `sending` and the `receiving` end, on one path one way.

    `points` are over (block, mtu).
    """

    dataset: xr.Dataset
    points: xr.Dataset
    ends: tuple[End, ...]

    @property
    def mtus(self) -> tuple[int, int]:
        """The least and the largest MTU [B]."""
        return int(self.points.mtu.min()), int(self.points.mtu.max())


@dataclass(frozen=True)
class TcpMtu:
    """The campaign's dataset and all that follows from it.

    `points` and `stamps` are those of `analysis.tcp`; `shares` of the wire limit [1] are harmonic means with
    95 % t intervals over (path, mtu, direction). `published` has a row for each of the source's tests on a
    device like one of the paths (see `published.nemo_points`). `cost` is None without its campaign; `today`
    compares a shorter run of today, as `Finding.today` has it.
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
        """The paths that have a rate, and so a wire limit."""
        return self.points.path[
            self.points.limit.notnull().any(["mtu", "direction"])
        ].values.tolist()

    @property
    def one_way(self) -> list[str]:
        """The directions of which one is used at a time."""
        return [way for way in self.points.direction.values.tolist() if way != "both"]


def analyse(
    tcp_mtu: xr.Dataset, tcp_cost: xr.Dataset | None = None, today: xr.Dataset | None = None
) -> TcpMtu:
    """Derive the points of a campaign over the MTU; `today` is a shorter run of it.

    Raises FalloffError when one holds no iperf3 trial, or `tcp_cost` has several paths or directions.
    """
    laid_out = points(tcp_mtu)
    limited = stamps(laid_out)
    like = design(tcp_mtu).get("published", {})
    return TcpMtu(
        dataset=tcp_mtu,
        points=laid_out,
        stamps=limited,
        shares=rates(laid_out.share),
        published=published.nemo_points(like),
        cost=None if tcp_cost is None else cost_of(tcp_cost),
        today=None if today is None else _today(limited, points(today)),
    )


def _today(reference: xr.DataArray, today: xr.Dataset) -> dict | None:
    """Whether path or machine limits the same points today; None where none was run in both."""
    then, now = xr.align(reference, stamps(today))
    known = (then != "") & (now != "")
    count, same = int(known.sum()), int((known & (then == now)).sum())
    if not count:
        return None
    return {
        "answer": "reproduced" if same == count else "not reproduced",
        "judged_as": f"{same} of {counted(count, 'point')} limited by the same",
        "n": today.sizes["block"],
        "digest": today.attrs["campaign_hash"],
    }


def cost_of(dataset: xr.Dataset) -> Cost:
    """Fit the cost model to both ends; the data go from the client to the server.

    Raises FalloffError when there is no iperf3 trial, or there are several paths or directions.
    """
    laid_out = at_only_level(points(dataset), "path", "direction")
    names = zip(("sending", "receiving"), ENDS)
    return Cost(
        dataset, laid_out, tuple(_end(name, laid_out[f"cost_{end}"]) for name, end in names)
    )


def _end(name: str, values: xr.DataArray) -> End:
    values = values.transpose("block", "mtu")
    payload = tcp_payload(values.mtu.values)
    fitted, refused, followed, packet_part = None, "", False, NOT_KNOWN
    try:
        fitted = fit_blocks(COST_MODEL, payload, values.values)
    except FalloffError as error:
        refused = str(error)
    else:
        line = fitted.band(payload, "cost")[0]
        followed = follows(values.values, line, len(COST_MODEL.parameters))
        per_byte, per_packet = fitted.by_block.T / [[1], [payload.min()]]
        packet_part = tuple(map(float, average(per_packet / (per_byte + per_packet), "ratio")))
    least, largest = (
        values.sel(mtu=mtu, drop=True) for mtu in (values.mtu.min(), values.mtu.max())
    )
    left = ratios(np.log(largest / least))
    return End(
        name=name,
        values=values,
        fitted=fitted,
        refused=refused,
        followed=followed,
        packet_part=packet_part,
        saved=tuple(1 - float(left[end]) for end in ("ratio", "high", "low")),
        blocks=int(left.blocks),
    )


def finding(study: TcpMtu) -> str:
    """How far TCP fills the wire, and what larger frames save at both ends, in plain English (Markdown)."""
    wrong = int((study.stamps == SHAPER).sum())
    sentences = [
        _of_ways(study, study.one_way, "One way"),
        _of_ways(study, ["both"], "Both ways at once") if "both" in study.points.direction else "",
        f"**The shaper lets too much pass at {counted(wrong, 'point')}**." if wrong else "",
        _of_source(study),
        f"Today's shorter run has {study.today['judged_as']} as here." if study.today else "",
    ]
    paragraphs = sentences, _of_cost(study.cost) if study.cost else ()
    return "\n\n".join(filter(None, (" ".join(filter(None, part)) for part in paragraphs)))


def _of_ways(study: TcpMtu, directions: Sequence[str], ways: str) -> str:
    """At how many points of these directions TCP fills the wire, and the lowest share that it reaches."""
    limited = study.stamps.sel(direction=directions)
    full, bound, judged = limited == LINK_BOUND, limited == HOST_BOUND, limited != ""
    if not judged.any():
        return f"**{ways}, it cannot be said whether TCP fills the wire**: no path with a rate has a valid run."
    how_many = "all" if full.sum() == judged.sum() else f"{int(full.sum())} of"
    text = f"**{ways}, TCP fills the wire at {how_many} {int(judged.sum())} points**."
    if bound.any():
        mtus = [str(mtu) for mtu in limited.mtu[bound.any(["path", "direction"])].values]
        text += f" At {counted(int(bound.sum()), 'point')}, with MTU {' and '.join(mtus)}, the machine is the limit"
        least = float(study.points.busy.mean("block").where(bound).min())
        processors = host(study.dataset).get("cpus")
        if processors and np.isfinite(least):
            text += (
                f": at least {number(least)} of its {counted(processors, 'processor')} were busy"
            )
        text += "."
    lowest = _lowest(study, judged)
    basis = f"{counted(int(lowest.blocks), 'block')}, {evidence_of(study.dataset)} evidence"
    if lowest.low.notnull():
        basis = f"95 % interval {percent_range((float(lowest.low), float(lowest.high)))}, {basis}"
    return (
        f"{text} The lowest reaches {percent(float(lowest['mean']))} of the wire limit ({basis})."
    )


def _lowest(study: TcpMtu, chosen: xr.DataArray) -> xr.Dataset:
    """The lowest share of the wire limit among the chosen points."""
    shares = study.shares.sel(direction=chosen.direction)
    return shares.isel(shares["mean"].where(chosen).argmin(...))


def _of_source(study: TcpMtu) -> str:
    """The source's lowest share one way, and that of the path like its device where it was run."""
    one_way = study.published.query("direction == 'forward'")
    if one_way.empty:
        return ""
    lowest = one_way.loc[one_way.share.idxmin()]
    device = published.nemo()["device"][lowest.device]
    text = f"The source's {device} reached {percent(lowest.share)} at MTU {lowest.mtu}, one way (published) [@nemo]"
    levels = {name: [lowest[name]] for name in ("path", "mtu", "direction")}
    here = known(study.shares["mean"].reindex(levels).item())
    return f"{text}. The emulated path like it reaches {percent(here)}." if here else f"{text}."


def _of_cost(cost: Cost) -> Iterator[str]:
    """What the largest MTU saves at each end where that is sure, and the packet's part at the sending end."""
    least, largest = cost.mtus
    sure = [end for end in cost.ends if end.saved[1] > 0]
    for end in sure:
        yield (
            f"At the {end.name} end, MTU {largest} saves {percent(end.saved[0])} of the CPU time that a byte takes at MTU {least} "
            f"(95 % interval {percent_range(end.saved[1:])}, {counted(end.blocks, 'block')})."
        )
    if sure:
        sending, receiving = (percent(saved) for saved in printed_savings())
        yield f"The source's jumbo frames saved {sending} and {receiving} on its cable (published) [@nemo]."
    sending = cost.ends[0]
    if sending.followed and np.isfinite(sending.packet_part[1]):
        part, *interval = sending.packet_part
        yield (
            "A model splits that time into a part for each packet and a part for each byte [@chase]. Packets take "
            f"{percent(part, 0)} of it at the sending end and MTU {least} "
            f"(95 % interval {percent_range(interval, 0)})."
        )


def printed_savings() -> list[float]:
    """What the source's jumbo frames saved of a byte's CPU time [1], at both ends of its cable."""
    tests = published.nemo_netperf().query("path == 'crossover' and direction == 'forward'")
    tests = tests.set_index("mtu").sort_index()
    costs = [tests[f"cpu_{end}_percent"] / tests.goodput_kib_s for end in ENDS]
    return [float(1 - cost.iloc[-1] / cost.iloc[0]) for cost in costs]


def findings(study: TcpMtu) -> Iterator[Finding]:
    """Every point's share of the wire limit, the lowest of them one way first, and the cost, as data."""
    source, names = origin("tcp_mtu", study.dataset), short_names(study.dataset)
    limited = study.stamps.sel(direction=study.one_way)
    if (limited != "").any():
        statement = "TCP fills the wire one way, at its lowest point"
        answer = "does not fill it" if (limited == HOST_BOUND).any() else "fills it"
        further = {"answer": answer, "primary": True, "today": study.today}
        yield _finding(
            source, statement, "share", *_share(_lowest(study, limited != "")), **further
        )
    places = ("path", "mtu", "direction")
    shares = study.shares.sel(path=study.paths).stack(point=places)
    for place in shares.point.values.tolist():
        at = f"{names[place[0]]}, MTU {place[1]}, {place[2]}"
        statement = f"TCP's share of the wire limit: {at}"
        stamp = study.stamps.sel(dict(zip(places, place))).item()
        yield _finding(source, statement, "share", *_share(shares.sel(point=place)), answer=stamp)
    for end in study.cost.ends if study.cost else ():
        source, (least, largest) = origin("tcp_mtu", study.cost.dataset), study.cost.mtus
        statement = f"Packets take most CPU time at MTU {least}, {end.name} end"
        answer = _is_most(end.packet_part)
        further = {"answer": answer, "reason": end.refused, "primary": True}
        blocks = end.fitted.blocks if end.fitted else 0
        yield _finding(source, statement, "share", end.packet_part, blocks, **further)
        statement = f"A byte takes less CPU time at MTU {largest} than at {least}, {end.name} end"
        yield _finding(source, statement, "fall", end.saved, end.blocks)


def _share(at: xr.Dataset) -> tuple[Estimate, int]:
    return (float(at["mean"]), float(at.low), float(at.high)), int(at.blocks)


def _finding(source: dict, statement: str, quantity: str, value: Estimate, n: int, **further):
    mean, *ends = value
    return of_estimate(source, statement, quantity, "1", mean, ends, T_INTERVAL, n=n, **further)


def _is_most(share: Sequence[float]) -> str:
    """Whether a share [1] with its interval is above one half; empty where it is not known."""
    _, low, high = share
    if not np.isfinite([low, high]).all():
        return ""
    return "yes" if low > 0.5 else "no" if high < 0.5 else UNDECIDED


def figures(study: TcpMtu) -> dict[str, Exhibit]:
    """Goodput over the MTU, and the cost of a byte where there are data for it."""
    blocks = study.points.sizes["block"]
    shown = {
        "tcp_mtu": Exhibit(
            "tcp_mtu",
            goodput_over_mtu(study),
            "TCP's goodput over the MTU on each path, all ways together",
            Basis(evidence_of(study.dataset), blocks, "harmonic means with 95 % t intervals"),
            "Goodput over the MTU for each path, with the wire limit and the published points",
            "Lines are the wire limit, one way and both ways. Small marks are single blocks. Crosses are published values, in the "
            "colour of their direction.",
            rests_on=FIGURES["tcp_mtu"],
        )
    }
    if study.cost is not None:
        shown["tcp_cost"] = Exhibit(
            "tcp_cost",
            cost_over_mtu(study.cost),
            "CPU time per byte over the MTU, one way over a cable without a rate",
            Basis(
                evidence_of(study.cost.dataset),
                study.cost.points.sizes["block"],
                "arithmetic means with 95 % t intervals",
            ),
            "Cost of a byte at the sending and the receiving end over the MTU",
            " ".join(_cost_marks(study.cost)),
            rests_on=FIGURES["tcp_cost"],
        )
    return shown


def _cost_marks(cost: Cost) -> Iterator[str]:
    """What the marks of the cost are, and why some of them are missing."""
    yield (
        "Small marks are single blocks. A curve is the cost model with its 95 % band, where it follows the means."
    )
    silent = int((np.abs(cost.points.unattributed) > MOST_UNATTRIBUTED).sum())
    if silent:
        trials = counted(int(cost.points.total.notnull().sum()), "trial")
        yield (
            f"{silent} of {trials} say nothing of an end: more than {percent(MOST_UNATTRIBUTED, 0)} of the machine's CPU time "
            "belongs to no node."
        )
    for end in cost.ends:
        if end.refused:
            yield f"No model at the {end.name} end: {end.refused}"


def goodput_over_mtu(study: TcpMtu) -> Figure:
    """Total goodput [Gbit/s] over the MTU, a panel a path, with the wire limit and the published points."""
    paths, names = study.paths or study.points.path.values, short_names(study.dataset)
    directions, mtus = study.points.direction.values.tolist(), study.points.mtu.values
    with style.styled():
        figure, panels = drawing.new_figures(3.4, len(paths))
        for axes, path in zip(panels, paths):
            axes.sharex(panels[0])
            axes.sharey(panels[0])
            limit = study.points.limit.sel(path=path).transpose("mtu", "direction") / GIGA
            for ways in np.unique(limit, axis=1).T:
                line = {"color": style.INK, "lw": 0.8, "label": "wire limit"}
                axes.plot(mtus, ways, **line)
            for rank, direction in enumerate(directions):
                x = mtus * 2 ** (SIDESTEP * (rank - (len(directions) - 1) / 2))
                values = study.points.total.sel(path=path, direction=direction) / GIGA
                label = "both ways" if direction == "both" else direction
                drawing.runs(axes, direction, x, values, label)
                drawing.intervals(axes, direction, x, values, "rate")
            _published(axes, study, path)
            axes.set_title(names[path])
            axes.set_ylim(0, None)
            axes.tick_params(labelleft=axes is panels[0])
            drawing.doubling_axis(axes, [mtus.min(), mtus.max()], "MTU [B]")
        panels[0].set_ylabel("goodput [Gbit/s]")
        drawing.legend_below(figure, panels, 2)
        return figure


def _published(axes: Axes, study: TcpMtu, path: str) -> None:
    """The source's points on a path: a mark a device, outside of the emulated ones and beside each other."""
    marks = dict(zip(study.published.device.unique(), style.PUBLISHED_DEVICES))
    names = published.nemo()["device"]
    middle = float(np.sqrt(study.points.mtu.min() * study.points.mtu.max()))
    here = study.published[study.published.path == path]
    for mtu, tests in here.groupby("mtu"):
        outwards = 1 if mtu > middle else -1
        for rank, test in enumerate(tests.itertuples(), start=1):
            place = mtu * 2 ** (outwards * (SIDESTEP + OUTSIDE * rank))
            color = style.look(test.direction).color
            axes.plot(place, test.total / GIGA, marks[test.device], color=color, mew=1.5, ms=5)
    for device in here.device.unique():
        label = f"published: {names[device]}"
        axes.plot([], [], marks[device], color=style.INK, mew=1.5, ms=5, ls="", label=label)


def cost_over_mtu(cost: Cost) -> Figure:
    """CPU time of a byte [ns] over the MTU, a panel an end, with the model's 95 % band where it follows."""
    mtus = cost.points.mtu.values
    along = np.geomspace(mtus.min(), mtus.max(), 80)
    with style.styled():
        figure, panels = drawing.new_figures(2.4, len(cost.ends))
        for axes, end in zip(panels, cost.ends):
            axes.sharey(panels[0])
            drawing.runs(axes, end.name, mtus, end.values / NANO, "")
            drawing.intervals(axes, end.name, mtus, end.values / NANO, "cost")
            if end.followed:
                band = [part / NANO for part in end.fitted.band(tcp_payload(along), "cost")]
                drawing.band(axes, end.name, along, *band)
            axes.set_title(f"{end.name} end")
            axes.set_ylim(0, None)
            axes.tick_params(labelleft=axes is panels[0])
            drawing.doubling_axis(axes, drawing.apart(mtus, APART), "MTU [B]")
        panels[0].set_ylabel("CPU time per byte [ns/B]")
        return figure
