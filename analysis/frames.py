"""Frames on a path: the largest that it carries, idle and under load, and datagrams of all sizes
through a switch and a cable."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from analysis import published
from analysis.attributes import interconnects, settings, short_names
from analysis.derive import over_factors
from analysis.statements import (
    NO_INTERVAL,
    Statement,
    estimated,
    judged_in_words,
    judged_ratio,
    known,
    origin,
    resting_on,
)
from analysis.statistics import design as designs
from analysis.statistics.intervals import mean_over
from analysis.statistics.judgement import Control, judge_control
from analysis.wire import ETHERNET_HEADER, packet_limit
from analysis.wording import fixed, listed, paragraphs, percent

WAYS = {"forward": "", "reverse": "_reverse"}  # suffix of the readings' names, by way
# The fate of larger frames.
FAULTS = {
    "silent": "A switch drops a larger frame in silence",
    "router": "A router reports it (ICMP)",
}


@dataclass(frozen=True)
class PacketSizes:
    """The campaign's dataset and its points over (block, path, frame_bytes).

    For datagrams: `sent` [1/s], and `delivered` [1], the share of what the sender's interface sent
    that reached the receiver's interface; losses in the receiver's socket are not the path's fault.
    Over (path, frame_bytes): `limit` [1/s] of the wire, NaN without a rate.

    `blocking` judges for each frame size whether `compared`, a path with a switch, delivers as
    large a share as `reference`, a cable: `holds` is an equivalence within the margin. `worst` is
    the frame size [B] with the largest loss.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    compared: str
    reference: str
    blocking: dict[int, Control]
    worst: int


@dataclass(frozen=True)
class Frames:
    """The campaign's dataset and its map, and datagrams of all sizes if there are data.

    `limits` has a row for each path, load and way: `frame` [B] without its check sequence (the
    least of all blocks, NaN without any), `fault` (what happens to larger ones; several are joined
    by "or"), `blocks` with a reading, `expected` [B] by the path's description, and `exact`: all
    blocks have exactly that.
    """

    dataset: xr.Dataset
    limits: pd.DataFrame
    sizes: PacketSizes | None = None


def analyse(frame_limits: xr.Dataset, packet_sizes: xr.Dataset | None = None) -> Frames:
    """Lay both campaigns out; raises FalloffError if one has no trial of its tool."""
    sizes = None if packet_sizes is None else _sizes(packet_sizes)
    return Frames(frame_limits, _limits(frame_limits), sizes)


def _limits(dataset: xr.Dataset) -> pd.DataFrame:
    """The largest frame of each path, idle and under load, each way."""
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


def _least_mtu(path: Mapping[str, Any], hosts: int) -> int:
    """The least MTU [B] on a path of data/paths.toml, including that of the `hosts`."""
    devices = {**path.get("switches", {}), **path.get("routers", {})}
    links = [link["mtu"] for link in path["links"] if "mtu" in link]
    return min([hosts, *devices.values(), *links])


def _sizes(dataset: xr.Dataset) -> PacketSizes:
    """Lay the datagrams out and compare the paths."""
    sent, received = (
        dataset[name].where(dataset.node == dataset[role]).sum("node", min_count=1)
        for name, role in (("bytes_sent", "sender"), ("bytes_received", "receiver"))
    )
    laid_out = over_factors(
        dataset,
        "udp_sizes",
        sent=dataset.packets_sent_per_s,
        delivered=received / sent,
    )
    paths, design = interconnects(dataset), designs.read(dataset)
    rates = [paths[path].get("rate_bit_s", np.nan) for path in laid_out.path.values]
    limit = packet_limit(xr.DataArray(rates, {"path": laid_out.path}), laid_out.frame_bytes)
    (compared, reference), delivered = design.pair, laid_out.delivered
    ratio = np.log(delivered.sel(path=compared) / delivered.sel(path=reference))
    blocking = {
        int(size): judge_control(ratio.sel(frame_bytes=size).values, design.margin)
        for size in laid_out.frame_bytes.values
    }
    points = laid_out.assign(limit=limit)
    return PacketSizes(dataset, points, compared, reference, blocking, _worst(blocking))


def _worst(blocking: Mapping[int, Control]) -> int:
    """The frame size that suffers most: violated before open before the others, then the lowest
    ratio."""
    order = ("violated", "undecided", "holds")
    return min(
        blocking,
        key=lambda size: (order.index(blocking[size].kind), blocking[size].ratio or np.inf),
    )


