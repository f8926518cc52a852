"""The command line of Falloff: its grammar, and how a mistake is answered."""

import argparse
import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

import commands
from analysis import paths
from runners.record import FalloffError

PRESETS = ("quick", "full", "stored")
CAMPAIGN = {"help": "a name in data/campaigns"}
TESTBED = {
    "default": "",
    "help": "a name in data/testbeds (default: the one that the campaign names)",
}
SWITCH = {"action": "store_true"}
FOLDER = {"type": Path, "metavar": "FOLDER"}
COLUMN = {"required": True, "metavar": "COLUMN"}
TOOLS = (
    "hpl, hpcc, dgemm, iperf3, netperf, ping, frame_limit, fanout, udp_sizes, token_exchange, payload, node_rates, "
    "osu or imb"
)


def parser() -> argparse.ArgumentParser:
    """The command line's grammar; a command's arguments are the parameters of the function that does it."""
    about = "Does a cluster's efficiency fall off with its interconnect?"
    top = argparse.ArgumentParser(prog="falloff", description=about)
    parsers = top.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, do: Callable[..., int], summary: str, details: str | None = None):
        added = parsers.add_parser(name, help=summary, description=details)
        added.set_defaults(do=do)
        return added.add_argument

    add = command("run", commands.run, "run a campaign, or what is missing of it")
    add("campaign", **CAMPAIGN)
    add("--testbed", **TESTBED)
    add("--preset", default="full", help="the campaign's stopping rule: quick or full (default)")
    add("--repeats", type=positive, default=0, metavar="K", help="exactly K blocks instead")
    add("--fresh", **SWITCH, help="start anew; earlier trials are moved aside")
    add("--submit", **SWITCH, help="leave what is missing to a job of Slurm's")
    add("--pack", dest="packed", **FOLDER, help="also copy the campaign there, compressed")

    add = command(
        "status", commands.status, "what of each campaign is kept and missing, and its job"
    )
    add("campaign", nargs="?", default="", help="a name in data/campaigns (default: all that ran)")

    add = command("report", commands.make_report, "run the experiments and write the report")
    add("--preset", choices=PRESETS, default="quick", help="default: quick")
    add("--data", **FOLDER, help="run nothing; the report of the campaigns in this folder alone")
    add("--out", default=paths.REPORT, **FOLDER, help="default: build/report")

    add = command("doctor", commands.doctor, "what is here, what is missing, and the remedy")
    add(
        "--testbed", default="", help="a cluster in data/testbeds: its nodes are asked and measured"
    )

    add = command("parse", commands.parse_file, "the readings of a tool's existing output, as JSON")
    add("tool", help=TOOLS)
    add("file", type=Path)

    add = command(
        "import",
        commands.import_results,
        "a campaign from outputs that you already have, and HPL's efficiency",
        "Outputs of one tool become a campaign of measured evidence: hpl, hpcc, iperf3, netperf, ping, "
        "osu (latency and bandwidth) or imb (PingPong). What they do not say is given by --set or --map: "
        "interconnect, nodes or ranks_per_node, rpeak (one node's theoretical peak in flop/s) and more; what is not "
        "given stays unknown.",
    )
    add("tool")
    add("files", nargs="+", type=Path, metavar="FILE", help="an output, or a folder of them")
    words = {"dest": "words", "metavar": "NAME=VALUE", "action": "append", "default": []}
    add("--set", **words, help="of all files, such as nodes=4")
    table = "a column `file` (names or patterns), one for each setting"
    add("--map", dest="table", type=Path, metavar="CSV", help=table)
    add("--testbed", default="", help="a name in data/testbeds whose networks and Rpeak these are")

    add = command(
        "profile",
        commands.profile_program,
        "run an MPI program and count its messages by size",
        "Run an MPI program and count its messages by call and size: "
        "falloff profile -- mpirun -np 4 ./program. It needs no change, but has to call MPI's C functions (Fortran "
        "programs under Open MPI are not seen), with the MPI that `make setup` found, and to reach MPI_Finalize. "
        "With Open MPI's mpirun ranks on other hosts are counted too; under srun and MPICH's mpiexec they inherit "
        "LD_PRELOAD and FALLOFF_PAYLOAD from here. Rank 0 writes below the working folder, which has to be shared. "
        "Not counted: persistent and one-sided communication, non-blocking collectives.",
    )
    add("argv", nargs="+", metavar="PROGRAM", help="after `--`: the command line to run")

    add = command("fit", commands.fit_table, "fit a model to two columns of a CSV file, as JSON")
    add("model", help="a name in analysis/models")
    add("file", type=Path)
    add("--x", **COLUMN)
    add("--y", **COLUMN)

    summary = "compare all models on blocks of a CSV file, as JSON"
    add = command("compare", commands.compare_models, summary)
    add("file", type=Path)
    add("--x", **COLUMN)
    add("--y", **COLUMN)
    add("--block", **COLUMN, help="what was measured together")

    summary = "the sources' claims, and what the stored evidence says to each"
    add = command("claims", commands.print_claims, summary)
    add("--source", default="", help="a name in data/published/claims.toml (default: all)")
    add("--out", type=Path, metavar="FILE.nc", help="also keep the ledger there as a dataset")

    summary = "explore datasets in the browser: pick, leave out, click, ask what if"
    add = command("explore", commands.explore, summary)
    folder = "of datasets (*.nc) or campaigns (default: the reference and what was run here)"
    add("folder", nargs="?", type=Path, help=folder)
    page = "write one HTML file instead, which needs no server"
    add("--static", type=Path, metavar="FILE", help=page)
    add("--port", type=int, default=0, metavar="N", help="on loopback (default: any free one)")
    add("--no-browser", dest="browser", action="store_false", help="print the address only")

    summary = "what network designs are worth, and what their switches cost"
    add = command("design", commands.print_designs, summary)
    explained = "TOML as data/designs/nemo.toml, which explains it"
    add("file", type=Path, metavar="FILE", help=explained)

    summary = "measure one node's rates for the model of a simulated one, as TOML"
    add = command("rates", commands.print_rates, summary)
    add("--testbed", default="", help="a name in data/testbeds (default: this machine, all cores)")

    summary = "the minutes until a campaign is decided, and how probable that is at each look"
    add = command("plan", commands.plan_campaign, summary)
    add("campaign", **CAMPAIGN)
    add("--testbed", **TESTBED)

    add = command(
        "trace",
        commands.trace,
        "what a figure rests on, down to the raw transcripts",
        "Print which function draws a figure of the report, from which datasets, and of each its digests, "
        "the command that makes it anew, and every transcript with its file, SHA-256, command line and exit code.",
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
    archive = "a file of `falloff archive`, a folder of campaigns, or a name in data/reference"
    add("archive", type=Path, metavar="ARCHIVE", help=archive)
    add(
        "--minutes",
        type=above_zero,
        default=15.0,
        metavar="M",
        help="of measuring at most (default: 15)",
    )
    add("--fresh", **SWITCH, help="run anew what an earlier call ran")

    add = command(
        "archive",
        commands.archive,
        "code, data and report in one file that describes itself",
        "Write one zip file with this code and its commit, all campaigns with their transcripts, the "
        "datasets, the report (built from the stored data when there is none), an artifact description and RO-Crate "
        "metadata. What is unpacked verifies itself.",
    )
    add("file", type=Path, metavar="FILE.zip")
    return top


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def above_zero(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError("must be above 0")
    return number


def main() -> int:
    """Run the command line; a user's mistake ends in a line or two and exit code 1, never in a traceback."""
    arguments = vars(parser().parse_args())
    do = arguments.pop("do")
    try:
        code = do(**arguments)
        sys.stdout.flush()
        return code
    except FalloffError as error:
        print(f"falloff: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `falloff trace share | head`: the reader has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        remedy = "finished trials are kept; make room, and the same command goes on"
        print(f"falloff: {error}: {remedy}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        kept = "finished trials are kept; the same command goes on from there."
        print(f"\nInterrupted: {kept}", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
