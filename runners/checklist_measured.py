"""What was measured between a cluster's nodes and on each of them, as lines of its checklist.

`Answers` are what a script of runners/probes prints, by host; a host that did not answer has {"error": the reason}.
"""

from statistics import mean, median
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from runners.checklist import DIFFERS, HERE, MISSING, UNKNOWN, Line, holders, named

Answers = Mapping[str, Mapping[str, Any]]

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


def noise(answers: Answers) -> Line:
    """Whose time others take, from the answers of node_noise.py."""
    shares = {host: mean(each["noise_share"] for each in said["processors"]) for host, said in answers.items()}
    worst = max(shares, key=lambda host: shares[host])
    longest = max(each["most_s"] - each["median_s"] for each in answers[worst]["processors"])
    most = f"{shares[worst]:.2%} of {worst}, up to {longest * 1e3:.1f} ms at once"
    noisy = [host for host, share in shares.items() if share > _NOISE]
    if not noisy:
        return Line(HERE, f"noise: others take at most {most}")
    remedy = f"`top` on {worst} shows what runs there: stop what is not needed"
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
