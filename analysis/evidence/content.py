"""A dataset's content as plain text: kept beside the transcripts, and compared value by value.

    a line of JSON for each variable: {"name": ..., "dims": [...], "values": [...]}, in order of their names

Variables without any known value are left out, with the dims that only they have. So a schema that
grows does not change earlier texts.
"""

import json
import lzma
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from runners import archive, manifest, typed_json
from runners.journal import write_whole
from runners.record import FalloffError

Content = Mapping[str, Mapping[str, Any]]
PRECISION = 1e-9  # relative, of two computations of one number


def of(dataset: xr.Dataset) -> Content:
    """Dims and nested values of each variable and coordinate by name; NaN is None."""
    values = {name: array.values for name, array in dataset.variables.items()}
    measured = [name for name in values if name not in dataset.dims and _is_known(values[name])]
    used = {dim for name in measured for dim in dataset[name].dims}
    labels = [name for name in dataset.dims if name in values and name in used]
    return {str(name): _plain(dataset[name]) for name in sorted([*measured, *labels], key=str)}


def text(content: Content) -> str:
    """The content as stored text: the same values always give the same text."""
    lines = ({"name": name, **array} for name, array in content.items())
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def keep(dataset: xr.Dataset, folder: Path) -> None:
    """Keep a dataset's content in its campaign's folder, compressed."""
    compressed = lzma.compress(text(of(dataset)).encode(), preset=6 | lzma.PRESET_EXTREME)
    write_whole(folder / manifest.DATASET, compressed)


def stored(folder: Path) -> Content:
    """The content stored in a campaign's folder, empty if there is none; raises FalloffError if it
    is damaged."""
    file = folder / manifest.DATASET
    if not file.exists():
        return {}
    try:
        lines = archive.decompressed(file.read_bytes()).decode().splitlines()
        return _checked([typed_json.parsed(line) for line in lines])
    except (lzma.LZMAError, ValueError) as error:
        raise FalloffError(f"{file} is damaged ({error}); restore it") from None


@dataclass(frozen=True)
class _Array:
    name: str
    dims: tuple[str, ...]
    values: tuple[Any, ...]


def _checked(lines: Sequence[Any]) -> Content:
    """The arrays in lines of text, by name; raises ValueError if a line is not an array, or two
    arrays do not fit together."""
    arrays: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        array = typed_json.record(_Array, line)
        if array.name in arrays or not _is_filled(line["values"], len(array.dims)):
            raise ValueError(f"{array.name[:40]!r} is there twice, or no array of its dims")
        arrays[array.name] = {"dims": line["dims"], "values": line["values"]}
    counts = {len(a["values"]) for a in arrays.values() if a["dims"][:1] == ["trial"]}
    if len(counts) > 1 or (counts and "trial_id" not in arrays):
        raise ValueError("its arrays are not of the same trials")
    if not all(isinstance(name, str) for name in arrays.get("trial_id", {}).get("values", ())):
        raise ValueError("a trial's name is no text")
    return arrays


def _is_filled(values: Any, depth: int) -> bool:
    """Whether nested lists form a complete array with `depth` dims."""
    if depth == 0:
        return not isinstance(values, (list, dict))
    is_list = isinstance(values, list) and all(_is_filled(part, depth - 1) for part in values)
    return is_list and (depth == 1 or len(set(map(len, values))) < 2)


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
    """Whether two values are equal, numbers to print precision: another Python sums with other last digits."""
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
