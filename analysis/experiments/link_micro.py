"""What one TCP connection and several get of two links between two nodes, by each way of using both."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import attributes, drawing, style
from analysis.derive import at_only_level, over_factors
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import known
from analysis.statistics.intervals import rates
from analysis.wire import wire_limit
from analysis.wording import between, counted, fixed, number, percent, percent_range

# The campaigns, and the files of data/, that each figure rests on.
FIGURES = {
    "link_bonding_micro": ("link_micro",),
}

NAMES = {
    "one_link": "one link",
    "ecmp_layer2": "hash of addresses",
    "ecmp_layer34": "hash of ports",
    "mptcp": "MPTCP",
    "mpi_striping": "MPI striping",
    "bond_8023ad": "bond 802.3ad",
    "bond_balance_rr": "bond balance-rr",
}
APART = 0.03  # of a doubling, a mark of the mean from those of its runs
LESSER = (
    "The lesser link is whichever of a node's links carried less: its part of the bytes sent, median and range over the "
    "runs."
)


@dataclass(frozen=True)
class Micro:
    """TCP between two nodes.

    `points` is over (block, aggregation, streams): `goodput` [bit/s] and `lesser` [1]; `goodputs` the harmonic means over
    the blocks and `lesser` as `lesser_shares` has it, over (aggregation, streams). `wire_limit` [bit/s] is that of one
    link.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    goodputs: xr.Dataset
    lesser: xr.Dataset
    wire_limit: float

    @property
    def links(self) -> xr.Dataset:
        """The goodputs as a multiple of one link's wire limit [1]: `mean`, `low`, `high`."""
        return self.goodputs[["mean", "low", "high"]] / self.wire_limit

    @property
    def evidence(self) -> str:
        """The kind of the data."""
        return self.dataset.evidence.values[0].item()


def analyse(dataset: xr.Dataset) -> Micro:
    """Derive goodputs and which links were used; raises FalloffError without a trial of iperf3."""
    points = over_factors(
        dataset, runner="iperf3", goodput=dataset.goodput, lesser=sent_by_lesser(dataset)
    ).sortby("streams")
    points = at_only_level(points, "interconnect")
    link = attributes.interconnects(dataset)[points.interconnect.item()]
    least = attributes.design(dataset)["least_share"]
    points = points.drop_vars("interconnect")
    return Micro(
        dataset=dataset,
        points=points,
        goodputs=rates(points.goodput),
        lesser=lesser_shares(points.lesser, least),
        wire_limit=float(wire_limit(link["rate_bit_s"], link["mtu"])),
    )


def sent_by_lesser(dataset: xr.Dataset) -> xr.DataArray:
    """Over (trial): the part of their bytes that nodes sent over whichever of their two links carried less.

    0.5 where every node used both alike and 0 where each used one, be it not the same one; NaN where nothing was sent.
    """
    first, second = dataset.bytes_sent_rail_1, dataset.bytes_sent_rail_2
    total = (first + second).sum("node")
    return np.minimum(first, second).sum("node") / total.where(total > 0)


def lesser_shares(lesser: xr.DataArray, least: float) -> xr.Dataset:
    """What `sent_by_lesser` gives, over (block, ...), summed up over the blocks.

    `median_share`, `smallest` and `largest`, how many `runs` there are, and how many `on_one` link: below the share
    `least`.
    """
    has_sent = lesser.notnull()
    return xr.Dataset(
        {
            "median_share": lesser.median("block"),
            "smallest": lesser.min("block"),
            "largest": lesser.max("block"),
            "runs": has_sent.sum("block"),
            "on_one": (has_sent & (lesser < least)).sum("block"),
        }
    )


def finding(study: Micro) -> str:
    """How many links the fewest and the most connections fill, in plain English (Markdown)."""
    ends = study.links["mean"].isel(streams=[0, -1]).dropna("aggregation")
    ends = ends.sel(aggregation=ends.aggregation != "one_link")
    if not ends.size:
        return "What TCP connections get of two links cannot be said: no way of using both has a valid run."
    names = [NAMES[way] for way in ends.aggregation.values.tolist()]
    first, last = (
        [fixed(links, 2) for links in at] for at in ends.transpose("streams", ...).values
    )
    fewest, most = ends.streams.values.tolist()
    basis = f"{counted(study.points.sizes['block'], 'block')}, {study.evidence} evidence"
    filled = _listed([f"{links} links by {name}" for links, name in zip(first, names)])
    verb = "fills" if fewest == 1 else "fill"
    return (
        f"Between two nodes, {counted(fewest, 'TCP connection')} {verb} {filled}. "
        f"With {most} connections these are {_listed(last)} links ({basis})."
    )


