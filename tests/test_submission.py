"""A campaign becomes one job of Slurm's: what sbatch is told, what the folder holds, and never two at a time."""

import copy
import json
import os
import subprocess
from pathlib import Path

import fake_slurm
import pytest
from campaigns import CAMPAIGN, INTERCONNECTS

from runners import slurm
from runners.journal import Folder
from runners.plan import resolve
from runners.record import FalloffError

TESTBED = {
    "name": "mine", "kind": "cluster", "launcher": "slurm", "nodes": 4, "modules": ["openmpi/4.1"],
    "slurm": {"partition": "all", "time_limit_s": 5400.0, "options": ["--constraint=haswell"]},
}  # fmt: skip
JOB = slurm.__file__.replace("slurm.py", "job.sh")


def plan(**changes):
    """The small campaign for a cluster with some words of its table [slurm] changed."""
    testbed = {**copy.deepcopy(TESTBED), "slurm": {**TESTBED["slurm"], **changes}}
    return resolve(CAMPAIGN, testbed, INTERCONNECTS)


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """A folder before all else on PATH, with an sbatch that accepts."""
    folder = tmp_path / "commands"
    folder.mkdir()
    fake_slurm.command(folder, "sbatch", "12;mine\n")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def test_sbatch_is_asked_for_whole_nodes_in_one_job(tmp_path):
    """As many nodes as the testbed has, alone on them, with time to stop; the data follow the script as arguments."""
    argv = slurm.sbatch(plan(), tmp_path)
    assert argv[0] == "sbatch" and {
        "--parsable",
        "--exclusive",
        "--nodes=4",
        "--time=90:00",
    } <= set(argv)
    assert {"--partition=all", "--constraint=haswell", "--dependency=singleton"} <= set(argv)
    assert not any("ntasks" in word for word in argv), "mpirun would find as few slots"
    assert argv.index("--constraint=haswell") < argv.index("--exclusive"), (
        "of two alike sbatch takes the last"
    )
    assert argv[argv.index(JOB) :] == [JOB, "python3", "openmpi/4.1"]
    assert not any("array" in word for word in argv)
    assert not any("partition" in word for word in slurm.sbatch(small(), tmp_path))


def small():
    """A plan for a cluster of which little is said."""
    return resolve(CAMPAIGN, {**TESTBED, "slurm": {"time_limit_s": 600}}, INTERCONNECTS)


@pytest.mark.parametrize(
    "option",
    [
        "--array=1-4",
        "--arr=1-4",
        "--nodes=1",
        "--wrap=ls",
        "-a1-4",
        "ls",
        "--output=x",
        "--ti=9",
        "--a b",
    ],
)
def test_options_cannot_make_another_job_of_it(tmp_path, option):
    """What the campaign depends on is refused, also abbreviated (sbatch takes --arr), and so is what is no option."""
    with pytest.raises(FalloffError, match="slurm.options"):
        slurm.sbatch(plan(options=[option]), tmp_path)


def test_the_folder_has_all_that_the_job_needs(tmp_path, commands):
    """The plan, and a copy of the code that works by itself and knows of which commit it is."""
    folder = Folder(tmp_path / "c")
    assert slurm.submit(plan(), folder) == "12"
    assert folder.plan() == plan()
    assert fake_slurm.called(commands, "sbatch")[1:] == slurm.sbatch(plan(), folder.path)[1:]
    (job,) = slurm.jobs(folder)
    script = "import json; from runners import provenance as p; print(json.dumps([p.__file__, p.code()]))"
    environment = {**os.environ, "PYTHONPATH": str(folder.path / "code")}
    done = subprocess.run(
        ["python3", "-c", script], cwd=folder.path, env=environment, capture_output=True, text=True
    )
    file, code = json.loads(done.stdout)
    assert Path(file).is_relative_to(folder.path)
    assert code == {key: job[key] for key in ("git_commit", "git_dirty")}
    assert (folder.path / "code" / "runners" / "job.sh").exists()


def test_one_job_at_a_time(tmp_path, commands):
    """As long as a job waits or runs there is no other, and its folder stays as it is; afterwards there may be."""
    folder = Folder(tmp_path / "c")
    slurm.submit(plan(), folder)
    before = sorted((file, file.stat().st_mtime_ns) for file in folder.path.rglob("*"))
    for state in ("PENDING", "RUNNING", "COMPLETING"):
        fake_slurm.queue(commands, state)
        with pytest.raises(FalloffError, match=f"job 12 of this campaign is {state}.*scancel 12"):
            slurm.submit(plan(), folder)
    assert before == sorted((file, file.stat().st_mtime_ns) for file in folder.path.rglob("*"))
    fake_slurm.queue(commands, "TIMEOUT")
    fake_slurm.command(commands, "sbatch", "13\n")
    assert slurm.submit(plan(), folder) == "13"
    assert [job["id"] for job in slurm.jobs(folder)] == ["12", "13"]


def job_script(tmp_path, python: str, *modules: str) -> subprocess.CompletedProcess:
    """Run the script of the job where a login shell defines `module`."""
    (tmp_path / ".bash_profile").write_text(
        'module() { [ "$2" != missing ] && echo "modules: $*"; }\n'
    )
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    return subprocess.run(
        [JOB, python, *modules], cwd=tmp_path, env=environment, capture_output=True, text=True
    )


def interpreter(tmp_path, version_ok: bool) -> str:
    """A stand-in for Python that tells how it was called and ends with 75."""
    file = tmp_path / "my python"
    file.write_text(
        f'#!/bin/sh\n[ "$1" = -c ] && exit {int(not version_ok)}\necho "$PYTHONPATH: $@"; exit 75\n'
    )
    file.chmod(0o755)
    return str(file)


def test_the_job_ends_as_its_program_ends(tmp_path):
    """Modules are loaded first; the exit code is the program's, which finds the copied code."""
    done = job_script(tmp_path, interpreter(tmp_path, True), "openmpi/4.1", "blas")
    assert done.stdout.splitlines() == [
        "modules: load openmpi/4.1 blas",
        f"{tmp_path}/code: -m runners.job .",
    ]
    assert done.returncode == 75


@pytest.mark.parametrize(
    ("ok", "modules", "said"),
    [(False, (), "no Python 3.9"), (True, ("missing",), "cannot load the modules missing")],
)
def test_a_job_that_cannot_begin_says_why(tmp_path, ok, modules, said):
    """A Python that is too old, or a module that is not there: a line, and the job has failed."""
    done = job_script(tmp_path, interpreter(tmp_path, ok), *modules)
    assert done.returncode == 1 and said in done.stderr and "runners.job" not in done.stdout
