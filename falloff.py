# PYTHON_ARGCOMPLETE_OK
"""The command line of Falloff: its grammar, and how a mistake is answered."""

import argparse
import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import commands
from analysis import paths
from runners import names as runner_names
from runners.provenance import code
from runners.record import FalloffError, unknown

PRESETS = ("quick", "full", "stored")
EXIT_CODES = (
    "Exit codes: 0 done; 1 refused, missing or different, with the reason; 2 the command line was not understood; "
    "130 interrupted; 141 nobody reads the output any more."
)
FULL = (errno.ENOSPC, errno.EDQUOT)
CLEAR = "\r\x1b[K"  # a progress bar may stand in the line
TESTBED = {"default": "", "help": "a name in data/testbeds (default: the campaign's own)"}
SWITCH = {"action": "store_true"}
FOLDER = {"type": Path, "metavar": "FOLDER"}
COMPARED = paths.ROOT / "build" / "compare.svg"
TWIN = paths.ROOT / "build" / "twin.svg"
# Where 1 and 2 are answers; elsewhere a mistake is 1, or argparse's 2.
MISTAKES = {"compare": 3, "reproduce": 3}
COLUMN = {"required": True, "metavar": "COLUMN"}


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are as short as all others."""

    def error(self, message: str) -> None:
        """Say what was not understood, and end with exit code 2."""
        self.exit(2, f"falloff: {message}\n`{self.prog} --help` shows what there is\n")

    def parse_known_args(self, args=None, namespace=None):
        """As argparse's, but an option that is not known is refused by the command that does not know it."""
        known, rest = super().parse_known_args(args, namespace)
        for option in (word for word in rest if word.startswith("--")):
            self.error(str(unknown("option", option, self._option_string_actions)))
        return known, rest

    def _check_value(self, action: argparse.Action, value: str) -> None:
        if action.choices is not None and value not in action.choices:
            kind = "command" if isinstance(action, argparse._SubParsersAction) else action.dest
            raise argparse.ArgumentError(None, str(unknown(kind, value, action.choices)))


