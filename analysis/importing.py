"""Import existing results: the outputs of a tool become the folder of a campaign of measured
evidence."""

import csv
import hashlib
import json
import math
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import xarray as xr

from analysis import paths
from analysis.schema import WORDS, is_shown, schema
from analysis.schema import settings as known_settings
from analysis.store import IMPORTED
from analysis.wording import HARD_SPACE, counted
from runners import manifest, outputs
from runners.journal import Folder
from runners.plan import Plan, Stopping
from runners.record import (
    Execution,
    FalloffError,
    Tool,
    Transcript,
    Trial,
    Unreadable,
    faulty,
)
from runners.tools import tool_named

_NO_READINGS = ("start", "wall_time")  # describe the trial, not the measurement
_COUNTS = ("nodes", "ranks_per_node")
_LONGEST_NAME = 60
_LEAST_RPEAK = 1e9  # flop/s of a node: a lower value was meant as Gflop/s

Settings = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """A file with its name relative to the common folder of all files, its text, and notes on its
    results."""

    file: Path
    name: str
    text: str
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The SHA-256 of its text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class Import:
    """A plan with one trial for each source, and a line for each file that was left out, with the
    reason."""

    plan: Plan
    sources: tuple[Source, ...]
    left_out: tuple[str, ...]

    @property
    def notes(self) -> list[str]:
        """What was not understood in the files that were kept."""
        return [f"{source.file}: {note}" for source in self.sources for note in source.notes]


def read(
    tool: str,
    files: Sequence[Path],
    common: Settings,
    table: Sequence[tuple[str, Settings]] = (),
) -> Import:
    """Read outputs of a tool, from files or folders, with common settings and settings per file.

    A file that is no output of the tool is left out. An output without a result is kept. Raises
    FalloffError if no file remains, or if a row of the table matches no file.
    """
    sources, left_out = _sources(tool_named(tool), _files(files))
    if not sources:
        why = "; ".join(left_out[:3] or ["no file"])
        raise FalloffError(f"there is no output of {tool} to import: {why}")
    names = [PurePath(source.name) for source in sources]
    strangers = [row for row, _ in table if not any(name.match(row) for name in names)]
    if strangers:
        raise FalloffError(f"--map: {', '.join(strangers)} names none of the imported files")
    points = [{**of_file(source.name, common, table), "file": source.name} for source in sources]
    return Import(_plan(tool, points, sources), tuple(sources), tuple(left_out))


def keep(found: Import, out: Path) -> Path:
    """Write an import's campaign folder and return it; the same import again changes nothing."""
    folder = Folder(out / f"{found.plan.name}-{IMPORTED}-{found.plan.digest[:8]}")
    if folder.stopped_by() == "import":
        return folder.path
    folder.create_or_check(found.plan)
    listed = [{"file": _text(source.file), "sha256": source.digest} for source in found.sources]
    # Where and when they ran is unknown; `host` would be the machine that ran them.
    folder.write_provenance({"host": {}, "imported": listed, "left_out": found.left_out})
    folder.note("session", digest=found.plan.digest, testbed=IMPORTED)
    for trial, source in zip(found.plan.trials(), found.sources):
        # The command, its time and its exit code are unknown.
        execution = Execution(trial.runner, (), source.text, "", None, math.nan, math.nan)
        folder.save(Transcript(trial, IMPORTED, "measured", (execution,), {}, {}))
    folder.note("ended", by="import")
    manifest.write(folder.path)
    return folder.path


def summary(dataset: xr.Dataset) -> str:
    """The number of results and files, then the readings of each result, or why it has none."""
    files = dataset.file.values.tolist()
    results, of = counted(len(files), "result"), counted(len(set(files)), "file")
    lines = [f"{results} in {of}: measured evidence, imported"]
    for trial, file in enumerate(files):
        row = dataset.isel(trial=trial)
        readings = ", ".join(filter(None, (_reading(row[name]) for name in schema()["variables"])))
        lines.append(f"  {file}: {readings or row.reason.item()}")
    return "\n".join(lines).replace(HARD_SPACE, " ")


def _reading(values: xr.DataArray) -> str:
    """The name and value of a reading, for a list its two ends; empty if it has none."""
    if values.dtype.kind != "f" or values.name in _NO_READINGS or not values.notnull().any():
        return ""
    ends = np.atleast_1d(values)[np.isfinite(np.atleast_1d(values))][[0, -1]]
    text = " ... ".join(f"{value:.9g}" for value in dict.fromkeys(ends.tolist()))
    return f"{values.name} {text}" + (f" {values.units}" if values.units != "1" else "")


