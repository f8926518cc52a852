"""The paper's own cases: planted efficiencies, ranges and capacities come back; what is missing is said."""

import json
import re
from functools import cache

import numpy as np
import pytest
from synthetic import campaign
from synthetic_smith import SMITH, planted, smith_campaign

from analysis import style, wording
from analysis.facts import paper as facts
from analysis.facts import scaling as scaling_facts
from analysis.facts.published import published_sources
from analysis.figures import paper as figures
from analysis.publish import to_html, to_pdf
from analysis.studies import contention, efficiency, paper, scaling, sensitivity
from runners.record import FalloffError

FRONT = "---\ntitle: T\nsubtitle: S\nlang: en\ncampaign: C\ndate: D\n---\n\n"
# In the planted truth a backplane binds from the sum of all links downwards.
LEVELS = {
    "vary": ["none"]
    + [f"backplane={capacity}" for capacity in ("3e9", "2e9", "1.5e9", "1.2e9", "1e9", "0.8e9", "0.65e9")]
    + [f"bandwidth={capacity}" for capacity in ("100e6", "90e6", "80e6", "70e6", "60e6", "50e6")]
}


@cache
def whole_study():
    """The study of all three campaigns."""
    contention = smith_campaign("hpl_contention", LEVELS)
    return paper.analyse(*map(smith_campaign, ("hpl_paper", "hpl_sensitivity")), contention)


@cache
def study_alone():
    """The study of the cases without the further campaigns."""
    return paper.analyse(smith_campaign("hpl_paper"))


@cache
def emulated_study():
    """One emulated block."""
    return scaling.analyse(campaign(blocks=1))


def section(study):
    """The section's Markdown, hard spaces as spaces and without the escapes of data."""
    known = {"paper": facts.collect(study), "published": published_sources()}
    said = wording.templates().get_template("paper.md.j2").render(known)
    return said.replace("\u00a0", " ").replace("\\", "")


def bracketed(values):
    return float(values.low), float(values.high)


@pytest.mark.parametrize("interconnect", ["gige", "10gige"])
def test_efficiency_is_the_rate_over_the_described_peak(interconnect):
    """Every planted efficiency comes back, whatever DGEMM reached."""
    found = whole_study().efficiency.sel(interconnect=interconnect)
    np.testing.assert_allclose(found, [planted(interconnect, n) for n in found.nodes.values])


def test_shape_tells_the_early_fall_from_the_level_rest():
    """What is planted to stop at 8 nodes is lost before, and nothing after."""
    shape = whole_study().shape.sel(interconnect="gige")
    early = planted("gige", 2) - planted("gige", 8)
    np.testing.assert_allclose([shape.fall, shape.early_fall], early)
    np.testing.assert_allclose([shape.late_fall, shape.spread, shape.slope], 0, atol=1e-12)


def test_slope_is_per_doubling():
    """What loses 3 points with each doubling has that slope, and twice that spread from 8 to 32 nodes."""
    nodes = np.array([2, 8, 16, 32])
    falling = whole_study().efficiency.isel(interconnect=0).sel(nodes=nodes) * 0 + 0.8 - 0.03 * np.log2(nodes)
    shape = efficiency.shape(falling)
    assert shape.slope.item() == pytest.approx(-0.03) and shape.spread.item() == pytest.approx(0.06)


def test_a_missing_case_leaves_its_numbers_unknown():
    """A case that failed is no efficiency of 0: the numbers that need it are None, the others stay."""
    study = paper.analyse(smith_campaign("hpl_paper", failed={(1, "gige", 36)}))
    gige, fast = facts.collect(study)["curves"]
    assert gige["fall"] is gige["spread"] is gige["level"] is None
    assert gige["early_fall"] == pytest.approx(study_alone().shape.early_fall.sel(interconnect="gige").item())
    assert fast["fall"] == pytest.approx(study_alone().shape.fall.sel(interconnect="10gige").item())


def test_few_nodes_have_no_plateau():
    """The quick preset's four cases say nothing about what comes after 8 nodes."""
    curve = facts.collect(paper.analyse(smith_campaign("hpl_paper", {"nodes": [2, 4, 6, 8]})))["curves"][0]
    assert curve["slope"] is curve["spread"] is curve["level"] is None and curve["early_fall"] > 0


def test_changes_are_those_of_the_planted_rates():
    """Each parameter's change is the difference to the unchanged model, at the right end."""
    changes = whole_study().sensitivity.changes
    for interconnect, nodes, vary in (("gige", 36, "bandwidth=low"), ("10gige", 2, "dgemm_flop_s=high")):
        name, _, side = vary.partition("=")
        wanted = planted(interconnect, nodes, vary) - planted(interconnect, nodes)
        found = changes.sel(parameter=name, side=side, interconnect=interconnect, nodes=nodes)
        assert found.item() == pytest.approx(wanted)
    assert not changes.sel(parameter="strided_s").any()


