"""The commands of `falloff`: their arguments, what they do, and their help (the docstrings)."""

# Slow imports stand inside the functions that use them, so that `falloff import --print` answers at once.
import json
import shlex
import sys
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path

from analysis import paths
from runners import executables, outputs
from runners.journal import Folder
from runners.record import FalloffError, Unreadable, unknown
from runners.tools import names as runner_names
from runners.tools import tool_named

PRESETS = ("quick", "full", "stored")
TRIED = (
    "hpl_scaling",
    "hpl_paper",
)  # one paced and one simulated: doctor runs a tiny trial of each
EXPLORER = "explorer.html"  # beside the report, which links it
# Models whose equation holds for one quantity and not for any curve: HPL's rate, the cost of a byte, TCP's goodput.
_OF_ONE_QUANTITY = ("hpl", "hpl_messages", "cpu_cost", "bandwidth_delay")

# The functions by command name, such as `evidence trace`. Their parameters are the arguments declared above them.
COMMANDS: dict[str, Callable[..., int | None]] = {}


def command(name: str) -> Callable:
    """Register a function as the command `name`; it returns an exit code, or None for 0."""

    def register(do: Callable[..., int | None]) -> Callable[..., int | None]:
        COMMANDS[name] = do
        return do

    return register


def argument(name: str, help: str | None = None, **how) -> Callable:
    """Declare an argument of a command; `how` holds further keywords of `add_argument`."""

    def declare(do: Callable) -> Callable:
        do.arguments = [(name, {"help": help, **how}), *getattr(do, "arguments", [])]
        return do

    return declare


switch = partial(argument, action="store_true")


def within(kind: type, least: float, most: float) -> Callable[[str], float]:
    """A function that reads a number from `least` to `most`; that function raises
    ArgumentTypeError."""

    def read(text: str) -> float:
        with suppress(ValueError):
            if least <= kind(text) <= most:
                return kind(text)
        what = "whole number" if kind is int else "number"
        raise ArgumentTypeError(f"{text!r} is not a {what} from {least} to {most}")

    return read


positive, port = within(int, 1, 10**6), within(int, 0, 65535)
percentage, above_zero = within(float, 0.01, 99.99), within(float, 0.01, 10**6)
FOLDER, FILE, SVG = ({"type": Path, "metavar": name} for name in ("FOLDER", "FILE", "FILE.svg"))
SETTING = {"dest": "words", "metavar": "NAME=VALUE"}


@command("run")
@argument("campaign", "a name in data/campaigns", nargs="?", default="")
@switch("--list", "list the campaigns", dest="listed")
@switch(
    "--plan",
    "run nothing; print when each look is due and how likely it is to decide",
    dest="planned",
)
@argument("--testbed", "a name in data/testbeds (default: the campaign's own)", default="")
@argument("--preset", "the campaign's stopping rule: quick or full (default)", default="full")
@argument("--repeats", "run exactly K blocks instead", type=positive, default=0, metavar="K")
@switch("--fresh", "start over; earlier trials are moved aside")
@switch("--submit", "run the missing trials as a Slurm job")
@argument(
    "--pack", "also write a compressed copy of the campaign to FOLDER", dest="packed", **FOLDER
)
def run(campaign, listed, planned, testbed, preset, repeats, fresh, submit, packed) -> None:
    """Run a campaign, or the trials that it still lacks.

    Keep the transcripts and the dataset, and print the experiment's finding.
    """
    import experiment
    from analysis import store
    from analysis.evidence import content
    from runners.manifest import pack

    if listed:
        print("\n".join(experiment.listed()))
        return
    if not campaign:
        raise FalloffError("which campaign? `falloff run --list` prints those that there are")
    plan = experiment.plan_campaign(campaign, testbed, preset, repeats)
    if planned:
        from analysis import planning

        print(planning.text(plan))
        return
    number = experiment.submit_campaign(plan, fresh=fresh) if submit else ""
    if number:
        print(
            f"Submitted job {number}. `falloff status {campaign}` shows how far it is; when it is over,"
        )
        print("this command submits what is still missing, or makes the dataset.")
        return
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


