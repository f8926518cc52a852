"""The numbers of a simulation: a node's rates and a network, as a testbed describes them or varied."""

import math
from typing import Any, Dict, Mapping, Tuple

from runners.record import FalloffError


def model(
    description: Mapping[str, Any], interconnect: str, vary: str = "none"
) -> Tuple[Dict[str, float], Dict[str, Any]]:
    """The node's rates and the network as a testbed describes them, but for what is varied of them.

    `vary` is `none` or `NAME=VALUE`, or several with commas between: a rate, or `bandwidth` or `latency` of the
    network, with `low` or `high` for the end of its described range, or a number in its unit; or, without a tree,
    `backplane` with a number [B/s], which all links share. Raises FalloffError when one is neither, or named twice.
    """
    rates, network = dict(description["rates"]), dict(description["network"][interconnect])
    if "tree" not in network:
        network.setdefault("backplane", {"value": math.inf})
    known = [name for name in (*rates, *network) if name != "tree"]
    changes = [change.partition("=")[::2] for change in vary.split(",")] if vary != "none" else []
    if len(dict(changes)) < len(changes):
        raise FalloffError(f"vary {vary!r} names something twice")
    for name, value in changes:
        if name not in known:
            raise FalloffError(f"vary {vary!r}: {name!r} is none of {', '.join(known)}")
        table = rates if name in rates else network
        table[name] = {"value": _varied(table[name], vary, value)}
    return plain(rates), plain(network)


def _varied(entry: Mapping[str, float], vary: str, value: str) -> float:
    try:
        return entry[value] if value in ("low", "high") else float(value)
    except (KeyError, ValueError):
        raise FalloffError(f"vary {vary!r} has neither a number nor an end of a described range") from None


def plain(described: Mapping[str, Any]) -> Dict[str, Any]:
    """The numbers of a table whose entries are {value, source ...}; a tree as it is."""
    return {name: entry if name == "tree" else entry["value"] for name, entry in described.items()}
