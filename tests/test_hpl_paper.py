"""The paper's own cases, emulated and simulated: planted falls come back and end where they were planted to end."""

import json
from functools import cache

import numpy as np
import pytest
import xarray as xr
from executed import executed, stated, words
from shown import failed
from synthetic_hpl_paper import planted, smith_campaign
from synthetic_scale_model import run

from analysis import paths, todays_run
from analysis.derive import at_only_level, points
from analysis.efficiency import beyond_plateau, efficiency
from analysis.subjects import hpl_paper
from runners.record import FalloffError

FALL = 0.17  # of GigE against 10GE, from 2 nodes to where it ends
FEW = {"nodes": [2, 4, 6, 8]}  # the quick preset's
EMULATED = "Emulated, GigE loses rate against 10GE"
SIMULATED = "GigE loses rate against 10GE from 2 to 36"


def share(end, level=0.9):
    """10GE is level; GigE loses half of FALL from 4 nodes on, and all of it from `end` on."""

    def at(point):
        lost = 0 if point["nodes"] < 4 else FALL / 2 if point["nodes"] < end else FALL
        return level * (1 if point["interconnect"] == "10gige" else 0.94 * (1 - lost))

    return at


@cache
def emulated(end=8, **given):
    return run("hpl_paper_emulated", share(end), **{"blocks": 3, "noise": 0.003, **given})


@cache
def paper(end=8):
    return run("hpl_paper_simulated", share(end), blocks=1)


def shown(scaled, simulated, varied=None):
    """The notebook on these campaigns; without `varied` there is no campaign with other numbers of the model."""
    given = {
        "hpl_paper_emulated": scaled,
        "hpl_paper_simulated": simulated,
        "hpl_paper_sensitivity": varied,
    }
    return executed("44", **{name: data for name, data in given.items() if data is not None})


@cache
def ends_at_eight():
    return shown(emulated(), paper())


@pytest.mark.parametrize(("end", "found"), [(8, 8), (36, None)])
def test_the_fall_ends_where_it_was_planted(end, found):
    """In both scales the end is the first case at which all of the fall is there; at the last case it stays open."""
    for dataset in (emulated(end), paper(end)):
        assert hpl_paper.end_of_planned_fall(points(dataset)) == found
    one = hpl_paper.fall_to_its_end(points(emulated(end)))
    assert one.words == "falls off" and f"from 2 to {found or 36} nodes" in one.sentence
    assert ("is open" in one.sentence) == (found is None)


def test_the_fall_and_the_shares_are_the_planted_ones():
    """The interval holds the planted fall; the simulated one is exact; emulation and simulation have the same shares."""
    one, exact = (stated(ends_at_eight(), subject) for subject in (EMULATED, SIMULATED))
    assert one.interval[0] < FALL < one.interval[1] and one.estimate == pytest.approx(
        FALL, abs=0.01
    )
    assert (
        one.primary
        and one.n == 3
        and one.campaign == "hpl_paper_emulated"
        and one.evidence == "emulated"
    )
    assert exact.estimate == pytest.approx(FALL) and exact.interval is None and exact.primary
    names = ends_at_eight().names
    np.testing.assert_allclose(names["paper"].share.sel(interconnect="10gige"), 0.9)
    assert "emulated and simulated rates differ by at most 0." in words(ends_at_eight())


def test_the_end_is_found_from_the_most_nodes_downwards():
    """A case in the middle that is off by more than the margin ends the search there, whatever lies before it."""
    values = np.log([[1.0, 1.0, 1.0, 0.9, 1.0, 1.0]])
    ratio = xr.DataArray(values, {"nodes": [2, 4, 6, 8, 10, 12]}, ("block", "nodes"))
    assert hpl_paper.end_of_fall(ratio, 0.05, "simulated") == 10
    assert hpl_paper.end_of_fall(ratio.isel(nodes=slice(0, 4)), 0.05, "simulated") is None
    assert hpl_paper.end_of_fall(ratio.where(ratio.nodes != 8), 0.05, "simulated") == 2


@pytest.mark.parametrize("chance", [{"noise": 0.08}, {"blocks": 1}])
def test_scatter_leaves_the_end_open(chance):
    """Runs that scatter by 8 % cannot show that any case is level; neither can a single block."""
    one = hpl_paper.fall_to_its_end(points(emulated(**chance)))
    assert "is open" in one.sentence and one.words != "flat"


def test_both_scales_are_drawn():
    """Every emulated run and every simulated case is a mark; the line is the paper's."""
    scaled, simulated = ends_at_eight().figures["table1"].figure.axes
    drawn = np.concatenate([np.asarray(line.get_ydata(), float) for line in scaled.lines])
    assert np.isin(
        np.round(100 * points(emulated()).share.values.ravel(), 6), np.round(drawn, 6)
    ).all()
    drawn = np.concatenate([np.asarray(line.get_ydata(), float) for line in simulated.lines])
    assert drawn[drawn < 78].size == 15 and (drawn == 80.0).any()
    today = points(run("hpl_paper_simulated", share(8, level=0.88), blocks=1)).isel(block=0)
    few = today.sel(nodes=[2, 4])
    *_, panel = hpl_paper.both_scales(points(emulated()), ends_at_eight().names["paper"], 80, few).axes  # fmt: skip
    marks = [line.get_ydata() for line in panel.lines if line.get_label() == "today"]
    np.testing.assert_allclose(marks, 100 * efficiency(few).transpose("interconnect", "nodes"))
    off = points(run("hpl_paper_simulated", share(8, level=0.88), blocks=1)).isel(block=0)
    exact = points(emulated(noise=0))
    assert "at most 1.9 points on GigE and 2.0 points on 10GE" in hpl_paper.apart(exact, off)


