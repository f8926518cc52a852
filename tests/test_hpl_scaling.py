"""HPL over nodes: planted falls come back, bad news stands beside the verdicts, and today's run is
judged fairly.
"""

import json
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from executed import executed, stated, text, words
from shown import failed
from synthetic import campaign, sequential_campaign

from analysis import experiment, paths
from analysis.dataset.contrasts import contrasts
from analysis.quoting import as_written
from analysis.subjects import hpl_points
from analysis.watch import todays_run

SHORT = {"blocks": 3, "looks": (3,), "one_sided": 0.04}
FALL = "GigE loses rate against 10GE from 2 to 8 nodes"


def run(dataset):
    """The notebook on a campaign."""
    return executed("40", hpl_scaling=dataset)


@cache
def planted():
    """Nine blocks of the planned campaign: GigE falls by 13 %, 10GE does not."""
    return sequential_campaign(noise=0.003)


@cache
def shown():
    return run(planted())


@cache
def with_a_failure():
    """Four blocks, of which the second lacks GigE's run on 8 nodes."""
    return run(campaign(blocks=4, noise=0.01, failed=[(2, "gige", 8)]))


def test_planted_falls_come_back_in_words_and_as_data():
    """The answer, the size and the interval of each planned statement, in its order; then their
    controls.
    """
    assert re.search(
        (
            r"GigE falls off against 10GE\*\* from 2 to 8 nodes: .* 1[23]\.\d % \(96 % interval.*9 "
            r"blocks"
        ),
        words(shown()),
    )
    planned = [one for one in shown().statements if one.primary and one.quantity == "fall"]
    assert [one.words for one in planned] == ["falls off", "flat", "flat"]
    assert [one.answer for one in planned] == ["yes", "same", "same"]
    assert planned[0].interval[0] < 0.13 < planned[0].interval[1] and len(planned[0].values) == 9
    controls = [one for one in shown().statements if one.subject.endswith("without a network")]
    assert [one.words for one in controls] == ["the same"] * 2


def test_a_statement_that_compares_two_kinds_names_both():
    """What HPL reaches without messages is simulated; every other statement is of one kind."""
    dataset = planted().copy()
    design = json.loads(dataset.attrs["design"])
    design["primary"][1]["networks"] = ["10gige", "without_messages"]
    design["without_messages"] = dict.fromkeys(map(str, design["factors"]["nodes"]), 0.98)
    made = run(dataset.assign_attrs(design=json.dumps(design)))
    kinds = {True: set(), False: set()}
    for one in made.statements:
        kinds["HPL without messages" in one.subject].add(one.evidence)
    assert kinds == {True: {"emulated, simulated"}, False: {"emulated"}}
    assert "emulated and simulated evidence" in words(made)


@pytest.mark.more
def test_where_the_loss_comes_is_said_if_the_runs_tell(monkeypatch):
    """From 8 nodes on the reference's ratio is flat. A later part with half of the loss inside its
    interval says nothing.
    """
    hpl = hpl_points.points(experiment.stored("hpl_scaling"))
    said = "**Most of what GigE loses against 10GE it loses before 8 nodes**; from there to 36 "
    assert hpl_points.where_lost(hpl).startswith(said)
    changed = [
        replace(one, verdict=replace(one.verdict, interval=(0.0, 0.1)))
        if one.statement.start == 8
        else one
        for one in contrasts(hpl)
    ]
    monkeypatch.setattr(hpl_points, "contrasts", lambda points: changed)
    assert hpl_points.where_lost(hpl) == ""


def test_a_gain_has_the_interval_of_the_gain():
    """A fall of -1 % from -2 to -0.5 % is a gain of 1 % from 0.5 to 2 %."""
    gain = re.search(
        r"ratio rises by (\S+) % \(96 % interval (\S+) to (\S+) %\)",
        words(run(sequential_campaign(noise=0.001, falls=(0.13, 0.0, -0.02)))),
    )
    assert 0 < float(gain[2]) < float(gain[1]) < float(gain[3])


def test_a_failed_negative_control_gives_no_verdict():
    """Networks that differ where none is used: no fall is told, and the reason is."""
    refused = run(sequential_campaign(noise=0.003, alone=0.08))
    assert {one.words for one in refused.statements if one.quantity == "fall"} == {"refused"}
    assert "the negative control failed" in words(refused) and "falls off against" not in words(
        refused
    )


def test_open_statements_have_no_numbers():
    """Runs that scatter by 20 % leave the fall open, and so does a single block."""
    wide = run(sequential_campaign(noise=0.2))
    assert "is open" in words(wide) and "the ratio of their rates falls" not in words(wide)
    alone = run(campaign(blocks=1))
    assert {one.words for one in alone.statements if one.quantity == "fall"} == {"undecided"}
    assert "% interval" not in text(alone)


