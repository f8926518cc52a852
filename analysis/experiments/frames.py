"""Frames that a path carries: the largest, idle and under load, and datagrams of all sizes through a switch and a cable."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, published, style
from analysis.attributes import interconnects, settings, short_names
from analysis.derive import over_factors
from analysis.exhibit import Basis, Exhibit
from analysis.findings import Finding, evidence_of, known, of_control, of_estimate, origin
from analysis.statistics import design as designs
from analysis.statistics.intervals import mean_over
from analysis.statistics.judgement import Control, judge_control
from analysis.wire import ETHERNET_HEADER, packet_limit
from analysis.wording import between, counted, fixed, listed, percent

WAYS = {"forward": "", "reverse": "_reverse"}  # a way's ending of the readings' names
# What happens to larger frames on their way.
FAULTS = {"silent": "lost without an error", "router": "reported by a router"}
SIDESTEP = 0.15  # of a step from one frame size to the next, of a path from the middle
NO_INTERVAL = (None, None)
FIGURES = {"packet_sizes": ("packet_sizes",)}


@dataclass(frozen=True)
class FrameLimits:
    """The campaign's dataset and its map.

    `map` has a row for each path, load and way: `frame` [B] without its check sequence (the least that a
    block has, NaN without any), `fault` (what happens to larger ones; several are joined by "or"),
    `blocks` with a reading, `alike` whether they agree, and `expected` [B] by the path's description.
    """

    dataset: xr.Dataset
    map: pd.DataFrame

    @property
    def exact(self) -> int:
        """How many limits all blocks have where the description puts them."""
        return int((self.map.alike & (self.map.frame == self.map.expected)).sum())


@dataclass(frozen=True)
class PacketSizes:
    """The campaign's dataset and its points over (block, path, frame_bytes).

    Of datagrams: `sent` [1/s], `loss` [1], the share that did not reach the receiver's socket, `delivered`
    [1], the share of what the sender's interface sent that reached the receiver's. What reaches the
    interface and not the socket was lost because the receiver's processor is slower than the path. Over
    (path, frame_bytes) `limit` [1/s] of the wire, NaN without a rate.

    `blocking` judges for each frame size whether `compared`, a path with a switch, delivers as large a share
    as `reference`, a cable: `holds` is an equivalence within the `margin`.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    compared: str
    reference: str
    margin: float
    blocking: dict[int, Control]

    @property
    def worst(self) -> int:
        """The frame size [B] that suffers most: violated before open before not, then the least ratio."""
        order = ("violated", "undecided", "holds")
        return min(
            self.blocking,
            key=lambda size: (
                order.index(self.blocking[size].kind),
                self.blocking[size].ratio or np.inf,
            ),
        )


@dataclass(frozen=True)
class Frames:
    """The largest frames, and datagrams of all sizes where there are data."""

    limits: FrameLimits
    sizes: PacketSizes | None = None


def analyse(frame_limits: xr.Dataset, packet_sizes: xr.Dataset | None = None) -> Frames:
    """Lay both campaigns out; raises FalloffError when one holds no trial of its tool."""
    return Frames(
        limits=limits_of(frame_limits),
        sizes=None if packet_sizes is None else sizes_of(packet_sizes),
    )


def limits_of(dataset: xr.Dataset) -> FrameLimits:
    """The largest frame of each path, idle and under load, each way."""
    readings = [
        f"frame_{name}{ending}" for name in ("bytes_largest", "fault") for ending in WAYS.values()
    ]
    laid_out = over_factors(dataset, "frame_limit", **{name: dataset[name] for name in readings})
    paths, hosts = interconnects(dataset), settings(dataset)["mtu"]
    rows = [
        {
            "path": path,
            "load": bool(load),
            "way": way,
            **_limit(laid_out.sel(path=path, load=load), ending),
            "expected": _least_mtu(paths[path], hosts) + ETHERNET_HEADER,
        }
        for path in laid_out["path"].values
        for load in laid_out["load"].values
        for way, ending in WAYS.items()
    ]
    return FrameLimits(dataset, pd.DataFrame(rows))


def _least_mtu(path: Mapping[str, Any], hosts: int) -> int:
    """The least MTU [B] on a path of data/paths.toml, that of the `hosts` included."""
    devices = {**path.get("switches", {}), **path.get("routers", {})}
    links = [link["mtu"] for link in path["links"] if "mtu" in link]
    return min([hosts, *devices.values(), *links])


