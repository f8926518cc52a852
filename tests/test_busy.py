"""Other work on the machine: it is told from a slow network, a disturbed trial is tried again, and
then refused for that reason.
"""

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import pytest
from campaigns import small_plan, use_echo
from local_testbed import LocalTestbed
from undisturbed import repeated

from analysis.dataset import store
from analysis.statements import statement
from runners.engine import campaign as engine
from runners.records.journal import Folder
from runners.records.record import Command, Execution, Transcript, Trial, judge
from runners.testbeds import busy, emulated, link_probe, nodes, programs

ROOT = Path(__file__).resolve().parent.parent

SPIN = "from time import *; end = monotonic() + {seconds}\nwhile monotonic() < end: pass"


@pytest.mark.parametrize(
    ("waits", "load", "processors", "reason"),
    [
        # other work that kept nothing waiting, as from programs with real-time priority
        ([0.0, 0.04], 1.0, 2, ""),
        ([], 1.0, 2, ""),
        ([0.01, 0.4], 0.1, 2, ""),  # the trial's own programs had the processors
        (
            [0.01, 0.4],
            0.9,
            2,
            "waited 40 % of its time for a processor, of which other work took 90 %",
        ),
        ([0.4, 0.01], 0.0, 1, "waited 40 % of its time for a processor, of which it had one"),
        ([math.nan], 0.9, 2, "an unknown time"),  # a kernel that does not say
        ([math.nan], 0.1, 2, ""),
        ([math.nan, 0.4], 0.1, 1, ""),
    ],
)
def test_a_trial_is_disturbed_if_it_waited_and_others_worked(
    monkeypatch, waits, load, processors, reason
):
    """Neither alone is enough; where there is one processor, a trial's own programs are in each
    other's way. What others do after the trial counts only if the trial's own work is unknown."""
    is_known = not any(map(math.isnan, waits))
    monkeypatch.setattr(busy, "load_of_others", lambda: 1 - load if is_known else load)
    monkeypatch.setattr(busy.os, "sched_getaffinity", lambda _: set(range(processors)))
    found = busy.verdict(waits, load if is_known else 1 - load)
    assert reason in found and bool(found) == bool(reason)


STAT = """cpu 9 9 9 9 9 9 9 9 0 0
cpu0 100 20 30 500 7 8 9 50 0 0
cpu1 300 0 0 500 0 0 0 0 0 0
cpu10 1000 0 0 0 0 0 0 0 0 0
"""


