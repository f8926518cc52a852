"""What repeated measurements of one point say together, so that none of them stands for all."""

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Repeats:
    """A whole sample and its statistics, in the unit of the values; `variation` is without unit.

    `values` are sorted, `missing` counts those that were NaN. `variation` is the coefficient of variation,
    the standard deviation over the mean. The maximum of a sample grows with its size, so that it stands
    beside the median and is never compared on its own. Unknown is NaN: everything of no value, and the
    variation of one value or about a mean of 0.
    """

    values: tuple[float, ...]
    missing: int
    median: float
    variation: float
    minimum: float
    maximum: float

    @property
    def n(self) -> int:
        """How many values are known."""
        return len(self.values)


def repeats(values) -> Repeats:
    """The statistics of `values`, shape (repeats,); NaN is a missing value."""
    values = np.asarray(values, float)
    known = np.sort(values[np.isfinite(values)])
    missing = len(values) - len(known)
    if not len(known):
        return Repeats((), missing, math.nan, math.nan, math.nan, math.nan)
    mean = float(known.mean())
    spread = float(known.std(ddof=1)) if len(known) > 1 else math.nan
    return Repeats(
        values=tuple(known.tolist()),
        missing=missing,
        median=float(np.median(known)),
        variation=spread / abs(mean) if mean else math.nan,
        minimum=float(known[0]),
        maximum=float(known[-1]),
    )
