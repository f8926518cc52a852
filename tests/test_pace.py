"""Paced nodes: what ranks say is read and judged, and real programs under pace.so take the time
that they should.
"""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import users
from undisturbed import within
from wired import EMULATED, ROOT, needs_network, text
from wired import run as on_network

from analysis import planning
from analysis.descriptions import testbeds
from runners import executables, pace
from runners.pace import KEPT
from runners.records.record import Command, Execution, judge, mismatch
from runners.testbeds import emulated
from runners.tools import hpl

LINE = (
    "pace: rank {rank} calls 1234 charged {charged} computed 0.1 slept 6.9 late {late} "
    "waits 4242 timeouts 17\n"
)


def job(*ranks, each=1, said=None):
    """A job of so many ranks that charged and were late (charged, late), or said something else."""
    lines = [
        LINE.format(rank=n, charged=charged, late=late) for n, (charged, late) in enumerate(ranks)
    ]
    stderr = "".join(lines) if said is None else said
    command = Command(("x",), ranks=len(ranks), ranks_per_node=each)
    return command, Execution("x", ("x",), "", stderr, 0, 0.0, 1.0)


def test_counters_are_sums_over_a_nodes_ranks():
    """Rank r is on node r + 1, or two on each; where no rank was, nothing is known."""
    found = pace.counters([job((1.0, 0.0), (2.0, 0.5))], 3)
    assert found["pace_charged"][:2] == [1.0, 2.0] and math.isnan(found["pace_charged"][2])
    found = pace.counters([job((1.0, 0.0), (2.0, 0.5), (4.0, 0.25), (8.0, 0.0), each=2)] * 2, 2)
    assert found["pace_charged"] == [6.0, 24.0] and found["pace_late"] == [1.0, 0.5]
    others = "[n1:7] Warning: x\n" + LINE.format(rank=0, charged=7.123456, late=1e-4) + "end"
    assert pace.counters([job((0, 0), said=others)], 1)["pace_charged"] == [7.123456]


# A program in slow motion that computed for 1 s and waited for 9
SLOW = "pace: rank 0 calls 9 charged 1.0 computed 0.01 late {late} stretch 100 elapsed 10.0"


@pytest.mark.parametrize(
    ("job", "verdict"),
    [
        (job((7.0, 0.0), (7.0, 0.035)), KEPT),
        (job((7.0, 0.0), (7.0, 0.287)), "host-bound: late by 4.1 % of what was charged on node 2"),
        (job((0.0, 0.0)), KEPT),
        (job((0.0, 0.1)), "host-bound: late by inf % of what was charged on node 1"),
        (job((7.0, 0.0), said="pace: rank 0 calls 12"), "unknown: rank 0 did not report"),
        (job((1.0, 0.0), said=SLOW.format(late=0.04)), KEPT),
        (
            job((1.0, 0.0), said=SLOW.format(late=0.06)),
            "host-bound: late by 0.6 % of its time on node 1",
        ),
    ],
)
def test_a_late_node_is_named(job, verdict):
    """More than half a percent of what was charged, of the whole time in slow motion, or a rank of
    which nobody knows, and the pace was not kept."""
    assert pace.verdict([job], 4) == verdict


# Nodes whose library is a stand-in, so that what it says can be chosen.
@pytest.fixture(scope="module")
def mocked(tmp_path_factory):
    """Two paced nodes behind a shaper of a small burst; the library does nothing, and its path has
    a blank.
    """
    library = tmp_path_factory.mktemp("a blank é") / "pace.so"
    words = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(words, input="int nothing_is_paced;\n", text=True, check=True)
    description = {
        **EMULATED,
        "nodes": 2,
        "node": {"flop_s": 85e6, "keep_awake": True},
        "shaper": {"burst_s": 250e-6},
        "offloads": {"tso": False, "gso": False, "gro": False},
        "mpi": {"btl_tcp_eager_limit": 4096},
        "tools": {"pace.so": str(library)},
    }
    networks = {"gige": {"mtu": 1500, "rate_bit_s": 100e6}, "unshaped": {"mtu": 1500}}
    with emulated.open_testbed(description, networks) as opened:
        yield opened


