"""Did a cluster change? Compare every point and every planned contrast of two samples, OLD and NEW,
with one of four answers.

The result is shown in a terminal, as an estimation plot and as data.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis import drawing, quoting, style
from analysis.exhibit import Basis, Exhibit
from analysis.points import Point, labels, quantity, varying
from analysis.quoting import quoted
from analysis.samples import Sample
from analysis.statements import known
from analysis.statistics import change
from analysis.statistics.change import FASTER, SAME, SLOWER
from analysis.statistics.judgement import UNDECIDED
from analysis.statistics.unordered import IF_ALIKE
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
from runners.record import FalloffError

_OLD, _NEW = style.Look("#6E6E6E", "o", "-"), style.Look("#0072B2", "D", "-")
_LOOKS = {
    SLOWER: style.Look("#D55E00", "v", "-"),
    FASTER: style.Look("#0072B2", "^", "-"),
    SAME: style.Look("#009E73", "s", "-"),
    UNDECIDED: style.Look("#6E6E6E", "o", "-"),
}
EXIT_CODES = {SAME: 0, FASTER: 0, SLOWER: 1, UNDECIDED: 2}


@dataclass(frozen=True)
class Change:
    """One statement: `what` was compared, its `answer`, and the numbers behind it.

    `ratio` is the speed of NEW over that of OLD (geometric means), and `low` to `high` the t interval that decided, of this
    `confidence`. For a contrast it is the share of another network's speed that one network keeps from
    fewer to more nodes, NEW over OLD. Unknown is NaN. `old` and `new` hold the blocks' log-speeds,
    shape (blocks,). `points` are the points in the statement, and `unit` is the unit of their
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
    """OLD beside NEW: `changes` are judged together, against a relative `margin`.

    `only_old` and `only_new` are the labels of points that the other side lacks. `facts` are other
    known differences, as (what, in OLD, in NEW); `one_sided_facts` are those that only one side
    recorded.
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
        """The overall answer: `slower` if any statement is, else `undecided` if any is, else
        `faster` or `the same`."""
        return next(answer for answer in change.ANSWERS if self.with_answer(answer))

    def with_answer(self, answer: str) -> tuple[Change, ...]:
        """The statements with this answer."""
        return tuple(one for one in self.changes if one.answer == answer)


def compare(old: Sample, new: Sample, margin: float = change.MARGIN) -> Comparison:
    """Compare two samples at the points that both have.

    A point is a measurement with all of its settings: other settings make another point. Raises
    FalloffError if the samples have different kinds of evidence or no point in common.
    """
    if Path(old.source).resolve() == Path(new.source).resolve():
        raise FalloffError(f"OLD and NEW are both {old.source}: name two measurements")
    if old.digests and old.digests == new.digests:
        raise FalloffError(
            f"{new.source} is a copy of {old.source}: nothing was measured again, so name another measurement"
        )
    if old.evidence != new.evidence:
        kinds = f"{old.source} is {old.evidence} and {new.source} {new.evidence} evidence"
        raise FalloffError(f"{kinds}: kinds of evidence are not compared with each other")
    olds, news = old.log_speeds(), new.log_speeds()
    common = [point for point in olds if point in news]
    if not common:
        reason = _apart([*olds], [*news])
        raise FalloffError(f"{old.source} and {new.source} have no point in common: {reason}")
    names, settings = {**new.names, **old.names}, varying(common)

    def place(point: Point) -> tuple:
        values = [dict(point).get(name) for name in settings]
        # Unknown values come first, text last.
        return quantity(point), [(v is not None, isinstance(v, str), v) for v in values]

    label = labels([*dict.fromkeys([*olds, *news])], names)
    rows = []
    for at in sorted(common, key=place):
        unit, size = old.unit(at)
        speeds = olds[at] - size, news[at] - size
        rows.append((label(at), (at,), unit, quantity(at) in old.lower, *speeds))
    rows += _contrasts(old, common, olds, news)
    logs = (pd.DataFrame([row[side] for row in rows]) for side in (-2, -1))
    found = change.differences(*logs, old.evidence == "simulated")
    decided = change.decide(found, margin)
    ratios = np.exp([found.difference, decided.low, decided.high])
    numbers = zip(*ratios.tolist(), decided.confidence.tolist(), decided.answer.tolist())
    changes = tuple(
        Change(*words, before.to_numpy(), after.to_numpy(), *judged)
        for (*words, before, after), judged in zip(rows, numbers)
    )
    only_old = tuple(label(point) for point in olds if point not in news)
    only_new = tuple(label(point) for point in news if point not in olds)
    one_sided = {"/".join(name.split("/")[:2]) for name in old.facts.keys() ^ new.facts.keys()}
    facts = tuple(differing_facts(old.facts, new.facts)), tuple(sorted(one_sided))
    return Comparison(old, new, margin, changes, only_old, only_new, *facts)


def differing_facts(
    old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """The facts that differ; nodes that differ in the same way share a row."""
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
    """The planned contrasts for which both sides have all points, if only one point matches each
    level and node count."""
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
            of, against = (
                sample.names.get(level) or quoted(level) for level in (one.of, one.against)
            )
            what = f"{of} / {against}, {one.start} to {one.end} nodes"
            yield what, points, "", False, *kept


def _apart(olds: Sequence[Point], news: Sequence[Point]) -> str:
    """Why the samples have no point in common: the settings (or quantities) of which they share no
    value."""
    reasons = []
    for name in ("", *varying([*olds, *news])):
        old, new = ({str(dict(point).get(name)) for point in side} for side in (olds, news))
        if not old & new:
            words = (few(sorted(values), 3) for values in (old, new))
            reasons.append(
                "{} is {} in OLD and {} in NEW".format(name or "what was measured", *words)
            )
    return " and ".join(reasons) or "no combination of settings is in both"


def text(found: Comparison) -> str:
    """The comparison for a terminal: the answer first, then every statement, then what else changed."""
    lines = [_headline(found), ""]
    for name, side in (("OLD", found.old), ("NEW", found.new)):
        ended = f", ended {side.ended[:16].replace('T', ' ')}" if side.ended else ""
        noun = "trial" if side.facts else "row"
        lost = f", {counted(side.left_out, noun)} without a value left out" if side.left_out else ""
        lines.append(f"{name}  {side.source}: {side.evidence} evidence{ended}{lost}")
    lines += ["", *_table(found), ""]
    if both := found.old.digests & found.new.digests:
        lines.append(f"OLD and NEW share {counted(len(both), 'file')}: these are the same runs.")
    if undecided := [one.what for one in found.with_answer(UNDECIDED)]:
        lines.append(f"Undecided: {few(undecided)}. More {found.old.repeats}s would tell.")
    lines.append(rule(found))
    for name, lacking in (("OLD", found.only_old), ("NEW", found.only_new)):
        if lacking:
            lines.append(f"Only in {name}: {few(lacking)}.")
    return "\n".join([*lines, "", *_what_else(found)]).replace("\u00a0", " ")


def rule(found: Comparison) -> str:
    """How the answers are decided, in two sentences."""
    margin = f"{100 * found.margin:g} %"
    if found.old.evidence == "simulated":
        return f"A simulation repeats itself exactly: a ratio within {margin} of 1 is the same, and any other a change."
    alike = "" if found.old.repeats == "block" else f" (valid {IF_ALIKE})"
    return (
        f"Ratio: speed of NEW over OLD, geometric means with t intervals over the {found.old.repeats}s, "
        f"each of the level at which its answer was decided{alike}. "
        f"The same: within {margin}. Slower, faster: differs from 1. "
        f"At most 5 % of comparisons are wrong in either way ({counted(len(found.changes), 'statement')}, Holm)."
    )


def basis(found: Comparison) -> Basis:
    """What the comparison rests on."""
    if found.old.evidence == "simulated":
        return Basis("simulated")
    fewest = min(min(len(one.old), len(one.new)) for one in found.changes)
    kind = f"{levels_in_words(one.confidence for one in found.changes)} t intervals over the {found.old.repeats}s"
    return Basis(found.old.evidence, fewest, kind, found.old.repeats)


def figure(
    found: Comparison, label: str, shows: str = "OLD, NEW and their difference", rests_on=()
) -> Exhibit:
    """The estimation plot: both samples of every statement [% of OLD's mean], and the change of speed [%] on its own axis."""
    with style.styled():
        drawn, (samples, changes) = drawing.new_figures(1.3 + 0.26 * len(found.changes), 2)
        limit = 100 * found.margin
        changes.axvspan(-limit, limit, color=style.MARGIN, zorder=0, label="margin")
        for axes, at in ((samples, 100), (changes, 0)):
            axes.axvline(at, color=style.INK, linewidth=0.8)
        for row, one in enumerate(found.changes):
            for name, look, logs, y in (
                ("OLD", _OLD, one.old, row - 0.17),
                ("NEW", _NEW, one.new, row + 0.17),
            ):
                marks = {"color": look.color, "alpha": 0.6, "markersize": 3.5, "mew": 0}
                speeds = 100 * np.exp(logs - one.old.mean())
                samples.plot(speeds, [y] * len(logs), look.marker, label=name, **marks)
            ends = [100 * (end - 1) for end in (one.ratio, one.low, one.high)]
            drawing.interval_across(changes, _LOOKS[one.answer], row, *ends, one.answer)
        drawing.rows(samples, [one.what for one in found.changes])
        drawing.rows(changes, [""] * len(found.changes))
        samples.set_xlabel("speed over OLD's mean [%]")
        changes.set_xlabel("change of speed [%]")
        drawing.legend_below(drawn, [samples, changes], 3)
    return Exhibit(
        label,
        drawn,
        shows,
        basis(found),
        "On the left both samples of every point in a row, on the right the change of the mean with its interval beside the margin",
        "Left: every block, relative to OLD's geometric mean. Right: the change of the mean; the band is the margin.",
        rests_on,
    )


def as_data(found: Comparison) -> dict:
    """The comparison as plain data, for JSON; unknown values are None."""
    statements = [
        {
            "what": one.what,
            "answer": one.answer,
            "old": one.means[0],
            "new": one.means[1],
            "unit": one.unit,
            "speed_ratio": known(one.ratio),
            "interval": [known(one.low), known(one.high)],
            "interval_level": one.confidence,
            "n_old": len(one.old),
            "n_new": len(one.new),
        }
        for one in found.changes
    ]
    data = {
        "answer": found.answer,
        "exit_code": EXIT_CODES[found.answer],
        "margin": found.margin,
        "evidence": found.old.evidence,
        "old": found.old.source,
        "new": found.new.source,
        "statements": statements,
        "only_in_old": found.only_old,
        "only_in_new": found.only_new,
        "also_changed": [dict(zip(("what", "old", "new"), fact)) for fact in found.facts],
        "recorded_on_one_side": found.one_sided_facts,
    }
    return quoting.as_data(data)


def _headline(found: Comparison) -> str:
    """The answer in a sentence or two, slower statements first."""
    total, margin = len(found.changes), f"{100 * found.margin:g} %"
    if found.answer == SAME:
        return f"The same: {counted(total, 'statement')}, each within {margin} of OLD."
    worst = sorted(found.with_answer(found.answer), key=lambda one: one.ratio)
    named = few([f"{one.what} ({percent(one.ratio - 1)})" for one in worst])
    rest = listed(counts(one for one in found.changes if one.answer != found.answer))
    others = f" The others: {rest}." if rest else ""
    return f"{found.answer.capitalize()} in {len(worst)} of {total}: {named}.{others}"


def counts(changes) -> list[str]:
    """The number of statements with each answer, the most urgent answer first."""
    given = [one.answer for one in changes]
    return [f"{given.count(answer)} {answer}" for answer in change.ANSWERS if answer in given]


def _table(found: Comparison) -> list[str]:
    """Every statement, one per line."""
    width, rows = max(len(one.what) for one in found.changes), []
    for row, one in enumerate(found.changes, 1):
        means = (f"{number(mean, 4)} {one.unit}".strip() for mean in one.means)
        interval = UNKNOWN, UNKNOWN
        if one.low < one.high:
            ends = f"{fixed(one.low, 3)} to {fixed(one.high, 3)}"
            interval = ends, level_in_words(one.confidence)
        blocks = f"{len(one.old)}, {len(one.new)}"
        numbers = *means, fixed(one.ratio, 3), *interval, blocks
        rows.append((str(row), one.what.ljust(width), *numbers, one.answer.ljust(9)))
    heads = (
        "No.",
        "What".ljust(width),
        "OLD",
        "NEW",
        "Ratio",
        "Interval",
        "Level",
        "n",
        "Answer   ",
    )
    table = pd.DataFrame(rows, columns=heads).to_string(index=False)
    return [line.rstrip() for line in table.splitlines()]


def _what_else(found: Comparison) -> Iterator[str]:
    silent = [
        name for name, side in (("OLD", found.old), ("NEW", found.new)) if not side.is_recorded
    ]
    if silent:
        yield (
            f"Machine, kernel, MPI, BLAS, network cards and switch: not recorded in the files of {listed(silent)}."
        )
        if found.facts:
            yield "What the files themselves say differently:"
            yield from (f"  {what}: {old} -> {new}" for what, old, new in found.facts)
        return
    if not found.old.facts or not found.new.facts:
        yield "What else changed is not known: a CSV file says nothing of machine and settings."
        return
    if found.facts:
        yield "What else changed:"
        yield from (f"  {what}: {old} -> {new}" for what, old, new in found.facts)
    else:
        yield "Nothing else is known to have changed: machine, tools, testbed and settings are recorded as the same."
    if found.one_sided_facts:
        yield f"Recorded on one side only: {few(found.one_sided_facts)}."
