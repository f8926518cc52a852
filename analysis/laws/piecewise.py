"""The time of a message by its size: a line, or as many as the protocols of an MPI or a shaper's
burst make of it.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from analysis.laws.block_fit import follows
from analysis.wording import estimate

MOST_PIECES = 4  # each of two sizes or more
FLOOR = 1e-3  # of a value: its interval ends there if it reaches below 0


@dataclass(frozen=True)
class Value:
    """An estimate with the ends of its 95 % interval, in its unit; the ends are the value where one
    block was run.
    """

    value: float
    low: float
    high: float

    def times(self, factor: float) -> "Value":
        """All three, multiplied."""
        return Value(self.value * factor, self.low * factor, self.high * factor)

    def __str__(self) -> str:
        return estimate(self.value, self.low, self.high)


@dataclass(frozen=True)
class Piece:
    """The time of messages of these `sizes` [B]: `offset` [s] + `per_byte` [s/B] times the size,
    and the sum of its squared relative errors.

    Beyond the first piece the offset may be below 0: what fits into a shaper's burst passes at
    once.
    """

    sizes: Sequence[int]
    offset: Value
    per_byte: Value
    squares: float

    def at(self, size: float) -> float:
        """The time of a message [s]."""
        return self.offset.value + self.per_byte.value * size


def split(times: Mapping[int, Sequence[float]]) -> list[Piece]:
    """The fewest pieces that follow the times [s] by size [B], else the most that the sizes, two or
    more, carry.
    """
    sizes = sorted(times)
    table = pd.DataFrame({size: pd.Series(times[size]) for size in sizes}).values
    parts = itertools.combinations(range(len(sizes) + 1), 2)
    lines = {ends: _line(sizes[slice(*ends)], times) for ends in parts if ends[1] - ends[0] > 1}
    for count in range(1, max(1, min(MOST_PIECES, (len(sizes) - 1) // 2)) + 1):
        choices = (
            [*itertools.pairwise([0, *breaks, len(sizes)])]
            for breaks in itertools.combinations(range(1, len(sizes)), count - 1)
        )
        possible = [
            [lines[ends] for ends in parts] for parts in choices if lines.keys() >= {*parts}
        ]
        best = min(possible, key=lambda pieces: sum(piece.squares for piece in pieces))
        fitted = [piece.at(size) for piece in best for size in piece.sizes]
        if follows(table / fitted, np.ones(len(sizes)), 2 * count):
            break
    return best


def _line(part: Sequence[int], times: Mapping[int, Sequence[float]]) -> Piece:
    """Least squares of relative errors."""
    size = np.array([size for size in part for _ in times[size]], float)
    time = np.concatenate([times[size] for size in part])
    free, half = len(time) - 2, np.zeros(2)
    line = np.polyfit(size, time, 1, w=1 / time)
    if free:
        _, covariance = np.polyfit(size, time, 1, w=1 / time, cov=True)
        half = stats.t.ppf(0.975, free) * np.sqrt(np.diag(covariance))
    squares = float(((np.polyval(line, size) / time - 1) ** 2).sum())
    per_byte, offset = (
        Value(value, max(value - width, FLOOR * value), value + width)
        for value, width in zip(line.tolist(), half.tolist())
    )
    return Piece(part, offset, per_byte, squares)
