"""A user's own numbers: columns of a CSV file or of a JUBE table; unusable columns are refused with the reason."""

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from runners.record import FalloffError

# The line below the headings of JUBE's pretty style, which is Markdown's too.
_RULE = re.compile(r"[\s:|+-]*--[\s:|+-]*")


def read(file: Path, *columns: str, whole: bool = False) -> pd.DataFrame:
    """The columns of a CSV file (with commas or semicolons) or of a table that `jube result` printed, with `whole` also all
    others; raises FalloffError if the file cannot be read or lacks a column."""
    try:
        # A row's number stays that of its line, less the heading's.
        table = _table(file).dropna(how="all")
    except (OSError, ValueError) as error:
        raise FalloffError(f"cannot read {file} as CSV: {str(error).strip()}") from None
    for column in columns:
        if column not in table:
            there = f"it has: {', '.join(map(str, table.columns))}"
            remedy = "" if "time" in columns else ". Name columns by --x, --y and --block"
            raise FalloffError(f"{file} has no column {column!r}; {there}{remedy}")
    return table if whole else table[list(columns)]


def _table(file: Path) -> pd.DataFrame:
    """Raises OSError or ValueError if the file cannot be read."""
    lines = file.read_text(encoding="utf-8").splitlines()
    for number, (heading, rule) in enumerate(pairwise(lines[:5])):
        if "|" in heading and "|" in rule and _RULE.fullmatch(rule):
            skipped = [*range(number), number + 1]
            table = pd.read_csv(
                file,
                sep=r"\s*\|\s*",
                engine="python",
                skiprows=skipped,
                skip_blank_lines=False,
                index_col=False,
            )
            table.index += len(skipped)
            kept = [name for name in table if name and not str(name).startswith("Unnamed:")]
            return table[kept].rename(columns=str.strip)
    has_semicolons = ";" in lines[0] and "," not in lines[0] if lines else False
    return pd.read_csv(file, sep=";" if has_semicolons else ",", skip_blank_lines=False)


def require_numbers(table: pd.DataFrame, *columns: str) -> None:
    """Raises FalloffError, with the line and its text, if a column contains anything but finite
    numbers."""
    for column in columns:
        numbers = pd.to_numeric(table[column], errors="coerce")
        wrong = ~np.isfinite(numbers.to_numpy(float)) & table[column].notna().to_numpy()
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            text = str(table[column].iloc[row])[:40]
            raise FalloffError(
                f"column {column!r} holds text where numbers belong: {text!r} in line {table.index[row] + 2}"
            )


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
