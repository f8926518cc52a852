"""The page's text as HTML, by the macros of parts.html; every text from a dataset is escaped."""

import re
from contextlib import suppress
from functools import cache
from math import isnan
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from analysis.explorer.data import factor_name, with_unit
from analysis.explorer.view import PageContent
from analysis.quoting import as_written
from analysis.statistics.intervals import AVERAGES
from analysis.wording import UNKNOWN, counted, day, number
from runners.records.record import Execution, FalloffError, Transcript
from runners.tools import tool_named

FOLDER = Path(__file__).parent
EMPTY = (
    "There is nothing to explore here yet",
    "The folder holds no dataset. `falloff run hpl_scaling --preset quick` measures one, `falloff "
    "import` makes one of outputs that you have, and `falloff explore` without a folder shows the "
    "reference that comes with Falloff.",
)
MOST = 60_000  # characters of one output that the page shows
# Other answers have no class.
KINDS = {"flat": "flat", "falls off": "falls", "falls, size open": "falls"}
WHAT = {
    "measured": "measured on a cluster",
    "emulated": "emulated: real programs on nodes that share one machine",
    "simulated": "simulated: a model, without scatter",
}


def _shown(value: Any) -> Any:
    """A value exactly as it was written; what a macro made is HTML already."""
    return value if isinstance(value, Markup) else as_written(str(value))


TEMPLATES = Environment(loader=FileSystemLoader(FOLDER), autoescape=True, finalize=_shown)
PARTS: Any = TEMPLATES.get_template("parts.html").module


@cache
def asset(name: str) -> str:
    """A style sheet, script or template of this folder."""
    return (FOLDER / name).read_text(encoding="utf-8")


def question(title: str, shown: PageContent) -> str:
    """The experiment's title, with the date and kind of evidence of its data."""
    dataset, evidence = shown.trials.dataset, shown.trials.evidence
    testbed = str(dataset.testbed.values[0]).replace("_", " ")
    words = f"{WHAT.get(evidence, evidence)} (testbed {testbed}, {day(dataset.attrs['started'])})"
    if shown.trials.repeats:
        words = "measured: files that were imported"
    return PARTS.question(title, words)


def verdict(shown: PageContent) -> str:
    """The judgement as a card: the sentence with the answer in bold, and further notes."""
    judgement, trials, notes = shown.judgement, shown.trials, list(shown.judgement.notes)
    if out := int((~shown.points.valid).sum()):
        rules = "Faint and not counted, by the campaign's own rules"
        notes.append(f"{rules}: {counted(out, 'trial')} without a valid reading.")
    notes.append(trials.dataset.attrs.get("caveat", ""))
    answer, basis, kind = "", judgement.sentence, KINDS.get(judgement.word, "")
    if kind:
        who, word, basis = basis.partition(judgement.word.partition(",")[0])
        answer = who + word
    return PARTS.verdict(kind, answer, basis, trials.evidence, " ".join(notes))


def numbers(shown: PageContent) -> str:
    """Mean, interval and n of every point as a table, below the laws whose curves are drawn."""
    view, quantity, trials = shown.view, shown.quantity, shown.trials
    titles = (f"{AVERAGES[quantity.kind]} mean", "95 % t interval from", "to")
    columns = (with_unit(title, quantity.unit) for title in titles)
    head = (factor_name(view.series), factor_name(view.x), *columns, "n")
    rows = [
        (
            trials.called(view.series, series),
            trials.ticked(view.x, x),
            *(UNKNOWN if isnan(value) else number(value, 4) for value in values),
            n,
        )
        for series, x, *values, n in shown.summary.itertuples(index=False)
    ]
    curves = "; ".join(
        f"{trials.called(view.series, series)}: {law.model.title}"
        for series, law in shown.laws.items()
    )
    laws = f"Curves are the laws that the means follow best. {curves}."
    return (PARTS.under(laws) if curves else "") + PARTS.table(rows, head)


def transcript(record: Transcript) -> str:
    """A transcript: the command, its output, and the settings read back."""
    result = ""
    with suppress(FalloffError):  # it is no tool's
        result = tool_named(record.trial.runner).result_line
    executions = [_execution(execution, result) for execution in record.executions]
    return PARTS.transcript(record, executions)


def _execution(execution: Execution, result: str) -> tuple[str, str, list]:
    """The command, how it ended, and its outputs."""
    code = "unknown" if execution.exit_code is None else execution.exit_code
    ended = "stopped at its limit" if execution.timed_out else f"exit code {code}"
    command = " ".join(execution.argv) or execution.tool
    outputs = {"output": (execution.stdout, result), "errors": (execution.stderr, "")}
    parts = [(label, *_cut(*text)) for label, text in outputs.items() if text[0].strip()]
    return command, f"{ended}, {execution.wall_s:.2f} s", parts


def _cut(output: str, result: str) -> tuple[str, str, str]:
    """An output before, in and after the line of its result, cut to MOST characters around that."""
    line = re.search(result, output, re.M) if result else None
    begin, end = line.span() if line else (0, 0)
    first = min(max(0, end - MOST // 2), max(0, len(output) - MOST))
    last = min(len(output), first + MOST)
    cut = " more characters: the transcript's file has them all"
    before = f"... {first}{cut}\n" * bool(first)
    after = f"\n... {len(output) - last}{cut}" * (last < len(output))
    return before + output[first:begin], output[begin:end], output[end:last] + after
