"""The engine: what is missing is run, what is finished is kept, whatever happens in between."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from campaigns import CAMPAIGN, small_plan, use_echo
from local_testbed import LocalTestbed

from analysis.descriptions.campaigns import checked
from analysis.descriptions.resolution import with_blocks
from runners.engine import campaign as engine
from runners.records.journal import Folder
from runners.records.record import Execution, FalloffError, Transcript, Trial, judge

HERE = Path(__file__).parent / "support"


@pytest.fixture(autouse=True)
def echo(monkeypatch):
    """The engine finds the echo runner in every test here, and lets trials side by side begin at
    once.
    """
    use_echo(monkeypatch)
    monkeypatch.setattr(engine, "_APART_S", 0.0)


@pytest.fixture
def folder(tmp_path):
    """A campaign's folder that is not there yet."""
    return Folder(tmp_path / "c")


def ids(*parts):
    """The ids of the trials of a preamble and blocks, in order."""
    return [trial.id for part in parts for trial in part]


def test_only_what_is_missing_is_run(folder):
    """All trials in order; then a lost transcript, and the blocks that a longer campaign has
    more.
    """
    plan, first, again = small_plan(), LocalTestbed(), LocalTestbed()
    assert engine.run(plan, first, folder) == "blocks"
    assert first.executed == ids(plan.preamble, *plan.blocks) and folder.plan() == plan
    assert folder.stopped_by() == "blocks" and engine.is_finished(plan, folder)
    lost, longer = plan.blocks[1][4].id, with_blocks(plan, checked(CAMPAIGN), 4)
    (folder.path / "transcripts" / f"{lost}.json").unlink()
    engine.run(longer, again, folder)
    assert again.executed == [lost, *ids(longer.blocks[3])]


def test_another_campaign_does_not_mix(folder):
    """A folder that holds other trials is refused and stays as it was."""
    engine.run(small_plan(), LocalTestbed(), folder)

    def content():
        return {file: file.read_bytes() for file in folder.path.rglob("*") if file.is_file()}

    before = content()
    with pytest.raises(FalloffError, match="another version"):
        engine.run(small_plan(seed=8), LocalTestbed(), folder)
    assert before == content()


@pytest.mark.parametrize(
    ("settings", "effective", "status", "reason"),
    [
        ({"say": "nothing"}, "gige", "unreadable", "'nothing' is not a number"),
        ({"seconds": "5", "timeout_s": 0.1}, "gige", "timeout", "was stopped"),
        ({"seconds": "soon"}, "gige", "failed", "sh ended with exit code 1: Try"),
        ({}, "wet string", "invalid", "interconnect is wet string, gige was asked for"),
    ],
)
def test_a_failing_tool_does_not_stop_the_campaign(folder, settings, effective, status, reason):
    """A tool that hangs, fails, babbles or had another network gives a status and a reason, and the
    campaign goes on.
    """
    plan = small_plan(
        settings={"say": "1", "seconds": "0", **settings},
        factors={"interconnect": ["gige"], "nodes": [1]},
        levels={},
        warm_up=[],
        design={},
    )
    seen, testbed = [], LocalTestbed(effective={"interconnect": effective})
    assert engine.run(plan, testbed, folder, seen.append) == "blocks"
    outcomes = [event.outcome for event in seen if event.kind == "finished"]
    assert [outcome.status for outcome in outcomes] == [status] * 3
    assert all(reason in outcome.reason and not outcome.readings for outcome in outcomes)


def test_time_budget_ends_at_a_whole_block(folder):
    """With a budget for some of the blocks the campaign ends between blocks and says why."""
    settings, stopping = {"say": "3", "seconds": "0.05"}, {"blocks": 50, "time_budget_s": 1.2}
    plan = small_plan(settings=settings, stopping=stopping)
    assert engine.run(plan, LocalTestbed(), folder) == "time budget"
    done = folder.finished()
    complete = [all(t.id in done for t in block) for block in plan.blocks]
    started = [any(t.id in done for t in block) for block in plan.blocks]
    assert complete == started and 1 <= sum(complete) < 50
    assert folder.stopped_by() == "time budget" and engine.is_finished(plan, folder)


