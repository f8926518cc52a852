"""The program `falloff`: its answer to a command line, and to a mistake."""

import errno
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import click
from click.shell_completion import shell_complete

from analysis import commands, paths
from analysis.quoting import as_written
from runners.records.record import FalloffError, unknown
from runners.terminal import PrintableStream

COMPLETE = "_FALLOFF_COMPLETE"  # the shell's question to click, see docs/commands.md
OLD_OPTIONS = {"--faster": "say --network 10gige 25gige instead of --faster 10,25"}
READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
FULL = (errno.ENOSPC, errno.EDQUOT)


def main() -> int:
    """Run the command line. A user's mistake ends in a line or two and an exit code, never in a
    traceback.

    All output passes through `quoting.as_written`, so that a terminal obeys nothing that a file
    contains.
    """
    if question := os.environ.get(COMPLETE):
        return shell_complete(commands.falloff, {}, "falloff", COMPLETE, question)
    output, errors = (PrintableStream(stream, as_written) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(output), redirect_stderr(errors):
        return answer(sys.argv[1:])


def answer(words: list[str]) -> int:
    """Do what the words of a command line ask for, and return the exit code."""
    try:
        # Not click's own `main`, which has other exit codes for an interruption and a broken pipe.
        with commands.falloff.make_context("falloff", words) as context:
            code = commands.falloff.invoke(context) or 0
        sys.stdout.flush()
        return code
    except click.exceptions.Exit as ended:  # after --help or --version
        return ended.exit_code
    except click.exceptions.NoArgsIsHelpError as nothing:
        print(nothing.format_message(), file=sys.stderr)
        return nothing.exit_code
    except BrokenPipeError:  # as in `falloff evidence trace share | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        remedy = "finished trials are kept; the same command goes on from there."
        print(f"\nInterrupted: {remedy}", file=sys.stderr)
        return 130
    except Exception as error:
        message = explained(error)
        if not message:
            raise
        print(f"falloff: {message}", file=sys.stderr)
        command = commands.falloff.commands.get(words[0])
        return getattr(command, "mistake", 0) or getattr(error, "exit_code", 1)


def explained(error: Exception) -> str:
    """What a user has to know of a mistake, with the remedy; empty if it is a fault of ours."""
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else "falloff"
        return f"{misunderstood(error)}\n`{where} --help` shows what there is"
    if isinstance(error, FalloffError):
        return str(error)
    if isinstance(error, UnicodeEncodeError):
        near = error.object[max(error.start - 40, 0) : error.end]
        return f"{near!a} has a byte that is no UTF-8: give that file another name"
    if not isinstance(error, OSError):
        return ""
    if error.errno in FULL:
        remedy = "finished trials are kept; make room, and the same command goes on"
        return f"the disk is full at {error.filename or 'a file'}: {remedy}"
    if error.filename is None:
        return ""
    remedy = ""
    if error.errno in READ_ONLY and Path(error.filename).is_relative_to(paths.HOME):
        remedy = "; set FALLOFF_HOME to a folder of your own, where all is then written"
    return f"{error.filename} cannot be read or written: {error.strerror}{remedy}"


def misunderstood(error: click.UsageError) -> str:
    """What of a command line was not understood, and what was probably meant."""
    if isinstance(error, click.exceptions.NoSuchCommand):
        return str(unknown("command", error.command_name, error.ctx.command.commands))
    if not isinstance(error, click.NoSuchOption):
        return error.format_message()
    if old := OLD_OPTIONS.get(error.option_name):
        return old
    names = [name for known in error.ctx.command.get_params(error.ctx) for name in known.opts]
    options = [name for name in names if name.startswith("--")]
    return str(unknown("option", error.option_name, options))


if __name__ == "__main__":
    sys.exit(main())
