"""Two runs at once: one writes and measures, the other waits or is told who is at work; `verify`
sees what two wrote.
"""

import json
import multiprocessing
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from campaigns import small_plan, use_echo
from local_testbed import LocalTestbed

from analysis.dataset import store
from analysis.evidence import verify
from runners.engine import campaign as engine
from runners.engine import session
from runners.records import lock
from runners.records.journal import Folder
from runners.records.record import FalloffError

MACHINE = {"kind": "emulated", "name": "mine"}
HOLD = """
import json, sys, time
from runners.records import lock
with lock.measuring(json.loads(sys.argv[1]), "campaign other", print):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def locks(tmp_path, monkeypatch):
    """The machine's lock lies in this test's folder."""
    monkeypatch.setenv("FALLOFF_LOCKS", str(tmp_path))


@contextmanager
def another_run(testbed=MACHINE, python=sys.executable, preexec_fn=None):
    """Another process that measures, until it is killed."""
    process = subprocess.Popen(
        [python, "-c", HOLD, json.dumps(testbed)],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=preexec_fn,
    )
    try:
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_lock_is_gone_although_a_child_still_has_its_file(tmp_path):
    """As between fork and exec of a thread's program, when another thread ends the run."""
    with lock.writing(tmp_path):
        child = os.fork()
        if not child:
            time.sleep(60)
            os._exit(0)
    try:
        with lock.writing(tmp_path):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_second_run_waits_until_the_first_is_gone():
    """It says who is at work, once; a kill -9 lets go; a cluster's hosts are no part of this
    machine.
    """
    messages = []
    with another_run() as first:
        with lock.measuring(
            {"kind": "cluster", "name": "far", "hosts": ["a"]}, "x", print
        ) as waited:
            assert waited is False

        def wait(message):
            messages.append(message)
            first.send_signal(signal.SIGKILL)

        with lock.measuring(MACHINE, "campaign mine", wait) as waited:
            assert waited is True
    (message,) = messages
    assert message.startswith(f"campaign other, process {first.pid} since ")


def test_a_session_that_waited_runs_nothing_twice(tmp_path, monkeypatch):
    """The campaign that it was to run was finished meanwhile: its listener hears that it waits, and
    no trial.
    """
    use_echo(monkeypatch)
    monkeypatch.setattr(session, "testbed_module", lambda description: pytest.fail("opened"))
    plan, folder, heard = small_plan(), Folder(tmp_path / "small"), []
    engine.run(plan, LocalTestbed(), folder)
    with another_run() as first:

        def listen(event):
            heard.append(event)
            first.kill()

        session.run(plan, folder, listen)
    assert [event.kind for event in heard] == ["waiting"] and "campaign other" in heard[0].message
    assert set(folder.results().values()) == {1}


def test_one_writer_for_each_folder(tmp_path, monkeypatch):
    """A second run of a folder is refused, in its own words, and changes nothing; then it may."""
    use_echo(monkeypatch)
    plan, folder = small_plan(), Folder(tmp_path / "small")
    tried = []

    def intrude(event):
        if event.kind == "finished" and not tried:
            before = sorted((file, file.stat().st_mtime_ns) for file in folder.path.rglob("*"))
            with pytest.raises(
                FalloffError, match="is being written by a run on .* since"
            ) as refusal:
                engine.run(plan, LocalTestbed(), Folder(folder.path))
            after = sorted((file, file.stat().st_mtime_ns) for file in folder.path.rglob("*"))
            assert before == after
            tried.append(refusal)

    engine.run(plan, LocalTestbed(), folder, intrude)
    assert tried and folder.finished() == {trial.id for trial in plan.trials()}
    assert engine.run(plan, LocalTestbed(), folder) == "blocks"


def _many(folder, start):
    start.wait()
    for _ in range(40):
        try:
            engine.tool_named = lambda name: __import__("campaigns").ECHO
            engine.run(small_plan(), LocalTestbed(), Folder(folder))
            return
        except FalloffError:
            time.sleep(0.05)


def test_four_runs_at_once_write_every_result_once(tmp_path):
    """Processes that all try: 19 results for 19 trials."""
    context = multiprocessing.get_context("fork")
    start = context.Event()
    processes = [context.Process(target=_many, args=(tmp_path / "small", start)) for _ in range(4)]
    for process in processes:
        process.start()
    start.set()
    for process in processes:
        process.join()
    results = Folder(tmp_path / "small").results()
    assert set(results) == {trial.id for trial in small_plan().trials()}
    assert set(results.values()) == {1}


