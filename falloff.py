"""The command line of Falloff: its grammar, and how a mistake is answered."""

import argparse
import errno
import os
import sys
from pathlib import Path
from typing import Any

import commands
import commands_evidence
from analysis import paths
from runners.record import FalloffError


def parser() -> argparse.ArgumentParser:
    """The command line's grammar."""
    top = argparse.ArgumentParser(prog="falloff", description="Does a cluster's efficiency fall off with its interconnect?")
    parsers = top.add_subparsers(required=True, metavar="COMMAND")

    run = parsers.add_parser("run", help="run a campaign, or what is missing of it")
    run.set_defaults(do=commands.run)
    run.add_argument("campaign", help="a name in data/campaigns")
    run.add_argument("--testbed", default="", help="a name in data/testbeds (default: the one that the campaign names)")
    run.add_argument("--preset", default="full", help="the campaign's stopping rule: quick or full (default)")
    run.add_argument("--repeats", type=positive, default=0, metavar="K", help="exactly K blocks instead")
    run.add_argument("--fresh", action="store_true", help="start anew; earlier trials are moved aside")
    run.add_argument("--submit", action="store_true", help="leave what is missing to a job of Slurm's")
    run.add_argument("--pack", dest="packed", type=Path, metavar="FOLDER", help="also copy the campaign there, compressed")

    status = parsers.add_parser("status", help="what of each campaign is kept and missing, and its job of Slurm's")
    status.set_defaults(do=commands.status)
    status.add_argument("campaign", nargs="?", default="", help="a name in data/campaigns (default: all that were run)")

    report = parsers.add_parser("report", help="run the experiments and write the report")
    report.set_defaults(do=commands.make_report)
    report.add_argument("--preset", choices=commands.PRESETS, default="quick", help="default: quick")
    report.add_argument("--data", type=Path, metavar="FOLDER", help="run nothing; the report of the campaigns in this folder alone")
    report.add_argument("--out", type=Path, default=paths.REPORT, metavar="FOLDER", help="default: build/report")

    doctor = parsers.add_parser("doctor", help="what is here, what is missing, and the remedy")
    doctor.set_defaults(do=commands.doctor)
    doctor.add_argument("--testbed", default="", help="a cluster in data/testbeds: its nodes are asked and measured")

    parse = parsers.add_parser("parse", help="the readings of a tool's existing output, as JSON")
    parse.set_defaults(do=commands.parse_file)
    parse.add_argument("tool", help="hpl, hpcc, dgemm, iperf3, netperf, ping, frame_limit, fanout, udp_sizes, token_exchange, payload, node_rates, osu or imb")
    parse.add_argument("file", type=Path)

    imported = parsers.add_parser(
        "import",
        help="a campaign from outputs that you already have, and HPL's efficiency",
        description="Outputs of one tool become a campaign of measured evidence: hpl, hpcc, iperf3, netperf, ping, "
        "osu (latency and bandwidth) or imb (PingPong). What they do not say is given by --set or --map: "
        "interconnect, nodes or ranks_per_node, rpeak (one node's theoretical peak in flop/s) and more; what is not "
        "given stays unknown.",
    )
    imported.set_defaults(do=commands.import_results)
    imported.add_argument("tool")
    imported.add_argument("files", nargs="+", type=Path, metavar="FILE", help="an output, or a folder of them")
    imported.add_argument(
        "--set", dest="words", action="append", default=[], metavar="NAME=VALUE", help="of all files, such as nodes=4"
    )
    imported.add_argument(
        "--map", dest="table", type=Path, metavar="CSV", help="a column `file` (names or patterns), one for each setting"
    )
    imported.add_argument("--testbed", default="", help="a name in data/testbeds whose networks and Rpeak these are")

    profile = parsers.add_parser(
        "profile",
        help="run an MPI program and count its messages by size",
        description="Run an MPI program and count its messages by call and size: "
        "falloff profile -- mpirun -np 4 ./program. It needs no change, but has to call MPI's C functions (Fortran "
        "programs under Open MPI are not seen), with the MPI that `make setup` found, and to reach MPI_Finalize. "
        "With Open MPI's mpirun ranks on other hosts are counted too; under srun and MPICH's mpiexec they inherit "
        "LD_PRELOAD and FALLOFF_PAYLOAD from here. Rank 0 writes below the working folder, which has to be shared. "
        "Not counted: persistent and one-sided communication, non-blocking collectives.",
    )
    profile.set_defaults(do=commands.profile_program)
    profile.add_argument("argv", nargs="+", metavar="PROGRAM", help="after `--`: the command line to run")

    fit = parsers.add_parser("fit", help="fit a model to two columns of a CSV file, as JSON")
    fit.set_defaults(do=commands.fit_table)
    fit.add_argument("model", help="a name in analysis/models")
    fit.add_argument("file", type=Path)
    fit.add_argument("--x", required=True, metavar="COLUMN")
    fit.add_argument("--y", required=True, metavar="COLUMN")

    compare = parsers.add_parser("compare", help="compare all models on blocks of a CSV file, as JSON")
    compare.set_defaults(do=commands.compare_models)
    compare.add_argument("file", type=Path)
    compare.add_argument("--x", required=True, metavar="COLUMN")
    compare.add_argument("--y", required=True, metavar="COLUMN")
    compare.add_argument("--block", required=True, metavar="COLUMN", help="what was measured together")

    claims = parsers.add_parser("claims", help="the sources' claims, and what the stored evidence says to each")
    claims.set_defaults(do=commands.print_claims)
    claims.add_argument("--source", default="", help="a source's name in data/published/claims.toml (default: all)")
    claims.add_argument("--out", type=Path, metavar="FILE.nc", help="also keep the ledger there as a dataset")

    explore = parsers.add_parser("explore", help="explore datasets in the browser: pick, leave out, click, ask what if")
    explore.set_defaults(do=commands.explore)
    explore.add_argument(
        "folder", nargs="?", type=Path, help="of datasets (*.nc) or campaigns (default: the reference and what was run here)"
    )
    explore.add_argument("--static", type=Path, metavar="FILE", help="write one HTML file instead, which needs no server")
    explore.add_argument("--port", type=int, default=0, metavar="N", help="on loopback (default: any free one)")
    explore.add_argument("--no-browser", dest="browser", action="store_false", help="print the address only")

    design = parsers.add_parser("design", help="what network designs are worth, and what their switches cost")
    design.set_defaults(do=commands.print_designs)
    design.add_argument("file", type=Path, metavar="FILE", help="TOML as data/designs/nemo.toml, which explains it")

    rates = parsers.add_parser("rates", help="measure one node's rates for the model of a simulated one, as TOML")
    rates.set_defaults(do=commands.print_rates)
    rates.add_argument("--testbed", default="", help="a name in data/testbeds (default: this machine, all its cores)")

    plan = parsers.add_parser("plan", help="the minutes until a campaign is decided, and how probable that is at each look")
    plan.set_defaults(do=commands.plan_campaign)
    plan.add_argument("campaign", help="a name in data/campaigns")
    plan.add_argument("--testbed", default="", help="a name in data/testbeds (default: the one that the campaign names)")
    _add_evidence(parsers)
    return top


