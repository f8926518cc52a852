"""A campaign as a testbed can run it: on its networks and nodes, with its settings and levels."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

from analysis.descriptions.campaigns import ALL_NODES, Campaign, PlannedDesign, PlannedStatement
from analysis.descriptions.testbeds import Cluster, EmulatedTestbed, SimulatedTestbed, Testbed
from runners import scale
from runners.records.description_rules import COUNT
from runners.records.record import FalloffError

_BYTES_OF_A_NUMBER = 8
_POINTS = "interconnect nodes"  # the levels of both factors together


def for_testbed(campaign: Campaign, testbed: Testbed) -> Campaign:
    """A campaign with a testbed's own `settings`, on its `interconnects` alone, without surveys by
    tools that are not among its `runners`, without a dilation where it slows nothing down, and with
    no more than its `blocks`.

    The level "all" of `nodes` becomes the testbed's number of nodes. What a testbed does not name
    stays, and so do interconnects that it lacks, which the plan then refuses. For a cluster see
    `_for_cluster`, for a simulated one that says what its nodes hold `_filled`.
    """
    factors, settings = dict(campaign.factors), {**campaign.settings, **testbed.settings}
    survey, warm_up, stopping = campaign.survey, campaign.warm_up, campaign.stopping
    levels = dict(campaign.levels)
    networks = factors.get("interconnect", [])
    available = networks if testbed.interconnects is None else testbed.interconnects
    if common := [name for name in networks if name in available]:
        factors["interconnect"] = common
        warm_up = [run for run in warm_up if run.get("interconnect", common[0]) in common]
    if testbed.runners is not None:
        survey = [tool for tool in survey if tool.runner in testbed.runners]
    if factors.get("nodes") == [ALL_NODES] and testbed.nodes is not None:
        factors["nodes"] = [testbed.nodes]
    if not testbed.slows_time:
        settings.pop("dilation", None)
        survey = [tool.without("dilation") for tool in survey]
        warm_up = [_without_dilation(run) for run in warm_up]
        levels = {
            names: {level: _without_dilation(settings) for level, settings in table.items()}
            for names, table in levels.items()
        }
        levels = {names: table for names, table in levels.items() if any(table.values())}
    if testbed.blocks is not None:  # what repeats itself exactly is not looked at several times
        stopping, warm_up = stopping.of_blocks(testbed.blocks), []
    fitted = campaign.changed(
        factors=factors,
        levels=levels,
        settings=settings,
        survey=survey,
        warm_up=warm_up,
        stopping=stopping,
    )
    if isinstance(testbed, Cluster):
        return _for_cluster(fitted, testbed)
    if isinstance(testbed, SimulatedTestbed) and testbed.matrix_bytes and campaign.runner == "hpl":
        return _filled(fitted, testbed)
    if (
        isinstance(testbed, EmulatedTestbed)
        and testbed.scale
        and campaign.runner == "hpl"
        and networks
    ):
        return fitted.changed(levels=_slowed(fitted, testbed))
    return fitted


def _without_dilation(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name != "dilation"}


def _slowed(campaign: Campaign, testbed: EmulatedTestbed) -> dict[str, Any]:
    """The campaign's levels, with the dilation that the scale model's rule gives each network and
    node count.

    If the campaign states a dilation itself, that one holds.
    """
    factors, levels = campaign.factors, dict(campaign.levels)
    entailed = itertools.chain.from_iterable(table.values() for table in levels.values())
    if any("dilation" in stated for stated in [factors, campaign.settings, *entailed]):
        return levels
    for_both, described = dict(levels.get(_POINTS, {})), testbed.plain()
    for network, nodes in itertools.product(factors["interconnect"], factors.get("nodes", [])):
        try:
            slower = {"dilation": scale.dilation(described, network, nodes)}
        except KeyError:
            reason = f"testbed {testbed.name}: [scale] message_s says nothing of {network}"
            raise FalloffError(reason) from None
        except (OverflowError, ValueError):
            reason = f"testbed {testbed.name}: [scale] and [node] give no dilation that is a number"
            raise FalloffError(reason) from None
        for_both[f"{network} {nodes}"] = {**slower, **for_both.get(f"{network} {nodes}", {})}
    return {**levels, _POINTS: for_both}


def _for_cluster(campaign: Campaign, testbed: Cluster) -> Campaign:
    """The campaign on the networks of a user's cluster and on no more nodes than it has.

    The networks are those that both name, else all of the testbed's. If a network of the contrast
    is missing, the contrast becomes the slowest against the fastest. A missing control, which only
    an emulation can have, becomes the network compared with. Levels are the testbed's own if it has
    them; otherwise HPL's matrices take `matrix_share` of its memory, on grids of all processes.
    Raises FalloffError if such grids are not described.
    """
    size, networks, factors = testbed.nodes or 0, testbed.networks, dict(campaign.factors)
    levels, settings = {**campaign.levels, **testbed.levels}, dict(campaign.settings)
    design = campaign.design
    if "nodes" in factors:
        factors["nodes"] = [n for n in factors["nodes"] if n <= size] or factors["nodes"]
    if "interconnect" in factors:
        common = [name for name in factors["interconnect"] if name in networks]
        factors["interconnect"] = common or list(networks)
        rates = {name: networks[name].rate_bit_s for name in factors["interconnect"]}
        design = _cluster_design(design, factors, rates)
    if campaign.runner == "hpl":
        settings["ranks_per_node"] = testbed.ranks_per_node
        if "nodes" not in testbed.levels:
            levels |= _problems(factors, settings, levels.get("nodes", {}), testbed)
    first = factors.get("interconnect", list(networks))[0]
    return campaign.changed(
        factors=factors,
        levels=levels,
        settings=settings,
        design=design,
        survey=[survey.within(size) for survey in campaign.survey],
        warm_up=[
            warm_up
            if warm_up.get("interconnect") in networks
            else {**warm_up, "interconnect": first}
            for warm_up in campaign.warm_up
            if "nodes" not in warm_up or warm_up["nodes"] in factors.get("nodes", [])
        ],
    )


def _filled(campaign: Campaign, testbed: SimulatedTestbed) -> Campaign:
    """The campaign of HPL on a simulated cluster, on no more nodes than it has and with matrices
    that fill `matrix_bytes` of each."""
    factors, ranks_per_node = dict(campaign.factors), testbed.ranks_per_node
    if "nodes" in factors:
        factors["nodes"] = [n for n in factors["nodes"] if n <= testbed.nodes] or factors["nodes"]
    settings = {**campaign.settings, "ranks_per_node": ranks_per_node}
    sized = _sized(
        factors, settings, campaign.levels.get("nodes", {}), ranks_per_node, testbed.matrix_bytes
    )
    rates = {
        name: testbed.network[name].bandwidth.value
        for name in factors.get("interconnect", [])
        if name in testbed.network
    }
    design = campaign.design.unset("without_messages")
    if rates:
        design = _cluster_design(design, factors, rates)
    return campaign.changed(
        factors=factors, levels={**campaign.levels, **sized}, settings=settings, design=design
    )


def _cluster_design(
    design: PlannedDesign, factors: dict[str, list], rates: Mapping[str, float | None]
) -> PlannedDesign:
    """What the analysis compares, among the available networks, with their rates as far as known,
    and node counts."""
    names = factors["interconnect"]
    if design.compared != "interconnect" or not design.primary:
        return design
    rated = [name for name in names if rates[name]]
    extremes = [min(rated, key=rates.get), max(rated, key=rates.get)] if len(rated) > 1 else []
    primary: list[Any] = design.primary
    if design.statements:
        primary = _cluster_statements(design.statements, factors, extremes)
        compared = [statement.networks[-1] for statement in primary]
    else:
        if extremes and not set(primary) <= set(names):
            primary = extremes
        compared = [primary[-1]]
    # What was simulated of the campaign's own nodes says nothing of these.
    design = design.unset("without_messages").changed(primary=primary)
    if design.control is not None and design.control not in names and compared:
        design = design.changed(control=compared[0])
    return design


def _cluster_statements(
    primary: list[PlannedStatement], factors: dict[str, list], extremes: list[str]
) -> list[PlannedStatement]:
    """The statements on available networks, limited to the available nodes; else the first
    statement, on the slowest network against the fastest."""
    available = [
        planned for planned in primary if set(planned.networks) <= set(factors["interconnect"])
    ]
    if not available and extremes:
        available = [primary[0].changed(networks=extremes)]
    cut: list[PlannedStatement] = []
    for planned in available:
        most = max((nodes for nodes in factors["nodes"] if nodes <= planned.to), default=0)
        statement = planned.changed(to=most)
        if planned.start in factors["nodes"] and planned.start < most and statement not in cut:
            cut.append(statement)
    return cut


def _problems(
    factors: dict[str, list], settings: dict[str, Any], entailed: dict[str, Any], testbed: Cluster
) -> dict[str, dict[str, Any]]:
    """The settings for each node count on a cluster, as a table of levels; empty if the campaign's
    own, `entailed`, hold. Raises FalloffError as `_for_cluster` does."""
    ranks_per_node = testbed.ranks_per_node
    if testbed.matrix_share is None or testbed.memory_bytes is None:
        if ranks_per_node > 1:
            remedy = "say matrix_share and memory_bytes, or [levels.nodes]"
            reason = f"{ranks_per_node} processes a node need grids of their own"
            raise FalloffError(f"testbed {testbed.name}: {reason}: {remedy}")
        return {}
    if not COUNT.allows(block := settings.get("NB")):
        raise FalloffError(f"testbed {testbed.name}: NB = {block!r} must be {COUNT.words}")
    return _sized(
        factors, settings, entailed, ranks_per_node, testbed.matrix_share * testbed.memory_bytes
    )


def _sized(
    factors: dict[str, list],
    settings: dict[str, Any],
    levels: dict[str, Any],
    ranks_per_node: int,
    filled: float,
) -> dict[str, dict[str, Any]]:
    """The table of `levels`, with HPL's order and grid for each node count: `ranks_per_node`
    processes and a matrix of `filled` bytes on every node."""
    block = settings["NB"]
    entailed = dict(levels)
    for nodes in factors.get("nodes", []):
        sized = problem(nodes, ranks_per_node, filled, block)
        # If the order is a factor, its levels hold.
        sized = {name: value for name, value in sized.items() if name not in factors}
        entailed[str(nodes)] = {**entailed.get(str(nodes), {}), **sized}
    return {"nodes": entailed}


def problem(nodes: int, ranks_per_node: int, bytes_of_node: float, block: int) -> dict[str, int]:
    """HPL's N, P and Q for `nodes` nodes with `ranks_per_node` processes each.

    The matrix fills `bytes_of_node` on every node, rounded down to whole blocks. The grid is as
    nearly square as possible, with no more rows than columns.
    """
    ranks = nodes * ranks_per_node
    rows = max(divisor for divisor in range(1, math.isqrt(ranks) + 1) if ranks % divisor == 0)
    order = math.isqrt(int(nodes * bytes_of_node / _BYTES_OF_A_NUMBER)) // block * block
    return {"P": rows, "Q": ranks // rows, "N": order}
