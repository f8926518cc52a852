"""Laws of efficiency over nodes: fitted to each network, judged against its data, and tested on
node counts that they did not see."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from analysis.laws.block_fit import BlockFit, fit_blocks, follows, misfit
from analysis.laws.fit import IS_EXACT, Fit, fit_known
from analysis.laws.model_comparison import held_out_last, intervals_of
from analysis.laws.models import Model, Values, find
from analysis.statistics.intervals import units
from runners.records.record import FalloffError

LAWS = ("constant", "amdahl", "universal_scalability", "power_law", "hpl_messages")
# Their curve is a rate, and an efficiency when divided by n.
OF_A_RATE = ("amdahl", "universal_scalability")
FAR = 4  # more than this many times the nodes, or N, that were seen are beyond them
# Coordinates over nodes that the law of HPL's messages needs.
SETTINGS = ("N", "NB", "P", "Q", "node_rate")


@dataclass(frozen=True)
class Law:
    """A model of one network's efficiency [1] over nodes; `refused` says why there is no fit, and
    is empty if there is one.

    `pooled` is the fit to every point, `blocks` the fit to every complete block. `weight` is
    Akaike's weight among the laws of its network. `farthest` [1] is the largest relative distance
    of the blocks' mean curve from a node count's mean. `lack_of_fit` is the p-value of no lack of
    fit beyond scatter. `follows` is whether the law may be drawn and quoted: it is close to its
    data, which are at more node counts than it has parameters.
    """

    model: Model
    measured: xr.DataArray
    pooled: Fit | None = None
    blocks: BlockFit | None = None
    weight: float = np.nan
    farthest: float = np.nan
    lack_of_fit: float = np.nan
    follows: bool = False
    refused: str = ""

    @property
    def verdict(self) -> str:
        """Whether the law follows its data or misses them, or the refusal."""
        if self.refused or self.is_tested:
            return self.refused or ("follows its data" if self.follows else "misses its data")
        return "as many parameters as node counts"

    @property
    def is_tested(self) -> bool:
        """Whether there are more node counts than parameters, so that the law could miss them."""
        return self.pooled is not None and self.pooled.distinct_x > len(self.pooled.estimates)

    def parameters(self) -> dict[str, tuple[float, float, float]]:
        """Estimate and 95 % interval of each parameter: the t interval over blocks, else that of
        the pooled fit; empty where the runs do not tell latency and bandwidth apart."""
        if self.pooled is None or self.blocks is None:
            return {}
        if self.model.not_apart(_x(self.model, self.measured)):
            return {}
        of_blocks, _ = intervals_of(self.pooled, self.blocks)
        intervals = of_blocks or self.pooled.intervals
        return {name: (self.pooled.estimates[name], *intervals[name]) for name in intervals}

    def band(self) -> xr.Dataset:
        """`mean`, `low` and `high` [1] of the law over the nodes of the data: the blocks' mean
        curve and its pointwise 95 % t interval. Raises FalloffError if there is no fit."""
        if self.blocks is None:
            raise FalloffError(f"{self.model.title} has no curve: {self.refused}")
        curve = self.blocks.band(_x(self.model, self.measured), "cost")
        values = {name: ("nodes", ends) for name, ends in zip(("mean", "low", "high"), curve)}
        return xr.Dataset(values, {"nodes": self.measured.nodes.values})


@dataclass(frozen=True)
class Laws:
    """The laws of each level of the dim `over`, such as each interconnect, in the order in which
    they were requested."""

    over: str
    by_level: Mapping[str, tuple[Law, ...]]

    def __getitem__(self, which: tuple[str, str]) -> Law:
        """The law of a level by its model's name; raises FalloffError if it was not fitted."""
        by_name = {(level, law.model.name): law for level, law in self}
        if which not in by_name:
            raise FalloffError(f"no {which[1]} was fitted to {which[0]}")
        return by_name[which]

    def __iter__(self) -> Iterator[tuple[str, Law]]:
        """Every law, with its level."""
        return ((level, law) for level, laws in self.by_level.items() for law in laws)

    def nodes(self) -> set[int]:
        """Every number of nodes that was measured."""
        return {int(n) for _, law in self for n in law.measured.nodes.values}

    def best(self, level: str) -> Law | None:
        """The law with the most weight among those that follow a level's data; None if none
        does, or no weight is defined."""
        laws = [law for law in self.by_level[level] if law.follows and np.isfinite(law.weight)]
        return max(laws, key=lambda law: law.weight, default=None)

    def table(self) -> pd.DataFrame:
        """A row for each level and law: AICc weight, largest miss, the p-value of no lack of fit,
        and the verdict."""
        return pd.DataFrame(
            {
                self.over: level,
                "law": law.model.name,
                "weight": law.weight,
                "farthest": law.farthest,
                "lack_of_fit": law.lack_of_fit,
                "verdict": law.verdict,
            }
            for level, law in self
        )

    def parameters(self) -> pd.DataFrame:
        """A row for each parameter: estimate and 95 % interval, in the parameter's own unit."""
        return pd.DataFrame(
            [
                (level, law.model.name, name, *estimate)
                for level, law in self
                for name, estimate in law.parameters().items()
            ],
            columns=[self.over, "law", "parameter", "estimate", "low", "high"],
        )


