"""What the page says, as HTML; every text from a dataset is escaped."""

from collections.abc import Iterable, Mapping
from html import escape

import pandas as pd

from analysis import models
from analysis.explorer.data import Trials, factor_name, known
from analysis.explorer.plot import BESIDE
from analysis.explorer.shown import Judgement, Shown, selected
from analysis.explorer.view import model_of
from analysis.statistics.intervals import NAMES
from analysis.wording import counted, day
from runners.record import Execution, Transcript

HINT = '<p class="under">Click a point: its raw transcript opens here. A click on the legend hides a curve.</p>'
EMPTY = (
    "There is nothing to explore here yet",
    "The folder holds no dataset. `falloff run hpl_scaling --preset quick` measures one, `falloff import` makes one "
    "of outputs that you have, and `falloff explore` without a folder shows the reference that comes with Falloff.",
)
MOST = 60_000  # characters of one output that a page shows
KINDS = {"flat": "flat", "falls off": "falls", "falls, size open": "falls"}  # the others have none
WHAT = {
    "measured": "measured on a cluster",
    "emulated": "emulated: real programs on nodes that share one machine",
    "simulated": "simulated: a model, without scatter",
}


def question(title: str, shown: Shown) -> str:
    """The experiment's title, and when and as what kind of evidence its data came about; printed numbers too."""
    said = [_origin(trials) for trials in shown.opened.values()]
    if not shown.printed().empty:
        said.append("×\u00a0published: printed by the source")
    return f'<p class="question">{escape(title)}</p>{under(" · ".join(said))}'


def _origin(trials: Trials) -> str:
    testbed = trials.dataset.testbed.values[0].replace("_", " ")
    started = day(trials.dataset.attrs["started"])
    return f"{WHAT.get(trials.evidence, trials.evidence)} (testbed {testbed}, {started})"


def under(words: str) -> str:
    """A quiet line."""
    return f'<p class="under">{escape(words)}</p>'


def trouble(title: str, reason: str) -> str:
    """A page's worth of friendliness where there is nothing to plot."""
    heading = f'<p class="question">{escape(title)}</p>'
    return f'<div class="card trouble" role="alert">{heading}<p>{escape(reason)}</p></div>'


def verdicts(shown: Shown) -> str:
    """A card for each dataset: the word, the sentence, what else has to be known."""
    signs = ["●", *BESIDE.values()] if len(shown.opened) > 1 else [""]
    cards = [
        _card(shown, name, judged, signs[at % len(signs)])
        for at, (name, judged) in enumerate(shown.judgements.items())
    ]
    return "".join(cards)


def _card(shown: Shown, name: str, judged: Judgement, sign: str) -> str:
    trials = shown.opened[name]
    notes = [judged.note, trials.dataset.attrs.get("caveat", "")]
    if out := int((~selected(shown.view, trials).valid).sum()):
        rules = "Faint and not counted, by the campaign's own rules"
        notes.insert(1, f"{rules}: {counted(out, 'trial')} without a valid reading.")
    word = f'<span class="word">{judged.word}</span>' if judged.word else ""
    return (
        f'<div class="card {KINDS.get(judged.word, "")}" data-verdict="{judged.word}">{word}'
        f'<span class="sentence">{escape(judged.sentence)}</span> '
        f'<span class="chip">{escape(judged.evidence)} {sign}</span>'
        f'<div class="note">{escape(" ".join(filter(None, notes)))}</div></div>'
    )


def numbers(shown: Shown) -> str:
    """Median, mean, interval and n of every point, and the model where the experiment names one."""
    view, quantity, trials = shown.view, shown.quantity, shown.first
    rows = shown.summary()
    mean, interval = f"{NAMES[quantity.kind]} mean", "95 % t interval"
    columns = {
        factor_name(view.series): rows[view.series].map(_called(trials, view.series)),
        factor_name(view.x): [trials.ticked(view.x, level) for level in rows[view.x]],
        quantity.with_unit("median"): rows["median"].map(known),
        quantity.with_unit(mean): rows["mean"].map(known),
        quantity.with_unit(interval): _intervals(rows.low, rows.high),
        "n": rows.n,
    }
    evidence = {"evidence": rows.evidence} if len(shown.opened) > 1 else {}
    return _table({**evidence, **columns}) + (_fits(shown) if model_of(view, trials) else "")


