"""How the commands are declared, and how their help looks."""

from collections.abc import Mapping, Sequence
from functools import partial
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


# What is not there or cannot be read is refused by whoever reads it, in the same words as elsewhere.
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