def test_range_is_of_one_change_and_bracket_of_all():
    """The range holds the largest single change; the bracket their sum, so that it holds all at once."""
    changes = whole_study().sensitivity.changes.sel(interconnect="gige", nodes=36)
    extent, bracket = bracketed(sensitivity.extent(changes)), bracketed(sensitivity.bracket(changes))
    assert extent == (changes.min().item(), changes.max().item())
    assert bracket[0] == pytest.approx(changes.min("side").sum().item())
    assert bracket[0] < extent[0] < 0 < extent[1] < bracket[1]


def test_the_range_of_a_fall_follows_from_the_falls():
    """A slower link makes the fall larger: its upper end is the fall with the bandwidth at its low end."""
    gige = facts.collect(whole_study())["sensitivity"]["networks"][0]
    worst = planted("gige", 2, "bandwidth=low") - planted("gige", 36, "bandwidth=low")
    assert gige["fall"]["range"][1] == pytest.approx(worst)


def test_the_largest_assumed_number_is_named():
    """On GigE that is the bandwidth; on 10GE, where bandwidth and latency are published, memory's rate."""
    networks = facts.collect(whole_study())["sensitivity"]["networks"]
    assert [it["largest_assumed"]["meaning"] for it in networks] == ["bandwidth", "memory, all cores"]
    assert networks[1]["parameters"][0]["meaning"] == sensitivity.meaning(paper.CALIBRATED)


@pytest.mark.parametrize("target", contention.TARGETS)
def test_the_planted_backplane_is_solved(target):
    """The capacity at which the planted efficiency is the target comes back, within the stated error."""
    found = whole_study().contention.scenario(contention.SHARED, target)
    error = abs(whole_study().contention.sweeps[contention.SHARED].errors).max().item()
    assert planted("gige", 36, f"backplane={found.capacity}") == pytest.approx(target, abs=error)
    assert found.curve.sel(nodes=36).item() == pytest.approx(target)
    assert found.curve.sel(nodes=4).item() == pytest.approx(planted("gige", 4))


def test_the_planted_loss_of_links_is_solved():
    """With the loss, links of 36 nodes give the target, and those of 4 have lost less of their rate."""
    found = whole_study().contention.scenario(contention.LINK, 0.60)
    for nodes in (4, 36):
        link = SMITH["network"]["gige"]["bandwidth"]["value"] * (1 - found.loss) ** (nodes - 2)
        wanted = planted("gige", nodes, f"bandwidth={link}")
        assert found.curve.sel(nodes=nodes).item() == pytest.approx(wanted)
    assert found.curve.sel(nodes=36).item() == pytest.approx(0.60)


def test_a_target_outside_of_the_sweep_is_not_solved():
    """Nothing is extrapolated: the scenario is None and says what the levels reach."""
    few = {"vary": ["none", "bandwidth=100e6", "bandwidth=90e6"]}
    found = contention.analyse(smith_campaign("hpl_contention", few)).scenario(contention.LINK, 0.50)
    assert found.capacity is found.loss is found.curve is None
    assert f"{100 * planted('gige', 36):.1f} %" in found.reason


def test_failed_levels_are_left_out_of_the_interpolation():
    """A level that failed is bridged by its neighbours."""
    made = contention.analyse(smith_campaign("hpl_contention", LEVELS, failed={(1, "gige", 36, "backplane=1.2e9")}))
    whole = whole_study().contention.scenario(contention.SHARED, 0.50).capacity
    assert made.scenario(contention.SHARED, 0.50).capacity == pytest.approx(whole, rel=1e-3)


def test_leaving_a_level_out_shows_the_interpolations_error():
    """Where time is linear in 1/capacity the error vanishes; where a backplane begins to bind it does not."""
    sweeps = whole_study().contention.sweeps
    assert abs(sweeps[contention.LINK].errors).max() < 1e-9
    errors = abs(sweeps[contention.SHARED].errors).sel(nodes=36)
    assert errors.max() > 0.001 and np.isnan(errors.isel(capacity=[0, -1])).all()


def test_points_a_node_spread_what_is_missing():
    """From 8 to 36 nodes, the slope loses what lies between the ideal and the target."""
    ideal = whole_study().contention.ideal.sel(nodes=36).item()
    assert whole_study().contention.slopes[0.55] * 28 == pytest.approx(ideal - 0.55)


def test_other_rates_are_not_mixed():
    """A sensitivity campaign of another model is refused, with the names of both."""
    other = smith_campaign("hpl_sensitivity")
    described = json.loads(other.attrs["testbed_settings"])
    described["rates"]["strided_s"]["value"] = 1e-9
    other.attrs["testbed_settings"] = json.dumps(described)
    with pytest.raises(FalloffError, match="hpl_paper and hpl_sensitivity .* different rates"):
        paper.analyse(smith_campaign("hpl_paper"), other)


