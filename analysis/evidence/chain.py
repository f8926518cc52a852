"""From a figure over its campaigns' datasets down to each raw transcript's file and command line."""

import math
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import xarray as xr

from analysis import attributes, imported, paths, store
from analysis.evidence import content
from analysis.experiments import Traced
from runners import archive, manifest
from runners.journal import Folder, read_transcript
from runners.record import Execution, Transcript


@dataclass(frozen=True)
class Link:
    """One trial's transcript: the file that it is in, its SHA-256, and what was executed."""

    trial: str
    status: str
    file: str
    sha256: str
    executions: tuple[Execution, ...]


@dataclass(frozen=True)
class Chain:
    """A campaign's dataset and what it was made of; `command` makes it anew.

    `started` and `ended` are ISO 8601, empty where not known; `busy_s` is what all trials together took [s]. `sessions`
    are where and with which code parts of the trials ran, as `runners.provenance.host` has it.
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
    sessions: tuple[dict[str, Any], ...]
    links: tuple[Link, ...]


def of(folder: Path) -> Chain:
    """The chain of a campaign's folder; raises FalloffError as `store.assemble`."""
    dataset, source = store.read(folder), Folder(folder)
    plan = source.plan()
    statuses = dict(zip(dataset.trial_id.values.tolist(), dataset.status.values.tolist()))
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
        sessions=tuple(attributes.hosts(dataset)),
        links=tuple(_link(folder, *text, statuses) for text in source.texts()),
    )


def command(dataset: xr.Dataset) -> str:
    """The command line that makes a dataset's campaign anew."""
    campaign = dataset.attrs["campaign"]
    testbed = attributes.testbed(dataset)["name"]
    if testbed == imported.TESTBED:
        return f"falloff import {campaign} FILE..."
    return f"falloff run {campaign} --testbed {testbed}"


def folders(campaign: str, testbed: str) -> list[Path]:
    """The folders that hold a campaign on a testbed: the stored reference, then the user's own runs."""
    own = sorted(paths.RAW.glob(f"{campaign}-{testbed}-*"))
    reference = paths.REFERENCE / f"{campaign}-{testbed}"
    return [folder for folder in (reference, *own) if (folder / "trials.json").exists()]


def text(figure: Traced, chains: Mapping[str, Sequence[Chain]], notes: Mapping[str, str]) -> str:
    """The whole chain of a figure.

    `chains` has those of each dataset, the stored reference's first, and `notes` what is to be said of its command.
    """
    lines = [f"Figure {figure.label}", f"  drawn by   {figure.drawn_by}"]
    lines.append(f"  study      {figure.studied_by}")
    for name in figure.files:
        sha256 = manifest.digest((paths.DATA / name).read_bytes())
        lines += ["", f"File data/{name}", f"  sha256     {sha256}"]
    for name, found in chains.items():
        lines += ["", f"Dataset {name}"]
        lines += [] if found else ["  (no campaign of it is kept here)"]
        for chain in found:
            campaign = f"{chain.campaign} on {chain.testbed}, {chain.evidence} evidence"
            lines += [
                f"  campaign   {campaign}: {chain.title}",
                f"    trials     sha256 {chain.campaign_sha256}",
                f"    dataset    sha256 {chain.dataset_sha256}",
                f"    raw        sha256 {chain.transcripts_sha256}, {len(chain.links)} transcripts",
                f"    kept in    {chain.folder}",
                f"    made by    {chain.command}{f'   ({notes[name]})' if notes[name] else ''}",
                *(f"    session    {_session(host)}" for host in chain.sessions),
            ]
            for link in chain.links:
                lines += [
                    f"  trial      {link.trial}: {link.status or 'no row'}",
                    f"    file       {link.file}",
                    f"    sha256     {link.sha256}",
                    *(f"    command    {_executed(one)}" for one in link.executions),
                ]
    return "\n".join(lines)


def raw(transcript: Transcript) -> str:
    """What a trial's tools printed, each under its command line."""
    parts = []
    for one in transcript.executions:
        end = "stopped at its limit" if one.timed_out else f"exit code {_known(one.exit_code)}"
        parts.append(f"$ {shlex.join(one.argv or (one.tool,))}    [{end}]")
        parts += [output.rstrip("\n") for output in (one.stdout, one.stderr) if output.strip()]
    return "\n".join(parts)


def code(session: Mapping[str, Any]) -> str:
    """The commit of a session, or of this place, in words."""
    if not session.get("git_commit"):
        return "commit not known"
    return f"commit {session['git_commit']}{' with changes' if session['git_dirty'] else ''}"


def _link(folder: Path, trial: str, content: bytes, statuses: Mapping[str, str]) -> Link:
    loose = folder / "transcripts" / f"{trial}.json"
    file = _shown(loose if loose.exists() else folder / archive.NAME)
    executions = read_transcript(content, trial).executions
    return Link(trial, statuses.get(trial, ""), file, manifest.digest(content), executions)


def _session(host: Mapping[str, Any]) -> str:
    names = ("hostname", "system", "kernel", "cpu_model")
    return ", ".join([*(host[name] for name in names if host.get(name)), code(host)])


def _executed(one: Execution) -> str:
    when = "when is not known"  # as of an imported output
    if math.isfinite(one.start):
        start = datetime.fromtimestamp(one.start, timezone.utc).isoformat("T", "seconds")
        when = f"{start}, {one.wall_s:.2f} s"
    return f"[{when}, exit code {_known(one.exit_code)}] {shlex.join(one.argv or (one.tool,))}"


def _known(exit_code: int | None) -> str:
    return "not known" if exit_code is None else str(exit_code)


def _shown(path: Path) -> str:
    """A path as the reader of the repository sees it."""
    inside = path.is_relative_to(paths.ROOT)
    return path.relative_to(paths.ROOT).as_posix() if inside else os.fspath(path)
