"""Names that a command takes and the Tab key completes.

A name is checked by what looks it up, which says what was probably meant. Slow imports stand inside
the functions, because a shell waits for the answer.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from analysis import paths
from runners import executables, tools


class Name(click.ParamType):
    """One of `names()`, or else a file if that `may_be_file`."""

    def __init__(self, kind: str, names: Callable[[], Iterable[str]], may_be_file=False) -> None:
        self.name, self._names, self._may_be_file = kind, names, may_be_file

    def shell_complete(self, ctx, param, incomplete: str) -> list[CompletionItem]:
        """The names that begin with what was typed, without those that a terminal would obey."""
        names = (name for name in self._names() if name.isprintable())
        items = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        if items or not self._may_be_file:
            return items
        return [CompletionItem(incomplete, type="file")]


def described(folder: Path) -> list[str]:
    """The names of the descriptions of a kind, the user's own among them."""
    return [file.stem for file in executables.described(folder, "*.toml")]


def figures() -> Iterable[str]:
    """The figures of the last report."""
    return sorted(file.stem for file in (paths.REPORT / "figures").glob("*.svg"))


def models() -> list[str]:
    """The models that can be fitted."""
    from analysis.laws import models

    return models.names()


def programs() -> list[str]:
    """The recorded programs."""
    from runners.recording import recorder

    return recorder.programs()


def references() -> list[str]:
    """The shipped campaigns."""
    return sorted(file.parent.name for file in paths.REFERENCE.glob("*/trials.json"))


def sources() -> list[str]:
    """The sources of claims."""
    from analysis.descriptions import ledger

    return sorted({claim.source for claim in ledger.load().claims})


CAMPAIGN = Name("campaign", lambda: described(paths.CAMPAIGNS))
TESTBED = Name("testbed", lambda: described(paths.TESTBEDS))
TOOL = Name("tool", tools.names)
PRESET = Name("preset", lambda: ("quick", "full"))
PROGRAM = Name("program", programs)
FIGURE = Name("figure", figures)
SOURCE = Name("source", sources)
REFERENCE = Name("campaign", references, may_be_file=True)
MODEL = Name("model", models, may_be_file=True)