def _limit(blocks: xr.Dataset, ending: str) -> dict:
    """One way's limit, from every block that has one."""
    frames = blocks[f"frame_bytes_largest{ending}"].values
    faults = blocks[f"frame_fault{ending}"].values[~np.isnan(frames)]
    frames, kinds = frames[~np.isnan(frames)], sorted(set(faults))
    return {
        "frame": frames.min() if frames.size else np.nan,
        "fault": " or ".join(kinds),
        "blocks": frames.size,
        "alike": len(set(frames)) <= 1 and len(kinds) <= 1,
    }


def sizes_of(dataset: xr.Dataset) -> PacketSizes:
    """Lay the datagrams out and compare the paths."""
    sent, received = (
        dataset[name].where(dataset.node == dataset[role]).sum("node", min_count=1)
        for name, role in (("bytes_sent", "sender"), ("bytes_received", "receiver"))
    )
    laid_out = over_factors(
        dataset,
        "udp_sizes",
        sent=dataset.packets_sent_per_s,
        loss=dataset.datagram_loss,
        delivered=received / sent,
    )
    paths, design = interconnects(dataset), designs.read(dataset)
    rates = [paths[path].get("rate_bit_s", np.nan) for path in laid_out.path.values]
    limit = packet_limit(xr.DataArray(rates, {"path": laid_out.path}), laid_out.frame_bytes)
    (compared, reference), delivered = design.pair, laid_out.delivered
    ratio = np.log(delivered.sel(path=compared) / delivered.sel(path=reference))
    return PacketSizes(
        dataset=dataset,
        points=laid_out.assign(limit=limit),
        compared=compared,
        reference=reference,
        margin=design.margin,
        blocking={
            int(size): judge_control(ratio.sel(frame_bytes=size).values, design.margin)
            for size in laid_out.frame_bytes.values
        },
    )


def finding(study: Frames) -> str:
    """What the switch does to datagrams of all sizes, and where the largest frames are (Markdown)."""
    sizes = " ".join(_of_sizes(study.sizes)) if study.sizes else ""
    limits = " ".join(_of_limits(study.limits))
    return "\n\n".join(filter(None, (sizes, limits)))


def _of_sizes(study: PacketSizes) -> Iterator[str]:
    compared, reference = (
        interconnects(study.dataset)[path]["name"] for path in (study.compared, study.reference)
    )
    worst, sizes = study.worst, sorted(study.blocking)
    control = study.blocking[worst]
    basis = f"{counted(control.blocks, 'block')}, {origin('frames', study.dataset)['evidence']} evidence"
    if control.interval:
        basis = f"90 % interval {between(control.interval, 3)}, {basis}"
    pair = f"as large a share of datagrams as the {reference}"
    if control.kind == "holds":
        yield (
            f"**The {compared} delivers {pair}, at all {len(sizes)} frame sizes**. The lowest ratio of both shares is "
            f"{fixed(control.ratio, 3)} ({basis}). A loss of {percent(study.margin, 0)} would have counted."
        )
    elif control.kind == "violated":
        yield f"**The {compared} does not deliver {pair}**. At {worst} bytes their ratio is {fixed(control.ratio, 3)} ({basis})."
    else:
        yield f"**Whether the {compared} delivers {pair} is open**, most of all at {worst} bytes."
    at = study.points.sel(path=study.compared, frame_bytes=[sizes[0], sizes[-1]])
    few, many = map(known, mean_over(at.sent, "block", "rate") / at.limit)
    if few is not None and many is not None:
        yield f"The sender offers it {percent(few, 0)} of the wire's packet rate at {sizes[0]} bytes and {percent(many, 0)} at {sizes[-1]} bytes."
        if few < 1 - study.margin:
            yield "Small frames do not load it fully: a switch that blocks under full load only would pass here."


