"""TCP over long paths: the socket buffer that fills each, and the scatter of a transfer that is
repeated.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike
from scipy import stats

from analysis.dataset import capacity
from analysis.dataset.wire import wire_limit
from analysis.laws.block_fit import attempt
from analysis.laws.models import bandwidth_delay
from analysis.statements.statement import Statement, value
from analysis.statistics.intervals import average, finite

# Share of the largest goodput of the same transfer; it is the ratio of the Grid'5000 source's two
# maxima.
MUCH_LOWER = 2 / 3
MCKAY = "95 % modified McKay interval over the transfers"
PLACE = ["path", "congestion_control", "direction"]
FEWEST = 10  # values needed to show reproducibility


def described(dataset: xr.Dataset, goodput: xr.DataArray) -> xr.Dataset:
    """What each path's description allows, over (path, direction): `rate` on the wire and
    `wire_limit` of the payload [bit/s], `round_trip` [s], and their `product` [B], the window that
    theory requires."""
    paths, given = dataset.falloff.networks, dataset.falloff.settings
    ends = given["sender"], given["receiver"]
    rows = []
    for path, direction in product(goodput.path.values.tolist(), goodput.direction.values.tolist()):
        way = capacity.way(paths[path].table, *(ends if direction == "forward" else ends[::-1]))
        limit = wire_limit(way.rate, paths[path].mtu)
        window = bandwidth_delay.knee(limit, way.round_trip)
        rows.append((path, direction, way.rate, limit, way.round_trip, window))
    columns = ["path", "direction", "rate", "wire_limit", "round_trip", "product"]
    table = pd.DataFrame(rows, columns=columns).set_index(columns[:2]).to_xarray()
    return table.sel(path=goodput.path, direction=goodput.direction)


def by_place(values: xr.DataArray) -> Iterator[tuple[tuple[str, ...], xr.DataArray]]:
    """The values at each PLACE, over the other dims."""
    for place in product(*(values[name].values.tolist() for name in PLACE)):
        yield place, values.sel(dict(zip(PLACE, place)))


def filling(goodput: xr.DataArray, described: xr.Dataset) -> pd.DataFrame:
    """The buffer that fills each path, a row for each place: `buffer`, `low`, `high` [B], a 95 % t
    interval over the blocks; `product` [B] and `ratio` [1] to it; `quoted`, whether the model
    follows the data of the `blocks`, else the `reason`. Unknown is NaN.

    The model is at most a buffer in each round trip, up to a limit, fitted to every block (RFC
    1323, see `models.bandwidth_delay`).
    """
    windows, rows = goodput.window_bytes.values.astype(float), []
    for place, values in by_place(goodput):
        table = values.transpose("block", "window_bytes").values
        model, buffer = attempt(bandwidth_delay.MODEL, windows, table), [np.nan] * 3
        if model.fitted:
            knees = bandwidth_delay.knee(*model.fitted.by_block.T)
            buffer = [*map(float, average(knees, "ratio"))]
        window = float(described["product"].sel(path=place[0], direction=place[2]))
        ratio = buffer[0] / window
        rows.append((*place, *buffer, window, ratio, model.follows, model.reason, model.blocks))
    columns = ["buffer", "low", "high", "product", "ratio", "quoted", "reason", "blocks"]
    return pd.DataFrame(rows, columns=[*PLACE, *columns]).set_index(PLACE)


def much_slower(runs: xr.Dataset, goodput: xr.DataArray) -> Statement:
    """The share of transfers [1] below MUCH_LOWER of the fastest of their kind, with its
    Clopper-Pearson interval, by which a claim is judged. `goodput` is over (block, *PLACE)."""
    n = goodput.count().item()
    slow, share = (goodput < MUCH_LOWER * goodput.max("block")).sum().item(), (None,) * 3
    if n:  # Biometrika 26, 1934, 404-413
        share = slow / n, *stats.binomtest(slow, n).proportion_ci(0.95)
    text = "share of transfers below two thirds of the fastest of their kind"
    about = {"kind": "95 % Clopper-Pearson interval", "n_of": "transfer", "name": "much_slower"}
    return value(runs, text, "share", share, n, **about)


@dataclass(frozen=True)
class Repeats:
    """How much `n` repeats vary, and whether they repeat (`answer`: yes, no or undecided).

    `variation` is the coefficient of variation [1], the standard deviation over the mean, NaN from
    one value or if the mean is 0. `interval` is its 95 % interval; an end is infinite if the sample
    allows any variation, and NaN if the variation is.
    """

    answer: str
    n: int
    variation: float
    interval: tuple[float, float]


def judge_repeats(values: ArrayLike, margin: float) -> Repeats:
    """Judge `values`, shape (repeats,), NaN being missing; `margin` is the largest variation
    accepted.

    The answer is no if the whole interval of the variation lies above the margin, and yes if it
    lies below and there are FEWEST values or more. Fewer values can easily miss a rare state.
    """
    measured = finite(values)
    n, variation = len(measured), math.nan
    if n > 1 and measured.mean():
        variation = float(measured.std(ddof=1) / abs(measured.mean()))
    low, high = variation_interval(variation, n)
    answer = "undecided"
    if low > margin:
        answer = "no"
    elif high < margin and n >= FEWEST:
        answer = "yes"
    return Repeats(answer, n, variation, (low, high))


def variation_interval(variation: float, n: int) -> tuple[float, float]:
    """The 95 % interval of the coefficient of variation of n normal values, for variations up to
    about 1/3.

    M. G. Vangel, Confidence intervals for a normal coefficient of variation, Am. Stat. 50 (1996),
    p. 21-26, https://doi.org/10.1080/00031305.1996.10473537: the modified McKay interval.
    """
    if n < 2 or not math.isfinite(variation):
        return math.nan, math.nan
    quantiles = stats.chi2.ppf([0.975, 0.025], n - 1)
    scale = ((quantiles + 2) / n - 1) * variation**2 + quantiles / (n - 1)
    with np.errstate(all="ignore"):
        low, high = np.where(scale > 0, variation / np.sqrt(scale), np.inf)
    return float(low), float(high)
