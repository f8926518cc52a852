"""Import existing results: the outputs of a tool become the folder of a campaign of measured
evidence."""

import hashlib
import json
import math
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from glob import glob
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from analysis.dataset import csv_tables, store
from analysis.dataset.schema import WORDS, is_shown, schema
from analysis.dataset.schema import settings as known_settings
from analysis.dataset.store import BLOCKS, IMPORTED, UNORDERED
from analysis.imports.file_facts import Facts, OutputFile, blocks_by_date, described, facts
from analysis.wording import HARD_SPACE, counted
from runners import outputs
from runners.records import manifest
from runners.records.journal import Folder
from runners.records.plan import Plan, Stopping
from runners.records.record import (
    Execution,
    FalloffError,
    Tool,
    Transcript,
    Trial,
    Unreadable,
    faulty,
)
from runners.tools import all_tools, tool_named

_NO_READINGS = ("start", "wall_time")  # describe the trial, not the measurement
_COUNTS = ("nodes", "ranks_per_node")
_LONGEST_NAME = 60
COLUMNS = ("file", "network", "nodes", "block", "ranks_per_node", "date")  # of a map
_ALIASES = {"network": "interconnect", "ranks a node": "ranks_per_node"}
_OF_THE_RUN = ("block", "date")  # columns of a map that are no settings of the tool
_OVER_NODES = ("hpl", "hpcc")  # tools that run on many nodes, not between two
_UNKNOWN = "no tool is known to have written it"
_LEAST_RPEAK = 1e9  # flop/s of a node: a lower value was meant as Gflop/s

Settings = dict[str, Any]


@dataclass(frozen=True)
class ImportedFile:
    """A file with its name relative to the common folder of all files, its text, its results' own
    settings, what path and header say of it, and notes on its results."""

    file: Path
    name: str
    text: str
    results: tuple[Settings, ...] = ()
    facts: Facts = Facts()
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The SHA-256 of its text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class Import:
    """A plan with one trial for each source, and a line for each file that was left out, with the
    reason.

    `repeats` says what runs of one point are: `blocks` (of all points, in one order) or
    `unordered`. `blocks_from` is the origin of the blocks: `map`, `paths` or `dates`.
    """

    plan: Plan
    sources: tuple[ImportedFile, ...]
    left_out: tuple[str, ...]
    repeats: str = UNORDERED
    blocks_from: str = ""

    @property
    def notes(self) -> list[str]:
        """What could not be read in the imported files."""
        return [f"{source.file}: {note}" for source in self.sources for note in source.notes]


def read(
    tool: str,
    files: Sequence[Path],
    common: Settings,
    table: Sequence[tuple[str, Settings]] = (),
    blocks_in_paths: bool = False,
) -> Import:
    """Read outputs of a tool, from files or folders, with common settings and settings per file.

    What paths and headers say of a file holds unless `common` or the table says otherwise. Runs of
    one point are blocks if the table says so, if the dates do, or if `blocks_in_paths`: the numbers
    of runs in the paths. A file that is no output of the tool is left out. An output without a
    result is kept. Raises FalloffError if no file remains, if a row of the table matches no file,
    or if only some runs have a block.
    """
    sources, left_out = _sources(tool_named(tool), expanded(files))
    if not sources:
        why = "; ".join(left_out[:3] or ["no file"])
        raise FalloffError(f"there is no output of {tool} to import: {why}")
    strangers = [
        row for row, _ in table if not any(matches(source.name, row) for source in sources)
    ]
    if strangers:
        raise FalloffError(f"--map: {', '.join(strangers)} names none of the imported files")
    first: dict[str, ImportedFile] = {}
    for source in sources:
        same = first.setdefault(source.digest if source.results else source.name, source)
        if same is not source:
            left_out.append(f"{source.file}: a copy of {same.file}, which counts once")
    sources = [*first.values()]
    given = [of_file(source.name, common, table) for source in sources]
    points = [
        {**_seen(source), **{k: v for k, v in settings.items() if k not in _OF_THE_RUN}}
        for source, settings in zip(sources, given)
    ]
    moments = [
        settings.get("date", source.facts.moment) for source, settings in zip(sources, given)
    ]
    sources = [replace(s, facts=replace(s.facts, moment=m)) for s, m in zip(sources, moments)]
    blocks, origin = _blocks(sources, given, points, blocks_in_paths)
    points = [{**point, "file": source.name} for point, source in zip(points, sources)]
    repeats = BLOCKS if origin else UNORDERED
    plan = _plan(tool, points, sources, blocks, repeats)
    return Import(plan, tuple(sources), tuple(left_out), repeats, origin)


