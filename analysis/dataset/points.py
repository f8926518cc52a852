"""A point is a quantity with all its settings; only runs of the same point are repeats."""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from analysis.dataset.accessor import RecordedNetwork
from analysis.dataset.schema import COUNTS, schema, settings
from analysis.dataset.wire import wire_limit
from analysis.quoting import quoted
from analysis.statistics.intervals import average

# Pairs of name and value, sorted by name; the pair without a name is the quantity.
Point = tuple[tuple[str, Any], ...]
QUANTITY = ""
UNNAMED = "network not known"  # a series of which nothing is known
_RATE = re.compile(
    r"([kKMGTP]?)(i?)(?:([Bb]|[Bb]its?|[Bb]ytes?)(?:ps|/s|/secs?|/seconds?)|(?i:flops?)(?:/s|/secs?|/seconds?)?)"
)
_NO_TCP = ("infiniband", "roce", "rdma", "iwarp")  # how such networks' names end
_NO_SETTINGS = ("rpeak", "in_quota")  # a scale for the efficiency, and how a trial went


def of_trials(dataset: xr.Dataset) -> list[dict[str, Any]]:
    """The known settings of each trial, by name.

    Trials that differ in any of it are of different points: no mean, interval or verdict holds
    both.
    """
    columns = {
        name: dataset[name].values.tolist()
        for name in settings()
        if name not in _NO_SETTINGS and name in dataset.variables
    }
    return [_known(dict(zip(columns, values))) for values in zip(*columns.values())]


def _known(levels: Mapping[str, Any]) -> dict[str, Any]:
    """The plain levels of settings, without unknown ones."""
    stated = {name: plain(level) for name, level in levels.items()}
    return {name: value for name, value in stated.items() if value not in ("", None)}


def point(quantity: str, levels: Mapping[str, Any]) -> Point:
    """The point of a quantity at these levels of its settings, without unknown ones."""
    return tuple(sorted({QUANTITY: quantity, **_known(levels)}.items()))


def quantity(point: Point) -> str:
    """The quantity of a point."""
    return dict(point)[QUANTITY]


def setting_columns(table: pd.DataFrame, *used: str) -> list[str]:
    """The columns of a user's table that are settings, but for the `used` ones."""
    return [name for name in table if name in settings() and name not in used]


def in_base(unit: str) -> tuple[float, str]:
    """The size of a rate's unit in its base, and the base: that of bytes, of bits or of operations
    in a second. Any other unit is its own base."""
    match = _RATE.fullmatch(unit)
    if not match:
        return 1.0, unit
    prefix, binary, data = match.groups()
    size = (1024.0 if binary else 1000.0) ** " KMGTP".index(prefix.upper() or " ")
    if data is None:
        return size, "flop/s"
    return size / 8 if data == "b" or data.lower().startswith("bit") else size, "B/s"


def varying(points: Sequence[Point] | Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings that differ among points, in the schema's order. A setting that some points lack
    counts as different."""
    levels = [dict(point) for point in points]
    names = {name for point in levels for name in point if name != QUANTITY}
    order = list(schema()["coordinates"])
    differ = [name for name in names if len({point.get(name) for point in levels}) > 1]
    return sorted(differ, key=lambda name: (order.index(name) if name in order else -1, name))


def distinguishing(
    points: Sequence[Point] | Sequence[Mapping[str, Any]], first: Sequence[str] = ()
) -> list[str]:
    """The settings `first` and the fewest others that distinguish all points, in the schema's
    order.
    """
    levels = [dict(point) for point in points]
    chosen = list(first)

    def groups(names: Sequence[str]) -> int:
        return len({tuple(map(point.get, names)) for point in levels})

    for name in varying(points):
        if groups([*chosen, name]) > groups(chosen):
            chosen.append(name)
    return chosen


def labels(points: Sequence[Point], names: Mapping[str, str]) -> Callable[[Point], str]:
    """A function that labels a point by the fewest settings that distinguish all points."""
    chosen, several = distinguishing(points), len({quantity(point) for point in points}) > 1

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


def readings(dataset: xr.Dataset, names: Collection[str]) -> pd.DataFrame:
    """Every value of these readings in the trials of the design, a row each.

    Columns: `trial`, its place in the dataset; `quantity`, the name of the reading; `what` and
    `unit` of it; `size` [B] of the messages, NaN without any; `value`.
    """
    runs, parts = dataset.reset_coords(), []
    for name in names:
        reading = runs[name]
        if reading.notnull().any():
            by_size = ["message_size"] if "message" in reading.dims else []
            part = runs[[name, *by_size]].to_dataframe().dropna(subset=name).reset_index()
            described = schema()["variables"][name]
            about = {"what": described["long_name"], "unit": described["units"]}
            part = part.rename(columns={name: "value", "message_size": "size"})
            parts.append(part.assign(quantity=name, **about))
    columns = ["trial", "quantity", "what", "unit", "size", "value"]
    table = pd.concat(parts or [pd.DataFrame(columns=columns)], ignore_index=True)
    table = table.reindex(columns=columns).astype({"trial": int})
    return table[runs.role.values[table.trial] == "point"]


def by_series(
    dataset: xr.Dataset, names: Collection[str], but: Collection[str] = ()
) -> pd.DataFrame:
    """The `readings` with their settings; rows of one series differ only in the settings `but`.

    Further columns: `network`; `series`, it and the other settings that tell its trials from
    others, in words; `link` [bit/s], the network's rate, and `wire` [bit/s], the most TCP payload
    that it carries in full frames, both NaN where they are not known. Slower networks come first,
    unknown ones last.
    """
    table = readings(dataset, names)
    trials = table.trial.unique()
    settings = [
        {name: value for name, value in trial.items() if name not in but}
        for trial in of_trials(dataset.isel(trial=trials))
    ]
    chosen = distinguishing(settings, ("interconnect", "test"))
    networks, rows = dataset.falloff.networks, []
    unknown = RecordedNetwork({}, "")
    for levels in settings:
        network = levels.get("interconnect", "")
        about, others = networks.get(network, unknown), ", ".join(in_words(levels, chosen[1:]))
        series = f"{about.short} ({others})" if about.short and others else about.short or others
        link, mtu = about.rate_bit_s, levels.get("mtu", about.table.get("mtu", 1500))
        wire = np.nan if network.endswith(_NO_TCP) else wire_limit(link, mtu)
        rows.append((network, series or UNNAMED, link, wire))
    columns = ["network", "series", "link", "wire"]
    order = pd.DataFrame(settings, index=trials).reindex(columns=chosen)
    order = order.join(pd.DataFrame(rows, columns=columns, index=trials))
    order = order.sort_values(["link", *chosen], kind="stable")[columns]
    place = dict(zip(order.index, range(len(order))))
    table = table.sort_values("trial", key=lambda trial: trial.map(place), kind="stable")
    return table.join(order, on="trial").reset_index(drop=True)


def means(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The `mean` of each group of rows with its 95 % t interval, `low` to `high`, and the number of
    `runs`.

    It is arithmetic for times and harmonic for rates, so that `by` has the column `unit`. Where it
    has `network`, means of an unknown one have no interval: the runs may be of several networks.
    """
    rows = []
    for key, group in table.groupby([*by], dropna=False, sort=False):
        ends = average(group.value.values, "cost" if group.unit.iloc[0] == "s" else "rate")
        rows.append((*key, *map(float, ends), len(group)))
    averages = pd.DataFrame(rows, columns=[*by, "mean", "low", "high", "runs"])
    if "network" in by:
        averages.loc[averages.network == "", ["low", "high"]] = np.nan
    return averages
