"""What an ordinary user does with a campaign of the emulated testbed: ordinary_user.py FOLDER, which holds its plan.

It is given a copy of `runners` and nothing else of the project.
"""

import sys
from pathlib import Path

from runners import session
from runners.journal import Folder
from runners.record import FalloffError


def main(folder: Folder) -> None:
    """Run what is missing of the campaign, telling each finished trial."""
    try:
        session.run(
            folder.plan(), folder, lambda e: e.kind == "finished" and print(e.trial.id, flush=True)
        )
    except FalloffError as error:
        sys.exit(f"falloff: {error}")


if __name__ == "__main__":
    main(Folder(Path(sys.argv[1])))
