"""What `falloff fit` answers: a sentence, a table, a figure, and the rest as data for JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis.dataset import csv_tables, derive
from analysis.dataset.points import setting_columns
from analysis.laws import fit, model_comparison
from analysis.laws.models import Model, find
from analysis.quoting import as_written
from analysis.statements import drawing, style
from analysis.subjects import hpl_points, hpl_scaling
from analysis.wording import counted, estimate, number, percent, plain
from runners.records.record import FalloffError


@dataclass(frozen=True)
class FitAnswer:
    """A `sentence`, a `table` of text by column, the `data` for JSON, and the `figure`, None where
    there is nothing to draw."""

    sentence: str
    table: pd.DataFrame
    data: Any
    figure: Figure | None

    def text(self) -> str:
        """Sentence and table for a terminal."""
        shown = self.table.to_string(index=False)
        return as_written(f"{self.sentence}\n\n{shown}".replace("\u00a0", " "))


def of_campaign(dataset: xr.Dataset) -> FitAnswer:
    """The scaling laws of each network of an HPL campaign or import; raises FalloffError if none
    can be fitted."""
    points = hpl_points.points(dataset)
    laws = hpl_scaling.laws_of(points)
    predicted = hpl_scaling.predictions(laws)
    if not laws.by_level:
        raise FalloffError(
            f"HPL ran on a single number of {derive.counted_in(points)} without Rpeak"
        )
    best = hpl_scaling.followed(laws)
    sentences = [hpl_scaling.followed_in_words(points, best)]
    sentences += map(str, hpl_scaling.foretold(points, laws, predicted))
    sentence = " ".join(map(plain, sentences))
    rows = {
        "laws": laws.table(),
        "parameters": laws.parameters(),
        "held_out": predicted.reset_index(),
    }
    records = {name: json.loads(table.to_json(orient="records")) for name, table in rows.items()}
    data = {"finding": as_written(sentence).replace("\u00a0", " "), **records}
    shown = hpl_scaling.laws_table(points, laws, predicted)
    table = pd.DataFrame(shown.rows, columns=list(shown.columns))
    return FitAnswer(sentence, table, data, drawing.scaling(points, best))


def of_model(name: str, file: Path, x: str, y: str) -> FitAnswer:
    """One model fitted to columns of a CSV file; `x` may name several with commas between."""
    model, quantities = find(name), x.split(",")
    table = csv_tables.read(file, *quantities, y, whole=True)
    for name in setting_columns(table, *quantities, y):
        if table.groupby(quantities)[name].nunique(dropna=False).max() > 1:
            several = f"{file} has several values of {name} at one {x}"
            raise FalloffError(f"{several}: fit the rows of one")
    csv_tables.require_numbers(table, *quantities, y)
    # No parameter, and so no value of the curve, a rate or a time, can be below 0.
    if all(low >= 0 for low, _ in model.bounds.values()):
        above = f"column {y!r} has to be above 0 for the model {name}"
        csv_tables.refuse(table, table[y] <= 0, above)
    columns = table[quantities[0]] if len(quantities) == 1 else table[quantities].T
    fitted = fit.fit(model, columns, table[y])
    rows = [
        (parameter, number(value, 4), *map(number, fitted.intervals[parameter]))
        for parameter, value in fitted.estimates.items()
    ]
    shown = pd.DataFrame(rows, columns=["parameter", "estimate", "low (95 %)", "high (95 %)"])
    words = ", ".join(f"{row.parameter} = {row.estimate}" for row in shown.itertuples())
    mean = abs(table[y].mean())
    of_mean = fitted.sigma / mean if np.isfinite(fitted.sigma) and mean > 0 else None
    off = f"; the points scatter around it by {percent(of_mean)} of the mean {y}" if of_mean else ""
    sentence = f"{_title(model)} gives {words}{off} ({counted(fitted.n, 'point')})."
    figure = None
    if len(quantities) == 1:
        figure = _drawn(x, y, table[x].values, table[y].values, {name: (model, fitted.estimates)})
    return FitAnswer(sentence, shown, fitted.as_json(), figure)


def of_models(models: Sequence[str], file: Path, x: str, y: str, block: str) -> FitAnswer:
    """All these models compared on the blocks of a CSV file."""
    curves = [find(name) for name in models]
    table = csv_tables.read(file, x, y, block)
    at, values = csv_tables.blocks(table, x, y, block)
    csv_tables.refuse(table, table[y] <= 0, f"column {y!r} has to be above 0 for these models")
    compared = model_comparison.compare(curves, at, values)
    best = [entry for entry in compared if entry["pooled"]]
    if not best:
        raise FalloffError(f"no model can be fitted: {compared[0]['refused']}")
    last = f"{x} = {at[-1]:g}"
    rows = [
        {
            "model": entry["model"],
            "AICc": number(entry["pooled"] and entry["pooled"]["aicc"], 4),
            "parameters (95 % interval over the blocks)": _in_words(entry),
            f"error at {last}": percent(entry["held_out"] and entry["held_out"]["error"]),
            "not fitted because": entry["refused"][:60],
        }
        for entry in compared
    ]
    blocks = counted(len(values), "block")
    sentence = f"{_best_in_words(best, last, y, len(at))} ({blocks})."
    drawn = {
        entry["model"]: (find(entry["model"]), entry["pooled"]["estimates"]) for entry in best[:3]
    }
    figure = _drawn(x, y, np.tile(at, len(values)), values.ravel(), drawn)
    shown = pd.DataFrame(rows)
    if not shown.iloc[:, -1].any():
        shown = shown.iloc[:, :-1]
    return FitAnswer(sentence, shown, compared, figure)


def _best_in_words(fitted: Sequence[dict], last: str, y: str, distinct: int) -> str:
    """Which of the fitted models, the best first, is the best, and by what."""
    criterion, title = model_comparison.ranked_by(fitted), _title(find(fitted[0]["model"]))
    of = f"of {len(fitted)} models"
    few = f"{distinct} distinct x are too few for AICc to choose {of}"
    if not criterion:
        within = percent(model_comparison.CLOSE, 0)
        nothing = f"none predicts {y} at {last} within {within}"
        return f"Which model is the best cannot be said: {few}, and {nothing}"
    why = {
        model_comparison.AICC: f"has the best AICc {of}",
        model_comparison.PARAMETERS: f"meets every point with the fewest parameters {of}",
        model_comparison.HELD_OUT: f"predicts {last} best, but {few}",
    }[criterion]
    error = ""
    if held := fitted[0]["held_out"]:
        wrong = percent(held["error"])
        error = f"; without {last} it predicts {y} there with an error of {wrong}"
    return f"{title} {why}{error}"


def _title(model: Model) -> str:
    return f"{model.title[0].upper()}{model.title[1:]}"


def _in_words(compared: Mapping) -> str:
    if not compared["pooled"]:
        return "—"
    intervals = compared["intervals_95"]
    return ", ".join(
        f"{name} {estimate(value, *intervals.get(name, (np.nan, np.nan)))}"
        for name, value in compared["pooled"]["estimates"].items()
    )


def _drawn(x: str, y: str, at: np.ndarray, values: np.ndarray, curves: Mapping) -> Figure:
    """The points and the curves of the models."""
    with style.styled():
        figure, axes = drawing.new_figure(3.2)
        axes.plot(at, values, "o", color=style.INK, markersize=3.5, alpha=0.6, label="data")
        grid = np.linspace(float(np.min(at)), float(np.max(at)), 200)
        lines = ("-", "--", ":")
        for (name, (model, estimates)), line in zip(curves.items(), lines):
            with np.errstate(all="ignore"):
                curve = model.function(grid, **estimates)
                axes.plot(grid, curve, line, label=name.replace("_", " "))
        axes.set(xlabel=x, ylabel=y)
        axes.legend()
    return figure
