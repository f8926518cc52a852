"""What the report rests on: trace a figure, verify campaigns, archive everything."""

import sys
from collections import Counter
from datetime import datetime
from pathlib import Path

import click

from analysis import paths
from analysis.commands import names
from analysis.commands.grammar import PATH, Commands, argument, command, option, switch
from analysis.commands.report import make_report
from runners.records.record import FalloffError


@command(
    "trace",
    examples="""
        falloff evidence trace share
        falloff evidence trace share --transcript TRIAL
    """,
)
@argument("figure", type=names.FIGURE, help="A name in build/report/figures, such as share.")
@option("--transcript", metavar="TRIAL", help="Print the tools' output in this trial.")
def trace(figure, transcript) -> None:
    """Trace a figure back to its datasets and raw transcripts.

    Print the notebook that draws a figure of the report and the datasets that it reads. For each
    dataset, print its digests, the command that makes it again, and every transcript with its file,
    SHA-256, command line and exit code.
    """
    from analysis import experiment, planning
    from analysis.evidence import chain
    from analysis.statements import notebooks

    notebook, drawn = notebooks.find_figure(figure, experiment.stored_datasets())
    plans = {name: planning.plan_campaign(name, preset="full") for name in drawn.campaigns}
    folders = {name: chain.folders(name, plan.testbed["name"]) for name, plan in plans.items()}
    if transcript:
        print(
            chain.printed(
                figure, transcript, [path for places in folders.values() for path in places]
            )
        )
    else:
        chains = {name: [chain.of(folder) for folder in places] for name, places in folders.items()}
        print(chain.text(notebook, drawn, chains, plans))


@command("verify")
@argument(
    "folders",
    type=PATH,
    nargs=-1,
    metavar="[FOLDER...]",
    help="Campaigns' folders; without them, all of data/reference and data/raw.",
)
@switch("--renew", help="Then record the campaigns as they are now.")
def verify(folders, renew) -> int:
    """Check that campaigns are unchanged since they were recorded.

    Recompute the digests of the campaigns' files and rebuild their datasets from the transcripts.
    Name every file, journal line, trial and value that differs from the record. Only files are
    read, so this also works for clusters that you cannot reach. The exit code is 1 when anything
    differs.
    """
    from analysis.evidence import verify as evidence

    checks = []
    for folder in evidence.folders(folders):
        checks.append(evidence.check(folder))
        print(evidence.text(checks[-1]), flush=True)
        if renew and not checks[-1].unreadable:  # keep the old record of what cannot be read
            evidence.renew(folder)
    if renew:
        renewed = sum(not check.unreadable for check in checks)
        print(f"Recorded anew: {renewed} campaigns")
        return int(renewed < len(checks))
    differing = sum(bool(check.differences) for check in checks)
    if differing:
        count = f"{differing} of {len(checks)} campaigns"
        print(f"falloff: {count} differ from what was recorded", file=sys.stderr)
    return int(bool(differing))


@command("archive", examples="falloff evidence archive falloff.zip")
@argument("file", type=PATH, metavar="FILE.zip", help="The file to write.")
def archive(file) -> None:
    """Pack code, data and report into one file that describes itself.

    Write one zip file with this code and its commit, all campaigns with their transcripts, the
    datasets, the report and an artifact description. If there is no report, it is built from the
    stored data. An unpacked archive can verify itself.
    """
    from analysis import experiment
    from analysis.evidence import artifact

    report = paths.REPORT / "falloff.html"
    if file.exists():
        raise FalloffError(f"{file} is there already: name another file, or move it away")
    if report.exists():
        print(f"Report: the one of {datetime.fromtimestamp(report.stat().st_mtime):%Y-%m-%d %H:%M}")
    else:
        print("There is no report yet: it is built from the stored data.")
        make_report("stored", paths.REPORT)
    names, notes = artifact.write(file, experiment.stored_datasets())
    for folder, count in Counter(str(Path(name).parent) for name in names).items():
        print(f"packed: {folder}/, {count} {'file' if count == 1 else 'files'}")
    for line in notes:
        print(f"note: {line}", file=sys.stderr)
    print(f"Archive: {file} ({file.stat().st_size / 1e6:.1f} MB)")


@click.group(cls=Commands, headings={"Checks": (trace, verify, archive)})
def evidence() -> None:
    """Trace a figure, verify campaigns, archive everything."""
