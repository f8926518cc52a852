"""Ask the nodes of a user's cluster for their state, and compare it with the testbed's description.

`States` are the output of node_state.py in runners/probes, by host.
A host that did not answer has {"error": the reason}; a host whose Python is too old has only its
version.
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Optional

from runners import executables
from runners.engine import slurm, two_way
from runners.records import lock
from runners.records.record import Description, FalloffError
from runners.testbeds import cluster as cluster_testbed
from runners.testbeds import remote
from runners.testbeds.settings import holders
from runners.tools import iperf3

HERE, UNKNOWN, SLOW, DIFFERS, MISSING = "here", "unknown", "slow", "DIFFERS", "MISSING"

States = Mapping[str, Mapping[str, Any]]
Places = dict[str, cluster_testbed.Place]  # by host that has an address

_STATE, _REACH = (executables.PROBES / f"node_{what}.py" for what in ("state", "reach"))
_TOOLS = ("xhpl", "dgemm", "iperf3", "ping")
# iperf3's own port, and one of those that MPI picks at random.
_PORTS = (iperf3.PORT, 50505)
_TOGETHER = 16  # size of a group of nodes that test all of their pairs at the same time
_PATIENCE_S, _LIMIT_S = 9.0, 60.0

_SHOWN = 4  # hosts that are listed by name
_STEADY = "performance"  # the governor under which a clock does not follow the load
_FULL_FRAMES = "full frames are lost"

_OF_ONE_KIND = "describe nodes of each kind as a testbed of their own"
# What should be the same on all nodes: the fact, its display name, and the remedy.
_ALIKE = (
    ("python", "Python", "name one that is the same everywhere as `python` of the testbed"),
    ("system", "system", "install the same on all nodes"),
    ("kernel", "kernel", "boot all nodes with the same one"),
    ("cpu_model", "processor", _OF_ONE_KIND),
    ("processors", "number of processors", f"set hyper-threading alike, or {_OF_ONE_KIND}"),
    ("tcp", "TCP", "give net.ipv4.tcp_congestion_control, tcp_rmem and tcp_wmem the same values"),
    ("governor", "CPU governor", "`cpupower frequency-set --governor performance`"),
)
# Remedies for a node that does not answer, by a part of its error.
_CURES = {
    "Permission denied": "give it your public key with `ssh-copy-id`",
    "Host key verification failed": "log in by hand once, and compare its key",
    "Could not resolve": "correct its name in `hosts`",
    "module": "`module avail` lists what is there: correct `modules`",
    "": "see whether it is up and lets you in by hand, or take it out of the testbed",
}


@dataclass(frozen=True)
class Line:
    """One check: `mark` is HERE, UNKNOWN, SLOW, DIFFERS or MISSING; the text of the last two names
    the remedy. What is SLOW is no fault of the description or the nodes."""

    mark: str
    text: str

    def __str__(self) -> str:
        return f"  {self.mark:8} {self.text}"


def report(description: Description) -> int:
    """Print the checklist of a cluster; return 1 if anything is missing or differs.

    Under Slurm the nodes are asked inside an allocation, which is requested first if there is none.
    Raises FalloffError if the testbed is not a cluster, or its nodes cannot be asked.
    """
    if description["kind"] != "cluster":
        remedy = "run `falloff doctor` without --testbed for this machine"
        raise FalloffError(f"testbed {description['name']} is no cluster: {remedy}")
    by_slurm = description["launcher"] == "slurm"
    if by_slurm and "SLURM_JOB_ID" not in os.environ:
        try:
            return subprocess.call([*slurm.salloc(description), sys.executable, *sys.argv])
        except FileNotFoundError:
            remedy = "run this where users of the cluster log in"
            raise FalloffError(f"salloc is not here: {remedy}") from None
    if by_slurm:
        description = {**description, "hosts": list(slurm.allocation().hosts)}
    marks = set()
    for line in chain(lines(description), exchanges(description)):
        print(line, flush=True)
        marks.add(line.mark)
    print(
        "To find a slow node, link or switch port, run "
        f"`falloff run suspects --testbed {description['name']}{' --submit' * by_slurm}`."
    )
    return int(not marks.isdisjoint((DIFFERS, MISSING)))


def lines(description: Description) -> Iterator[Line]:
    """The checklist of a cluster, including its hosts; each line comes as soon as it is known,
    within seconds."""
    remote.require_hosts(description)
    for obstacle in cluster_testbed.unavailable(description):
        yield Line(MISSING, obstacle)
    states = remote.ask(description, _STATE, [json.dumps(_candidates(description))], _LIMIT_S)
    whole = {host: state for host, state in states.items() if "kernel" in state}
    yield from _reached(states, len(whole))
    if not whole:
        return
    networks = description["networks"]
    places = {name: _places(whole, asked) for name, asked in networks.items()}
    for fact, what, remedy in _ALIKE:
        values = {host: _text(state[fact]) for host, state in whole.items()}
        # Under most governors a run starts slower than it ends.
        yield _as_described(what, _STEADY if fact == "governor" else None, values, remedy)
    yield from _sizes(description, whole)
    yield _rpeak(description)
    for name, asked in networks.items():
        yield from _network(name, asked, places[name], whole)
    for name in next(iter(whole.values()))["tools"]:
        yield _tool(name, whole)
    yield from _ports(description, list(whole), places)


def exchanges(description: Description) -> Iterator[Line]:
    """Whether an exchange both ways is as fast as one way, on each network; takes some seconds."""

    def give_up(message: str) -> None:
        raise FalloffError(message)

    networks = description["networks"]
    try:
        with lock.measuring(description, "the doctor", give_up):
            with cluster_testbed.open_testbed(description, networks) as testbed:
                found = two_way.measured(testbed, lambda sentence: None)
    except FalloffError as error:
        reason = str(error).splitlines()[0]
        found = dict.fromkeys(networks, {"not_measured": reason})
    for name, of_network in found.items():
        slowdown = two_way.ratio(of_network)
        mark = UNKNOWN if slowdown is None else SLOW if slowdown > two_way.SLOW else HERE
        yield Line(mark, two_way.sentence(name, of_network))


def _candidates(description: Description) -> dict[str, list[str]]:
    """The places where each tool may be."""
    configured = description.get("tools", {})
    places = {name: [name, str(executables.BUILT / name)] for name in _TOOLS}
    places.update({name: [path] for name, path in configured.items()})
    # Already among the obstacles; on the hosts it must be at the same path.
    with suppress(FalloffError):
        places["mpirun"] = [cluster_testbed.find_mpirun(description)]
    return places


def _places(states: States, asked: Description) -> Places:
    places = {}
    for host, state in states.items():
        with suppress(FalloffError):  # it has no address there
            places[host] = cluster_testbed.place(state, asked)
    return places


def _reached(states: States, there: int) -> list[Line]:
    """How many nodes answer, which do not, and which have a Python that is too old."""
    lines = [Line(HERE, f"{there} of {len(states)} nodes answer")] if there else []
    for reason, where in _holders({host: state.get("error") for host, state in states.items()}):
        if reason:
            remedy = next(cure for mark, cure in _CURES.items() if mark in reason)
            lines.append(Line(MISSING, f"{where}: {reason}: {remedy}"))
    old = {host: state["python"] for host, state in states.items() if set(state) == {"python"}}
    for version, where in _holders(old):
        remedy = "name a newer one as `python` of the testbed, or its module in `modules`"
        lines.append(Line(MISSING, f"Python 3.9 on {where}, which has {version}: {remedy}"))
    return lines


def _text(fact: Any) -> Optional[str]:
    if isinstance(fact, dict):
        return "; ".join(f"{name} {value or 'unknown'}" for name, value in fact.items())
    return None if fact is None else str(fact)


def _sizes(description: Description, states: States) -> list[Line]:
    """Nodes with too few processors or too little memory for the testbed's description."""
    ranks, threads = description.get("ranks_per_node", 1), description.get("threads", 1)
    memory, need = description.get("memory_bytes", 1), f"{ranks} ranks of {threads} threads"
    few = [host for host, state in states.items() if state["processors"] < ranks * threads]
    small = [host for host, state in states.items() if state["memory_bytes"] < memory]
    faults = {
        f"too few processors for {need}: lower `ranks_per_node` or `threads`": few,
        f"less memory than {memory:g} bytes: correct `memory_bytes` of the testbed": small,
    }
    return [Line(DIFFERS, f"{_named(hosts)}: {fault}") for fault, hosts in faults.items() if hosts]