def run(testbed, script, network="gige", **settings):
    """A trial of two ranks that run a script of bash's."""
    command = Command(("bash", "-c", script), ranks=2)
    return on_network(testbed, command, block=4, interconnect=network, **settings)


SAY = "echo pace: rank $OMPI_COMM_WORLD_RANK calls 1 charged 2.0 late {} >&2"


@needs_network
@pytest.mark.parametrize(("network", "burst"), [("gige", 4663), ("unshaped", "unshaped")])
def test_ranks_are_paced_and_nothing_else(mocked, network, burst):
    """Library, rate and priority are the ranks' and not the launcher's, and the link is as
    described.
    """
    script = "echo $LD_PRELOAD $PACE_FLOP_S $PACE_SEED; echo in $PACE_REAL_TIME; " + SAY.format(
        "0.001"
    )
    transcript = run(mocked, script, network, noise=0.02, noise_hz=2)
    effective, said = transcript.effective, text(transcript)
    assert mismatch(transcript.requested, effective) == [] and effective["pace"] == KEPT
    assert transcript.counters["pace_charged"] == [2.0, 2.0]
    assert said.count("pace.so 85000000.0 4\n") == 2
    real_time = mocked.provenance()["realtime"]
    assert said.count("in 10\n" if real_time else "in \n") == 2
    assert effective["realtime"] is real_time
    assert transcript.requested["tbf_burst_bytes"] == effective["tbf_burst_bytes"] == burst
    argv = transcript.executions[0].argv
    assert "cannot be preloaded" not in transcript.executions[0].stderr
    assert ("btl_tcp_eager_limit", "4096") in zip(argv, argv[1:])
    plain = on_network(mocked, "env", interconnect=network)
    assert "PACE_FLOP_S" not in text(plain) and "pace" not in plain.requested


@needs_network
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (SAY.format("0.1"), "host-bound: late by 5.0 %"),
        ("[ $OMPI_COMM_WORLD_RANK = 1 ] || " + SAY.format("0"), "rank 1 did not report"),
    ],
)
def test_a_trial_that_was_not_kept_is_invalid(mocked, script, reason):
    """The machine held a node up, or nobody knows: the reason is in the judgement, and no number is
    read.
    """
    outcome = judge(run(mocked, script), lambda transcript: 1 / 0)
    assert outcome.status == "invalid" and reason in outcome.reason


def test_a_loop_that_keeps_awake_ends_with_its_owner():
    """Also when that was killed, and nobody could end it: nothing may heat a processor for ever."""
    script = (
        "import os, subprocess, sys, time; from runners.testbeds import nodes;"
        "loop = subprocess.Popen([sys.executable, '-c', nodes._LOOP, str(os.getpid())]);"
        "print(loop.pid, flush=True); time.sleep(60)"
    )
    argv, pipe = [sys.executable, "-c", script], subprocess.PIPE
    owner = subprocess.Popen(argv, cwd=ROOT, stdout=pipe, text=True)
    loop = Path("/proc") / owner.stdout.readline().strip() / "cmdline"
    # A program that has just begun has no command line yet, nor has one that has ended and was not
    # collected.
    assert within(20, loop.read_bytes)
    owner.kill()
    owner.communicate()
    assert within(20, lambda: not (loop.exists() and loop.read_bytes()))


