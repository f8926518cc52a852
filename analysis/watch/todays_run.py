"""Whether today's shorter run reproduces a notebook's statements. It agrees only where it could
have disagreed.

The engine is that of `falloff reproduce`: the reference is cut to today's points, the notebook's
own cells judge both, and `reproducing.verdict` compares each statement with its twin.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import xarray as xr

from analysis.quoting import as_markdown
from analysis.statements import notebooks
from analysis.statements.exhibit import block_count
from analysis.statements.statement import KEY, Statement, gave_nothing, without_reading
from analysis.watch import reproducing
from analysis.watch.reproducing import NOT_REPRODUCED, REPRODUCED, TOO_SHORT
from analysis.wording import counted, day, listed, number

HEADS = {
    REPRODUCED: "**{run} agrees**",
    NOT_REPRODUCED: "**{run} disagrees**",
    TOO_SHORT: "{run} is too short to judge",
}
FAILED = "failed"  # no trial of the run gave a reading
# What is the same in all sessions of today's run, besides the day.
CODE_AND_MACHINE = ("git_commit", "git_dirty", "cpu_model", "cpus", "kernel")


@dataclass(frozen=True)
class TodaysRun:
    """The verdicts on a notebook's statements of one campaign, and why trials of today's `run`
    `failed`, empty if none did.
    """

    run: xr.Dataset
    verdicts: tuple[reproducing.StatementVerdict, ...]
    failed: str

    @property
    def text(self) -> str:
        """What today's run says of the planned statements, and of how many others, in plain English
        (Markdown).
        """
        called, where = name_of(self.run), when_and_where(self.run)
        if gave_nothing(self.run):
            return f"**{called} failed**: {self.failed} It began on {where}."
        blocks = counted(block_count(self.run), "block")
        lines = []
        for kind, head in HEADS.items():
            of_kind = [(v.statement, v.today) for v in self.verdicts if v.kind == kind and v.today]
            subjects = [
                f"*{statement.subject}*{_result(today)}"
                for statement, today in of_kind
                if statement.primary or today.primary
            ]
            if others := len(of_kind) - len(subjects):
                subjects.append(counted(others, "other statement"))
            if subjects:
                lines.append(f"{head.format(run=called)} ({blocks}): {listed(subjects)}.")
        if self.failed:
            lines.append(f"{called}: {self.failed}")
        return " ".join([*lines, f"It began on {where}."])

    def as_data(self) -> list[dict]:
        """One row for each statement that today's run speaks of; a single one if it failed as a
        whole.
        """
        about = {
            "campaign": self.run.attrs["campaign"],
            "digest": self.run.attrs["campaign_hash"],
            "failed": self.failed,
            "run": name_of(self.run),
            "where": when_and_where(self.run),
        }
        if gave_nothing(self.run):
            return [{**about, "verdict": FAILED}]
        return [
            {
                **about,
                "subject": verdict.statement.subject,
                "primary": verdict.statement.primary,
                "verdict": verdict.kind,
                "reason": verdict.reason,
                "today": verdict.today.as_data(),
                "ratio": verdict.compared and verdict.compared.ratio,
                "interval_of_ratio": verdict.compared and verdict.compared.interval,
            }
            for verdict in self.verdicts
            if verdict.today
        ]

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict, dict]:
        return {"text/markdown": as_markdown(self.text)}, {
            KEY: {"markdown": self.text, "today": self.as_data()}
        }


def name_of(run: xr.Dataset) -> str:
    """What a run is called: today's only on the day on which it began, else by that day."""
    started = run.attrs["started"]
    if started and datetime.fromisoformat(started).astimezone().date() != date.today():
        return f"The run of {day(started)}"
    return "Today's run"


def is_of_today(sessions: Collection[Mapping], begins: Collection[float], host: Mapping) -> bool:
    """Whether all sessions of a run began today, with the code and on the machine that `host`
    describes.

    `sessions` are from the provenance, `begins` the times [s since the epoch] at which they began.
    """
    hosts = [session.get("host", {}) for session in sessions]
    days = {date.fromtimestamp(begin) for begin in begins}
    return days <= {date.today()} and all(
        other.get(name) == host[name] for other in hosts for name in CODE_AND_MACHINE
    )


def when_and_where(run: xr.Dataset) -> str:
    """When a run began, with which commit, on which machine and at which load, in words; what was
    not recorded is left out.
    """
    host = run.falloff.host
    changed = " with changes" if host.get("git_dirty") else ""
    facts = [
        day(run.attrs["started"]),
        f"commit {host['git_commit'][:7]}{changed}" if host.get("git_commit") else "",
        host.get("cpu_model") or host.get("architecture"),
        counted(host["cpus"], "processor") if host.get("cpus") else "",
        f"kernel {host['kernel']}" if host.get("kernel") else "",
        f"load {number(host['load'], 2)}" if host.get("load") is not None else "",
    ]
    return ", ".join(filter(None, facts))


def _result(today: Statement) -> str:
    """The run's number beside a statement; empty if there is none."""
    return "" if today.estimate is None else f" (now {reproducing.value_in_words(today)})"


def compare(
    file: Path, stored: Mapping[str, xr.Dataset], campaign: str, run: xr.Dataset
) -> TodaysRun:
    """Compare a notebook's statements on a campaign's reference with those on a run of today.

    `stored` has the references by campaign, which the notebook reads beside the run.
    """
    if gave_nothing(run):
        return TodaysRun(run, (), without_reading(run))
    reference = stored[campaign]
    archived, same, new = (
        reproducing.by_subject(notebooks.statements(file, {**stored, campaign: data})[0])
        for data in (reference, at_points_of(reference, run), run)
    )
    margin = reproducing.margin_of(reference)
    verdicts = [
        reproducing.verdict(file.stem, statement, same.get(subject), new.get(subject), margin, "")
        for subject, statement in archived.items()
        if statement.campaign == campaign
    ]
    return TodaysRun(run, tuple(reproducing.together(verdicts)), without_reading(run))


def at_points_of(reference: xr.Dataset, run: xr.Dataset) -> xr.Dataset:
    """A reference at the points of another run, with that run's design and the reference's looks.

    Two points are the same if the levels of all factors are. Trials that are no points, such as
    surveys, stay.
    """
    factors = list(run.falloff.design.factors)
    wanted = set(_levels(run.falloff.points, factors))
    is_wanted = [
        role != "point" or levels in wanted
        for levels, role in zip(_levels(reference, factors), reference.role.values)
    ]
    looks = {"looks", "one_sided", "blocks_a_session"}
    planned, design = (dataset.falloff.table("design") for dataset in (reference, run))
    design = {name: value for name, value in design.items() if name not in looks}
    design |= {name: planned[name] for name in looks & planned.keys()}
    return reference.isel(trial=is_wanted).assign_attrs(design=json.dumps(design))


def _levels(dataset: xr.Dataset, factors: list[str]) -> list[tuple]:
    """The levels of these factors in each trial."""
    columns = [dataset[name].values.tolist() for name in factors if name in dataset.variables]
    return list(zip(*columns)) if columns else [()] * dataset.sizes["trial"]
