"""Sessions for real, with user namespaces, Open MPI and HPL: of an ordinary user, and killed;
nothing is left of them.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import small_hpl
import users
from undisturbed import within

from analysis.dataset import derive, store
from analysis.descriptions import campaigns, networks, testbeds
from analysis.descriptions.resolution import resolve
from runners.engine import session
from runners.records.journal import Folder
from runners.records.plan import Plan, Stopping
from runners.records.record import FalloffError, Transcript, judge
from runners.testbeds import emulated
from runners.tools import tool_named

MACHINE = {**testbeds.read("emulated").plain(), "nodes": 2}

lacking = emulated.unavailable(MACHINE) or (
    [] if Path(users.PYTHON).exists() else [f"there is no {users.PYTHON}"]
)
pytestmark = pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))


def plan() -> Plan:
    """DGEMM, then HPL on GigE, on two nodes, at sizes that take half a second."""
    campaign = campaigns.read("hpl_scaling").changed(
        factors={"interconnect": ["gige"], "nodes": [2]},
        levels={"nodes": {"2": {"P": 1, "Q": 2, "N": 1408}}},
        stopping=campaigns.Rules(blocks=1),
        survey=[],
        warm_up=[],
    )
    machine = testbeds.read("emulated").changed(nodes=2)
    whole = resolve(campaign, machine, networks.between({}))
    ((hpl,),) = whole.blocks
    point = {"interconnect": "gige", "nodes": 2, "K": 64, "duration_s": 0.2}
    dgemm = replace(hpl, id="b001-001-dgemm", runner="dgemm", point=point)
    return replace(whole, blocks=((dgemm, hpl),))


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
    """The transcripts by id, after each was judged valid, but for the tests beside it."""
    found = {transcript.trial.id: transcript for transcript in folder.transcripts()}
    for transcript in found.values():
        outcome = judge(transcript, tool_named(transcript.trial.runner).parse)
        assert outcome.status in ("ok", "busy") and (outcome.reason == "") == (
            outcome.status == "ok"
        )
    return found


def test_ordinary_user_runs_a_campaign(home, campaign):
    """Every trial is valid over the shaped links, its files are the user's, events are heard, and
    nothing is left.
    """
    wanted = plan()
    child = users.start(home, wanted)
    said, complaint = child.communicate(timeout=60)
    assert (child.returncode, complaint) == (0, "")
    found = outcomes(campaign)
    assert set(found) == {trial.id for trial in wanted.trials()} == set(said.split())
    for transcript in found.values():
        assert transcript.evidence == "emulated" and transcript.effective["nodes"] == 2
        if transcript.trial.runner == "hpl":
            panels = 8 * transcript.trial.point["N"] ** 2 / 2 / 2
            assert min(transcript.counters["bytes_sent"]) > panels / 2
    (kept,) = json.loads((campaign.path / "provenance.json").read_text())["sessions"]
    assert kept["testbed"]["root"] == ("of a user namespace")
    assert {file.stat().st_uid for file in campaign.path.rglob("*")} == {
        campaign.path.stat().st_uid
    }
    assert store.assemble(campaign.path).attrs["caveat"].startswith("The nodes were not paced")
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
@pytest.mark.skipif(
    not users.IS_ROOT,
    reason="the processes of the user who runs the tests are not the test's alone",
)
def test_nothing_survives_its_owner(home, campaign, end):
    """However the owner ends in the middle of a trial, all of the user's processes end."""
    wanted = plan()
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


