"""A cluster's nodes held against the testbed's description and against each other, from what they say of themselves.

`Facts` are, by host, what node_state.py and node_facts.py of runners/probes print, with `tcp` as a text, and
`networks`: for each of the description's `interface`, `mtu`, `rate_bit_s` and `rdma_state` there, or None. A host
that did not answer has {"error": the reason}. Nothing here asks a node.
"""

from dataclasses import dataclass
from typing import Any, Dict, Hashable, List, Mapping, Optional, Sequence, Tuple

HERE, UNKNOWN, DIFFERS, MISSING = "here", "unknown", "DIFFERS", "MISSING"

Facts = Mapping[str, Mapping[str, Any]]

_HELD = 0.1  # of a node's memory
_SHOWN = 4  # hosts by name

_OF_ONE_KIND = "describe nodes of each kind as a testbed of their own"
# What should be the same on all nodes: the fact, its name for people, and what to do about it.
_ALIKE = (
    ("python", "Python", "name one that is the same everywhere as `python` of the testbed"),
    ("system", "system", "install the same on all nodes"),
    ("kernel", "kernel", "boot all nodes with the same one"),
    ("cpu_model", "processor", _OF_ONE_KIND),
    ("processors", "number of processors", f"set hyper-threading alike in the BIOS, or {_OF_ONE_KIND}"),
    ("tcp", "TCP", "give net.ipv4.tcp_congestion_control, tcp_rmem and tcp_wmem the same values with `sysctl`"),
)
# What to do about a node that does not answer, by what its error has in it.
_CURES = {
    "Permission denied": "give it your public key with `ssh-copy-id`",
    "Host key verification failed": "log in by hand once, and compare its key",
    "Could not resolve": "correct its name in `hosts`",
    "modules ": "`module avail` lists what is there: correct `modules`",
    "": "see whether it is up and lets you in by hand, or take it out of the testbed",
}
_STEADY = "performance"  # the governor under which a clock does not follow the load


@dataclass(frozen=True)
class Line:
    """One checked thing: `mark` is HERE, UNKNOWN, DIFFERS or MISSING; the text of the last two names the remedy."""

    mark: str
    text: str

    def __str__(self) -> str:
        return f"  {self.mark:8} {self.text}"


def whole(facts: Facts) -> Facts:
    """The answers of the nodes that told all their facts; the other functions want these."""
    return {host: said for host, said in facts.items() if "kernel" in said}


def reached(facts: Facts) -> List[Line]:
    """How many nodes answer; who does not, and who has too old a Python."""
    there = len(whole(facts))
    lines = [Line(HERE, f"{there} of {len(facts)} nodes answer")] if there else []
    for reason, hosts in holders({host: said["error"] for host, said in facts.items() if "error" in said}):
        remedy = next(cure for mark, cure in _CURES.items() if mark in reason)
        lines.append(Line(MISSING, f"{named(hosts)}: {reason}: {remedy}"))
    for version, hosts in holders({host: said["python"] for host, said in facts.items() if set(said) == {"python"}}):
        remedy = "name a newer one as `python` of the testbed, or its module in `modules`"
        lines.append(Line(MISSING, f"Python 3.9 on {named(hosts)}, which has {version}: {remedy}"))
    return lines


def alike(facts: Facts) -> List[Line]:
    """Kernel, processor and what else should be the same on all nodes."""
    return [
        agreement(what, {host: said[fact] for host, said in facts.items()}, remedy) for fact, what, remedy in _ALIKE
    ]


def governor(facts: Facts) -> List[Line]:
    """Whether each node's clock is left alone; under other governors a run begins slower than it ends."""
    found = {host: said["governor"] for host, said in facts.items()}
    if set(found.values()) <= {None, _STEADY}:
        return [agreement("CPU governor", found, "")]
    lazy = {host: name or "unknown" for host, name in found.items() if name != _STEADY}
    remedy = f"`cpupower frequency-set --governor {_STEADY}`"
    return [Line(DIFFERS, f"CPU governor {name} on {named(hosts)}: {remedy}") for name, hosts in holders(lazy)]


def sizes(description: Mapping[str, Any], facts: Facts) -> List[Line]:
    """Where there are too few processors or too little memory for what the testbed's description says."""
    ranks, threads, memory = (description.get(key, 1) for key in ("ranks_per_node", "threads", "memory_bytes"))
    known = {host: said for host, said in facts.items() if said["memory_bytes"] and said["available_bytes"]}
    few = [host for host, said in facts.items() if said["processors"] < ranks * threads]
    small = [host for host, said in known.items() if said["memory_bytes"] < memory]
    held = [host for host, said in known.items() if said["available_bytes"] < (1 - _HELD) * said["memory_bytes"]]
    found = (
        (few, f"too few processors for {ranks} ranks of {threads} threads: lower `ranks_per_node` or `threads`"),
        (small, f"less memory than {memory:g} bytes: correct `memory_bytes` of the testbed"),
        (held, f"others hold more than {_HELD:.0%} of the memory: `ps -eo rss,user,comm --sort -rss` names them"),
    )
    return [Line(DIFFERS, f"{named(hosts)}: {text}") for hosts, text in found if hosts]


