"""What changed in a history, when, and where: on all nodes, behind a switch, or on some nodes.

A node's course is split as in a two-way table: its own level, what all nodes have in common in a session (the median),
and its rest. The common course, each switch's and each node's rest are tested together, with half of the allowed
alarms for the common courses and half for all others. Where a named change is, is then read from all nodes' own courses
before and after it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from analysis.comparison import differing_facts
from analysis.history.reading import History
from analysis.statistics import sessions as rule
from analysis.statistics.change import FASTER, SLOWER
from analysis.statistics.judgement import UNDECIDED, log_margin
from analysis.statistics.sessions import Shift

NO_CHANGE = "no change"
EXIT_CODES = {NO_CHANGE: 0, FASTER: 0, SLOWER: 1, UNDECIDED: 2}
LEAST_NODES = 4  # with fewer there is no median to compare with: each node is a course of its own
LEAST_BEHIND = 2  # nodes behind a switch that has a course of its own
MARGIN = 0.03  # relative; a loss that should be named in time
IN_TIME = 30  # sessions in which it should be
LEAST_KNOWN = 10  # sessions, before which nothing is called unchanged
_NEAR = 20  # sessions on each side of a change that tell where it is
_ECHO = 5  # how much larger a change is than its echo in the median
_MOST_OF_ALL = 0.8  # the share of the nodes that are called all


@dataclass(frozen=True)
class Course:
    """The values of one quantity: log speeds `values` over (sessions, nodes), NaN where a node was not measured.

    `nodes` is ("",) for a quantity of no single node. `blocks` are over (sessions,). `typical` is the geometric mean in
    `unit`. `between` and `within` are the standard deviations [log scale] between sessions and between the blocks of one,
    from the first sessions.
    """

    what: str
    unit: str
    lower_is_better: bool
    nodes: tuple[str, ...]
    values: np.ndarray
    blocks: np.ndarray
    between: float
    within: float

    @property
    def typical(self) -> float:
        """The geometric mean of all values in `unit`."""
        sign = -1 if self.lower_is_better else 1
        return float(np.exp(sign * np.nanmean(self.values)))


@dataclass(frozen=True)
class Moved:
    """The change of one quantity in a change: its relative `size` with 95 % t interval `ends`."""

    what: str
    size: float
    ends: tuple[float, float]


@dataclass(frozen=True)
class Change:
    """A change of the cluster: `moved` quantities, on `nodes` (empty: all, or of no single node).

    `place` says where in words. `shift` has its dates as numbers of sessions; `facts` are what else
    changed then, as (what, before, after).
    """

    place: str
    nodes: tuple[str, ...]
    moved: tuple[Moved, ...]
    shift: Shift
    facts: tuple[tuple[str, str, str], ...] = ()

    @property
    def answer(self) -> str:
        """SLOWER if the first quantity, the one that changed most, lost speed, else FASTER."""
        return SLOWER if self.moved[0].size < 0 else FASTER


@dataclass(frozen=True)
class BadNight:
    """A single session off its course by `size` (relative): in `whats`, on `nodes` (empty: all)."""

    session: int
    whats: tuple[str, ...]
    nodes: tuple[str, ...]
    size: float


@dataclass(frozen=True)
class Judged:
    """A history with its `changes` and `bad_nights`, the earliest first.

    `tests` is the number of courses tested together, and `alike` the correlation of neighbouring
    sessions. `to_name` is how many sessions name a loss of `margin` now, None if it is too many;
    `needed` is how many more sessions are needed until it can be named in IN_TIME, None if no
    number will do. Only changes named since session `since` count in `answer`.
    """

    history: History
    courses: tuple[Course, ...]
    changes: tuple[Change, ...]
    bad_nights: tuple[BadNight, ...]
    tests: int
    alike: float
    margin: float
    to_name: int | None
    needed: int | None
    since: int = 0

    @property
    def counted(self) -> tuple[Change, ...]:
        """The changes that were named since the given date."""
        return tuple(one for one in self.changes if one.shift.named >= self.since)

    @property
    def answer(self) -> str:
        """`slower` if any counted change is, else `undecided` if a loss could not be named yet, else `faster` or `no
        change`."""
        answers = {one.answer for one in self.counted}
        if SLOWER in answers:
            return SLOWER
        if self.needed != 0:
            return UNDECIDED
        return FASTER if FASTER in answers else NO_CHANGE

    def time(self, session: int) -> datetime:
        """When a session began."""
        return self.history.sessions[session].time


@dataclass(frozen=True)
class _Tested:
    """A course that is tested: of all nodes (`nodes` is empty), behind a switch, or of one node."""

    course: int
    nodes: tuple[int, ...]
    values: np.ndarray


@dataclass(frozen=True)
class _Group:
    """The common courses of a quantity, or its others: `values` over (courses, sessions), the logarithm of their
    threshold, and the correlation of neighbouring sessions."""

    course: int
    tested: list[_Tested]
    values: np.ndarray
    threshold: float
    alike: float


def judge(history: History, margin: float = MARGIN, since: datetime | None = None) -> Judged:
    """All changes and bad nights of a history. `since` is as in `Judged`, a date."""
    courses = tuple(courses_of(history))
    tested = [
        one for number, each in enumerate(courses) for one in split(number, each, history.switches)
    ]
    groups = [*_groups(tested, len(courses))]
    shifts = list[tuple[_Tested, Shift]]()
    for group in groups:
        course = courses[group.course]
        weights = rule.session_weights(course.blocks, course.between**2, course.within**2)
        found = rule.courses(group.values, weights, group.threshold, group.alike)
        shifts += [(one, shift) for one, several in zip(group.tested, found) for shift in several]
    placed = [
        found for one, shift in shifts for found in _placed(courses, one, shift, history.switches)
    ]
    merged = _merged(placed, history.switches)
    changes = [
        _with_facts(one, history)
        for one in merged
        if not any(_echoes(one, other) for other in merged)
    ]
    bad = _bad_nights(courses, tested, shifts)
    to_name, needed = _power(groups, margin, changes)
    first = 0
    if since is not None:
        first = sum(session.time < since for session in history.sessions)
    return Judged(
        history,
        courses,
        tuple(changes),
        tuple(bad),
        len(tested),
        max((group.alike for group in groups), default=0.0),
        margin,
        to_name,
        needed,
        first,
    )


def courses_of(history: History) -> Iterator[Course]:
    """Each quantity's values over sessions and nodes: the means of the blocks."""
    total = len(history.sessions)
    for what, rows in history.values.groupby("what", sort=False):
        nodes = tuple(dict.fromkeys(rows.node))
        of_session = rows.groupby(["session", "node"], sort=False).log
        values = of_session.mean().unstack().reindex(index=range(total), columns=list(nodes))
        counts = of_session.count().groupby("session").median().reindex(range(total))
        unit, lower = history.units[what]
        early = rows[rows.session.isin(sorted(rows.session.unique())[: rule.LEARNT])]
        parts = [
            rule.variances(one.log.to_numpy(), one.session.to_numpy())
            for _, one in list(early.groupby("node", sort=False))[:100]
        ]
        between, within = np.sqrt(_middle(np.array(parts).T)) if parts else (np.nan, np.nan)
        yield Course(
            what,
            unit,
            lower,
            nodes,
            values.to_numpy(),
            counts.fillna(0).to_numpy(),
            float(between),
            float(within),
        )


