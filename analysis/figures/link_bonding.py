"""The published figures of two links: HPL's share and gain over nodes, and what TCP connections get."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, published, style
from analysis.rails import NAMES
from analysis.studies.link_bonding import Hpl, LinkBonding, Micro

_APART = 0.09  # of a doubling of nodes, between the marks of two ways


def draw(study: LinkBonding) -> dict[str, Figure]:
    """The figures by name: link_bonding, and link_bonding_micro where it was run."""
    drawn = {"link_bonding": hpl_over_nodes(study.hpl)}
    return drawn | {"link_bonding_micro": goodput_of_connections(study.micro)} if study.micro else drawn


def hpl_over_nodes(hpl: Hpl) -> Figure:
    """Share of the known rate [%] above and gain over one link [%] below, a column for each number of processes a node."""
    with style.styled():
        each = hpl.points.ranks_per_node.values.tolist()
        figure = Figure(figsize=(style.WIDTH, 5.2))
        grid = figure.subplots(2, len(each), squeeze=False, sharex=True, sharey="row")
        for ranks, (above, below) in zip(each, grid.T):
            _shares(above, hpl, ranks)
            _gains(below, hpl, ranks)
            above.set_title(f"{ranks} {'process' if ranks == 1 else 'processes'} a node", loc="left")
            drawing.node_axis(below, hpl.points.nodes.values)
        grid[0, 0].set_ylabel(f"HPL rate\n[% of {hpl.points.share.attrs['of']}]")
        grid[1, 0].set_ylabel("gain over one link [%]")
        drawing.legend_below(figure, grid.ravel(), 3)
        return figure


def goodput_of_connections(micro: Micro) -> Figure:
    """Goodput in units of one link's wire limit, and the share of the lesser link [%], of every run."""
    with style.styled():
        figure, (left, right) = drawing.new_figures(3.0, columns=2)
        streams = micro.points.streams.values
        for number, way in enumerate(micro.points.aggregation.values.tolist()):
            x = _beside(streams, number, micro.points.sizes["aggregation"])
            own = micro.points.sel(aggregation=way)
            drawing.runs(left, way, x, own.goodput / micro.wire_limit, NAMES[way])
            drawing.runs(right, way, x, 100 * own.lesser, NAMES[way])
        for links in (1, 2):
            left.axhline(links, color=style.FAINT, linewidth=0.9, zorder=0)
        left.set(ylabel="goodput / wire limit of a link [1]", ylim=(0, None))
        right.set(ylabel="sent over the lesser link [%]", ylim=(-2, 52))
        for axes in (left, right):
            drawing.doubling_axis(axes, streams, "TCP connections")
        drawing.legend_below(figure, left, 3)
        return figure


def _shares(axes: Axes, hpl: Hpl, ranks: int) -> None:
    for number, way in enumerate(hpl.points.aggregation.values.tolist()):
        at = {"aggregation": way, "ranks_per_node": ranks}
        x = _beside(hpl.points.nodes.values, number, hpl.points.sizes["aggregation"])
        drawing.runs(axes, way, x, 100 * hpl.points.share.sel(at), NAMES[way])
        _intervals(axes, way, x, hpl.shares.sel(at), "ratio", 100)
    axes.set_ylim(0, None)


def _gains(axes: Axes, hpl: Hpl, ranks: int) -> None:
    axes.axhline(0, color=style.INK, linewidth=0.8)
    own = [way for way in hpl.ways if way.ranks_per_node == ranks]
    for number, way in enumerate(own):
        x = _beside(way.gains.nodes.values, number, len(own))
        drawing.runs(axes, way.aggregation, x, 100 * (np.exp(way.log_gain) - 1), NAMES[way.aggregation])
        _intervals(axes, way.aggregation, x, way.gains, "ratio", 100, -100)
    blog = published.bonding_blog().pivot(index="nodes", columns="links_per_node", values="rate_gflop_s")
    axes.plot(blog.index, 100 * (blog[2] / blog[1] - 1), style.PUBLISHED_MARKERS["gige"], color=style.INK,
              markersize=7, zorder=4, label="published (Bonding blog)")  # fmt: skip


def _intervals(axes: Axes, way: str, x: np.ndarray, found, mean: str, scale: float = 1, shift: float = 0) -> None:
    """Means with their intervals, each scaled and shifted; where one is not known it is left out."""
    for place, nodes in zip(x, found.nodes.values):
        at = found.sel(nodes=nodes)
        middle, low, high = (scale * float(at[end]) + shift for end in (mean, "low", "high"))
        drawing.interval(axes, way, place, middle, low, high)


def _beside(levels: np.ndarray, number: int, count: int) -> np.ndarray:
    """The places of one series' marks beside the others' on an axis of doublings."""
    return levels * 2.0 ** (_APART * (number - (count - 1) / 2))
