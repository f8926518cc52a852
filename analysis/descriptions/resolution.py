"""Turn a campaign and a testbed into a plan, or name every reason why they do not fit."""

import hashlib
import importlib
import importlib.util
import itertools
import json
import random
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from analysis.descriptions.campaigns import ALL_NODES, Campaign
from analysis.descriptions.testbeds import EmulatedTestbed, SimulatedTestbed, Testbed
from runners.records.description_rules import BLOCKS
from runners.records.plan import LEAST_BLOCKS, WITHOUT_MESSAGES, Plan, Stopping, invalid_names
from runners.records.record import FalloffError, Settings, Trial, faulty, unknown_key
from runners.tools import names as tool_names
from runners.tools import tool_named

Networks = Mapping[str, Mapping[str, Any]]

# The name of an interconnect and the sources of its numbers do not affect a measurement.
_UNPHYSICAL = ("name", "short", "source")


def resolve(campaign: Campaign, testbed: Testbed, networks: Networks) -> Plan:
    """Resolve a campaign, as a testbed can run it, to its trials. `networks` are the plain tables
    of all interconnects and paths by name.

    Raises FalloffError naming every reason why it cannot be.
    """
    misfits = faults(campaign, testbed, networks) + invalid_names((campaign.name, testbed.name))
    if misfits:
        raise faulty(f"campaign {campaign.name}", misfits)
    used = {name: dict(networks[name]) for name in networks_of(campaign)}
    return _planned(campaign, testbed.plain(), used, campaign.stopping.record())


def with_blocks(plan: Plan, campaign: Campaign, blocks: int) -> Plan:
    """The same plan with exactly that many blocks, no other stopping rule, and a single look at the
    end.

    Raises FalloffError for a number of blocks that no campaign may have.
    """
    if not BLOCKS.allows(blocks):
        raise FalloffError(f"blocks = {blocks} must be {BLOCKS.words}")
    looks = (blocks,) if plan.stopping.looks and blocks >= LEAST_BLOCKS else ()
    stopping = Stopping(blocks=blocks, looks=looks)
    return _planned(campaign, plan.testbed, plan.interconnects, stopping)


def _planned(
    campaign: Campaign, testbed: Mapping[str, Any], networks: Networks, stopping: Stopping
) -> Plan:
    preamble = _preamble(campaign)
    blocks = tuple(_block(campaign, number) for number in range(1, stopping.blocks + 1))
    identity = {
        "seed": campaign.seed,
        "design": campaign.design.plain(),
        "testbed": testbed,
        "interconnects": {
            name: {key: value for key, value in network.items() if key not in _UNPHYSICAL}
            for name, network in networks.items()
        },
        "trials": [asdict(trial) for trial in (*preamble, *_block(campaign, 1))],
    }
    if stopping.looks:
        identity["stopping"] = {
            key: rule for key, rule in asdict(stopping).items() if key != "blocks_a_session" or rule
        }
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return Plan(
        name=campaign.name,
        title=campaign.title,
        digest=digest,
        testbed=testbed,
        interconnects=networks,
        design=design_of(campaign, stopping),
        stopping=stopping,
        preamble=preamble,
        blocks=blocks,
    )


def design_of(campaign: Campaign, stopping: Stopping) -> dict[str, Any]:
    """What the analysis needs to know, as a plan has it: the parts of the design for which the
    campaign has levels, factors, looks."""
    factors, design, a_session = campaign.factors, campaign.design, stopping.blocks_a_session
    nodes, described = factors.get("nodes", []), {**design.plain(), "factors": factors}
    if design.statements:
        levels = {WITHOUT_MESSAGES, *factors.get(design.compared, [])}
        described["primary"] = [
            statement.plain()
            for statement in design.statements
            if set(statement.networks) <= levels and {statement.start, statement.to} <= set(nodes)
        ]
    if design.negative_control not in nodes:
        described.pop("negative_control", None)
    if stopping.looks:
        described.update(looks=list(stopping.looks), one_sided=stopping.one_sided)
        described.update({"blocks_a_session": a_session} if a_session else {})
    return described


def points_of(campaign: Campaign) -> list[dict[str, Any]]:
    """Every combination of levels, each with the settings that its levels entail.

    `levels` has a table for each factor that entails settings, or for several factors together;
    then the table's name and its keys join theirs with a space.
    """
    points = []
    for levels in itertools.product(*campaign.factors.values()):
        point = {**campaign.settings, **dict(zip(campaign.factors, levels))}
        for names, entailed in campaign.levels.items():
            key = " ".join(str(point.get(name)) for name in names.split())
            point.update(entailed.get(key, {}))
        points.append(point)
    return points


def networks_of(campaign: Campaign) -> list[str]:
    """The names of the interconnects and the paths that the trials use."""
    used = [*campaign.factors.get("interconnect", []), *campaign.factors.get("path", [])]
    used += [campaign.settings["path"]] if "path" in campaign.settings else []
    return list(dict.fromkeys(map(str, used)))


def _matching(campaign: Campaign, wanted: Settings) -> list[dict[str, Any]]:
    """The points that have all of these settings."""
    return [point for point in points_of(campaign) if wanted.items() <= point.items()]


def _block(campaign: Campaign, number: int) -> tuple[Trial, ...]:
    """One trial of every point in random order; those of one level of `grouped_by` stay
    together."""
    chance, points = random.Random(f"{campaign.seed}/{number}"), points_of(campaign)
    chance.shuffle(points)
    if group := campaign.grouped_by:
        levels = list(campaign.factors[group])
        chance.shuffle(levels)
        points.sort(key=lambda point: levels.index(point[group]))
    return _numbered([("point", campaign.runner, point) for point in points], number)


