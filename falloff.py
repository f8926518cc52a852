"""The command line of Falloff."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from analysis import paths
from runners import campaign as engine
from runners import foreign, runner_named
from runners.journal import pack
from runners.record import FalloffError, Unreadable, to_json

# What takes long to import is imported where it is used: `falloff parse` should answer at once.
PRESETS = ("quick", "full", "stored")


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

    today, left_out = None, ["nothing was to be measured (preset stored): the preset quick measures on this machine"]
    if preset != "stored":
        try:
            plan = experiment.plan_campaign("hpl_scaling", preset=preset)
            today, left_out = store.assemble(experiment.run_campaign(plan, listen=progress())), []
        except FalloffError as error:
            left_out = str(error).splitlines()
            for line in left_out:
                print(f"left out: {line}", file=sys.stderr)
    reference = experiment.stored("hpl_scaling")
    if preset == "full" and today is not None:
        reference, today = today, None
    made = report.build(reference, today, out, left_out)
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
    import pandas as pd

    from analysis import fit, models

    try:
        table = pd.read_csv(file)
    except (OSError, ValueError) as error:
        raise FalloffError(f"cannot read {file} as CSV: {error}") from None
    absent = [column for column in (x, y) if column not in table]
    if absent:
        raise FalloffError(f"{file} has no column {absent[0]!r}; it has: {', '.join(table.columns)}")
    print(json.dumps(fit.fit(models.find(model), table[x], table[y]).as_json(), indent=2))
    return 0


def doctor() -> int:
    """Say what is here and what is missing, with the remedies; 1 if anything is missing."""
    import experiment
    from runners import tools

    plan = experiment.plan_campaign("hpl_scaling")
    missing = experiment.obstacles(plan)
    for tool in experiment.tools_of(plan):
        try:
            print(f"  here     {tool}: {tools.find(tool, plan.testbed.get('tools', {}))}")
        except FalloffError:
            pass  # it is among the obstacles
    for obstacle in missing:
        print(f"  MISSING  {obstacle}")
    if missing:
        print("`make setup` installs what it may. Until then reports are built from the stored reference.")
    else:
        print(f"  here     testbed {plan.testbed['name']}: {plan.testbed['nodes']} nodes on this machine")
        print("All is here: `make report` runs the experiments on this machine.")
    return int(bool(missing))


def progress() -> engine.Listener:
    """Draw the engine's events: a bar with ETA on a terminal, otherwise a line for each trial."""
    from tqdm.auto import tqdm

    bar = tqdm(total=0, unit="trial", disable=None, leave=False, bar_format="{l_bar}{bar}| {n}/{total} {desc}")
    failed: list[str] = []

    def listen(event: engine.Event) -> None:
        bar.total, bar.n = event.total, event.done
        if event.kind == "started":
            bar.set_description_str(f"{describe(event.trial)}, {remaining(event.eta_s)}")
        elif event.kind == "finished":
            if event.outcome.status != "ok":
                failed.append(f"{describe(event.trial)}: {event.outcome.status}, {event.outcome.reason}")
            if bar.disable:
                said = f"[{event.done}/{event.total}] {describe(event.trial)}: {event.outcome.status}"
                print(f"{said}, {remaining(event.eta_s)}", flush=True)
        elif event.kind == "ended":
            bar.close()
            print(f"Campaign ended by: {event.message}; {event.done} trials are there, {len(failed)} without a result")
            print("".join(f"  {line}\n" for line in failed), end="", flush=True)

    return listen


def describe(trial: Any) -> str:
    """A trial in a few words."""
    point = trial.point
    where = f"{point['nodes']} nodes" if "nodes" in point else f"node {point.get('sender')} to {point.get('receiver')}"
    return f"block {trial.block}, {trial.role}, {trial.runner} on {point.get('interconnect', '?')}, {where}"


def remaining(seconds: float | None) -> str:
    return "time left unknown" if seconds is None else f"about {seconds / 60:.1f} min left"


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
    parse.add_argument("tool", help="hpl, hpcc, dgemm, iperf3 or ping")
    parse.add_argument("file", type=Path)

    fit = commands.add_parser("fit", help="fit a model to two columns of a CSV file, as JSON")
    fit.add_argument("model", help="a name in analysis/models")
    fit.add_argument("file", type=Path)
    fit.add_argument("--x", required=True, metavar="COLUMN")
    fit.add_argument("--y", required=True, metavar="COLUMN")
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
        case "fit":
            return fit_table(arguments.model, arguments.file, arguments.x, arguments.y)


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