def test_verify_counts_results(tmp_path, monkeypatch):
    """Two results of a trial differ from what one run writes; a transcript that was removed is run
    again in order.
    """
    use_echo(monkeypatch)
    monkeypatch.setattr(store, "tool_named", engine.tool_named)
    folder = Folder(tmp_path / "small")
    engine.run(small_plan(), LocalTestbed(), folder)
    removed = next(folder.path.glob("transcripts/*.json"))
    removed.unlink()
    engine.run(small_plan(), LocalTestbed(), folder)
    assert verify.check(folder.path).differences == ()
    lines = (folder.path / "journal.jsonl").read_text().splitlines()
    again = [line for line in lines if json.loads(line)["event"] == "trial"][:1]
    name = json.loads(again[0])["id"]
    folder.note(**{key: value for key, value in json.loads(again[0]).items() if key != "at"})
    found = "\n".join(verify.check(folder.path).differences)
    assert f"trial {name} has 2 results in the journal" in found


def test_the_lock_of_another_user_can_be_asked_for(tmp_path):
    """A file that may only be read is locked all the same, and a symbolic link is not followed."""
    file = tmp_path / "theirs"
    file.write_text("a run of theirs")
    file.chmod(0o444)
    with lock.held(file, "mine"), pytest.raises(lock.LockBusy), lock.held(file, "again"):
        pytest.fail("held twice")
    (tmp_path / "link").symlink_to(file)
    with pytest.raises(OSError), lock.held(tmp_path / "link", "x"):
        pytest.fail("a link was followed")
    assert os.readlink(tmp_path / "link") == str(file)


@pytest.fixture
def shared(monkeypatch):
    """A testbed of this test's alone, whose lock is the one that all users share."""
    monkeypatch.delenv("FALLOFF_LOCKS")
    return {"kind": "cluster", "name": "it", "hosts": [secrets.token_hex()]}


@pytest.mark.parametrize("plant", [Path.mkdir, Path.touch, lambda path: path.symlink_to("/etc")])
def test_nothing_planted_stops_a_run(shared, plant):
    """Whatever lies where lock files are usual, also what nobody may open."""
    planted = [
        Path(top) / f"falloff-measuring{lock._suffix(shared)}" for top in ("/dev/shm", "/tmp")
    ]
    try:
        for path in planted:
            plant(path)
            if path.is_file():
                path.chmod(0)
        with lock.measuring(shared, "mine", pytest.fail) as waited:
            assert waited is False
    finally:
        for path in planted:
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def test_all_users_share_the_machine(shared):
    """A kill -9 lets go; two who ask are both told; afterwards it is free."""
    messages = []
    with another_run(shared) as first:
        with pytest.raises(ZeroDivisionError), lock.measuring(shared, "x", lambda _: 1 / 0):
            pytest.fail("held twice")

        def wait(message):
            messages.append(message)
            first.kill()

        for waits in (True, False):
            with lock.measuring(shared, "mine", wait) as waited:
                assert waited is waits
    (message,) = messages
    assert message.startswith(f"campaign other, process {first.pid} since ")
    assert "FALLOFF_LOCKS" not in message


def test_who_holds_the_name_and_says_nothing_is_waited_for_with_the_way_out(shared):
    """It does not even listen; a folder of one's own does without it."""
    with socket.socket(socket.AF_UNIX) as squatter:
        squatter.bind(f"\0falloff-measuring{lock._suffix(shared)}")

        def wait(message):
            assert (
                message.startswith("another run is measuring here") and "FALLOFF_LOCKS" in message
            )
            squatter.close()

        with lock.measuring(shared, "mine", wait) as waited:
            assert waited is True


def test_a_folder_for_locks_that_is_none_is_named(monkeypatch, tmp_path):
    """With the variable that names it; also where something else lies in the lock's place."""
    (tmp_path / "falloff-measuring").mkdir()
    for folder in (tmp_path, tmp_path / "nowhere"):
        monkeypatch.setenv("FALLOFF_LOCKS", str(folder))
        with pytest.raises(FalloffError, match=f"{folder}.*FALLOFF_LOCKS"):
            with lock.measuring(MACHINE, "mine", print):
                pass
