"""The published figures of HPL predicted from its links: shares of the nodes' known rate, and sensitivities."""

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.studies.prediction import Prediction
from analysis.studies.predictors import TITLES
from analysis.studies.scaling import short_names

PARAMETERS = {"bandwidth": None, "latency": "white"}  # what fills the marks


def draw(study: Prediction) -> dict[str, Figure]:
    """The figures by name: prediction and prediction_sensitivity."""
    return {"prediction": over_nodes(study), "prediction_sensitivity": sensitivities(study)}


def over_nodes(study: Prediction) -> Figure:
    """Share of the nodes' known rate [%] over nodes, a panel a network: as it was run, and as each predictor has it."""
    with style.styled():
        names = short_names(study.emulated_points)
        figure, panels = drawing.new_figures(3.2, study.errors.sizes["interconnect"])
        for axes, interconnect in zip(panels, study.errors.interconnect.values):
            axes.sharey(panels[0])
            for predictor in study.shares.predictor.values:
                said = 100 * study.shares.sel(interconnect=interconnect, predictor=predictor)
                look, ends = style.look(predictor), [said.value - said.low, said.high - said.value]
                label = f"predicted by {TITLES[predictor]}"
                axes.errorbar(said.nodes, said.value, ends, fmt=look.marker, color=look.color, capsize=2, label=label)
            ran = 100 * study.emulated.sel(interconnect=interconnect)
            drawing.interval(axes, interconnect, ran.nodes, ran.value, ran.low, ran.high)
            axes.set_title(names[interconnect])
            drawing.node_axis(axes, ran.nodes.values)
        panels[0].set_ylabel("HPL rate\n[% of the nodes' known rate]")
        panels[0].set_ylim(0, 105)
        for axes in panels[1:]:
            axes.tick_params(labelleft=False)
        panels[0].errorbar([], [], fmt="o", color=style.INK, mfc="white", capsize=3, label="as run, 95 % interval")
        drawing.legend_below(figure, panels[0], 1)
        return figure


def sensitivities(study: Prediction) -> Figure:
    """Elasticities of HPL's rate over nodes, simulated where that was done: left of the campaign's cluster with
    intervals over the draws, right of the paper's."""
    with style.styled():
        figure, (campaign, paper) = drawing.new_figures(3.5, 2)
        paper.sharey(campaign)
        said = study.elasticities.isel(predictor=-1)
        names = short_names(study.emulated_points)
        for position, interconnect in enumerate(said.interconnect.values):
            for parameter in PARAMETERS:
                at = said.sel(interconnect=interconnect, parameter=parameter)
                sidestep = 2 ** (0.06 * (position - (said.sizes["interconnect"] - 1) / 2))
                _points(campaign, interconnect, parameter, at, at.nodes * sidestep, names[interconnect])
        drawing.node_axis(campaign, said.nodes.values)
        campaign.set(ylabel="elasticity of HPL's rate [1]", title=f"the {said.evidence.item()} cluster")
        if study.paper_elasticities is not None:
            _paper(paper, study)
        paper.set_title("the paper's cluster")
        paper.tick_params(labelleft=False)
        drawing.legend_below(figure, [campaign, paper], 3)
        return figure


def _paper(axes: Axes, study: Prediction) -> None:
    table, names = study.paper_elasticities, short_names(study.sensitivity)
    for interconnect in table.interconnect.values:
        for parameter in PARAMETERS:
            value = table.sel(interconnect=interconnect, parameter=parameter)
            _points(axes, interconnect, parameter, xr.Dataset({"value": value}), value.nodes, names[interconnect])
    drawing.node_axis(axes, table.nodes.values)


def _points(axes: Axes, series: str, parameter: str, values: xr.Dataset, x: xr.DataArray, name: str) -> None:
    """One parameter's elasticities on a network, with bars where there are intervals."""
    look = style.look(series)
    appearance = {"color": look.color, "fmt": look.marker, "mfc": PARAMETERS[parameter] or look.color}
    if "low" in values:
        appearance["yerr"] = [values.value - values.low, values.high - values.value]
    axes.errorbar(x, values.value, capsize=2, label=f"{name}, {parameter}", **appearance)
