"""Did a cluster change? Every point and every planned contrast of two samples, OLD and NEW, with one of four answers."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.exhibit import COUNTS
from analysis.samples import Point, Sample, quantity, settings_of, varying
from analysis.statistics import change
from analysis.statistics.change import FASTER, SAME, SLOWER
from analysis.statistics.judgement import UNDECIDED
from analysis.wording import listed
from runners.record import FalloffError

EXIT_CODES = {SAME: 0, FASTER: 0, SLOWER: 1, UNDECIDED: 2}


@dataclass(frozen=True)
class Change:
    """One statement: `what` was compared, its `answer` and what it rests on.

    `ratio` is the speed of NEW over that of OLD (geometric means) with its 95 % t interval `low`, `high`; of a
    contrast, what one network keeps of another's speed from fewer to more nodes, NEW over OLD. Unknown is NaN. `old` and
    `new` hold the blocks' log-speeds, shape (blocks,); `points` are those that it is made of, and `unit` that of their
    values, empty for a contrast. `alone` is the answer without a correction for the number of statements.
    `blocks_needed` is about how many a side would need to call an unchanged speed the same (`change.blocks_needed`).
    """

    what: str
    points: tuple[Point, ...]
    unit: str
    lower_is_better: bool
    old: np.ndarray
    new: np.ndarray
    ratio: float
    low: float
    high: float
    answer: str
    alone: str
    blocks_needed: float

    @property
    def is_contrast(self) -> bool:
        """Whether it compares networks with each other, and not one with itself."""
        return len(self.points) > 1

    @property
    def means(self) -> tuple[float, float]:
        """The geometric means of OLD's and NEW's values in their unit, of a contrast its ratios."""
        sign = -1 if self.lower_is_better else 1
        return tuple(math.exp(sign * logs.mean()) for logs in (self.old, self.new))

    @property
    def reason(self) -> str:
        """Why it is undecided, in a few words; else empty."""
        if self.answer != UNDECIDED:
            return ""
        if math.isnan(self.low):
            return "a single block has no interval"
        if self.alone != UNDECIDED:
            return f"alone {self.alone}, not among all statements (Holm)"
        return "the interval holds 1 and reaches beyond the margin"


@dataclass(frozen=True)
class Comparison:
    """OLD beside NEW: `changes` are judged together, against a relative `margin`.

    `only_old` and `only_new` are the labels of points that one side lacks. `facts` are what else is known to differ, as
    (what, in OLD, in NEW), and `one_sided_facts` what only one side recorded.
    """

    old: Sample
    new: Sample
    margin: float
    changes: tuple[Change, ...]
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    facts: tuple[tuple[str, str, str], ...]
    one_sided_facts: tuple[str, ...]

    @property
    def answer(self) -> str:
        """The answer of all: `slower` where any is, else `undecided` where any is, else `faster` or `the same`."""
        return change.overall(one.answer for one in self.changes)

    def with_answer(self, answer: str) -> tuple[Change, ...]:
        """The statements of which this is the answer."""
        return tuple(one for one in self.changes if one.answer == answer)


def compare(old: Sample, new: Sample, margin: float = change.MARGIN) -> Comparison:
    """Compare two samples at the points that both have.

    A point is what was run with all of its settings: other settings make it another point. Raises FalloffError where the
    samples have different kinds of evidence, or no point in common.
    """
    if Path(old.source).resolve() == Path(new.source).resolve():
        raise FalloffError(
            f"OLD and NEW are both {old.source}: name what was measured at another time"
        )
    if old.evidence != new.evidence:
        kinds = f"{old.source} is {old.evidence} and {new.source} {new.evidence} evidence"
        raise FalloffError(f"{kinds}: kinds of evidence are not compared with each other")
    olds, news = old.log_speeds(), new.log_speeds()
    common = [point for point in olds if point in news]
    if not common:
        raise FalloffError(
            f"{old.source} and {new.source} have no point in common{_apart([*olds], [*news])}"
        )
    common = sorted(common, key=_order(common))
    label = _labels([*dict.fromkeys([*olds, *news])], {**new.names, **old.names})
    rows = [(label(point), (point,), olds[point], news[point]) for point in common]
    rows += _contrasts(old, common, olds, news)
    old_rows, new_rows = ([_known(row[side]) for row in rows] for side in (2, 3))
    is_exact = old.evidence == "simulated"
    found = (change.exactly if is_exact else change.differences)(
        _padded(old_rows), _padded(new_rows)
    )
    answers, alone = (change.answers(found, margin, together) for together in (True, False))
    blocks = np.array([(len(a) + len(b)) / 2 for a, b in zip(old_rows, new_rows)])
    needed = change.blocks_needed(found, blocks, margin)
    ratios = np.exp([found.difference, *found.intervals])
    changes = tuple(
        Change(
            what=what,
            points=points,
            unit=old.units[quantity(points[0])] if len(points) == 1 else "",
            lower_is_better=len(points) == 1 and old.better[quantity(points[0])] == "lower",
            old=old_rows[i],
            new=new_rows[i],
            ratio=float(ratios[0][i]),
            low=float(ratios[1][i]),
            high=float(ratios[2][i]),
            answer=answers[i].item(),
            alone=alone[i].item(),
            blocks_needed=float(needed[i]),
        )
        for i, (what, points, _, _) in enumerate(rows)
    )
    only_old = tuple(label(point) for point in olds if point not in news)
    only_new = tuple(label(point) for point in news if point not in olds)
    facts = _facts(old.facts, new.facts)
    return Comparison(old, new, margin, changes, only_old, only_new, *facts)


def few(words: Sequence[str], most: int = 5) -> str:
    """The first words, and how many more there are."""
    more = len(words) - most
    return "; ".join(words[:most]) + (f"; and {more} more" if more > 0 else "")


def _facts(old: Mapping[str, str], new: Mapping[str, str]):
    """What differs, nodes that differ alike in one row; and what is known of one side only."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for name in old:
        if name in new and old[name] != new[name]:
            node = re.match(r"session/nodes/([^/]+)/(.+)", name)
            what = f"nodes: {node[2]}" if node else name
            groups.setdefault((what, old[name], new[name]), []).append(node[1] if node else "")
    facts = []
    for (what, before, after), nodes in groups.items():
        of = f" of {few(nodes, 3)}" if nodes[0] else ""
        facts.append((what + of, before, after))
    one_sided = {"/".join(name.split("/")[:2]) for name in old.keys() ^ new.keys()}
    return tuple(facts), tuple(sorted(one_sided)) if old and new else ()


