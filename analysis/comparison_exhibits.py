"""How a comparison is shown: in a terminal, as a table, as an estimation plot, and as data."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.comparison import EXIT_CODES, Comparison, few
from analysis.exhibit import Basis, Exhibit, Table
from analysis.statistics import change
from analysis.statistics.change import FASTER, SAME, SLOWER
from analysis.statistics.judgement import UNDECIDED
from analysis.wording import UNKNOWN, counted, fixed, listed, number, percent

INTERVALS = "95 % t intervals over the blocks"
_OLD, _NEW = style.Look("#6E6E6E", "o", "-"), style.Look("#0072B2", "D", "-")
_LOOKS = {
    SLOWER: style.Look("#D55E00", "v", "-"),
    FASTER: style.Look("#0072B2", "^", "-"),
    SAME: style.Look("#009E73", "s", "-"),
    UNDECIDED: style.Look("#6E6E6E", "o", "-"),
}
MOST_FACTS = 25  # lines of what else changed


def text(found: Comparison) -> str:
    """The comparison for a terminal: the answer first, then every statement, then what else changed."""
    lines = [_headline(found), ""]
    for name, side in (("OLD", found.old), ("NEW", found.new)):
        known = [
            f"{side.evidence} evidence",
            side.ended and f"ended {side.ended[:16].replace('T', ' ')}",
        ]
        if side.left_out:
            noun = "trial" if side.facts else "row"
            known.append(f"{counted(side.left_out, noun)} without a valid value left out")
        lines.append(f"{name}  {side.source}: {', '.join(filter(None, known))}")
    lines += ["", *_aligned([_COLUMNS, *_cells(found)]), ""]
    lines += _open(found)
    lines.append(rule(found))
    for name, labels in (("OLD", found.only_old), ("NEW", found.only_new)):
        if labels:
            lines.append(f"Only in {name}: {few(labels)}.")
    lines += ["", *_facts_text(found)]
    return "\n".join(lines).replace("\u00a0", " ")


def _open(found: Comparison) -> Iterator[str]:
    """Why statements are undecided, and what would decide them."""
    open_ones = found.with_answer(UNDECIDED)
    for reason in dict.fromkeys(one.reason for one in open_ones):
        yield f"Undecided, {reason}: {few([one.what for one in open_ones if one.reason == reason])}."
    needed = [one.blocks_needed for one in open_ones if math.isfinite(one.blocks_needed)]
    if needed:
        yield (
            f"With this scatter about {counted(int(max(needed)), found.old.repeats)} a side would show that an unchanged speed is the same."
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
    """Both samples of every statement [% of OLD's mean], and the change of speed [%] with its 95 % t interval."""
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
    return f"{found.answer.capitalize()} in {counts[found.answer]} of {total}: {few(named)}.{f' The others: {rest}.' if rest else ''}"


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
        yield f"Recorded on one side only: {few(found.one_sided_facts)}."


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
