"""From names to a dataset: resolves a campaign for a testbed, runs what is missing of it, reads it."""

import json
import time
import tomllib
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from analysis import contrasts, derive, designs, paths, store
from analysis.calibration import stopping
from analysis.inference import planning
from analysis.inference.verdict import judge_fall
from runners import campaign as engine
from runners import provenance, runner_named, submission, tools
from runners.description import for_preset, for_testbed
from runners.journal import Folder
from runners.plan import Plan, resolve, with_blocks
from runners.record import FalloffError
from runners.testbeds import cluster_description


@dataclass(frozen=True)
class Parameters:
    """What a notebook's parameters cell may say.

    `preset` is `stored` (read the shipped reference campaign), `quick` or `full` (run what is
    missing); `blocks` overrides the preset's stopping rule unless it is 0; dataset and figures go
    to the folder `out`, relative to the repository. Transcripts stay in data/raw, so that a run
    goes on wherever it was started.
    """

    campaign: str
    testbed: str
    preset: str
    blocks: int
    out: str

    @property
    def folder(self) -> Path:
        """The folder `out` as a path."""
        return paths.ROOT / self.out

    @classmethod
    def check(cls, names: Mapping[str, Any], besides: Collection[str] = ()) -> "Parameters":
        """Take the parameters from a notebook's `globals()`; raises FalloffError naming every fault.

        papermill itself only warns of an unknown parameter and checks no types. `besides` are parameters of the
        notebook's own, which what takes them checks.
        """
        known = {field.name: field.type for field in fields(cls)}
        own = [name for name in names if name not in besides]
        given = {name: names[name] for name in own if _is_parameter(name, names[name])}
        faults = [f"{name!r} is unknown" for name in given if name not in known]
        faults += [f"{name!r} is missing" for name in known if name not in given]
        faults += [
            f"{name} = {given[name]!r} is not {kind.__name__}"
            for name, kind in known.items()
            if name in given and type(given[name]) is not kind
        ]
        if not faults and (given["blocks"] < 0 or (given["blocks"] and given["preset"] == "stored")):
            faults.append(f"blocks = {given['blocks']} must be 0 for the stored preset, and never negative")
        if faults:
            raise FalloffError(f"parameters: {'; '.join(faults)}. There are: {', '.join(known)}")
        return cls(**given)


def dataset(parameters: Parameters, listen: engine.Listener | None = None) -> xr.Dataset:
    """The dataset that a notebook's parameters ask for; also saved in its folder `out`."""
    if parameters.preset == "stored":
        found = stored(parameters.campaign, parameters.testbed)
    else:
        plan = plan_campaign(parameters.campaign, parameters.testbed, parameters.preset, parameters.blocks)
        found = store.read(run_campaign(plan, listen=listen))
    store.save(found, parameters.folder / f"{parameters.campaign}-{parameters.testbed}.nc")
    return found


def beside(parameters: Parameters, campaign: str, listen: engine.Listener | None = None) -> xr.Dataset:
    """The dataset of another campaign that a notebook shows; the quick preset reads its reference, to stay quick."""
    preset = "stored" if parameters.preset == "quick" else parameters.preset
    blocks = 0 if preset == "stored" else parameters.blocks
    return dataset(replace(parameters, campaign=campaign, preset=preset, blocks=blocks), listen)


def stored(campaign: str, testbed: str = "emulated") -> xr.Dataset:
    """The reference campaign that is shipped; raises FalloffError when there is none of that name."""
    folder = paths.REFERENCE / f"{campaign}-{testbed}"
    if not folder.exists():
        known = ", ".join(sorted(other.name for other in paths.REFERENCE.iterdir() if other.is_dir()))
        raise FalloffError(f"no reference campaign {folder.name!r} is stored; there are: {known or 'none'}")
    return store.read(folder)


