"""What the kernel says of a bond in /proc/net/bonding: mode, hash, slaves, LACP partner; and whether it aggregates.

The format is that of drivers/net/bonding/bond_procfs.c; older drivers leave lines out, and so does the kernel for
whoever is not root: the active aggregator and its partner.
"""

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from runners.record import Unreadable

FOLDER = Path("/proc/net/bonding")

# The driver's own words for a mode, and the name by which it is set.
_MODES = {
    "load balancing (round-robin)": "balance-rr",
    "fault-tolerance (active-backup)": "active-backup",
    "load balancing (xor)": "balance-xor",
    "fault-tolerance (broadcast)": "broadcast",
    "IEEE 802.3ad Dynamic link aggregation": "802.3ad",
    "transmit load balancing": "balance-tlb",
    "adaptive load balancing": "balance-alb",
}
_LINE = re.compile(r"^\s*(?P<key>[^:]+?): ?(?P<value>.*?)\s*$")
_SPEED = re.compile(r"(\d{1,9}) Mbps")
_NOBODY = "00:00:00:00:00:00"

_SPREAD = {
    "layer2": "the hash is layer2, so that all that goes to one peer goes over one slave",
    "layer2+3": "the hash is layer2+3, so that all that goes to one peer goes over one slave",
    "layer3+4": "the hash is layer3+4, so that each connection goes over one slave",
}


@dataclass(frozen=True)
class Slave:
    """An interface of a bond: whether its link is up, its speed [bit/s] and its aggregator (None: not known)."""

    name: str
    is_up: bool
    speed_bit_s: Optional[float]
    aggregator: Optional[int]


@dataclass(frozen=True)
class Bond:
    """A bond as the kernel describes it.

    `mode` is the name by which it is set; `hash_policy` (layer2, layer3+4 ...) is None where the mode has none.
    `aggregator` and `partner`, the MAC address of the LACP partner, are of 802.3ad's active aggregator; both are None
    in other modes and where they are not shown.
    """

    mode: str
    hash_policy: Optional[str]
    slaves: Tuple[Slave, ...]
    aggregator: Optional[int] = None
    partner: Optional[str] = None


@dataclass(frozen=True)
class Judgement:
    """Whether a bond `aggregates` (None: that cannot be told), and why, in a sentence."""

    aggregates: Optional[bool]
    reason: str


def parse(text: str) -> Bond:
    """The bond that a file of /proc/net/bonding describes.

    Raises Unreadable, with the reason, when it is no such file, is cut off, or names a mode that is not known.
    """
    head, *sections = _sections(text)
    if "Bonding Mode" not in head:
        raise Unreadable("not a file of /proc/net/bonding: it names no bonding mode")
    said = head["Bonding Mode"]
    mode = next((name for words, name in _MODES.items() if said.startswith(words)), None)
    if mode is None:
        raise Unreadable(f"the bonding mode {said!r} is unknown")
    slaves = tuple(map(_slave, sections))
    partner = head.get("Partner Mac Address")
    bond = Bond(
        mode,
        next(iter(head.get("Transmit Hash Policy", "").split()), None),
        slaves,
        _number(head.get("Aggregator ID")),
        partner.lower() if partner else None,
    )
    ports = _number(head.get("Number of ports"))
    there = sum(slave.aggregator == bond.aggregator for slave in slaves)
    if ports is not None and there != ports:
        raise Unreadable(f"the active aggregator has {ports} ports, {there} are listed: the file is cut off")
    return bond


def judge(bond: Bond) -> Judgement:
    """Whether a bond carries more than one of its slaves can, and how it spreads what it carries."""
    up = [slave for slave in bond.slaves if slave.is_up]
    if bond.mode == "active-backup":
        return Judgement(False, "it is only failover: mode active-backup uses one slave at a time")
    if bond.mode == "broadcast":
        return Judgement(False, "it is only failover: mode broadcast sends the same over every slave")
    if len(up) < 2:
        return Judgement(False, f"{len(up) or 'none'} of its {len(bond.slaves)} slaves has a link")
    if bond.mode == "802.3ad":
        return _judge_lacp(bond, up)
    if bond.mode == "balance-rr":
        return Judgement(True, "it aggregates: frames alternate between the slaves, those of one connection too")
    if bond.mode == "balance-xor":
        return Judgement(True, f"it aggregates: {_spread(bond)}; the switch has to know that these ports are one")
    return Judgement(True, "it aggregates what it sends: the driver spreads the peers over the slaves by load")


def here(folder: Path = FOLDER) -> Dict[str, Any]:
    """Every bond of this machine by its name, as plain data with its judgement; empty where there is none."""
    return {file.name: _described(file) for file in sorted(folder.glob("*"))}


def _described(file: Path) -> Dict[str, Any]:
    try:
        bond = parse(file.read_text(encoding="utf-8"))
    except (OSError, Unreadable) as error:
        return {"unreadable": str(error)}
    return {**asdict(bond), **asdict(judge(bond))}


def _judge_lacp(bond: Bond, up: List[Slave]) -> Judgement:
    """802.3ad carries more than one slave can only where a partner answers on several of them."""
    if bond.partner == _NOBODY:
        return Judgement(False, "it is only failover: no LACP partner answers, so that one slave carries everything")
    groups = [slave.aggregator for slave in up]
    if set(groups) == {None}:
        return Judgement(False, "it does not aggregate: its slaves are in no aggregator, LACP has agreed on nothing")
    if len(set(groups)) == len(up) or (bond.aggregator and groups.count(bond.aggregator) < 2):
        return Judgement(False, "it is only failover: its slaves are in different aggregators, one of them active")
    if bond.partner is None:
        return Judgement(None, "whether it aggregates is not shown without root: its LACP partner")
    active = groups.count(bond.aggregator)
    some = "" if active == len(up) else f" with {active} of its {len(up)} slaves"
    return Judgement(True, f"it aggregates{some}: LACP partner {bond.partner}; {_spread(bond)}")


def _spread(bond: Bond) -> str:
    return _SPREAD.get(bond.hash_policy or "", f"the hash is {bond.hash_policy or 'not shown'}")


def _sections(text: str) -> List[Dict[str, str]]:
    """The lines before the first slave, then those of each slave; of a key that comes twice, the first."""
    found: List[Dict[str, str]] = [{}]
    for line in text.splitlines():
        match = _LINE.match(line)
        if match:
            if match["key"] == "Slave Interface":
                found.append({})
            found[-1].setdefault(match["key"], match["value"])
    return found


def _slave(section: Dict[str, str]) -> Slave:
    name = section["Slave Interface"]
    if "MII Status" not in section:
        raise Unreadable(f"slave {name} has no status: the file is cut off")
    speed = _SPEED.match(section.get("Speed", ""))
    return Slave(
        name,
        section["MII Status"] == "up",
        float(speed[1]) * 1e6 if speed else None,
        _number(section.get("Aggregator ID")),
    )


def _number(text: Optional[str]) -> Optional[int]:
    """A whole number; None where there is none, as in "Aggregator ID: N/A"."""
    return int(text) if text and text.isdigit() else None
