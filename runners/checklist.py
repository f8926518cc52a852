"""A cluster's nodes held against the testbed's description and against each other, and what was measured of them.

`Facts` are, by host, what node_state.py of runners/probes prints, with `tcp` as a text, and `networks`: for each of the description's `interface`, `mtu`, `rate_bit_s` and `rdma_state` there, or None.
`Answers` are what another script there prints, by host. A host that did not answer has {"error": the reason}.
Nothing here asks a node.
"""

from dataclasses import dataclass
from statistics import mean, median
from typing import Any, Dict, Hashable, Iterator, List, Mapping, Optional, Sequence, Tuple

HERE, UNKNOWN, DIFFERS, MISSING = "here", "unknown", "DIFFERS", "MISSING"

Facts = Mapping[str, Mapping[str, Any]]
Answers = Facts

_HELD = 0.1  # of a node's memory
_SHOWN = 4  # hosts by name
_STEADY = "performance"  # the governor under which a clock does not follow the load
_NOISE = 0.01  # of a node's time: at every step HPL waits for the node that lost most
_SLOW = 0.95  # of the median node: HPL runs at the pace of the slowest
_FULL_FRAMES = "full frames are lost"

_OF_ONE_KIND = "describe nodes of each kind as a testbed of their own"
# What should be the same on all nodes: the fact, its name for people, and what to do about it.
_ALIKE = (
    ("python", "Python", "name one that is the same everywhere as `python` of the testbed"),
    ("system", "system", "install the same on all nodes"),
    ("kernel", "kernel", "boot all nodes with the same one"),
    ("cpu_model", "processor", _OF_ONE_KIND),
    ("processors", "number of processors", f"set hyper-threading alike, or {_OF_ONE_KIND}"),
    ("tcp", "TCP", "give net.ipv4.tcp_congestion_control, tcp_rmem and tcp_wmem the same values"),
)
# What to do about a node that does not answer, by what its error has in it.
_CURES = {
    "Permission denied": "give it your public key with `ssh-copy-id`",
    "Host key verification failed": "log in by hand once, and compare its key",
    "Could not resolve": "correct its name in `hosts`",
    "modules ": "`module avail` lists what is there: correct `modules`",
    "": "see whether it is up and lets you in by hand, or take it out of the testbed",
}


@dataclass(frozen=True)
class Line:
    """One checked thing: `mark` is HERE, UNKNOWN, DIFFERS or MISSING; the text of the last two names the remedy."""

    mark: str
    text: str

    def __str__(self) -> str:
        return f"  {self.mark:8} {self.text}"


def whole(facts: Facts) -> Facts:
    """The answers of the nodes that told all their facts; the other functions want these."""
    return {host: state for host, state in facts.items() if "kernel" in state}


def reached(facts: Facts) -> List[Line]:
    """How many nodes answer; who does not, and who has too old a Python."""
    there = len(whole(facts))
    lines = [Line(HERE, f"{there} of {len(facts)} nodes answer")] if there else []
    errors = {host: state["error"] for host, state in facts.items() if "error" in state}
    for reason, hosts in holders(errors):
        remedy = next(cure for mark, cure in _CURES.items() if mark in reason)
        lines.append(Line(MISSING, f"{named(hosts)}: {reason}: {remedy}"))
    old = {host: state["python"] for host, state in facts.items() if set(state) == {"python"}}
    for version, hosts in holders(old):
        remedy = "name a newer one as `python` of the testbed, or its module in `modules`"
        lines.append(Line(MISSING, f"Python 3.9 on {named(hosts)}, which has {version}: {remedy}"))
    return lines


def alike(facts: Facts) -> List[Line]:
    """Kernel, processor and what else should be the same on all nodes."""
    return [
        agreement(what, {host: state[fact] for host, state in facts.items()}, remedy)
        for fact, what, remedy in _ALIKE
    ]


def governor(facts: Facts) -> Line:
    """Whether each node's clock is left alone; under other governors a run begins slower than it ends."""
    found = {host: state["governor"] for host, state in facts.items()}
    remedy = f"`cpupower frequency-set --governor {_STEADY}`"
    return _as_described("CPU governor", _STEADY, found, remedy)