@command("status")
@argument(
    "campaign", "a name in data/campaigns (default: all that were run)", nargs="?", default=""
)
def status(campaign) -> None:
    """Show which trials of each campaign are done, and the state of its job."""
    from runners.status import text

    folders = [Folder(file.parent) for file in sorted(paths.RAW.glob("*/trials.json"))]
    names, texts = set(), []
    for folder in folders:
        try:
            name = folder.plan().name
            names.add(name)
            if campaign in ("", name):
                texts.append(text(folder))
        except FalloffError as error:  # the other campaigns are still shown
            texts.append(f"{folder.path.name}: {error}")
    described = [file.stem for file in executables.described(paths.CAMPAIGNS, "*.toml")]
    if campaign and campaign not in (*names, *described):
        raise unknown("campaign", campaign, {*names, *described})
    if not texts:
        begin = f"`falloff run {campaign or 'CAMPAIGN'}` begins one"
        raise FalloffError(f"no trial of {campaign or 'any campaign'} was run here: {begin}")
    print("\n".join(texts))


@command("report")
@argument("--preset", "default: quick", choices=PRESETS, default="quick")
@argument("--data", "run nothing; report only the campaigns in FOLDER", **FOLDER)
@argument(
    "--claims",
    "print only the claims, of all sources or of SOURCE",
    nargs="?",
    const="",
    metavar="SOURCE",
)
@argument("--design", "print only the network designs in FILE; see data/designs/nemo.toml", **FILE)
@argument("--out", "default: build/report", **FOLDER, default=paths.REPORT)
def report(preset, data, claims, design, out) -> int:
    """Run the experiments and write the report.

    Or print one part of it: the sources' claims with the verdict of the stored evidence on each, or
    the performance and cost of the network designs in a file.
    """
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
    """Run every notebook with the preset, or on the campaigns in the folder `data`, and write the
    report. Returns 1 if a run of today gave no result, else 0."""
    import reporting
    from analysis.explorer import static

    page, failed = reporting.make(preset, out, data)
    static.write(data, out / EXPLORER)
    print(f"Report: {page} and {page.with_suffix('.pdf')}")
    for line in failed:
        print(f"falloff: today's run failed: {line}", file=sys.stderr)
    return int(bool(failed))


@command("doctor")
@argument("--testbed", "check the nodes of this cluster in data/testbeds", default="")
@switch("--rates", "measure one node's rates; print TOML for a simulated testbed")
def doctor(testbed, rates) -> int:
    """Check what is installed and what is missing, with the remedy."""
    import experiment

    if rates:
        print_rates(testbed)
        return 0
    if testbed:
        from runners import doctor as nodes_doctor

        return nodes_doctor.report(experiment.read_testbed(testbed))
    from analysis import experiments
    from runners import lock, session

    plans = [experiment.plan_campaign(name) for name in experiments.all_campaigns()]
    testbeds = {plan.testbed["name"]: plan.testbed for plan in plans}
    missing = dict.fromkeys(obstacle for plan in plans for obstacle in experiment.obstacles(plan))
    for tool in sorted({tool for plan in plans for tool in session.tools_of(plan)}):
        with suppress(FalloffError):  # it is among the obstacles
            print(
                f"  here     {tool}: {executables.find(tool, testbeds['emulated'].get('tools', {}))}"
            )
    for name, machine in testbeds.items():
        if not session.testbed_module(machine).unavailable(machine):
            what = f"{machine['nodes']} nodes, {machine['kind']} on this machine"
            print(f"  here     testbed {name}: {what}")
    for plan in plans:
        if plan.name in TRIED and not experiment.obstacles(plan):
            what = f"a trial of {plan.name} on testbed {plan.testbed['name']}"
            try:
                reason = experiment.tried(plan)
            except lock.Taken as other:
                print(f"  unknown  {what}: {other}")
                continue
            except FalloffError as error:
                reason = str(error)
            if reason:
                missing[f"{what} gives nothing: {reason}"] = None
            else:
                print(f"  here     {what} gives a result")
    for obstacle in missing:
        print(f"  MISSING  {obstacle}")
    remedy = (
        "`make setup` installs what it may. Until then reports are built from the stored reference."
    )
    print(remedy if missing else "All is here: `make report` runs the experiments on this machine.")
    own = "`falloff doctor --testbed NAME`, then `falloff run suspects --testbed NAME`"
    print(f"Your own cluster: {own}.")
    return int(bool(missing))