def _contrasts(
    sample: Sample, common: Sequence[Point], olds: Mapping, news: Mapping
) -> Iterator[tuple]:
    """The planned contrasts of which both sides have all points, each of which is the only one of its level and nodes."""
    for statement in sample.statements:
        points = [
            [point for point in common if _is(point, {sample.compared: level, "nodes": nodes})]
            for nodes in (statement.end, statement.start)
            for level in (statement.of, statement.against)
        ]
        if not all(len(one) == 1 for one in points):
            continue
        points = tuple(one for (one,) in points)
        kept = [
            speeds[points[0]] - speeds[points[1]] - (speeds[points[2]] - speeds[points[3]])
            for speeds in (olds, news)
        ]
        if not all(_known(blocks).size for blocks in kept):
            continue  # no block has all four
        of, against = (
            sample.names.get(str(level), str(level)) for level in (statement.of, statement.against)
        )
        yield f"{of} / {against}, {statement.start} to {statement.end} nodes", points, *kept


def _is(point: Point, settings: Mapping) -> bool:
    known = dict(point)
    return all(known.get(name) == value for name, value in settings.items())


def _labels(points: Sequence[Point], names: Mapping[str, str]):
    """A function that names a point by as few settings as tell all of them apart."""
    chosen: list[str] = []
    apart = 1 if points else 0
    quantities = len({quantity(point) for point in points}) > 1
    for name in varying(points):
        now = len({_at(point, [*chosen, name]) for point in points})
        if now > apart:
            chosen, apart = [*chosen, name], now
    chosen = chosen or settings_of(points)[:1]

    def label(point: Point) -> str:
        words = [quantity(point).replace("_", " ")] if quantities else []
        words += [
            _word(name, dict(point).get(name), names) for name in chosen if name in dict(point)
        ]
        return ", ".join(words) or quantity(point)

    return label


def _at(point: Point, chosen: Sequence[str]) -> tuple:
    known = dict(point)
    return tuple(known.get(name) for name in chosen)


def _word(name: str, value, names: Mapping[str, str]) -> str:
    if name in COUNTS:
        return f"{_setting(value)} {name[:-1] if value == 1 else name}"
    if isinstance(value, str):
        return names.get(value, value.replace("_", " "))
    return f"{name.replace('_', ' ')} {_setting(value)}"


def _setting(value) -> str:
    """A setting as it was given."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _order(points: Sequence[Point]):
    """By quantity, then by each setting; numbers by size, and levels by the order in which they came."""
    names = varying(points)
    seen = {name: [*dict.fromkeys(dict(point).get(name) for point in points)] for name in names}

    def key(point: Point) -> tuple:
        known, places = dict(point), []
        for name in names:
            value = known.get(name)
            is_number = isinstance(value, (int, float))
            places.append((0, value) if is_number else (1, seen[name].index(value)))
        return quantity(point), *places

    return key


def _apart(olds: Sequence[Point], news: Sequence[Point]) -> str:
    """Why no point is in both: the settings of which they share no value."""
    reasons = []
    quantities = [sorted({quantity(point) for point in points}) for points in (olds, news)]
    if not set(quantities[0]) & set(quantities[1]):
        return f": the one has {listed(quantities[0])}, the other {listed(quantities[1])}"
    for name in settings_of([*olds, *news]):
        old, new = ({dict(point).get(name) for point in points} for points in (olds, news))
        if not old & new:
            both = [
                few([str(value) for value in sorted(values, key=str)], 3) for values in (old, new)
            ]
            reasons.append(f"{name} is {both[0]} in OLD and {both[1]} in NEW")
    return f": {listed(reasons)}" if reasons else ""


def _known(values: pd.Series) -> np.ndarray:
    values = values.to_numpy(float)
    return values[np.isfinite(values)]


def _padded(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Rows of different lengths as one array; at least one column."""
    padded = np.full((len(rows), max(1, *map(len, rows))), np.nan)
    for row, values in zip(padded, rows):
        row[: len(values)] = values
    return padded
