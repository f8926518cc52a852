"""A view's numbers as the columns of the plot's layers."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pandas as pd

from analysis.explorer.axes import Axis
from analysis.explorer.estimates import Curve, Fitted, selected
from analysis.explorer.marks import Mark
from analysis.explorer.printed import printed
from analysis.explorer.trials import SETTINGS, Trials
from analysis.explorer.view import View
from analysis.wording import number

COUNTS, LEFT_OUT = 0.55, 0.13  # opacity of a trial in the statistics, and of one that is not
BESIDE = ("star", "hex", "plus")  # markers of further datasets
FINE = 90  # places at which a fitted curve is drawn
TOLD = [name for name in SETTINGS if name not in ("file", "version", "variant")]  # of a trial that is hovered over


def points(
    view: View, opened: Mapping[str, Trials], axis: Axis, marks: Mapping[Hashable, Mark]
) -> dict[str, np.ndarray]:
    """One row for each trial of the series shown, valid or not; without a reading its y is NaN."""
    return _joined(_points(view, name, opened[name], axis, beside(marks, view, name)) for name in view.sources)


def beside(marks: Mapping[Hashable, Mark], view: View, name: str) -> dict[Hashable, Mark]:
    """The marks of one of a view's datasets: a second and third have the series' colour and a marker of their own."""
    at = view.sources.index(name)
    return (
        dict(marks)
        if not at
        else {level: replace(mark, marker=BESIDE[(at - 1) % len(BESIDE)]) for level, mark in marks.items()}
    )


def _points(
    view: View, name: str, trials: Trials, axis: Axis, marks: Mapping[Hashable, Mark]
) -> dict[str, np.ndarray]:
    rows = selected(view, trials)
    series, levels = rows[view.series].tolist(), rows[view.abscissa].tolist()
    at = {level: axis.aside(position, len(view.shown)) for position, level in enumerate(view.shown)}
    y = rows[view.ordinate].to_numpy(float) if view.ordinate in rows else np.full(len(rows), np.nan)
    placed = {level: trials.placed(view.abscissa, level) for level in set(levels)}
    return {
        "x": np.array([axis.places.get(level, np.nan) + at[one] for level, one in zip(levels, series)], float)
        + axis.spread(rows.block.to_numpy(), len(view.shown)),
        "y": y,
        "value": _values(trials, view.ordinate)[rows.index].to_numpy(object),
        "color": np.array([marks[level].color for level in series], object),
        "dark": np.array([marks[level].dark for level in series], object),
        "marker": np.array([marks[level].marker for level in series], object),
        "alpha": np.where(rows.counts, COUNTS, LEFT_OUT),
        "trial": rows.trial_id.to_numpy(object),
        "block": rows.block.to_numpy(),
        "order": rows.order.to_numpy(),
        "series": np.array([marks[level].series for level in series], object),
        "level": np.array([placed[level] for level in levels], object),
        "settings": _settings(trials, view.abscissa, view.series)[rows.index].to_numpy(object),
        "note": ("does not count: " + rows.reason.replace("", "no reading")).where(~rows.valid, "").to_numpy(object),
        "source": np.full(len(rows), name, object),
    }


def block_lines(view: View, curves: Iterable[Curve], axis: Axis, marks: Mapping[Hashable, Mark]) -> dict[str, list]:
    """Each block's own line through the points that count."""
    found: dict[str, list] = {"xs": [], "ys": [], "color": [], "dark": [], "series": []}
    for curve in curves:
        x = _places(curve, view, axis)
        for values in curve.table.to_numpy(float):
            if np.isfinite(values).sum() > 1:
                _append(found, marks[curve.level], xs=x, ys=values)
    return found


def medians(view: View, curves: Iterable[Curve], axis: Axis, marks: Mapping[Hashable, Mark]) -> dict[str, np.ndarray]:
    """The median over the blocks at every level."""
    return _joined(
        {
            "x": _places(it, view, axis),
            "y": it.summary["median"].to_numpy(float),
            **_look(marks[it.level], len(it.summary), "color", "dark", "series"),
        }
        for it in curves
    )