def read_toml(file: Path, kind: str) -> dict[str, Any]:
    """A description as a dict; raises FalloffError when there is none of that name, or it cannot be read as TOML."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = ", ".join(sorted(other.stem for other in file.parent.glob("*.toml")))
        raise FalloffError(f"there is no {kind} {file.stem!r}; there are: {known or 'none'}") from None
    except OSError as error:
        raise FalloffError(f"cannot read {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FalloffError(f"{file} is not valid TOML: {error}") from None


def read_testbed(name: str) -> dict[str, Any]:
    """A testbed's description; one that `extends` another has all of that, but for what it says itself.

    One with `designs`, a name in data/designs, has the networks of these and no other. Raises FalloffError as
    `read_toml` does, and naming every fault in the description of a cluster or in the designs.
    """
    described = _extended(name)
    if "designs" in described:
        designed = read_designs(paths.DESIGNS / f"{described['designs']}.toml")
        return {**described, "network": designs.networks(designed), "networks": designs.names(designed)}
    return cluster_description.complete(described) if described.get("kind") == "cluster" else described


def read_designs(file: Path) -> designs.Designs:
    """The network designs of a file; raises FalloffError naming every fault in it."""
    return designs.check(read_toml(file, "design file"))


def _extended(name: str) -> dict[str, Any]:
    own = read_toml(paths.TESTBEDS / f"{name}.toml", "testbed")
    return {**(_extended(own["extends"]) if "extends" in own else {}), **own}


def plan_campaign(campaign: str, testbed: str = "", preset: str = "quick", blocks: int = 0) -> Plan:
    """Resolve a campaign for a testbed, both by name, or for the `testbed` that it names itself, else the emulated one.

    `blocks` overrides the preset's stopping rule.
    """
    described = read_toml(paths.CAMPAIGNS / f"{campaign}.toml", "campaign")
    machine = read_testbed(testbed or described.get("testbed", "emulated"))
    asked = for_preset(described, preset)
    description = for_testbed(asked, machine)
    between = {**read_toml(paths.INTERCONNECTS, "interconnects"), **read_toml(paths.PATHS, "paths")}
    for name, own in machine.get("networks", {}).items():
        between[name] = {"name": name, "short": name, **between.get(name, {}), **own}
    plan = resolve(description, machine, between)
    return with_blocks(plan, description, blocks) if blocks else plan


def folder_of(plan: Plan, out: Path = paths.RAW) -> Folder:
    """Where a plan's transcripts are kept: the name carries the digest, so versions never mix."""
    return Folder(out / f"{plan.name}-{plan.testbed['name']}-{plan.digest[:8]}")


def run_campaign(plan: Plan, out: Path = paths.RAW, fresh: bool = False, listen: engine.Listener | None = None) -> Path:
    """Run what is missing of a plan and return its folder; a finished campaign is left as it is.

    With `fresh` an earlier folder is moved aside, not deleted. Raises FalloffError when the
    testbed cannot be had here.
    """
    folder = _folder(plan, out, fresh)
    if not engine.is_finished(plan, folder):
        submission.require_idle(folder)
        missing = obstacles(plan)
        if missing:
            raise FalloffError("\n".join(missing))
        with testbed_module(plan.testbed).open_testbed(plan.testbed, plan.interconnects) as opened:
            if plan.testbed["kind"] == "cluster" and (lacking := opened.missing(tools_of(plan))):
                raise FalloffError("\n".join(lacking))
            engine.run(plan, opened, folder, listen or engine.ignore, half_width)
    return folder.path


def submit_campaign(plan: Plan, out: Path = paths.RAW, fresh: bool = False) -> str:
    """Leave what is missing of a plan to a job of Slurm's and return its number, empty when nothing is missing.

    `fresh` is as in `run_campaign`. Raises FalloffError when there is a job of this campaign, or Slurm takes none.
    """
    folder = _folder(plan, out, fresh)
    return "" if engine.is_finished(plan, folder) else submission.submit(plan, folder)


def _folder(plan: Plan, out: Path, fresh: bool) -> Folder:
    """A plan's folder; an earlier one is moved aside first if it is to be fresh, unless a job is using it."""
    folder = folder_of(plan, out)
    if fresh and folder.path.exists():
        submission.require_idle(folder)
        folder.path.rename(folder.path.with_name(f"{folder.path.name}-before-{time.strftime('%Y%m%d-%H%M%S')}"))
    return folder


