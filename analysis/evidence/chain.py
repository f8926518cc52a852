"""Trace a figure through its campaigns' datasets down to each raw transcript's file and command
line."""

import math
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import xarray as xr

from analysis import paths
from analysis.dataset import store
from analysis.statements.exhibit import Exhibit
from runners.records import archive, manifest, renamed
from runners.records.journal import Folder, read_transcript
from runners.records.plan import Plan
from runners.records.record import Execution, FalloffError, Transcript


@dataclass(frozen=True)
class Chain:
    """A campaign's folder with its plan, its dataset, and the text of each transcript by trial."""

    folder: Path
    plan: Plan
    dataset: xr.Dataset
    transcripts: dict[str, bytes]

    @property
    def about(self) -> str:
        """The campaign, where it ran, and its kind of evidence."""
        evidence = self.dataset.falloff.evidence
        return f"{self.plan.name} on {self.plan.testbed['name']}, {evidence} evidence"


def of(folder: Path) -> Chain:
    """The chain of a campaign's folder; raises FalloffError in the cases of `store.assemble`."""
    source = Folder(folder)
    return Chain(folder, source.plan(), store.read(folder), dict(source.texts()))


def command(dataset: xr.Dataset) -> str:
    """The command line that makes a dataset's campaign again."""
    campaign, testbed = dataset.attrs["campaign"], dataset.falloff.testbed.name
    if dataset.falloff.is_imported:
        return f"falloff import {shlex.quote(campaign)} FILE..."
    return f"falloff run {shlex.quote(campaign)} --testbed {shlex.quote(testbed)}"


def folders(campaign: str, testbed: str) -> list[Path]:
    """The folders that hold a campaign on a testbed: the stored reference, then the user's own
    runs.
    """
    runs: set[Path] = set()
    for name in renamed.names(campaign):
        runs |= set(paths.RAW.glob(f"{name}-{testbed}-*"))
    reference = paths.REFERENCE / f"{campaign}-{testbed}"
    return [folder for folder in (reference, *sorted(runs)) if (folder / "trials.json").exists()]


def text(
    notebook: Path,
    figure: Exhibit,
    chains: Mapping[str, Sequence[Chain]],
    plans: Mapping[str, Plan],
) -> str:
    """The whole chain of a figure that a notebook draws. `chains` has those of each campaign, the
    stored reference's first; `plans` has the campaigns as described today."""
    lines = [f"Figure {figure.label}", f"  drawn by   {shown(notebook)}"]
    for name in figure.files:
        sha256 = manifest.digest((paths.DATA / name).read_bytes())
        lines += ["", f"File data/{name}", f"  sha256     {sha256}"]
    for name, of_campaign in chains.items():
        lines += ["", f"Dataset {name}"]
        lines += [] if of_campaign else ["  (no campaign of it is kept here)"]
        for chain in of_campaign:
            changed, today = "", plans[name].digest
            if chain.plan.digest != today:
                changed = f"   (described otherwise today: the trials are {today[:10]})"
            lines += [
                f"  campaign   {chain.about}: {chain.plan.title}",
                f"    trials     sha256 {chain.plan.digest}",
                f"    raw        sha256 {chain.dataset.attrs['transcripts_sha256']}, "
                f"{len(chain.transcripts)} transcripts",
                f"    kept in    {shown(chain.folder)}",
                f"    made by    {command(chain.dataset)}{changed}",
                *(f"    session    {_session(host)}" for host in chain.dataset.falloff.hosts),
            ]
            rows = dict(zip(chain.dataset.trial_id.values, chain.dataset.status.values))
            for trial in chain.transcripts:
                lines += _trial(chain, trial, rows.get(trial, "no row"))
    return "\n".join(lines)


def _trial(chain: Chain, trial: str, status: str) -> list[str]:
    loose = chain.folder / "transcripts" / f"{trial}.json"
    text = chain.transcripts[trial]
    return [
        f"  trial      {trial}: {status}",
        f"    file       {shown(loose if loose.exists() else chain.folder / archive.NAME)}",
        f"    sha256     {manifest.digest(text)}",
        *(f"    command    {_executed(run)}" for run in read_transcript(text, trial).executions),
    ]


def printed(figure: str, wanted: str, folders: Sequence[Path]) -> str:
    """The output of a trial's tools, from each folder that has the trial; FOLDER/TRIAL selects one
    folder.

    Raises FalloffError if no folder has it.
    """
    within, _, trial = wanted.rpartition("/")
    among = [folder for folder in folders if within in ("", folder.name)]
    texts = {folder.name: dict(Folder(folder).texts()).get(trial) for folder in among}
    outputs = {name: raw(read_transcript(text, trial)) for name, text in texts.items() if text}
    if not outputs:
        names = ", ".join(folder.name for folder in folders) or "none here"
        raise FalloffError(
            f"no campaign of figure {figure} has a transcript {wanted!r}; they are: {names}"
        )
    if len(outputs) == 1:
        return "".join(outputs.values())
    return "\n\n".join(f"{name}/{trial}\n{output}" for name, output in outputs.items())


def raw(transcript: Transcript) -> str:
    """The output of a trial's tools, each under its command line."""
    parts = []
    for execution in transcript.executions:
        end = "stopped at its limit" if execution.timed_out else _ended(execution)
        parts.append(f"$ {_command(execution)}    [{end}]")
        parts += [
            output.rstrip("\n") for output in (execution.stdout, execution.stderr) if output.strip()
        ]
    return "\n".join(parts)


def code(session: Mapping[str, Any]) -> str:
    """The commit of a session, or of this checkout, in words."""
    if not session.get("git_commit"):
        return "commit not known"
    return f"commit {session['git_commit']}{' with changes' if session['git_dirty'] else ''}"


def _session(host: Mapping[str, Any]) -> str:
    names = ("hostname", "system", "kernel", "cpu_model")
    return ", ".join([*(host[name] for name in names if host.get(name)), code(host)])


def _executed(execution: Execution) -> str:
    when = "when is not known"  # as of an imported output
    if math.isfinite(execution.start):
        start = datetime.fromtimestamp(execution.start, UTC).isoformat("T", "seconds")
        when = f"{start}, {execution.wall_s:.2f} s"
    return f"[{when}, {_ended(execution)}] {_command(execution)}"


def _command(execution: Execution) -> str:
    return shlex.join(execution.argv or (execution.tool,))


def _ended(execution: Execution) -> str:
    code = execution.exit_code
    return f"exit code {'not known' if code is None else code}"


def shown(path: Path) -> str:
    """A path as a reader of the repository knows it."""
    inside = path.is_relative_to(paths.ROOT)
    return path.relative_to(paths.ROOT).as_posix() if inside else os.fspath(path)
