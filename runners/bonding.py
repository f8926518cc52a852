"""What the kernel says of a bond in /proc/net/bonding, and whether it aggregates.

The format is that of drivers/net/bonding/bond_procfs.c; older drivers leave lines out, and so does the
kernel for whoever is not root: the active aggregator and its partner.
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
_LINE = re.compile(r"^[ \t]*([^:\n]+?): ?(.*?)[ \t\r]*$", re.M)
_NOBODY = "00:00:00:00:00:00"


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

    `mode` is the name by which it is set; `hash_policy` (layer2, layer3+4 ...) is None where the mode has
    none. `aggregator` and `partner`, the MAC address of the LACP partner, are of 802.3ad's active
    aggregator; both are None in other modes and where they are not shown.
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

    Raises Unreadable, with the reason, when it is no such file, is cut off, or names an unknown mode.
    """
    first, *others = re.split(r"^(?=Slave Interface:)", text, flags=re.M)
    head, *sections = [_fields(part) for part in (first, *others)]
    if "Bonding Mode" not in head:
        raise Unreadable("not a file of /proc/net/bonding: it names no bonding mode")
    words = head["Bonding Mode"]
    mode = next((name for known, name in _MODES.items() if words.startswith(known)), None)
    if mode is None:
        raise Unreadable(f"the bonding mode {words!r} is unknown")
    slaves = tuple(map(_slave, sections))
    aggregator, ports = _number(head.get("Aggregator ID")), _number(head.get("Number of ports"))
    listed = sum(slave.aggregator == aggregator for slave in slaves)
    if ports is not None and listed != ports:
        reason = f"the active aggregator has {ports} ports, {listed} are listed"
        raise Unreadable(f"{reason}: the file is cut off")
    policy = head.get("Transmit Hash Policy", "").partition(" ")[0] or None
    return Bond(
        mode, policy, slaves, aggregator, head.get("Partner Mac Address", "").lower() or None
    )


def judge(bond: Bond) -> Judgement:
    """Whether a bond carries more than one of its slaves can."""
    up = [slave for slave in bond.slaves if slave.is_up]
    if bond.mode in ("active-backup", "broadcast"):
        return Judgement(False, f"it is only failover: mode {bond.mode}")
    if len(up) < 2:
        return Judgement(False, f"{len(up) or 'none'} of its {len(bond.slaves)} slaves has a link")
    spread = f"by hash {bond.hash_policy}" if bond.hash_policy else "frame by frame or peer by peer"
    if bond.mode != "802.3ad":
        return Judgement(True, f"it aggregates, {spread}")
    groups = [slave.aggregator for slave in up]
    if bond.partner == _NOBODY:
        return Judgement(False, "it is only failover: no LACP partner answers")
    if set(groups) == {None}:
        return Judgement(False, "it does not aggregate: LACP has agreed on nothing")
    is_apart = len(set(groups)) == len(up)
    if is_apart or (bond.aggregator and groups.count(bond.aggregator) < 2):
        return Judgement(False, "it is only failover: its slaves are in different aggregators")
    if bond.partner is None:
        return Judgement(None, "whether it aggregates is not shown without root: its LACP partner")
    active = f"with {groups.count(bond.aggregator)} of its {len(up)} slaves"
    return Judgement(True, f"it aggregates {active}, {spread}: LACP partner {bond.partner}")


def here(folder: Path = FOLDER) -> Dict[str, Any]:
    """Every bond of this machine by its name, as plain data with its judgement; empty without bonds."""
    found: Dict[str, Any] = {}
    for file in sorted(folder.glob("*")):
        try:
            bond = parse(file.read_text(encoding="utf-8"))
            found[file.name] = {**asdict(bond), **asdict(judge(bond))}
        except (OSError, Unreadable) as error:
            found[file.name] = {"unreadable": str(error)}
    return found


def _fields(section: str) -> Dict[str, str]:
    """The lines of a section; of a key that comes twice, the first."""
    pairs: List[Tuple[str, str]] = _LINE.findall(section)
    return dict(reversed(pairs))


def _slave(section: Dict[str, str]) -> Slave:
    name = section["Slave Interface"]
    if "MII Status" not in section:
        raise Unreadable(f"slave {name} has no status: the file is cut off")
    speed = re.match(r"(\d{1,9}) Mbps", section.get("Speed", ""))
    bit_s = float(speed[1]) * 1e6 if speed else None
    return Slave(name, section["MII Status"] == "up", bit_s, _number(section.get("Aggregator ID")))


def _number(text: Optional[str]) -> Optional[int]:
    """A whole number; None where there is none, as in "Aggregator ID: N/A"."""
    return int(text) if text and text.isdigit() else None