def _rpeak(description: Description) -> Line:
    """A node's theoretical peak; without it HPL has a rate but no efficiency."""
    stated = description.get("rpeak", {})
    if stated.get("value", UNKNOWN) == UNKNOWN:
        remedy = (
            "state all of cores, flop_per_cycle, clock_hz and clock under [rpeak], "
            "or value, unit and source"
        )
        return Line(UNKNOWN, f"Rpeak, so that HPL's efficiency stays unknown: {remedy}")
    return Line(HERE, f"Rpeak of a node: {stated['value'] / 1e9:.4g} Gflop/s, {stated['source']}")


def _network(name: str, asked: Description, places: Places, states: States) -> list[Line]:
    """One of the description's networks on all nodes: its interface, MTU, rate and RDMA port."""
    if without := [host for host in states if host not in places]:
        wanted = asked.get("subnet") or asked.get("interface")
        remedy = f"bring it up there, or correct [networks.{name}]"
        where = f"{_named(without)} has no address on {wanted}"
        return [Line(MISSING, f"network {name}: {where}: {remedy}")]
    ports = {host: place.interface for host, place in places.items()}
    mtus = {host: str(states[host]["interfaces"][port]["mtu"]) for host, port in ports.items()}
    rates = {host: _rate(states[host]["link_bit_s"].get(port)) for host, port in ports.items()}
    mtu, rate = _text(asked.get("mtu")), _rate(asked.get("rate_bit_s"))
    lines = [
        _as_described(f"network {name}, MTU", mtu, mtus, "correct `mtu`, or the nodes"),
        _as_described(f"network {name}, rate", rate, rates, "correct `rate_bit_s`, or the nodes"),
    ]
    if "rdma" in asked:
        rdma = {host: states[host]["rdma_state"].get(asked["rdma"], "not there") for host in ports}
        for state, where in _holders(rdma):
            if "ACTIVE" not in state:
                port = f"{asked['rdma']} on {where} is {state}"
                remedy = "`ibstat` and the cable, or correct `rdma`"
                lines.append(Line(MISSING, f"network {name}: {port}: {remedy}"))
    return lines


