"""The daemon that disturbs a node: what it takes, how it is asked for, and what is refused."""

import re
import subprocess
import time

import pytest
from undisturbed import alone, repeated

from runners import build, hpl, noise
from runners.record import Execution, InvalidRun

POINT = {"nodes": 2, "noise": 0.05, "cpu_share": 0.1, "burst_s": 0.005}
SAID = "noise: 12 bursts, 0.006012 s of CPU in 1.250000 s, seed 7\n"

PROGRAM = build.BUILT / "noise"
needs_built = pytest.mark.skipif(not PROGRAM.exists(), reason="noise is not built here: run `make setup`")


def execution(stdout, tool="noise"):
    """One finished execution that printed `stdout`."""
    return Execution(tool, (tool,), stdout, "", 0, 0.0, 1.0)


def run_for(seconds, *arguments):
    """What the daemon says after SIGTERM: bursts, s of CPU, s of time, seed."""
    process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    time.sleep(seconds)
    process.terminate()
    said, _ = process.communicate(timeout=10)
    assert process.returncode == 0 and noise._LINE.match(said), said
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", said)]


@alone
@needs_built
def test_takes_what_it_is_asked_for():
    """A tenth of a core, within 30 %: what waking up costs is part of its bursts."""

    def shares() -> tuple[float, float]:
        bursts, cpu, wall, _ = run_for(1.0, 0.1, 0.002)
        return cpu / wall / 0.1, cpu / bursts / 0.002

    asked = pytest.approx((1, 1), rel=0.3)
    found = repeated(shares, lambda shares: shares == asked)
    assert found[-1] == asked and max(share for share, _ in found) < 1.3  # in none it takes more


@alone
@needs_built
def test_the_seed_decides_when_it_bursts():
    """Bursts about a second apart: by drand48 the first is at 0.17 s with seed 0 and at 0.91 s with seed 2."""
    assert [run_for(0.5, 0.01, 0.01, seed)[0] for seed in (0, 2)] == [1, 0]


@needs_built
def test_daemons_left_to_themselves_differ():
    """Without a seed no two have the same one, so they keep no step."""
    assert len({run_for(0.02, 0.01, 0.01)[3] for _ in range(4)}) == 4


@needs_built
@pytest.mark.parametrize("arguments", [(), (0.1,), (0, 0.01), (1.5, 0.01), (0.1, 0), ("a", "b")])
def test_nonsense_is_refused(arguments):
    """Shares and bursts that cannot be taken end it at once, with its usage."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=10)
    assert done.returncode == 2 and "usage" in done.stderr


def test_one_daemon_on_every_node_of_the_point():
    """Its share and its bursts are of the node, hence a tenth of them of the core; inside the quota."""
    daemons = noise.commands(POINT)
    assert [daemon.node for daemon in daemons] == [1, 2]
    for daemon in daemons:
        assert daemon.argv == ("noise", "0.005", "0.0005")
        assert daemon.background and daemon.in_quota and not daemon.ranks


@pytest.mark.parametrize("point", [{**POINT, "noise": 0.0}, {"nodes": 2}])
def test_no_daemon_where_none_is_asked_for(point):
    """Neither at the level 0 nor in a campaign that knows no noise; nothing is read then."""
    assert noise.commands(point) == []
    assert noise.readings(point, [execution("", "xhpl")]) == []


def test_reads_what_each_daemon_took():
    """A number for each node, in the nodes' order."""
    second = SAID.replace("0.006012", "0.006500")
    cpu, wall = noise.readings(POINT, [execution(SAID), execution(second), execution("", "xhpl")])
    assert (cpu.name, cpu.value, cpu.unit) == ("noise_cpu_time", [0.006012, 0.0065], "s")
    assert (wall.name, wall.value, wall.unit) == ("noise_wall_time", [1.25, 1.25], "s")


@pytest.mark.parametrize("other", [[], [""], [SAID[:-9]], [SAID + SAID], [SAID, SAID]])
def test_a_missing_line_is_refused(other):
    """A daemon that was killed, cut off, never there or one too many: nobody knows what the node lost."""
    with pytest.raises(InvalidRun, match="2 noise daemons"):
        noise.readings(POINT, [execution(SAID), *map(execution, other)])


def test_blas_chooses_the_binary():
    """HPL's own binary for each BLAS; a BLAS without one is refused with those that have one."""
    deck = dict.fromkeys(hpl.hpl_dat.FIELDS, 1) | {"NDIV": 2, "nodes": 1, "timeout_s": 9}
    for point, binary in ((deck, "xhpl"), (deck | {"blas": "reference"}, "xhpl_reference")):
        (command,) = hpl.commands(point)
        assert command.argv == (binary,)
    with pytest.raises(hpl.FalloffError, match="blas 'mkl'.*only 'openblas'.*'reference'"):
        hpl.commands(deck | {"blas": "mkl"})
