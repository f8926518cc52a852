"""What Slurm's own commands say: of a job, of the nodes of an allocation, of the switches between them."""

import os
import re
import subprocess
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from runners.record import FalloffError

# Slurm sends SIGTERM so long before a job's end, for what was set on the nodes to be put back ...
WARNING_S = 30
# ... or up to a minute earlier (sbatch(1), --signal). No trial may be running then.
RESERVE_S = WARNING_S + 60

UNKNOWN = "UNKNOWN"
# squeue(1), JOB STATE CODES: all other states are of jobs that wait, run, or are being requeued.
_ENDED = (
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",
    "TIMEOUT",
)  # fmt: skip
_LIMIT_S = 60.0  # a controller under load takes its time


@dataclass(frozen=True)
class Job:
    """A job by Slurm's own word for its `state`, or UNKNOWN when Slurm remembers it no more.

    `reason` is why it waits or has ended, `elapsed` and `limit` are times as Slurm writes them; each may be empty.
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
    """The nodes that a job has, in the order in which the campaign counts them, and when it must be over.

    `end` is in seconds since the epoch, None without a time limit.
    """

    job: str
    hosts: Tuple[str, ...]
    end: Optional[float]

    @property
    def deadline(self) -> Optional[float]:
        """When the last trial has to be over, in seconds since the epoch; None without a time limit."""
        return None if self.end is None else self.end - RESERVE_S


def ask(argv: Sequence[str], settings: Mapping[str, str] = {}) -> str:
    """What a command of Slurm's prints, with some settings added to the environment.

    Raises FalloffError with its complaint when it is not here, fails or does not answer.
    """
    done = _run(argv, settings)
    if done.returncode:
        raise FalloffError(f"{argv[0]}: {_complaint(done)}")
    return done.stdout.strip()


def job(number: str) -> Job:
    """The state of a job, from the queue or else the accounts; raises FalloffError when Slurm does not answer."""
    asked = ["--noheader", f"--jobs={number}"]
    queue = _run(["squeue", *asked, "--states=all", "--format=%T|%r|%M|%l"], {})
    if queue.returncode == 0 and queue.stdout.strip():
        return Job(number, *queue.stdout.splitlines()[0].split("|"))
    if queue.returncode and "Invalid job id" not in queue.stderr:
        raise FalloffError(f"squeue: {_complaint(queue)}")
    accounts = _run(["sacct", *asked, "--parsable2", "--allocations", "--format=State,Elapsed,Timelimit"], {})
    if accounts.returncode or not accounts.stdout.strip():
        return Job(number, UNKNOWN)
    state, elapsed, limit = accounts.stdout.splitlines()[-1].split("|")
    return Job(number, state.split()[0], "", elapsed, limit)  # CANCELLED by 1000


def allocation(environment: Mapping[str, str] = os.environ) -> Allocation:
    """The allocation in which this program runs; raises FalloffError outside of one."""
    try:
        number, nodes = environment["SLURM_JOB_ID"], environment["SLURM_JOB_NODELIST"]
    except KeyError:
        raise FalloffError("this is no job of Slurm's: `falloff run CAMPAIGN --submit` makes one") from None
    end = ask(["squeue", "--noheader", f"--jobs={number}", "--format=%e"], {"SLURM_TIME_FORMAT": "%s"})
    hosts = tuple(ask(["scontrol", "show", "hostnames", nodes]).split())
    return Allocation(number, hosts, float(end) if end.isdigit() else None)


def provenance(of: Allocation, environment: Mapping[str, str] = os.environ) -> Dict[str, Any]:
    """What Slurm gave: hosts in the order of the campaign's nodes, and the switches above each, the nearest first.

    Switches are None where the site has described no topology, as is all else that is unknown.
    """
    return {
        "version": ask(["scontrol", "--version"]),
        "job": of.job,
        "cluster": environment.get("SLURM_CLUSTER_NAME"),
        "partition": environment.get("SLURM_JOB_PARTITION"),
        "hosts": list(of.hosts),
        "switches": {host: _switches(host) for host in of.hosts},
    }


def _switches(host: str) -> Optional[List[str]]:
    return re.findall(r"SwitchName=(\S+)", _run(["scontrol", "show", "topology", host], {}).stdout) or None


def _run(argv: Sequence[str], settings: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, **settings}
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=_LIMIT_S, env=environment)
    except FileNotFoundError:
        raise FalloffError(f"{argv[0]} is not here: this has to run where Slurm's commands are") from None
    except subprocess.TimeoutExpired:
        raise FalloffError(f"{argv[0]} gave no answer within {_LIMIT_S:.0f} s: is slurmctld up?") from None


def _complaint(done: "subprocess.CompletedProcess[str]") -> str:
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return said[-1] if said else f"exit code {done.returncode}"
