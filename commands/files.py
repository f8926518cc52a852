"""Outputs and tables that a user already has: import them, fit a model to them."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from analysis import paths
from commands import names
from commands.grammar import PATH, argument, command, option, switch
from runners import outputs
from runners.record import FalloffError, Unreadable
from runners.tools import names as tool_names
from runners.tools import tool_named

# Models whose equation holds for one quantity and not for any curve: HPL's rate, the cost of a byte, TCP's goodput.
_OF_ONE_QUANTITY = ("hpl", "hpl_messages", "cpu_cost", "bandwidth_delay")


@command(
    "import",
    examples="""
        falloff import hpl HPL.out --print
        falloff import hpl results/ --set interconnect=gige --set ranks_per_node=16
        falloff import iperf3 *.json --map settings.csv
    """,
)
@argument("tool", type=names.TOOL, help=f"{', '.join(tool_names())}.")
@argument(
    "files",
    type=PATH,
    nargs=-1,
    required=True,
    metavar="FILE...",
    help="Output files, or folders of output files.",
)
@switch("--print", "printed", help="Only print the readings of each file as JSON.")
@option(
    "--set",
    "words",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of all files, such as nodes=4; may be given several times.",
)
@option(
    "--map",
    "table",
    type=PATH,
    metavar="FILE",
    help="Settings by file: a CSV with the column `file` (names or patterns) and one column a setting.",
)
def import_results(tool, files, printed, words, table) -> None:
    """Import outputs of tools that you already have.

    The outputs of one tool become a campaign of measured evidence, and HPL's efficiency is plotted.
    The tools are hpl, hpcc, iperf3, iperf2, netperf, ping, sockperf, osu (latency and bandwidth)
    and imb (PingPong). Use --set or --map for settings that the outputs do not contain:
    interconnect, nodes or ranks_per_node, rpeak (one node's theoretical peak in flop/s) and more.
    Settings that you do not give stay unknown.

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


def one_or_two(
    _context: click.Context, _argument: click.Parameter, words: tuple[str, ...]
) -> tuple[str, Path]:
    """The model's name, empty if none is given, and the file."""
    if len(words) > 2:
        raise click.UsageError("give one model's name at most, and one file or campaign")
    *model, file = words
    return "".join(model), Path(file)


@command(
    "fit",
    examples="""
        falloff fit universal_scalability FILE.csv --x nodes --y rate
        falloff fit FILE.csv --x nodes --y rate --block run
        falloff fit hpl FILE.csv --x N,NB,P,Q --y rate
        falloff fit FOLDER
    """,
)
@argument(
    "source",
    type=names.MODEL,
    nargs=-1,
    required=True,
    callback=one_or_two,
    metavar="[MODEL] FILE",
    help="A model in analysis/models, and a CSV file; or only a file, or a campaign's folder.",
)
@option("--x", metavar="COLUMN", help="What y depends on; several with commas between.")
@option("--y", metavar="COLUMN", help="What is fitted.")
@option("--block", metavar="COLUMN", help="Which rows were measured together.")
def fit_table(source, x, y, block) -> None:
    """Fit models to a CSV file, or scaling laws to a campaign.

    What is fitted is printed as JSON. With a model's name that model is fitted; a model of several
    quantities takes their columns with commas between. Without a name all models are compared,
    which needs blocks.

    Scaling laws of efficiency over nodes are fitted to each network of an HPL campaign: your own,
    an imported or a shipped one.
    """
    from analysis import models, tables
    from analysis.fitting import compare, fit

    model, file = source
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
    from analysis import derive, scaling, wording

    (runs,) = experiment.named([str(campaign)])
    points = derive.points(runs)
    laws = scaling.laws_of(points)
    predicted = scaling.predictions(points, laws)
    tables = {
        "laws": laws.table(),
        "parameters": laws.parameters(),
        "held_out": predicted.reset_index(),
    }
    rows = {name: json.loads(table.to_json(orient="records")) for name, table in tables.items()}
    said = [scaling.followed_in_words(runs, scaling.followed(laws))]
    said += map(str, scaling.foretold(runs, laws, predicted))
    return {"finding": " ".join(map(wording.plain, said)), **rows}
