"""From names to a dataset: resolve a campaign for a testbed, run its missing trials, and read the
result."""

import os
import re
import sys
import tempfile
import time
from collections import ChainMap, Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import xarray as xr

from analysis import (
    campaign_folders,
    contrasts,
    derive,
    nightly,
    notebooks,
    paths,
    schema,
    statements,
    store,
    what_if,
    wording,
)
from analysis.descriptions import campaigns, networks, testbeds
from analysis.descriptions.adaptation import for_testbed
from analysis.descriptions.campaigns import for_preset
from analysis.descriptions.resolution import resolve, with_blocks
from analysis.descriptions.toml_tables import write_own
from analysis.evidence import verify
from analysis.subjects import program, twin, twin_prediction
from analysis.todays_run import TodaysRun, compare, is_of_today
from runners import campaign as engine
from runners import executables, lock, provenance, recording, scale, session, slurm
from runners.journal import Folder
from runners.plan import Plan, Stopping, planned_s
from runners.progress import Progress
from runners.record import FalloffError, faulty, unknown, unknown_key
from runners.testbeds import emulated
from runners.tools import tool_named

_TINY = 240  # the order of a matrix that is solved almost at once
_TRIES = 3  # of a trial that other work on the machine may have disturbed for a moment
TODAY = "-today"  # suffix of a run's dataset that stands beside the reference's
_CHECKED = "_parameters_were_checked"  # a name among a notebook's own
PRESETS = ("stored", "quick", "full", "bonding")  # "bonding" exists only for campaigns on links


class RunFailed(FalloffError):
    """No trial of a run gave a reading."""


@dataclass(frozen=True)
class Parameters:
    """The contents of a notebook's parameters cell.

    `campaign` is what the notebook is about. `preset` is `stored` (read the shipped reference campaigns), or `quick` or `full` (run the
    missing trials). `testbed` is by default the one that the campaign names. `blocks` overrides the
    preset's stopping rule unless it is 0. Datasets go to the folder `out`, relative to the
    repository or FALLOFF_HOME. Transcripts stay in data/raw, so that a run continues wherever it
    was started. With `data`, a folder, nothing is run: its campaigns are read.
    """

    preset: str
    testbed: str
    blocks: int
    out: str
    data: str = ""
    campaign: str = ""

    @classmethod
    def check(cls, names: Mapping[str, Any], besides: Collection[str] = ()) -> "Parameters":
        """Take the parameters from a notebook's `globals()`; raises FalloffError naming every
        fault.

        papermill itself only warns of an unknown parameter and checks no types. `besides` are the
        notebook's own parameters, which their user checks.
        """
        types = {field.name: field.type for field in fields(cls)}
        # Plain data with a public name comes from the parameters cell.
        given = {"data": "", "campaign": ""} | {
            name: value
            for name, value in names.items()
            if name not in ("In", "Out", *besides)
            and not name.startswith("_")
            and isinstance(value, (str, int, float, list, dict))
        }
        # A cell that is run again finds also what later cells made: names are checked once.
        is_again = names.get(_CHECKED, False)
        faults = [] if is_again else [f"{name!r} is unknown" for name in given if name not in types]
        for name, kind in types.items():
            if name not in given:
                faults.append(f"{name!r} is missing")
            elif type(given[name]) is not kind:
                faults.append(f"{name} = {given[name]!r} is not {kind.__name__}")
        if not faults and given["preset"] not in PRESETS:
            faults.append(unknown_key("preset = ", given["preset"], PRESETS))
        if not faults and (given["blocks"] < 0 or given["blocks"] and given["preset"] == "stored"):
            rule = "must be 0 for the stored preset, and never negative"
            faults.append(f"blocks = {given['blocks']} {rule}")
        if faults:
            raise FalloffError(f"parameters: {'; '.join(faults)}. There are: {', '.join(types)}")
        if isinstance(names, dict):
            names[_CHECKED] = True
        return cls(**{name: value for name, value in given.items() if name in types})


