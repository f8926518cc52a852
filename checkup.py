"""Asks the nodes of a user's cluster what they are and measures them, for the lines of their checklist."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from runners import checklist, dgemm, iperf3, netperf, slurm, tools
from runners.checklist import DIFFERS, MISSING, UNKNOWN, Line
from runners.record import FalloffError, Trial, judge
from runners.testbeds import cluster as cluster_testbed
from runners.testbeds import cluster_launch, fabric, remote

_STATE, _REACH, _NOISE = (tools.PROBES / f"node_{what}.py" for what in ("state", "reach", "noise"))
_TOOLS = ("xhpl", "dgemm", "iperf3", "ping")
# The servers' own, and one among those that MPI takes as they come.
_PORTS = (iperf3.PORT, netperf.PORT, 50505)
_TOGETHER = 16  # nodes that reach for each other at a time, all pairs of them
_PATIENCE_S, _NOISE_S, _DGEMM_S = 9.0, 5.0, 2.0
_LIMIT_S = 60.0
_K = 128  # an ordinary block size of HPL


def report(description: Mapping[str, Any]) -> int:
    """Print the checklist of a cluster as it is found; 1 if anything is missing or differs.

    Under Slurm that is done in an allocation; outside of one it asks for one first. Raises FalloffError
    when it is no cluster, or its nodes cannot be asked.
    """
    if description["kind"] != "cluster":
        remedy = "`falloff doctor` alone tells what is here"
        raise FalloffError(f"testbed {description['name']} is no cluster: {remedy}")
    if description["launcher"] == "slurm":
        if "SLURM_JOB_ID" not in os.environ:
            argv = [*slurm.salloc(description), sys.executable, *sys.argv]
            try:
                return subprocess.call(argv)
            except FileNotFoundError:
                remedy = "run this where users of the cluster log in"
                raise FalloffError(f"{argv[0]} is not here: {remedy}") from None
        description = {**description, "hosts": list(slurm.allocation().hosts)}
    bad = False
    for line in lines(description):
        print(line, flush=True)
        bad = bad or line.mark in (DIFFERS, MISSING)
    submit = " --submit" if description["launcher"] == "slurm" else ""
    compared = f"falloff run suspects --testbed {description['name']}{submit}"
    print(f"Is one node, link or switch port slower than the others? `{compared}` tells.")
    return int(bad)


def lines(description: Mapping[str, Any]) -> Iterator[Line]:
    """The checklist of a cluster, its hosts included; each line when it is known, in half a minute or so."""
    cluster = remote.cluster(description)
    for obstacle in cluster_testbed.unavailable(description):
        yield Line(MISSING, obstacle)
    facts = _facts(cluster, description)
    yield from checklist.reached(facts)
    facts = checklist.whole(facts)
    if not facts:
        return
    cluster = replace(cluster, hosts=tuple(facts))
    yield from checklist.alike(facts)
    yield checklist.governor(facts)
    yield from checklist.sizes(description, facts)
    yield checklist.rpeak(description)
    for name, network in description["networks"].items():
        yield from checklist.network(name, network, facts)
    for name in next(iter(facts.values()))["tools"]:
        yield checklist.tool(name, facts)
    yield from _met(cluster, facts)
    yield from _noise(cluster)
    yield dgemm_rates({**description, "hosts": list(facts)}, facts)


def _facts(cluster: remote.Cluster, description: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What every node says of itself, as `checklist` wants it."""
    configured = description.get("tools", {})
    places = {name: [name, str(tools.BUILT / name)] for name in _TOOLS}
    places |= {name: [path] for name, path in configured.items()}
    with suppress(
        FalloffError
    ):  # it is among the testbed's obstacles; elsewhere it has to be where it is here
        places["mpirun"] = [cluster_launch.find_mpirun(cluster, configured)]
    questions = json.dumps(places)
    states = remote.ask(cluster, _STATE, [questions], _LIMIT_S)
    if cluster.modules:  # is it they that cannot be loaded?
        silent = tuple(host for host in states if "error" in states[host])
        modules = f"modules {', '.join(cluster.modules)}"
        again = remote.ask(replace(cluster, hosts=silent, modules=()), _STATE, ["{}"], _LIMIT_S)
        for host, answer in again.items():
            if "error" not in answer:
                states[host] = {"error": f"{modules}: {states[host]['error']}"}
    networks = description["networks"]
    return {host: _described(networks, state) for host, state in states.items()}


