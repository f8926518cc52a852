"""Where a tool is: our own script, the path that the user configured, the folder of tools built here, or PATH.

FALLOFF_HOME   another folder than the checkout for all that is written: runs, datasets, reports, descriptions
"""

import os
import shutil
from pathlib import Path
from typing import List, Mapping

from runners.record import FalloffError

CHECKOUT = Path(__file__).resolve().parent.parent
# Where runs, datasets and reports are written, which may be apart from the code.
HOME = Path(os.environ.get("FALLOFF_HOME") or CHECKOUT).expanduser().absolute()
BUILT = CHECKOUT / "build" / "tools" / "bin"
PROBES = Path(__file__).resolve().parent / "probes"


def own(folder: Path) -> Path:
    """Where the user's own files go that are like those of a folder of data: there, or in the same folder of HOME."""
    return folder if HOME == CHECKOUT else HOME / "data" / folder.name


def described(folder: Path, pattern: str) -> List[Path]:
    """The files of a folder of data and the user's own like them, in order; of two with one name, the user's."""
    files = {file.name: file for place in (folder, own(folder)) for file in place.glob(pattern)}
    return [files[name] for name in sorted(files)]


def find(name: str, configured: Mapping[str, str], built: Path = BUILT) -> str:
    """The path of the tool `name`; `configured` maps names of tools to paths of the user's choice.

    A script of runners/probes is only ever that: a program of the same name elsewhere is another one.
    Raises FalloffError with the remedy when the tool is in none of the places, or when the configured
    path is not a program (PATH is not a silent substitute for a wrong path).
    """
    script = shutil.which(str(PROBES / f"{name}.py"))
    if script:
        return script
    if name in configured:
        chosen = os.path.expanduser(configured[name])
        if not shutil.which(chosen):
            remedy = "correct the path under [tools] of the testbed"
            raise FalloffError(f"{name}: {chosen} is not a program; {remedy}")
        return chosen
    found = shutil.which(str(built / name)) or shutil.which(name)
    if not found:
        remedy = "run `make setup`"
        raise FalloffError(f"{name} is neither among the tools built here nor on PATH: {remedy}")
    return found
