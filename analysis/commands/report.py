"""The report, the explorer, and whether the statements come out again."""

import sys
from contextlib import suppress
from pathlib import Path

import click

from analysis import paths
from analysis.commands import names
from analysis.commands.grammar import PATH, Number, argument, command, option, switch
from runners.records.record import FalloffError

EXPLORER = "explorer.html"  # beside the report, which links it


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
    type=click.Choice(["quick", "full", "stored"]),
    default="quick",
    help="How much to run; stored runs nothing.",
)
@option(
    "--data",
    type=PATH,
    metavar="FOLDER",
    help="Run nothing; report your own imports and campaigns in FOLDER.",
)
@option(
    "--claims",
    type=names.SOURCE,
    is_flag=False,
    flag_value="",
    metavar="[SOURCE]",
    help="Print only the claims, of all sources or of SOURCE.",
)
@option(
    "--design",
    type=PATH,
    metavar="FILE",
    help="Print only the network designs in FILE; see data/designs/nemo.toml.",
)
@option(
    "--out",
    type=PATH,
    default=paths.REPORT,
    show_default="build/report, with --data build/own_report",
    metavar="FOLDER",
    help="The folder for the report.",
)
def report(preset, data, claims, design, out) -> int:
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
    from analysis import experiment
    from analysis.descriptions import ledger, switch_designs
    from analysis.report.claims import evaluate, tables
    from analysis.subjects import designs

    if design is not None:
        print(designs.text(switch_designs.read(design)))
        return 0
    wanted = ledger.load(claims)
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
        written = f"{page} and {page.with_suffix('.pdf')}"
    else:
        out = execution.OWN_REPORT if out.resolve() == paths.REPORT.resolve() else out
        page, *lines = execution.make_own(data, out)
        failed, notes = [], [f"note: {line}" for group in lines for line in group]
        written = f"{page}, {page.with_suffix('.pdf')} and, to go on writing with, {page.with_suffix('.md')}"
    static.write(data, out / EXPLORER)
    for note in notes:
        print(note, file=sys.stderr)
    print(f"Report: {written}")
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
@option("--static", type=PATH, metavar="FILE", help="Write one HTML file instead.")
@option(
    "--port",
    type=click.IntRange(0, 65535),
    show_default="8850, or any free one while that is taken",
    metavar="N",
    help="The port on loopback; 0 is any free one.",
)
@switch("--no-browser", help="Only print the address.")
def explore(folder, static, port, no_browser) -> None:
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
        end = "It answers this machine alone, and only at that address, which a bookmark can keep. Ctrl+C ends it."
        print(f"Explorer: {served.address}\n{end}", flush=True)
        with server.redirecting(served.address) as page:
            if not no_browser:
                import webbrowser

                webbrowser.open(page)
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
    type=names.REFERENCE,
    help="An archive, a folder of campaigns, or a reference's name.",
)
@option(
    "--minutes",
    type=Number(0.01, 10**6),
    default=15,
    metavar="M",
    help="The time limit.",
)
@switch("--fresh", help="Repeat what an earlier call already ran.")
def reproduce(archive, minutes, fresh) -> int:
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
