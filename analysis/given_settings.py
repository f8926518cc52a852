"""What a user says of files that do not say it themselves: `--set name=value`, and a table that maps files."""

import csv
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any

from analysis.schema import schema
from runners.record import FalloffError

# What an import itself decides.
_TAKEN = ("trial_id", "role", "runner", "block", "order", "evidence", "testbed", "file", "version")
_COUNTS = ("nodes", "ranks_per_node")
# Names get into figures, to which $ and a first _ mean something.
_PLAIN = re.compile(r"[^\W_][\w .,:+/()-]{0,60}")
_LEAST_RPEAK = 1e9  # flop/s of a node: below it somebody meant Gflop/s

Settings = dict[str, Any]


def from_words(words: Iterable[str]) -> Settings:
    """The settings in words such as `nodes=4`; raises FalloffError naming every word that is none."""
    pairs = [word.partition("=") for word in words]
    twice = {name for name, _, _ in pairs if [other for other, _, _ in pairs].count(name) > 1}
    if twice:
        raise FalloffError(f"--set: {', '.join(sorted(twice))} is set twice; what differs between files is for --map")
    return _checked({name.strip(): text for name, _, text in pairs}, "--set")


def from_table(file: Path) -> list[tuple[str, Settings]]:
    """The rows of a CSV file with a column `file` (a name or a pattern) and one for each setting.

    An empty cell leaves a setting unknown. Raises FalloffError when it cannot be read, or names every faulty row.
    """
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream, skipinitialspace=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FalloffError(f"cannot read {file} as CSV: {error}") from None
    if not rows or "file" not in rows[0]:
        raise FalloffError(f"{file} needs a first line with the columns' names, one of them 'file', and rows")
    found = []
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values() or not PurePath(row["file"].strip()).name:
            raise FalloffError(f"{file}, line {number}: it has not one cell for each column, or names no file")
        cells = {name.strip(): text for name, text in row.items() if name != "file" and text.strip()}
        found.append((row["file"].strip(), _checked(cells, f"{file}, line {number}")))
    return found


def of_file(name: str, common: Mapping, table: Iterable[tuple[str, Mapping]]) -> Settings:
    """The settings of one file: the common ones, then those of each row that names it; a later one wins."""
    settings = dict(common)
    for pattern, row in table:
        if PurePath(name).match(pattern):
            settings.update(row)
    return settings


def unused(names: Iterable[str], table: Iterable[tuple[str, Mapping]]) -> list[str]:
    """The rows' names and patterns that are no file's."""
    files = [PurePath(name) for name in names]
    return [pattern for pattern, _ in table if not any(file.match(pattern) for file in files)]


def _checked(texts: Mapping[str, str], where: str) -> Settings:
    """The settings with values of the schema's types; raises FalloffError naming every fault."""
    types = {
        name: it["type"]
        for name, it in schema()["coordinates"].items()
        if it["dims"] == ["trial"] and name not in _TAKEN
    }
    settings: Settings = {}
    faults = [f"{name!r} is unknown" for name in texts if name not in types]
    for name in (name for name in texts if name in types):
        text = texts[name].strip()
        value = text if types[name] == "text" else _number(text)
        fault = _fault(name, value)
        faults += [f"{name} = {text!r} {fault}"] if fault else []
        settings[name] = value
    if faults:
        known = f"; there are {', '.join(types)}" if len(settings) < len(texts) else ""
        raise FalloffError(f"{where}: {'; '.join(sorted(faults))}{known}")
    return settings


def _fault(name: str, value: Any) -> str:
    """Why a value cannot be a setting's, or empty."""
    if value is None:
        return "is no number"
    if isinstance(value, str) and not _PLAIN.fullmatch(value):
        return "is no plain name"
    if name in _COUNTS and (value != int(value) or value < 1):
        return "is no whole number from 1"
    if name == "rpeak" and value < _LEAST_RPEAK:
        return "is too small: it is one node's, in flop/s, such as 3.07e12"
    return ""


def _number(text: str) -> float | int | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number
