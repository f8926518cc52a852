"""Does the mean of a few blocks lie in a range? By two one-sided tests, or by a t test that it does not."""

from dataclasses import dataclass

import numpy as np

from analysis.inference.intervals import t_interval
from runners.record import FalloffError

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
Pair = tuple[float, float]
UNKNOWN = (np.nan, np.nan)


@dataclass(frozen=True)
class InRange:
    """A verdict with the mean, its 90 % and 95 % t intervals and the number of values; unknown is NaN."""

    kind: str
    estimate: float
    interval_90: Pair
    interval_95: Pair
    n: int
    reason: str = ""


def judge_range(values, at_least: float, at_most: float, ratios: bool = False) -> InRange:
    """Judge whether the mean of `values`, shape (blocks,), lies in [at_least, at_most]; NaN is left out.

    By `kind_of`; with fewer than two values it is undecided. `ratios` are judged as logarithms, so that the
    estimate is their geometric mean. Raises FalloffError when one of them is not above 0.
    """
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    if ratios and (values <= 0).any():
        raise FalloffError(f"a ratio of {values.min():g} has no logarithm: give ratios above 0")
    if not len(values):
        return InRange(UNDECIDED, np.nan, UNKNOWN, UNKNOWN, 0, "no block has a value")
    scaled, back = (np.log(values), np.exp) if ratios else (values, float)
    estimate = float(back(scaled.mean()))
    if len(values) < 2:
        return InRange(UNDECIDED, estimate, UNKNOWN, UNKNOWN, 1, "a single block has no interval")
    inner, outer = (tuple(float(back(end)) for end in t_interval(scaled, c)[2:]) for c in (0.90, 0.95))
    return InRange(kind_of(inner, outer, at_least, at_most), estimate, inner, outer, len(values))


def kind_of(interval_90: Pair, interval_95: Pair, at_least: float, at_most: float) -> str:
    """SUPPORTED: the 90 % interval lies inside [at_least, at_most] (two one-sided tests at 5 %, D. J. Schuirmann,
    J. Pharmacokinet. Biopharm. 15, 1987, 657-680); CONTRADICTED: the 95 % interval lies wholly outside; else
    UNDECIDED, as with an interval that is not known."""
    if at_least <= interval_90[0] and interval_90[1] <= at_most:
        return SUPPORTED
    return CONTRADICTED if interval_95[1] < at_least or interval_95[0] > at_most else UNDECIDED
