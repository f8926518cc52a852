"""What the page says, as HTML; every text from a dataset is escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from analysis import models
from analysis.explorer.data import factor_name, known
from analysis.explorer.plot import BESIDE
from analysis.explorer.shown import Curve, Judgement, Shown, selected
from analysis.inference.averages import NAMES
from analysis.wording import counted, day
from runners.record import Execution, Transcript

HINT = '<p class="under">Click a point: its raw transcript opens here.</p>'
EMPTY = (
    "There is nothing to explore here yet",
    "The folder holds no dataset. `falloff run hpl_scaling --preset quick` measures one, `falloff import` makes one "
    "of outputs that you have, and `falloff explore` without a folder shows the reference that comes with Falloff.",
)
MOST = 60_000  # characters of one output that a page shows
KINDS = {"flat": "flat", "falls off": "falls", "falls, size open": "falls"}  # the others have none
SIGNS = dict(zip(BESIDE, "★⬢✚"))  # of the datasets that are shown beside the first
WHAT = {
    "measured": "measured on a cluster",
    "emulated": "emulated: real programs on nodes that share one machine",
    "simulated": "simulated: a model, without scatter",
}


def question(title: str, shown: Shown) -> str:
    """The experiment's title, and when and as what kind of evidence its data came about; printed numbers too."""
    said = []
    for trials in shown.opened.values():
        testbed, started = trials.testbed.replace("_", " "), day(trials.dataset.attrs["started"])
        said.append(f"{WHAT.get(trials.evidence, trials.evidence)} (testbed {testbed}, {started})")
    if not shown.printed().empty:
        said.append("×\u00a0published: printed by the source")
    return f'<p class="question">{escape(title)}</p><p class="under">{escape(" · ".join(said))}</p>'


def trouble(title: str, reason: str) -> str:
    """A page's worth of friendliness where there is nothing to plot."""
    heading = f'<p class="question">{escape(title)}</p>'
    return f'<div class="card trouble" role="alert">{heading}<p>{escape(reason)}</p></div>'


def verdicts(shown: Shown) -> str:
    """A card for each dataset: the word, the sentence, what else has to be known."""
    signs = ["●", *SIGNS.values()] if len(shown.opened) > 1 else [""]
    return "".join(
        _card(shown, name, judged, signs[at % len(signs)])
        for at, (name, judged) in enumerate(shown.judgements.items())
    )


def _card(shown: Shown, name: str, judged: Judgement, sign: str) -> str:
    trials = shown.opened[name]
    rows = selected(shown.view, trials)
    out = int((~rows.valid).sum())
    notes = [
        judged.note,
        f"Faint and not counted, by the campaign's own rules: {counted(out, 'trial')} without a valid reading."
        if out
        else "",
        trials.dataset.attrs.get("caveat", ""),
    ]
    word = f'<span class="word">{judged.word}</span>' if judged.word else ""
    return (
        f'<div class="card {KINDS.get(judged.word, "")}" data-verdict="{judged.word}">{word}'
        f'<span class="sentence">{escape(judged.sentence)}</span> '
        f'<span class="chip">{escape(judged.evidence)} {sign}</span>'
        f'<div class="note">{escape(" ".join(filter(None, notes)))}</div></div>'
    )


def means(shown: Shown) -> str:
    """Median, mean, interval and n of every point."""
    view, quantity = shown.view, shown.first.quantities[shown.view.y]
    unit = f" [{quantity.unit}]" if quantity.unit else ""
    mean = f"{NAMES[quantity.kind]} mean{unit}"
    rows = [
        (
            *_of(shown, curve),
            shown.first.called(level),
            known(at["median"]),
            known(at["mean"]),
            _interval(at.low, at.high),
            str(int(at.n)),
        )
        for curve in shown.curves
        for level, at in curve.summary.iterrows()
    ]
    measured = (f"median{unit}", mean, f"95 % t interval{unit}", "n")
    return table((*_heads(shown), factor_name(view.x), *measured), rows, numbers=4)


