"""From a campaign's and a testbed's names to a plan; how many minutes it takes until it is decided,
and how probable that is at each look."""

import itertools
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from analysis import paths
from analysis.dataset import contrasts, derive, schema, store
from analysis.descriptions import campaigns, networks, testbeds
from analysis.descriptions.adaptation import for_testbed
from analysis.descriptions.campaigns import for_preset
from analysis.descriptions.resolution import resolve, with_blocks
from analysis.statistics.calibration import draw, judge_all
from analysis.statistics.design import Design, PlannedFall, design_from
from analysis.subjects import what_if
from analysis.subjects.program import with_digest
from analysis.watch import nightly
from runners import scale
from runners.recording import recorder
from runners.records import renamed
from runners.records.journal import Folder
from runners.records.plan import LEAST_BLOCKS, Plan, kind_of, planned_s
from runners.records.record import FalloffError, Trial, faulty, unknown_key
from runners.tools import tool_named

RUN_SDS = (0.005, 0.01, 0.02, 0.03)  # planned with where a run's scatter is not known
RUNS_IN_D = 4  # a block's D is of four runs, so that its standard deviation is twice a run's
CAMPAIGNS, SEED = 20_000, 20261122
# Simulations whose falls are assumed; the first that has them is used.
AT_THE_SAME_RATES = paths.REFERENCE / "hpl_agreement-fortinet_model_simulated"
SIMULATED = paths.REFERENCE / "hpl_paper_simulated-smith"


def plan_campaign(campaign: str, testbed: str = "", preset: str = "quick", blocks: int = 0) -> Plan:
    """Resolve a campaign for a testbed, both by name. The default is the `testbed` that the
    campaign names, else the emulated one.

    `blocks` overrides the preset's stopping rule.
    """
    described = campaigns.read(campaign)
    machine = testbeds.read(testbed or described.testbed)
    asked: list[Any] = described.factors.get("interconnect", [])
    machine = what_if.with_networks(machine, asked)
    description = with_digest(for_testbed(for_preset(described, preset), machine))
    plan = resolved(description, machine)
    return with_blocks(plan, description, blocks) if blocks else plan


def resolved(description: campaigns.Campaign, machine: testbeds.Testbed) -> Plan:
    """A campaign as it is planned on a testbed; raises FalloffError for a factor that nothing
    sets."""
    plan = resolve(description, machine, networks.between(machine.networks))
    settings = schema.settings()
    if strange := [factor for factor in plan.design["factors"] if factor not in settings]:
        lines = [unknown_key("the factor ", factor, settings) for factor in strange]
        raise faulty(f"campaign {description.name}", lines)
    return plan


def plan_nightly(testbed: str = "", minutes: float = nightly.MINUTES) -> list[Plan]:
    """The campaigns of a night's session on all nodes of a testbed; raises FalloffError as
    `nightly.campaigns_of` does.
    """
    machine = testbeds.read(testbed or nightly.TESTBED)
    chosen = nightly.campaigns_of(machine, minutes)
    return [resolved(for_testbed(campaign, machine), machine) for campaign in chosen]


def plan_replay(
    program: str,
    nodes: Collection[int],
    testbed: str = "smith",
    asked: what_if.WhatIf = what_if.NOTHING,
    slower: Mapping[str, float] | None = None,
    rendezvous: str = "",
) -> Plan:
    """The campaign `replay_examples` for one recorded program on these node counts; raises
    FalloffError if there is no recording.

    It is replayed on the networks that are `asked` for, by default those that the campaign
    compares, as far as the testbed describes them. `slower` says by network and nodes ("gige 8")
    how many times as long as recorded ranks compute, `rendezvous` how long messages are sent, one
    of `simulated.RENDEZVOUS`.
    """
    described, machine = campaigns.read("replay_examples"), testbeds.read(testbed)
    if not isinstance(machine, testbeds.SimulatedTestbed):
        remedy = "only a simulation can replay: name smith"
        raise FalloffError(f"testbed {testbed} is not simulated, and {remedy}")
    usual = [str(name) for name in described.design.primary if name in machine.network]
    usual = usual or [name for name in machine.network if name != what_if.IDEAL]
    machine = what_if.with_ideal(machine)
    levels = list(dict.fromkeys([*asked.names(machine, usual), what_if.IDEAL]))
    machine = what_if.with_networks(machine, levels)
    order = {"rendezvous": rendezvous} if rendezvous else {}
    described = described.changed(
        factors={"interconnect": levels, "nodes": sorted(nodes), "program": [program]},
        settings={**described.settings, "recording": recorder.digest(program), **order},
        design=described.design.changed(primary=[], control=None, baseline_nodes=min(nodes)),
    )
    if slower:
        by_point = {at: {"computing": factor} for at, factor in slower.items()}
        described = described.changed(levels={"interconnect nodes": by_point})
    return resolved(for_testbed(for_preset(described, "full"), machine), machine)


