"""The paper's own cases, emulated and simulated: planted falls come back and end where they were
planted to end.
"""

import json
from functools import cache

import numpy as np
import pytest
import xarray as xr
from executed import executed, stated, words
from shown import failed
from synthetic_hpl_paper import planted, smith_campaign
from synthetic_scale_model import run

from analysis import experiment, paths
from analysis.dataset.derive import points
from analysis.statements.efficiency import end_of_fall
from analysis.watch import todays_run
from runners.records.record import FalloffError

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
    """The notebook on these campaigns; without `varied` there is no campaign with other numbers of
    the model.
    """
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
    """The end is the first case at which all of the fall is there; at the last case it stays
    open.
    """
    made = shown(emulated(end), paper(end))
    fall = stated(made, EMULATED)
    assert made.names["end"] == found and fall.words == "falls off"
    assert f"from 2 to {found or 36} nodes" in fall.sentence
    assert ("its fall ends is open" in words(made)) == (found is None)


def test_the_fall_and_the_shares_are_the_planted_ones():
    """The interval holds the planted fall; the simulated one is exact; emulation and simulation
    have the same shares.
    """
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
    """A case in the middle that is off by more than the margin ends the search there, whatever lies
    before it.
    """
    values = np.log([[1.0, 1.0, 1.0, 0.9, 1.0, 1.0]])
    ratio = xr.DataArray(values, {"nodes": [2, 4, 6, 8, 10, 12]}, ("block", "nodes"))
    assert end_of_fall(ratio, 0.05, "simulated") == 10
    assert end_of_fall(ratio.isel(nodes=slice(0, 4)), 0.05, "simulated") is None
    assert end_of_fall(ratio.where(ratio.nodes != 8), 0.05, "simulated") == 2


@pytest.mark.parametrize("chance", [{"noise": 0.08}, {"blocks": 1}])
def test_scatter_leaves_the_end_open(chance):
    """Runs that scatter by 8 % cannot show that any case is level; neither can a single block."""
    made = shown(emulated(**chance), paper())
    assert made.names["end"] is None and stated(made, EMULATED).words != "flat"


def test_both_scales_are_drawn():
    """Every emulated run and every simulated case is a mark; the line is the paper's."""
    scaled, simulated = ends_at_eight().figures["table1"].figure.axes
    drawn = np.concatenate([np.asarray(line.get_ydata(), float) for line in scaled.lines])
    assert np.isin(
        np.round(100 * points(emulated()).share.values.ravel(), 6), np.round(drawn, 6)
    ).all()
    drawn = np.concatenate([np.asarray(line.get_ydata(), float) for line in simulated.lines])
    assert drawn[drawn < 78].size == 15 and (drawn == 80.0).any()
    off = run("hpl_paper_simulated", share(8, level=0.88), blocks=1)
    text = words(shown(emulated(noise=0), off))
    assert "rates differ by at most 2.0 points" in text


def test_todays_cases_are_drawn_beside_the_stored_ones(monkeypatch):
    """A mark for each case that ran, here on 2 and 4 nodes."""
    today = run("hpl_paper_simulated", share(8, level=0.88), blocks=1)
    today = today.isel(trial=np.isin(today.nodes, (2, 4)))
    monkeypatch.setattr(experiment, "run_today", lambda parameters: today)
    monkeypatch.setattr(experiment, "todays_run", lambda *_: None)
    made = shown(emulated(), paper())
    *_, panel = made.figures["table1"].figure.axes
    marks = [line.get_ydata() for line in panel.lines if line.get_label() == "today"]
    wanted = 100 * made.names["now"]
    np.testing.assert_allclose(marks, wanted)
    assert wanted.notnull().sum() == 4


def test_planted_efficiencies_come_back():
    """Efficiency is the rate over the described peak; what is planted to stop at 8 nodes is level
    from there on.
    """
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


def test_what_rdma_brings_is_told():
    """Of the fall the latency's part is planted, and so is the gain, which is larger on a full
    wire."""

    def reached(network, n, vary):
        gain = 1.002 if n < 36 else 1.01
        return planted(network, n) * gain * (1.03 if "bandwidth" in vary else 1)

    made = executed(
        "44",
        hpl_paper_emulated=emulated(),
        hpl_paper_simulated=smith_campaign("hpl_paper_simulated"),
        hpl_paper_rdma=smith_campaign("hpl_paper_rdma", reached=reached),
    )
    (gain,) = (one for one in made.stated if one.name == "slow_with_rdma")
    assert gain.n == 30 and gain.interval == pytest.approx((1.002, 1.01 * 1.03))
    latency = np.log(1.01 / 1.002) / -np.log1p(-stated(made, SIMULATED).estimate)
    assert f"36 nodes {100 * latency:.1f} % is latency" in words(made) and latency > 0.01
    assert "at most 1.0 % faster in the 15 cases, on a full wire as well 4.0 %" in words(made)


def test_lost_cases_leave_statements_without_numbers():
    """A lost case on the most nodes leaves the fall over them open; without any case nothing is
    foretold.
    """
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
    """On the nodes that ran today, a statement is reproduced if its rates are, and not if one is 10
    % off.
    """
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
