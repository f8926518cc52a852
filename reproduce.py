"""Runs again what an archive's findings rest on, as much of it as a time allows, and keeps what that says of each finding.

Only descriptions of this place are run, in data/campaigns and data/testbeds: what an archive says may be read and compared,
never executed.
"""

import os
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath

import xarray as xr

import experiment
from analysis import experiments, paths, reproducing, store
from analysis.evidence import verify
from analysis.reproducing import CANNOT, Verdict
from analysis.statistics.reproduction import TOO_SHORT
from analysis.wording import listed, number
from runners import manifest, provenance
from runners.campaign import Listener, ignore
from runners.journal import Folder, write_whole
from runners.plan import Plan
from runners.record import FalloffError

# What an archive may unpack to; the reference takes some 30 MB.
MOST_BYTES = 4e9


@dataclass(frozen=True)
class Rerun:
    """A campaign of an archive and how it is run here: `plan`, with the `seconds` that it takes by the archive's journal."""

    campaign: str
    archived: Plan
    plan: Plan
    seconds: float


@dataclass(frozen=True)
class Reproduced:
    """What came of it: every verdict, and the file that keeps them."""

    verdicts: list[Verdict]
    file: Path


@contextmanager
def campaigns(archive: Path) -> Iterator[list[Path]]:
    """The campaigns' folders of an archive: a zip file of `falloff archive`, a folder, or a reference's name.

    Of a whole archive they are its reference's, else its runs. Raises FalloffError where there is none, or what was
    recorded of one was changed.
    """
    named = paths.REFERENCE / archive
    if archive.is_file():
        with tempfile.TemporaryDirectory(prefix="falloff-") as unpacked:
            _unpack(archive, Path(unpacked))
            yield _checked(archive, Path(unpacked))
    elif archive.is_dir() or named.is_dir():
        yield _checked(archive, archive if archive.is_dir() else named)
    else:
        raise FalloffError(
            f"there is no {archive}: name a file of `falloff archive`, a folder of campaigns, or a folder in data/reference"
        )


def _unpack(archive: Path, target: Path) -> None:
    """Unpack what an archive has below data/reference and data/raw."""
    try:
        with zipfile.ZipFile(archive) as packed:
            wanted = [
                entry
                for entry in packed.infolist()
                if {"reference", "raw"} & set(PurePosixPath(entry.filename).parts)
            ]
            if (size := sum(entry.file_size for entry in wanted)) > MOST_BYTES:
                raise FalloffError(
                    f"{archive} unpacks to {size / 1e9:.0f} GB: unpack it yourself, and name one of its folders"
                )
            packed.extractall(target, wanted)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise FalloffError(f"{archive} is no readable zip file ({error}): fetch it again") from None


def _checked(archive: Path, top: Path) -> list[Path]:
    if (top / "trials.json").exists():
        within = {top}
    else:
        within = {file.parent.parent for file in top.rglob("trials.json")}
        references = {folder for folder in within if folder.name == paths.REFERENCE.name}
        within = references or within
    found = verify.folders(sorted(within)) if within else []
    if not found:
        raise FalloffError(f"{archive} holds no campaign's folder (with a trials.json)")
    changed = [f"{one.name}: {line}" for one in found for line in manifest.differences(one)]
    if changed:
        raise FalloffError(
            f"{archive} is not as it was recorded: {changed[0]}. `falloff verify` names all; fetch it again"
        )
    return found


def run(
    archive: Path, minutes: float, fresh: bool = False, listen: Listener = ignore
) -> Reproduced:
    """Run what fits into so many minutes, and judge every finding of an archive by it.

    The rule is fixed: first the short form (preset quick) of each campaign with a primary finding, then of the others, the
    shortest first; what time is then left makes them whole, in the same order. Trials that an earlier call ran are used,
    unless it is to be `fresh`. Raises FalloffError as `campaigns` does, or when no experiment here reads what is in it.
    """
    with campaigns(archive) as found:
        digest = reproducing.digest(found)
        folders = _of_experiments(found)
        published = {name: store.read(folder) for name, folder in folders.items()}
        findings = [
            finding
            for module in experiments.modules()
            for finding in reproducing.findings(module, published)[0]
        ]
        if not findings:
            names = listed([folder.name for folder in found])
            raise FalloffError(
                f"no experiment here finds anything in {names}: nothing to reproduce"
            )
        primary = _primary({finding.experiment for finding in findings if finding.primary})
        short, whole = {}, {}
        not_run: dict[str, tuple[str, str]] = {}  # kind of verdict and reason
        for name, folder in folders.items():
            try:
                short[name], whole[name] = (_rerun(folder, preset) for preset in ("quick", "full"))
            except FalloffError as error:
                not_run[name] = CANNOT, f"{error}."
        chosen = choose(short, whole, primary, 60 * minutes)
        out = paths.REPRODUCED / digest[:8]
        again, today = {}, {}
        begun = time.monotonic()
        for name in short.keys() - chosen.keys():
            takes = number(short[name].seconds / 60, 2)
            not_run[name] = TOO_SHORT, f"There was no time for {name}, about {takes} minutes."
        for name, rerun in chosen.items():
            left = 60 * minutes - (time.monotonic() - begun)
            if left <= 0 and not experiment.folder_of(rerun.plan, out).path.exists():
                not_run[name] = TOO_SHORT, f"The time was over before {name} began."
                continue
            try:
                today[name] = _run(rerun, out, left, fresh, listen)
                again[name] = reproducing.cut(published[name], rerun.archived, rerun.plan)
            except FalloffError as error:
                not_run[name] = CANNOT, f"{error}."
        took = time.monotonic() - begun
        told = reproducing.verdicts(published, again, today, not_run)
    host = provenance.host()
    about = {
        "archive": str(archive),
        "archive_sha256": digest,
        "ended": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": f"{host['hostname']} ({host['cpu_model'] or host['architecture']}, kernel {host['kernel']})",
        "minutes": took / 60,
        "described_otherwise": {name: differences(rerun) for name, rerun in chosen.items()},
    }
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / reproducing.RECORD, reproducing.as_json(told, about))
    return Reproduced(told, out / reproducing.RECORD)


