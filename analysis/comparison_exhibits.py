"""How a comparison is shown: in a terminal, as an estimation plot, and as data."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from analysis import drawing, style
from analysis.comparison import EXIT_CODES, Comparison, few
from analysis.exhibit import Basis, Exhibit
from analysis.findings import T_INTERVAL, known
from analysis.statistics import change
from analysis.statistics.change import FASTER, SAME, SLOWER
from analysis.statistics.judgement import UNDECIDED
from analysis.wording import UNKNOWN, counted, fixed, listed, number, percent

_OLD, _NEW = style.Look("#6E6E6E", "o", "-"), style.Look("#0072B2", "D", "-")
_LOOKS = {
    SLOWER: style.Look("#D55E00", "v", "-"),
    FASTER: style.Look("#0072B2", "^", "-"),
    SAME: style.Look("#009E73", "s", "-"),
    UNDECIDED: style.Look("#6E6E6E", "o", "-"),
}


def text(found: Comparison) -> str:
    """The comparison for a terminal: the answer first, then every statement, then what else changed."""
    lines = [_headline(found), ""]
    for name, side in (("OLD", found.old), ("NEW", found.new)):
        ended = f", ended {side.ended[:16].replace('T', ' ')}" if side.ended else ""
        noun = "trial" if side.facts else "row"
        lost = f", {counted(side.left_out, noun)} without a value left out" if side.left_out else ""
        lines.append(f"{name}  {side.source}: {side.evidence} evidence{ended}{lost}")
    lines += ["", *_table(found), ""]
    if undecided := [one.what for one in found.with_answer(UNDECIDED)]:
        lines.append(f"Undecided: {few(undecided)}. More {found.old.repeats}s would tell.")
    lines.append(rule(found))
    for name, labels in (("OLD", found.only_old), ("NEW", found.only_new)):
        if labels:
            lines.append(f"Only in {name}: {few(labels)}.")
    return "\n".join([*lines, "", *_facts(found)]).replace("\u00a0", " ")


def rule(found: Comparison) -> str:
    """How the answers were found, in two sentences."""
    margin = f"{100 * found.margin:g} %"
    if found.old.evidence == "simulated":
        return f"A simulation repeats itself exactly: a ratio within {margin} of 1 is the same, and any other a change."
    return (
        f"Ratio: speed of NEW over OLD, geometric means with 95 % t intervals over the {found.old.repeats}s. "
        f"The same: within {margin}. Slower, faster: differs from 1. "
        f"At most 5 % of comparisons are wrong in either way ({counted(len(found.changes), 'statement')}, Holm)."
    )


def basis(found: Comparison) -> Basis:
    """What the comparison rests on."""
    if found.old.evidence == "simulated":
        return Basis("simulated")
    fewest = min(min(len(one.old), len(one.new)) for one in found.changes)
    return Basis(found.old.evidence, fewest, T_INTERVAL, found.old.repeats)


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
            for look, logs, offset in ((_OLD, one.old, -0.17), (_NEW, one.new, 0.17)):
                relative, rows = (
                    100 * np.exp(logs - one.old.mean()),
                    np.full(len(logs), row + offset),
                )
                marks = {"color": look.color, "alpha": 0.6, "markersize": 3.5, "mew": 0}
                name = "OLD" if look is _OLD else "NEW"
                samples.plot(relative, rows, look.marker, label=name, **marks)
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
    """The comparison as plain data, for JSON; what is not known is None."""
    statements = [
        {
            "what": one.what,
            "answer": one.answer,
            "old": one.means[0],
            "new": one.means[1],
            "unit": one.unit,
            "speed_ratio": known(one.ratio),
            "interval_95": [known(one.low), known(one.high)],
            "n_old": len(one.old),
            "n_new": len(one.new),
        }
        for one in found.changes
    ]
    return {
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


def _headline(found: Comparison) -> str:
    """The answer in a sentence or two, what is slower first."""
    total, worst = len(found.changes), found.with_answer(found.answer)
    if found.answer == SAME:
        return (
            f"The same: {counted(total, 'statement')}, each within {100 * found.margin:g} % of OLD."
        )
    worst = sorted(worst, key=lambda one: one.ratio)
    named = few([f"{one.what} ({percent(one.ratio - 1)})" for one in worst])
    rest = listed(counts(one for one in found.changes if one.answer != found.answer))
    others = f" The others: {rest}." if rest else ""
    return f"{found.answer.capitalize()} in {len(worst)} of {total}: {named}.{others}"


def counts(changes) -> list[str]:
    """How many have each answer, what most needs a look first."""
    given = [one.answer for one in changes]
    return [f"{given.count(answer)} {answer}" for answer in change.ANSWERS if answer in given]


def _table(found: Comparison) -> Sequence[str]:
    """Every statement in a line."""
    columns: dict[str, list[str]] = {"No.": [str(row + 1) for row in range(len(found.changes))]}
    width = max(len(one.what) for one in found.changes)
    columns["What".ljust(width)] = [one.what.ljust(width) for one in found.changes]
    for side, name in enumerate(("OLD", "NEW")):
        columns[name] = [
            f"{number(one.means[side], 4)} {one.unit}".strip() for one in found.changes
        ]
    columns["Ratio"] = [fixed(one.ratio, 3) for one in found.changes]
    columns["95 % interval"] = [
        f"{fixed(one.low, 3)} to {fixed(one.high, 3)}" if one.low < one.high else UNKNOWN
        for one in found.changes
    ]
    columns["n"] = [f"{len(one.old)}, {len(one.new)}" for one in found.changes]
    columns["Answer   "] = [one.answer.ljust(9) for one in found.changes]
    return [line.rstrip() for line in pd.DataFrame(columns).to_string(index=False).splitlines()]


def _facts(found: Comparison) -> Iterator[str]:
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
