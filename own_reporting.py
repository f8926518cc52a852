"""Make the report of one's own data: run the notebooks that show what a folder holds."""

from pathlib import Path

import xarray as xr

import reporting
from analysis import (
    notebooks,
    own_data,
    own_methods,
    own_program,
    own_report,
    paths,
    report_facts,
    statements,
    store,
)
from analysis.evidence import verify
from analysis.own_report import Part
from runners.record import FalloffError, unknown

OUT = paths.BUILD / "own_report"


def make(data: Path, out: Path) -> tuple[Path, list[str], list[str]]:
    """Report the imports and campaigns in the folder `data` into the folder `out`, as `report.toml` beside them says.

    Returns the report's page, a line for each file of the user's that was kept, and one for each
    campaign that is not shown, with the reason. Raises FalloffError, and leaves the last report as it is, if no section
    reads what is there, or an import's notebook fails.
    """
    facts = report_facts.read(data)
    datasets, lines = _datasets(data)
    wanted = _sections(datasets, facts.sections)
    shown = {folder for _, folder, _ in wanted}
    lines += [
        f"{one.name}: no section shows its readings"
        for one, each in datasets.items()
        if one not in shown and each.attrs["campaign"] not in own_data.FORETOLD
    ]
    if not wanted:
        what = "; ".join(lines)
        raise FalloffError(f"nothing in {data} has a section of a report: {what}")
    place, sections, failed = paths.BUILD / "own_notebooks", set(), {}
    parts: list[Part] = []
    with reporting.Kernel() as kernel:
        for number, (notebook, folder, dataset) in enumerate(wanted, 1):
            file = paths.NOTEBOOKS / f"{notebook}.ipynb"
            made = place / f"{notebook}-{folder.name}" / file.name
            of = own_data.NOTEBOOKS.get(notebook)
            data_of = folder if of else data
            about = {"campaign": dataset.attrs["campaign"]} if own_program.is_one(dataset) else {}
            if error := kernel.execute(file, made, data=str(data_of.resolve()), **about):
                failed.setdefault(folder, f"{folder.name}: {error.splitlines()[0]}")
            else:
                parts.append(Part(notebook, made, dataset))
                sections.add(folder)
            print(f"[{number}/{len(wanted)}] {folder.name}: {notebook}", flush=True)
    # A campaign may lack what a second notebook about it needs.
    lines += [line for folder, line in failed.items() if folder not in sections]
    if not parts:
        raise FalloffError(f"no section could be made of {data}: {'; '.join(lines)}")
    page, kept = own_report.build(parts, facts, out)
    return page, kept, lines


def _datasets(data: Path) -> tuple[dict[Path, xr.Dataset], list[str]]:
    """The readable campaigns in a folder, and a line for each other one."""
    found, lines = {}, []
    for folder in verify.folders([data]):
        try:
            found[folder] = store.read(folder)
        except FalloffError as reason:
            lines.append(f"{folder.name}: {reason}")
    return found, lines


def _sections(
    datasets: dict[Path, xr.Dataset], asked: tuple[str, ...]
) -> list[tuple[str, Path, xr.Dataset]]:
    """Each section's notebook, with the folder and the dataset of its campaign: HPL first, then
    messages and streams, then the other campaigns' own notebooks; or the campaigns that were `asked` for, in that order."""
    chosen = []
    for folder, dataset in datasets.items():
        shown = _shown_by(dataset)
        chosen += [(notebook, folder, dataset) for notebook in shown]
    chosen.sort(key=lambda one: notebooks.by_weight(one[0]))
    of_each = {
        (one[0], one[1] if one[0] in own_data.NOTEBOOKS or own_program.is_one(one[2]) else ""): one
        for one in chosen
    }
    chosen = list(of_each.values())
    if not asked:
        return chosen
    names = {one for _, folder, each in chosen for one in (each.attrs["campaign"], folder.name)}
    if strangers := [name for name in asked if name not in names]:
        raise unknown(f"campaign in {report_facts.NAME}", strangers[0], names)
    return [
        one for name in asked for one in chosen if name in (one[2].attrs["campaign"], one[1].name)
    ]


def _shown_by(dataset: xr.Dataset) -> list[str]:
    """The notebooks that show a dataset; what a twin foretold is one section."""
    what_if = own_data.FORETOLD[-1]
    if dataset.attrs["campaign"] in own_data.FORETOLD:
        return [own_data.TWIN] if dataset.attrs["campaign"] == what_if else []
    own = [] if own_methods.is_import(dataset) else _experiments(dataset)
    return own or own_data.sections(dataset)


def _experiments(dataset: xr.Dataset) -> list[str]:
    """The notebooks about a dataset's campaign; of a program of one's own, that of emulated programs."""
    campaign = own_program.CAMPAIGN if own_program.is_one(dataset) else dataset.attrs["campaign"]
    evidence = statements.evidence_of(dataset)
    return [
        file.stem
        for file in notebooks.of_experiments()
        if notebooks.campaign_of(file) == campaign
        and notebooks.OF_ONE_KIND.get(file.stem, evidence) == evidence
    ]
