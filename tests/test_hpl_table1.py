"""The paper's 15 cases: a fall that ends where it was planted to end, with the blocks that are there."""

import re
from functools import cache

import numpy as np
import pytest
import xarray as xr
from synthetic_scale_model import run

from analysis import style
from analysis.experiments import hpl_table1 as experiment
from analysis.publish import to_html

FRONT = "---\ntitle: T\nsubtitle: S\nlang: en\ncampaign: C\ndate: D\n---\n\n"
FALL = 0.17  # of GigE against 10GE, from 2 nodes to where it ends


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


@cache
def whole():
    return experiment.analyse(emulated(), paper())


@pytest.mark.parametrize("end", [8, 16, 32])
def test_the_fall_ends_where_it_was_planted(end):
    """In both scales the end is the first case at which all of the fall is there."""
    study = experiment.analyse(emulated(end), paper(end))
    assert study.end == study.simulated_end == end


def test_a_fall_up_to_the_most_nodes_has_no_end():
    """The last case is lower than the one before it: nobody knows whether a further one would be, too."""
    study = experiment.analyse(emulated(36), paper(36))
    assert study.end is study.simulated_end is None
    said = experiment.finding(study).replace("\u00a0", " ")
    assert "is open" in said and "from 2 to 36 nodes" in said and "does not end within its cases" in said


def test_the_fall_and_the_shares_are_the_planted_ones():
    """The interval holds the planted fall; shares are of F, and the constant is the simulated node's."""
    study = whole()
    low, high = study.fall.interval
    assert low < FALL < high and study.fall.blocks == 3 and study.fall.fall == pytest.approx(FALL, abs=0.01)
    np.testing.assert_allclose(study.shares.emulated.sel(interconnect="10gige"), 0.9, rtol=0.01)
    np.testing.assert_allclose(study.shares.simulated.sel(interconnect="10gige"), 0.9)
    assert study.constant == pytest.approx(0.8855, abs=1e-4) and study.line == 0.8


def test_the_end_is_found_from_the_most_nodes_downwards():
    """A case in the middle that is off by more than the margin ends the search there, whatever lies before it."""
    values = np.log([[1.0, 1.0, 1.0, 0.9, 1.0, 1.0]])
    ratio = xr.DataArray(values, {"nodes": [2, 4, 6, 8, 10, 12]}, ("block", "nodes"))
    assert experiment.end_of_fall(ratio, 0.05, "simulated") == 10
    assert experiment.end_of_fall(ratio.isel(nodes=slice(0, 4)), 0.05, "simulated") is None
    assert experiment.end_of_fall(ratio.where(ratio.nodes != 8), 0.05, "simulated") == 2


def test_scatter_leaves_the_end_open():
    """Runs that scatter by 8 % cannot show that any case is level; neither can a single block."""
    for dataset in (emulated(noise=0.08), emulated(blocks=1)):
        study = experiment.analyse(dataset, paper())
        assert study.end is None and "is open" in experiment.finding(study)
        assert not re.search(r"\b(nan|None)\b", experiment.section(study))


def test_a_campaign_that_goes_on_is_analysed_with_what_is_there():
    """Without the largest cases, the quick preset's four, and a network that failed in a case."""
    ran = emulated()
    part = experiment.analyse(ran.isel(trial=ran.nodes <= 20), paper())
    assert part.cases.max() == 20 and part.end == whole().end
    quick = experiment.analyse(run("hpl_table1", share(8), blocks=1, preset="quick"), paper())
    assert quick.cases.tolist() == [2, 4, 6, 8]
    gap = experiment.analyse(emulated(failed=frozenset((block, "gige", 36) for block in (1, 2, 3))), paper())
    assert np.isnan(gap.shares.emulated.sel(interconnect="gige", nodes=36)) and gap.end == whole().end
    for study in (part, quick, gap):
        assert not re.search(r"\b(nan|None)\b", experiment.section(study))


def test_the_finding_names_the_end_in_both_scales():
    """A reader learns where it ends, how much is lost until then, and how 10GE does."""
    said = experiment.finding(whole()).replace("\u00a0", " ")
    assert f"fall ends at {whole().end} nodes" in said and "3 blocks" in said
    assert f"at the paper's scale it ends at {whole().simulated_end} nodes" in said
    assert re.search(r"10GE goes from 9\d\.\d|10GE goes from 89\.\d|10GE goes from 90\.\d", said)
    level = run("hpl_table1", lambda at: 0.9, blocks=3, noise=0.003)
    assert "GigE does not fall off against 10GE" in experiment.finding(experiment.analyse(level))


def test_without_the_simulation_there_is_neither_its_curve_nor_the_line():
    """What rests on it is left out."""
    study = experiment.analyse(emulated())
    assert study.constant is None and study.simulated_end is None
    assert "Rpeak" not in experiment.section(study).split("![")[0]
    assert not [line for line in experiment.draw(study)["table1"].axes[0].lines if line.get_gid()]


def test_the_figure_has_every_run_both_curves_and_the_line(tmp_path):
    """All on one axis; the section becomes a page."""
    study = whole()
    drawn = experiment.draw(study)
    heights = np.concatenate([np.ravel(line.get_ydata()) for line in drawn["table1"].axes[0].lines])
    for values in (100 * study.points.share, 100 * study.shares.emulated, 100 * study.shares.simulated):
        assert np.isin(values.values, heights).all()
    assert np.isclose(heights, 100 * 0.8 / study.constant).any()
    style.save_all(drawn, tmp_path / "figures")
    page = to_html(FRONT + experiment.section(study), tmp_path)
    assert page.count("<img") == 1 and page.count("<table") == 1


def test_the_emulating_machine_is_named_where_ranks_wait_for_it():
    """What the machine adds stands in the finding where it is beyond the margin."""
    ran = emulated()
    waits = (0.004 * ran.nodes * ran.hpl_time).expand_dims(node=ran.node).transpose("trial", "node")
    slow = experiment.finding(experiment.analyse(ran.assign(pace_delayed=waits), paper())).replace("\u00a0", " ")
    assert "On 36 nodes a rank waits 14 % of its time for a processor of this machine" in slow
    few = experiment.analyse(ran.assign(pace_delayed=waits / 10), paper())
    assert "a processor of this machine" not in experiment.finding(few)