@pytest.fixture
def not_root(monkeypatch):
    """This process is told that it is not root; its sessions are then in user namespaces."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


def looks(folder: Folder) -> bool:
    """All is decided at once: the function that a session is given by its name."""
    (folder.path / "looked").touch()
    return True


@pytest.mark.more
def test_a_thread_may_have_a_session_that_looks_at_its_data(not_root, tmp_path):
    """A notebook is a program of many threads; whether all is decided is asked inside, and what
    ended it is heard.
    """
    dgemm, _ = plan().blocks[0]
    blocks = (dgemm,), (replace(dgemm, id="b002-001-dgemm", block=2),)
    wanted = replace(plan(), blocks=blocks, stopping=Stopping(2, looks=(1, 2)))
    heard = []
    thread = threading.Thread(
        target=session.run, args=(wanted, Folder(tmp_path), heard.append, looks)
    )
    with pytest.MonkeyPatch.context() as patch:
        here = Path(__file__).parent
        patch.setenv("PYTHONPATH", f"{here}:{here / 'support'}")
        thread.start()
        thread.join()
    assert [event.kind for event in heard] == ["started", "finished", "ended"]
    outcome = heard[1].outcome  # busy if tests beside it took the processors
    assert outcome.status == "busy" or [*outcome.readings] == ["dgemm_rate"]
    assert heard[-1].message == "decided" and (tmp_path / "looked").exists()


def test_a_fault_inside_is_the_owners(not_root, tmp_path):
    """What the session cannot do is raised here in its words, and so is what the owner's listener
    raises.
    """
    broken = replace(
        plan(), testbed={**MACHINE, "tcp": {**MACHINE["tcp"], "congestion_control": "vegas"}}
    )
    with pytest.raises(FalloffError, match="modprobe tcp_vegas"):
        session.run(broken, Folder(tmp_path / "broken"))
    with pytest.raises(ZeroDivisionError):
        session.run(plan(), Folder(tmp_path / "heard"), lambda event: 1 / 0)


def traces(folder: Path) -> list[str]:
    """What testbeds have below a folder: processes that work there or name it, mounts, and state
    folders.
    """
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    found = [line.split()[1] for line in mounts if str(folder) in line]
    found += map(str, folder.glob("states/*/"))
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            words = (process / "cmdline").read_text(errors="replace").replace("\0", " ")
            if str(folder) in words + os.readlink(process / "cwd"):
                found.append(f"{process.name}: {words}")
    return found


def test_kill_9_at_random_moments_then_resume(tmp_path):
    """Killed six times, or FALLOFF_KILLS, with nothing left soon afterwards, then left alone: every
    trial once, valid.
    """
    chance, told, states = random.Random(11), [], []
    kills = int(os.environ.get("FALLOFF_KILLS", "6"))
    Folder(tmp_path / "c").create_or_check(small_hpl.plan())
    script = [sys.executable, small_hpl.__file__, str(tmp_path / "c")]
    for attempt in range(kills + 1):
        child = subprocess.Popen(script, stdout=subprocess.PIPE, text=True)
        if attempt < kills:
            time.sleep(chance.uniform(0.1, 1.6))
            child.send_signal(signal.SIGKILL)
            child.wait()
            assert within(20, lambda: not traces(tmp_path)), traces(tmp_path)
        said = child.communicate(timeout=120)[0].split("\n")
        states += [Path(line.split()[1]) for line in said if line.startswith("open ")]
        told += [line for line in said if line and not line.startswith("open ")]
    assert child.returncode == 0
    trials = small_hpl.plan().trials()
    assert Folder(tmp_path / "c").finished() == {trial.id for trial in trials}
    assert len(told) == len(set(told)), "a finished trial ran again"
    assert len(states) > 1, "no kill came while the testbed was up"
    for state in states:
        assert not state.exists()
        assert str(state) not in Path("/proc/self/mounts").read_text()
    dataset = store.assemble(tmp_path / "c")
    assert (dataset.status == "ok").all(), dataset.reason.values
    points = dataset.isel(trial=(dataset.role == "point").values)
    # HPL's bytes took no other way.
    assert (points.bytes_sent.sum("node") >= derive.broadcast_bytes(points.N, points.Q)).all()
    assert set(points.interconnect.values) == {"gige", "10gige"}
