"""What a user says of files that do not say it themselves: `--set name=value`, and a table that maps files."""

import csv
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any

from analysis.schema import schema
from runners.record import FalloffError, faulty

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
    names = [name.strip() for name, _, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FalloffError(
            f"--set: {', '.join(twice)} is set twice; what differs between files is for --map"
        )
    return _checked(dict(zip(names, (text for _, _, text in pairs))), "--set")


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
        raise FalloffError(
            f"{file} needs a first line with the columns' names, one of them 'file', and rows"
        )
    table = []
    for number, row in enumerate(rows, start=2):
        where = f"{file}, line {number}"
        if None in row or None in row.values() or not PurePath(row["file"].strip()).name:
            raise FalloffError(f"{where}: it has not one cell for each column, or names no file")
        pattern = row.pop("file").strip()
        cells = {name.strip(): text for name, text in row.items() if text.strip()}
        table.append((pattern, _checked(cells, where)))
    return table


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
    coordinates = {
        name: each for name, each in schema()["coordinates"].items() if name not in _TAKEN
    }
    types = {name: each["type"] for name, each in coordinates.items() if each["dims"] == ["trial"]}
    settings: Settings = {}
    faults = []
    for name, text in texts.items():
        if name not in types:
            faults.append(f"{name!r} is unknown; there are {', '.join(types)}")
            continue
        settings[name] = text.strip() if types[name] == "text" else _number(text)
        fault = _fault(name, settings[name])
        faults += [f"{name} = {text.strip()!r} {fault}"] if fault else []
    if faults:
        raise faulty(where, sorted(faults))
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
