"""What a dataset says, as plain text: kept beside the transcripts, hashed, and compared value by value.

    a line of JSON for each variable: {"name": ..., "dims": [...], "values": [...]}, in order of their names

What is nowhere known is left out, with the dims that nothing else has: a schema that grows changes no earlier text.
"""

import hashlib
import json
import lzma
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from runners import manifest
from runners.journal import write_whole
from runners.record import FalloffError

Content = Mapping[str, Mapping[str, Any]]

ABSENT = "nothing"


def of(dataset: xr.Dataset) -> Content:
    """Dims and nested values of each variable and coordinate by name; NaN is None."""
    known = [name for name in dataset.variables if name not in dataset.dims and _is_known(dataset[name].values)]
    used = {dim for name in known for dim in dataset[name].dims}
    labels = [name for name in dataset.dims if name in dataset.variables and name in used]
    return {str(name): _plain(dataset[name]) for name in sorted([*known, *labels], key=str)}


def text(content: Content) -> str:
    """The content as it is kept, always the same text for the same values."""
    return "".join(json.dumps({"name": name, **array}, ensure_ascii=False) + "\n" for name, array in content.items())


def digest(dataset: xr.Dataset) -> str:
    """The SHA-256 of a dataset's content as text; another file format or schema version does not change it."""
    return hashlib.sha256(text(of(dataset)).encode()).hexdigest()


def keep(dataset: xr.Dataset, folder: Path) -> None:
    """Keep a dataset's content in its campaign's folder, compressed."""
    compressed = lzma.compress(text(of(dataset)).encode(), preset=6 | lzma.PRESET_EXTREME)
    write_whole(folder / manifest.DATASET, compressed)


def kept(folder: Path) -> Content:
    """The content that a campaign's folder keeps, empty when it has none; raises FalloffError when it is damaged."""
    file = folder / manifest.DATASET
    if not file.exists():
        return {}
    try:
        lines = lzma.decompress(file.read_bytes()).decode().splitlines()
        return {array.pop("name"): array for array in map(json.loads, lines)}
    except (lzma.LZMAError, ValueError, KeyError) as error:
        raise FalloffError(f"{file} is damaged ({error}); restore it") from None


def differences(earlier: Content, now: Content) -> list[str]:
    """Every value that is not the same in two contents of one campaign, with its variable and trial, a line each."""
    rows, rows_now = _rows(earlier), _rows(now)
    told = [f"trial {row} has no row any more" for row in rows if row not in rows_now]
    told += [f"trial {row} has a row that was not there" for row in rows_now if row not in rows]
    shared = [(row, rows[row], rows_now[row]) for row in rows if row in rows_now]
    for name in sorted({*earlier, *now}):
        before, after = earlier.get(name), now.get(name)
        if _is_of_trials(before or after):
            for row, at, at_now in shared:
                old, new = _at(before, at), _at(after, at_now)
                told += [
                    f"{name}{place} of {row}: {was} was recorded, it is {is_}" for place, was, is_ in _apart(old, new)
                ]
        elif before != after:
            told.append(
                f"the labels {name} are not the same: {_shown(before)} were recorded, they are {_shown(after)}"
            )
    return told


def _plain(array: xr.DataArray) -> dict[str, Any]:
    values = array.values
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), None, values.astype(object))
    return {"dims": list(map(str, array.dims)), "values": values.tolist()}


def _is_known(values: np.ndarray) -> bool:
    return bool((values != "").any() if values.dtype.kind in "OUT" else (values == values).any())  # NaN is not itself


def _is_of_trials(array: Mapping[str, Any]) -> bool:
    return array["dims"][:1] == ["trial"]


def _rows(content: Content) -> dict[str, int]:
    """The row of each trial; one with several results has a row for each, numbered from the second on."""
    rows: dict[str, int] = {}
    seen: Counter[str] = Counter()
    for row, trial in enumerate(content["trial_id"]["values"] if "trial_id" in content else ()):
        seen[trial] += 1
        rows[trial if seen[trial] == 1 else f"{trial} result {seen[trial]}"] = row
    return rows


def _at(array: Mapping[str, Any] | None, row: int) -> Any:
    return None if array is None else array["values"][row]


def _apart(old: Any, new: Any, place: str = "") -> Iterator[tuple[str, str, str]]:
    """Each place where two nested values differ, and both values there; a list that ends early is as one of None."""
    if isinstance(old, list) or isinstance(new, list):
        olds, news = ([] if side is None else side for side in (old, new))
        for number in range(max(len(olds), len(news))):
            was, is_ = (side[number] if number < len(side) else None for side in (olds, news))
            yield from _apart(was, is_, f"{place}[{number}]")
    elif old != new and not (old in ("", None) and new in ("", None)):
        yield place, _shown(old), _shown(new)


def _shown(value: Any) -> str:
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return ABSENT
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= 120 else f"{written[:120]} ..."
