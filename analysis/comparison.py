"""Did a cluster change? Every point and every planned contrast of two samples, OLD and NEW, with one of four answers."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.exhibit import COUNTS, Basis, Exhibit, Table
from analysis.samples import Point, Sample, quantity, settings_of, varying
from analysis.statistics import change
from analysis.statistics.change import FASTER, SAME, SLOWER
from analysis.statistics.judgement import UNDECIDED
from analysis.wording import UNKNOWN, counted, fixed, listed, number, percent
from runners.record import FalloffError

EXIT_CODES = {SAME: 0, FASTER: 0, SLOWER: 1, UNDECIDED: 2}
INTERVALS = "95 % Welch intervals over the blocks"
_OLD, _NEW = style.Look("#6E6E6E", "o", "-"), style.Look("#0072B2", "D", "-")
_LOOKS = {
    SLOWER: style.Look("#D55E00", "v", "-"),
    FASTER: style.Look("#0072B2", "^", "-"),
    SAME: style.Look("#009E73", "s", "-"),
    UNDECIDED: style.Look("#6E6E6E", "o", "-"),
}
MOST_FACTS = 25  # lines of what else changed


@dataclass(frozen=True)
class Change:
    """One statement: `what` was compared, its `answer` and what it rests on.

    `ratio` is the speed of NEW over that of OLD (geometric means) with its 95 % Welch interval `low`, `high`; of a
    contrast, what one network keeps of another's speed from fewer to more nodes, NEW over OLD. Unknown is NaN. `old` and
    `new` hold the blocks' log-speeds, shape (blocks,); `points` are those that it is made of, and `unit` that of their
    values, empty for a contrast. `alone` is the answer without a correction for the number of statements.
    `blocks_needed` is about how many a side would need to call an unchanged speed the same, NaN where not known.
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
    label = _labels(common, old.names)
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
    lacking = (
        tuple(_labels(only, names)(point) for point in only)
        for only, names in (
            ([point for point in olds if point not in news], old.names),
            ([point for point in news if point not in olds], new.names),
        )
    )
    return Comparison(old, new, margin, changes, *lacking, *_facts(old.facts, new.facts))


def text(found: Comparison) -> str:
    """The comparison for a terminal: the answer first, then every statement, then what else changed."""
    lines = [_headline(found), ""]
    for name, side in (("OLD", found.old), ("NEW", found.new)):
        known = [
            f"{side.evidence} evidence",
            side.ended and f"ended {side.ended[:16].replace('T', ' ')}",
        ]
        if side.left_out:
            known.append(f"{counted(side.left_out, 'trial')} without a valid value left out")
        lines.append(f"{name}  {side.source}: {', '.join(filter(None, known))}")
    lines += ["", *_aligned([_COLUMNS, *_cells(found)]), ""]
    lines += _open(found)
    lines.append(rule(found))
    for name, labels in (("OLD", found.only_old), ("NEW", found.only_new)):
        if labels:
            lines.append(f"Only in {name}: {_few(labels)}.")
    lines += ["", *_facts_text(found)]
    return "\n".join(lines).replace("\u00a0", " ")


def _open(found: Comparison) -> Iterator[str]:
    """Why statements are undecided, and what would decide them."""
    open_ones = found.with_answer(UNDECIDED)
    for reason in dict.fromkeys(one.reason for one in open_ones):
        yield f"Undecided, {reason}: {_few([one.what for one in open_ones if one.reason == reason])}."
    needed = [one.blocks_needed for one in open_ones if math.isfinite(one.blocks_needed)]
    if needed:
        yield (
            f"With this scatter about {counted(int(max(needed)), found.old.repeats)} a side would tell an unchanged speed from one "
            "outside the margin, judged alone."
        )


def rule(found: Comparison) -> str:
    """How the answers were found, in two sentences."""
    margin = percent(found.margin, 0 if float(100 * found.margin).is_integer() else 1)
    if found.old.evidence == "simulated":
        return f"A simulation repeats itself exactly: a ratio within {margin} of 1 is the same, and any other a change."
    return (
        f"Ratio: speed of NEW over OLD, geometric means with {INTERVALS}. The same: within {margin}; slower, faster: told from 1; "
        f"at most 5 % of comparisons are wrong in either way ({counted(len(found.changes), 'statement')}, Holm)."
    )


def table(found: Comparison, label: str = "compare") -> Table:
    """Every statement with both means, the ratio and the answer."""
    caption = f"What changed between OLD and NEW. {rule(found)}"
    rows = [row[1:] for row in _cells(found)]
    return Table(label, _COLUMNS[1:], "lrrrlrl", rows, caption, basis(found))


def basis(found: Comparison) -> Basis:
    """What the comparison rests on."""
    if found.old.evidence == "simulated":
        return Basis("simulated")
    fewest = min(min(len(one.old), len(one.new)) for one in found.changes)
    return Basis(found.old.evidence, fewest, INTERVALS, f"{found.old.repeats}")


def figure(
    found: Comparison,
    label: str = "compare",
    shows: str = "OLD and NEW, and how they differ",
    rests_on=(),
) -> Exhibit:
    """The estimation plot: both samples, and the difference on its own axis with its interval."""
    return Exhibit(
        label,
        estimation_plot(found),
        shows,
        basis(found),
        "On the left both samples of every point in a row, on the right the change of the mean with its interval beside the margin",
        "Left: every block, relative to OLD's geometric mean. Right: the change of the mean; the band is the margin.",
        rests_on=rests_on,
    )


