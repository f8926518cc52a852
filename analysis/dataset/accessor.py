"""What a dataset says of itself: `dataset.falloff.design`, `.testbed`, `.networks`, `.evidence` and
others.

No other module parses the JSON in a dataset's attributes. It also works for what is derived from a
dataset and has its attributes. Text that is only displayed, and may contain anything, is passed
through `quoting.quoted`.
"""

import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import xarray as xr

from analysis.quoting import quoted
from analysis.statistics.design import Design, design_from
from runners.records.plan import WITHOUT_MESSAGES

IMPORTED = "imported"  # the name and kind of the testbed of every imported file
UNLIMITED = "unshaped"  # the interconnect without a rate limit, under whatever name it was recorded
UNLIMITED_LINKS = "unlimited links"  # what every text, table and figure calls it
UNKNOWN_NETWORK = "network not known"
NOT_RUN = "HPL without messages"  # what WITHOUT_MESSAGES is called
_WORDS = ("short", "source", "switch")  # no program reads what these say


@dataclass(frozen=True)
class RecordedTestbed:
    """The testbed, or the modelled cluster, that a dataset is from, as far as the analysis asks.
    What was not recorded is empty; `table` is the whole description."""

    table: Mapping[str, Any]
    name: str = ""
    kind: str = ""
    extends: str = ""
    designs: str = ""
    hosts: Collection[str] = ()
    node: Mapping[str, Any] = field(default_factory=dict)
    network: Mapping[str, Any] = field(default_factory=dict)
    networks: Mapping[str, Any] = field(default_factory=dict)
    rates: Mapping[str, Any] = field(default_factory=dict)
    rpeak: Mapping[str, Any] = field(default_factory=dict)
    scale: Mapping[str, Any] = field(default_factory=dict)
    slow: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RecordedNetwork:
    """An interconnect or a path, as it was described; `table` is the whole description. The rate of
    its links and its MTU [B] are NaN where they are not stated."""

    table: Mapping[str, Any]
    short: str
    rate_bit_s: float = math.nan
    mtu: float = math.nan


@xr.register_dataset_accessor("falloff")
class DatasetAccessor:
    """What a dataset says of itself."""

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def table(self, name: str) -> dict[str, Any]:
        """An attribute as the plan or the journal has it."""
        return json.loads(self._dataset.attrs[name])

    @property
    def design(self) -> Design:
        """What was fixed before the run: the factors with their levels, the margin, and which
        levels are compared.
        """
        return design_from(self.table("design"))

    @property
    def testbed(self) -> RecordedTestbed:
        """The testbed. Free text is quoted."""
        return _recorded(RecordedTestbed, _quoted(self.table("testbed_settings"), _WORDS))

    @property
    def networks(self) -> dict[str, RecordedNetwork]:
        """Each interconnect and path by its name. Free text is quoted."""
        tables = _quoted(self.table("interconnects"), (*_WORDS, "name"))
        if UNLIMITED in tables:
            tables[UNLIMITED] |= {"name": UNLIMITED_LINKS, "short": UNLIMITED_LINKS}
        shorts = {name: table.get("short") or quoted(name) for name, table in tables.items()}
        return {
            name: _recorded(RecordedNetwork, table, short=shorts[name])
            for name, table in tables.items()
        }

    @property
    def names(self) -> dict[str, str]:
        """The quoted short name of each network, by name. If the design also compares with HPL
        without messages, that has a name, too."""
        names = {name: network.short for name, network in self.networks.items()}
        if WITHOUT_MESSAGES in self.table("design"):
            names[WITHOUT_MESSAGES] = NOT_RUN
        return names

    def names_by_rate(self, networks: Iterable[str]) -> dict[str, str]:
        """The short names of these networks, those with a known link rate first, slowest first."""
        unknown = RecordedNetwork({}, UNKNOWN_NETWORK)
        described = {name: {"": unknown, **self.networks}[name] for name in networks}
        rates = {name: network.rate_bit_s for name, network in described.items()}
        ordered = sorted(rates, key=lambda name: (math.isnan(rates[name]), rates[name], name))
        return {name: described[name].short for name in ordered}

    @property
    def points(self) -> xr.Dataset:
        """The trials that are points of the design, without surveys and warm-ups."""
        return self._dataset.isel(trial=(self._dataset.role == "point").values)

    @property
    def evidence(self) -> str:
        """The kind of evidence; there is only one."""
        return self._dataset.evidence.values.ravel()[0].item()

    @property
    def is_imported(self) -> bool:
        """Whether it is of imported files."""
        return self.testbed.kind == IMPORTED

    @property
    def is_unordered(self) -> bool:
        """Whether nothing is known of the order in which the runs of one point were made."""
        return self.is_imported and self.design.repeats != "blocks"

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that have the same value in all points of the design."""
        return self.table("settings")

    @property
    def sessions(self) -> list[dict[str, Any]]:
        """The record of each of the campaign's sessions, the latest last. All text is quoted."""
        return _quoted(self.table("provenance").get("sessions", []))

    @property
    def block_sessions(self) -> dict[int, list[int]]:
        """For each block, the numbers of the sessions in which it ran; empty if not recorded."""
        blocks = self.table("sessions") if "sessions" in self._dataset.attrs else {}
        return {int(block): numbers for block, numbers in blocks.items()}

    @property
    def hosts(self) -> list[dict[str, Any]]:
        """The machine of each of the campaign's sessions, the latest last. All text is quoted."""
        return [session.get("host", {}) for session in self.sessions]

    @property
    def host(self) -> dict[str, Any]:
        """The machine of the campaign's last session; empty if not recorded."""
        return (self.hosts or [{}])[-1]

    @property
    def switches(self) -> dict[str, str]:
        """The nearest switch of each node in the last session, by the first part of the node's
        name; empty if not recorded.
        """
        above = (self.sessions or [{}])[-1].get("slurm", {}).get("switches", {})
        return {host.split(".")[0]: names[0] for host, names in above.items() if names}

    @property
    def differing_sessions(self) -> str:
        """The commit of the code, the kernel and the processor of the machine or of its nodes, each
        in turn, as far as the campaign's sessions differ in them; empty where they do not, and of
        simulations."""
        if "simulated" in self._dataset.evidence.values:
            return ""
        differing, names = (
            [],
            {"git_commit": "commit", "kernel": "kernel", "cpu_model": "processor"},
        )
        for key, name in names.items():
            turns: dict[str, None] = {}
            for session in self.sessions:
                nodes = (session.get("testbed") or {}).get("nodes") or {}
                machines = [session.get("host", {}), *nodes.values()]
                words = {str(machine[key]) for machine in machines if machine.get(key)}
                if key == "git_commit":
                    changed = " with changes" if machines[0].get("git_dirty") else ""
                    words = {word[:7] + changed for word in words}
                turns[" and ".join(sorted(words)) or "unknown"] = None
            if len(turns) > 1:
                differing.append(f"{name} {', then '.join(turns)}")
        return "; ".join(differing)


def _recorded(kind: Any, table: Mapping[str, Any], **more: Any) -> Any:
    """A recorded table as a class, of whose fields it states some."""
    keys = table.keys() & {its_field.name for its_field in fields(kind)}
    return kind(table=table, **{key: table[key] for key in keys} | more)


def _quoted(value: Any, words: Collection[str] | None = None, key: str = "") -> Any:
    """A value from JSON with quoted text; with `words`, only the text under these keys is
    quoted."""
    if isinstance(value, dict):
        return {name: _quoted(item, words, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_quoted(item, words, key) for item in value]
    return quoted(value) if isinstance(value, str) and (words is None or key in words) else value
