"""Programs on other hosts: what ssh and srun are asked for, and what becomes of hosts and of who does not answer."""

import os
import shlex
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from local_ssh import LocalSsh

from runners import tools
from runners.record import FalloffError
from runners.testbeds import remote

WORDS = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), min_size=1
)
TWO = remote.Cluster("ssh", ("a", "b"), python=sys.executable)
FOLDER = tools.PROBES / "node_folder.py"


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    """An ssh to this machine by any name."""
    return LocalSsh(tmp_path / "bin", monkeypatch)


def script(folder, text):
    """A script of that text, as those of runners/probes."""
    file = folder / "script.py"
    file.write_text(text)
    return file


@given(WORDS)
def test_words_arrive_as_they_are(words):
    """Whatever a word holds, the remote shell hands it to the program unchanged and starts nothing else."""
    sent = remote.argv(TWO, "a", words)
    assert shlex.split(sent[-1]) == words
    assert sent[-3:-1] == ["--", "a"]


def test_words_arrive_through_a_real_shell(ssh):
    """What ssh joins and a shell splits is what was meant: quotes, blanks, expansions and line ends."""
    words = ["printf", "%s|", "two words", "it's", "$HOME", "`id`", "a;b", "new\nline", "*"]
    done = subprocess.run(remote.argv(TWO, "a", words), capture_output=True, text=True)
    assert done.stdout == "".join(f"{word}|" for word in words[2:])


def test_ssh_never_asks_and_uses_the_configured_file():
    """A password prompt would hang a campaign; known hosts are left to the user's own settings."""
    words = remote.ssh(remote.Cluster("ssh", ("a",), ssh_config="/etc/other"))
    assert words[:3] == ["ssh", "-F", "/etc/other"]
    assert "BatchMode=yes" in words
    assert not [word for word in words if "HostKey" in word or "KnownHosts" in word]


def test_slurm_starts_a_step_on_the_one_host():
    """A step beside others, on that node, without a shell in between; outside an allocation there are no hosts."""
    words = remote.argv(remote.Cluster("slurm", ("a", "b")), "b", ["echo", "two words"])
    assert words[0] == "srun" and "--nodelist=b" in words and "--overlap" in words
    assert words[-2:] == ["echo", "two words"]
    with pytest.raises(FalloffError, match="--submit"):
        remote.cluster({"name": "x", "launcher": "slurm"})


def test_modules_are_loaded_before_the_program(tmp_path, monkeypatch):
    """Their names are no part of a shell's script, and only the program speaks on standard output."""
    (tmp_path / ".bash_profile").write_text('module() { echo "loading $*"; export LOADED="$*"; }\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    words = remote.with_modules(["openmpi/4", "gcc"], ["sh", "-c", "echo $LOADED $0", "two words"])
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.stdout == "load openmpi/4 gcc two words\n"
    (tmp_path / ".bash_profile").write_text("module() { return 1; }\n")
    failed = subprocess.run(words, capture_output=True, text=True)
    assert failed.returncode and not failed.stdout  # not another version of the program
    assert words[2] == remote.with_modules(["other"], ["x"])[2]
    assert remote.with_modules([], ["program"]) == ["program"]


def test_every_host_is_asked(ssh, tmp_path):
    """A script's last line is the answer; one that is down has a reason, and the others answer all the same."""
    code = "import json, sys\nprint('welcome')\nprint(json.dumps({'said': sys.argv[1:]}))\n"
    words = ["it's", "two words"]
    answers = remote.ask(TWO, script(tmp_path, code), words)
    assert answers == {host: {"said": words} for host in "ab"}
    ssh.lose("b")
    answers = remote.ask(TWO, script(tmp_path, "print('{}')"))
    assert answers["a"] == {} and "No route to host" in answers["b"]["error"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [("raise OSError('full')", "full"), ("print('[1]')", "[1]"), ("pass", "nothing")],
)
def test_what_is_no_answer_is_an_error(ssh, tmp_path, text, reason):
    """A script that fails, answers something else, or nothing, is never taken for an answer."""
    assert reason in remote.ask(TWO, script(tmp_path, text))["a"]["error"]


def test_a_held_script_that_does_not_begin_has_a_reason(ssh, tmp_path):
    """A host that is down, one that fails and one that says nothing in time are errors."""
    ssh.lose("b")
    with remote.held(TWO, script(tmp_path, "1 / 0"), {"a": [], "b": []}) as answers:
        assert "ZeroDivisionError" in answers["a"]["error"] and "No route" in answers["b"]["error"]
    hanging = script(tmp_path, "import time; time.sleep(60)")
    with remote.held(TWO, hanging, {"a": []}, limit_s=1) as answers:
        assert answers["a"] == {"error": "no answer within 1 s"}


@pytest.fixture
def hasty(ssh, monkeypatch):
    """Little patience."""
    monkeypatch.setattr(remote, "SILENCE_S", 8.0)
    monkeypatch.setattr(remote, "_BEAT_S", 0.2)


def sleeping(folder):
    """A program in a folder, as the guard and Open MPI start them: of no terminal."""
    return subprocess.Popen(["sleep", "60"], cwd=folder, start_new_session=True)


def until_gone(folder):
    """Wait until it is."""
    deadline = time.monotonic() + 30
    while folder.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_folder_is_held_while_words_come(hasty, tmp_path):
    """Longer than silence is borne; it is gone with the block, and what runs in it, but not what runs beside it."""
    folder = tmp_path / "held"
    with remote.held(TWO, FOLDER, {"a": [str(folder)]}) as answers:
        assert answers == {"a": {"folder": str(folder)}}
        inside, beside = sleeping(folder), sleeping(tmp_path)
        begin = time.monotonic()
        while time.monotonic() < begin + 10:
            assert folder.exists()
            time.sleep(0.1)
    until_gone(folder)
    try:
        assert inside.wait(30) == -signal.SIGKILL and beside.poll() is None
    finally:
        beside.kill()
        beside.wait()


def test_a_folder_is_gone_after_silence(hasty, tmp_path, monkeypatch):
    """The node removes it by itself though the connection stands, as it seems to where a cable was cut."""
    monkeypatch.setattr(remote.Heartbeat, "beat", lambda self: None)
    folder = tmp_path / "held"
    with remote.held(TWO, FOLDER, {"a": [str(folder)]}) as answers:
        assert answers == {"a": {"folder": str(folder)}}
        until_gone(folder)


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
    os.close(full[0])
    os.close(well[0])
