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

from runners.description import Stopping, faults, interconnects_of, matching, points_of
from runners.record import FalloffError, Settings, Trial, to_json


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
    campaign: Mapping[str, Any], testbed: Mapping[str, Any], interconnects: Mapping[str, Any]
) -> Plan:
    """Resolve a campaign's description for a testbed; raises FalloffError naming every fault."""
    found = faults(campaign, testbed, interconnects)
    if found:
        raise FalloffError(f"campaign {campaign.get('name', '?')}: " + "; ".join(found))
    stopping = Stopping(**campaign["stopping"])
    networks = {name: interconnects[name] for name in interconnects_of(campaign)}
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


def _physical(interconnect: Mapping[str, Any]) -> Dict[str, Any]:
    """What of an interconnect decides a measurement: its numbers, not how it is called or where they are from."""
    return {key: value for key, value in interconnect.items() if key not in ("name", "short", "source")}


def _block(campaign: Mapping[str, Any], number: int) -> Tuple[Trial, ...]:
    """One trial of every point in random order, bracketed by the reference measurement."""
    chance = random.Random(f"{campaign['seed']}/{number}")
    points = points_of(campaign)
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
        sequence.append(("warm_up", campaign["runner"], matching(campaign, wanted)[0]))
    return _numbered(sequence, 0)


def _numbered(sequence: List[Tuple[str, str, Settings]], block: int) -> Tuple[Trial, ...]:
    return tuple(
        Trial(id=f"b{block:03d}-{order:03d}-{runner}", role=role, runner=runner, block=block, order=order, point=point)
        for order, (role, runner, point) in enumerate(sequence, start=1)
    )
