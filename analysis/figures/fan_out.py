"""The published figures of the fan-out: aggregate over receivers with the links' limits, and shares."""

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.bottleneck import CHANGES, LEAST_GROWTH
from analysis.studies.fan_out import Fan, FanOut

GBIT = 1e9


def draw(study: FanOut) -> dict[str, Figure]:
    """The campaign's figures by name: fan_out, fan_out_shares and fan_out_changes."""
    return {"fan_out": aggregate(study), "fan_out_shares": shares(study), "fan_out_changes": changes(study)}


def aggregate(study: FanOut) -> Figure:
    """Goodput of all flows [Gbit/s] over receivers: runs, means, the links' limits and the knee."""
    with style.styled():
        figure, panels = drawing.new_figures(3.0, len(study.fans))
        for axes, fan in zip(panels, study.fans):
            _aggregate(axes, fan)
        panels[0].set_ylabel("goodput of all flows [Gbit/s]")
        drawing.legend_below(figure, panels, 3)
        return figure


def shares(study: FanOut) -> Figure:
    """Each flow's goodput as a part of an equal one over receivers; 1 for all is perfectly fair."""
    with style.styled():
        figure, panels = drawing.new_figures(2.8, len(study.fans))
        for axes, fan in zip(panels, study.fans):
            look = style.look(fan.direction)
            flows = study.flows[study.flows.direction == fan.direction]
            axes.axhline(1, color=style.FAINT, linewidth=0.9)
            axes.plot(flows.receivers, flows.share, look.marker, color=look.color, alpha=0.4, mew=0)
            _receiver_axis(axes, fan)
            axes.set_ylim(0, None)
        panels[0].set_ylabel("goodput of a flow / mean of all [1]")
        return figure


def changes(study: FanOut) -> Figure:
    """What each change alone does to the baseline's goodput: ratio with 90 % interval, and what counts."""
    with style.styled():
        figure, panels = drawing.new_figures(2.4, len(study.fans))
        for axes, fan in zip(panels, study.fans):
            responses = fan.verdict.responses
            look = style.look(fan.direction)
            axes.axvline(1, color=style.FAINT, linewidth=0.9)
            axes.axvline(1 + LEAST_GROWTH, color=style.INK, linewidth=0.9, linestyle=":")
            for row, response in enumerate(responses.values()):
                ends = [[response.ratio - response.low], [response.high - response.ratio]]
                axes.errorbar(response.ratio, row, xerr=ends, fmt=look.marker, color=look.color, capsize=3)
            drawing.rows(axes, [CHANGES[change] for change in responses])
            axes.set_title(f"{fan.direction}: {fan.verdict.limit}")
            axes.xaxis.set_major_locator(ticker.MaxNLocator(3, prune="upper"))
        for axes in panels[1:]:
            axes.set_yticklabels([])
        figure.supxlabel("goodput after the change / before [1]", fontsize=style.RULES["axes.labelsize"])
        return figure


def _aggregate(axes: Axes, fan: Fan) -> None:
    receivers = fan.goodput.receivers.values
    own = [fan.limits[int(n)].own / GBIT for n in receivers]
    shared = fan.limits[int(receivers.max())].shared / GBIT
    axes.plot(receivers, own, "--", color=style.INK, linewidth=0.9, label="each flow's own link", gid=drawing.BOUND)
    axes.axhline(shared, color=style.INK, linewidth=0.9, linestyle=":", label="slowest link of all flows")
    drawing.runs(axes, fan.direction, receivers, fan.goodput / GBIT, fan.direction)
    for n in receivers:
        at = fan.means.sel(receivers=n) / GBIT
        drawing.interval(axes, fan.direction, n, at["mean"], at.low, at.high)
    if fan.fitted:
        dense = np.linspace(receivers.min(), receivers.max(), 200)
        band = fan.fitted.band(dense, "rate", lambda receivers, each: receivers * 2**each / GBIT)
        drawing.band(axes, fan.direction, dense, *band)
        axes.axvspan(*fan.knee[1:], color=style.look(fan.direction).color, alpha=0.12, linewidth=0)
        axes.axvline(fan.knee[0], color=style.look(fan.direction).color, linewidth=0.9, label="knee")
    axes.set_ylim(0, 1.6 * float(fan.goodput.max()) / GBIT)
    _receiver_axis(axes, fan)


def _receiver_axis(axes: Axes, fan: Fan) -> None:
    axes.set_xticks(fan.goodput.receivers.values)
    axes.set(title=fan.direction, xlabel="receivers" if fan.direction == "forward" else "senders")
