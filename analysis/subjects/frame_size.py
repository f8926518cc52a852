"""Frames on a path: the largest that it carries, idle and under load, and datagrams of all sizes
through a switch and a cable."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from analysis.attributes import interconnects, settings, short_names
from analysis.derive import over_factors
from analysis.statements import (
    NO_INTERVAL,
    Statement,
    estimated,
    judged_ratio,
    known,
    of_every_point,
    origin,
)
from analysis.statistics import design as designs
from analysis.statistics.intervals import mean_over
from analysis.statistics.judgement import Control, judge_control
from analysis.wire import ETHERNET_HEADER, packet_limit
from analysis.wording import listed, percent

WAYS = {"forward": "", "reverse": "_reverse"}  # suffix of the readings' names, by way
# The fate of larger frames.
FAULTS = {
    "silent": "A switch drops a larger frame in silence",
    "router": "A router reports it (ICMP)",
}


def largest(dataset: xr.Dataset) -> pd.DataFrame:
    """The largest frame on each path, idle and under load, each way: a row for each path, load and way.

    `frame` [B] is without its check sequence (the least of all blocks, NaN without any), `fault` what happens to larger ones
    (several are joined by "or"), `blocks` counts those with a reading, `expected` [B] is by the path's description, and
    `exact` says that all blocks have exactly that. Raises FalloffError if there is no trial of the search.
    """
    names = [
        f"frame_{name}{ending}" for name in ("bytes_largest", "fault") for ending in WAYS.values()
    ]
    laid_out = over_factors(dataset, "frame_limit", **{name: dataset[name] for name in names})
    paths, hosts, rows = interconnects(dataset), settings(dataset)["mtu"], []
    places = product(laid_out["path"].values, laid_out["load"].values, WAYS.items())
    for path, load, (way, ending) in places:
        at = laid_out.sel(path=path, load=load)
        frames = at[f"frame_bytes_largest{ending}"].dropna("block")
        faults = sorted(set(at[f"frame_fault{ending}"].sel(block=frames.block).values))
        expected = _least_mtu(paths[path], hosts) + ETHERNET_HEADER
        rows.append(
            {
                "path": path,
                "load": bool(load),
                "way": way,
                "frame": frames.min().item() if frames.size else np.nan,
                "fault": " or ".join(faults),
                "blocks": frames.size,
                "expected": expected,
                "exact": len(faults) == 1 and bool((frames == expected).all()),
            }
        )
    return pd.DataFrame(rows)


def found(dataset: xr.Dataset, table: pd.DataFrame) -> Iterator[Statement]:
    """Does the search find the largest frame that was set, in all cases and in each? `table` is from `largest`."""
    source, names = origin(dataset), short_names(dataset)
    count, exact = int(table.frame.notnull().sum()), int(table.exact.sum())
    subject = "The search finds the largest frame that was set on a path"
    share = exact / count if count else None
    about = {"n_of": "limit", "words": "" if not count else "yes" if exact == count else "no"}
    one = estimated(source, subject, "share", (share, *NO_INTERVAL), count, primary=True, **about)
    cases = table.assign(load=table.load.map({True: "under load", False: "idle"}))
    read = cases.set_index(["path", "load", "way"]).frame.notnull().to_xarray()
    yield of_every_point(one, read)
    for row in table.itertuples():
        where = f"{names[row.path]}, {row.way}, {'under load' if row.load else 'idle'}"
        subject = f"The largest frame on {where}; {row.expected} B was set"
        answer = "" if not row.blocks else "as described" if row.exact else "differs"
        about = {"words": answer, "reason": row.fault}
        frame = row.frame, *NO_INTERVAL
        yield estimated(source, subject, "frame", frame, row.blocks, unit="B", **about)


def elsewhere(dataset: xr.Dataset, table: pd.DataFrame) -> str:
    """The paths on which the search ends elsewhere, and what happens to larger frames, in sentences; empty without any."""
    names, differs = short_names(dataset), table[~table.exact & table.frame.notnull()].path.unique()
    sentences = [
        f"{words}." for fault, words in FAULTS.items() if table.fault.str.contains(fault).any()
    ]
    if len(differs):
        paths = listed([names[path] for path in differs])
        sentences.append(f"The search ends elsewhere, or differs between blocks, on: {paths}.")
    return " ".join(sentences)


def datagrams(dataset: xr.Dataset) -> xr.Dataset:
    """Datagrams over (block, path, frame_bytes): `sent` [1/s], and `delivered` [1], the share of what the sender's interface
    sent that reached the receiver's interface; losses in the receiver's socket are not the path's fault.

    Over (path, frame_bytes): `limit` [1/s] of the wire, NaN without a rate. Raises FalloffError if there is no trial of
    the tool.
    """
    sent, received = (
        dataset[name].where(dataset.node == dataset[role]).sum("node", min_count=1)
        for name, role in (("bytes_sent", "sender"), ("bytes_received", "receiver"))
    )
    points = over_factors(
        dataset, "udp_sizes", sent=dataset.packets_sent_per_s, delivered=received / sent
    )
    paths = interconnects(dataset)
    rates = [paths[path].get("rate_bit_s", np.nan) for path in points.path.values]
    limit = packet_limit(xr.DataArray(rates, {"path": points.path}), points.frame_bytes)
    return points.assign(limit=limit)


def compared(dataset: xr.Dataset, points: xr.Dataset) -> dict[int, Control]:
    """Whether the design's path with a switch delivers as large a share as its cable, by frame size [B]: an equivalence
    within the margin. `points` is from `datagrams`."""
    design = designs.read(dataset)
    of, against = design.pair
    ratio = np.log(points.delivered.sel(path=of) / points.delivered.sel(path=against))
    return {
        int(size): judge_control(ratio.sel(frame_bytes=size).values, design.margin)
        for size in points.frame_bytes.values
    }


def worst(controls: Mapping[int, Control]) -> int:
    """The frame size [B] that suffers most: violated before open before the others, then the lowest ratio."""
    order = ("violated", "undecided", "holds")
    return min(
        controls,
        key=lambda size: (order.index(controls[size].kind), controls[size].ratio or np.inf),
    )


def worst_in_words(controls: Mapping[int, Control]) -> str:
    """The frame size that suffers most, in a sentence; empty if no ratio is known."""
    if not controls or controls[worst(controls)].ratio is None:
        return ""
    return (
        f"This is the ratio at {worst(controls)} bytes, the worst of {len(controls)} frame sizes."
    )


def delivered(dataset: xr.Dataset, controls: Mapping[int, Control]) -> Iterator[Statement]:
    """Does the switch deliver as large a share of datagrams as the cable, at the worst frame size and at each? `controls` is
    from `compared`."""
    source, names = origin(dataset), short_names(dataset)
    of, against = designs.read(dataset).pair
    subject = f"Share of datagrams delivered: {names[of]} over {names[against]}"
    yield judged_ratio(source, subject, controls[worst(controls)], primary=True)
    for size, control in controls.items():
        yield judged_ratio(source, f"{subject}, frames of {size} B", control)


def offered(dataset: xr.Dataset, points: xr.Dataset) -> str:
    """How much of the wire's packet rate the sender offers, with the smallest and the largest frames, in sentences; empty
    without a reading. `points` is from `datagrams`."""
    design, ends = designs.read(dataset), points.frame_bytes.values[[0, -1]]
    at = points.sel(path=design.pair[0], frame_bytes=ends)
    few, many = map(known, mean_over(at.sent, "block", "rate") / at.limit)
    if few is None or many is None:
        return ""
    text = f"The sender offers {percent(few, 0)} of the wire's packet rate at {ends[0]} bytes and {percent(many, 0)} at {ends[1]} bytes."
    if few < 1 - (design.margin or 0):
        text += " Small frames do not load it fully: a switch that blocks under full load only would pass."
    return text


def _least_mtu(path: Mapping[str, Any], hosts: int) -> int:
    """The least MTU [B] on a path of data/paths.toml, including that of the `hosts`."""
    devices = {**path.get("switches", {}), **path.get("routers", {})}
    links = [link["mtu"] for link in path["links"] if "mtu" in link]
    return min([hosts, *devices.values(), *links])