@pytest.mark.more
def test_left_out_runs_stand_beside_the_verdict():
    """How many runs are invalid, how many blocks that leaves, and why."""
    text = words(with_a_failure())
    assert "1 of 48 runs are invalid, and 3 of 4 blocks are judged" in text
    assert "planted fault" in text
    assert "0 of 24 runs are invalid" in words(run(campaign(blocks=2)))


def test_a_link_that_the_machine_limits_is_named():
    """10GE is planted at 9.2 Gbit/s, 98 % of its wire; at 8 Gbit/s the machine limits it."""
    dataset = campaign(blocks=2)
    assert "one link carries" not in words(run(dataset))
    slow = dataset.goodput.where(dataset.interconnect != "10gige", 8e9)
    text = words(run(dataset.assign(goodput=slow)))
    assert "limit 10GE: one link carries 85 %" in text and "GigE: one link" not in text


def compared(today):
    """The verdict of a run of today on each statement, by its subject."""
    (file,) = paths.NOTEBOOKS.glob("40_*.ipynb")
    return todays_run.compare(file, {"hpl_scaling": planted()}, "hpl_scaling", today)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("truth", "verdict"),
    [
        ({"noise": 0.003, "seed": 5}, "reproduced"),
        ({"noise": 0.003, "falls": (0.0, 0.0, 0.0)}, "not reproduced"),
        ({"noise": 0.1}, "too short to tell"),
    ],
)
def test_today_agrees_only_where_it_could_have_disagreed(truth, verdict):
    """The same truth agrees; one that does not fall disagrees; one that scatters is too short to
    say.
    """
    told = compared(sequential_campaign(**SHORT, **truth))
    assert {one.statement.subject: one.kind for one in told.verdicts}[FALL] == verdict
    assert FALL in as_written(told.text).replace("\u00a0", " ")


@pytest.mark.more
def test_today_is_silent_on_what_it_did_not_run():
    """A run on 2 and 8 nodes has no statement on 16."""
    quick = sequential_campaign(noise=0.003, seed=5, **SHORT)
    few = json.loads(quick.attrs["design"])
    few["primary"] = json.loads(planted().attrs["design"])["primary"][:2]
    few["factors"] = {**few["factors"], "nodes": [2, 8]}
    quick = quick.isel(trial=np.isin(quick.nodes, (2, 8)) | (quick.role == "survey").values)
    told = compared(quick.assign_attrs(design=json.dumps(few)))
    kinds = {one.statement.subject: one.kind for one in told.verdicts}
    assert kinds[FALL] == "reproduced"
    others = {kind for subject, kind in kinds.items() if "to 16 nodes" in subject}
    assert others == {"too short to tell"} and "to 16 nodes" not in told.text


@pytest.mark.more
def test_todays_run_that_failed_is_a_result_of_its_own():
    """How many trials failed and why, not that it is too short; where some failed it is judged all
    the same.
    """
    quick = sequential_campaign(noise=0.003, seed=5, **SHORT)
    told = compared(failed(quick, "exit code 1: no library"))
    count = int((quick.role == "point").sum())
    assert "failed**" in told.text and told.as_data()[0]["verdict"] == "failed"
    said = as_written(told.text).replace("\u00a0", " ")
    assert f"{count} of {count} trials gave no reading: exit code 1: no library." in said
    some = compared(failed(quick, "no library", quick.sizes["trial"] - 1))
    assert some.verdicts and "no library" in as_written(some.as_data()[0]["failed"])


def test_the_figures_show_every_run_and_block():
    """Each share and each block's fall is a mark; no curve but a law's is drawn."""
    for made in (shown(), with_a_failure()):
        share, falls = (made.figures[label].figure.axes[0] for label in ("share", "falls"))
        drawn = [line for line in share.lines if len(line.get_xdata())]
        assert sum(line.get_linestyle() != "None" for line in drawn) == len(made.names["best"])
        marks = (
            [line.get_ydata() for line in share.lines],
            [line.get_xdata() for line in falls.lines],
        )
        values = 100 * made.names["efficiency"].values.ravel()
        blocks = [100 * np.array(one.values) for one in made.statements if one.quantity == "fall"]
        for each, wanted in zip(marks, (values[np.isfinite(values)], np.concatenate(blocks))):
            each = np.concatenate([np.asarray(one, float) for one in each])
            assert all(np.isclose(each, value, rtol=1e-9).any() for value in wanted)


def test_a_students_copy_judges_another_pair():
    """A cell added to a copy: another statement, without opening the library."""
    names = shown().names
    from analysis.statements.statement import fall

    one = fall(names["hpl"], "gige", against="10gige", nodes=(2, 8))
    assert one.words == "falls off" and one.subject == stated(shown(), FALL).subject
    assert one.estimate == pytest.approx(stated(shown(), FALL).estimate)
