"""A process that owns a testbed and is inside a trial: owner.py FOLDER.

FOLDER holds description.json: a testbed's description, its networks and a trial's point. The state
folder of the network is written to `state` there before the trial, which leaves a process that left
its session, and with ranks those of Open MPI on two nodes.
"""

import json
import signal
import sys
from pathlib import Path

from runners.records.record import Command, Trial
from runners.testbeds.emulated import open_testbed

FOREVER = ("bash", "-c", "setsid sleep 1000 & touch running.$HOSTNAME; sleep 1000")


def main(folder: Path) -> None:
    """Open, say where, run a trial that does not end."""
    # A shell without job control has its background jobs ignore Ctrl-C, and so do their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup has them ignore, too
    description, networks, point = json.loads((folder / "description.json").read_text())
    with open_testbed(description, networks) as testbed:
        net = testbed.use(point.get("path") or point["interconnect"])
        (folder / "state.part").write_text(str(net.state))
        (folder / "state.part").rename(folder / "state")
        ranks = 2 if "interconnect" in point else 0
        testbed.run(
            Trial("endless", "point", "none", 1, 1, point),
            [Command(FOREVER, ranks=ranks, timeout_s=1000)],
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