def rpeak(description: Mapping[str, Any]) -> Line:
    """A node's theoretical peak, without which HPL has a rate and no efficiency."""
    stated = description.get("rpeak", {})
    if stated.get("value", UNKNOWN) == UNKNOWN:
        remedy = "state all of cores, flop_per_cycle, clock_hz and clock under [rpeak], or value, unit and source"
        return Line(UNKNOWN, f"Rpeak, so that HPL's efficiency stays unknown: {remedy}")
    return Line(HERE, f"Rpeak of a node: {stated['value'] / 1e9:.4g} Gflop/s, {stated['source']}")


def network(name: str, asked: Mapping[str, Any], facts: Facts) -> List[Line]:
    """One of the description's networks on all nodes: its interface, MTU, rate and RDMA port."""
    without = [host for host, said in facts.items() if said["networks"][name] is None]
    if without:
        wanted = asked.get("subnet") or asked.get("interface")
        remedy = f"bring it up there, or correct [networks.{name}]"
        return [Line(MISSING, f"network {name}: {named(without)} has no address on {wanted}: {remedy}")]
    found = {host: said["networks"][name] for host, said in facts.items()}
    lines = []
    for key, what, text in (("mtu", "MTU", str), ("rate_bit_s", "rate", _rate)):
        values = {host: interface[key] and text(interface[key]) for host, interface in found.items()}
        described, remedy = asked.get(key) and text(asked[key]), f"correct `{key}`, or the nodes"
        lines.append(_as_described(f"network {name}, {what}", described, values, remedy))
    ports = {host: interface["rdma_state"] or "not there" for host, interface in found.items() if "rdma" in asked}
    for state, hosts in holders({host: state for host, state in ports.items() if "ACTIVE" not in state}):
        remedy = "`ibstat` and the cable, or correct `rdma`"
        lines.append(Line(MISSING, f"network {name}: {asked['rdma']} on {named(hosts)} is {state}: {remedy}"))
    return lines


def tool(name: str, facts: Facts) -> Line:
    """One tool on all nodes: there, and the same everywhere."""
    found = {host: said["tools"][name] for host, said in facts.items()}
    without = [host for host, program in found.items() if program is None]
    if without:
        remedy = "install it, name its path under [tools], or its module in `modules`"
        return Line(MISSING, f"{name} on {named(without)}: {remedy}")
    texts = {host: _program(program) for host, program in found.items()}
    return agreement(name, texts, "install the same on all nodes")


def _program(program: Mapping[str, Any]) -> str:
    digest = program["digest"] and f"SHA-256 {program['digest']}"
    return ", ".join(filter(None, (program["path"], digest)))


def _rate(bit_s: float) -> str:
    return f"{bit_s / 1e9:g} Gbit/s"


def _as_described(what: str, described: Optional[str], values: Mapping[str, Optional[str]], remedy: str) -> Line:
    """Whether all nodes have what is described; where they do not tell it or it is not described, if they agree."""
    if described is None or set(values.values()) <= {described} or set(values.values()) == {None}:
        return agreement(what, values, remedy)
    others = {host: value for host, value in values.items() if value != described}
    return Line(DIFFERS, f"{what}: {described} is described, {_who_has(others)}: {remedy}")


def agreement(what: str, values: Mapping[str, Hashable], remedy: str) -> Line:
    """HERE with the value that all hosts have, UNKNOWN when none tells it, else DIFFERS with who has which."""
    if len(set(values.values())) > 1:
        return Line(DIFFERS, f"{what}: {_who_has(values)}: {remedy}")
    value = next(iter(values.values()))
    return Line(UNKNOWN, what) if value is None else Line(HERE, f"{what}: {value}")


def _who_has(values: Mapping[str, Hashable]) -> str:
    return "; ".join(f"{'unknown' if value is None else value} on {named(hosts)}" for value, hosts in holders(values))


def holders(values: Mapping[str, Hashable]) -> List[Tuple[Any, List[str]]]:
    """Each value with the hosts that have it, the rarest first."""
    found: Dict[Hashable, List[str]] = {}
    for host, value in values.items():
        found.setdefault(value, []).append(host)
    return sorted(found.items(), key=lambda item: len(item[1]))


def named(hosts: Sequence[str]) -> str:
    """The hosts in words: some by name, the rest counted."""
    more = len(hosts) - _SHOWN
    return ", ".join(hosts) if more <= 1 else f"{', '.join(hosts[:_SHOWN])} and {more} more"