def runs(parameters: Parameters, campaign: str = "") -> xr.Dataset:
    """The dataset of a notebook's campaign, a row for each trial; it is also saved in the folder `out`.

    The campaign is the parameter `campaign` unless another is named. The preset `stored` reads the shipped reference, and
    `full` runs the missing trials; `quick` reads the reference, and runs the short form where there is none, as on another
    testbed. With `data` it is the campaign in that folder. Raises FalloffError if there is no such dataset, or it cannot be
    run here.
    """
    name = campaign or parameters.campaign
    data = notebooks.given()
    if data is None:
        return _saved(parameters, name, _dataset(parameters, name))
    dataset = data.get(name)
    if dataset is None:
        raise FalloffError(f"campaign {name}, which this needs, was not run")
    return dataset


def run_today(parameters: Parameters, campaign: str = "") -> xr.Dataset | None:
    """With the preset `quick`, the short form of a notebook's campaign, run today to be compared with the reference; else
    None. It is also saved in the folder `out`.

    A run of today that was interrupted goes on. One of another day, commit or machine is moved aside and run again.
    """
    name = campaign or parameters.campaign
    if notebooks.given() is not None or parameters.data or parameters.preset != "quick":
        return None
    described = campaigns.read(name)
    testbed = parameters.testbed or described.testbed
    if "quick" not in described.presets or not _is_stored(name, testbed):
        return None
    plan = plan_campaign(name, testbed, "quick", parameters.blocks)
    run = run_campaign(plan, fresh=_is_old(folder_of(plan, paths.RAW)))
    return _saved(parameters, name, store.read(run), TODAY)


def _is_old(folder: Folder) -> bool:
    """Whether a folder's run is of another day, commit or machine, or does not record them."""
    if not folder.path.exists():
        return False
    begins = [note["at"] for note in folder.notes() if note["event"] == "session"]
    try:
        sessions = folder.provenance()["sessions"] if begins else []
    except FalloffError:
        return True
    return not is_of_today(sessions, begins, provenance.host())


def beside(parameters: Parameters, campaign: str) -> xr.Dataset | None:
    """The dataset of another campaign that a notebook shows beside its own: the stored reference, or that in the folder
    `data`; None if there is none. With the preset `full` it is run. It is also saved in the folder `out`."""
    if (data := notebooks.given()) is not None:
        return data.get(campaign)
    if parameters.data:
        dataset = in_folder(paths.ROOT / parameters.data, campaign, is_needed=False)
    elif parameters.preset == "full" or _is_stored(campaign, campaigns.read(campaign).testbed):
        dataset = _dataset(replace(parameters, testbed="", blocks=0), campaign)
    else:
        dataset = None
    return None if dataset is None else _saved(parameters, campaign, dataset)


def todays_run(parameters: Parameters, today: xr.Dataset | None) -> TodaysRun | None:
    """Whether a run of today, if there is one, gives the notebook's statements again; a notebook's last cell shows it."""
    if today is None:
        return None
    return compare(
        paths.NOTEBOOKS / f"{Path(parameters.out).name}.ipynb",
        stored_datasets(),
        today.attrs["campaign"],
        today,
    )


def _saved(
    parameters: Parameters, campaign: str, dataset: xr.Dataset, suffix: str = ""
) -> xr.Dataset:
    testbed = dataset.falloff.testbed.name
    store.save(dataset, paths.HOME / parameters.out / f"{campaign}-{testbed}{suffix}.nc")
    return dataset


def _dataset(parameters: Parameters, campaign: str) -> xr.Dataset:
    """A campaign's dataset for a notebook's parameters; raises FalloffError if there is none."""
    if parameters.data:
        return in_folder(paths.ROOT / parameters.data, campaign)
    described, preset = campaigns.read(campaign), parameters.preset
    testbed = parameters.testbed or described.testbed
    is_short = preset == "quick" and _is_stored(campaign, testbed)
    if preset == "stored" or preset not in described.presets or is_short:
        return stored(campaign, testbed)
    run = store.read(run_campaign(plan_campaign(campaign, testbed, preset, parameters.blocks)))
    require_reading(run)
    return run


def _is_stored(campaign: str, testbed: str) -> bool:
    return (paths.REFERENCE / f"{campaign}-{testbed}").exists()


def require_reading(run: xr.Dataset) -> None:
    """Raise RunFailed, with the most frequent reason, if no trial of a run gave a reading."""
    if statements.gave_nothing(run):
        raise RunFailed(f"campaign {run.attrs['campaign']}: {statements.without_reading(run)}")


