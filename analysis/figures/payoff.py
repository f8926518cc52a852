"""The figure of where a faster network pays: its gain against its price, and the chance that it does."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.studies.payoff import UNCERTAIN, Payoff
from analysis.studies.scaling import short_names

LABELS = {"prices": "prices uncertain", "efficiency": "efficiency uncertain", "both": "both uncertain"}
APART = 2  # ticks lie at least this factor of nodes apart


def draw(study: Payoff) -> dict[str, Figure]:
    """The figure by name: payoff."""
    return {"payoff": gain_and_chance(study)}


def gain_and_chance(study: Payoff) -> Figure:
    """Left the gain [%] over nodes and what a node costs more [%], right the chance [%] that the network pays."""
    with style.styled():
        figure, (gain, chance) = drawing.new_figures(3.5, 2)
        _gain(gain, study)
        for kind in UNCERTAIN:
            look = style.look(kind)
            values = 100 * study.chance.sel(uncertain=kind)
            appearance = {"color": look.color, "markersize": 5, "mfc": "none"}
            chance.plot(values.nodes, values, look.marker, **appearance, label=LABELS[kind])
        chance.set(ylim=(-3, 103), title=f"{_name(study, study.gains.reference)} is cheaper [% of draws]")
        for axes in (gain, chance):
            drawing.node_axis(axes, drawing.apart(study.gains.efficiency.nodes.values.tolist(), APART))
        drawing.legend_below(figure, [gain, chance], 2)
        return figure


def _gain(axes: Axes, study: Payoff) -> None:
    name, look = _name(study, study.gains.reference), style.look(study.gains.reference)
    value, low, high = (100 * study.gain[end].values for end in ("value", "low", "high"))
    ends = [value - low, high - value]
    appearance = {"fmt": look.marker, "color": look.color, "markersize": 4, "capsize": 2}
    axes.errorbar(study.gain.nodes.values, value, ends, **appearance, label=f"{name}'s gain in HPL")
    premium = study.premium * 100
    axes.axhline(float(premium.value), color=style.INK, linewidth=1.2, label="what a node costs more")
    axes.axhspan(float(premium.low), float(premium.high), color=style.FAINT, alpha=0.35, linewidth=0)
    axes.set_ylim(bottom=0)
    axes.set_title(f"{name} over {_name(study, study.gains.network)} [%]")


def _name(study: Payoff, interconnect: str) -> str:
    return short_names(study.gains.dataset)[interconnect]
