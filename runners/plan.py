"""Turn a campaign's description into the trials that it means.

The descriptions are plain dicts (parsed TOML); the plan is plain JSON (`trials.json`), so that
where the trials run needs neither a TOML reader nor this module.
"""

import hashlib
import itertools
import json
import random
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Tuple

from runners.record import FalloffError, Settings, Trial, to_json


@dataclass(frozen=True)
class Stopping:
    """When a campaign ends, always at a whole block: whichever rule is met first.

    `blocks` is the largest number of blocks; `time_budget_s` (0: none) covers everything from
    the first trial on; `precision` (0: none) is the half-width of the 95 % interval of the
    primary contrast's fall, as a fraction.
    """

    blocks: int
    time_budget_s: float = 0.0
    precision: float = 0.0


@dataclass(frozen=True)
class Plan:
    """A campaign resolved for one testbed: what precedes the blocks, and the blocks in order.

    `design` is what the analysis needs to know (margin, contrasts ...), decided before the run.
    `digest` identifies the trials: two plans mix only when their digests are equal.
    It does not depend on the stopping rule, so that a campaign can be extended.
    """

    name: str
    title: str
    digest: str
    testbed: Mapping[str, Any]
    interconnects: Mapping[str, Any]
    design: Mapping[str, Any]
    stopping: Stopping
    preamble: Tuple[Trial, ...]
    blocks: Tuple[Tuple[Trial, ...], ...]

    def trials(self) -> List[Trial]:
        """All trials in the order in which they run."""
        return list(itertools.chain(self.preamble, *self.blocks))


def resolve(
    campaign: Mapping[str, Any], testbed: Mapping[str, Any], interconnects: Mapping[str, Any], preset: str = ""
) -> Plan:
    """Resolve a campaign's description for a testbed; raises FalloffError naming every fault."""
    faults = _faults(campaign, testbed, interconnects, preset)
    if faults:
        raise FalloffError(f"campaign {campaign.get('name', '?')}: " + "; ".join(faults))
    stopping = Stopping(**{**campaign["stopping"], **campaign.get("presets", {}).get(preset, {})})
    networks = {name: interconnects[name] for name in _interconnects(campaign)}
    preamble = _preamble(campaign)
    blocks = tuple(_block(campaign, number) for number in range(1, stopping.blocks + 1))
    identity = {
        "seed": campaign["seed"],
        "design": campaign["design"],
        "testbed": testbed,
        "interconnects": {name: _physical(network) for name, network in networks.items()},
        "trials": [to_json(trial) for trial in (*preamble, *_block(campaign, 1))],
    }
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return Plan(
        name=campaign["name"],
        title=campaign["title"],
        digest=digest,
        testbed=testbed,
        interconnects=networks,
        design={**campaign["design"], "factors": campaign["factors"]},
        stopping=stopping,
        preamble=preamble,
        blocks=blocks,
    )


def with_blocks(plan: Plan, campaign: Mapping[str, Any], blocks: int) -> Plan:
    """The same plan with exactly that many blocks and no other stopping rule."""
    return replace(
        plan,
        stopping=Stopping(blocks=blocks),
        blocks=tuple(_block(campaign, number) for number in range(1, blocks + 1)),
    )


def plan_to_json(plan: Plan) -> str:
    """The plan as the text of `trials.json`."""
    return json.dumps(to_json(plan), indent=1)


def plan_from_json(text: str) -> Plan:
    """The inverse of `plan_to_json`; raises KeyError, TypeError or ValueError when it is not one."""
    data = json.loads(text)
    data["stopping"] = Stopping(**data["stopping"])
    data["preamble"] = tuple(Trial(**trial) for trial in data["preamble"])
    data["blocks"] = tuple(tuple(Trial(**trial) for trial in block) for block in data["blocks"])
    return Plan(**data)


