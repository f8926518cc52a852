"""What a campaign's description says: when it ends, its points, its design, and what is wrong with it.

A description is a plain dict, the parsed TOML of a file in data/campaigns. Its design is decided before
it runs: primary statements in their order, margin and negative control.

    [design]
    margin = 0.05
    negative_control = 1            # nodes at which no network is used
    [[design.primary]]              # tested in this order: the next counts only if this one is as expected
    networks = ["gige", "10gige"]   # the rate on the first against that on the second
    from = 2                        # nodes
    to = 8
    expected = "falls off"
"""

import importlib.util
import itertools
import math
from dataclasses import dataclass
from typing import Any, Collection, Dict, List, Mapping, Tuple

from runners import scale
from runners.description_rules import (
    ANYTHING,
    BLOCKS,
    COUNT,
    EACH,
    NAME,
    SETTING,
    TABLE,
    WHOLE,
    Rule,
    checked,
    listing,
)
from runners.record import FalloffError, Settings, faulty, unknown_key
from runners.tools import names as tools
from runners.tools import tool_named

LEAST_BLOCKS = 2  # the fewest blocks with an interval
ALL_NODES = "all"  # a level of `nodes`: all that the testbed has
WITHOUT_MESSAGES = "without_messages"  # a statement may compare with design.without_messages
EXPECTED = ("falls off", "flat", "rises")  # possible expectations of a primary statement

Description = Mapping[str, Any]

_LEVELS: Rule = (
    lambda value: (
        isinstance(value, list)
        and all(map(SETTING[0], value))
        and 0 < len(value) == len(set(map(str, value)))
    ),
    "a list of distinct levels",
)
_NODES: Rule = (
    lambda value: _LEVELS[0](value) and all(one == ALL_NODES or COUNT[0](one) for one in value),
    f'{_LEVELS[1]}, whole numbers from 1 or "{ALL_NODES}" of the testbed',
)
_LINK = listing(COUNT, "two nodes")
_LINKS = listing((lambda value: _LINK[0](value) and len(value) == 2, ""), "pairs of nodes")
_SURVEY: Rule = (
    lambda value: (
        isinstance(value, dict) and NAME[0](value.get("runner")) and _LINKS[0](value.get("links"))
    ),
    "",
)
_WANTED = ("name", "title", "runner", "seed", "factors", "settings", "design", "stopping")
_RULES = {
    "runner": ANYTHING,  # the known runners are listed elsewhere
    **dict.fromkeys(("name", "title", "testbed", "grouped_by"), NAME),
    "seed": (lambda value: isinstance(value, int), "a whole number"),
    "factors": {"nodes": _NODES, EACH: _LEVELS},
    "settings": {EACH: SETTING},
    **dict.fromkeys(("design", "stopping"), TABLE),
    "levels": {EACH: {EACH: TABLE}},
    "survey": listing(
        _SURVEY, "a list of tables, each with its runner and links, pairs of nodes: [[survey]]"
    ),
    "warm_up": listing(TABLE, "a list of tables: [[warm_up]]"),
    "presets": {
        EACH: {
            "factors": {"nodes": _NODES, EACH: _LEVELS},
            "settings": {EACH: SETTING},
            "design": TABLE,
            EACH: ANYTHING,
        }
    },
}
_STOPPING = {
    "blocks": BLOCKS,
    "time_budget_s": (
        lambda value: type(value) in (int, float) and value >= 0,
        "seconds, 0 for any",
    ),
    "looks": (
        lambda value: (
            isinstance(value, (list, tuple))
            and all(type(look) is int and look >= LEAST_BLOCKS for look in value)
            and list(value) == sorted(set(value))
        ),
        f"looks that ascend from {LEAST_BLOCKS}",
    ),
    "one_sided": (
        lambda value: isinstance(value, float) and 0 < value < 0.5,
        "a level above 0 and below 0.5",
    ),
    "blocks_a_session": WHOLE,
}
# Keys of a design: those that several experiments read, then those of single experiments.
_OF_DESIGN = (
    *("baseline", "baseline_nodes", "compared", "control", "margin", "negative_control"),
    *("primary", "secondary", "tolerance", "topologies"),
    *("changes", "claims", "false_alarms", "fewest_nodes", "published", "smallest"),
    WITHOUT_MESSAGES,
)

