"""The judgement: where an interval over blocks lies relative to a range. The unit of a statement is
the block, or from three sessions on the mean of a session's blocks (`intervals`).

Rates are compared as log-ratios within a block, r = log(rate_network / rate_reference). A block's D
is r at the node count `to` minus r at the node count `from`; the relative fall is 1 - exp(D), and a
margin m is |D| <= -log(1 - m). The interval is Student's t over the units; a two-sided 90 %
interval is two one-sided tests at 5 %. Answers, the first that applies:

    flat               the interval lies inside the margin, wherever 0 is (two one-sided tests:
                       D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987, 657-680)
    falls off          the whole interval is a fall beyond the margin
    rises              the whole interval is a rise beyond the margin
    falls, size open   the whole interval is a fall, part of it inside the margin
    undecided          anything else

The primary statements of a campaign are tested in a fixed order. Each counts only if the one before
it was decided as expected, so no correction for their number is needed. A campaign is judged only
at its planned looks, which are numbers of valid blocks, or of sessions; `calibration` measures the
level that remains after the looks.

An answer always follows from the interval beside it. Where several statements are corrected for
each other, each has the interval of the level at which Holm's procedure decided it, and a statement
that does not count has none.

Runs that are no blocks cannot be paired. A difference of means then has the interval of Welch's t
test, with the degrees of freedom of Welch and Satterthwaite (B. L. Welch, Biometrika 34, 1947,
28-35). It takes the runs for independent, which they are if the sessions that made them were alike.
Where sessions differ as much as runs, and each point was run in a session of its own, a 90 %
interval covers the true fall in 70, 53 and 40 % of cases with 3, 5 and 10 runs. So every judgement
says that it holds only if they were alike.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from analysis.statistics.design import LEVEL, Design
from analysis.statistics.intervals import (
    BLOCK,
    Kind,
    are_units,
    average,
    finite,
    of_sessions,
    unit_in_words,
    welch,
)
from analysis.wording import level_in_words
from runners.records.record import FalloffError

FALLS_OFF, SIZE_OPEN, FLAT, RISES = "falls off", "falls, size open", "flat", "rises"
IF_ALIKE = "if the sessions were alike"
SINGLE = "A point is a single run, so there is no interval."
UNDECIDED = "undecided"
REFUSED = "refused"  # no judgement: the negative control failed
DECIDED = (FALLS_OFF, FLAT, RISES)
SUPPORTED, CONTRADICTED = "supported", "contradicted"
INSIDE, BELOW, ABOVE, ACROSS = "inside", "below", "above", "across"

Interval = tuple[float, float]
UNKNOWN: Interval = (math.nan, math.nan)

_WHY = {
    FLAT: "lies inside the margin of {:g} %",
    FALLS_OFF: "lies wholly beyond the margin of {:g} %",
    RISES: "is a rise beyond the margin of {:g} %",
    SIZE_OPEN: "excludes 0 but reaches into the margin of {:g} %",
    UNDECIDED: "neither excludes 0 as a fall nor lies inside the margin of {:g} %",
}


@dataclass(frozen=True)
class Judgement:
    """The `answer` on a fall, and what it rests on.

    `fall`, its `interval` (low, high; two-sided, of this `confidence`) and `margin` are relative.
    `n` counts `n_of`, the units: blocks or sessions, or runs that are neither. Unknown values are
    None: all of these without a block, the interval from one unit. `reason` is
    one sentence, `evidence` the kind of data, or the kinds that are compared. `p` is that of the
    answer, or of the nearest decision (None without an interval). `error` is the standard error of
    D (log scale) and `freedom` its degrees of freedom; they are NaN without an interval.
    `condition` is what the interval rests on beside the units, empty if nothing. `sessions` is the
    number of sessions of the blocks, None if it was not recorded or they are the units: an interval
    from one session says nothing about another.
    """

    answer: str
    fall: float | None
    interval: Interval | None
    confidence: float | None
    n: int
    margin: float
    reason: str
    evidence: str
    p: float | None = None
    error: float = math.nan
    freedom: float = math.nan
    condition: str = ""
    sessions: int | None = None
    n_of: str = BLOCK

    @property
    def decided(self) -> bool:
        """Whether no more blocks are needed: it falls off, is flat, or rises."""
        return self.answer in DECIDED


@dataclass(frozen=True)
class Control:
    """Whether a ratio is 1, such as that of two networks on one node, where no network is used.

    `holds`: the interval lies inside the margin. `violated`: it does not, and excludes 1. Otherwise
    `undecided`. `ratio` is the geometric mean over the `n` units; it and the interval are None
    without enough of them.
    """

    kind: str
    ratio: float | None
    interval: Interval | None
    confidence: float | None
    n: int
    margin: float
    n_of: str = BLOCK


@dataclass(frozen=True)
class InRange:
    """A verdict with the mean, its 90 % and 95 % t intervals and the number of values; unknown is
    NaN.
    """

    kind: str
    estimate: float
    interval_90: Interval
    interval_95: Interval
    n: int
    reason: str = ""

    @property
    def decisive(self) -> tuple[Interval, str]:
        """The interval that decided, and its kind: 90 % if the verdict is SUPPORTED, else 95 %."""
        if self.kind == SUPPORTED:
            return self.interval_90, "90 % t interval"
        return self.interval_95, "95 % t interval"


@dataclass(frozen=True)
class SequenceVerdict:
    """The verdicts on a fixed sequence of statements at its last look.

    Those of the `judgements` that do not count are `undecided` or `refused`. `judged` is a mask
    over the blocks. `is_over`: further blocks would change nothing, because each is decided by
    itself or the last look is over.
    """

    judgements: tuple[Judgement, ...]
    judged: np.ndarray
    is_over: bool


def place(low: Any, high: Any, at_least: Any, at_most: Any) -> np.ndarray:
    """Where intervals lie relative to ranges: INSIDE, BELOW, ABOVE or ACROSS. Arguments broadcast;
    NaN is ACROSS."""
    inside = (at_least <= low) & (high <= at_most)
    return np.select([inside, high < at_least, low > at_most], [INSIDE, BELOW, ABOVE], ACROSS)


def log_margin(margin: ArrayLike) -> Any:
    """The relative margin on the log scale: infinite for a margin of 1."""
    with np.errstate(divide="ignore"):
        return -np.log1p(-np.asarray(margin))


def half_width(sd: Any, blocks: Any, one_sided: float) -> np.ndarray:
    """Half the t interval of the mean of D, whose ends are one-sided tests at this level. Arguments
    broadcast."""
    return stdtrit(np.asarray(blocks) - 1, 1 - one_sided) * sd / np.sqrt(blocks)


def answers(mean: Any, half: Any, margin: float) -> np.ndarray:
    """The answer for intervals mean +- half of D, on the log scale; arguments broadcast. `margin`
    is relative.
    """
    limit = log_margin(margin)
    where = place(mean - half, mean + half, -limit, limit)
    return np.select(
        [where == INSIDE, where == BELOW, where == ABOVE, mean + half < 0],
        [FLAT, FALLS_OFF, RISES, SIZE_OPEN],
        UNDECIDED,
    )


def judge(
    differences: ArrayLike,
    margin: float,
    evidence: str,
    one_sided: float = LEVEL,
    sessions: ArrayLike | None = None,
) -> Judgement:
    """The judgement on the blocks' D (log scale), shape (blocks,), with their sessions if these are
    recorded; NaN blocks are left out.

    A simulation repeats itself exactly, so its one block is compared with the margin directly,
    without interval or p.
    """
    differences, n_of = np.asarray(differences, float), BLOCK
    if sessions is not None:
        known = np.isfinite(differences)
        differences, sessions = differences[known], np.asarray(sessions)[known]
        n_of = unit_in_words(sessions)
        differences = of_sessions(differences, sessions) if are_units(sessions) else differences
    values = finite(differences)
    n = len(values)
    if n and evidence == "simulated":
        difference = float(values[0])
        answer = answers(difference, 0.0, margin).item()
        where = {FLAT: "lies inside", FALLS_OFF: "lies beyond", RISES: "is a rise beyond"}[answer]
        where = f"{where} the margin of {100 * margin:g} %"
        reason = f"In the model, which has no scatter, the fall {where}."
        fall = -math.expm1(difference)
        return Judgement(answer, fall, None, None, n, margin, reason, evidence)
    if n < 2:
        only = -math.expm1(values[0]) if n else None
        reason = "A single block has no interval."
        if not n:
            reason = "No block has all of its runs on both sides."
        return Judgement(UNDECIDED, only, None, None, n, margin, reason, evidence)
    error = float(values.std(ddof=1)) / math.sqrt(n)
    judgement = of_mean(float(values.mean()), error, n - 1, n, margin, evidence, one_sided)
    return replace(judgement, n_of=n_of)


def of_mean(
    mean: float,
    error: float,
    freedom: float,
    n: int,
    margin: float,
    evidence: str,
    one_sided: float = LEVEL,
) -> Judgement:
    """The judgement on a mean of D with its standard error (log scale) and the degrees of freedom
    of Student's t; `n` is the number of units, or of runs that are none."""
    half = float(stdtrit(freedom, 1 - one_sided)) * error
    answer, confidence = answers(mean, half, margin).item(), 1 - 2 * one_sided
    why = _WHY[answer].format(100 * margin)
    return Judgement(
        answer=answer,
        fall=-math.expm1(mean),
        interval=(-math.expm1(mean + half), -math.expm1(mean - half)),
        confidence=confidence,
        n=n,
        margin=margin,
        reason=f"The {level_in_words(confidence)} interval of the fall {why}.",
        evidence=evidence,
        p=_p(answer, mean, error, freedom, margin),
        error=error,
        freedom=freedom,
    )


