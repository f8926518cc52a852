"""What each command of the command line does; the functions' parameters are the commands' arguments."""

# What takes long to import is imported where it is used: `falloff import --print` should answer at once.
import json
import shlex
import sys
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path

from analysis import paths
from runners import outputs, runner_named
from runners.journal import Folder
from runners.record import FalloffError, Unreadable, to_json, unknown

EXPLORER = "explorer.html"  # beside the report, which links it
# Models whose equation holds for one quantity and not for any curve: HPL's rate, the cost of a byte, TCP's goodput.
_OF_ONE_QUANTITY = ("hpl", "cpu_cost", "bandwidth_delay")


def run(
    campaign: str,
    testbed: str,
    preset: str,
    repeats: int,
    fresh: bool,
    submit: bool,
    packed: Path | None,
    listed: bool,
    planned: bool,
) -> int:
    """Run a campaign, keep its dataset, and copy both to the folder `packed` if given; at the end stands its finding.

    With `submit` a job of Slurm's runs what is missing; when nothing is, the dataset is made. With `listed` nothing is run:
    all campaigns are printed; with `planned` the minutes until the campaign is decided.
    """
    import experiment
    from analysis import store
    from analysis.evidence import content
    from runners.manifest import pack

    if listed:
        print("\n".join(experiment.listed()))
        return 0
    if not campaign:
        raise FalloffError("which campaign? `falloff run --list` prints those that there are")
    plan = experiment.plan_campaign(campaign, testbed, preset, repeats)
    if planned:
        from analysis import planning

        print(planning.text(plan))
        return 0
    number = experiment.submit_campaign(plan, fresh=fresh) if submit else ""
    if number:
        print(
            f"Submitted job {number}. `falloff status {campaign}` shows how far it is; when it is over, this command"
        )
        print("submits what is still missing, or makes the dataset.")
        return 0
    folder = experiment.run_campaign(plan, fresh=fresh and not submit)
    dataset, assembled = paths.DATASETS / f"{folder.name}.nc", store.read(folder)
    store.save(assembled, dataset)
    if packed:
        pack(folder, packed)
        content.keep(assembled, packed)
    print(f"Transcripts: {folder}\nDataset: {dataset}")
    try:
        print(f"Finding: {experiment.finding(campaign, assembled)}")
    except FalloffError as reason:  # the data are kept, whatever they say
        print(f"Finding: none. {reason}")
    return 0


def status(campaign: str) -> int:
    """Print how far the campaigns in data/raw are, or those of one name, and what became of their jobs."""
    from runners.status import text

    folders = [Folder(file.parent) for file in sorted(paths.RAW.glob("*/trials.json"))]
    names = [folder.plan().name for folder in folders]
    described = [file.stem for file in paths.CAMPAIGNS.glob("*.toml")]
    if campaign and campaign not in (*names, *described):
        raise unknown("campaign", campaign, {*names, *described})
    texts = [text(folder) for folder, name in zip(folders, names) if campaign in ("", name)]
    if not texts:
        begin = f"`falloff run {campaign or 'CAMPAIGN'}` begins one"
        raise FalloffError(f"no trial of {campaign or 'any campaign'} was run here: {begin}")
    print("\n".join(texts))
    return 0


def report(
    preset: str, data: Path | None, claims: str | None, design: Path | None, out: Path
) -> int:
    """Write the report, or print the claims of a source (all: "") or the designs of a file alone."""
    if sum(part is not None for part in (data, claims, design)) > 1:
        raise FalloffError("--data, --claims and --design are three things: give one of them")
    if design is None and claims is None:
        return make_report(preset, out, data)
    import experiment
    from analysis import designs
    from analysis.claims import evaluate, ledger, tables

    if design is not None:
        print(designs.text(experiment.read_designs(design)))
        return 0
    wanted = ledger.load(claims)
    print(tables.text(wanted, evaluate.evaluate(wanted, experiment.stored_studies())))
    return 0


def make_report(preset: str, out: Path, data: Path | None = None) -> int:
    """Run every notebook with the preset, or with `data` on the campaigns in that folder, and write the report of them."""
    import reporting
    from analysis.explorer import static

    page = reporting.make(preset, out, data)
    static.write(data, out / EXPLORER)
    print(f"Report: {page} and {page.with_suffix('.pdf')}")
    return 0


