"""Programs on other hosts: what ssh and srun are asked for, what becomes of hosts, and that nothing
outlives its owner.
"""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from local_ssh import LocalSsh
from undisturbed import within

from runners import executables
from runners.probes import guard
from runners.records.record import FalloffError
from runners.testbeds import remote

ONE = {"name": "it", "launcher": "ssh", "hosts": ["a"], "python": sys.executable}
TWO = {**ONE, "hosts": ["a", "b"]}
FOLDER = executables.PROBES / "node_folder.py"


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    """An ssh to this machine by any name."""
    return LocalSsh(tmp_path / "bin", monkeypatch)


def script(folder, text):
    """A script of that text, as those of runners/probes."""
    file = folder / "script.py"
    file.write_text(text)
    return file


def test_ssh_never_asks_and_uses_the_configured_file():
    """A password prompt would hang a campaign; known hosts are left to the user's own settings."""
    words = remote.ssh({"ssh": {"config": "/etc/other"}})
    assert words[:3] == ["ssh", "-F", "/etc/other"] and "BatchMode=yes" in words
    assert not [word for word in words if "HostKey" in word or "KnownHosts" in word]


def test_slurm_starts_a_step_on_the_one_host():
    """A step beside others, on that node, without a shell in between; outside an allocation there
    are no hosts.
    """
    words = remote.argv({"launcher": "slurm"}, "b", ["echo", "two words"])
    assert words[0] == "srun" and "--nodelist=b" in words and "--overlap" in words
    assert words[-2:] == ["echo", "two words"]
    with pytest.raises(FalloffError, match="--submit"):
        remote.require_hosts({"name": "x", "launcher": "slurm"})


def test_modules_are_loaded_before_the_program(tmp_path, monkeypatch):
    """Their names are no part of a shell's script, and only the program speaks on standard
    output.
    """
    (tmp_path / ".bash_profile").write_text('module() { echo "loading $*"; export LOADED="$*"; }\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    words = remote.with_modules(
        {"modules": ["openmpi/4", "gcc"]}, ["sh", "-c", "echo $LOADED $0", "two words"]
    )
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.stdout == "load openmpi/4 gcc two words\n"
    (tmp_path / ".bash_profile").write_text("module() { return 1; }\n")
    failed = subprocess.run(words, capture_output=True, text=True)
    assert failed.returncode and not failed.stdout  # not another version of the program
    assert words[2] == remote.with_modules({"modules": ["other"]}, ["x"])[2]
    assert remote.with_modules({"modules": []}, ["program"]) == ["program"]


def test_every_host_is_asked(ssh, tmp_path):
    """A script's last line is the answer, and its words arrive through a real shell; one host that
    is down has a reason, and the others answer all the same."""
    code = "import json, sys\nprint('welcome')\nprint(json.dumps({'said': sys.argv[1:]}))\n"
    words = ["two words", "it's", '"', "$HOME", "`id`", "$(id)", "a;b", "new\nline", "*", "~", "é"]
    ssh.lose("b")
    answers = remote.ask(TWO, script(tmp_path, code), words)
    assert answers["a"] == {"said": words} and "No route to host" in answers["b"]["error"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise OSError('full')", "full"),
        ("print('[1]')", "[1]"),
        ("pass", "nothing"),
        ("import time; time.sleep(60)", "no answer within 1 s"),
    ],
)
def test_what_is_no_answer_is_an_error(ssh, tmp_path, text, reason):
    """Of a script that fails, answers something else, nothing, or not in time; and of a host that
    is down.
    """
    ssh.lose("b")
    with remote.held(TWO, script(tmp_path, text), limit_s=1) as answers:
        assert reason in answers["a"]["error"] and "No route" in answers["b"]["error"]


@pytest.fixture
def hasty(ssh, monkeypatch):
    """Words come more often."""
    monkeypatch.setattr(remote, "_BEAT_S", 0.2)


def sleeping(folder):
    """A program in a folder, as the guard and Open MPI start them: of no terminal."""
    return subprocess.Popen(["sleep", "60"], cwd=folder, start_new_session=True)


def test_a_folder_is_held_while_words_come(hasty, tmp_path):
    """Longer than silence is borne; it is gone with the block, and what runs in it, but not what
    runs beside it.
    """
    folder = tmp_path / "held"
    with remote.held(ONE, FOLDER, ["3", str(folder)]) as answers:
        assert answers == {"a": {"folder": str(folder)}}
        inside, beside = sleeping(folder), sleeping(tmp_path)
        assert not within(4, lambda: not folder.exists())
    assert within(30, lambda: not folder.exists())
    try:
        assert inside.wait(30) == -signal.SIGKILL and beside.poll() is None
    finally:
        beside.kill()
        beside.wait()