def judge_control(
    log_ratios: ArrayLike,
    margin: float,
    one_sided: float = LEVEL,
    sessions: ArrayLike | None = None,
) -> Control:
    """Whether a ratio is 1, from log-ratios of shape (blocks,), with their sessions if these are
    recorded; NaN blocks are left out."""
    judged = judge(log_ratios, margin, "", one_sided, sessions)
    ratio = None if judged.fall is None else 1 - judged.fall
    if judged.interval is None:
        return Control("undecided", ratio, None, None, judged.n, margin, judged.n_of)
    low, high = 1 - judged.interval[1], 1 - judged.interval[0]
    kind = "holds" if judged.answer == FLAT else "undecided" if low <= 1 <= high else "violated"
    return Control(kind, ratio, (low, high), judged.confidence, judged.n, margin, judged.n_of)


def judge_range(
    values: ArrayLike, at_least: float, at_most: float, ratios: bool = False
) -> InRange:
    """Judge whether the mean of `values`, shape (blocks,), lies in [at_least, at_most]; NaN is left
    out.

    The verdict is that of `kind_of`, and undecided with fewer than two values. `ratios` are judged
    as logarithms, so that the estimate is their geometric mean. Raises FalloffError if one of them
    is not above 0.
    """
    values = finite(values)
    if ratios and (values <= 0).any():
        raise FalloffError(f"a ratio of {values.min():g} has no logarithm: give ratios above 0")
    if not len(values):
        return InRange(UNDECIDED, math.nan, UNKNOWN, UNKNOWN, 0, "no block has a value")
    kind: Kind = "ratio" if ratios else "cost"
    estimate, low, high = map(float, average(values, kind, 0.90))
    _, lowest, highest = map(float, average(values, kind, 0.95))
    narrow, wide = (low, high), (lowest, highest)
    verdict = kind_of(narrow, wide, at_least, at_most)
    reason = "" if len(values) > 1 else "a single block has no interval"
    return InRange(verdict, estimate, narrow, wide, len(values), reason)


