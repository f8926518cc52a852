"""What changed in a history, when, and where: on all nodes, behind a switch, or on some nodes.

A node's course is split as in a two-way table: its own level, what all nodes have in common in a
session (the median), and its rest. The common course, each switch's and each node's rest are tested
together, with half of the allowed alarms for the common courses and half for all others. Where a
named change is, is then read from all nodes' own courses before and after it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pandas as pd

from analysis.statistics import course_changes, same
from analysis.statistics.course_changes import Shift
from analysis.statistics.judgement import UNDECIDED, log_margin
from analysis.statistics.same import FASTER, MARGIN, SLOWER
from analysis.watch.comparison import differing_facts
from analysis.watch.history_sessions import History

NO_CHANGE = "no change"
EXIT_CODES = same.EXIT_CODES | {NO_CHANGE: 0}
LEAST_NODES = 4  # with fewer there is no median to compare with: each node is a course of its own
LEAST_BEHIND = 2  # nodes behind a switch that has a course of its own
IN_TIME = 30  # sessions within which it should be named
LEAST_KNOWN = 10  # with fewer sessions nothing is called unchanged
_NEAR = 20  # sessions on each side of a change that decide which nodes changed
_ECHO = 5  # how much larger a change is than its echo in the median
_MOST_OF_ALL = 0.8  # the share of the nodes that are called all


@dataclass(frozen=True)
class Course:
    """The values of one quantity: log speeds `values` over (sessions, nodes), NaN where a node was
    not measured.

    `nodes` is ("",) for a quantity of no single node. `blocks` are over (sessions,). `typical` is
    the geometric mean in `unit`. `between` and `within` are the standard deviations [log scale]
    between sessions and between the blocks of one, from the first sessions.
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
class QuantityChange:
    """How one quantity changed: its relative `size` with 95 % t interval `ends`."""

    what: str
    size: float
    ends: tuple[float, float]


@dataclass(frozen=True)
class ClusterChange:
    """A change of the cluster in these `quantities`, the largest first, on `nodes` (empty: all, or
    of no single node).

    `place` says where in words. `shift` has its dates as numbers of sessions; `facts` are what else
    changed then, as (what, before, after).
    """

    nodes: tuple[str, ...]
    quantities: tuple[QuantityChange, ...]
    shift: Shift
    place: str = ""
    facts: tuple[tuple[str, str, str], ...] = ()

    @property
    def answer(self) -> str:
        """SLOWER if the quantity that changed most lost speed, else FASTER."""
        return SLOWER if self.quantities[0].size < 0 else FASTER


@dataclass(frozen=True)
class BadNight:
    """A single session off its course by `size` (relative): in `whats`, on `nodes` (empty: all)."""

    session: int
    whats: tuple[str, ...]
    nodes: tuple[str, ...]
    size: float


@dataclass(frozen=True)
class HistoryVerdict:
    """A history with its `changes` and `bad_nights`, the earliest first.

    `tests` is the number of courses tested together, and `alike` the correlation of neighbouring
    sessions. `to_name` is how many sessions name a loss of `margin` now, None if it is too many;
    `needed` is how many more sessions are needed until it can be named in IN_TIME, None if no
    number will do. Only changes named since session `since` count in `answer`.
    """

    history: History
    courses: tuple[Course, ...]
    changes: tuple[ClusterChange, ...]
    bad_nights: tuple[BadNight, ...]
    tests: int
    alike: float
    margin: float
    to_name: int | None
    needed: int | None
    since: int = 0

    @property
    def counted(self) -> tuple[ClusterChange, ...]:
        """The changes that were named since the given date."""
        return tuple(change for change in self.changes if change.shift.named >= self.since)

    @property
    def answer(self) -> str:
        """`slower` if any counted change is, else `undecided` if a loss could not be named yet,
        else `faster` or `no change`."""
        answers = {change.answer for change in self.counted}
        if SLOWER in answers:
            return SLOWER
        if self.needed != 0:
            return UNDECIDED
        return FASTER if FASTER in answers else NO_CHANGE

    def time(self, session: int) -> datetime:
        """When a session began."""
        return self.history.sessions[session].time