@pytest.mark.parametrize("analysed", [whole_study, study_alone], ids=["whole", "alone"])
def test_section_makes_no_number_up(analysed):
    """With and without the further campaigns every sentence is whole, and no NaN or None is shown."""
    said = section(analysed())
    assert not re.search(r"\b(nan|None)\b", said)
    assert ("no published value exists" in said.lower()) == (analysed is whole_study)
    for limit in ("incast", "TCP's dynamics", "RDMA", "noise of an operating system"):
        assert limit in said


def test_section_with_failed_cases_is_whole():
    """Failed cases are dashes."""
    study = paper.analyse(
        smith_campaign("hpl_paper", failed={(1, "gige", 36), (1, "10gige", 2)}),
        smith_campaign("hpl_sensitivity", failed={(1, "gige", 36, "none")}),
        smith_campaign("hpl_contention", failed={(1, "gige", 36, "none")}),
    )
    assert not re.search(r"\b(nan|None)\b", section(study))
    assert set(figures.draw(study, emulated_study())) == {"paper", "sensitivity", "contention"}


def test_every_rate_stands_with_its_source():
    """The table holds each number of the node and of both networks, and says which are assumed."""
    said = section(study_alone())
    tables = SMITH["rates"], SMITH["network"]["gige"], SMITH["network"]["10gige"]
    described = [entry for table in tables for entry in table.values()]
    rows = [line for line in said.splitlines() if re.match(r"\|.*\(`\w+`\)", line)]
    assert len(rows) == len(described) + 1
    for entry in described:
        assert any(entry["source"] in row for row in rows)


def test_prose_follows_the_data():
    """A curve that goes on falling is not called level."""
    assert "is level from 8 nodes on" in section(study_alone())
    falling = smith_campaign("hpl_paper")
    rates = falling.hpl_rate * (1 - 0.05 * np.log2(falling.nodes / 2).clip(min=0))
    assert "is not level from 8 nodes on" in section(paper.analyse(falling.assign(hpl_rate=rates)))


def test_section_becomes_both_forms(tmp_path):
    """Figures, tables and references are all there, in HTML and in PDF."""
    drawn = figures.draw(whole_study(), emulated_study())
    style.save_all(drawn, tmp_path / "figures")
    known = {
        "paper": facts.collect(whole_study()),
        "scaling": scaling_facts.collect(emulated_study()),
        "published": published_sources(),
    }
    markdown = FRONT + wording.templates().get_template("paper.md.j2").render(known)
    for elsewhere in ("[](#fig:share)", "[](#tbl:smith)"):
        markdown = markdown.replace(elsewhere, "")
    assert to_html(markdown, tmp_path).count("<img") == len(drawn) == 3
    assert to_pdf(markdown, tmp_path, 0).startswith(b"%PDF-")


def test_figure_has_every_case_and_the_published_line():
    """Right: all simulated efficiencies in percent, and the printed line; left: the emulated shares."""
    left, right = figures.draw(study_alone(), emulated_study())["paper"].axes
    heights = np.concatenate([np.asarray(line.get_ydata(), float) for line in right.lines])
    for value in (*100 * study_alone().efficiency.values.ravel(), 80):
        assert np.isclose(heights, value).any()
    assert "paced rate" in left.get_ylabel() and "Rpeak" in right.get_ylabel()


def test_contention_is_labelled_as_scenarios():
    """Every curve but the simulated one is called a scenario, and the figure says that none is published."""
    drawn = figures.draw(whole_study(), emulated_study())["contention"]
    labels = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert labels[0].startswith("no contention") and all(it.startswith("scenario") for it in labels[1:])
    assert "no published value" in drawn.get_suptitle()


def test_todays_cases_are_compared_with_the_stored_ones():
    """Equal rates are counted as such; one that differs is, too, and by how much."""
    few = {"nodes": [2, 4, 6, 8]}
    whole = smith_campaign("hpl_paper")
    run = smith_campaign("hpl_paper", few)
    same = facts.collect(paper.analyse(whole, today=run))["today"]
    assert same == {"ended": run.attrs["ended"], "cases": 8, "same": 8, "largest": 0.0, "most_nodes": 8}
    other = smith_campaign("hpl_paper", few)
    other.hpl_rate[np.flatnonzero((other.nodes == 4) & (other.interconnect == "gige") & (other.runner == "hpl"))] *= 1.1
    known = facts.collect(paper.analyse(whole, today=other))["today"]
    assert known["same"] == 7 and known["largest"] == pytest.approx(0.1)
    said = section(paper.analyse(whole, today=other))
    assert "7 gave the stored rate" in said and "differ by up to 10.00 %" in said
    assert "Today" not in section(study_alone())


def test_finding_follows_the_data():
    """A level curve is said to be level, and missing cases are said to be missing."""
    said = wording.finding("paper", facts.collect(study_alone())).replace("\u00a0", " ")
    assert "10GE goes from" in said and "level within 0.0 percentage points" in said and "simulated evidence" in said
    few = paper.analyse(smith_campaign("hpl_paper", failed={(1, "gige", 36)}))
    assert "cannot be told" in wording.finding("paper", facts.collect(few))
