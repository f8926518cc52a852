"""Find slow nodes and links by comparing each with the median of its peers, block by block.

All values are logarithms of speeds (rates, or 1 over latencies), shape (blocks, nodes) or (blocks,
sender, receiver). A loss is the median of a member's peers in the same block minus the member's own
value, so it is above 0 for a slower member. Disturbances common to all cancel. For pairs, y_ij = m
+ s_i + r_j + e_ij: a node's sending and receiving are medians over its partners (as in J. W. Tukey,
Exploratory Data Analysis, 1977), and the rest belongs to the pair. So a slow pair accuses neither
of its nodes, and a slow node none of its pairs.

A member is SLOWER if its simultaneous t interval over the blocks lies wholly above the tolerance
and above the `reach` of its peers, and it was slower in every block. The reach is where the spread
of healthy members ends; it is taken from their means. So nodes that differ, as by their clocks,
accuse nobody. A member is ALIKE if the interval excludes the smallest slowdown to be found, and
otherwise UNDECIDED. The variance is the largest of three: pooled over the family, pooled over the
pairs of the member's nodes (a node that jitters does so with all partners), and the member's own.
Bonferroni's correction is over all members of all families. `tests/test_suspects.py` measures both
error rates.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from analysis.statistics.judgement import UNDECIDED, log_margin

SLOWER, ALIKE = "slower", "alike"
POWER = 0.9  # at which `finds_from` is computed
_MAD = 1.4826  # of a normal distribution, the standard deviation over the median absolute deviation
_SMALL = 0.25  # of the tolerance
_FAST_SIDE = 1.25
_MOST = 200  # members that are taken out; more are no few suspects
_LEFT = 0.75  # of the level: taking the farthest out makes the rest look more alike than it is


@dataclass(frozen=True)
class PeerComparison:
    """The members of one family, over (members), all as shares of the speed: `mean` is that of
    their losses.

    `reach` is the loss up to which healthy members differ. `low` and `high` are the ends of
    simultaneous intervals, NaN from one block. `finds_from` is the smallest loss that this many
    blocks with this scatter find with a power of at least 90 %, NaN from one block.
    """

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    answers: np.ndarray
    finds_from: float
    reach: float

    @property
    def slower(self) -> np.ndarray:
        """The indices of the slower members, the slowest first."""
        chosen = np.flatnonzero(self.answers == SLOWER)
        return chosen[np.argsort(-self.mean[chosen])]


def of_each(speeds: np.ndarray) -> np.ndarray:
    """The losses of nodes, log scale, over (blocks, nodes)."""
    return np.median(speeds, axis=1, keepdims=True) - speeds


def of_pairs(speeds: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The losses of sending and of receiving over (blocks, nodes), and of pairs over (blocks,
    sender, receiver), log scale. The diagonal, where a node would meet itself, is not read, and is
    NaN in the last result, as are pairs that have not met (NaN)."""
    blocks, nodes, _ = speeds.shape
    apart = ~np.eye(nodes, dtype=bool)
    have_met = bool(np.isfinite(speeds[:, apart]).all())
    median = np.median if have_met else np.nanmedian

    def middles(matrices: np.ndarray) -> np.ndarray:
        return median(matrices[:, apart].reshape(blocks, nodes, nodes - 1), axis=2)

    sending = of_each(middles(speeds))
    receiving = of_each(middles(speeds.transpose(0, 2, 1)))
    expected = -sending[:, :, None] - receiving[:, None, :]
    rest = np.where(apart, speeds - expected, np.nan)
    middle = median(rest[:, apart], axis=1)
    return sending, receiving, middle[:, None, None] - rest


def level_of_family(families: Sequence[np.ndarray], level: float, tolerance: float) -> float:
    """The share of a campaign's `level` that each family has for its reach. Only families whose
    members differ by more than a small part of the tolerance (a share) use it; in the others the
    tolerance protects the healthy. `families` are their losses (log scale), shape (blocks,
    members)."""
    means = [losses.mean(axis=0) for losses in families]
    spreads = [_MAD * np.median(np.abs(mean - np.median(mean))) for mean in means]
    users = sum(spread > _SMALL * log_margin(tolerance) for spread in spreads)
    return _LEFT * level / max(1, users)


