"""Where a tool is: the path that the user configured, PATH, or the folder of tools built here."""

import os
import shutil
from pathlib import Path
from typing import Mapping

from runners.record import FalloffError

BUILT = Path(__file__).resolve().parent.parent / "build" / "tools" / "bin"


def find(name: str, configured: Mapping[str, str], built: Path = BUILT) -> str:
    """The path of the tool `name`; `configured` maps names of tools to paths of the user's choice.

    Raises FalloffError with the remedy when the tool is in none of the three places, or when
    the configured path is not a program (PATH is not a silent substitute for a wrong path).
    """
    if name in configured:
        chosen = os.path.expanduser(configured[name])
        if not shutil.which(chosen):
            raise FalloffError(
                f"{name}: {chosen} is not a program; correct the path under [tools] of the testbed"
            )
        return chosen
    found = shutil.which(name) or shutil.which(str(built / name))
    if not found:
        raise FalloffError(f"{name} is neither on PATH nor among the tools built here: run `make setup`")
    return found
