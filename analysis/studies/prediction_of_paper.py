"""The paper's own example, DDR InfiniBand against 10GE, and what its cluster's HPL owes to latency and bandwidth."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.derive import at_only_level, points
from analysis.studies import predictors
from analysis.studies.beyond import Beyond
from analysis.studies.efficiency import testbed

PAIR = ("ddr_infiniband", "10gige")


@dataclass(frozen=True)
class Example:
    """What `network` should gain over `reference`: ratios of the model's `bandwidth` and `latency`, and HPL's gains.

    `analytic` and `simulated` are the ratios of HPL's rates less one over (nodes), as the analytic model has them
    from the two numbers of each network, and as simulated.
    """

    network: str
    reference: str
    bandwidth: float
    latency: float
    analytic: xr.DataArray
    simulated: xr.DataArray


def example(study: Beyond) -> Example | None:
    """The paper's example from a study of larger clusters; None when it lacks one of the two networks.

    A simulation has no scatter: there are no draws.
    """
    gain = next((it for it in study.gains if (it.network, it.reference) == PAIR), None)
    if gain is None:
        return None
    described = testbed(study.dataset)["network"]
    names = {"interconnect": list(PAIR)}
    columns = {
        "alpha": [described[name]["latency"]["value"] for name in PAIR],
        "beta": [1 / described[name]["bandwidth"]["value"] for name in PAIR],
    }
    links = xr.Dataset({name: (("interconnect", "draw"), np.array([of]).T) for name, of in columns.items()}, names)
    settings = study.points[["N", "NB", "P", "Q"]].max("interconnect")
    share = predictors.analytic_share(settings, links, study.points.known_rate.expand_dims("draw")).isel(draw=0)
    analytic = share.sel(interconnect=PAIR[0], drop=True) / share.sel(interconnect=PAIR[1], drop=True) - 1
    return Example(*PAIR, gain.bandwidth, gain.latency, analytic, gain.rate)


def paper_elasticities(sensitivity: xr.Dataset) -> xr.DataArray:
    """d ln rate / d ln bandwidth and -d ln rate / d ln latency over (parameter, interconnect, nodes), simulated.

    The slope from the low to the high end of each range of the model, ends that were not simulated being NaN.
    Raises FalloffError when there is no HPL trial or there are several blocks.
    """
    rate = np.log(at_only_level(points(sensitivity), "block").rate)
    described = testbed(sensitivity)["network"]
    # Of both, what is better for HPL comes second.
    better = {"bandwidth": ("low", "high"), "latency": ("high", "low")}
    slopes = [_slope(rate, described, parameter, *ends) for parameter, ends in better.items()]
    return xr.concat(slopes, xr.DataArray(list(better), dims="parameter", name="parameter"))


def _slope(log_rate: xr.DataArray, described: dict, parameter: str, worse: str, better: str) -> xr.DataArray:
    """The change of ln rate by ln parameter over (interconnect, nodes), from end to end of the parameter's range."""
    names = [f"{parameter}={end}" for end in (worse, better)]
    at_worse, at_better = (log_rate.reindex(vary=names).isel(vary=at, drop=True) for at in (0, 1))
    ranges = [described[name][parameter] for name in log_rate.interconnect.values.tolist()]
    width = [np.log(entry["high"] / entry["low"]) for entry in ranges]
    return (at_better - at_worse) / xr.DataArray(width, {"interconnect": log_rate.interconnect}, "interconnect")
