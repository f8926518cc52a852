"""Verify that a campaign's folder is unchanged: its files by their digests, its dataset value by
value."""

import json
import math
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from analysis import paths
from analysis.dataset import store
from runners.records import archive, manifest
from runners.records.journal import Folder, read_transcript
from runners.records.record import FalloffError

# A parser's fault appears in every trial, so this many lines are enough.
MOST_VALUES = 24
PRECISION = 1e-9  # relative, of two computations of one number


@dataclass(frozen=True)
class Check:
    """The result of checking one campaign's folder.

    `differences` are one line each, empty if everything agrees. `unknown` says why the check cannot
    decide, empty if it can. `trials` is the number of rows of the rebuilt dataset, 0 if it cannot
    be rebuilt. `unreadable` are the differences about files that could not be read.
    """

    folder: Path
    trials: int
    differences: tuple[str, ...]
    unknown: str
    unreadable: tuple[str, ...]


def folders(given: Sequence[Path] = ()) -> list[Path]:
    """The campaigns in the given folders, else in data/reference and data/raw; raises FalloffError
    if there are none."""
    within = given or (paths.REFERENCE, paths.RAW)
    signs = ("trials.json", manifest.JOURNAL, manifest.NAME)
    candidates = [folder for top in within for folder in (top, *sorted(top.glob("*/")))]
    campaigns = [folder for folder in candidates if any((folder / sign).exists() for sign in signs)]
    if not campaigns:
        names = ", ".join(map(str, within))
        raise FalloffError(f"there is no campaign's folder (with a trials.json) in {names}")
    return list(dict.fromkeys(campaigns))


def check(folder: Path) -> Check:
    """Check a folder: its files against the recorded digests, its trials against plan and journal,
    and the dataset rebuilt from the transcripts against the stored one."""
    unknown, trials, lines, unreadable = "", 0, list[str](), list[str]()
    # Check each part on its own, so that damage in one does not hide differences in another.
    campaign = Folder(folder)
    for part in (
        lambda: manifest.differences(folder),
        campaign.damage,
        lambda: _against_the_plan(campaign),
    ):
        with _noting(unreadable):
            lines += part()
    with _noting(unreadable):
        if not manifest.read(folder):
            unknown = (
                f"no {manifest.NAME}: nothing shows whether a file was changed (--renew records it)"
            )
    with _noting(unreadable):
        rebuilt, recorded = store.assemble(folder), folder / manifest.DATASET
        trials, changed = rebuilt.sizes["trial"], list[str]()
        if recorded.exists():
            changed = changed_values(store.load(recorded), rebuilt)
        elif (folder / archive.NAME).exists():
            unknown = unknown or f"no {manifest.DATASET}: its values cannot be compared"
        # Single values first, because a refused trial has many list members.
        changed.sort(key=lambda line: "[" in line)
        lines += [f"{manifest.DATASET}: {line}" for line in changed[:MOST_VALUES]]
        if len(changed) > MOST_VALUES:
            lines.append(f"{manifest.DATASET}: and {len(changed) - MOST_VALUES} values more")
    lines = list(dict.fromkeys([*lines, *unreadable]))
    return Check(folder, trials, tuple(lines), unknown, tuple(unreadable))


@contextmanager
def _noting(lines: list[str]) -> Iterator[None]:
    """Add a line about what cannot be read, and continue."""
    try:
        yield
    except FalloffError as error:
        lines.append(f"not all can be compared: {error}")
    except OSError as error:
        lines.append(f"not all can be compared: {error.filename}: {error.strerror}")


def renew(folder: Path) -> None:
    """Record a folder in its present state: its dataset's values, then the digests of its files."""
    store.save(store.assemble(folder), folder / manifest.DATASET)
    manifest.write(folder)


def text(result: Check) -> str:
    """A check as lines: the folder with its verdict, then the differences and what could not be
    decided."""
    verdict = "DIFFERS" if result.differences else "unknown" if result.unknown else "ok"
    lines = [f"{verdict:8} {os.path.relpath(result.folder)}: {result.trials} trials rebuilt"]
    lines += [f"         - {line}" for line in result.differences]
    lines += [f"         ({result.unknown})"] if result.unknown else []
    return "\n".join(lines)


def _against_the_plan(folder: Folder) -> list[str]:
    """Differences between the plan, the journal and the transcripts about the same trials."""
    plan, notes = folder.plan(), folder.notes()
    planned = {trial.id: trial for trial in plan.trials()}
    present, lines = {}, list[str]()
    for name, text in folder.texts():
        with _noting(lines):
            present[name] = read_transcript(text, folder.place(name)).trial
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
            plans = vars(planned[name]).items()
            changed = ", ".join(key for key, value in plans if value != vars(trial)[key])
            lines.append(f"transcript {name} is of another trial than the plan's: {changed}")
    for digest in dict.fromkeys(note["digest"] for note in notes if note["event"] == "session"):
        if digest != plan.digest:
            ran = f"a session of the journal ran the trials {digest[:16]}"
            lines.append(f"{ran}, the plan is {plan.digest[:16]}")
    return lines