def test_planted_efficiencies_come_back():
    """Efficiency is the rate over the described peak; what is planted to stop at 8 nodes is level from there on."""
    made = shown(
        emulated(), smith_campaign("hpl_paper_simulated"), smith_campaign("hpl_paper_sensitivity")
    )
    reached = made.names["reached"]
    for network in ("gige", "10gige"):
        wanted = [planted(network, n) for n in reached.nodes.values]
        np.testing.assert_allclose(reached.sel(interconnect=network), wanted)
    contrast, _, gige, fast = (
        one for one in made.statements if one.campaign == "hpl_paper_simulated"
    )
    ratios = [planted("gige", n) / planted("10gige", n) for n in (2, 36)]
    assert contrast.primary and contrast.answer == "yes" and contrast.interval is None
    assert contrast.estimate == pytest.approx(1 - ratios[1] / ratios[0])
    assert gige.estimate == pytest.approx(1 - planted("gige", 36) / planted("gige", 2))
    assert fast.words == "flat" and set(made.figures) == {"table1", "sensitivity"}
    assert "differ by more than 0.0 points" in words(made)


def test_level_is_said_only_of_what_is_level():
    """A curve that goes on falling is not, and few nodes say nothing of it."""
    falling = smith_campaign("hpl_paper_simulated")
    rates = falling.hpl_rate * (1 - 0.05 * np.log2(falling.nodes / 2).clip(min=0))
    for dataset, said in (
        (falling.assign(hpl_rate=rates), "is not level"),
        (smith_campaign("hpl_paper_simulated", FEW), ""),
    ):
        told = beyond_plateau(at_only_level(points(dataset), "block"), "gige")
        assert (said in told) if said else not told


def test_lost_cases_leave_statements_without_numbers():
    """A lost case on the most nodes leaves the fall over them open; without any case nothing is foretold."""
    some = shown(emulated(), smith_campaign("hpl_paper_simulated", failed={(1, "gige", 36)}))
    assert stated(some, SIMULATED).words == "undecided" and words(some)
    none = shown(
        failed(emulated(), "no library"),
        failed(smith_campaign("hpl_paper_simulated"), "no library"),
    )
    assert {(one.estimate, one.words) for one in none.statements} == {(None, "undecided")}
    assert words(none)


def compared(today):
    """What today's cases say of the stored ones, by subject."""
    (file,) = paths.NOTEBOOKS.glob("44_*.ipynb")
    stored = {
        "hpl_paper_simulated": smith_campaign("hpl_paper_simulated"),
        "hpl_paper_emulated": emulated(),
    }
    return todays_run.compare(file, stored, "hpl_paper_simulated", today)


def test_todays_cases_are_compared_with_the_stored_ones():
    """On the nodes that ran today, a statement is reproduced if its rates are, and not if one is 10 % off."""
    short = {
        one.statement.subject: one.kind
        for one in compared(smith_campaign("hpl_paper_simulated", FEW)).verdicts
    }
    assert short.pop("GigE loses rate against 10GE from 2 to 8 nodes") == "reproduced"
    assert set(short.values()) == {"too short to tell"}
    other = smith_campaign("hpl_paper_simulated")
    changed = (other.nodes == 36) & (other.interconnect == "gige") & (other.runner == "hpl")
    told = compared(other.assign(hpl_rate=other.hpl_rate * xr.where(changed, 1.1, 1)))
    kinds = {one.statement.subject: one.kind for one in told.verdicts}
    assert kinds.pop("GigE loses rate against 10GE from 2 to 8 nodes") == "reproduced"
    assert kinds.pop("10GE loses efficiency from 2 to 36 nodes") == "reproduced"
    assert set(kinds.values()) == {"not reproduced"}


def test_todays_cases_that_failed_are_told():
    """As a failure of the run, and not as nothing."""
    told = compared(failed(smith_campaign("hpl_paper_simulated", FEW), "exit code 127"))
    assert told.as_data()[0]["verdict"] == "failed" and "exit code 127" in told.text


def test_other_rates_are_not_mixed():
    """A sensitivity campaign of another model is refused, with the names of both."""
    other = smith_campaign("hpl_paper_sensitivity")
    described = json.loads(other.attrs["testbed_settings"])
    described["rates"]["strided_s"]["value"] = 1e-9
    other.attrs["testbed_settings"] = json.dumps(described)
    with pytest.raises(
        FalloffError, match="hpl_paper_simulated and hpl_paper_sensitivity .* different rates"
    ):
        shown(emulated(), smith_campaign("hpl_paper_simulated"), other)
