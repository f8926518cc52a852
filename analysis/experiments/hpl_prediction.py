"""HPL's rate predicted from latency and bandwidth of its links, in three ways, beside HPL as it ran on the same links."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, hpl_predictors, style
from analysis.attributes import short_names
from analysis.derive import points
from analysis.exhibit import Basis, Exhibit
from analysis.experiments import hpl_links
from analysis.experiments.hpl_links import SEED, Links
from analysis.findings import PERCENTILE, Finding, of_estimate, origin
from analysis.hpl_predictors import ANALYTIC, TITLES, Surface, surface
from analysis.statistics import design as designs
from analysis.statistics.draws import over_draws, resampled_blocks
from analysis.wording import counted, listed, percent, percent_range
from runners.record import FalloffError

MISLEADS, PREDICTS, UNDECIDED = "misleads", "predicts", "undecided"
FIGURES = hpl_links.FIGURES | {"prediction": ("hpl_scaling", "token_nodes", "hpl_surface")}
OPENS = {
    "hpl_surface": {"x": "bandwidth", "series": "latency", "nodes": 16},
    "token_load": {"token_bytes": 262144},
}
SIDESTEP = 0.13  # of a doubling, between two series
COMPARED = ("gige", "10gige")  # the networks that the report is about


@dataclass(frozen=True)
class Prediction:
    """The predictors' errors and what else they say; what has no data is None.

    Every estimate is a dataset of `value`, `low` and `high`, the ends of the 95 % percentile interval over the draws
    (NaN where draws have no value, and of a single block of HPL). A draw resamples the tokens as `hpl_links`
    does, and HPL's blocks whole.

    `errors` are over (predictor, interconnect, nodes): HPL's predicted over its run rate, less one. `kinds` judges
    them at the `margin`: `misleads` (the interval lies beyond it), `predicts` (within it), else `undecided`.

    `by_bandwidth` is d ln rate / d ln bandwidth less -d ln rate / d ln latency over (interconnect, nodes) by the last
    predictor: above 0 bandwidth matters more. Both leave out one node, which sends nothing.
    """

    emulated_points: xr.Dataset
    links: Links
    surface: Surface | None
    margin: float
    errors: xr.Dataset
    kinds: xr.DataArray
    by_bandwidth: xr.Dataset

    @property
    def predictors(self) -> list[str]:
        """The predictors that there are data for."""
        return self.errors.predictor.values.tolist()


def analyse(
    token_nodes: xr.Dataset,
    hpl_scaling: xr.Dataset,
    hpl_surface: xr.Dataset | None = None,
    token_load: xr.Dataset | None = None,
) -> Prediction:
    """Predict HPL from the tokens on the same links.

    Without the surface over latency and bandwidth a predictor is missing. Raises FalloffError when tokens and HPL have no network in common,
    or a dataset holds no trial of its tool.
    """
    hpl, links = points(hpl_scaling), hpl_links.analyse(token_nodes, token_load)
    networks = [name for name in hpl.interconnect.values if name in links.fits.interconnect.values]
    if not networks:
        raise FalloffError("tokens and HPL have no network in common: run both on one testbed")
    hpl, fits = hpl.sel(interconnect=networks), links.fits.sel(interconnect=networks)
    draws = fits.sizes["draw"] - 1
    ran = resampled_blocks(hpl.share, draws, SEED, "ratio")
    known_rate = resampled_blocks(hpl.known_rate, draws, SEED, "rate")
    settings = hpl[["N", "NB", "P", "Q"]].max(["block", "interconnect"])
    modelled = None if hpl_surface is None else surface(hpl_surface)
    answers = hpl_predictors.predicted(settings, fits, known_rate, modelled)
    answers = answers.sel(nodes=answers.nodes > 1)
    slopes = answers.isel(predictor=-1)
    errors, margin = over_draws(answers.share / ran - 1), designs.read(hpl_scaling).margin
    beyond = (errors.low > margin) | (errors.high < -margin)
    within = (errors.low > -margin) & (errors.high < margin)
    return Prediction(
        emulated_points=hpl,
        links=links,
        surface=modelled,
        margin=margin,
        errors=errors,
        kinds=xr.where(beyond, MISLEADS, xr.where(within, PREDICTS, UNDECIDED)),
        by_bandwidth=over_draws(slopes.bandwidth - slopes.latency),
    )


def finding(study: Prediction) -> str:
    """How far the analytic model and the others miss HPL's rate, and why, in plain English (Markdown)."""
    errors = study.errors.sel(predictor=ANALYTIC)
    errors = errors.stack(point=("interconnect", "nodes")).dropna("point", subset=["value"])
    if not errors.sizes["point"]:
        return "**Whether latency and bandwidth predict HPL's rate cannot be said**: no point was both run and predicted."
    worst = errors.isel(point=int(np.abs(errors.value.values).argmax()))
    nodes, evidence = counted(int(worst.nodes), "node"), study.emulated_points.evidence.item()
    name = short_names(study.emulated_points)[worst.interconnect.item()]
    interval = ""
    if np.isfinite(worst.low):
        interval = f"95 % interval {percent_range((float(worst.low), float(worst.high)))}, "
    scores = {name: score for name in study.predictors if (score := _score(study, name))}
    others = [f"the {TITLES[name]} at {scores[name]}" for name in scores if name != ANALYTIC]
    within, blocks = (
        percent(study.margin, 0),
        counted(study.emulated_points.sizes["block"], "block"),
    )
    sentences = [
        "**Given the links' latency and bandwidth, HPL's analytic model misses its rate by up to "
        f"{percent(abs(float(worst.value)))}** ({name} on {nodes}, too {'high' if worst.value > 0 else 'low'}; "
        f"{interval}{blocks}, {evidence} evidence).",
        f"It is within {within} at {scores[ANALYTIC]}.",
    ]
    if others:
        sentences.append(
            f"Also within {within}: {listed(others)}. Their details were chosen after the runs were seen, so that they "
            "are no blind predictions."
        )
    return " ".join(filter(None, (*sentences, _of_slopes(study), hpl_links.finding(study.links))))


