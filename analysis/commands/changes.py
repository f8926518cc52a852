"""Did the cluster change, between two samples, or over all of its sessions?"""

import json
import shlex
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from analysis.commands.grammar import (
    PATH,
    Number,
    argument,
    command,
    figure_option,
    json_switch,
    option,
)
from runners.records.record import FalloffError

margin_option = partial(option, "--margin PERCENT", type=Number(0.01, 99.99), default=3)
better_option = partial(
    option, "--better", type=click.Choice(["higher", "lower"]), default="higher"
)


@command(
    "compare",
    mistake=3,
    examples="""
        falloff compare baseline tonight
        falloff compare baseline tonight --transcripts 2
        falloff compare before.csv after.csv
        falloff compare before.csv after.csv --x message_size --y seconds --block run --better lower
    """,
)
@argument("old", type=PATH, help="A campaign's folder or a CSV file.")
@argument("new", type=PATH, help="The same, measured later or elsewhere.")
@margin_option("Changes below PERCENT count as the same.")
@option("--x COLUMN", "CSV files: the column that y depends on.", default="nodes")
@option("--y COLUMN", "CSV files: the column to compare.", default="rate")
@option("--block COLUMN", "CSV files: the column that numbers the blocks.", default="block")
@better_option("Whether a higher or a lower y is better.")
@figure_option("compare")
@json_switch
@option(
    "--transcripts N",
    "Print the tools' output for row N.",
    "row",
)
def compare_samples(
    old: Path, new: Path, margin: float, figure: Path, as_json: bool, row: int | None, **how: str
) -> int:
    """Did the cluster change? Compare two campaigns or CSV files.

    Compare two campaign folders (your own runs, references, imports), or two CSV files with the
    columns nodes, rate and block. Every point and every planned contrast is faster, slower, the
    same within the margin, or undecided. The exit code is 0 if nothing is slower or undecided, 1 if
    anything is slower, 2 if undecided, 3 for a mistake.
    """
    from analysis.statements import style
    from analysis.watch import comparison, samples

    before, after = (samples.read(source, **how) for source in (old, new))
    result = comparison.compare(before, after, margin / 100)
    if row:
        if row > len(result.changes):
            raise FalloffError(f"there is no row {row}: the comparison has {len(result.changes)}")
        for name, sample in (("OLD", before), ("NEW", after)):
            for trial, printed in samples.printed(sample, result.changes[row - 1].points):
                print(f"{name} {trial}\n{printed}\n")
        return 0
    style.save(comparison.figure(result, figure.stem).figure, figure)
    if as_json:
        print(json.dumps(comparison.as_data(result), indent=2))
    else:
        transcripts = f"falloff compare {shlex.join([str(old), str(new)])} --transcripts N"
        print(f"{comparison.text(result)}\n\nFigure: {figure}")
        print(f"What the tools of row N printed: {transcripts}")
    return comparison.EXIT_CODES[result.answer]


@command(
    "history",
    mistake=3,
    examples="""
        falloff history nights
        falloff history year.csv --since 2026-03-01
        falloff history nights --json
    """,
)
@argument(
    "sources",
    type=PATH,
    nargs=-1,
    required=True,
    help="Campaign folders, folders of campaigns, CSV files, ReFrame logs.",
)
@margin_option("The smallest loss to detect.")
@better_option("CSV files: whether a higher or a lower rate is better.")
@option(
    "--since DATE",
    "Only changes detected since then count in the exit code.",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]),
)
@json_switch
def show_history(
    sources: tuple[Path, ...], margin: float, better: str, since: datetime | None, as_json: bool
) -> int:
    """Did the cluster change? When, by how much, where?

    Read all sessions of campaigns (folders, or a folder of folders), ReFrame's logs, or CSV files
    with the columns time (ISO 8601) and rate, and perhaps block, node and switch. On an unchanged
    cluster at most one false alarm in a year of nights is expected (two if neighbouring nights are
    alike). The exit code is 0 for no change or faster, 1 for slower, 2 for undecided, 3 for a
    mistake.
    """
    from analysis.watch import history_changes, history_report, history_sessions

    moment = since and since.replace(tzinfo=UTC)
    history = history_changes.judge(history_sessions.read(sources, better), margin / 100, moment)
    if as_json:
        print(json.dumps(history_report.as_data(history), indent=2))
    else:
        print(history_report.text(history))
    return history_changes.EXIT_CODES[history.answer]
