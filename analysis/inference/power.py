"""What a campaign of so many blocks will say of a true fall: exact probabilities under normal noise.

With n blocks whose D is normal with standard deviation tau, the mean of D and its sample standard
deviation s are independent, and (n - 1) s^2 / tau^2 is chi-squared with n - 1 degrees of freedom. Given
s, each claim says that the mean lies in an interval, a normal probability; the density of s is
integrated over by Gauss-Legendre quadrature. No simulation.
"""

import math

import numpy as np
from scipy import stats

from analysis.inference.verdict import LEVEL, MOST_BLOCKS

NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)
NEGLIGIBLE = 1e-13  # the probability left out at each end of the integral


def flat(fall: float, sd: float, blocks, margin: float) -> np.ndarray:
    """P(`flat`) for a true relative `fall`, shape of `blocks`; 0 for a single block.

    `sd` > 0 is the blocks' standard deviation of D on the log scale, `margin` is relative.
    """
    true, limit = math.log1p(-fall), -math.log1p(-margin)

    def claim(half, error):
        inside = limit - half
        return stats.norm.cdf((inside - true) / error) - stats.norm.cdf((-inside - true) / error)

    return _probability(claim, sd, blocks, widest=limit)


def falls_off(fall: float, sd: float, blocks, margin: float) -> np.ndarray:
    """P(`falls off`) for a true relative `fall`, shape of `blocks`; arguments as for `flat`."""
    true, limit = math.log1p(-fall), -math.log1p(-margin)
    return _probability(lambda half, error: stats.norm.cdf((-limit - half - true) / error), sd, blocks)


def blocks_for(power: float, claim, fall: float, sd: float, margin: float) -> int | None:
    """The fewest blocks with which `claim` (`flat` or `falls_off`) is made with probability `power`.

    None when that takes more than MOST_BLOCKS.
    """
    blocks = np.arange(2, MOST_BLOCKS + 1)
    enough = claim(fall, sd, blocks, margin) >= power
    return int(blocks[enough][0]) if enough.any() else None


def _probability(claim, sd, blocks, widest=np.inf):
    """P(claim), which is impossible where half the 90 % interval exceeds `widest` (log scale).

    `claim(half, error)` is its probability given half the interval and the true standard error of the
    mean, both with the quadrature's nodes on the last axis.
    """
    blocks = np.asarray(blocks)
    several = np.maximum(blocks, 2)[..., np.newaxis]
    root, t = np.sqrt(several), stats.t.isf(LEVEL, several - 1)
    s = stats.chi(several - 1, scale=sd / np.sqrt(several - 1))
    low, high = s.ppf(NEGLIGIBLE), np.minimum(s.isf(NEGLIGIBLE), widest * root / t)
    reach = np.maximum(high - low, 0) / 2
    at = low + reach * (1 + NODES)
    total = np.sum(reach * WEIGHTS * s.pdf(at) * claim(t * at / root, sd / root), axis=-1)
    return np.where(blocks < 2, 0.0, total)