_BYTES_OF_A_NUMBER = 8
_CHANGED = ("factors", "settings", "design")  # tables whose keys a preset may change
_POINTS = "interconnect nodes"  # the levels of both factors together


@dataclass(frozen=True)
class Stopping:
    """When a campaign ends, always at a whole block: at whichever rule is met first.

    `blocks` is the largest number of blocks. `time_budget_s` (0: none) covers everything from the
    first trial on. `looks` are the numbers of valid blocks, ascending, after which the campaign is
    judged, each time at the nominal one-sided level `one_sided`. It ends when all of its primary
    statements are decided, at the latest at the last look. `blocks` may exceed the last look, to
    make up for invalid blocks. A session pauses after `blocks_a_session` blocks (0: never), so that
    an interval over blocks holds between sessions, too.
    """

    blocks: int
    time_budget_s: float = 0.0
    looks: Tuple[int, ...] = ()
    one_sided: float = 0.05
    blocks_a_session: int = 0


def stopping_of(rules: Mapping[str, Any]) -> Stopping:
    """Stopping rules as a record; raises TypeError for an unknown rule."""
    return Stopping(**{**rules, "looks": tuple(rules.get("looks", ()))})


def for_preset(
    campaign: Description, preset: str, runners: Collection[str] = (), file: str = ""
) -> Description:
    """A campaign with a preset's stopping rules and, if the preset has `factors`, with its levels
    of those.

    `runners` are the known tools; without them any name is accepted. `file` is the campaign's file,
    if any. An empty preset name leaves the campaign as it is. Raises FalloffError naming everything
    that is wrong with the campaign's file, whatever the testbed.
    """
    if found := _file_faults(campaign, preset, runners):
        raise faulty(f"campaign {file or campaign.get('name', '?')}", found)
    rules = dict(campaign["presets"][preset]) if preset else {}
    changed = {key: {**campaign[key], **rules.pop(key, {})} for key in _CHANGED}
    return {**campaign, **changed, "stopping": {**campaign["stopping"], **rules}}


def for_testbed(campaign: Description, testbed: Mapping[str, Any]) -> Description:
    """A campaign as a testbed can run it: with the testbed's own `settings`, on its `interconnects` alone,
    without surveys by tools that are not among its `runners`, without a dilation where it slows nothing down, and with no
    more than its `blocks`.

    The level "all" of `nodes` becomes the testbed's number of nodes. What a testbed does not name
    stays, and so do interconnects that it lacks, which the plan then refuses. For a cluster see
    `_for_cluster`.
    """
    runners, networks = testbed.get("runners"), campaign["factors"].get("interconnect", [])
    fitted = {**campaign, "settings": {**campaign["settings"], **testbed.get("settings", {})}}
    common = [name for name in networks if name in testbed.get("interconnects", networks)]
    if common:
        fitted["factors"] = {**campaign["factors"], "interconnect": common}
        warm_ups = campaign.get("warm_up", [])
        fitted["warm_up"] = [
            one for one in warm_ups if one.get("interconnect", common[0]) in common
        ]
    if runners is not None:
        surveys = campaign.get("survey", [])
        fitted["survey"] = [survey for survey in surveys if survey["runner"] in runners]
    if fitted["factors"].get("nodes") == [ALL_NODES] and "nodes" in testbed:
        fitted["factors"] = {**fitted["factors"], "nodes": [testbed["nodes"]]}
    if "dilation" not in testbed.get("node", {}):  # only a scale model slows time down
        fitted["settings"] = _without("dilation", fitted["settings"])
        for part in ("survey", "warm_up"):
            fitted[part] = [_without("dilation", table) for table in fitted.get(part, [])]
    if "blocks" in testbed:  # what repeats itself exactly is not looked at several times
        rules = {**campaign["stopping"], "blocks": testbed["blocks"]}
        fitted["stopping"] = {key: rules[key] for key in rules if key not in ("looks", "one_sided")}
        fitted["warm_up"] = []
    if "scale" in testbed and campaign["runner"] == "hpl" and "interconnect" in fitted["factors"]:
        fitted["levels"] = _slowed(fitted, testbed)
    return _for_cluster(fitted, testbed) if testbed.get("kind") == "cluster" else fitted


