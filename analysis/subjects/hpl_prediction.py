"""HPL's efficiency on another network or other nodes, predicted from the simulated cases of the
paper's cluster.

The prediction is the law of HPL's own messages, corrected by a factor: how far the law is off where
the paper's cluster was simulated. The logarithm of that factor is interpolated between the
simulated networks, with the inverse squares of their distances as weights, so that it is exact on
these (D. Shepard, A two-dimensional interpolation function for irregularly-spaced data, ACM
National Conference 1968, p. 517-524, https://doi.org/10.1145/800186.810616). Distances are in the
logarithms of bandwidth and latency.

For other nodes it is the law alone, because the correction is mostly how the paper's own nodes
compute. `error_on_other_nodes` says how far that is from the simulation of another cluster.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from analysis import paths
from analysis.dataset import store
from analysis.dataset.derive import at_only_level, points
from analysis.descriptions import testbeds
from analysis.laws.models import hpl
from analysis.statements.efficiency import efficiency, rpeak

# Both with the same node: up to 36 nodes, and beyond.
CASES = ("hpl_paper_simulated-smith", "hpl_larger-smith")
TWIN = "scale_model_twin"  # whose nodes are far from the paper's
LARGEST = 36  # nodes, of the paper
SAME = 1e-12  # a squared distance below which two networks are the same
PANELS = 60  # of a case; the correction makes up for the steps of HPL that so few panels miss
DOUBLE = 8  # bytes of a matrix element


class NetworkParameters(NamedTuple):
    """A network as a node sees it: payload bandwidth [B/s] and latency [s]."""

    bandwidth: float
    latency: float


class NodeParameters(NamedTuple):
    """A node: its DGEMM `rate` [flop/s], and the `memory` that HPL's matrix fills [B]."""

    rate: float
    memory: float


class PaperCases(NamedTuple):
    """The paper's cases: HPL's N, NB, P, Q and `known_rate` [Gflop/s] of all nodes together over
    (nodes), and the simulated `efficiency` [1] over (interconnect, nodes); a node's `peak`
    [flop/s]; the paper's `node`; and the simulated networks by name."""

    cases: xr.Dataset
    peak: float
    node: NodeParameters
    networks: dict[str, NetworkParameters]


@cache
def basis() -> PaperCases:
    """The stored cases of the paper's cluster; raises FalloffError if they are missing."""
    runs = [at_only_level(points(store.read(paths.REFERENCE / name)), "block") for name in CASES]
    columns = []
    for run in runs:
        settings = run[["N", "NB", "P", "Q", "known_rate"]]
        settings = settings.max("interconnect") if "interconnect" in settings.dims else settings
        columns.append(settings.assign(efficiency=efficiency(run)))
    cases = xr.concat(columns, "nodes", coords="minimal", compat="override", join="outer")
    # Both campaigns contain the paper's largest case.
    cases = cases.drop_duplicates("nodes").sortby("nodes")
    networks = {
        name: NetworkParameters(about["bandwidth"]["value"], about["latency"]["value"])
        for name, about in runs[0].falloff.testbed.network.items()
        if name in runs[1].interconnect
    }
    largest = cases.sel(nodes=LARGEST)
    node = NodeParameters(
        float(1e9 * largest.known_rate / LARGEST), float(DOUBLE * largest.N**2 / LARGEST)
    )
    return PaperCases(cases, rpeak(runs[0]), node, networks)


def predicted(
    basis: PaperCases, network: NetworkParameters, node: NodeParameters | None = None
) -> xr.DataArray:
    """HPL's efficiency by the law of its messages over (nodes) [1]: over the peak of the paper's
    nodes, corrected from the simulated networks, or over the DGEMM rate of other nodes."""
    if node is not None and not np.allclose(node, basis.node, rtol=1e-3):
        return _law(on_nodes(basis, node), [network])[0]
    simulated = basis.cases.efficiency
    networks = [basis.networks[name] for name in simulated.interconnect.values.tolist()]
    *models, model = _law(basis.cases, [*networks, network]) * (basis.node.rate / basis.peak)
    models = xr.concat(models, simulated.interconnect)
    distances = sum(
        np.log([getattr(other, part) / getattr(network, part) for other in networks]) ** 2
        for part in ("bandwidth", "latency")
    )
    weights = xr.DataArray(1 / np.maximum(distances, SAME), dims="interconnect")
    # Over the simulated networks.
    correction = np.log(simulated / models).weighted(weights).mean("interconnect")
    return model * np.exp(correction)


def on_nodes(basis: PaperCases, node: NodeParameters) -> xr.Dataset:
    """The paper's cases on other nodes: each order N grows with the root of a node's memory, and
    `known_rate` with its rate."""
    cases = basis.cases
    grown = (node.memory / basis.node.memory) ** 0.5
    order = (cases.N * grown // cases.NB * cases.NB).clip(min=cases.NB)
    return cases.assign(N=order, known_rate=cases.known_rate * node.rate / basis.node.rate)


def _law(cases: xr.Dataset, networks: list[NetworkParameters]) -> xr.DataArray:
    """HPL's rate over the nodes' known rate [1] by the law of its messages, over (interconnect,
    nodes)."""
    bandwidth, latency = np.array(networks).T
    x = np.array([cases[name].values for name in ("N", "NB", "P", "Q")], float)
    of_a_flop = (cases.nodes / (1e9 * cases.known_rate)).values
    costs = latency[:, None], 1 / bandwidth[:, None], of_a_flop
    time = xr.DataArray(hpl.longest(hpl.counts(x, PANELS), *costs), dims=("interconnect", "nodes"))
    return 1 / time * hpl.operations(cases.N) / (1e9 * cases.known_rate)


@cache
def largest_error() -> float:
    """The largest error [1] in the efficiency of a simulated network when it is predicted from the
    others."""
    cases, errors = basis(), []
    for name, network in cases.networks.items():
        others = cases._replace(cases=cases.cases.drop_sel(interconnect=name))
        truth = cases.cases.efficiency.sel(interconnect=name, drop=True)
        errors.append(float(np.abs(predicted(others, network) - truth).max()))
    return max(errors)


@cache
def error_on_other_nodes() -> float:
    """The largest relative error [1] of the law alone, on the networks and nodes of the stored
    twin, against their simulation."""
    machine: Any = testbeds.read(TWIN)
    errors = []
    ran = at_only_level(points(store.read(paths.REFERENCE / f"twin_held_out-{TWIN}")), "block")
    ran = ran.isel(vary=0, drop=True)  # every number of the model at its value
    for name in ran.interconnect.values.tolist():
        cases, about = ran.sel(interconnect=name, drop=True), machine.network[name]
        network = NetworkParameters(about.bandwidth.value, about.latency.value)
        law = _law(cases, [network])[0]
        errors.append(float(np.abs(law * cases.known_rate / cases.rate - 1).max()))
    return max(errors)
