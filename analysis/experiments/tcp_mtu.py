"""TCP over cable, switch and router: goodput over the MTU, each way and both at once, and what a byte costs both ends."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import attributes, drawing, published, style
from analysis.cpu_account import MOST_UNATTRIBUTED
from analysis.derive import over_factors
from analysis.exhibit import Basis, Exhibit, Table
from analysis.experiments import tcp_cost as costs
from analysis.findings import T_INTERVAL, Finding, of_estimate, origin
from analysis.flooding import Bystander, flooded
from analysis.statistics.intervals import Kind, rates
from analysis.attributes import host, short_names
from analysis.tcp import FULL, STAMPS, points, stamps
from analysis.wording import UNKNOWN, between, counted, fixed, number, percent, percent_range

LINK_BOUND, HOST_BOUND, SHAPER = STAMPS
GIGA = 1e9
SIDESTEP = 0.14  # of a doubling of the MTU, between two marks
OUTSIDE = 0.2  # the same, between two published marks
APART = 1.9  # ticks closer than this factor would collide
FIGURES = {
    "tcp_mtu": ("tcp_mtu", "published/nemo.toml", "published/nemo_netperf.csv"),
    "tcp_cost": ("tcp_cost",),
}
OPENS = {"tcp_cost": {"y": "cpu_time"}}


@dataclass(frozen=True)
class Onlookers:
    """What the nodes that took no part received: `readings` were judged, one for each such node and trial.

    `flooded` are those that received too much, with their path; `largest` is the largest share of the traffic [1], NaN
    without a reading.
    """

    readings: int
    largest: float
    flooded: tuple[tuple[str, Bystander], ...]


@dataclass(frozen=True)
class Today:
    """Of the `points` that a shorter run of today, of so many `blocks`, shares with the reference, as many are limited by the
    `same`, path or machine; `digest` names its trials."""

    points: int
    same: int
    blocks: int
    digest: str

    @property
    def words(self) -> str:
        """How many are limited by the same."""
        return f"{self.same} of {counted(self.points, 'point')} limited by the same"

    @property
    def as_data(self) -> dict:
        """The comparison for `summary.json`."""
        answer = "reproduced" if self.same == self.points else "not reproduced"
        return {"answer": answer, "judged_as": self.words, "n": self.blocks, "digest": self.digest}


@dataclass(frozen=True)
class TcpMtu:
    """The campaign's dataset and all that follows from it.

    `points` are those of `tcp.points`; over (path, mtu, direction) `stamps` tell what limits each, `totals` [bit/s] and `shares`
    of the wire limit [1] are harmonic means with 95 % t intervals. `published` has a row for each of the source's tests on
    a device like one of the paths (see `published.nemo_points`). `busy` are the
    machine's processors that were in use, means over the blocks. `cost` is what a byte costs, None without its campaign.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    stamps: xr.DataArray
    totals: xr.Dataset
    shares: xr.Dataset
    onlookers: Onlookers
    published: pd.DataFrame
    busy: xr.DataArray
    cost: costs.Cost | None = None
    today: Today | None = None

    @property
    def evidence(self) -> str:
        """The kind of evidence."""
        return self.dataset.evidence.values.ravel()[0].item()

    @property
    def paths(self) -> list[str]:
        """The paths that have a rate, and so a wire limit."""
        rated = self.points.limit.notnull().any(["mtu", "direction"])
        return self.points.path[rated].values.tolist()

    @property
    def unshaped(self) -> list[str]:
        """The paths without a rate, where the machine itself is the limit."""
        return [path for path in self.points.path.values.tolist() if path not in self.paths]


def analyse(
    tcp_mtu: xr.Dataset, tcp_cost: xr.Dataset | None = None, today: xr.Dataset | None = None
) -> TcpMtu:
    """Derive the points of a campaign over the MTU; `today` is a shorter run of it.

    Raises FalloffError when one holds no iperf3 trial, or `tcp_cost` has several paths or directions.
    """
    found = points(tcp_mtu)
    limited = stamps(found)
    like = attributes.design(tcp_mtu).get("published", {})
    return TcpMtu(
        dataset=tcp_mtu,
        points=found,
        stamps=limited,
        totals=rates(found.total),
        shares=rates(found.share),
        onlookers=onlookers(tcp_mtu),
        published=published.nemo_points(like),
        busy=_busy(tcp_mtu),
        cost=None if tcp_cost is None else costs.cost_of(tcp_cost),
        today=None if today is None else _today(limited, points(today)),
    )


