"""Paced nodes: what ranks say is read, summed over nodes and judged, and a trial whose node was late is invalid."""

import math
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
import users

from runners import pace
from runners.pace import KEPT, Job
from runners.record import Command, Trial, judge, mismatch
from runners.testbeds import emulated

ROOT = Path(__file__).resolve().parent.parent
LINE = "pace: rank {rank} calls 1234 charged {charged} computed 0.1 slept 6.9 late {late} waits 4242 timeouts 17\n"


def lines(*ranks, each=1):
    """A job of so many ranks that charged and were late (charged, late)."""
    said = "".join(
        LINE.format(rank=rank, charged=charged, late=late)
        for rank, (charged, late) in enumerate(ranks)
    )
    return Job(len(ranks), each, said)


def test_lines_are_read_among_others():
    """Whatever else is on standard error, in any order, with names that came later."""
    text = "[n1:7] Warning: x\n" + LINE.format(rank=3, charged=7.123456, late=1e-4)
    found = pace.reports(text + "pace: rank 0 calls 2 paused 0.5\nend")
    assert found[0] == {"calls": 2, "paused": 0.5} and set(found) == {0, 3}
    assert (
        found[3]["charged"] == 7.123456 and found[3]["late"] == 1e-4 and found[3]["timeouts"] == 17
    )


def test_counters_are_sums_over_a_nodes_ranks():
    """Rank r is on node r + 1, or two on each; where no rank was, nothing is known."""
    found = pace.counters([lines((1.0, 0.0), (2.0, 0.5))], 3)
    assert found["pace_charged"][:2] == [1.0, 2.0] and math.isnan(found["pace_charged"][2])
    found = pace.counters([lines((1.0, 0.0), (2.0, 0.5), (4.0, 0.25), (8.0, 0.0), each=2)], 2)
    assert found["pace_charged"] == [3.0, 12.0] and found["pace_late"] == [0.5, 0.25]
    assert pace.counters([lines((1.0, 0.0)), lines((2.0, 0.0))], 1)["pace_charged"] == [3.0]
    assert pace.counters([], 2) == {}


@pytest.mark.parametrize(
    ("job", "verdict"),
    [
        (lines((7.0, 0.0), (7.0, 0.035)), KEPT),
        (
            lines((7.0, 0.0), (7.0, 0.04), (7.0, 0.287)),
            "host-bound: late by 4.1 % of what was charged on node 3",
        ),
        (lines((0.0, 0.0)), KEPT),
        (lines((0.0, 0.1)), "host-bound: late by inf % of what was charged on node 1"),
        (Job(4, 1, lines(*[(7.0, 0.0)] * 3).stderr), "unknown: rank 3 did not report"),
        (Job(1, 1, "pace: rank 0 calls 12"), "unknown: rank 0 did not report"),
    ],
)
def test_a_late_node_is_named(job, verdict):
    """More than half a percent of what was charged, or a rank of which nobody knows, and the pace was not kept."""
    assert pace.kept([job], 4) == verdict


EMULATED = tomllib.loads((ROOT / "data/testbeds/emulated.toml").read_text())
lacking = users.lacking(EMULATED) + (
    [] if shutil.which("cc") else ["no C compiler: apt-get install gcc"]
)


@pytest.fixture(scope="module")
def testbed(tmp_path_factory):
    """Two paced nodes behind a shaper of a small burst; the library is a stand-in that does nothing."""
    folder = tmp_path_factory.mktemp("pace")
    (folder / "pace.c").write_text("int nothing_is_paced;\n")
    subprocess.run(
        ["cc", "-shared", "-fPIC", str(folder / "pace.c"), "-o", str(folder / "pace.so")],
        check=True,
    )
    description = {
        **EMULATED,
        "nodes": 2,
        "node": {"flop_s": 85e6, "keep_awake": True},
        "shaper": {"burst_s": 250e-6},
        "tcp": {**EMULATED["tcp"], "quickack": True},
        "offloads": {"tso": False, "gso": False, "gro": False},
        "mpi": {"btl_tcp_eager_limit": 4096},
        "tools": {"pace.so": str(folder / "pace.so")},
    }
    networks = {
        "gige": {"name": "GigE", "mtu": 1500, "rate_bit_s": 100e6},
        "unshaped": {"name": "none", "mtu": 1500},
    }
    with emulated.open_testbed(description, networks) as opened:
        yield opened