def estimation_plot(found: Comparison) -> Figure:
    """Both samples of every statement [% of OLD's mean], and the change of speed [%] with its 95 % Welch interval."""
    count = len(found.changes)
    with style.styled():
        drawn, (samples, changes) = drawing.new_figures(1.3 + 0.26 * count, 2)
        limit = 100 * found.margin
        changes.axvspan(-limit, limit, color=style.MARGIN, zorder=0, label="margin")
        for axes, at in ((samples, 100), (changes, 0)):
            axes.axvline(at, color=style.INK, linewidth=0.8)
        for row, one in enumerate(found.changes):
            for look, logs, offset, name in (
                (_OLD, one.old, -0.17, "OLD"),
                (_NEW, one.new, 0.17, "NEW"),
            ):
                relative = 100 * np.exp(logs - one.old.mean())
                label = name if row == 0 else None
                samples.plot(
                    relative,
                    np.full(len(logs), row + offset),
                    look.marker,
                    color=look.color,
                    alpha=0.6,
                    markersize=3.5,
                    mew=0,
                    label=label,
                )
            ends = [100 * (end - 1) for end in (one.ratio, one.low, one.high)]
            drawing.interval_across(changes, _LOOKS[one.answer], row, *ends, one.answer)
        drawing.rows(samples, [one.what for one in found.changes])
        drawing.rows(changes, [""] * count)
        samples.set_xlabel("speed over OLD's mean [%]")
        changes.set_xlabel("change of speed [%]")
        drawing.legend_below(drawn, [samples, changes], 4)
    return drawn


def as_data(found: Comparison) -> dict:
    """The comparison as plain data, for JSON; what is not known is None."""
    return {
        "answer": found.answer,
        "exit_code": EXIT_CODES[found.answer],
        "margin": found.margin,
        "evidence": found.old.evidence,
        "old": found.old.source,
        "new": found.new.source,
        "statements": [
            {
                "what": one.what,
                "answer": one.answer,
                "alone": one.alone,
                "old": one.means[0],
                "new": one.means[1],
                "unit": one.unit,
                "speed_ratio": _finite(one.ratio),
                "interval_95": [_finite(one.low), _finite(one.high)],
                "n_old": len(one.old),
                "n_new": len(one.new),
                "reason": one.reason,
            }
            for one in found.changes
        ],
        "only_in_old": list(found.only_old),
        "only_in_new": list(found.only_new),
        "also_changed": [dict(zip(("what", "old", "new"), fact)) for fact in found.facts],
    }


_COLUMNS = ("No.", "What", "OLD", "NEW", "Ratio", "95 % interval", "n", "Answer")


def _cells(found: Comparison) -> Iterator[tuple[str, ...]]:
    for row, one in enumerate(found.changes, 1):
        old, new = (f"{number(mean, 4)} {one.unit}".rstrip() for mean in one.means)
        interval = UNKNOWN
        if np.isfinite([one.low, one.high]).all() and one.low < one.high:
            interval = f"{fixed(one.low, 3)} to {fixed(one.high, 3)}"
        sizes = f"{len(one.old)}, {len(one.new)}"
        yield str(row), one.what, old, new, fixed(one.ratio, 3), interval, sizes, one.answer


def _headline(found: Comparison) -> str:
    """The answer in a sentence or two, what is slower first."""
    counts = {answer: len(found.with_answer(answer)) for answer in change.ANSWERS}
    total = len(found.changes)
    if found.answer == SAME:
        return f"The same: NEW is within {percent(found.margin, 1)} of OLD in {'the' if total == 1 else f'all {total}'} {'statement' if total == 1 else 'statements'}."
    worst = found.with_answer(found.answer)
    named = [
        f"{one.what} ({percent(one.ratio - 1)})" for one in sorted(worst, key=lambda one: one.ratio)
    ]
    rest = listed(
        [
            f"{counts[answer]} {answer}"
            for answer in change.ANSWERS
            if counts[answer] and answer != found.answer
        ]
    )
    return f"{found.answer.capitalize()} in {counts[found.answer]} of {total}: {_few(named)}.{f' The others: {rest}.' if rest else ''}"


def _few(words: Sequence[str], most: int = 5) -> str:
    """The first words, and how many more there are."""
    more = len(words) - most
    return "; ".join(words[:most]) + (f"; and {more} more" if more > 0 else "")


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of text in columns, numbers to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    left = (1, 7)
    return [
        "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]


def _facts_text(found: Comparison) -> Iterator[str]:
    if not found.old.facts or not found.new.facts:
        yield "What else changed is not known: a CSV file says nothing of machine and settings."
        return
    if not found.facts:
        yield "Nothing else is known to have changed: machine, tools, testbed and settings are recorded as the same."
    else:
        yield "What else changed:"
        yield from (f"  {what}: {old} -> {new}" for what, old, new in found.facts[:MOST_FACTS])
        if len(found.facts) > MOST_FACTS:
            yield f"  and {len(found.facts) - MOST_FACTS} more (--json lists all)"
    if found.one_sided_facts:
        yield f"Recorded on one side only: {_few(found.one_sided_facts)}."


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
        of = f" of {_few(nodes, 3)}" if nodes[0] else ""
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
                _few([str(value) for value in sorted(values, key=str)], 3) for values in (old, new)
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


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
