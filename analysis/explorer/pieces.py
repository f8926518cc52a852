"""The page's text as HTML; every text from a dataset is escaped."""

import html
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from math import isnan
from pathlib import Path

from analysis.explorer.data import factor_name
from analysis.explorer.view import PageContent
from analysis.quoting import as_written
from analysis.statistics.intervals import AVERAGES
from analysis.wording import UNKNOWN, counted, day, number
from runners.records.record import Execution, FalloffError, Transcript
from runners.tools import tool_named

HINT = '<p class="under">Click a point: its raw transcript opens here. A click on the legend hides a curve.</p>'
EMPTY = (
    "There is nothing to explore here yet",
    "The folder holds no dataset. `falloff run hpl_scaling --preset quick` measures one, `falloff import` makes one "
    "of outputs that you have, and `falloff explore` without a folder shows the reference that comes with Falloff.",
)
MOST = 60_000  # characters of one output that the page shows
# Other answers have no class.
KINDS = {"flat": "flat", "falls off": "falls", "falls, size open": "falls"}
WHAT = {
    "measured": "measured on a cluster",
    "emulated": "emulated: real programs on nodes that share one machine",
    "simulated": "simulated: a model, without scatter",
}


def escape(text: str) -> str:
    """A text as HTML that displays exactly as written."""
    return html.escape(as_written(text))


@cache
def asset(name: str) -> str:
    """A style sheet, script or template of this folder."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def question(title: str, shown: PageContent) -> str:
    """The experiment's title, with the date and kind of evidence of its data."""
    dataset, evidence = shown.trials.dataset, shown.trials.evidence
    testbed = str(dataset.testbed.values[0]).replace("_", " ")
    words = f"{WHAT.get(evidence, evidence)} (testbed {testbed}, {day(dataset.attrs['started'])})"
    if shown.trials.repeats:
        words = "measured: files that were imported"
    return f'<p class="question">{escape(title)}</p>{under(words)}'


def under(words: str) -> str:
    """A line in a muted style."""
    return f'<p class="under">{escape(words)}</p>'


def notice(words: str) -> str:
    """A sentence on what was asked for and cannot be shown."""
    return f'<p class="notice" role="alert">{escape(words)}</p>'


def unknown(name: str) -> str:
    """That an address asks for an experiment which is not there."""
    return notice(f'There is no experiment "{name}" here. This is another one: choose above.')


def trouble(title: str, reason: str) -> str:
    """A friendly page for when there is nothing to plot."""
    heading = f'<p class="question">{escape(title)}</p>'
    return f'<div class="card trouble" role="alert">{heading}<p>{escape(reason)}</p></div>'


def verdict(shown: PageContent) -> str:
    """The judgement as a card: the sentence with the answer in bold, and further notes."""
    judgement, trials, notes = shown.judgement, shown.trials, list(shown.judgement.notes)
    if out := int((~shown.points.valid).sum()):
        rules = "Faint and not counted, by the campaign's own rules"
        notes.append(f"{rules}: {counted(out, 'trial')} without a valid reading.")
    notes.append(trials.dataset.attrs.get("caveat", ""))
    sentence, kind = escape(judgement.sentence), KINDS.get(judgement.word, "")
    if kind:
        who, answer, basis = sentence.partition(judgement.word.partition(",")[0])
        sentence = f'<span class="word">{who}{answer}</span>{basis}'
    return (
        f'<div class="card {kind}"><span class="sentence">{sentence}</span> '
        f'<span class="chip">{escape(trials.evidence)}</span>'
        f'<div class="note">{escape(" ".join(notes))}</div></div>'
    )


def numbers(shown: PageContent) -> str:
    """Mean, interval and n of every point as a table, below the laws whose curves are drawn."""
    view, quantity, trials = shown.view, shown.quantity, shown.trials
    mean = f"{AVERAGES[quantity.kind]} mean"
    values = map(quantity.with_unit, (mean, "95 % t interval from", "to"))
    head = (factor_name(view.series), factor_name(view.x), *values, "n")
    rows = [
        (trials.called(view.series, series), trials.ticked(view.x, x), *rest)
        for series, x, *rest in shown.summary.itertuples(index=False)
    ]
    curves = "; ".join(
        f"{trials.called(view.series, series)}: {law.model.title}"
        for series, law in shown.laws.items()
    )
    laws = under(f"Curves are the laws that the means follow best. {curves}.") if curves else ""
    return laws + _table(rows, head)


def _table(rows: Iterable[Iterable], head: Iterable[str] = ()) -> str:
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    table = f"<thead><tr>{titles}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="wide"><table>{table}</table></div>'


def _cell(value) -> str:
    if isinstance(value, float):
        value = UNKNOWN if isnan(value) else number(value, 4)
    return f"<td>{escape(str(value))}</td>"


def transcript(record: Transcript) -> str:
    """A transcript: the command, its output, and the settings read back."""
    trial = record.trial
    place = f"{trial.runner}, block {trial.block}, run {trial.order} in it"
    origin = f"{place}, {record.evidence} evidence, testbed {record.testbed}"
    parts = [f"<h3>{escape(trial.id)}</h3><p>{escape(origin)}</p>"]
    faults = filter(None, (record.fault, record.unavailable))
    parts += [f'<p class="fault">{escape(reason)}</p>' for reason in faults]
    result = _result_line(trial.runner)
    parts += [_execution(execution, result) for execution in record.executions]
    settings = {
        "Settings of the trial": trial.point,
        "Read back afterwards": record.effective,
        "Counters": record.counters,
    }
    for title, values in settings.items():
        if values:
            rows = [(name, str(value)) for name, value in values.items()]
            parts.append(fold(title, _table(rows)))
    return "".join(parts)


def fold(title: str, content: str) -> str:
    """Content that opens when its title is clicked."""
    return f"<details><summary>{title}</summary>{content}</details>"


def _result_line(runner: str) -> str:
    """The pattern of the line that has a tool's result; empty if it has none."""
    with suppress(FalloffError):
        return tool_named(runner).result_line
    return ""


def _execution(execution: Execution, result: str) -> str:
    code = "unknown" if execution.exit_code is None else execution.exit_code
    ended = "stopped at its limit" if execution.timed_out else f"exit code {code}"
    command = escape(" ".join(execution.argv) or execution.tool)
    text = f"<p><code>{command}</code><br>{ended}, {execution.wall_s:.2f} s</p>"
    line = re.search(result, execution.stdout, re.M) if result else None
    if execution.stdout.strip():
        text += f'<pre aria-label="output">{_marked(execution.stdout, line)}</pre>'
    if execution.stderr.strip():
        text += f'<pre aria-label="errors">{_marked(execution.stderr, None)}</pre>'
    return text


def _marked(output: str, result: re.Match | None) -> str:
    """An output as HTML, with its result marked, cut to MOST characters around that."""
    begin, end = result.span() if result else (0, 0)
    first = min(max(0, end - MOST // 2), max(0, len(output) - MOST))
    last = min(len(output), first + MOST)
    parts = escape(output[first:begin]), escape(output[begin:end]), escape(output[end:last])
    cut = " more characters: the transcript's file has them all"
    before = f"... {first}{cut}\n" * bool(first)
    after = f"\n... {len(output) - last}{cut}" * (last < len(output))
    line = f"<mark>{parts[1]}</mark>" * bool(result)
    return f"{before}{parts[0]}{line}{parts[2]}{after}"
