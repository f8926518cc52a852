"""Did a course of sessions change, and when? A sequential rule with a stated rate of false alarms.

A session is a block of its own: sessions of an unchanged cluster differ by more than the blocks
within one do. So the value of a session is the mean of its blocks' log-speeds, and its variance is
that between sessions plus that within one over its number of blocks. None of the two is known
beforehand; both are learnt from the course itself.

**The test.** For each possible beginning k, a Bayes factor says how much better the values fit a
change since k than none: a step, or a drift that goes on. Mean and variance have the right Haar
prior, which makes the factor independent of both (Berger, Pericchi and Varshavsky, Sankhya A 60,
1998, 307-321), and the size in standard deviations a normal one. While nothing changes, each factor
is a martingale that starts at 1, so their sum less the number of sessions is one, too (Shiryaev
1963 and Roberts 1966; as "e-detector": Shin, Ramdas and Rinaldo, New Engl. J. Stat. Data Sci. 2,
2024, 229-260). By Doob's inequality the sum exceeds A within T sessions with a probability of at
most T / A, whatever mean and scatter are, and however few sessions there were to learn from. A
cluster with S courses takes A = 365 S over the alarms that it allows in 365 sessions.

**One bad night.** Each value is drawn to within CLIP robust standard deviations of the median of
all sessions before it (Huber, Ann. Math. Stat. 35, 1964, 73-101), and a change needs LEAST_AFTER
sessions. Heavy tails therefore raise no more alarms than a normal distribution; the limits of a
shorter window would wander, and with them what is clipped. So a single night, however bad, raises
no alarm; `outlying` names it.

**Neighbouring nights** may be alike, as when a room is warm for a week. The correlation of one
session with the next is learnt from all courses of a quantity, and each value is taken less that
share of the one before.

All values are logarithms of speeds over (courses, sessions). `make calibrate` measures both error
rates, with normal and with heavier tails, and how often the intervals are right
(data/calibration/history_*.csv).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

YEAR = 365  # sessions
# alarms of the whole cluster in a year; the goal is 1, which leaves room for what is not normal
ALLOWED = 0.5
CLIP = 2.5  # robust standard deviations that a value counts at most
_STRAY = 3.5  # robust standard deviations from which on a value is a stray one
LEAST_AFTER = 3  # sessions since a change
LEAST_BEFORE = 5
LEARNT = 60  # sessions from which the scatter between and within them is taken
MOST_ALIKE = 0.95  # correlation of neighbours that is allowed for
# False alarms in a year that the whole cluster stays below, up to a correlation
# (data/calibration/history_alarms.csv).
PROMISED = {0.2: 1, 0.9: 2}
_SPAN = 3, 18  # sessions, at least and at most, whose means are compared to learn the correlation
_NEIGHBOURS = np.array([-1.0, 1.0])
_BESIDE_STEP = 4  # sessions on each side that are compared to find a step
_STEP = 3.0  # robust standard deviations of such differences from which on one is a step
WINDOW = 40  # sessions from which a node's level is taken
# log scale: a course that scatters less, such as a simulation, is taken to scatter so much
RESOLUTION = 1e-5
_STEP_SD, _DRIFT_SD = 2.0, 1.0  # of the size [standard deviations]; of a drift, in DRIFT_NIGHTS
_DRIFT_NIGHTS = 7
_LEVEL_NIGHTS = 21  # of a level course that end a drift
_DATE_TRUST = 0.5  # of the evidence for a date: its interval is right at heavy tails, too
_MAD = 1.4826  # of a normal distribution, the standard deviation over the median absolute deviation
_CHUNK = 2_000_000  # Bayes factors at a time


@dataclass(frozen=True)
class Shift:
    """A change of one course, by the numbers of its sessions from 0.

    It began with session `first` (95 % interval `low` to `high`) and was complete with session
    `last`, the same for a step; it was named with session `named`. `size` (log scale) has its 95 %
    t interval `ends`, over sessions.
    """

    first: int
    low: int
    high: int
    last: int
    named: int
    size: float
    ends: tuple[float, float]

    @property
    def is_drift(self) -> bool:
        """Whether it took more than a week."""
        return self.last - self.first > _DRIFT_NIGHTS


def log_threshold(courses: int) -> float:
    """The logarithm of A for so many courses that together raise at most ALLOWED alarms a year."""
    return math.log(YEAR * courses / ALLOWED)


def promised(alike: float) -> int | None:
    """False alarms in YEAR sessions that are expected at most at this correlation; None beyond what
    was measured.
    """
    return next((alarms for most, alarms in PROMISED.items() if alike <= most), None)


def course(
    values: ArrayLike,
    weights: ArrayLike | None = None,
    threshold: float = math.log(YEAR / ALLOWED),
    alike: float = 0.0,
) -> list[Shift]:
    """All changes of one course, the earliest first; `weights` are those of `session_weights`, and
    `alike` is the correlation of neighbouring sessions.

    After a change the course is learnt anew. Unknown (NaN) sessions are passed over.
    """
    values = np.asarray(values, float)
    measured = np.flatnonzero(np.isfinite(values))
    x, begin, shifts = values[measured], 0, list[Shift]()
    w = np.ones(len(x)) if weights is None else np.asarray(weights, float)[measured]
    while (alarm := int(alarms(x[None, begin:], w[begin:], threshold, alike)[0])) >= 0:
        shift = _described(x[begin:], w[begin:], alarm, alike)
        shifts.append(_moved(shift, np.arange(begin, len(x))))
        begin += max(shift.last, 1)
    return [_moved(shift, measured) for shift in _joined(x, w, shifts, alike)]


def _joined(x: np.ndarray, w: np.ndarray, shifts: list[Shift], alike: float) -> list[Shift]:
    """The changes, with those that are together one drift as one: a drift is first seen as a step,
    then as another.
    """
    smooth = cleaned(x)
    for place, (shift, other) in enumerate(zip(shifts, shifts[1:])):
        begin = shifts[place - 1].last if place else 0
        end = shifts[place + 2].first if place + 2 < len(shifts) else len(x)
        if shift.size * other.size < 0 or end - begin < LEAST_BEFORE + LEAST_AFTER:
            continue
        part, weights = x[begin:end], w[begin:end]
        joined = _fitted(part, smooth[begin:end], weights, shift.named - begin, alike)
        way = _moved(joined, np.arange(begin, len(x)))
        rests = [_rest(x, w, begin, end, several) for several in ([way], [shift, other])]
        # Two changes have at least two parameters more than one, at the price that `_fitted` sets.
        if 0.5 * (end - begin) * math.log(rests[0] / rests[1]) < 2 * math.log(end - begin):
            return _joined(x, w, [*shifts[:place], way, *shifts[place + 2 :]], alike)
    return shifts


def _rest(x: np.ndarray, w: np.ndarray, begin: int, end: int, shifts: list[Shift]) -> float:
    """The sum of squares around the levels of a part of a course."""
    smooth = cleaned(x)
    ways = [_way(np.arange(len(x)), shift.first, shift.last) for shift in shifts]
    basis = np.column_stack([np.ones(end - begin), *(way[begin:end] for way in ways)])
    root = np.sqrt(w[begin:end])
    y = smooth[begin:end] * root
    solved = np.linalg.lstsq(basis * root[:, None], y, rcond=None)[0]
    return float(((y - basis * root[:, None] @ solved) ** 2).sum()) + (end - begin) * RESOLUTION**2


def _way(at: np.ndarray, first: Any, last: Any) -> np.ndarray:
    """The share of a change that is done by each session."""
    return np.clip((at - first + 1) / (last - first + 1), 0, 1)


def courses(
    values: np.ndarray, weights: np.ndarray, threshold: float, alike: float = 0.0
) -> list[list[Shift]]:
    """As `course` for each row of `values` (courses, sessions): those that were measured in the
    same sessions at once.
    """
    shifts: list[list[Shift]] = [[] for _ in values]
    masks, kinds = np.unique(np.isfinite(values), axis=0, return_inverse=True)
    for kind, measured in enumerate(masks):
        rows = np.flatnonzero(kinds == kind)
        named = alarms(values[np.ix_(rows, measured)], weights[measured], threshold, alike)
        for row in rows[named >= 0].tolist():
            shifts[row] = course(values[row], weights, threshold, alike)
    return shifts


def _moved(shift: Shift, numbers: np.ndarray) -> Shift:
    """The shift of a part of a course with other numbers of its sessions."""
    first, low, high, last, named = (
        int(numbers[at]) for at in (shift.first, shift.low, shift.high, shift.last, shift.named)
    )
    return Shift(first, low, high, last, named, shift.size, shift.ends)


def alarms(
    values: np.ndarray, weights: np.ndarray, threshold: float, alike: float = 0.0
) -> np.ndarray:
    """The session of each course, shape (courses,), at which a change since any earlier one is
    named; -1 if none is.

    `values` has shape (courses, sessions) without NaN, `weights` (sessions,), `threshold` is log A.
    """
    courses, sessions = values.shape
    alarm_sessions = np.full(courses, -1)
    if sessions < LEAST_BEFORE + LEAST_AFTER:
        return alarm_sessions
    fresh = values.copy()
    fresh[:, 1:] -= alike * values[:, :-1]
    fresh[:, 0] *= 1 - alike
    clipped = clip(fresh)
    at_once = max(1, _CHUNK // len(_pairs(sessions)[0]))
    for first in range(0, courses, at_once):
        above = log_evidence(clipped[first : first + at_once], weights) >= threshold
        alarm_sessions[first : first + at_once] = np.where(
            above.any(axis=1), above.argmax(axis=1), -1
        )
    return alarm_sessions


def clip(values: np.ndarray) -> np.ndarray:
    """The values, each within CLIP robust standard deviations of the median of all values before
    it.

    The first few are clipped by all of these few, twice as far away, as no alarm can come so early.
    """
    clipped, few = values.copy(), LEAST_BEFORE + LEAST_AFTER
    for at in range(values.shape[1]):
        before = values[:, : max(at, few)]
        # Few values make their MAD uncertain.
        reach = CLIP * (1 + 4 / before.shape[1]) if at >= few else 2 * CLIP
        middle, sd = _robust(before)
        clipped[:, at] = np.clip(values[:, at], middle - reach * sd, middle + reach * sd)
    return clipped


def _robust(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Median and robust standard deviation over the last axis."""
    middle = np.median(values, axis=-1)
    spread = np.median(np.abs(values - middle[..., None]), axis=-1)
    return middle, np.maximum(_MAD * spread, RESOLUTION)


