"""Whether a campaign's folder is still what it was: its files by their digests, its dataset value by value."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


from analysis import paths, store
from analysis.evidence import content
from runners import manifest
from runners.journal import Folder, read_transcript
from runners.plan import Plan
from runners.record import FalloffError

# A fault of a parser is in every trial; so many lines show it.
LINES_OF_ONE_KIND = 12


@dataclass(frozen=True)
class Check:
    """What a check of one campaign's folder found.

    `differences` are in a line each, empty when all agrees; `unknown` says what could not be compared, since nothing
    was recorded. `trials` is how many rows the rebuilt dataset has, 0 when it could not be rebuilt.
    """

    folder: Path
    trials: int
    differences: tuple[str, ...]
    unknown: tuple[str, ...]


def folders(given: Sequence[Path] = ()) -> list[Path]:
    """The campaigns in the given folders, else in data/reference and data/raw; raises FalloffError without any."""
    within = given or (paths.REFERENCE, paths.RAW)
    found = [file.parent for top in within for file in sorted((*top.glob("trials.json"), *top.glob("*/trials.json")))]
    if not found:
        raise FalloffError(f"there is no campaign's folder (with a trials.json) in {', '.join(map(str, within))}")
    return list(dict.fromkeys(found))


def check(folder: Path, datasets: Path = paths.DATASETS) -> Check:
    """Compare a folder with its recorded digests, its trials with its plan and journal, and its dataset, rebuilt from
    the transcripts, with the one that was kept: in the folder, or as netCDF in `datasets`."""
    unknown = (
        []
        if manifest.read(folder)
        else [f"no {manifest.NAME}: whether a file was changed cannot be told (--renew records it)"]
    )
    told = [*manifest.differences(folder)]
    try:
        told += _against_the_plan(Folder(folder))
        rebuilt = content.of(store.assemble(folder))
    except FalloffError as error:
        return Check(
            folder, 0, tuple(dict.fromkeys([*told, f"the dataset cannot be rebuilt: {error}"])), tuple(unknown)
        )
    earlier = list(_earlier(folder, datasets))
    if not earlier:
        unknown.append("no dataset was kept: what its values were cannot be told (--renew keeps it)")
    for where, kept in earlier:
        told += _shortened([f"{where}: {line}" for line in content.differences(kept, rebuilt)])
    return Check(folder, len(rebuilt["trial_id"]["values"]), tuple(told), tuple(unknown))


def renew(folder: Path) -> None:
    """Record a folder as it is now: its dataset's values, then the digests of its files."""
    content.keep(store.assemble(folder), folder)
    manifest.write(folder)


def text(found: Check) -> str:
    """A check as lines: the folder with its verdict, then what differs and what could not be told."""
    verdict = "DIFFERS" if found.differences else "unknown" if found.unknown else "ok"
    name = os.path.relpath(found.folder)
    lines = [f"{verdict:8} {name}: {found.trials} trials rebuilt"]
    lines += [f"         - {line}" for line in found.differences]
    lines += [f"         ({line})" for line in found.unknown]
    return "\n".join(lines)


def _earlier(folder: Path, datasets: Path) -> Iterator[tuple[str, content.Content]]:
    """Each dataset that was kept of this campaign, and its name."""
    kept = content.kept(folder)
    if kept:
        yield manifest.DATASET, kept
    file = datasets / f"{folder.name}.nc"
    if file.exists():
        try:
            with store.opened(file) as found:
                written = content.of(found.load())
        except (OSError, ValueError) as error:
            raise FalloffError(f"{file} is not a readable netCDF-4 dataset: {error}") from None
        yield file.name, written


def _against_the_plan(folder: Folder) -> list[str]:
    """What the plan, the journal and the transcripts say differently of the same trials."""
    plan, notes = folder.plan(), folder.notes()
    planned = {trial.id: trial for trial in plan.trials()}
    there = {name: read_transcript(text, name).trial for name, text in folder.texts()}
    noted = dict.fromkeys(note["id"] for note in notes if note["event"] == "trial")
    told = [f"trial {name} is in the journal, and its transcript is lost" for name in noted if name not in there]
    told += [f"transcript {name} is of no trial of the plan" for name in there if name not in planned]
    told += [
        f"transcript {name} is of another trial than the plan's: {_apart(trial, planned[name])}"
        for name, trial in there.items()
        if name in planned and trial != planned[name]
    ]
    return told + _of_other_plans(plan, notes)


def _of_other_plans(plan: Plan, notes: list[dict]) -> list[str]:
    others = dict.fromkeys(note["digest"] for note in notes if note["event"] == "session") if notes else {}
    return [
        f"a session of the journal ran the trials {other[:16]}, the plan is {plan.digest[:16]}"
        for other in others
        if other != plan.digest
    ]


def _apart(trial, planned) -> str:
    """The fields in which a trial is not the planned one."""
    return ", ".join(name for name, value in vars(trial).items() if value != getattr(planned, name))


def _shortened(lines: list[str]) -> list[str]:
    """At most so many lines of one variable, and how many more there are."""
    kinds: dict[str, list[str]] = {}
    for line in lines:
        kinds.setdefault(line.split(" of ")[0].split("[")[0], []).append(line)
    shortened = []
    for kind, told in kinds.items():
        shortened += told[:LINES_OF_ONE_KIND]
        if len(told) > LINES_OF_ONE_KIND:
            shortened.append(f"{kind}: and {len(told) - LINES_OF_ONE_KIND} values more")
    return shortened