def kind_of(interval_90: Interval, interval_95: Interval, at_least: float, at_most: float) -> str:
    """SUPPORTED: the 90 % interval lies inside [at_least, at_most] (two one-sided tests at 5 %).
    CONTRADICTED: the 95 % interval lies wholly outside. Otherwise UNDECIDED, also if an interval is
    unknown (NaN)."""
    if place(*interval_90, at_least, at_most) == INSIDE:
        return SUPPORTED
    outside = place(*interval_95, at_least, at_most) in (BELOW, ABOVE)
    return CONTRADICTED if outside else UNDECIDED


def holm_levels(p: np.ndarray, level: float = LEVEL) -> np.ndarray:
    """The level at which Holm's procedure decides each test of a family, shape (..., tests) like
    `p`.

    A test is decided where its p is at most its level: level / m for the smallest of m, level / (m
    - 1) for the next, and so on. From the first that is not decided, all that follow have its
    level. S. Holm, Scand. J. Statist. 6, 1979, 65-70.
    """
    order = np.argsort(p, axis=-1)
    number = p.shape[-1]
    steps = level / np.arange(number, 0, -1)
    passed = np.take_along_axis(p, order, axis=-1) <= steps
    decided = np.logical_and.accumulate(passed, axis=-1).sum(axis=-1, keepdims=True)
    return level / (number - np.minimum(np.argsort(order, axis=-1), decided))


