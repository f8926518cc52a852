"""Keep an import with its dataset and figures, and say what it shows."""

from pathlib import Path

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import paths
from analysis.dataset import store
from analysis.imports import dataset_sections, importing
from analysis.imports.importing import Import
from analysis.quoting import as_written
from analysis.statements import exhibit, notebooks, style
from analysis.subjects import hpl_points
from analysis.wording import HARD_SPACE

MOST_FILES = 8  # of which every reading is printed


def save(imported: Import, out: Path | None) -> str:
    """Save an import in the folder `out`, by default in data/raw, with its dataset (*.nc) and
    figures; return a summary for a terminal."""
    folder = importing.keep(imported, out or paths.RAW)
    dataset = store.read(folder)
    file = (out or paths.DATASETS) / f"{folder.name}.nc"
    store.save(dataset, file)
    head, *rows = importing.summary(dataset).splitlines()
    is_short = dataset.sizes["trial"] <= MOST_FILES
    if not is_short:  # only those without a reading
        rows = [row for row, status in zip(rows, dataset.status.values) if status != "ok"]
    texts, figures = shown(dataset)
    beside = out / "figures" / folder.name if out else file.with_suffix("")
    where = [f"Transcripts: {folder}", f"Dataset: {file}"]
    for name, figure in figures.items():
        beside.mkdir(parents=True, exist_ok=True)
        style.save(figure, beside / f"{name}.svg")
        where.append(f"Figure: {beside / name}.svg")
    structure = "" if is_short else importing.structure(imported)
    parts = ["\n".join([head, *rows]), structure, *texts, "\n".join(where)]
    if out and dataset_sections.of(dataset):
        parts.append(f"`falloff report --data {out} --out report` makes a report of it.")
    return "\n\n".join(filter(None, parts))


def shown(dataset: xr.Dataset) -> tuple[list[str], dict[str, Figure]]:
    """The texts for a terminal and the figures by name that notebooks make of a dataset.

    Raises FalloffError if it is one of HPL and no result can be used.
    """
    texts, figures = list[str](), dict[str, Figure]()
    sections = dataset_sections.of(dataset)
    if dataset.attrs["campaign"] == "hpl":
        sections = [*dict.fromkeys([dataset_sections.HPL, *sections])]
    for notebook in sections:
        text, drawn = _of_notebook(notebook, dataset)
        texts.append(text)
        figures |= drawn
    is_open = (dataset.interconnect.values == "") & (dataset.status.values == "ok")
    if {dataset_sections.MESSAGES, dataset_sections.STREAMS} & {*sections} and is_open.sum() > 1:
        texts.append(hpl_points.NO_NETWORK)
    return texts, figures


def _of_notebook(name: str, dataset: xr.Dataset) -> tuple[str, dict[str, Figure]]:
    """The statements that a notebook makes of a dataset, its table of points and its notes as text,
    and its figures.
    """
    campaign = dataset.attrs["campaign"]
    file = paths.NOTEBOOKS / f"{name}.ipynb"
    run = notebooks.run(file, {campaign: dataset}, campaign=campaign)
    parts = ["\n".join(str(statement).replace("**", "") for statement in run.statements)]
    for table in run.tables:
        if table.label == exhibit.label_of("points", dataset):
            parts.append(pd.DataFrame(table.rows, columns=table.columns).to_string(index=False))
    parts.append("\n".join(f"note: {note}" for note in run.names.get("notes", ())))
    text = as_written("\n\n".join(filter(None, parts)).replace(HARD_SPACE, " "))
    return text, {label: figure.figure for label, figure in run.figures.items()}