def _of_limits(study: FrameLimits) -> Iterator[str]:
    table, names = study.map, short_names(study.dataset)
    if table.frame.isnull().all():
        yield "**The largest frame of no path is known**: no search ended."
        return
    basis = f"{counted(int(table.blocks.max()), 'block')}, {origin('frames', study.dataset)['evidence']} evidence"
    yield (
        f"**The search for the largest frame ends exactly at the limit that was set in {study.exact} of "
        f"{int(table.frame.notnull().sum())} cases**: each path, both ways, idle and under load ({basis})."
    )
    differs = table[~(table.alike & (table.frame == table.expected))].path.unique()
    if len(differs):
        yield f"It ends elsewhere, or differs between blocks, on: {listed([names[path] for path in differs])}."
    for fault, words in FAULTS.items():
        paths = table[table.fault.str.contains(fault)].path.unique()
        if len(paths):
            yield f"Larger frames are {words} on: {listed([names[path] for path in paths])}."
    limit = published.nemo()["frame_limit"]["smc_8505t"]["frame"]["value"]
    yield f"The source's switches carried frames of {limit} bytes [@nemo]."


def findings(study: Frames) -> Iterator[Finding]:
    """Whether the switch delivers as much as the cable, and every frame limit, as data."""
    if study.sizes is not None:
        yield from _findings_of_sizes(study.sizes)
    source, names = origin("frames", study.limits.dataset), short_names(study.limits.dataset)
    table = study.limits.map
    count = int(table.frame.notnull().sum())
    yield of_estimate(
        source,
        "The search finds the largest frame of a path",
        "share",
        "1",
        study.limits.exact / count if count else None,
        NO_INTERVAL,
        "",
        n=count,
        n_of="limit",
        answer="" if not count else "yes" if study.limits.exact == count else "not always",
        primary=True,
    )
    for row in table.itertuples():
        load = "under load" if row.load else "idle"
        statement = (
            f"The largest frame on {names[row.path]}, {row.way}, {load}; {row.expected} B was set"
        )
        answer = "as described" if row.alike and row.frame == row.expected else "differs"
        further = {"n": row.blocks, "answer": answer if row.blocks else "", "reason": row.fault}
        yield of_estimate(source, statement, "frame", "B", row.frame, NO_INTERVAL, "", **further)


def _findings_of_sizes(study: PacketSizes) -> Iterator[Finding]:
    source, names = origin("frames", study.dataset), short_names(study.dataset)
    pair = f"The {names[study.compared]} delivers what the {names[study.reference]} delivers"
    worst = of_control(source, pair, study.blocking[study.worst])
    yield replace(worst, primary=True)
    for size, control in study.blocking.items():
        yield of_control(source, f"{pair}, frames of {size} B", control)


def figures(study: Frames) -> dict[str, Exhibit]:
    """What was offered and what was lost over the frame, where there are data."""
    if study.sizes is None:
        return {}
    n = study.sizes.points.sizes["block"]
    intervals = "95 % t intervals of harmonic means (left) and arithmetic means (right)"
    return {
        "packet_sizes": Exhibit(
            "packet_sizes",
            datagrams_over_size(study.sizes),
            "Datagrams that the sender offers each path, and those that do not reach the receiver's socket, over the frame",
            Basis(evidence_of(study.sizes.dataset), n, intervals),
            "Datagrams sent per second and their loss over the frame size, for a cable and a switch",
            "Small marks are single blocks. An interval may end outside of the axes. Loss is that on the path and at the socket.",
            rests_on=FIGURES["packet_sizes"],
        )
    }


def datagrams_over_size(study: PacketSizes) -> Figure:
    """Datagrams sent [1/s] with the wire's limit (left) and their loss [%] (right), a step for each frame size [B]."""
    points, names = study.points, short_names(study.dataset)
    steps = np.arange(points.sizes["frame_bytes"])
    with style.styled():
        figure, (sent, loss) = drawing.new_figures(3.2, 2)
        limit = points.limit.sel(path=study.reference)
        sent.plot(steps, limit, "_", color=style.INK, ms=16, label="wire limit")
        for place, path in ((-SIDESTEP, study.reference), (SIDESTEP, study.compared)):
            x, at = steps + place, points.sel(path=path)
            drawing.runs(sent, path, x, at.sent, names[path])
            drawing.intervals(sent, path, x, at.sent, "rate")
            drawing.runs(loss, path, x, 100 * at.loss, names[path])
            drawing.intervals(loss, path, x, 100 * at.loss, "cost")
        sent.set(yscale="log", ylabel="datagrams sent [1/s]")
        loss.set(ylabel="datagrams lost [%]", ylim=(0, 100))
        for axes in (sent, loss):
            axes.set_xticks(steps, [str(size) for size in points.frame_bytes.values], rotation=90)
            axes.set_xlabel("frame without FCS [B]")
        drawing.legend_below(figure, (sent, loss), 3)
        return figure
