"""The command line: its commands, a module for each heading of its help.

A command is a function whose docstring is its help; the function calls `experiment` or `analysis`.
It returns an exit code, or None for 0. Slow imports stand inside the functions, so that `falloff
--help` and `falloff import --print` answer at once.
"""

import click

from analysis.commands import changes, files, measure, networks, report
from analysis.commands.grammar import Commands

HEADINGS = {
    "Measure": (measure.run, measure.status, measure.doctor),
    "Your own files": (files.import_results, files.fit_table),
    "Compare and watch": (changes.compare_samples, changes.show_history),
    "The report and its evidence": (
        report.report,
        report.explore,
        report.evidence,
        report.reproduce,
    ),
    "Other networks": (networks.profile, networks.twin, networks.predict),
}
EXIT_CODES = """
    Exit codes: 0 done; 1 refused, missing or different, with the reason; 2 the command line was not
    understood; 130 interrupted; 141 broken pipe. `compare`, `history` and `reproduce` have codes of
    their own.
"""


def show_version(context: click.Context, _option: click.Parameter, is_wanted: bool) -> None:
    """Print version and commit, and end."""
    if not is_wanted or context.resilient_parsing:
        return
    from importlib import metadata

    from runners.records.provenance import code

    commit = code()
    changed = ", changed since" if commit["git_dirty"] else ""
    where = f" (commit {commit['git_commit'][:10]}{changed})" if commit["git_commit"] else ""
    click.echo(f"falloff {metadata.version('falloff')}{where}")
    context.exit()


@click.group(
    cls=Commands,
    headings=HEADINGS,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_version,
    help="Print version and commit.",
)
def falloff() -> None:
    """Does a cluster's efficiency fall off with its interconnect?"""