def _add_evidence(parsers: Any) -> None:
    """The commands about what the figures rest on."""
    trace = parsers.add_parser(
        "trace",
        help="what a figure rests on, down to the raw transcripts",
        description="Print which function draws a figure of the report, from which datasets, and of each its digests, "
        "the command that makes it anew, and every transcript with its file, SHA-256, command line and exit code.",
    )
    trace.set_defaults(do=commands_evidence.trace)
    trace.add_argument("figure", help="its name in build/report/figures, such as share")
    trace.add_argument("--transcript", default="", metavar="TRIAL", help="instead print what the tools of this trial printed")
    trace.add_argument("--json", dest="as_json", action="store_true", help="the same as JSON")

    verify = parsers.add_parser(
        "verify",
        help="whether campaigns are still what was recorded of them",
        description="Recompute the digests of campaigns' files, rebuild their datasets from the transcripts, and name "
        "every file, journal line, trial and value that is not as it was recorded. Only files are read: it works for "
        "a cluster that is not here. The exit code is 1 when anything differs.",
    )
    verify.set_defaults(do=commands_evidence.verify)
    verify.add_argument(
        "folders", nargs="*", type=Path, metavar="FOLDER", help="campaigns (default: all of data/reference and data/raw)"
    )
    verify.add_argument("--renew", action="store_true", help="then record them as they are now")

    archive = parsers.add_parser(
        "archive",
        help="code, data and report in one file that describes itself",
        description="Write one zip file with this code and its commit, all campaigns with their transcripts, the "
        "datasets, the report (built from the stored data when there is none), an artifact description and RO-Crate "
        "metadata. What is unpacked verifies itself.",
    )
    archive.set_defaults(do=commands_evidence.archive)
    archive.add_argument("file", type=Path, metavar="FILE.zip")


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
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
        print(f"falloff: {error}: finished trials are kept; make room, and the same command goes on", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted: finished trials are kept; the same command goes on from there.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
