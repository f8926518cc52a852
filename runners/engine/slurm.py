"""Slurm: run a campaign as one job, and ask Slurm's commands about jobs, nodes and switches.

In a campaign's folder:

    jobs.json   the jobs that were submitted, in order; written here only
    code/       the copy of `runners` that the job uses, so that it runs what was submitted
    job-ID.out  what the job prints

All trials share one allocation, never a job array: tests that share a switch would disturb each
other.
"""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from runners.records.journal import Folder, write_whole
from runners.records.plan import Plan
from runners.records.provenance import COMMIT, code
from runners.records.record import Description, FalloffError, faulty

# Slurm sends SIGTERM this long before a job's end, so that settings on the nodes can be restored
# ...
WARNING_S = 30
# ... or up to a minute earlier (sbatch(1), --signal). No trial may run at that time.
RESERVE_S = WARNING_S + 60

UNKNOWN = "UNKNOWN"
# squeue(1), JOB STATE CODES: in all other states a job waits, runs, or is being requeued.
_ENDED = (
    "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED REVOKED "
    "TIMEOUT"
).split()
_SQUEUE = ("squeue", "--noheader")
_LIMIT_S = 60.0  # a busy controller may be slow


_HERE = Path(__file__).resolve().parent
_RUNNERS = _HERE.parent
_OPTION = re.compile(r"--([a-z][a-z-]*)(=[!-~]+)?")
# Options that choose nodes, or what is billed. Others change what runs, as whom, or what a
# campaign's job depends on.
_OPTIONS = (
    "account begin clusters comment constraint contiguous core-spec cpu-freq exclude gres hint "
    "licenses mail-type mail-user mem network nice nodelist partition priority qos reservation "
    "switches thread-spec tmp wckey"
).split()
_ALLOCATION_MINUTES = 15  # for `salloc`


@dataclass(frozen=True)
class Job:
    """A job with its `state` in Slurm's words, or UNKNOWN if Slurm no longer knows it.

    `reason` is why it waits or has ended. `elapsed` and `limit` are times as Slurm writes them.
    Each may be empty.
    """

    id: str
    state: str
    reason: str = ""
    elapsed: str = ""
    limit: str = ""

    @property
    def is_active(self) -> bool:
        """Whether it waits or runs, or may do so again."""
        return self.state not in (*_ENDED, UNKNOWN)


@dataclass(frozen=True)
class Allocation:
    """The nodes of a job, in the order in which the campaign counts them, and the time by which the
    last trial must end.

    `deadline` is in seconds since the epoch, None without a time limit.
    """

    job: str
    hosts: tuple[str, ...]
    deadline: Optional[float]


def submit(plan: Plan, folder: Folder) -> str:
    """Submit one job for the missing trials of a plan and return its number.

    Raises FalloffError if a job of this campaign waits or runs, if no job can run the plan, or with
    sbatch's own error.
    """
    require_idle(folder)
    argv = sbatch(plan, folder.path)
    folder.create_or_check(plan)
    commit = copy_code(folder.path)
    number = ask(argv).splitlines()[-1].partition(";")[0]  # the cluster's name may follow
    note = {"id": number, "submitted": time.time(), "argv": argv, **commit}
    write_whole(folder.path / "jobs.json", json.dumps([*jobs(folder), note], indent=1))
    return number


def jobs(folder: Folder) -> list[dict]:
    """The jobs submitted for a campaign, the first one first; each has an `id`."""
    file = folder.path / "jobs.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else []


def require_idle(folder: Folder) -> None:
    """Raise FalloffError while a job of this campaign waits or runs, or if Slurm does not
    answer."""
    for submitted in jobs(folder)[-1:]:
        last = job(submitted["id"])
        if last.is_active:
            raise FalloffError(
                f"job {last.id} of this campaign is {last.state}: `falloff status` shows how far "
                f"it is, `scancel {last.id}` ends it; finished trials are kept"
            )


def sbatch(plan: Plan, folder: Path) -> list[str]:
    """The command line that submits a campaign's job; raises FalloffError naming every fault in the
    testbed's description."""
    testbed = plan.testbed
    before, after = _allocation_words(testbed)
    minutes, seconds = divmod(int(testbed["slurm"]["time_limit_s"]), 60)
    return [
        "sbatch",
        "--requeue",
        *before,
        "--parsable",
        f"--job-name=falloff-{plan.name}-{plan.digest[:8]}",
        # if two jobs are submitted at the same moment, one waits for the other
        "--dependency=singleton",
        f"--chdir={folder.resolve()}",
        "--output=job-%j.out",
        "--open-mode=append",  # a requeued job continues
        "--no-kill",  # if a node is lost, trials that need fewer nodes go on
        f"--signal=B:TERM@{WARNING_S}",
        *after,
        f"--time={minutes}:{seconds:02d}",
        str(_HERE / "job.sh"),
        testbed.get("python", "python3"),
        *testbed.get("modules", []),
    ]


