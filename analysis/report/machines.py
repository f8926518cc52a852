"""What is known of the machines that a report is about: what its author says, and what the
campaigns recorded.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import xarray as xr

from analysis.descriptions.report_facts import ReportFacts
from analysis.quoting import quoted
from analysis.statements.exhibit import Table
from analysis.wording import counted, number

_SILENT = (
    "The files do not record the machines. Facts in `report.toml` beside them, below "
    "`[cluster]`, are shown here."
)
# What is shown of the nodes, or of the only machine, by the name of its record.
_OF_NODES = {
    "processor": "cpu_model",
    "processors of a node": "processors",
    "memory of a node": "memory_bytes",
    "system": "system",
    "kernel": "kernel",
    "governor": "governor",
}
_OF_HOST = {
    "system": "system",
    "kernel": "kernel",
    "processor": "cpu_model",
    "processors": "cpus",
    "BLAS": "openblas",
}


def section(datasets: Sequence[xr.Dataset], facts: ReportFacts) -> str:
    """The report's section on the cluster (Markdown); what the author says comes first and wins."""
    words_by_name = {
        name.replace("_", " "): quoted(_in_words(it)) for name, it in facts.cluster.items()
    }
    for dataset in datasets:
        for name, words in recorded(dataset).items():
            words_by_name.setdefault(name, words)
    if not words_by_name:
        return f"# The cluster\n\n{_SILENT}"
    rows = [(quoted(name), value) for name, value in words_by_name.items()]
    table = Table("cluster", ("What", "Is"), "ll", rows, "The cluster.", widths=(25, 75))
    return f"# The cluster\n\n{table.markdown}"


def _in_words(value: Any) -> str:
    """A fact of the cluster as text."""
    if isinstance(value, list):
        return ", ".join(map(_in_words, value))
    return value if isinstance(value, str) else json.dumps(value)


def recorded(dataset: xr.Dataset) -> dict[str, str]:
    """What a campaign's provenance says of the machines, in words by what they are about, where
    sessions differ each in turn; of imported files, the versions of the tool."""
    if dataset.falloff.evidence == "simulated":  # on whatever machine
        return {}
    if dataset.falloff.is_imported:
        versions = ", ".join(sorted({*dataset.version.values.tolist()} - {"", "unknown"}))
        words = {f"version of {dataset.attrs['campaign']}": quoted(versions)}
    else:
        turns: dict[str, dict[str, None]] = {}
        for session in dataset.falloff.sessions or [{}]:
            for name, text in _of_session(dataset, session):
                turns.setdefault(name, {})[text] = None
        words = {name: ", then ".join(filter(None, text)) for name, text in turns.items()}
    return {name: text for name, text in words.items() if text}


def _of_session(dataset: xr.Dataset, session: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    testbed, host = session.get("testbed") or {}, session.get("host") or {}
    states = list(testbed.get("nodes", {}).values())
    yield "nodes", str(len(states) or "")
    for name, key in (_OF_NODES if states else _OF_HOST).items():
        values = [state[key] for state in states or [host] if state.get(key)]
        if key == "memory_bytes":
            values = [f"{number(size / 2**30, 3)} GiB" for size in values]
        yield name, _counts(values)
    of_nodes, tools = testbed.get("mpirun") or {}, host.get("tools") or {}
    yield "MPI", str(of_nodes.get("version") or tools.get("mpirun") or "")
    of_testbed = dataset.falloff.testbed.networks or {}
    for name, network in dataset.falloff.networks.items():
        yield _network(name, {**network.table, **of_testbed.get(name, {})}, states)
    yield "commit", str(host.get("git_commit") or "")[:8]


def _network(name: str, about: Mapping[str, Any], states: Sequence[Mapping]) -> tuple[str, str]:
    """A network: its rate, MTU, switch, and the nodes' interfaces on it."""
    rate = about.get("rate_bit_s")
    interfaces = [state.get("networks", {}).get(name, {}).get("interface") for state in states]
    words = [
        f"{number(rate / 1e9, 3)} Gbit/s" if rate else "",
        f"MTU {about['mtu']} B" if about.get("mtu") else "",
        str(about.get("switch", "")),
        f"interface {_counts(filter(None, interfaces))}" if any(interfaces) else "",
    ]
    return f"network {about.get('short') or quoted(name)}", ", ".join(filter(None, words))


def _counts(values: Iterable) -> str:
    """The only value, or each with how many nodes say it."""
    counts = Counter(map(str, values))
    if len(counts) < 2:
        return "".join(counts)
    return "; ".join(f"{word} ({counted(n, 'node')})" for word, n in counts.most_common())
