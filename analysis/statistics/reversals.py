"""Where a sequence that should not fall does fall, such as bandwidth over longer messages, or
efficiency over fewer nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Reversal:
    """A fall from one position of a sequence to another behind it, as a part [1] of the value that
    it falls from.
    """

    start: int
    end: int
    fall: float


def reversals(
    means: Sequence[float], lows: Sequence[float], highs: Sequence[float], margin: float
) -> list[Reversal]:
    """Every fall beyond a relative margin from the highest value so far to the lowest that follows,
    in their order.

    `lows` to `highs` are the values' intervals, NaN where they are unknown: a fall between values
    whose intervals overlap is none. A fall ends where the values are back within the margin. All
    have the shape (positions,), `means` above 0.
    """
    falls: list[Reversal] = []
    peak = trough = 0

    def close() -> None:
        if trough == peak:
            return
        fall = 1 - means[trough] / means[peak]
        overlap = highs[trough] >= lows[peak]  # False if either is unknown
        if fall > margin and not overlap:
            falls.append(Reversal(peak, trough, float(fall)))

    for at in np.arange(1, len(means)).tolist():
        if means[at] >= (1 - margin) * means[peak]:
            close()
            peak = trough = at if means[at] >= means[peak] else peak
        if means[at] < means[trough]:
            trough = at
    close()
    return falls
