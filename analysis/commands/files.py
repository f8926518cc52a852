"""Outputs and tables that a user already has: import them, fit a model to them."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from analysis.commands.grammar import (
    MODEL,
    PATH,
    TOOL,
    argument,
    command,
    figure_option,
    json_switch,
    option,
)
from runners import tools
from runners.records.record import FalloffError, Unreadable

# Models whose equation holds for one quantity and not for any curve: HPL's rate, the cost of a
# byte, TCP's goodput.
_OF_ONE_QUANTITY = ("hpl", "hpl_messages", "cpu_cost", "bandwidth_delay")


@command(
    "import",
    examples="""
        falloff import HPL.out --print
        falloff import hpl results --out mine
        falloff import hpl results --write-map map.csv
        falloff import osu results --map map.csv --set interconnect=10g --out mine
    """,
)
@argument(
    "tool",
    type=TOOL,
    metavar="[TOOL]",
    help=f"Default: recognised from each file. {', '.join(tools.names())}.",
)
@argument(
    "files",
    type=PATH,
    nargs=-1,
    metavar="FILE...",
    help="Output files, or folders of output files.",
)
@option(
    "--out FOLDER",
    "The folder for the import and its figures.  [default: data/raw]",
)
@option(
    "--set NAME=VALUE",
    "A setting of all files, such as nodes=4; may be given several times.",
    "words",
    multiple=True,
)
@option(
    "--map FILE",
    "CSV with settings per file (column `file`: names or patterns).",
    "table",
)
@option(
    "--write-map FILE",
    "Write the detected settings to FILE for editing, and stop.",
    "seen",
)
@option("--blocks", "Treat runs with the same number in their paths as one block.")
@option("--print", "Only print the readings of each file as JSON.", "printed")
def import_results(
    tool: str, files: tuple[Path, ...], printed: bool, seen: Path | None, **how: Any
) -> None:
    """Import outputs of tools that you already have.

    The outputs of one tool become a campaign of measured evidence, and its findings are printed.
    The tool is recognised from each file; name the tool to read only its outputs. The tools are
    hpl, hpcc, iperf3, iperf2, netperf, ping, sockperf, osu, imb, nccl_tests and reframe. Networks,
    numbers of nodes and of repeats are read from paths such as results/1gbe/n02/run1/HPL.out or
    hpl_10g_8nodes_rep3.txt, and from headers. --write-map writes the detected settings, with the
    columns file, network, nodes, block, ranks_per_node and date; edit them and pass the file to
    --map.
    --set gives the settings of all files: interconnect, nodes or ranks_per_node, rpeak (one node's
    theoretical peak in flop/s, also as a product such as 16*2.5e9*16) and more.

    Runs of one point are blocks if the column `block`, the order of dates or --blocks says so. Else
    they count as repeats without order, and the verdict says so.

    A file that cannot be read is refused for one of five reasons: cut (a part is missing),
    contradictory (numbers disagree, or outputs are mixed), foreign (output of another program),
    unsupported (a format or test that Falloff does not read), failed (the output itself says so).
    """
    from analysis.imports import importing

    of_tools = importing.by_tool(tool, files)
    if seen and len(of_tools) > 1:
        wrote = ", ".join(name for name, _ in of_tools)
        raise FalloffError(f"--write-map is for the outputs of one tool: name one of {wrote}")
    for name, of_tool in of_tools:
        if printed:
            _print_readings(name, of_tool)
        else:
            _import(name, of_tool, seen, **how)


def _print_readings(tool: str, files: Sequence[Path]) -> None:
    """Print the readings of each file as JSON."""
    from analysis.dataset.schema import schema
    from analysis.imports import importing
    from runners import outputs
    from runners.tools import node_rates

    runner = tools.tool_named(tool)
    units = {name: row.get("units") for name, row in schema()["variables"].items()}
    units |= node_rates.UNITS  # which are in no dataset
    for file, _ in importing.expanded(files):
        text = outputs.read(file)
        try:
            results = [
                asdict(result)
                | {
                    "readings": [
                        {"name": name, "value": value, "unit": units.get(name) or ""}
                        for name, value in result.readings.items()
                    ]
                }
                for result in runner.results(text)
            ]
        except Unreadable as reason:
            refusal = outputs.refusal(runner.name, text, reason).with_kind()
            complaint = outputs.complaint(text)
            quote = f"; it says: {complaint}" if complaint else ""
            raise FalloffError(f"{file} holds no result of {tool}: {refusal}{quote}") from None
        print(json.dumps({"tool": tool, "file": str(file), "results": results}, indent=2))


def _import(
    tool: str,
    files: Sequence[Path],
    seen: Path | None,
    out: Path | None,
    words: Sequence[str],
    table: Path | None,
    blocks: bool,
) -> None:
    """Keep the outputs of one tool as a campaign and say what they show, or only write a map."""
    from analysis.imports import importing
    from analysis.report import import_report

    rows = importing.settings_in_table(table) if table else []
    common = importing.settings_in_words(words)
    campaign = importing.read(tools.tool_named(tool).name, files, common, rows, blocks)
    notes = [f"left out: {line}" for line in campaign.left_out]
    for line in notes + [f"note: {line}" for line in campaign.notes]:
        print(line, file=sys.stderr)
    if seen:
        importing.write_map(campaign, seen)
        print(f"{importing.structure(campaign)}\n")
        print(f"Map: {seen}; edit it, then import with --map {seen}")
        return
    print(import_report.save(campaign, out))


@command(
    "fit",
    examples="""
        falloff fit universal_scalability FILE.csv --x nodes --y rate
        falloff fit FILE.csv --x nodes --y rate --block run
        falloff fit hpl FILE.csv --x N,NB,P,Q --y gflops --ping-pong PINGPONG.csv
        falloff fit FOLDER
    """,
)
@argument(
    "source",
    type=MODEL,
    nargs=-1,
    required=True,
    metavar="[MODEL] FILE",
    help="A model in analysis/laws/models, and a CSV file; or only a file, or a campaign's folder.",
)
@option("--x COLUMN", "The column that y depends on; several, separated by commas.")
@option("--y COLUMN", "The column to fit.")
@option("--block COLUMN", "The column that numbers the blocks.")
@option(
    "--ping-pong FILE",
    "Times of messages on the network of HPL's runs: a CSV with size [B] and time_us or time_s, "
    "or an output of OSU, IMB, HPCC or NetPIPE. The law hpl then has only the nodes' rate to fit.",
)
@figure_option("fit")
@json_switch
def fit_table(
    source: tuple[str, ...],
    x: str | None,
    y: str | None,
    block: str | None,
    ping_pong: Path | None,
    figure: Path,
    as_json: bool,
) -> None:
    """Fit models to a CSV file, or scaling laws to a campaign.

    The answer is a sentence, a table and a figure. With a model's name that model is fitted; a
    model of several quantities takes their columns with commas between. Without a name all models
    are compared, which needs blocks.

    HPL's rates are in Gflop/s unless the column's name ends with another unit, times of
    messages in seconds.

    Scaling laws of efficiency over nodes are fitted to each network of an HPL campaign: your own,
    an imported or a shipped one.
    """
    from analysis.laws import models
    from analysis.statements import style
    from analysis.subjects import fit_answers

    if len(source) > 2:
        raise click.UsageError("give one model's name at most, and one file or campaign")
    model, file = "".join(source[:-1]), Path(source[-1])
    if file.is_dir() or not file.suffix:
        if model or x or y or block or ping_pong:
            remedy = "all laws are fitted to it, without a model's name or columns"
            raise FalloffError(f"{file} is a campaign: {remedy}")
        from analysis import experiment
        from analysis.evidence import verify

        folder = verify.only_folder(file) if file.is_dir() else file
        answer = fit_answers.of_campaign(*experiment.named([str(folder)]))
    elif not (x and y):
        raise FalloffError("name the columns of a CSV file by --x and --y")
    elif model:
        answer = fit_answers.of_model(model, file, x, y, ping_pong)
    elif ping_pong:
        raise FalloffError("--ping-pong is for the law hpl: name it before the file")
    elif not block:
        raise FalloffError(
            "all models are compared on blocks: "
            "say what was measured together by --block COLUMN, or name a model before the file"
        )
    elif block in (x, y):
        raise FalloffError(
            f"--block {block} is the column of --x or --y: name the one that counts repeats"
        )
    else:
        curves = [name for name in models.names() if name not in _OF_ONE_QUANTITY]
        answer = fit_answers.of_models(curves, file, x, y, block)
    if as_json:
        print(json.dumps(answer.data, indent=2, ensure_ascii=False))
        return
    print(answer.text())
    if answer.figure is not None:
        style.save(answer.figure, figure)
        print(f"\nFigure: {figure}")
