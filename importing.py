"""Results that somebody already has: the outputs of a tool become a campaign's folder of measured evidence."""

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import experiment
from analysis import given_settings, paths
from analysis.given_settings import Settings
from analysis.imported import TESTBED
from runners import foreign, manifest, runner_named
from runners.description import Stopping
from runners.plan import Plan
from runners.record import Execution, FalloffError, Runner, Transcript, Trial, Unreadable


@dataclass(frozen=True)
class Source:
    """A file with its name below the folder that all files share, its text and the digest of that."""

    file: Path
    name: str
    text: str
    digest: str


@dataclass(frozen=True)
class Import:
    """A plan with one trial for each source, its transcript, and why other files were left out, a line each."""

    plan: Plan
    transcripts: tuple[Transcript, ...]
    sources: tuple[Source, ...]
    left_out: tuple[str, ...]


def read(
    tool: str, files: Sequence[Path], common: Settings, table: Sequence[tuple[str, Settings]], testbed: str = ""
) -> Import:
    """Read outputs of a tool, files or folders of them, with what is given of all and of each.

    A named testbed gives its networks and, where no other is given, its nodes' Rpeak. A file that is no output of
    the tool, and a copy of another one with the same settings, is left out; an output without a result stays.
    Raises FalloffError when nothing remains, or a row of the table is of no file.
    """
    runner = runner_named(tool)
    machine = experiment.read_testbed(testbed) if testbed else {}
    sources, left_out = _sources(runner, _files(files))
    if not sources:
        raise FalloffError(f"there is no output of {tool} to import: " + "; ".join(left_out[:3] or ["no file"]))
    strangers = given_settings.unused([source.name for source in sources], table)
    if strangers:
        raise FalloffError(f"--map: {', '.join(strangers)} names none of the imported files")
    peak = machine.get("rpeak", {}).get("value")
    known = {"rpeak": peak, **common} if isinstance(peak, (int, float)) else common
    settings = {source: given_settings.of_file(source.name, known, table) for source in sources}
    copies = _copies(settings)
    left_out += [f"{source.file}: it is a copy of {original.name}" for source, original in copies.items()]
    kept = [source for source in sources if source not in copies]
    plan = _plan(tool, [{**settings[source], "file": source.name} for source in kept], kept, machine)
    return Import(plan, tuple(map(_transcript, plan.trials(), kept)), tuple(kept), tuple(left_out))


def keep(found: Import, out: Path = paths.RAW) -> Path:
    """Write an import's campaign folder and return it; the same import again changes nothing."""
    folder = experiment.folder_of(found.plan, out)
    if folder.stopped_by() == "import":
        return folder.path
    folder.create_or_check(found.plan)
    listed = [{"file": str(source.file), "sha256": source.digest} for source in found.sources]
    # Where and when they ran is not known; `host` would be the machine that ran them.
    folder.write_provenance({"host": {}, "imported": listed, "left_out": found.left_out})
    folder.note("session", digest=found.plan.digest, testbed=TESTBED)
    for transcript in found.transcripts:
        folder.save(transcript)
    folder.note("ended", by="import")
    manifest.write(folder.path)
    return folder.path


def _files(given: Sequence[Path]) -> list[Path]:
    """The files and all in the folders, in order, but for what is hidden; raises FalloffError when one is missing."""
    found: list[Path] = []
    for path in given:
        if not path.exists():
            raise FalloffError(f"there is no file or folder {path}")
        found += _below(path) if path.is_dir() else [path]
    return list(dict.fromkeys(found))


def _below(folder: Path) -> list[Path]:
    found = sorted(file for file in folder.rglob("*") if file.is_file())
    return [file for file in found if not any(part.startswith(".") for part in file.relative_to(folder).parts)]


def _sources(runner: Runner, files: Sequence[Path]) -> tuple[list[Source], list[str]]:
    """The tool's outputs among the files, and why the others are left out."""
    shared = os.path.commonpath([file.absolute().parent for file in files]) if files else ""
    sources, left_out = [], []
    for file in files:
        try:
            text = foreign.read(file)
            reason = _not_an_output(runner, text)
        except FalloffError as error:
            text, reason = "", str(error)
        if reason:
            left_out.append(f"{file}: {reason}")
        else:
            name = file.absolute().relative_to(shared).as_posix()
            sources.append(Source(file, name, text, hashlib.sha256(text.encode()).hexdigest()))
    return sources, left_out


def _not_an_output(runner: Runner, text: str) -> str:
    """Why a file is no output of the tool, or empty."""
    try:
        runner.results(text)
    except Unreadable as reason:
        if not foreign.is_output_of(runner.name, text):
            return foreign.describe(text, runner.name) or str(reason)
    return ""


def _copies(settings: Mapping[Source, Settings]) -> dict[Source, Source]:
    """Those that have the content and the settings of an earlier one, and that one.

    With other settings a copy may be meant: a run on one node is the same on every network.
    """
    originals: dict[tuple, Source] = {}
    copies = {}
    for source, given in settings.items():
        original = originals.setdefault((source.digest, *sorted(given.items())), source)
        if original is not source:
            copies[source] = original
    return copies


def _plan(tool: str, points: Sequence[Settings], sources: Sequence[Source], machine: Mapping) -> Plan:
    trials = tuple(
        Trial(f"b001-{order:03d}-{tool}", "point", tool, 1, order, point) for order, point in enumerate(points, 1)
    )
    described = {**experiment.read_toml(paths.INTERCONNECTS, "interconnects"), **machine.get("networks", {})}
    names = dict.fromkeys(point["interconnect"] for point in points if "interconnect" in point)
    networks = {name: _network(name, described.get(name, {})) for name in names}
    identity = [tool, networks, points, [source.digest for source in sources]]
    return Plan(
        name=tool,
        title=f"Outputs of {tool}, run elsewhere and imported",
        digest=hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest(),
        testbed={"name": TESTBED, "kind": TESTBED, "nodes": 0, "rpeak": machine.get("rpeak", {})},
        interconnects=networks,
        design={"factors": {}},  # nothing was decided before the runs, as far as is known
        stopping=Stopping(blocks=1),
        preamble=(),
        blocks=(trials,),
    )


def _network(name: str, described: Mapping) -> dict:
    """An interconnect's description; one that is not described has its name alone."""
    return {"name": name, "short": described.get("name", name), **described}


def _transcript(trial: Trial, source: Source) -> Transcript:
    """A file as a transcript: what was executed, when and with which exit code is not known."""
    execution = Execution(trial.runner, (), source.text, "", None, math.nan, math.nan)
    return Transcript(trial, TESTBED, "measured", (execution,), {}, {})
