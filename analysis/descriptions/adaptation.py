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
    levels, networks = campaign.levels, factors.get("interconnect", [])
    available = networks if testbed.interconnects is None else testbed.interconnects
    if common := [name for name in networks if name in available]:
        factors["interconnect"] = common
        warm_up = [run for run in warm_up if run.get("interconnect", common[0]) in common]
    if testbed.runners is not None:
        survey = [tool for tool in survey if tool.runner in testbed.runners]
    if factors.get("nodes") == [ALL_NODES] and testbed.nodes is not None:
        factors["nodes"] = [testbed.nodes]
    if not (isinstance(testbed, EmulatedTestbed) and testbed.node.dilation):
        settings = _without_dilation(settings)
        survey = [tool.of_settings(_without_dilation(tool.settings)) for tool in survey]
        warm_up = [_without_dilation(run) for run in warm_up]
        levels = {
            names: {level: _without_dilation(entailed) for level, entailed in table.items()}
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
    if campaign.runner != "hpl":
        return fitted
    if isinstance(testbed, SimulatedTestbed) and testbed.matrix_bytes:
        return _filled(fitted, testbed, testbed.matrix_bytes)
    if isinstance(testbed, EmulatedTestbed) and testbed.scale and networks:
        return fitted.changed(levels=_slowed(fitted, testbed))
    return fitted


def _without_dilation(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name != "dilation"}


def _slowed(campaign: Campaign, testbed: EmulatedTestbed) -> dict[str, Any]:
    """The campaign's levels, with the dilation that the scale model's rule gives each network and
    node count.

    If the campaign states a dilation itself, that one holds.
    """
    factors, levels = campaign.factors, campaign.levels
    entailed = itertools.chain.from_iterable(table.values() for table in levels.values())
    stated: list[Any] = [factors, campaign.settings, *entailed]
    if any("dilation" in table for table in stated):
        return levels
    for_both: dict[str, Any] = dict(levels.get(_POINTS, {}))
    for network, nodes in itertools.product(factors["interconnect"], factors.get("nodes", [])):
        try:
            dilation = scale.dilation(testbed.plain(), str(network), int(nodes))
        except KeyError:
            reason = f"message_s says nothing of {network}"
            raise FalloffError(f"testbed {testbed.name}: [scale] {reason}") from None
        except (OverflowError, ValueError):
            reason = f"testbed {testbed.name}: [scale] and [node] give no dilation that is a number"
            raise FalloffError(reason) from None
        point = f"{network} {nodes}"
        for_both[point] = {"dilation": dilation, **for_both.get(point, {})}
    return {**levels, _POINTS: for_both}


def _for_cluster(campaign: Campaign, testbed: Cluster) -> Campaign:
    """The campaign on the networks of a user's cluster and on no more nodes than it has.

    The networks are those that both name, else all of the testbed's. If a network of the contrast
    is missing, the contrast becomes the slowest against the fastest. A missing control, which only
    an emulation can have, becomes the network compared with. Levels are the testbed's own if it has
    them; otherwise HPL's matrices take `matrix_share` of its memory, on grids of all processes.
    Raises FalloffError if such grids are not described.
    """
    networks, factors = testbed.networks, dict[str, list[Any]](campaign.factors)
    available = [name for name in factors.get("interconnect", []) if name in networks]
    available = available or [*networks]
    if "interconnect" in factors:
        factors["interconnect"] = available
    fitted = _on_own_nodes(
        campaign.changed(factors=factors, levels={**campaign.levels, **testbed.levels}),
        testbed,
        {name: network.rate_bit_s for name, network in networks.items()},
    )
    filled = _matrix_bytes(fitted, testbed)
    if filled and "nodes" not in testbed.levels:
        fitted = _sized(fitted, testbed.ranks_per_node, filled)
    return fitted.changed(
        survey=[survey.within(testbed.nodes or 0) for survey in campaign.survey],
        warm_up=[
            warm_up
            if warm_up.get("interconnect") in networks
            else {**warm_up, "interconnect": available[0]}
            for warm_up in campaign.warm_up
            if "nodes" not in warm_up or warm_up["nodes"] in fitted.factors.get("nodes", [])
        ],
    )


def _filled(campaign: Campaign, testbed: SimulatedTestbed, matrix_bytes: float) -> Campaign:
    """The campaign of HPL on a simulated cluster, on no more nodes than it has and with matrices
    that fill so many bytes of each."""
    rates = {name: network.bandwidth.value for name, network in testbed.network.items()}
    fitted = _on_own_nodes(campaign, testbed, rates)
    fitted = fitted.changed(design=fitted.design.unset("without_messages"))
    return _sized(fitted, testbed.ranks_per_node, matrix_bytes)


def _on_own_nodes(
    campaign: Campaign, testbed: Cluster | SimulatedTestbed, rates: Mapping[str, float | None]
) -> Campaign:
    """The campaign on no more nodes than a testbed has, with what it compares among networks of
    these `rates`; HPL has the testbed's processes on each node."""
    factors, settings, design = dict(campaign.factors), dict(campaign.settings), campaign.design
    if "nodes" in factors:
        levels: list[Any] = factors["nodes"]
        factors["nodes"] = [n for n in levels if n <= (testbed.nodes or 0)] or levels
    if "interconnect" in factors:
        design = _cluster_design(design, factors, rates)
    if campaign.runner == "hpl":
        settings["ranks_per_node"] = testbed.ranks_per_node
    return campaign.changed(factors=factors, settings=settings, design=design)


def _cluster_design(
    design: PlannedDesign, factors: Mapping[str, list], rates: Mapping[str, float | None]
) -> PlannedDesign:
    """What the analysis compares, among the available networks, with their rates as far as known,
    and node counts."""
    names = factors["interconnect"]
    if design.compared != "interconnect" or not design.primary:
        return design
    rated = {name: rate for name in names if (rate := rates.get(name))}
    extremes = [end(rated, key=rated.__getitem__) for end in (min, max) if len(rated) > 1]
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
    primary: list[PlannedStatement], factors: Mapping[str, list], extremes: list[str]
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


def _matrix_bytes(campaign: Campaign, testbed: Cluster) -> float | None:
    """What HPL's matrix takes on each node of a cluster; None if the campaign's own orders and
    grids hold. Raises FalloffError as `_for_cluster` does."""
    if campaign.runner != "hpl":
        return None
    if testbed.matrix_share is None or testbed.memory_bytes is None:
        if testbed.ranks_per_node > 1 and "nodes" not in testbed.levels:
            remedy = "say matrix_share and memory_bytes, or [levels.nodes]"
            reason = f"{testbed.ranks_per_node} processes a node need grids of their own"
            raise FalloffError(f"testbed {testbed.name}: {reason}: {remedy}")
        return None
    return testbed.matrix_share * testbed.memory_bytes


def _sized(campaign: Campaign, ranks_per_node: int, filled: float) -> Campaign:
    """The campaign with HPL's order and grid for each node count: `ranks_per_node` processes and a
    matrix of `filled` bytes on every node. Raises FalloffError for a block that is no count."""
    factors: dict[str, Any] = campaign.factors
    block: Any = campaign.settings.get("NB")
    if not COUNT.allows(block):
        raise FalloffError(f"campaign {campaign.name}: NB = {block!r} must be {COUNT.words}")
    entailed: dict[str, Any] = dict(campaign.levels.get("nodes", {}))
    for nodes in factors.get("nodes", []):
        sized = problem(nodes, ranks_per_node, filled, block)
        # If the order is a factor, its levels hold.
        sized = {name: value for name, value in sized.items() if name not in factors}
        entailed[str(nodes)] = {**entailed.get(str(nodes), {}), **sized}
    return campaign.changed(levels={**campaign.levels, "nodes": entailed})


def problem(nodes: int, ranks_per_node: int, bytes_of_node: float, block: int) -> dict[str, int]:
    """HPL's N, P and Q for `nodes` nodes with `ranks_per_node` processes each.

    The matrix fills `bytes_of_node` on every node, rounded down to whole blocks. The grid is as
    nearly square as possible, with no more rows than columns.
    """
    ranks = nodes * ranks_per_node
    rows = max(divisor for divisor in range(1, math.isqrt(ranks) + 1) if ranks % divisor == 0)
    order = math.isqrt(int(nodes * bytes_of_node / _BYTES_OF_A_NUMBER)) // block * block
    return {"P": rows, "Q": ranks // rows, "N": order}
