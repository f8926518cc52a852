"""Programs elsewhere run for as long as they hear from whoever started them."""

import os
import signal
import subprocess
import sys
import time

import pytest
from local_ssh import LocalSsh

from runners import tools
from runners.testbeds import heartbeat, remote

FOLDER = tools.PROBES / "node_folder.py"


@pytest.fixture
def hosts(tmp_path, monkeypatch):
    """A host that is this machine, and little patience."""
    LocalSsh(tmp_path / "bin", monkeypatch)
    monkeypatch.setattr(heartbeat, "SILENCE_S", 8.0)
    monkeypatch.setattr(heartbeat, "_EVERY_S", 0.2)
    return remote.Cluster("ssh", ("a",), python=sys.executable)


def sleeping(folder):
    """A program in a folder, as the guard and Open MPI start them: of no terminal."""
    return subprocess.Popen(["sleep", "60"], cwd=folder, start_new_session=True)


def until_gone(folder):
    """Wait until it is."""
    deadline = time.monotonic() + 30
    while folder.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_folder_is_held_while_words_come(hosts, tmp_path):
    """Longer than silence is borne; and it is gone with the block."""
    folder = tmp_path / "held"
    with remote.held(hosts, FOLDER, {"a": [str(folder)]}) as said:
        assert said == {"a": {"folder": str(folder)}}
        begin = time.monotonic()
        while time.monotonic() < begin + 10:
            assert folder.exists()
            time.sleep(0.1)
    until_gone(folder)


def test_a_folder_is_gone_after_silence(hosts, tmp_path, monkeypatch):
    """The node removes it by itself though the connection stands, as it seems to where a cable was cut."""
    monkeypatch.setattr(heartbeat.Heartbeat, "beat", lambda self: None)
    folder = tmp_path / "held"
    with remote.held(hosts, FOLDER, {"a": [str(folder)]}) as said:
        assert said == {"a": {"folder": str(folder)}}
        until_gone(folder)


def test_what_runs_in_the_folder_ends_with_it(hosts, tmp_path):
    """Such as ranks of MPI, which wait for others on a node that was cut off; what runs beside it goes on."""
    folder = tmp_path / "held"
    with remote.held(hosts, FOLDER, {"a": [str(folder)]}):
        inside, beside = sleeping(folder), sleeping(tmp_path)
    try:
        assert inside.wait(30) == -signal.SIGKILL and beside.poll() is None
    finally:
        beside.kill()
        beside.wait()


def test_of_two_holders_on_a_node_the_last_ends_what_runs(tmp_path):
    """As long as the folder is held by another, its programs go on."""
    folder, pipe = tmp_path / "held", subprocess.PIPE
    argv = [sys.executable, str(FOLDER), "60", str(folder)]
    first, last = (subprocess.Popen(argv, stdin=pipe, stdout=pipe) for _ in range(2))
    assert first.stdout.readline() and last.stdout.readline()
    inside = sleeping(folder)
    first.communicate(timeout=30)
    assert inside.poll() is None and folder.exists()
    last.communicate(timeout=30)
    assert inside.wait(30) == -signal.SIGKILL and not folder.exists()


def test_who_does_not_read_keeps_nobody_waiting():
    """A line that is full, and one whose reader is gone, are passed over; closing them is no error either."""
    full, gone, well = (os.pipe() for _ in range(3))
    lines = [os.fdopen(writer, "wb") for _, writer in (full, gone, well)]
    heart = heartbeat.Heartbeat()
    for line in lines:
        heart.keep(line)
    os.close(gone[0])
    with pytest.raises(BlockingIOError):
        while True:
            os.write(full[1], bytes(4096))
    heart.beat()
    heart.beat()
    assert os.read(well[0], 64) == b"\n\n"
    for line in lines:
        heart.close(line)
    heart.beat()  # of closed lines none is left
    assert os.read(well[0], 64) == b""
    os.close(full[0])
    os.close(well[0])
