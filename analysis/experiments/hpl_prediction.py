"""HPL's rate predicted from latency and bandwidth of its links, in three ways, beside HPL as it ran on the same links."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, hpl_predictors, style
from analysis.derive import points
from analysis.exhibit import Basis, Exhibit, Table
from analysis.experiments import hpl_links
from analysis.experiments.hpl_links import SEED, Links, in_words
from analysis.findings import PERCENTILE, Finding, known, of_estimate, origin
from analysis.hpl_predictors import ANALYTIC, TITLES, Surface, surface
from analysis.statistics.draws import over_draws, resampled_blocks
from analysis.statistics import design as designs
from analysis.attributes import short_names
from analysis.wording import counted, fixed, number, percent, percent_range
from runners.record import FalloffError

MISLEADS, PREDICTS, UNDECIDED = "misleads", "predicts", "undecided"
DRAWN = ("prediction", "prediction_sensitivity")
FIGURES = hpl_links.FIGURES | dict.fromkeys(DRAWN, ("hpl_scaling", "token_nodes", "hpl_surface"))
OPENS = {
    "hpl_surface": {"x": "bandwidth", "series": "latency", "nodes": 16},
    "token_load": {"token_bytes": 262144},
}
SIDESTEP = 0.13  # of a doubling, between two series
PARAMETERS = {"bandwidth": "more bandwidth", "latency": "less latency"}


@dataclass(frozen=True)
class Gain:
    """What `network` gains over `reference` where both were run, each with `value`, `low` and `high`.

    `bandwidth` and `latency` are the ratios of the links' parameters, over no dim. `hpl` is the ratio of HPL's rates
    less one, over (nodes), and `predicted` what each predictor says of it, over (predictor, nodes).
    """

    network: str
    reference: str
    bandwidth: xr.Dataset
    latency: xr.Dataset
    hpl: xr.Dataset
    predicted: xr.Dataset


@dataclass(frozen=True)
class Score:
    """How a predictor did at the `points` where messages are sent, and its `lowest` and `highest` error there [1]."""

    points: int
    predicts: int
    misleads: int
    lowest: float
    highest: float


@dataclass(frozen=True)
class Prediction:
    """The predictors' errors and what else they say; what has no data is None.

    Every estimate is a dataset of `value`, `low` and `high`, the ends of the 95 % percentile interval over the draws
    (NaN where draws have no value, and of a single block of HPL). A draw resamples the tokens as `hpl_links`
    does, and HPL's blocks whole.

    `shares` and `errors` are over (predictor, interconnect, nodes): HPL's share of the nodes' known rate [1] as it is
    predicted, and that over the one that was run, less one; `emulated` is the latter over (interconnect, nodes). `kinds`
    judges the errors at the `margin`: `misleads` (the interval lies beyond it), `predicts` (within it), else `undecided`.

    `uneven` is over (nodes): by which part computing takes longer when whole blocks are counted than in the analytic
    model, which shares it out evenly. `elasticities` are d ln rate / d ln bandwidth and -d ln rate / d ln latency over
    (parameter, predictor, interconnect, nodes), with `difference`, the first less the second.

    `gain` is None without both networks of the design's contrast;
    `example` and `paper_elasticities` are of the paper's cluster.
    """

    emulated_points: xr.Dataset
    links: Links
    surface: Surface | None
    margin: float
    shares: xr.Dataset
    emulated: xr.Dataset
    errors: xr.Dataset
    kinds: xr.DataArray
    uneven: xr.DataArray
    elasticities: xr.Dataset
    gain: Gain | None
    example: hpl_predictors.Example | None
    paper_elasticities: xr.DataArray | None

    @property
    def evidence(self) -> str:
        """The kind of HPL's runs."""
        return self.emulated_points.evidence.item()

    @property
    def blocks(self) -> int:
        """How many blocks of HPL there are."""
        return self.emulated_points.sizes["block"]

    @property
    def names(self) -> dict[str, str]:
        """The networks' short names."""
        return short_names(self.emulated_points)

    @property
    def predictors(self) -> list[str]:
        """The predictors that there are data for."""
        return self.errors.predictor.values.tolist()

    def score(self, predictor: str) -> Score:
        """How often a predictor was right where messages are sent."""
        of_it = {"predictor": predictor, "nodes": self.errors.nodes > 1}
        errors, kinds = self.errors.value.sel(of_it), self.kinds.sel(of_it)
        counts = (int((kinds == kind).sum()) for kind in (PREDICTS, MISLEADS))
        return Score(int(errors.notnull().sum()), *counts, float(errors.min()), float(errors.max()))


