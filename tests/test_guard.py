"""The guard of programs on nodes: nothing outlives whoever started it."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runners.probes import guard

GUARD = Path(guard.__file__)
# A shell that waits for its child, both of which have to end; it tells the child's number first.
FAMILY = "sleep 60 & echo $!; wait"
# One that does not end when it is asked to.
STUBBORN = "trap '' TERM; echo $$; while :; do sleep 0.1; done"
SERVER = "import socket, sys, time; time.sleep(0.3); s = socket.create_server(('', int(sys.argv[1]))); time.sleep(60)"


# A daemon: in a session of its own, and an orphan at once.
DAEMON = "setsid sh -c 'sleep 60 & echo $!' >&1 & sleep 60"
# The guard with little patience.
HASTY = "import sys; from runners.probes import guard; guard._PATIENCE_S = 0.3; sys.exit(guard.main(60, '.', 0, sys.argv[1:]))"


def start(folder, *words, silence=60, port=0, guarded=()):
    """A guard with a program, and pipes to both."""
    pipe = subprocess.PIPE
    argv = [
        sys.executable,
        *(guarded or (str(GUARD), str(silence), str(folder), str(port))),
        *words,
    ]
    return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def gone(pid: int) -> bool:
    """Whether a process ends within seconds, so that it is there no more or a mere zombie."""
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        try:
            if ") Z " in Path(f"/proc/{pid}/stat").read_text():
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize(
    ("end", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 128 + signal.SIGKILL)]
)
def test_the_program_decides_on_output_and_exit_code(tmp_path, end, code):
    """Nothing is added to standard output, the folder is the program's, and its exit code is handed on."""
    running = start(tmp_path, "sh", "-c", f"pwd; echo no >&2; {end}")
    said = running.stdout.read(), running.stderr.read()
    assert (*said, running.wait(15)) == (f"{tmp_path}\n", "no\n", code)


@pytest.mark.parametrize(
    "way", ["input ends", "silence", signal.SIGTERM, signal.SIGHUP, signal.SIGINT]
)
def test_all_end_when_whoever_started_them_is_gone(tmp_path, way):
    """Program and children end with standard input, without a word for long, or with a signal; that is no failure."""
    running = start(tmp_path, "sh", "-c", FAMILY, silence=1 if way == "silence" else 60)
    child = int(running.stdout.readline())
    if way == "input ends":
        running.stdin.close()
    elif way != "silence":
        running.send_signal(way)
    assert running.wait(15) == 0 and gone(child)


@pytest.mark.parametrize("script", [STUBBORN, DAEMON])
def test_who_does_not_end_is_killed(tmp_path, script):
    """A program that ignores being asked, and a daemon, which neither its session nor its parent's death saves."""
    running = start(tmp_path, "sh", "-c", script, guarded=("-c", HASTY))
    program = int(running.stdout.readline())
    running.stdin.close()
    running.wait(15)
    assert gone(program)


def test_a_server_is_announced_when_it_listens(tmp_path):
    """Not before: who is told so can connect."""
    with socket.create_server(("", 0)) as free:
        port = free.getsockname()[1]
    running = start(tmp_path, sys.executable, "-c", SERVER, str(port), port=port)
    assert running.stderr.readline().strip() == guard.LISTENS
    socket.create_connection(("127.0.0.1", port)).close()
    running.stdin.close()
    assert running.wait(15) == 0


def test_another_server_is_not_taken_for_ours(tmp_path, monkeypatch):
    """A port that is taken is a failure with a remedy; the program is not even started."""
    monkeypatch.setattr(guard, "_PATIENCE_S", 0.1)
    with socket.create_server(("", 0)) as other:
        code = guard.main(60, str(tmp_path), other.getsockname()[1], ["touch", "started"])
    assert code == guard.TAKEN
    assert not os.listdir(tmp_path)