def test_a_decision_ends_the_campaign(folder):
    """From the first look on the engine asks after each block, and stops at the first yes; then
    nothing is left.
    """
    plan, asked = small_plan(stopping={"blocks": 9, "looks": [2, 4, 9]}), []

    def decided(folder):
        asked.append(len({trial.split("-")[0] for trial in folder.finished()} - {"b000"}))
        return asked[-1] == 4

    assert engine.run(plan, LocalTestbed(), folder, decided=decided) == "decided"
    assert asked == [2, 3, 4] and folder.stopped_by() == "decided"
    assert engine.is_finished(plan, folder)
    assert folder.finished() == {*ids(plan.preamble, *plan.blocks[:4])}
    again = LocalTestbed()
    engine.run(plan, again, folder, decided=lambda folder: True)
    assert again.executed == []


@pytest.mark.parametrize("at_once", [1, 3])
def test_an_interrupt_keeps_what_is_finished(folder, at_once):
    """Ctrl-C in the middle: the campaign counts as interrupted and goes on from there."""
    plan = small_plan()

    def interrupt(event):
        if event.kind == "finished" and event.done == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.run(plan, LocalTestbed(at_once=at_once), folder, interrupt)
    assert len(folder.finished()) == 8 and folder.stopped_by() == "interrupted"
    rest = LocalTestbed(at_once=at_once)
    engine.run(plan, rest, folder)
    assert len(rest.executed) == len(plan.trials()) - 8


SCRIPT = """
import sys; sys.path.insert(0, sys.argv[2])
import campaigns, local_testbed, runners.engine.campaign as engine
from runners.records.journal import Folder
engine.tool_named = lambda name: campaigns.ECHO
plan, folder = campaigns.small_plan(stopping={"blocks": 6}), Folder(sys.argv[1])
"""
KILLED = """
print("begins", flush=True)
engine.run(plan, local_testbed.LocalTestbed(), folder,
           lambda e: e.kind == "finished" and print(e.trial.id, flush=True))
"""


def test_kill_9_at_random_moments_loses_no_finished_trial(folder):
    """Killed again and again at random, the campaign ends with every trial whole and none run
    twice.
    """
    argv = [sys.executable, "-c", SCRIPT + KILLED, str(folder.path), str(HERE)]
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
    plan = small_plan(stopping={"blocks": 6})
    assert killed > 1 and last.returncode == 0
    assert folder.finished() == {trial.id for trial in plan.trials()}
    assert len(told) == len(set(told)), "a trial that was reported as finished ran again"
    assert {one.trial.id: one.trial for one in folder.transcripts()} == {
        t.id: t for t in plan.trials()
    }


# On a small file system of its own: fill it, look at what is there, make room, go on.
FULL = """
import errno, json
from pathlib import Path
ballast = Path(sys.argv[1]).with_name("ballast")
testbed, again = local_testbed.LocalTestbed(), local_testbed.LocalTestbed()
ballast.write_bytes(bytes(int(sys.argv[3])))
try:
    engine.run(plan, testbed, folder)
except OSError as error:
    parts = list(folder.path.rglob("*.part"))
    said = [errno.errorcode[error.errno], str(error.filename), len(parts)]
kept = [transcript.trial.id for transcript in folder.transcripts()]
ballast.unlink()
engine.run(plan, again, folder)
print(json.dumps([said, testbed.executed, kept, again.executed]))
"""


@pytest.mark.parametrize("ballast", [760_000, 785_000])
def test_a_full_disk_costs_only_the_trial_that_found_no_room(folder, ballast):
    """A real full file system: every transcript is whole, and with room the rest is run."""
    small = 'mount -t tmpfs -o size=800k tmpfs "$1" && shift && exec "$@"'
    python = [sys.executable, "-c", SCRIPT + FULL, str(folder.path), str(HERE), str(ballast)]
    words = ["sh", "-c", small, "sh", str(folder.path.parent), *python]
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", *words], capture_output=True, text=True
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip("this kernel gives no namespaces")
    (code, file, parts), begun, kept, again = json.loads(done.stdout)
    assert code == "ENOSPC" and Path(file).is_relative_to(folder.path) and parts == 0
    assert kept and kept in (begun, begun[:-1]), "only the last can have found no room"
    assert kept + again == [trial.id for trial in small_plan(stopping={"blocks": 6}).trials()]


def test_trials_run_side_by_side_where_a_testbed_can(folder):
    """Two at a time and never more, and every trial is kept once."""
    plan, seen = small_plan(settings={"say": "3", "seconds": "0.1"}, stopping={"blocks": 1}), []
    engine.run(plan, LocalTestbed(at_once=2), folder, seen.append)
    assert [e.done for e in seen if e.kind == "finished"] == [*range(1, len(plan.trials()) + 1)]
    ran = [transcript.executions[0] for transcript in folder.transcripts()]
    together = [sum(0 <= other.start - one.start < one.wall_s for one in ran) for other in ran]
    assert len(ran) == len(plan.trials()) and max(together) == 2


