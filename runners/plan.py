"""Turn a campaign's description into its trials.

The descriptions are plain dicts (parsed TOML). The plan is plain JSON (`trials.json`), so that the
machine that runs the trials needs neither a TOML reader nor this module.
"""

import hashlib
import itertools
import json
import random
from dataclasses import asdict, dataclass
from typing import Any, Iterable, List, Mapping, Optional, Tuple, Union

from runners import kept
from runners.description import (
    LEAST_BLOCKS,
    Stopping,
    design_of,
    faults,
    interconnects_of,
    matching,
    points_of,
    stopping_of,
)
from runners.description_rules import BLOCKS
from runners.record import FalloffError, Settings, Tool, Trial, faulty, is_name


@dataclass(frozen=True)
class Plan:
    """A campaign resolved for one testbed: a preamble, and the blocks in order.

    `design` is what the analysis needs to know (margin, contrasts ...), fixed before the run.
    `digest` identifies the trials: two plans mix only if their digests are equal. If looks are
    planned, the digest covers everything that can end the campaign, so that no campaign continues
    after its end was seen. Without looks, data never end a campaign, and more blocks may follow.
    """

    name: str
    title: str
    digest: str
    testbed: Mapping[str, Any]
    interconnects: Mapping[str, Mapping[str, Any]]
    design: Mapping[str, Any]
    stopping: Stopping
    preamble: Tuple[Trial, ...]
    blocks: Tuple[Tuple[Trial, ...], ...]

    def trials(self) -> List[Trial]:
        """All trials in the order in which they run."""
        return list(itertools.chain(self.preamble, *self.blocks))


def resolve(
    campaign: Mapping[str, Any], testbed: Mapping[str, Any], interconnects: Mapping[str, Any]
) -> Plan:
    """Resolve a campaign's description for a testbed; raises FalloffError naming every fault."""
    names = [str(described["name"]) for described in (campaign, testbed) if "name" in described]
    reasons = [*faults(campaign, testbed, interconnects), *_no_names(names)]
    if reasons:
        raise faulty(f"campaign {campaign.get('name', '?')}", reasons)
    networks = {name: interconnects[name] for name in interconnects_of(campaign)}
    return _planned(campaign, testbed, networks, stopping_of(campaign["stopping"]))


def _no_names(names: Iterable[str]) -> List[str]:
    """Why invalid names are invalid, a line each."""
    wanted = "a name has letters, digits, blanks and _.,+@=- alone"
    return [f"{name[:40]!r}: {wanted}" for name in names if not is_name(name)]


def with_blocks(plan: Plan, campaign: Mapping[str, Any], blocks: int) -> Plan:
    """The same plan with exactly that many blocks, no other stopping rule, and a single look at the
    end.

    Raises FalloffError for a number of blocks that no campaign may have.
    """
    if not BLOCKS[0](blocks):
        raise FalloffError(f"blocks = {blocks} must be {BLOCKS[1]}")
    looks = (blocks,) if plan.stopping.looks and blocks >= LEAST_BLOCKS else ()
    return _planned(
        campaign, plan.testbed, plan.interconnects, Stopping(blocks=blocks, looks=looks)
    )


