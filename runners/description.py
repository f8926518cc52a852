"""What a campaign's description says: when it ends, its points, and what is wrong with it.

A description is a plain dict, the parsed TOML of a file in data/campaigns.
"""

import itertools
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Tuple

from runners import design, on_cluster
from runners.record import FalloffError, Settings

LEAST_BLOCKS = 2  # that have an interval

# The keys of a campaign's description.
_WANTED = ("name", "title", "runner", "seed", "factors", "settings", "design", "stopping")
_OPTIONAL = ("testbed", "grouped_by", "levels", "survey", "warm_up", "presets")


@dataclass(frozen=True)
class Stopping:
    """When a campaign ends, always at a whole block: whichever rule is met first.

    `blocks` is the largest number of blocks; `time_budget_s` (0: none) covers everything from
    the first trial on. `looks` are the numbers of valid blocks, ascending, after which the campaign is
    judged, each time at the nominal one-sided level `one_sided`: it ends when all of its primary statements
    are decided, at the latest at the last look. `blocks` may exceed that, to make up for invalid blocks.
    """

    blocks: int
    time_budget_s: float = 0.0
    looks: Tuple[int, ...] = ()
    one_sided: float = 0.05


def for_testbed(campaign: Mapping[str, Any], testbed: Mapping[str, Any]) -> Mapping[str, Any]:
    """A campaign as a testbed can run it: with the testbed's own `settings`, on its `interconnects` alone, without
    surveys by tools that are not among its `runners`, and with no more than its `blocks`. What a testbed does not
    name stays; so do interconnects of which it has none, for the plan to refuse."""
    runners, networks = testbed.get("runners"), campaign["factors"].get("interconnect", [])
    fitted = {**campaign, "settings": {**campaign["settings"], **testbed.get("settings", {})}}
    there = [name for name in networks if name in testbed.get("interconnects", networks)]
    if there:
        fitted["factors"] = {**campaign["factors"], "interconnect": there}
        warm_ups = campaign.get("warm_up", [])
        fitted["warm_up"] = [alike for alike in warm_ups if alike.get("interconnect", there[0]) in there]
    if runners is not None:
        fitted["survey"] = [survey for survey in campaign.get("survey", []) if survey["runner"] in runners]
    if "blocks" in testbed:  # what repeats itself exactly is not looked at several times
        rules = {rule: value for rule, value in campaign["stopping"].items() if rule not in ("looks", "one_sided")}
        fitted["stopping"] = {**rules, "blocks": testbed["blocks"]}
        fitted["warm_up"] = []
    return on_cluster.fitted(fitted, testbed) if testbed.get("kind") == "cluster" else fitted


def for_preset(campaign: Mapping[str, Any], preset: str) -> Mapping[str, Any]:
    """A campaign with a preset's stopping rules and, where it has `factors`, with its levels of those.

    Raises FalloffError when the campaign has no such preset, or lacks a part; an empty name is the campaign as it
    stands.
    """
    missing = _misshapen(campaign)
    if missing:
        raise FalloffError(f"campaign {campaign.get('name', '?')}: {'; '.join(missing)}")
    presets = {"": {}, **campaign.get("presets", {})}
    if preset not in presets:
        raise FalloffError(
            f"campaign {campaign.get('name', '?')}: preset {preset!r} is unknown; "
            f"there are {', '.join(campaign.get('presets', {})) or 'none'}"
        )
    rules = dict(presets[preset])
    levels = rules.pop("factors", {})
    return {
        **campaign,
        "factors": {**campaign["factors"], **levels},
        "stopping": {**campaign["stopping"], **rules},
    }


def points_of(campaign: Mapping[str, Any]) -> List[Settings]:
    """Every combination of levels, each with the settings that its levels entail.

    `levels` has a table for each factor that entails any, or for several factors together: its name and
    its keys are then theirs, with a space between.
    """
    factors = campaign["factors"]
    points = []
    for levels in itertools.product(*factors.values()):
        point: Dict[str, Any] = {**campaign["settings"], **dict(zip(factors, levels))}
        for names, entailed in campaign.get("levels", {}).items():
            point.update(entailed.get(" ".join(str(point.get(name)) for name in names.split()), {}))
        points.append(point)
    return points


def matching(campaign: Mapping[str, Any], wanted: Settings) -> List[Settings]:
    """The points that have all of these settings."""
    return [point for point in points_of(campaign) if wanted.items() <= point.items()]


def interconnects_of(campaign: Mapping[str, Any]) -> List[str]:
    """The interconnects and the paths that the trials use."""
    factors = campaign["factors"]
    used = [*factors.get("interconnect", []), *factors.get("path", []), campaign["settings"].get("path")]
    return [name for name in dict.fromkeys(used) if name is not None]


