"""Check the description of a cluster in data/testbeds: list every fault in words, and derive
further values."""

import ipaddress
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from runners.description_rules import (
    BLOCKS,
    COUNT,
    EACH,
    POSITIVE,
    SETTING,
    TABLE,
    WORD,
    Rule,
    checked,
    listing,
    one_of,
    text,
)
from runners.scale import BUFFERS, SCALE

UNKNOWN = "unknown"


def _or_unknown(rule: Rule) -> Rule:
    return lambda value: value == UNKNOWN or rule[0](value), f'{rule[1]}, or "{UNKNOWN}"'


def _is_subnet(value: Any) -> bool:
    try:
        return isinstance(value, str) and "/" in value and bool(ipaddress.ip_network(value))
    except ValueError:
        return False


# Texts become parts of command lines on other machines, some in lists separated by commas or blanks.
# Open MPI passes them to a shell on every node, so they must not contain letters with a meaning there.
_WORD = text(r"[A-Za-z0-9_./,:=+@%^-]+", "words of letters, digits and _./,:=+@%^-")
_PATH = text(r"[A-Za-z0-9_~/.][A-Za-z0-9_~/.,+@=-]*", "a path without blanks")
_NAME = text(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*", "a name")
_PROGRAM = text(r"[A-Za-z0-9_/.][A-Za-z0-9_/.+-]*", "the name of a program, or its path")
_LINE = text(r"[ -~]+", "a line of text")
_RATE: Rule = (POSITIVE[0], "bit/s as a number, such as 1e9")
_SHARE: Rule = (lambda value: POSITIVE[0](value) and value < 1, "a share between 0 and 1")
_WORDS = listing(_WORD, f"a list for mpirun of {_WORD[1]}")
_PARAMETER: Rule = (
    lambda value: isinstance(value, (bool, int, float)) or _WORD[0](value),
    f"a number, true, false, or {_WORD[1]}",
)
_BUFFER: Rule = (
    lambda value: listing(COUNT, "")[0](value) and len(value) == 3,
    "least, first and most bytes",
)

# A rule, or a table of them, by key.
RULES: Dict[str, Any] = {
    "name": _NAME,
    "kind": one_of(["cluster"]),
    "extends": _NAME,
    "launcher": one_of(["ssh", "slurm"]),
    "hosts": listing(_NAME, "a list of host names"),
    "nodes": COUNT,
    "python": _PROGRAM,
    "modules": listing(_PROGRAM, "a list of names of environment modules"),
    "scratch": text(r"/[A-Za-z0-9_/.-]*", "the absolute path of a folder for temporary files"),
    "ranks_per_node": COUNT,
    "threads": COUNT,
    "binding": _WORDS,
    "memory_bytes": POSITIVE,
    "matrix_share": _SHARE,
    "runners": listing(_NAME, "a list of names of tools"),
    "settings": {EACH: SETTING},
    "levels": TABLE,
    "tools": {WORD: _PATH},
    "ssh": {"config": _PATH},
    "slurm": {
        "partition": _NAME,
        "time_limit_s": POSITIVE,
        "account": _NAME,
        "options": listing(text(r"--[!-~]+", ""), "a list of options of sbatch"),
    },
    "rpeak": {
        "value": _or_unknown(POSITIVE),
        "unit": one_of(["flop/s"]),
        "source": _LINE,
        "cores": _or_unknown(COUNT),
        "flop_per_cycle": _or_unknown(POSITIVE),
        "clock_hz": _or_unknown(POSITIVE),
        "clock": _or_unknown(one_of(["base", "AVX", "turbo"])),
    },
    "tcp": {"congestion_control": _NAME, "rmem": _BUFFER, "wmem": _BUFFER},
    "networks": {
        WORD: {
            "name": _LINE,
            "short": _LINE,
            "source": _LINE,
            "subnet": (_is_subnet, "a subnet as 10.1.0.0/24"),
            "interface": _NAME,
            "rdma": text(r"\w+:\d+", "a device and its port, as mlx5_0:1"),
            "rate_bit_s": _RATE,
            "mtu": COUNT,
            "switch": _LINE,
            "mpi": _WORDS,
            "environment": {WORD: _WORD},
        }
    },
}


def complete(description: Mapping[str, Any]) -> Dict[str, Any]:
    """A description without faults, with `nodes`, `interconnects` and, if known, the `value` of a
    node's Rpeak [flop/s]."""
    whole = {**description, "interconnects": list(description["networks"])}
    if description["launcher"] == "ssh":
        whole["nodes"] = len(description["hosts"])
    peak = rpeak(description)
    if peak:
        whole["rpeak"] = {**description["rpeak"], **peak}
    return whole


def rpeak(description: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    """Rpeak of a node as {value [flop/s], unit, source}: the stated one, or cores x flop per cycle
    x clock.

    None if a part of that is missing or unknown.
    """
    stated = description.get("rpeak", {})
    if stated.get("value", UNKNOWN) != UNKNOWN:
        return {key: stated[key] for key in ("value", "unit", "source")}
    parts = [stated.get(key, UNKNOWN) for key in ("cores", "flop_per_cycle", "clock_hz", "clock")]
    if UNKNOWN in parts:
        return None
    cores, per_cycle, clock_hz, clock = parts
    source = f"{cores} cores x {per_cycle} flop per cycle x {clock_hz / 1e9:g} GHz ({clock} clock)"
    return {"value": cores * per_cycle * clock_hz, "unit": "flop/s", "source": source}


def faults(description: Mapping[str, Any]) -> List[str]:
    """Everything that is wrong with a cluster's description, one sentence each; empty if nothing
    is."""
    found = checked(RULES, description)
    # If a part has the wrong form, another part would seem to be missing.
    return found or [sentence for is_fault, sentence in _missing(description) if is_fault]


def shape(description: Mapping[str, Any], kinds: Iterable[str]) -> List[str]:
    """Faults in the parts that every kind of testbed has, one sentence each: its kind, number of
    nodes and networks."""
    rules = {
        "name": _NAME,
        "kind": one_of(kinds),
        "nodes": COUNT,
        "blocks": BLOCKS,
        "networks": {WORD: {"rate_bit_s": _RATE}},
        "network": {WORD: TABLE},
        "mpi": {WORD: _PARAMETER},
        **dict.fromkeys(("interconnects", "runners"), listing(_NAME, "a list of names")),
        "settings": {EACH: SETTING},
        **dict.fromkeys(("levels", "node", "rates", "tcp", "tools"), TABLE),
        "scale": {**dict.fromkeys(SCALE, POSITIVE), "message_s": {WORD: POSITIVE}},
        "buffers": dict.fromkeys(BUFFERS, POSITIVE),
    }
    missing = [f"{key} is missing" for key in ("name", "kind") if key not in description]
    return checked(rules, description, is_whole=False) + missing


def _missing(description: Mapping[str, Any]) -> List[Tuple[bool, str]]:
    """Required parts that may be missing, and parts that may contradict each other: whether they
    do, and the sentence."""
    keys, hosts = description.keys(), description.get("hosts", [])
    networks, peak = description.get("networks", {}), description.get("rpeak", {})
    by_ssh = description.get("launcher") == "ssh"
    wanted = (
        "[networks.NAME] is missing: describe at least one, named as in data/interconnects.toml"
    )
    listed = "hosts are missing: with launcher ssh they are listed, node 1 first"
    counted = "nodes is missing: with launcher slurm it says how many to ask for"
    chosen = 'hosts are Slurm\'s to choose: leave them out, or say launcher = "ssh"'
    found = [
        ("name" not in keys, "name is missing"),
        ("launcher" not in keys, "launcher is missing"),
        (not networks, wanted),
        (by_ssh and not hosts, listed),
        (by_ssh and "nodes" in keys, "nodes follows from hosts: leave it out"),
        (len(set(hosts)) < len(hosts), "a host is there twice in hosts"),
        (not by_ssh and "nodes" not in keys, counted),
        (not by_ssh and bool(hosts), chosen),
        ("matrix_share" in keys and "memory_bytes" not in keys, "matrix_share needs memory_bytes"),
        (
            "value" in peak and not {"unit", "source"} <= peak.keys(),
            "rpeak.value needs unit, source",
        ),
    ]
    for name, network in networks.items():
        found += [
            (
                not {"subnet", "interface"} & network.keys(),
                f"networks.{name} needs a subnet or an interface, to find its addresses and to count its bytes",
            ),
            (
                "rdma" in network and "mpi" not in network,
                f"networks.{name}.rdma needs mpi: the words for mpirun that make it use the port",
            ),
        ]
    return found
