"""The program of a Slurm job: `python3 -m runners.engine.job FOLDER` runs the missing trials of the
campaign in FOLDER on the nodes of its allocation.

A job has no analysis, so it cannot look early: a campaign with planned looks runs all of its
blocks.

Exit code 0 means that the campaign is finished, TIME_IS_UP that the time left was too short for the
rest.
"""

import signal
import sys
from functools import partial
from pathlib import Path

from runners.engine import campaign, session, slurm
from runners.engine.progress import Progress
from runners.records.journal import Folder
from runners.records.record import FalloffError, Transcript
from runners.terminal import printable
from runners.testbeds import lease

TIME_IS_UP = 75  # EX_TEMPFAIL of sysexits.h: no error, try again


def run(folder: Folder, allocation: slurm.Allocation) -> int:
    """Run the missing trials of the folder's campaign in an allocation, and return the exit code.

    Raises FalloffError if the nodes cannot be used, or lack a tool.
    """
    plan = folder.plan()
    if campaign.is_finished(plan, folder):
        return 0
    testbed = {**plan.testbed, "hosts": list(allocation.hosts)}
    with session.opened(testbed, plan) as opened:
        listen = Progress(sys.stdout)
        found = session.exchanges(opened, listen)
        ended_by = campaign.run(
            plan,
            opened,
            folder,
            listen,
            deadline=allocation.deadline,
            session={"slurm": slurm.provenance(allocation), **found},
            admit=partial(refuse_if_over, allocation.job),
        )
    return TIME_IS_UP if ended_by == campaign.DEADLINE else 0


def refuse_if_over(job: str, transcript: Transcript) -> None:
    """Exit if a trial failed while Slurm is ending the job: its programs may have been killed
    before our own signal."""
    failed = transcript.fault or any(execution.exit_code for execution in transcript.executions)
    if failed and slurm.job(job).state != "RUNNING":
        sys.exit(128 + signal.SIGTERM)


def main() -> int:
    """Run the campaign in the folder that the command line names; a fault ends with one line and
    exit code 1."""
    try:
        with lease.signals_exit():
            return run(Folder(Path(sys.argv[1]).resolve()), slurm.allocation())
    except (FalloffError, OSError) as error:  # for example a full disk; finished trials are kept
        print(printable(f"falloff: {error}"), file=sys.stderr)
        return 1
    except SystemExit:
        stopped = "falloff: stopped by scancel or the time limit; finished trials are kept"
        print(stopped, file=sys.stderr)
        raise


if __name__ == "__main__":
    sys.exit(main())
