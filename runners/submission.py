"""A campaign as one job of Slurm's: its folder is made ready, and sbatch called.

    jobs.json   the jobs that were submitted, in order; written here only
    code/       the copy of `runners` that the job uses, so that it runs what was submitted
    job-ID.out  what the job prints

All trials share one allocation, never a job array: tests that share a switch would disturb each other.
"""

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping

from runners import provenance, slurm
from runners.journal import Folder, write_whole
from runners.plan import Plan
from runners.record import FalloffError

_HERE = Path(__file__).resolve().parent
_OPTION = re.compile(r"--([a-z][a-z-]*)(=[!-~]+)?")
# What a campaign's job depends on; sbatch takes abbreviations of them too.
_OURS = (
    "array", "chdir", "dependency", "exclusive", "job-name", "nodes", "no-kill", "open-mode", "output", "parsable",
    "signal", "time", "wait", "wrap",
)  # fmt: skip


def submit(plan: Plan, folder: Folder) -> str:
    """Submit one job for what is missing of a plan and return its number.

    Raises FalloffError when a job of this campaign waits or runs, when the plan cannot be run by one, or with what
    sbatch says against it.
    """
    require_idle(folder)
    argv = sbatch(plan, folder.path)
    folder.create_or_check(plan)
    code = copy_code(folder.path)
    number = slurm.ask(argv).splitlines()[-1].partition(";")[0]  # the name of a cluster may follow
    note = {"id": number, "submitted": time.time(), "argv": argv, **code}
    write_whole(folder.path / "jobs.json", json.dumps([*jobs(folder), note], indent=1))
    return number


def jobs(folder: Folder) -> List[Dict[str, Any]]:
    """The jobs that were submitted for a campaign, the first one first; each has an `id`."""
    file = folder.path / "jobs.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else []


def require_idle(folder: Folder) -> None:
    """Raise FalloffError while a job of this campaign waits or runs, or Slurm does not say."""
    for submitted in jobs(folder)[-1:]:
        last = slurm.job(submitted["id"])
        if last.is_active:
            raise FalloffError(
                f"job {last.id} of this campaign is {last.state}: `falloff status` shows how far it is, "
                f"`scancel {last.id}` ends it; finished trials are kept"
            )


def sbatch(plan: Plan, folder: Path) -> List[str]:
    """The command line that submits a campaign's job; raises FalloffError naming every fault in the description."""
    testbed = plan.testbed
    found = faults(testbed)
    if found:
        raise FalloffError(f"testbed {testbed['name']}: {'; '.join(found)}")
    asked = testbed["slurm"]
    minutes, seconds = divmod(int(asked["time_limit_s"]), 60)
    return [
        "sbatch",
        "--mem=0",  # all of it, unless an option says otherwise
        "--requeue",
        *asked.get("options", []),
        "--parsable",
        f"--job-name=falloff-{plan.name}-{plan.digest[:8]}",
        "--dependency=singleton",  # should two be submitted at the same moment, one waits for the other
        f"--chdir={folder.resolve()}",
        "--output=job-%j.out",
        "--open-mode=append",  # a job that was requeued continues
        "--no-kill",  # trials that need fewer nodes run on when one is lost
        f"--signal=B:TERM@{slurm.WARNING_S}",
        "--exclusive",  # without a number of tasks mpirun finds as many slots as a node has processors
        f"--nodes={testbed['nodes']}",
        f"--time={minutes}:{seconds:02d}",
        *(f"--{key}={asked[key]}" for key in ("partition", "account") if key in asked),
        str(_HERE / "job.sh"),
        testbed.get("python", "python3"),
        *testbed.get("modules", []),
    ]


def faults(testbed: Mapping[str, Any]) -> List[str]:
    """Why no job can be made of a cluster's description, in words; empty when one can."""
    if testbed.get("launcher") != "slurm":
        return ['--submit takes a testbed with launcher = "slurm"']
    asked = testbed.get("slurm", {})
    found = []
    if asked.get("time_limit_s", 0) <= slurm.RESERVE_S:
        found.append(f"slurm.time_limit_s has to be more than the {slurm.RESERVE_S} s that a job keeps at its end")
    for option in asked.get("options", []):
        match = _OPTION.fullmatch(option)
        if not match:
            found.append(f"slurm.options: {option!r} is not of the form --name or --name=value")
        elif any(own.startswith(match[1]) for own in _OURS):
            found.append(f"slurm.options: --{match[1]} is Falloff's to set")
    return found


def copy_code(folder: Path) -> Dict[str, Any]:
    """Put a copy of `runners` into a campaign's folder, and say of which commit it is."""
    target, code = folder / "code", provenance.code()
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(_HERE, target / "runners", ignore=shutil.ignore_patterns("__pycache__"))
    (target / "build").symlink_to(_HERE.parent / "build")  # programs that were built here are found from there
    write_whole(target / provenance.COMMIT, json.dumps(code))
    return code
