"""Does the rate on one network fall off against another? The unit of every statement is the block.

Rates are compared as log-ratios within a block, r = log(rate_network / rate_reference). A block's
D is r at the largest node count minus r at the baseline; the relative fall is 1 - exp(D). A margin m
is |D| <= -log(1 - m) on the log scale: a fall of m, or a rise to 1 / (1 - m).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.inference.intervals import t_interval

MOST_BLOCKS = 200  # more blocks than anybody runs: planning ends here
LEVEL = 0.05  # of each one-sided test: the 90 % interval and a lower 95 % bound belong to it

Interval = tuple[float, float]


@dataclass(frozen=True)
class Decision:
    """The decision rule applied to arrays: `kind` (text) and `p`, of the arguments' common shape.

    `p` is the p-value of the nearer claim, the smaller of the two one-sided tests' p for `flat` and the
    one-sided p for `falls off`; it is at most LEVEL exactly where the kind is not `undecided`.
    """

    kind: np.ndarray
    p: np.ndarray


@dataclass(frozen=True)
class Verdict:
    """Whether the fall is `flat`, `falls off` or `undecided`, and what that rests on.

    `flat`: the 90 % interval of D lies inside the margin (two one-sided tests at 5 %). `falls off`: the
    one-sided lower 95 % bound of the fall, which is the lower end of its 90 % interval, exceeds it.
    `fall`, its intervals (low, high), `margin` and `flat_margin` (the smallest margin at which the fall
    would be flat) are relative; `sd` is the blocks' standard deviation of D, on the log scale.
    What a single block cannot tell is None. `blocks_needed` is, for `undecided`, the total number of blocks
    that would decide at the same mean and standard deviation, None when it exceeds MOST_BLOCKS.
    `explanation` is one sentence. `evidence` is the kind of data (emulated, measured ...). `p` is as in
    Decision; `p_holm` is p corrected for the statements judged together, None until `multiplicity.holm`.
    """

    kind: str
    fall: float | None
    interval_90: Interval | None
    interval_95: Interval | None
    blocks: int
    margin: float
    sd: float | None
    flat_margin: float | None
    blocks_needed: int | None
    explanation: str
    evidence: str
    p: float | None = None
    p_holm: float | None = None


@dataclass(frozen=True)
class Control:
    """Whether the ratio of two networks on one node, where no network is used, is 1.

    `holds`: the 90 % interval lies inside the margin. `violated`: it does not, and the 95 % interval
    excludes 1: the difference is real and was not shown to be small. Otherwise `undecided`.
    `ratio` is the geometric mean over the blocks; it and the intervals are None without enough blocks.
    """

    kind: str
    ratio: float | None
    interval_90: Interval | None
    interval_95: Interval | None
    blocks: int
    margin: float


@dataclass(frozen=True)
class Agreement:
    """Whether today's blocks agree with a reference: `what` is compared, as a ratio (geometric mean).

    `interval` is the reference's 95 % prediction interval for the mean of `k` blocks, from its `n`.
    `agrees` is None, and so is what cannot be had, when `n` < 2 or `k` < 1.
    """

    what: str
    today: float | None
    interval: Interval | None
    k: int
    n: int
    agrees: bool | None


def decide(mean, sd, blocks, limit) -> Decision:
    """The rule on means and standard deviations of D over so many blocks (> 1); arguments broadcast.

    `limit` is the margin on the log scale. `flat` is tested by two one-sided t tests of |D| >= limit
    (Schuirmann 1987), `falls off` by one of D >= -limit. Blocks without any scatter decide at once.
    """
    error = np.maximum(np.asarray(sd) / np.sqrt(blocks), np.finfo(float).tiny)
    p_flat = stats.t.sf((limit - np.abs(mean)) / error, np.asarray(blocks) - 1)
    p_falls_off = stats.t.cdf((mean + limit) / error, np.asarray(blocks) - 1)
    kind = np.select([p_flat <= LEVEL, p_falls_off <= LEVEL], ["flat", "falls off"], "undecided")
    return Decision(kind, np.minimum(p_flat, p_falls_off))


def half_width(sd, blocks, confidence) -> np.ndarray:
    """Half the t interval of the mean D, on the log scale; `blocks` > 1; arguments broadcast."""
    return stats.t.ppf((1 + confidence) / 2, np.asarray(blocks) - 1) * sd / np.sqrt(blocks)


def judge_fall(differences, margin: float, evidence: str) -> Verdict:
    """The verdict on the blocks' D (log scale), shape (blocks,); NaN blocks are left out.

    A simulation repeats itself exactly: its one block is compared with the margin as it is, without
    interval or p.
    """
    differences = _finite(differences)
    n, limit = len(differences), -math.log1p(-margin)
    if n and evidence == "simulated":
        return _of_model(float(differences[0]), n, margin, limit)
    if n < 2:
        fall = None if n == 0 else -math.expm1(differences[0])
        why = "A single block has no interval." if n else "No block has all of its runs at both node counts."
        return Verdict("undecided", fall, None, None, n, margin, None, None, None, why, evidence)
    mean, sd = float(differences.mean()), float(differences.std(ddof=1))
    decision = decide(mean, sd, n, limit)
    kind = decision.kind.item()
    inner, outer = (float(half_width(sd, n, confidence)) for confidence in (0.90, 0.95))
    needed = _blocks_needed(mean, sd, n, limit) if kind == "undecided" else None
    return Verdict(
        kind=kind,
        fall=-math.expm1(mean),
        interval_90=_as_fall((mean - inner, mean + inner)),
        interval_95=_as_fall((mean - outer, mean + outer)),
        blocks=n,
        margin=margin,
        sd=sd,
        flat_margin=-math.expm1(-abs(mean) - inner),
        blocks_needed=needed,
        explanation=_explanation(kind, mean, limit, needed, margin),
        evidence=evidence,
        p=float(decision.p),
    )


def _of_model(difference, n, margin, limit):
    fall = -math.expm1(difference)
    kind = "flat" if abs(difference) <= limit else "falls off" if difference < 0 else "undecided"
    why = {
        "flat": f"In the model the fall lies inside the margin of {100 * margin:g} %.",
        "falls off": f"In the model the fall lies beyond the margin of {100 * margin:g} %.",
        "undecided": "In the model the rate rises beyond the margin, neither flat nor a fall.",
    }[kind]
    return Verdict(kind, fall, None, None, n, margin, None, None, None, why, "simulated")


def judge_control(log_ratios, margin: float) -> Control:
    """The negative control from log-ratios on one node, shape (blocks,); NaN blocks are left out."""
    log_ratios = _finite(log_ratios)
    n, limit = len(log_ratios), -math.log1p(-margin)
    ratio = math.exp(log_ratios.mean()) if n else None
    if n < 2:
        return Control("undecided", ratio, None, None, n, margin)
    inner, outer = _interval(log_ratios, 0.90), _interval(log_ratios, 0.95)
    if -limit <= inner[0] and inner[1] <= limit:
        kind = "holds"
    else:
        kind = "undecided" if outer[0] <= 0 <= outer[1] else "violated"
    return Control(kind, ratio, _as_ratio(inner), _as_ratio(outer), n, margin)


def judge_agreement(what: str, reference, today) -> Agreement:
    """Compare today's blocks with the reference's, log values of shape (blocks,); NaN is left out."""
    reference, today = _finite(reference), _finite(today)
    n, k = len(reference), len(today)
    value = math.exp(today.mean()) if k else None
    if n < 2 or k < 1:
        return Agreement(what, value, None, k, n, None)
    low, high = prediction_interval(reference, k)
    return Agreement(what, value, _as_ratio((low, high)), k, n, bool(low <= today.mean() <= high))


def prediction_interval(log_values, k: int) -> Interval:
    """The 95 % interval for the mean of `k` new blocks from n reference blocks, shape (n,), n > 1.

    mean +- t(n - 1) s sqrt(1/n + 1/k), with the 97.5 % quantile of Student's t.
    """
    values = np.asarray(log_values, float)
    n = len(values)
    half = stats.t.ppf(0.975, n - 1) * values.std(ddof=1) * math.sqrt(1 / n + 1 / k)
    return float(values.mean() - half), float(values.mean() + half)


def _finite(values):
    values = np.asarray(values, float)
    return values[np.isfinite(values)]


def _interval(values, confidence):
    _, _, low, high = t_interval(values, confidence)
    return float(low), float(high)


def _as_fall(interval):
    return -math.expm1(interval[1]), -math.expm1(interval[0])


def _as_ratio(interval):
    return math.exp(interval[0]), math.exp(interval[1])


def _blocks_needed(mean, sd, n, limit):
    blocks = np.arange(n + 1, MOST_BLOCKS + 1)
    decided = decide(mean, sd, blocks, limit).kind != "undecided"
    return int(blocks[decided][0]) if decided.any() else None


def _explanation(kind, mean, limit, needed, margin):
    if kind == "flat":
        return f"The 90 % interval of the fall lies inside the margin of {100 * margin:g} %."
    if kind == "falls off":
        return f"The lower 95 % bound of the fall exceeds the margin of {100 * margin:g} %."
    if needed:
        return f"At the same mean and standard deviation, {needed} blocks would decide."
    if mean > limit:
        return "The rate rises beyond the margin, neither flat nor a fall: more blocks would not decide."
    return f"At the same mean and standard deviation, even {MOST_BLOCKS} blocks would not decide."
