"""Larger simulated clusters: planted efficiencies come back, and what is missing is said to be."""

import re
from functools import cache

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from synthetic_simulations import LARGEST, NETWORKS, REACHED, beyond_campaign

from analysis import style, wording
from analysis.facts import beyond as facts
from analysis.facts.published import published_sources
from analysis.figures import beyond as figures
from analysis.publish import to_html
from analysis.studies import beyond

SIX = ("gige", "gige_bonded", "10gige", "25gige", "100gige", "ddr_infiniband")
FRONT = "---\ntitle: T\nsubtitle: S\nlang: en\ncampaign: C\ndate: D\n---\n\n"


@cache
def planted_study():
    """The study of the larger clusters as they are planted."""
    return beyond.analyse(beyond_campaign())


def section(study):
    """The section's Markdown, hard spaces as spaces."""
    template = wording.templates().get_template("beyond.md.j2")
    known = {"beyond": facts.collect(study), "published": published_sources()}
    return template.render(known).replace("\u00a0", " ")


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
    """The margin of 5 % divides what applies from what does not, downwards and upwards."""
    assert of(beyond.analyse(beyond_campaign({"10gige": kept})), "10gige").applies is applies


def test_a_missing_case_is_said_and_the_next_one_taken():
    """Without 256 nodes the answer is 144's, and the reason stands in the section."""
    study = beyond.analyse(beyond_campaign(failed={(1, "10gige", LARGEST)}))
    assert of(study, "10gige").to_nodes == 144 and of(study, "gige").to_nodes == LARGEST
    said = section(study)
    assert "10GE on 256 nodes (planted fault)" in said and "a larger case is missing" in said
    assert not re.search(r"\b(nan|None)\b", said)


def test_without_two_cases_nothing_is_claimed():
    """A network with a single case, or none at the start, has no answer."""
    later = {(1, "gige", n) for n in (72, 144, LARGEST)}
    study = beyond.analyse(beyond_campaign(failed=later | {(1, "10gige", 36)}))
    for name in ("gige", "10gige"):
        assert of(study, name).change is of(study, name).applies is of(study, name).to_nodes is None
    assert "On GigE it cannot be told" in section(study)


def test_gains_are_the_planted_ones():
    """Each pair's gain is the ratio of the planted efficiencies, beside the model's own parameters."""
    gains = {gain.network: gain for gain in planted_study().gains}
    infiniband = gains["ddr_infiniband"]
    np.testing.assert_allclose(infiniband.rate, REACHED["ddr_infiniband"] / REACHED["10gige"] - 1)
    assert infiniband.bandwidth == pytest.approx(1.2) and infiniband.latency == pytest.approx(1 / 3)
    assert float(gains["gige_bonded"].rate.sel(nodes=36)) == pytest.approx(0.73 / 0.66 - 1)


def test_a_campaign_on_fewer_networks_has_fewer_gains():
    """Without InfiniBand and bonding there is no gain, and the section stays whole."""
    study = beyond.analyse(beyond_campaign(networks=("gige", "10gige")))
    assert study.gains == () and "gains" not in section(study)


def test_the_figure_shows_every_case_and_enlarges_the_fast_networks():
    """All networks are on the left, those near the best one on the right; the paper's cases are added."""
    overview, enlarged = figures.draw(planted_study())["beyond"].axes
    assert len(overview.lines) == len(NETWORKS) and len(enlarged.lines) == 2
    shown = np.concatenate([line.get_ydata() for line in overview.lines])
    assert np.isclose(shown[:, None], 100 * planted_study().efficiency.values.ravel()).any(axis=0).all()
    with_paper = beyond.analyse(beyond_campaign(), beyond_campaign(networks=("gige", "10gige")))
    assert len(figures.draw(with_paper)["beyond"].axes[0].lines) == len(NETWORKS) + 2


def test_six_networks_can_be_told_apart():
    """Without colour by marker and line; with red and green as one channel, by colour."""
    looks = [style.look(name) for name in SIX]
    assert len({look.marker for look in looks}) == len({look.line for look in looks}) == len(SIX)
    seen = [np.array([(r + g) / 2, b]) for r, g, b in (to_rgb(look.color) for look in looks)]
    assert min(np.linalg.norm(a - b) for i, a in enumerate(seen) for b in seen[:i]) > 0.1


def test_the_section_becomes_a_page(tmp_path):
    """Figure, table and references are all there."""
    style.save_all(figures.draw(planted_study()), tmp_path / "figures")
    page = to_html(FRONT + section(planted_study()), tmp_path)
    assert page.count("<img") == 1 and page.count("<table") == 1 and "does not apply in the model" in page


def test_finding_names_where_the_efficiency_applies():
    """The networks inside the margin and those outside are told apart, each with the nodes that were simulated."""
    known = {
        "least_nodes": 36,
        "margin": 0.05,
        "evidence": "simulated",
        "expansions": [
            {"network": "10GE", "to_nodes": 256, "applies": True},
            {"network": "2 x GigE", "to_nodes": 144, "applies": True},
            {"network": "GigE", "to_nodes": 256, "applies": False},
            {"network": "25GE", "to_nodes": 36, "applies": None},
        ],
    }
    said = wording.finding("beyond", known).replace("\u00a0", " ")
    assert "stays within 5 % on 10GE (up to 256 nodes); 2 x GigE (up to 144 nodes) and does not stay" in said
    assert "on GigE (up to 256 nodes) (simulated evidence)" in said and "25GE" not in said
