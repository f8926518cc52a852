"""Run the missing trials of a plan here or as a Slurm job, or say why they cannot run."""

import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from analysis import paths, planning
from analysis.dataset import contrasts, derive, store
from analysis.descriptions import testbeds
from analysis.descriptions.adaptation import for_testbed
from analysis.descriptions.toml_tables import write_own
from analysis.subjects import what_if
from analysis.wording import counted
from runners import executables, scale
from runners.engine import campaign as engine
from runners.engine import session, slurm
from runners.engine.progress import Progress
from runners.records import lock, manifest, provenance
from runners.records.journal import Folder
from runners.records.plan import Plan, Stopping, planned_s
from runners.records.record import FalloffError, Settings, Trial
from runners.testbeds import emulated, simulated
from runners.tools import tool_named

if TYPE_CHECKING:
    from analysis.subjects.twin import Twin

_TINY = 240  # the order of a matrix that is solved almost at once
_TRIES = 3  # of a trial that other work on the machine may have disturbed for a moment


def folder_of(plan: Plan, out: Path = paths.RAW) -> Folder:
    """The folder for a plan's transcripts. Its name contains the digest, so versions never mix."""
    return Folder(out / f"{plan.name}-{plan.testbed['name']}-{plan.digest[:8]}")


def run_campaign(
    plan: Plan,
    out: Path = paths.RAW,
    fresh: bool = False,
    listen: engine.Listener | None = None,
) -> Path:
    """Run the missing trials of a plan and return its folder; a finished campaign is left
    unchanged.

    With `fresh` an earlier folder is moved aside, not deleted. `listen` shows the progress, by
    default as lines on standard output. Raises FalloffError if the testbed is not available here.
    """
    folder = _folder(plan, out, fresh)
    if not engine.is_finished(plan, folder):
        slurm.require_idle(folder)
        if missing := obstacles(plan):
            raise FalloffError("\n".join(missing))
        session.run(plan, folder, listen or Progress(sys.stdout), decided)
    return folder.path


def run_within(
    plan: Plan,
    seconds: float,
    out: Path,
    fresh: bool = False,
    listen: engine.Listener | None = None,
) -> Path:
    """Like `run_campaign`, but limited to the next `seconds` seconds; the first block always
    ends."""
    folder = folder_of(plan, out)
    notes = folder.notes() if folder.path.exists() and not fresh else []
    # The engine's budget counts from the campaign's first trial.
    spent = sum(note["seconds"] for note in notes if note["event"] == "trial")
    stopping = replace(plan.stopping, time_budget_s=spent + max(seconds, 1.0))
    return run_campaign(replace(plan, stopping=stopping), out, fresh, listen)


def submit_campaign(plan: Plan, out: Path = paths.RAW, fresh: bool = False) -> str:
    """Submit the missing trials of a plan as a Slurm job and return its number, empty if none is
    missing.

    `fresh` is as in `run_campaign`. Raises FalloffError if a job of this campaign exists, or Slurm
    rejects the job.
    """
    folder = _folder(plan, out, fresh)
    return "" if engine.is_finished(plan, folder) else slurm.submit(plan, folder)


def sessions_of(plan: Plan, fresh: bool, out: Path = paths.RAW) -> list[Mapping[str, Any]]:
    """The provenance of the sessions that a plan's run will have had: those in its folder, unless
    it starts over, and, if anything is missing, one of now, with the code's part alone."""
    folder = folder_of(plan, out)
    is_new = fresh or not (folder.path / "provenance.json").exists()
    sessions = [] if is_new else folder.provenance()["sessions"]
    if is_new or not engine.is_finished(plan, folder):
        sessions = [*sessions, {"host": provenance.code()}]
    return sessions


def go_on_from(packed: Path, plan: Plan, out: Path = paths.RAW) -> None:
    """Take over the trials of a packed copy of this plan's campaign, such as another machine's, so
    that `run_campaign` runs what is missing; nothing happens where they are here already, by the
    journals, or `packed` has no campaign of this plan.

    Raises FalloffError if the copy was changed, or it and the folder here are two runs.
    """
    there, folder = Folder(packed), folder_of(plan, out)
    if not (packed / "trials.json").exists() or there.plan().digest != plan.digest:
        return
    if changed := manifest.differences(packed):
        raise FalloffError(
            f"{packed} is not as it was packed ({changed[0]}): restore it, or start over with "
            "--fresh"
        )
    theirs, ours = there.notes(), folder.notes()
    if ours[: len(theirs)] == theirs:
        return
    if theirs[: len(ours)] != ours:
        raise FalloffError(
            f"{packed} and {folder.path} are two runs of {plan.name}: move one away, or pack into "
            "another folder"
        )
    _folder(plan, out, fresh=True)
    manifest.unpack(packed, folder.path)


def _folder(plan: Plan, out: Path, fresh: bool) -> Folder:
    """A plan's folder. With `fresh`, an earlier one is moved aside first, unless a job is using
    it."""
    folder = folder_of(plan, out)
    if fresh and folder.path.exists():
        slurm.require_idle(folder)
        aside = out / ".replaced" / f"{folder.path.name}-{time.strftime('%Y%m%d-%H%M%S')}"
        aside.parent.mkdir(exist_ok=True)
        with folder.writing():
            folder.path.rename(aside)
    return folder


def runnable(campaign: str, testbed: str, preset: str) -> Plan:
    """`planning.plan_campaign`; raises FalloffError if the plan cannot run here."""
    plan = planning.plan_campaign(campaign, testbed, preset)
    if missing := obstacles(plan):
        raise FalloffError("; ".join(missing))
    return plan