def analyse(
    token_nodes: xr.Dataset,
    hpl_scaling: xr.Dataset,
    hpl_surface: xr.Dataset | None = None,
    hpl_beyond: xr.Dataset | None = None,
    hpl_sensitivity: xr.Dataset | None = None,
    token_load: xr.Dataset | None = None,
    today: xr.Dataset | None = None,
) -> Prediction:
    """Predict HPL from the tokens on the same links.

    Without the surface over latency and bandwidth a predictor is missing; the next two are simulations of the paper's
    cluster, and `today` is a shorter run of the tokens. Raises FalloffError when tokens and HPL have no network in common,
    or a dataset holds no trial of its tool.
    """
    hpl, links = points(hpl_scaling), hpl_links.analyse(token_nodes, token_load, today)
    networks = [name for name in hpl.interconnect.values if name in links.fits.interconnect.values]
    if not networks:
        raise FalloffError("tokens and HPL have no network in common: run both on one testbed")
    hpl, fits = hpl.sel(interconnect=networks), links.fits.sel(interconnect=networks)
    draws = fits.sizes["draw"] - 1
    ran = resampled_blocks(hpl.share, draws, SEED, "ratio")
    known_rate = resampled_blocks(hpl.known_rate, draws, SEED, "rate")
    settings = hpl[["N", "NB", "P", "Q"]].max(["block", "interconnect"])
    modelled = None if hpl_surface is None else surface(hpl_surface)
    shares, slopes = hpl_predictors.predicted(settings, fits, known_rate, modelled)
    varied = None if hpl_sensitivity is None else hpl_predictors.paper_elasticities(hpl_sensitivity)
    design = designs.read(hpl_scaling)
    errors = over_draws(shares / ran - 1)
    return Prediction(
        emulated_points=hpl,
        links=links,
        surface=modelled,
        margin=design.margin,
        shares=over_draws(shares),
        emulated=over_draws(ran),
        errors=errors,
        kinds=_kinds(errors, design.margin),
        uneven=hpl_predictors.uneven_computing(settings),
        elasticities=_elasticities(slopes.sel(nodes=slopes.nodes > 1)),
        gain=_gain(design.pair, fits, ran, shares),
        example=None if hpl_beyond is None else hpl_predictors.example(hpl_beyond),
        paper_elasticities=varied,
    )


def _kinds(errors: xr.Dataset, margin: float) -> xr.DataArray:
    beyond = (errors.low > margin) | (errors.high < -margin)
    within = (errors.low > -margin) & (errors.high < margin)
    return xr.where(beyond, MISLEADS, xr.where(within, PREDICTS, UNDECIDED))


def _elasticities(slopes: xr.Dataset) -> xr.Dataset:
    both = slopes.assign(difference=slopes.bandwidth - slopes.latency)
    return over_draws(both[["bandwidth", "latency", "difference"]].to_array("parameter"))


def _gain(
    pair: tuple[str, str], fits: xr.Dataset, ran: xr.DataArray, shares: xr.DataArray
) -> Gain | None:
    """What the design's faster network, its second, gains over its first; None without one of them."""
    reference, network = pair
    if not {reference, network} <= set(ran.interconnect.values):
        return None

    def ratio(values):
        of_slow = values.sel(interconnect=reference, drop=True)
        return values.sel(interconnect=network, drop=True) / of_slow

    sending = {"nodes": ran.nodes > 1}
    return Gain(
        network=network,
        reference=reference,
        bandwidth=over_draws(ratio(1 / fits.beta)),
        latency=over_draws(ratio(fits.alpha)),
        hpl=over_draws(ratio(ran).sel(sending) - 1),
        predicted=over_draws(ratio(shares).sel(sending) - 1),
    )