def _planned(
    campaign: Mapping[str, Any],
    testbed: Mapping[str, Any],
    networks: Mapping[str, Any],
    stopping: Stopping,
) -> Plan:
    campaign = {**campaign, "stopping": asdict(stopping)}
    # The name of an interconnect and the sources of its numbers do not affect a measurement.
    unphysical = ("name", "short", "source")
    preamble = _preamble(campaign)
    blocks = tuple(_block(campaign, number) for number in range(1, stopping.blocks + 1))
    identity = {
        "seed": campaign["seed"],
        "design": campaign["design"],
        "testbed": testbed,
        "interconnects": {
            name: {key: value for key, value in network.items() if key not in unphysical}
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
        name=campaign["name"],
        title=campaign["title"],
        digest=digest,
        testbed=testbed,
        interconnects=networks,
        design=design_of(campaign, stopping),
        stopping=stopping,
        preamble=preamble,
        blocks=blocks,
    )


def plan_to_json(plan: Plan) -> str:
    """The plan as the text of `trials.json`."""
    return json.dumps(asdict(plan), indent=1)


def plan_from_json(text: Union[str, bytes]) -> Plan:
    """The inverse of `plan_to_json`; raises ValueError if the text is not a plan."""
    data = kept.parsed(text)
    if isinstance(data, dict) and isinstance(data.get("stopping"), dict):
        data["stopping"].pop("precision", None)  # in older plans
    plan = kept.record(Plan, data)
    testbed = plan.testbed
    count = testbed.get("nodes")  # 0 for imported files
    if not isinstance(testbed.get("name"), str) or type(count) is not int or not 0 <= count < 1e6:
        raise ValueError("its testbed has no name, or no number of nodes")
    names = (plan.name, testbed["name"], *(trial.id for trial in plan.trials()))
    if strange := _no_names(names):
        raise ValueError(strange[0])
    tables = [testbed.get(name, {}) for name in ("node", "network", "networks", "rates", "rpeak")]
    if not all(isinstance(table, dict) for table in tables):
        raise ValueError("of its testbed, node, network, networks, rates or rpeak is no table")
    design = kept.record(
        _Design, {name: value for name, value in plan.design.items() if name in _OF_DESIGN}
    )
    levels = [level for levels in design.factors.values() for level in levels]
    if any(isinstance(level, (list, dict)) or level is None for level in levels):
        raise ValueError("a level of its design is neither a text nor a number")
    if not all(type(count) is int for count in design.factors.get("nodes", ())):
        raise ValueError("a number of nodes of its design is no whole number")
    if not _are_statements(plan.design.get("primary", [])):
        raise ValueError("its primary statements are none")
    return plan


@dataclass(frozen=True)
class _Design:
    """The part of a design that decides what is judged, as far as all experiments read it in the
    same way."""

    factors: Mapping[str, Tuple[Any, ...]]
    compared: str = "interconnect"
    margin: Optional[float] = None
    baseline_nodes: Optional[int] = None
    negative_control: Optional[int] = None
    looks: Tuple[int, ...] = ()
    one_sided: float = 0.05


def _are_statements(primary: Any) -> bool:
    """Whether these are two levels, or tables with two networks and two numbers of nodes."""
    if not isinstance(primary, list):
        return False
    if not any(isinstance(one, dict) for one in primary):
        return len(primary) in (0, 2) and not any(isinstance(one, list) for one in primary)
    return all(
        isinstance(one, dict)
        and isinstance(one.get("networks"), list)
        and [type(name) for name in one["networks"]] == [str, str]
        and type(one.get("from")) is type(one.get("to")) is int
        for one in primary
    )


_OF_DESIGN = tuple(_Design.__dataclass_fields__)


def _block(campaign: Mapping[str, Any], number: int) -> Tuple[Trial, ...]:
    """One trial of every point in random order; those of one level of `grouped_by` stay
    together."""
    chance, points = random.Random(f"{campaign['seed']}/{number}"), points_of(campaign)
    chance.shuffle(points)
    if "grouped_by" in campaign:
        levels = list(campaign["factors"][campaign["grouped_by"]])
        chance.shuffle(levels)
        points.sort(key=lambda point: levels.index(point[campaign["grouped_by"]]))
    return _numbered([("point", campaign["runner"], point) for point in points], number)


def _preamble(campaign: Mapping[str, Any]) -> Tuple[Trial, ...]:
    """The testbed's survey of its own links, then the warm-up run, which is discarded."""
    sequence = []
    for survey in campaign.get("survey", []):
        fixed = {key: value for key, value in survey.items() if key not in ("runner", "links")}
        for interconnect in campaign["factors"]["interconnect"]:
            for sender, receiver in survey["links"]:
                link = {"interconnect": interconnect, "sender": sender, "receiver": receiver}
                sequence.append(("survey", survey["runner"], {**fixed, **link}))
    for wanted in campaign.get("warm_up", []):
        sequence.append(("warm_up", campaign["runner"], matching(campaign, wanted)[0]))
    return _numbered(sequence, 0)


def _numbered(sequence: List[Tuple[str, str, Settings]], block: int) -> Tuple[Trial, ...]:
    return tuple(
        Trial(f"b{block:03d}-{order:03d}-{runner}", role, runner, block, order, point)
        for order, (role, runner, point) in enumerate(sequence, start=1)
    )


Kind = Tuple[str, Tuple[Any, ...]]


def kind_of(trial: Trial) -> Kind:
    """The key that trials of equal duration share."""
    return trial.runner, tuple(trial.point.get(name) for name in ("nodes", "N", "dilation"))


def planned_s(trial: Trial, plan: Plan, tool: Tool) -> Optional[float]:
    """How long a trial of a tool takes by the rates of its testbed [s]; None where these do not say."""
    return tool.seconds(trial.point, plan.testbed) if tool.seconds else None
