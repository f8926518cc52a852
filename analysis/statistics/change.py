"""Did a speed change between two measurements? One rule for many statements, judged together.

The blocks of OLD and of NEW are independent samples of log-speeds, and what is judged is the mean
of NEW less that of OLD. Its interval is Student's t with the standard error of both sides, which
may scatter differently, and the degrees of freedom of the side with fewer blocks. So it holds at
least as often as it says, whatever the two scatters are (M. R. Mickey and M. B. Brown, Ann. Math.
Stat. 37, 1966, 639-642). Welch's approximate degrees of freedom do not: among 23 statements, with 4
blocks of twice the scatter against 12, every sixth comparison would be wrong. A side with a single
block has no interval. Answers, the first that applies:

    the same   two one-sided tests at 5 % place the change inside the margin (Schuirmann 1987),
    wherever 0 is slower     a two-sided test at 5 % tells the change from 0, and NEW is slower
    faster     likewise, and NEW is faster undecided  anything else

Holm's procedure corrects both families of tests for their number: those for `the same`, and those
for a change. No statement can be wrong in both families, so each kind of wrong answer keeps its 5 %
among all statements of a comparison. The interval of a statement is the one that decided: of the
level at which Holm's procedure decided its answer, the wider of both families' intervals for an
undecided one. So `the same` lies within the margin, a change excludes 0, and what is undecided does
neither.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.statistics.judgement import UNDECIDED, holm_levels, log_margin

SAME, SLOWER, FASTER = "the same", "slower", "faster"
ANSWERS = (SLOWER, UNDECIDED, FASTER, SAME)  # the most urgent first
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


def differences(old, new, exact: bool = False) -> Differences:
    """The comparison of blocks' log-speeds, `old` (..., statements, blocks) and `new` (...,
    statements, other blocks).

    NaN blocks are left out. `exact` says that neither side scatters, as in a simulation. Otherwise,
    if a side has a single block, only the difference is known; without a block, nothing is.
    """
    (n, mean, variance), (m, other, other_variance) = _moments(old), _moments(new)
    error = np.zeros_like(mean) if exact else np.sqrt(variance / n + other_variance / m)
    return Differences(other - mean, error, np.maximum(np.minimum(n, m) - 1, 1))


def p_values(means: Differences, margin: float) -> tuple[np.ndarray, np.ndarray]:
    """(p_same, p_changed), each of shape (..., statements): the p of the two one-sided tests
    against the relative `margin`, and of the two-sided test against no change. 1 if the error is
    unknown."""
    size = np.abs(means.difference)
    with np.errstate(divide="ignore", invalid="ignore"):
        same = stats.t.sf((log_margin(margin) - size) / means.error, means.freedom)
        changed = 2 * stats.t.sf(size / means.error, means.freedom)
    return np.nan_to_num(same, nan=1.0), np.nan_to_num(changed, nan=1.0)


@dataclass(frozen=True)
class Decisions:
    """The `answer` to every statement, shape (..., statements), corrected for their number, with
    the ends `low` and `high` of the interval that decided it and the `confidence` of that interval."""

    answer: np.ndarray
    low: np.ndarray
    high: np.ndarray
    confidence: np.ndarray


def decide(means: Differences, margin: float) -> Decisions:
    """Decide every statement, as the module says, against the relative `margin`."""
    same, changed = p_values(means, margin)
    # Two one-sided tests have the interval of twice their level.
    outside = 2 * holm_levels(same), holm_levels(changed)
    is_same, is_change = same <= outside[0] / 2, changed <= outside[1]
    answer = np.select(
        [is_same, is_change & (means.difference < 0), is_change],
        [SAME, SLOWER, FASTER],
        UNDECIDED,
    )
    left_out = np.select([is_same, is_change], outside, np.minimum(*outside))
    half = stats.t.isf(left_out / 2, means.freedom) * means.error
    return Decisions(answer, means.difference - half, means.difference + half, 1 - left_out)


def _moments(values) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number, mean and variance of the finite values of each row; NaN if there are too few."""
    values = np.ma.masked_invalid(np.asarray(values, float))
    moments = values.mean(axis=-1), values.var(axis=-1, ddof=1)
    return values.count(axis=-1), *(np.ma.filled(moment, np.nan) for moment in moments)