def fit_each(
    efficiency: xr.DataArray, over: str = "interconnect", models: Iterable[str] = LAWS
) -> Laws:
    """Fit every law to every level of `over`.

    `efficiency` [1], the share of the rate of all nodes, has the dims (block, `over`, nodes), NaN
    where a run is missing. The law of HPL's messages needs the coordinates N, NB, P, Q [1] and
    node_rate [flop/s] over nodes, and is refused without them; the others need only node counts. A
    block stands for a unit of repetition (`intervals.units`).
    Raises FalloffError for an unknown model or dim.
    """
    if missing := {"block", "nodes", over}.difference(map(str, efficiency.dims)):
        raise FalloffError(f"the efficiency has no dim {', '.join(sorted(missing))}")
    by_level = {}
    for level in efficiency[over].values.tolist():
        measured = units(efficiency.sel({over: level}), "ratio").transpose("block", "nodes")
        measured = measured.dropna("nodes", how="all")
        laws = [_fitted(law, measured) for law in map(_law, models)]
        weights = _akaike_weights([law.pooled for law in laws])
        by_level[level] = tuple(replace(law, weight=weight) for law, weight in zip(laws, weights))
    return Laws(over, by_level)


def held_out(laws: Laws, up_to: int, at: int) -> pd.DataFrame:
    """The prediction of every law, fitted to at most `up_to` nodes, for `at` nodes: a row for each
    level and law.

    `error` [1] is predicted over measured less one, the geometric mean over `blocks`, with a 95 % t
    interval `low`, `high`, NaN from one block. `refused` says why there is none, and `beyond` why
    `at` is beyond what was seen: there only the law of HPL's messages predicts. Raises FalloffError
    if there is nothing from which to predict.
    """
    nodes = laws.nodes()
    if at not in nodes or not min(nodes) <= up_to < at:
        raise FalloffError(f"no node count up to {up_to} from which to predict {at} nodes")
    rows = []
    for level, law in laws:
        counts = law.measured.nodes
        measured = law.measured.sel(nodes=(counts <= up_to) | (counts == at)).sortby("nodes")
        prediction: dict[str, Any] = {"error": np.nan, "interval": None, "blocks": 0}
        reason = beyond = ""
        try:
            if at not in counts:
                raise FalloffError(f"none of {at} nodes was measured")
            if not (counts <= up_to).any():
                raise FalloffError(f"none of up to {up_to} nodes was measured")
            beyond = _beyond(measured)
            if beyond and law.model.name != "hpl_messages":
                raise FalloffError(f"beyond what was seen: {beyond}")
            prediction = held_out_last(law.model, _x(law.model, measured), measured.values)
        except FalloffError as refusal:
            reason = str(refusal)
        ends = prediction["interval"] or (np.nan, np.nan)
        estimate = prediction["error"], *ends
        rows.append((prediction["blocks"], level, law.model.name, *estimate, reason, beyond))
    columns = ["blocks", laws.over, "law", "error", "low", "high", "refused", "beyond"]
    return pd.DataFrame(rows, columns=columns)