def import_results(
    tool: str, files: list[Path], words: list[str], table: Path | None, printed: bool
) -> int:
    """Make a campaign of a tool's outputs and save its dataset; of HPL also its efficiency, as text and figure.

    With `printed` nothing is kept: the readings of each file are printed as JSON.
    """
    if printed:
        for file in files:
            runner, text = runner_named(tool), outputs.read(file)
            try:
                results = [to_json(result) for result in runner.results(text)]
            except Unreadable as reason:
                what = outputs.describe(text, tool) or str(reason)
                complaint = outputs.complaint(text)
                quote = f"; it says: {complaint}" if complaint else ""
                raise FalloffError(f"{file} holds no result of {tool}: {what}{quote}") from None
            print(json.dumps({"tool": tool, "file": str(file), "results": results}, indent=2))
        return 0
    from analysis import imported_hpl, importing, store, style

    rows = importing.settings_in_table(table) if table else []
    found = importing.read(tool, files, importing.settings_in_words(words), rows)
    for line in found.left_out:
        print(f"left out: {line}", file=sys.stderr)
    for line in found.notes:
        print(f"note: {line}", file=sys.stderr)
    folder = importing.keep(found, paths.RAW)
    dataset, file = store.read(folder), paths.DATASETS / f"{folder.name}.nc"
    store.save(dataset, file)
    print(importing.summary(dataset))
    figures = {}
    if tool == "hpl" or dataset.hpl_rate.notnull().any():
        study = imported_hpl.analyse(dataset)
        print(imported_hpl.text(study))
        figures = style.save_all(imported_hpl.draw(study), paths.DATASETS / folder.name)
    print(f"Transcripts: {folder}\nDataset: {file}")
    for figure in figures.values():
        print(f"Figure: {figure}")
    return 0


def explore(folder: Path | None, static: Path | None, port: int, browser: bool) -> int:
    """Serve the explorer on loopback until it is interrupted, or write it as one file that needs no server."""
    if static is not None:
        from analysis.explorer import static as page

        page.write(folder, static)
        print(f"Page: {static} ({static.stat().st_size / 1e6:.1f} MB)")
        return 0
    from analysis.explorer import server

    # An interruption is how it ends, from the moment at which the address can be read.
    with server.serve(folder, port) as served, suppress(KeyboardInterrupt):
        print(
            f"Explorer: {served.address}\nIt answers this machine alone, and only at that address. Ctrl+C ends it.",
            flush=True,
        )
        if browser:
            import webbrowser

            webbrowser.open(served.address)
        served.thread.join()
    return 0


def fit_table(model: str | None, file: Path, x: str, y: str, block: str) -> int:
    """Print a model's fit to two columns of a CSV file as JSON; without a model all of them, compared on blocks."""
    from analysis import models, tables
    from analysis.fitting import compare, fit

    if model:
        found, table = models.find(model), tables.read(file, x, y)
        tables.require_numbers(table, x, y)
        print(json.dumps(fit.fit(found, table[x], table[y]).as_json(), indent=2))
        return 0
    if not block:
        remedy = "say what was measured together by --block COLUMN, or name a model before the file"
        raise FalloffError(f"all models are compared on blocks: {remedy}")
    curves = [models.find(name) for name in models.names() if name not in _OF_ONE_QUANTITY]
    blocks = tables.blocks(tables.read(file, x, y, block), x, y, block)
    print(json.dumps(compare.compare(curves, *blocks), indent=2))
    return 0


def compare_samples(
    old: Path,
    new: Path,
    margin: float,
    x: str,
    y: str,
    block: str,
    better: str,
    figure: Path,
    as_json: bool,
    row: int | None,
) -> int:
    """Print what changed from OLD to NEW and draw it; the exit code is the answer's.

    With `row` what the tools of that statement's trials printed is printed instead.
    """
    from analysis import comparison, samples, style

    both = [samples.read(source, x, y, block, better) for source in (old, new)]
    found = comparison.compare(*both, margin / 100)
    if row:
        if row > len(found.changes):
            raise FalloffError(f"there is no row {row}: the comparison has {len(found.changes)}")
        for name, sample in zip(("OLD", "NEW"), both):
            for trial, printed in samples.printed(sample, found.changes[row - 1].points):
                print(f"{name} {trial}\n{printed}\n")
        return 0
    drawn = comparison.figure(found, figure.stem).figure
    figure.parent.mkdir(parents=True, exist_ok=True)
    style.save(drawn, figure)
    if as_json:
        print(json.dumps(comparison.as_data(found), indent=2))
    else:
        transcripts = f"falloff compare {shlex.join([str(old), str(new)])} --transcripts N"
        print(f"{comparison.text(found)}\n\nFigure: {figure}")
        print(f"What the tools of row N printed: {transcripts}")
    return comparison.EXIT_CODES[found.answer]