def within_campaign(
    judgements: Sequence[Judgement], one_sided: float = LEVEL
) -> tuple[Judgement, ...]:
    """The secondary statements of one campaign in the same order, corrected for each other.

    Holm's procedure covers those with a p. Each is judged again by the interval of its level.
    """
    corrected = list(judgements)
    tested = [number for number, judgement in enumerate(judgements) if judgement.p is not None]
    levels = holm_levels(np.array([judgements[number].p for number in tested]), one_sided)
    for number, level in zip(tested, levels.tolist()):
        if level < one_sided:
            corrected[number] = _at_level(judgements[number], level, len(tested))
    return tuple(corrected)


def _at_level(alone: Judgement, one_sided: float, among: int) -> Judgement:
    """The judgement with the interval of another level, as one `among` so many statements."""
    assert alone.fall is not None
    about = (alone.error, alone.freedom, alone.n, alone.margin, alone.evidence)
    judgement = of_mean(math.log1p(-alone.fall), *about, one_sided)
    reason = judgement.reason
    if judgement.answer != alone.answer:
        reason += f" Alone the answer is {alone.answer!r}, not among {among} statements (Holm)."
    return replace(
        judgement,
        reason=reason,
        fall=alone.fall,
        condition=alone.condition,
        sessions=alone.sessions,
        n_of=alone.n_of,
    )


def in_sequence(
    differences: np.ndarray,
    controls: np.ndarray | None,
    design: Design,
    evidence: str,
    sessions: ArrayLike | None = None,
) -> SequenceVerdict:
    """Judge D of the design's primary statements, shape (statements, blocks), in their order.

    `controls`, of the same shape, are the log-ratios where no network is used; None: there are
    none. `sessions` are those of the blocks, None if not recorded. The first valid blocks, or
    those of the first sessions, are judged, as many as the last look reached requires.
    """
    looks, margin, level = design.looks, design.margin, design.one_sided
    assert margin is not None  # every design with a primary statement has one
    differences = np.asarray(differences, float).reshape(len(design.primary), -1)
    whole = np.isfinite(differences).all(axis=0)
    number = _number_of_look(whole, design, sessions)
    valid = int(number.max(initial=0))
    # Without planned looks a statement keeps blocks that another statement lacks.
    judged = np.ones(len(whole), bool)
    if looks:
        last = max((look for look in looks if look <= valid), default=0)
        judged = (number > 0) & (number <= last)
    of = None if sessions is None else np.asarray(sessions)[judged]
    alone = tuple(judge(d[judged], margin, evidence, level, of) for d in differences)
    gates = [
        judge_control(control[judged], margin, level, of)
        for control in ([] if controls is None else controls)
    ]
    if looks and valid < looks[0]:
        n_of = "session" if design.blocks_a_session else BLOCK
        there = f"there {'is' if valid == 1 else 'are'} {valid}"
        reason = f"It is judged after {looks[0]} valid {n_of}s; {there}."
        alone = tuple(
            replace(_not_counted(judgement, reason), n=valid, n_of=n_of) for judgement in alone
        )
    failed = next((gate.ratio for gate in gates if gate.kind == "violated"), None)
    ends = failed is None and all(judgement.decided for judgement in alone)
    return SequenceVerdict(
        judgements=_counted(alone, design) if failed is None else _refused(alone, failed),
        judged=judged,
        is_over=bool(looks) and valid >= looks[0] and (valid >= looks[-1] or ends),
    )


