"""A campaign as one job of Slurm's: what sbatch is told, what the job does, what `falloff status`
says of it.
"""

import copy
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from campaigns import CAMPAIGN, INTERCONNECTS, small_plan, use_echo
from campaigns import TESTBED as LOCAL
from local_testbed import LocalTestbed

from analysis.descriptions import testbeds
from analysis.descriptions.campaigns import checked
from analysis.descriptions.resolution import resolve
from runners.engine import campaign as engine
from runners.engine import job, slurm, status
from runners.records.journal import Folder
from runners.records.plan import plan_to_json
from runners.records.record import FalloffError

HERE = Path(__file__).parent
ENVIRONMENT = {"SLURM_JOB_ID": "12", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_PARTITION": "all"}
TESTBED = {
    "name": "mine",
    "kind": "cluster",
    "launcher": "slurm",
    "nodes": 4,
    "modules": ["openmpi/4.1"],
    "networks": {"gige": {"interface": "eth0"}, "10gige": {"interface": "eth1"}},
    "slurm": {"partition": "all", "time_limit_s": 5400.0, "options": ["--constraint=haswell"]},
}
ALLOCATION = slurm.Allocation("12", ("n1", "n2"), None)
JOB = slurm.__file__.replace("slurm.py", "job.sh")


@pytest.fixture
def slurms(tmp_path, monkeypatch):
    """`slurms(command, prints, ...)` puts a command on PATH before all else that prints what the
    real one of 22.05.8 does.

    It gives the file with the time format and the words that the command was last called with.
    sbatch accepts.
    """
    folder = tmp_path / "commands"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def fake(name: str, prints: str = "", complains: str = "", code: int = 0) -> Path:
        called = folder / f"{name}.called"
        (folder / name).write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$SLURM_TIME_FORMAT" "$@" > {shlex.quote(str(called))}\n'
            f"printf %s {shlex.quote(prints)}\nprintf %s {shlex.quote(complains)} >&2\n"
            f"exit {code}\n"
        )
        (folder / name).chmod(0o755)
        return called

    fake("sbatch", "12;mine\n")
    return fake


def queued(state: str, reason: str = "None") -> str:
    """What squeue prints of a job."""
    return f"{state}|{reason}|0:12|5:00\n"


ACTIVE = ("PENDING", "RUNNING", "COMPLETING", "REQUEUE_HOLD")


@pytest.mark.parametrize("state", [*ACTIVE, "CANCELLED", "COMPLETED", "NODE_FAIL", "TIMEOUT"])
def test_a_job_in_the_queue(slurms, state):
    """Its state, why, and its times; whatever has not ended may still write to the campaign's
    folder.
    """
    called = slurms("squeue", queued(state, "Resources"))
    found = slurm.job("12")
    assert found == slurm.Job("12", state, "Resources", "0:12", "5:00")
    assert found.is_active is (state in ACTIVE) and "--jobs=12" in called.read_text().split()


@pytest.mark.parametrize(("printed", "end"), [("1795308615\n", 1795308615.0), ("N/A\n", None)])
def test_an_allocation(slurms, monkeypatch, printed, end):
    """Its hosts in Slurm's order; time to put things back before its end, in the format asked for,
    if it has one.
    """
    squeue, scontrol = slurms("squeue", printed), slurms("scontrol", "n1\nn2\n")
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    found = slurm.allocation()
    assert found == replace(ALLOCATION, deadline=end and end - slurm.RESERVE_S)
    assert squeue.read_text().split()[0] == "%s"
    assert scontrol.read_text().split() == ["show", "hostnames", "n[1-2]"]


LEAF = "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]\n"
SPINE = "SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=leaf[1-2]\n"


@pytest.mark.parametrize(("printed", "switches"), [(LEAF + SPINE, ["leaf1", "spine"]), ("", None)])
def test_provenance_tells_the_switches_above_each_host(slurms, monkeypatch, printed, switches):
    """The nearest first; where the site describes no topology it is unknown, not empty."""
    slurms("scontrol", printed)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    found = slurm.provenance(ALLOCATION)
    assert found["switches"] == {"n1": switches, "n2": switches} and found["hosts"] == ["n1", "n2"]
    assert (found["job"], found["partition"], found["cluster"]) == ("12", "all", None)


def plan(**changes):
    """The small campaign for a cluster with some words of its table [slurm] changed."""
    testbed = {**copy.deepcopy(TESTBED), "slurm": {**TESTBED["slurm"], **changes}}
    described = testbeds.checked(testbed).complete()
    return resolve(checked(CAMPAIGN), described, INTERCONNECTS)