def fits(shown: Shown) -> str:
    """The parameters of the experiment's model for each curve, and whether the curve may be drawn."""
    if not shown.model:
        return '<p class="under">The experiment names no model of this quantity over this axis.</p>'
    model, rows = models.find(shown.model), []
    for curve in shown.curves:
        fitted, of = curve.fitted, _of(shown, curve)
        if fitted.fit is None:
            rows.append((*of, fitted.refused, "", "", "", ""))
            continue
        for name, estimate in fitted.fit.estimates.items():
            interval = _interval(*fitted.fit.intervals[name])
            numbers = (known(estimate), interval, str(fitted.fit.blocks))
            rows.append((*of, fitted.refused or "drawn", name, *numbers))
    times = any(curve.fitted.times_x for curve in shown.curves)
    response = f"{shown.view.x} times the share" if times else "the values"
    said = f"{model.title}, fitted to {response} of every block. {model.source}."
    head = (*_heads(shown), "curve", "parameter", "estimate", "95 % t interval", "blocks")
    return f'<p class="under">{escape(said)}</p>{table(head, rows, numbers=3)}'


def _heads(shown: Shown) -> tuple[str, ...]:
    several = ("evidence",) if len(shown.opened) > 1 else ()
    return *several, factor_name(shown.view.series)


def _of(shown: Shown, curve: Curve) -> tuple[str, ...]:
    several = (shown.opened[curve.source].evidence,) if len(shown.opened) > 1 else ()
    return *several, shown.first.placed(shown.view.series, curve.level)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: int) -> str:
    """A table whose last columns, so many of them, are numbers."""
    first = len(head) - numbers
    cells = [
        "".join(
            f"<td{' class=n' if at >= first else ''}>{escape(cell)}</td>"
            for at, cell in enumerate(row)
        )
        for row in rows
    ]
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f'<div class="wide"><table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>'


def transcript(found: Transcript) -> str:
    """A transcript as HTML: what was run, what it printed, and the settings read back."""
    trial = found.trial
    place = f"{trial.runner}, block {trial.block}, run {trial.order} in it"
    parts = [
        f"<h3>{escape(trial.id)}</h3>",
        f"<p>{escape(place)}, {escape(found.evidence)} evidence, testbed {escape(found.testbed)}</p>",
    ]
    for reason in filter(None, (found.fault, found.unavailable)):
        parts.append(f'<p class="fault">{escape(reason)}</p>')
    parts += [_execution(execution) for execution in found.executions]
    settings = {
        "Settings of the trial": trial.point,
        "Read back afterwards": found.effective,
        "Counters": found.counters,
    }
    parts += [_fold(title, values) for title, values in settings.items() if values]
    return "".join(parts)


def _fold(title: str, values: Mapping) -> str:
    rows = "".join(
        f"<tr><th>{escape(str(key))}</th><td>{escape(str(value))}</td></tr>"
        for key, value in values.items()
    )
    return f"<details><summary>{title}</summary><table>{rows}</table></details>"


def command(execution: Execution) -> str:
    """What was executed, as one line."""
    return " ".join(execution.argv) or execution.tool


def _execution(execution: Execution) -> str:
    code = "unknown" if execution.exit_code is None else execution.exit_code
    ended = "stopped at its limit" if execution.timed_out else f"exit code {code}"
    head = f"<p><code>{escape(command(execution))}</code><br>{ended}, {execution.wall_s:.2f} s</p>"
    texts = {"output": execution.stdout, "errors": execution.stderr}
    return head + "".join(
        f'<pre aria-label="{name}">{escape(_cut(text))}</pre>'
        for name, text in texts.items()
        if text.strip()
    )


def _cut(text: str) -> str:
    if len(text) <= MOST:
        return text
    return (
        f"{text[:MOST]}\n... {len(text) - MOST} more characters: the transcript's file has them all"
    )


def _interval(low: float, high: float) -> str:
    return f"{known(low)} to {known(high)}" if low == low else known(low)
