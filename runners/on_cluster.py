"""A campaign for a user's own cluster: what was sized for emulated nodes is cut, or grows, to what is there."""

import math
from typing import Any, Dict, List, Mapping

from runners.design import has_statements
from runners.record import FalloffError

_BYTES_OF_A_NUMBER = 8


def fitted(campaign: Mapping[str, Any], testbed: Mapping[str, Any]) -> Dict[str, Any]:
    """The campaign on the networks of a testbed and on no more nodes than it has.

    Networks are those that both name, else all of the testbed's. Where one that the contrast needs is missing, it is
    the slowest against the fastest, and the control, which only an emulation can have, the one compared with. Levels
    are the testbed's own where it has them; else HPL's matrices take `matrix_share` of its memory, on grids of all
    processes. Raises FalloffError when such grids are not described.
    """
    there, factors = testbed["nodes"], dict(campaign["factors"])
    whole = {**campaign, "factors": factors, "levels": {**campaign.get("levels", {}), **testbed.get("levels", {})}}
    if "interconnect" in factors:
        both = [name for name in factors["interconnect"] if name in testbed["networks"]]
        factors["interconnect"] = both or list(testbed["networks"])
    if "nodes" in factors:
        factors["nodes"] = [count for count in factors["nodes"] if count <= there] or factors["nodes"]
    if "interconnect" in factors:
        whole["design"] = _design(campaign["design"], factors, testbed["networks"])
    if campaign["runner"] == "hpl":
        whole["settings"] = {**campaign["settings"], "ranks_per_node": testbed.get("ranks_per_node", 1)}
        if "nodes" not in testbed.get("levels", {}):
            whole["levels"].update(_problems(whole, testbed))
    any_network = factors.get("interconnect", list(testbed["networks"]))[0]
    whole["survey"] = [
        {**survey, "links": [link for link in survey["links"] if max(link) <= there]}
        for survey in campaign.get("survey", [])
    ]
    whole["warm_up"] = [
        alike if alike.get("interconnect") in testbed["networks"] else {**alike, "interconnect": any_network}
        for alike in campaign.get("warm_up", [])
        if "nodes" not in alike or alike["nodes"] in factors["nodes"]
    ]
    return whole


def problem(nodes: int, each: int, bytes_of_node: float, block: int) -> Dict[str, int]:
    """HPL's N, P and Q for so many nodes with so many processes each.

    The matrix fills `bytes_of_node` on every node, rounded down to whole blocks; the grid is as nearly square as may
    be, with no more rows than columns.
    """
    ranks = nodes * each
    rows = max(divisor for divisor in range(1, math.isqrt(ranks) + 1) if ranks % divisor == 0)
    order = math.isqrt(int(nodes * bytes_of_node / _BYTES_OF_A_NUMBER)) // block * block
    return {"P": rows, "Q": ranks // rows, "N": order}


def _design(design: Mapping[str, Any], factors: Mapping[str, Any], networks: Mapping[str, Any]) -> Dict[str, Any]:
    """What the analysis compares, of networks and node counts that are there."""
    found, names = dict(design), factors["interconnect"]
    if design.get("compared", "interconnect") != "interconnect" or "primary" not in design:
        return found
    rates = {name: networks[name]["rate_bit_s"] for name in names if "rate_bit_s" in networks[name]}
    extremes = [min(rates, key=rates.get), max(rates, key=rates.get)] if len(rates) > 1 else []
    if has_statements(design):
        found["primary"] = _statements(design["primary"], factors, extremes)
        compared = [one["networks"][-1] for one in found["primary"]]
    else:
        if not set(design["primary"]) <= set(names) and extremes:
            found["primary"] = extremes
        compared = [found["primary"][-1]]
    if "control" in design and design["control"] not in names and compared:
        found["control"] = compared[0]
    return found


def _statements(
    primary: List[Mapping[str, Any]], factors: Mapping[str, Any], extremes: List[str]
) -> List[Mapping[str, Any]]:
    """The statements on networks that are there, up to as many nodes as are; else the first one on the slowest
    network against the fastest."""
    there = [one for one in primary if set(one["networks"]) <= set(factors["interconnect"])]
    if not there and extremes:
        there = [{**primary[0], "networks": extremes}]
    cut = []
    for one in there:
        most = max((count for count in factors["nodes"] if count <= one["to"]), default=0)
        statement = {**one, "to": most}
        if one["from"] in factors["nodes"] and one["from"] < most and statement not in cut:
            cut.append(statement)
    return cut


def _problems(campaign: Mapping[str, Any], testbed: Mapping[str, Any]) -> Dict[str, Dict[str, Any]]:
    """What every node count entails on the testbed, as a table of levels; empty where the campaign's own holds.

    Raises FalloffError as `fitted` does.
    """
    each, factors = testbed.get("ranks_per_node", 1), campaign["factors"]
    if "matrix_share" in testbed:
        filled, block = testbed["matrix_share"] * testbed["memory_bytes"], campaign["settings"]["NB"]
        entailed = dict(campaign["levels"].get("nodes", {}))
        for count in factors["nodes"]:
            own = problem(count, each, filled, block)
            # Where the order is a factor, its levels hold.
            own = {name: value for name, value in own.items() if name not in factors}
            entailed[str(count)] = {**entailed.get(str(count), {}), **own}
        return {"nodes": entailed}
    if each > 1:
        raise FalloffError(
            f"testbed {testbed['name']}: {each} processes a node need grids of their own: say matrix_share and "
            "memory_bytes, or [levels.nodes]"
        )
    return {}
