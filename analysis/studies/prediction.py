"""HPL predicted from a benchmark of the network alone, in several ways, beside HPL as it was run."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.derive import points
from analysis.statistics import design as designs
from analysis.studies import beyond as beyond_study
from analysis.studies import predictors
from analysis.studies.link_parameters import DRAWS, SEED, LinkParameters, link_parameters
from analysis.studies.over_draws import over_draws, resampled_blocks
from analysis.studies.prediction_of_paper import Example, example, paper_elasticities
from analysis.studies.predictors import ANALYTIC, BY_BLOCKS, SIMULATED
from analysis.studies.surface import Surface, surface
from runners.record import FalloffError

MISLEADS, PREDICTS, UNDECIDED = "misleads", "predicts", "undecided"


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
class Prediction:
    """The predictors' errors and what else they say; the first four fields are the datasets, None where missing.

    Every estimate is a dataset of `value`, `low` and `high`, the ends of the 95 % percentile interval over the draws
    (NaN where draws have no value, and of a single block of HPL). A draw resamples the tokens as `link_parameters`
    does, and HPL's blocks whole.

    `parameters` are the links' alpha [s] and beta [s/B] over (parameter, interconnect). `shares` and `errors` are
    over (predictor, interconnect, nodes): HPL's share of the nodes' known rate [1] as it is predicted, and that over the one that
    was run, less one; `emulated` is the latter over (interconnect, nodes). `kinds` judges the errors at the `margin`:
    `misleads` (the interval lies beyond it), `predicts` (within it), else `undecided`.

    `uneven` is over (nodes): by which part computing takes longer when whole blocks are counted than the analytic model
    has it, which shares it out evenly. `elasticities` are d ln rate / d ln bandwidth and -d ln rate / d ln latency over (parameter, predictor,
    interconnect, nodes), with `difference`, the first less the second.

    `gain` is None without both networks of the design's contrast; `example` and `paper_elasticities` are of the
    paper's cluster, None without those campaigns.
    """

    tokens: xr.Dataset
    simulated: xr.Dataset | None
    beyond: xr.Dataset | None
    sensitivity: xr.Dataset | None
    emulated_points: xr.Dataset
    links: LinkParameters
    parameters: xr.Dataset
    surface: Surface | None
    margin: float
    shares: xr.Dataset
    emulated: xr.Dataset
    errors: xr.Dataset
    kinds: xr.DataArray
    uneven: xr.DataArray
    elasticities: xr.Dataset
    gain: Gain | None
    example: Example | None
    paper_elasticities: xr.DataArray | None


def analyse(
    tokens: xr.Dataset,
    emulated: xr.Dataset,
    simulated: xr.Dataset | None = None,
    beyond: xr.Dataset | None = None,
    sensitivity: xr.Dataset | None = None,
    draws: int = DRAWS,
) -> Prediction:
    """Predict the HPL campaign `emulated` from the campaign `tokens` on the same links.

    `simulated` is the campaign of the surface over latency and bandwidth, without which a predictor is missing.
    Raises FalloffError when the two have no network in common, or a dataset holds no trial of its tool.
    """
    hpl, links = points(emulated), link_parameters(tokens, draws)
    networks = [name for name in hpl.interconnect.values if name in links.fits.interconnect.values]
    if not networks:
        raise FalloffError("the token and the HPL campaign have no network in common: run both on the same testbed")
    hpl, fits = hpl.sel(interconnect=networks), links.fits.sel(interconnect=networks)
    ran = resampled_blocks(hpl.share, draws, SEED, "ratio")
    known_rate = resampled_blocks(hpl.known_rate, draws, SEED, "rate")
    settings = hpl[["N", "NB", "P", "Q"]].max(["block", "interconnect"])
    modelled = None if simulated is None else surface(simulated)
    nodes = hpl.nodes.values
    models = (ANALYTIC, BY_BLOCKS)
    said = {name: predictors.analytic_share(settings, fits, known_rate, name) for name in models}
    slopes = {name: predictors.analytic_elasticities(settings, fits, known_rate, name) for name in models}
    if modelled is not None:
        said[SIMULATED] = predictors.simulated_share(modelled, fits, nodes)
        slopes[SIMULATED] = predictors.simulated_elasticities(modelled, fits, nodes)
    shares = _stacked(said)
    design = designs.read(emulated)
    margin, errors = design.margin, over_draws(shares / ran - 1)
    return Prediction(
        tokens=tokens,
        simulated=simulated,
        beyond=beyond,
        sensitivity=sensitivity,
        emulated_points=hpl,
        links=links,
        parameters=over_draws(fits.to_array("parameter")),
        surface=modelled,
        margin=margin,
        shares=over_draws(shares),
        emulated=over_draws(ran),
        errors=errors,
        kinds=_kinds(errors, margin),
        uneven=predictors.uneven_computing(settings),
        elasticities=_elasticities(_stacked(slopes).sel(nodes=nodes > 1)),
        gain=_gain(design.pair, fits, ran, shares),
        example=None if beyond is None else example(beyond_study.analyse(beyond)),
        paper_elasticities=None if sensitivity is None else paper_elasticities(sensitivity),
    )


def _stacked(of_predictors: dict) -> xr.DataArray | xr.Dataset:
    """What each predictor says, over (predictor, ...)."""
    names = xr.DataArray(list(of_predictors), dims="predictor", name="predictor")
    return xr.concat(of_predictors.values(), names, coords="minimal", compat="override")


def _kinds(errors: xr.Dataset, margin: float) -> xr.DataArray:
    beyond = (errors.low > margin) | (errors.high < -margin)
    within = (errors.low > -margin) & (errors.high < margin)
    return xr.where(beyond, MISLEADS, xr.where(within, PREDICTS, UNDECIDED))


def _elasticities(slopes: xr.Dataset) -> xr.Dataset:
    both = slopes.assign(difference=slopes.bandwidth - slopes.latency)
    return over_draws(both[["bandwidth", "latency", "difference"]].to_array("parameter"))


def _gain(pair: list[str], fits: xr.Dataset, ran: xr.DataArray, shares: xr.DataArray) -> Gain | None:
    """What the design's faster network, its second, gains over its first; None without one of them."""
    reference, network = pair
    if not {reference, network} <= set(ran.interconnect.values):
        return None

    def ratio(values):
        return values.sel(interconnect=network, drop=True) / values.sel(interconnect=reference, drop=True)

    traffic = {"nodes": ran.nodes > 1}
    return Gain(
        network=network,
        reference=reference,
        bandwidth=over_draws(ratio(1 / fits.beta)),
        latency=over_draws(ratio(fits.alpha)),
        hpl=over_draws(ratio(ran).sel(traffic) - 1),
        predicted=over_draws(ratio(shares).sel(traffic) - 1),
    )
