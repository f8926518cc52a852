"""The benchmark tools, a file each: its TOOL says all that the rest needs to know."""

import importlib
import pkgutil
from functools import cache

from runners.records.record import Tool, unknown


@cache
def names() -> list[str]:
    """The names of all tools: the files of this folder."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


@cache
def all_tools() -> tuple[Tool, ...]:
    """Every tool, by name."""
    return tuple(importlib.import_module(f"{__name__}.{name}").TOOL for name in names())


def tool_named(name: str) -> Tool:
    """The tool of that name, which may be one of its aliases; raises FalloffError when there is
    none.
    """
    wanted = name.lower()
    for tool in all_tools():
        if wanted in (tool.name, *tool.aliases):
            return tool
    raise unknown("tool", name, names())
