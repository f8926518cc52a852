"""Did the cluster change?"""

import json
import shlex

import click

from analysis.commands.grammar import (
    COUNT,
    PATH,
    Number,
    argument,
    command,
    figure_option,
    option,
    switch,
)
from runners.records.record import FalloffError


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
@option(
    "--margin",
    type=Number(0.01, 99.99),
    default=3,
    metavar="PERCENT",
    help="Changes below PERCENT count as the same.",
)
@option("--x", default="nodes", metavar="COLUMN", help="CSV files: the column that y depends on.")
@option("--y", default="rate", metavar="COLUMN", help="CSV files: the column to compare.")
@option(
    "--block",
    default="block",
    metavar="COLUMN",
    help="CSV files: the column that numbers the blocks.",
)
@option(
    "--better",
    type=click.Choice(["higher", "lower"]),
    default="higher",
    help="Whether a higher or a lower y is better.",
)
@figure_option("compare")
@switch("--json", "as_json", help="Print JSON instead.")
@option("--transcripts", "row", type=COUNT, metavar="N", help="Print the tools' output for row N.")
def compare_samples(old, new, margin, x, y, block, better, figure, as_json, row) -> int:
    """Did the cluster change? Compare two campaigns or CSV files.

    Compare two campaign folders (your own runs, references, imports), or two CSV files with the
    columns nodes, rate and block. Every point and every planned contrast is faster, slower, the
    same within the margin, or undecided. The exit code is 0 if nothing is slower or undecided, 1 if
    anything is slower, 2 if undecided, 3 for a mistake.
    """
    from analysis.statements import style
    from analysis.watch import comparison, samples

    both = [samples.read(source, x, y, block, better) for source in (old, new)]
    result = comparison.compare(*both, margin / 100)
    if row:
        if row > len(result.changes):
            raise FalloffError(f"there is no row {row}: the comparison has {len(result.changes)}")
        for name, sample in zip(("OLD", "NEW"), both):
            for trial, printed in samples.printed(sample, result.changes[row - 1].points):
                print(f"{name} {trial}\n{printed}\n")
        return 0
    drawn = comparison.figure(result, figure.stem).figure
    figure.parent.mkdir(parents=True, exist_ok=True)
    style.save(drawn, figure)
    if as_json:
        print(json.dumps(comparison.as_data(result), indent=2))
    else:
        transcripts = f"falloff compare {shlex.join([str(old), str(new)])} --transcripts N"
        print(f"{comparison.text(result)}\n\nFigure: {figure}")
        print(f"What the tools of row N printed: {transcripts}")
    return comparison.EXIT_CODES[result.answer]
