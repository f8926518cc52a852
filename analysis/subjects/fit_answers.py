"""What `falloff fit` answers: a sentence, a table, a figure, and the rest as data for JSON."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from pydantic_core import to_json

from analysis.dataset import csv_tables, derive
from analysis.dataset.points import in_base, setting_columns
from analysis.laws import fit, model_comparison
from analysis.laws.models import Model, find, hockney, hpl, hpl_messages
from analysis.quoting import as_written
from analysis.statements import drawing, style
from analysis.subjects import hpl_points, hpl_scaling, messages, ping_pong_files
from analysis.wording import counted, estimate, number, percent, plain
from runners.records.record import FalloffError

# Seconds in the unit of time at the end of a column's name.
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "usec": 1e-6, "ms": 1e-3}


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
    sentences.append(hpl_scaling.not_foretold(predicted))
    sentence = " ".join(map(plain, filter(None, sentences)))
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


def of_model(name: str, file: Path, x: str, y: str, ping_pong: Path | None = None) -> FitAnswer:
    """One model fitted to columns of a CSV file; `x` may name several with commas between.

    HPL's rates are in Gflop/s and times of messages in seconds, unless the name of the column `y`
    ends with another unit. `ping_pong` has the times of messages on the network of HPL's runs: only
    the nodes' rate is then fitted.
    """
    model, quantities = find(name), x.split(",")
    if ping_pong and model is not hpl.MODEL:
        raise FalloffError(f"--ping-pong is for the law hpl, not for {model.name}")
    table = csv_tables.read(file, *quantities, y, whole=True)
    for name in setting_columns(table, *quantities, y):
        if table.groupby(quantities)[name].nunique(dropna=False).max() > 1:
            several = f"{file} has several values of {name} at one {x}"
            raise FalloffError(f"{several}: fit the rows of one")
    csv_tables.require_numbers(table, *quantities, y)
    # No parameter, and so no value of the curve, a rate or a time, can be below 0.
    if all(low >= 0 for low, _ in model.bounds.values()):
        above = f"has to be above 0 for the model {model.name}"
        csv_tables.refuse(table, table[y] <= 0, f"column {y!r} {above}")
        for quantity in quantities:
            is_wrong = table[quantity] < 0 if model is hockney.MODEL else table[quantity] <= 0
            csv_tables.refuse(table, is_wrong, f"column {quantity!r} {above}")
    columns = table[quantities[0]] if len(quantities) == 1 else table[quantities].T
    at, scale = np.asarray(columns, float), _si(model, y)
    values = scale * table[y].to_numpy(float)
    if model in (hpl.MODEL, hpl_messages.MODEL):
        return _of_hpl(model, at, values, y, ping_pong)
    fitted = fit.fit(model, at, values)
    figure = None
    if len(quantities) == 1:
        drawn = {model.name: (model, fitted.estimates)}
        figure = _drawn(x, y, at, values / scale, drawn, scale)
    return _of_fit(model, fitted, values, y, figure=figure)


def _of_fit(
    model: Model,
    fitted: fit.Fit,
    values: np.ndarray,
    y: str,
    more: str = "",
    figure: Figure | None = None,
) -> FitAnswer:
    ends = {name: (value, *fitted.intervals[name]) for name, value in fitted.estimates.items()}
    words, table = _in_units(model, ends)
    mean = abs(np.mean(values))
    of_mean = fitted.sigma / mean if np.isfinite(fitted.sigma) and mean > 0 else None
    off = f"; the points scatter around it by {percent(of_mean)} of the mean {y}" if of_mean else ""
    sentence = f"{_title(model)} gives {words}{off} ({counted(fitted.n, 'point')}).{more}"
    return FitAnswer(sentence, table, fitted.as_json() | {"model": model.name}, figure)


def _of_hpl(
    model: Model, x: np.ndarray, values: np.ndarray, y: str, ping_pong: Path | None
) -> FitAnswer:
    """HPL's law; where its runs do not tell latency and bandwidth, the answer says so."""
    model.function(x[..., :1], *np.ones(len(model.parameters)))  # refuses other columns
    why = model.not_apart(x)
    if ping_pong:
        network = latency_bandwidth(ping_pong)
        fitted = fit.fit(hpl.of_network(**network), x, values)
        if not fitted.estimates["gamma"]:
            remedy = f"is it of the network of these runs, and is {y} in Gflop/s?"
            raise FalloffError(f"{ping_pong} leaves no time to compute: {remedy}")
        words, _ = _in_units(model, {name: (cost,) * 3 for name, cost in network.items()})
        answer = _of_fit(model, fitted, values, y, f" {words} are those of {ping_pong}.")
        return replace(answer, data=answer.data | {"given": network})
    if model is hpl.MODEL and (np.rint(x[2] * x[3]) == 1).all():
        alone = fit.fit(hpl.of_network(0.0, 0.0), x, values)
        return _of_fit(model, alone, values, y, f" It does not tell α and β: {why}.")
    if not why:
        fitted = fit.fit(model, x, values)
        why = hpl.no_network(fitted.estimates["alpha"], fitted.estimates["beta"])
        if not why:
            return _of_fit(model, fitted, values, y)
    return _of_sum(model, x, values, why)


