"""Whether a campaign's folder is still what it was: its files by their digests, its dataset value by value."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis import paths, store
from analysis.evidence import content
from runners import manifest
from runners.journal import Folder, read_transcript
from runners.record import FalloffError

# A fault of a parser is in every trial; so many lines show it.
MOST_VALUES = 24


@dataclass(frozen=True)
class Check:
    """What a check of one campaign's folder found.

    `differences` are in a line each, empty when all agrees; `unknown` says why nothing can be told, if so. `trials` is
    how many rows the rebuilt dataset has, 0 where it cannot be rebuilt.
    """

    folder: Path
    trials: int
    differences: tuple[str, ...]
    unknown: str


def folders(given: Sequence[Path] = ()) -> list[Path]:
    """The campaigns in the given folders, else in data/reference and data/raw; raises FalloffError without any."""
    within = given or (paths.REFERENCE, paths.RAW)
    files = [
        file
        for top in within
        for file in sorted((*top.glob("trials.json"), *top.glob("*/trials.json")))
    ]
    if not files:
        names = ", ".join(map(str, within))
        raise FalloffError(f"there is no campaign's folder (with a trials.json) in {names}")
    return list(dict.fromkeys(file.parent for file in files))


def check(folder: Path) -> Check:
    """Compare a folder with its recorded digests, its trials with its plan and journal, and its dataset, rebuilt from
    the transcripts, with the one that is kept there."""
    unknown, trials, lines = "", 0, []
    try:
        if not manifest.read(folder):
            remedy = "(--renew records it)"
            unknown = f"no {manifest.NAME}: whether a file was changed cannot be told {remedy}"
        lines += [*manifest.differences(folder), *_against_the_plan(Folder(folder))]
        rebuilt = content.of(store.assemble(folder))
        trials = len(rebuilt["trial_id"]["values"])
        if kept := content.kept(folder):
            # Single values first: one that is refused has many members of lists.
            apart = sorted(content.differences(kept, rebuilt), key=lambda line: "[" in line)
            lines += [f"{manifest.DATASET}: {line}" for line in apart[:MOST_VALUES]]
            if len(apart) > MOST_VALUES:
                lines.append(f"{manifest.DATASET}: and {len(apart) - MOST_VALUES} values more")
    except FalloffError as error:
        lines.append(f"not all can be compared: {error}")
    return Check(folder, trials, tuple(dict.fromkeys(lines)), unknown)


def renew(folder: Path) -> None:
    """Record a folder as it is now: its dataset's values, then the digests of its files."""
    content.keep(store.assemble(folder), folder)
    manifest.write(folder)


def text(found: Check) -> str:
    """A check as lines: the folder with its verdict, then what differs and what could not be told."""
    verdict = "DIFFERS" if found.differences else "unknown" if found.unknown else "ok"
    lines = [f"{verdict:8} {os.path.relpath(found.folder)}: {found.trials} trials rebuilt"]
    lines += [f"         - {line}" for line in found.differences]
    lines += [f"         ({found.unknown})"] if found.unknown else []
    return "\n".join(lines)


def _against_the_plan(folder: Folder) -> list[str]:
    """What the plan, the journal and the transcripts say differently of the same trials."""
    plan, notes = folder.plan(), folder.notes()
    planned = {trial.id: trial for trial in plan.trials()}
    present = {name: read_transcript(text, name).trial for name, text in folder.texts()}
    lines = []
    for name in dict.fromkeys(note["id"] for note in notes if note["event"] == "trial"):
        if name not in present:
            lines.append(f"trial {name} is in the journal, and its transcript is lost")
    for name, count in folder.results().items():
        if count > 1:
            lines.append(f"trial {name} has {count} results in the journal: two runs wrote at once")
    for name, trial in present.items():
        if name not in planned:
            lines.append(f"transcript {name} is of no trial of the plan")
        elif trial != planned[name]:
            other = vars(planned[name])
            apart = ", ".join(
                field for field, value in vars(trial).items() if value != other[field]
            )
            lines.append(f"transcript {name} is of another trial than the plan's: {apart}")
    for digest in dict.fromkeys(note["digest"] for note in notes if note["event"] == "session"):
        if digest != plan.digest:
            ran = f"a session of the journal ran the trials {digest[:16]}"
            lines.append(f"{ran}, the plan is {plan.digest[:16]}")
    return lines