def onlookers(dataset: xr.Dataset) -> Onlookers:
    """The nodes that took no part in any of the campaign's transfers, on the paths that have such nodes."""
    seen, too_much = [], []
    columns = (dataset[name].values for name in ("path", "sender", "receiver", "bytes_received"))
    for path, sender, receiver, received in zip(*columns):
        if np.isnan(received).all():
            continue
        two = {int(sender), int(receiver)}
        # All, whatever they received: the threshold is below any share.
        seen += flooded(received, two, two, threshold=-1)
        too_much += [(path.item(), node) for node in flooded(received, two, two)]
    largest = max((node.share for node in seen), default=np.nan)
    return Onlookers(len(seen), largest, tuple(too_much))


def _busy(dataset: xr.Dataset) -> xr.DataArray:
    """The machine's processors that were in use, over (path, mtu, direction)."""
    settings = attributes.settings(dataset)
    processors = dataset.host_cpu_time / (settings["duration_s"] + settings["omit_s"])
    return over_factors(dataset, "iperf3", busy=processors).busy.mean("block")


def _today(reference: xr.DataArray, found: xr.Dataset) -> Today | None:
    """What limits today's points beside the reference's; None where both have none in common."""
    then, now = xr.align(reference, stamps(found))
    known = (then != "") & (now != "")
    same = int((known & (then == now)).sum())
    digest = found.attrs["campaign_hash"]
    return Today(int(known.sum()), same, found.sizes["block"], digest) if known.any() else None


def finding(study: TcpMtu) -> str:
    """How far TCP fills the wire, and what larger frames save at both ends, in plain English (Markdown)."""
    said = [
        _of_ways(study, _one_way(study), "One way"),
        _of_ways(study, ["both"], "Both ways at once") if "both" in study.points.direction else "",
        _of_shaper(study),
        _of_source(study),
        f"Today's shorter run has {study.today.words} as here." if study.today else "",
    ]
    wire = " ".join(filter(None, said))
    cost = " ".join(costs.sentences(study.cost)) if study.cost else ""
    return "\n\n".join(filter(None, (wire, cost)))


def _one_way(study: TcpMtu) -> list[str]:
    return [
        direction for direction in study.points.direction.values.tolist() if direction != "both"
    ]


def _of_ways(study: TcpMtu, directions: Collection[str], ways: str) -> str:
    """At how many points of these directions TCP fills the wire, and the lowest share that it reaches."""
    limited = study.stamps.sel(direction=list(directions))
    full, bound, known = limited == LINK_BOUND, limited == HOST_BOUND, limited != ""
    if not known.any():
        return f"**{ways}, it cannot be said whether TCP fills the wire**: no path with a rate has a valid run."
    how_many = "all" if full.sum() == known.sum() else f"{int(full.sum())} of"
    said = f"**{ways}, TCP fills the wire at {how_many} {int(known.sum())} points**."
    if not bound.any():
        return f"{said} It reaches at least {_in_words(_lowest(study, known), study)}."
    mtus = [str(mtu) for mtu in limited.mtu[bound.any(["path", "direction"])].values]
    return (
        f"{said} At the other {int(bound.sum())}, with MTU {', '.join(mtus)}, the machine is the limit and not the path"
        f"{_busy_there(study, bound)}. The lowest reaches {_in_words(_lowest(study, bound), study)}."
    )


def _busy_there(study: TcpMtu, chosen: xr.DataArray) -> str:
    """How many of the machine's processors were busy at the chosen points, at least, where that is known."""
    processors = host(study.dataset).get("cpus")
    least = float(study.busy.where(chosen).min())
    if processors is None or np.isnan(least):
        return ""
    return f": at least {number(least)} of its {counted(processors, 'processor')} were busy"