def split(number: int, course: Course, switches: Mapping[str, str]) -> Iterator[_Tested]:
    """The common course of all nodes, those of the switches, and the rest of each node."""
    values, nodes = course.values, course.nodes
    if len(nodes) < LEAST_NODES:
        single = nodes == ("",)
        for place in range(len(nodes)):
            yield _Tested(number, () if single else (place,), values[:, place])
        return
    own = values - _levels(values)
    common = _middle(own)
    yield _Tested(number, (), common)
    rest = own - common[:, None]
    for places in behind(nodes, switches).values():
        if LEAST_BEHIND <= len(places) < len(nodes):
            yield _Tested(number, tuple(places), _middle(rest[:, places]))
    for place in range(len(nodes)):
        yield _Tested(number, (place,), rest[:, place])


def behind(nodes: Sequence[str], switches: Mapping[str, str]) -> dict[str, list[int]]:
    """The places of the nodes behind each switch."""
    found: dict[str, list[int]] = {}
    for place, node in enumerate(nodes):
        if node in switches:
            found.setdefault(switches[node], []).append(place)
    return found


def _levels(values: np.ndarray) -> np.ndarray:
    """The median of each node's first sessions; a node that was away is not known by what it did after its return."""
    levels = np.full(values.shape[1], np.nan)
    for place, column in enumerate(values.T):
        known = np.flatnonzero(np.isfinite(column))
        if len(known):
            levels[place] = np.nanmedian(column[known[0] :][: rule.WINDOW])
    return levels


def _middle(values: np.ndarray) -> np.ndarray:
    """The median of each session's known values; NaN where there is none."""
    found = np.full(len(values), np.nan)
    known = np.isfinite(values).any(axis=1)
    found[known] = np.nanmedian(values[known], axis=1)
    return found


def _groups(tested: Sequence[_Tested], courses: int) -> Iterator[_Group]:
    """The common courses of each quantity, and its others, each with the threshold that their kind has."""
    commons = sum(not one.nodes for one in tested)
    halves = 2 if 0 < commons < len(tested) else 1
    for number in range(courses):
        for share, has_nodes in ((commons, False), (len(tested) - commons, True)):
            own = [one for one in tested if one.course == number and bool(one.nodes) is has_nodes]
            if own:
                values = np.array([one.values for one in own])
                threshold = rule.log_threshold(share * halves)
                yield _Group(number, own, values, threshold, rule.correlation(values))


