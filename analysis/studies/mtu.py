"""TCP over path, MTU and direction: goodput beside the wire limit, CPU time of both ends, onlookers."""

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from analysis import published
from analysis.flooding import Bystander, flooded
from analysis.tcp import points, stamps
from analysis.wire import wire_limit

KIBIBYTE = 8 * 1024  # bit: netperf's -f K counts bytes in units of 2^10


@dataclass(frozen=True)
class Onlookers:
    """What nodes received that took no part: `readings` (one for each of them and trial) were judged, `flooded`
    are those of a path that received too much, and `largest` is the largest share of the traffic (NaN: none)."""

    readings: int
    largest: float
    flooded: tuple[tuple[str, Bystander], ...]


@dataclass(frozen=True)
class Mtu:
    """The campaign's dataset and all that follows from it.

    `points` are those of `tcp.points`, `stamps` what limits each, over (path, mtu, direction). `published` has
    a row for each of the source's tests on a device like one of the paths (see `published_points`).
    """

    dataset: xr.Dataset
    points: xr.Dataset
    stamps: xr.DataArray
    onlookers: Onlookers
    published: pd.DataFrame


def analyse(dataset: xr.Dataset) -> Mtu:
    """Derive points and stamps; raises FalloffError when there is no iperf3 trial."""
    found = points(dataset)
    like = json.loads(dataset.attrs["design"]).get("published", {})
    return Mtu(dataset, found, stamps(found), onlookers(dataset), published_points(like))


def onlookers(dataset: xr.Dataset) -> Onlookers:
    """The nodes that took no part in any of the campaign's transfers, on the paths that have such nodes."""
    seen = []
    columns = (dataset[name].values for name in ("path", "sender", "receiver", "bytes_received"))
    for path, sender, receiver, received in zip(*columns):
        if np.isnan(received).all():
            continue
        two = {int(sender), int(receiver)}
        # All, whatever they received: the threshold is below any share.
        seen += [(path.item(), received, two, node) for node in flooded(received, two, two, threshold=-1)]
    too_much = tuple((path, node) for path, received, two, node in seen if node in flooded(received, two, two))
    return Onlookers(len(seen), max((node.share for *_, node in seen), default=np.nan), too_much)


def published_points(like: dict[str, list[str]]) -> pd.DataFrame:
    """The source's netperf tests on the devices that are `like` a path, which maps a path to their names.

    Columns: path, device, mtu [B], direction, `total` [bit/s] of both ways, `share` of the wire limit [1],
    `cpu_local` and `cpu_remote` (shares of all of a machine's processors), `cost_local` and `cost_remote`
    [seconds of a whole machine per byte].
    """
    rate = published.nemo()["netperf"]["line_rate"]["value"]
    tests = published.nemo_netperf().groupby(["path", "mtu", "direction"], sort=False)
    table = tests.agg(
        goodput_kib_s=("goodput_kib_s", "sum"),
        flows=("flow", "size"),
        cpu_local=("cpu_local_percent", "first"),  # both ways: each machine is read twice, within 0.3 % of it
        cpu_remote=("cpu_remote_percent", "first"),
    ).reset_index(names=["device", "mtu", "direction"])
    table["total"] = KIBIBYTE * table.pop("goodput_kib_s")
    table["share"] = table.total / (table.pop("flows") * wire_limit(rate, table.mtu))
    for end in ("local", "remote"):
        table[f"cpu_{end}"] /= 100
        table[f"cost_{end}"] = table[f"cpu_{end}"] / (table.total / 8)
    path_of = {device: path for path, devices in like.items() for device in devices}
    table.insert(0, "path", table.device.map(path_of))
    return table.dropna(subset="path").reset_index(drop=True)