def salloc(testbed: Description) -> list[str]:
    """The words before a command that is to run in an allocation of all of the testbed's nodes;
    raises FalloffError like `sbatch`."""
    before, after = _allocation_words(testbed)
    return ["salloc", *before, *after, f"--time={_ALLOCATION_MINUTES}"]


def _allocation_words(testbed: Description) -> tuple[list[str], list[str]]:
    """The options that request all nodes of a testbed, before and after the words of one command:
    Slurm uses the last of two equal options."""
    title = f"testbed {testbed['name']}"
    if testbed.get("launcher") != "slurm":
        raise faulty(title, ['--submit takes a testbed with launcher = "slurm"'])
    asked, faults = testbed.get("slurm", {}), []
    if asked.get("time_limit_s", 0) <= RESERVE_S:
        least = f"more than the {RESERVE_S} s that a job keeps at its end"
        faults.append(f"slurm.time_limit_s has to be {least}")
    for option in asked.get("options", []):
        match = _OPTION.fullmatch(option)
        if not match:
            faults.append(f"slurm.options: {option!r} is not of the form --name or --name=value")
        elif match[1] not in _OPTIONS:
            allowed = ", ".join(_OPTIONS)
            faults.append(f"slurm.options: --{match[1]} is none that a job may have: {allowed}")
    if faults:
        raise faulty(title, faults)
    # Without a number of tasks mpirun sees as many slots as a node has processors.
    after = ["--exclusive", f"--nodes={testbed['nodes']}"]
    after += [f"--{key}={asked[key]}" for key in ("partition", "account") if key in asked]
    return ["--mem=0", *asked.get("options", [])], after


def copy_code(folder: Path) -> dict:
    """Copy `runners` into a campaign's folder, with a note of its commit."""
    target, commit = folder / "code", code()
    shutil.rmtree(target, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(_RUNNERS, target / "runners", ignore=ignored)
    (target / "build").symlink_to(_RUNNERS.parent / "build")  # the programs that were built here
    write_whole(target / COMMIT, json.dumps(commit))
    return commit


def ask(argv: Sequence[str], **settings: str) -> str:
    """The output of a Slurm command, run with some settings added to the environment.

    Raises FalloffError with its error message if it is missing, fails or does not answer.
    """
    done = _run(argv, **settings)
    if done.returncode:
        raise FalloffError(f"{argv[0]}: {_complaint(done)}")
    return done.stdout.strip()


def job(number: str) -> Job:
    """The state of a job according to the queue; raises FalloffError if Slurm does not answer."""
    queue = _run([*_SQUEUE, f"--jobs={number}", "--states=all", "--format=%T|%r|%M|%l"])
    if queue.returncode and "Invalid job id" not in queue.stderr:
        raise FalloffError(f"squeue: {_complaint(queue)}")
    lines = queue.stdout.splitlines()
    return Job(number, *lines[0].split("|")) if lines else Job(number, UNKNOWN)


def allocation() -> Allocation:
    """The allocation in which this program runs; raises FalloffError outside of one."""
    try:
        number, nodes = os.environ["SLURM_JOB_ID"], os.environ["SLURM_JOB_NODELIST"]
    except KeyError:
        raise FalloffError(
            "not in a Slurm job: `falloff run CAMPAIGN --submit` submits one"
        ) from None
    end = ask([*_SQUEUE, f"--jobs={number}", "--format=%e"], SLURM_TIME_FORMAT="%s")
    hosts = tuple(ask(["scontrol", "show", "hostnames", nodes]).split())
    return Allocation(number, hosts, float(end) - RESERVE_S if end.isdigit() else None)


def provenance(of: Allocation) -> dict:
    """What Slurm assigned: hosts in the order of the campaign's nodes, and the switches above each,
    the nearest first.

    Switches are None if the site has not described its topology, like everything else that is
    unknown.
    """
    switches = {}
    for host in of.hosts:
        topology = _run(["scontrol", "show", "topology", host]).stdout
        switches[host] = re.findall(r"SwitchName=(\S+)", topology) or None
    return {
        "version": ask(["scontrol", "--version"]),
        "job": of.job,
        "cluster": os.environ.get("SLURM_CLUSTER_NAME"),
        "partition": os.environ.get("SLURM_JOB_PARTITION"),
        "hosts": list(of.hosts),
        "switches": switches,
    }


def _run(argv: Sequence[str], **settings: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, **settings}
    try:
        return subprocess.run(
            argv, capture_output=True, text=True, timeout=_LIMIT_S, env=environment
        )
    except FileNotFoundError:
        raise FalloffError(f"{argv[0]} is not here: run it where Slurm's commands are") from None
    except subprocess.TimeoutExpired:
        late = f"{argv[0]} did not answer within {_LIMIT_S:.0f} s"
        raise FalloffError(f"{late}: is slurmctld up?") from None


def _complaint(done: "subprocess.CompletedProcess[str]") -> str:
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"
