"""What is shipped can be run again: each campaign of data/reference ran on one commit that the
history has, without changes, and data/ still describes what it ran.

Those of which this does not hold yet are in data/reference/to_run_again.csv, each with its reasons
and with no other. `python tests/test_references.py` writes that file anew.
"""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from analysis import paths, planning
from runners.records import provenance, renamed
from runners.records.journal import Folder
from runners.records.plan import Plan
from runners.records.record import Trial

FILE = paths.REFERENCE / "to_run_again.csv"
COLUMNS = ("reference", "commit", "plan")
FOLDERS = sorted(file.parent for file in paths.REFERENCE.glob("*/trials.json"))
Point = tuple[tuple[str, Any], ...]
# Words about a number or a name, which nothing measures.
WORDS = ("name", "short", "source", "extends")


def differences(stored: Plan, today: Plan) -> list[str]:
    """What data/ says of a campaign and was not run so: parts of the testbed, the networks and the
    design, settings of the points, blocks.

    Of no account are words; networks that no trial uses; rules of the design that nothing reads
    any more; trials of roles that are no longer planned; and order, where a simulation repeats
    itself. The kind of a testbed is compared by its present name.
    """
    was, now = _described(stored, today), _described(today, today)
    found = [name for name in sorted(was.keys() | now.keys()) if was.get(name) != now.get(name)]
    if len(stored.blocks) != len(today.blocks):
        found.append(f"{len(stored.blocks)} blocks, not {len(today.blocks)}")
    settings = dict[str, None]()
    for before, after in zip((stored.preamble, *stored.blocks), (today.preamble, *today.blocks)):
        old, new = _points(before, today), _points(after, today)
        if old != new:
            names = {name for point in old + new for name, _ in point}
            settings |= {
                name: None
                for name in sorted(names)
                if Counter(map(_of(name), old)) != Counter(map(_of(name), new))
            } or {"order of trials": None}
    return [*found, *settings]


def _of(name: str) -> Callable[[Point], Any]:
    return lambda point: dict(point).get(name)


def _points(trials: Iterable[Trial], today: Plan) -> list[Point]:
    """The settings of a block's trials that are still planned, in order where this matters."""
    planned = {trial.role for trial in today.trials()}
    points = [
        tuple(sorted({**trial.point, "role": trial.role, "tool": trial.runner}.items()))
        for trial in trials
        if trial.role in planned
    ]
    return sorted(points, key=repr) if today.repeats_itself else points


def _described(plan: Plan, today: Plan) -> dict[str, Any]:
    """Each number and name of a plan, by its place, without what is of no account."""
    testbed, used = {**plan.testbed}, today.interconnects.keys()
    testbed["kind"] = renamed.TESTBED_KINDS.get(testbed["kind"], testbed["kind"])
    for name in ("network", "networks"):
        tables = testbed.get(name, {})
        testbed[name] = {network: tables[network] for network in tables.keys() & used}
    # Levels are compared as settings of the points.
    design = {name: plan.design.get(name) for name in today.design if name != "factors"}
    whole = {"testbed": testbed, "network": plan.interconnects, "design": design}
    return dict(_flat(json.loads(json.dumps(whole))))


def _flat(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        yield place, value
        return
    for name, part in value.items():
        if name not in WORDS:
            yield from _flat(part, f"{place}.{name}".lstrip("."))


def found(folder: Path, of: str) -> str:
    """What a column of the file has to say of a reference: why it has to be run again, empty if it
    does not."""
    campaign = Folder(folder)
    if of == "commit":
        return ", ".join(provenance.faults(campaign.provenance()["sessions"]))
    stored = campaign.plan()
    return ", ".join(
        differences(stored, planning.plan_campaign(stored.name, stored.testbed["name"], "full"))
    )


def named() -> dict[str, dict[str, str]]:
    """The rows of the file by reference."""
    with open(FILE, encoding="utf-8", newline="") as file:
        return {row["reference"]: row for row in csv.DictReader(file)}


def is_as_named(column: str) -> None:
    """The file names just the references that fail, with the reasons that they have."""
    fails = {folder.name: reason for folder in FOLDERS if (reason := found(folder, column))}
    assert {name: row[column] for name, row in named().items() if row[column]} == fails


def test_every_reference_is_of_one_commit_of_the_history():
    """Without changes; what is not so is named, and what is named is not so."""
    if not provenance.has_history():
        pytest.skip("not a git clone with its whole history: commits cannot be looked up")
    is_as_named("commit")


def test_data_describes_what_every_reference_ran():
    """Each campaign, resolved today; what differs is named, and what is named differs."""
    is_as_named("plan")


def test_only_shipped_references_are_named_each_once_and_with_a_reason():
    """A reference that was run again, and one that is gone, must leave the file."""
    with open(FILE, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    names = [row[0] for row in rows[1:]]
    assert tuple(rows[0]) == COLUMNS
    assert names == sorted(set(names)) and set(names) <= {folder.name for folder in FOLDERS}
    assert all(any(reasons) for _, *reasons in rows[1:])