def test_a_trial_begins_when_the_programs_of_the_one_before_have_started(folder, monkeypatch):
    """Side by side, a trial of n nodes delays the start of the next one by n times the same
    time.
    """
    monkeypatch.setattr(engine, "_APART_S", 0.1)
    plan = small_plan(settings={"say": "3", "seconds": "1"}, stopping={"blocks": 1}, warm_up=[])
    begun = []  # by the engine's clock: a process may start late on a busy machine
    engine.run(
        plan,
        LocalTestbed(at_once=64),
        folder,
        lambda event: event.kind == "started" and begun.append((time.monotonic(), event.trial)),
    )
    assert len(begun) == len(plan.trials()) > 1
    for (start, trial), (following, _) in zip(begun, begun[1:]):
        assert following - start >= 0.1 * trial.point["nodes"]
    last = begun[-1][0] - begun[0][0]
    assert last < len(begun) - 1, "side by side: one after another they take 1 s each"


def test_a_torn_journal_line_does_not_swallow_the_next(tmp_path):
    """A line cut short by a power loss is skipped; the lines around it stay readable."""
    folder = Folder(tmp_path)
    folder.note("session", digest="x", testbed="local")
    with open(tmp_path / "journal.jsonl", "a") as journal:
        journal.write('{"event": "trial", "id": "b0')
    folder.note("ended", by="blocks")
    assert [note["event"] for note in folder.notes()] == ["session", "ended"]
    assert folder.stopped_by() == "blocks"


def test_a_damaged_transcript_is_named(folder):
    """A transcript that is not whole is refused by name, never read in part."""
    plan = small_plan()
    engine.run(plan, LocalTestbed(), folder)
    file = folder.path / "transcripts" / f"{plan.blocks[0][0].id}.json"
    file.write_text(file.read_text()[:-30])
    with pytest.raises(FalloffError, match=plan.blocks[0][0].id):
        list(folder.transcripts())


class Slow(LocalTestbed):
    """Every trial takes ten seconds of a clock that nothing else moves on."""

    def __init__(self, monkeypatch) -> None:
        super().__init__()
        self.now = 1000.0
        monkeypatch.setattr(time, "time", lambda: self.now)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def run(self, trial, commands):
        self.now += 10
        return super().run(trial, commands)


def test_no_block_is_cut_in_two_that_a_session_could_hold(folder, monkeypatch):
    """The other half would run on other nodes: what does not fit is left, whole, to the next
    session.
    """
    plan = small_plan(settings={"say": "1", "seconds": "0", "timeout_s": 8})
    testbed = Slow(monkeypatch)
    for parts, share in (((plan.preamble, plan.blocks[0]), 1.5), (plan.blocks[1:], 1.1)):
        assert not engine.is_finished(plan, folder)
        testbed.executed, end = [], testbed.now + 10 * share * len(ids(*parts))
        engine.run(plan, testbed, folder, deadline=end)
        assert testbed.executed == ids(*parts) and testbed.now <= end
    assert engine.is_finished(plan, folder)


HOUR, HERE_NOW = 3600.0, ("vm", "boot 1")


@pytest.mark.parametrize(
    ("later", "machine", "number"),
    [
        (1 * HOUR, HERE_NOW, 1),
        (7 * HOUR, HERE_NOW, 2),
        (1 * HOUR, ("vm", "boot 2"), 2),
        (1 * HOUR, ("other", "boot 1"), 2),
        (1 * HOUR, (None, None), 1),  # an older journal
        (7 * HOUR, (None, None), 2),
    ],
)
def test_a_session_is_hours_a_reboot_or_a_machine_apart(
    tmp_path, monkeypatch, later, machine, number
):
    """Counted from the last trial; a start in between without a trial begins none."""
    folder, now = Folder(tmp_path), 1e9
    monkeypatch.setattr(time, "time", lambda: now)
    for trial, (after, (hostname, boot_id)) in enumerate(
        [(0.0, HERE_NOW), (5 * HOUR, HERE_NOW), (later, machine)]
    ):
        now += after
        folder.note("session", digest="d", testbed="t", hostname=hostname, boot_id=boot_id)
        now += 1.0
        folder.note("trial", id=str(trial), status="ok", seconds=1.0)
        now += 5 * HOUR * (trial == 1)
        folder.note("session", digest="d", testbed="t", hostname="empty", boot_id="start")
        now -= 5 * HOUR * (trial == 1)
    assert folder.sessions() == {"0": 1, "1": 1, "2": number}
    trials, begin = folder.this_session()
    # Where the machine was not recorded, another one cannot be told from it.
    assert begin == pytest.approx(now + 6 * HOUR) and (trials == set()) == (None not in machine)


