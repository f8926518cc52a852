"""Reproduce an archive: run again as many of the campaigns behind its statements as the time
allows, and compare.

The order is fixed. First comes the short form (preset quick) of each campaign with a primary
statement, then that of the others, the shortest first. The remaining time completes them in the
same order. Only campaigns and testbeds that data/campaigns and data/testbeds describe here are
planned. The content of an archive is read and compared, never executed.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from analysis import experiment, paths, running
from analysis.dataset import store
from analysis.descriptions import campaigns
from analysis.evidence import artifact
from analysis.planning import length
from analysis.statements import notebooks
from analysis.watch import reproducing
from analysis.watch.reproducing import CANNOT, TOO_SHORT, StatementVerdict
from analysis.watch.todays_run import at_points_of
from analysis.wording import listed, number
from runners import executables
from runners.records import provenance
from runners.records.journal import Folder, write_whole
from runners.records.plan import Plan
from runners.records.record import FalloffError, Trial


@dataclass(frozen=True)
class Rerun:
    """A campaign as it was `archived`, and the `plan` to run it here; its trials took `seconds`."""

    archived: Plan
    plan: Plan
    seconds: float

    @property
    def takes(self) -> str:
        """How long its trials take, in words."""
        return f"about {number(self.seconds / 60, 2)} minutes"


def reproduce(
    archive: Path, minutes: float, fresh: bool, listen: Callable[[Any], None]
) -> tuple[list[StatementVerdict], Path]:
    """Run what fits into `minutes`; return the verdict on every statement of an archive, and the
    file that keeps them. What a notebook needs beside the archive it reads from the references.
    `fresh` and `listen` are those of `running.run_within`.

    Raises FalloffError in the cases of `archives.opened`, or if no notebook here states anything on
    what the archive holds.
    """
    references = experiment.stored_datasets()
    with artifact.opened(archive) as archived:
        digest = reproducing.digest(archived)
        folders = _of_experiments(archived)
        published = {name: store.read(folder) for name, folder in folders.items()}
        short, whole, not_run = {}, {}, {}
        stated = notebooks.stated(published, references)
        if not stated:
            names = listed([folder.name for folder in archived])
            raise FalloffError(f"no notebook here states anything on {names}: nothing to reproduce")
        for name, folder in folders.items():
            try:
                short[name], whole[name] = (
                    _rerun(Folder(folder), form) for form in ("quick", "full")
                )
            except FalloffError as error:
                not_run[name] = CANNOT, f"{error}."
        primary = {  # the campaigns that notebooks with a primary statement read
            name
            for executed in stated.values()
            if any(statement.primary for statement in executed.statements)
            for name in executed.read
        }
        chosen = choose(short, whole, primary, 60 * minutes)
        for name in short.keys() - chosen.keys():
            not_run[name] = TOO_SHORT, f"There was no time for {name}, {short[name].takes}."
        out = paths.REPRODUCED / digest[:8]
        again, today = {}, {}
        begun = time.monotonic()
        for name, rerun in chosen.items():
            left = 60 * minutes - (time.monotonic() - begun)
            if left <= 0:
                not_run[name] = TOO_SHORT, f"The time was over before {name} began."
                continue
            print(f"{name} on {rerun.plan.testbed['name']}, {rerun.takes}", flush=True)
            try:
                run = running.run_within(rerun.plan, left, out, fresh, listen)
                today[name] = store.read(run)
                again[name] = at_points_of(published[name], today[name])
            except FalloffError as error:
                not_run[name] = CANNOT, f"{error}."
        took = time.monotonic() - begun
    verdicts = reproducing.verdicts(published, stated, again, today, not_run, references)
    host = provenance.host()
    machine = host["cpu_model"] or host["architecture"]
    about = {
        "archive": str(archive),
        "archive_sha256": digest,
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{host['hostname']} ({machine}, kernel {host['kernel']})",
        "minutes": took / 60,
        "described_otherwise": {
            name: keys for name, rerun in chosen.items() if (keys := differences(rerun))
        },
    }
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / reproducing.RECORD, reproducing.as_json(verdicts, about))
    return verdicts, out / reproducing.RECORD


def _of_experiments(archived: Sequence[Path]) -> dict[str, Path]:
    """The folder of each campaign that is described here: the one on the campaign's own testbed,
    else the first."""
    folders: dict[str, Path] = {}
    described = {file.stem for file in executables.described(paths.CAMPAIGNS, "*.toml")}
    for folder in archived:
        plan = Folder(folder).plan()
        if plan.name in described:
            testbed = campaigns.read(plan.name).testbed
            if plan.name not in folders or plan.testbed["name"] == testbed:
                folders[plan.name] = folder
    return folders


def _rerun(folder: Folder, preset: str) -> Rerun:
    """How an archived campaign is run here; raises FalloffError if it cannot be run."""
    archived = folder.plan()
    testbed = archived.testbed["name"]
    # A name from an archive is no path: only what is described here is opened.
    if testbed not in {file.stem for file in executables.described(paths.TESTBEDS, "*.toml")}:
        raise FalloffError(
            f"It ran on testbed {testbed!r}, which is not described here, in data/testbeds"
        )
    planned = running.runnable(archived.name, testbed, preset)
    return Rerun(archived, planned, _seconds(folder, archived, planned))


def _seconds(folder: Folder, archived: Plan, plan: Plan) -> float:
    """The time that a plan's trials take [s], side by side where the testbed lets them, from the
    archive's journal.

    A point takes the median of its archived trials, and HPL in proportion to how much it is slowed;
    a trial that is not in the archive takes what its tool took otherwise.
    """
    took = {note["id"]: note["seconds"] for note in folder.notes() if note["event"] == "trial"}
    of_points: dict[str, list[float]] = {}
    of_tools: dict[str, list[float]] = {}
    for trial in archived.trials():
        if trial.id in took:
            slowed = took[trial.id] / _dilation(trial)
            of_points.setdefault(_place(trial, plan), []).append(slowed)
            of_tools.setdefault(trial.runner, []).append(slowed)
    usual = median(took.values()) if took else 0.0
    seconds = {}
    for trial in plan.trials():
        similar = of_points.get(_place(trial, plan)) or of_tools.get(trial.runner)
        seconds[trial.id] = _dilation(trial) * median(similar) if similar else usual
    # Blocks beyond the last look only replace invalid ones.
    stopping = plan.stopping
    of_look = stopping.blocks_a_session or 1
    blocks = plan.blocks[: stopping.looks[-1] * of_look if stopping.looks else None]
    total = sum(length(plan, trials, seconds) for trials in (plan.preamble, *blocks))
    return total / ((os.cpu_count() or 1) if plan.repeats_itself else 1)


def _place(trial: Trial, plan: Plan) -> str:
    """What trials have in common that take the same time: tool, role, and the levels of a plan's
    factors.
    """
    return json.dumps(
        [trial.runner, trial.role, *(trial.point.get(name) for name in plan.design["factors"])]
    )


def _dilation(trial: Trial) -> float:
    """How many times HPL is slowed down in a trial [1]; 1 for tools whose runs last as long as they
    are told.
    """
    return float(trial.point.get("dilation") or 1) if trial.runner == "hpl" else 1.0


def choose(
    short: Mapping[str, Rerun], whole: Mapping[str, Rerun], primary: set[str], seconds: float
) -> dict[str, Rerun]:
    """The campaigns to run in `seconds`, in order; `primary` are the campaigns with a primary
    statement."""
    order = sorted(short, key=lambda name: (name not in primary, short[name].seconds, name))
    chosen = {}
    for name in order:
        if short[name].seconds <= seconds:
            chosen[name] = short[name]
            seconds -= short[name].seconds
    for name, rerun in chosen.items():
        more = whole[name].seconds - rerun.seconds
        if more <= seconds:
            chosen[name] = whole[name]
            seconds -= max(more, 0.0)
    return chosen


def differences(rerun: Rerun) -> list[str]:
    """The differences between the testbed here and the archive's."""
    was, now = rerun.archived.testbed, rerun.plan.testbed
    return [key for key in {**was, **now} if was.get(key) != now.get(key)]
