# PYTHON_ARGCOMPLETE_OK
"""The command line of Falloff: parsing, and the answer to a mistake."""

import argparse
import errno
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib import metadata
from pathlib import Path

import commands
from analysis import paths
from analysis.quoting import as_written
from runners import executables
from runners.provenance import code
from runners.record import FalloffError, unknown
from runners.terminal import Printed
from runners.tools import names as runner_names

EXIT_CODES = (
    "Exit codes: 0 done; 1 refused, missing or different, with the reason; 2 the command line was not understood; "
    "130 interrupted; 141 broken pipe."
)
READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
FULL = (errno.ENOSPC, errno.EDQUOT)
# The exit code of a mistake where 1 and 2 are answers. Elsewhere it is 1, or argparse's 2.
MISTAKES = {"compare": 3, "reproduce": 3}


class Parser(argparse.ArgumentParser):
    """A parser whose error messages are as short as all others here."""

    def error(self, message: str) -> None:
        """Print what was not understood, and end with exit code 2."""
        self.exit(2, f"falloff: {message}\n`{self.prog} --help` shows what there is\n")

    def parse_known_args(self, args=None, namespace=None):
        """Like argparse's method, but each command refuses the options that it does not know."""
        known, rest = super().parse_known_args(args, namespace)
        for option in (word for word in rest if word.startswith("--")):
            self.error(str(unknown("option", option, self._option_string_actions)))
        return known, rest

    def _check_value(self, action: argparse.Action, value: str) -> None:
        if action.choices is not None and value not in action.choices:
            kind = "command" if isinstance(action, argparse._SubParsersAction) else action.dest
            raise argparse.ArgumentError(None, str(unknown(kind, value, action.choices)))


class Version(argparse.Action):
    """Print version and commit, then exit."""

    def __call__(self, parser, *_) -> None:
        commit = code()
        changed = ", changed since" if commit["git_dirty"] else ""
        where = f" (commit {commit['git_commit'][:10]}{changed})" if commit["git_commit"] else ""
        print(f"falloff {metadata.version('falloff')}{where}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """Build the parser of the command line from `commands.COMMANDS`."""
    about = "Does a cluster's efficiency fall off with its interconnect?"
    top = Parser(prog="falloff", description=about, epilog=EXIT_CODES)
    what = "print version and commit"
    top.add_argument("--version", action=Version, nargs=0, default=argparse.SUPPRESS, help=what)
    groups = {"": top.add_subparsers(required=True, metavar="COMMAND")}
    summary = "Trace a figure, verify campaigns, archive everything."
    evidence = groups[""].add_parser("evidence", help=summary, epilog=EXIT_CODES)
    groups["evidence"] = evidence.add_subparsers(required=True, metavar="CHECK")
    for words, do in commands.COMMANDS.items():
        group, _, name = words.rpartition(" ")
        texts = {"help": do.__doc__.partition("\n")[0], "description": do.__doc__}
        added = groups[group].add_parser(name, **texts, epilog=EXIT_CODES)
        added.set_defaults(do=do)
        for option, how in do.arguments:
            added.add_argument(option, **how)
    return top


def complete(grammar: Parser) -> None:
    """Answer a shell's Tab key and exit: names of campaigns, testbeds or tools, else files."""
    import argcomplete

    folders = {"campaign": paths.CAMPAIGNS, "testbed": paths.TESTBEDS}

    def words(action: argparse.Action, **rest):
        if action.dest in folders:
            return [file.stem for file in executables.described(folders[action.dest], "*.toml")]
        if action.dest == "tool":
            return runner_names()
        return argcomplete.FilesCompleter()(action=action, **rest)

    argcomplete.autocomplete(grammar, default_completer=words)


def main() -> int:
    """Run the command line. A user's mistake ends in a line or two and exit code 1, never in a
    traceback.

    All output passes through `quoting.as_written`, so that a terminal obeys nothing that a file
    contains.
    """
    said, complained = (Printed(stream, as_written) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(said), redirect_stderr(complained):
        return answer()


def answer() -> int:
    """Do what the command line asks for, and return the exit code."""
    mistake = MISTAKES.get("".join(sys.argv[1:2]), 0)
    grammar = parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for completions
        complete(grammar)
    try:
        arguments = vars(grammar.parse_args())
    except SystemExit as usage:
        raise SystemExit(mistake if usage.code and mistake else usage.code) from None
    do = arguments.pop("do")
    try:
        code = do(**arguments) or 0
        sys.stdout.flush()
        return code
    except FalloffError as error:
        return refuse(str(error), mistake or 1)
    except BrokenPipeError:  # as in `falloff evidence trace share | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.errno in FULL:
            kept = "finished trials are kept; make room, and the same command goes on"
            return refuse(f"the disk is full at {error.filename or 'a file'}: {kept}", mistake or 1)
        if error.filename is None:
            raise
        unusable = f"{error.filename} cannot be read or written: {error.strerror}"
        if error.errno in READ_ONLY and Path(error.filename).is_relative_to(paths.HOME):
            unusable += "; set FALLOFF_HOME to a folder of your own, where all is then written"
        return refuse(unusable, mistake or 1)
    except KeyboardInterrupt:
        kept = "finished trials are kept; the same command goes on from there."
        print(f"\nInterrupted: {kept}", file=sys.stderr)
        return 130


def refuse(message: str, code: int) -> int:
    """Print why something was refused, and return `code`."""
    if sys.stderr.isatty():  # a progress bar may be on this line
        sys.stderr.clear()
    print(f"falloff: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
