"""Did a cluster change? Compare every point and every planned contrast of two samples, OLD and NEW,
with one of four answers.

The result is shown in a terminal, as an estimation plot and as data.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis import quoting
from analysis.dataset.points import Point, labels, quantity, varying
from analysis.quoting import quoted
from analysis.statements import drawing, style
from analysis.statements.exhibit import Basis, Exhibit
from analysis.statements.statement import finite
from analysis.statistics.judgement import IF_ALIKE, UNDECIDED
from analysis.statistics.same import (
    ANSWERS,
    EXIT_CODES,
    FASTER,
    MARGIN,
    SAME,
    SLOWER,
    decide,
    differences,
)
from analysis.watch.samples import Sample
from analysis.wording import (
    UNKNOWN,
    counted,
    few,
    fixed,
    level_in_words,
    levels_in_words,
    listed,
    number,
    percent,
)
from runners.records.record import FalloffError

_OLD, _NEW = style.Look("#6E6E6E", "o", "-"), style.Look("#0072B2", "D", "-")
_LOOKS = {
    SLOWER: style.Look("#D55E00", "v", "-"),
    FASTER: style.Look("#0072B2", "^", "-"),
    SAME: style.Look("#009E73", "s", "-"),
    UNDECIDED: style.Look("#6E6E6E", "o", "-"),
}


# What was compared, its points, their unit, whether lower is better, and both sides' log-speeds.
_Row = tuple[str, tuple[Point, ...], str, bool, pd.Series, pd.Series]


@dataclass(frozen=True)
class SpeedChange:
    """One statement: `what` was compared, its `answer`, and the numbers behind it.

    `ratio` is the speed of NEW over that of OLD (geometric means), and `low` to `high` the t
    interval that decided, of this `confidence`. For a contrast it is the share of another network's
    speed that one network keeps from fewer to more nodes, NEW over OLD. Unknown is NaN. `old` and
    `new` hold the blocks' log-speeds, by block. `points` are the points in the statement,
    and `unit` is the unit of their values, empty for a contrast.
    """

    what: str
    points: tuple[Point, ...]
    unit: str
    lower_is_better: bool
    old: pd.Series
    new: pd.Series
    ratio: float
    low: float
    high: float
    confidence: float
    answer: str

    @property
    def means(self) -> tuple[float, float]:
        """The geometric means of OLD's and NEW's values in their unit; for a contrast, of its
        ratios."""
        sign = -1 if self.lower_is_better else 1
        return math.exp(sign * self.old.mean()), math.exp(sign * self.new.mean())


@dataclass(frozen=True)
class Comparison:
    """OLD beside NEW: `changes` are judged together, against a relative `margin`; Holm's procedure
    corrects for the number that is `tested`.

    `only_old` and `only_new` are the labels of points that the other side lacks. `facts` are other
    known differences, as (what, in OLD, in NEW); `one_sided_facts` are those that only one side
    recorded.
    """

    old: Sample
    new: Sample
    margin: float
    changes: tuple[SpeedChange, ...]
    tested: int
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    facts: tuple[tuple[str, str, str], ...]
    one_sided_facts: tuple[str, ...]

    @property
    def answer(self) -> str:
        """The overall answer: `slower` if any statement is, else `undecided` if any is, else
        `faster` or `the same`."""
        return next(answer for answer in ANSWERS if self.with_answer(answer))

    def with_answer(self, answer: str) -> tuple[SpeedChange, ...]:
        """The statements with this answer."""
        return tuple(change for change in self.changes if change.answer == answer)


def compare(old: Sample, new: Sample, margin: float = MARGIN) -> Comparison:
    """Compare two samples at the points that both have.

    A point is a measurement with all of its settings: other settings make another point. Raises
    FalloffError if the samples have different kinds of evidence or no point in common.
    """
    if Path(old.source).resolve() == Path(new.source).resolve():
        raise FalloffError(f"OLD and NEW are both {old.source}: name two measurements")
    if old.digests and old.digests == new.digests:
        raise FalloffError(
            f"{new.source} is a copy of {old.source}: nothing was measured again, so name another "
            "measurement"
        )
    if old.evidence != new.evidence:
        kinds = f"{old.source} is {old.evidence} and {new.source} {new.evidence} evidence"
        raise FalloffError(f"{kinds}: kinds of evidence are not compared with each other")
    olds, news = old.log_speeds(), new.log_speeds()
    common = [point for point in olds if point in news]
    if not common:
        reason = _why_disjoint([*olds], [*news])
        raise FalloffError(f"{old.source} and {new.source} have no point in common: {reason}")
    names, settings = {**new.names, **old.names}, varying(common)

    def place(point: Point) -> tuple:
        values = [dict(point).get(name) for name in settings]
        # Unknown values come first, text last.
        return quantity(point), [(v is not None, isinstance(v, str), v) for v in values]

    label = labels([*dict.fromkeys([*olds, *news])], names)
    rows: list[_Row] = []
    for at in sorted(common, key=place):
        unit, size = old.unit(at)
        is_time = quantity(at) in old.lower
        rows.append((label(at), (at,), unit, is_time, olds[at] - size, news[at] - size))
    rows += _contrasts(old, common, olds, news)
    before, after = (pd.DataFrame([row[side] for row in rows]) for side in (-2, -1))
    means = differences(before, after, old.evidence == "simulated")
    decisions = decide(means, margin)
    ratios = np.exp([means.difference, decisions.low, decisions.high])
    judged = zip(*ratios.tolist(), decisions.confidence.tolist(), decisions.answer.tolist())
    changes = tuple(SpeedChange(*row, *numbers) for row, numbers in zip(rows, judged))
    only_old = tuple(label(point) for point in olds if point not in news)
    only_new = tuple(label(point) for point in news if point not in olds)
    one_sided = {"/".join(name.split("/")[:2]) for name in old.facts.keys() ^ new.facts.keys()}
    facts = tuple(differing_facts(old.facts, new.facts)), tuple(sorted(one_sided))
    tested = int(means.are_tested.sum())
    return Comparison(old, new, margin, changes, tested, only_old, only_new, *facts)


def differing_facts(
    old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """The facts that differ; nodes that differ in the same way share a row."""
    nodes: dict[tuple[str, str, str], list[str]] = {}
    for name in [name for name in old if name in new and old[name] != new[name]]:
        node = re.match(r"session/nodes/([^/]+)/(.+)", name)
        fact = (f"nodes: {node[2]}" if node else name, old[name], new[name])
        nodes.setdefault(fact, []).extend(node.groups()[:1] if node else ())
    for (what, before, after), of in nodes.items():
        yield f"{what} of {few(of, 3)}" if of else what, before, after


def _contrasts(
    sample: Sample, common: Sequence[Point], olds: Mapping, news: Mapping
) -> Iterator[_Row]:
    """The planned contrasts for which both sides have all points, if only one point matches each
    level and node count."""
    for fall in sample.statements:
        levels = fall.of, fall.against
        matches = [
            [point for point in common if {(sample.compared, level), ("nodes", n)} <= set(point)]
            for n in (fall.end, fall.start)
            for level in levels
        ]
        if any(len(points) != 1 for points in matches):
            continue
        a, b, c, d = points = tuple(point for (point,) in matches)
        sides = [(log[a] - log[b] - (log[c] - log[d])).dropna() for log in (olds, news)]
        if all(len(blocks) for blocks in sides):  # else no block has all four
            of, against = (sample.names.get(level) or quoted(level) for level in levels)
            what = f"{of} / {against}, {fall.start} to {fall.end} nodes"
            yield what, points, "", False, sides[0], sides[1]


def _why_disjoint(olds: Sequence[Point], news: Sequence[Point]) -> str:
    """Why the samples have no point in common: the settings (or quantities) of which they share no
    value."""
    reasons = []
    for name in ("", *varying([*olds, *news])):
        old, new = ({str(dict(point).get(name)) for point in side} for side in (olds, news))
        if not old & new:
            before, after = (few(sorted(values), 3) for values in (old, new))
            reasons.append(f"{name or 'what was measured'} is {before} in OLD and {after} in NEW")
    return " and ".join(reasons) or "no combination of settings is in both"


def text(comparison: Comparison) -> str:
    """The comparison for a terminal: the answer first, then every statement, then what else
    changed.
    """
    lines = [_headline(comparison), ""]
    sides = {"OLD": comparison.old, "NEW": comparison.new}
    for name, side in sides.items():
        ended = f", ended {side.ended[:16].replace('T', ' ')}" if side.ended else ""
        noun = "trial" if side.facts else "row"
        lost = f", {counted(side.left_out, noun)} without a value left out" if side.left_out else ""
        lines.append(f"{name}  {side.source}: {side.evidence} evidence{ended}{lost}")
    lines += ["", *_table(comparison), ""]
    if both := comparison.old.digests & comparison.new.digests:
        lines.append(f"OLD and NEW share {counted(len(both), 'file')}: these are the same runs.")
    if undecided := [change.what for change in comparison.with_answer(UNDECIDED)]:
        lines.append(f"Undecided: {few(undecided)}. More {comparison.old.repeats}s would decide.")
    lines.append(rule(comparison))
    for name, lacking in zip(sides, (comparison.only_old, comparison.only_new)):
        if lacking:
            lines.append(f"Only in {name}: {few(lacking)}.")
    return "\n".join([*lines, "", *_what_else(comparison)]).replace("\u00a0", " ")


def rule(comparison: Comparison) -> str:
    """How the answers are decided, in two sentences."""
    margin = f"{100 * comparison.margin:g} %"
    if comparison.old.evidence == "simulated":
        return (
            f"A simulation repeats itself exactly: a ratio within {margin} of 1 is the same, and "
            "any other a change."
        )
    alike = "" if comparison.old.repeats == "block" else f" (valid {IF_ALIKE})"
    return (
        "Ratio: speed of NEW over OLD, geometric means with t intervals over the "
        f"{comparison.old.repeats}s, each of the level at which its answer was decided{alike}. "
        f"The same: within {margin}. Slower, faster: differs from 1. At most 5 % of comparisons "
        f"are wrong in either way ({counted(comparison.tested, 'statement')}, Holm)."
    )


def basis(comparison: Comparison) -> Basis:
    """What the comparison rests on."""
    if comparison.old.evidence == "simulated":
        return Basis("simulated")
    fewest = min(min(len(change.old), len(change.new)) for change in comparison.changes)
    levels = levels_in_words(change.confidence for change in comparison.changes)
    kind = f"{levels} t intervals over the {comparison.old.repeats}s"
    return Basis(comparison.old.evidence, fewest, kind, comparison.old.repeats)


def figure(
    comparison: Comparison,
    label: str,
    shows: str = "OLD, NEW and their difference",
    rests_on: tuple[str, ...] = (),
) -> Exhibit:
    """The estimation plot: both samples of every statement [% of OLD's mean], and the change of
    speed [%] on its own axis.
    """
    with style.styled():
        drawn, (samples, changes) = drawing.new_figures(1.3 + 0.26 * len(comparison.changes), 2)
        limit = 100 * comparison.margin
        changes.axvspan(-limit, limit, color=style.MARGIN, zorder=0, label="margin")
        for axes, at in ((samples, 100), (changes, 0)):
            axes.axvline(at, color=style.INK, linewidth=0.8)
        for row, change in enumerate(comparison.changes):
            for name, look, logs, y in (
                ("OLD", _OLD, change.old, row - 0.17),
                ("NEW", _NEW, change.new, row + 0.17),
            ):
                marks = {"color": look.color, "alpha": 0.6, "markersize": 3.5, "mew": 0}
                speeds = 100 * np.exp(logs - change.old.mean())
                samples.plot(speeds, [y] * len(logs), look.marker, label=name, **marks)
            ratio, low, high = (100 * (end - 1) for end in (change.ratio, change.low, change.high))
            look = _LOOKS[change.answer]
            drawing.interval_across(changes, look, row, ratio, low, high, change.answer)
        drawing.rows(samples, [change.what for change in comparison.changes])
        drawing.rows(changes, [""] * len(comparison.changes))
        samples.set_xlabel("speed over OLD's mean [%]")
        changes.set_xlabel("change of speed [%]")
        drawing.legend_below(drawn, [samples, changes], 3)
    return Exhibit(
        label,
        drawn,
        shows,
        basis(comparison),
        "On the left both samples of every point in a row, on the right the change of the mean "
        "with its interval beside the margin",
        "Left: every block, relative to OLD's geometric mean. Right: the change of the mean; the "
        "band is the margin.",
        rests_on,
    )


def as_data(comparison: Comparison) -> dict:
    """The comparison as plain data, for JSON; unknown values are None."""
    statements = [
        {
            "what": change.what,
            "answer": change.answer,
            "old": change.means[0],
            "new": change.means[1],
            "unit": change.unit,
            "speed_ratio": finite(change.ratio),
            "interval": [finite(change.low), finite(change.high)],
            "interval_level": change.confidence,
            "n_old": len(change.old),
            "n_new": len(change.new),
        }
        for change in comparison.changes
    ]
    data = {
        "answer": comparison.answer,
        "exit_code": EXIT_CODES[comparison.answer],
        "margin": comparison.margin,
        "evidence": comparison.old.evidence,
        "old": comparison.old.source,
        "new": comparison.new.source,
        "statements": statements,
        "only_in_old": comparison.only_old,
        "only_in_new": comparison.only_new,
        "also_changed": [dict(zip(("what", "old", "new"), fact)) for fact in comparison.facts],
        "recorded_on_one_side": comparison.one_sided_facts,
    }
    return quoting.as_data(data)


def _headline(comparison: Comparison) -> str:
    """The answer in a sentence or two, slower statements first."""
    total, margin = len(comparison.changes), f"{100 * comparison.margin:g} %"
    if comparison.answer == SAME:
        return f"The same: {counted(total, 'statement')}, each within {margin} of OLD."
    worst = sorted(comparison.with_answer(comparison.answer), key=lambda change: change.ratio)
    named = few([f"{change.what} ({percent(change.ratio - 1)})" for change in worst])
    others = [change for change in comparison.changes if change.answer != comparison.answer]
    rest = f" The others: {listed(counts(others))}." if others else ""
    return f"{comparison.answer.capitalize()} in {len(worst)} of {total}: {named}.{rest}"


def counts(changes: Iterable[Any]) -> list[str]:
    """The number of statements with each answer, the most urgent answer first."""
    answers = [change.answer for change in changes]
    return [f"{answers.count(answer)} {answer}" for answer in ANSWERS if answer in answers]


def _table(comparison: Comparison) -> list[str]:
    """Every statement, one per line."""
    width, rows = max(len(change.what) for change in comparison.changes), []
    for row, change in enumerate(comparison.changes, 1):
        old, new = (f"{number(mean, 4)} {change.unit}".strip() for mean in change.means)
        interval = level = UNKNOWN
        if change.low < change.high:
            interval = f"{fixed(change.low, 3)} to {fixed(change.high, 3)}"
            level = level_in_words(change.confidence)
        rows.append(
            {
                "No.": str(row),
                "What".ljust(width): change.what.ljust(width),
                "OLD": old,
                "NEW": new,
                "Ratio": fixed(change.ratio, 3),
                "Interval": interval,
                "Level": level,
                "n": f"{len(change.old)}, {len(change.new)}",
                "Answer   ": change.answer.ljust(9),
            }
        )
    table = pd.DataFrame(rows).to_string(index=False)
    return [line.rstrip() for line in table.splitlines()]


def _what_else(comparison: Comparison) -> Iterator[str]:
    sides = {"OLD": comparison.old, "NEW": comparison.new}
    silent = [name for name, side in sides.items() if not side.is_recorded]
    if not (comparison.old.facts and comparison.new.facts):
        yield "What else changed is not known: a CSV file says nothing of machine and settings."
    elif silent:
        yield (
            "Machine, kernel, MPI, BLAS, network cards and switch: not recorded in the files of "
            f"{listed(silent)}."
        )
    if comparison.facts:
        yield "What else changed:"
    elif not silent:
        yield (
            "Nothing else is known to have changed: machine, tools, testbed and settings are "
            "recorded as the same."
        )
    yield from (f"  {what}: {old} -> {new}" for what, old, new in comparison.facts)
    if comparison.one_sided_facts and not silent:
        yield f"Recorded on one side only: {few(comparison.one_sided_facts)}."
