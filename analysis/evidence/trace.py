"""A figure's chain as text, from the function that draws it down to each raw transcript."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from analysis.evidence.chain import Chain, Executed, Link, Session
from analysis.experiments import Traced
from runners.record import Transcript


def text(
    figure: Traced, chains: Mapping[str, Sequence[Chain]], notes: Mapping[str, str], files: Mapping[str, str]
) -> str:
    """The whole chain of a figure.

    `chains` has those of each dataset, the stored reference's first, and `notes` what is to be said of its command;
    `files` has the SHA-256 of each file of data/ that the figure shows beside them.
    """
    lines = [f"Figure {figure.label}", f"  drawn by   {figure.drawn_by}", f"  study      {figure.studied_by}"]
    for name, sha256 in files.items():
        lines += ["", f"File data/{name}", f"  sha256     {sha256}"]
    for name, found in chains.items():
        lines += ["", f"Dataset {name}"]
        lines += ["  (no campaign of it is kept here)"] if not found else []
        for chain in found:
            lines += [f"  {line}" for line in _chain(chain, notes[name])]
    return "\n".join(lines)


def as_json(
    figure: Traced, chains: Mapping[str, Sequence[Chain]], notes: Mapping[str, str], files: Mapping[str, str]
) -> dict:
    """The same as plain JSON data."""
    return {
        "figure": figure.label,
        "drawn_by": figure.drawn_by,
        "studied_by": figure.studied_by,
        "files": dict(files),
        "datasets": {
            name: {"command_note": notes[name], "campaigns": [asdict(chain) for chain in found]}
            for name, found in chains.items()
        },
    }


def raw(transcript: Transcript) -> str:
    """What a trial's tools printed, each under its command line."""
    parts = []
    for it in transcript.executions:
        end = "stopped at its limit" if it.timed_out else f"exit code {_known(it.exit_code)}"
        parts.append(f"$ {shlex.join(it.argv or (it.tool,))}    [{end}]")
        parts += [output.rstrip("\n") for output in (it.stdout, it.stderr) if output.strip()]
    return "\n".join(parts)


def _chain(chain: Chain, note: str) -> list[str]:
    told = [
        f"campaign   {chain.campaign} on {chain.testbed}, {chain.evidence} evidence: {chain.title}",
        f"  trials     sha256 {chain.campaign_sha256}",
        f"  dataset    sha256 {chain.dataset_sha256}",
        f"  raw        sha256 {chain.transcripts_sha256}, {len(chain.links)} transcripts",
        f"  kept in    {chain.folder}",
        f"  made by    {chain.command}{f'   ({note})' if note else ''}",
    ]
    told += [f"  session    {_session(session)}" for session in chain.sessions]
    for link in chain.links:
        told += [f"  {line}" for line in _link(link)]
    return told


def _session(session: Session) -> str:
    code = (
        f"commit {session.commit[:10]}{' with changes' if session.dirty else ''}"
        if session.commit
        else "commit not known"
    )
    return ", ".join([*filter(None, (session.hostname, session.system, session.kernel, session.cpu_model)), code])


def _link(link: Link) -> list[str]:
    where = f"{link.file} [{link.member}]" if link.member else link.file
    return [
        f"trial      {link.trial}: {link.status or 'no row'}{f', on {link.host}' if link.host else ''}",
        f"  file       {where}",
        f"  sha256     {link.sha256}",
        *(f"  command    {_executed(executed)}" for executed in link.executed),
    ]


def _executed(executed: Executed) -> str:
    took = "" if executed.wall_s is None else f", {executed.wall_s:.2f} s"
    how = f"{executed.start or 'when is not known'}{took}, exit code {_known(executed.exit_code)}"
    return f"[{how}] {shlex.join(executed.argv)}"


def _known(exit_code: int | None) -> str:
    return "not known" if exit_code is None else str(exit_code)
