"""Notebooks run in this process on given data, and what they show, for tests."""

import re

from analysis import paths
from analysis.quoting import as_written
from analysis.statements import notebooks
from analysis.statements.statement import Text


def executed(name, **data):
    """A notebook by its number, run on datasets by campaign and nothing else."""
    (file,) = paths.NOTEBOOKS.glob(f"{name}*.ipynb")
    return notebooks.run(file, data)


def text(run):
    """All text that a notebook showed, as Markdown."""
    return "\n\n".join(one.text for one in run.shown if isinstance(one, Text) and one.text)


def words(run):
    """All that a notebook said, with the captions of its figures and its tables, hard spaces as
    spaces; no number in it is made up."""
    parts = "\n\n".join(
        [text(run), *(each.markdown for each in (*run.figures.values(), *run.tables))]
    )
    assert not re.search(r"\b(nan|None|inf)\b", parts)
    return as_written(parts).replace("\u00a0", " ")


def stated(run, subject):
    """The only statement whose subject begins so, with hard spaces as spaces."""
    (one,) = (
        one for one in run.statements if one.subject.replace("\u00a0", " ").startswith(subject)
    )
    return one


def answers(run, primary=True):
    """The answers of all primary statements, or of all others, in their own words."""
    return [one.words for one in run.statements if one.primary is primary]
