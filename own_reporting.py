"""Make the report of one's own data: run the notebooks that show what a folder holds."""

from collections.abc import Callable, Iterator
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
    campaign or section that is not shown, with the reason. A campaign whose own notebook needs more than is there is shown
    by its readings. Raises FalloffError, and leaves the last report as it is, if no section can be made.
    """
    facts = report_facts.read(data)
    datasets, lines = _datasets(data)
    wanted = _sections(datasets, facts.sections)
    lines += _not_shown(datasets, {folder for _, folder, _ in wanted})
    if not wanted:
        what = "; ".join(lines)
        raise FalloffError(f"nothing in {data} has a section of a report: {what}")
    place, done = paths.BUILD / "own_notebooks", 0
    parts: list[Part] = []
    with reporting.Kernel() as kernel:
        while wanted:
            notebook, folder, dataset = wanted.pop(0)
            file = paths.NOTEBOOKS / f"{notebook}.ipynb"
            made = place / f"{notebook}-{folder.name}" / file.name
            data_of = folder if _is_alone(notebook, dataset) else data
            is_named = own_program.is_one(dataset) or notebook == own_data.HPL
            about = {"campaign": dataset.attrs["campaign"]} if is_named else {}
            if error := kernel.execute(file, made, data=str(data_of.resolve()), **about):
                lines.append(f"{folder.name}: {notebook} is left out: {error.splitlines()[0]}")
                shown = [*(part.dataset for part in parts), *(further[2] for further in wanted)]
                if notebook not in notebooks.OF_OWN_FILES and all(
                    one is not dataset for one in shown
                ):
                    others = (name for name in own_data.sections(dataset) if name != notebook)
                    wanted[:0] = [(name, folder, dataset) for name in others]
            else:
                parts.append(Part(notebook, made, dataset))
            done += 1
            print(f"[{done}/{done + len(wanted)}] {folder.name}: {notebook}", flush=True)
    if not parts:
        raise FalloffError(f"no section could be made of {data}: {'; '.join(lines)}")
    page, kept = own_report.build(parts, facts, out)
    return page, kept, lines


def _datasets(data: Path) -> tuple[dict[Path, xr.Dataset], list[str]]:
    """The readable campaigns in a folder, of each campaign's runs the last one last, and a line for each other one."""
    found, lines = {}, []
    for folder in sorted(verify.folders([data]), key=own_data.last_run):
        try:
            found[folder] = store.read(folder)
        except FalloffError as reason:
            lines.append(f"{folder.name}: {reason}")
    return found, lines


def _not_shown(datasets: dict[Path, xr.Dataset], shown: set[Path]) -> Iterator[str]:
    """A line for each campaign without a section, but for a twin's simulations, which have one together."""
    latest = {datasets[folder].attrs["campaign"]: folder.name for folder in shown}
    for folder, dataset in datasets.items():
        campaign = dataset.attrs["campaign"]
        if folder in shown or campaign in own_data.FORETOLD and own_data.FORETOLD[-1] in latest:
            continue
        if campaign in latest:
            yield f"{folder.name}: {latest[campaign]} is a later run of {campaign}, and is shown"
        else:
            yield f"{folder.name}: no section shows its readings"


def _sections(
    datasets: dict[Path, xr.Dataset], asked: tuple[str, ...]
) -> list[tuple[str, Path, xr.Dataset]]:
    """Each section's notebook, with the folder and the dataset of its campaign: HPL first, then
    messages and streams, then the other campaigns' own notebooks; or the campaigns that were `asked` for, in that order."""

    def of(shown_by: Callable[[xr.Dataset], list[str]]) -> list[tuple[str, Path, xr.Dataset]]:
        pairs = datasets.items()
        return [(name, folder, each) for folder, each in pairs for name in shown_by(each)]

    chosen = of(_shown_by) or of(own_data.sections)
    chosen.sort(key=lambda one: notebooks.by_weight(one[0]))
    of_each = {
        (notebook, folder if _is_alone(notebook, dataset) else dataset.attrs["campaign"]): (
            notebook,
            folder,
            dataset,
        )
        for notebook, folder, dataset in chosen
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


def _is_alone(notebook: str, dataset: xr.Dataset) -> bool:
    """Whether a section shows one folder alone: several imports have the same campaign's name."""
    is_of_folder = notebook in notebooks.OF_OWN_FILES and notebook != own_data.TWIN
    return is_of_folder or own_methods.is_import(dataset)


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