def _beyond(measured: xr.DataArray) -> str:
    """Why the last of these node counts is beyond what the others show; empty if it is not."""
    for name in ("nodes", "N"):
        if name in measured.coords:
            *others, last = measured[name].values.tolist()
            if last > FAR * max(others):
                return f"{name} {last:g} is more than {FAR} times {max(others):g}"
    for name, grids in (("P", "1 x Q"), ("Q", "P x 1")):
        if name in measured.coords:
            *others, last = measured[name].values.tolist()
            if max(others) == 1 < last:
                return f"all grids that were seen are {grids}"
    return ""


def with_settings(points: xr.Dataset) -> xr.DataArray:
    """The share of the nodes' known rate [1] at a campaign's points, with what the law of HPL's
    messages needs over nodes.

    `points` is the result of `derive.points`. If a measured quantity such as a node's rate differs
    between blocks or networks, its mean is used; if HPL's own settings differ, FalloffError is
    raised.
    """
    settings = points[["N", "NB", "P", "Q"]].assign(
        node_rate=1e9 * points.known_rate / points.nodes
    )
    others = [dim for dim in settings.dims if dim != "nodes"]
    mean = settings.mean(others)
    spread = (settings.max(others) - settings.min(others)).drop_vars("node_rate")
    if varied := [str(name) for name, differences in spread.items() if (differences > 0).any()]:
        raise FalloffError(f"{', '.join(varied)} are not the same at one node count in all runs")
    if (mean.P * mean.Q != mean.nodes).any():
        raise FalloffError("the law of HPL's messages is of one process a node")
    return points.share.assign_coords({name: ("nodes", mean[name].values) for name in SETTINGS})


def _law(name: str) -> Model:
    """The model of an efficiency over nodes. One of a rate over n is divided by n, so that gamma is
    the efficiency of one node."""
    model = find(name)
    if model.name not in OF_A_RATE:
        return model
    rate = model.function
    return replace(
        model,
        function=wraps(rate)(lambda n, *of, **named: rate(n, *of, **named) / n),
        guess=lambda n, efficiency: model.guess(n, n * efficiency),
        equation=model.equation.replace("X(n)", r"\frac{X(n)}{n}").replace(r"\gamma n", r"\gamma"),
    )


def _x(model: Model, runs: xr.DataArray) -> Values:
    """A model's x: node counts, or the settings of HPL's runs."""
    if model.name != "hpl_messages":
        return runs.nodes.values.astype(float)
    if missing := [name for name in SETTINGS if name not in runs.coords]:
        raise FalloffError(f"the runs' {', '.join(missing)} are not known")
    return np.stack([runs[name].values.astype(float) for name in SETTINGS])


def _fitted(model: Model, measured: xr.DataArray) -> Law:
    table, parameters = measured.values, len(model.parameters)
    try:
        x = _x(model, measured)
        pooled, blocks = fit_known(model, x, table), fit_blocks(model, x, table)
    except FalloffError as error:
        return Law(model, measured, refused=str(error))
    curve = blocks.band(x, "cost")[0]
    law = Law(model, measured, pooled, blocks, np.nan, *misfit(table, curve, parameters))
    return replace(law, follows=law.is_tested and follows(table, curve, parameters))


def _akaike_weights(fits: Sequence[Fit | None]) -> list[float]:
    """Akaike's weight of each fit; NaN without an AICc, or if only one of several fits has one.

    If fits are exact, the one with the fewest parameters has all the weight."""
    exact = [fit for fit in fits if fit and fit.aicc_refused == IS_EXACT]
    if exact:
        best = min(exact, key=lambda fit: len(fit.estimates))
        return [float(fit is best) if fit else np.nan for fit in fits]
    criteria = np.array([fit.aicc if fit else None for fit in fits], float)
    if np.isfinite(criteria).sum() < min(2, sum(map(bool, fits))) or not any(fits):
        return [np.nan] * len(fits)
    weights = np.exp(-(criteria - np.nanmin(criteria)) / 2)
    return (weights / np.nansum(weights)).tolist()
