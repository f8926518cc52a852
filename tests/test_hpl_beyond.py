"""Larger simulated clusters: planted efficiencies come back, and what is missing is said to be."""

import re
from functools import cache

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from shown import heights, text
from synthetic_simulations import LARGEST, NETWORKS, REACHED, beyond_campaign

from analysis import style
from analysis.experiments import hpl_beyond

SIX = ("gige", "gige_bonded", "10gige", "25gige", "100gige", "ddr_infiniband")


@cache
def planted_study():
    """The study of the larger clusters as they are planted."""
    return hpl_beyond.analyse(beyond_campaign())


def said(study):
    tables = hpl_beyond.efficiency_table(study), hpl_beyond.effort_table(study)
    return text(hpl_beyond.finding(study), *hpl_beyond.figures(study).values(), *tables)


def of(study, interconnect):
    return next(it for it in study.expansions if it.interconnect == interconnect)


def test_planted_efficiencies_come_back():
    """On 36 nodes each network has what was planted; on the most GigE has lost a tenth of it."""
    reached = planted_study().efficiency.sel(nodes=36)
    np.testing.assert_allclose(reached, [REACHED[name] for name in reached.interconnect.values])
    assert of(planted_study(), "gige").change == pytest.approx(-0.1)


@pytest.mark.parametrize(
    ("kept", "applies"), [(0.951, True), (0.949, False), (1.052, True), (1.054, False), (1.0, True)]
)
def test_an_efficiency_applies_inside_the_margin(kept, applies):
    """The margin of 5 % divides what applies from what does not, downwards and upwards, and the findings agree."""
    study = hpl_beyond.analyse(beyond_campaign({"10gige": kept}))
    assert of(study, "10gige").applies is applies
    fall = next(it for it in hpl_beyond.findings(study) if "on 10GE" in it.statement)
    assert (fall.answer == "flat") is applies and fall.estimate == pytest.approx(1 - kept)


def test_the_finding_tells_where_the_efficiency_applies():
    """The networks inside the margin and those outside are told apart, each with the nodes that were simulated."""
    words = said(planted_study())
    assert "stays within 5 % on 2 × GigE, 10GE and DDR IB (up to 256 nodes)" in words
    assert (
        "changes by more than 5 % on GigE (up to 256 nodes)" in words
        and "GigE loses most, 10.0 %" in words
    )
    level = said(hpl_beyond.analyse(beyond_campaign({})))
    assert (
        "within 5 % on all 4 networks (up to 256 nodes)" in level and "changes by more" not in level
    )


def test_a_missing_case_is_said_and_the_next_one_taken():
    """Without 256 nodes the answer is 144's, and the reason stands beside the table."""
    study = hpl_beyond.analyse(beyond_campaign(failed={(1, "10gige", LARGEST)}))
    assert of(study, "10gige").to_nodes == 144 and of(study, "gige").to_nodes == LARGEST
    assert "10GE on 256 nodes (planted fault)" in said(study) and "10GE (up to 144 nodes)" in said(
        study
    )
    assert not re.search(r"\b(nan|None)\b", said(study))


def test_without_two_cases_nothing_is_claimed():
    """A network with a single case, or none at the start, has no answer; without any case all stays whole."""
    later = {(1, "gige", n) for n in (72, 144, LARGEST)}
    study = hpl_beyond.analyse(beyond_campaign(failed=later | {(1, "10gige", 36)}))
    for name in ("gige", "10gige"):
        assert of(study, name).change is of(study, name).applies is of(study, name).to_nodes is None
    every = {(1, name, n) for name in NETWORKS for n in (36, 72, 144, LARGEST)}
    nothing = hpl_beyond.analyse(beyond_campaign(failed=every))
    assert "cannot be said" in said(nothing) and not list(hpl_beyond.findings(nothing))
    for each in (study, nothing):
        assert not re.search(r"\b(nan|None)\b", said(each))


def test_gains_are_the_planted_ones():
    """Each pair's gain is the ratio of the planted efficiencies, beside the model's own parameters."""
    gains = {gain.network: gain for gain in planted_study().gains}
    infiniband = gains["ddr_infiniband"]
    np.testing.assert_allclose(infiniband.rate, REACHED["ddr_infiniband"] / REACHED["10gige"] - 1)
    assert infiniband.bandwidth == pytest.approx(1.2) and infiniband.latency == pytest.approx(1 / 3)
    assert float(gains["gige_bonded"].rate.sel(nodes=36)) == pytest.approx(0.73 / 0.66 - 1)
    assert "times the latency of 10GE, gains 1.3 % in HPL" in said(planted_study())
    few = hpl_beyond.analyse(beyond_campaign(networks=("gige", "10gige")))
    assert few.gains == () and "gains" not in said(few)


def test_what_the_simulations_took_is_shown():
    """CPU time, memory and messages are those of the trials; a case that did not run took nothing."""
    study = hpl_beyond.analyse(beyond_campaign(failed={(1, "gige", LARGEST)}))
    effort = study.effort.sel(interconnect="10gige", nodes=LARGEST)
    assert effort.memory == pytest.approx(1e8 + 1e7 * LARGEST)
    assert effort.messages == pytest.approx(1000 * effort.cpu_time)
    rows = hpl_beyond.effort_table(study).rows
    assert [row[3] for row in rows] == ["4", "4", "4", "3"] and rows[-1][5] == "2660"


def test_the_figure_shows_every_case_once():
    """Networks near the best one have a panel of their own."""
    exhibit = hpl_beyond.figures(planted_study())["beyond"]
    others, bunch = exhibit.figure.axes
    assert len(others.lines) == len(bunch.lines) == 2
    marks = np.concatenate([heights(exhibit, panel) for panel in (0, 1)])
    np.testing.assert_allclose(
        np.sort(marks), np.sort(100 * planted_study().efficiency.values.ravel())
    )


def test_six_networks_can_be_told_apart():
    """Without colour by marker and line; with red and green as one channel, by colour."""
    looks = [style.look(name) for name in SIX]
    assert len({look.marker for look in looks}) == len({look.line for look in looks}) == len(SIX)
    seen = [np.array([(r + g) / 2, b]) for r, g, b in (to_rgb(look.color) for look in looks)]
    assert min(np.linalg.norm(a - b) for i, a in enumerate(seen) for b in seen[:i]) > 0.1
