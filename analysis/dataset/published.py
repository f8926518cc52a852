"""The numbers that the sources printed (data/published), each with its unit and source.

The FortiSwitch paper's result figures are lost, so there is no published rate on either network.
"""

import tomllib
from functools import cache
from typing import Any

import pandas as pd

from analysis.dataset.wire import wire_limit
from analysis.paths import PUBLISHED

KIBIBYTE = 1024  # B: netperf's -f K counts bytes in units of 2^10


def facts(name: str) -> dict[str, Any]:
    """The content of a file in data/published; a number is a table of value, unit and where it is
    printed.

    `fortinet` is the FortiSwitch paper, `fortinet_appendix_b` its HPL.dat, `nemo` the switch tests,
    `grid5000` the long path, `beowulf` the topology study, `bonding` the blog's cluster,
    `top500` the printed numbers about TOP500's lists.
    """
    return tomllib.loads((PUBLISHED / f"{name}.toml").read_text(encoding="utf-8"))


def table(name: str) -> pd.DataFrame:
    """A printed table, a row each with its source.

    `fortinet_table1` has P, Q, nodes, printed_n (hundreds) and N of the 15 cases; `bonding` nodes,
    links_per_node, rate_gflop_s and efficiency_percent; `nemo_netperf` path, driver, mtu [B],
    direction, flow, goodput_kib_s in 2^10 bytes/s, and cpu_local_percent and cpu_remote_percent of
    all of a machine's processors. A test of both ways has two rows there. `top500_families` has the
    efficiency of each family of interconnects in TOP500's lists, computed from the lists.
    """
    return pd.read_csv(PUBLISHED / f"{name}.csv")


def nemo_points(like: dict[str, list[str]]) -> pd.DataFrame:
    """The netperf results of the Nemo switch tests on devices like ours; `like` maps a path to the
    names of its devices.

    Columns: path, device, mtu [B], direction, `total` [bit/s] of both ways, `share` of the wire
    limit [1].
    """
    rate = facts("nemo")["netperf"]["line_rate"]["value"]
    tests = table("nemo_netperf").groupby(["path", "mtu", "direction"], sort=False)
    points = tests.agg(goodput_kib_s=("goodput_kib_s", "sum"), flows=("flow", "size"))
    points = points.reset_index(names=["device", "mtu", "direction"])
    points["total"] = 8 * KIBIBYTE * points.pop("goodput_kib_s")
    points["share"] = points.total / (points.pop("flows") * wire_limit(rate, points.mtu))
    path_of = {device: path for path, devices in like.items() for device in devices}
    points.insert(0, "path", points.device.map(path_of))
    return points.dropna(subset="path").reset_index(drop=True)


@cache
def sources() -> dict[str, dict[str, Any]]:
    """Every source, by its file's name in data/published: author, title, kind, year, short name and
    more."""
    files = [file.stem for file in sorted(PUBLISHED.glob("*.toml"))]
    by_name = {name: facts(name).get("source", {}) for name in files}
    return {name: source for name, source in by_name.items() if "short" in source}