def print_rates(testbed: str) -> None:
    """Measure the rates of one node and print them as TOML for data/testbeds. Without a testbed the
    node is this machine."""
    import experiment
    from runners import lock, session
    from runners.tools import node_rates

    machine = experiment.read_testbed(testbed) if testbed else {"kind": "this machine"}
    is_cluster = machine["kind"] == "cluster"  # all other testbeds run on this machine
    of = f"a node of {testbed}" if is_cluster else ""
    with lock.measuring(machine, "a node's rates", lambda line: print(line, file=sys.stderr)):
        if testbed:
            shared = experiment.read_toml(paths.INTERCONNECTS, "interconnects")
            networks = machine.get("networks") or shared
            # Opening a testbed takes a network, although nothing is sent.
            idle = dict([next(iter(networks.items()))])
            with session.testbed_module(machine).open_testbed(machine, idle) as opened:
                measured = node_rates.run_on(opened, *idle)
        else:
            measured = node_rates.run_here()
    print(node_rates.as_toml(measured, of), end="")


@command("import")
@argument("tool", ", ".join(runner_names()))
@argument("files", "an output file, or a folder of output files", nargs="+", **FILE)
@switch("--print", "only print the readings of each file as JSON", dest="printed")
@argument(
    "--set", "a setting of all files, such as nodes=4", action="append", default=[], **SETTING
)
@argument(
    "--map",
    "settings by file: a CSV with the column `file` (names or patterns) and one column a setting",
    dest="table",
    **FILE,
)
def import_results(tool, files, printed, words, table) -> None:
    """Import tool outputs that you already have as a campaign, and plot HPL's efficiency.

    The outputs of one tool become a campaign of measured evidence. The tools are hpl, hpcc, iperf3,
    iperf2, netperf, ping, osu (latency and bandwidth) and imb (PingPong). Use --set or --map for
    settings that the outputs do not contain: interconnect, nodes or ranks_per_node, rpeak (one
    node's theoretical peak in flop/s) and more. Settings that you do not give stay unknown.

    A file that cannot be read is refused for one of five reasons: cut (a part is missing),
    contradictory (numbers disagree, or outputs are mixed), foreign (output of another program),
    unsupported (a format or test that Falloff does not read), failed (the output itself says so).
    """
    if printed:
        for file in files:
            runner, text = tool_named(tool), outputs.read(file)
            try:
                results = [asdict(result) for result in runner.results(text)]
            except Unreadable as reason:
                told = outputs.refusal(runner.name, text, reason).told()
                complaint = outputs.complaint(text)
                quote = f"; it says: {complaint}" if complaint else ""
                raise FalloffError(f"{file} holds no result of {tool}: {told}{quote}") from None
            print(json.dumps({"tool": tool, "file": str(file), "results": results}, indent=2))
        return
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


