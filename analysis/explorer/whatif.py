"""What if the network, the nodes or their prices were others? HPL on the paper's cases, predicted at once.

The prediction is HPL's analytic model, times how far it is off where the paper's cluster was simulated: the logarithm
of that factor is interpolated between the simulated networks, with the inverse squares of their distances as weights,
so that it is exact on these (D. Shepard, A two-dimensional interpolation function for irregularly-spaced data, ACM
National Conference 1968, p. 517-524, https://doi.org/10.1145/800186.810616). Distances are in the logarithms of
bandwidth and latency.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import xarray as xr

from analysis import paths, prices, store
from analysis.derive import at_only_level, points
from analysis.studies import predictors
from analysis.attributes import testbed
from analysis.efficiency import efficiency, rpeak
from analysis.studies.payoff import lasting_from
from analysis.attributes import short_names
from runners.record import FalloffError

CASES = ("hpl_paper-smith", "hpl_beyond-smith")  # of the same node, up to 36 nodes and beyond
YOURS, OTHER = "yours", "other"
SAME = 1e-12  # a squared distance below which two networks are the same


@dataclass(frozen=True)
class Network:
    """A network as a node sees it: payload's bandwidth [B/s], latency [s], and its price for a node [USD]."""

    bandwidth: float
    latency: float
    price: float


@dataclass(frozen=True)
class Basis:
    """The cases that are predicted, and what is known of them without prediction.

    `settings` holds HPL's N, NB, P and Q over (nodes), `dgemm` [Gflop/s] that of all nodes together over (nodes),
    `peak` a node's theoretical peak [flop/s]. `simulated` is the efficiency [1] over (interconnect, nodes);
    `networks` are what was simulated, with the price where there is one (else NaN), `names` their short names.
    """

    settings: xr.Dataset
    dgemm: xr.DataArray
    peak: float
    simulated: xr.DataArray
    networks: Mapping[str, Network]
    names: Mapping[str, str]
    node_price: float


@dataclass(frozen=True)
class Answer:
    """What is predicted, over (interconnect, nodes) with the interconnects YOURS and OTHER.

    `efficiency` [1] is of the nodes' theoretical peak, `cost` [USD s / Gflop] what a Gflop/s of HPL costs.
    `pays_from` is the node count from which on yours is cheaper, infinite where it is not even at the largest.
    """

    efficiency: xr.DataArray
    cost: xr.DataArray
    pays_from: float


@cache
def basis() -> Basis:
    """The stored cases of the paper's cluster; raises FalloffError when they are not there."""
    cases = []
    for name in CASES:
        if not (paths.REFERENCE / name).is_dir():
            raise FalloffError(
                f"what if needs the reference campaign {name}: it comes with Falloff in data/reference"
            )
        cases.append(at_only_level(points(store.read(paths.REFERENCE / name)), "block"))
    # Both have the paper's largest case.
    simulated = xr.concat(
        [efficiency(it) for it in cases], "nodes", coords="minimal", compat="override", join="outer"
    )
    columns = [
        it[["N", "NB", "P", "Q", "known_rate"]].max("interconnect")
        if "interconnect" in it.N.dims
        else it[["N", "NB", "P", "Q", "known_rate"]]
        for it in cases
    ]
    of_cases = (
        xr.concat(columns, "nodes", coords="minimal", compat="override", join="outer")
        .drop_duplicates("nodes")
        .sortby("nodes")
    )
    listed = prices.read()
    known = {price.of for price in listed}
    described = testbed(cases[0])["network"]
    largest = cases[1].interconnect.values.tolist()
    return Basis(
        settings=of_cases[["N", "NB", "P", "Q"]],
        dgemm=of_cases.known_rate,
        peak=rpeak(cases[0]),
        simulated=simulated.drop_duplicates("nodes").sortby("nodes"),
        networks={
            name: Network(
                described[name]["bandwidth"]["value"],
                described[name]["latency"]["value"],
                prices.total(listed, name) if name in known else np.nan,
            )
            for name in largest
        },
        names={name: short for name, short in short_names(cases[1]).items() if name in largest},
        node_price=prices.total(listed, prices.NODE),
    )


def predict(basis: Basis, yours: Network, other: Network, peak: float, node_price: float) -> Answer:
    """Both networks between nodes of that theoretical peak [flop/s] and price [USD] without network.

    A node's DGEMM is the same part of its peak as on the paper's nodes.
    """
    both = (yours, other)
    reached = _analytic(basis, both, peak) * np.exp(_correction(basis, both))
    reached = reached.assign_coords(interconnect=[YOURS, OTHER])
    prices_of_node = xr.DataArray([node_price + it.price for it in both], {"interconnect": [YOURS, OTHER]})
    cost = 1e9 * prices_of_node / (peak * reached)
    advantage = np.log(cost.sel(interconnect=OTHER, drop=True) / cost.sel(interconnect=YOURS, drop=True))
    return Answer(reached, cost, float(lasting_from(advantage)))


@cache
def off() -> float:
    """By how much [1] the efficiency of a simulated network is off at most when it is predicted from the others."""
    known, errors = basis(), []
    for name, network in known.networks.items():
        others = replace(known, simulated=known.simulated.drop_sel(interconnect=name))
        told = _analytic(known, (network,), known.peak) * np.exp(_correction(others, (network,)))
        errors.append(np.abs(told.isel(interconnect=0) - known.simulated.sel(interconnect=name)).max())
    return float(max(errors))


def _analytic(basis: Basis, networks: Sequence[Network], peak: float) -> xr.DataArray:
    """The analytic model's efficiency [1] over (interconnect, nodes)."""
    columns = {"alpha": [it.latency for it in networks], "beta": [1 / it.bandwidth for it in networks]}
    links = xr.Dataset(
        {name: (("interconnect", "draw"), np.array([values]).T) for name, values in columns.items()},
        {"interconnect": np.arange(len(networks))},
    )
    dgemm = (basis.dgemm * peak / basis.peak).expand_dims("draw")
    share = predictors.analytic_share(basis.settings, links, dgemm).isel(draw=0)
    return share * 1e9 * dgemm.isel(draw=0) / (dgemm.nodes * peak)


def _correction(basis: Basis, networks: Sequence[Network]) -> xr.DataArray:
    """The logarithm of simulated over analytic efficiency, interpolated, over (interconnect, nodes)."""
    names = basis.simulated.interconnect.values.tolist()
    known = [basis.networks[name] for name in names]
    factor = np.log(basis.simulated.values / _analytic(basis, known, basis.peak).values)
    there = np.isfinite(factor)
    weights = np.array([[1 / max(_distance(it, one), SAME) for one in known] for it in networks])
    total = weights @ there
    return xr.DataArray(
        weights @ np.where(there, factor, 0.0) / total, {"nodes": basis.simulated.nodes}, ("interconnect", "nodes")
    )


def _distance(one: Network, other: Network) -> float:
    return np.log(one.bandwidth / other.bandwidth) ** 2 + np.log(one.latency / other.latency) ** 2
