"""What the HPL paper claims of the benchmark itself: noise, orders and messages, planted, altered and stored."""

import pytest
import xarray as xr
from claimed import judged, scaled, studies_of
from synthetic_studies import noise_campaign, size_campaign

import experiment
from analysis.derive import points
from analysis.experiments.hpl_size import Size


@pytest.mark.parametrize(("most", "verdict"), [(4.5, "supported"), (1.0, "contradicted")])
def test_a_daemon_costs_more_on_many_nodes_or_not(most, verdict):
    """Losses that add up over nodes support the claim, and those that do not contradict it."""
    data = noise_campaign(amplification={2: 1.0, 4: 1.0, 8: 1.0, 16: most}, noise=0.005)
    found = judged("smith_monitoring", studies_of({"hpl_noise": data}))
    assert found.verdict == verdict and "16 over 2 nodes" in found.of


@pytest.mark.parametrize(("largest", "verdict"), [(1.0, "contradicted"), (0.1, "supported")])
def test_efficiency_over_the_order_of_the_matrix(largest, verdict):
    """It grows as planted; a largest matrix that is ten times slower would support the paper."""
    data = scaled(size_campaign(blocks=4, N=(896, 7168)), "hpl_rate", largest, N=7168)
    found = judged("smith_order", studies_of({"hpl_size": data}, hpl_size=_size(data)))
    assert found.verdict == verdict and "N = 7168 over 896" in found.of


def _size(data):
    """The study's points, without its models that take their time."""
    rest = dict.fromkeys(("shares", "ratios", "curves", "agreement"))
    return Size(data, points(data), nodes=4, network="gige", reference="10gige", **rest)


@pytest.fixture(scope="module")
def counted():
    return {
        "hpl_paper": experiment.stored("hpl_paper", "smith"),
        "hpl_payload": experiment.stored("hpl_payload", "scale_model"),
    }


def test_most_messages_are_small_and_most_bytes_are_not(counted):
    """What 'traffic' counts decides: the two readings differ in the simulation. A count needs no blocks."""
    found = studies_of(counted)
    assert judged("smith_few_small_messages", found, "simulated").verdict == "contradicted"
    assert judged("smith_few_small_bytes", found, "simulated").verdict == "supported"
    emulated = judged("smith_few_small_messages", found)
    assert emulated.verdict == "contradicted" and emulated.kind == "count"
    assert "8 nodes, 2 x 4 processes" in emulated.of


def test_other_messages_are_another_verdict(counted):
    """With a thousandth of the small messages most of emulated HPL's are not small."""
    data = counted["hpl_payload"]
    many = data.assign(
        payload_messages=data.payload_messages * xr.where(data["size"] < 4096, 0.001, 1)
    )
    found = studies_of({"hpl_payload": many})
    assert judged("smith_few_small_messages", found).verdict == "supported"