def make_twin(campaigns: list[str], name: str, figure: Path, fit_only: bool) -> int:
    """Fit a twin to campaigns, write it to data/testbeds, and simulate HPL on it: what was held out, and what if."""
    import experiment
    from analysis import style, twin
    from analysis.experiments import twin as prediction

    datasets = experiment.named(campaigns)
    found = twin.fit(datasets)
    for network, reason in found.refused.items():
        print(f"left out: {network}: {reason}".replace("\u00a0", " "), file=sys.stderr)
    points = None if fit_only else prediction.held_out_points(datasets, found)
    most = int(points.nodes.max()) if points is not None else 16
    file = experiment.write_twin(name, found, 2 * most, datasets)
    print(twin.text(found).replace("\u00a0", " "))
    print(f"Testbed: {file}\n`falloff run hpl_scaling --testbed {name}` simulates on it.\n")
    if points is None:
        return 0
    runs = experiment.simulate_twin(name, found, points)
    study = prediction.predict(found, points, *runs)
    print(prediction.text(study))
    figure.parent.mkdir(parents=True, exist_ok=True)
    style.save(prediction.draw(study), figure)
    print(f"\nFigure: {figure}")
    return 0


def print_rates(testbed: str) -> int:
    """Measure one node, of this machine without a testbed, and print its rates as TOML for data/testbeds."""
    import experiment
    from runners import lock, node_rates, session

    machine = experiment.read_testbed(testbed) if testbed else {"kind": "this machine"}
    is_cluster = machine["kind"] == "cluster"  # all others are of this machine
    of = f"a node of {testbed}" if is_cluster else ""
    with lock.measuring(machine, "a node's rates", lambda line: print(line, file=sys.stderr)):
        if testbed:
            shared = experiment.read_toml(paths.INTERCONNECTS, "interconnects")
            networks = machine.get("networks") or shared
            # A testbed wants a network, though nothing is sent.
            idle = dict([next(iter(networks.items()))])
            with session.testbed_module(machine).open_testbed(machine, idle) as opened:
                measured = node_rates.run_on(opened, *idle)
        else:
            measured = node_rates.run_here()
    print(node_rates.as_toml(measured, of), end="")
    return 0


def profile_program(
    argv: list[str], name: str, replayed: str, testbed: str, nodes: list[int]
) -> int:
    """Count what an MPI program sends, record it under a name, or replay a recorded one; the program's exit code."""
    if replayed:
        if argv or name:
            raise FalloffError("--replay takes a recorded program's name and runs no other")
        return _replay(replayed, testbed, nodes)
    if not argv:
        example = "`falloff profile -- mpirun -np 4 ./program`"
        raise FalloffError(f"say after `--` what to run: {example}")
    from runners import payload, recording, tools

    library, variable = (
        ("record.so", "FALLOFF_RECORD") if name else ("payload.so", "FALLOFF_PAYLOAD")
    )
    exit_code, printed = payload.run(argv, Path(tools.find(library, {})), variable)
    if not printed:
        reason = f"it ended before MPI_Finalize, or is no MPI program that {library} can see (--help says which)"
        print(f"falloff: no message of {argv[0]} was counted: {reason}", file=sys.stderr)
        return exit_code or 1
    if not name:
        print(printed)
        return exit_code
    file = recording.keep(printed, name)
    ranks, kept = recording.read(printed), ", ".join(map(str, recording.kept(name)))
    print(f"{sum(map(len, ranks))} calls of {len(ranks)} ranks are in {file}")
    print(f"`falloff profile --replay {name}` replays it; there are recordings of {kept} ranks")
    return exit_code


def _replay(name: str, testbed: str, nodes: list[int]) -> int:
    """Replay a program on a described network; print the times, and what its efficiency does."""
    import experiment
    from analysis import store
    from analysis.experiments import programs
    from runners import recording

    kept = recording.kept(name)
    wanted = sorted({*kept, *nodes})
    for count in wanted:
        recording.of(name, count)  # says now why it cannot be carried on
    plan = experiment.plan_replay(name, wanted, testbed, recording.digest(name))
    study = programs.analyse(store.read(experiment.run_campaign(plan)))
    print(programs.table(study).body, programs.finding(study).replace("**", ""), sep="\n\n")
    carried = ", ".join(str(count) for count in wanted if count not in kept)
    if carried:
        print(f"Carried on from recordings of {', '.join(map(str, kept))} ranks: {carried} nodes.")
    return 0


