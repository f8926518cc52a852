"""Drive benchmark tools and keep exactly what they said.

Standard library only and Python 3.9, so that this folder can be copied to a head node.
"""

import importlib
from pathlib import Path
from typing import List

from runners.record import Runner, unknown


def runner_names() -> List[str]:
    """The tools that can be run or read, by name: every module here that defines a RUNNER."""
    modules = sorted(Path(__file__).parent.glob("*.py"))
    return [file.stem for file in modules if "\nRUNNER = " in file.read_text(encoding="utf-8")]


def runner_named(name: str) -> Runner:
    """The runner of a tool; raises FalloffError when there is none of that name."""
    try:
        return importlib.import_module(f"{__name__}.{name}").RUNNER
    except (ModuleNotFoundError, AttributeError):
        raise unknown("tool", name, runner_names()) from None
