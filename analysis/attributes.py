"""Read the JSON in a dataset's attributes. No other module parses it.

Text that is only displayed, and may contain anything, is passed through `quoting.quoted`.
"""

import json
import math
from collections.abc import Collection, Iterable
from typing import Any

import xarray as xr

from analysis.quoting import quoted
from analysis.store import IMPORTED
from runners.plan import WITHOUT_MESSAGES

UNLIMITED = "unshaped"  # the interconnect without a rate limit, under whatever name it was recorded
UNLIMITED_LINKS = "unlimited links"  # what every text, table and figure calls it
UNKNOWN_NETWORK = "network not known"
NOT_RUN = "HPL without messages"  # what WITHOUT_MESSAGES is called
_WORDS = ("short", "source", "switch")  # no program reads what these say


def interconnects(dataset: xr.Dataset) -> dict[str, dict[str, Any]]:
    """The description of each interconnect of a dataset, by name. It also works for what is derived
    from a dataset. Free text is quoted."""
    described = _quoted(json.loads(dataset.attrs["interconnects"]), (*_WORDS, "name"))
    if UNLIMITED in described:
        described[UNLIMITED] |= {"name": UNLIMITED_LINKS, "short": UNLIMITED_LINKS}
    return described


def short_names(dataset: xr.Dataset) -> dict[str, str]:
    """The quoted short name of each interconnect, by name. If the design also compares with HPL
    without messages, that has a name, too."""
    described = interconnects(dataset)
    names = {name: described[name].get("short") or quoted(name) for name in described}
    if WITHOUT_MESSAGES in json.loads(dataset.attrs.get("design", "{}")):
        names[WITHOUT_MESSAGES] = NOT_RUN
    return names


names_in_text = short_names


def names_by_rate(dataset: xr.Dataset, networks: Iterable[str]) -> dict[str, str]:
    """The short names of these interconnects, those with a known link rate first, slowest first."""
    described = {"": {"short": UNKNOWN_NETWORK}} | interconnects(dataset)
    rates = {name: described[name].get("rate_bit_s", math.inf) for name in networks}
    ordered = sorted(rates, key=lambda name: (rates[name], name))
    return {name: described[name]["short"] for name in ordered}


def with_unknown_network(dataset: xr.Dataset) -> str:
    """The attribute `interconnects` of a dataset, with a name for the network that is not known ("")."""
    described = json.loads(dataset.attrs["interconnects"])
    return json.dumps(described | {"": {"short": UNKNOWN_NETWORK}})


def design(dataset: xr.Dataset) -> dict[str, Any]:
    """What was fixed before the run: the factors with their levels, the margin, and which levels
    are compared."""
    return json.loads(dataset.attrs["design"])


def factors(dataset: xr.Dataset) -> dict[str, list]:
    """The levels of every factor of the design, by its name."""
    return design(dataset)["factors"]


def testbed(dataset: xr.Dataset) -> dict[str, Any]:
    """The description of the testbed, or of the modelled cluster, that a dataset is from. Free text
    is quoted."""
    return _quoted(json.loads(dataset.attrs["testbed_settings"]), _WORDS)


def is_imported(dataset: xr.Dataset) -> bool:
    """Whether a dataset is of imported files."""
    return testbed(dataset).get("kind") == IMPORTED


def is_unordered(dataset: xr.Dataset) -> bool:
    """Whether nothing is known of the order in which the runs of one point were made."""
    return is_imported(dataset) and design(dataset).get("repeats") != "blocks"


def settings(dataset: xr.Dataset) -> dict[str, Any]:
    """The settings that have the same value in all points of the design."""
    return json.loads(dataset.attrs["settings"])


def sessions(dataset: xr.Dataset) -> list[dict[str, Any]]:
    """The record of each of the campaign's sessions, the latest last. All text is quoted."""
    return _quoted(json.loads(dataset.attrs["provenance"]).get("sessions", []))


def block_sessions(dataset: xr.Dataset) -> dict[int, list[int]]:
    """For each block, the numbers of the sessions in which it ran; empty if not recorded."""
    blocks = json.loads(dataset.attrs.get("sessions", "{}"))
    return {int(block): numbers for block, numbers in blocks.items()}


def hosts(dataset: xr.Dataset) -> list[dict[str, Any]]:
    """The machine of each of the campaign's sessions, the latest last. All text is quoted."""
    return [session.get("host", {}) for session in sessions(dataset)]


def differing_sessions(dataset: xr.Dataset) -> str:
    """The commit of the code, the kernel and the processor of the machine or of its nodes, each in turn, as far as the
    campaign's sessions differ in them; empty where they do not, and of simulations."""
    if "simulated" in dataset.evidence.values:
        return ""
    differing = []
    for key, name in {"git_commit": "commit", "kernel": "kernel", "cpu_model": "processor"}.items():
        turns = {}
        for session in sessions(dataset):
            nodes = (session.get("testbed") or {}).get("nodes") or {}
            machines = [session.get("host", {}), *nodes.values()]
            words = {str(machine[key]) for machine in machines if machine.get(key)}
            if key == "git_commit":
                changed = " with changes" if machines[0].get("git_dirty") else ""
                words = {word[:7] + changed for word in words}
            turns[" and ".join(sorted(words))] = None
        if len(turns) > 1:
            differing.append(f"{name} {', then '.join(word or 'unknown' for word in turns)}")
    return "; ".join(differing)


def host(dataset: xr.Dataset) -> dict[str, Any]:
    """The machine of the campaign's last session; empty if not recorded."""
    return (hosts(dataset) or [{}])[-1]


def _quoted(value: Any, words: Collection[str] | None = None, key: str = "") -> Any:
    """A value from JSON with quoted text; with `words`, only the text under these keys is
    quoted."""
    if isinstance(value, dict):
        return {name: _quoted(item, words, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_quoted(item, words, key) for item in value]
    return quoted(value) if isinstance(value, str) and (words is None or key in words) else value