def test_a_folder_is_gone_after_silence(hasty, tmp_path, monkeypatch):
    """The node removes it by itself though the connection stands, as it seems to where a cable was
    cut.
    """
    monkeypatch.setattr(remote.Heartbeat, "beat", lambda self: None)
    folder = tmp_path / "held"
    with remote.held(ONE, FOLDER, ["3", str(folder)]) as answers:
        assert answers == {"a": {"folder": str(folder)}}
        assert within(30, lambda: not folder.exists())


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
    """A line that is full, and one whose reader is gone, are passed over; closing them is no error
    either.
    """
    full, gone, well = (os.pipe() for _ in range(3))
    lines = [os.fdopen(writer, "wb") for _, writer in (full, gone, well)]
    heart = remote.Heartbeat()
    for line in lines:
        heart.keep(line)
    os.close(gone[0])
    with pytest.raises(BlockingIOError):
        while True:
            os.write(full[1], bytes(4096))
    heart.beat()
    assert os.read(well[0], 64) == b"\n"
    for line in lines:
        heart.close(line)
    heart.beat()  # of closed lines none is left
    assert os.read(well[0], 64) == b""
    for reader in (full[0], well[0]):
        os.close(reader)


# The guard of programs on nodes: a shell that waits for its child, both of which have to end; one
# that does not end when it is asked to; and a daemon, in a session of its own and an orphan at
# once. Each tells the number of who has to end.
FAMILY = "sleep 60 & echo $!; wait"
STUBBORN = "trap '' TERM; echo $$; while :; do sleep 0.1; done"
DAEMON = "setsid sh -c 'sleep 60 & echo $!' >&1 & sleep 60"
SERVER = (
    "import socket, sys, time; time.sleep(0.3); s = socket.create_server(('', "
    "int(sys.argv[1]))); time.sleep(60)"
)
HASTY = (
    "import sys; from runners.probes import guard; guard._PATIENCE_S = 0.3; "
    "sys.exit(guard.main(60, '.', 0, sys.argv[1:]))"
)


def guarded(folder, *words, silence=60, port=0, by=()):
    """A guard with a program, and pipes to both."""
    pipe, by = subprocess.PIPE, by or (guard.__file__, str(silence), str(folder), str(port))
    argv = [sys.executable, *by, *words]
    return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def has_ended(pid):
    """Whether a process is there no more, or a mere zombie."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True


@pytest.mark.parametrize(("end", "code"), [("exit 3", 3), ("kill -9 $$", 128 + signal.SIGKILL)])
def test_a_guarded_program_decides_on_output_and_exit_code(tmp_path, end, code):
    """Nothing is added to standard output, the folder is the program's, and its exit code is handed
    on.
    """
    running = guarded(tmp_path, "sh", "-c", f"pwd; echo no >&2; {end}")
    said = running.stdout.read(), running.stderr.read()
    assert (*said, running.wait(15)) == (f"{tmp_path}\n", "no\n", code)


@pytest.mark.parametrize("way", ["input ends", "silence", signal.SIGTERM, signal.SIGHUP])
def test_all_end_when_whoever_started_them_is_gone(tmp_path, way):
    """Program and children end with standard input, without a word for long, or with a signal; that
    is no failure.
    """
    running = guarded(tmp_path, "sh", "-c", FAMILY, silence=1 if way == "silence" else 60)
    child = int(running.stdout.readline())
    if way == "input ends":
        running.stdin.close()
    elif way != "silence":
        running.send_signal(way)
    assert running.wait(15) == 0 and within(15, lambda: has_ended(child))


@pytest.mark.parametrize("shell", [STUBBORN, DAEMON])
def test_who_does_not_end_is_killed(tmp_path, shell):
    """A program that ignores being asked, and a daemon, which neither its session nor its parent's
    death saves.
    """
    running = guarded(tmp_path, "sh", "-c", shell, by=("-c", HASTY))
    program = int(running.stdout.readline())
    running.stdin.close()
    running.wait(15)
    assert within(15, lambda: has_ended(program))


def test_a_server_is_announced_when_it_listens_and_no_other_is_taken_for_it(tmp_path, monkeypatch):
    """Who is told so can connect; where another listens the program is not even started."""
    with socket.create_server(("", 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setattr(guard, "_PATIENCE_S", 0.1)
        assert guard.main(60, str(tmp_path), port, ["touch", "started"]) == guard.TAKEN
        assert not os.listdir(tmp_path)
    running = guarded(tmp_path, sys.executable, "-c", SERVER, str(port), port=port)
    assert running.stderr.readline().strip() == guard.LISTENS
    socket.create_connection(("127.0.0.1", port)).close()
    running.stdin.close()
    assert running.wait(15) == 0