def _lowest(study: TcpMtu, chosen: xr.DataArray) -> xr.Dataset:
    """The lowest share of the wire limit among the chosen points."""
    shares = study.shares.sel(direction=chosen.direction)
    return shares.isel(shares["mean"].where(chosen).argmin(...))


def _in_words(share: xr.Dataset, study: TcpMtu) -> str:
    """A share with its interval and what it rests on."""
    ends = float(share.low), float(share.high)
    interval = "" if np.isnan(share.low) else f"95 % interval {percent_range(ends)}, "
    rests_on = f"{counted(int(share.blocks), 'block')}, {study.evidence} evidence"
    return f"{percent(float(share['mean']))} of the wire limit ({interval}{rests_on})"


def _of_shaper(study: TcpMtu) -> str:
    wrong = int((study.stamps == SHAPER).sum())
    where = counted(wrong, "point")
    return f"**The shaper lets too much pass at {where}**: beyond the wire limit." if wrong else ""


def _of_source(study: TcpMtu) -> str:
    """The source's lowest share one way, and that of the path like its device."""
    one_way = study.published.query("direction == 'forward'")
    if one_way.empty:
        return ""
    lowest = one_way.loc[one_way.share.idxmin()]
    device = published.nemo()["device"][lowest.device]
    said = f"The source's {device} reached {percent(lowest.share)} at MTU {lowest.mtu}, one way (published) [@nemo]"
    place = {name: lowest[name] for name in ("path", "mtu", "direction")}
    if not all(level in study.points[name].values for name, level in place.items()):
        return f"{said}."
    here = study.shares["mean"].sel(place)
    if here.isnull():
        return f"{said}."
    fault = ""
    if study.evidence == "emulated" and study.stamps.sel(place) == LINK_BOUND:
        fault = " What held that switch or its cards back is not emulated."
    return f"{said}; the path like it reaches {percent(float(here))} here.{fault}"


def conduct(study: TcpMtu) -> str:
    """What else was watched: paths without a rate, CPU time that is nobody's, onlookers, segments sent again (Markdown)."""
    trials = int(study.points.total.notnull().sum())
    told = int(study.points.cost_local.notnull().sum())
    free = study.totals["mean"].sel(path=study.unshaped) / GIGA
    said = [
        f"On paths without a rate this machine carries {between((float(free.min()), float(free.max())), 1)} Gbit/s, all ways together."
        if free.notnull().any()
        else "",
        f"{told} of {counted(trials, 'trial')} tell both ends' CPU time. In the others more than {percent(MOST_UNATTRIBUTED, 0)} of the "
        "machine's belongs to no node, the shaper's work among it."
        if told < trials
        else "",
        _of_onlookers(study),
        f"TCP sent {counted(int(study.points.retransmits.sum()), 'segment')} again in all trials together.",
    ]
    return " ".join(filter(None, said))


def _of_onlookers(study: TcpMtu) -> str:
    names, seen = short_names(study.dataset), study.onlookers
    if not seen.readings:
        return "No path of the campaign has nodes that take no part."
    if seen.flooded:
        where = ", ".join(sorted({names[path] for path, _ in seen.flooded}))
        return f"**Frames are flooded** on {where}: a node that took no part received up to {percent(seen.largest)} of the traffic."
    most, readings = number(1e6 * seen.largest), counted(seen.readings, "reading")
    return f"No frames were flooded: a node that took no part received at most {most} millionths of the traffic ({readings})."


def findings(study: TcpMtu) -> Iterator[Finding]:
    """Every point's share of the wire limit, the lowest of them one way first, and the cost at both ends, as data."""
    source, names = origin("tcp_mtu", study.dataset), short_names(study.dataset)
    limited = study.stamps.sel(direction=_one_way(study))
    known = limited != ""
    if known.any():
        said = "the lowest share of the wire limit that TCP reaches one way, over all points"
        answer = "does not fill it" if (limited == HOST_BOUND).any() else "fills it"
        further = {"answer": answer, "primary": True, "today": study.today and study.today.as_data}
        yield _of_share(source, said, _lowest(study, known), **further)
    for path in study.paths:
        for mtu in study.points.mtu.values.tolist():
            for direction in study.points.direction.values.tolist():
                place = {"path": path, "mtu": mtu, "direction": direction}
                said = f"share of the wire limit that TCP reaches: {names[path]}, MTU {mtu}, {direction}"
                stamp = study.stamps.sel(place).item()
                yield _of_share(source, said, study.shares.sel(place), answer=stamp)
    if study.cost is not None:
        yield from costs.findings_of(study.cost)


