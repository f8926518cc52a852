"""What the description of a cluster in data/testbeds may say: every fault in words, and what follows from it."""

import ipaddress
import re
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from runners.record import faulty, unknown_key

# Whether a value is as it should be, and how it should be, in words.
Rule = Tuple[Callable[[Any], bool], str]


def _text(pattern: str, meaning: str) -> Rule:
    return lambda value: isinstance(value, str) and bool(re.fullmatch(pattern, value)), meaning


def _list(rule: Rule, meaning: str) -> Rule:
    return lambda value: isinstance(value, list) and all(map(rule[0], value)), meaning


def _number(meaning: str, *kinds: type) -> Rule:
    return lambda value: type(value) in kinds and value > 0, meaning


def _one_of(*values: str) -> Rule:
    return lambda value: value in values, f"one of {', '.join(values)}"


def _or_unknown(rule: Rule) -> Rule:
    return lambda value: value == UNKNOWN or rule[0](value), f'{rule[1]}, or "{UNKNOWN}"'


def _is_subnet(value: Any) -> bool:
    try:
        return isinstance(value, str) and "/" in value and bool(ipaddress.ip_network(value))
    except ValueError:
        return False


UNKNOWN = "unknown"

# Texts end in command lines on other machines, and some of them in lists with commas or blanks between.
_WORD = _text(r"[!-~]+", "words without blanks")
_PATH = _text(r"[A-Za-z0-9_~/.][A-Za-z0-9_~/.,+@=-]*", "a path without blanks")
_NAME = _text(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*", "a name")
_PROGRAM = _text(r"[A-Za-z0-9_/.][A-Za-z0-9_/.+-]*", "the name of a program, or its path")
_LINE = _text(r"[ -~]+", "a line of text")
_VARIABLE = _text(r"[A-Za-z_][A-Za-z0-9_]*", "a variable")
_COUNT = _number("a whole number from 1", int)
_POSITIVE = _number("a number above 0", int, float)
_RATE = "bit/s as a number, such as 1e9"
_SHARE: Rule = (lambda value: _POSITIVE[0](value) and value < 1, "a share between 0 and 1")
_WORDS = _list(_WORD, "a list of words for mpirun")
_TABLE: Rule = (lambda value: isinstance(value, dict), "a table")
_SIZES = _list(_COUNT, "least, first and most bytes")
_BUFFER: Rule = (lambda value: _SIZES[0](value) and len(value) == 3, _SIZES[1])

KEYS: Dict[str, Dict[str, Rule]] = {
    "": {
        "name": _NAME,
        "kind": _one_of("cluster"),
        "extends": _NAME,
        "launcher": _one_of("ssh", "slurm"),
        "hosts": _list(_NAME, "a list of host names"),
        "nodes": _COUNT,
        "python": _PROGRAM,
        "modules": _list(_PROGRAM, "a list of names of environment modules"),
        "scratch": _text(r"/[A-Za-z0-9_/.-]*", "the absolute path of a folder for temporary files"),
        "ranks_per_node": _COUNT,
        "threads": _COUNT,
        "binding": _WORDS,
        "memory_bytes": _POSITIVE,
        "matrix_share": _SHARE,
        "runners": _list(_NAME, "a list of names of tools"),
        **dict.fromkeys(("ssh", "slurm", "rpeak", "tcp", "networks", "tools"), _TABLE),
        **dict.fromkeys(("settings", "levels"), _TABLE),
    },
    "ssh": {"config": _PATH},
    "slurm": {
        "partition": _NAME,
        "time_limit_s": _POSITIVE,
        "account": _NAME,
        "options": _list(_text(r"--[!-~]+", ""), "a list of options of sbatch"),
    },
    "rpeak": {
        "value": _or_unknown(_POSITIVE),
        "unit": _one_of("flop/s"),
        "source": _LINE,
        "cores": _or_unknown(_COUNT),
        "flop_per_cycle": _or_unknown(_POSITIVE),
        "clock_hz": _or_unknown(_POSITIVE),
        "clock": _or_unknown(_one_of("base", "AVX", "turbo")),
    },
    "tcp": {"congestion_control": _NAME, "rmem": _BUFFER, "wmem": _BUFFER},
    "networks": {
        "name": _LINE,
        "short": _LINE,
        "source": _LINE,
        "subnet": (_is_subnet, "a subnet as 10.1.0.0/24"),
        "interface": _NAME,
        "rdma": _text(r"\w+:\d+", "a device and its port, as mlx5_0:1"),
        "rate_bit_s": (_POSITIVE[0], _RATE),
        "mtu": _COUNT,
        "switch": _LINE,
        "mpi": _WORDS,
        "environment": _TABLE,
    },
}


def complete(description: Mapping[str, Any]) -> Dict[str, Any]:
    """A description with `nodes`, `interconnects` and, if it can be known, the `value` of a node's Rpeak [flop/s].

    Raises FalloffError naming every fault.
    """
    found = faults(description)
    if found:
        raise faulty(f"testbed {description.get('name', '?')}", found)
    whole = {**description, "interconnects": list(description["networks"])}
    if description["launcher"] == "ssh":
        whole["nodes"] = len(description["hosts"])
    peak = rpeak(description)
    if peak:
        whole["rpeak"] = {**description["rpeak"], **peak}
    return whole


def rpeak(description: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    """Rpeak of a node as {value [flop/s], unit, source}: stated, or cores x flop per cycle x clock.

    None when a part of that is missing or unknown.
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
    """Everything that is wrong with a description, a sentence each; empty when nothing is."""
    found = _faults_of_table("", description, "")
    misshapen = [
        key for key, value in description.items() if key in KEYS[""] and not KEYS[""][key][0](value)
    ]
    sound = {key: value for key, value in description.items() if key not in misshapen}
    for table in ("ssh", "slurm", "rpeak", "tcp"):
        found += _faults_of_table(table, sound.get(table, {}), f"{table}.")
    for tool, path in sound.get("tools", {}).items():
        if not _PATH[0](path):
            found.append(f"tools.{tool} = {path!r} must be {_PATH[1]}")
    for name, network in sound.get("networks", {}).items():
        found += _faults_of_network(name, network)
    if not misshapen:  # else a part would seem to be missing
        found += [sentence for is_fault, sentence in _contradictions(description) if is_fault]
    return found


def shape(description: Mapping[str, Any], kinds: Iterable[str]) -> List[str]:
    """What is wrong with what every kind of testbed says: its kind, number of nodes and networks, a sentence each."""
    rules = {"name": _NAME, "kind": _one_of(*kinds), "nodes": _COUNT, "networks": _TABLE}
    found = [
        f"{key} = {description[key]!r} must be {rule[1]}"
        for key, rule in rules.items()
        if key in description and not rule[0](description[key])
    ]
    found += [f"{key} is missing" for key in ("name", "kind") if key not in description]
    networks = description.get("networks", {})
    for name, network in networks.items() if isinstance(networks, dict) else ():
        if not isinstance(network, dict):
            found.append(f"networks.{name} must be a table")
        elif not _POSITIVE[0](network.get("rate_bit_s", 1)):
            found.append(f"networks.{name}.rate_bit_s = {network['rate_bit_s']!r} must be {_RATE}")
    return found


def _faults_of_table(table: str, given: Mapping[str, Any], prefix: str) -> List[str]:
    known, found = KEYS[table], []
    for key, value in given.items():
        if key not in known:
            found.append(unknown_key(prefix, key, known))
        elif not known[key][0](value):
            found.append(f"{prefix}{key} = {value!r} must be {known[key][1]}")
    return found


def _faults_of_network(name: str, network: Any) -> List[str]:
    title = f"networks.{name}"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_]*", name) or not isinstance(network, dict):
        return [f"{title} must be a table with a name of letters, digits and _"]
    found = _faults_of_table("networks", network, f"{title}.")
    if not {"subnet", "interface"} & network.keys():
        found.append(
            f"{title} needs a subnet or an interface, to find its addresses and to count its bytes"
        )
    if "rdma" in network and "mpi" not in network:
        found.append(f"{title}.rdma needs mpi: the words for mpirun that make it use the port")
    environment = network.get("environment", {})
    for variable, value in environment.items() if isinstance(environment, dict) else ():
        if not _VARIABLE[0](variable) or not _WORD[0](value):
            found.append(
                f"{title}.environment.{variable} = {value!r} must be {_VARIABLE[1]} and {_WORD[1]}"
            )
    return found


def _contradictions(description: Mapping[str, Any]) -> List[Tuple[bool, str]]:
    """What has to be said and may be missing, and what may contradict itself: whether it does, and the sentence."""
    keys, hosts, peak = (
        description.keys(),
        description.get("hosts", []),
        description.get("rpeak", {}),
    )
    by_ssh = description.get("launcher") == "ssh"
    return [
        ("name" not in keys, "name is missing"),
        ("launcher" not in keys, "launcher is missing"),
        (
            not description.get("networks"),
            "[networks.NAME] is missing: describe at least one, named as in data/interconnects.toml",
        ),
        (
            by_ssh and not hosts,
            "hosts are missing: with launcher ssh they are listed, node 1 first",
        ),
        (by_ssh and "nodes" in keys, "nodes follows from hosts: leave it out"),
        (len(set(hosts)) < len(hosts), "a host is there twice in hosts"),
        (
            not by_ssh and "nodes" not in keys,
            "nodes is missing: with launcher slurm it says how many to ask for",
        ),
        (
            not by_ssh and bool(hosts),
            'hosts are Slurm\'s to choose: leave them out, or say launcher = "ssh"',
        ),
        (
            "matrix_share" in keys and "memory_bytes" not in keys,
            "matrix_share needs memory_bytes, of which it is a share",
        ),
        (
            "value" in peak and not {"unit", "source"} <= peak.keys(),
            "rpeak.value needs unit and source",
        ),
    ]
