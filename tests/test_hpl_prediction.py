"""HPL's efficiency on networks and nodes that were not simulated."""

import numpy as np
import pytest

from analysis.subjects import hpl_prediction
from analysis.subjects.hpl_prediction import NetworkParameters


@pytest.fixture(scope="module")
def basis():
    return hpl_prediction.basis()


def test_on_simulated_networks_the_prediction_is_the_simulation(basis):
    for name, network in basis.networks.items():
        simulated = basis.cases.efficiency.sel(interconnect=name).dropna("nodes")
        predicted = hpl_prediction.predicted(basis, network).sel(nodes=simulated.nodes)
        np.testing.assert_allclose(predicted, simulated, rtol=1e-6)
    assert 0 < hpl_prediction.largest_error() < 0.03
    assert 0 < hpl_prediction.error_on_other_nodes() < 0.05


@pytest.mark.parametrize(("bandwidth", "latency"), [(1e7, 2e-4), (1.2e8, 5e-5), (2e10, 1e-6)])
def test_a_faster_network_never_costs_efficiency(basis, bandwidth, latency):
    """Whatever is asked, and an efficiency stays one."""
    slow, fast = (
        NetworkParameters(bandwidth, latency),
        NetworkParameters(2 * bandwidth, latency / 2),
    )
    efficiency, higher = (hpl_prediction.predicted(basis, network) for network in (slow, fast))
    assert ((efficiency > 0) & (efficiency < 1.1)).all() and (higher >= efficiency).all()


def test_faster_nodes_need_a_faster_network_and_more_memory_helps(basis):
    """By the same law: on nodes of ten times the rate less is reached, on ones of more memory
    more.
    """
    gige, node = basis.networks["gige"], basis.node
    quick = node._replace(rate=10 * node.rate)
    large = quick._replace(memory=4 * node.memory)
    paper, of_quick, of_large = (
        hpl_prediction.predicted(basis, gige, each) for each in (node, quick, large)
    )
    share = basis.peak / node.rate
    assert (of_quick < paper * share).all() and (of_large > of_quick).all()
