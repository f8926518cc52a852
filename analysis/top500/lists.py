"""List files as a dataset of systems, a row each, as the lists print them."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from analysis.top500 import cells, columns, families, quantities
from runners.record import FalloffError

SUFFIXES = (".tsv", ".csv", ".txt", ".xls", ".xlsx")
PAGE = "README.md"
TEXTS = ("site", "manufacturer", "computer", "country", "interconnect", "listed_family")
DERIVED = ("family", "contradicted_by", "generation", "reason")  # texts that follow from the list's own
MEANINGS = {
    "rmax": ("flop/s", "rate of HPL"),
    "rpeak": ("flop/s", "theoretical peak rate"),
    "efficiency": ("1", "Rmax over Rpeak"),
    "cores": ("1", "cores, of the older lists processors"),
}

_MONTH = re.compile(r"(?<!\d)((?:19|20)\d{2})[-_]?(0[1-9]|1[0-2])(?!\d)")


def read_folder(folder: Path) -> xr.Dataset:
    """All list files in a folder, of published evidence, with dims `system`: list after list, in the files' order.

    Coordinates are `list` (YYYY-MM), `rank` and `evidence`; rates are in flop/s. A system without a usable Rmax or
    Rpeak is NaN with a `reason`. Without files, or a folder, there are no systems. The attribute `files` has each
    list's file and SHA-256, `notes` what was left out. Raises FalloffError naming the faults of all files.
    """
    files = sorted(it for it in folder.glob("*") if it.is_file() and it.name != PAGE and not it.name.startswith("."))
    lists = [it for it in files if it.suffix.lower() in SUFFIXES]
    notes = [f"{it.name} was not read: no {', '.join(SUFFIXES)}" for it in files if it not in lists]
    read, faults, origin = [], [], {}
    for file in lists:
        try:
            month = _month(file)
            if month in origin:
                raise FalloffError(f"{file}: {origin[month]['file']} is the list of {month}, too; keep one of them")
            content = file.read_bytes()
            origin[month] = {"file": file.name, "sha256": hashlib.sha256(content).hexdigest()}
            read.append(_systems(file, content, month, notes))
        except OSError as error:
            faults.append(f"cannot read {file}: {error.strerror}")
        except FalloffError as error:
            faults.append(str(error))
    if faults:
        raise FalloffError("\n".join(faults))
    return _dataset(read, {"files": json.dumps(origin), "notes": json.dumps(notes)})


def none(notes: Sequence[str]) -> xr.Dataset:
    """The dataset of no list at all, with the reasons."""
    return _dataset([], {"files": "{}", "notes": json.dumps(list(notes))})


def _month(file: Path) -> str:
    found = _MONTH.search(file.stem)
    if not found:
        raise FalloffError(f"{file}: its name does not hold the list's month, such as TOP500_200811{file.suffix}")
    return "-".join(found.groups())


def _systems(file: Path, content: bytes, month: str, notes: list[str]) -> pd.DataFrame:
    """One list's systems; what was left out is added to the notes. Raises FalloffError with the file's name."""
    try:
        table, headings = _table(content)
        rows = _rows(table, headings)
        systems = _columns(rows, headings, month)
    except FalloffError as error:
        raise FalloffError(f"{file}: {error}") from None
    ranked = systems["rank"].notna()
    left_out = [f"{count} without a rank" for count in [int((~ranked).sum())] if count]
    left_out += [f"{count} whose {reason}" for reason, count in Counter(systems.reason[ranked]).items() if reason]
    notes += [f"{file.name}: of {len(systems)} rows were left out: {'; '.join(left_out)}"] if left_out else []
    twice = int(systems["rank"][ranked].duplicated().sum())
    notes += [f"{file.name}: ranks that are there more than once: {twice}"] if twice else []
    if not systems.reason.eq("").any():
        raise FalloffError(f"{file}: no row has a rank, an RMax and an RPeak: {'; '.join(left_out) or 'it is empty'}")
    return systems[ranked]


def _table(content: bytes) -> tuple[cells.Rows, columns.Headings]:
    found = columns.best(cells.tables(content))
    if found is None:
        raise FalloffError("it holds no table")
    if found[1].lacking:
        there = ", ".join(filter(None, found[1].cells))[:200] or "nothing"
        raise FalloffError(f"it has no column {' and no '.join(found[1].lacking)}; its headings are: {there}")
    return found


def _rows(table: cells.Rows, headings: columns.Headings) -> cells.Rows:
    """The rows under the headings that are not blank, each as wide as the headings."""
    width, rows = len(headings.cells), []
    for number, row in enumerate(table[headings.row + 1 :], start=headings.row + 2):
        if any(row[width:]):
            raise FalloffError(
                f"row {number} has {len(row)} cells under {width} headings: a field with the separator in it has to "
                "be quoted"
            )
        if any(row):
            rows.append([*row, *[""] * (width - len(row))])
    return rows


def _columns(rows: cells.Rows, headings: columns.Headings, month: str) -> pd.DataFrame:
    def column(name: str) -> list[str]:
        place = headings.places.get(name)
        return ["" if place is None else row[place] for row in rows]

    systems = pd.DataFrame({name: pd.Series(column(name), dtype=object) for name in TEXTS})
    systems.insert(0, "list", month)
    systems["rank"], systems["cores"] = quantities.numbers(column("rank"))[0], quantities.numbers(column("cores"))[0]
    factor, reason = None, np.full(len(rows), "", dtype=object)
    for name, title in (("rmax", "RMax"), ("rpeak", "RPeak")):
        values, why = quantities.numbers(column(name))
        usable = values > 0
        factor = quantities.unit(headings.units[name]) or factor or _plausible_unit(values, month)
        systems[name] = np.where(usable, values, np.nan) * factor
        why = [f"{title} {text or 'is not above 0'}" for text in why]
        reason = np.where((reason == "") & ~usable, why, reason)
    systems["efficiency"], systems["reason"] = systems.rmax / systems.rpeak, reason
    kinds = [families.kind(*pair) for pair in zip(systems.listed_family, systems.interconnect)]
    systems["family"] = [kind.family for kind in kinds]
    systems["contradicted_by"] = [kind.contradicted_by for kind in kinds]
    systems["generation"] = [families.generation(name) for name in systems.interconnect]
    return systems


def _plausible_unit(values: np.ndarray, month: str) -> float:
    """flop/s in the unit of a column whose heading names none; of no number it is not known."""
    return quantities.plausible_unit(float(np.nanmax(values)), month) if np.isfinite(values).any() else np.nan


def _dataset(read: list[pd.DataFrame], attributes: dict[str, str]) -> xr.Dataset:
    blank = pd.DataFrame(columns=["list", "rank", *MEANINGS, *TEXTS, *DERIVED])
    systems = pd.concat(read, ignore_index=True) if read else blank
    numbers = {name: systems[name].to_numpy(float) for name in MEANINGS}
    texts = {name: systems[name].to_numpy(str) for name in (*TEXTS, *DERIVED)}
    return xr.Dataset(
        {
            **{name: ("system", values, _named(*MEANINGS[name])) for name, values in numbers.items()},
            **{name: ("system", values) for name, values in texts.items()},
        },
        {
            "list": ("system", systems["list"].to_numpy(str)),
            "rank": ("system", systems["rank"].to_numpy(int)),
            "evidence": "published",
        },
        {"title": "Systems of TOP500's lists", **attributes},
    )


def _named(units: str, meaning: str) -> dict[str, str]:
    return {"units": units, "long_name": meaning}
