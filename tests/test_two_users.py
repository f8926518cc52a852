"""Two real users on one machine, the second hostile: made and removed here, so only as root and
with FALLOFF_USERS=1.
"""

import os
import pwd
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import users
from test_session import outcomes, plan
from undisturbed import within

from runners.records.journal import Folder

pytestmark = pytest.mark.skipif(
    not (users.IS_ROOT and os.environ.get("FALLOFF_USERS")),
    reason="it makes and removes two users of this machine: asked for by FALLOFF_USERS=1, as root",
)

NAMES = ("falloff-test-a", "falloff-test-b")

# Plants what was ever used as a lock or a state folder, then tries to end all that the first user
# runs.
HOSTILE = """
import os, sys, time
from pathlib import Path
for top in ("/dev/shm", "/tmp", f"/run/user/{sys.argv[1]}"):
    for name in ("falloff", "falloff-measuring", f"falloff-{sys.argv[1]}", "turn"):
        try:
            (Path(top) / name).mkdir(mode=0)
            print(Path(top) / name, flush=True)
        except OSError:
            pass
print("planted", flush=True)
while True:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == int(sys.argv[1]):
                os.kill(int(process.name), 9)
                print("KILLED", process.name, flush=True)
        except OSError:
            pass
    time.sleep(0.02)
"""
# Prints all that may be read of processes, and of the files below some folders.
CURIOUS = """
import sys
from pathlib import Path
files = [*Path("/proc").glob("[0-9]*/cmdline"), *Path("/proc").glob("[0-9]*/environ")]
for folder in sys.argv[1:]:
    files += Path(folder).rglob("*")
for file in files:
    try:
        print(file, file.read_bytes())
    except OSError:
        pass
"""


@pytest.fixture(scope="module")
def pair():
    """The ids of two users of this machine, who are removed afterwards."""
    try:
        for name in NAMES:
            subprocess.run(["useradd", "--create-home", name], check=True, capture_output=True)
        yield [pwd.getpwnam(name).pw_uid for name in NAMES]
    finally:
        for name in NAMES:
            subprocess.run(["userdel", "--remove", name], capture_output=True)


def as_user(user: int, script: str, *words: str) -> subprocess.Popen:
    """A Python program of a user's."""
    return subprocess.Popen(
        [users.PYTHON, "-c", script, *words],
        user=user,
        group=user,
        extra_groups=[],
        cwd="/",
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_second_user_cannot_stop_a_run(pair, monkeypatch):
    """Whatever they plant, and though they send SIGKILL to every process: the first user's campaign
    ends as ever.
    """
    first, second = pair
    monkeypatch.setattr(users, "USER", first)
    hostile = as_user(second, HOSTILE, str(first))
    planted = []
    try:
        while (line := hostile.stdout.readline().strip()) != "planted":
            planted.append(Path(line))
        assert planted
        with users.furnished() as home:
            wanted = plan()
            said, complaint = users.start(home, wanted).communicate(timeout=120)
            assert complaint == "" and set(said.split()) == {trial.id for trial in wanted.trials()}
            assert set(outcomes(Folder(home / "campaign"))) == set(said.split())
        assert users.left_over() == []
    finally:
        hostile.kill()
        rest = hostile.communicate()[0]
        for path in planted:
            path.rmdir()
    assert "KILLED" not in rest


def test_runs_of_two_users_measure_one_after_the_other(pair, monkeypatch):
    """While the first measures, the second is told whose process that is, and how not to wait."""
    first, second = pair
    monkeypatch.setattr(users, "USER", first)
    ask = (
        "import sys; sys.path.insert(0, sys.argv[1]); from runners.records import lock;"
        "lock.measuring({'kind': 'emulated'}, 'mine', sys.exit).__enter__()"
    )
    with users.furnished() as home:
        wanted = plan()
        dgemm = wanted.blocks[0][0]
        long = replace(dgemm, point={**dgemm.point, "duration_s": 60})
        home.chmod(0o755)
        owner = users.start(home, replace(wanted, blocks=((long,),)))
        assert within(30, lambda: users.processes().count("dgemm") == 2)
        asking = subprocess.run(
            [users.PYTHON, "-c", ask, str(home)],
            user=second,
            group=second,
            extra_groups=[],
            cwd="/",
            env={},
            capture_output=True,
            text=True,
        )
        owner.kill()
        owner.communicate()
        assert users.left_over() == []
    assert asking.returncode == 1
    assert f"(process {owner.pid} of user {NAMES[0]}) is measuring here" in asking.stderr
    assert "campaign hpl_scaling" in asking.stderr and "FALLOFF_LOCKS" in asking.stderr


def test_the_second_user_reads_no_key(pair, tmp_path_factory):
    """Of an explorer with its browser: neither in command lines and environments, nor in files of
    open folders.
    """
    _, second = pair
    open_to_all = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    open_to_all.chmod(0o755)
    browser, runtime = open_to_all / "browser", open_to_all / "runtime"
    browser.write_text(
        f'#!{users.PYTHON}\nimport time\nopen("{open_to_all}/seen", "w")\ntime.sleep(5)\n'
    )
    browser.chmod(0o755)
    runtime.mkdir(mode=0o755)
    own = {"BROWSER": f"{browser} %s &", "JUPYTER_RUNTIME_DIR": str(runtime)}
    command = [
        sys.executable,
        str(users.ROOT / "falloff.py"),
        "explore",
        str(tmp_path_factory.mktemp("none")),
    ]
    environment = {**os.environ, "PYTHONPATH": str(users.ROOT), **own}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as running:
        try:
            key = running.stdout.readline().split()[-1].split("/")[3]
            assert len(key) > 20 and within(30, (open_to_all / "seen").exists)
            read = as_user(second, CURIOUS, str(open_to_all), "/dev/shm").communicate()[0]
            assert str(browser) in read, "the browser's command line was not read"
            assert key not in read
        finally:
            running.send_signal(signal.SIGINT)
            running.wait(timeout=30)
    subprocess.run(["rm", "-r", str(open_to_all)], check=True)