class Version(argparse.Action):
    """Print version and commit, and end."""

    def __call__(self, parser, *_) -> None:
        commit = code()
        changed = ", changed since" if commit["git_dirty"] else ""
        where = f" (commit {commit['git_commit'][:10]}{changed})" if commit["git_commit"] else ""
        print(f"falloff {metadata.version('falloff')}{where}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The command line's grammar; a command's arguments are the parameters of the function that does it."""
    about = "Does a cluster's efficiency fall off with its interconnect?"
    top = Parser(prog="falloff", description=about, epilog=EXIT_CODES)
    what = "print version and commit"
    top.add_argument("--version", action=Version, nargs=0, default=argparse.SUPPRESS, help=what)
    parsers = top.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, do: Callable[..., int], summary: str, details: str = "", among=parsers):
        texts = {"help": summary, "description": details or summary, "epilog": EXIT_CODES}
        added = among.add_parser(name, **texts)
        added.set_defaults(do=do)
        return added.add_argument

    add = command("run", commands.run, "run a campaign, or what is missing of it")
    add("campaign", nargs="?", default="", help="a name in data/campaigns")
    add("--list", **SWITCH, dest="listed", help="print the campaigns that there are")
    planned = (
        "run nothing: print the minutes until it is decided, and how probable that is at each look"
    )
    add("--plan", **SWITCH, dest="planned", help=planned)
    add("--testbed", **TESTBED)
    add("--preset", default="full", help="the campaign's stopping rule: quick or full (default)")
    add("--repeats", type=positive, default=0, metavar="K", help="exactly K blocks instead")
    add("--fresh", **SWITCH, help="start anew; earlier trials are moved aside")
    add("--submit", **SWITCH, help="leave what is missing to a job of Slurm's")
    add("--pack", dest="packed", **FOLDER, help="also copy the campaign there, compressed")

    add = command("status", commands.status, "what of each campaign is kept and missing, its job")
    add("campaign", nargs="?", default="", help="in data/campaigns (default: all that ran)")

    add = command(
        "report",
        commands.report,
        "run the experiments and write the report",
        "Run the experiments and write the report; or print a part of it alone: the sources' claims with what the "
        "stored evidence says to each, or what the network designs of a file are worth.",
    )
    add("--preset", choices=PRESETS, default="quick", help="default: quick")
    add("--data", **FOLDER, help="run nothing; the report of the campaigns in this folder alone")
    claims = "print the claims alone, of a source in data/published/claims.toml or of all"
    add("--claims", nargs="?", const="", metavar="SOURCE", help=claims)
    designs = "print designs alone; data/designs/nemo.toml explains the format"
    add("--design", type=Path, metavar="FILE", help=designs)
    add("--out", **FOLDER, default=paths.REPORT, help="default: build/report")

    add = command("doctor", commands.doctor, "what is here, what is missing, and the remedy")
    cluster = "a cluster in data/testbeds: its nodes are asked"
    add("--testbed", default="", help=cluster)
    rates = "measure one node's rates for the model of a simulated one, as TOML for data/testbeds"
    add("--rates", **SWITCH, help=rates)

    add = command(
        "import",
        commands.import_results,
        "a campaign from outputs that you already have, and HPL's efficiency",
        "Outputs of one tool become a campaign of measured evidence: hpl, hpcc, iperf3, iperf2, netperf, ping, "
        "osu (latency and bandwidth) or imb (PingPong). What they do not say is given by --set or --map: "
        "interconnect, nodes or ranks_per_node, rpeak (one node's theoretical peak in flop/s) and more; what is not "
        "given stays unknown. With --print the readings of the files are printed, and nothing is kept.",
    )
    add("tool", help=", ".join(runner_names()))
    add("files", nargs="+", type=Path, metavar="FILE", help="an output, or a folder of them")
    printed = "only print the readings of each file as JSON; also of tools that are run here"
    add("--print", **SWITCH, dest="printed", help=printed)
    words = {"dest": "words", "metavar": "NAME=VALUE", "action": "append", "default": []}
    add("--set", **words, help="of all files, such as nodes=4")
    table = "a column `file` (names or patterns), one for each setting"
    add("--map", dest="table", type=Path, metavar="CSV", help=table)

    add = command(
        "profile",
        commands.profile_program,
        "run an MPI program and count its messages by size, or record it and replay it on another network",
        "Run an MPI program and count its messages by call and size: "
        "falloff profile -- mpirun -np 4 ./program. It needs no change, but has to call MPI's C functions (Fortran "
        "programs under Open MPI are not seen), with the MPI that `make setup` found, and to reach MPI_Finalize. "
        "With Open MPI's mpirun ranks on other hosts are counted too; under srun and MPICH's mpiexec they inherit "
        "LD_PRELOAD and FALLOFF_PAYLOAD from here. Rank 0 writes below the working folder, which has to be shared. "
        "Not counted: persistent and one-sided communication, non-blocking collectives. With --keep the calls are recorded "
        "in their order instead, and --replay lets SimGrid replay them on a described network, also on more nodes.",
    )
    add("argv", nargs="*", metavar="PROGRAM", help="after `--`: the command line to run")
    add("--keep", default="", dest="name", metavar="NAME", help="record the calls under this name")
    add("--replay", default="", dest="replayed", metavar="NAME", help="replay such a recording")
    add("--testbed", default="smith", help="a simulated one, for --replay (default: smith)")
    more = "also on so many nodes, carried on from the recordings"
    add("--nodes", type=positive, nargs="+", default=[], metavar="N", help=more)

    summary = "fit a model, or all models, to columns of a CSV file, as JSON"
    add = command(
        "fit",
        commands.fit_table,
        summary,
        "Fit a model to two columns: `falloff fit universal_scalability FILE.csv --x nodes --y rate`. Without a model's name all "
        "models are compared, which needs blocks: `falloff fit FILE.csv --x nodes --y rate --block run`.",
    )
    add("model", nargs="?", metavar="MODEL", help="a name in analysis/models")
    add("file", type=Path, metavar="FILE.csv")
    add("--x", **COLUMN)
    add("--y", **COLUMN)
    add("--block", default="", metavar="COLUMN", help="what was measured together")

    add = command(
        "compare",
        commands.compare_samples,
        "did the cluster change? every point and contrast of two campaigns or CSV files",
        "Compare two campaigns' folders (your own runs, references, imports), or two CSV files with the columns nodes, "
        "rate and block. Every point and every planned contrast is faster, slower, the same within the margin, or undecided. "
        "The exit code is 0 for the same or faster, 1 when anything is slower, 2 when it is undecided, 3 for a mistake.",
    )
    add("old", type=Path, metavar="OLD", help="a campaign's folder or a CSV file")
    add("new", type=Path, metavar="NEW")
    add("--margin", type=percentage, default=3.0, metavar="PERCENT", help="default: 3")
    for role, column in (("x", "nodes"), ("y", "rate"), ("block", "block")):
        add(f"--{role}", default=column, metavar="COLUMN", help=f"of CSV files (default: {column})")
    better = {"choices": ("higher", "lower"), "default": "higher"}
    add("--better", **better, help="which y of a CSV file is better (default: higher)")
    drawn = {"type": Path, "metavar": "FILE.svg"}
    add("--figure", **drawn, default=COMPARED, help="default: build/compare.svg")
    add("--json", dest="as_json", **SWITCH, help="print JSON instead")
    shown = "instead print what the tools of row N printed on both sides"
    add("--transcripts", dest="row", type=positive, metavar="N", help=shown)

    add = command(
        "twin",
        commands.make_twin,
        "a simulated twin of your cluster, fitted to its micro-benchmarks, and what if",
        "Fit latency and bandwidth by message size, and a node's compute rate, to campaigns of one cluster; write them as a "
        "testbed for SimGrid; predict HPL where it was run (it is not read by the fit) and on networks that are not there.",
    )
    what = "a campaign's folder, or a name in data/reference: messages by size, DGEMM, HPL"
    add("campaigns", nargs="+", metavar="CAMPAIGN", help=what)
    add("--name", required=True, help="of the twin: data/testbeds/NAME.toml is written")
    add("--fit-only", **SWITCH, help="write the description and simulate nothing")
    add("--figure", **drawn, default=TWIN, help="default: build/twin.svg")

    summary = "explore datasets in the browser: pick, leave out, click, ask what if"
    add = command("explore", commands.explore, summary)
    folder = "of datasets (*.nc) or campaigns (default: the reference and what was run here)"
    add("folder", nargs="?", type=Path, help=folder)
    page = "write one HTML file instead, which needs no server"
    add("--static", type=Path, metavar="FILE", help=page)
    add("--port", type=port, default=0, metavar="N", help="on loopback (default: any free one)")
    add("--no-browser", dest="browser", action="store_false", help="print the address only")

    summary = "trace a figure, verify campaigns, archive everything"
    evidence = parsers.add_parser("evidence", help=summary, description=summary, epilog=EXIT_CODES)
    checks = evidence.add_subparsers(required=True, metavar="CHECK")

    add = command(
        "trace",
        commands.trace,
        "what a figure rests on, down to the raw transcripts",
        "Print which function draws a figure of the report, from which datasets, and of each its digests, "
        "the command that makes it anew, and every transcript with its file, SHA-256, command line and exit code.",
        checks,
    )
    add("figure", help="its name in build/report/figures, such as share")
    printed = "instead print what the tools of this trial printed"
    add("--transcript", default="", metavar="TRIAL", help=printed)

    add = command(
        "verify",
        commands.verify,
        "whether campaigns are still what was recorded of them",
        "Recompute the digests of campaigns' files, rebuild their datasets from the transcripts, and name "
        "every file, journal line, trial and value that is not as it was recorded. Only files are read: it works for "
        "a cluster that is not here. The exit code is 1 when anything differs.",
        checks,
    )
    add("folders", nargs="*", **FOLDER, help="default: all of data/reference and data/raw")
    add("--renew", **SWITCH, help="then record them as they are now")

    add = command(
        "reproduce",
        commands.reproduce,
        "run an archive's findings again here, and say which come out",
        "Run as much of an archive's campaigns as the time allows, and say of each finding: reproduced, not reproduced, "
        "too short to tell, or cannot run here. Only campaigns and testbeds that are described here are run. Exit code: "
        "0 all reproduced, 1 one not reproduced, 2 neither (of some nothing can be told), 3 not judged.",
    )
    archive = (
        "a file of `falloff evidence archive`, a folder of campaigns, or a name in data/reference"
    )
    add("archive", type=Path, metavar="ARCHIVE", help=archive)
    minutes = {"type": above_zero, "default": 15.0, "metavar": "M"}
    add("--minutes", **minutes, help="of measuring at most (default: 15)")
    add("--fresh", **SWITCH, help="run anew what an earlier call ran")

    add = command(
        "archive",
        commands.archive,
        "code, data and report in one file that describes itself",
        "Write one zip file with this code and its commit, all campaigns with their transcripts, the "
        "datasets, the report (built from the stored data when there is none), and an artifact description. "
        "What is unpacked verifies itself.",
        checks,
    )
    add("file", type=Path, metavar="FILE.zip")
    return top


