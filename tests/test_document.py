"""An executed notebook becomes a section: its words and outputs, without its details."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from test_exhibit import BASIS, exhibit

from analysis import document
from analysis.exhibit import Answer, Table
from runners.record import FalloffError


def ran(shown, tags=(), count=1):
    """A cell of code with what it showed."""
    data, about = shown._repr_mimebundle_() if shown else ({"text/plain": "3"}, {})
    output = new_output("execute_result", data=data, metadata=about, execution_count=count)
    return new_code_cell(
        "show()", outputs=[output], execution_count=count, metadata={"tags": list(tags)}
    )


@pytest.fixture
def notebook(tmp_path):
    """A section with a figure, a finding, a detail and an output that nobody reads."""
    detail = Table("all", ("Run",), "r", [("1",)], "All runs.", BASIS)
    cells = [
        new_markdown_cell("# A question"),
        ran(None),
        ran(exhibit(rests_on=("hpl_scaling",))),
        ran(Answer("**An answer.**")),
        new_markdown_cell("## All runs", metadata={"tags": ["detail"]}),
        ran(detail, tags=["detail"]),
    ]
    file = tmp_path / "40_question" / "40_question.ipynb"
    file.parent.mkdir()
    nbformat.write(new_notebook(cells=cells), file)
    return file


def test_words_figures_and_findings_are_there(notebook):
    section = document.read(notebook)
    assert (
        section.markdown.index("# A question")
        < section.markdown.index("figures/rate.svg")
        < section.markdown.index("An answer")
    )
    assert set(section.figures) == {"rate"} and section.rests_on == {"rate": ("hpl_scaling",)}


def test_details_are_of_the_supplement(notebook):
    assert "All runs" not in document.read(notebook).markdown
    assert "#tbl:all" in document.read(notebook, whole=True).markdown


def test_code_stands_under_what_it_showed(notebook):
    """Of what showed nothing that a reader reads, the code is in the supplement only."""
    assert document.read(notebook).markdown.count("::: code") < document.read(
        notebook, whole=True
    ).markdown.count("::: code")


def test_what_was_not_executed_is_refused(notebook):
    book = nbformat.read(notebook, as_version=4)
    book.cells[3].execution_count = None
    nbformat.write(book, notebook)
    with pytest.raises(FalloffError, match="not executed to its end"):
        document.read(notebook)
