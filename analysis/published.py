"""What the sources printed (data/published), with unit and source beside every number.

The FortiSwitch paper's result figures are lost: there is no published rate on either network.
"""

import tomllib
from functools import cache, partial
from typing import Any

import pandas as pd

from analysis.paths import PUBLISHED
from analysis.wire import wire_limit

KIBIBYTE = 1024  # B: netperf's -f K counts bytes in units of 2^10


def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads((PUBLISHED / f"{name}.toml").read_text(encoding="utf-8"))


# What each file says; a number is a table of value, unit and where.
smith = partial(_toml, "smith")  # facts of the Smith cluster and the paper's statements
smith_deck = partial(_toml, "smith_appendix_b")  # `printed`, the `deck` it holds, what is `garbled`
bonding_blog_facts = partial(_toml, "bonding_blog")
nemo = partial(_toml, "nemo")  # the switch tests' units, totals, frame limits, switches
grid5000 = partial(_toml, "grid5000")  # maxima of experiment 551, its bridge, buffers, kernels
beowulf = partial(_toml, "beowulf")  # token exchanges and wires
top500 = partial(_toml, "top500")  # each `aggregate` of a list with unit and source


def smith_table1() -> pd.DataFrame:
    """Table 1 of the FortiSwitch paper: P, Q, nodes, printed_n (hundreds), N and source of the 15 cases."""
    return pd.read_csv(PUBLISHED / "smith_table1.csv")


def bonding_blog() -> pd.DataFrame:
    """The blog's four results: nodes, links_per_node, rate_gflop_s, efficiency_percent and source."""
    return pd.read_csv(PUBLISHED / "bonding_blog.csv")


def nemo_netperf() -> pd.DataFrame:
    """The Nemo switch tests' netperf lines: path, driver, mtu [B], direction, flow and source.

    `goodput_kib_s` is in 2^10 bytes/s; `cpu_local_percent` and `cpu_remote_percent` are shares of all of a
    machine's processors. A test of both ways has two rows, one for each flow.
    """
    return pd.read_csv(PUBLISHED / "nemo_netperf.csv")


def nemo_points(like: dict[str, list[str]]) -> pd.DataFrame:
    """The Nemo switch tests' netperf lines on the devices that are `like` a path, which maps a path to their names.

    Columns: path, device, mtu [B], direction, `total` [bit/s] of both ways, `share` of the wire limit [1].
    """
    rate = nemo()["netperf"]["line_rate"]["value"]
    tests = nemo_netperf().groupby(["path", "mtu", "direction"], sort=False)
    table = tests.agg(goodput_kib_s=("goodput_kib_s", "sum"), flows=("flow", "size"))
    table = table.reset_index(names=["device", "mtu", "direction"])
    table["total"] = 8 * KIBIBYTE * table.pop("goodput_kib_s")
    table["share"] = table.total / (table.pop("flows") * wire_limit(rate, table.mtu))
    path_of = {device: path for path, devices in like.items() for device in devices}
    table.insert(0, "path", table.device.map(path_of))
    return table.dropna(subset="path").reset_index(drop=True)


@cache
def sources() -> dict[str, dict[str, Any]]:
    """Every source by the name of its file in data/published: author, title, kind, year, short name and more."""
    tables = {file.stem: _toml(file.stem) for file in sorted(PUBLISHED.glob("*.toml"))}
    found = {name: table["source"] for name, table in tables.items() if "source" in table}
    return {name: source for name, source in found.items() if "short" in source}