def _without(key: str, table: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in table.items() if name != key}


def _slowed(campaign: Description, testbed: Mapping[str, Any]) -> Dict[str, Any]:
    """The campaign's levels, with the dilation that the scale model's rule gives each network and
    node count.

    If the campaign states a dilation itself, that one holds.
    """
    factors, levels = campaign["factors"], dict(campaign.get("levels", {}))
    if "dilation" in factors or "dilation" in campaign["settings"]:
        return levels
    for_both = dict(levels.get(_POINTS, {}))
    for network, nodes in itertools.product(factors["interconnect"], factors.get("nodes", [])):
        try:
            slower = {"dilation": scale.dilation(testbed, network, nodes)}
        except KeyError:
            reason = f"testbed {testbed['name']}: [scale] message_s says nothing of {network}"
            raise FalloffError(reason) from None
        except (OverflowError, ValueError):
            reason = (
                f"testbed {testbed['name']}: [scale] and [node] give no dilation that is a number"
            )
            raise FalloffError(reason) from None
        for_both[f"{network} {nodes}"] = {**slower, **for_both.get(f"{network} {nodes}", {})}
    return {**levels, _POINTS: for_both}


def _for_cluster(campaign: Description, testbed: Mapping[str, Any]) -> Dict[str, Any]:
    """The campaign on the networks of a user's cluster and on no more nodes than it has.

    The networks are those that both name, else all of the testbed's. If a network of the contrast
    is missing, the contrast becomes the slowest against the fastest. A missing control, which only
    an emulation can have, becomes the network compared with. Levels are the testbed's own if it has
    them; otherwise HPL's matrices take `matrix_share` of its memory, on grids of all processes.
    Raises FalloffError if such grids are not described.
    """
    size, networks, factors = testbed["nodes"], testbed["networks"], dict(campaign["factors"])
    levels = {**campaign.get("levels", {}), **testbed.get("levels", {})}
    fitted = {**campaign, "factors": factors, "levels": levels}
    if "nodes" in factors:
        factors["nodes"] = [n for n in factors["nodes"] if n <= size] or factors["nodes"]
    if "interconnect" in factors:
        common = [name for name in factors["interconnect"] if name in networks]
        factors["interconnect"] = common or list(networks)
        fitted["design"] = _cluster_design(campaign["design"], factors, networks)
    if campaign["runner"] == "hpl":
        each = testbed.get("ranks_per_node", 1)
        fitted["settings"] = {**campaign["settings"], "ranks_per_node": each}
        if "nodes" not in testbed.get("levels", {}):
            levels.update(_problems(fitted, testbed))
    fitted["survey"] = [
        {**survey, "links": [link for link in survey["links"] if max(link) <= size]}
        for survey in campaign.get("survey", [])
    ]
    first = factors.get("interconnect", list(networks))[0]
    fitted["warm_up"] = [
        one if one.get("interconnect") in networks else {**one, "interconnect": first}
        for one in campaign.get("warm_up", [])
        if "nodes" not in one or one["nodes"] in factors["nodes"]
    ]
    return fitted


def _cluster_design(
    design: Mapping[str, Any], factors: Mapping[str, Any], networks: Mapping[str, Any]
) -> Dict[str, Any]:
    """What the analysis compares, among the available networks and node counts."""
    names = factors["interconnect"]
    if design.get("compared", "interconnect") != "interconnect" or "primary" not in design:
        return dict(design)
    rates = {name: networks[name]["rate_bit_s"] for name in names if "rate_bit_s" in networks[name]}
    extremes = [min(rates, key=rates.get), max(rates, key=rates.get)] if len(rates) > 1 else []
    if has_statements(design):
        primary = _cluster_statements(design["primary"], factors, extremes)
        compared = [one["networks"][-1] for one in primary]
    else:
        primary = design["primary"]
        if extremes and not set(primary) <= set(names):
            primary = extremes
        compared = [primary[-1]]
    found = {**design, "primary": primary}
    if "control" in design and design["control"] not in names and compared:
        found["control"] = compared[0]
    return found