def _tool(name: str, states: States) -> Line:
    """Whether one tool is on all nodes, and the same everywhere."""
    texts, without = {}, []
    for host, state in states.items():
        program = state["tools"][name]
        if program:
            digest = f", SHA-256 {program['digest']}" if program["digest"] else ""
            texts[host] = program["path"] + digest
        else:
            without.append(host)
    if without:
        remedy = "install it, name its path under [tools], or its module in `modules`"
        return Line(MISSING, f"{name} on {_named(without)}: {remedy}")
    return _as_described(name, None, texts, "install the same on all nodes")


def _ports(
    description: Description, hosts: Sequence[str], places: Mapping[str, Places]
) -> list[Line]:
    """The hosts that cannot be reached, by port, as node_reach.py says on groups of nodes that
    share the first node."""
    lines, (first, *others) = [], hosts
    taken = defaultdict(set)  # hosts on which another program uses a port
    visits: dict = defaultdict(lambda: defaultdict(list))  # why each visit failed, or ""
    for start in range(0, len(others), _TOGETHER - 1):
        group = [first, *others[start : start + _TOGETHER - 1]]
        addresses = {
            name: {host: on[host].address for host in group if host in on}
            for name, on in places.items()
        }
        words = [json.dumps(addresses), str(_PATIENCE_S), *map(str, _PORTS)]
        answers = remote.ask({**description, "hosts": group}, _REACH, words, _LIMIT_S)
        for host, networks in answers.items():
            if "error" in networks:
                lines.append(Line(UNKNOWN, f"whom {host} reaches: {networks['error']}"))
                continue
            for name, answer in networks.items():
                for port in answer["taken"]:
                    taken[str(port)].add(host)
                for visited, visit in answer["others"].items():
                    for port, reason in visit["ports"].items():
                        visits[name, port][visited].append(reason)
    for port, there in taken.items():
        remedy = "is another program's: `ss -tlnp` names it"
        lines.append(Line(MISSING, f"port {port} of {_named(sorted(there))} {remedy}"))
    for (name, port), visited in visits.items():
        free = {host: reasons for host, reasons in visited.items() if host not in taken[port]}
        for reason, where in _holders(_unreached(free)):
            remedy = "open it in the firewall there"
            if reason == _FULL_FRAMES:
                remedy = "a switch on the way has a smaller MTU than the nodes"
            text = f"network {name}, port {port} of {where}: {reason}; {remedy}"
            lines.append(Line(MISSING, text))
    if visits and not lines:
        names = " and ".join(dict.fromkeys(name for name, _ in visits))
        numbers = ", ".join(dict.fromkeys(port for _, port in visits))
        lines.append(Line(HERE, f"all nodes reach each other on {names} at ports {numbers}"))
    return lines


def _unreached(visited: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Why hosts are not reached: those that most others do not reach, else those that any other
    does not.

    A host with a cut cable reaches no other host either, but the others are not at fault.
    """
    failed = {host: list(filter(None, reasons)) for host, reasons in visited.items()}
    mostly = [host for host, reasons in failed.items() if 2 * len(reasons) > len(visited[host])]
    return {host: failed[host][0] for host in mostly or failed if failed[host]}


def _rate(bit_s: Optional[float]) -> Optional[str]:
    return f"{bit_s / 1e9:g} Gbit/s" if bit_s else None


def _as_described(
    what: str, described: Optional[str], values: Mapping[str, Any], remedy: str
) -> Line:
    """HERE with the value that all nodes have; UNKNOWN if none reports it; DIFFERS, with the hosts
    of each value, if they differ from each other or from the description."""
    different = set(values.values())
    if described is not None and different not in ({described}, {None}):
        others = {host: value for host, value in values.items() if value != described}
        return Line(DIFFERS, f"{what}: {described} is expected, {_who_has(others)}: {remedy}")
    if len(different) > 1:
        return Line(DIFFERS, f"{what}: {_who_has(values)}: {remedy}")
    (value,) = different
    return Line(UNKNOWN, what) if value is None else Line(HERE, f"{what}: {value}")


def _who_has(values: Mapping[str, Any]) -> str:
    words = [f"{value or 'unknown'} on {where}" for value, where in _holders(values)]
    return "; ".join(words)


def _holders(values: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """Each value with its hosts in words, the rarest first: a few by name, the rest counted."""
    by_value = sorted(holders(values).items(), key=lambda item: len(item[1]))
    return [(value, _named(hosts)) for value, hosts in by_value]


def _named(hosts: Sequence[str]) -> str:
    more = len(hosts) - _SHOWN
    return ", ".join(hosts) if more <= 1 else f"{', '.join(hosts[:_SHOWN])} and {more} more"
