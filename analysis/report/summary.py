"""The report's first page: the answer to its question, and a table of what every notebook stated.

It reads the executed notebooks, and judges nothing itself.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from analysis.dataset.accessor import NOT_RUN
from analysis.quoting import quoted
from analysis.report import document
from analysis.report.document import Section
from analysis.statements.exhibit import Table
from analysis.statements.notebooks import FRAME, SUMMARY, in_order, role
from analysis.statements.statement import Statement, Text, say
from analysis.watch import reproducing
from analysis.watch.reproducing import NOT_REPRODUCED, REPRODUCED
from analysis.watch.todays_run import FAILED
from analysis.wording import first_sentence, within_words
from runners.records.record import FalloffError

COLUMNS = ("§", "Statement", "Answer", "Estimate (interval)", "n", "Evidence")
WIDTHS = (3, 50, 16, 28, 25, 10)  # of the columns, in characters
WORDS = 125  # of an abstract, at most
MEANING = (
    "§ is the section. A loss *falls off* if its whole interval lies beyond the margin, and is "
    "*flat* if all of it lies within. *Yes* and *no*: the whole interval lies on one side of what "
    "was asked. *The same*: a difference lies within a margin. *Undecided*: the interval decides "
    "nothing. An interval's level stands before it."
)
OF_OTHERS = (
    f"What the other experiments found; {MEANING} Sections that are not here are in the "
    "supplement, with every statement."
)
VERDICTS = {REPRODUCED: "reproduces this", NOT_REPRODUCED: "does not reproduce this"}


def gathered(folder: Path) -> dict[str, Section]:
    """The executed notebooks in a folder by name, in the order of the report's sections.

    Raises FalloffError where no notebook was executed there.
    """
    notebooks = in_order(book for book in folder.glob("*/*.ipynb") if book.stem != SUMMARY)
    if not notebooks:
        raise FalloffError(
            f"{folder} holds no executed notebook to gather from: `make report` makes them"
        )
    read = {book.stem: document.read(book, whole=True) for book in notebooks}
    return {name: section for name, section in read.items() if says_something(name, section)}


def says_something(notebook: str, section: Section) -> bool:
    """Whether a notebook belongs into the report: an experiment that states nothing does not."""
    return role(notebook).audience == FRAME or bool(section.statements)


def abstract(sections: Mapping[str, Section], notebook: str) -> Text:
    """A notebook's first text with primary statements, and the statements that fit into WORDS
    words.

    Those that compare with what was not run are left to the section. Raises FalloffError if the
    notebook was not executed.
    """
    if notebook not in sections:
        raise FalloffError(f"{notebook} was not executed, and the first page rests on it")
    section = sections[notebook]
    opening, *_ = section.answer.split("\n\n")
    primary = [f"- {made}" for made in section.primary if NOT_RUN not in made.subject]
    opens = [] if opening.startswith("- ") else [opening]
    first, *others = within_words([*opens, *primary], WORDS)
    return say("\n".join([first, "", *others]))


def own_abstract(sections: Iterable[Section]) -> str:
    """The main sentences of the sections' primary statements that say something in bold, or that
    nothing was asked of, as many as fit. Those that compare with another network come only where a
    section has no others: they are in the table."""
    sentences: list[str] = []
    for section in sections:
        lines = [
            str(made) for made in section.primary if not made.answer or str(made).startswith("**")
        ]
        alone = [line for line in lines if " against " not in line]
        sentences += map(first_sentence, alone or lines)
    return " ".join(within_words(sentences, WORDS))


def today(
    sections: Mapping[str, Section], reproductions: Sequence[dict] = (), is_stored: bool = True
) -> Text:
    """Whether today's runs give the references' primary statements again; what `falloff reproduce`
    said here of all comes first, from its records. `is_stored` says that the runs are those that
    are shipped."""
    statements = [statement for section in sections.values() for statement in section.today]
    failed = {statement["digest"]: statement for statement in statements if statement["failed"]}
    lines = [_failed(run) for run in failed.values()]
    lines += [
        _compared(statement)
        for statement in statements
        # A shorter run has planned statements of its own, which are secondary ones of the
        # reference.
        if statement["verdict"] != FAILED
        and (statement["primary"] or statement["today"]["primary"])
    ]
    places = dict.fromkeys(
        f"- {_called(statement)} began on {statement['where']}." for statement in statements
    )
    parts = [reproducing.first_page_text(reproductions), "\n".join(lines), "\n".join(places)]
    nothing = (
        "This copy shows the runs that are shipped with Falloff; nothing was run on your machine."
    )
    return say("\n\n".join(filter(None, parts)) or nothing * is_stored)


def findings(sections: Mapping[str, Section]) -> Table:
    """The first primary statement of each executed notebook that is `on_first_page`, in the order
    of the sections.
    """
    rows = [
        _row(number, section.primary[0])
        for number, (name, section) in enumerate(sections.items(), 1)
        if section.primary and role(name).on_first_page
    ]
    return Table("findings", COLUMNS, "rlllrl", rows, OF_OTHERS, widths=WIDTHS)


def table(sections: Collection[Section]) -> Table:
    """The primary statements of each section, by its number."""
    rows = [
        _row(number, statement)
        for number, section in enumerate(sections, 1)
        for statement in section.primary
    ]
    caption = f"What was found; {MEANING}"
    return Table("statements", COLUMNS, "rlllrl", rows, caption, widths=WIDTHS, box="long")


def _row(number: int, made: Statement) -> tuple[str, ...]:
    words = f"**{made.words}**" if made.words else ""
    return str(number), made.subject, words, made.value, made.basis, made.evidence


def _called(run: Mapping) -> str:
    return f"{run['run']} of campaign {quoted(run['campaign'])}"


def _failed(run: Mapping) -> str:
    """How many trials of a run of today failed, and why."""
    head = f"**{_called(run)} failed**:" if run["verdict"] == FAILED else f"{_called(run)}:"
    return f"- {head} {quoted(run['failed'])}"


def _compared(comparison: Mapping) -> str:
    made = Statement.from_data(comparison["today"])
    words = VERDICTS.get(comparison["verdict"], "is too short to tell")
    answer = f"**{made.words}**, " if made.words else ""
    return (
        f"- {_called(comparison)} ({made.evidence}) {words}: {comparison['subject']}: "
        f"{answer}{made.value}, {made.basis}."
    )