def _cluster_statements(
    primary: List[Mapping[str, Any]], factors: Mapping[str, Any], extremes: List[str]
) -> List[Mapping[str, Any]]:
    """The statements on available networks, limited to the available nodes; else the first
    statement, on the slowest network against the fastest."""
    known = [one for one in primary if set(one["networks"]) <= set(factors["interconnect"])]
    if not known and extremes:
        known = [{**primary[0], "networks": extremes}]
    cut = []
    for one in known:
        most = max((nodes for nodes in factors["nodes"] if nodes <= one["to"]), default=0)
        statement = {**one, "to": most}
        if one["from"] in factors["nodes"] and one["from"] < most and statement not in cut:
            cut.append(statement)
    return cut


def _problems(campaign: Description, testbed: Mapping[str, Any]) -> Dict[str, Dict[str, Any]]:
    """The settings for each node count on a cluster, as a table of levels; empty if the campaign's
    own hold. Raises FalloffError as `_for_cluster` does."""
    each, factors = testbed.get("ranks_per_node", 1), campaign["factors"]
    if "matrix_share" not in testbed:
        if each > 1:
            remedy = "say matrix_share and memory_bytes, or [levels.nodes]"
            reason = f"{each} processes a node need grids of their own"
            raise FalloffError(f"testbed {testbed['name']}: {reason}: {remedy}")
        return {}
    filled, block = (
        testbed["matrix_share"] * testbed["memory_bytes"],
        campaign["settings"].get("NB"),
    )
    if not COUNT[0](block):
        raise FalloffError(f"testbed {testbed['name']}: NB = {block!r} must be {COUNT[1]}")
    entailed = dict(campaign["levels"].get("nodes", {}))
    for nodes in factors["nodes"]:
        sized = problem(nodes, each, filled, block)
        # If the order is a factor, its levels hold.
        sized = {name: value for name, value in sized.items() if name not in factors}
        entailed[str(nodes)] = {**entailed.get(str(nodes), {}), **sized}
    return {"nodes": entailed}