def _faults(
    campaign: Mapping[str, Any], testbed: Mapping[str, Any], interconnects: Mapping[str, Any], preset: str
) -> List[str]:
    """Every reason why the description cannot be resolved, in words."""
    wanted = ("name", "title", "runner", "seed", "factors", "settings", "design", "stopping")
    missing = [f"'{key}' is missing" for key in wanted if key not in campaign]
    if missing:
        return missing
    faults = []
    presets = campaign.get("presets", {})
    if preset and preset not in presets:
        faults.append(f"preset {preset!r} is unknown; there are {', '.join(presets) or 'none'}")
    rules = {**campaign["stopping"], **presets.get(preset, {})}
    known = Stopping.__dataclass_fields__
    faults += [f"stopping rule {rule!r} is unknown; there are {', '.join(known)}" for rule in rules if rule not in known]
    if not isinstance(rules.get("blocks"), int) or rules["blocks"] < 1:
        faults.append("stopping needs 'blocks', a whole number from 1")
    for name in _interconnects(campaign):
        if name not in interconnects:
            faults.append(f"interconnect {name!r} is unknown; there are {', '.join(interconnects)}")
    available = testbed.get("nodes")
    too_many = [n for n in campaign["factors"].get("nodes", []) if available is not None and n > available]
    if too_many:
        faults.append(f"{max(too_many)} nodes are asked for, testbed {testbed.get('name')} has {available}")
    return faults


def _interconnects(campaign: Mapping[str, Any]) -> List[str]:
    """The interconnects that the design compares, then those that only its bracket uses."""
    used = [*campaign["factors"].get("interconnect", []), campaign.get("bracket", {}).get("interconnect")]
    return [name for name in dict.fromkeys(used) if name is not None]


def _physical(interconnect: Mapping[str, Any]) -> Dict[str, Any]:
    """What of an interconnect decides a measurement: its numbers, not how it is called or where they are from."""
    return {key: value for key, value in interconnect.items() if key not in ("name", "short", "source")}


def _points(campaign: Mapping[str, Any]) -> List[Settings]:
    """Every combination of levels, each with the settings that its levels entail."""
    factors = campaign["factors"]
    points = []
    for levels in itertools.product(*factors.values()):
        point: Dict[str, Any] = dict(campaign["settings"])
        for factor, level in zip(factors, levels):
            point[factor] = level
            point.update(campaign.get("levels", {}).get(factor, {}).get(str(level), {}))
        points.append(point)
    return points


def _block(campaign: Mapping[str, Any], number: int) -> Tuple[Trial, ...]:
    """One trial of every point in random order, bracketed by the reference measurement."""
    chance = random.Random(f"{campaign['seed']}/{number}")
    points = _points(campaign)
    chance.shuffle(points)
    sequence = [("point", campaign["runner"], point) for point in points]
    if "bracket" in campaign:
        bracket = dict(campaign["bracket"])
        runner = bracket.pop("runner")
        factor = bracket.pop("over")
        for role in ("before", "after"):
            levels = list(campaign["factors"][factor])
            chance.shuffle(levels)
            around = [(role, runner, {**bracket, factor: level}) for level in levels]
            sequence = around + sequence if role == "before" else sequence + around
    return _numbered(sequence, number)


def _preamble(campaign: Mapping[str, Any]) -> Tuple[Trial, ...]:
    """The testbed's survey of its own links, then the run that is discarded."""
    sequence = []
    for survey in campaign.get("survey", []):
        fixed = {key: value for key, value in survey.items() if key not in ("runner", "links")}
        for interconnect, (sender, receiver) in itertools.product(
            campaign["factors"]["interconnect"], survey["links"]
        ):
            link = {"interconnect": interconnect, "sender": sender, "receiver": receiver}
            sequence.append(("survey", survey["runner"], {**fixed, **link}))
    for wanted in campaign.get("warm_up", []):
        matching = [p for p in _points(campaign) if all(p.get(k) == v for k, v in wanted.items())]
        sequence += [("warm_up", campaign["runner"], point) for point in matching[:1]]
    return _numbered(sequence, 0)


def _numbered(sequence: List[Tuple[str, str, Settings]], block: int) -> Tuple[Trial, ...]:
    return tuple(
        Trial(id=f"b{block:03d}-{order:03d}-{runner}", role=role, runner=runner, block=block, order=order, point=point)
        for order, (role, runner, point) in enumerate(sequence, start=1)
    )
