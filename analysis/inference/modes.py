"""Does a sample of repeats have two modes, such as a fast and a slow state of a transfer?

Two normal distributions of equal standard deviation against one, by their likelihood ratio, whose
distribution is bootstrapped (G. J. McLachlan, Applied Statistics 36, 1987, p. 318-324,
https://doi.org/10.2307/2347790): it does not depend on mean and standard deviation, so that one set of
normal samples serves all samples of a size. Such a test takes a skewed sample for two modes too, hence the
second opinion: a shifted lognormal distribution of either direction, which has one mode, must be less likely.

Of samples of 30 it finds two modes in 83 % of mixtures of 70 and 30 % that are 4 standard deviations apart,
and wrongly in 4 % of normal samples, 5 % of Student's t with 3 degrees of freedom, 9 % of exponential ones
(83 % without the second opinion), 16 % of lognormal ones with sigma 0.5 (56 %) and 39 % of uniform ones:
`two modes` says that two normal ones explain the sample best, and a histogram belongs beside it. The dip
test of J. A. and P. M. Hartigan (Ann. Statist. 13, 1985, p. 70-84) is hardly misled by skew or tails, but
finds less than a quarter of those mixtures.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

LEVEL = 0.05  # of wrongly found modes in normal samples
LEAST = 3  # values: a mode has more, so that outliers are none
ROUNDING = 1e-9
FEWEST = 10  # values of a sample; of fewer, only the widest gaps would be found
RESAMPLES = 1999
SEED = 20090217
STARTS = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)  # parts of the sorted sample taken as the low mode at first
STEPS = 30  # of expectation and maximisation; twice as many do not change the rates
LEAST_VARIANCE = 1e-4  # of a mode, in parts of the sample's: equal values have a finite likelihood
SHIFTS = np.geomspace(0.02, 20, 15)  # of the lognormal's origin beyond the sample, in parts of its range


@dataclass(frozen=True)
class Modes:
    """Whether a sample has two modes, and which.

    `kind` is `two modes`; `undecided`, where one skewed mode explains the sample as well, a mode has no
    more than three values, or the sample is too small; or `one mode`, which says that one is enough to
    explain the sample. `p` is the probability of a likelihood ratio as large from a normal distribution.
    `low`, `high` and the common standard deviation `sd` of the two modes are in the unit of the values,
    `share_low` is the part of the values in the low one. Unknown is NaN.
    """

    kind: str
    p: float
    n: int
    low: float = math.nan
    high: float = math.nan
    sd: float = math.nan
    share_low: float = math.nan


def modes(values) -> Modes:
    """Look for two modes in `values`, shape (repeats,); NaN is left out.

    Not for values that depend on their neighbours, such as the seconds of one transfer, nor for more than
    some hundreds: time and memory of the bootstrap grow with their number (30 values: 0.4 s, once).
    """
    values = np.asarray(values, float)
    values = np.sort(values[np.isfinite(values)])
    n = len(values)
    if n < FEWEST:
        return Modes("undecided", math.nan, n)
    if values[0] == values[-1]:
        return Modes("one mode", 1.0, n)
    center, scale = float(values.mean()), float(values.std())
    sample = ((values - center) / scale)[None]
    two, share_low, low, high, sd = (float(part[0]) for part in _mixtures(sample))
    p = float((1 + np.sum(_under_one_mode(n) >= two - _normal(sample)[0])) / (RESAMPLES + 1))
    outliers = n * min(share_low, 1 - share_low) < LEAST + ROUNDING
    kind = "one mode" if p > LEVEL else "undecided" if outliers or two <= _skewed(sample[0]) else "two modes"
    return Modes(kind, p, n, center + scale * low, center + scale * high, scale * sd, share_low)


@lru_cache
def _under_one_mode(n):
    """The likelihood ratios (logarithms) of normal samples of this size, shape (RESAMPLES,)."""
    samples = np.sort(np.random.default_rng(SEED).normal(size=(RESAMPLES, n)), axis=1)
    samples = (samples - samples.mean(axis=1, keepdims=True)) / samples.std(axis=1, keepdims=True)
    return _mixtures(samples)[0] - _normal(samples)


def _normal(samples):
    """Log-likelihood of the best normal distribution, over the last axis."""
    return -0.5 * samples.shape[-1] * (1 + np.log(2 * np.pi * samples.var(axis=-1)))


def _skewed(sample):
    """Log-likelihood of the best shifted lognormal distribution of either direction."""
    beyond = np.ptp(sample) * SHIFTS[:, None]
    logs = np.log(np.concatenate([sample - sample.min() + beyond, sample.max() - sample + beyond]))
    return float(np.max(_normal(logs) - logs.sum(axis=1)))


def _mixtures(samples):
    """The best two normal distributions by expectation and maximisation from several starts.

    `samples`, shape (samples, n), are sorted, with mean 0 and variance 1. Five arrays of shape (samples,):
    log-likelihood, share of the low mode, the two means and the standard deviation.
    """
    n = samples.shape[1]
    first = np.arange(n) < np.round(np.multiply(STARTS, n))[:, None, None]
    of_low = np.broadcast_to(first, (len(STARTS), *samples.shape))
    for _ in range(STEPS):
        count = of_low.sum(axis=-1, keepdims=True)
        sum_low = (of_low * samples).sum(axis=-1, keepdims=True)
        low, high = sum_low / count, -sum_low / (n - count)  # the mean of all is 0
        variance = np.maximum(1 - (count * low**2 + (n - count) * high**2) / n, LEAST_VARIANCE)
        share = np.clip(count / n, LEAST / n, 1 - LEAST / n)
        log_odds = np.log(1 / share - 1) + (high - low) / variance * (samples - (high + low) / 2)
        of_low = 1 / (1 + np.exp(np.minimum(log_odds, 500)))
    weights = np.log(share), np.log(1 - share)
    densities = (w - (samples - mean) ** 2 / (2 * variance) for w, mean in zip(weights, (low, high)))
    likelihood = np.sum(np.logaddexp(*densities) - 0.5 * np.log(2 * np.pi * variance), axis=-1)
    best = np.argmax(likelihood, axis=0), np.arange(len(samples))
    parameters = (part[..., 0][best] for part in (share, low, high, np.sqrt(variance)))
    return likelihood[best], *parameters