def _preamble(campaign: Campaign) -> tuple[Trial, ...]:
    """The testbed's survey of its own links, then the warm-up run, which is discarded."""
    sequence = []
    for survey in campaign.survey:
        for interconnect in campaign.factors["interconnect"]:
            for sender, receiver in survey.links:
                link = {"interconnect": interconnect, "sender": sender, "receiver": receiver}
                sequence.append(("survey", survey.runner, {**survey.settings, **link}))
    for wanted in campaign.warm_up:
        sequence.append(("warm_up", campaign.runner, _matching(campaign, wanted)[0]))
    return _numbered(sequence, 0)


def _numbered(sequence: list[tuple[str, str, dict]], block: int) -> tuple[Trial, ...]:
    return tuple(
        Trial(f"b{block:03d}-{order:03d}-{runner}", role, runner, block, order, point)
        for order, (role, runner, point) in enumerate(sequence, start=1)
    )


def faults(campaign: Campaign, testbed: Testbed, networks: Collection[str]) -> list[str]:
    """Every reason why a campaign cannot be resolved for a testbed, one sentence each; `networks`
    are the described ones."""
    misfits = _faulty_levels(campaign) + _unlike_testbed(campaign, testbed, networks)
    return misfits or _unread(campaign, testbed)


def _faulty_levels(campaign: Campaign) -> list[str]:
    """Parts that mention a missing factor or level, or that would silently leave out a level."""
    factors, faults = campaign.factors, []
    for names, entailed in campaign.levels.items():
        strange = [factor for factor in names.split() if factor not in factors]
        faults += [f"levels.{names} is there, but {factor!r} is no factor" for factor in strange]
        levels = itertools.product(*(factors.get(factor, []) for factor in names.split()))
        keys = [" ".join(map(str, level)) for level in levels]
        unsaid = [key for key in keys if key not in entailed]
        faults += [f"levels.{names} does not say what {key} entails" for key in unsaid]
    if campaign.grouped_by and campaign.grouped_by not in factors:
        faults.append(f"grouped_by = {campaign.grouped_by!r} is no factor")
    if campaign.survey and "interconnect" not in factors:
        faults.append("survey: only links of an interconnect can be surveyed, and none is a factor")
    warm_ups = [settings for settings in campaign.warm_up if not _matching(campaign, settings)]
    return faults + [f"warm_up: no point is like {settings}" for settings in warm_ups]


def _unlike_testbed(campaign: Campaign, testbed: Testbed, networks: Collection[str]) -> list[str]:
    """What the campaign asks for and the testbed lacks."""
    factors, name = campaign.factors, testbed.name
    used = [name for name in networks_of(campaign) if name not in networks]
    lacking = [unknown_key("interconnect ", name, networks) for name in used]
    if "path" in factors and not isinstance(testbed, EmulatedTestbed):
        lacking.append(f"its nodes are joined by paths, and those of testbed {name} are not")
    if isinstance(testbed, EmulatedTestbed) and not networks_of(campaign):
        lacking.append(
            f"testbed {name} needs factors.interconnect or factors.path; "
            'interconnect = ["unshaped"] where no network is measured'
        )
    asked = factors.get("interconnect", [])
    if asked and testbed.interconnects is not None and not set(asked) & {*testbed.interconnects}:
        lacking.append(f"testbed {name} has no interconnect {' or '.join(map(str, asked))}")
    both = [way for way in factors.get("aggregation", []) if way != "one_link"]
    if both and getattr(testbed, "rails", 1) < 2:
        lacking.append(f"aggregation {both[0]} needs two links a node, testbed {name} has one")
    varied = [level for level in factors.get("vary", []) if level != "none"]
    if varied and not isinstance(testbed, SimulatedTestbed):
        lacking.append(
            f"{varied[0]} varies a number of a model, and testbed {name} is no simulated one"
        )
    nodes: list[Any] = factors.get("nodes", [])
    most = max((count for count in nodes if count != ALL_NODES), default=0)
    if testbed.nodes is not None and most > testbed.nodes:
        lacking.append(f"{most} nodes are asked for, testbed {name} has {testbed.nodes}")
    return lacking


def _unread(campaign: Campaign, testbed: Testbed) -> list[str]:
    """Settings that neither the tool nor the testbed reads, and invalid values of others.

    A factor whose levels entail settings need not be read, because it only names them.
    """
    faults, seen, of_testbed = [], set(), _read_by(testbed.kind)
    # Any tool may read the testbed's own settings.
    names = {*testbed.settings, *" ".join(campaign.levels).split()}
    surveys = [(survey.runner, survey.settings) for survey in campaign.survey]
    for runner, point in [(campaign.runner, point) for point in points_of(campaign)] + surveys:
        if runner not in tool_names():  # tests define their own tools
            continue
        rules = {**of_testbed, **tool_named(runner).settings}
        for key, value in point.items():
            if (key, str(value)) in seen:
                continue
            seen.add((key, str(value)))
            if key in rules and not rules[key].allows(value):
                faults.append(f"{key} = {value!r} must be {rules[key].words}")
            elif key not in rules and key not in names:
                who = f"neither {runner} nor testbed {testbed.name} reads the setting "
                faults.append(unknown_key(who, key, rules).replace(" is unknown;", ";"))
    return list(dict.fromkeys(faults))


def _read_by(kind: str) -> Mapping[str, Any]:
    """The settings of a point that a kind of testbed reads itself, each with its rule."""
    module = f"runners.testbeds.{kind}"
    if importlib.util.find_spec(module) is None:  # tests define their own kind
        return {}
    return importlib.import_module(module).POINT