def finding(study: Frames) -> str:
    """The switch's effect on datagrams of all sizes, and the largest frames (Markdown)."""
    return paragraphs(_of_sizes(study.sizes) if study.sizes else (), _of_limits(study))


def _of_sizes(study: PacketSizes) -> Iterator[str]:
    names = interconnects(study.dataset)
    compared, reference = (names[path]["name"] for path in (study.compared, study.reference))
    worst, sizes = study.worst, sorted(study.blocking)
    control = study.blocking[worst]
    pair = f"as large a share of datagrams as the {reference}"
    if control.kind == "undecided":
        yield f"**Whether the {compared} delivers {pair} is open**, most of all at {worst} bytes."
    else:
        basis = resting_on(study.dataset, control.blocks, judged_in_words(control, 3))
        does = "delivers" if control.kind == "holds" else "does not deliver"
        sizes_of = f", at all {len(sizes)} frame sizes" if control.kind == "holds" else ""
        yield (
            f"**The {compared} {does} {pair}{sizes_of}**: their lowest ratio is {fixed(control.ratio, 3)}, at {worst} bytes ({basis})."
        )
    at = study.points.sel(path=study.compared, frame_bytes=[sizes[0], sizes[-1]])
    few, many = map(known, mean_over(at.sent, "block", "rate") / at.limit)
    if few is not None and many is not None:
        yield f"But the sender offers it {percent(few, 0)} of the wire's packet rate at {sizes[0]} bytes and {percent(many, 0)} at {sizes[-1]} bytes."
        if few < 1 - control.margin:
            yield "Small frames do not load it fully: a switch that blocks under full load only would pass."


def _of_limits(study: Frames) -> Iterator[str]:
    table, names = study.limits, short_names(study.dataset)
    if table.frame.isnull().all():
        yield "**The largest frame of no path is known**: no search ended."
        return
    yield (
        f"**The search for the largest frame finds the limit that was set in {table.exact.sum()} of "
        f"{table.frame.notnull().sum()} cases**: each path, both ways, idle and under load "
        f"({resting_on(study.dataset, table.blocks.max())})."
    )
    differs = table[~table.exact].path.unique()
    if len(differs):
        yield f"It ends elsewhere, or differs between blocks, on: {listed([names[path] for path in differs])}."
    limit = published.facts("nemo")["frame_limit"]["smc_8505t"]["frame"]["value"]
    for fault, words in FAULTS.items():
        if table.fault.str.contains(fault).any():
            yield f"{words}."
    yield f"Nemo's switches carried frames of {limit} bytes [@nemo]."


def findings(study: Frames) -> Iterator[Statement]:
    """Whether the switch delivers as much as the cable, and every frame limit, as data."""
    if study.sizes is not None:
        yield from _findings_of_sizes(study.sizes)
    source, names = origin(study.dataset), short_names(study.dataset)
    table = study.limits
    count, exact = int(table.frame.notnull().sum()), int(table.exact.sum())
    answer = "" if not count else "yes" if exact == count else "not always"
    statement = "The search finds the largest frame that was set on a path"
    share, about = (
        (exact / count if count else None, *NO_INTERVAL),
        {"n_of": "limit", "words": answer},
    )
    yield estimated(source, statement, "share", share, count, primary=True, **about)
    for row in table.itertuples():
        where = f"{names[row.path]}, {row.way}, {'under load' if row.load else 'idle'}"
        statement = f"The largest frame on {where}; {row.expected} B was set"
        answer = "" if not row.blocks else "as described" if row.exact else "differs"
        about = {"words": answer, "reason": row.fault}
        frame = row.frame, *NO_INTERVAL
        yield estimated(source, statement, "frame", frame, row.blocks, unit="B", **about)


def _findings_of_sizes(study: PacketSizes) -> Iterator[Statement]:
    source, names = origin(study.dataset), short_names(study.dataset)
    pair = f"Share of datagrams delivered: {names[study.compared]} over {names[study.reference]}"
    yield judged_ratio(source, pair, study.blocking[study.worst], primary=True)
    for size, control in study.blocking.items():
        yield judged_ratio(source, f"{pair}, frames of {size} B", control)
