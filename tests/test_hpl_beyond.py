"""Beyond the paper's cluster: planted efficiencies and gains come back, the margin divides, gaps are said."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from shown import heights, text
from synthetic_simulations import LARGEST, NETWORKS, REACHED, beyond_campaign

from analysis.experiments import hpl_beyond


@cache
def planted_study():
    """The study of the larger clusters as they are planted."""
    return hpl_beyond.analyse(beyond_campaign())


def of(study, network):
    """A network's expansion, None without one."""
    return next((one for one in study.expansions if one.interconnect == network), None)


def words(study):
    return text(hpl_beyond.finding(study), *hpl_beyond.figures(study).values())


def test_planted_efficiencies_and_gains_come_back():
    """On 36 nodes each network has what was planted; on the most GigE has lost a tenth of it."""
    reached = planted_study().efficiency.sel(nodes=36)
    np.testing.assert_allclose(reached, [REACHED[name] for name in reached.interconnect.values])
    assert of(planted_study(), "gige").fall.fall == pytest.approx(0.1)
    gains = {gain.network: gain for gain in planted_study().gains}
    infiniband = gains["ddr_infiniband"]
    np.testing.assert_allclose(infiniband.rate, REACHED["ddr_infiniband"] / REACHED["10gige"] - 1)
    assert infiniband.bandwidth == pytest.approx(1.2) and infiniband.latency == pytest.approx(1 / 3)
    assert float(gains["gige_bonded"].rate.sel(nodes=36)) == pytest.approx(0.73 / 0.66 - 1)


@pytest.mark.parametrize(
    ("kept", "applies"), [(0.951, True), (0.949, False), (1.052, True), (1.054, False), (1.0, True)]
)
def test_an_efficiency_applies_inside_the_margin(kept, applies):
    """The margin of 5 % divides what applies from what does not, downwards and upwards, and the findings agree."""
    study = hpl_beyond.analyse(beyond_campaign({"10gige": kept}))
    fall = next(one for one in hpl_beyond.findings(study) if one.statement.startswith("10GE"))
    assert (fall.answer == "flat") is applies and fall.estimate == pytest.approx(1 - kept)
    assert ("changes by more than 5 % on 10GE" in words(study)) is not applies


def test_a_missing_case_is_said_and_the_next_one_taken():
    """Without 256 nodes the answer is 144's; without a case to compare, or a network, there is none."""
    failed = {(1, "10gige", LARGEST), (1, "gige_bonded", 36)}
    study = hpl_beyond.analyse(beyond_campaign(failed=failed))
    assert of(study, "10gige").to_nodes == 144 and of(study, "gige").to_nodes == LARGEST
    assert of(study, "gige_bonded") is None
    assert "10GE on 256 nodes (planted fault)" in words(study) and "144 nodes" in words(study)
    every = set(product([1], NETWORKS, [36, 72, 144, LARGEST]))
    assert "cannot be said" in words(hpl_beyond.analyse(beyond_campaign(failed=every)))
    assert hpl_beyond.analyse(beyond_campaign(networks=("gige", "10gige"))).gains == ()


def test_the_figure_shows_every_case_once():
    """Networks near the best one have a panel of their own."""
    exhibit = hpl_beyond.figures(planted_study())["beyond"]
    assert [len(axes.lines) for axes in exhibit.figure.axes] == [2, 2]
    marks = np.sort(np.concatenate([heights(exhibit, panel) for panel in (0, 1)]))
    np.testing.assert_allclose(marks, np.sort(100 * planted_study().efficiency.values.ravel()))
