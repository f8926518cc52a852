"""Real programs under the real pace.so: what is charged, how long it takes, what a wait costs, when it is refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import users

import experiment
from runners import hpl, pace, tools
from runners.record import FalloffError, Trial, judge
from runners.testbeds import emulated

PROGRAM = Path(__file__).parent / "paced.c"
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


def _library():
    try:
        return tools.find("pace.so", {})
    except FalloffError as error:
        return pytest.skip(str(error))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program, which knows nothing of pacing."""
    made = tmp_path_factory.mktemp("paced") / "paced"
    subprocess.run(["mpicc", "-O1", "-w", str(PROGRAM), "-o", str(made), "-lopenblas"], check=True)
    return made


def run(program, function, **environment):
    """What it printed (result, seconds, CPU seconds), and what its one rank reported."""
    settings = {**os.environ, "LD_PRELOAD": _library(), "OPENBLAS_NUM_THREADS": "1", **environment}
    argv = [str(program), function, str(REPEATS), str(N)]
    done = subprocess.run(argv, env=settings, capture_output=True, text=True, check=True)
    _, result, wall, cpu = map(float, done.stdout.split())
    return result, wall, cpu, pace.reports(done.stderr).get(0)


@pytest.mark.parametrize("function", SHARES)
def test_a_call_takes_as_long_as_its_operations_and_computes_for_real(program, function):
    """By either name, in either kind of number; level 2 is not paced and not charged."""
    result, wall, _, report = run(program, function, PACE_FLOP_S=repr(FLOP_S))
    assert result == 6.0
    assert report["charged"] == pytest.approx(0.5 * SHARES[function], rel=1e-3)
    assert report["calls"] == (REPEATS if SHARES[function] else 0)
    # What is late is reported, so that a busy machine makes no difference here.
    assert wall >= 0.98 * report["charged"]
    assert wall <= 1.05 * report["charged"] + report["late"] + 0.05


def test_a_daemon_takes_the_share_that_is_asked_for(program):
    """5 % in pauses of 0.5 ms: a hundred in a second, at times of the seed's own."""
    pauses = {"PACE_PAUSE_S": "0.0005", "PACE_PAUSE_HZ": "1000"}
    *_, first = run(program, "cblas_dgemm", PACE_FLOP_S=repr(FLOP_S), PACE_SEED="1", **pauses)
    *_, again = run(program, "cblas_dgemm", PACE_FLOP_S=repr(FLOP_S), PACE_SEED="1", **pauses)
    *_, other = run(program, "cblas_dgemm", PACE_FLOP_S=repr(FLOP_S), PACE_SEED="2", **pauses)
    assert first["paused"] == again["paused"] != other["paused"]
    assert 0.35 * 0.5 < first["paused"] < 0.65 * 0.5  # 500 pauses expected, with a Poisson sd of 22


DESCRIPTION = experiment.read_testbed("scale_model")
lacking = users.lacking(DESCRIPTION)


@pytest.fixture(scope="module")
def plan():
    """The quick run of the scaling campaign."""
    return experiment.plan_campaign("hpl_scaling", preset="quick")


@pytest.fixture(scope="module")
def testbed(plan):
    """Two nodes of the scale model."""
    with emulated.open_testbed({**DESCRIPTION, "nodes": 2}, plan.interconnects) as opened:
        yield opened


@pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))
def test_a_rank_that_waits_sleeps(testbed, program):
    """Rank 1 has nothing to do until rank 0 has computed: it takes next to no CPU time, and gets the message."""
    from runners.record import Command

    testbed.description["tools"]["paced"] = str(program)
    command = Command(("paced", "wait", str(REPEATS), str(N)), ranks=2)
    settings = {"interconnect": "gige"}
    slow = {**testbed.description, "node": {**testbed.description["node"], "flop_s": FLOP_S}}
    testbed.description, described = slow, testbed.description
    try:
        transcript = testbed.run(Trial("t", "point", "none", 1, 1, settings), [command])
    finally:
        testbed.description = described
    assert transcript.fault == "" and transcript.executions[0].exit_code == 0
    rows = {
        int(line.split()[0]): line.split() for line in transcript.executions[0].stdout.splitlines()
    }
    assert float(rows[1][1]) == 6.0
    assert float(rows[1][2]) > 0.4 and float(rows[1][3]) < 0.2 * float(rows[1][2])


def _solve(testbed, plan, network="10gige"):
    """HPL of order 600 on both nodes: its outcome, and its rate [Gflop/s] where it has one."""
    point = next(t.point for t in plan.trials() if t.role == "point" and t.point["nodes"] == 2)
    point = {**point, "interconnect": network, "N": 600}
    outcome = judge(
        testbed.run(Trial("t", "point", "hpl", 1, 1, point), hpl.commands(point)), hpl.RUNNER.parse
    )
    rates = [reading.value for reading in outcome.readings if reading.name == "hpl_rate"]
    return outcome, rates[0] if rates else None


@pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))
def test_a_busy_machine_gives_the_same_rate_or_is_refused(testbed, plan):
    """Two loops that take all that they get: where ranks cannot go before them the trial is host-bound, never a rate
    that is off."""
    outcome, undisturbed = _solve(testbed, plan)
    assert outcome.status == "ok" and undisturbed < 2 * 0.085
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        for real_time in {testbed.real_time, False}:
            testbed.real_time, allowed = real_time, testbed.real_time
            outcome, rate = _solve(testbed, plan)
            testbed.real_time = allowed
            if outcome.status == "ok":
                assert rate == pytest.approx(undisturbed, rel=0.04)
            else:
                assert outcome.status == "invalid" and "host-bound" in outcome.reason
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()