def doctor(testbed: str, rates: bool) -> int:
    """Say what is here, or on the nodes of a cluster, and what is missing, with the remedies; 1 if anything is.

    With `rates` one node is measured instead.
    """
    import experiment

    if rates:
        return print_rates(testbed)
    if testbed:
        from runners import doctor as nodes_doctor

        return nodes_doctor.report(experiment.read_testbed(testbed))
    from analysis import experiments
    from runners import session, tools

    plans = [experiment.plan_campaign(name) for name in experiments.all_campaigns()]
    testbeds = {plan.testbed["name"]: plan.testbed for plan in plans}
    missing = dict.fromkeys(obstacle for plan in plans for obstacle in experiment.obstacles(plan))
    for tool in sorted({tool for plan in plans for tool in session.tools_of(plan)}):
        with suppress(FalloffError):  # it is among the obstacles
            print(f"  here     {tool}: {tools.find(tool, testbeds['emulated'].get('tools', {}))}")
    for name, machine in testbeds.items():
        if not session.testbed_module(machine).unavailable(machine):
            print(
                f"  here     testbed {name}: {machine['nodes']} nodes, {machine['kind']} on this machine"
            )
    for obstacle in missing:
        print(f"  MISSING  {obstacle}")
    if missing:
        print(
            "`make setup` installs what it may. Until then reports are built from the stored reference."
        )
    else:
        print("All is here: `make report` runs the experiments on this machine.")
    print(
        "Your own cluster: `falloff doctor --testbed NAME`, then `falloff run suspects --testbed NAME`."
    )
    return int(bool(missing))


def trace(figure: str, transcript: str) -> int:
    """Print a figure's chain of evidence, or what the tools of one of its trials printed."""
    import experiment
    from analysis import experiments
    from analysis.evidence import chain

    traced = experiments.find_figure(figure)
    plans = {name: experiment.plan_campaign(name, preset="full") for name in traced.campaigns}
    folders = {name: chain.folders(name, plan.testbed["name"]) for name, plan in plans.items()}
    if transcript:
        print(chain.printed(figure, transcript, [each for own in folders.values() for each in own]))
    else:
        chains = {name: [chain.of(folder) for folder in own] for name, own in folders.items()}
        print(chain.text(traced, chains, plans))
    return 0


def verify(folders: list[Path], renew: bool) -> int:
    """Check campaigns' folders against what was recorded of them; 1 if anything differs.

    With `renew` what they are now is recorded, after what differed was said.
    """
    from analysis.evidence import verify as evidence

    checks = []
    for folder in evidence.folders(folders):
        checks.append(evidence.check(folder))
        print(evidence.text(checks[-1]), flush=True)
        if renew and checks[-1].trials:  # what cannot be read stays as it was recorded
            evidence.renew(folder)
    if renew:
        renewed = sum(check.trials > 0 for check in checks)
        print(f"Recorded anew: {renewed} campaigns")
        return int(renewed < len(checks))
    differing = sum(bool(check.differences) for check in checks)
    if differing:
        print(
            f"falloff: {differing} of {len(checks)} campaigns differ from what was recorded",
            file=sys.stderr,
        )
    return int(bool(differing))


def reproduce(archive: Path, minutes: float, fresh: bool) -> int:
    """Run an archive's findings again and print a verdict on each; the exit code is `reproducing.exit_code`'s."""
    import experiment
    from analysis import reproducing, rerunning

    run = partial(experiment.run_within, fresh=fresh)
    verdicts, file = rerunning.reproduce(archive, minutes, experiment.runnable, run)
    print(f"\n{reproducing.text(verdicts)}\nVerdicts: {file}")
    return reproducing.exit_code(verdicts)


def archive(file: Path) -> int:
    """Write code, data and report into one file; a report that was not made yet is built from the stored data."""
    from analysis.evidence import archive as archiving

    report = paths.REPORT / "falloff.html"
    if file.exists():
        raise FalloffError(f"{file} is there already: name another file, or move it away")
    if report.exists():
        print(f"Report: the one of {datetime.fromtimestamp(report.stat().st_mtime):%Y-%m-%d %H:%M}")
    else:
        print("There is no report yet: it is built from the stored data.")
        make_report("stored", paths.REPORT)
    for line in archiving.write(file):
        print(f"left out: {line}", file=sys.stderr)
    print(f"Archive: {file} ({file.stat().st_size / 1e6:.1f} MB)")
    return 0
