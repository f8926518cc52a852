"""The figure of imported HPL results: efficiency, or rate, of every run and of the best settings over nodes."""

from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.studies.imported import Imported, interconnects


def draw(study: Imported) -> dict[str, Figure]:
    """The one figure that the results allow, by name: efficiency or rate."""
    return {study.ordinate: over_nodes(study)}


def over_nodes(study: Imported) -> Figure:
    """Share of Rpeak [%] or rate [Gflop/s]: small marks are runs, open ones the means of the best settings.

    Bars are 95 % t intervals over the runs; a single run has none and says so.
    """
    scale = 100 if study.ordinate == "efficiency" else 1
    with style.styled():
        figure, axes = drawing.new_figure(3.6)
        names = interconnects(study)
        for position, (name, short) in enumerate(names.items()):
            aside = 2 ** (0.035 * (position - (len(names) - 1) / 2))
            look = style.look(name)
            runs = study.runs[study.runs.interconnect == name]
            best = study.best[study.best.interconnect == name].sort_values("x")
            small = {"color": look.color, "alpha": 0.45, "markersize": 3.5, "mew": 0}
            axes.plot(aside * runs.x, scale * runs.y, look.marker, **small)
            axes.plot([], [], look.marker, color=look.color, mfc="white", label=short)
            for point in best.itertuples():
                ends = (scale * end for end in (point.mean, point.low, point.high))
                drawing.interval(axes, name, aside * point.x, *ends)
                if point.runs == 1:
                    place = (aside * point.x, scale * point.mean)
                    axes.annotate("1 run", place, (0, 5), textcoords="offset points", ha="center", fontsize=7)
        counts = sorted(study.best.x.unique())
        drawing.doubling_axis(axes, drawing.apart(counts, 1.3), study.abscissa)
        unit = "efficiency [% of Rpeak]" if study.ordinate == "efficiency" else "HPL rate [Gflop/s]"
        axes.set(ylabel=f"{unit} (measured, imported)", ylim=(0, None))
        axes.legend(loc="best")
        return figure
