"""What a view's curves say: medians, means and intervals at every point, and a model fitted to whole blocks."""

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pandas as pd
import xarray as xr

from analysis import models
from analysis.explorer.trials import PERCENT, Trials
from analysis.explorer.view import View
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.inference.averages import Kind
from analysis.inference.over_blocks import over_blocks
from analysis.fitting.laws import MODELS
from runners.record import FalloffError

# Which models describe which quantity over which factor; a rate's law of scalability is fitted to n times a share.
OF_SHARES = tuple(name for names in MODELS.values() for name in names)
OF_NODES_TIMES = MODELS["n × share"]
OF_PAIRS = {
    ("goodput", "window_bytes"): ("bandwidth_delay",),
    ("aggregate_goodput", "receivers"): ("shared_capacity",),
    ("token_round_trip", "token_bytes"): ("hockney",),
    ("hpl_rate", "nodes"): ("amdahl", "universal_scalability", "power_law"),
}
REPORTED = "universal_scalability"
OF_ANY = ("constant", "power_law", "segmented")


@dataclass(frozen=True)
class Curve:
    """One series of one dataset.

    `table` is over (block, the abscissa's levels) in the quantity's unit, NaN where a trial is not valid or was left
    out. `summary` has a row for each level: `median`, `mean`, the 95 % t interval `low` and `high`, NaN from one
    value, and `n`.
    """

    source: str
    level: Hashable
    table: pd.DataFrame
    summary: pd.DataFrame


@dataclass(frozen=True)
class Fitted:
    """A model on one curve, or the reason why there is none; with `times_x` it was fitted to x times the values.

    `kind` is that of the quantity's mean.
    """

    fit: BlockFit | None
    refused: str = ""
    times_x: bool = False
    kind: Kind = "cost"

    def band(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Curve and 95 % band at x in the quantity's unit: (mean, low, high), each of shape (x,)."""
        scale = x if self.times_x else 1.0
        return tuple(part / scale for part in self.fit.band(x, self.kind))


def curves(view: View, opened: Mapping[str, Trials]) -> tuple[Curve, ...]:
    """The curves of a view, dataset by dataset; `opened` holds the trials of each of its sources."""
    return tuple(curve for name in view.sources for curve in _curves(view, name, opened[name]))


@lru_cache(maxsize=16)  # points, curves and sentences all begin with it; nobody changes it
def selected(view: View, trials: Trials) -> pd.DataFrame:
    """The rows of the series shown at the other factors' levels, with `counts`: is it in the statistics?"""
    frame = trials.frame
    for name, level in view.fixed:
        if name in trials.factors:
            frame = frame[frame[name] == level]
    frame = frame[frame[view.series].isin(view.shown)]
    there = frame[view.ordinate].notna() if view.ordinate in frame else False
    out = frame.block.isin(view.without_blocks) | frame[view.abscissa].isin(view.without_levels)
    return frame.assign(counts=frame.valid & there & ~out)


def model_names(view: View) -> tuple[str, ...]:
    """The models that describe the view's quantity over its abscissa."""
    if view.ordinate in PERCENT and view.abscissa == "nodes":
        return OF_SHARES
    return OF_PAIRS.get((view.ordinate, view.abscissa), OF_ANY)


def default_model(view: View) -> str:
    """The model that a page begins with: the one that the report draws, or the only one; else none."""
    names = model_names(view)
    return REPORTED if REPORTED in names else names[0] if len(names) == 1 else ""


def fit(view: View, curve: Curve, trials: Trials) -> Fitted:
    """The view's model on a curve; the reason where the data do not carry it."""
    if trials.repeats:
        return Fitted(None, "Imported runs have no blocks, so that no model is fitted to blocks.")
    table = curve.table.dropna(axis="columns", how="all")
    levels = table.columns
    if not pd.api.types.is_numeric_dtype(levels):
        return Fitted(None, f"{view.abscissa} has no numbers to fit a curve over.")
    times_x = view.ordinate in PERCENT and view.abscissa == "nodes" and view.model in OF_NODES_TIMES
    x = levels.to_numpy(float)
    values = table.to_numpy(float) * (x if times_x else 1.0)
    return replace(
        _fitted(view.model, tuple(x), values.shape, values.tobytes(), times_x), kind=trials.quantities[view.ordinate].kind
    )


@lru_cache(maxsize=512)
def _fitted(model: str, x: tuple[float, ...], shape: tuple[int, int], values: bytes, times_x: bool) -> Fitted:
    try:
        found = fit_blocks(models.find(model), np.array(x), np.frombuffer(values).reshape(shape))
    except FalloffError as refusal:
        return Fitted(None, str(refusal))
    except ValueError:
        return Fitted(None, "There are too few points for this model.")
    return Fitted(found, times_x=times_x)


def _curves(view: View, name: str, trials: Trials) -> list[Curve]:
    rows = selected(view, trials)
    rows = rows[rows.counts]
    levels = [it for it in trials.factors[view.abscissa] if (rows[view.abscissa] == it).any()]
    blocks = np.unique(rows.block)
    # Laid out at once: a page has to answer within a blink.
    data = np.full((len(view.shown), len(blocks), len(levels)), np.nan)
    place = [
        pd.Index(labels).get_indexer(rows[of]) for labels, of in ((view.shown, view.series), (levels, view.abscissa))
    ]
    if len(rows):
        data[place[0], np.searchsorted(blocks, rows.block), place[1]] = rows[view.ordinate]
    kind = trials.quantities[view.ordinate].kind if view.ordinate in trials.quantities else "cost"
    means = over_blocks(xr.DataArray(data, dims=("series", "block", "x")), kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the median of nothing is NaN, as it should be
        medians = np.nanmedian(data, axis=1) if len(blocks) else np.full((len(view.shown), len(levels)), np.nan)
    found = []
    for at, level in enumerate(view.shown):
        columns = {it: means[it].values[at] for it in ("mean", "low", "high")}
        told = pd.DataFrame({"median": medians[at], **columns, "n": means.blocks.values[at]}, index=levels)
        found.append(Curve(name, level, pd.DataFrame(data[at], blocks, levels), told))
    return found
