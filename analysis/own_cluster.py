"""What is known of the cluster that a report is about: what its author says, and what the campaigns recorded."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import xarray as xr

from analysis import attributes, statements
from analysis.exhibit import Table
from analysis.own_methods import is_import
from analysis.quoting import quoted
from analysis.report_facts import ReportFacts, in_words
from analysis.wording import counted, number

_SILENT = (
    "The files do not record the machines. Facts in `report.toml` beside them, below `[cluster]`, are "
    "shown here."
)


def section(datasets: Sequence[xr.Dataset], facts: ReportFacts) -> str:
    """The report's section on the cluster (Markdown); what the author says comes first and wins."""
    known = {name.replace("_", " "): quoted(in_words(it)) for name, it in facts.cluster.items()}
    for dataset in datasets:
        for name, value in recorded(dataset).items():
            known.setdefault(name, value)
    if not known:
        return f"# The cluster\n\n{_SILENT}"
    rows = [(quoted(name), value) for name, value in known.items()]
    table = Table("cluster", ("What", "Is"), "ll", rows, "The cluster.", widths=(25, 75))
    return f"# The cluster\n\n{table.markdown}"


def recorded(dataset: xr.Dataset) -> dict[str, str]:
    """What a campaign's provenance says of the machines, in words by what they are about; of imported files, the versions of
    the tool."""
    if statements.evidence_of(dataset) == "simulated":  # on whatever machine
        return {}
    if is_import(dataset):
        versions = sorted({one for one in dataset.version.values.tolist() if one} - {"unknown"})
        about = {f"version of {dataset.attrs['campaign']}": quoted(", ".join(versions))}
    else:
        told: dict[str, dict[str, None]] = {}
        for session in attributes.sessions(dataset) or [{}]:
            states = list((session.get("testbed") or {}).get("nodes", {}).values())
            of_session = {
                **(_of_nodes(states) or _of_host(session.get("host") or {})),
                "MPI": _mpi(session),
                **dict(_networks(dataset, states)),
                "commit": str((session.get("host") or {}).get("git_commit") or "")[:8],
            }
            for name, words in of_session.items():
                told.setdefault(name, {})[words] = None
        about = {name: ", then ".join(filter(None, words)) for name, words in told.items()}
    return {name: words for name, words in about.items() if words}


def _of_nodes(states: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What the nodes told of themselves; where they differ, how many say what."""
    if not states:
        return {}
    memory = [f"{number(one['memory_bytes'] / 2**30, 3)} GiB" for one in states if one.get("memory_bytes")]  # fmt: skip
    return {
        "nodes": str(len(states)),
        "processor": _each(states, "cpu_model"),
        "processors of a node": _each(states, "processors"),
        "memory of a node": _counts(memory),
        "system": _each(states, "system"),
        "kernel": _each(states, "kernel"),
        "governor": _each(states, "governor"),
    }


def _of_host(host: Mapping[str, Any]) -> dict[str, str]:
    words = {
        "system": host.get("system"),
        "kernel": host.get("kernel"),
        "processor": host.get("cpu_model"),
        "processors": host.get("cpus"),
        "BLAS": host.get("openblas"),
    }
    return {name: str(value) for name, value in words.items() if value}


def _mpi(session: Mapping[str, Any]) -> str:
    there = (session.get("testbed") or {}).get("mpirun") or {}
    here = (session.get("host") or {}).get("tools") or {}
    return str(there.get("version") or here.get("mpirun") or "")


def _networks(
    dataset: xr.Dataset, states: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Each network: its rate, MTU, switch, and the nodes' interfaces on it."""
    of_testbed = attributes.testbed(dataset).get("networks") or {}
    for name, each in attributes.interconnects(dataset).items():
        own = {**each, **of_testbed.get(name, {})}
        rate = own.get("rate_bit_s")
        interfaces = [one.get("networks", {}).get(name, {}).get("interface") for one in states]
        words = [
            f"{number(rate / 1e9, 3)} Gbit/s" if rate else "",
            f"MTU {own['mtu']} B" if own.get("mtu") else "",
            str(own.get("switch", "")),
            f"interface {_counts([one for one in interfaces if one])}" if any(interfaces) else "",
        ]
        yield f"network {own.get('short') or quoted(name)}", ", ".join(filter(None, words))


def _each(states: Sequence[Mapping[str, Any]], name: str) -> str:
    return _counts([str(one[name]) for one in states if one.get(name)])


def _counts(words: Sequence[str]) -> str:
    """The only word, or each with how many nodes say it."""
    found = Counter(words)
    if len(found) < 2:
        return "".join(found)
    return "; ".join(f"{word} ({counted(n, 'node')})" for word, n in found.most_common())
