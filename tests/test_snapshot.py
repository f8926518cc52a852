"""What the references say, held fast while the code is rebuilt: every statement and quantity of the
notebooks, every claim's verdict, every command with its options, every variable with its unit.

`python tests/test_snapshot.py` writes tests/snapshot.json again; each difference belongs into the
note of the change.
"""

import json
from functools import cache
from pathlib import Path

import click
import pytest

from analysis import experiment
from analysis.commands import falloff
from analysis.dataset.schema import schema
from analysis.descriptions import ledger
from analysis.report.claims.evaluate import evaluate
from analysis.statements import notebooks

FILE = Path(__file__).with_name("snapshot.json")
NOTEBOOKS = {file.stem: file for file in notebooks.of_experiments()}
pytestmark = pytest.mark.more  # 13 s


@cache
def executed(name):
    return notebooks.run(NOTEBOOKS[name], experiment.stored_datasets())


def statements(name):
    """[subject or name, answer, estimate and interval as far as known] of each statement and
    quantity of a notebook.
    """
    run = executed(name)
    return [
        [statement.name or statement.subject, statement.answer, numbers(statement)]
        for statement in sorted(run.stated, key=lambda statement: bool(statement.name))
    ]


def numbers(statement):
    estimate = () if statement.estimate is None else (statement.estimate,)
    return [float(f"{number:.9g}") for number in (*estimate, *(statement.interval or ()))]


def verdicts():
    """The answer to each claim on each kind of evidence."""
    stated = {name: executed(name).stated for name in NOTEBOOKS}
    return {
        entry.claim.id: {verdict.evidence: verdict.answer for verdict in entry.verdicts}
        for entry in evaluate(ledger.load(), stated)
    }


def options(command=falloff, words="falloff"):
    """The arguments and options of each command, groups included."""
    yield words, sorted("/".join(parameter.opts) for parameter in command.params)
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from options(inner, f"{words} {name}")


def units():
    """The unit of each variable and coordinate; empty for text."""
    parts = (schema()[section] for section in ("coordinates", "variables"))
    return {name: row.get("units", "") for part in parts for name, row in part.items()}


@cache
def snapshot():
    return json.loads(FILE.read_text(encoding="utf-8"))


def test_every_notebook_is_there():
    assert sorted(NOTEBOOKS) == sorted(snapshot()["statements"])


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_statements_are_the_same(name):
    """To print precision: another processor has other last digits."""
    before, now = snapshot()["statements"][name], statements(name)
    assert [statement[:2] for statement in now] == [statement[:2] for statement in before]
    for (subject, _, wanted), (*_, given) in zip(before, now):
        assert given == pytest.approx(wanted, rel=1e-5), subject


def test_verdicts_on_claims_are_the_same():
    assert verdicts() == snapshot()["claims"]


def test_commands_and_options_are_the_same():
    assert dict(options()) == snapshot()["commands"]


def test_variables_and_units_are_the_same():
    assert units() == snapshot()["variables"]


if __name__ == "__main__":
    parts = {
        "statements": {name: statements(name) for name in NOTEBOOKS},
        "claims": verdicts(),
        "commands": dict(options()),
        "variables": units(),
    }
    text = json.dumps(parts, ensure_ascii=False)
    FILE.write_text(text.replace("]], [", "]],\n[").replace("}, ", "},\n") + "\n", encoding="utf-8")