def reach(mean: np.ndarray, level: float) -> float:
    """The loss (log scale) that any healthy member exceeds with the probability `level`, from all
    members' means.

    Up to a third of the members, and at most _MOST, are taken out, the farthest first, as long as
    one lies outside the t distribution of the rest (the generalized test of B. Rosner,
    Technometrics 25, 1983, 165-172). As no fault makes a member faster, the fast side shows how
    long the tails of the healthy ones are: the reach is at least 1.25 times that of the second
    fastest.
    """

    def limit(rest: np.ndarray, level: float) -> float:
        quantile = stats.t.isf(level / (len(rest) + 1), len(rest) - 1)
        return quantile * rest.std(ddof=1) * math.sqrt(1 + 1 / len(rest))

    middle = np.median(mean)
    farthest = mean[np.argsort(-np.abs(mean - middle))]
    healthy = farthest[1:]
    for count in range(1, min(len(mean) // 3, _MOST) + 1):
        rest = farthest[count:]
        # Members are taken out on both sides, and named on one.
        if abs(farthest[count - 1] - rest.mean()) > limit(rest, level / 2):
            healthy = rest
    fast = middle - np.partition(mean, 1)[1]
    return float(max(healthy.mean() + limit(healthy, level), middle + _FAST_SIDE * fast))


def compare(
    losses: np.ndarray,
    members: Sequence[Sequence[int]],
    level: float,
    level_of_reach: float,
    tolerance: float,
    smallest: float,
) -> PeerComparison:
    """Judge one family, `losses` (log scale) over (blocks, members); `members` are the numbers of
    each member's nodes.

    `level` is one-sided and a single member's: the campaign's level divided by the number of all
    members. `level_of_reach` is that of `level_of_family`. `tolerance` and `smallest` are shares: a
    member that loses no more than the tolerance must not be accused, and one that loses the
    smallest must be found.
    """
    blocks, count = losses.shape
    mean = losses.mean(axis=0)
    if blocks < 2:
        unknown = np.full(count, math.nan)
        answers = np.full(count, UNDECIDED)
        return PeerComparison(share(mean), unknown, unknown, answers, math.nan, math.nan)
    variances = losses.var(axis=0, ddof=1)
    of_nodes = np.asarray(members)
    sums = np.bincount(of_nodes.ravel(), np.repeat(variances, of_nodes.shape[1]))
    jitter = sums / np.maximum(np.bincount(of_nodes.ravel()), 1)
    related = jitter[of_nodes].max(axis=1)
    quantile = stats.t.isf(level, (blocks - 1) * max(count - 1, 1))
    largest = np.maximum(np.maximum(variances, related), variances.mean())
    half = quantile * np.sqrt(largest / blocks)
    healthy = reach(mean, level_of_reach)
    least = max(log_margin(tolerance), healthy)
    is_slower = (mean - half > least) & (losses > 0).all(axis=0)
    answers = np.select([is_slower, mean + half < log_margin(smallest)], [SLOWER, ALIKE], UNDECIDED)
    # Two things can go wrong, each with half of the allowed probability: its own variance is large,
    # or its mean is low.
    half_missed = (1 - POWER) / 2
    inflated = math.sqrt(stats.chi2.isf(half_missed, blocks - 1) / (blocks - 1))
    error = math.sqrt(variances.mean() / blocks)
    findable = least + (quantile * inflated + stats.norm.isf(half_missed)) * error
    return PeerComparison(
        share(mean),
        share(mean - half),
        share(mean + half),
        answers,
        float(share(findable)),
        float(share(healthy)),
    )


def share(loss: Any) -> Any:
    """A loss on the log scale as the share of the speed that is lost; below 0 if the member is
    faster."""
    return -np.expm1(-loss)
