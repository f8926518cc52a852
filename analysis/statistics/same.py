"""Did it change? One rule for every comparison of two measurements.

What is judged is the mean of NEW less that of OLD, on a scale on which it is 0 where nothing
changed, such as that of log-speeds. Its interval is Student's t with the standard error of both
sides, which may scatter differently. Answers, the first that applies:

    the same           two one-sided tests at 5 % place the difference inside the margin (Schuirmann
                       1987), wherever 0 is: the 90 % interval lies inside
    slower, faster     a two-sided test at 5 % tells it from 0, or from a range around 0: the 95 %
                       interval lies wholly beyond
    undecided          anything else

Holm's procedure corrects the tests for a change for the number of statements that are judged
together and scatter, and those for `the same` unless each is asked by itself. No statement can be
wrong in both families, so each kind of wrong answer keeps its 5 % among all statements of a
comparison. The interval of a statement is the one that decided: of the level at which Holm's
procedure decided its answer, the wider of both families' intervals for an undecided one. So the
answer follows from it.

The degrees of freedom of two samples of blocks are those of the side with fewer blocks. Then the
interval holds at least as often as it says, whatever the two scatters are (M. R. Mickey and M. B.
Brown, Ann. Math. Stat. 37, 1966, 639-642). Welch's do not: among 23 statements, with 4 blocks of
twice the scatter against 12, every sixth comparison would be wrong. A side with a single block has
no interval.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from analysis.statistics.design import LEVEL
from analysis.statistics.judgement import UNDECIDED, holm_levels, log_margin

SAME, SLOWER, FASTER = "the same", "slower", "faster"
ANSWERS = (SLOWER, UNDECIDED, FASTER, SAME)  # the most urgent first
EXIT_CODES = {SAME: 0, FASTER: 0, SLOWER: 1, UNDECIDED: 2}
MARGIN = 0.03  # relative; the default


@dataclass(frozen=True)
class Differences:
    """Mean log-speeds of NEW less those of OLD, all of shape (..., statements); NaN if there are
    too few blocks.

    `error` is the standard error, 0 if nothing scatters, and `freedom` the degrees of freedom of
    Student's t.
    """

    difference: np.ndarray
    error: np.ndarray
    freedom: np.ndarray

    @property
    def are_tested(self) -> np.ndarray:
        """Whether each statement is tested, and so counts in Holm's family: its error is known, and
        not 0."""
        return self.error > 0


def differences(old: ArrayLike, new: ArrayLike, exact: bool = False) -> Differences:
    """The comparison of blocks' log-speeds, `old` (..., statements, blocks) and `new` (...,
    statements, other blocks).

    NaN blocks are left out. `exact` says that neither side scatters, as in a simulation. Otherwise,
    if a side has a single block, only the difference is known; without a block, nothing is.
    """
    (n, mean, variance), (m, other, other_variance) = _moments(old), _moments(new)
    error = np.zeros_like(mean) if exact else np.sqrt(variance / n + other_variance / m)
    return Differences(other - mean, error, np.maximum(np.minimum(n, m) - 1, 1))


def p_values(
    means: Differences, margin: ArrayLike, beyond: ArrayLike = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """(p_same, p_changed), each of shape (..., statements): the p of the two one-sided tests
    against the relative `margin`, and of the two-sided test against a change of no more than
    `beyond`. 1 if the error is unknown."""
    size = np.abs(means.difference)
    with np.errstate(divide="ignore", invalid="ignore"):
        same = stdtr(means.freedom, (size - log_margin(margin)) / means.error)
        changed = 2 * stdtr(means.freedom, (log_margin(beyond) - size) / means.error)
    return np.nan_to_num(same, nan=1.0), np.nan_to_num(changed, nan=1.0)


@dataclass(frozen=True)
class Decisions:
    """The `answer` to every statement, shape (..., statements), with the ends `low` and `high` of
    the interval that decided it and the `confidence` of that interval."""

    answer: np.ndarray
    low: np.ndarray
    high: np.ndarray
    confidence: np.ndarray


def decide(
    means: Differences, margin: ArrayLike, beyond: ArrayLike = 0.0, each_alone: bool = False
) -> Decisions:
    """Decide every statement, as the module says: the same within the relative `margin`, changed
    `beyond` another, each a number or of shape (statements,). `each_alone`: whether it is the
    same is asked of each statement by itself."""
    same, changed = p_values(means, margin, beyond)
    # Two one-sided tests have the interval of twice their level.
    alike, different = (holm_levels(np.where(means.are_tested, p, 0)) for p in (same, changed))
    left_out = 2 * (np.full_like(alike, LEVEL) if each_alone else alike), different
    is_same, is_change = same <= left_out[0] / 2, changed <= left_out[1]
    answer = np.select(
        [is_same, is_change & (means.difference < 0), is_change],
        [SAME, SLOWER, FASTER],
        UNDECIDED,
    )
    share = np.select([is_same, is_change], left_out, np.minimum(*left_out))
    half = stdtrit(means.freedom, 1 - share / 2) * means.error
    return Decisions(answer, means.difference - half, means.difference + half, 1 - share)


def _moments(values: ArrayLike) -> tuple[Any, ...]:
    """Number, mean and variance of the finite values of each row; NaN if there are too few."""
    known = np.ma.masked_invalid(np.asarray(values, float))
    moments = known.mean(axis=-1), known.var(axis=-1, ddof=1)
    return known.count(axis=-1), *(np.ma.filled(moment, np.nan) for moment in moments)
