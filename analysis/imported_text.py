"""What an import says in the terminal: its results, what is missing, and what does therefore not follow."""

import numpy as np
import xarray as xr

from analysis.schema import schema
from analysis.imported_hpl import Imported, interconnects
from analysis.wording import HARD_SPACE, counted, number, percent, percent_range

_NO_READINGS = ("start", "wall_time")  # of the trial and not of what was measured


def summary(dataset: xr.Dataset) -> str:
    """How many results there are in how many files, then the readings of each, or why it has none."""
    files = len(set(dataset.file.values.tolist()))
    head = f"{counted(dataset.sizes['trial'], 'result')} in {counted(files, 'file')}: measured evidence, imported"
    lines = zip(dataset.file.values, _readings(dataset), dataset.reason.values)
    said = [head, *(f"  {file}: {readings or reason}" for file, readings, reason in lines)]
    return "\n".join(said).replace(HARD_SPACE, " ")


def hpl(study: Imported) -> str:
    """The best settings of each interconnect and node count with their efficiency or rate, then the notes."""
    names, noun = interconnects(study), {"nodes": "node", "processes": "rank"}[study.abscissa]
    head = "HPL's efficiency, of Rpeak:" if study.ordinate == "efficiency" else "HPL's rate:"
    rows = [
        f"  {names[row.interconnect]}, {counted(int(row.x), noun)}: {_value(study, row)} "
        f"(N = {row.N:g}, NB = {row.NB:g}, {row.P:g} x {row.Q:g}; {_runs(study, row)})"
        for row in study.best.itertuples()
    ]
    return "\n".join([head, *rows, *(f"note: {note}" for note in study.notes)]).replace(HARD_SPACE, " ")


def caption(study: Imported) -> str:
    """What has to stand below the figure: its evidence, how many runs, the mean, and the interval if there is one."""
    least, most = int(study.best.runs.min()), int(study.best.runs.max())
    runs = counted(least, "run") if least == most else f"{least} to {most} runs"
    interval = "with 95 % t intervals over the runs" if study.best.low.notna().all() else "not all with an interval"
    what = "efficiency" if study.ordinate == "efficiency" else "rate"
    about = f"HPL's {what} (measured evidence, imported; n = {runs} a point)"
    said = f"{about}: harmonic means of the best settings, {interval}."
    return said.replace(HARD_SPACE, " ")


def _readings(dataset: xr.Dataset) -> list[str]:
    """The names and values of each trial's readings, of a list its ends; empty where there are none."""
    said: list[list[str]] = [[] for _ in range(dataset.sizes["trial"])]
    for name in schema()["variables"]:
        values = dataset[name].values
        if values.dtype.kind == "f" and name not in _NO_READINGS:
            unit = dataset[name].units
            for trial, known in enumerate(np.isfinite(values)):
                if known.any():
                    ends = np.atleast_1d(values[trial])[np.atleast_1d(known)][[0, -1]]
                    text = " ... ".join(f"{value:.9g}" for value in dict.fromkeys(ends.tolist()))
                    said[trial].append(f"{name} {text}" + (f" {unit}" if unit != "1" else ""))
    return [", ".join(readings) for readings in said]


def _value(study: Imported, row) -> str:
    return percent(row.mean) if study.ordinate == "efficiency" else f"{number(row.mean, 4)} Gflop/s"


def _runs(study: Imported, row) -> str:
    if np.isnan(row.low):
        return f"{counted(row.runs, 'run')}: no interval"
    ends = (row.low, row.high)
    interval = percent_range(ends) if study.ordinate == "efficiency" else " to ".join(number(end, 4) for end in ends)
    return f"{row.runs} runs: 95 % interval {interval}"
