"""The same efficiency at every scale of time: what is planted comes back, and one that is not the same is named."""

import re

import numpy as np
import pytest
import xarray as xr
from synthetic_scale_model import SHARES, dilated_campaign, scaling_campaign

from analysis.experiments import hpl_invariance as experiment
from runners.record import FalloffError


def words(study):
    return experiment.finding(study).replace("\u00a0", " ")


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
    assert (
        study.compared.answer == "the same"
    ).all() and study.compared.dilation.values.tolist() == [5, 20]
    assert "does not depend on how much time is slowed down" in words(
        study
    ) and "4 blocks" in words(study)


def test_what_depends_on_the_dilation_is_named():
    """A machine that costs 4 % at dilation 5, and 1 % less than at 10 at dilation 20."""
    study = experiment.analyse(dilated_campaign(blocks=4, noise=0.001, bias={5: 0.96, 20: 1.01}))
    assert (study.compared.answer.sel(dilation=5) == "lower").all()
    assert (study.compared.answer.sel(dilation=20) == "the same").all()
    np.testing.assert_allclose(study.compared.ratio.sel(dilation=5), 0.96, atol=0.003)
    assert (study.compared.low < study.compared.ratio).all() and (
        study.compared.ratio < study.compared.high
    ).all()
    said = words(study)
    assert "4 of 8 comparisons differ by more than 2 %" in said and "open" not in said
    assert re.search(
        r"The largest change is on \S+ with [28] nodes: slowed down 5 instead of 10 times, HPL reaches 9[56]\.\d %",
        said,
    )
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
    text = experiment.dilations_table(study).markdown + words(study)
    assert (
        "8 are open" in text
        and "largest change" not in text
        and not re.search(r"\b(nan|None)\b", text)
    )


def test_what_did_not_run_is_a_dash():
    """Without its runs a network's points are unknown, and no number stands for them."""
    failed = {(block, "gige", 8) for block in (1, 2, 3, 4)}
    table = experiment.dilations_table(
        experiment.analyse(dilated_campaign(blocks=4, noise=0.002, failed=failed))
    )
    assert ("GigE", "8", "5", "—", "—", "—", "0") in table.rows
    assert not re.search(r"\b(nan|None)\b", table.markdown)


def test_a_campaign_of_one_dilation_is_refused():
    """There is nothing to compare."""
    with pytest.raises(FalloffError, match="needs the factor dilation with the testbed's own, 10"):
        experiment.analyse(scaling_campaign(blocks=1))


def test_the_figure_shows_every_block_and_mean():
    """Each block's ratio and each mean is a mark, in percent."""
    study = experiment.analyse(dilated_campaign(blocks=3, noise=0.002))
    axes = experiment.figures(study)["invariance"].figure.axes[0]
    heights = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
    for values in (100 * np.exp(study.log_ratio), 100 * study.compared.ratio):
        assert all(np.isclose(heights, value).any() for value in values.values.ravel())


def test_findings_are_the_comparisons():
    """Each network, node count and other dilation, with its answer and 90 % interval."""
    found = list(experiment.findings(experiment.analyse(dilated_campaign(blocks=4, noise=0.002))))
    assert len(found) == 8 and {it.answer for it in found} == {"the same"}
    assert all(it.interval_kind.startswith("90 %") for it in found)
