"""The paper's own cases, emulated and simulated: planted falls come back and end where they were planted to end."""

import json
from functools import cache

import numpy as np
import pytest
import xarray as xr
from shown import failed, words
from synthetic_scale_model import run
from synthetic_smith import planted, smith_campaign

from analysis.experiments import hpl_paper, hpl_table1
from runners.record import FalloffError

FALL = 0.17  # of GigE against 10GE, from 2 nodes to where it ends
FEW = {"nodes": [2, 4, 6, 8]}  # the quick preset's


def share(end, level=0.9):
    """10GE is level; GigE loses half of FALL from 4 nodes on, and all of it from `end` on."""

    def at(point):
        lost = 0 if point["nodes"] < 4 else FALL / 2 if point["nodes"] < end else FALL
        return level * (1 if point["interconnect"] == "10gige" else 0.94 * (1 - lost))

    return at


@cache
def emulated(end=8, **given):
    return run("hpl_table1", share(end), **{"blocks": 3, "noise": 0.003, **given})


@cache
def paper(end=8):
    return run("hpl_paper", share(end), blocks=1)


@pytest.mark.parametrize(("end", "found"), [(8, 8), (36, None)])
def test_the_fall_ends_where_it_was_planted(end, found):
    """In both scales the end is the first case at which all of the fall is there; at the last case it stays open."""
    study = hpl_table1.analyse(emulated(end), paper(end))
    assert study.end == study.simulated_end == found
    assert ("level beyond" in words(hpl_table1, study)) == bool(found)
    assert ("Where GigE's fall ends is open" in words(hpl_table1, study)) == (found is None)


def test_the_fall_and_the_shares_are_the_planted_ones():
    """The interval holds the planted fall; shares are of F, the constant is the simulated node's."""
    study = hpl_table1.analyse(emulated(), paper())
    low, high = study.fall.interval
    assert low < FALL < high and study.fall.fall == pytest.approx(FALL, abs=0.01)
    np.testing.assert_allclose(study.shares.emulated.sel(interconnect="10gige"), 0.9, rtol=0.01)
    np.testing.assert_allclose(study.shares.simulated.sel(interconnect="10gige"), 0.9)
    assert study.constant == pytest.approx(0.8855, abs=1e-4)
    (fall,) = hpl_table1.findings(study)
    assert fall.primary and fall.answer == "falls off" and "ends there" in fall.statement


def test_the_end_is_found_from_the_most_nodes_downwards():
    """A case in the middle that is off by more than the margin ends the search there, whatever lies before it."""
    values = np.log([[1.0, 1.0, 1.0, 0.9, 1.0, 1.0]])
    ratio = xr.DataArray(values, {"nodes": [2, 4, 6, 8, 10, 12]}, ("block", "nodes"))
    assert hpl_table1.end_of_fall(ratio, 0.05, "simulated") == 10
    assert hpl_table1.end_of_fall(ratio.isel(nodes=slice(0, 4)), 0.05, "simulated") is None
    assert hpl_table1.end_of_fall(ratio.where(ratio.nodes != 8), 0.05, "simulated") == 2


@pytest.mark.parametrize("chance", [{"noise": 0.08}, {"blocks": 1}])
def test_scatter_leaves_the_end_open(chance):
    """Runs that scatter by 8 % cannot show that any case is level; neither can a single block."""
    study = hpl_table1.analyse(emulated(**chance), paper())
    assert study.end is None and "is open" in words(hpl_table1, study)


def test_both_scales_are_compared():
    """The largest difference of the two is said; without the simulation neither its curve nor the line is there."""
    off = hpl_table1.analyse(emulated(noise=0), run("hpl_paper", share(8, level=0.88), blocks=1))
    assert "differ by at most 1.9 points on GigE and 2.0 points on 10GE" in words(hpl_table1, off)
    study = hpl_table1.analyse(emulated())
    (axes,) = hpl_table1.figures(study)["table1"].figure.axes
    assert np.isnan(study.constant) and "differ by" not in words(hpl_table1, study)


def test_planted_efficiencies_come_back():
    """Efficiency is the rate over the described peak; what is planted to stop at 8 nodes is level from there on."""
    study = hpl_paper.analyse(smith_campaign("hpl_paper"))
    for network in ("gige", "10gige"):
        reached = study.efficiency.sel(interconnect=network)
        np.testing.assert_allclose(reached, [planted(network, n) for n in study.nodes])
    contrast, gige, fast = hpl_paper.findings(study)
    ratios = [planted("gige", n) / planted("10gige", n) for n in (2, 36)]
    assert contrast.primary and contrast.answer == "falls off" and contrast.interval is None
    assert contrast.estimate == pytest.approx(1 - ratios[1] / ratios[0])
    assert gige.estimate == pytest.approx(1 - planted("gige", 36) / planted("gige", 2))
    assert fast.answer == "flat"
    assert "no two cases differ by more than 0.0 percentage points" in words(hpl_paper, study)


def test_level_is_said_only_of_what_is_level():
    """A curve that goes on falling is not, and few nodes say nothing of it."""
    falling = smith_campaign("hpl_paper")
    rates = falling.hpl_rate * (1 - 0.05 * np.log2(falling.nodes / 2).clip(min=0))
    assert "is not level beyond 8" in words(
        hpl_paper, hpl_paper.analyse(falling.assign(hpl_rate=rates))
    )
    assert "level" not in words(hpl_paper, hpl_paper.analyse(smith_campaign("hpl_paper", FEW)))


def test_todays_cases_are_compared_with_the_stored_ones():
    """Equal rates are counted as such; one that differs is, too, and by how much."""
    stored, other = smith_campaign("hpl_paper"), smith_campaign("hpl_paper", FEW)
    same = hpl_paper.analyse(stored, today=other)
    assert "8 cases simulated again today gave the stored rate" in words(hpl_paper, same)
    changed = (other.nodes == 4) & (other.interconnect == "gige") & (other.runner == "hpl")
    rates = other.hpl_rate * xr.where(changed, 1.1, 1)
    differing = words(hpl_paper, hpl_paper.analyse(stored, today=other.assign(hpl_rate=rates)))
    assert "Of 8 cases simulated again today 1 differ" in differing and "10.00 %" in differing


def test_other_rates_are_not_mixed():
    """A sensitivity campaign of another model is refused, with the names of both."""
    other = smith_campaign("hpl_sensitivity")
    described = json.loads(other.attrs["testbed_settings"])
    described["rates"]["strided_s"]["value"] = 1e-9
    other.attrs["testbed_settings"] = json.dumps(described)
    with pytest.raises(FalloffError, match="hpl_paper and hpl_sensitivity .* different rates"):
        hpl_paper.analyse(smith_campaign("hpl_paper"), other)


def test_todays_cases_that_failed_are_told():
    """As a failure of the run, also on the first page, and not as nothing."""
    run = failed(smith_campaign("hpl_paper", FEW), "exit code 127")
    study = hpl_paper.analyse(smith_campaign("hpl_paper"), today=run)
    assert "Today's run failed" in words(hpl_paper, study)
    assert "exit code 127" in words(hpl_paper, study)
    assert next(hpl_paper.findings(study)).today["answer"] == "failed"
