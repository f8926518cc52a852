"""The emulated testbed of an ordinary user, for real: user namespaces, Open MPI, HPL; and nothing is left of it."""

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import small_hpl
import users

from analysis import store
from runners import runner_named
from runners.journal import Folder
from runners.plan import Plan
from runners.record import Command, FalloffError, Transcript, Trial, judge
from runners.testbeds import available, cgroup, emulated, rootless

QUOTA = small_hpl.plan().testbed
ROOTLESS = {**QUOTA, **small_hpl.read("testbeds/rootless.toml")}

lacking = emulated.unavailable(ROOTLESS) or ([] if Path(users.PYTHON).exists() else [f"there is no {users.PYTHON}"])
pytestmark = pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))


def plan(testbed: dict) -> Plan:
    """DGEMM, then HPL on GigE, on two nodes."""
    whole = small_hpl.plan(blocks=1)
    on_two = [trial for trial in whole.blocks[0] if trial.point["nodes"] == 2]
    block = [t for t in on_two if t.role == "before" or t.point["interconnect"] == "gige"]
    return replace(whole, testbed=testbed, preamble=(), blocks=(tuple(block),))


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """The user's home."""
    with users.furnished() as home:
        yield home


@pytest.fixture
def campaign(home) -> Iterator[Folder]:
    """The campaign's folder in it; it is removed afterwards."""
    yield Folder(home / "campaign")
    shutil.rmtree(home / "campaign", ignore_errors=True)


def outcomes(folder: Folder) -> dict[str, Transcript]:
    """The transcripts by id, after each was judged valid."""
    found = {transcript.trial.id: transcript for transcript in folder.transcripts()}
    for transcript in found.values():
        outcome = judge(transcript, runner_named(transcript.trial.runner).parse)
        assert (outcome.status, outcome.reason) == ("ok", "")
    return found


def test_ordinary_user_runs_a_campaign(home, campaign):
    """Every trial is valid over the shaped links, each says that no quota held, and nothing is left."""
    wanted = plan(ROOTLESS)
    child = users.start(home, wanted)
    said, complaint = child.communicate(timeout=60)
    assert (child.returncode, complaint) == (0, "")
    found = outcomes(campaign)
    assert set(found) == {trial.id for trial in wanted.trials()} and len(said.split()) == len(found) + 1
    for transcript in found.values():
        assert transcript.requested["cpu_share"] == transcript.effective["cpu_share"] == "unlimited"
        assert transcript.evidence == "emulated"
        if transcript.trial.runner == "hpl":
            panels = 8 * transcript.trial.point["N"] ** 2 / 2 / 2
            assert min(transcript.counters["bytes_sent"]) > panels / 2 and transcript.effective["nodes"] == 2
    (session,) = json.loads((campaign.path / "provenance.json").read_text())["sessions"]
    assert session["testbed"]["root"] == "of a user namespace" and session["testbed"]["cgroup_version"] is None
    assert store.assemble(campaign.path).attrs["caveat"].startswith("No CPU quota held")
    assert users.left_over() == []


def kill(owner: subprocess.Popen) -> int:
    """kill -9, and what the owner's exit code is then."""
    owner.kill()
    return -signal.SIGKILL


def interrupt(owner: subprocess.Popen) -> int:
    """Ctrl-C, which goes to all processes of the terminal's group."""
    os.killpg(owner.pid, signal.SIGINT)
    return -signal.SIGINT


@pytest.mark.parametrize("end", [kill, interrupt])
@pytest.mark.skipif(not users.IS_ROOT, reason="the processes of the user who runs the tests are not the test's alone")
def test_nothing_survives_its_owner(home, campaign, end):
    """However the owner ends in the middle of a trial, all of the user's processes end."""
    wanted = plan(ROOTLESS)
    dgemm = wanted.blocks[0][0]
    long = replace(dgemm, point={**dgemm.point, "duration_s": 60})
    owner = users.start(home, replace(wanted, blocks=((long,),)))
    while users.processes().count("dgemm") < 2:
        assert owner.poll() is None
        time.sleep(0.02)
    code = end(owner)
    owner.communicate()
    assert owner.returncode == code
    assert users.left_over() == []


