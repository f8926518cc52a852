"""What if the network, the nodes or their prices were others? HPL's analytic model on the paper's cases, at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import xarray as xr

from analysis import paths, prices, store
from analysis.derive import at_only_level, points
from analysis.studies import predictors
from analysis.studies.efficiency import efficiency, rpeak, testbed
from analysis.studies.payoff import lasting_from
from analysis.studies.scaling import short_names
from runners.record import FalloffError

CASES = ("hpl_paper-smith", "hpl_beyond-smith")  # of the same node, up to 36 nodes and beyond
YOURS, OTHER = "yours", "other"


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
    `peak` a node's theoretical peak [flop/s]. `simulated` is the efficiency [1] over (interconnect, nodes); `networks`
    are what was simulated, with the price where there is one (else NaN), `names` their short names.
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

    `efficiency` [1] is of the nodes' theoretical peak, `cost` [USD s / Gflop] what a Gflop/s of HPL costs. `pays_from`
    is the node count from which on yours is the cheaper one, infinite where it is not even at the largest.
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
            raise FalloffError(f"what if needs the reference campaign {name}: it comes with Falloff in data/reference")
        cases.append(at_only_level(points(store.assemble(paths.REFERENCE / name)), "block"))
    # Both have the paper's largest case.
    simulated = xr.concat([efficiency(it) for it in cases], "nodes", coords="minimal", compat="override", join="outer")
    columns = [it[["N", "NB", "P", "Q", "dgemm"]].max("interconnect") if "interconnect" in it.N.dims else it[["N", "NB", "P", "Q", "dgemm"]] for it in cases]
    of_cases = xr.concat(columns, "nodes", coords="minimal", compat="override", join="outer").drop_duplicates("nodes").sortby("nodes")
    listed = prices.read()
    known = {price.of for price in listed}
    described = testbed(cases[0])["network"]
    largest = cases[1].interconnect.values.tolist()
    return Basis(
        settings=of_cases[["N", "NB", "P", "Q"]],
        dgemm=of_cases.dgemm,
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
    both = {"interconnect": [YOURS, OTHER]}
    links = xr.Dataset(
        {
            "alpha": (("interconnect", "draw"), [[yours.latency], [other.latency]]),
            "beta": (("interconnect", "draw"), [[1 / yours.bandwidth], [1 / other.bandwidth]]),
        },
        both,
    )
    dgemm = (basis.dgemm * peak / basis.peak).expand_dims("draw")
    share = predictors.analytic_share(basis.settings, links, dgemm).isel(draw=0)
    reached = share * 1e9 * dgemm.isel(draw=0) / (dgemm.nodes * peak)
    prices_of_node = xr.DataArray([node_price + yours.price, node_price + other.price], both)
    cost = 1e9 * prices_of_node / (peak * reached)
    advantage = np.log(cost.sel(interconnect=OTHER, drop=True) / cost.sel(interconnect=YOURS, drop=True))
    return Answer(reached, cost, float(lasting_from(advantage)))


def off(basis: Basis, name: str) -> float:
    """By how much [1] the model's efficiency is at most off the simulated one on a network that was simulated."""
    network = basis.networks[name]
    told = predict(basis, network, network, basis.peak, basis.node_price).efficiency.sel(interconnect=YOURS, drop=True)
    return float(np.abs(told - basis.simulated.sel(interconnect=name, drop=True)).max())
