"""The published figures of emulated points beside simulated ones: over nodes, and over the matrix's order."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.studies.agreement import TwinAgreement
from analysis.studies.scaling import short_names

ORDINATE = "HPL rate / DGEMM rate\nof the same nodes [%]"


def draw(study: TwinAgreement) -> dict[str, Figure]:
    """The figures that the data allow, by name: agreement and size_agreement."""
    drawn = {"agreement": over_nodes(study)}
    if study.sizes is not None:
        drawn["size_agreement"] = over_order(study)
    return drawn


def over_nodes(study: TwinAgreement) -> Figure:
    """Share of DGEMM [%] over nodes, one panel a network: emulated means with intervals, simulated marks."""
    with style.styled():
        shares, names = study.shares, short_names(study.emulated.dataset)
        figure, panels = drawing.new_figures(2.9, shares.sizes["interconnect"])
        for axes, interconnect in zip(panels, shares.interconnect.values):
            axes.sharey(panels[0])
            for n in shares.nodes.values:
                at = 100 * shares.sel(interconnect=interconnect, nodes=n)
                drawing.interval(axes, interconnect, n, at.emulated, at.low, at.high)
            simulated = 100 * shares.simulated.sel(interconnect=interconnect)
            axes.plot(shares.nodes, simulated, "x", color=style.INK, markersize=6, mew=1.4, zorder=4)
            axes.set_title(names[interconnect])
            drawing.node_axis(axes, shares.nodes.values)
        panels[0].set_ylabel(ORDINATE)
        for axes in panels[1:]:
            axes.tick_params(labelleft=False)
        _legend(figure, panels[0])
        return figure


def over_order(study: TwinAgreement) -> Figure:
    """Share of DGEMM [%] over the matrix's order, each kind of evidence in its own panel, same ordinate."""
    with style.styled():
        sizes = study.sizes
        figure, (emulated, simulated) = drawing.new_figures(3.0, 2)
        simulated.sharey(emulated)
        for interconnect, sidestep, short in drawing.series(study.emulated_size.points):
            look, at = style.look(interconnect), 100 * sizes.sel(interconnect=interconnect)
            x = at.N.values * 2 ** (0.06 * sidestep)
            for place, N in zip(x, at.N.values):
                here = at.sel(N=N)
                drawing.interval(emulated, interconnect, place, here.emulated, here.low, here.high)
            for axes, values in ((emulated, at.emulated), (simulated, at.simulated)):
                axes.plot(x, values, look.marker, color=look.color, mfc="white", label=short)
        for axes, title in ((emulated, "emulated"), (simulated, "simulated")):
            axes.set_title(title)
            drawing.doubling_axis(axes, sizes.N.values, "order of the matrix, N")
            axes.tick_params(axis="x", labelrotation=45)
        emulated.set_ylabel(ORDINATE)
        simulated.tick_params(labelleft=False)
        simulated.legend(loc="lower right")
        return figure


def _legend(figure: Figure, axes: Axes) -> None:
    """The two kinds of marks, whatever the network's colour."""
    emulated = {"mfc": "white", "capsize": 3, "label": "emulated, 95 % interval"}
    axes.errorbar([], [], [], fmt="o", color=style.INK, **emulated)
    axes.plot([], [], "x", color=style.INK, markersize=6, mew=1.4, label="simulated")
    drawing.legend_below(figure, axes, 2)