def _score(study: Prediction, predictor: str) -> str:
    """How often a predictor was right, such as "7 of 18 points"; empty without a prediction."""
    errors, kinds = study.errors.sel(predictor=predictor), study.kinds.sel(predictor=predictor)
    known = int(errors.value.notnull().sum())
    predicts, misleads = (int((kinds == kind).sum()) for kind in (PREDICTS, MISLEADS))
    undecided = known - predicts - misleads
    still_open = f" ({undecided} are open)" if undecided else ""
    return f"{predicts} of {counted(known, 'point')}{still_open}" if known else ""


def _of_slopes(study: Prediction) -> str:
    """Which of more bandwidth and less latency helps more, by the last predictor."""
    names, bounds = short_names(study.emulated_points), bound(study)
    if not (bounds != UNDECIDED).any():
        return ""
    places = []
    for parameter in ("bandwidth", "latency"):
        here = bounds == parameter
        networks = [names[name] for name in here.interconnect.values[here.any("nodes").values]]
        where = f" ({', '.join(networks)})" if networks else ""
        places.append(f"{int(here.sum())} of {here.size} points{where}")
    return (
        f"By the {TITLES[study.predictors[-1]]}, 1 % more bandwidth helps more than 1 % less latency at {places[0]}. It "
        f"helps less at {places[1]}."
    )


def bound(study: Prediction) -> xr.DataArray:
    """Which of bandwidth and latency has the larger elasticity in 95 % of the draws, over (interconnect, nodes)."""
    apart = study.by_bandwidth
    return xr.where(apart.low > 0, "bandwidth", xr.where(apart.high < 0, "latency", UNDECIDED))


def findings(study: Prediction) -> Iterator[Finding]:
    """Every predictor's error at every point, as data; planned for is the analytic model on the most nodes of COMPARED."""
    source = origin("hpl_prediction", study.links.dataset)
    blocks, names = study.emulated_points.sizes["block"], ("predictor", "interconnect", "nodes")
    in_full, most = short_names(study.emulated_points), int(study.errors.nodes.max())
    for place in study.errors.stack(at=names).at.values.tolist():
        at = dict(zip(names, place))
        on_most = at["predictor"] == ANALYTIC and at["nodes"] == most
        error, is_planned = study.errors.sel(at), on_most and at["interconnect"] in COMPARED
        further = {"n": blocks, "answer": study.kinds.sel(at).item(), "primary": bool(is_planned)}
        value, *ends = (float(error[end]) for end in ("value", "low", "high"))
        network = in_full[at["interconnect"]].replace("control", "unlimited links")
        statement = f"The {TITLES[at['predictor']]} predicts HPL on {network}, {at['nodes']} nodes"
        yield of_estimate(source, statement, "error", "1", value, ends, PERCENTILE, **further)


def figures(study: Prediction) -> dict[str, Exhibit]:
    """Errors of the predictions over nodes, and the links under load."""
    points, interpolated = study.emulated_points, ""
    if study.surface is not None and study.surface.error.notnull().any():
        off = percent(float(study.surface.error.max()))
        interpolated = f" The simulation's interpolation is at most {off} off."
    return hpl_links.figures(study.links) | {
        "prediction": Exhibit(
            "prediction",
            errors_over_nodes(study),
            "Error of HPL's predicted rate over nodes: predicted over emulated rate, less one",
            Basis(
                points.evidence.item(),
                points.sizes["block"],
                "95 % percentile intervals over draws",
            ),
            "Error of HPL's predicted rate over nodes, a panel a network, a series a predictor",
            f"Shaded is the margin of {percent(study.margin, 0)}. Bars may be smaller than the marks.{interpolated}",
            rests_on=FIGURES["prediction"],
        ),
    }


def errors_over_nodes(study: Prediction) -> Figure:
    """Errors of the predicted rate [%] over nodes, a panel a network, a series a predictor, and the margin as an area."""
    names, errors = short_names(study.emulated_points), 100 * study.errors
    within, aside = 100 * study.margin, (len(study.predictors) - 1) / 2
    with style.styled():
        figure, panels = drawing.new_figures(3.0, errors.sizes["interconnect"])
        for axes, network in zip(panels, errors.interconnect.values):
            axes.sharey(panels[0])
            axes.axhspan(-within, within, color=style.MARGIN, zorder=0)
            axes.axhline(0, color=style.INK, linewidth=0.8)
            for rank, name in enumerate(study.predictors):
                look, at = style.look(name), errors.sel(interconnect=network, predictor=name)
                places = at.nodes * 2.0 ** (SIDESTEP * (rank - aside))
                marks = {"fmt": look.marker, "color": look.color, "capsize": 2}
                bars = [at.value - at.low, at.high - at.value]
                axes.errorbar(places, at.value, bars, label=TITLES[name], **marks)
            drawing.node_axis(axes, drawing.apart(errors.nodes.values, 1.9))
            axes.set_title(names[network])
            axes.tick_params(labelleft=axes is panels[0])
        panels[0].set_ylabel("error of the predicted rate [%]")
        drawing.legend_below(figure, panels[0], 3)
        return figure