def obstacles(plan: Plan) -> list[str]:
    """Why a plan cannot run here, a line each with the remedy: the testbed's reasons, missing tools and memory."""
    found = testbed_module(plan.testbed).unavailable(plan.testbed)
    needed, here = 8 * max((t.point.get("N", 0) for t in plan.trials()), default=0) ** 2, provenance.memory_bytes()
    if plan.testbed["kind"] == "emulated" and here is not None and needed > here:
        found.append(
            f"campaign {plan.name}: its largest matrix takes {needed / 1e9:.0f} GB, and all emulated nodes share the "
            f"{here / 1e9:.0f} GB of this machine; `--testbed smith` simulates it"
        )
    if plan.testbed["kind"] == "cluster":  # its tools are on its nodes, which are asked when it is opened
        return found
    for tool in tools_of(plan):
        try:
            tools.find(tool, plan.testbed.get("tools", {}))
        except FalloffError as error:
            found.append(str(error))
    return list(dict.fromkeys(found))


def tools_of(plan: Plan) -> list[str]:
    """The names of the tools that a plan's commands start, or what stands for them on its testbed."""
    stands_for = testbed_module(plan.testbed).STANDS_FOR
    commands = (c for trial in plan.trials() for c in runner_named(trial.runner).commands(trial.point))
    return sorted({stands_for.get(command.argv[0], command.argv[0]) for command in commands})


def testbed_module(description: dict[str, Any]) -> Any:
    """The module that knows this kind of testbed."""
    try:
        return import_module(f"runners.testbeds.{description['kind']}")
    except (KeyError, ModuleNotFoundError):
        raise FalloffError(f"testbed {description.get('name')!r} needs a known 'kind'") from None


def half_width(folder: Folder) -> float | None:
    """Half the 95 % interval of the primary contrast's fall so far, as a fraction.

    None with fewer than `stopping.FIRST_LOOK` valid blocks: the rule `precision` does not look yet.
    """
    found = derive.points(store.assemble(folder.path))  # of a campaign that runs: other trials each time
    margin = json.loads(found.attrs["design"])["margin"]
    verdict = judge_fall(contrasts.primary_differences(found).values, margin, found.evidence.item())
    if verdict.interval_95 is None or verdict.blocks < stopping.FIRST_LOOK:
        return None
    low, high = verdict.interval_95
    return (high - low) / 2


def effort(plan: Plan) -> tuple[Path, planning.Effort]:
    """What a plan's trials took and how its blocks differed: in its own folder, else in the stored reference.

    Raises FalloffError when neither has two valid blocks, or the campaign judges no fall.
    """
    if plan.testbed["kind"] == "simulated":
        raise FalloffError(f"campaign {plan.name} on {plan.testbed['name']} repeats itself: there is no power to plan")
    if "baseline_nodes" not in plan.design:
        raise FalloffError(f"campaign {plan.name} judges no fall over nodes: there is no power to plan")
    stored_folder = paths.REFERENCE / f"{plan.name}-{plan.testbed['name']}"
    for path in (folder_of(plan).path, stored_folder):
        with suppress(FalloffError):
            found = derive.points(store.read(path))
            fall = contrasts.primary_differences(found).dropna("block").values
            if len(fall) > 1:
                return path, _effort(Folder(path), plan, fall)
    raise FalloffError(
        f"campaign {plan.name}: fewer than two valid blocks say how long one takes and how much blocks differ; "
        f"run `falloff run {plan.name} --repeats 3` first"
    )


def _effort(folder: Folder, plan: Plan, fall: np.ndarray) -> planning.Effort:
    survey = {trial.id for trial in plan.preamble}
    seconds = {note["id"]: note["seconds"] for note in folder.notes() if note["event"] == "trial"}
    survey_s = sum(took for trial, took in seconds.items() if trial in survey)
    return planning.Effort(
        block_s=(sum(seconds.values()) - survey_s) / len(fall),
        survey_s=survey_s,
        sd=float(fall.std(ddof=1)),
        margin=plan.design["margin"],
    )


def _is_parameter(name: str, value: Any) -> bool:
    """Whether a notebook's global was set by its parameters cell: plain data under a public name."""
    return not name.startswith("_") and name not in ("In", "Out") and isinstance(value, (str, int, float, list, dict))
