"""A real emulated campaign, killed at random moments and resumed: nothing lost, nothing left behind."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import small_hpl
import users

from analysis import derive, store
from runners.journal import Folder

lacking = users.lacking(small_hpl.plan().testbed)
pytestmark = pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))


def start(folder: Path) -> subprocess.Popen:
    script = Path(small_hpl.__file__)
    return subprocess.Popen(
        [sys.executable, str(script), str(folder)], stdout=subprocess.PIPE, text=True
    )


def test_kill_9_at_random_moments_then_resume(tmp_path):
    """Killed six times, then left alone: every trial once, valid, and no trace of the killed testbeds."""
    chance, told, states = random.Random(11), [], []
    for attempt in range(7):
        child = start(tmp_path / "c")
        if attempt < 6:
            time.sleep(chance.uniform(0.3, 1.6))
            child.send_signal(signal.SIGKILL)
        said = child.communicate(timeout=120)[0].split("\n")
        states += [Path(line.split()[1]) for line in said if line.startswith("open ")]
        told += [line for line in said if line and not line.startswith("open ")]
    assert child.returncode == 0
    folder = Folder(tmp_path / "c")
    assert folder.finished() == {trial.id for trial in small_hpl.plan().trials()}
    assert len(told) == len(set(told)), "a finished trial ran again"
    assert len(states) > 1, "no kill came while the testbed was up"
    for state in states:
        assert not state.exists()
        assert str(state) not in Path("/proc/self/mounts").read_text()

    dataset = store.assemble(tmp_path / "c")
    assert (dataset.status == "ok").all(), dataset.reason.values
    points = dataset.isel(trial=(dataset.role == "point").values)
    sent = points.bytes_sent.sum("node")
    assert (sent >= derive.broadcast_bytes(points.N, points.Q)).all(), (
        "HPL's bytes took another way"
    )
    assert set(points.interconnect.values) == {"gige", "10gige"}
