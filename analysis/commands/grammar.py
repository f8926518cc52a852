"""How the commands are declared, what they take, and how their help looks.

Slow imports stand inside the functions, because a shell waits for the answer to the Tab key.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from inspect import cleandoc
from itertools import chain
from math import isnan
from pathlib import Path
from textwrap import indent
from typing import Any

import click
from click.shell_completion import CompletionItem

from analysis import paths
from runners import executables, tools

SEVERAL = {"--nodes", "--network"}  # options that take several values, as in `--nodes 32 64`


class Command(click.Command):
    """A command with `examples`, one a line, at the end of its help.

    `mistake` is the exit code of a user's mistake if 1 and 2 are answers, else 0.
    """

    def __init__(self, *args: Any, examples: str = "", mistake: int = 0, **how: Any) -> None:
        super().__init__(*args, **how)
        self.examples, self.mistake = cleandoc(examples), mistake

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Click takes one value after an option."""
        return super().parse_args(ctx, repeated(args))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self.examples:
            with formatter.section("Examples"):
                formatter.write(indent(f"{self.examples}\n", "  "))


def repeated(words: list[str]) -> list[str]:
    """The words of a command line with an option of SEVERAL values before each of them."""
    given: list[str] = []
    for place, word in enumerate(words):
        if word == "--":
            return given + words[place:]
        if SEVERAL & {*given[-2:-1]} and not word.startswith("-"):
            given.append(given[-2])
        given.append(word)
    return given


class Commands(click.Group):
    """A group whose help lists its commands under `headings`, before the options."""

    def __init__(
        self, *args: Any, headings: Mapping[str, Sequence[click.Command]], **how: Any
    ) -> None:
        super().__init__(*args, **how)
        self.headings = headings
        for command in chain(*headings.values()):
            self.add_command(command)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, one a line, and then the options."""
        longest = max(map(len, self.commands))
        for heading, several in self.headings.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(f"{one.name:{longest}}", one.get_short_help_str(100)) for one in several]
                )
        click.Command.format_options(self, ctx, formatter)


# What is not there or cannot be read is refused by whoever reads it, in the same words as
# elsewhere.
PATH = click.Path(path_type=Path, readable=False)
COUNT = click.IntRange(1, 10**6)
# The types of an option's values, by what its help calls them; of others, text.
TYPES = {"FILE": PATH, "FOLDER": PATH, "FILE.svg": PATH, "N": COUNT, "N...": COUNT, "K": COUNT}

command = partial(click.command, cls=Command)
argument = click.argument


def option(flag: str, help: str, *names: str, **how: Any) -> Callable:
    """An option as its help shows it, such as `--x COLUMN`; without a value or a type it is a
    switch."""
    name, _, metavar = flag.partition(" ")
    how = {"type": TYPES.get(metavar), "show_default": True, **how}
    how.setdefault("is_flag", not metavar and how["type"] is None)
    return click.option(name, *names, help=help, metavar=metavar or None, **how)


json_switch = option("--json", "Print JSON instead.", "as_json")
# The name of a program of the user's own.
keep_option = option(
    "--keep NAME",
    "The program's name, under which its recording and its results are kept.",
    "program",
)


def figure_option(name: str) -> Callable:
    """The option --figure, whose default is build/NAME.svg."""
    return option(
        "--figure FILE.svg",
        "The figure to write.",
        default=paths.BUILD / f"{name}.svg",
        show_default=f"build/{name}.svg",
    )


def asks_what_if(function: Callable) -> Callable:
    """Give a command the fields of a `WhatIf` as options."""
    for word in ("half", "twice"):
        help = f"Also with {word} the bandwidth or latency."
        function = option(f"--{word} WHAT", help, default="")(function)
    help = "Take these networks, such as 25gige."
    return option("--network NAME...", help, "networks", multiple=True)(function)


class Number(click.FloatRange):
    """A number in a range, which `nan` is not."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Raises click.BadParameter unless the value is a number in the range."""
        number = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


class Name(click.ParamType):
    """One of `names()`, which the Tab key completes, or else a file if that `may_be_file`.

    A name is checked by what looks it up, which says what was probably meant.
    """

    name = "name"

    def __init__(self, names: Callable[[], Iterable[str]], may_be_file: bool = False) -> None:
        self._names, self._may_be_file = names, may_be_file

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names that begin with what was typed, without those that a terminal would obey."""
        names = [name for name in self._names() if name.startswith(incomplete)]
        items = [CompletionItem(name) for name in names if name.isprintable()]
        if items or not self._may_be_file:
            return items
        return [CompletionItem(incomplete, type="file")]


def described(folder: Path) -> list[str]:
    """The names of the descriptions of a kind, the user's own among them."""
    return [file.stem for file in executables.described(folder, "*.toml")]


def models() -> list[str]:
    """The models that can be fitted."""
    from analysis.laws import models

    return models.names()


def programs() -> list[str]:
    """The recorded programs."""
    from runners.recording import recorder

    return recorder.programs()


def sources() -> set[str]:
    """The sources of claims."""
    from analysis.descriptions import ledger

    return {claim.source for claim in ledger.load().claims}


CAMPAIGN = Name(lambda: described(paths.CAMPAIGNS))
TESTBED = Name(lambda: described(paths.TESTBEDS))
TOOL = Name(tools.names)
PROGRAM = Name(programs)
# Of the last report.
FIGURE = Name(lambda: [file.stem for file in (paths.REPORT / "figures").glob("*.svg")])
SOURCE = Name(sources)
REFERENCE = Name(
    lambda: [file.parent.name for file in paths.REFERENCE.glob("*/trials.json")], may_be_file=True
)
MODEL = Name(models, may_be_file=True)