def test_sbatch_is_asked_for_whole_nodes_in_one_job(tmp_path):
    """As many nodes as the testbed has, alone on them, with time to stop; the data follow the
    script as arguments.
    """
    argv = slurm.sbatch(plan(), tmp_path)
    asked = {"--parsable", "--exclusive", "--nodes=4", "--time=90:00", "--partition=all"}
    assert argv[0] == "sbatch" and asked | {"--dependency=singleton"} <= set(argv)
    assert not any("ntasks" in word for word in argv), "mpirun would find as few slots"
    # Of two alike sbatch takes the last.
    assert argv.index("--constraint=haswell") < argv.index("--exclusive")
    assert argv[argv.index(JOB) :] == [JOB, "python3", "openmpi/4.1"]


@pytest.mark.parametrize(
    "option",
    [
        "--arr=1-4",
        "-a1-4",
        "ls",
        "--a b",
        "--export=ALL",
        "--prolog=/tmp/x",
        "--uid=0",
        "--wrap=id",
        "--chdir=/",
    ],
)
def test_options_cannot_make_another_job_of_it(tmp_path, option):
    """What the campaign depends on is refused, also abbreviated (sbatch takes --arr), and so are
    what runs further programs or as somebody else, and what is no option.
    """
    with pytest.raises(FalloffError, match="slurm.options"):
        slurm.sbatch(plan(options=[option]), tmp_path)


