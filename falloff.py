"""The command line of Falloff."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from analysis import paths
from progress_bar import progress
from runners import foreign, runner_named
from runners.journal import pack
from runners.record import FalloffError, Unreadable, to_json

# What takes long to import is imported where it is used: `falloff parse` should answer at once.
PRESETS = ("quick", "full", "stored")
# What the quick report runs anew; of the rest the stored reference is shown.
QUICK = ("hpl_scaling", "hpl_paper")


def run(arguments: argparse.Namespace) -> int:
    """Run a campaign and keep its dataset beside the transcripts."""
    import experiment
    from analysis import store

    plan = experiment.plan_campaign(arguments.campaign, arguments.testbed, arguments.preset, arguments.repeats)
    folder = experiment.run_campaign(plan, fresh=arguments.fresh, listen=progress())
    dataset = paths.DATASETS / f"{folder.name}.nc"
    store.save(store.assemble(folder), dataset)
    if arguments.pack:
        pack(folder, arguments.pack)
    print(f"Transcripts: {folder}\nDataset: {dataset}")
    return 0


def make_report(preset: str, out: Path) -> int:
    """Run what the preset asks for and write the report; where it cannot run, from stored data that say so."""
    import experiment
    from analysis import report, store
    from analysis.studies import together

    datasets = {name: experiment.stored(*source) for name, source in together.DATASETS.items()}
    today, left_out = {}, []
    if preset == "stored":
        left_out.append("nothing was to be measured (preset stored): the preset quick measures on this machine")
    for name in {"quick": QUICK, "full": tuple(datasets), "stored": ()}[preset]:
        try:
            plan = experiment.plan_campaign(*together.DATASETS[name], preset)
            today[name] = store.assemble(experiment.run_campaign(plan, listen=progress()))
        except FalloffError as error:
            left_out += [line for line in str(error).splitlines() if line not in left_out]
    if preset == "full":
        datasets, today = {**datasets, **today}, {}  # else it is too short for verdicts: judged against the reference
    for line in left_out if preset != "stored" else ():
        print(f"left out: {line}", file=sys.stderr)
    made = report.build(together.analyse(datasets, today), out, left_out)
    print(f"Report: {made.html} and {made.pdf}")
    return 0


def parse_file(tool: str, file: Path) -> int:
    """Print the readings of any existing output of a tool as JSON."""
    runner, text = runner_named(tool), foreign.read(file)
    try:
        results = runner.results(text)
    except Unreadable as reason:
        what, said = foreign.describe(text, tool) or str(reason), foreign.complaint(text)
        quote = f"; it says: {said}" if said else ""
        raise FalloffError(f"{file} holds no result of {tool}: {what}{quote}") from None
    print(json.dumps({"tool": tool, "file": str(file), "results": [to_json(result) for result in results]}, indent=2))
    return 0


def fit_table(model: str, file: Path, x: str, y: str) -> int:
    """Print a model's fit to two columns of a CSV file as JSON."""
    from analysis import models, tables
    from analysis.fitting import fit

    table = tables.read(file, x, y)
    print(json.dumps(fit.fit(models.find(model), table[x], table[y]).as_json(), indent=2))
    return 0


def compare_models(file: Path, x: str, y: str, block: str) -> int:
    """Print every model's comparison on blocks of a CSV file as JSON, the best supported first."""
    from analysis import models, tables
    from analysis.fitting import compare

    curves = [model for model in map(models.find, models.names()) if model.name != "hpl"]
    found = compare.compare(curves, *tables.blocks(tables.read(file, x, y, block), x, y, block))
    print(json.dumps([compare.as_json(comparison) for comparison in found], indent=2))
    return 0


def plan_campaign(campaign: str, testbed: str) -> int:
    """Print what a campaign costs in hours and what it will be able to say, from what it took so far."""
    import experiment
    from analysis.inference import planning

    plan = experiment.plan_campaign(campaign, testbed, "full")
    folder, effort = experiment.effort(plan)
    blocks = sorted({3, 4, 6, 8, 12, 16, 24, 32, 48, 64, plan.stopping.blocks})
    print(f"{campaign} on {testbed}, from the blocks in {folder}")
    print(planning.text(effort, blocks))
    return 0


def print_rates(testbed: str) -> int:
    """Measure one node, of this machine without a testbed, and print its rates as TOML for data/testbeds."""
    import experiment
    from runners import rates

    if testbed:
        machine = experiment.read_testbed(testbed)
        networks = experiment.read_toml(paths.INTERCONNECTS, "interconnects")
        idle = dict([next(iter(networks.items()))])  # a testbed wants one, though nothing is sent
        with experiment.testbed_module(machine).open_testbed(machine, idle) as opened:
            said = rates.run_on(opened, *idle)
    else:
        said = rates.run_here()
    print(rates.as_toml(said), end="")
    return 0


def profile_program(argv: list[str]) -> int:
    """Run an MPI program and print what it sent, by call and size; its exit code, or 1 when nothing was counted."""
    from runners import payload, profile, tools

    found = profile.run(argv, Path(tools.find("payload.so", {})))
    if not found.printed:
        reason = "it ended before MPI_Finalize, or is no MPI program that payload.so can see (--help says which)"
        print(f"falloff: no message of {argv[0]} was counted: {reason}", file=sys.stderr)
        return found.exit_code or 1
    print(found.printed)
    for table in payload.tables(found.printed):
        print(f"\n{profile.histogram(table)}")
    return found.exit_code


