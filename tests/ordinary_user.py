"""What an ordinary user does with the emulated testbed: ordinary_user.py FOLDER, which holds a campaign's plan.

It is given a copy of `runners` and nothing else of the project.
"""

import sys
from pathlib import Path

import runners.campaign as engine
from runners.journal import Folder
from runners.record import FalloffError
from runners.testbeds import emulated


def main(folder: Folder) -> None:
    """Run what is missing of the campaign, telling each finished trial."""
    wanted = folder.plan()
    try:
        with emulated.open_testbed(wanted.testbed, wanted.interconnects) as testbed:
            print("open", flush=True)
            engine.run(wanted, testbed, folder, lambda e: e.kind == "finished" and print(e.trial.id, flush=True))
    except FalloffError as error:
        sys.exit(f"falloff: {error}")


if __name__ == "__main__":
    main(Folder(Path(sys.argv[1])))