def changed_values(earlier: xr.Dataset, now: xr.Dataset) -> list[str]:
    """Every value that differs between two datasets of one campaign, with its variable and trial, a
    line each.

    Variables without any known value are left out, with the dims that only they have, so that a
    schema that grows changes nothing.
    """
    earlier, now = _known(earlier), _known(now)
    rows, rows_now = _rows(earlier), _rows(now)
    lines = [f"trial {row} has no row any more" for row in rows if row not in rows_now]
    lines += [f"trial {row} has a row that was not there" for row in rows_now if row not in rows]
    for name in earlier.variables.keys() & now.variables.keys():
        was, is_now = (", ".join(map(str, side[name].dims)) for side in (earlier, now))
        lines += [f"{name}: its dims were {was}, they are {is_now}"] if was != is_now else []
    old, new = _cells(earlier, rows, rows_now), _cells(now, rows_now, rows)
    for place in dict.fromkeys([*old, *new]):
        recorded, value = old.get(place), new.get(place)
        if not _is_same(recorded, value):
            lines.append(f"{place}: {_shown(recorded)} was recorded, it is {_shown(value)}")
    return lines


def _known(dataset: xr.Dataset) -> xr.Dataset:
    """The variables that have a known value, and the labels of their dims."""
    values = {name: array.values for name, array in dataset.variables.items()}
    # NaN is not equal to itself.
    measured = [
        name for name in values if ((values[name] == values[name]) & (values[name] != "")).any()
    ]
    return dataset.reset_coords()[[name for name in measured if name not in dataset.dims]]


def _is_same(was: Any, value: Any) -> bool:
    """Whether two values are equal, numbers to print precision: another Python sums with other last
    digits.
    """
    if isinstance(was, list) and isinstance(value, list):
        return len(was) == len(value) and all(map(_is_same, was, value))
    if isinstance(was, float) and isinstance(value, float):
        both_unknown = math.isnan(was) and math.isnan(value)
        return both_unknown or math.isclose(was, value, rel_tol=PRECISION)
    return was == value


def _rows(dataset: xr.Dataset) -> dict[str, int]:
    """The row of each trial. A trial with several results has a row for each, numbered from the
    second on."""
    rows: dict[str, int] = {}
    seen: Counter[str] = Counter()
    for row, trial in enumerate(dataset.trial_id.values if "trial_id" in dataset else ()):
        seen[trial] += 1
        rows[trial if seen[trial] == 1 else f"{trial} result {seen[trial]}"] = row
    return rows


def _cells(dataset: xr.Dataset, rows: Mapping[str, int], others: Collection[str]) -> dict[str, Any]:
    """Each known value by its place in words, for the trials that are also in `others`. The labels
    of a dim count as one value."""
    cells = {}
    for name in sorted(dataset.variables, key=str):
        array = dataset[name]
        if array.dims[:1] != ("trial",):
            cells[f"labels {name}"] = array.values.tolist()
            continue
        for trial in (name for name in rows if name in others):
            for place, value in np.ndenumerate(array.values[rows[trial]]):
                if value == value and value != "":
                    indices = "".join(f"[{number}]" for number in place)
                    cells[f"{name}{indices} of {trial}"] = np.array(value).item()
    return cells


def _shown(value: Any) -> str:
    written = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return written if len(written) <= 120 else f"{written[:120]} ..."


def only_folder(folder: Path) -> Path:
    """The folder itself if it is a campaign's, else the only campaign's in it.

    Raises FalloffError if there are several.
    """
    if (folder / "trials.json").exists():
        return folder
    several = folders([folder])
    if len(several) > 1:
        raise FalloffError(
            f"{folder} holds several campaigns: name one of {', '.join(map(str, several))}"
        )
    return several[0]


def last_run(folder: Path) -> tuple[float, str]:
    """The sort key of a campaign's runs: the time of the journal's last note [s since 1970], then
    the folder's name.
    """
    notes = Folder(folder).notes()
    return (notes[-1]["at"] if notes else 0.0), folder.name


def measured_folders(folder: str) -> list[str]:
    """Return the campaign folders below `folder` (or itself), without simulated ones; a name that
    is no folder is returned as it is.
    """
    place = Path(folder)
    if not place.is_dir() or (place / "trials.json").exists():
        return [folder]
    return [
        str(campaign)
        for campaign in folders([place])
        if Folder(campaign).plan().testbed["kind"] != "simulated"
    ]