def finding(study: Prediction) -> str:
    """How far the analytic model and the others miss HPL's rate, and why, in plain English (Markdown)."""
    errors = study.errors.sel(predictor=ANALYTIC, nodes=study.errors.nodes > 1)
    errors = errors.stack(point=("interconnect", "nodes")).dropna("point", subset=["value"])
    if not errors.sizes["point"]:
        return "**Whether latency and bandwidth predict HPL's rate cannot be said**: no point was both run and predicted."
    worst = errors.isel(point=int(np.abs(errors.value.values).argmax()))
    score, margin = study.score(ANALYTIC), percent(study.margin, 0)
    where = f"{study.names[worst.interconnect.item()]} on {counted(int(worst.nodes), 'node')}"
    ends = percent_range((float(worst.low), float(worst.high)))
    interval = "" if np.isnan(worst.low) else f"95 % interval {ends}, "
    sentences = [
        f"**Given the links' latency and bandwidth, HPL's analytic model misses its rate by up to {percent(abs(float(worst.value)))}**",
        f"({where}, too {'high' if worst.value > 0 else 'low'}; {interval}{counted(study.blocks, 'block')}, {study.evidence} evidence).",
        f"It is within {margin} at {score.predicts} of {counted(score.points, 'point')}{_open(score)}.",
        _of_others(study),
        _of_uneven(study),
        _of_slopes(study),
        hpl_links.finding(study.links),
    ]
    return " ".join(filter(None, sentences))


def _open(score: Score) -> str:
    undecided = score.points - score.predicts - score.misleads
    return f", and {undecided} are open" if undecided else ""


def _of_others(study: Prediction) -> str:
    """How the predictors did that were settled after the runs, and that they were."""
    scores = {name: study.score(name) for name in study.predictors if name != ANALYTIC}
    known = {name: score for name, score in scores.items() if score.points}
    counts = [f"{score.predicts} of {score.points}{_open(score)}" for score in known.values()]
    if not known:
        return ""
    first, *others = zip((TITLES[name] for name in known), counts)
    text = f"The {first[0]} is within {percent(study.margin, 0)} at {first[1]}"
    text += "".join(f", the {title} at {count}" for title, count in others)
    if others:
        return f"{text}. Both were settled with these runs in view: neither is a blind prediction."
    return f"{text}. It was settled with these runs in view: it is no blind prediction."


def _of_uneven(study: Prediction) -> str:
    most = study.uneven.isel(nodes=-1)
    if not most > 0:
        return ""
    part, where = percent(float(most)), counted(int(most.nodes), "node")
    return f"The analytic model shares the work evenly; HPL waits for panels and the fullest node, {part} longer on {where}."


def _of_slopes(study: Prediction) -> str:
    """Which of more bandwidth and less latency helps more, by the last predictor and on the paper's cluster."""
    bounds, text = bound(study).isel(predictor=-1), ""
    more, less = (_places(study, bounds == name) for name in PARAMETERS)
    if (bounds != UNDECIDED).any():
        text = f"By the {TITLES[study.predictors[-1]]}, 1 % more bandwidth helps more than 1 % less latency at {more}, and less at {less}."
    if study.paper_elasticities is None:
        return text
    apart = study.paper_elasticities.diff("parameter")  # latency less bandwidth
    more, of = int((apart < 0).sum()), int(apart.notnull().sum())
    return f"{text} On the paper's cluster bandwidth helps more at {more} of {of} (simulated evidence)."


def _places(study: Prediction, where: xr.DataArray) -> str:
    """Such as "12 of 18 points (GigE, 10GE)"."""
    networks = where.interconnect.values[where.any("nodes").values]
    names = ", ".join(study.names[network] for network in networks)
    return f"{int(where.sum())} of {where.size} points" + (f" ({names})" if names else "")


def bound(study: Prediction) -> xr.DataArray:
    """Which of bandwidth and latency has the larger elasticity in 95 % of the draws, over (predictor, interconnect, nodes)."""
    apart = study.elasticities.sel(parameter="difference")
    return xr.where(apart.low > 0, "bandwidth", xr.where(apart.high < 0, "latency", UNDECIDED))


