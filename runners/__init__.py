"""Drive benchmark tools and keep their exact output.

It needs only Python 3.9 and its standard library, so that this folder can be copied to a head node.
"""

import importlib
import re
from functools import lru_cache
from pathlib import Path
from typing import List

from runners.record import Runner, unknown

# Common names of tools, and their modules.
_ALIASES = {"iperf": "iperf2", "xhpl": "hpl", "linpack": "hpl", "omb": "osu"}


@lru_cache(maxsize=None)
def names() -> List[str]:
    """The names of all tools: the modules of this folder that define a RUNNER."""
    modules = sorted(Path(__file__).parent.glob("[!_]*.py"))
    return [file.stem for file in modules if re.search("^RUNNER = ", file.read_text("utf-8"), re.M)]


def runner_named(name: str) -> Runner:
    """The runner of that name; raises FalloffError if there is none."""
    module = _ALIASES.get(name.lower(), name.lower())
    if module not in names():
        raise unknown("tool", name, names())
    return importlib.import_module(f"{__name__}.{module}").RUNNER
