"""What makes a point: all that was set. Only runs of one point are repeats of each other."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import xarray as xr

from analysis.exhibit import COUNTS
from analysis.quoting import quoted
from analysis.schema import schema, settings

# Pairs of name and value, sorted by name; the pair without a name is the quantity.
Point = tuple[tuple[str, Any], ...]
QUANTITY = ""
_RATE = re.compile(
    r"([kKMGTP]?)(i?)(?:([Bb]|[Bb]its?|[Bb]ytes?)(?:ps|/s|/secs?|/seconds?)|(?i:flops?)(?:/s|/secs?|/seconds?)?)"
)
_NO_SETTINGS = ("rpeak", "in_quota")  # a scale for the efficiency, and how a trial went


def of_trials(dataset: xr.Dataset) -> list[dict[str, Any]]:
    """All that was set of each trial, by name, without what is not known.

    Trials that differ in any of it are of different points: no mean, interval or verdict holds both.
    """
    columns = {
        name: map(plain, dataset[name].values.tolist())
        for name in settings()
        if name not in _NO_SETTINGS and name in dataset.variables
    }
    trials = [dict(zip(columns, values)) for values in zip(*columns.values())]
    return [
        {name: value for name, value in trial.items() if value not in ("", None)}
        for trial in trials
    ]


def point(quantity: str, levels: Mapping[str, Any]) -> Point:
    """The point of a quantity at these levels of its settings, without unknown ones."""
    known = {
        name: value for name, each in levels.items() if (value := plain(each)) not in ("", None)
    }
    return tuple(sorted({QUANTITY: quantity, **known}.items()))


def quantity(point: Point) -> str:
    """The quantity of a point."""
    return dict(point)[QUANTITY]


def setting_columns(table: pd.DataFrame, *used: str) -> list[str]:
    """The columns of a user's table that are settings, but for the `used` ones."""
    return [name for name in table if name in settings() and name not in used]


def in_base(unit: str) -> tuple[float, str]:
    """The size of a rate's unit in its base, and the base: that of bytes, of bits or of operations in a second. Any other
    unit is its own base."""
    found = _RATE.fullmatch(unit)
    if not found:
        return 1.0, unit
    prefix, binary, data = found.groups()
    size = (1024.0 if binary else 1000.0) ** " KMGTP".index(prefix.upper() or " ")
    if data is None:
        return size, "flop/s"
    return size / 8 if data == "b" or data.lower().startswith("bit") else size, "B/s"


def varying(points: Sequence[Point] | Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings that differ among points, in the schema's order. A setting that some points lack
    counts as different."""
    levels = [dict(point) for point in points]
    names = {name for each in levels for name in each if name != QUANTITY}
    known = list(schema()["coordinates"])
    differ = [name for name in names if len({each.get(name) for each in levels}) > 1]
    return sorted(differ, key=lambda name: (known.index(name) if name in known else -1, name))


def labels(points: Sequence[Point], names: Mapping[str, str]) -> Callable[[Point], str]:
    """A function that labels a point by as few settings as tell all points apart."""
    chosen: list[str] = []
    apart, several = 1, len({quantity(point) for point in points}) > 1
    for name in varying(points):
        now = len({tuple(map(dict(point).get, [*chosen, name])) for point in points})
        if now > apart:
            chosen, apart = [*chosen, name], now

    def label(point: Point) -> str:
        words = in_words(dict(point), chosen, names)
        title = [quantity(point).replace("_", " ")] if several or not words else []
        return ", ".join([*title, *words])

    return label


def in_words(
    levels: Mapping[str, Any], chosen: Sequence[str], names: Mapping[str, str] = {}
) -> list[str]:
    """The chosen settings of a point, as far as they are known; `names` are words for levels."""
    return [_word(name, levels[name], names) for name in chosen if name in levels]


def _word(name: str, value: Any, names: Mapping[str, str]) -> str:
    if isinstance(value, str):
        return names.get(value) or quoted(value.replace("_", " "))
    if name in COUNTS:
        return f"{value:g} {name[:-1] if value == 1 else name}"
    return f"{name.replace('_', ' ')} {value:g}"


def plain(value: Any) -> Any:
    """A whole number without its fraction, None instead of NaN, anything else unchanged."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value