def doctor() -> int:
    """Say what is here and what is missing, with the remedies; 1 if anything is missing."""
    import experiment
    from analysis.studies import together
    from runners import tools

    plans = [experiment.plan_campaign(*source) for source in together.DATASETS.values()]
    testbed = plans[0].testbed
    missing = dict.fromkeys(obstacle for plan in plans for obstacle in experiment.obstacles(plan))
    for tool in sorted({tool for plan in plans for tool in experiment.tools_of(plan)}):
        try:
            print(f"  here     {tool}: {tools.find(tool, testbed.get('tools', {}))}")
        except FalloffError:
            pass  # it is among the obstacles
    for obstacle in missing:
        print(f"  MISSING  {obstacle}")
    if missing:
        print("`make setup` installs what it may. Until then reports are built from the stored reference.")
    else:
        print(f"  here     testbed {testbed['name']}: {testbed['nodes']} nodes on this machine")
        print("All is here: `make report` runs the experiments on this machine.")
    return int(bool(missing))


def parser() -> argparse.ArgumentParser:
    """The command line's grammar."""
    top = argparse.ArgumentParser(prog="falloff", description="Does a cluster's efficiency fall off with its interconnect?")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run a campaign, or what is missing of it")
    run.add_argument("campaign", help="a name in data/campaigns")
    run.add_argument("--testbed", default="emulated", help="a name in data/testbeds (default: emulated)")
    run.add_argument("--preset", default="full", help="the campaign's stopping rule: quick or full (default)")
    run.add_argument("--repeats", type=positive, default=0, metavar="K", help="exactly K blocks instead")
    run.add_argument("--fresh", action="store_true", help="start anew; earlier trials are moved aside")
    run.add_argument("--pack", type=Path, metavar="FOLDER", help="also copy the campaign there, compressed")

    report = commands.add_parser("report", help="run the experiments and write the report")
    report.add_argument("--preset", choices=PRESETS, default="quick", help="default: quick")
    report.add_argument("--out", type=Path, default=paths.REPORT, metavar="FOLDER", help="default: build/report")

    commands.add_parser("doctor", help="what is here, what is missing, and the remedy")

    parse = commands.add_parser("parse", help="the readings of a tool's existing output, as JSON")
    parse.add_argument("tool", help="hpl, hpcc, dgemm, iperf3, ping or payload")
    parse.add_argument("file", type=Path)

    profile = commands.add_parser(
        "profile",
        help="run an MPI program and count its messages by size",
        description="Run an MPI program and count its messages by call and size: "
        "falloff profile -- mpirun -np 4 ./program. It needs no change, but has to call MPI's C functions (Fortran "
        "programs under Open MPI are not seen), with the MPI that `make setup` found, and to reach MPI_Finalize. "
        "With Open MPI's mpirun ranks on other hosts are counted too; under srun and MPICH's mpiexec they inherit "
        "LD_PRELOAD and FALLOFF_PAYLOAD from here. Rank 0 writes below the working folder, which has to be shared. "
        "Not counted: persistent and one-sided communication, non-blocking collectives.",
    )
    profile.add_argument("argv", nargs="+", metavar="PROGRAM", help="after `--`: the command line to run")

    fit = commands.add_parser("fit", help="fit a model to two columns of a CSV file, as JSON")
    fit.add_argument("model", help="a name in analysis/models")
    fit.add_argument("file", type=Path)
    fit.add_argument("--x", required=True, metavar="COLUMN")
    fit.add_argument("--y", required=True, metavar="COLUMN")

    compare = commands.add_parser("compare", help="compare all models on blocks of a CSV file, as JSON")
    compare.add_argument("file", type=Path)
    compare.add_argument("--x", required=True, metavar="COLUMN")
    compare.add_argument("--y", required=True, metavar="COLUMN")
    compare.add_argument("--block", required=True, metavar="COLUMN", help="what was measured together")

    rates = commands.add_parser("rates", help="measure one node's rates for the model of a simulated one, as TOML")
    rates.add_argument("--testbed", default="", help="a name in data/testbeds (default: this machine, all its cores)")

    plan = commands.add_parser("plan", help="what a campaign costs in hours, and what it will be able to say")
    plan.add_argument("campaign", help="a name in data/campaigns")
    plan.add_argument("--testbed", default="emulated", help="a name in data/testbeds (default: emulated)")
    return top


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def execute(arguments: argparse.Namespace) -> int:
    """Do what a parsed command line asks for; the exit code."""
    match arguments.command:
        case "run":
            return run(arguments)
        case "report":
            return make_report(arguments.preset, arguments.out)
        case "doctor":
            return doctor()
        case "parse":
            return parse_file(arguments.tool, arguments.file)
        case "profile":
            return profile_program(arguments.argv)
        case "fit":
            return fit_table(arguments.model, arguments.file, arguments.x, arguments.y)
        case "compare":
            return compare_models(arguments.file, arguments.x, arguments.y, arguments.block)
        case "rates":
            return print_rates(arguments.testbed)
        case "plan":
            return plan_campaign(arguments.campaign, arguments.testbed)


def main() -> int:
    """Run the command line; a user's mistake ends in a line or two and exit code 1, never in a traceback."""
    try:
        return execute(parser().parse_args())
    except FalloffError as error:
        print(f"falloff: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted: finished trials are kept; the same command goes on from there.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
