"""HPL over nodes: planted falls come back, bad news stands beside the verdicts, and today's run is judged fairly."""

import json
import re
from functools import cache

import numpy as np
import pytest
from shown import failed, words
from synthetic import campaign, sequential_campaign

from analysis.exhibit import without_result
from analysis.experiments import hpl_scaling
from analysis.quoting import as_written

SHORT = {"blocks": 3, "looks": (3,), "one_sided": 0.04}


@cache
def planted():
    """Nine blocks of the planned campaign: GigE falls by 13 %, 10GE does not; and a short run of the same truth."""
    quick = sequential_campaign(noise=0.003, seed=5, **SHORT)
    return hpl_scaling.analyse(sequential_campaign(noise=0.003), quick)


@cache
def with_a_failure():
    """Four blocks, of which the second lacks GigE's run on 8 nodes."""
    return hpl_scaling.analyse(campaign(blocks=4, noise=0.01, failed=[(2, "gige", 8)]))


def test_planted_falls_come_back_in_words_and_as_data():
    """The answer, the size and the interval of each planned statement, in its order, with today's; then their controls."""
    text, found = words(hpl_scaling, planted()), list(hpl_scaling.findings(planted()))
    assert re.search(
        r"GigE falls off against 10GE\*\* from 2 to 8 nodes: .* 1[23]\.\d % \(96 % interval.*9 blocks",
        text,
    )
    assert [each.answer for each in found if each.primary] == ["falls off", "flat", "flat"]
    assert found[0].interval[0] < 0.13 < found[0].interval[1]
    assert found[0].today["answer"] == "reproduced" and found[0].today["n"] == 3
    assert [each.answer for each in found if each.quantity == "ratio"] == ["the same"] * 2


def test_a_gain_has_the_interval_of_the_gain():
    """A fall of -1 % from -2 to -0.5 % is a gain of 1 % from 0.5 to 2 %."""
    study = hpl_scaling.analyse(sequential_campaign(noise=0.001, falls=(0.13, 0.0, -0.02)))
    gain = re.search(
        r"ratio rises by (\S+) % \(96 % interval (\S+) to (\S+) %\)", words(hpl_scaling, study)
    )
    assert 0 < float(gain[2]) < float(gain[1]) < float(gain[3])


def test_a_failed_negative_control_gives_no_verdict():
    """Networks that differ where none is used: the finding begins with that, and no fall is told."""
    study = hpl_scaling.analyse(sequential_campaign(noise=0.003, alone=0.08))
    assert {contrast.verdict.answer for contrast in study.contrasts} == {"refused"}
    assert words(hpl_scaling, study).startswith(
        "**No verdict is given"
    ) and "falls off" not in words(hpl_scaling, study)


def test_open_statements_have_no_numbers():
    """Runs that scatter by 20 % leave the fall open, and so does a single block."""
    study = hpl_scaling.analyse(sequential_campaign(noise=0.2))
    assert "is open" in words(hpl_scaling, study) and not re.search(
        "ratio|rates", words(hpl_scaling, study)
    )
    alone = hpl_scaling.analyse(campaign(blocks=1))
    assert {contrast.verdict.answer for contrast in alone.contrasts} == {"undecided"}
    assert " % interval" not in words(hpl_scaling, alone)


def test_left_out_runs_stand_beside_the_verdict():
    """How many runs are invalid, how many blocks that leaves, and by how much every valid run changes a fall."""
    text = words(hpl_scaling, with_a_failure())
    assert "1 of 48 runs is invalid. " in text and "verdicts rest on 3 of the 4 blocks" in text
    assert re.search(r"no fall changes by more than \d\.\d percentage points", text)
    assert "planted fault" in without_result(with_a_failure().dataset).body
    whole = hpl_scaling.analyse(campaign(blocks=2))
    assert "invalid" not in words(hpl_scaling, whole) and without_result(whole.dataset) is None


