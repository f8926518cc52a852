"""Emulated points beside simulated ones: planted errors and falls come back, and gaps are said."""

import re
from functools import cache

import numpy as np
import pytest
import xarray as xr
from synthetic import campaign
from synthetic_simulations import twin_campaign, twin_size_campaign
from synthetic_studies import size_campaign

from analysis import style, wording
from analysis.facts import agreement as facts
from analysis.figures import agreement as figures
from analysis.inference.over_blocks import summary
from analysis.publish import to_html
from analysis.studies import agreement, scaling, size
from runners.record import FalloffError

SHARE = 0.7
FRONT = "---\ntitle: T\nsubtitle: S\nlang: en\ncampaign: C\ndate: D\n---\n\n"


@cache
def emulated_study():
    """Six blocks with scatter."""
    return scaling.analyse(campaign(blocks=6, noise=0.01, surveyed=False))


@cache
def exact_study():
    """Two blocks without scatter."""
    return scaling.analyse(campaign(blocks=2, noise=0, surveyed=False))


@cache
def size_study():
    """HPL over the order of the matrix, three blocks."""
    return size.analyse(size_campaign(blocks=3, noise=0.01))


@pytest.fixture(scope="module")
def whole():
    """Both campaigns with their twins; the twin's rates are 3 % high."""
    twin_size = twin_size_campaign(SHARE, size_study().points.N.values.tolist())
    return agreement.analyse(emulated_study(), twin_campaign(off=1.03), size_study(), twin_size)


def section(study):
    """The section's Markdown, hard spaces as spaces."""
    template = wording.templates().get_template("agreement.md.j2")
    return template.render(agreement=facts.collect(study)).replace("\u00a0", " ")


def test_a_planted_error_comes_back():
    """A model that is 4 % high is 4 % high at every point, and its ratio of two networks is right."""
    study = agreement.analyse(exact_study(), twin_campaign(off=1.04))
    np.testing.assert_allclose(study.shares.error, 0.04, atol=0.005)
    np.testing.assert_allclose(study.ratios.error, 0, atol=1e-9)


def test_the_errors_interval_is_the_emulated_one(whole):
    """The error's interval holds 0 exactly where the emulated interval holds the simulated value."""
    for table in (whole.shares, whole.ratios, whole.sizes):
        inside = (table.low <= table.simulated) & (table.simulated <= table.high)
        assert (inside == ((table.error_low <= 0) & (0 <= table.error_high))).all()
        assert (table.error_low < table.error).all() and (table.error < table.error_high).all()


def test_intervals_hold_a_true_model():
    """Of many emulated points, the 95 % intervals of a true model's error miss 0 as often as they say."""
    shares = xr.DataArray(np.random.default_rng(7).normal(0.8, 0.04, (6, 2000)), dims=("block", "case"))
    simulated = xr.DataArray(np.full(2000, 0.8), dims="case")
    found = agreement.compared(summary(shares).rename(mean="emulated"), simulated)
    inside = (found.error_low <= 0) & (0 <= found.error_high)
    assert 0.93 < float(inside.mean()) < 0.97


def test_an_emulated_interval_that_reaches_zero_bounds_no_error():
    """Where the emulated share may be nothing, the error may be anything: it has no upper end."""
    shares = xr.DataArray([[0.1, 0.7], [0.9, 0.8]], dims=("block", "case"))
    emulated = summary(shares).rename(mean="emulated")
    found = agreement.compared(emulated, xr.DataArray([0.5, 0.75], dims="case"))
    assert emulated.low[0] < 0 and np.isnan(found.error_high[0]) and found.error[0] == 0
    assert found.error_high[1] > 0


def test_the_grids_part_of_a_fall_is_the_planted_one():
    """Of a planted fall of 13 % on one row and 10 % on Table 1's grid, 3 points are the grid's."""
    known = facts.collect(agreement.analyse(emulated_study(), twin_campaign()))
    assert [fall["depth"] for fall in known["falls"] if fall["as_emulated"]] == [1]
    for fall in known["falls"]:
        assert fall["row"] == pytest.approx(0.13) and fall["table1"] == pytest.approx(0.10)
        assert fall["grids_part"] == pytest.approx(0.03 / 0.13)
    assert known["fall_inside"] is True
    steep = agreement.analyse(emulated_study(), twin_campaign(falls={"row": 0.5, "table1": 0.1}))
    assert facts.collect(steep)["fall_inside"] is False


