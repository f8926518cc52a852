"""What a job of Slurm's runs: `python3 -m runners.job FOLDER` does, on the nodes of its allocation, what is missing
of the campaign in FOLDER.

A job has no analysis, so that it takes no look before the last: a campaign with planned looks runs all of its blocks.

Exit code 0 says that the campaign is finished, TIME_IS_UP that there is more to do than the time left allowed.
"""

import signal
import sys
from functools import partial
from pathlib import Path

from runners import campaign, session, slurm
from runners.journal import Folder
from runners.progress import Progress
from runners.record import FalloffError, Transcript
from runners.terminal import printable
from runners.testbeds import lease

TIME_IS_UP = 75  # EX_TEMPFAIL of sysexits.h: nothing is wrong, try again


def run(folder: Folder, allocation: slurm.Allocation) -> int:
    """Run what is missing of the folder's campaign in an allocation, and return the exit code.

    Raises FalloffError when the nodes cannot be used, or lack a tool.
    """
    plan = folder.plan()
    if campaign.is_finished(plan, folder):
        return 0
    testbed = {**plan.testbed, "hosts": list(allocation.hosts)}
    with session.opened(testbed, plan) as opened:
        ended_by = campaign.run(
            plan,
            opened,
            folder,
            Progress(sys.stdout),
            deadline=allocation.deadline,
            session={"slurm": slurm.provenance(allocation)},
            admit=partial(refuse_if_over, allocation.job),
        )
    return TIME_IS_UP if ended_by == campaign.DEADLINE else 0


def refuse_if_over(job: str, transcript: Transcript) -> None:
    """Exit when a trial failed while Slurm is ending the job: its programs may be gone before we are told to stop."""
    failed = transcript.fault or any(execution.exit_code for execution in transcript.executions)
    if failed and slurm.job(job).state != "RUNNING":
        sys.exit(128 + signal.SIGTERM)


def main() -> int:
    """Run the campaign in the folder that the command line names; a fault ends in a line and exit code 1."""
    try:
        with lease.signals_exit():
            return run(Folder(Path(sys.argv[1]).resolve()), slurm.allocation())
    except (FalloffError, OSError) as error:  # a full disk is one of them: what is finished is kept
        print(printable(f"falloff: {error}"), file=sys.stderr)
        return 1
    except SystemExit:
        print(
            "falloff: told to stop, by scancel or for the time limit; finished trials are kept",
            file=sys.stderr,
        )
        raise


if __name__ == "__main__":
    sys.exit(main())