def _number_of_look(whole: np.ndarray, design: Design, sessions: ArrayLike | None) -> np.ndarray:
    """With which valid block, counted from 1, each block is judged, or with which session where
    looks count these; 0 of a block that is not judged.

    A session counts when it has a valid block and is over: it has all of its blocks, or a later one
    has begun.
    """
    if not design.blocks_a_session or sessions is None:
        return np.where(whole, np.cumsum(whole), 0)
    sessions = np.asarray(sessions)
    names, of, each = np.unique(sessions, return_inverse=True, return_counts=True)
    is_over = each >= design.blocks_a_session
    is_over[:-1] = True
    counts = is_over & np.isin(names, sessions[whole])
    return np.where(whole & counts[of], np.cumsum(counts)[of], 0)


def _refused(alone: Sequence[Judgement], ratio: float) -> tuple[Judgement, ...]:
    off = 100 * abs(ratio - 1)
    reason = (
        f"refused: the negative control failed: the rates differ by {off:.1f} % where no network "
        "is used."
    )
    return tuple(replace(judgement, answer=REFUSED, reason=reason) for judgement in alone)


def _counted(alone: Sequence[Judgement], design: Design) -> tuple[Judgement, ...]:
    counted, goes_on = [], True
    for judgement, statement in zip(alone, design.primary):
        if not goes_on:
            reason = "It does not count: the statement before it was not decided as expected."
            judgement = _not_counted(judgement, reason)
        counted.append(judgement)
        wanted = statement.expected
        goes_on = goes_on and (judgement.answer == wanted if wanted else judgement.decided)
    return tuple(counted)


def _not_counted(judgement: Judgement, reason: str) -> Judgement:
    """A statement that is left open, without the interval that would decide it."""
    return replace(
        judgement, answer=UNDECIDED, reason=reason, interval=None, confidence=None, p=None
    )


def _p(answer: str, mean: float, error: float, freedom: float, margin: float) -> float:
    """The p of the one-sided test of the answer; for an undecided one, that of the nearest
    decision."""
    error, limit = max(error, np.finfo(float).tiny), log_margin(margin)
    distances = {FLAT: limit - abs(mean), FALLS_OFF: -limit - mean, RISES: mean - limit}
    distance = -mean if answer == SIZE_OPEN else distances.get(answer, max(distances.values()))
    return float(stdtr(freedom, -distance / error))


def sum_of_means(groups: Sequence[tuple[int, Sequence[float]]]) -> tuple[float, float, float]:
    """(mean, standard error, degrees of freedom) of the sum of signed means; `groups` are a sign
    and values each. The error is NaN where a group has fewer than two values."""
    signed = [(sign, finite(values)) for sign, values in groups]
    counts = np.array([len(values) for _, values in signed])
    if counts.min() < 1:
        return math.nan, math.nan, math.nan
    mean = float(sum(sign * values.mean() for sign, values in signed))
    if counts.min() < 2:
        return mean, math.nan, math.nan
    return mean, *welch(np.array([values.var(ddof=1) for _, values in signed]) / counts, counts)


def judge_unordered(
    groups: Sequence[tuple[int, Sequence[float]]],
    margin: float,
    evidence: str,
    one_sided: float = LEVEL,
) -> Judgement:
    """The judgement on D, the sum of signed means of log rates, as `judge` gives it for
    blocks. `Judgement.n` is the fewest runs of a point."""
    mean, error, free = sum_of_means(groups)
    runs = min(len(finite(values)) for _, values in groups)
    if not math.isfinite(error):
        fall = None if math.isnan(mean) else -math.expm1(mean)
        return Judgement(UNDECIDED, fall, None, None, runs, margin, SINGLE, evidence)
    judgement = of_mean(mean, error, free, runs, margin, evidence, one_sided)
    return replace(judgement, condition=IF_ALIKE)