def _of_experiments(found: Sequence[Path]) -> dict[str, Path]:
    """Of each campaign that an experiment reads the folder on the campaign's own testbed, else the first."""
    folders: dict[str, Path] = {}
    for folder in found:
        plan = Folder(folder).plan()
        if plan.name not in experiments.all_campaigns():
            continue
        own = experiment.read_toml(paths.CAMPAIGNS / f"{plan.name}.toml", "campaign")
        if plan.name not in folders or plan.testbed["name"] == own.get("testbed", "emulated"):
            folders[plan.name] = folder
    return folders


def _primary(names: set[str]) -> set[str]:
    """The campaigns that the experiments of these names cannot do without."""
    modules = [one for one in experiments.modules() if one.__name__.rpartition(".")[2] in names]
    return {
        campaign
        for module in modules
        for campaign, is_needed in experiments.campaigns(module).items()
        if is_needed
    }


def _rerun(folder: Path, preset: str) -> Rerun:
    """How an archived campaign is run here; raises FalloffError where it cannot be."""
    archived = Folder(folder).plan()
    # A name from an archive is no path: only what is described here is opened.
    if archived.testbed["name"] not in {file.stem for file in paths.TESTBEDS.glob("*.toml")}:
        where = "not described here, in data/testbeds"
        raise FalloffError(f"It ran on testbed {archived.testbed['name']!r}, which is {where}")
    plan = experiment.plan_campaign(archived.name, archived.testbed["name"], preset)
    if missing := experiment.obstacles(plan):
        raise FalloffError("; ".join(missing))
    return Rerun(archived.name, archived, plan, _seconds(Folder(folder), archived, plan))


def _seconds(folder: Folder, archived: Plan, plan: Plan) -> float:
    """What a plan's trials take, from the archive's journal; a point that is not there takes as long as the mean."""
    took = {note["id"]: note["seconds"] for note in folder.notes() if note["event"] == "trial"}
    factors = list(plan.design["factors"])
    by_point: dict[str, list[float]] = {}
    for trial in archived.trials():
        if trial.id in took and trial.role == "point":
            levels = reproducing.levels(trial.point, factors)
            by_point.setdefault(levels, []).append(took[trial.id])
    mean = sum(took.values()) / len(took) if took else 0.0
    total = sum(took.get(trial.id, mean) for trial in plan.preamble)
    looks = (
        plan.stopping.looks
    )  # of more blocks than the last look only the invalid ones are made up for
    for block in plan.blocks[: looks[-1] if looks else None]:
        for trial in block:
            of_point = by_point.get(reproducing.levels(trial.point, factors), [mean])
            total += sum(of_point) / len(of_point)
    at_once = (os.cpu_count() or 1) if plan.testbed["kind"] == "simulated" else 1
    return total / at_once


def choose(
    short: Mapping[str, Rerun], whole: Mapping[str, Rerun], primary: set[str], seconds: float
) -> dict[str, Rerun]:
    """What is run in so many seconds, in order; `primary` are the campaigns with a primary finding."""
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


def _run(rerun: Rerun, out: Path, left: float, fresh: bool, listen: Listener) -> xr.Dataset:
    """The dataset of a campaign's new run in at most the time that is left [s], but for one block."""
    folder = experiment.folder_of(rerun.plan, out)
    is_there = folder.path.exists() and not fresh
    # The budget is a campaign's from its first trial on.
    spent = (
        sum(note["seconds"] for note in folder.notes() if note["event"] == "trial")
        if is_there
        else 0.0
    )
    stopping = replace(rerun.plan.stopping, time_budget_s=spent + max(left, 1.0))
    plan = replace(rerun.plan, stopping=stopping)
    print(
        f"{rerun.campaign} on {plan.testbed['name']}, about {number(rerun.seconds / 60, 2)} minutes"
    )
    return store.read(experiment.run_campaign(plan, out, fresh, listen))


def differences(rerun: Rerun) -> str:
    """What of a campaign is described otherwise here than in the archive; empty where nothing is."""
    archived, plan, found = rerun.archived, rerun.plan, []
    testbed = {**archived.testbed, **plan.testbed}
    apart = [key for key in testbed if archived.testbed.get(key) != plan.testbed.get(key)]
    if apart:
        found.append(f"testbed {plan.testbed['name']} in {listed(apart)}")
    factors = list(plan.design["factors"])
    points = {
        reproducing.levels(trial.point, factors): trial.point
        for trial in archived.trials()
        if trial.role == "point"
    }
    settings: dict[str, None] = {}
    for trial in plan.blocks[0]:
        was = points.get(reproducing.levels(trial.point, factors), trial.point)
        apart = [key for key in {**was, **trial.point} if was.get(key) != trial.point.get(key)]
        settings |= dict.fromkeys(apart)
    if settings:
        found.append(f"settings {listed([*settings])}")
    return "; ".join(found)