def log_evidence(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The logarithm of the sum over all beginnings of their Bayes factors, over (courses,
    sessions); -inf before any.

    The two sums of squares that a factor needs are differences of cumulative sums.
    """
    courses, sessions = values.shape
    now, begin = _pairs(sessions)
    x = values - values[:, :1]  # the sums of squares lose no digits
    number = np.arange(sessions)

    def summed(terms: np.ndarray) -> np.ndarray:
        return np.concatenate([np.zeros((*terms.shape[:-1], 1)), terms.cumsum(axis=-1)], axis=-1)

    w, wt, wtt = (summed(weights * number**power) for power in range(3))
    wx, wtx, wxx = summed(weights * x), summed(weights * number * x), summed(weights * x**2)
    end = now + 1
    floor = RESOLUTION**2 * (end - 1)
    total = np.maximum(wxx[:, end] - wx[:, end] ** 2 / w[end], 0) + floor
    mean = wx[:, end] / w[end]

    def log_factor(h: Any, hh: Any, hx: Any, variance: float) -> np.ndarray:
        """Of the regressor h: its sum, its sum of squares, its products with x; prior variance of
        its size.
        """
        square = hh - h**2 / w[end]
        gain = variance * square
        explained = (hx - h * mean) ** 2 / square / total
        left = 1 - np.minimum(explained, 1) * (gain / (1 + gain))
        return -0.5 * np.log1p(gain) - 0.5 * (end - 1) * np.log(left)

    since = w[end] - w[begin]
    step = log_factor(since, since, wx[:, end] - wx[:, begin], _STEP_SD**2)
    first = begin - 1  # a drift's first session is already one night's share away
    t1 = (wt[end] - wt[begin]) - first * since
    t2 = (wtt[end] - wtt[begin]) - 2 * first * (wt[end] - wt[begin]) + first**2 * since
    tx = (wtx[:, end] - wtx[:, begin]) - first * (wx[:, end] - wx[:, begin])
    days = _DRIFT_NIGHTS
    drift = log_factor(t1 / days, t2 / days**2, tx / days, _DRIFT_SD**2)
    factors = np.exp(np.minimum(np.logaddexp(step, drift) - math.log(2), 600.0))
    starts = np.flatnonzero(np.diff(now, prepend=-1))
    sums = np.full((courses, sessions), -np.inf)
    sums[:, now[starts]] = np.log(np.add.reduceat(factors, starts, axis=1))
    return sums


def _pairs(sessions: int) -> tuple[np.ndarray, np.ndarray]:
    """Each session with every beginning that is still followed: all recent ones, and of the older
    ones ever fewer.
    """
    now, begin = np.tril_indices(sessions, -LEAST_AFTER + 1)
    age = now - begin + 1
    thinned = 2 ** np.maximum(np.floor(np.log2(np.maximum(age, 1) / 16)).astype(int), 0)
    chosen = (begin >= LEAST_BEFORE) & (begin % thinned == 0)
    return now[chosen], begin[chosen]


def correlation(values: np.ndarray) -> float:
    """The correlation of a session with the next, from 0 to MOST_ALIKE: the median over all courses
    of `values` (courses, sessions). 0 until there are 10 sessions.

    In a course of correlation r, the variance of a span's mean less those of its two neighbours,
    over that of the difference between two sessions, grows with r. Spans are the longer, and see
    the slower swings, the more sessions there are. A drift cancels, and differences across a step
    are left out, so neither is taken for correlation. From few sessions r comes out too low by some
    (1 + 3 r) / sessions (M. G. Kendall, Biometrika 41, 1954, 403-404), which is made good twice, as
    too low an r raises false alarms and too high a one only costs nights.
    """
    known = [course[np.isfinite(course)] for course in values]
    lengths = [len(course) for course in known if len(course) > 3 * _SPAN[0]]
    if not lengths:
        return 0.0
    sessions = float(np.median(lengths))
    span = int(np.clip(sessions / 12, *_SPAN))
    spans = np.repeat([1.0, -2.0, 1.0], span) / span
    apart = np.abs(np.subtract.outer(np.arange(3 * span), np.arange(3 * span)))
    possible = np.linspace(0, MOST_ALIKE, 96)
    ratios = [spans @ r**apart @ spans / (2 * (1 - r)) for r in possible]
    estimates = []
    for course in known:
        if len(course) > 3 * span:
            steps = _steps(course)
            ratio = _mean_square(course, steps, spans) / _mean_square(course, steps, _NEIGHBOURS)
            estimates.append(np.interp(ratio, ratios, possible))
    r = float(np.median(estimates))
    return min(r + 2 * r * (1 + 3 * r) / sessions, MOST_ALIKE)


def _steps(values: np.ndarray) -> np.ndarray:
    """The sessions before which a course steps: the means of some sessions on both sides differ far
    more than elsewhere, and most around there."""
    span = _BESIDE_STEP
    differences = np.correlate(values, np.repeat([-1.0, 1.0], span) / span)
    middle, sd = _robust(differences)
    size = np.abs(differences - middle)
    around = np.lib.stride_tricks.sliding_window_view(np.pad(size, span), 2 * span + 1)
    return np.flatnonzero((size > _STEP * sd) & (size >= around.max(axis=1))) + span


def _mean_square(values: np.ndarray, steps: np.ndarray, contrast: np.ndarray) -> float:
    """The mean square of a contrast along a course, in all places that no step lies in."""
    level = np.searchsorted(steps, np.arange(len(values)), side="right")
    last = len(contrast) - 1
    differences = np.correlate(values, contrast)[level[last:] == level[: len(level) - last]]
    floor = RESOLUTION**2 * float(contrast @ contrast)
    if not len(differences):
        return floor
    reach = _STRAY * _robust(differences)[1]
    return float((np.clip(differences, -reach, reach) ** 2).mean()) + floor


def _described(x: np.ndarray, w: np.ndarray, alarm: int, alike: float) -> Shift:
    """Date and size of the change that was named at session `alarm`, from all sessions until the
    course is level again.

    A change is a straight way from one level to another, by least squares; a step is one without a
    way.
    """
    smooth = cleaned(x)
    end = alarm + 1
    while True:
        end = min(len(x), end + 2 * _DRIFT_NIGHTS)
        shift = _fitted(x[:end], smooth[:end], w[:end], alarm, alike)
        if end == len(x) or end - shift.last > (_LEVEL_NIGHTS if shift.last > shift.first else 0):
            return shift


def cleaned(x: np.ndarray) -> np.ndarray:
    """The values with single outlying ones replaced by the median of three neighbours a side
    (Hampel's filter), which leaves the edges of steps alone."""
    padded = np.pad(x, 3, mode="reflect" if len(x) > 3 else "edge")
    around = np.lib.stride_tricks.sliding_window_view(padded, 7)
    middle = np.median(around, axis=1)
    rest = x - middle
    sd = max(_MAD * float(np.median(np.abs(rest))), RESOLUTION)
    return np.where(np.abs(rest) > _STRAY * sd, middle, x)


def _fitted(raw: np.ndarray, x: np.ndarray, w: np.ndarray, alarm: int, alike: float) -> Shift:
    """The change with the smallest sum of squares in the cleaned values `x`; its size if it is not
    over is that by the last session.

    The size's interval holds what the date leaves open, the scatter of the `raw` values, and that
    neighbours are `alike`.
    """
    sessions, at = len(x), np.arange(len(x))
    y = x - np.average(x, weights=w)
    latest = min(alarm, sessions - LEAST_AFTER)  # of a part, whose change may be named after it
    begins = np.arange(min(LEAST_BEFORE, latest), latest + 1)
    rests, sizes = np.full((2, len(begins), sessions), np.nan)
    for row, begin in enumerate(begins):
        ended = range(begin + _DRIFT_NIGHTS + 1, sessions - _LEVEL_NIGHTS)
        goes_on = [sessions - 1] if sessions - 1 > begin + _DRIFT_NIGHTS else []
        ends = np.array([begin, *ended, *goes_on])
        ways = _way(at, begin, ends[:, None])
        ways = ways - np.average(ways, axis=1, weights=w)[:, None]
        square, product = (w * ways**2).sum(axis=1), (w * ways * y).sum(axis=1)
        rests[row, ends] = np.maximum((w * y**2).sum() - product**2 / square, 0)
        sizes[row, ends] = product / square
    rests += sessions * RESOLUTION**2
    # A way that goes on has one parameter more than a step, one that has ended two. Each has to be
    # worth it, by twice the price of G. Schwarz, Ann. Stat. 6, 1978, 461-464.
    is_way = at[None, :] != begins[:, None]
    parameters = is_way + (is_way & (at < sessions - 1))
    score = -0.5 * sessions * np.log(rests / np.nanmin(rests)) - parameters * math.log(sessions)
    row, last = map(int, np.unravel_index(np.nanargmax(score), score.shape))
    shared = (1 - alike) / (1 + alike)  # of a value's information that its neighbours do not hold
    is_kind = (parameters == parameters[row, last]) & np.isfinite(score)
    relative = np.where(is_kind, _DATE_TRUST * shared * (score - score[row, last]), -np.inf)
    weight = np.exp(relative) / np.exp(relative).sum()
    dates = weight.sum(axis=1).cumsum()
    low, high = (
        begins[min(int(np.searchsorted(dates, p)), len(begins) - 1)] for p in (0.025, 0.975)
    )
    freedom = max(sessions - 3 - int(last != begins[row]), 1)
    way = _way(at, begins[row], last)
    way = way - np.average(way, weights=w)
    size, first = float(sizes[row, last]), int(begins[row])
    left = raw - np.average(raw, weights=w) - size * way
    reach = _STRAY * _robust(left)[1]
    scatter = (w * np.clip(left, -reach, reach) ** 2).sum()
    of_scatter = max(scatter, rests[row, last]) / freedom / (w * way**2).sum() / shared
    by_date = np.nansum(weight * (sizes - size) ** 2)
    half = stats.t.isf(0.025, freedom) * math.sqrt(of_scatter + by_date)
    between = size - half, size + half
    return Shift(first, min(int(low), first), max(int(high), first), last, alarm, size, between)


def fitted(sessions: int, values: np.ndarray, shifts: list[Shift]) -> np.ndarray:
    """The levels of a course, shape (sessions,): its median before all changes, and each change's
    way.
    """
    level = np.zeros(sessions)
    for shift in shifts:
        level += shift.size * _way(np.arange(sessions), shift.first, shift.last)
    return level + (np.nanmedian(values - level) if np.isfinite(values).any() else math.nan)


def outlying(rest: np.ndarray, tests: int) -> np.ndarray:
    """The sessions, in a course's values less its levels, that are single bad (or good) ones among
    `tests` values.

    Student's t of the robust scatter names one of them by chance in 20 clusters' years.
    """
    is_known = np.isfinite(rest)
    if is_known.sum() < LEAST_BEFORE + LEAST_AFTER:
        return np.zeros(0, int)
    middle, sd = _robust(rest[is_known])
    near = np.clip(rest[is_known], middle - _STRAY * sd, middle + _STRAY * sd)
    limit = stats.t.isf(0.05 / 2 / max(tests, 1), is_known.sum() - 1) * near.std(ddof=1)
    return np.flatnonzero(is_known & (np.abs(rest - middle) > limit))


def variances(values: np.ndarray, session: np.ndarray) -> tuple[float, float]:
    """(between sessions, within one), by the one-way analysis of variance; `values` and `session`
    of each block.

    NaN if no session has two blocks, or there is one session.
    """
    _, group = np.unique(session, return_inverse=True)
    counts = np.bincount(group)
    means = np.bincount(group, values) / counts
    n, groups = len(values), len(counts)
    if groups < 2 or n == groups:
        return (float(means.var(ddof=1)) if groups > 1 else math.nan), math.nan
    within = ((values - means[group]) ** 2).sum() / (n - groups)
    among = (counts * (means - values.mean()) ** 2).sum() / (groups - 1)
    mean_count = (n - (counts**2).sum() / n) / (groups - 1)
    return max((among - within) / mean_count, 0.0), float(within)


def session_weights(blocks: np.ndarray, between: float, within: float) -> np.ndarray:
    """The weights of sessions with so many blocks: their inverse variances, 1 for the median
    number.
    """
    if not (math.isfinite(within) and between + within > 0):
        return np.ones(len(blocks))
    counts = np.maximum(blocks, 1)
    return (between + within / max(np.median(counts), 1)) / (between + within / counts)


def sessions_to_name(loss: float, sd: float, before: int, threshold: float) -> int | None:
    """How many sessions name a step of `loss` (log scale) after `before` sessions that scatter by
    `sd`.

    None if more than a hundred are needed.
    """
    size = min(abs(loss) / max(sd, RESOLUTION), CLIP)
    for after in range(LEAST_AFTER, 101):
        n = before + after
        square = before * after / n
        gain, explained = _STEP_SD**2 * square, size**2 * square
        left = 1 - explained / (explained + n - 2) * gain / (1 + gain)
        if -0.5 * math.log1p(gain) - 0.5 * (n - 1) * math.log(left) - math.log(2) > threshold:
            return after
    return None