def within(kind: type, least: float, most: float) -> Callable[[str], float]:
    """What reads a number within bounds; raises argparse's own error."""

    def read(text: str) -> float:
        with suppress(ValueError):
            if least <= kind(text) <= most:
                return kind(text)
        what = "whole number" if kind is int else "number"
        raise argparse.ArgumentTypeError(f"{text!r} is not a {what} from {least} to {most}")

    return read


positive, port = within(int, 1, 10**6), within(int, 0, 65535)
percentage, above_zero = within(float, 0.01, 99.99), within(float, 0.01, 10**6)


def complete(grammar: Parser) -> None:
    """Answer a shell's Tab key, and end: names of what is described here, else files."""
    import argcomplete

    folders = {"campaign": paths.CAMPAIGNS, "testbed": paths.TESTBEDS}

    def words(action: argparse.Action, **rest):
        if action.dest in folders:
            return [file.stem for file in folders[action.dest].glob("*.toml")]
        if action.dest == "tool":
            return runner_names()
        return argcomplete.FilesCompleter()(action=action, **rest)

    argcomplete.autocomplete(grammar, default_completer=words)


def main() -> int:
    """Run the command line; a user's mistake ends in a line or two and exit code 1, never in a traceback."""
    mistake = MISTAKES.get("".join(sys.argv[1:2]), 0)
    grammar = parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what could stand next
        complete(grammar)
    try:
        arguments = vars(grammar.parse_args())
    except SystemExit as usage:
        raise SystemExit(mistake if usage.code and mistake else usage.code) from None
    do = arguments.pop("do")
    try:
        code = do(**arguments)
        sys.stdout.flush()
        return code
    except FalloffError as error:
        return refuse(str(error), mistake or 1)
    except BrokenPipeError:  # `falloff evidence trace share | head`: the reader has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.errno in FULL:
            kept = "finished trials are kept; make room, and the same command goes on"
            return refuse(f"the disk is full at {error.filename or 'a file'}: {kept}", mistake or 1)
        if error.filename is None:
            raise
        unusable = f"{error.filename} cannot be read or written: {error.strerror}"
        return refuse(unusable, mistake or 1)
    except KeyboardInterrupt:
        kept = "finished trials are kept; the same command goes on from there."
        print(f"\nInterrupted: {kept}", file=sys.stderr)
        return 130


def refuse(message: str, code: int) -> int:
    """Print why something was not done, and return the exit code that says so."""
    print(f"{CLEAR if sys.stderr.isatty() else ''}falloff: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
