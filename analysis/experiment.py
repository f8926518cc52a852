"""What a notebook calls: its parameters, and the datasets of its campaign, of others and of today.

What plans and runs campaigns is imported where it is needed: most notebooks only read.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import xarray as xr

from analysis import paths
from analysis.dataset import store
from analysis.descriptions import campaigns
from analysis.statements import notebooks, statement
from runners import executables
from runners.records.journal import Folder
from runners.records.record import FalloffError, unknown, unknown_key

if TYPE_CHECKING:
    from analysis.watch.todays_run import TodaysRun

TODAY = "-today"  # suffix of a run's dataset that stands beside the reference's
_CHECKED = "_parameters_were_checked"  # a name among a notebook's own
PRESETS = ("stored", "quick", "full", "bonding")  # "bonding" exists only for campaigns on links


class RunFailed(FalloffError):
    """No trial of a run gave a reading."""


@dataclass(frozen=True)
class Parameters:
    """The contents of a notebook's parameters cell.

    `campaign` is what the notebook is about. `preset` is `stored` (read the shipped reference
    campaigns), or `quick` or `full` (run the missing trials). `testbed` is by default the one that
    the campaign names. `blocks` overrides the preset's stopping rule unless it is 0. Datasets go to
    the folder `out`, relative to the repository or FALLOFF_HOME. Transcripts stay in data/raw, so
    that a run continues wherever it was started. With `data`, a folder, nothing is run: its
    campaigns are read.
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
        types = get_type_hints(cls)
        # Plain data with a public name comes from the parameters cell.
        given: dict[str, Any] = {"data": "", "campaign": ""} | {
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
    """The dataset of a notebook's campaign, a row for each trial; it is also saved in the folder
    `out`.

    The campaign is the parameter `campaign` unless another is named. The preset `stored` reads the
    shipped reference, and `full` runs the missing trials; `quick` reads the reference, and runs the
    short form where there is none, as on another testbed. With `data` it is the campaign in that
    folder. Raises FalloffError if there is no such dataset, or it cannot be run here.
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
    """With the preset `quick`, the short form of a notebook's campaign, run today to be compared
    with the reference; else None. It is also saved in the folder `out`.

    A run of today that was interrupted goes on. One of another day, commit or machine is moved
    aside and run again.
    """
    from analysis import planning, running

    name = campaign or parameters.campaign
    if notebooks.given() is not None or parameters.data or parameters.preset != "quick":
        return None
    described = campaigns.read(name)
    testbed = parameters.testbed or described.testbed
    if "quick" not in described.presets or not _is_stored(name, testbed):
        return None
    plan = planning.plan_campaign(name, testbed, "quick", parameters.blocks)
    run = running.run_campaign(plan, fresh=_is_old(running.folder_of(plan)))
    return _saved(parameters, name, store.read(run), TODAY)


def _is_old(folder: Folder) -> bool:
    """Whether a folder's run is of another day, commit or machine, or does not record them."""
    from analysis.watch.todays_run import is_of_today
    from runners.records import provenance

    if not folder.path.exists():
        return False
    begins = [note["at"] for note in folder.notes() if note["event"] == "session"]
    try:
        sessions = folder.provenance()["sessions"] if begins else []
    except FalloffError:
        return True
    return not is_of_today(sessions, begins, provenance.host())


def beside(parameters: Parameters, campaign: str) -> xr.Dataset | None:
    """The dataset of another campaign that a notebook shows beside its own: the stored reference,
    or that in the folder `data`; None if there is none. With the preset `full` it is run. It is
    also saved in the folder `out`."""
    if (data := notebooks.given()) is not None:
        return data.get(campaign)
    if parameters.data:
        dataset = in_folder(paths.ROOT / parameters.data, campaign, is_needed=False)
    elif parameters.preset == "full" or _is_stored(campaign):
        dataset = _dataset(replace(parameters, testbed="", blocks=0), campaign)
    else:
        dataset = None
    return None if dataset is None else _saved(parameters, campaign, dataset)


def todays_run(parameters: Parameters, today: xr.Dataset | None) -> "TodaysRun | None":
    """Whether a run of today, if there is one, gives the notebook's statements again; a notebook's
    last cell shows it.
    """
    if today is None:
        return None
    from analysis.watch.todays_run import compare

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
    from analysis import planning, running

    plan = planning.plan_campaign(campaign, testbed, preset, parameters.blocks)
    run = store.read(running.run_campaign(plan))
    require_reading(run)
    return run


def _is_stored(campaign: str, testbed: str = "") -> bool:
    """Whether there is a reference of a campaign, by default on its own testbed."""
    return (paths.REFERENCE / _name(campaign, testbed)).exists()


def _name(campaign: str, testbed: str = "") -> str:
    return f"{campaign}-{testbed or campaigns.read(campaign).testbed}"


def require_reading(run: xr.Dataset) -> None:
    """Raise RunFailed, with the most frequent reason, if no trial of a run gave a reading."""
    if statement.gave_nothing(run):
        raise RunFailed(f"campaign {run.attrs['campaign']}: {statement.without_reading(run)}")


def stored(campaign: str, testbed: str = "") -> xr.Dataset:
    """The shipped reference campaign, by default on its own testbed; raises FalloffError if there
    is none of that name."""
    return store.read(_reference(_name(campaign, testbed)))


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
    """The dataset of a campaign's latest run in a user's folder; None if there is no readable one
    and none is needed.

    Raises FalloffError if one is needed but missing or damaged, or if there is no campaign at all.
    """
    from analysis.evidence import verify

    folders = [folder for folder in verify.folders([folder]) if _campaign_in(folder) == campaign]
    if not folders and is_needed:
        raise FalloffError(f"{folder} holds no campaign {campaign}")
    try:
        return store.read(max(folders, key=verify.last_run)) if folders else None
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


class _References(Mapping[str, xr.Dataset]):
    """The references by campaign, each read on access."""

    def __getitem__(self, campaign: str) -> xr.Dataset:
        if campaign in described_campaigns() and _is_stored(campaign):
            return stored(campaign)
        raise KeyError(campaign)

    def __iter__(self) -> Iterator[str]:
        return filter(_is_stored, described_campaigns())

    def __len__(self) -> int:
        return sum(1 for _ in self)


def stored_datasets() -> Mapping[str, xr.Dataset]:
    """The datasets of all shipped reference campaigns by name; each is read on access."""
    return _References()


def replayed(program: str, testbed: str = "smith") -> xr.Dataset:
    """A recorded program replayed on the networks of the campaign `replay_examples`; raises
    FalloffError if there is no recording."""
    from analysis import planning, running
    from runners.recording import recorder

    plan = planning.plan_replay(program, list(recorder.by_ranks(program)), testbed)
    return store.read(running.run_campaign(plan))


def replay_beside(parameters: Parameters, runs: xr.Dataset) -> xr.Dataset | None:
    """The replay of the program that an emulated campaign ran, on the same networks and nodes; None
    if there is none.

    For the shipped campaign it is `program_replay`. A user's own program is replayed now, as far as
    it was recorded under the campaign's name for it: with ranks that compute as long as they did in
    the emulation.
    """
    from analysis import planning, running
    from analysis.dataset import derive
    from analysis.subjects import program, what_if
    from runners.recording import recorder

    if runs.attrs["campaign"] == program.CAMPAIGN:
        return beside(parameters, f"{program.CAMPAIGN}_replay")
    times = derive.at_only_level(program.times(runs), "program")
    recorded = times.program.item()
    if recorded not in recorder.programs():
        return None
    calls_of_nodes = {
        nodes: calls for nodes, calls in recorder.by_ranks(recorded).items() if nodes in times.nodes
    }
    if not calls_of_nodes:
        return None
    asked = what_if.WhatIf(times.interconnect.values.tolist())
    slower = program.slower(times, calls_of_nodes)
    plan = planning.plan_replay(recorded, list(calls_of_nodes), asked=asked, slower=slower)
    return store.read(running.run_campaign(plan))


def predictions(parameters: Parameters) -> Path:
    """The folder of the predictions of clusters measured elsewhere: the stored ones, or with the
    preset `full` those made anew in the folder `out`, which takes minutes."""
    if parameters.preset != "full":
        return paths.MEASURED / "predictions"
    from analysis import running
    from analysis.subjects import predicting

    folder = paths.ROOT / parameters.out / "predictions"
    return predicting.predict_all(folder, running.simulated_rates)
