"""The paper's 15 cases: a fall that ends where it was planted to end, with the blocks that are there."""

import re
from functools import cache

import numpy as np
import pytest
import xarray as xr
from shown import heights, text
from synthetic_scale_model import run

from analysis.experiments import hpl_table1

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
    return hpl_table1.analyse(emulated(), paper())


def said(study):
    tables = hpl_table1.falls_table, hpl_table1.shares_table, hpl_table1.waiting_table
    shown = *hpl_table1.figures(study).values(), *(table(study) for table in tables)
    return text(hpl_table1.finding(study), *shown)


@pytest.mark.parametrize("end", [8, 16, 32])
def test_the_fall_ends_where_it_was_planted(end):
    """In both scales the end is the first case at which all of the fall is there."""
    study = hpl_table1.analyse(emulated(end), paper(end))
    assert study.end == study.simulated_end == end


def test_a_fall_up_to_the_most_nodes_has_no_end():
    """The last case is lower than the one before it: nobody knows whether a further one would be, too."""
    study = hpl_table1.analyse(emulated(36), paper(36))
    assert study.end is study.simulated_end is None
    words = said(study)
    assert (
        "is open" in words
        and "from 2 to 36 nodes" in words
        and "does not end within the cases" in words
    )


def test_the_fall_and_the_shares_are_the_planted_ones():
    """The interval holds the planted fall; shares are of F, and the constant is the simulated node's."""
    study = whole()
    low, high = study.fall.interval
    assert (
        low < FALL < high
        and study.fall.blocks == 3
        and study.fall.fall == pytest.approx(FALL, abs=0.01)
    )
    np.testing.assert_allclose(study.shares.emulated.sel(interconnect="10gige"), 0.9, rtol=0.01)
    np.testing.assert_allclose(study.shares.simulated.sel(interconnect="10gige"), 0.9)
    assert study.constant == pytest.approx(0.8855, abs=1e-4) and study.line == 0.8


def test_the_end_is_found_from_the_most_nodes_downwards():
    """A case in the middle that is off by more than the margin ends the search there, whatever lies before it."""
    values = np.log([[1.0, 1.0, 1.0, 0.9, 1.0, 1.0]])
    ratio = xr.DataArray(values, {"nodes": [2, 4, 6, 8, 10, 12]}, ("block", "nodes"))
    assert hpl_table1.end_of_fall(ratio, 0.05, "simulated") == 10
    assert hpl_table1.end_of_fall(ratio.isel(nodes=slice(0, 4)), 0.05, "simulated") is None
    assert hpl_table1.end_of_fall(ratio.where(ratio.nodes != 8), 0.05, "simulated") == 2


def test_scatter_leaves_the_end_open():
    """Runs that scatter by 8 % cannot show that any case is level; neither can a single block."""
    for dataset in (emulated(noise=0.08), emulated(blocks=1)):
        study = hpl_table1.analyse(dataset, paper())
        assert study.end is None and "is open" in said(study)
        assert not re.search(r"\b(nan|None)\b", said(study))
    assert "interval" not in hpl_table1.finding(hpl_table1.analyse(emulated(blocks=1)))


def test_a_campaign_that_goes_on_is_analysed_with_what_is_there():
    """Without the largest cases, the quick preset's four, and a network that failed in a case."""
    ran = emulated()
    part = hpl_table1.analyse(ran.isel(trial=ran.nodes <= 20), paper())
    assert part.cases.max() == 20 and part.end == whole().end
    quick = hpl_table1.analyse(run("hpl_table1", share(8), blocks=1, preset="quick"), paper())
    assert quick.cases.tolist() == [2, 4, 6, 8]
    gap = hpl_table1.analyse(
        emulated(failed=frozenset((block, "gige", 36) for block in (1, 2, 3))), paper()
    )
    assert (
        np.isnan(gap.shares.emulated.sel(interconnect="gige", nodes=36)) and gap.end == whole().end
    )
    for study in (part, quick, gap):
        assert not re.search(r"\b(nan|None)\b", said(study))


def test_the_finding_names_the_end_in_both_scales():
    """A reader learns where it ends, how much is lost until then, and how 10GE does."""
    words = said(whole())
    assert "GigE loses 1" in words and f"from 2 to {whole().end} nodes and is level beyond" in words
    assert "3 blocks, emulated evidence" in words
    assert f"at the paper's own scale, the fall ends at {whole().simulated_end} nodes" in words
    assert re.search(
        r"10GE itself goes from (89|90)\.\d to (89|90)\.\d % of what its nodes compute", words
    )
    level = run("hpl_table1", lambda at: 0.9, blocks=3, noise=0.003)
    assert "GigE does not fall off against 10GE" in said(hpl_table1.analyse(level))
    (fall,) = hpl_table1.findings(whole())
    assert (
        fall.primary
        and fall.answer == "falls off"
        and f"ends at {whole().end} nodes" in fall.statement
    )


def test_both_scales_are_compared():
    """The largest difference of the two is said, and the falls of both stand below each other."""
    off = hpl_table1.analyse(emulated(noise=0), run("hpl_paper", share(8, level=0.88), blocks=1))
    assert "differ by at most 1.9 points on GigE and 2.0 points on 10GE" in said(off)
    columns, rows = hpl_table1.falls_table(off).columns, hpl_table1.falls_table(off).rows
    assert [row[:2] for row in rows] == [
        (network, evidence)
        for network in ("GigE", "10GE", "GigE / 10GE")
        for evidence in ("emulated", "simulated")
    ]
    at = columns.index("Lost, 2 to 8 nodes")
    assert (
        rows[0][at].startswith("17.0")
        and rows[1][at].startswith("17.0")
        and rows[3][at].startswith("0.0")
    )


def test_the_emulating_machine_is_blamed_where_processes_wait_for_it():
    """What the machine adds stands in the finding where it is beyond the margin, and in a table everywhere."""
    ran = emulated()
    waits = (0.004 * ran.nodes * ran.hpl_time).expand_dims(node=ran.node).transpose("trial", "node")
    slow = hpl_table1.analyse(ran.assign(pace_delayed=waits), paper())
    assert "On 36 nodes a process waits 14 % of its time for a processor" in said(slow)
    assert hpl_table1.waiting_table(slow).rows[-1] == ("36", "14.4", "14.4")
    few = hpl_table1.analyse(ran.assign(pace_delayed=waits / 10), paper())
    assert "a processor of this machine" not in hpl_table1.finding(few)


def test_without_the_simulation_there_is_neither_its_curve_nor_the_line():
    """What rests on it is left out."""
    study = hpl_table1.analyse(emulated())
    assert study.constant is None and study.simulated_end is None
    exhibit = hpl_table1.figures(study)["table1"]
    assert "simulated" not in said(study) and not exhibit.figure.axes[0].child_axes
    labels = [label.get_text() for label in exhibit.figure.legends[0].get_texts()]
    assert labels == ["GigE, emulated", "10GE, emulated"]


def test_the_figure_has_every_run_both_curves_and_the_line():
    """All on one axis."""
    study = whole()
    marks = heights(hpl_table1.figures(study)["table1"])
    for values in (study.points.share, study.shares.emulated, study.shares.simulated):
        assert np.isin(100 * values.values, marks).all()
    assert np.isclose(marks, 100 * 0.8 / study.constant).any()
