"""What was measured between a cluster's nodes and on each of them, as lines of its checklist.

`Answers` are what a script of runners/probes prints, by host; a host that did not answer has {"error": the reason}.
"""

from math import inf
from statistics import mean, median
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from runners.checklist import DIFFERS, HERE, MISSING, UNKNOWN, Line, holders, named

Answers = Mapping[str, Mapping[str, Any]]

_CLOCK_OFF_S = 0.1  # clocks that are kept agree within milliseconds
_NOISE = 0.01  # of a node's time: at every step HPL waits for the node that lost most
_SLOW = 0.95  # of the median node: HPL runs at the pace of the slowest

_FIREWALL = "open it in the firewall there"
_REMEDIES = {"full frames are lost": "a switch on the way has a smaller MTU than the nodes"}


def unmeasured(what: str, answers: Answers) -> List[Line]:
    """Who did not answer, and why; the other functions want the rest, the answers of `measured`."""
    errors = {host: said["error"] for host, said in answers.items() if "error" in said}
    return [Line(UNKNOWN, f"{what} of {named(hosts)}: {reason}") for reason, hosts in holders(errors)]


def measured(answers: Answers) -> Answers:
    """The answers without those that are only an error."""
    return {host: said for host, said in answers.items() if "error" not in said}


def ports(groups: Sequence[Answers]) -> List[Line]:
    """Who is not reached at which port, from the answers of node_reach.py in each group of nodes that met."""
    taken = _taken(groups)
    lines = [
        Line(MISSING, f"port {port} of {named(hosts)} is another program's: `ss -tlnp` names it")
        for port, hosts in taken.items()
    ]
    visits = _visits(groups)
    for (network, port), visited in visits.items():
        free = {host: reasons for host, reasons in visited.items() if host not in taken.get(int(port), [])}
        for reason, hosts in holders(_unreached(free)):
            remedy = _REMEDIES.get(reason, _FIREWALL)
            lines.append(Line(MISSING, f"network {network}, port {port} of {named(hosts)}: {reason}; {remedy}"))
    if visits and not lines:
        where = " and ".join(dict.fromkeys(network for network, _ in visits))
        which = ", ".join(dict.fromkeys(port for _, port in visits))
        lines.append(Line(HERE, f"all nodes reach each other on {where} at ports {which}"))
    return lines


def _taken(groups: Sequence[Answers]) -> Dict[int, List[str]]:
    """Ports that other programs have, with the hosts where."""
    found = {
        (port, host): None
        for answers in groups
        for host, networks in answers.items()
        for said in networks.values()
        for port in said["taken"]
    }
    return {port: [host for its, host in found if its == port] for port, _ in found}


def _visits(groups: Sequence[Answers]) -> Dict[Tuple[str, str], Dict[str, List[str]]]:
    """By network and port, then by visited host: of each visit why it failed, or an empty text."""
    found: Dict[Tuple[str, str], Dict[str, List[str]]] = {}
    for networks in (networks for answers in groups for networks in answers.values()):
        for network, said in networks.items():
            for host, visit in said["others"].items():
                for port, reason in visit["ports"].items():
                    found.setdefault((network, port), {}).setdefault(host, []).append(reason)
    return found


def _unreached(visited: Mapping[str, Sequence[str]]) -> Dict[str, str]:
    """Why hosts are not reached: those that most others do not reach, else those that any does not.

    A host behind a cut cable reaches nobody either, and still the others are not at fault.
    """
    failed = {host: [reason for reason in reasons if reason] for host, reasons in visited.items()}
    mostly = [host for host, reasons in failed.items() if 2 * len(reasons) > len(visited[host])]
    return {host: failed[host][0] for host in mostly or failed if failed[host]}


def clocks(groups: Sequence[Answers], first: str) -> Line:
    """Whose clock is off, by the visits of the host `first`, which is in every group of nodes that met."""
    ahead = _ahead(groups, first)
    if len(ahead) < 2:
        return Line(UNKNOWN, f"clocks: {first} met nobody")
    middle = median(offset for offset, _ in ahead.values())
    off = [
        f"{host} by {offset - middle:+.1f} s"
        for host, (offset, within) in ahead.items()
        if abs(offset - middle) > _CLOCK_OFF_S + within
    ]
    if off:
        return Line(DIFFERS, f"clocks are off: {', '.join(off)}: `timedatectl set-ntp true` there")
    return Line(HERE, f"clocks agree within {_CLOCK_OFF_S:g} s")


def _ahead(groups: Sequence[Answers], first: str) -> Dict[str, Tuple[float, float]]:
    """By how many seconds clocks are ahead of the first host's, and within how many that is known."""
    found = {first: (0.0, 0.0)}
    for networks in (answers[first] for answers in groups if first in answers):
        for host, visit in (visit for said in networks.values() for visit in said["others"].items()):
            within = visit.get("round_trip_s", inf) / 2
            if within < found.get(host, (0.0, inf))[1]:
                found[host] = (visit["offset_s"], within)
    return found


def noise(answers: Answers, busiest: Mapping[str, Sequence[Mapping[str, Any]]]) -> Line:
    """Whose time others take, from the answers of node_noise.py and, by host, the `busiest` of node_facts.py."""
    shares = {host: mean(each["noise_share"] for each in said["processors"]) for host, said in answers.items()}
    worst = max(shares, key=lambda host: shares[host])
    longest = max(each["most_s"] - each["median_s"] for each in answers[worst]["processors"])
    most = f"{shares[worst]:.2%} of {worst}, up to {longest * 1e3:.1f} ms at once"
    noisy = [host for host, share in shares.items() if share > _NOISE]
    if not noisy:
        return Line(HERE, f"noise: others take at most {most}")
    seen = ", ".join(f"{process['name']} ({process['share']:.1%} of a processor)" for process in busiest[worst])
    remedy = f"stop what runs there and is not needed; on {worst} it is {seen or 'nothing that can be seen'}"
    return Line(DIFFERS, f"noise: others take more than {_NOISE:.0%} of {named(noisy)}, most {most}: {remedy}")


def speeds(what: str, rates: Mapping[str, float], unit: str) -> Line:
    """Who is slow: below the median node by so much that HPL on all nodes would show it."""
    middle = median(rates.values())
    slow = [f"{host} {rate / middle:.0%}" for host, rate in rates.items() if rate < _SLOW * middle]
    if slow:
        remedy = "look for heat, a capped clock, missing memory; or leave it out"
        return Line(DIFFERS, f"{what}: {', '.join(slow)} of the median node's {middle:.4g} {unit}: {remedy}")
    return Line(HERE, f"{what}: {middle:.4g} {unit} a node, the slowest {min(rates.values()) / middle:.1%} of that")


def loop_rates(answers: Answers) -> Dict[str, float]:
    """How often a second the slowest processor of each host does the fixed work when it is left alone."""
    return {host: 1 / max(each["least_s"] for each in said["processors"]) for host, said in answers.items()}