def test_work_is_what_programs_do_on_our_processors(monkeypatch, tmp_path):
    """Other machines' work on them counts; idle time, interrupts and other processors do not."""
    (tmp_path / "stat").write_text(STAT)
    monkeypatch.setattr(busy, "Path", lambda _: tmp_path / "stat")
    monkeypatch.setattr(busy.os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(busy.os, "sysconf", lambda _: 100)
    assert busy.worked_s() == 5.0


def test_a_program_knows_how_long_it_was_kept_waiting(tmp_path):
    """Two that want one processor wait half of the time, one that sleeps does not wait."""
    if math.isnan(busy.waited_s(os.getpid())):
        pytest.skip("this kernel does not say how long a program waits")
    place = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    spin = [*place, sys.executable, "-c", SPIN.format(seconds=0.6)]

    def share(argv):
        started = programs.start("python3", argv, tmp_path, os.environ)
        execution = programs.finish(started, 20)
        return started.delayed_s / execution.wall_s

    competing = [*spin[:-1], "while True: pass"]
    # In a session of its own: kernels share processors out by session.
    with subprocess.Popen(competing, start_new_session=True) as other:
        try:
            assert 0.2 < max(repeated(lambda: share(spin), lambda share: share > 0.2)) < 1
        finally:
            other.kill()
    quiet = repeated(lambda: share(["sleep", "0.3"]), lambda share: share < 0.05)
    assert min(quiet) < 0.05


def ran(ranks=0, delayed_s=math.nan):
    execution = Execution("it", ("it",), "", "", 0, 0.0, 1.0)
    return programs.ExecutedCommand(Command(("it",), ranks=ranks), execution, 0.1, delayed_s)


def test_all_that_a_trial_waits_for_counts():
    """Programs, ranks and what carries frames; mpirun itself does not."""
    found = programs.TrialState(ran=[ran(delayed_s=1.0), ran(ranks=2, delayed_s=0.1)])
    assert emulated._waits(found, [0.6, math.nan], 2.0) == pytest.approx(
        [0.5, 0.3, math.nan], nan_ok=True
    )


@pytest.mark.parametrize(
    ("script", "code", "computed_s"),
    [("while :; do :; done", -signal.SIGXCPU, 1.0), ("exit 3", 3, None)],
)
def test_a_rank_says_how_long_it_waited_and_ends_as_its_program(tmp_path, script, code, computed_s):
    """Two that want one processor for a second each wait for the rest of the time, half of it where
    nothing else runs. Only a rank that is killed itself says nothing."""
    if math.isnan(busy.waited_s(os.getpid())):
        pytest.skip("this kernel does not say how long a program waits")
    node = tmp_path / os.uname().nodename
    node.mkdir()
    (node / "processor").write_text(str(min(os.sched_getaffinity(0))))
    rank = [
        sys.executable,
        "-I",
        "-S",
        str(ROOT / "runners/testbeds/rank.py"),
        "join",
        str(tmp_path),
    ]
    limited = ["prlimit", "--cpu=1:2", "sh", "-c", script]
    begun = time.monotonic()
    both = [subprocess.Popen([*rank, *limited], start_new_session=True) for _ in range(2)]
    assert [rank.wait() for rank in both] == [code, code]
    net = SimpleNamespace(graph=SimpleNamespace(nodes=[1]), space=lambda _: node)
    waited, worked = zip(*nodes.rank_times(net))
    took_s = time.monotonic() - begun
    assert sum(worked) <= took_s
    assert len(waited) == 2 and 0 <= min(waited) and max(waited) <= took_s
    if computed_s:
        assert max(waited) == pytest.approx(took_s - computed_s, abs=0.7)
    (node / "times").write_text("1.0 0.5\n")
    assert nodes.rank_times(net) == [(1.0, 0.5), pytest.approx((math.nan, math.nan), nan_ok=True)]


class Disturbed(LocalTestbed):
    """Trials of a block are disturbed the first `times` times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def run(self, trial, commands):
        told = {"busy": "the trial waited"} if self.executed.count(trial.id) < self.times else {}
        self.effective = told if trial.block == 2 else {}
        return super().run(trial, commands)


@pytest.fixture
def plan(monkeypatch):
    """The small campaign, which the engine can run here."""
    use_echo(monkeypatch)
    monkeypatch.setattr(engine, "_APART_S", 0.0)
    monkeypatch.setattr(store, "tool_named", engine.tool_named)
    return small_plan()


@pytest.mark.parametrize(("times", "attempts", "is_refused"), [(1, 2, False), (99, 3, True)])
def test_a_disturbed_trial_is_tried_again_a_few_times(plan, tmp_path, times, attempts, is_refused):
    """Then it is refused, says so, and the next session tries it again, and no other."""
    testbed, folder = Disturbed(times), Folder(tmp_path / "c")
    engine.run(plan, testbed, folder)
    disturbed = [trial.id for trial in plan.blocks[1]]
    counts = {trial.id: testbed.executed.count(trial.id) for trial in plan.trials()}
    assert counts == {one: attempts if one in disturbed else 1 for one in counts}
    assert engine.is_finished(plan, folder) != is_refused
    dataset = store.read(folder.path)
    assert (dataset.status == "busy").sum() == len(disturbed) * is_refused
    lacking = statement.without_reading(dataset)
    assert ("the machine was too busy" in lacking) == is_refused
    assert not is_refused or f"{len(disturbed)} of {3 * len(disturbed)}" in lacking
    again = LocalTestbed()
    engine.run(plan, again, folder)
    assert again.executed == disturbed * is_refused and engine.is_finished(plan, folder)
    assert (
        max(folder.results().values()) == 1 and not (store.read(folder.path).status == "busy").any()
    )


def test_the_machine_is_blamed_before_the_tool():
    """What a tool makes of a disturbed trial is not read; older transcripts say nothing of it."""
    trial, execution = Trial("t", "point", "iperf3", 1, 1, {}), ran().execution

    def refused(transcript):
        raise AssertionError("it was read")

    settings = {"mtu": 1, "busy": "it waited"}
    told = Transcript(trial, "paths", "emulated", (execution,), {"mtu": 1}, settings)
    assert judge(told, refused).status == "busy"
    assert judge(told, refused).reason.startswith("machine-busy: it waited")
    other = Transcript(trial, "paths", "emulated", (execution,), {"mtu": 2}, settings)
    assert judge(other, refused).status == "invalid"  # whose reason says more
    older = Transcript(trial, "paths", "emulated", (execution,), {"mtu": 1}, {"mtu": 1})
    assert judge(older, lambda _: {}).status == "ok"


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        ([1.0], "kept"),
        ([1.2, 1.01, 1.0], "kept"),
        ([1.2, 1.3, 1.25], "window-bound"),
        ([0.95, 1.11, 1.11], "window-bound"),
        ([1.11, 1.12, 0.95], "window-bound"),
        ([0.5, 0.8, 1.0], "faster than set"),
        ([0.5, 1.0, 1.0], "kept"),
    ],
)
def test_a_link_is_judged_by_the_middle_of_its_tries(monkeypatch, times, verdict):
    """One try may be too slow or too fast by chance; buffers that are too small slow messages
    always.
    """
    rate = 25e6
    ideal = 2 * link_probe.LONG / (rate * 1448 / 1538 / 8)
    left, asked = list(times), []

    def round_trip(net, around, ranks, size, window_s):
        if size == link_probe.SHORT:
            return 1e-4
        asked.append(window_s / ideal)
        return ideal * left.pop(0)

    monkeypatch.setattr(link_probe, "_round_trip", round_trip)
    graph = SimpleNamespace(has_taps=False)
    net = SimpleNamespace(table={"rate_bit_s": rate}, graph=graph)
    found = link_probe.probe(net, None, 2)
    assert link_probe.verdict(found).startswith(verdict) and len(asked) == len(times)
    assert min(asked) >= 8 and found["link_share"] == pytest.approx(1 / median(times))