def text(plan: Plan) -> str:
    """The plan's looks, a row each, after what is assumed.

    Times and scatter are those of the newest run here that has all kinds of its trials, else of the
    reference; times are else what the testbed's rates say. Raises FalloffError when the campaign
    judges no fall, or repeats itself exactly.
    """
    testbed = plan.testbed["name"]
    looks = plan.design.get("looks") or [max(plan.stopping.blocks, LEAST_BLOCKS)]
    rules = design_from({**plan.design, "looks": looks})
    if plan.repeats_itself or not rules.judges_falls:
        why = "repeats itself" if plan.repeats_itself else "judges no fall over nodes"
        raise FalloffError(f"campaign {plan.name} on {testbed} {why}: there is nothing to plan")
    falls = [_simulated_fall(statement, plan) for statement in rules.primary]
    lines = [f"{plan.name} on {testbed}: margin {100 * (rules.margin or 0):g} %"]
    for statement, fall in zip(rules.primary, falls):
        origin = "not simulated" if fall is None else "as simulated"
        lines.append(f"{statement}: fall of {100 * (fall or 0):.1f} % assumed, {origin}")
    before_s, block_s = _planned(plan)
    scatter, source = None, "not known; `--repeats 1` runs one"
    if np.isfinite(block_s):
        source = "times as the testbed's rates say; scatter not known: `--repeats 1` runs a block"
    folders = itertools.chain(
        *(paths.RAW.glob(f"{name}-{testbed}-????????") for name in renamed.names(plan.name))
    )
    newest = sorted(folders, key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in (*newest, paths.REFERENCE / f"{plan.name}-{testbed}"):
        # No run, or some kind of trial was not run, or no block is whole.
        with suppress(FalloffError, KeyError, ZeroDivisionError):
            before_s, block_s, scatter = _measured(plan, folder)
            source = f"those in {folder}"
            break
    sds = RUN_SDS if scatter is None else (scatter,)
    by_sd = [decided(rules, [fall or 0.0 for fall in falls], sd) for sd in sds]
    lines += [
        f"times and scatter of blocks: {source}",
        "blocks  minutes  probability that all are decided, by a run's scatter of",
        " " * 15 + "".join(f"  {100 * sd:5.2f} %" for sd in sds),
    ]
    blocks = np.array(rules.looks) * (rules.blocks_a_session or 1)
    minutes = (before_s + block_s * blocks) / 60
    for look, cost, probabilities in zip(blocks, minutes, zip(*by_sd)):
        time = "?" if np.isnan(cost) else f"{cost:.0f}"
        lines.append(
            f"{look:6} {time:>8}"
            + "".join(f"  {probability:7.3f}" for probability in probabilities)
        )
    return "\n".join(lines)


def decided(rules: Design, falls: list[float], run_sd: float) -> np.ndarray:
    """The probability that all statements are decided by each look, with these true falls and
    scatter of a run.
    """
    drawn = draw(np.random.default_rng(SEED), rules, run_sd, CAMPAIGNS)
    return judge_all(*drawn, rules, falls).decided.mean(axis=0)


def _simulated_fall(statement: PlannedFall, plan: Plan) -> float | None:
    """The fall at the same rates, else at the paper's; None where neither simulation has the
    networks and node counts.
    """
    for folder in (AT_THE_SAME_RATES, SIMULATED):
        points = derive.points(store.read(folder)).squeeze("block")
        same_design = {"design": json.dumps(plan.design)}
        with suppress(KeyError):
            ratio = contrasts.log_ratios(
                points.assign_attrs(same_design), statement.of, statement.against
            )
            fall = -np.expm1(contrasts.differences(ratio, statement.start, statement.end))
            if np.isfinite(fall):
                return float(fall)
    return None


def _planned(plan: Plan) -> tuple[float, float]:
    """The time of the preamble and of a block [s], by the rates of the testbed; NaN if these do not
    say.
    """
    seconds: dict[str, Any] = {
        trial.id: planned_s(trial, plan, tool_named(trial.runner)) for trial in plan.trials()
    }
    return (np.nan, np.nan) if None in seconds.values() else _lengths(plan, seconds)


def _lengths(plan: Plan, seconds: Mapping[str, float]) -> tuple[float, float]:
    """The `length` of the preamble and of a block."""
    return length(plan, plan.preamble, seconds), length(plan, plan.blocks[0], seconds)


def length(plan: Plan, trials: Sequence[Trial], seconds: Mapping[str, float]) -> float:
    """How long trials take, side by side where the testbed lets them [s]; `seconds` has each alone,
    by its id.
    """
    times = Counter((seconds[trial.id], scale.load(plan.testbed, trial.point)) for trial in trials)
    return scale.together_s(times)


def _measured(plan: Plan, folder: Path) -> tuple[float, float, float | None]:
    """The time of the plan's preamble and of one valid block [s], with what invalid blocks cost,
    and a run's scatter (log scale; None of a single block)."""
    run, took = Folder(folder), dict[tuple, list[float]]()
    kinds = {trial.id: kind_of(trial) for trial in run.plan().trials()}
    for note in run.notes():
        if note.get("status") == "ok":
            took.setdefault(kinds[note["id"]], []).append(note["seconds"])
    seconds = {trial.id: mean(took[kind_of(trial)]) for trial in plan.trials()}
    before_s, block_s = _lengths(plan, seconds)
    apart = contrasts.primary_differences(derive.points(store.read(folder))).values
    whole = apart[:, np.isfinite(apart).all(axis=0)]
    has_scatter = whole.shape[1] >= LEAST_BLOCKS
    scatter = np.sqrt(whole.var(axis=1, ddof=1).mean() / RUNS_IN_D) if has_scatter else None
    return before_s, block_s * apart.shape[1] / whole.shape[1], scatter
