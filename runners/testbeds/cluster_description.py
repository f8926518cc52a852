"""What the description of a cluster in data/testbeds says: every fault in words, and what follows from it."""

import re
from typing import Any, Dict, List, Mapping, Optional

from runners.record import FalloffError
from runners.testbeds.cluster_keys import KEYS, PATH, UNKNOWN, WORD

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def complete(description: Mapping[str, Any]) -> Dict[str, Any]:
    """A description with what follows from it: `nodes`, `interconnects`, and the `value` of Rpeak [flop/s] of a node
    with its source, if that can be known. Raises FalloffError naming every fault."""
    found = faults(description)
    if found:
        raise FalloffError(f"testbed {description.get('name', '?')}: {'; '.join(found)}")
    whole = {**description, "interconnects": list(description["networks"])}
    if description["launcher"] == "ssh":
        whole["nodes"] = len(description["hosts"])
    peak = rpeak(description)
    if peak:
        whole["rpeak"] = {**description["rpeak"], **peak}
    return whole


def rpeak(description: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    """Rpeak of a node as {value [flop/s], unit, source}: stated, or cores x flop per cycle x clock; None when a part
    of that is missing or unknown, or it is not said which clock it is."""
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
    found = _strange("", description)
    if found:
        return found
    for table in ("ssh", "slurm", "rpeak", "tcp"):
        found += _strange(table, description.get(table, {}))
    found += [
        f"tools.{tool} = {path!r} must be {PATH[1]}"
        for tool, path in description.get("tools", {}).items()
        if not PATH[0](path)
    ]
    for name, network in description.get("networks", {}).items():
        found += _faulty_network(name, network)
    return found + _missing(description)


def _strange(table: str, given: Mapping[str, Any], shown: str = "") -> List[str]:
    """Keys of a table that are unknown, and values that are not what they should be."""
    known, prefix = KEYS[table], f"{shown or table}." if table else ""
    unknown = [key for key in given if key not in known]
    found = [f"{prefix}{key} is unknown; there are {', '.join(known)}" for key in unknown]
    return found + [
        f"{prefix}{key} = {value!r} must be {known[key][1]}"
        for key, value in given.items()
        if key in known and not known[key][0](value)
    ]


def _faulty_network(name: str, network: Any) -> List[str]:
    shown = f"networks.{name}"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_]*", name) or not isinstance(network, dict):
        return [f"{shown} must be a table with a name of letters, digits and _"]
    found = _strange("networks", network, shown)
    if not {"subnet", "interface"} & network.keys():
        found.append(f"{shown} needs a subnet or an interface, to find its addresses and to count its bytes")
    if "rdma" in network and "mpi" not in network:
        found.append(f"{shown}.rdma needs mpi: the words for mpirun that make it use the port")
    environment = network.get("environment", {})
    for variable, value in environment.items() if isinstance(environment, dict) else ():
        if not _VARIABLE.fullmatch(variable) or not WORD[0](value):
            found.append(f"{shown}.environment.{variable} = {value!r} must be a variable and {WORD[1]}")
    return found


def _missing(description: Mapping[str, Any]) -> List[str]:
    """What has to be said and is not, and what contradicts itself."""
    found = [f"{key} is missing" for key in ("name", "launcher") if key not in description]
    if not description.get("networks"):
        found.append("[networks.NAME] is missing: describe at least one, named as in data/interconnects.toml")
    found += _faulty_hosts(description)
    if "matrix_share" in description and "memory_bytes" not in description:
        found.append("matrix_share needs memory_bytes, of which it is a share")
    stated = description.get("rpeak", {})
    if "value" in stated and not {"unit", "source"} <= stated.keys():
        found.append("rpeak.value needs unit and source")
    return found


def _faulty_hosts(description: Mapping[str, Any]) -> List[str]:
    hosts = description.get("hosts", [])
    if description.get("launcher") == "ssh":
        found = [] if hosts else ["hosts are missing: with launcher ssh they are listed, node 1 first"]
        if "nodes" in description:
            found.append("nodes follows from hosts: leave it out")
        return found + (["a host is there twice in hosts"] if len(set(hosts)) < len(hosts) else [])
    found = [] if "nodes" in description else ["nodes is missing: with launcher slurm it says how many to ask for"]
    return found + (["hosts are Slurm's to choose: leave them out, or say launcher = \"ssh\""] if hosts else [])