def _described(networks: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """A node's state with its TCP settings as a text, and its place on each network."""
    if "kernel" not in state:  # it did not answer, or has too old a Python
        return dict(state)
    tcp = "; ".join(f"{name} {value or 'unknown'}" for name, value in state["tcp"].items())
    places = {name: _network(asked, state) for name, asked in networks.items()}
    return {**state, "tcp": tcp, "networks": places}


def _network(asked: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        place = fabric.place(state, asked)
    except FalloffError:
        return None
    return {
        "interface": place.interface,
        "address": place.address,
        "mtu": state["interfaces"][place.interface]["mtu"],
        "rate_bit_s": state["link_bit_s"].get(place.interface),
        "rdma_state": state["rdma_state"].get(asked.get("rdma")),
    }


def _met(cluster: remote.Cluster, facts: checklist.Facts) -> Iterator[Line]:
    """Let nodes reach for each other, in groups that share the first."""
    first, *others = facts
    groups = []
    for start in range(0, len(others), _TOGETHER - 1):
        hosts = (first, *others[start : start + _TOGETHER - 1])
        addresses: dict[str, dict[str, str]] = {name: {} for name in facts[first]["networks"]}
        for host in hosts:
            for name, place in facts[host]["networks"].items():
                if place:
                    addresses[name][host] = place["address"]
        words = [json.dumps(addresses), str(_PATIENCE_S), *map(str, _PORTS)]
        answers = remote.ask(replace(cluster, hosts=hosts), _REACH, words, _LIMIT_S)
        silent, met = checklist.answered("reach", answers)
        yield from silent
        groups.append(met)
    yield from checklist.ports(groups)


def _noise(cluster: remote.Cluster) -> Iterator[Line]:
    """Measure all nodes at the same time: how much others take of each."""
    answers = remote.ask(cluster, _NOISE, [str(_NOISE_S)], _LIMIT_S)
    silent, measured = checklist.answered("noise", answers)
    yield from silent
    if measured:
        yield checklist.noise(measured)


def dgemm_rates(description: Mapping[str, Any], facts: checklist.Facts) -> Line:
    """Measure DGEMM on all nodes at once, with the ranks and threads of the description."""
    if not all(state["tools"]["dgemm"] for state in facts.values()):
        remedy = "`make setup` in a folder that all of them see"
        return Line(UNKNOWN, f"DGEMM: not every node has the program: {remedy}")
    network, each = next(iter(description["networks"])), description.get("ranks_per_node", 1)
    ranks = each * len(facts)
    point = {"interconnect": network, "nodes": ranks, "K": _K, "duration_s": _DGEMM_S}
    commands = [replace(command, ranks_per_node=each) for command in dgemm.commands(point)]
    networks = {network: description["networks"][network]}
    try:
        with cluster_testbed.open_testbed(description, networks) as opened:
            transcript = opened.run(Trial("doctor", "survey", "dgemm", 0, 1, point), commands)
    except FalloffError as error:
        return Line(UNKNOWN, f"DGEMM: {error}")
    outcome = judge(transcript, dgemm.parse)
    if outcome.status != "ok":
        return Line(UNKNOWN, f"DGEMM: {outcome.reason}")
    rates = outcome.readings[0].value
    sums = [sum(rates[rank : rank + each]) for rank in range(0, ranks, each)]
    return checklist.speeds("DGEMM", dict(zip(facts, sums)), "Gflop/s")
