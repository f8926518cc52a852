"""The chain of one campaign's dataset: its content, the trials, and each transcript's file and command line."""

import json
import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import xarray as xr

from analysis import attributes, imported, paths, store
from analysis.evidence import content
from runners import archive, manifest
from runners.journal import Folder, read_transcript
from runners.record import Transcript


@dataclass(frozen=True)
class Executed:
    """One command line as it was executed; `start` is ISO 8601, `wall_s` in seconds, both None where not known."""

    argv: tuple[str, ...]
    exit_code: int | None
    start: str | None
    wall_s: float | None


@dataclass(frozen=True)
class Link:
    """One trial's transcript: the file (and its name within, when packed), its SHA-256, and what it holds."""

    trial: str
    status: str
    file: str
    member: str
    sha256: str
    host: str
    executed: tuple[Executed, ...]


@dataclass(frozen=True)
class Session:
    """Where and with which code a part of the trials ran; None where it is not recorded."""

    hostname: str | None
    system: str | None
    kernel: str | None
    cpu_model: str | None
    cpus: int | None
    memory_bytes: int | None
    tools: dict[str, str]
    commit: str | None
    dirty: bool | None


@dataclass(frozen=True)
class Chain:
    """A campaign's dataset and what it was made of; `command` makes it anew.

    `started` and `ended` are ISO 8601, empty where not known; `busy_s` is what all trials together took [s].
    """

    campaign: str
    testbed: str
    evidence: str
    title: str
    campaign_sha256: str
    dataset_sha256: str
    transcripts_sha256: str
    folder: str
    command: str
    started: str
    ended: str
    busy_s: float
    sessions: tuple[Session, ...]
    links: tuple[Link, ...]


def of(folder: Path) -> Chain:
    """The chain of a campaign's folder; raises FalloffError as `store.assemble`."""
    dataset, source = store.read(folder), Folder(folder)
    plan = source.plan()
    return Chain(
        campaign=plan.name,
        testbed=plan.testbed["name"],
        evidence=dataset.evidence.values[0].item(),
        title=plan.title,
        campaign_sha256=plan.digest,
        dataset_sha256=content.digest(dataset),
        transcripts_sha256=dataset.attrs["transcripts_sha256"],
        folder=_shown(folder),
        command=command(dataset),
        started=dataset.attrs["started"],
        ended=dataset.attrs["ended"],
        busy_s=float(dataset.wall_time.sum()),
        sessions=tuple(map(_session, attributes.hosts(dataset))),
        links=tuple(_links(source, dict(zip(dataset.trial_id.values.tolist(), dataset.status.values.tolist())))),
    )


def command(dataset: xr.Dataset) -> str:
    """The command line that makes a dataset's campaign anew."""
    campaign, testbed = dataset.attrs["campaign"], attributes.testbed(dataset)["name"]
    return (
        f"falloff import {campaign} FILE..."
        if testbed == imported.TESTBED
        else f"falloff run {campaign} --testbed {testbed}"
    )


def folders(campaign: str, testbed: str) -> list[Path]:
    """The folders that hold a campaign on a testbed: the stored reference, then the user's own runs."""
    own = sorted(file.parent for file in paths.RAW.glob(f"{campaign}-{testbed}-*/trials.json"))
    reference = paths.REFERENCE / f"{campaign}-{testbed}"
    return [folder for folder in (reference, *own) if (folder / "trials.json").exists()]


def _links(source: Folder, statuses: dict[str, str]) -> Iterator[Link]:
    hosts = _hosts(source)
    packed = (source.path / archive.NAME).exists()
    for name, text in source.texts():
        transcript = read_transcript(text, name)
        loose = source.path / "transcripts" / f"{name}.json"
        yield Link(
            trial=name,
            status=statuses.get(name, ""),
            file=_shown(loose if loose.exists() else source.path / archive.NAME),
            member=name if packed and not loose.exists() else "",
            sha256=manifest.digest(text),
            host=hosts(transcript),
            executed=tuple(
                Executed(
                    it.argv or (it.tool,),
                    it.exit_code,
                    _moment(it.start),
                    it.wall_s if it.wall_s == it.wall_s else None,
                )
                for it in transcript.executions
            ),
        )


def _hosts(source: Folder):
    """Which host drove a transcript: that of the session in which it began; empty where it is not recorded."""
    begun = [note["at"] for note in source.notes() if note["event"] == "session"]
    sessions = json.loads((source.path / "provenance.json").read_text(encoding="utf-8"))["sessions"]
    names = [session.get("host", {}).get("hostname") or "" for session in sessions]

    def of_transcript(transcript: Transcript) -> str:
        starts = [it.start for it in transcript.executions if it.start == it.start]
        if len(names) != len(begun) or not starts:
            return names[0] if len(set(names)) == 1 else ""
        return names[max(bisect_right(begun, min(starts)) - 1, 0)]

    return of_transcript


def _session(host: dict) -> Session:
    return Session(
        **{name: host.get(name) for name in ("hostname", "system", "kernel", "cpu_model", "cpus", "memory_bytes")},
        tools={name: version for name, version in host.get("tools", {}).items() if version},
        commit=host.get("git_commit"),
        dirty=host.get("git_dirty"),
    )


def _moment(start: float) -> str | None:
    return None if start != start else datetime.fromtimestamp(start, timezone.utc).isoformat(timespec="seconds")


def _shown(path: Path) -> str:
    """A path as the reader of the repository sees it."""
    return path.relative_to(paths.ROOT).as_posix() if path.is_relative_to(paths.ROOT) else os.fspath(path)