def means(view: View, curves: Iterable[Curve], axis: Axis, marks: Mapping[Hashable, Mark]) -> dict[str, np.ndarray]:
    """Mean and 95 % t interval over the blocks at every level; one block has no interval."""
    return _joined(
        {
            "x": _places(it, view, axis),
            **{
                column: it.summary[of].to_numpy(float)
                for column, of in (("y", "mean"), ("low", "low"), ("high", "high"))
            },
            **_look(beside(marks, view, it.source)[it.level], len(it.summary), "color", "dark", "marker", "series"),
        }
        for it in curves
    )


def published(
    view: View, trials: Trials, axis: Axis, marks: Mapping[Hashable, Mark]
) -> dict[str, np.ndarray | list[str]]:
    """What the sources printed of the quantity."""
    rows = printed(view, trials)
    found: dict[str, list] = {"x": [], "y": [], "value": [], "color": [], "dark": [], "series": [], "text": []}
    unit = trials.quantities[view.ordinate].unit
    for level, series, value, text in rows.reindex(columns=[view.abscissa, view.series, "value", "text"]).values:
        aside = axis.aside(view.shown.index(series), len(view.shown))
        place = axis.places.get(level, np.nan) if axis.place is None else float(axis.place(level))
        _append(found, marks[series], x=place + aside, y=value, value=f"{number(value, 4)} {unit}".strip(), text=text)
    return found


def fits(
    curves: Iterable[Curve], fitted: Iterable[Fitted], axis: Axis, marks: Mapping[Hashable, Mark]
) -> tuple[dict[str, list], dict[str, list]]:
    """The fitted curves and their 95 % bands over the blocks; no band where there is a single block."""
    lines: dict[str, list] = {"xs": [], "ys": [], "color": [], "dark": [], "series": [], "dash": []}
    bands: dict[str, list] = {"xs": [], "ys": [], "color": [], "dark": [], "series": []}
    for curve, found in zip(curves, fitted):
        if found.fit is None or axis.place is None:
            continue
        levels = curve.table.columns.to_numpy(float)
        x = (
            np.geomspace(levels.min(), levels.max(), FINE)
            if levels.min() > 0
            else np.linspace(levels.min(), levels.max(), FINE)
        )
        mean, low, high = found.band(x)
        place, mark = axis.place(x), marks[curve.level]
        _append(lines, mark, xs=place, ys=mean, dash=mark.dash)
        if np.isfinite(low).all():
            _append(bands, mark, xs=np.concatenate([place, place[::-1]]), ys=np.concatenate([low, high[::-1]]))
    return lines, bands


def _places(curve: Curve, view: View, axis: Axis) -> np.ndarray:
    aside = axis.aside(view.shown.index(curve.level), len(view.shown))
    return np.array([axis.places[level] + aside for level in curve.summary.index], float)


@lru_cache(maxsize=64)
def _values(trials: Trials, ordinate: str) -> pd.Series:
    """Each trial's value with its unit, as text over the rows of its table."""
    if ordinate not in trials.quantities:
        return pd.Series("no reading", trials.frame.index, dtype=object)
    unit = trials.quantities[ordinate].unit
    return trials.frame[ordinate].map(
        lambda value: f"{number(value, 4)} {unit}".strip() if np.isfinite(value) else "no reading"
    )


@lru_cache(maxsize=64)
def _settings(trials: Trials, abscissa: str, series: str) -> pd.Series:
    """What each trial was run with beside its series and level, as text over the rows of its table."""
    frame = trials.frame
    known = [
        name
        for name in TOLD
        if name not in (abscissa, series) and frame[name].notna().any() and not (frame[name] == "").all()
    ]
    texts = pd.Series("", frame.index, dtype=object)
    for name in known:
        called = {
            level: f"{', ' if name != known[0] else ''}{name.replace('_', ' ')} {trials.called(level)}"
            for level in frame[name].unique()
        }
        texts = texts + frame[name].map(called)
    return texts


def _look(mark: Mark, count: int, *columns: str) -> dict[str, np.ndarray]:
    return {column: np.full(count, getattr(mark, column), object) for column in columns}


def _append(columns: dict[str, list], mark: Mark, **values) -> None:
    for name, value in {"color": mark.color, "dark": mark.dark, "series": mark.series, **values}.items():
        columns[name].append(value)


def _joined(parts: Iterable[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    parts = list(parts)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
