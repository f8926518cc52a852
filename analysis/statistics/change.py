"""Did a speed change between two measurements? One rule for many statements, judged together.

The blocks of OLD and of NEW are independent samples of log-speeds, and what is judged is the mean of NEW less that of
OLD. Its interval is Student's t with the standard error of both sides, which may scatter differently, and the degrees of
freedom of the side with fewer blocks. So it holds at least as often as it says, whatever the two scatters are (M. R. Mickey
and M. B. Brown, Ann. Math. Stat. 37, 1966, 639-642). Welch's approximate degrees of freedom do not: among 23 statements,
with 4 blocks of twice the scatter beside 12, every sixth comparison would be wrong. A side with a single block has no
interval. Answers, the first that applies:

    the same   two one-sided tests at 5 % place the change inside the margin (Schuirmann 1987), wherever 0 is
    slower     a two-sided test at 5 % tells the change from 0, and NEW is slower
    faster     likewise, and NEW is faster
    undecided  anything else

Holm's procedure corrects both families of tests for their number: those for `the same`, and those for a change. No
statement can be wrong in both families, so each kind of wrong answer keeps its 5 % among all statements of a comparison.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.statistics.judgement import UNDECIDED, log_margin

SAME, SLOWER, FASTER = "the same", "slower", "faster"
ANSWERS = (SLOWER, UNDECIDED, FASTER, SAME)  # what most needs a look first
LEVEL = 0.05  # of each family of tests
CONFIDENCE = 0.95  # of the interval that is shown
MOST_BLOCKS = 1000
MARGIN = 0.03  # relative, unless the user says another


@dataclass(frozen=True)
class Differences:
    """Mean log-speeds of NEW less those of OLD, all of shape (..., statements); NaN where there are too few blocks.

    `error` is the standard error and `freedom` the degrees of freedom of Student's t. Both are 0 where neither side
    scatters, as in a simulation: the difference is then exact.
    """

    difference: np.ndarray
    error: np.ndarray
    freedom: np.ndarray

    @property
    def intervals(self) -> tuple[np.ndarray, np.ndarray]:
        """Low and high ends of the 95 % intervals, not corrected for the number of statements."""
        half = stats.t.isf((1 - CONFIDENCE) / 2, self.freedom) * self.error
        half = np.where(self.error == 0, 0.0, half)
        return self.difference - half, self.difference + half


def differences(old, new) -> Differences:
    """The comparison of blocks' log-speeds, `old` (..., statements, blocks) and `new` (..., statements, other blocks).

    NaN blocks are left out. Where a side has a single block only the difference is known; without a block, nothing.
    """
    (n, mean, spread), (m, other, other_spread) = _moments(old), _moments(new)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(spread / n + other_spread / m)
    return Differences(other - mean, error, np.where(error == 0, 0, np.minimum(n, m) - 1))


def exactly(old, new) -> Differences:
    """The differences of what has no scatter, such as a simulation: the first value of each statement."""
    difference = np.asarray(new, float)[..., 0] - np.asarray(old, float)[..., 0]
    return Differences(difference, np.zeros_like(difference), np.zeros_like(difference))


def p_values(found: Differences, margin: float) -> tuple[np.ndarray, np.ndarray]:
    """(p_same, p_changed), each of shape (..., statements): of the two one-sided tests against the relative `margin`, and of
    the two-sided one against no change. NaN where the error is not known."""
    limit, size = log_margin(margin), np.abs(found.difference)
    with np.errstate(divide="ignore", invalid="ignore"):
        same = stats.t.sf((limit - size) / found.error, found.freedom)
        changed = 2 * stats.t.sf(size / found.error, found.freedom)
    exact = found.error == 0
    same = np.where(exact, np.where(size <= limit, 0.0, 1.0), same)
    return same, np.where(exact, np.where(size > 0, 0.0, 1.0), changed)


def answers(found: Differences, margin: float, together: bool = True) -> np.ndarray:
    """The answer to every statement, shape (..., statements); unless `together`, each as if it were alone."""
    same, changed = p_values(found, margin)
    if together:
        same, changed = _holm(same), _holm(changed)
    return np.select(
        [same <= LEVEL, (changed <= LEVEL) & (found.difference < 0), changed <= LEVEL],
        [SAME, SLOWER, FASTER],
        UNDECIDED,
    )


def overall(given) -> str:
    """One answer of many: `slower` where any statement is, else `undecided` where any is, else `faster` or `the same`.

    Without a statement it is undecided.
    """
    known = set(given)
    return next((answer for answer in ANSWERS if answer in known), UNDECIDED)


def blocks_needed(found: Differences, blocks: np.ndarray, margin: float) -> np.ndarray:
    """How many blocks a side would call an unchanged speed `the same`, among all statements, about four times in five.

    `blocks` (statements,) is the mean number that a side has today, whose scatter is taken to stay. NaN where nothing
    scatters, the error is not known, or MOST_BLOCKS are too few. The probability is that of two one-sided tests
    (K. F. Phillips, J. Pharmacokinet. Biopharm. 18, 1990, 137-144), with t quantiles for the noncentral t.
    """
    counts = np.arange(2, MOST_BLOCKS + 1)
    quantiles = stats.t.isf(LEVEL / len(blocks), counts - 1) + stats.t.isf(0.1, counts - 1)
    widths = (found.error * np.sqrt(blocks))[:, None] * (quantiles / np.sqrt(counts))
    is_enough = (widths <= log_margin(margin)) & (found.error > 0)[:, None]
    return np.where(is_enough.any(axis=1), counts[is_enough.argmax(axis=1)], math.nan)


def _moments(values) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number, mean and variance of the finite values of each row; NaN where they are too few."""
    values = np.asarray(values, float)
    known = np.isfinite(values)
    n = known.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(known, values, 0.0).sum(axis=-1) / n
        apart = np.where(known, values - mean[..., None], 0.0)
        return n, mean, (apart**2).sum(axis=-1) / np.where(n > 1, n - 1, np.nan)


def _holm(p: np.ndarray) -> np.ndarray:
    """Holm's corrected p over the last axis, as statsmodels' multipletests has them for one family; NaN is no test.

    S. Holm, Scand. J. Statist. 6, 1979, 65-70.
    """
    order = np.argsort(p, axis=-1)  # NaN comes last
    ascending = np.take_along_axis(p, order, axis=-1)
    tests = np.isfinite(p).sum(axis=-1, keepdims=True)
    scaled = ascending * np.maximum(tests - np.arange(p.shape[-1]), 1)
    corrected = np.minimum(np.maximum.accumulate(scaled, axis=-1), 1)
    return np.take_along_axis(corrected, np.argsort(order, axis=-1), axis=-1)
