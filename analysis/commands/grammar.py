"""How the commands are declared, and how their help looks."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from inspect import cleandoc
from math import isnan
from pathlib import Path

import click

from analysis import paths


class CommandWithExamples(click.Command):
    """A command with `examples`, one a line, at the end of its help.

    `mistake` is the exit code of a user's mistake if 1 and 2 are answers, else 0.
    """

    def __init__(self, *args, examples: str = "", mistake: int = 0, **how) -> None:
        super().__init__(*args, **how)
        self.examples, self.mistake = cleandoc(examples).splitlines(), mistake

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"  {line}\n")
        super().format_epilog(ctx, formatter)


class SeveralValues(CommandWithExamples):
    """Click takes one value after an option. Here some take several, as in `--nodes 32 64`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read `--nodes 32 64` as `--nodes 32 --nodes 64`."""
        return super().parse_args(ctx, repeated(("--nodes", "--network"), args))


def repeated(names: Sequence[str], words: list[str]) -> list[str]:
    """The words of a command line with an option's name before each of its values."""
    given: list[str] = []
    for place, word in enumerate(words):
        if word == "--":
            return given + words[place:]
        if len(given) > 1 and given[-2] in names and not word.startswith("-"):
            given.append(given[-2])
        given.append(word)
    return given


class Commands(click.Group):
    """A group whose help lists its commands under `headings`, before the options."""

    def __init__(self, *args, headings: Mapping[str, Sequence[click.Command]], **how) -> None:
        super().__init__(*args, **how)
        self.headings = headings
        for several in headings.values():
            for command in several:
                self.add_command(command)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, one a line, and then the options."""
        longest = max(map(len, self.commands))
        for heading, several in self.headings.items():
            rows = [
                (command.name.ljust(longest), command.get_short_help_str(100))
                for command in several
            ]
            with formatter.section(heading):
                formatter.write_dl(rows)
        click.Command.format_options(self, ctx, formatter)


command = partial(click.command, cls=CommandWithExamples)
argument = click.argument
option = partial(click.option, show_default=True)
switch = partial(click.option, is_flag=True)


def figure_option(name: str):
    """The option --figure, whose default is build/NAME.svg."""
    return option(
        "--figure",
        type=PATH,
        default=paths.BUILD / f"{name}.svg",
        show_default=f"build/{name}.svg",
        metavar="FILE.svg",
        help="The figure to write.",
    )


# The name of a program of the user's own.
keep_option = option(
    "--keep",
    "program",
    metavar="NAME",
    help="The program's name, under which its recording and its results are kept.",
)


def asks_what_if(function: Callable) -> Callable:
    """Give a command the options --network, --twice and --half, together as its argument `asked`."""

    @option(
        "--network",
        "networks",
        multiple=True,
        metavar="NAME...",
        help="Take these networks, such as 25gige.",
    )
    @option("--twice", default="", metavar="WHAT", help="Also with twice the bandwidth or latency.")
    @option("--half", default="", metavar="WHAT", help="Also with half the bandwidth or latency.")
    @wraps(function)
    def with_what_if(*args, networks, twice, half, **others):
        from analysis.subjects.what_if import WhatIf

        return function(*args, asked=WhatIf(networks, twice, half), **others)

    return with_what_if


# What is not there or cannot be read is refused by whoever reads it, in the same words as
# elsewhere.
PATH = click.Path(path_type=Path, readable=False)
COUNT = click.IntRange(1, 10**6)


class Number(click.FloatRange):
    """A number in a range, which `nan` is not."""

    def convert(self, value, param, ctx) -> float:
        """Raises click.BadParameter unless the value is a number in the range."""
        number = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number