def stored(campaign: str, testbed: str = "") -> xr.Dataset:
    """The shipped reference campaign, by default on its own testbed; raises FalloffError if there
    is none of that name."""
    return store.read(_reference(f"{campaign}-{testbed or campaigns.read(campaign).testbed}"))


def named(campaigns: Collection[str]) -> list[xr.Dataset]:
    """Datasets of campaign folders, or of references by name; raises FalloffError for anything
    else."""
    return [
        store.read(Path(name) if Path(name).is_dir() else _reference(name)) for name in campaigns
    ]


def _reference(name: str) -> Path:
    folder = paths.REFERENCE / name
    if not folder.is_dir():
        names = [file.parent.name for file in paths.REFERENCE.glob("*/trials.json")]
        raise unknown("reference campaign", name, names)
    return folder


def in_folder(folder: Path, campaign: str, is_needed: bool = True) -> Any:
    """The dataset of a campaign's latest run in a user's folder; None if there is no readable one and none is needed.

    Raises FalloffError if one is needed but missing or damaged, or if there is no campaign at all.
    """
    folders = [folder for folder in verify.folders([folder]) if _campaign_in(folder) == campaign]
    if not folders and is_needed:
        raise FalloffError(f"{folder} holds no campaign {campaign}")
    try:
        return store.read(max(folders, key=campaign_folders.last_run)) if folders else None
    except FalloffError:
        if is_needed:
            raise
        return None  # its own notebook reports what is wrong with it


def _campaign_in(folder: Path) -> str:
    """The name of the campaign in a folder. For a damaged one it is the start of the folder's name,
    so that it does not hide others."""
    try:
        return Folder(folder).plan().name
    except FalloffError:
        return folder.name.split("-")[0]


def described_campaigns() -> list[str]:
    """The names of all campaigns in data/campaigns, the user's own among them."""
    return [file.stem for file in executables.described(paths.CAMPAIGNS, "*.toml")]


