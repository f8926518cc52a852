"""The published figure of larger simulated clusters: efficiency over nodes, the fast networks enlarged."""

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.studies.beyond import Beyond
from analysis.studies.scaling import short_names

BUNCH = 0.05  # networks that come so close to the best one are shown enlarged


def draw(study: Beyond) -> dict[str, Figure]:
    """The campaign's figure by name: beyond."""
    return {"beyond": efficiency_over_nodes(study)}


def efficiency_over_nodes(study: Beyond) -> Figure:
    """Efficiency [%] over nodes on every network; on the right those that lie together at the top."""
    with style.styled():
        figure, (overview, enlarged) = drawing.new_figures(3.7, 2)
        names, best = short_names(study.dataset), study.efficiency.max("interconnect")
        for interconnect in study.efficiency.interconnect.values:
            values = study.efficiency.sel(interconnect=interconnect)
            _points(overview, interconnect, values, names[interconnect])
            if (values > best - BUNCH).any():
                _points(enlarged, interconnect, values, names[interconnect])
            if study.paper is not None and interconnect in study.paper.interconnect:
                _paper(overview, interconnect, study.paper.sel(interconnect=interconnect))
        largest = [int(n) for n in study.efficiency.nodes.values]
        drawing.node_axis(overview, [2, 8, *largest[::2]] if study.paper is not None else largest)
        drawing.node_axis(enlarged, largest)
        overview.set(ylabel="Rmax / Rpeak [%]", title="all networks")
        enlarged.set_title("the fast ones, enlarged")
        drawing.legend_below(figure, overview, 4)
        return figure


def _points(axes: Axes, interconnect: str, values: xr.DataArray, label: str) -> None:
    look = style.look(interconnect)
    appearance = {"color": look.color, "markersize": 6, "mec": "white", "mew": 0.6}
    axes.plot(values.nodes, 100 * values, look.marker, **appearance, label=label)


def _paper(axes: Axes, interconnect: str, values: xr.DataArray) -> None:
    """The same model on the paper's own cases, which are smaller."""
    look = style.look(interconnect)
    axes.plot(values.nodes, 100 * values, look.marker, color=look.color, markersize=2.5, mew=0, alpha=0.7)