def test_a_link_that_the_machine_limits_is_named():
    """10GE is planted at 9.2 Gbit/s, 98 % of its wire; at 8 Gbit/s the machine limits it."""
    dataset = campaign(blocks=2)
    assert "The machine limits" not in words(hpl_scaling, hpl_scaling.analyse(dataset))
    slow = dataset.goodput.where(dataset.interconnect != "10gige", 8e9)
    text = words(hpl_scaling, hpl_scaling.analyse(dataset.assign(goodput=slow)))
    assert "The machine limits 10GE: one link carries 85 %" in text and "GigE: one link" not in text


@pytest.mark.parametrize(
    ("truth", "answer"),
    [
        ({"noise": 0.003, "seed": 5}, "agrees** on"),
        ({"noise": 0.003, "falls": (0.0, 0.0, 0.0)}, "disagrees** on"),
        ({"noise": 0.1}, "is too short to judge"),
    ],
)
def test_today_agrees_only_where_it_could_have_disagreed(truth, answer):
    """The same truth agrees; one that does not fall disagrees; one that scatters is too short to say."""
    study = hpl_scaling.analyse(planted().dataset, sequential_campaign(**SHORT, **truth))
    assert f"Today's run {answer} GigE / 10GE from 2 to 8 nodes" in words(hpl_scaling, study)


def test_today_says_what_it_did_not_run():
    """A run on 2 and 8 nodes has no statement on 16."""
    design = json.loads(planted().dataset.attrs["design"])
    quick = sequential_campaign(noise=0.003, seed=5, **SHORT)
    few = {**json.loads(quick.attrs["design"]), "primary": design["primary"][:2]}
    few["factors"] = {**few["factors"], "nodes": [2, 8]}
    quick = quick.isel(trial=np.isin(quick.nodes, (2, 8)) | (quick.role == "survey").values)
    study = hpl_scaling.analyse(planted().dataset, quick.assign_attrs(design=json.dumps(few)))
    assert "It has no runs for GigE / 10GE from 8 to 16 nodes." in words(hpl_scaling, study)


def test_todays_run_that_failed_is_a_result_of_its_own():
    """How many trials failed and why, not that it is too short; where some failed it is judged all the same."""
    run = sequential_campaign(noise=0.003, seed=5, **SHORT)
    study = hpl_scaling.analyse(planted().dataset, failed(run, "exit code 1: no library"))
    told = words(hpl_scaling, study)
    assert "Today's run failed" in told and "too short" not in told
    count = int((run.role == "point").sum())
    assert f"{count} of {count} trials gave no reading: exit code 1: no library." in as_written(
        told
    )
    today = next(hpl_scaling.findings(study)).today
    assert today["answer"] == "failed" and "no library" in today["failed"]
    some = hpl_scaling.analyse(planted().dataset, failed(run, "no library", run.sizes["trial"] - 1))
    first = next(hpl_scaling.findings(some)).today
    assert first["answer"] != "failed" and "no library" in first["failed"]
    assert "Of today's run" in words(hpl_scaling, some)


def test_the_figures_show_every_run_and_block():
    """Each share and each block's fall is a mark; no curve but a law's is drawn; today's mean is a mark where there is one."""
    for study in (planted(), with_a_failure()):
        share, falls = (exhibit.figure.axes[0] for exhibit in hpl_scaling.figures(study).values())
        drawn = [line for line in share.lines if len(line.get_xdata())]
        assert sum(line.get_linestyle() != "None" for line in drawn) == len(study.laws)
        shown = (
            [line.get_ydata() for line in share.lines],
            [line.get_xdata() for line in falls.lines],
        )
        values = 100 * study.points.share.values.ravel()
        blocks = [-100 * np.expm1(each.differences.dropna("block")) for each in study.contrasts]
        for marks, wanted in zip(shown, (values[np.isfinite(values)], np.concatenate(blocks))):
            marks = np.concatenate([np.asarray(each, float) for each in marks])
            assert all(np.isclose(marks, value, rtol=1e-9).any() for value in wanted)
        labels = [line.get_label() for line in falls.lines]
        assert labels.count("today") == len(study.today)