def _fits(shown: Shown) -> str:
    """The parameters of the experiment's model for each curve that it follows; of the others the reason."""
    view, rows = shown.view, []
    model = models.find(model_of(view, shown.first))
    for curve in shown.curves:
        name = shown.first.called(view.series, curve.level)
        if not curve.is_drawn:
            rows.append((name, curve.fitted.refused, "", "", ""))
            continue
        fit = curve.fitted.fit
        for parameter, estimate in fit.estimates.items():
            (interval,) = _intervals(*([end] for end in fit.intervals[parameter]))
            rows.append((name, parameter, known(estimate), interval, str(fit.blocks)))
    names = (factor_name(view.series), "parameter", "estimate", "95 % t interval", "n")
    times = any(curve.fitted.times_x for curve in shown.curves)
    response = f"{view.x} times the share" if times else "the values"
    said = f"{model.title}, fitted to {response} of every block. {model.source}."
    return under(said) + _table(pd.DataFrame(rows, columns=names))


def _called(trials: Trials, factor: str):
    return lambda level: trials.called(factor, level)


def _intervals(low: Iterable[float], high: Iterable[float]) -> list[str]:
    return [f"{known(a)} to {known(b)}" if a == a else known(a) for a, b in zip(low, high)]


def _table(columns: Mapping, **looks) -> str:
    with pd.option_context("display.max_colwidth", None):  # else long texts are cut
        table = pd.DataFrame(columns).to_html(index=False, border=0, justify="unset", **looks)
    return f'<div class="wide">{table}</div>'


def transcripts(found: list[Transcript]) -> str:
    """What was run at one place of the plot: the first whole, the others folded."""
    first, *others = map(transcript, found)
    return first + "".join(_fold("another trial here", other) for other in others)


def transcript(found: Transcript) -> str:
    """A transcript: what was run, what it printed, and the settings read back."""
    trial = found.trial
    place = f"{trial.runner}, block {trial.block}, run {trial.order} in it"
    said = f"{place}, {found.evidence} evidence, testbed {found.testbed}"
    faults = [reason for reason in (found.fault, found.unavailable) if reason]
    parts = [f"<h3>{escape(trial.id)}</h3><p>{escape(said)}</p>"]
    parts += [f'<p class="fault">{escape(reason)}</p>' for reason in faults]
    parts += [_execution(execution) for execution in found.executions]
    settings = {
        "Settings of the trial": trial.point,
        "Read back afterwards": found.effective,
        "Counters": found.counters,
    }
    for title, values in settings.items():
        if values:
            table = {"name": list(values), "value": map(str, values.values())}
            parts.append(_fold(title, _table(table, header=False)))
    return "".join(parts)


def _fold(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>{content}</details>"


def _execution(execution: Execution) -> str:
    code = "unknown" if execution.exit_code is None else execution.exit_code
    ended = "stopped at its limit" if execution.timed_out else f"exit code {code}"
    command = " ".join(execution.argv) or execution.tool
    head = f"<p><code>{escape(command)}</code><br>{ended}, {execution.wall_s:.2f} s</p>"
    texts = {"output": execution.stdout, "errors": execution.stderr}
    said = {name: text for name, text in texts.items() if text.strip()}
    printed = (
        f'<pre aria-label="{name}">{escape(_cut(text))}</pre>' for name, text in said.items()
    )
    return head + "".join(printed)


def _cut(text: str) -> str:
    more = f"\n... {len(text) - MOST} more characters: the transcript's file has them all"
    return text if len(text) <= MOST else text[:MOST] + more