def matches(name: str, pattern: str) -> bool:
    """Whether a pattern matches a file: its path or the end of it (* matches any text, also across
    folders), or a folder above it."""
    below = pattern.rstrip("/")
    forms = (below, f"{below}/*", f"*/{below}", f"*/{below}/*")
    return name == pattern or any(fnmatchcase(name, form) for form in forms)


def seen(imported: Import) -> pd.DataFrame:
    """The settings of each file: a row with the columns of a map (COLUMNS), empty where unknown."""
    rows, trials = [], _trials(imported)
    for source in imported.sources:
        trial = trials[source.name]
        known = {"date": source.facts.moment, **trial.point}
        if imported.repeats == BLOCKS:
            known["block"] = trial.block
        rows.append([known.get(_ALIASES.get(column, column), "") for column in COLUMNS])
    return pd.DataFrame(rows, columns=list(COLUMNS))


def write_map(imported: Import, file: Path) -> None:
    """Write the settings of each file as a CSV that `settings_in_table` reads.

    Raises FalloffError if the file exists.
    """
    if file.exists():
        raise FalloffError(f"{file} is there already: `--map {file}` reads it; else name another")
    seen(imported).to_csv(file, index=False)


def structure(imported: Import) -> str:
    """A short table of the files: networks by node counts, with the number of files, and how many
    are unknown.
    """
    table, tables = seen(imported), imported.plan.interconnects
    networks = {name: form["short"] for name, form in tables.items()}
    rates = {form["short"]: form.get("rate_bit_s", 0) for form in tables.values()}
    table["network"] = table.network.map(networks).fillna("not known")
    is_of_nodes = imported.plan.name in _OVER_NODES or (table.nodes != "").any()
    table["nodes"] = [
        f"{n:g} nodes" if n != "" else "nodes not known" if is_of_nodes else "" for n in table.nodes
    ]
    counts = table.groupby(["network", "nodes"], sort=False).size().unstack(fill_value=0)
    by_count = sorted(counts.columns, key=lambda name: int(re.sub(r"\D", "", name) or 10**6))
    by_rate = sorted(counts.index, key=lambda name: rates.get(name, math.inf))
    counts = counts.loc[by_rate, by_count]
    counts.columns.name, counts.index.name = None, "files"
    lines = [counts.to_string()]
    if imported.blocks_from:
        by = {"map": "the map", "paths": "the paths' numbers", "dates": "the order of dates"}
        number = imported.plan.stopping.blocks
        lines.append(f"blocks: {number}, by {by[imported.blocks_from]}")
    elif counts.to_numpy().max() > 1 and _has_repeats(imported):
        lines.append(
            "blocks: none known; runs of one point count as repeats without order "
            "(--blocks if runs of one number were made together, or a column of --map)"
        )
    elif counts.to_numpy().max() > 1:
        lines.append("repeats: none; no two results have the same settings")
    return "\n".join(lines)


def _has_repeats(imported: Import) -> bool:
    """Whether a result has the same settings as another; unknown ones may be the same."""
    trials, no_setting = _trials(imported), {"file": "", "run": 0, "version": ""}
    ran = [
        str(sorted({**trials[source.name].point, **result, **no_setting}.items()))
        for source in imported.sources
        for result in source.results or ({},)
    ]
    return len({*ran}) < len(ran)


def _trials(imported: Import) -> dict[str, Trial]:
    """The trial of each file, by the file's name."""
    return {trial.point["file"]: trial for trial in imported.plan.trials()}


def _seen(source: ImportedFile) -> Settings:
    """The settings that a file's path and header state."""
    facts = source.facts
    settings = {
        "interconnect": facts.network,
        "nodes": facts.nodes,
        "ranks_per_node": facts.ranks_per_node,
        "path": facts.pair,
        "processes": facts.processes,
    }
    return {name: value for name, value in settings.items() if value}