@dataclass(frozen=True)
class _Part:
    """A part of a course that is tested: of all nodes (`nodes` is empty), behind a switch, or of
    one node.
    """

    course: int
    nodes: tuple[int, ...]
    values: np.ndarray


@dataclass(frozen=True)
class _Group:
    """The common part of a quantity's course, or its other parts: `values` over (parts, sessions),
    the logarithm of their threshold, and the correlation of neighbouring sessions."""

    course: int
    parts: list[_Part]
    values: np.ndarray
    threshold: float
    alike: float


def judge(
    history: History, margin: float = MARGIN, since: datetime | None = None
) -> HistoryVerdict:
    """All changes and bad nights of a history. `since` is as in `HistoryVerdict`, a date."""
    courses, parts = tuple(courses_of(history)), list[_Part]()
    for number, course in enumerate(courses):
        parts += split(number, course, history.switches)
    groups = [*_groups(parts)]
    shifts, placed = list[tuple[_Part, Shift]](), list[ClusterChange]()
    for group in groups:
        course = courses[group.course]
        weights = course_changes.session_weights(course.blocks, course.between**2, course.within**2)
        by_part = course_changes.courses(group.values, weights, group.threshold, group.alike)
        for part, shifts_of_part in zip(group.parts, by_part):
            for shift in shifts_of_part:
                shifts.append((part, shift))
                placed += _placed(course, part, shift)
    merged = _merged(placed)
    changes = tuple(
        _described(change, history)
        for change in sorted(merged, key=lambda change: change.shift.first)
        if not any(_echoes(change, other) for other in merged)
    )
    to_name, needed = _power(groups, margin, changes)
    first = sum(session.time < since for session in history.sessions) if since else 0
    return HistoryVerdict(
        history,
        courses,
        changes,
        tuple(_bad_nights(courses, parts, shifts)),
        len(parts),
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
        early = rows[rows.session.isin(sorted(rows.session.unique())[: course_changes.LEARNT])]
        parts = [
            course_changes.variances(of_node.log.to_numpy(), of_node.session.to_numpy())
            for _, of_node in list(early.groupby("node", sort=False))[:100]
        ]
        between, within = np.sqrt(_middle(np.array(parts).T))
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


def split(number: int, course: Course, switches: Mapping[str, str]) -> Iterator[_Part]:
    """The common course of all nodes, those of the switches, and the rest of each node."""
    values, nodes = course.values, course.nodes
    if len(nodes) < LEAST_NODES:
        single = nodes == ("",)
        for place in range(len(nodes)):
            yield _Part(number, () if single else (place,), values[:, place])
        return
    around_level = values - _levels(values)
    common = _middle(around_level)
    yield _Part(number, (), common)
    rest = around_level - common[:, None]
    behind = pd.Series([switches.get(node) for node in nodes])
    for places in behind.groupby(behind, sort=False).groups.values():
        if LEAST_BEHIND <= len(places) < len(nodes):
            yield _Part(number, tuple(places), _middle(rest[:, places]))
    for place in range(len(nodes)):
        yield _Part(number, (place,), rest[:, place])


def _levels(values: np.ndarray) -> np.ndarray:
    """The median of each node's first sessions, before it was away if it ever was."""
    first = np.isfinite(values).argmax(axis=0)
    early = (column[at:][: course_changes.WINDOW] for column, at in zip(values.T, first))
    return np.array([np.nanmedian(column) for column in early])


def _middle(values: np.ndarray) -> np.ndarray:
    """The median of each session's values; NaN where there is none."""
    return pd.DataFrame(values).median(axis=1).to_numpy()


def _groups(parts: Sequence[_Part]) -> Iterator[_Group]:
    """The common part of each quantity's course, and its other parts, each with the threshold of
    their kind.
    """
    kinds = Counter(bool(part.nodes) for part in parts)
    groups: dict[tuple[int, bool], list[_Part]] = {}
    for part in parts:
        groups.setdefault((part.course, bool(part.nodes)), []).append(part)
    for (number, has_nodes), group in groups.items():
        values = np.array([part.values for part in group])
        threshold = course_changes.log_threshold(kinds[has_nodes] * len(kinds))
        yield _Group(number, group, values, threshold, course_changes.correlation(values))


def _placed(course: Course, part: _Part, shift: Shift) -> Iterator[ClusterChange]:
    """The change on the nodes whose own courses show it; nothing if it only reflects a change of
    the other nodes.
    """
    size, ends, chosen = shift.size, shift.ends, [*part.nodes]
    if len(course.nodes) >= LEAST_NODES:
        steps = _steps(course.values, shift)
        losses = np.sign(size) * steps
        measured, among = np.isfinite(losses), chosen or [*range(len(course.nodes))]
        if not measured[among].any():
            return
        extent = abs(size)
        if part.nodes and np.nanmedian(losses[among]) <= 0.5 * extent:
            return
        if not part.nodes:  # of two halves that differ, the median of all tells half
            extent = max(extent, float(np.nanquantile(losses, 0.9)) / 2)
        chosen = [place for place in among if losses[place] > 0.5 * extent]
        if not chosen:
            return
        if len(chosen) >= _MOST_OF_ALL * measured.sum():
            chosen = []
        if chosen and not part.nodes:
            size, half = float(np.median(steps[chosen])), (ends[1] - ends[0]) / 2
            ends = size - half, size + half
    nodes = tuple(course.nodes[place] for place in chosen)
    low, high = np.expm1(ends).tolist()
    changed = QuantityChange(course.what, float(np.expm1(size)), (low, high))
    yield ClusterChange(nodes, (changed,), shift)


def _steps(values: np.ndarray, shift: Shift) -> np.ndarray:
    """Each node's change: the median of its next values after it less that of its last values
    before it, however long the node was away; NaN if it has none."""
    steps = np.full(values.shape[1], np.nan)
    for place, column in enumerate(values.T):
        measured = np.isfinite(column)
        before = column[: shift.first][measured[: shift.first]][-_NEAR:]
        after = column[shift.last :][measured[shift.last :]][:_NEAR]
        if len(before) and len(after):
            steps[place] = np.median(after) - np.median(before)
    return steps


def _merged(changes: Sequence[ClusterChange]) -> list[ClusterChange]:
    """The changes, with those that happened together in the same place, or in the same quantity, as
    one.
    """
    merged: list[ClusterChange] = []
    for change in sorted(changes, key=lambda change: (bool(change.nodes), change.shift.first)):
        for place, other in enumerate(merged):
            if _is_same(change, other):
                merged[place] = _both(other, change)
                break
        else:
            merged.append(change)
    return _merged(merged) if len(merged) < len(changes) else merged


def _is_same(change: ClusterChange, other: ClusterChange) -> bool:
    """Whether two changes are one, seen in two quantities or at two places."""
    if not _at_once(change.shift, other.shift) or change.answer != other.answer:
        return False
    if change.nodes == other.nodes:
        return True
    same_what = {q.what for q in change.quantities} & {q.what for q in other.quantities}
    if not other.nodes:
        return bool(same_what)
    is_near = set(change.nodes) & set(other.nodes) or same_what and change.nodes
    is_echo = _far_larger(change, other) or _far_larger(other, change)
    return bool(is_near) and not is_echo


def _echoes(change: ClusterChange, other: ClusterChange) -> bool:
    """Whether a change is only what a far larger one does to a median: of other nodes to that with
    which all are compared, or of one node to that of its switch."""
    is_possible = change.nodes and other.nodes and _far_larger(other, change)
    if not is_possible or not _at_once(change.shift, other.shift):
        return False
    return change.answer != other.answer or set(other.nodes) < set(change.nodes)


def _far_larger(change: ClusterChange, other: ClusterChange) -> bool:
    return abs(change.quantities[0].size) > _ECHO * abs(other.quantities[0].size)


def _at_once(shift: Shift, other: Shift) -> bool:
    """Whether the intervals of their dates have a night in common, or one was named while the other
    went on.
    """
    if max(shift.low, other.low) - min(shift.high, other.high) <= 1:
        return True
    overlap = shift.first <= other.last and other.first <= shift.last
    return shift.is_drift and other.is_drift and overlap


def _both(change: ClusterChange, other: ClusterChange) -> ClusterChange:
    nodes: tuple[str, ...] = ()
    if change.nodes and other.nodes:
        nodes = tuple(dict.fromkeys((*change.nodes, *other.nodes)))
    by_size = sorted((*other.quantities, *change.quantities), key=lambda q: abs(q.size))
    of_what = {quantity.what: quantity for quantity in by_size}  # the larger of two of one name
    quantities = sorted(of_what.values(), key=lambda q: -abs(q.size))
    narrow, wide = sorted((change.shift, other.shift), key=lambda shift: shift.high - shift.low)
    named = min(narrow.named, wide.named)
    return ClusterChange(nodes, tuple(quantities), replace(narrow, named=named))


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


def _described(change: ClusterChange, history: History) -> ClusterChange:
    """The change with its place in words, and with what was recorded as different between the last
    session before its date's interval and the first one after it."""
    shift, sessions = change.shift, history.sessions
    before = sessions[max(shift.low - 1, 0)].facts
    after = sessions[min(max(shift.high, shift.first), len(sessions) - 1)].facts
    place = _place(change.nodes, history.switches)
    return replace(change, place=place, facts=tuple(differing_facts(before, after)))


def _bad_nights(
    courses: Sequence[Course], parts: Sequence[_Part], shifts: Sequence[tuple[_Part, Shift]]
) -> Iterator[BadNight]:
    """The single sessions that are off a course's levels, those of one night as one."""
    # A switch's bad night shows at its nodes.
    single = [part for part in parts if len(part.nodes) < LEAST_BEHIND]
    tests = sum(int(np.isfinite(part.values).sum()) for part in single)
    sizes: dict[int, list[tuple[_Part, float]]] = {}
    for part in single:
        of_part = [shift for other, shift in shifts if other is part]
        rest = part.values - course_changes.fitted(len(part.values), part.values, of_part)
        outlying = course_changes.outlying(rest, tests)
        # Of a run at the end, nobody knows yet whether it is a change.
        ended = len(rest) - course_changes.LEAST_AFTER + 1
        for night in outlying.tolist():
            has_neighbour = {night - 1, night + 1} & {*outlying.tolist()}
            if not has_neighbour or night >= ended:
                sizes.setdefault(night, []).append((part, float(rest[night])))
    for night, off in sorted(sizes.items()):
        chosen = [(part, size) for part, size in off if not part.nodes] or off
        nodes = dict.fromkeys(
            courses[part.course].nodes[place] for part, _ in chosen for place in part.nodes
        )
        whats = dict.fromkeys(courses[part.course].what for part, _ in chosen)
        worst = max((size for _, size in chosen), key=abs)
        yield BadNight(night, tuple(whats), tuple(nodes), float(np.expm1(worst)))


def _power(
    groups: Sequence[_Group], margin: float, changes: Sequence[ClusterChange]
) -> tuple[int | None, int | None]:
    """(to_name, needed) of `HistoryVerdict`: of the quantity and kind of course that need most."""
    answers: list[tuple[int | None, int | None]] = []
    since = max((c.shift.last for c in changes if not c.nodes), default=0)

    def names_in_time(sessions: int) -> bool:
        to_name = course_changes.sessions_to_name(loss, sd, sessions, threshold)
        return to_name is not None and to_name <= IN_TIME

    for group in groups:
        threshold, alike = group.threshold, group.alike
        loss = log_margin(margin) * (1 - alike) / np.sqrt(1 - alike**2)
        have = max(int(np.median(np.isfinite(group.values).sum(axis=1))) - since, 0)
        sd = float(np.median([*map(_scatter, group.values)]))
        if not np.isfinite(sd):  # so few sessions tell no scatter yet
            answers.append((None, LEAST_KNOWN - have))
            continue
        least = max(have, LEAST_KNOWN)
        now = (
            course_changes.sessions_to_name(loss, sd, have, threshold)
            if have >= LEAST_KNOWN
            else None
        )
        until = next(filter(names_in_time, range(least, max(course_changes.YEAR, least + 1))), None)
        answers.append((now, None if until is None else until - have))
    to_name, needed = zip(*answers)
    if None in needed:
        return None, None
    return (None if None in to_name else max(to_name)), max(needed)


def _scatter(values: np.ndarray) -> float:
    """The standard deviation of a course that changes little, from differences of neighbours."""
    values = values[np.isfinite(values)]
    if len(values) < 3:
        return np.inf
    steps = np.abs(np.diff(values))
    return max(float(1.4826 * np.median(steps) / np.sqrt(2)), course_changes.RESOLUTION)