def _listed(parts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def figures(study: Micro) -> dict[str, Exhibit]:
    """Goodput of every run over connections."""
    exhibit = Exhibit(
        "link_bonding_micro",
        goodput_of_connections(study),
        "What TCP connections between two nodes get of two links",
        _basis(study),
        "Goodput as a multiple of one link's wire limit over connections, a series for each way",
        "Small marks are single runs; open marks and bars are harmonic means with their intervals. Grey lines are the "
        "limits of one link and of two.",
        rests_on=FIGURES["link_bonding_micro"],
    )
    return {"connections": exhibit}


def goodput_of_connections(study: Micro) -> Figure:
    """Goodput in units of one link's wire limit [1] over connections: every run, and harmonic means."""
    ways = study.points.aggregation.values.tolist()
    with style.styled():
        figure, axes = drawing.new_figure(3.0)
        for links in (1, 2):
            axes.axhline(links, color=style.FAINT, linewidth=0.9, zorder=0)
        for rank, way in enumerate(ways):
            places = drawing.beside(study.points.streams.values, rank, len(ways))
            runs = study.points.goodput.sel(aggregation=way) / study.wire_limit
            marks(axes, way, places, runs, study.links.sel(aggregation=way))
        axes.set(ylabel="goodput / wire limit of a link [1]", ylim=(0, 2.2))
        drawing.doubling_axis(axes, study.points.streams.values, "TCP connections")
        drawing.legend_below(figure, axes, 4)
        return figure


def marks(axes: Axes, way: str, places: np.ndarray, runs: xr.DataArray, means: xr.Dataset) -> None:
    """Every run, values over (block, level), and right beside it the `mean` with its interval `low`, `high`."""
    look = style.look(way)
    drawing.runs(axes, way, places * 2**-APART, runs, "_")
    axes.plot([], [], look.marker, color=look.color, mfc="white", label=NAMES[way])
    ends = (means[end].values for end in ("mean", "low", "high"))
    drawing.interval(axes, way, places * 2**APART, *ends)


def connections_table(study: Micro) -> Table:
    """Goodput of every way and number of connections, and which links carried it."""
    columns = (
        "Way",
        "Connections",
        "Goodput [Gbit/s]",
        "In links (95 % interval)",
        "Sent over the lesser link",
        "Runs on one link",
    )
    rows = [
        _row(study, way, streams)
        for way in study.points.aggregation.values.tolist()
        for streams in study.points.streams.values.tolist()
    ]
    caption = (
        f"Harmonic means of TCP's goodput, also in units of the {number(study.wire_limit / 1e9)} Gbit/s that one link's wire "
        f"carries. {LESSER}"
    )
    return Table("link-bonding-micro", columns, "lrrrrr", rows, caption, _basis(study))


def lesser_text(at: xr.Dataset) -> tuple[str, str]:
    """The share of the lesser link with its range, and how many runs used one link."""
    share = known(at.median_share)
    if share is None:
        return percent(None), percent(None)
    ends = percent_range((float(at.smallest), float(at.largest)))
    return f"{percent(share)} ({ends})", f"{int(at.on_one)} of {int(at.runs)}"


def today_table(study: Micro, today: Micro) -> Table:
    """A shorter run of today beside the reference."""
    rows = []
    for way in today.points.aggregation.values.tolist():
        for streams in today.points.streams.values.tolist():
            now = fixed(known(today.links["mean"].sel(aggregation=way, streams=streams)), 2)
            rows.append((NAMES[way], str(streams), now, _links(study, way, streams)))
    columns = ("Way", "Connections", "Links today", "Links in the reference (95 % interval)")
    caption = f"TCP's goodput in units of one link's wire limit, today (n = {counted(today.points.sizes['block'], 'block')}) and in the reference"
    return Table("link-bonding-micro-today", columns, "lrrr", rows, caption, _basis(study))


def _row(study: Micro, way: str, streams: int) -> tuple[str, ...]:
    at = {"aggregation": way, "streams": streams}
    goodput = known(study.goodputs["mean"].sel(at))
    shares = lesser_text(study.lesser.sel(at))
    in_gigabits = number(None if goodput is None else goodput / 1e9)
    return NAMES[way], str(streams), in_gigabits, _links(study, way, streams), *shares


def _links(study: Micro, way: str, streams: int) -> str:
    at = study.links.sel(aggregation=way, streams=streams)
    ends = known(at.low), known(at.high)
    return fixed(known(at["mean"]), 2) + ("" if None in ends else f" ({between(ends, 2)})")


def _basis(study: Micro) -> Basis:
    return Basis(study.evidence, study.points.sizes["block"], "95 % t intervals")