def settings_in_words(words: Iterable[str]) -> Settings:
    """The settings in words such as `nodes=4`; raises FalloffError naming every word that is not a
    setting."""
    pairs = [word.partition("=") for word in words]
    names = [name.strip() for name, _, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FalloffError(
            f"--set: {', '.join(twice)} is set twice; what differs between files is for --map"
        )
    return _checked(dict(zip(names, (text for _, _, text in pairs))), "--set")


def settings_in_table(file: Path) -> list[tuple[str, Settings]]:
    """The rows of a CSV file with a column `file` (a name or a pattern) and one column per setting.

    An empty cell leaves a setting unknown. Raises FalloffError if the file cannot be read, or
    naming every faulty row.
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
    """The settings of one file: the common ones, then those of each row that matches it. Later
    values win."""
    settings = dict(common)
    for pattern, row in table:
        if PurePath(name).match(pattern):
            settings.update(row)
    return settings


def _checked(texts: Mapping[str, str], where: str) -> Settings:
    """The settings with values of the schema's types; raises FalloffError naming every fault."""
    known = known_settings()
    values: Settings = {}
    faults = []
    for name, text in texts.items():
        if name not in known:
            faults.append(f"{name!r} is unknown; there are {', '.join(known)}")
            continue
        values[name] = text.strip() if known[name]["type"] == "text" else _number(text)
        if fault := _fault(name, values[name]):
            faults.append(f"{name} = {text.strip()!r} {fault}")
    if faults:
        raise faulty(where, sorted(faults))
    return values


def _fault(name: str, value: Any) -> str:
    """Why a value is not valid for a setting, or empty."""
    if value is None:
        return "is no number"
    if isinstance(value, str) and not (value.isprintable() and 0 < len(value) <= _LONGEST_NAME):
        return f"is no name, of 1 to {_LONGEST_NAME} characters that can be printed"
    if isinstance(value, str) and is_shown(name) and not WORDS.fullmatch(value):
        return "is no word of letters, digits, blanks and _%.,=+-"
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


def _files(given: Sequence[Path]) -> list[Path]:
    """The files, and all files in the folders, in order and without hidden ones; raises
    FalloffError if one is missing."""
    found: list[Path] = []
    for path in given:
        if not path.exists():
            raise FalloffError(f"there is no file or folder {path}")
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in inside:
            hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
            found += [file] if file.is_file() and not hidden else []
    return list(dict.fromkeys(found))


def _sources(runner: Tool, files: Sequence[Path]) -> tuple[list[Source], list[str]]:
    """The tool's outputs among the files, and why the others are left out."""
    shared = os.path.commonpath([file.absolute().parent for file in files]) if files else ""
    sources, left_out = [], []
    for file in files:
        try:
            text = outputs.read(file)
            notes = _notes(runner, text)
        except Unreadable as refusal:
            left_out.append(f"{file}: {refusal.told()}")
        except FalloffError as reason:
            left_out.append(f"{file}: {reason}")
        else:
            name = _text(file.absolute().relative_to(shared))
            sources.append(Source(file, name, text, notes))
    return sources, left_out


def _text(path: Path) -> str:
    """A path as text; undecodable bytes of a name become U+FFFD."""
    return os.fsencode(path.as_posix()).decode(errors="replace")


def _notes(runner: Tool, text: str) -> tuple[str, ...]:
    """The notes on a file's results, each once; raises Unreadable when it is no output of the tool."""
    try:
        return tuple(dict.fromkeys(one.note for one in runner.results(text) if one.note))
    except Unreadable as reason:
        if outputs.is_output_of(runner.name, text):
            return ()
        raise outputs.refusal(runner.name, text, reason) from None


def _plan(tool: str, points: Sequence[Settings], sources: Sequence[Source]) -> Plan:
    trials = tuple(
        Trial(f"b001-{order:03d}-{tool}", "point", tool, 1, order, point)
        for order, point in enumerate(points, 1)
    )
    described = tomllib.loads(paths.INTERCONNECTS.read_text(encoding="utf-8"))
    networks = {}
    for name in dict.fromkeys(point["interconnect"] for point in points if "interconnect" in point):
        network = described.get(name, {})  # an undescribed network has only its name
        networks[name] = {"name": name, "short": network.get("name", name), **network}
    identity = [tool, networks, points, [source.digest for source in sources]]
    return Plan(
        name=tool,
        title=f"Outputs of {tool}, run elsewhere and imported",
        digest=hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest(),
        testbed={"name": IMPORTED, "kind": IMPORTED, "nodes": 0, "rpeak": {}},
        interconnects=networks,
        design={"factors": {}},  # as far as is known, nothing was fixed before the runs
        stopping=Stopping(blocks=1),
        preamble=(),
        blocks=(trials,),
    )
