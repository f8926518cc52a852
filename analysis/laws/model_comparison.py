"""Compare models: their support by the data, their prediction of the largest configuration, their
intervals."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from analysis.laws.block_fit import BlockFit, fit_blocks
from analysis.laws.fit import IS_EXACT, Fit, fit_known
from analysis.laws.models import Model, Values
from analysis.statistics.intervals import average
from runners.records.record import FalloffError

# Relative error of an estimate or an interval's end that blocks without scatter may have.
ROUNDING = 1e-6
# What ranks models: the number of parameters of those that are exact, the AICc, or the held-out
# error.
PARAMETERS, AICC, HELD_OUT = "parameters", "AICc", "held-out error"
CLOSE = 0.10  # a held-out error that is larger recommends no model


def compare(curves: Iterable[Model], x: ArrayLike, table: ArrayLike) -> list[dict]:
    """Compare models of `table`, shape (block, points), whose last column is the largest
    configuration.

    x has shape (points,), or (quantities, points) for models of several quantities. Missing values
    are NaN: the pooled fit uses every known point, the rest only complete blocks. The result is
    plain JSON data, one dictionary per model. The best comes first, by what `ranked_by` says, in
    the order given if that says nothing; models that this does not rank follow, and models that the
    data do not allow are last. Refused parts are None or empty, with the reason: the `pooled` fit,
    the `intervals_95` of the parameters over the blocks (`interval_kind`), and `held_out`.
    """
    x, table = np.asarray(x, float), np.asarray(table, float)
    compared = [_compared(model, x, table) for model in curves]
    criterion = ranked_by(compared)

    def rank(model: dict) -> tuple:
        value = _criteria(model).get(criterion)
        return model["pooled"] is None, value is None, value or 0.0

    return sorted(compared, key=rank)


def ranked_by(compared: Iterable[dict]) -> str:
    """What ranks models that `compare` fitted: PARAMETERS if any is exact; AICC if two or more have
    one, else HELD_OUT if two or more have an error and the smallest is CLOSE; empty if nothing
    does. A model that alone has a criterion is not the best by it."""
    criteria = list(map(_criteria, compared))
    names = list(chain.from_iterable(criteria))
    if PARAMETERS in names:
        return PARAMETERS
    if names.count(AICC) > 1:
        return AICC
    errors = [of_model[HELD_OUT] for of_model in criteria if HELD_OUT in of_model]
    return HELD_OUT if len(errors) > 1 and min(errors) <= CLOSE else ""


def _criteria(compared: dict) -> dict[str, float]:
    """The criteria of one fitted model; the smallest is the best."""
    pooled, held = compared["pooled"], compared["held_out"]
    if pooled is None:
        return {}
    criteria = {AICC: pooled["aicc"], HELD_OUT: held and abs(held["error"])}
    if pooled["aicc_refused"] == IS_EXACT:
        criteria[PARAMETERS] = len(pooled["estimates"])
    return {name: value for name, value in criteria.items() if value is not None}


def _compared(model: Model, x: Values, table: Values) -> dict:
    parts = ("refused", "pooled", "intervals_95", "interval_kind", "held_out", "held_out_refused")
    compared: dict[str, Any] = {
        "model": model.name,
        **dict(zip(parts, ("", None, {}, "", None, ""))),
    }
    try:
        pooled = fit_known(model, x, table)
    except FalloffError as refusal:
        return compared | {"refused": str(refusal)}
    compared["pooled"] = pooled.as_json()
    try:
        blocks = fit_blocks(model, x, table)
        compared["intervals_95"], compared["interval_kind"] = intervals_of(pooled, blocks)
    except FalloffError as refusal:
        compared["interval_kind"] = f"none: {refusal}"
    try:
        compared["held_out"] = held_out_last(model, x, table)
    except FalloffError as refusal:
        compared["held_out_refused"] = str(refusal)
    return compared


def intervals_of(pooled: Fit, blocks: BlockFit) -> tuple[dict, str]:
    """The parameters' t intervals over fitted blocks, and their kind.

    There are none if an interval misses the estimate from all points. The blocks then do not
    determine that parameter, and their mean comes from runaway fits.
    """
    if blocks.blocks < 2:
        return {}, "none: a single block"
    intervals = {
        name: np.clip(blocks.parameter(name, "cost")[1:], *bounds).tolist()
        for name, bounds in pooled.model.bounds.items()
    }
    for name, (low, high) in intervals.items():
        estimate = pooled.estimates[name]
        slack = ROUNDING * max(abs(low), abs(high), abs(estimate))
        if not low - slack <= estimate <= high + slack:
            outside = (
                f"{name} is {estimate:.3g} over all points, {low:.3g} to {high:.3g} over the blocks"
            )
            return {}, f"none: {outside}; the blocks do not tell it"
    return intervals, f"t interval over {blocks.blocks} blocks"


def held_out_last(model: Model, x: Values, table: Values) -> dict:
    """How well the other columns of `table` predict the last.

    `error` is the geometric mean over the blocks of predicted / measured, less one; `interval` is
    its 95 % t interval, None from one block; `blocks` is the number of blocks. Raises FalloffError
    with the reason if there is none.
    """
    whole = table[np.isfinite(table).all(axis=1)]
    estimates = fit_blocks(model, x[..., :-1], whole[:, :-1]).by_block
    with np.errstate(all="ignore"):
        factors = model.function(x[..., -1:], *estimates.T[:, :, None])[:, 0] / whole[:, -1]
    factors = factors[np.isfinite(factors)]
    if not len(factors):
        raise FalloffError("The smaller configurations give no finite error of the largest.")
    if impossible := int((factors <= 0).sum()):
        raise FalloffError(
            "The smaller configurations predict nothing above 0 of the largest in "
            f"{impossible} blocks."
        )
    mean, low, high = (float(factor) - 1 for factor in average(factors, "ratio"))
    interval = [low, high] if len(factors) > 1 else None
    return {"error": mean, "interval": interval, "blocks": len(factors)}