# Real programs under the real library.
N, REPEATS = 60, 20
FLOP_S = 2.0 * N**3 * REPEATS / 0.5  # a DGEMM of this order, so often, stands for half a second
SHARES = {  # of the flops of a DGEMM of the same order
    "cblas_dgemm": 1.0,
    "dgemm_": 1.0,
    "cblas_dsyrk": (N + 1) / (2 * N),
    "cblas_zgemm": 4.0,
    "dtrsm_": 0.5,
    "level_2": 0.0,
}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program, which knows nothing of pacing."""
    users.require("pace.so")
    made = tmp_path_factory.mktemp("paced") / "paced"
    source = Path(__file__).parent / "support" / "paced.c"
    subprocess.run(["mpicc", "-O1", "-w", source, "-o", made, "-lopenblas"], check=True)
    return made


def under_pace(program, function, repeats=REPEATS, order=N, **environment):
    """What it printed (result, seconds), and what it wrote to standard error."""
    library = {"LD_PRELOAD": executables.find("pace.so", {}), "OPENBLAS_NUM_THREADS": "1"}
    argv = [str(program), function, str(repeats), str(order)]
    settings = {**os.environ, **library, **environment}
    done = subprocess.run(argv, env=settings, capture_output=True, text=True, check=True)
    _, result, wall, _ = map(float, done.stdout.split())
    return result, wall, done.stderr


@pytest.mark.parametrize("function", SHARES)
def test_a_call_takes_as_long_as_its_operations_and_computes_for_real(program, function):
    """By either name, in either kind of number; level 2 is not paced and not charged."""
    result, wall, stderr = under_pace(program, function, PACE_FLOP_S=repr(FLOP_S))
    report = pace.reports(stderr)[0]
    assert result == 6.0
    assert report["charged"] == pytest.approx(0.5 * SHARES[function], rel=1e-3)
    assert report["calls"] == (REPEATS if SHARES[function] else 0)
    # What is late is reported, so that a busy machine makes no difference here.
    assert 0.98 * report["charged"] <= wall <= 1.05 * report["charged"] + report["late"] + 0.05


def test_a_machine_that_is_too_slow_is_late(program):
    """At a rate that no machine has; one call may be late by the credit of 2 ms, 40 large ones are
    later.
    """
    *_, stderr = under_pace(program, "cblas_dgemm", 40, 600, PACE_FLOP_S="1e18")
    assert "host-bound" in pace.verdict([job((0, 0), said=stderr)], 1)


def test_a_daemon_takes_the_share_that_is_asked_for(program):
    """5 % in pauses of 0.5 ms: a hundred in a second, at times of the seed's own."""

    def paused(seed):
        pauses = {"PACE_PAUSE_S": "0.0005", "PACE_PAUSE_HZ": "1000", "PACE_SEED": seed}
        *_, stderr = under_pace(program, "cblas_dgemm", PACE_FLOP_S=repr(FLOP_S), **pauses)
        return pace.reports(stderr)[0]["paused"]

    assert paused("1") == paused("1") != paused("2")
    assert 0.35 * 0.5 < paused("1") < 0.65 * 0.5  # 500 pauses expected, with a Poisson sd of 22


SCALE_MODEL = testbeds.read("scale_model").plain()


@needs_network
@pytest.mark.alone
def test_a_busy_machine_gives_the_same_rate_or_is_refused(monkeypatch):
    """Two loops that take all that they get: where ranks cannot go before them the trial is
    host-bound, never a rate that is off."""
    plan = planning.plan_campaign("hpl_scaling", preset="quick")
    (first, *_) = (t.point for t in plan.trials() if t.role == "point" and t.point["nodes"] == 2)
    point = {**first, "interconnect": "10gige", "N": 600}

    def solve(testbed):
        transcript = on_network(testbed, *hpl.commands(point), runner="hpl", **point)
        outcome = judge(transcript, hpl.TOOL.parse)
        return outcome, outcome.readings.get("hpl_rate")

    with emulated.open_testbed({**SCALE_MODEL, "nodes": 2}, plan.interconnects) as testbed:
        outcome, undisturbed = solve(testbed)
        assert outcome.status == "ok" and undisturbed < 2 * 0.085
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
        try:
            for real_time in {testbed.real_time, False}:
                monkeypatch.setattr(testbed, "real_time", real_time)
                outcome, rate = solve(testbed)
                if outcome.status == "ok":
                    assert rate == pytest.approx(undisturbed, rel=0.04)
                else:
                    assert outcome.status == "invalid" and "host-bound" in outcome.reason
        finally:
            for loop in busy:
                loop.kill()
                loop.wait()