def test_what_does_not_fall_has_no_part():
    """Without a fall on one row, no part of it is the grid's."""
    rising = twin_campaign(falls={"row": -0.02, "table1": 0.0})
    known = facts.collect(agreement.analyse(emulated_study(), rising))
    assert [fall["grids_part"] for fall in known["falls"]] == [None, None]


def test_points_are_compared_at_the_emulated_look_ahead():
    """The twin without look-ahead is 10 % slower, but its emulated counterpart was not run without it."""
    study = agreement.analyse(exact_study(), twin_campaign())
    assert study.depth == 1
    np.testing.assert_allclose(study.shares.error, 0, atol=0.005)


def test_sizes_stand_beside_each_other(whole):
    """The simulated share at every N is the planted one."""
    np.testing.assert_allclose(whole.sizes.simulated, SHARE)
    np.testing.assert_allclose(whole.sizes.emulated, size_study().shares.ratio)


def test_a_missing_simulation_is_unknown_and_named_by_a_dash():
    """A point that was not simulated has no error and is neither inside nor outside."""
    study = agreement.analyse(emulated_study(), twin_campaign(failed={(1, "gige", 8, "row", 1)}))
    known = facts.collect(study)
    lost = [point for point in known["points"] if point["simulated"] is None]
    assert [(point["network"], point["nodes"]) for point in lost] == [("GigE", 8)]
    assert lost[0]["error"] is lost[0]["inside"] is None and known["summary"]["points"] == 11
    assert known["falls"][1]["row"] is None
    assert not re.search(r"\b(nan|None)\b", section(study))


def test_one_emulated_block_has_errors_without_intervals():
    """A single block gives an error, and nobody knows whether it is inside."""
    study = agreement.analyse(scaling.analyse(campaign(blocks=1, surveyed=False)), twin_campaign())
    known = facts.collect(study)
    assert all(point["error"] is not None and point["inside"] is None for point in known["points"])
    assert not re.search(r"\b(nan|None)\b", section(study))


def test_several_simulated_blocks_are_refused():
    """A simulation repeats itself; a dataset with two blocks is none."""
    with pytest.raises(FalloffError, match="single level of block"):
        agreement.analyse(emulated_study(), campaign(blocks=2, surveyed=False))


def test_the_figures_show_every_simulated_point(whole):
    """A network's panel has its simulated shares; panels of different evidence have the same ordinate."""
    drawn = figures.draw(whole)
    for axes, interconnect in zip(drawn["agreement"].axes, whole.shares.interconnect.values):
        marks = np.concatenate([line.get_ydata() for line in axes.lines if line.get_marker() == "x"])
        assert np.isin(100 * whole.shares.simulated.sel(interconnect=interconnect), marks).all()
    emulated, simulated = drawn["size_agreement"].axes
    assert emulated.get_ylim() == simulated.get_ylim()


def test_the_section_becomes_a_page(whole, tmp_path):
    """Figures, tables and references are all there; without the size campaigns, theirs are not."""
    style.save_all(figures.draw(whole), tmp_path / "figures")
    page = to_html(FRONT + section(whole), tmp_path)
    assert page.count("<img") == 2 and page.count("<table") == 4
    alone = agreement.analyse(emulated_study(), twin_campaign())
    assert set(figures.draw(alone)) == {"agreement"} and "size_agreement" not in section(alone)


def test_phases_stand_beside_each_other(whole):
    """Planted parts of the run time come back, the update without its row swaps; without timers there is no table."""
    first = facts.collect(whole)["phases"][0]
    assert first["nodes"] == 1
    update, swaps = (next(p for p in first["phases"] if p["phase"] == name) for name in ("update", "row swap"))
    assert update["emulated"] / swaps["emulated"] == pytest.approx(8) and swaps["interval"] is not None
    silent = campaign(blocks=2, noise=0, surveyed=False)
    silent["hpl_laswp_time"] = silent.hpl_laswp_time * np.nan
    untimed = agreement.analyse(scaling.analyse(silent), twin_campaign(off=1.03))
    assert facts.collect(untimed)["phases"] == [] and "timers" not in section(untimed)