def _placed(
    courses: Sequence[Course], one: _Tested, shift: Shift, switches: Mapping[str, str]
) -> Iterator[Change]:
    """The change with the nodes whose own courses changed so; none if it is only the other nodes' change seen from here."""
    course = courses[one.course]
    if len(course.nodes) < LEAST_NODES:
        nodes = tuple(course.nodes[place] for place in one.nodes)
        yield Change("", nodes, (_moved(course.what, shift.size, shift.ends),), shift)
        return
    own = _steps(course.values, shift)
    sign = np.sign(shift.size)
    size = sign * own
    among = [*one.nodes] or [*range(len(course.nodes))]
    known = np.isfinite(size)
    if not known[among].any():
        return
    if one.nodes and np.nanmedian(size[among]) <= 0.5 * abs(shift.size):
        return
    extent = abs(shift.size)
    if not one.nodes and known.any():  # of two halves that differ, the median of all tells half
        extent = max(extent, float(np.nanquantile(size, 0.9)) / 2)
    here = np.flatnonzero(known & (size > 0.5 * extent))
    chosen = here if not one.nodes else np.intersect1d(here, among)
    if not len(chosen):
        return
    if len(chosen) >= _MOST_OF_ALL * known.sum():
        chosen = np.zeros(0, int)
    change, ends = shift.size, shift.ends
    if not one.nodes and len(chosen):
        change = float(np.median(own[chosen]))
        half = (shift.ends[1] - shift.ends[0]) / 2
        ends = change - half, change + half
    nodes = tuple(course.nodes[place] for place in chosen)
    yield Change("", nodes, (_moved(course.what, change, ends),), shift)


def _steps(values: np.ndarray, shift: Shift) -> np.ndarray:
    """Each node's change: the median of its next values after it less that of its last values before it, however long the
    node was away; NaN if it has none."""
    steps = np.full(values.shape[1], np.nan)
    for place, column in enumerate(values.T):
        known = np.isfinite(column)
        before = column[: shift.first][known[: shift.first]][-_NEAR:]
        after = column[shift.last :][known[shift.last :]][:_NEAR]
        if len(before) and len(after):
            steps[place] = np.median(after) - np.median(before)
    return steps


def _moved(what: str, size: float, ends: tuple[float, float]) -> Moved:
    low, high = np.expm1(ends).tolist()
    return Moved(what, float(np.expm1(size)), (low, high))


def _merged(changes: Sequence[Change], switches: Mapping[str, str]) -> list[Change]:
    """The changes, with those that happened together in the same place, or in the same quantity, as one."""
    merged: list[Change] = []
    for one in sorted(changes, key=lambda each: (bool(each.nodes), each.shift.first)):
        for place, other in enumerate(merged):
            together = _at_once(one.shift, other.shift) and one.answer == other.answer
            same_what = {each.what for each in one.moved} & {each.what for each in other.moved}
            is_near = set(one.nodes) & set(other.nodes) or same_what and one.nodes and other.nodes
            is_echo = _far_larger(one, other) or _far_larger(other, one)
            is_of_all = same_what and not other.nodes
            if together and (one.nodes == other.nodes or is_of_all or is_near and not is_echo):
                merged[place] = _both(other, one)
                break
        else:
            merged.append(one)
    if len(merged) < len(changes):
        return _merged(merged, switches)
    named = [replace(one, place=_place(one.nodes, switches)) for one in merged]
    return sorted(named, key=lambda one: one.shift.first)


def _echoes(one: Change, other: Change) -> bool:
    """Whether a change is only what a far larger one does to a median: of other nodes to that with which all are compared,
    or of one node to that of its switch."""
    if not (
        one.nodes and other.nodes and _far_larger(other, one) and _at_once(one.shift, other.shift)
    ):
        return False
    return one.answer != other.answer or set(other.nodes) < set(one.nodes)


def _far_larger(one: Change, other: Change) -> bool:
    return abs(one.moved[0].size) > _ECHO * abs(other.moved[0].size)


def _at_once(one: Shift, other: Shift) -> bool:
    """Whether the intervals of their dates have a night in common, or one was named while the other went on."""
    apart = max(one.low, other.low) - min(one.high, other.high)
    return (
        apart <= 1
        or one.is_drift
        and other.is_drift
        and one.first <= other.last
        and other.first <= one.last
    )


