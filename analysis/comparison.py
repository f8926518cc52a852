"""Did a cluster change? Every point and every planned contrast of two samples, OLD and NEW, with one of four answers."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.exhibit import COUNTS
from analysis.samples import Point, Sample, quantity, varying
from analysis.statistics import change
from analysis.statistics.change import FASTER, SAME, SLOWER
from analysis.statistics.judgement import UNDECIDED
from runners.record import FalloffError

EXIT_CODES = {SAME: 0, FASTER: 0, SLOWER: 1, UNDECIDED: 2}


@dataclass(frozen=True)
class Change:
    """One statement: `what` was compared, its `answer` and what it rests on.

    `ratio` is the speed of NEW over that of OLD (geometric means) with its 95 % t interval `low`, `high`; of a
    contrast, what one network keeps of another's speed from fewer to more nodes, NEW over OLD. Unknown is NaN. `old` and
    `new` hold the blocks' log-speeds, shape (blocks,); `points` are those that it is made of, and `unit` that of their
    values, empty for a contrast.
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

    @property
    def means(self) -> tuple[float, float]:
        """The geometric means of OLD's and NEW's values in their unit, of a contrast its ratios."""
        sign = -1 if self.lower_is_better else 1
        return math.exp(sign * self.old.mean()), math.exp(sign * self.new.mean())


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
        return next(answer for answer in change.ANSWERS if self.with_answer(answer))

    def with_answer(self, answer: str) -> tuple[Change, ...]:
        """The statements of which this is the answer."""
        return tuple(one for one in self.changes if one.answer == answer)


def compare(old: Sample, new: Sample, margin: float = change.MARGIN) -> Comparison:
    """Compare two samples at the points that both have.

    A point is what was run with all of its settings: other settings make it another point. Raises FalloffError where the
    samples have different kinds of evidence, or no point in common.
    """
    if Path(old.source).resolve() == Path(new.source).resolve():
        raise FalloffError(f"OLD and NEW are both {old.source}: name two measurements")
    if old.evidence != new.evidence:
        kinds = f"{old.source} is {old.evidence} and {new.source} {new.evidence} evidence"
        raise FalloffError(f"{kinds}: kinds of evidence are not compared with each other")
    olds, news = old.log_speeds(), new.log_speeds()
    common = [point for point in olds if point in news]
    if not common:
        reason = _apart([*olds], [*news])
        raise FalloffError(f"{old.source} and {new.source} have no point in common: {reason}")
    levels = {point: [dict(point).get(name) for name in varying(common)] for point in common}
    # What is not known comes first, words last.
    places = {p: [(v is not None, isinstance(v, str), v) for v in levels[p]] for p in common}
    common = sorted(common, key=lambda point: (quantity(point), places[point]))
    label = _labels([*dict.fromkeys([*olds, *news])], {**new.names, **old.names})
    rows = [
        (label(at), (at,), old.units[quantity(at)], quantity(at) in old.lower, olds[at], news[at])
        for at in common
    ]
    rows += _contrasts(old, common, olds, news)
    logs = (pd.DataFrame([row[side] for row in rows]) for side in (-2, -1))
    found = change.differences(*logs, old.evidence == "simulated")
    ratios = np.exp([found.difference, *found.intervals]).T.tolist()
    changes = tuple(
        Change(*words, before.to_numpy(), after.to_numpy(), *ratio, answer)
        for (*words, before, after), ratio, answer in zip(
            rows, ratios, change.answers(found, margin).tolist()
        )
    )
    only_old = tuple(label(point) for point in olds if point not in news)
    only_new = tuple(label(point) for point in news if point not in olds)
    one_sided = {"/".join(name.split("/")[:2]) for name in old.facts.keys() ^ new.facts.keys()}
    facts = tuple(_facts(old.facts, new.facts))
    return Comparison(
        old, new, margin, changes, only_old, only_new, facts, tuple(sorted(one_sided))
    )


def few(words: Sequence[str], most: int = 5) -> str:
    """The first words, and how many more there are."""
    more = len(words) - most
    return "; ".join(words[:most]) + (f"; and {more} more" if more > 0 else "")


def _facts(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """What differs, nodes that differ alike in one row."""
    nodes: dict[tuple[str, str, str], list[str]] = {}
    for name in [name for name in old if name in new and old[name] != new[name]]:
        node = re.match(r"session/nodes/([^/]+)/(.+)", name)
        change = (f"nodes: {node[2]}" if node else name, old[name], new[name])
        nodes.setdefault(change, []).extend(node.groups()[:1] if node else ())
    for (what, *values), of in nodes.items():
        yield f"{what} of {few(of, 3)}" if of else what, *values


def _contrasts(
    sample: Sample, common: Sequence[Point], olds: Mapping, news: Mapping
) -> Iterator[tuple]:
    """The planned contrasts of which both sides have all points, each of which is the only one of its level and nodes."""
    for one in sample.statements:
        wanted = [
            (level, nodes) for nodes in (one.end, one.start) for level in (one.of, one.against)
        ]
        found = [
            [point for point in common if {(sample.compared, level), ("nodes", n)} <= set(point)]
            for level, n in wanted
        ]
        if any(len(points) != 1 for points in found):
            continue
        a, b, c, d = points = tuple(only for (only,) in found)
        kept = [(log[a] - log[b] - (log[c] - log[d])).dropna() for log in (olds, news)]
        if all(len(blocks) for blocks in kept):  # else no block has all four
            of, against = (sample.names.get(level, str(level)) for level in (one.of, one.against))
            what = f"{of} / {against}, {one.start} to {one.end} nodes"
            yield what, points, "", False, *kept


def _labels(points: Sequence[Point], names: Mapping[str, str]) -> Callable[[Point], str]:
    """A function that names a point by as few settings as tell all of them apart."""
    chosen: list[str] = []
    apart, several = 1, len({quantity(point) for point in points}) > 1
    for name in varying(points):
        now = len({tuple(map(dict(point).get, [*chosen, name])) for point in points})
        if now > apart:
            chosen, apart = [*chosen, name], now

    def label(point: Point) -> str:
        words = [_word(name, dict(point)[name], names) for name in chosen if name in dict(point)]
        title = [quantity(point).replace("_", " ")] if several or not words else []
        return ", ".join([*title, *words])

    return label


def _word(name: str, value, names: Mapping[str, str]) -> str:
    if isinstance(value, str):
        return names.get(value, value.replace("_", " "))
    if name in COUNTS:
        return f"{value:g} {name[:-1] if value == 1 else name}"
    return f"{name.replace('_', ' ')} {value:g}"


def _apart(olds: Sequence[Point], news: Sequence[Point]) -> str:
    """Why no point is in both: the settings (or quantities) of which they share no value."""
    reasons = []
    for name in ("", *varying([*olds, *news])):
        old, new = ({str(dict(point).get(name)) for point in side} for side in (olds, news))
        if not old & new:
            words = (few(sorted(values), 3) for values in (old, new))
            reasons.append(
                "{} is {} in OLD and {} in NEW".format(name or "what was measured", *words)
            )
    return " and ".join(reasons) or "no combination of settings is in both"