def _of_share(source: dict, statement: str, at: xr.Dataset, **further) -> Finding:
    mean, ends, n = float(at["mean"]), (float(at.low), float(at.high)), int(at.blocks)
    return of_estimate(source, statement, "share", "1", mean, ends, T_INTERVAL, n=n, **further)


def figures(study: TcpMtu) -> dict[str, Exhibit]:
    """Goodput over the MTU, and the cost of a byte where there are data for it."""
    basis = Basis(
        study.evidence, study.points.sizes["block"], "harmonic means with 95 % t intervals"
    )
    goodput = Exhibit(
        "tcp_mtu",
        goodput_over_mtu(study),
        "TCP's goodput over the MTU on each path, all ways together",
        basis,
        "Goodput over the MTU for each path, with the wire limit and the published points",
        "Lines are the wire limit, one way and both ways. Small marks are single blocks. Crosses are published; they have the colour of "
        "their direction and stand beside their MTU.",
        rests_on=FIGURES["tcp_mtu"],
    )
    cost = {} if study.cost is None else {"tcp_cost": costs.exhibit_of(study.cost)}
    return {"tcp_mtu": goodput, **cost}


def goodput_over_mtu(study: TcpMtu) -> Figure:
    """Total goodput [Gbit/s] over the MTU, a panel a path, with the wire limit and the published points."""
    paths, names = study.paths or study.unshaped, short_names(study.dataset)
    with style.styled():
        figure, panels = drawing.new_figures(3.4, len(paths))
        for axes, path in zip(panels, paths):
            axes.sharex(panels[0])
            axes.sharey(panels[0])
            _limits(axes, study.points.limit.sel(path=path) / GIGA)
            _directions(axes, study.points.total.sel(path=path) / GIGA, "rate")
            _published(axes, study, path)
            axes.set_title(names[path])
            axes.set_ylim(0, None)
            drawing.doubling_axis(axes, _ticks(study.points.mtu.values), "MTU [B]")
        for axes in panels[1:]:
            axes.tick_params(labelleft=False)
        panels[0].set_ylabel("goodput [Gbit/s]")
        drawing.legend_below(figure, panels, 2)
        return figure


def _ticks(mtus: np.ndarray) -> list[int]:
    """The least and the largest MTU, and those between that are far enough from both and from each other."""
    largest = int(mtus.max())
    return [*(mtu for mtu in drawing.apart(mtus, APART) if APART * mtu <= largest), largest]


def _limits(axes: Axes, limit: xr.DataArray) -> None:
    """The wire limit of one way and of both ways together."""
    for ways in np.unique(limit.transpose("mtu", "direction"), axis=1).T:
        axes.plot(limit.mtu, ways, color=style.INK, lw=0.8, label="wire limit", gid=drawing.BOUND)


def _directions(axes: Axes, values: xr.DataArray, kind: Kind) -> None:
    """Every block and the means of each direction, side by side."""
    directions = values.direction.values.tolist()
    for rank, direction in enumerate(directions):
        x = values.mtu.values * 2 ** (SIDESTEP * (rank - (len(directions) - 1) / 2))
        chosen = values.sel(direction=direction)
        drawing.runs(axes, direction, x, chosen, direction if direction != "both" else "both ways")
        drawing.intervals(axes, direction, x, chosen, kind)


def _published(axes: Axes, study: TcpMtu, path: str) -> None:
    """The source's points on a path: a mark a device, outside of the emulated ones of their MTU and beside each other."""
    devices = dict(zip(study.published.device.unique(), style.PUBLISHED_DEVICES))
    names = published.nemo()["device"]
    middle = float(np.sqrt(study.points.mtu.min() * study.points.mtu.max()))
    here = study.published[study.published.path == path]
    for mtu, tests in here.groupby("mtu"):
        outwards = 1 if mtu > middle else -1
        for rank, test in enumerate(tests.itertuples(), start=1):
            place, color = (
                mtu * 2 ** (outwards * (SIDESTEP + OUTSIDE * rank)),
                style.look(test.direction).color,
            )
            axes.plot(place, test.total / GIGA, devices[test.device], color=color, mew=1.5, ms=5)
    for device in here.device.unique():
        label = f"published: {names[device]}"
        axes.plot([], [], devices[device], color=style.INK, mew=1.5, ms=5, ls="", label=label)