def test_a_session_runs_its_blocks_and_says_when_the_next_may(folder, monkeypatch):
    """Started again at once it runs nothing; hours later, or elsewhere, the next blocks. One that
    was interrupted in a block goes on with it, and with no more than its blocks."""
    host = {"hostname": "vm", "boot_id": "1", "git_commit": "a" * 40}
    monkeypatch.setattr(engine.provenance, "host", lambda: dict(host))
    plan = small_plan(stopping={"blocks": 6, "blocks_a_session": 2}, warm_up=[], survey=[])
    testbed, said = Slow(monkeypatch), []

    def ran():
        testbed.executed = []
        by = engine.run(plan, testbed, folder, lambda event: said.append(event.message))
        return by, testbed.executed

    with pytest.raises(KeyboardInterrupt):
        engine.run(plan, testbed, folder, interrupting(3))
    assert ran() == (engine.SESSION, ids(*plan.blocks[:2])[3:])
    assert "another machine" in said[-1] and "from " in said[-1]
    assert ran() == (engine.SESSION, [])
    testbed.now += 7 * HOUR
    assert ran() == (engine.SESSION, ids(*plan.blocks[2:4]))
    host["hostname"] = "elsewhere"
    assert ran() == ("blocks", ids(*plan.blocks[4:]))
    numbers = folder.sessions()
    assert [{numbers[one.id] for one in block} for block in plan.blocks] == [
        {number} for number in (1, 1, 2, 2, 3, 3)
    ]


def interrupting(after):
    """A listener that interrupts when so many trials have finished."""
    left = [after]

    def listen(event):
        left[0] -= event.kind == "finished"
        if not left[0]:
            raise KeyboardInterrupt

    return listen


def test_another_machine_goes_on_with_the_same_commit_alone(folder, monkeypatch):
    """With another commit it is refused with the remedy, and nothing was run or noted."""
    host = {"hostname": "vm", "boot_id": "1", "git_commit": "a" * 40}
    monkeypatch.setattr(engine.provenance, "host", lambda: dict(host))
    plan, testbed = small_plan(), LocalTestbed()
    with pytest.raises(KeyboardInterrupt):
        engine.run(plan, LocalTestbed(), folder, interrupting(2))
    before = folder.notes()
    host.update(hostname="elsewhere", git_commit="b" * 40)
    with pytest.raises(FalloffError, match="another machine with commit aaaaaaaaaaaa.*--fresh"):
        engine.run(plan, testbed, folder)
    assert folder.notes() == before and testbed.executed == []
    host.update(git_commit="a" * 40)
    assert engine.run(plan, testbed, folder) == "blocks"
    assert testbed.executed == ids(plan.preamble, *plan.blocks)[2:]


def test_what_lacked_nodes_is_tried_again(folder):
    """A trial for which too few nodes were left is run by a later session, and adds nothing to the
    plan.
    """
    plan, again = small_plan(), LocalTestbed()
    engine.run(plan, LocalTestbed(), folder)
    lacked = plan.blocks[1][3]
    folder.note("trial", id=lacked.id, status="unavailable", seconds=0.1)
    assert not engine.is_finished(plan, folder)
    engine.run(plan, again, folder)
    assert again.executed == [lacked.id] and engine.is_finished(plan, folder)


def test_a_failure_is_told_by_its_cause():
    """Open MPI frames what it says with rulers, and ends with one."""
    ruler = 74 * "-"
    said = (
        f"{ruler}\nmpirun has detected an attempt to run as root.\n\nRunning as root is "
        f"discouraged.\n{ruler}\n"
    )
    execution = Execution("mpirun", (), "", said, 1, 0.0, 1.0)
    trial = Trial("t", "point", "hpl", 1, 1, {})
    outcome = judge(Transcript(trial, "mine", "measured", (execution,), {}, {}), lambda _: {})
    told = "mpirun ended with exit code 1: mpirun has detected an attempt to run as root."
    assert (outcome.status, outcome.reason) == ("failed", told)
