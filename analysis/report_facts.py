"""What is known of a report's title matter and of its cluster: what its author says in `report.toml`, and what the campaigns
recorded."""

import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import xarray as xr

from analysis import attributes
from analysis.exhibit import Table
from analysis.quoting import quoted
from analysis.statements import evidence_of
from analysis.wording import counted, number
from runners.record import FalloffError, unknown_key

NAME = "report.toml"
NUMBERS = ("en", "de")  # a decimal point, a decimal comma
_SILENT = (
    "The files do not record the machines. Facts in `report.toml` beside them, below `[cluster]`, are "
    "shown here."
)


@dataclass(frozen=True)
class ReportFacts:
    """Title, subtitle, authors, affiliation and date of a report; facts about the `cluster`, a word and a text or number
    each; the campaigns that are its `sections`, in this order (none given: all); and the language of its `numbers`,
    one of NUMBERS.
    """

    title: str = "Does this cluster's efficiency fall off with its interconnect?"
    subtitle: str = ""
    authors: tuple[str, ...] = ()
    affiliation: str = ""
    date: str = ""
    introduction: str = ""
    sections: tuple[str, ...] = ()
    numbers: str = "en"
    cluster: dict[str, Any] = field(default_factory=dict)


def read(folder: Path) -> ReportFacts:
    """The facts in a folder's report.toml; without the file none. Raises FalloffError naming every
    fault."""
    file = folder / NAME
    if not file.exists():
        return ReportFacts()
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FalloffError(f"{file} is not valid TOML: {error}") from None
    known = [each.name for each in fields(ReportFacts)]
    faults = [unknown_key("", name, known) for name in found if name not in known]
    for name, value in found.items():
        if name in ("authors", "sections"):
            if not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
                faults.append(f'{name} is a list of texts, such as {name} = ["hpl"]')
        elif name == "cluster":
            if not isinstance(value, dict) or any(isinstance(one, dict) for one in value.values()):
                faults.append("[cluster] has a word and a text or number in each line")
        elif name == "numbers" and value not in NUMBERS:
            faults.append(unknown_key("numbers = ", str(value), NUMBERS))
        elif name in known and not isinstance(value, str) and name != "date":
            faults.append(f"{name} is a text in quotes")
    if faults:
        raise FalloffError(f"{file}: {'; '.join(faults)}")
    plain = {"authors": tuple, "sections": tuple, "cluster": dict}
    return ReportFacts(**{name: plain.get(name, str)(value) for name, value in found.items()})


def cluster(datasets: Sequence[xr.Dataset], facts: ReportFacts) -> str:
    """The report's section on the cluster (Markdown); what the author says comes first and wins."""
    known = {name.replace("_", " "): quoted(_in_words(it)) for name, it in facts.cluster.items()}
    for dataset in datasets:
        for name, value in recorded(dataset).items():
            known.setdefault(name, value)
    if not known:
        return f"# The cluster\n\n{_SILENT}"
    rows = [(quoted(name), value) for name, value in known.items()]
    table = Table("cluster", ("What", "Is"), "ll", rows, "The cluster.", widths=(25, 75))
    return f"# The cluster\n\n{table.markdown}"


def _in_words(value: Any) -> str:
    """A fact of the cluster as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(map(_in_words, value))
    return json.dumps(value) if isinstance(value, bool) else str(value)


def recorded(dataset: xr.Dataset) -> dict[str, str]:
    """What a campaign's provenance says of the machines, in words by what they are about; of imported files, the versions of
    the tool."""
    if evidence_of(dataset) == "simulated":  # on whatever machine
        return {}
    if attributes.is_imported(dataset):
        versions = sorted({one for one in dataset.version.values.tolist() if one} - {"unknown"})
        about = {f"version of {dataset.attrs['campaign']}": quoted(", ".join(versions))}
    else:
        turns: dict[str, dict[str, None]] = {}
        for session in attributes.sessions(dataset) or [{}]:
            states = list((session.get("testbed") or {}).get("nodes", {}).values())
            of_session = {
                **(_of_nodes(states) or _of_host(session.get("host") or {})),
                "MPI": _mpi(session),
                **dict(_networks(dataset, states)),
                "commit": str((session.get("host") or {}).get("git_commit") or "")[:8],
            }
            for name, words in of_session.items():
                turns.setdefault(name, {})[words] = None
        about = {name: ", then ".join(filter(None, words)) for name, words in turns.items()}
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
