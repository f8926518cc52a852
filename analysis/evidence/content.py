"""A dataset's content, compared value by value with what is kept of it beside the transcripts.

Variables without any known value are left out, with the dims that only they have, so that a schema
that grows changes nothing.
"""

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from analysis.dataset import store
from runners.records import manifest

Content = Mapping[str, Mapping[str, Any]]
PRECISION = 1e-9  # relative, of two computations of one number


def of(dataset: xr.Dataset) -> Content:
    """Dims and nested values of each variable and coordinate by name; NaN is None."""
    values = {name: array.values for name, array in dataset.variables.items()}
    measured = [name for name in values if name not in dataset.dims and _is_known(values[name])]
    used = {dim for name in measured for dim in dataset[name].dims}
    labels = [name for name in dataset.dims if name in values and name in used]
    return {str(name): _plain(dataset[name]) for name in sorted([*measured, *labels], key=str)}


def stored(folder: Path) -> Content:
    """The content of the dataset in a campaign's folder, empty if there is none; raises
    FalloffError if it is damaged.
    """
    file = folder / manifest.DATASET
    return of(store.load(file)) if file.exists() else {}


def differences(earlier: Content, now: Content) -> list[str]:
    """Every value that differs between two contents of one campaign, with its variable and trial, a
    line each."""
    rows, rows_now = _rows(earlier), _rows(now)
    lines = [f"trial {row} has no row any more" for row in rows if row not in rows_now]
    lines += [f"trial {row} has a row that was not there" for row in rows_now if row not in rows]
    for name in earlier.keys() & now.keys():
        was, is_now = (", ".join(side[name]["dims"]) for side in (earlier, now))
        lines += [f"{name}: its dims were {was}, they are {is_now}"] if was != is_now else []
    old, new = _cells(earlier, rows, rows_now), _cells(now, rows_now, rows)
    for place in dict.fromkeys([*old, *new]):
        was, value = old.get(place), new.get(place)
        if not _is_same(was, value):
            lines.append(f"{place}: {_shown(was)} was recorded, it is {_shown(value)}")
    return lines


def _is_same(was: Any, value: Any) -> bool:
    """Whether two values are equal, numbers to print precision: another Python sums with other last
    digits.
    """
    if isinstance(was, list) and isinstance(value, list):
        return len(was) == len(value) and all(map(_is_same, was, value))
    if isinstance(was, float) and isinstance(value, float):
        return math.isclose(was, value, rel_tol=PRECISION)
    return was == value


def _plain(array: xr.DataArray) -> dict[str, Any]:
    values = array.values
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), None, values.astype(object))
    return {"dims": list(map(str, array.dims)), "values": values.tolist()}


def _is_known(values: np.ndarray) -> bool:
    is_text = values.dtype.kind in "OUT"
    # NaN is not equal to itself.
    return bool((values != "").any() if is_text else (values == values).any())


def _rows(content: Content) -> dict[str, int]:
    """The row of each trial. A trial with several results has a row for each, numbered from the
    second on."""
    rows: dict[str, int] = {}
    seen: Counter[str] = Counter()
    for row, trial in enumerate(content["trial_id"]["values"] if "trial_id" in content else ()):
        seen[trial] += 1
        rows[trial if seen[trial] == 1 else f"{trial} result {seen[trial]}"] = row
    return rows


def _cells(content: Content, rows: Mapping[str, int], others: Collection[str]) -> dict[str, Any]:
    """Each known value by its place in words, for the trials that are also in `others`. The labels
    of a dim count as one value."""
    cells = {}
    for name, array in content.items():
        if array["dims"][:1] != ["trial"]:
            cells[f"labels {name}"] = array["values"]
            continue
        values = np.array(array["values"], dtype=object)
        for trial, row in rows.items():
            of_trial = np.ndenumerate(values[row]) if values.ndim > 1 else [((), values[row])]
            for place, value in of_trial:
                if trial in others and value not in ("", None):
                    cells[f"{name}{''.join(f'[{number}]' for number in place)} of {trial}"] = value
    return cells


def _shown(value: Any) -> str:
    written = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return written if len(written) <= 120 else f"{written[:120]} ..."
