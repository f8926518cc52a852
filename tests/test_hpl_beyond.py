"""Beyond the paper's cluster: planted efficiencies and gains come back, the margin divides, gaps are said."""

from itertools import product

import numpy as np
import pytest
from shown import words
from synthetic_smith import smith_campaign

from analysis.experiments import hpl_beyond

REACHED = {"gige": 0.66, "gige_bonded": 0.73, "10gige": 0.79, "ddr_infiniband": 0.80}  # on 36 nodes
NODES = [36, 72, 144, 256]


def study_of(kept=None, networks=tuple(REACHED), **chance):
    """The study of efficiencies over nodes; `kept` maps a network to the part of REACHED that is left on 256."""
    kept = {"gige": 0.90} if kept is None else kept

    def reached(network, n, _):
        return REACHED[network] * kept.get(network, 1.0) ** (np.log(n / 36) / np.log(256 / 36))

    factors = {"interconnect": list(networks), "nodes": NODES}
    return hpl_beyond.analyse(smith_campaign("hpl_beyond", factors, reached, **chance))


@pytest.fixture(scope="module")
def planted():
    return study_of()


def test_planted_efficiencies_and_gains_come_back(planted):
    """On 36 nodes each network has what was planted; on the most GigE has lost a tenth of it; each case is a mark."""
    reached = planted.efficiency.sel(nodes=36)
    np.testing.assert_allclose(reached, [REACHED[name] for name in reached.interconnect.values])
    assert planted.falls["gige"].fall == pytest.approx(0.1)
    infiniband, bonded = (planted.gains[pair] for pair in hpl_beyond.PAIRS)
    np.testing.assert_allclose(infiniband, REACHED["ddr_infiniband"] / REACHED["10gige"])
    assert float(bonded.sel(nodes=36)) == pytest.approx(0.73 / 0.66)
    assert "with 1.2 times its bandwidth and 0.37 times its latency" in words(hpl_beyond, planted)


@pytest.mark.parametrize(
    ("kept", "applies"), [(0.951, True), (0.949, False), (1.052, True), (1.054, False)]
)
def test_an_efficiency_applies_inside_the_margin(kept, applies):
    """The margin of 5 % divides what applies from what does not, downwards and upwards, and the findings agree."""
    study = study_of({"10gige": kept})
    fall = next(one for one in hpl_beyond.findings(study) if one.statement.startswith("10GE"))
    assert (fall.answer == "flat") is applies and fall.estimate == pytest.approx(1 - kept)
    assert ("changes by more than 5 % on 10GE" in words(hpl_beyond, study)) is not applies


def test_a_missing_case_is_said_and_the_next_one_taken():
    """Without 256 nodes the answer is 144's; without a case to compare, or a network, there is none."""
    study = study_of(failed={(1, "10gige", 256), (1, "gige_bonded", 36)})
    assert (study.most("10gige"), study.most("gige")) == (144, 256)
    assert "gige_bonded" not in study.falls and "144 nodes" in words(hpl_beyond, study)
    assert "2 of 16 trials gave no reading" in words(hpl_beyond, study)
    assert "cannot be said" in words(hpl_beyond, study_of(failed=set(product([1], REACHED, NODES))))
    assert study_of(networks=("gige", "10gige")).gains == {}