class _Datasets(Mapping[str, xr.Dataset]):
    """Datasets by campaign, each read on first access: the references, or the campaigns in a folder."""

    def __init__(self, data: str = "") -> None:
        self._data, self._read = data, cache(self._find)

    def __getitem__(self, campaign: str) -> xr.Dataset:
        dataset = self._read(campaign)
        if dataset is None:
            raise KeyError(campaign)
        return dataset

    def __iter__(self) -> Iterator[str]:
        return (name for name in described_campaigns() if self._read(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _find(self, campaign: str) -> xr.Dataset | None:
        if self._data:
            return in_folder(paths.ROOT / self._data, campaign, is_needed=False)
        if campaign not in described_campaigns():
            return None
        reference = paths.REFERENCE / f"{campaign}-{campaigns.read(campaign).testbed}"
        return store.read(reference) if reference.exists() else None


def stored_datasets(data: str = "") -> Mapping[str, xr.Dataset]:
    """The datasets of all shipped reference campaigns by name, or of those in the folder `data`, relative to the
    repository; each is read on first access."""
    return _Datasets(data)


def write_twin(
    name: str, fitted: twin.Twin, datasets: Collection[xr.Dataset], points: xr.Dataset | None = None
) -> Path:
    """Write a twin's description as a testbed, on which HPL runs as at these points. A testbed of that name with other content
    is never replaced."""
    if not re.fullmatch(r"[A-Za-z0-9][\w-]*", name):
        raise FalloffError(f"--name {name}: a name has letters, digits, _ and - alone")
    shorts = dict(pair for dataset in datasets for pair in dataset.falloff.names.items())
    return write_own(paths.TESTBEDS, name, twin.description(fitted, name, shorts, points), "--name")


def simulate_twin(
    name: str,
    points: xr.Dataset,
    asked: what_if.WhatIf,
    out: Path = paths.RAW,
    listen: engine.Listener | None = None,
) -> list[xr.Dataset]:
    """Simulate the campaigns of a twin: the held-out points, and the networks that are asked for; `listen` is as in
    `run_campaign`."""
    machine, plans = testbeds.read(name), []
    for campaign in twin_prediction.simulations(machine, points, asked):
        changed = what_if.with_networks(machine, campaign.factors["interconnect"])
        # These campaigns say themselves how HPL runs.
        fitted = for_testbed(campaign, changed.unset("matrix_bytes"))
        plans.append(_resolved(fitted, changed))
    times = [seconds for plan in plans for seconds in _alone_s(plan, folder_of(plan, out))]
    if times:
        took = scale.together_s(Counter((seconds, 1 / (os.cpu_count() or 1)) for seconds in times))
        how_many = wording.counted(len(times), "simulation")
        estimate = f"{how_many}: about {max(took / 60, 1):.0f} min if nothing else runs here"
        print(estimate, file=sys.stderr, flush=True)
    return [store.read(run_campaign(plan, out, listen=listen)) for plan in plans]


def _alone_s(plan: Plan, folder: Folder) -> Iterator[float]:
    """How long each missing simulation of HPL takes by itself [s]."""
    lacking = engine.missing(plan.trials(), folder)
    for trial in plan.trials():
        if trial.id in lacking:
            yield planned_s(trial, plan, tool_named(trial.runner)) or 0.0


def read_testbed(name: str) -> dict[str, Any]:
    """A testbed's description as the plain table that a plan has; raises FalloffError naming every
    fault in it."""
    return testbeds.read(name).plain()


def listed() -> list[str]:
    """A line for each campaign in data/campaigns: its name, its testbed, and its title."""
    lines = []
    for file in executables.described(paths.CAMPAIGNS, "*.toml"):
        try:
            campaign = campaigns.read(file.stem)
            testbed, title = campaign.testbed, campaign.title
        except FalloffError as error:  # the others are listed anyway
            testbed, title = "?", str(error)
        lines.append(f"{file.stem:16} {testbed:22} {title}")
    return lines


def plan_campaign(campaign: str, testbed: str = "", preset: str = "quick", blocks: int = 0) -> Plan:
    """Resolve a campaign for a testbed, both by name. The default is the `testbed` that the
    campaign names, else the emulated one.

    `blocks` overrides the preset's stopping rule.
    """
    described = campaigns.read(campaign)
    machine = testbeds.read(testbed or described.testbed)
    machine = what_if.with_networks(machine, described.factors.get("interconnect", ()))
    description = program.with_digest(for_testbed(for_preset(described, preset), machine))
    plan = _resolved(description, machine)
    return with_blocks(plan, description, blocks) if blocks else plan


def _resolved(description: campaigns.Campaign, machine: testbeds.Testbed) -> Plan:
    plan = resolve(description, machine, networks.between(machine.networks))
    settings = schema.settings()
    if strange := [factor for factor in plan.design["factors"] if factor not in settings]:
        lines = [unknown_key("the factor ", factor, settings) for factor in strange]
        raise faulty(f"campaign {description.name}", lines)
    return plan


def plan_nightly(testbed: str = "", minutes: float = nightly.MINUTES) -> list[Plan]:
    """The campaigns of a night's session on all nodes of a testbed; raises FalloffError as `nightly.campaigns_of` does."""
    machine = testbeds.read(testbed or nightly.TESTBED)
    chosen = nightly.campaigns_of(machine, minutes)
    return [_resolved(for_testbed(campaign, machine), machine) for campaign in chosen]


def plan_replay(
    program: str,
    nodes: Collection[int],
    testbed: str = "smith",
    asked: what_if.WhatIf = what_if.NOTHING,
    slower: Mapping[str, float] | None = None,
) -> Plan:
    """The campaign `replay_examples` for one recorded program on these node counts; raises FalloffError if there is no recording.

    It is replayed on the networks that are `asked` for, by default those that the campaign compares, as far as the testbed
    describes them. `slower` says by network and nodes ("gige 8") how many times as long as recorded ranks compute.
    """
    described, machine = campaigns.read("replay_examples"), testbeds.read(testbed)
    if not isinstance(machine, testbeds.SimulatedTestbed):
        remedy = "only a simulation can replay: name smith"
        raise FalloffError(f"testbed {testbed} is not simulated, and {remedy}")
    usual = [name for name in described.design.primary if name in machine.network]
    usual = usual or [name for name in machine.network if name != what_if.IDEAL]
    machine = what_if.with_ideal(machine)
    levels = list(dict.fromkeys([*asked.names(machine, usual), what_if.IDEAL]))
    machine = what_if.with_networks(machine, levels)
    described = described.changed(
        factors={"interconnect": levels, "nodes": sorted(nodes), "program": [program]},
        settings={**described.settings, "recording": recording.digest(program)},
        design=described.design.changed(primary=[], control=None, baseline_nodes=min(nodes)),
    )
    if slower:
        by_point = {at: {"computing": factor} for at, factor in slower.items()}
        described = described.changed(levels={"interconnect nodes": by_point})
    chosen = for_testbed(for_preset(described, "full"), machine)
    return resolve(chosen, machine, networks.between(machine.networks))


def replayed(program: str, testbed: str = "smith") -> xr.Dataset:
    """A recorded program replayed on the networks of the campaign `replay_examples`; raises FalloffError if there is no
    recording."""
    plan = plan_replay(program, list(recording.by_ranks(program)), testbed)
    return store.read(run_campaign(plan))


def replay_beside(parameters: Parameters, runs: xr.Dataset) -> xr.Dataset | None:
    """The replay of the program that an emulated campaign ran, on the same networks and nodes; None if there is none.

    For the shipped campaign it is `program_replay`. A user's own program is replayed now, as far as it was recorded under the
    campaign's name for it: with ranks that compute as long as they did in the emulation.
    """
    if runs.attrs["campaign"] == program.CAMPAIGN:
        return beside(parameters, f"{program.CAMPAIGN}_replay")
    times = derive.at_only_level(program.times(runs), "program")
    recorded = times.program.item()
    if recorded not in recording.programs():
        return None
    calls_of_nodes = {
        nodes: calls
        for nodes, calls in recording.by_ranks(recorded).items()
        if nodes in times.nodes
    }
    if not calls_of_nodes:
        return None
    asked = what_if.WhatIf(times.interconnect.values.tolist())
    slower = program.slower(times, calls_of_nodes)
    plan = plan_replay(recorded, list(calls_of_nodes), asked=asked, slower=slower)
    return store.read(run_campaign(plan))


def runnable(campaign: str, testbed: str, preset: str) -> Plan:
    """`plan_campaign`; raises FalloffError if the plan cannot run here."""
    plan = plan_campaign(campaign, testbed, preset)
    if missing := obstacles(plan):
        raise FalloffError("; ".join(missing))
    return plan


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
                f"campaign {plan.name}: its largest matrix takes {needed / 1e9:.0f} GB, and all emulated nodes share the "
                f"{memory / 1e9:.0f} GB of this machine; `--testbed smith` simulates it"
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

    Raises lock.LockBusy if another run is measuring, and FalloffError if the testbed is not available
    here.
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


def statements_of(campaign: str, dataset: xr.Dataset) -> list[str]:
    """The primary statements that notebooks make of a dataset of a campaign, as lines of plain text.

    Notebooks read the other campaigns that they need from the references. Raises FalloffError if no notebook states
    anything on the campaign, or the dataset is not sufficient.
    """
    require_reading(dataset)
    if program.is_one(dataset):
        return _of_program(campaign, dataset)
    lines = [
        wording.plain(str(statement))
        for made in notebooks.stated({campaign: dataset}, stored_datasets()).values()
        for statement in made.statements
        if statement.primary and statement.campaign == campaign
    ]
    if not lines:
        raise FalloffError(
            f"no notebook judges campaign {campaign} by itself, or these data do not suffice"
        )
    return lines


def _of_program(campaign: str, dataset: xr.Dataset) -> list[str]:
    """The statements and tables that the notebook of emulated programs makes of a program's dataset."""
    file = paths.NOTEBOOKS / "59_program.ipynb"
    both = ChainMap({campaign: dataset}, stored_datasets())
    executed = notebooks.run(file, both, campaign=campaign)
    lines = [wording.plain(str(statement)) for statement in executed.statements]
    of_results = [
        table for table in executed.tables if table.label.endswith(("-times", "-factors"))
    ]
    return lines + [f"\n{table.body}" for table in of_results]
