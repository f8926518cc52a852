"""Find a tool: our own script, the path that the user configured, the folder of tools built here,
or PATH.

FALLOFF_HOME   a folder other than the checkout for all output: runs, datasets, reports,
               descriptions
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from runners.records.record import FalloffError
from runners.tools import all_tools

CHECKOUT = Path(__file__).resolve().parent.parent
# The folder for runs, datasets and reports, which may be outside the code.
HOME = Path(os.environ.get("FALLOFF_HOME") or CHECKOUT).expanduser().absolute()
BUILT = CHECKOUT / "build" / "tools" / "bin"
PROBES = Path(__file__).resolve().parent / "probes"


def users_folder(folder: Path) -> Path:
    """The folder for the user's own files of a data folder's kind: that folder, or the same folder
    below HOME."""
    return folder if HOME == CHECKOUT else HOME / "data" / folder.name


def described(folder: Path, pattern: str) -> list[Path]:
    """The files of a data folder and the user's own of that kind, in order; if two have one name,
    the user's."""
    files = {
        file.name: file for place in (folder, users_folder(folder)) for file in place.glob(pattern)
    }
    return [files[name] for name in sorted(files)]


def find(name: str, configured: Mapping[str, str]) -> str:
    """The path of the tool `name`; `configured` maps names of tools to paths of the user's choice.

    A script of runners/probes is only found there: a program of the same name elsewhere is a
    different one. Raises FalloffError with the remedy if the tool is in none of the places, or if
    the configured path is not a program (PATH is not a silent substitute for a wrong path).
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
    path = shutil.which(str(BUILT / name)) or shutil.which(name)
    if not path:
        remedy = "run `make setup`"
        packages = {tool.name: tool.packages for tool in all_tools()}.get(name)
        if packages:
            remedy += f", or install {' '.join(sorted(packages))}"
        raise FalloffError(f"{name} is neither among the tools built here nor on PATH: {remedy}")
    return path
