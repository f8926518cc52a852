"""Ping-pongs that a user has: outputs of OSU, IMB, HPCC or NetPIPE, or a table."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from analysis.dataset import csv_tables
from analysis.imports import importing
from analysis.subjects import messages
from runners.records.record import FalloffError

# HPCC's readings, and the sizes of their messages [B].
_OF_HPCC = {"ping_pong_latency_mean": 8, "ping_pong_bandwidth_mean": 2_000_000}
_UNITS = {"time_us": 1e-6, "time_s": 1.0}
# NetPIPE's rows: bytes, Mbit/s, of 10^6 or 2^20, and s.
_NETPIPE = re.compile(r"^\s*(\d+)\s+(\d+\.\d+)\s+(\d+\.\d+)\s*$", re.M | re.ASCII)


def read(file: Path) -> xr.Dataset:
    """The times of messages one way in a file, in the form of `messages.tables`, of one series: a
    CSV file with the columns `size` [B] and `time_us` or `time_s`, or outputs of OSU, IMB, HPCC or
    NetPIPE.

    Raises FalloffError where there are none, or those of several networks or tests.
    """
    if file.suffix == ".csv":
        return _of_table(file)
    if (of_netpipe := _of_netpipe(file)) is not None:
        return of_netpipe
    (tool, files), *others = importing.by_tool(str(file), [])
    runs = importing.dataset_of(tool, files)
    if others:
        raise FalloffError(f"{file} holds outputs of several tools: give those of one")
    if all(runs[name].notnull().any() for name in _OF_HPCC):
        latency, bandwidth = (float(runs[name].mean()) for name in _OF_HPCC)
        short, long = _OF_HPCC.values()
        return _one_series({"size": [short, long], "time": [latency, long / bandwidth]})
    tables = messages.tables(runs)
    series = tables.series[tables.time.notnull().any(["run", "size"])]
    if series.size != 1:
        names = ", ".join(series.values.tolist())
        what = f"several times of messages: {names}" if names else "no times of messages"
        raise FalloffError(f"{file} holds {what}; give those of one network")
    return tables.sel(series=series)


def _of_table(file: Path) -> xr.Dataset:
    table = csv_tables.read(file, whole=True)
    times = [name for name in _UNITS if name in table]
    if len(times) != 1 or "size" not in table:
        need = "needs the columns size [B] and time_us or time_s, one way"
        raise FalloffError(f"{file} {need}; it has: {', '.join(map(str, table.columns))}")
    (time,) = times
    csv_tables.require_numbers(table, "size", time)
    csv_tables.refuse(table, table[time] <= 0, f"column {time!r} has to be above 0")
    csv_tables.refuse(table, table["size"] < 0, "column 'size' has to be 0 or more")
    return _one_series({"size": table["size"], "time": _UNITS[time] * table[time]})


def _of_netpipe(file: Path) -> xr.Dataset | None:
    """The rows of NetPIPE's np.out, whose size, rate and time agree; None of another file."""
    if not file.is_file():
        return None
    text = file.read_text(encoding="utf-8", errors="replace")
    rows = np.array(_NETPIPE.findall(text), float).reshape(-1, 3)
    if len(rows) < 2 or len(rows) < len(text.split("\n")) - 1:
        return None
    size, rate, time = rows.T
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = np.median(8 * size / time / rate)
    is_rate = np.isclose(unit, (1e6, 2**20), rtol=0.01).any()
    return _one_series({"size": size, "time": time}) if is_rate and (time > 0).all() else None


def _one_series(columns: Mapping) -> xr.Dataset:
    """Sizes [B] and times [s] of messages in the form of `messages.tables`."""
    table = pd.DataFrame(columns).dropna()
    table = table.assign(series="", run=table.groupby("size").cumcount())
    times = table.set_index(["run", "series", "size"]).to_xarray()
    return times.assign_coords(network=("series", [""]))
