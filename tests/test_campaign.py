"""The engine: what is missing is run, what is finished is kept, whatever happens in between."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from campaigns import CAMPAIGN, small_plan, use_echo
from local_testbed import LocalTestbed

import runners.campaign as engine
from runners.journal import Folder
from runners.plan import with_blocks
from runners.record import FalloffError

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def echo(monkeypatch):
    """The engine finds the echo runner in every test here."""
    use_echo(monkeypatch)


def test_a_campaign_runs_to_its_end(tmp_path):
    """Every trial runs once, in order, and the folder says which rule ended it."""
    plan, testbed, folder = small_plan(), LocalTestbed(), Folder(tmp_path / "c")
    assert engine.run(plan, testbed, folder) == "blocks"
    assert testbed.executed == [trial.id for trial in plan.trials()]
    assert folder.finished() == set(testbed.executed)
    assert folder.stopped_by() == "blocks" and engine.is_finished(plan, folder)
    assert folder.plan() == plan


def test_only_what_is_missing_is_run(tmp_path):
    """A lost transcript is measured again; a campaign with more blocks runs the new ones only."""
    plan, folder = small_plan(), Folder(tmp_path / "c")
    engine.run(plan, LocalTestbed(), folder)
    lost = plan.blocks[1][4].id
    (folder.path / "transcripts" / f"{lost}.json").unlink()
    again = LocalTestbed()
    engine.run(with_blocks(plan, CAMPAIGN, 4), again, folder)
    assert again.executed == [lost, *(t.id for t in with_blocks(plan, CAMPAIGN, 4).blocks[3])]
    assert folder.extensions() == 1


def test_another_campaign_does_not_mix(tmp_path):
    """A folder that holds other trials is refused and stays as it was."""
    folder = Folder(tmp_path / "c")
    engine.run(small_plan(), LocalTestbed(), folder)
    before = sorted((file, file.read_bytes()) for file in folder.path.rglob("*") if file.is_file())
    with pytest.raises(FalloffError, match="another version"):
        engine.run(small_plan(seed=8), LocalTestbed(), folder)
    assert before == sorted(
        (file, file.read_bytes()) for file in folder.path.rglob("*") if file.is_file()
    )


@pytest.mark.parametrize(
    ("settings", "status", "reason"),
    [
        ({"say": "nothing", "seconds": "0"}, "unreadable", "'nothing' is not a number"),
        ({"say": "1", "seconds": "5", "timeout_s": 0.1}, "timeout", "was stopped"),
        ({"say": "1", "seconds": "soon"}, "failed", "sh ended with exit code 1: Try"),
    ],
)
def test_a_failing_tool_does_not_stop_the_campaign(tmp_path, settings, status, reason):
    """A tool that hangs, fails or babbles gives a status and a reason, and the campaign goes on."""
    plan = small_plan(
        settings=settings, factors={"interconnect": ["gige"], "nodes": [1]}, levels={}, warm_up=[]
    )
    folder, seen = Folder(tmp_path / "c"), []
    assert engine.run(plan, LocalTestbed(), folder, seen.append) == "blocks"
    outcomes = [e.outcome for e in seen if e.kind == "finished" and e.trial.role == "point"]
    assert [outcome.status for outcome in outcomes] == [status] * 3
    assert all(reason in outcome.reason and not outcome.readings for outcome in outcomes)


def test_asked_for_is_not_what_was_had(tmp_path):
    """A setting that reads back differently makes the trial invalid, with both values in the reason."""
    folder, seen = Folder(tmp_path / "c"), []
    engine.run(
        small_plan(), LocalTestbed(effective={"interconnect": "wet string"}), folder, seen.append
    )
    outcomes = [e.outcome for e in seen if e.kind == "finished"]
    assert {o.status for o in outcomes} == {"invalid"}
    assert any("wet string" in o.reason and "gige was asked for" in o.reason for o in outcomes)


def test_time_budget_ends_at_a_whole_block(tmp_path):
    """With a budget for some of the blocks the campaign ends between blocks and says why."""
    plan = small_plan(
        settings={"say": "3", "seconds": "0.05"}, stopping={"blocks": 50, "time_budget_s": 1.2}
    )
    folder = Folder(tmp_path / "c")
    assert engine.run(plan, LocalTestbed(), folder) == "time budget"
    done = folder.finished()
    complete = [all(t.id in done for t in block) for block in plan.blocks]
    started = [any(t.id in done for t in block) for block in plan.blocks]
    assert complete == started and 1 <= sum(complete) < 50
    assert folder.stopped_by() == "time budget" and engine.is_finished(plan, folder)


def test_a_decision_ends_the_campaign(tmp_path):
    """From the first look on the engine asks after each block, and stops at the first yes; then nothing is left."""
    plan = small_plan(stopping={"blocks": 9, "looks": [2, 4, 9]})
    asked, folder = [], Folder(tmp_path / "c")

    def decided(folder):
        asked.append(len({trial.split("-")[0] for trial in folder.finished()} - {"b000"}))
        return asked[-1] == 4

    assert engine.run(plan, LocalTestbed(), folder, decided=decided) == "decided"
    assert (
        asked == [2, 3, 4] and engine.is_finished(plan, folder) and folder.stopped_by() == "decided"
    )
    assert {t.split("-")[0] for t in folder.finished()} == {f"b{number:03d}" for number in range(5)}
    again = LocalTestbed()
    engine.run(plan, again, folder, decided=lambda folder: True)
    assert again.executed == []


@pytest.mark.parametrize("at_once", [1, 3])
def test_an_interrupt_keeps_what_is_finished(tmp_path, at_once):
    """Ctrl-C in the middle: the campaign counts as interrupted and goes on from there."""
    plan, folder = small_plan(), Folder(tmp_path / "c")

    def interrupt(event):
        if event.kind == "finished" and event.done == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.run(plan, LocalTestbed(at_once=at_once), folder, interrupt)
    assert len(folder.finished()) == 8 and folder.stopped_by() == "interrupted"
    rest = LocalTestbed(at_once=at_once)
    engine.run(plan, rest, folder)
    assert len(rest.executed) == len(plan.trials()) - 8


def test_kill_9_at_random_moments_loses_no_finished_trial(tmp_path):
    """Killed again and again at random, the campaign ends with every trial whole and none run twice."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "import runners, runners.campaign as engine, campaigns, local_testbed\n"
        "from runners.journal import Folder\n"
        "engine.runner_named = lambda name: campaigns.ECHO\n"
        "plan = campaigns.small_plan(stopping={'blocks': 6})\n"
        "print('begins', flush=True)\n"
        "engine.run(plan, local_testbed.LocalTestbed(), Folder(sys.argv[1]), "
        "lambda e: e.kind == 'finished' and print(e.trial.id, flush=True))\n"
    )
    argv = [sys.executable, "-c", script, str(tmp_path / "c"), str(HERE)]
    chance, lines, killed = random.Random(3), [], 0
    for _ in range(10):
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        lines += [child.stdout.readline() for _ in range(chance.randint(1, 5))]
        time.sleep(chance.uniform(0, 0.01))
        child.kill()
        lines += child.stdout.readlines()
        killed += child.wait() == -signal.SIGKILL
    last = subprocess.run(argv, stdout=subprocess.PIPE, text=True)
    told = [word for word in "".join([*lines, last.stdout]).split() if word != "begins"]
    folder, plan = Folder(tmp_path / "c"), small_plan(stopping={"blocks": 6})
    assert killed > 1 and last.returncode == 0
    assert folder.finished() == {trial.id for trial in plan.trials()}
    assert len(told) == len(set(told)), "a trial that was reported as finished ran again"
    assert all(folder.transcript(trial.id).trial == trial for trial in plan.trials())