def sizes(description: Mapping[str, Any], facts: Facts) -> List[Line]:
    """Where there are too few processors or too little memory for what the testbed's description says."""
    ranks, threads = description.get("ranks_per_node", 1), description.get("threads", 1)
    memory = description.get("memory_bytes", 1)
    faults: Dict[str, List[str]] = {}
    for host, state in facts.items():
        total, free = state["memory_bytes"], state["available_bytes"]
        if state["processors"] < ranks * threads:
            need = f"too few processors for {ranks} ranks of {threads} threads"
            faults.setdefault(f"{need}: lower `ranks_per_node` or `threads`", []).append(host)
        if total and total < memory:
            fault = f"less memory than {memory:g} bytes: correct `memory_bytes` of the testbed"
            faults.setdefault(fault, []).append(host)
        if total and free and free < (1 - _HELD) * total:
            fault = f"others hold more than {_HELD:.0%} of the memory"
            names = "`ps -eo rss,user,comm --sort -rss` names them"
            faults.setdefault(f"{fault}: {names}", []).append(host)
    return [Line(DIFFERS, f"{named(hosts)}: {fault}") for fault, hosts in faults.items()]


def rpeak(description: Mapping[str, Any]) -> Line:
    """A node's theoretical peak, without which HPL has a rate and no efficiency."""
    stated = description.get("rpeak", {})
    if stated.get("value", UNKNOWN) == UNKNOWN:
        remedy = "state all of cores, flop_per_cycle, clock_hz and clock under [rpeak], or value, unit and source"
        return Line(UNKNOWN, f"Rpeak, so that HPL's efficiency stays unknown: {remedy}")
    return Line(HERE, f"Rpeak of a node: {stated['value'] / 1e9:.4g} Gflop/s, {stated['source']}")


def network(name: str, asked: Mapping[str, Any], facts: Facts) -> List[Line]:
    """One of the description's networks on all nodes: its interface, MTU, rate and RDMA port."""
    without = [host for host, state in facts.items() if state["networks"][name] is None]
    if without:
        wanted = asked.get("subnet") or asked.get("interface")
        remedy = f"bring it up there, or correct [networks.{name}]"
        return [
            Line(MISSING, f"network {name}: {named(without)} has no address on {wanted}: {remedy}")
        ]
    found = {host: state["networks"][name] for host, state in facts.items()}
    lines = []
    for key, what, text in (("mtu", "MTU", str), ("rate_bit_s", "rate", _rate)):
        values = {host: port[key] and text(port[key]) for host, port in found.items()}
        described, remedy = asked.get(key) and text(asked[key]), f"correct `{key}`, or the nodes"
        lines.append(_as_described(f"network {name}, {what}", described, values, remedy))
    if "rdma" in asked:
        ports = {host: interface["rdma_state"] or "not there" for host, interface in found.items()}
        for state, hosts in holders(ports):
            if "ACTIVE" not in state:
                port = f"{asked['rdma']} on {named(hosts)} is {state}"
                remedy = "`ibstat` and the cable, or correct `rdma`"
                lines.append(Line(MISSING, f"network {name}: {port}: {remedy}"))
    return lines


def tool(name: str, facts: Facts) -> Line:
    """One tool on all nodes: there, and the same everywhere."""
    found = {host: state["tools"][name] for host, state in facts.items()}
    without = [host for host, program in found.items() if program is None]
    if without:
        remedy = "install it, name its path under [tools], or its module in `modules`"
        return Line(MISSING, f"{name} on {named(without)}: {remedy}")
    texts = {}
    for host, program in found.items():
        digest = program["digest"] and f"SHA-256 {program['digest']}"
        texts[host] = ", ".join(filter(None, (program["path"], digest)))
    return agreement(name, texts, "install the same on all nodes")


def _rate(bit_s: float) -> str:
    return f"{bit_s / 1e9:g} Gbit/s"


def _as_described(
    what: str, described: Optional[str], values: Mapping[str, Optional[str]], remedy: str
) -> Line:
    """Whether all nodes have what is described; what they do not tell or is not described has to agree."""
    if described is None or set(values.values()) in ({described}, {None}):
        return agreement(what, values, remedy)
    others = {host: value for host, value in values.items() if value != described}
    return Line(DIFFERS, f"{what}: {described} is expected, {_who_has(others)}: {remedy}")


def agreement(what: str, values: Mapping[str, Hashable], remedy: str) -> Line:
    """HERE with the value that all hosts have, UNKNOWN when none tells it, else DIFFERS with who has which."""
    if len(set(values.values())) > 1:
        return Line(DIFFERS, f"{what}: {_who_has(values)}: {remedy}")
    value = next(iter(values.values()))
    return Line(UNKNOWN, what) if value is None else Line(HERE, f"{what}: {value}")


