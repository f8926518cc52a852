"""Is an exchange both ways as fast as one way on a cluster's networks? A nonblocking halo exchange
on its first nodes takes some seconds.

Open MPI over TCP may send one direction after the other where ranks exchange long messages out of
step, and one of its parameters mends that: docs/method.md.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Callable, Optional

from runners.records.record import Command, Description, FalloffError, Trial, judge
from runners.testbeds import cluster
from runners.testbeds.cluster import OnCluster
from runners.testbeds.emulated import RENDEZVOUS
from runners.tools import exchange

LEAST_NODES = 4
# An exchange that takes longer than one way by more than this factor is slow: the margin of
# halo_exchange.
SLOW = 1.1

_TOOL = "exchange"
_BYTES = 262144  # above the eager limit of any MPI
_ROUNDS, _REPETITIONS = 4, 9
_LIMIT_S = 60.0
_WITHOUT_PUT = RENDEZVOUS["send"]
_SETTING = ", ".join(f"{name}={value}" for name, value in _WITHOUT_PUT.items())

Found = Mapping[str, Any]  # of one network


def measured(testbed: OnCluster, tell: Callable[[str], None]) -> dict[str, Found]:
    """What an open cluster's networks make of exchanges, by network; `tell` gets a sentence on
    each.

    `one_way` and `halo` [s] are the time of a message of `bytes` on `nodes` nodes, one way and both
    ways. `halo_without_put` [s] is there where Open MPI sends by TCP. Where nothing was measured
    there is only `not_measured`, the reason.
    """
    found: dict[str, Found] = {}
    for name, network in testbed.networks.items():
        try:
            found[name] = _of_network(testbed, name, network)
        except FalloffError as reason:
            found[name] = {"not_measured": str(reason)}
        tell(sentence(name, found[name]))
    return found


def ratio(found: Found, name: str = "halo") -> Optional[float]:
    """How many times as long as one way an exchange took [1]; None if it was not measured."""
    return found[name] / found["one_way"] if name in found else None


def sentence(name: str, found: Found) -> str:
    """What was found on a network, in a line."""
    slowdown, mended = ratio(found), ratio(found, "halo_without_put")
    if slowdown is None:
        return f"network {name}, exchanges both ways: not measured: {found['not_measured']}"
    size = f"{found['bytes'] // 1024} KiB"
    took = f"takes {slowdown:.2f} times as long as one way"
    if slowdown <= SLOW:
        return f"network {name}: a halo exchange of {size} {took} ({found['nodes']} nodes)"
    slow = f"network {name}: your MPI slows two-way exchanges: a halo exchange of {size} {took}"
    if mended is None:
        return slow
    return f"{slow}; with {_SETTING} {mended:.2f} times (docs/clusters.md says where to set it)"


def _of_network(testbed: OnCluster, name: str, network: Description) -> dict[str, Any]:
    """Raises FalloffError with the reason why nothing can be measured."""
    there = len(testbed.alive)
    if there < LEAST_NODES:
        raise FalloffError(f"it needs four nodes, and there are {there}")
    try:
        testbed.require([_TOOL])
    except FalloffError:
        raise FalloffError(
            f"{_TOOL} is not the same program on all nodes: `make setup` in a checkout that they "
            f"share builds it, or name its path as `{_TOOL}` under [tools] of the testbed"
        ) from None
    found: dict[str, Any] = {"nodes": LEAST_NODES, "bytes": _BYTES}
    found.update(_medians(testbed, name, ["one_way", "halo"]))
    if "mpi" not in network:  # Open MPI by TCP
        words = [*cluster.transport(network), *cluster.parameter_words(_WITHOUT_PUT)]
        changed = {**testbed.networks, name: {**network, "mpi": words}}
        mended = _medians(replace(testbed, networks=changed), name, ["halo"])
        found["halo_without_put"] = mended["halo"]
    return found


def _medians(testbed: OnCluster, network: str, patterns: list[str]) -> dict[str, float]:
    """The median time of a message [s] by pattern."""
    argv = exchange.argv_of(_ROUNDS, _REPETITIONS, patterns, [_BYTES])
    command = Command(argv, ranks=LEAST_NODES, timeout_s=_LIMIT_S)
    trial = Trial("two-way", "survey", _TOOL, 0, 1, {"interconnect": network})

    def medians(transcript: Any) -> dict[str, Any]:
        results = exchange.results(transcript.executions[-1].stdout)
        return {
            result.settings["exchange"]: result.readings["exchange_median"] for result in results
        }

    outcome = judge(testbed.run(trial, [command]), medians)
    if outcome.status != "ok":
        raise FalloffError(outcome.reason)
    return dict(outcome.readings)