def shares_table(study: TcpMtu) -> Table:
    """The wire limit of every path with a rate and MTU, and the share of it that TCP reaches in each direction."""
    names, directions = short_names(study.dataset), study.points.direction.values.tolist()
    rows = [
        (names[path], str(mtu), *_shares_row(study.shares.sel(path=path, mtu=mtu), study))
        for path in study.paths
        for mtu in study.points.mtu.values.tolist()
    ]
    headings = [f"{direction.capitalize()} [%]" for direction in directions]
    return Table(
        "tcp-mtu",
        ("Path", "MTU [B]", "Limit one way [Gbit/s]", *headings),
        "lrr" + "l" * len(directions),
        rows,
        f"What TCP reaches of the wire limit, of both ways together where both are used. It fills the wire from {percent(FULL, 0)} of what "
        "acknowledgements leave of it; in *italics* it does not, and the machine is the limit",
        Basis(study.evidence, study.points.sizes["block"], "harmonic means with 95 % t intervals"),
    )


def _shares_row(shares: xr.Dataset, study: TcpMtu) -> list[str]:
    """The wire limit one way, and the share of each direction."""
    place = {"path": shares.path.item(), "mtu": shares.mtu.item()}
    ways = xr.where(shares.direction == "both", 2, 1)
    limit = float((study.points.limit.sel(place) / ways).max())
    return [
        number(limit / GIGA),
        *(_share(shares.sel(direction=way), study) for way in ways.direction),
    ]


def _share(share: xr.Dataset, study: TcpMtu) -> str:
    if share["mean"].isnull():
        return UNKNOWN
    ends = 100 * float(share.low), 100 * float(share.high)
    known = "" if share.low.isnull() else f" ({between(ends, 1)})"
    text = f"{fixed(100 * float(share['mean']), 1)}{known}"
    place = {name: share[name].item() for name in ("path", "mtu", "direction")}
    stamp = study.stamps.sel(place).item()
    if stamp == HOST_BOUND:
        return f"*{text}*"
    return f"**{text}**, above the limit" if stamp == SHAPER else text


def published_table(study: TcpMtu) -> Table:
    """What the source prints of the devices that are like a path, and the path that is like each."""
    names, devices = short_names(study.dataset), published.nemo()["device"]
    rows = [
        (
            devices[test.device],
            names.get(test.path, test.path),
            str(test.mtu),
            test.direction,
            f"{number(test.total / GIGA)} ({percent(test.share)})",
            number(100 * test.cpu_local),
            number(100 * test.cpu_remote),
        )
        for test in study.published.itertuples()
    ]
    columns = ("Device", "Path like it", "MTU [B]", "Direction", "Total [Gbit/s]")
    cpu = ("CPU local [%]", "CPU remote [%]")
    caption = (
        "What the source prints [@nemo], with its share of the wire limit. CPU is a share of all processors of a machine, whose number is not "
        "printed. All plots over the MTU are lost"
    )
    return Table(
        "tcp-mtu-published", (*columns, *cpu), "llrllrr", rows, caption, Basis("published")
    )


def cost_table(study: TcpMtu) -> Table | None:
    """What a byte costs both ends; None without its campaign."""
    return None if study.cost is None else costs.table_of(study.cost)


def _printed(design: Mapping) -> pd.DataFrame:
    """The goodput [bit/s] that the source printed, by path, MTU and direction."""
    found = published.nemo_points(design.get("published", {})).query("direction != 'both'")
    source, names = published.nemo()["source"]["short"], published.nemo()["device"]
    told = [f"{names[at.device]}, MTU {at.mtu}, {source}" for at in found.itertuples()]
    return found[["path", "mtu", "direction"]].assign(value=found.total, text=told)


PRINTED = {("tcp_mtu", "goodput"): _printed}
