"""What a path's wires let pairs of nodes exchange: the bound that no sum over pairs may exceed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import linprog

from analysis.capacity import way
from analysis.framing import message_wire_bytes

Pair = tuple[int, int]  # the nodes of a producer and its consumer


def pairs_of(settings: Mapping[str, Any], count: int) -> list[Pair]:
    """The first `count` pairs of a token campaign's settings, whose node numbers have commas between them."""
    ends = ([int(node) for node in settings[role].split(",")] for role in ("producers", "consumers"))
    return list(zip(*ends))[:count]


def sum_limit(path: Mapping[str, Any], pairs: Sequence[Pair]) -> float:
    """The most [bit/s on the wire, one way] that all pairs together send while as much comes back.

    `path` is a table of data/paths.toml. The shares may be uneven: it is the linear program that adds the
    pairs' rates where all that passes a medium shares that medium's rate. Infinite where nothing is shaped.
    """
    ways = [(way(path, *pair), way(path, *pair[::-1])) for pair in pairs]
    passed = [Counter(medium for taken in both for medium in {hop.medium for hop in taken.hops}) for both in ways]
    rates = {hop.medium: hop.rate for both in ways for taken in both for hop in taken.hops}
    shaped = [medium for medium, rate in rates.items() if np.isfinite(rate)]
    if not all(any(uses[medium] for medium in shaped) for uses in passed):
        return np.inf
    uses = [[of_pair[medium] for of_pair in passed] for medium in shaped]
    # In units of the fastest medium, since the solver's tolerances are absolute.
    unit = max(rates[medium] for medium in shaped)
    solved = linprog(-np.ones(len(pairs)), A_ub=uses, b_ub=[rates[medium] / unit for medium in shaped])
    return float(-solved.fun * unit)


def token_limit(path: Mapping[str, Any], pairs: Sequence[Pair], token_bytes):
    """The most tokens x size [B/s] that all producers write if each token returns; shape of `token_bytes`.

    Acknowledgements on their own come on top, so that this is never reached.
    """
    return sum_limit(path, pairs) / 8 * token_bytes / message_wire_bytes(token_bytes, path["mtu"])
