"""The report's first page: the answer to its question and a table of what every experiment found."""

import re
from collections.abc import Sequence
from pathlib import Path

import xarray as xr

from analysis import document, reproducing
from analysis.exhibit import Answer, Table
from analysis.experiments import scale_model
from analysis.findings import FAILED, evidence_of
from analysis.quoting import quoted
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

WIDTHS = (3, 60, 16, 29, 11, 10)  # of the columns, in characters
SUMMARY = "90_summary"  # the notebook that shows this
FRACTIONS = ("fall", "gain", "loss", "error", "share", "coefficient of variation")  # in percent
REPRODUCED = {"reproduced": "reproduces", "not reproduced": "does not reproduce"}


def gathered(folder: Path) -> list[dict]:
    """Every finding of the executed notebooks in a folder, as `summary.json` has it and with the number of its `section`.

    Raises FalloffError where no notebook was executed there.
    """
    notebooks = sorted(book for book in folder.glob("*/*.ipynb") if book.stem != SUMMARY)
    if not notebooks:
        raise FalloffError(
            f"{folder} holds no executed notebook to gather from: `make report` makes them"
        )
    return [
        finding | {"section": number}
        for number, book in enumerate(notebooks, 1)
        for finding in document.read(book, whole=True).findings
    ]


def limits(dataset: xr.Dataset) -> Answer:
    """What limits emulated answers most. Empty for others."""
    if evidence_of(dataset) != "emulated":
        return Answer("")
    shares = scale_model.shares(dataset)
    kept = "" if shares.empty else f" {scale_model.kept(shares)}"
    return Answer(
        f"**What limits this**: all emulated nodes share one machine, and time is slowed so much that it does not count.{kept} "
        "Only links are compared, where Fortinet's faster network also used RDMA."
    )


def today(
    found: Sequence[dict], reproductions: Sequence[dict] = (), is_stored: bool = True
) -> Answer:
    """Whether today's runs reproduce the reference's primary findings; what `falloff reproduce` said here of all comes
    first, from its records. `is_stored` says that the runs are those that are shipped."""
    today = [finding for finding in found if finding["today"]]
    judged = [one for one in today if one["primary"] and one["today"]["answer"] != FAILED]
    runs = {one["today"]["digest"]: one["today"] for one in today if one["today"]["failed"]}
    lines = [_failed(run) for run in runs.values()] + [
        f"- Today's run {_reproduces(finding['today'])}: {finding['statement']}."
        for finding in judged
    ]
    told = [reproducing.on_page(reproductions), "\n".join(lines)]
    nothing = (
        "This copy shows the runs that are shipped with Falloff; nothing was run on your machine."
    )
    return Answer("\n\n".join(filter(None, told)) or nothing * is_stored)


def table(found: Sequence[dict]) -> Table:
    """The primary findings of each experiment, in the order of the sections."""
    rows = [
        (
            str(finding["section"]),
            finding["statement"],
            f"**{finding['answer']}**" if finding["answer"] else "",
            _value(finding),
            counted(finding["n"], finding["n_of"].rpartition(" ")[2]),
            finding["evidence"],
        )
        for finding in found
        if finding["primary"]
    ]
    columns = ("§", "Statement", "Answer", "Estimate (interval)", "n", "Evidence")
    caption = (
        "What each experiment found; § is its section. A loss *falls off* if its whole interval lies beyond the margin, and is *flat* if all of it lies "
        "within. *The same* and *within*: the difference lies within a margin. *Open* and *undecided*: the interval decides nothing. "
        "*Supported* and *contradicted*: a source's statement. An interval's level stands before it."
    )
    return Table("findings", columns, "rlllrl", rows, caption, widths=WIDTHS, long=True)


def _failed(today: dict) -> str:
    """How many trials of a run of today failed, and why."""
    of = f"of campaign {quoted(today['campaign'])}"
    head = f"**Today's run {of} failed**:" if today["answer"] == FAILED else f"Of today's run {of}"
    return f"- {head} {quoted(today['failed'])}"


def _reproduces(today: dict) -> str:
    words = REPRODUCED.get(today["answer"], "is too short to tell")
    return f"{words} it ({counted(today['n'], 'block')}, judged by itself: {today['judged_as']})"


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
    level = "".join(f"{found}: " for found in re.findall(r"\d+ %", finding["interval_kind"])[:1])
    return f"{value} ({level}{ends})" if interval else value
