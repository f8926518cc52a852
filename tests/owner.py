"""A process that owns a testbed and is inside a trial: owner.py FOLDER.

FOLDER holds description.json; the testbed's state folder is written to `state` there before the
trial, which leaves processes of every kind: MPI's, ranks in the quota, and one that left its session.
"""

import json
import signal
import sys
from pathlib import Path

from runners.record import Command, Trial
from runners.testbeds.emulated import open_testbed

FOREVER = ("bash", "-c", "setsid sleep 1000 & touch running.$HOSTNAME; sleep 1000")


def main(folder: Path) -> None:
    """Open, say where, run a trial that does not end."""
    # A shell without job control has its background jobs ignore Ctrl-C, and so do their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    description, interconnects = json.loads((folder / "description.json").read_text())
    with open_testbed(description, interconnects) as testbed:
        (folder / "state").write_text(str(testbed.state))
        trial = Trial("endless", "point", "none", 1, 1, {"interconnect": "gige"})
        testbed.run(trial, [Command(FOREVER, ranks=2, timeout_s=1000)])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