def _of_sum(model: Model, x: np.ndarray, values: np.ndarray, why: str) -> FitAnswer:
    """The rate of a process, and the time of all messages of the run in the middle, from runs that
    do not tell latency and bandwidth apart."""
    runs = np.flatnonzero(np.rint(x[2] * x[3]) > 1)
    if not len(runs):
        raise FalloffError(f"These runs tell nothing of a network: {why}.")
    axes = np.eye(len(model.parameters))
    ends = {
        name: fit.combined(model, x, values, axis) for name, axis in zip(model.parameters, axes)
    }
    middle = x[:, sorted(runs, key=lambda run: tuple(x[:, run]))[len(runs) // 2]]
    costs = [cost for cost, _, _ in ends.values()]
    paths = hpl.counts(middle[:4, None])[0]
    longest = paths[(paths @ [*costs, *1 / middle[4:]]).argmax()]
    time = fit.combined(model, x, values, (longest * [1, 1, 0])[: len(axes)])
    total, low, high = (max(end, 0.0) for end in time)
    told = {
        name: (cost, max(least, 0.0), most)  # as `fit` ends an interval at a bound
        for name, (cost, least, most) in ends.items()
        if name == "gamma"
    }
    words, table = _in_units(model, told)
    N, NB, P, Q = middle[:4].astype(int).tolist()
    run = f"N {N}, NB {NB}, {P} x {Q}"
    table.loc[len(table)] = [f"messages of {run} [s]", *map(number, (total, low, high))]
    gives = f"{_title(model)} gives {words}" if told else f"{_title(model)} gives a sum"
    either = ", or" if ";" in why else ";"  # it may name a remedy of its own
    remedy = f"{either} give a ping-pong by --ping-pong" if model is hpl.MODEL else ""
    sentence = (
        f"{gives} ({counted(len(values), 'point')}). α and β are not determined by these runs: "
        f"{why}{remedy}. Together the messages of {run}, with whatever else delays a panel, take "
        f"{estimate(total, low, high)} s."
    )
    data = {
        "model": model.name,
        "units": dict(model.units),
        "estimates": {name: told[name][0] if name in told else None for name in ends},
        "intervals_95": {name: interval for name, (_, *interval) in told.items()},
        "not_determined": why,
        "messages": {"N": N, "NB": NB, "P": P, "Q": Q, "time_s": total, "interval_95": (low, high)},
        "n": len(values),
    }
    return FitAnswer(sentence, table, json.loads(to_json(data, inf_nan_mode="null")), None)


def latency_bandwidth(file: Path) -> dict[str, float]:
    """alpha [s] and beta [s/B] of messages one way, from a file as `ping_pong_files` reads it.

    Raises FalloffError as it does, or where they are none that a network can have.
    """
    (line,) = messages.lines(ping_pong_files.read(file)).values()
    if line.bandwidth is None:
        need = "messages of up to 1 MiB or more are needed, whose times follow a line"
        raise FalloffError(f"{file} does not tell the bandwidth: {need}")
    network = {"alpha": line.latency[0], "beta": 1 / line.bandwidth[0]}
    if why := hpl.no_network(**network):
        raise FalloffError(f"{file}: {why}; is its time in the unit that the column's name says?")
    return network


def _si(model: Model, y: str) -> float:
    """The unit of y in flop/s or s, which its column's name may say."""
    if model is hpl.MODEL:
        unit = re.split(r"[\s_(\[]+", y.rstrip(")]"))[-1]
        size, base = in_base(unit.capitalize())
        return size if base == "flop/s" else 1e9  # as HPL prints it
    return _seconds(y) if model is hockney.MODEL else 1.0


def _seconds(column: str) -> float:
    """The unit of time that a column's name ends with; else a second."""
    unit = re.split(r"[\W_]+", column.rstrip("])"))[-1].lower()
    return _SECONDS.get(unit.replace("μ", "µ"), 1.0)  # Greek mu, or the micro sign


def _in_units(
    model: Model, ends: Mapping[str, tuple[float, float, float]]
) -> tuple[str, pd.DataFrame]:
    """Parameters and their intervals in the units in which they are read: in words, as a table."""
    words, rows = [], []
    for name, values in ends.items():
        symbol, unit, value, low, high = model.readable(name, *values)
        known = f"= {number(value, 4)} {unit}".rstrip()
        words.append(f"{symbol} {known if np.isfinite(value) else 'is not determined'}")
        shown = f"{symbol} [{unit}]" if unit else symbol
        rows.append((shown, number(value, 4), number(low), number(high)))
    columns = ["parameter", "estimate", "low (95 %)", "high (95 %)"]
    return ", ".join(words), pd.DataFrame(rows, columns=columns)


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


def _drawn(
    x: str, y: str, at: np.ndarray, values: np.ndarray, curves: Mapping, scale: float = 1.0
) -> Figure:
    """The points and the curves of the models, which are divided by `scale`."""
    with style.styled():
        figure, axes = drawing.new_figure(3.2)
        axes.plot(at, values, "o", color=style.INK, markersize=3.5, alpha=0.6, label="data")
        grid = np.linspace(float(np.min(at)), float(np.max(at)), 200)
        lines = ("-", "--", ":")
        for (name, (model, estimates)), line in zip(curves.items(), lines):
            with np.errstate(all="ignore"):
                curve = model.function(grid, **estimates) / scale
                axes.plot(grid, curve, line, label=name.replace("_", " "))
        axes.set(xlabel=x, ylabel=y)
        axes.legend()
    return figure