def obstacles(plan: Plan) -> list[str]:
    """Why a plan cannot run here, one line each with the remedy: the testbed's reasons, missing
    tools and memory."""
    module = session.testbed_module(plan.testbed)
    reasons = module.unavailable(plan.testbed)
    if not module.IS_HERE:
        return reasons
    names = session.tools_of(plan)
    if plan.testbed["kind"] == "emulated":
        reasons += filter(None, [emulated.without_taps(plan.interconnects)])
        needed = 8 * max((trial.point.get("N", 0) for trial in plan.trials()), default=0) ** 2
        memory = provenance.memory_bytes()
        if memory is not None and needed > memory:
            reasons.append(
                f"campaign {plan.name}: its largest matrix takes {needed / 1e9:.0f} GB, and all "
                f"emulated nodes share the {memory / 1e9:.0f} GB of this machine; "
                "`--testbed smith` simulates it"
            )
        if any(command.ranks for command in engine.commands_of(plan)):  # MPI programs
            paced = "flop_s" in plan.testbed.get("node", {})
            names = [*names, "mpirun", *(["pace.so"] if paced else [])]
    for tool in names:
        try:
            executables.find(tool, plan.testbed.get("tools", {}))
        except FalloffError as error:
            reasons.append(str(error))
    return list(dict.fromkeys(reasons))


def tried(plan: Plan) -> str:
    """Run one tiny HPL trial on 2 nodes of a plan's testbed, in seconds, and keep nothing; again if
    other work disturbed it. Returns why it gave no reading, empty if it did.

    Raises lock.LockBusy if another run is measuring, and FalloffError if the testbed is not
    available here.
    """
    two = next(trial for trial in plan.blocks[0] if trial.point["nodes"] == 2)
    trial = replace(two, point={**two.point, "N": _TINY})
    machine = {**plan.testbed, "nodes": 2}  # all of them would take seconds to make
    tiny = replace(
        plan, testbed=machine, preamble=(), blocks=((trial,),), stopping=Stopping(blocks=1)
    )
    outcomes = []

    def listen(event: engine.Event) -> None:
        if event.kind == "waiting":
            raise lock.LockBusy(event.message.partition(":")[0])
        if event.outcome:
            outcomes.append(event.outcome)

    for _ in range(_TRIES):
        with tempfile.TemporaryDirectory() as folder:
            session.run(tiny, Folder(Path(folder) / plan.name), listen)
        if outcomes[-1].status != "invalid":
            break
    return "" if outcomes[-1].status == "ok" else outcomes[-1].reason


def decided(folder: Folder) -> bool:
    """Whether further blocks would change no answer of a campaign with planned looks."""
    # The campaign is running, so read it again each time.
    return contrasts.is_over(derive.points(store.assemble(folder.path)))


def write_twin(
    name: str, fitted: "Twin", datasets: Collection[xr.Dataset], points: xr.Dataset | None = None
) -> Path:
    """Write a twin's description as a testbed, on which HPL runs as at these points. A testbed of
    that name with other content is never replaced."""
    from analysis.subjects.twin import description

    if not re.fullmatch(r"[A-Za-z0-9][\w-]*", name):
        raise FalloffError(f"--name {name}: a name has letters, digits, _ and - alone")
    shorts = dict(pair for dataset in datasets for pair in dataset.falloff.names.items())
    return write_own(paths.TESTBEDS, name, description(fitted, name, shorts, points), "--name")


def simulate_twin(
    name: str,
    points: xr.Dataset,
    asked: what_if.WhatIf,
    out: Path = paths.RAW,
    listen: engine.Listener | None = None,
) -> list[xr.Dataset]:
    """Simulate the campaigns of a twin: the held-out points, and the networks that are asked for;
    `listen` is as in `run_campaign`."""
    from analysis.subjects import twin_prediction

    machine, plans = testbeds.read(name), []
    for campaign in twin_prediction.simulations(machine, points, asked):
        changed = what_if.with_networks(machine, list(map(str, campaign.factors["interconnect"])))
        # These campaigns say themselves how HPL runs.
        fitted = for_testbed(campaign, changed.unset("matrix_bytes"))
        plans.append(planning.resolved(fitted, changed))
    times = [seconds for plan in plans for seconds in _alone_s(plan, folder_of(plan, out))]
    if times:
        took = scale.together_s(Counter((seconds, 1 / (os.cpu_count() or 1)) for seconds in times))
        how_many = counted(len(times), "simulation")
        estimate = f"{how_many}: about {max(took / 60, 1):.0f} min if nothing else runs here"
        print(estimate, file=sys.stderr, flush=True)
    return [store.read(run_campaign(plan, out, listen=listen)) for plan in plans]


def _alone_s(plan: Plan, folder: Folder) -> Iterator[float]:
    """How long each missing simulation of HPL takes by itself [s]."""
    lacking = engine.missing(plan.trials(), folder)
    for trial in plan.trials():
        if trial.id in lacking:
            yield planned_s(trial, plan, tool_named(trial.runner)) or 0.0


def simulated_rates(description: Mapping[str, Any], points: Sequence[Settings]) -> list[float]:
    """HPL's rate [Gflop/s] at each point by its own code on SimGrid, on a testbed that is described
    as in data/testbeds; no transcript is kept. Raises FalloffError without SimGrid, or for a
    simulation that fails."""
    runner = tool_named("hpl")

    def rate(point: Settings) -> float:
        trial = Trial("prediction", "point", "hpl", 1, 0, point)
        return float(runner.parse(testbed.run(trial, runner.commands(point)))["hpl_rate"])

    with (
        simulated.open_testbed(description, {}) as testbed,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        return [*pool.map(rate, points)]
