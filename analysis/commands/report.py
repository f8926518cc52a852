"""The report, the explorer, what both rest on, and whether the statements come out again."""

import sys
from collections import Counter
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import click

from analysis import paths
from analysis.commands.grammar import (
    FIGURE,
    PATH,
    REFERENCE,
    SOURCE,
    Commands,
    Number,
    argument,
    command,
    option,
)
from runners.records.record import FalloffError


@command(
    "report",
    examples="""
        falloff report --preset stored
        falloff report --data mine --out report
        falloff report --claims grid5000
        falloff report --design data/designs/nemo.toml
    """,
)
@option(
    "--preset",
    "How much to run; stored runs nothing.",
    type=click.Choice(["quick", "full", "stored"]),
    default="quick",
)
@option(
    "--data FOLDER",
    "Run nothing; report your own imports and campaigns in FOLDER.",
)
@option(
    "--claims [SOURCE]",
    "Print only the claims, of all sources or of SOURCE.",
    type=SOURCE,
    is_flag=False,
    flag_value="",
)
@option(
    "--design FILE",
    "Print only the network designs in FILE; see data/designs/nemo.toml.",
)
@option(
    "--out FOLDER",
    "The folder for the report.",
    default=paths.REPORT,
    show_default="build/report, with --data build/own_report",
)
def report(
    preset: str, data: Path | None, claims: str | None, design: Path | None, out: Path
) -> int:
    """Run the experiments and write the report.

    With --data, the report is that of your own imports and campaigns; title, authors and facts
    about the cluster are those of report.toml in FOLDER. Or print one part of the report: the
    sources' claims with the verdict of the stored evidence on each, or the performance and cost of
    the network designs in a file.
    """
    if sum(part is not None for part in (data, claims, design)) > 1:
        raise FalloffError("--data, --claims and --design are three things: give one of them")
    if design is None and claims is None:
        return make_report(preset, data, out)
    if design is not None:
        from analysis.descriptions import switch_designs
        from analysis.subjects import designs

        print(designs.text(switch_designs.read(design)))
        return 0
    from analysis import experiment
    from analysis.descriptions import ledger
    from analysis.report.claims import evaluate, tables

    wanted = ledger.load(claims or "")
    stated = evaluate.stated_on(wanted, experiment.stored_datasets())
    print(tables.text(wanted, evaluate.evaluate(wanted, stated)))
    return 0


def make_report(preset: str, data: Path | None, out: Path) -> int:
    """Run every notebook with the preset and write the report, or with `data` that of the imports
    and campaigns in this folder, which never goes where the project's own is. Returns 1 if a run of
    today gave no result, else 0."""
    from analysis.explorer import static
    from analysis.report import execution

    if data is None:
        page, failed = execution.make(preset, out)
        notes = [f"falloff: today's run failed: {line}" for line in failed]
        also = f" and {page.with_suffix('.pdf')}"
    else:
        out = execution.OWN_REPORT if out.resolve() == paths.REPORT.resolve() else out
        page, own_files, not_shown = execution.make_own(data, out)
        failed, notes = [], [f"note: {line}" for line in own_files + not_shown]
        also = f", {page.with_suffix('.pdf')} and, to go on writing with, {page.with_suffix('.md')}"
    static.write(data, out / "explorer.html")  # which the report links
    for note in notes:
        print(note, file=sys.stderr)
    print(f"Report: {page}{also}")
    return int(bool(failed))


@command(
    "explore",
    examples="""
        falloff explore
        falloff explore data/raw
        falloff explore --static page.html
    """,
)
@argument(
    "folder",
    type=PATH,
    required=False,
    help="A folder of datasets or campaigns; without it, all that is here.",
)
@option(
    "--static FILE",
    "Write one HTML file instead.",
)
@option(
    "--port N",
    "The port on loopback; 0 is any free one.",
    type=click.IntRange(0, 65535),
    show_default="8850, or any free one while that is taken",
)
@option("--no-browser", "Only print the address.")
def explore(folder: Path | None, static: Path | None, port: int | None, no_browser: bool) -> None:
    """Explore datasets in the browser.

    Select, filter, click a point for its transcript.
    """
    if static is not None:
        from analysis.explorer import static as page

        page.write(folder, static)
        print(f"Page: {static} ({static.stat().st_size / 1e6:.1f} MB)")
        return
    from analysis.explorer import server

    # Ctrl+C is the normal end, from the moment the address is printed.
    with server.serve(folder, port) as served, suppress(KeyboardInterrupt):
        end = "It answers this machine alone, and only at that address"
        print(
            f"Explorer: {served.address}\n{end}, which a bookmark can keep. Ctrl+C ends it.",
            flush=True,
        )
        with server.redirecting(served.address) as link:
            if not no_browser:
                import webbrowser

                webbrowser.open(link)
            served.thread.join()


@command(
    "reproduce",
    mistake=3,
    examples="""
        falloff reproduce data/reference
        falloff reproduce hpl_scaling-fortinet_model
        falloff reproduce colleague.zip --minutes 60
    """,
)
@argument(
    "archive",
    type=REFERENCE,
    help="An archive, a folder of campaigns, or a reference's name.",
)
@option("--minutes M", "The time limit.", type=Number(0.01, 10**6), default=15)
@option("--fresh", "Repeat what an earlier call already ran.")
def reproduce(archive: str, minutes: float, fresh: bool) -> int:
    """Run an archive again, and say which statements are reproduced.

    Run as many of the archive's campaigns as the time allows. Each statement is then reproduced,
    not reproduced, too short to tell, or cannot run here. Only campaigns and testbeds that are
    described here are run. Exit code: 0 all reproduced, 1 at least one not reproduced, 2 none
    failed but some could not be judged, 3 nothing was judged because of a mistake.
    """
    from analysis.commands.progress import shown
    from analysis.report import rerunning
    from analysis.watch import reproducing

    with shown() as listen:
        verdicts, file = rerunning.reproduce(Path(archive), minutes, fresh, listen)
    print(f"\n{reproducing.text(verdicts)}\nVerdicts: {file}")
    return reproducing.exit_code(verdicts)


@command(
    "trace",
    examples="""
        falloff evidence trace share
        falloff evidence trace share --transcript TRIAL
    """,
)
@argument("figure", type=FIGURE, help="A name in build/report/figures, such as share.")
@option("--transcript TRIAL", "Print the tools' output in this trial.")
def trace(figure: str, transcript: str | None) -> None:
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
@option("--renew", "Then record the campaigns as they are now.")
def verify(folders: tuple[Path, ...], renew: bool) -> int:
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
def archive(file: Path) -> None:
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
        make_report("stored", None, paths.REPORT)
    names, notes = artifact.write(file, experiment.stored_datasets())
    for folder, count in Counter(str(Path(name).parent) for name in names).items():
        print(f"packed: {folder}/, {count} {'file' if count == 1 else 'files'}")
    for line in notes:
        print(f"note: {line}", file=sys.stderr)
    print(f"Archive: {file} ({file.stat().st_size / 1e6:.1f} MB)")


@click.group(cls=Commands, headings={"Checks": (trace, verify, archive)})
def evidence() -> None:
    """Trace a figure, verify campaigns, archive everything."""