@command("profile")
@argument("argv", "after `--`: the command line to run", nargs="*", metavar="PROGRAM")
@argument("--keep", "record the MPI calls under NAME", default="", dest="name", metavar="NAME")
@argument("--replay", "replay the recording NAME", default="", dest="replayed", metavar="NAME")
@argument("--testbed", "the simulated testbed for --replay (default: smith)", default="smith")
@argument(
    "--nodes",
    "extrapolate the recording to N nodes",
    type=positive,
    nargs="+",
    default=[],
    metavar="N",
)
def profile_program(argv, name, replayed, testbed, nodes) -> int:
    """Run an MPI program and count its messages, or record it and replay it on another network.

    Messages are counted by call and size: falloff profile -- mpirun -np 4 ./program. The program
    needs no change, but it must use the MPI that `make setup` found and must reach MPI_Finalize.
    With Open MPI's mpirun, ranks on other hosts are counted too; under srun and MPICH's mpiexec
    they inherit LD_PRELOAD and FALLOFF_PAYLOAD from here. Rank 0 writes below the working folder,
    which all hosts must share. Not counted: persistent and one-sided communication, non-blocking
    collectives, Fortran programs under Open MPI.

    --keep records the calls in their order instead, including those of Fortran programs. --replay
    lets SimGrid replay them on a described network, also on more nodes.
    """
    if replayed:
        if argv or name:
            raise FalloffError("--replay takes a recorded program's name and runs no other")
        _replay(replayed, testbed, nodes)
        return 0
    if not argv:
        example = "`falloff profile -- mpirun -np 4 ./program`"
        raise FalloffError(f"say after `--` what to run: {example}")
    from runners import payload, recording

    library = "record.so" if name else "payload.so"
    variable = "FALLOFF_RECORD" if name else "FALLOFF_PAYLOAD"
    exit_code, printed = payload.run(argv, Path(executables.find(library, {})), variable)
    if name and exit_code:
        failed = f"{argv[0]} ended with exit code {exit_code}"
        print(f"falloff: {failed}: a program that fails is not recorded", file=sys.stderr)
        return exit_code
    if not printed:
        nothing = f"no {'call' if name else 'message'} of {argv[0]} was"
        reason = f"it ended before MPI_Finalize, or is no MPI program that {library} can see (--help says which)"
        print(f"falloff: {nothing} {'recorded' if name else 'counted'}: {reason}", file=sys.stderr)
        return exit_code or 1
    if not name:
        print(printed)
        return exit_code
    file = recording.keep(printed, name)
    ranks, kept = recording.read(printed), ", ".join(map(str, recording.kept(name)))
    print(f"{sum(map(len, ranks))} calls of {len(ranks)} ranks are in {file}")
    if recording.is_monitored(printed):
        print(
            "Their bytes from each rank to each other agree with Open MPI's own monitoring within 1 %"
        )
    else:
        print("Their bytes are not compared: Open MPI's monitoring has left no counts of all ranks")
    print(f"`falloff profile --replay {name}` replays it; there are recordings of {kept} ranks")
    return 0


def _replay(name: str, testbed: str, nodes: list[int]) -> None:
    """Replay a program on a described network; print the times and the efficiency."""
    import experiment
    from analysis import store
    from analysis.experiments import programs
    from runners import recording

    kept = recording.kept(name)
    wanted = sorted({*kept, *nodes})
    for count in wanted:
        recording.of(name, count)  # raises now if the recording cannot be extrapolated
    plan = experiment.plan_replay(name, wanted, testbed, recording.digest(name))
    study = programs.analyse(store.read(experiment.run_campaign(plan)))
    print(programs.table(study).body, programs.finding(study).replace("**", ""), sep="\n\n")
    carried = ", ".join(str(count) for count in wanted if count not in kept)
    if carried:
        print(
            f"Extrapolated from recordings of {', '.join(map(str, kept))} ranks: {carried} nodes."
        )


