"""The report's first page: the answer to its question and a table of what every experiment found."""

from collections.abc import Sequence
from pathlib import Path

from analysis import document, reproducing
from analysis.exhibit import Answer, Table
from analysis.wording import (
    UNKNOWN,
    byte_range,
    byte_size,
    counted,
    number,
    percent,
    percent_range,
)
from runners.record import FalloffError

WIDTHS = (56, 17, 24, 13, 10)  # of the columns, in characters
SUMMARY = "90_summary"  # the notebook that shows this
MAIN = "40_hpl_scaling"  # the main question's notebook
FRACTIONS = ("fall", "gain", "loss", "error", "share", "coefficient of variation")  # in percent
REPRODUCED = {"reproduced": "reproduces", "not reproduced": "does not reproduce"}


def gathered(folder: Path) -> list[dict]:
    """Every finding of the executed notebooks in a folder, the main question's first, each as `summary.json` has it.

    Raises FalloffError where no notebook was executed there.
    """
    notebooks = [book for book in folder.glob("*/*.ipynb") if book.stem != SUMMARY]
    notebooks.sort(key=lambda book: (book.stem != MAIN, book.stem))
    if not notebooks:
        raise FalloffError(
            f"{folder} holds no executed notebook to gather from: `make report` makes them"
        )
    return [finding for book in notebooks for finding in document.read(book, whole=True).findings]


def today(found: Sequence[dict], reproductions: Sequence[dict] = ()) -> Answer:
    """Whether today's runs reproduce the reference's primary findings; what `falloff reproduce` said here of all comes
    first, from its records."""
    judged = [finding for finding in found if finding["today"] and finding["primary"]]
    lines = [
        f"- Today's run {_reproduces(finding['today'])}: {finding['statement']}."
        for finding in judged
    ]
    told = [reproducing.on_page(reproductions), "\n".join(lines)]
    nothing = "Nothing was measured for this report: it shows the reference that is shipped."
    return Answer("\n\n".join(filter(None, told)) or nothing)


def table(found: Sequence[dict]) -> Table:
    """The primary findings of each experiment, its main question first."""
    rows = [
        (
            finding["statement"],
            f"**{finding['answer']}**" if finding["answer"] else "",
            _value(finding),
            f"{finding['n']} {finding['n_of']}s" if finding["n"] != 1 else f"1 {finding['n_of']}",
            finding["evidence"],
        )
        for finding in found
        if finding["primary"]
    ]
    columns = ("Statement", "Answer", "Estimate (interval)", "n", "Evidence")
    caption = (
        "What each experiment found. A loss is *flat* if its interval lies within the margin. Each section says the kind of "
        "its intervals."
    )
    return Table("findings", columns, "lllrl", rows, caption, widths=WIDTHS, long=True)


def _reproduces(today: dict) -> str:
    words = REPRODUCED.get(today["answer"], "is too short to tell")
    return f"{words} it ({today['n']} blocks, judged by itself: {today['judged_as']})"


def _value(finding: dict) -> str:
    estimate, interval = finding["estimate"], finding["interval"]
    if estimate is None:
        return UNKNOWN
    if finding["quantity"] == "nodes":
        return counted(round(estimate), "node")
    if finding["quantity"] in FRACTIONS:
        value, ends = percent(estimate), percent_range(interval)
    elif finding["unit"] == "B":
        value, ends = byte_size(estimate), byte_range(interval)
    else:
        unit = "" if finding["unit"] == "1" else f" {finding['unit']}"
        value, ends = number(estimate) + unit, " to ".join(map(number, interval or ()))
    return f"{value} ({ends})" if interval else value