def run(testbed, script, network="gige", **settings):
    """A trial of two ranks that run a script of bash's."""
    trial = Trial("t", "point", "none", 4, 1, {"interconnect": network, **settings})
    return testbed.run(trial, [Command(("bash", "-c", script), ranks=2)])


SAY = "echo pace: rank $OMPI_COMM_WORLD_RANK calls 1 charged 2.0 late {} >&2"


@pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))
@pytest.mark.parametrize("network", ["gige", "unshaped"])
def test_ranks_are_paced_and_nothing_else(testbed, network):
    """Library, rate and priority are the ranks' and not the launcher's, and the link is as described."""
    script = "echo $LD_PRELOAD $PACE_FLOP_S $PACE_SEED; chrt -p $$; " + SAY.format("0.001")
    transcript = run(testbed, script, network, noise=0.02, noise_hz=2)
    assert (transcript.fault, mismatch(transcript.requested, transcript.effective)) == ("", [])
    assert transcript.effective["quickack"] is True and transcript.effective["pace"] == KEPT
    assert transcript.counters["pace_charged"] == [2.0, 2.0]
    said = transcript.executions[0].stdout
    assert said.count("pace.so 85000000.0 4\n") == 2
    policy = "SCHED_FIFO" if testbed.provenance()["realtime"] else "SCHED_OTHER"
    assert (
        said.count(policy) == 2
        and transcript.effective["realtime"] is testbed.provenance()["realtime"]
    )
    burst = 4663 if network == "gige" else "unshaped"
    assert (
        transcript.requested["tbf_burst_bytes"] == transcript.effective["tbf_burst_bytes"] == burst
    )
    assert ("btl_tcp_eager_limit", "4096") in zip(
        transcript.executions[0].argv, transcript.executions[0].argv[1:]
    )
    plain = testbed.run(
        Trial("t", "point", "none", 1, 1, {"interconnect": network}), [Command(("env",))]
    )
    assert "PACE_FLOP_S" not in plain.executions[0].stdout and "pace" not in plain.requested


@pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))
@pytest.mark.parametrize(
    ("script", "said"),
    [
        (SAY.format("0.1"), "host-bound: late by 5.0 %"),
        ("[ $OMPI_COMM_WORLD_RANK = 1 ] || " + SAY.format("0"), "rank 1 did not report"),
    ],
)
def test_a_trial_that_was_not_kept_is_invalid(testbed, script, said):
    """The machine held a node up, or nobody knows: the reason is in the judgement, and no number is read."""
    outcome = judge(run(testbed, script), lambda transcript: 1 / 0)
    assert outcome.status == "invalid" and said in outcome.reason


def test_a_loop_that_keeps_awake_ends_with_its_owner(tmp_path):
    """Also when that was killed, and nobody could end it: nothing may heat a processor for ever."""
    told = tmp_path / "told"
    script = (
        "import os, subprocess, sys, time; from runners.testbeds import nodes;"
        "loop = subprocess.Popen([sys.executable, '-c', nodes._LOOP, str(os.getpid())]);"
        f"open({str(told)!r}, 'w').write(str(loop.pid)); time.sleep(60)"
    )
    owner = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    until = time.monotonic() + 20
    while not (told.exists() and told.read_text()) and time.monotonic() < until:
        time.sleep(0.05)
    loop = Path("/proc") / told.read_text()
    assert (loop / "cmdline").read_bytes()
    owner.kill()
    owner.wait()
    while loop.exists() and (loop / "cmdline").read_bytes() and time.monotonic() < until + 10:
        time.sleep(0.05)
    # What has ended and was not collected yet has no command line.
    assert not loop.exists() or not (loop / "cmdline").read_bytes()