def _blocks(
    sources: Sequence[ImportedFile],
    given: Sequence[Settings],
    points: Sequence[Settings],
    in_paths: bool,
) -> tuple[list[int], str]:
    """The block of each file and its origin, `map`, `paths` or `dates`; all 1 and empty if no
    origin has blocks.
    """
    blocks: list[Any] = [settings.get("block") for settings in given]
    if any(blocks):
        if not all(blocks):
            first = sources[blocks.index(None)].name
            raise FalloffError(f"--map: {blocks.count(None)} files have no block, such as {first}")
        return blocks, "map"
    blocks = [source.facts.block or in_paths and source.facts.repeat for source in sources]
    if all(source.facts.block for source in sources) or in_paths:
        for source, number in zip(sources, blocks):
            if not number:
                raise FalloffError(f"--blocks: no number of a run is in the path of {source.name}")
        return blocks, "paths"
    settings = [
        (*sorted(point.items()), *(str(sorted(result.items())) for result in source.results[:1]))
        for point, source in zip(points, sources)
    ]
    by_date = blocks_by_date(settings, [source.facts.moment for source in sources])
    return (by_date, "dates") if by_date else ([1] * len(sources), "")


def by_tool(tool: str, files: Sequence[Path]) -> list[tuple[str, list[Path]]]:
    """The files of each tool: all of the named one, or each of the one that wrote it, if `tool` is
    the first file's name.

    Raises FalloffError if there is no file, or if no tool is known to have written any of them.
    """
    is_tool = any(tool in (known.name, *known.aliases) for known in all_tools())
    is_path = Path(tool).exists() or any(letter in tool for letter in "./*?[")
    if is_tool or not is_path:
        if not files:
            tool_named(tool)  # raises if it is misspelt
            raise FalloffError(f"which files of {tool}? `falloff import {tool} FILE` reads them")
        return [(tool, list(files))]
    by_name: dict[str, list[Path]] = {}
    strange = []
    for file, _ in expanded([Path(tool), *files]):
        text = outputs.read(file)
        if name := outputs.tool_of(text):
            by_name.setdefault(name, []).append(file)
        else:
            strange.append(f"{file}: {outputs.describe(text, '') or _UNKNOWN}")
    if not by_name:
        some = "; ".join(strange[:3]) or f"there is no file in {tool}"
        names = ", ".join(known.name for known in all_tools())
        raise FalloffError(some + (f". Name the tool: {names}" if _UNKNOWN in some else ""))
    if len(by_name) == 1:  # its paths are read from the folders that were given
        return [(name, [Path(tool), *files]) for name in by_name]
    for line in strange:
        print(f"left out: {line}", file=sys.stderr)
    return list(by_name.items())


def dataset_of(tool: str, files: Sequence[Path]) -> xr.Dataset:
    """The dataset of a tool's outputs, without keeping it; raises FalloffError as `read` does."""
    with tempfile.TemporaryDirectory() as folder:
        return store.assemble(keep(read(tool, files, {}), Path(folder)))


def keep(imported: Import, out: Path) -> Path:
    """Write an import's campaign folder and return it; the same import again changes nothing.

    An earlier import of the same files with other settings is moved to the folder `.replaced`, so
    that it is not counted twice.
    """
    folder = Folder(out / f"{imported.plan.name}-{IMPORTED}-{imported.plan.digest[:8]}")
    if folder.stopped_by() == "import":
        return folder.path
    listed = [
        {"file": _text(source.file), "sha256": source.digest, "moment": source.facts.moment}
        for source in imported.sources
    ]
    _move_aside(out, imported, {file["sha256"] for file in listed}, folder.path)
    folder.create_or_check(imported.plan)
    # Where they ran is unknown; `host` would be the machine that ran them.
    folder.write_provenance({"host": {}, "imported": listed, "left_out": imported.left_out})
    folder.note("session", digest=imported.plan.digest, testbed=IMPORTED)
    trials = _trials(imported)
    for source in imported.sources:
        trial = trials[source.name]
        # The command, its time and its exit code are unknown.
        execution = Execution(trial.runner, (), source.text, "", None, math.nan, math.nan)
        folder.save(Transcript(trial, IMPORTED, "measured", (execution,), {}, {}))
    folder.note("ended", by="import")
    manifest.write(folder.path)
    return folder.path


def _move_aside(out: Path, imported: Import, digests: set[str], folder: Path) -> None:
    for other in sorted(out.glob(f"{imported.plan.name}-{IMPORTED}-*")):
        if other == folder:
            continue
        with suppress(FalloffError, OSError):
            sessions = Folder(other).provenance().get("sessions", [])
            files = {file["sha256"] for session in sessions for file in session.get("imported", [])}
            if files and files == digests:
                aside = out / ".replaced"
                aside.mkdir(exist_ok=True)
                shutil.rmtree(aside / other.name, ignore_errors=True)
                os.replace(other, aside / other.name)
                (out / f"{other.name}.nc").unlink(missing_ok=True)  # made anew from the folder