def _both(one: Change, other: Change) -> Change:
    nodes = (
        () if not one.nodes or not other.nodes else tuple(dict.fromkeys((*one.nodes, *other.nodes)))
    )
    of_what = {
        each.what: each for each in sorted((*other.moved, *one.moved), key=lambda m: abs(m.size))
    }
    moved = sorted(of_what.values(), key=lambda each: -abs(each.size))
    narrow, wide = sorted((one.shift, other.shift), key=lambda each: each.high - each.low)
    named = min(narrow.named, wide.named)
    return Change("", nodes, tuple(moved), replace(narrow, named=named))


def _place(nodes: tuple[str, ...], switches: Mapping[str, str]) -> str:
    """Where a change is, in words; empty if it is of no single node."""
    if not nodes:
        return ""
    above = {switches.get(node, "") for node in nodes}
    (switch,) = above if len(above) == 1 else ("",)
    of_switch = [node for node, name in switches.items() if name == switch]
    if switch and len(nodes) > 1 and len(nodes) >= _MOST_OF_ALL * len(of_switch):
        return f"behind switch {switch}"
    if len(nodes) == 1:
        return f"on node {nodes[0]}"
    shown = ", ".join(nodes[:5])
    return f"on {len(nodes)} nodes: {shown}{' and others' if len(nodes) > 5 else ''}"


def _with_facts(change: Change, history: History) -> Change:
    """The change, with what was recorded as different between the last session before its date's interval and the first
    one after it."""
    shift, sessions = change.shift, history.sessions
    before = sessions[max(shift.low - 1, 0)].facts
    after = sessions[min(max(shift.high, shift.first), len(sessions) - 1)].facts
    facts = tuple(fact for fact in differing_facts(before, after))
    return replace(change, facts=facts)


def _bad_nights(
    courses: Sequence[Course], tested: Sequence[_Tested], shifts: Sequence[tuple[_Tested, Shift]]
) -> list[BadNight]:
    """The single sessions that are off a course's levels, those of one night as one."""
    single = [
        one for one in tested if len(one.nodes) < LEAST_BEHIND
    ]  # a switch's shows at its nodes
    tests = sum(int(np.isfinite(one.values).sum()) for one in single)
    found: dict[int, list[tuple[_Tested, float]]] = {}
    for one in single:
        own = [shift for other, shift in shifts if other is one]
        rest = one.values - rule.fitted(len(one.values), one.values, own)
        outlying = rule.outlying(rest, tests)
        ended = (
            len(rest) - rule.LEAST_AFTER + 1
        )  # of a run at the end, nobody knows yet whether it is a change
        for night in outlying.tolist():
            near = [other for other in outlying if 0 < abs(other - night) <= 1]
            if not near or night >= ended:
                found.setdefault(night, []).append((one, float(rest[night])))
    nights = []
    for night, parts in sorted(found.items()):
        everywhere = [part for part in parts if not part[0].nodes]
        chosen = everywhere or parts
        places = dict.fromkeys(
            courses[one.course].nodes[place] for one, _ in chosen for place in one.nodes
        )
        whats = tuple(dict.fromkeys(courses[one.course].what for one, _ in chosen))
        worst = max((size for _, size in chosen), key=abs)
        nights.append(BadNight(night, whats, tuple(places), float(np.expm1(worst))))
    return nights


def _power(
    groups: Sequence[_Group], margin: float, changes: Sequence[Change]
) -> tuple[int | None, int | None]:
    """(to_name, needed) of `Judged`: of the quantity and kind of course that need most."""
    answers = []
    for group in groups:
        threshold, alike = group.threshold, group.alike
        loss = log_margin(margin) * (1 - alike) / np.sqrt(1 - alike**2)
        since = max((c.shift.last for c in changes if not c.nodes), default=0)
        have = max(int(np.median(np.isfinite(group.values).sum(axis=1))) - since, 0)
        sd = float(np.median([*map(_scatter, group.values)]))
        if not np.isfinite(sd):  # so few sessions tell no scatter yet
            answers.append((None, LEAST_KNOWN - have))
            continue
        known = have >= LEAST_KNOWN
        now = rule.sessions_to_name(loss, sd, have, threshold) if known else None
        if now is not None and now <= IN_TIME:
            answers.append((now, 0))
            continue
        until = next(
            (
                n
                for n in range(max(have, LEAST_KNOWN), rule.YEAR)
                if (rule.sessions_to_name(loss, sd, n, threshold) or IN_TIME + 1) <= IN_TIME
            ),
            None,
        )
        answers.append((now, None if until is None else max(until - have, 1)))
    if any(needed is None for _, needed in answers):
        return None, None
    known = [now for now, _ in answers]
    return (None if None in known else max(known)), max(needed for _, needed in answers)


def _scatter(values: np.ndarray) -> float:
    """The standard deviation of a course that changes little, from differences of neighbours."""
    known = values[np.isfinite(values)]
    if len(known) < 3:
        return np.inf
    steps = np.abs(np.diff(known))
    return max(float(1.4826 * np.median(steps) / np.sqrt(2)), rule.RESOLUTION)
