"""Keep an import with its dataset and figures, and say what it shows."""

from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from analysis import (
    imported_hpl,
    imported_hpl_shown,
    importing,
    notebooks,
    own_data,
    paths,
    store,
    style,
)
from analysis.importing import Import
from analysis.quoting import as_written

MOST_FILES = 8  # of which every reading is printed


def kept(found: Import, out: Path | None) -> str:
    """Keep an import in the folder `out`, by default in data/raw, with its dataset (*.nc) and
    figures; return what was seen and what it shows, for a terminal."""
    folder = importing.keep(found, out or paths.RAW)
    dataset = store.read(folder)
    file = (out or paths.DATASETS) / f"{folder.name}.nc"
    store.save(dataset, file)
    listed = importing.summary(dataset)
    few = dataset.sizes["trial"] <= MOST_FILES
    head = listed if few else _with_refusals(dataset, listed)
    said, figures = shown(dataset)
    beside = out / "figures" / folder.name if out else file.with_suffix("")
    files = style.save_all(figures, beside) if figures else {}
    where = [f"Transcripts: {folder}", f"Dataset: {file}"]
    where += [f"Figure: {figure}" for figure in files.values()]
    parts = [head, importing.structure(found) if not few else "", *said, "\n".join(where)]
    if out and own_data.sections(dataset):
        parts.append(f"`falloff report --data {out} --out report` makes a report of it.")
    return "\n\n".join(filter(None, parts))


def shown(dataset: xr.Dataset) -> tuple[list[str], dict[str, Figure]]:
    """What a dataset shows: texts for a terminal, and figures by name.

    Raises FalloffError if it is one of HPL and no result can be used.
    """
    texts, figures = [], {}
    if dataset.attrs["campaign"] == "hpl" or own_data.has(dataset, own_data.HPL):
        study = imported_hpl.analyse(dataset)
        texts.append(imported_hpl_shown.text(study))
        figures[study.ordinate] = imported_hpl_shown.draw(study)
    sections = own_data.sections(dataset)
    for notebook in sections:
        if notebook != own_data.HPL:
            campaign = dataset.attrs["campaign"]
            file = paths.NOTEBOOKS / f"{notebook}.ipynb"
            made = notebooks.run(file, {campaign: dataset}, campaign=campaign)
            texts.append(_plain(made.statements))
            figures |= {label: exhibit.figure for label, exhibit in made.figures.items()}
    is_open = (dataset.interconnect.values == "") & (dataset.status.values == "ok")
    if {own_data.MESSAGES, own_data.STREAMS} & {*sections} and is_open.sum() > 1:
        texts.append(imported_hpl.NO_NETWORK)
    return texts, figures


def _plain(statements) -> str:
    lines = [str(one).replace("**", "") for one in statements]
    return as_written("\n".join(lines).replace("\u00a0", " "))


def _with_refusals(dataset: xr.Dataset, listed: str) -> str:
    """The first line of the list, and a line for each result without a reading."""
    head, *rows = listed.splitlines()
    bad = [row for row, status in zip(rows, dataset.status.values) if status != "ok"]
    return "\n".join([head, *bad])