def _who_has(values: Mapping[str, Hashable]) -> str:
    return "; ".join(
        f"{'unknown' if value is None else value} on {named(hosts)}"
        for value, hosts in holders(values)
    )


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


def answered(what: str, answers: Answers) -> Tuple[List[Line], Answers]:
    """Who did not answer, and why; and the answers of the others, which the other functions want."""
    errors = {host: answer["error"] for host, answer in answers.items() if "error" in answer}
    lines = [Line(UNKNOWN, f"{what} of {named(hosts)}: {why}") for why, hosts in holders(errors)]
    return lines, {host: answer for host, answer in answers.items() if host not in errors}


def ports(groups: Sequence[Answers]) -> List[Line]:
    """Who is not reached at which port, from the answers of node_reach.py in each group of nodes that met."""
    taken: Dict[int, Dict[str, None]] = {}  # by other programs
    visits: Dict[Tuple[str, str], Dict[str, List[str]]] = {}  # why each failed, or ""
    for host, network, answer in _meetings(groups):
        for port in answer["taken"]:
            taken.setdefault(port, {})[host] = None
        for visited, visit in answer["others"].items():
            for port, reason in visit["ports"].items():
                visits.setdefault((network, port), {}).setdefault(visited, []).append(reason)
    lines = [
        Line(
            MISSING,
            f"port {port} of {named(list(hosts))} is another program's: `ss -tlnp` names it",
        )
        for port, hosts in taken.items()
    ]
    for (network, port), visited in visits.items():
        free = {host: why for host, why in visited.items() if host not in taken.get(int(port), {})}
        for reason, hosts in holders(_unreached(free)):
            remedy = "open it in the firewall there"
            if reason == _FULL_FRAMES:
                remedy = "a switch on the way has a smaller MTU than the nodes"
            where = f"network {network}, port {port} of {named(hosts)}"
            lines.append(Line(MISSING, f"{where}: {reason}; {remedy}"))
    if visits and not lines:
        networks = " and ".join(dict.fromkeys(network for network, _ in visits))
        numbers = ", ".join(dict.fromkeys(port for _, port in visits))
        lines.append(Line(HERE, f"all nodes reach each other on {networks} at ports {numbers}"))
    return lines


def _meetings(groups: Sequence[Answers]) -> Iterator[Tuple[str, str, Mapping[str, Any]]]:
    """Each host with each network and what it answered there."""
    for answers in groups:
        for host, networks in answers.items():
            for network, answer in networks.items():
                yield host, network, answer


def _unreached(visited: Mapping[str, Sequence[str]]) -> Dict[str, str]:
    """Why hosts are not reached: those that most others do not reach, else those that any does not.

    A host behind a cut cable reaches nobody either, and still the others are not at fault.
    """
    failed = {host: [reason for reason in reasons if reason] for host, reasons in visited.items()}
    mostly = [host for host, reasons in failed.items() if 2 * len(reasons) > len(visited[host])]
    return {host: failed[host][0] for host in mostly or failed if failed[host]}


def noise(answers: Answers) -> Line:
    """Whose time others take, from the answers of node_noise.py."""
    shares = {
        host: mean(each["noise_share"] for each in answer["processors"])
        for host, answer in answers.items()
    }
    worst = max(shares, key=lambda host: shares[host])
    longest = max(each["most_s"] - each["median_s"] for each in answers[worst]["processors"])
    most = f"{shares[worst]:.2%} of {worst}, up to {longest * 1e3:.1f} ms at once"
    noisy = [host for host, share in shares.items() if share > _NOISE]
    if not noisy:
        return Line(HERE, f"noise: others take at most {most}")
    remedy = f"`top` on {worst} shows what runs there: stop what is not needed"
    return Line(
        DIFFERS,
        f"noise: others take more than {_NOISE:.0%} of {named(noisy)}, most {most}: {remedy}",
    )


def speeds(what: str, rates: Mapping[str, float], unit: str) -> Line:
    """Who is slow: below the median node by so much that HPL on all nodes would show it."""
    middle = median(rates.values())
    slow = [f"{host} {rate / middle:.0%}" for host, rate in rates.items() if rate < _SLOW * middle]
    if slow:
        remedy = "look for heat, a capped clock, missing memory; or leave it out"
        return Line(
            DIFFERS, f"{what}: {', '.join(slow)} of the median node's {middle:.4g} {unit}: {remedy}"
        )
    return Line(
        HERE,
        f"{what}: {middle:.4g} {unit} a node, the slowest {min(rates.values()) / middle:.1%} of that",
    )