def summary(dataset: xr.Dataset) -> str:
    """The number of results and files, then the readings of each result, or why it has none."""
    files = dataset.file.values.tolist()
    usable = [file for file, status in zip(files, dataset.status.values) if status == "ok"]
    results, of = counted(len(usable), "result"), counted(len(set(files)), "file")
    if set(usable) < set(files):
        of = f"{len(set(usable))} of {of}"
    lines = [f"{results} in {of}: measured evidence, imported"]
    readings = [_readings(dataset[name]) for name in schema()["variables"]]
    for file, reason, *values in zip(files, dataset.reason.values.tolist(), *readings):
        lines.append(f"  {file}: {', '.join(filter(None, values)) or reason}")
    return "\n".join(lines).replace(HARD_SPACE, " ")


def _readings(values: xr.DataArray) -> list[str]:
    """The name and value of a reading for each trial, for a list its two ends; empty where there is
    none.
    """
    if values.dtype.kind != "f" or values.name in _NO_READINGS:
        return [""] * values.sizes["trial"]
    unit = f" {values.units}" if values.units != "1" else ""
    finite = [row[np.isfinite(row)] for row in map(np.atleast_1d, values.values)]
    ends = [dict.fromkeys(row[[0, -1]].tolist()) if len(row) else () for row in finite]
    texts = [" ... ".join(f"{value:.9g}" for value in row) for row in ends]
    return [text and f"{values.name} {text}{unit}" for text in texts]


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

    `network` is the interconnect, `block` numbers the runs that were made together, and `date` says
    when a file's run began (ISO 8601). An empty cell leaves a setting unknown. Raises FalloffError
    if the file cannot be read, or naming every faulty row.
    """
    headings, lines = csv_tables.rows(file)
    if not lines or "file" not in headings:
        raise FalloffError(
            f"{file} needs a first line with the columns' names, one of them 'file', and rows"
        )
    table = []
    for number, cells in lines.items():
        where, row = f"{file}, line {number}", dict(zip(headings, cells))
        if not PurePath(row["file"].strip()).name:
            raise FalloffError(f"{where}: it names no file")
        pattern = row.pop("file").strip()
        texts = {_ALIASES.get(name, name): text for name, text in row.items() if text.strip()}
        of_run = {name: texts.pop(name) for name in _OF_THE_RUN if name in texts}
        table.append((pattern, {**_checked(texts, where), **_of_the_run(of_run, where)}))
    return table


def of_file(name: str, common: Mapping, table: Iterable[tuple[str, Mapping]]) -> Settings:
    """The settings of one file: the common ones, then those of each row that matches it. Later
    values win."""
    settings = dict(common)
    for pattern, row in table:
        if matches(name, pattern):
            settings.update(row)
    return settings


def _checked(texts: Mapping[str, str], where: str) -> Settings:
    """The settings with values of the schema's types; raises FalloffError naming every fault."""
    rows = known_settings()
    values: Settings = {}
    faults = []
    for name, text in texts.items():
        if name not in rows:
            faults.append(f"{name!r} is unknown; there are {', '.join(rows)}")
            continue
        values[name] = text.strip() if rows[name]["type"] == "text" else _number(text)
        if name == "rpeak":  # or a product of numbers, such as cores*clock*flop_per_cycle
            factors = [_number(part) for part in text.split("*")]
            values[name] = None if None in factors else math.prod(factors)
        if fault := _fault(name, values[name]):
            faults.append(f"{name} = {text.strip()!r} {fault}")
    if faults:
        raise faulty(where, sorted(faults))
    return values


def _of_the_run(cells: Mapping[str, str], where: str) -> Settings:
    """Block and date of a row of the table; raises FalloffError if one is none."""
    settings: Settings = {}
    if "block" in cells:
        block = _number(cells["block"])
        if not isinstance(block, int) or block < 1:
            raise FalloffError(f"{where}: block = {cells['block']!r} is no whole number from 1")
        settings["block"] = block
    if "date" in cells:
        try:
            settings["date"] = datetime.fromisoformat(cells["date"].strip()).isoformat()
        except ValueError:
            like = "write it as 2026-11-26T09:30:00"
            raise FalloffError(f"{where}: date = {cells['date']!r} is no date: {like}") from None
    return settings


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