def problem(nodes: int, each: int, bytes_of_node: float, block: int) -> Dict[str, int]:
    """HPL's N, P and Q for `nodes` nodes with `each` processes each.

    The matrix fills `bytes_of_node` on every node, rounded down to whole blocks. The grid is as
    nearly square as possible, with no more rows than columns.
    """
    ranks = nodes * each
    rows = max(divisor for divisor in range(1, math.isqrt(ranks) + 1) if ranks % divisor == 0)
    order = math.isqrt(int(nodes * bytes_of_node / _BYTES_OF_A_NUMBER)) // block * block
    return {"P": rows, "Q": ranks // rows, "N": order}


def has_statements(design: Mapping[str, Any]) -> bool:
    """Whether the design's `primary` is a list of statements in their order, not a pair of
    levels."""
    primary = design.get("primary")
    is_list = isinstance(primary, list)
    return is_list and bool(primary) and all(isinstance(one, Mapping) for one in primary)


def design_of(campaign: Description, stopping: Stopping) -> Dict[str, Any]:
    """What the analysis needs to know: the parts of the design for which the campaign has levels,
    factors, looks."""
    factors = campaign["factors"]
    nodes = factors.get("nodes", [])
    design = {**campaign["design"], "factors": factors}
    if has_statements(design):
        levels = {WITHOUT_MESSAGES, *factors.get(design.get("compared", "interconnect"), [])}
        design["primary"] = [
            one
            for one in design["primary"]
            if set(one["networks"]) <= levels and {one["from"], one["to"]} <= set(nodes)
        ]
    if design.get("negative_control") not in nodes:
        design.pop("negative_control", None)
    if stopping.looks:
        design.update(looks=list(stopping.looks), one_sided=stopping.one_sided)
    return design


def points_of(campaign: Description) -> List[Settings]:
    """Every combination of levels, each with the settings that its levels entail.

    `levels` has a table for each factor that entails settings, or for several factors together;
    then the table's name and its keys join theirs with a space.
    """
    factors = campaign["factors"]
    points = []
    for levels in itertools.product(*factors.values()):
        point: Dict[str, Any] = {**campaign["settings"], **dict(zip(factors, levels))}
        for names, entailed in campaign.get("levels", {}).items():
            key = " ".join(str(point.get(name)) for name in names.split())
            point.update(entailed.get(key, {}))
        points.append(point)
    return points


def matching(campaign: Description, wanted: Settings) -> List[Settings]:
    """The points that have all of these settings."""
    return [point for point in points_of(campaign) if wanted.items() <= point.items()]


def interconnects_of(campaign: Description) -> List[str]:
    """The interconnects and the paths that the trials use."""
    factors = campaign["factors"]
    used = [*factors.get("interconnect", []), *factors.get("path", [])]
    used += [campaign["settings"]["path"]] if "path" in campaign["settings"] else []
    return list(dict.fromkeys(used))


def _file_faults(campaign: Description, preset: str, runners: Collection[str]) -> List[str]:
    """What is wrong with a campaign's file: missing or unknown parts, or parts of the wrong
    type."""
    presets = _table(campaign, "presets")
    found = [f"{key} is missing" for key in _WANTED if key not in campaign]
    found += checked(_RULES, campaign)
    if campaign.get("factors") == {}:
        found.append("factors is empty: name at least one")
    if runners and campaign.get("runner", next(iter(runners))) not in runners:
        found.append(unknown_key("runner = ", str(campaign["runner"]), runners))
    if preset and preset not in presets:
        found.append(unknown_key("preset ", preset, presets))
    table = _table(presets, preset)
    if "stopping" in campaign:
        own = {key: rule for key, rule in table.items() if key not in _CHANGED}
        found += _faulty_stopping({**_table(campaign, "stopping"), **own})
    return found + _faulty_design({**_table(campaign, "design"), **_table(table, "design")})


def faults(
    campaign: Description, testbed: Mapping[str, Any], interconnects: Mapping[str, Any]
) -> List[str]:
    """Every reason why a campaign with a valid file cannot be resolved for a testbed; empty if it
    can."""
    found = _faulty_levels(campaign) + _unlike_testbed(campaign, testbed, interconnects)
    return found or _unread(campaign, testbed)


def _table(campaign: Description, key: str) -> Mapping[str, Any]:
    """A part of a campaign that should be a table; empty if it is not one."""
    value = campaign.get(key)
    return value if isinstance(value, dict) else {}


def _faulty_stopping(rules: Mapping[str, Any]) -> List[str]:
    found = checked(_STOPPING, rules, "stopping.")
    if "blocks" not in rules:
        found.append("stopping.blocks is missing")
    elif not found and max(rules.get("looks", ()), default=0) > rules["blocks"]:
        most = f"go up to its {rules['blocks']} blocks at most"
        found.append(f"stopping.looks = {rules['looks']!r} must {most}")
    return found


def _faulty_design(design: Mapping[str, Any]) -> List[str]:
    """Keys that nothing reads, and what is wrong with the primary statements, if the design has
    any."""
    found = [unknown_key("design.", key, _OF_DESIGN) for key in design if key not in _OF_DESIGN]
    if not isinstance(design.get("primary", []), list):
        found.append(f"design.primary = {design['primary']!r} must be a list")
    if not has_statements(design):
        return found
    if "margin" not in design:
        found.append("design.margin is missing: primary statements need one")
    for number, one in enumerate(design["primary"], start=1):
        which = f"design.primary, statement {number},"
        missing = [key for key in ("networks", "from", "to") if key not in one]
        found += [f"{which} lacks {key!r}" for key in missing]
        if not missing and not _is_statement(one["networks"], one["from"], one["to"]):
            found.append(f"{which} needs two networks, and fewer nodes in 'from' than in 'to'")
        if one.get("expected", EXPECTED[0]) not in EXPECTED:
            found.append(f"{which} expects {one['expected']!r}; there are {', '.join(EXPECTED)}")
    return found


def _is_statement(networks: Any, start: Any, end: Any) -> bool:
    is_pair = isinstance(networks, list) and len(networks) == 2
    return is_pair and type(start) is int and type(end) is int and start < end


def _faulty_levels(campaign: Description) -> List[str]:
    """Parts that mention a missing factor or level, or that would silently leave out a level."""
    factors, found = campaign["factors"], []
    for names, entailed in campaign.get("levels", {}).items():
        strange = [factor for factor in names.split() if factor not in factors]
        found += [f"levels.{names} is there, but {factor!r} is no factor" for factor in strange]
        levels = itertools.product(*(factors.get(factor, []) for factor in names.split()))
        keys = [" ".join(map(str, level)) for level in levels]
        unsaid = [key for key in keys if key not in entailed]
        found += [f"levels.{names} does not say what {key} entails" for key in unsaid]
    if campaign.get("grouped_by", next(iter(factors))) not in factors:
        found.append(f"grouped_by = {campaign['grouped_by']!r} is no factor")
    warm_ups = [one for one in campaign.get("warm_up", []) if not matching(campaign, one)]
    return found + [f"warm_up: no point is like {dict(one)}" for one in warm_ups]


def _unread(campaign: Description, testbed: Mapping[str, Any]) -> List[str]:
    """Settings that neither the tool nor the testbed reads, and invalid values of others.

    A factor whose levels entail settings need not be read, because it only names them.
    """
    found, kind, seen = [], f"runners.testbeds.{testbed.get('kind')}", set()
    is_known = importlib.util.find_spec(kind) is not None
    of_testbed = importlib.import_module(kind).POINT if is_known else {}
    # Any tool may read the testbed's own settings.
    names = {*testbed.get("settings", ()), *" ".join(campaign.get("levels", {})).split()}
    surveys = [(one["runner"], one) for one in campaign.get("survey", [])]
    for runner, point in [(campaign["runner"], point) for point in points_of(campaign)] + surveys:
        if runner not in tools():  # tests define their own tools
            continue
        rules = {**of_testbed, **tool_named(runner).settings}
        for key, value in point.items():
            if (key, str(value)) in seen or key in ("runner", "links"):
                continue
            seen.add((key, str(value)))
            if key in rules and not rules[key][0](value):
                found.append(f"{key} = {value!r} must be {rules[key][1]}")
            elif key not in rules and key not in names:
                who = f"neither {runner} nor testbed {testbed.get('name')} reads the setting "
                found.append(unknown_key(who, key, rules).replace(" is unknown;", ";"))
    return list(dict.fromkeys(found))


def _unlike_testbed(
    campaign: Description, testbed: Mapping[str, Any], interconnects: Mapping[str, Any]
) -> List[str]:
    """What the campaign asks for and the testbed lacks."""
    factors, name, available = campaign["factors"], testbed.get("name"), testbed.get("nodes")
    used = map(str, interconnects_of(campaign))
    found = [
        unknown_key("interconnect ", key, interconnects) for key in used if key not in interconnects
    ]
    if "path" in factors and testbed.get("kind") != "emulated":
        found.append(f"its nodes are joined by paths, and those of testbed {name} are not")
    asked = factors.get("interconnect", [])
    if asked and not set(asked) & set(testbed.get("interconnects", asked)):
        found.append(f"testbed {name} has no interconnect {' or '.join(asked)}")
    both = [way for way in factors.get("aggregation", []) if way != "one_link"]
    if both and testbed.get("rails", 1) < 2:
        found.append(f"aggregation {both[0]} needs two links a node, testbed {name} has one")
    varied = [level for level in factors.get("vary", []) if level != "none"]
    if varied and "rates" not in testbed:
        found.append(
            f"{varied[0]} varies a number of a model, and testbed {name} is no simulated one"
        )
    most = max((n for n in factors.get("nodes", []) if n != ALL_NODES), default=0)
    if available is not None and most > available:
        found.append(f"{most} nodes are asked for, testbed {name} has {available}")
    return found
