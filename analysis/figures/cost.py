"""The published figure of what simulations take: CPU time over nodes, and the law against what was taken."""

from itertools import cycle

from matplotlib import ticker
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.studies.cost import Cost

MARKS = "osDv^P"  # one for each campaign


def draw(study: Cost) -> dict[str, Figure]:
    """The figure by name: simulator_cost."""
    return {"simulator_cost": cpu_time(study)}


def cpu_time(study: Cost) -> Figure:
    """CPU time [s] of every simulation over its nodes, and over the time that the fitted law gives it."""
    with style.styled():
        figure, (over_nodes, over_law) = drawing.new_figures(3.3, 2)
        over_law.sharey(over_nodes)
        for mark, (campaign, trials) in zip(cycle(MARKS), study.trials.groupby("campaign", sort=False)):
            fitted = trials[trials.index.isin(study.fitted.index)]
            foretold = study.law.cpu_time(fitted.N, fitted.P)
            appearance = {"color": style.INK, "mfc": "none", "mew": 0.7, "label": campaign}
            over_nodes.plot(trials.nodes, trials.simulator_cpu_time, mark, **appearance)
            over_law.plot(foretold, fitted.simulator_cpu_time, mark, **appearance)
        ends = [study.fitted.simulator_cpu_time.min(), study.fitted.simulator_cpu_time.max()]
        over_law.plot(ends, ends, color=style.FAINT, linewidth=1.2, zorder=1, label="as the law says")
        over_law.set(xscale="log", yscale="log", xlabel="CPU time by the fitted law [s]")
        most = int(study.trials.nodes.max()).bit_length()
        drawing.doubling_axis(over_nodes, [2**power for power in range(0, most, 2)], "nodes")
        over_nodes.set_ylabel("CPU time of the simulation [s]")
        for axis in (over_law.xaxis, over_law.yaxis):
            axis.set_major_formatter("{x:g}")
            axis.set_minor_locator(ticker.NullLocator())
        over_law.tick_params(labelleft=False)
        drawing.legend_below(figure, over_law, 3)
        return figure
