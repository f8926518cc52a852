"""The raw output behind a point, read from its campaign's folder when somebody asks for it."""

import json
from functools import lru_cache
from html import escape
from pathlib import Path

from analysis.explorer.sources import Source
from runners import archive
from runners.journal import Folder
from runners.record import Execution, FalloffError, Transcript, transcript_from_json

MOST = 60_000  # characters of one output that a page shows
KEPT = 4  # archives in memory, of a few megabytes each


def transcript(source: Source, trial_id: str) -> Transcript:
    """One trial's transcript; raises FalloffError when it is not beside the dataset, or damaged."""
    if source.transcripts is None:
        raise FalloffError(
            f"The transcripts are not beside {source.name}: `falloff explore` on the campaign's own folder shows them"
        )
    stem = trial_id
    packed = source.transcripts / archive.NAME
    if packed.exists():
        stored = _packed(packed, packed.stat().st_mtime)
        while stem not in stored and "-" in stem:  # the results of one imported file are trials with a number behind
            stem = stem.rpartition("-")[0]
        if stem in stored:
            return transcript_from_json(json.loads(stored[stem]))
    folder, stem = Folder(source.transcripts), trial_id
    finished = folder.finished()
    while stem not in finished and "-" in stem:
        stem = stem.rpartition("-")[0]
    if stem not in finished:
        raise FalloffError(f"{source.transcripts} holds no transcript of trial {trial_id}")
    return folder.transcript(stem)


@lru_cache(maxsize=KEPT)
def _packed(packed: Path, changed: float) -> dict[str, bytes]:
    return dict(archive.read(packed))


def page(found: Transcript) -> str:
    """A transcript as HTML: what was run, what it printed, and the settings read back; all text is escaped."""
    trial = found.trial
    parts = [
        f"<h3>{escape(trial.id)}</h3><p>{escape(trial.runner)}, block {trial.block}, run {trial.order} in it, "
        f"{escape(found.evidence)} evidence, testbed {escape(found.testbed)}</p>"
    ]
    for reason in (found.fault, found.unavailable):
        if reason:
            parts.append(f'<p class="fault">{escape(reason)}</p>')
    parts += [_execution(execution) for execution in found.executions]
    for title, table in (
        ("Settings of the trial", trial.point),
        ("Read back afterwards", found.effective),
        ("Counters", found.counters),
    ):
        if table:
            rows = "".join(
                f"<tr><th>{escape(str(key))}</th><td>{escape(str(value))}</td></tr>" for key, value in table.items()
            )
            parts.append(f"<details><summary>{title}</summary><table>{rows}</table></details>")
    return "".join(parts)


def command_line(execution: Execution) -> str:
    """What was executed, as one line."""
    return " ".join(execution.argv) or execution.tool


def _execution(execution: Execution) -> str:
    code = (
        "stopped at its limit"
        if execution.timed_out
        else "unknown"
        if execution.exit_code is None
        else execution.exit_code
    )
    head = f"<p><code>{escape(command_line(execution))}</code><br>exit code {code}, {execution.wall_s:.2f} s</p>"
    texts = (
        (name, text) for name, text in (("output", execution.stdout), ("errors", execution.stderr)) if text.strip()
    )
    return head + "".join(f'<pre aria-label="{name}">{escape(_cut(text))}</pre>' for name, text in texts)


def _cut(text: str) -> str:
    if len(text) <= MOST:
        return text
    return f"{text[:MOST]}\n... {len(text) - MOST} more characters: the transcript's file has them all"