def test_the_folder_has_all_that_the_job_needs(tmp_path, slurms):
    """The plan, and a copy of the code that works by itself and knows of which commit it is."""
    folder = Folder(tmp_path / "c")
    called = slurms("sbatch", "12;mine\n")
    assert slurm.submit(plan(), folder) == "12" and folder.plan() == plan()
    assert called.read_text().splitlines()[1:] == slurm.sbatch(plan(), folder.path)[1:]
    (submitted,) = slurm.jobs(folder)
    script = (
        "import json; from runners.records import provenance as p; "
        "print(json.dumps([p.__file__, p.code()]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(folder.path / "code")}
    printed = subprocess.check_output(["python3", "-c", script], cwd=folder.path, env=environment)
    file, code = json.loads(printed)
    assert Path(file).is_relative_to(folder.path)
    assert code == {key: submitted[key] for key in ("git_commit", "git_dirty")}
    assert (folder.path / "code" / "runners" / "engine" / "job.sh").exists()


def test_one_job_at_a_time(tmp_path, slurms):
    """As long as a job waits or runs there is no other, and its folder stays as it is; afterwards
    there may be.
    """
    folder = Folder(tmp_path / "c")
    slurm.submit(plan(), folder)

    def files():
        return sorted((file, file.stat().st_mtime_ns) for file in folder.path.rglob("*"))

    before = files()
    slurms("squeue", queued("COMPLETING"))
    with pytest.raises(FalloffError, match="job 12 of this campaign is COMPLETING.*scancel 12"):
        slurm.submit(plan(), folder)
    assert before == files()
    slurms("squeue", queued("TIMEOUT"))
    slurms("sbatch", "13\n")
    assert slurm.submit(plan(), folder) == "13"
    assert [job["id"] for job in slurm.jobs(folder)] == ["12", "13"]


@pytest.mark.parametrize(
    ("python_ok", "modules", "code", "said"),
    [
        (
            True,
            ("openmpi/4.1", "blas"),
            75,
            "modules: load openmpi/4.1 blas\n{0}/code: -m runners.engine.job .",
        ),
        (False, (), 1, "no Python 3.9"),
        (True, ("missing",), 1, "cannot load the modules missing"),
    ],
)
def test_the_jobs_script(tmp_path, python_ok, modules, code, said):
    """Modules are loaded first; the exit code is the program's, which finds the copied code; else
    it says why not.
    """
    (tmp_path / ".bash_profile").write_text(
        'module() { [ "$2" != missing ] && echo "modules: $*"; }\n'
    )
    python = tmp_path / "my python"
    python.write_text(
        f'#!/bin/sh\n[ "$1" = -c ] && exit {int(not python_ok)}\necho "$PYTHONPATH: $@"; exit 75\n'
    )
    python.chmod(0o755)
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    words = [JOB, str(python), *modules]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == code and said.format(tmp_path) in done.stdout + done.stderr
    assert ("runners.engine.job" in done.stdout) is (code == 75)


@pytest.fixture
def opened(monkeypatch, slurms):
    """The descriptions with which a testbed was opened, whose trials run on this machine; Slurm
    says RUNNING.
    """
    descriptions = []

    @contextmanager
    def open_testbed(description, plan):
        descriptions.append(description)
        yield LocalTestbed()

    slurms("scontrol", "slurm-wlm 22.05.8\n")
    slurms("squeue", queued("RUNNING"))
    monkeypatch.setattr(job.session, "opened", open_testbed)
    use_echo(monkeypatch)
    return descriptions


def campaign(path: Path, **changes) -> Folder:
    """A folder with a campaign of which nothing has run."""
    path.mkdir(exist_ok=True)
    plan = replace(small_plan(**changes), testbed={**LOCAL.plain(), "kind": "cluster"})
    (path / "trials.json").write_text(plan_to_json(plan))
    return Folder(path)


def test_a_job_runs_the_campaign_on_the_hosts_that_slurm_gave(tmp_path, opened, capsys):
    """Near its end it begins nothing, and its exit code says so; else all is there, with a line for
    each trial.
    """
    folder = campaign(tmp_path / "c")
    near = replace(ALLOCATION, deadline=time.time() - 1)
    assert job.run(folder, near) == job.TIME_IS_UP and not folder.finished()
    assert "paused, deadline" in status.text(folder)
    assert job.run(folder, ALLOCATION) == 0
    assert opened[0]["hosts"] == ["n1", "n2"]
    assert folder.finished() == {trial.id for trial in folder.plan().trials()}
    assert '"job": "12"' in (folder.path / "provenance.json").read_text()
    assert capsys.readouterr().out.count(": ok, ") == len(folder.finished())


@pytest.mark.parametrize(("state", "kept"), [("RUNNING", 18), ("COMPLETING", 0)])
def test_a_trial_that_slurm_ended_is_no_result(tmp_path, slurms, opened, state, kept):
    """Where the job is being ended, a program that fails may have been killed: it is not kept as
    failed.
    """
    slurms("squeue", queued(state))
    folder = campaign(tmp_path / "c", settings={"say": "1", "seconds": "soon"}, warm_up=[])
    if kept:
        assert job.run(folder, ALLOCATION) == 0
    else:
        with pytest.raises(SystemExit):
            job.run(folder, ALLOCATION)
    assert len(folder.finished()) == kept


def test_told_to_stop_it_keeps_what_is_finished(tmp_path, opened, monkeypatch, capsys):
    """SIGTERM in the middle of a trial, as scancel and the time limit send it: that trial is run
    again.
    """

    class Stopped(LocalTestbed):
        def run(self, trial, commands):
            if self.executed:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().run(trial, commands)

    monkeypatch.setattr(job.session, "opened", lambda *_: nullcontext(Stopped()))
    monkeypatch.setattr(slurm, "allocation", lambda: ALLOCATION)
    folder = campaign(tmp_path / "c", warm_up=[])
    monkeypatch.setattr(sys, "argv", ["job", str(folder.path)])
    with pytest.raises(SystemExit, match=str(128 + signal.SIGTERM)):
        job.main()
    assert "finished trials are kept" in capsys.readouterr().err
    assert folder.finished() == {"b001-001-echo"} and folder.stopped_by() == "interrupted"


@pytest.fixture
def interrupted(tmp_path, monkeypatch):
    """A campaign that was interrupted after 4 trials."""
    use_echo(monkeypatch)
    folder = Folder(tmp_path / "small-local-12345678")

    def interrupt(event):
        if event.kind == "finished" and event.done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.run(small_plan(), LocalTestbed(), folder, interrupt)
    return folder


def test_status_tells_what_every_block_has(interrupted):
    """Kept of all, by kind of trial; blocks that are alike share a line; at the end which rule
    ended it.
    """
    assert status.text(interrupted).splitlines() == [
        "small-local-12345678: 4 of 19 trials kept, 15 missing",
        "  block 0: echo 1 of 1",
        "  block 1: echo 3 of 6",
        "  blocks 2 to 3, each: echo 0 of 6",
    ]
    engine.run(small_plan(), LocalTestbed(), interrupted)
    end = "19 of 19 trials kept, 0 missing; ended by its stopping rule: blocks"
    assert status.text(interrupted).splitlines()[0].endswith(end)


@pytest.mark.parametrize(
    ("squeue", "said"),
    [
        ({"prints": queued("PENDING", "Resources")}, ["job 12: PENDING (Resources), 0:12 of 5:00"]),
        ({"prints": queued("RUNNING")}, ["job 12: RUNNING, 0:12 of 5:00"]),
        (
            {"complains": "slurm_load_jobs error: Invalid job id specified\n", "code": 1},
            ["job 12: UNKNOWN", "its last output: *** JOB 12 CANCELLED DUE TO TIME LIMIT ***"],
        ),
        (
            {"complains": "slurm_load_jobs error: Connection refused", "code": 1},
            ["job 12: its state is unknown (squeue: slurm_load_jobs error: Connection refused)"],
        ),
    ],
)
def test_status_tells_what_the_last_job_does(interrupted, slurms, squeue, said):
    """While it waits or runs its state, then its last words; nothing is made up where Slurm does
    not answer.
    """
    (interrupted.path / "jobs.json").write_text(json.dumps([{"id": "11"}, {"id": "12"}]))
    words = "[4/19] b001-003-echo: ok\n*** JOB 12 CANCELLED DUE TO TIME LIMIT ***\n"
    (interrupted.path / "job-12.out").write_text(words)
    slurms("squeue", **squeue)
    assert status.text(interrupted).splitlines()[4:] == [f"  {line}" for line in said]