def test_without_a_cgroup_of_ones_own_there_is_no_quota(home, campaign):
    """Who asks for quotas is told of every way to have them, or to do without; nothing ran."""
    if not users.IS_ROOT:
        pytest.skip("whether the user who runs the tests has a cgroup is not the test's to say")
    child = users.start(home, plan(QUOTA))
    said, complaint = child.communicate(timeout=60)
    assert child.returncode == 1 and said == "" and len(complaint.splitlines()) == 1
    assert all(remedy in complaint for remedy in ("sudo", "Delegate=cpu", "testbed rootless"))
    assert campaign.finished() == set()


@pytest.fixture
def delegated() -> Iterator[tuple[Path, ...]]:
    """A cgroup that root has made and given to the user: its folders, in both trees of version 1."""
    whole = cgroup.find()
    if not users.IS_ROOT or whole.version != 1:
        pytest.skip("a group of version 1 cannot be delegated here")
    folders = whole.folders(f"falloff-test-{os.getpid()}")
    for folder in folders:
        folder.mkdir()
        for path in (folder, folder / "cgroup.procs"):
            os.chown(path, users.USER, users.USER)
    yield folders
    for folder in folders:
        folder.rmdir()


def test_delegated_cgroup_gives_quotas(home, campaign, delegated):
    """In a cgroup of the user's own the nodes have the quota that root's have, and leave no group in it."""
    entrances = tuple(folder / "cgroup.procs" for folder in delegated)
    child = users.start(home, plan(QUOTA), lambda: users.become(entrances))
    _, complaint = child.communicate(timeout=60)
    assert (child.returncode, complaint) == (0, "")
    for transcript in outcomes(campaign).values():
        assert transcript.effective["cpu_share"] == QUOTA["cpu"]["share"]
        assert min(transcript.counters["cpu_time"]) > 0
    assert users.left_over() == []
    assert not [below for folder in delegated for below in folder.iterdir() if below.is_dir()]


def test_hung_trial_leaves_nothing_to_the_next():
    """What left its session is gone too; a thread of a program with many, as a notebook is, may have the testbed."""
    hung = Command(("bash", "-c", "setsid sleep 1000 & sleep 1000"), ranks=2, timeout_s=1)
    listing = Command(("bash", "-c", "cd /proc; echo [0-9]*"))
    found = []

    def trials() -> None:
        with emulated.open_testbed(ROOTLESS, small_hpl.plan().interconnects) as testbed:
            for command in (hung, listing):
                found.append(testbed.run(Trial("t", "point", "none", 1, 1, {"interconnect": "gige"}), [command]))

    thread = threading.Thread(target=trials)
    thread.start()
    thread.join()
    first, second = found
    assert first.executions[0].timed_out and first.effective["nodes"] == 2
    own, *others = map(int, second.executions[0].stdout.split())
    assert own == 1 and len(others) == 1


def test_kernel_without_user_namespaces_is_named(monkeypatch):
    """What unshare says is the reason, and root the remedy."""
    refused = "unshare: unshare failed: Operation not permitted"
    monkeypatch.setattr(rootless, "_UNSHARE", ["sh", "-c", f"echo '{refused}' >&2; exit 1"])
    (reason,) = emulated.unavailable(ROOTLESS)
    assert refused in reason and "sudo" in reason
    with pytest.raises(FalloffError, match=refused), emulated.open_testbed(ROOTLESS, {}):
        pass


def test_paths_are_for_root(monkeypatch):
    """The testbed of paths needs more than a user namespace gives."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert available.obstacles(QUOTA) == ["network namespaces and CPU quotas need root: run it with sudo"]