def findings(study: Prediction) -> Iterator[Finding]:
    """Every predictor's error at every point, as data."""
    source, errors = origin("hpl_prediction", study.links.dataset), study.errors
    names = ("predictor", "interconnect", "nodes")
    for predictor, network, nodes in errors.stack(at=names).at.values.tolist():
        at = {"predictor": predictor, "interconnect": network, "nodes": nodes}
        error, further = errors.sel(at), {"n": study.blocks, "answer": study.kinds.sel(at).item()}
        value, *ends = (float(error[end]) for end in ("value", "low", "high"))
        statement = f"the {predictor} prediction of HPL's rate on {network}, {nodes} nodes"
        yield of_estimate(source, statement, "error", "1", value, ends, PERCENTILE, **further)


def figures(study: Prediction) -> dict[str, Exhibit]:
    """Errors of the predictions and elasticities of the rate over nodes, and the links under load."""
    by, bounds = TITLES[study.predictors[-1]], bound(study)
    agreeing = int((bounds == bounds[-1]).all("predictor").sum())
    return hpl_links.figures(study.links) | {
        "prediction": Exhibit(
            "prediction",
            errors_over_nodes(study),
            "Error of HPL's predicted rate over nodes: predicted over run, less one",
            _basis(study),
            "Error of HPL's predicted rate over nodes, a panel a network, a series a predictor",
            f"Shaded is the margin of {percent(study.margin, 0)}. Bars may be smaller than the marks.",
            rests_on=FIGURES["prediction"],
        ),
        "prediction_sensitivity": Exhibit(
            "prediction_sensitivity",
            elasticities_over_nodes(study),
            f"By how many percent HPL's rate grows with 1 % more bandwidth or 1 % less latency, by the {by}",
            _basis(study),
            "Elasticities of HPL's rate by bandwidth and latency over nodes, a panel a network",
            f"All predictors agree on which of the two matters more at {agreeing} of {bounds[0].size} points.",
            rests_on=FIGURES["prediction_sensitivity"],
        ),
    }


def errors_over_nodes(study: Prediction) -> Figure:
    """Errors of the predicted rate [%] over nodes, a panel a network, a series a predictor, and the margin as an area."""
    errors = 100 * study.errors.sel(nodes=study.errors.nodes > 1)
    looks = {name: style.look(name) for name in study.predictors}
    with style.styled():
        figure, panels = drawing.new_figures(3.0, errors.sizes["interconnect"])
        for axes, network in zip(panels, errors.interconnect.values):
            axes.sharey(panels[0])
            within = 100 * study.margin
            axes.axhspan(-within, within, color=style.MARGIN, zorder=0)
            axes.axhline(0, color=style.INK, linewidth=0.8)
            for rank, (name, look) in enumerate(looks.items()):
                at = errors.sel(interconnect=network, predictor=name)
                marks = {"fmt": look.marker, "color": look.color, "label": TITLES[name]}
                _estimates(axes, at, SIDESTEP * (rank - 1), **marks)
        _finish(figure, panels, study, "error of the predicted rate [%]")
        return figure


def elasticities_over_nodes(study: Prediction) -> Figure:
    """Elasticities of HPL's rate [1] over nodes by the last predictor, a panel a network: bandwidth filled, latency open."""
    slopes = study.elasticities.isel(predictor=-1)
    fillings = {"bandwidth": style.INK, "latency": "white"}
    with style.styled():
        figure, panels = drawing.new_figures(2.9, slopes.sizes["interconnect"])
        for axes, network in zip(panels, slopes.interconnect.values):
            axes.sharey(panels[0])
            for rank, (name, filling) in enumerate(fillings.items()):
                at = slopes.sel(interconnect=network, parameter=name)
                marks = {"fmt": "o", "color": style.INK, "mfc": filling, "label": PARAMETERS[name]}
                _estimates(axes, at, SIDESTEP * (rank - 0.5), **marks)
            axes.set_yscale("log")
            drawing.log_ticks(axes.yaxis)
        _finish(figure, panels, study, "elasticity of the rate [1]")
        return figure


def _estimates(axes: Axes, estimates: xr.Dataset, doublings: float, **marks) -> None:
    """Estimates over nodes with their intervals, so many doublings aside."""
    bars = [estimates.value - estimates.low, estimates.high - estimates.value]
    places = estimates.nodes * 2.0**doublings
    axes.errorbar(places, estimates.value, bars, capsize=2, **marks)


