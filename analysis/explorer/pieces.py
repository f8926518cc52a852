"""What the page says, as HTML; every text from a dataset is escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np
import pandas as pd

from analysis.explorer.estimates import Curve, Fitted
from analysis.explorer.judgement import Judgement, left_out
from analysis.explorer.trials import Trials
from analysis.explorer.view import View
from analysis.inference.averages import NAMES
from analysis.wording import counted, day, number

HINT = (
    '<p class="under">Click a point: its raw transcript opens here. Drag to move the plot, or choose a box to select '
    "many.</p>"
)
EMPTY = (
    "There is nothing to explore here yet",
    "The folder holds no dataset. `falloff run hpl_scaling --preset quick` measures one, `falloff import` makes one "
    "of outputs that you have, and `falloff explore` without a folder shows the reference that comes with Falloff.",
)
LONGEST = 90  # characters of a title in the list
KINDS = {"flat": "flat", "falls off": "falls", "falls, size open": "falls"}  # the others have none
MARKS = ("●", "★", "⬢", "✚")  # of the datasets that are shown beside each other, as `layers.beside` has them
WHAT = {
    "measured": "measured on a cluster",
    "emulated": "emulated: real programs on nodes that share one machine",
    "simulated": "simulated: a model, without scatter",
    "published": "published",
}


def question(title: str, opened: Iterable[Trials], printed: bool = False) -> str:
    """The experiment's title, and when and as what kind of evidence its data came about; `printed` numbers too."""
    said = [
        f"{WHAT.get(it.evidence, it.evidence)} (testbed {it.testbed}, {day(it.dataset.attrs['started'])})"
        for it in opened
    ] + (["×\u00a0published: printed by the source"] if printed else [])
    return f'<p class="question">{escape(title)}</p><p class="under">{escape(" · ".join(said))}</p>'


def titled(title: str) -> str:
    """A title that fits into the list of experiments."""
    return title if len(title) < LONGEST else f"{title[: LONGEST - 2]} …"


def selected(count: int) -> str:
    """What stands in the place of many transcripts."""
    said = f"{count} trials are selected; they are marked among the trials. Click one for its transcript."
    return f'<p class="under">{said}</p>'


def trouble(title: str, reason: str) -> str:
    """A page's worth of friendliness where there is nothing to plot."""
    return (
        f'<div class="card trouble" role="alert"><p class="question">{escape(title)}</p><p>{escape(reason)}</p></div>'
    )


def verdicts(view: View, judgements: Mapping[str, Judgement], opened: Mapping[str, Trials]) -> str:
    """A card for each dataset: the word, the sentence, what else has to be known."""
    return "".join(_card(view, name, judgements[name], opened[name]) for name in view.sources)


def _card(view: View, name: str, found: Judgement, trials: Trials) -> str:
    word = f'<span class="word">{found.word}</span>' if found.word else ""
    notes = [found.note, *_left_out(view, trials), trials.dataset.attrs.get("caveat", "")]
    note = escape(" ".join(filter(None, notes)))
    mark = f" {MARKS[view.sources.index(name) % len(MARKS)]}" if len(view.sources) > 1 else ""
    return (
        f'<div class="card {KINDS.get(found.word, "")}" data-verdict="{found.word}">{word}'
        f'<span class="sentence">{escape(found.sentence)}</span> '
        f'<span class="chip">{escape(found.evidence)}{mark}</span><div class="note">{note}</div></div>'
    )


def _left_out(view: View, trials: Trials) -> list[str]:
    reasons = left_out(view, trials)
    if reasons.empty:
        return []
    left = counted(int(reasons.sum()), "trial")
    return [f"Faint and not counted, by the campaign's own rules: {left} without a valid reading."]


def summary_table(view: View, curves: Sequence[Curve], opened: Mapping[str, Trials]) -> str:
    """Median, mean, interval and n of every point."""
    of = next((it.quantities[view.ordinate] for it in opened.values() if view.ordinate in it.quantities), None)
    unit, mean = (of.unit, f"{NAMES[of.kind]} mean") if of else ("", "mean")
    head = [
        "evidence",
        _cap(view.series),
        _cap(view.abscissa),
        f"median{_in(unit)}",
        f"{mean}{_in(unit)}",
        f"95 % t interval{_in(unit)}",
        "n",
    ]
    rows = []
    for curve in curves:
        trials = opened[curve.source]
        for level, told in curve.summary.iterrows():
            interval = "—" if np.isnan(told.low) else f"{number(told.low, 4)} to {number(told.high, 4)}"
            cells = [trials.evidence, trials.placed(view.series, curve.level), trials.called(level)]
            rows.append([*cells, _number(told["median"]), _number(told["mean"]), interval, f"{int(told.n)}"])
    return _table(head, rows, numbers=range(3, 7))


def fit_table(view: View, curves: Sequence[Curve], fitted: Sequence[Fitted], opened: Mapping[str, Trials]) -> str:
    """Each curve's estimates with their intervals over the blocks, or why there are none."""
    if not view.model:
        return '<p class="under">No model is chosen.</p>'
    rows = []
    for curve, found in zip(curves, fitted):
        trials = opened[curve.source]
        name = trials.placed(view.series, curve.level)
        if found.fit is None:
            rows.append([trials.evidence, name, "—", found.refused, "", ""])
            continue
        for parameter, estimate in found.fit.estimates.items():
            low, high = found.fit.intervals[parameter]
            interval = "—" if np.isnan(low) else f"{number(low, 4)} to {number(high, 4)}"
            rows.append([trials.evidence, name, parameter, number(estimate, 4), interval, str(found.fit.blocks)])
    note = next((found for found in fitted if found.fit is not None), None)
    said = ""
    if note is not None:
        of = f"{view.abscissa} × the share" if note.times_x else "the values"
        fitted_to = f"{note.fit.model.title}, fitted to {of} of every block; {note.fit.interval_kind}"
        said = f'<p class="under">{escape(fitted_to)}. {escape(note.fit.model.source)}.</p>'
    return said + _table(
        ["evidence", _cap(view.series), "parameter", "estimate", "95 % t interval", "blocks"], rows, numbers=(3, 4, 5)
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int]) -> str:
    right = set(numbers)
    body = "".join(
        "<tr>"
        + "".join(f"<td{' class=n' if at in right else ''}>{escape(str(cell))}</td>" for at, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f'<div class="wide"><table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>'


def _number(value: float) -> str:
    return "—" if pd.isna(value) else number(value, 4)


def _in(unit: str) -> str:
    return f" [{unit}]" if unit else ""


def _cap(name: str) -> str:
    return name.replace("_", " ")
