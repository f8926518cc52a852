"""A user's own numbers: columns of a CSV file or of a JUBE table; unusable columns are refused with
the reason.
"""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd

from runners import outputs
from runners.records.record import FalloffError

# The line below the headings of JUBE's pretty style, which is Markdown's too.
_RULE = re.compile(r"[\s:|+-]*--[\s:|+-]*")
# Three digits behind a comma may be thousands.
_DECIMAL_COMMA = re.compile(r"[-+]?(?:\d+,(?:\d\d?|\d{4,})|0,\d+)")
_FINITE = r"[-+]?(?:\d{1,300}\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?"
_DECIMAL_POINT = re.compile(r"[-+]?\d*\.\d+")


def read(file: Path, *columns: str, whole: bool = False) -> pd.DataFrame:
    """The columns of a CSV file (with commas, semicolons or tabs) or of a table that `jube result`
    printed, with `whole` also all others; raises FalloffError if the file cannot be read, lacks a
    column, or a column is named twice.

    A row's number is that of its line, less 2.
    """
    if len(set(columns)) < len(columns):
        raise FalloffError(f"--x, --y and --block name different columns, not {', '.join(columns)}")
    try:
        table = _table(file).dropna(how="all")
    except ValueError as error:
        raise FalloffError(f"cannot read {file} as CSV: {str(error).strip()}") from None
    for column in columns:
        if column not in table:
            there = f"it has: {', '.join(map(str, table.columns))}"
            remedy = "" if "time" in columns else ". Name columns by --x, --y and --block"
            raise FalloffError(f"{file} has no column {column!r}; {there}{remedy}")
    return table if whole else table[list(columns)]


def rows(file: Path) -> tuple[list[str], dict[int, list[str]]]:
    """The headings of a table, and the cells of each line by its number, one for each heading.

    Blank lines and comments are left out; a comment begins with # and is no row. Raises
    FalloffError if the file cannot be read or a line has more or fewer cells; empty ones at its end
    do not count.
    """
    text = outputs.read(file)
    if re.search("[\0\ufffd]", text):
        raise FalloffError(f"cannot read {file} as CSV: save it as text in UTF-8")
    lines = text.splitlines()
    first = next((line for line in lines if line.strip() and line[0] != "#"), "")
    separator = next((mark for mark in ";\t" if mark in first and "," not in first), ",")
    if any("|" in line and _RULE.fullmatch(line) for line in lines[:5]):  # of JUBE, or Markdown
        separator = "|"
        lines = [
            "" if "|" not in line or _RULE.fullmatch(line) else line.strip().strip("|")
            for line in lines
        ]
    headings, cells_by_line = list[str](), dict[int, list[str]]()
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            while cells and not cells[-1] and len(cells) > len(headings):
                cells.pop()
            is_row = len(cells) == len(headings) and any(cells[1:])
            if not any(cells) or cells[0].startswith("#") and not is_row:
                continue
            if headings and len(cells) != len(headings):
                raise FalloffError(
                    f"{file}, line {reader.line_num}: it has not one cell for each heading, but "
                    f"{len(cells)} for {len(headings)}; write 22455 or 22.455, not 22,455"
                )
            if headings:
                cells_by_line[reader.line_num] = cells
            else:
                headings = cells
    except csv.Error as error:
        raise FalloffError(f"cannot read {file} as CSV: {error}") from None
    return headings, cells_by_line


def _table(file: Path) -> pd.DataFrame:
    """Raises FalloffError or ValueError if the file cannot be read."""
    headings, lines = rows(file)
    cells = [cell for row in lines.values() for cell in row]
    has_commas = any(map(_DECIMAL_COMMA.fullmatch, cells))
    stream = io.StringIO()
    csv.writer(stream).writerows([headings, *lines.values()])
    stream.seek(0)
    decimal = "," if has_commas and not any(map(_DECIMAL_POINT.fullmatch, cells)) else "."
    table = pd.read_csv(stream, decimal=decimal, skip_blank_lines=False)
    table.index = pd.Index([number - 2 for number in lines])
    return table


def require_numbers(table: pd.DataFrame, *columns: str) -> None:
    """Raises FalloffError, with the line and its text, if a column contains anything but finite
    numbers."""
    for column in columns:
        texts = table[column].dropna().astype(str)
        for row, text in texts[~texts.str.fullmatch(_FINITE)].items():
            remedy = "; write numbers as 22455 or 22.455" if "," in text else ""
            what = f"column {column!r} holds text where numbers belong: {text[:40]!r}"
            raise FalloffError(f"{what} in line {row + 2}{remedy}")


def refuse(table: pd.DataFrame, is_wrong: pd.Series, reason: str) -> None:
    """Raises FalloffError, with the reason and the first wrong line, if any row is wrong."""
    if is_wrong.any():
        raise FalloffError(f"{reason} in line {table.index[is_wrong][0] + 2}")


def blocks(table: pd.DataFrame, x: str, y: str, block: str) -> tuple[np.ndarray, np.ndarray]:
    """x, shape (points,), ascending, and y over (block, points); NaN where a block lacks a point.

    Raises FalloffError if a block has two values at one x, or a column is not numeric.
    """
    require_numbers(table, x, y)
    refuse_twice(table, x, block)
    wide = table.pivot(index=block, columns=x, values=y)
    return wide.columns.to_numpy(float), wide.to_numpy(float)


def refuse_twice(table: pd.DataFrame, x: str, block: str, *further: str) -> None:
    """Raises FalloffError when a block has two rows at one x and the same `further` columns."""
    twice = table[table.duplicated([block, x, *further])]
    if len(twice):
        at = f"block {twice[block].iloc[0]} has two rows at {x} = {twice[x].iloc[0]}"
        raise FalloffError(f"{at}; a block has one value at each {x}")