def _finish(figure: Figure, panels: np.ndarray, study: Prediction, label: str) -> None:
    """Nodes below and a network above each panel, one label for their vertical axes."""
    nodes = study.elasticities.nodes.values
    for axes, network in zip(panels, study.errors.interconnect.values):
        drawing.node_axis(axes, drawing.apart(nodes, 1.9))
        axes.set_title(study.names[network])
        axes.tick_params(labelleft=axes is panels[0])
    panels[0].set_ylabel(label)
    drawing.legend_below(figure, panels[0], 3)


def gain_table(study: Prediction) -> Table | None:
    """What the faster network is worth, as run and by each predictor; None where one of the two was not run."""
    if (gain := study.gain) is None:
        return None
    columns = (
        "Nodes",
        "HPL as run [%]",
        *(f"By the {TITLES[name]} [%]" for name in study.predictors),
    )
    rows = []
    for n in gain.hpl.nodes.values.tolist():
        predicted = [gain.predicted.sel(nodes=n, predictor=name) for name in study.predictors]
        row = (str(n), *(_in_percent(each) for each in (gain.hpl.sel(nodes=n), *predicted)))
        rows.append(row)
    caption = (
        f"What HPL gains from {study.names[gain.network]} over {study.names[gain.reference]}, with 95 % intervals. The links have "
        f"{in_words(gain.bandwidth)} times the bandwidth and {in_words(gain.latency)} times the latency"
    )
    align = "rl" + "l" * len(study.predictors)
    return Table("prediction-gain", columns, align, rows, caption, _basis(study))


def errors_table(study: Prediction) -> Table:
    """HPL's rate as it was run, and the predictors' errors, at every point where messages are sent."""
    columns = (
        "Network",
        "Nodes",
        "As run [% of the nodes' rate]",
        *(f"Error of the {TITLES[name]} [%]" for name in study.predictors),
    )
    rows = []
    for network in study.errors.interconnect.values.tolist():
        for n in study.errors.nodes.values[study.errors.nodes.values > 1].tolist():
            at = {"interconnect": network, "nodes": n}
            errors = [_judged(study, {**at, "predictor": name}) for name in study.predictors]
            ran = _in_percent(study.emulated.sel(at))
            rows.append((study.names[network], str(n), ran, *errors))
    surface_error = ""
    if study.surface is not None and study.surface.error.notnull().any():
        off = percent(float(study.surface.error.max()))
        surface_error = f". The simulation's interpolation is at most {off} off"
    caption = (
        f"HPL's rate as it was run, and the predictors' errors, with 95 % intervals. Bold: beyond {percent(study.margin, 0)}; "
        f"with a question mark: open; others are within. Each is judged by itself{surface_error}"
    )
    align = "lrl" + "l" * len(study.predictors)
    return Table("prediction-errors", columns, align, rows, caption, _basis(study))


def example_table(study: Prediction) -> Table | None:
    """The paper's own example of two networks: what one gains by its bandwidth, by the model and simulated."""
    if (example := study.example) is None:
        return None
    gains, raw = (example.analytic, example.simulated), example.bandwidth - 1
    rows = [
        (str(n), fixed(100 * raw, 1), *(fixed(known(100 * gain.sel(nodes=n)), 1) for gain in gains))
        for n in example.simulated.dropna("nodes").nodes.values.tolist()
    ]
    columns = ("Nodes", "By bandwidth alone [%]", f"By the {TITLES[ANALYTIC]} [%]", "Simulated [%]")
    caption = (
        f"What HPL gains from DDR InfiniBand over 10GE on the paper's cluster: {percent(raw, 0)} more bandwidth, "
        f"{number(example.latency, 2)} times the latency. The paper found both on par"
    )
    return Table("prediction-example", columns, "rrrr", rows, caption, Basis("simulated"))


def _basis(study: Prediction) -> Basis:
    return Basis(study.evidence, study.blocks, "95 % percentile intervals over draws")


def _in_percent(estimate: xr.Dataset) -> str:
    return in_words(100 * estimate, 1)


def _judged(study: Prediction, at: dict) -> str:
    error, kind = study.errors.sel(at), study.kinds.sel(at).item()
    text = _in_percent(error)
    if kind == MISLEADS:
        return f"**{text}**"
    return f"{text}?" if kind == UNDECIDED and error.value.notnull() else text
