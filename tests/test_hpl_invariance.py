"""The same efficiency at every scale of time: what is planted comes back, and one that is not the same is named."""

import re

import numpy as np
import pytest
import xarray as xr
from synthetic_scale_model import SHARES, dilated_campaign, scaling_campaign

from analysis import style
from analysis.experiments import hpl_invariance as experiment
from analysis.publish import to_html
from runners.record import FalloffError

FRONT = "---\ntitle: T\nsubtitle: S\nlang: en\ncampaign: C\ndate: D\n---\n\n"


def test_the_share_is_of_the_dilated_nodes():
    """At half the rate of all nodes and links the rate is half, and the share is the planted one."""
    study = experiment.analyse(dilated_campaign(blocks=2))
    rate = study.points.rate.sel(interconnect="gige", nodes=8).isel(block=0)
    np.testing.assert_allclose(rate.sel(dilation=5) / rate.sel(dilation=20), 4)
    for name in ("gige", "10gige"):
        np.testing.assert_allclose(study.shares.ratio.sel(interconnect=name), SHARES[name])
    assert study.reference == 10 and study.margin == 0.02


def test_an_efficiency_that_does_not_change_is_the_same():
    """With runs that scatter by 0.3 % every ratio's 90 % interval lies within 2 %."""
    study = experiment.analyse(dilated_campaign(blocks=4, noise=0.003))
    assert (study.compared.answer == "the same").all() and study.compared.dilation.values.tolist() == [5, 20]
    said = experiment.finding(study).replace("\u00a0", " ")
    assert "does not depend on the scale of time" in said and "4 blocks" in said


def test_what_depends_on_the_dilation_is_named():
    """A machine that costs 4 % at dilation 5, and 1 % less than at 10 at dilation 20."""
    study = experiment.analyse(dilated_campaign(blocks=4, noise=0.001, bias={5: 0.96, 20: 1.01}))
    assert (study.compared.answer.sel(dilation=5) == "lower").all()
    assert (study.compared.answer.sel(dilation=20) == "the same").all()
    np.testing.assert_allclose(study.compared.ratio.sel(dilation=5), 0.96, atol=0.003)
    assert (study.compared.low < study.compared.ratio).all() and (study.compared.ratio < study.compared.high).all()
    said = experiment.finding(study).replace("\u00a0", " ")
    assert "within 2 % at 4 of 8" in said and "GigE on 8 nodes at dilation 5 (lower: 0.96" in said
    assert "dilation 20 (" not in said
    higher = experiment.analyse(dilated_campaign(blocks=4, noise=0.001, bias={20: 1.05}))
    assert (higher.compared.answer.sel(dilation=20) == "higher").all()


def test_the_interval_is_that_of_two_one_sided_tests():
    """Of many campaigns of the same share, the 90 % interval holds 1 in nine of ten."""
    log_ratio = np.random.default_rng(3).normal(0, 0.01, (4, 3000))
    found = experiment._compared(xr.DataArray(log_ratio, dims=("block", "case")), 0.02, "emulated")
    assert 0.88 < float(((found.low <= 1) & (1 <= found.high)).mean()) < 0.92


def test_a_single_block_leaves_all_open():
    """The quick preset has one block: ratios, and no interval."""
    study = experiment.analyse(dilated_campaign(blocks=1))
    assert (study.compared.answer == "open").all() and study.compared.low.isnull().all()
    text = experiment.section(study) + experiment.finding(study)
    assert not re.search(r"\b(nan|None)\b", text)


def test_what_did_not_run_is_a_dash():
    """Without its runs a network's points are unknown, and no number stands for them."""
    failed = {(block, "gige", 8) for block in (1, 2, 3, 4)}
    text = experiment.section(experiment.analyse(dilated_campaign(blocks=4, noise=0.002, failed=failed)))
    assert "| GigE | 8 | 5 | — | — | — | 0 |" in text and not re.search(r"\b(nan|None)\b", text)


def test_a_campaign_of_one_dilation_is_refused():
    """There is nothing to compare."""
    with pytest.raises(FalloffError, match="needs the factor dilation with the testbed's own, 10"):
        experiment.analyse(scaling_campaign(blocks=1))


def test_the_section_becomes_a_page(tmp_path):
    """Figure and table are there; the figure has every mean."""
    study = experiment.analyse(dilated_campaign(blocks=3, noise=0.002))
    drawn = experiment.draw(study)
    left, right = drawn["invariance"].axes
    heights = [np.concatenate([line.get_ydata() for line in axes.lines]) for axes in (left, right)]
    assert np.isin(100 * study.shares.ratio.values, heights[0]).all()
    assert np.isin(100 * study.compared.ratio.values, heights[1]).all()
    style.save_all(drawn, tmp_path / "figures")
    page = to_html(FRONT + experiment.section(study), tmp_path)
    assert page.count("<img") == 1 and page.count("<table") == 1
