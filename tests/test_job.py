"""What a job of Slurm's runs: on the hosts of its allocation, for as long as that lasts, keeping what is finished."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import fake_slurm
import pytest
from campaigns import TESTBED, small_plan, use_echo
from local_testbed import LocalTestbed

from runners import job, slurm
from runners.journal import Folder
from runners.plan import plan_to_json

HERE = Path(__file__).parent
ALLOCATION = slurm.Allocation("12", ("n1", "n2"), None)


@pytest.fixture
def opened(monkeypatch, tmp_path):
    """The descriptions with which a testbed was opened, whose trials run on this machine; Slurm says RUNNING."""
    descriptions = []

    @contextmanager
    def opened(description, plan):
        descriptions.append(description)
        yield LocalTestbed()

    commands = tmp_path / "commands"
    commands.mkdir()
    fake_slurm.command(commands, "scontrol", "slurm-wlm 22.05.8\n")
    fake_slurm.queue(commands, "RUNNING")
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    monkeypatch.setattr(job.session, "opened", opened)
    use_echo(monkeypatch)
    return descriptions


def campaign(path: Path, **changes) -> Folder:
    """A folder with a campaign of which nothing has run."""
    path.mkdir(exist_ok=True)
    plan = replace(small_plan(**changes), testbed={**TESTBED, "kind": "cluster"})
    (path / "trials.json").write_text(plan_to_json(plan))
    return Folder(path)


def test_it_runs_the_campaign_on_the_hosts_that_slurm_gave(tmp_path, opened, capsys):
    """Their names are the testbed's, the allocation is in the provenance, each trial has a line, and all is there."""
    folder = campaign(tmp_path / "c")
    assert job.run(folder, ALLOCATION) == 0
    assert opened[0]["hosts"] == ["n1", "n2"]
    assert folder.finished() == {trial.id for trial in folder.plan().trials()}
    assert '"job": "12"' in (folder.path / "provenance.json").read_text()
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if ": ok, " in line]) == len(folder.finished())


def test_the_exit_code_tells_that_there_is_more_to_do(tmp_path, opened):
    """So near its end a job begins nothing; one with time runs what is missing."""
    folder = campaign(tmp_path / "c")
    near = slurm.Allocation("12", ("n1",), time.time() + slurm.WARNING_S)
    assert job.run(folder, near) == job.TIME_IS_UP and not folder.finished()
    assert job.run(folder, slurm.Allocation("13", ("n1",), time.time() + 3600)) == 0


@pytest.mark.parametrize(
    ("state", "is_kept"), [("RUNNING", True), ("COMPLETING", False), ("CANCELLED", False)]
)
def test_a_trial_that_slurm_ended_is_no_result(tmp_path, opened, state, is_kept):
    """Where the job is being ended, a program that fails may have been killed: it is not kept as failed."""
    fake_slurm.queue(tmp_path / "commands", state)
    folder = campaign(tmp_path / "c", settings={"say": "1", "seconds": "soon"}, warm_up=[])
    if is_kept:
        assert job.run(folder, ALLOCATION) == 0
    else:
        with pytest.raises(SystemExit):
            job.run(folder, ALLOCATION)
    assert bool(kept_roles(folder)) is is_kept


def kept_roles(folder: Folder) -> list[str]:
    return [transcript.trial.role for transcript in folder.transcripts()]


def main(folder: Path, patch: str, environment: dict[str, str]) -> subprocess.Popen:
    """The job's program as Slurm starts it, with the local testbed and what `patch` changes."""
    script = (
        f"import sys; sys.path.insert(0, {str(HERE)!r}); sys.argv[1:] = [{str(folder)!r}]\n"
        "import campaigns, local_testbed, runners.campaign\n"
        "from runners import job, slurm\n"
        "runners.campaign.runner_named = lambda name: campaigns.ECHO\n"
        "slurm.provenance = lambda allocation: {}\n"
        "job.session.opened = local_testbed.open_testbed\n"
        f"{patch}\nsys.exit(job.main())\n"
    )
    environment = {**os.environ, **environment}
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


ALLOCATED = "slurm.allocation = lambda: slurm.Allocation('12', ('n1',), None)"


def test_told_to_stop_it_keeps_what_is_finished(tmp_path):
    """SIGTERM in the middle of a trial, as scancel and the time limit send it: that trial is run again."""
    folder = campaign(
        tmp_path / "c", settings={"say": "1", "seconds": "2", "timeout_s": 60}, warm_up=[]
    )
    child = main(folder.path, ALLOCATED, {})
    for line in child.stdout:
        if "b001-003-echo" in line:  # the next one has begun
            break
    time.sleep(0.3)
    child.send_signal(signal.SIGTERM)
    said = child.communicate(timeout=10)[1]
    assert child.returncode == 128 + signal.SIGTERM and "finished trials are kept" in said
    assert folder.finished() == {"b001-001-echo", "b001-002-echo", "b001-003-echo"}
    assert folder.stopped_by() == "interrupted"
