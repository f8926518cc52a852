"""From a figure over its campaigns' datasets down to each raw transcript's file and command line."""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import xarray as xr

from analysis import imported, paths, store
from analysis.evidence import content
from analysis.experiments import Traced
from runners import archive, manifest
from runners.journal import Folder, read_transcript
from runners.record import Execution, Transcript


@dataclass(frozen=True)
class Link:
    """One trial's transcript: the file that it is in, its SHA-256, and each command line as it was executed.

    `executed` has argv, exit_code, start (ISO 8601) and wall_s [s]; what is not known is None.
    """

    trial: str
    status: str
    file: str
    sha256: str
    executed: tuple[dict[str, Any], ...]


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
    plan, provenance = source.plan(), json.loads(dataset.attrs["provenance"])
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
        sessions=tuple(session.get("host", {}) for session in provenance["sessions"]),
        links=tuple(_link(folder, *text, statuses) for text in source.texts()),
    )


def command(dataset: xr.Dataset) -> str:
    """The command line that makes a dataset's campaign anew."""
    campaign = dataset.attrs["campaign"]
    testbed = json.loads(dataset.attrs["testbed_settings"])["name"]
    if testbed == imported.TESTBED:
        return f"falloff import {campaign} FILE..."
    return f"falloff run {campaign} --testbed {testbed}"


def folders(campaign: str, testbed: str) -> list[Path]:
    """The folders that hold a campaign on a testbed: the stored reference, then the user's own runs."""
    own = sorted(paths.RAW.glob(f"{campaign}-{testbed}-*"))
    reference = paths.REFERENCE / f"{campaign}-{testbed}"
    return [folder for folder in (reference, *own) if (folder / "trials.json").exists()]


def as_json(
    figure: Traced, chains: Mapping[str, Sequence[Chain]], notes: Mapping[str, str]
) -> dict:
    """The whole chain of a figure as plain JSON data.

    `chains` has those of each dataset, the stored reference's first, and `notes` what is to be said of its command.
    """
    return {
        "figure": figure.label,
        "drawn_by": figure.drawn_by,
        "studied_by": figure.studied_by,
        "files": {name: manifest.digest((paths.DATA / name).read_bytes()) for name in figure.files},
        "datasets": {
            name: {"command_note": notes[name], "campaigns": [asdict(chain) for chain in found]}
            for name, found in chains.items()
        },
    }


def text(figure: Mapping[str, Any]) -> str:
    """What `as_json` gives, as text."""
    lines = [f"Figure {figure['figure']}", f"  drawn by   {figure['drawn_by']}"]
    lines.append(f"  study      {figure['studied_by']}")
    for name, sha256 in figure["files"].items():
        lines += ["", f"File data/{name}", f"  sha256     {sha256}"]
    for name, dataset in figure["datasets"].items():
        lines += ["", f"Dataset {name}"]
        if not dataset["campaigns"]:
            lines.append("  (no campaign of it is kept here)")
        for chain in dataset["campaigns"]:
            note = f"   ({dataset['command_note']})" if dataset["command_note"] else ""
            lines += [
                f"  campaign   {chain['campaign']} on {chain['testbed']}, {chain['evidence']} evidence: {chain['title']}",
                f"    trials     sha256 {chain['campaign_sha256']}",
                f"    dataset    sha256 {chain['dataset_sha256']}",
                f"    raw        sha256 {chain['transcripts_sha256']}, {len(chain['links'])} transcripts",
                f"    kept in    {chain['folder']}",
                f"    made by    {chain['command']}{note}",
                *(f"    session    {_session(host)}" for host in chain["sessions"]),
            ]
            for link in chain["links"]:
                lines += [
                    f"  trial      {link['trial']}: {link['status'] or 'no row'}",
                    f"    file       {link['file']}",
                    f"    sha256     {link['sha256']}",
                    *(f"    command    {_executed(executed)}" for executed in link["executed"]),
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
    return Link(
        trial=trial,
        status=statuses.get(trial, ""),
        file=_shown(loose if loose.exists() else folder / archive.NAME),
        sha256=manifest.digest(content),
        executed=tuple(map(_execution, read_transcript(content, trial).executions)),
    )


def _execution(one: Execution) -> dict[str, Any]:
    is_timed = one.start == one.start  # an imported output is not: NaN
    start = (
        datetime.fromtimestamp(one.start, timezone.utc).isoformat("T", "seconds")
        if is_timed
        else None
    )
    return {
        "argv": one.argv or (one.tool,),
        "exit_code": one.exit_code,
        "start": start,
        "wall_s": one.wall_s if one.wall_s == one.wall_s else None,
    }


def _session(host: Mapping[str, Any]) -> str:
    names = ("hostname", "system", "kernel", "cpu_model")
    return ", ".join([*(host[name] for name in names if host.get(name)), code(host)])


def _executed(one: Mapping[str, Any]) -> str:
    took = "" if one["wall_s"] is None else f", {one['wall_s']:.2f} s"
    start = one["start"] or "when is not known"
    return f"[{start}{took}, exit code {_known(one['exit_code'])}] {shlex.join(one['argv'])}"


def _known(exit_code: int | None) -> str:
    return "not known" if exit_code is None else str(exit_code)


def _shown(path: Path) -> str:
    """A path as the reader of the repository sees it."""
    inside = path.is_relative_to(paths.ROOT)
    return path.relative_to(paths.ROOT).as_posix() if inside else os.fspath(path)
