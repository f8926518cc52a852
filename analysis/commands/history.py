"""Did the cluster change, over all of its sessions?"""

import json
from datetime import UTC, datetime

import click

from analysis.commands.grammar import PATH, Number, argument, command, option, switch


class Moment(click.DateTime):
    """A date, or a date and time, of UTC."""

    name = "date"

    def __init__(self) -> None:
        super().__init__(("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"))

    def convert(self, value, param, ctx) -> datetime:
        """Raises click.BadParameter unless the value is a date."""
        return super().convert(value, param, ctx).replace(tzinfo=UTC)


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
@option(
    "--margin",
    type=Number(0.01, 99.99),
    default=3,
    metavar="PERCENT",
    help="The smallest loss to detect.",
)
@option(
    "--better",
    type=click.Choice(["higher", "lower"]),
    default="higher",
    help="CSV files: whether a higher or a lower rate is better.",
)
@option(
    "--since",
    type=Moment(),
    metavar="DATE",
    help="Only changes detected since then count in the exit code.",
)
@switch("--json", "as_json", help="Print JSON instead.")
def show_history(sources, margin, better, since, as_json) -> int:
    """Did the cluster change? When, by how much, where?

    Read all sessions of campaigns (folders, or a folder of folders), ReFrame's logs, or CSV files
    with the columns time (ISO 8601) and rate, and perhaps block, node and switch. On an unchanged
    cluster at most one false alarm in a year of nights is expected (two if neighbouring nights are
    alike). The exit code is 0 for no change or faster, 1 for slower, 2 for undecided, 3 for a
    mistake.
    """
    from analysis.watch import history_changes, history_report, history_sessions

    history = history_changes.judge(history_sessions.read(sources, better), margin / 100, since)
    print(
        json.dumps(history_report.as_data(history), indent=2)
        if as_json
        else history_report.text(history)
    )
    return history_changes.EXIT_CODES[history.answer]