@command("fit")
@argument("model", "a name in analysis/models", nargs="?", metavar="MODEL")
@argument("file", "or a campaign's folder", type=Path, metavar="FILE.csv")
@argument("--x", "what y depends on; several with commas between", default="", metavar="COLUMN")
@argument("--y", "what is fitted", default="", metavar="COLUMN")
@argument("--block", "which rows were measured together", default="", metavar="COLUMN")
def fit_table(model, file, x, y, block) -> None:
    """Fit one model or all to columns of a CSV file, or scaling laws to a campaign; print JSON.

    `falloff fit FOLDER` fits scaling laws of efficiency over nodes to each network of an HPL
    campaign: your own, an imported or a shipped one.

    `falloff fit universal_scalability FILE.csv --x nodes --y rate` fits one model. Without a
    model's name all models are compared, which needs blocks: `falloff fit FILE.csv --x nodes --y
    rate --block run`. A model of several quantities takes their columns with commas between:
    `falloff fit hpl FILE.csv --x N,NB,P,Q --y rate`.
    """
    from analysis import models, tables
    from analysis.fitting import compare, fit

    if file.is_dir() or not file.suffix:
        if model or x or y or block:
            raise FalloffError(
                f"{file} is a campaign: all laws are fitted to it, without a model's name or columns"
            )
        print(json.dumps(_laws(file), indent=2, ensure_ascii=False))
        return
    if not (x and y):
        raise FalloffError("name the columns of a CSV file by --x and --y")
    if model:
        quantities = x.split(",")
        found, table = models.find(model), tables.read(file, *quantities, y)
        tables.require_numbers(table, *quantities, y)
        columns = table[quantities[0]] if len(quantities) == 1 else table[quantities].T
        print(json.dumps(fit.fit(found, columns, table[y]).as_json(), indent=2))
        return
    if not block:
        remedy = "say what was measured together by --block COLUMN, or name a model before the file"
        raise FalloffError(f"all models are compared on blocks: {remedy}")
    curves = [models.find(name) for name in models.names() if name not in _OF_ONE_QUANTITY]
    if block in (x, y):
        raise FalloffError(
            f"--block {block} is the column of --x or --y: name the one that counts repeats"
        )
    blocks = tables.blocks(tables.read(file, x, y, block), x, y, block)
    print(json.dumps(compare.compare(curves, *blocks), indent=2))


def _laws(campaign: Path) -> dict[str, object]:
    """What `falloff fit` prints for a campaign: the finding, the weight and verdict of each law,
    the parameters, and the errors of a fit to fewer nodes."""
    import experiment
    from analysis.experiments import hpl_laws

    study = hpl_laws.analyse(*experiment.named([str(campaign)]))
    tables = {
        "laws": study.laws.table(),
        "parameters": study.laws.parameters(),
        "held_out": study.predicted.reset_index(),
    }
    rows = {name: json.loads(table.to_json(orient="records")) for name, table in tables.items()}
    return {"finding": hpl_laws.finding(study).replace("\u00a0", " "), **rows}


