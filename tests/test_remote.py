"""Programs on other hosts: what ssh and srun are asked for, and what becomes of hosts that do not answer."""

import shlex
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from local_ssh import LocalSsh

from runners.record import FalloffError
from runners.testbeds import remote

WORDS = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), min_size=1)
TWO = remote.Cluster("ssh", ("a", "b"))


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
    """A step beside others, on that node, without a shell in between."""
    words = remote.argv(remote.Cluster("slurm", ("a", "b")), "b", ["echo", "two words"])
    assert words[0] == "srun" and "--nodelist=b" in words and "--overlap" in words
    assert words[-2:] == ["echo", "two words"]


def test_modules_are_arguments_of_a_constant_script():
    """No module's name becomes part of a shell's script; without modules there is no shell at all."""
    loaded = remote.with_modules(["openmpi/4", "gcc"], ["program", "two words"])
    assert loaded[3:] == ["bash", "2", "openmpi/4", "gcc", "program", "two words"]
    assert loaded[2] == remote.with_modules(["other"], ["x"])[2]
    assert remote.with_modules([], ["program"]) == ["program"]


def test_modules_are_loaded_before_the_program(tmp_path, monkeypatch):
    """The program sees what `module load` has set, and only it speaks on standard output."""
    (tmp_path / ".bash_profile").write_text('module() { echo "loading $*"; export LOADED="$*"; }\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    words = remote.with_modules(["openmpi/4", "gcc"], ["sh", "-c", "echo $LOADED $0", "two words"])
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.stdout == "load openmpi/4 gcc two words\n"


def test_without_its_modules_a_program_does_not_run(tmp_path, monkeypatch):
    """A module that is not there ends in a failure, not in another version of the program."""
    (tmp_path / ".bash_profile").write_text("module() { return 1; }\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    done = subprocess.run(remote.with_modules(["none"], ["echo", "ran"]), capture_output=True, text=True)
    assert done.returncode and not done.stdout


def test_every_host_is_asked(ssh, tmp_path):
    """A script arrives on standard input with its arguments, and its last line is the answer."""
    asked = script(tmp_path, "import json, sys\nprint('welcome')\nprint(json.dumps({'said': sys.argv[1:]}))\n")
    assert remote.ask(TWO, asked, ["it's", "two words"]) == {host: {"said": ["it's", "two words"]} for host in "ab"}


def test_a_host_that_is_down_has_a_reason(ssh, tmp_path):
    """The others answer all the same."""
    ssh.lose("b")
    answers = remote.ask(TWO, script(tmp_path, "print('{}')"))
    assert answers["a"] == {}
    assert "No route to host" in answers["b"]["error"]


def test_a_script_that_hangs_is_named_in_time(ssh, tmp_path):
    """The limit holds, though the script would go on."""
    begin = time.monotonic()
    answers = remote.ask(TWO, script(tmp_path, "import time; time.sleep(60)"), limit_s=1)
    assert answers["a"] == {"error": "no answer within 1 s"}
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize(
    ("text", "reason"),
    [("raise OSError('the disk is full')", "the disk is full"), ("print('[1]')", "[1]"), ("pass", "nothing")],
)
def test_what_is_no_answer_is_an_error(ssh, tmp_path, text, reason):
    """A script that fails, answers something else, or nothing, is never taken for an answer."""
    assert reason in remote.ask(TWO, script(tmp_path, text))["a"]["error"]


HOLDING = """\
import json, sys
from pathlib import Path
mark = Path(sys.argv[2])
mark.touch()
print(json.dumps({"mark": str(mark)}), flush=True)
sys.stdin.buffer.read()
mark.unlink()
"""


def test_a_held_script_ends_on_leaving(ssh, tmp_path):
    """It runs as long as the block, and has ended when that is left, after a failure too."""
    marks = {host: tmp_path / host for host in "ab"}
    with pytest.raises(ZeroDivisionError):
        with remote.held(TWO, script(tmp_path, HOLDING), {host: [str(mark)] for host, mark in marks.items()}) as said:
            assert said == {host: {"mark": str(mark)} for host, mark in marks.items()}
            assert all(mark.exists() for mark in marks.values())
            1 / 0
    assert not any(mark.exists() for mark in marks.values())


def test_a_held_script_that_does_not_begin_has_a_reason(ssh, tmp_path):
    """A host that is down, one that fails and one that says nothing in time are errors."""
    ssh.lose("b")
    with remote.held(TWO, script(tmp_path, "1 / 0"), {"a": [], "b": []}) as said:
        assert "ZeroDivisionError" in said["a"]["error"] and "No route" in said["b"]["error"]
    with remote.held(TWO, script(tmp_path, "import time; time.sleep(60)"), {"a": []}, limit_s=1) as said:
        assert said["a"] == {"error": "no answer within 1 s"}


def test_slurm_has_no_hosts_outside_an_allocation():
    """The remedy is the option that makes a job."""
    with pytest.raises(FalloffError, match="--submit"):
        remote.cluster({"name": "x", "launcher": "slurm"})