def stopping_of(campaign: Mapping[str, Any]) -> Stopping:
    """The campaign's stopping rules; raises TypeError for an unknown one."""
    rules = campaign["stopping"]
    return Stopping(**{**rules, "looks": tuple(rules.get("looks", ()))})


def faults(
    campaign: Mapping[str, Any], testbed: Mapping[str, Any], interconnects: Mapping[str, Any]
) -> List[str]:
    """Every reason why a campaign cannot be resolved for a testbed, in words; empty when it can."""
    return _misshapen(campaign) or [
        *_faulty_stopping(campaign),
        *design.faults(campaign["design"]),
        *_faulty_levels(campaign),
        *_unlike_testbed(campaign, testbed, interconnects),
    ]


def _misshapen(campaign: Mapping[str, Any]) -> List[str]:
    """Parts that are missing or unknown, and factors without distinct levels: nothing else can be checked then."""
    faults = [f"'{key}' is missing" for key in _WANTED if key not in campaign]
    faults += [f"{key!r} is unknown: leave it out" for key in campaign if key not in (*_WANTED, *_OPTIONAL)]
    return faults + [
        f"factor {factor!r} needs a list of distinct levels, not {levels!r}"
        for factor, levels in campaign.get("factors", {}).items()
        if not isinstance(levels, list) or not levels or len(set(levels)) < len(levels)
    ]


def _faulty_stopping(campaign: Mapping[str, Any]) -> List[str]:
    rules, known = campaign["stopping"], Stopping.__dataclass_fields__
    unknown = [rule for rule in rules if rule not in known]
    found = [f"stopping rule {rule!r} is unknown; there are {', '.join(known)}" for rule in unknown]
    if not isinstance(rules.get("blocks"), int) or rules["blocks"] < 1:
        return [*found, "stopping needs 'blocks', a whole number from 1"]
    looks, level = rules.get("looks", ()), rules.get("one_sided", Stopping.one_sided)
    whole = all(isinstance(look, int) for look in looks)
    if not whole or list(looks) != sorted(set(looks)) or not all(LEAST_BLOCKS <= n <= rules["blocks"] for n in looks):
        found.append(
            f"stopping needs looks that ascend from {LEAST_BLOCKS} to its {rules['blocks']} blocks, not {looks!r}"
        )
    if not isinstance(level, float) or not 0 < level < 0.5:
        found.append(f"stopping needs a one_sided level above 0 and below 0.5, not {level!r}")
    return found


def _faulty_levels(campaign: Mapping[str, Any]) -> List[str]:
    """What speaks of a factor or a level that is not there, or would leave out a level without a word."""
    factors, found = campaign["factors"], []
    for names, entailed in campaign.get("levels", {}).items():
        strange = [factor for factor in names.split() if factor not in factors]
        found += [f"levels.{names} is there, but {factor!r} is no factor" for factor in strange]
        levels = itertools.product(*(factors.get(factor, []) for factor in names.split()))
        unsaid = [key for key in (" ".join(map(str, level)) for level in levels) if key not in entailed]
        found += [f"levels.{names} does not say what {key} entails" for key in unsaid]
    if campaign.get("grouped_by", next(iter(factors))) not in factors:
        found.append(f"its trials are grouped by {campaign['grouped_by']!r}, which is no factor")
    for alike in campaign.get("warm_up", []):
        if not matching(campaign, alike):
            found.append(f"no point is like the warm_up's {dict(alike)}")
    return found


def _unlike_testbed(
    campaign: Mapping[str, Any], testbed: Mapping[str, Any], interconnects: Mapping[str, Any]
) -> List[str]:
    """What the campaign asks for and the testbed has not."""
    found = [
        f"interconnect {name!r} is unknown; there are {', '.join(interconnects)}"
        for name in interconnects_of(campaign)
        if name not in interconnects
    ]
    name, available = testbed.get("name"), testbed.get("nodes")
    if "path" in campaign["factors"] and testbed.get("kind") != "emulated":
        found.append(f"its nodes are joined by paths, and those of testbed {name} are not")
    asked = campaign["factors"].get("interconnect", [])
    if asked and not set(asked) & set(testbed.get("interconnects", asked)):
        found.append(f"testbed {name} has no interconnect {' or '.join(asked)}")
    together = [way for way in campaign["factors"].get("aggregation", []) if way != "one_link"]
    if together and testbed.get("rails", 1) < 2:
        found.append(f"aggregation {together[0]} needs two links a node, testbed {name} has one")
    varied = [level for level in campaign["factors"].get("vary", []) if level != "none"]
    if varied and "rates" not in testbed:
        found.append(f"{varied[0]} varies a number of a model, and testbed {name} is no simulated one")
    too_many = [n for n in campaign["factors"].get("nodes", []) if available is not None and n > available]
    if too_many:
        found.append(f"{max(too_many)} nodes are asked for, testbed {name} has {available}")
    return found