def test_trials_run_side_by_side_where_a_testbed_can(tmp_path):
    """So many run at a time and never more, and every trial is kept once."""
    plan = small_plan(settings={"say": "3", "seconds": "0.1"}, stopping={"blocks": 1})
    for at_once in (1, 2):
        folder, seen = Folder(tmp_path / str(at_once)), []
        engine.run(plan, LocalTestbed(at_once=at_once), folder, seen.append)
        assert folder.finished() == {trial.id for trial in plan.trials()}
        assert [e.done for e in seen if e.kind == "finished"] == list(
            range(1, len(plan.trials()) + 1)
        )
        ran = [transcript.executions[0] for transcript in folder.transcripts()]
        assert at_once == max(
            sum(0 <= other.start - one.start < one.wall_s for one in ran) for other in ran
        )


def test_a_torn_journal_line_does_not_swallow_the_next(tmp_path):
    """A line cut short by a power loss is skipped; the lines around it stay readable."""
    folder = Folder(tmp_path)
    folder.note("session", digest="x")
    with open(tmp_path / "journal.jsonl", "a") as journal:
        journal.write('{"event": "trial", "id": "b0')
    folder.note("ended", by="blocks")
    assert [note["event"] for note in folder.notes()] == ["session", "ended"]
    assert folder.stopped_by() == "blocks"


def test_a_damaged_transcript_is_named(tmp_path):
    """A transcript that is not whole is refused by name, never read in part."""
    plan, folder = small_plan(), Folder(tmp_path / "c")
    engine.run(plan, LocalTestbed(), folder)
    file = folder.path / "transcripts" / f"{plan.blocks[0][0].id}.json"
    file.write_text(file.read_text()[:-30])
    with pytest.raises(FalloffError, match=plan.blocks[0][0].id):
        list(folder.transcripts())