@command("compare")
@argument("old", "a campaign's folder or a CSV file", type=Path)
@argument("new", type=Path)
@argument("--margin", "default: 3", type=percentage, default=3.0, metavar="PERCENT")
@argument("--x", "of CSV files (default: nodes)", default="nodes", metavar="COLUMN")
@argument("--y", "of CSV files (default: rate)", default="rate", metavar="COLUMN")
@argument("--block", "of CSV files (default: block)", default="block", metavar="COLUMN")
@argument("--better", "which y (default: higher)", choices=("higher", "lower"), default="higher")
@argument("--figure", "default: build/compare.svg", **SVG, default=paths.BUILD / "compare.svg")
@switch("--json", "print JSON instead", dest="as_json")
@argument(
    "--transcripts", "print the tools' output for row N", dest="row", type=positive, metavar="N"
)
def compare_samples(old, new, margin, x, y, block, better, figure, as_json, row) -> int:
    """Did the cluster change? Compare every point and contrast of two campaigns or CSV files.

    Compare two campaign folders (your own runs, references, imports), or two CSV files with the
    columns nodes, rate and block. Every point and every planned contrast is faster, slower, the
    same within the margin, or undecided. The exit code is 0 if nothing is slower or undecided, 1 if
    anything is slower, 2 if undecided, 3 for a mistake.
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


@command("twin")
@argument("campaigns", "folders, or names in data/reference", nargs="+", metavar="CAMPAIGN")
@argument("--name", "the twin's name: writes data/testbeds/NAME.toml", required=True)
@switch("--fit-only", "write the description and simulate nothing")
@argument("--figure", "default: build/twin.svg", **SVG, default=paths.BUILD / "twin.svg")
def make_twin(campaigns, name, fit_only, figure) -> None:
    """Fit a simulated twin to your cluster's micro-benchmarks, and ask what if.

    The fit takes latency and bandwidth by message size, and a node's compute rate, from campaigns
    of one cluster. It writes them as a testbed for SimGrid. HPL is then predicted where it was run
    (the fit does not read those runs) and on networks that you do not have.
    """
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
        return
    runs = experiment.simulate_twin(name, found, points)
    study = prediction.predict(found, points, *runs)
    print(prediction.text(study))
    figure.parent.mkdir(parents=True, exist_ok=True)
    style.save(prediction.figures(study)["twin"].figure, figure)
    print(f"\nFigure: {figure}")


@command("explore")
@argument("folder", "a folder of datasets or campaigns (default: all here)", nargs="?", type=Path)
@argument("--static", "write one HTML file instead", **FILE)
@argument("--port", "port on loopback (default: any free one)", type=port, default=0, metavar="N")
@argument("--no-browser", "only print the address", dest="browser", action="store_false")
def explore(folder, static, port, browser) -> None:
    """Explore datasets in the browser: select, filter, click, ask what if."""
    if static is not None:
        from analysis.explorer import static as page

        page.write(folder, static)
        print(f"Page: {static} ({static.stat().st_size / 1e6:.1f} MB)")
        return
    from analysis.explorer import server

    # Ctrl+C is the normal end, from the moment the address is printed.
    with server.serve(folder, port) as served, suppress(KeyboardInterrupt):
        end = "It answers this machine alone, and only at that address. Ctrl+C ends it."
        print(f"Explorer: {served.address}\n{end}", flush=True)
        with server.redirecting(served.address) as page:
            if browser:
                import webbrowser

                webbrowser.open(page)
            served.thread.join()


@command("evidence trace")
@argument("figure", "a name in build/report/figures, such as share")
@argument("--transcript", "print the tools' output in this trial", default="", metavar="TRIAL")
def trace(figure, transcript) -> None:
    """Trace a figure back to its datasets and raw transcripts.

    Print the function that draws a figure of the report and the datasets that it reads. For each
    dataset, print its digests, the command that makes it again, and every transcript with its file,
    SHA-256, command line and exit code.
    """
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


@command("evidence verify")
@argument("folders", "default: all of data/reference and data/raw", nargs="*", **FOLDER)
@switch("--renew", "then record the campaigns as they are now")
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


@command("evidence archive")
@argument("file", type=Path, metavar="FILE.zip")
def archive(file) -> None:
    """Pack code, data and report into one file that describes itself.

    Write one zip file with this code and its commit, all campaigns with their transcripts, the
    datasets, the report and an artifact description. If there is no report, it is built from the
    stored data. An unpacked archive can verify itself.
    """
    from analysis.evidence import archive as archiving

    report = paths.REPORT / "falloff.html"
    if file.exists():
        raise FalloffError(f"{file} is there already: name another file, or move it away")
    if report.exists():
        print(f"Report: the one of {datetime.fromtimestamp(report.stat().st_mtime):%Y-%m-%d %H:%M}")
    else:
        print("There is no report yet: it is built from the stored data.")
        make_report("stored", paths.REPORT)
    names, left_out = archiving.write(file)
    for folder, count in Counter(str(Path(name).parent) for name in names).items():
        print(f"packed: {folder}/, {count} {'file' if count == 1 else 'files'}")
    for line in left_out:
        print(f"left out: {line}", file=sys.stderr)
    print(f"Archive: {file} ({file.stat().st_size / 1e6:.1f} MB)")


@command("reproduce")
@argument("archive", "an archive, a folder of campaigns, or a reference's name", type=Path)
@argument("--minutes", "time limit (default: 15)", type=above_zero, default=15.0, metavar="M")
@switch("--fresh", "repeat what an earlier call already ran")
def reproduce(archive, minutes, fresh) -> int:
    """Run an archive's campaigns again here, and say which findings are reproduced.

    Run as many of the archive's campaigns as the time allows. Each finding is then reproduced, not
    reproduced, too short to tell, or cannot run here. Only campaigns and testbeds that are
    described here are run. Exit code: 0 all reproduced, 1 at least one not reproduced, 2 none
    failed but some could not be judged, 3 nothing was judged because of a mistake.
    """
    import experiment
    from analysis import reproducing, rerunning

    run = partial(experiment.run_within, fresh=fresh)
    verdicts, file = rerunning.reproduce(archive, minutes, experiment.runnable, run)
    print(f"\n{reproducing.text(verdicts)}\nVerdicts: {file}")
    return reproducing.exit_code(verdicts)