def expanded(given: Sequence[Path]) -> list[tuple[Path, str]]:
    """The files, and all files in the folders, in order and without hidden ones, each with the part
    of its path that the user wrote; raises FalloffError if one is missing or is no file."""
    files: dict[Path, str] = {}
    for path in _matching(given):
        if path.is_file():
            files.setdefault(path, _text(PurePath(path.parent.name, path.name)))
        elif not path.is_dir():
            what = f"{path} is no file, but a pipe or a device"
            raise FalloffError(f"{what}: write its output to a file")
        for file in sorted(path.rglob("*")):
            below = file.relative_to(path)
            if file.is_file() and not any(part.startswith(".") for part in below.parts):
                files.setdefault(file, _text(PurePath(path.name, below)))
    return list(files.items())


def _matching(given: Sequence[Path]) -> Iterator[Path]:
    """The paths; one that is not there is a pattern, as a shell would expand it."""
    for path in given:
        matching = [path] if path.exists() else sorted(map(Path, glob(str(path), recursive=True)))
        if not matching:
            raise FalloffError(f"there is no file or folder {path}")
        yield from matching


def _sources(
    runner: Tool, files: Sequence[tuple[Path, str]]
) -> tuple[list[ImportedFile], list[str]]:
    """The tool's outputs among the files, and why the others are left out."""
    given = [file for file, _ in files]
    shared = os.path.commonpath([file.absolute().parent for file in given]) if given else ""
    sources, outputs_seen, left_out = [], [], []
    for file, path in files:
        try:
            text = outputs.read(file)
            results, notes, is_collective = _results(runner, text)
        except Unreadable as refusal:
            left_out.append(f"{file}: {refusal.with_kind()}")
        except FalloffError as reason:
            left_out.append(f"{file}: {reason}")
        else:
            name = _text(file.absolute().relative_to(shared))
            sources.append(ImportedFile(file, name, text, results, notes=notes))
            outputs_seen.append(OutputFile(path, text, results, is_collective))
    facts_of_files = facts(outputs_seen, is_pair=runner.name not in _OVER_NODES)
    return [
        replace(source, facts=facts_) for source, facts_ in zip(sources, facts_of_files)
    ], left_out


def _text(path: PurePath) -> str:
    """A path as text; undecodable bytes of a name become U+FFFD."""
    return os.fsencode(path.as_posix()).decode(errors="replace")


def _results(runner: Tool, text: str) -> tuple[tuple[Settings, ...], tuple[str, ...], bool]:
    """The settings of a file's usable results, all notes, each once, and whether it has an
    operation of several processes; raises Unreadable when it is no output of the tool."""
    try:
        results = runner.results(text)
    except Unreadable as reason:
        if outputs.is_output_of(runner.name, text):
            return (), (), False
        raise outputs.refusal(runner.name, text, reason) from None
    notes = tuple(dict.fromkeys(result.note for result in results if result.note))
    names = {name for result in results for name in result.readings}
    settings = tuple(dict(result.settings) for result in results if result.readings)
    return settings, notes, "collective_time" in names


def _plan(
    tool: str,
    points: Sequence[Settings],
    sources: Sequence[ImportedFile],
    numbers: Sequence[int],
    repeats: str,
) -> Plan:
    trials = [
        Trial(f"b{block:03d}-{order:03d}-{tool}", "point", tool, block, order, point)
        for order, (block, point) in enumerate(zip(numbers, points), 1)
    ]
    blocks = [
        tuple(trial for trial in trials if trial.block == block) for block in sorted(set(numbers))
    ]
    names = dict.fromkeys(point["interconnect"] for point in points if "interconnect" in point)
    networks = {name: described(name) for name in names}
    identity = [tool, networks, points, [source.digest for source in sources]]
    if repeats == BLOCKS:
        identity += [list(numbers), [source.facts.moment for source in sources]]
    return Plan(
        name=tool,
        title=f"Outputs of {tool}, run elsewhere and imported",
        digest=hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest(),
        testbed={"name": IMPORTED, "kind": IMPORTED, "nodes": 0, "rpeak": {}},
        interconnects=networks,
        # As far as is known, nothing was fixed before the runs.
        design={"factors": {}, "repeats": repeats},
        stopping=Stopping(blocks=len(blocks)),
        preamble=(),
        blocks=tuple(blocks),
    )
