"""Frames that a path carries: the largest, idle and under load, and datagrams of all sizes through a switch and a cable."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import attributes, drawing, published, style
from analysis.derive import over_factors
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import Finding, known, of_control, of_estimate, origin
from analysis.statistics.intervals import mean_over, ratio_of_means
from analysis.statistics import design as designs
from analysis.statistics.judgement import Control, judge_control
from analysis.attributes import short_names
from analysis.wire import ETHERNET_HEADER, packet_limit
from analysis.wording import UNKNOWN, between, counted, fixed, percent

WAYS = {"forward": "", "reverse": "_reverse"}  # a way's ending of the readings' names
SIZES = {
    "payload": "payload",
    "mtu": "mtu",
    "frame": "bytes_largest",
}  # the map's columns and the readings' names
FAULTS = {
    "local": "refused by the sender",
    "router": "reported by a router",
    "silent": "lost without a word",
}
SIDESTEP = 0.15  # of a step from one frame size to the next, of a path from the middle
LOADS = {False: "idle", True: "under load"}
NO_INTERVAL = (None, None)
FIGURES = {"packet_sizes": ("packet_sizes",)}


@dataclass(frozen=True)
class FrameLimits:
    """The campaign's dataset and its map.

    `map` has a row for each path, load and way: `payload`, `mtu` and `frame` [B] (the least that a block found,
    NaN without any), `fault` (what happens to larger ones; several are joined by "or"), `blocks` with a reading,
    `alike` whether they agree, and `expected` [B], the largest frame by the path's description.
    """

    dataset: xr.Dataset
    map: pd.DataFrame

    @property
    def exact(self) -> int:
        """How many limits all blocks found where the description puts them."""
        return int((self.map.alike & (self.map.frame == self.map.expected)).sum())


@dataclass(frozen=True)
class PacketSizes:
    """The campaign's dataset and its points over (block, path, frame_bytes).

    Of datagrams: `sent` and `received` [1/s], `loss` [1], the share that did not reach the receiver's socket, `delivered` [1],
    the share of what the sender's interface sent that reached the receiver's, and over (path, frame_bytes) `limit` [1/s] of the
    wire, NaN without a rate. A datagram that reaches the interface and not the socket was lost because the receiver's
    processor is slower than the path. Over (path, frame_bytes) `offered` is the harmonic mean of `sent` as a share of the limit [1], and
    `losses` has the mean number of lost datagrams over that of those sent, `loss`, with Fieller's 95 % interval `low`, `high`.

    `blocking` judges for each frame size whether `compared`, a path with a switch, delivers as large a share
    as `reference`, a cable: `holds` is an equivalence within the `margin`.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    offered: xr.DataArray
    losses: xr.Dataset
    compared: str
    reference: str
    margin: float
    blocking: dict[int, Control]

    @property
    def worst(self) -> int:
        """The frame size [B] that suffers most: violated before open before not, then the least ratio."""
        order = ("violated", "undecided", "holds")

        def suffers(size: int) -> tuple[int, float]:
            control = self.blocking[size]
            return order.index(control.kind), np.inf if control.ratio is None else control.ratio

        return min(self.blocking, key=suffers)


@dataclass(frozen=True)
class Today:
    """Of the `limits` that a shorter run of today, of so many `blocks`, shares with the reference, as many are the `same`."""

    limits: int
    same: int
    blocks: int
    digest: str

    @property
    def words(self) -> str:
        """How many are the same."""
        return f"{self.same} of {counted(self.limits, 'limit')} where the reference has them"

    @property
    def as_data(self) -> dict:
        """The comparison for `summary.json`."""
        answer = "reproduced" if self.same == self.limits else "not reproduced"
        return {"answer": answer, "judged_as": self.words, "n": self.blocks, "digest": self.digest}


@dataclass(frozen=True)
class Frames:
    """The largest frames, datagrams of all sizes where there are data, and a shorter run of today of the first."""

    limits: FrameLimits
    sizes: PacketSizes | None = None
    today: Today | None = None


def analyse(
    frame_limits: xr.Dataset,
    packet_sizes: xr.Dataset | None = None,
    today: xr.Dataset | None = None,
) -> Frames:
    """Lay both campaigns out; `today` is a shorter run of the first.

    Raises FalloffError when one holds no trial of its tool.
    """
    limits = limits_of(frame_limits)
    return Frames(
        limits=limits,
        sizes=None if packet_sizes is None else sizes_of(packet_sizes),
        today=None if today is None else _today(limits, limits_of(today)),
    )


def limits_of(dataset: xr.Dataset) -> FrameLimits:
    """The largest frame of each path, idle and under load, each way."""
    names = [
        f"frame_{name}{ending}" for name in (*SIZES.values(), "fault") for ending in WAYS.values()
    ]
    found = over_factors(dataset, "frame_limit", **{name: dataset[name] for name in names})
    described = attributes.interconnects(dataset)
    hosts = attributes.settings(dataset)["mtu"]
    rows = [
        {
            "path": path,
            "load": bool(load),
            "way": way,
            **_limit(found.sel(path=path, load=load), ending),
            "expected": least_mtu(described[path], hosts) + ETHERNET_HEADER,
        }
        for path in found["path"].values
        for load in found["load"].values
        for way, ending in WAYS.items()
    ]
    return FrameLimits(dataset, pd.DataFrame(rows))


def least_mtu(path: Mapping[str, Any], hosts: int) -> int:
    """The least MTU [B] on a path of data/paths.toml, that of the `hosts` included."""
    devices = {**path.get("switches", {}), **path.get("routers", {})}
    return min(
        [hosts, *devices.values(), *(link["mtu"] for link in path["links"] if "mtu" in link)]
    )


def _limit(blocks: xr.Dataset, ending: str) -> dict:
    """One way's limit, from every block that found one."""
    found = blocks.isel(block=blocks[f"frame_payload{ending}"].notnull().values)
    faults = sorted(set(found[f"frame_fault{ending}"].values.tolist()))
    sizes = {column: found[f"frame_{name}{ending}"].values for column, name in SIZES.items()}
    return {
        **{
            column: float(values.min()) if values.size else np.nan
            for column, values in sizes.items()
        },
        "fault": " or ".join(faults),
        "blocks": found.sizes["block"],
        "alike": len({*sizes["payload"]}) <= 1 and len(faults) <= 1,
    }


def _today(reference: FrameLimits, today: FrameLimits) -> Today | None:
    """How today's limits are those of the reference; None where both have none in common."""
    both = reference.map.merge(today.map, on=["path", "load", "way"], suffixes=("", "_today"))
    both = both.dropna(subset=["frame", "frame_today"])
    same, blocks = int((both.frame == both.frame_today).sum()), int(today.map.blocks.max())
    digest = today.dataset.attrs["campaign_hash"]
    return Today(len(both), same, blocks, digest) if len(both) else None


def sizes_of(dataset: xr.Dataset) -> PacketSizes:
    """Lay the datagrams out and compare the paths."""
    found = over_factors(
        dataset,
        "udp_sizes",
        sent=dataset.packets_sent_per_s,
        received=dataset.packets_received_per_s,
        loss=dataset.datagram_loss,
        delivered=_at(dataset.bytes_received, dataset.receiver)
        / _at(dataset.bytes_sent, dataset.sender),
    )
    described, design = attributes.interconnects(dataset), designs.read(dataset)
    rates = [described[path].get("rate_bit_s", np.nan) for path in found.path.values]
    limit = packet_limit(xr.DataArray(rates, {"path": found.path}), found.frame_bytes)
    compared, reference = design.pair
    ratio = np.log(found.delivered.sel(path=compared) / found.delivered.sel(path=reference))
    return PacketSizes(
        dataset=dataset,
        points=found.assign(limit=limit),
        offered=mean_over(found.sent, "block", "rate") / limit,
        losses=_losses(found),
        compared=compared,
        reference=reference,
        margin=design.margin,
        blocking={
            int(size): judge_control(ratio.sel(frame_bytes=size).values, design.margin)
            for size in found.frame_bytes.values
        },
    )


def _losses(found: xr.Dataset) -> xr.Dataset:
    parts = xr.apply_ufunc(
        ratio_of_means,
        found.sent * found.loss,
        found.sent,
        input_core_dims=[["block"], ["block"]],
        output_core_dims=[[], [], []],
        vectorize=True,
    )
    return xr.Dataset(dict(zip(("loss", "low", "high"), parts)))


def _at(values: xr.DataArray, node: xr.DataArray) -> xr.DataArray:
    """Values over (trial, node) at each trial's own node; NaN where it has none."""
    return values.where(values.node == node).sum("node", min_count=1)


def finding(study: Frames) -> str:
    """What the switch does to datagrams of all sizes, and where the largest frames are, in plain English (Markdown)."""
    sizes = " ".join(_of_sizes(study.sizes)) if study.sizes else ""
    limits = " ".join(_of_limits(study.limits))
    today = f" Today's shorter run finds {study.today.words}." if study.today else ""
    return "\n\n".join(filter(None, (sizes, limits + today)))


def _of_sizes(study: PacketSizes) -> Iterator[str]:
    names = _full_names(study.dataset)
    compared, reference = names[study.compared], names[study.reference]
    worst, sizes = study.worst, sorted(study.blocking)
    control = study.blocking[worst]
    interval = f"90 % interval {between(control.interval, 3)}, " if control.interval else ""
    rests_on = f"{interval}{counted(control.blocks, 'block')}, {_evidence(study.dataset)} evidence"
    pair = f"as large a share of datagrams as the {reference}"
    if control.kind == "holds":
        yield (
            f"**The {compared} delivers {pair}, at all {len(sizes)} frame sizes**. The lowest ratio of both shares is {fixed(control.ratio, 3)} "
            f"({rests_on}); a loss of {percent(study.margin, 0)} would have counted."
        )
    elif control.kind == "violated":
        ratio = fixed(control.ratio, 3)
        yield f"**The {compared} does not deliver {pair}**. At {worst} bytes their ratio is {ratio} ({rests_on})."
    else:
        yield f"**Whether the {compared} delivers {pair} is open**, first of all at {worst} bytes."
    offered = study.offered.sel(path=study.compared)
    few, many = (known(offered.sel(frame_bytes=size)) for size in (sizes[0], sizes[-1]))
    if few is not None and many is not None:
        yield f"The sender offers it {percent(few, 0)} of the wire's packet rate at {sizes[0]} bytes and {percent(many, 0)} at {sizes[-1]} bytes."
        if few < 1 - study.margin:
            yield "Small frames do not load it fully: a switch that blocks under full load only would pass here."


def _of_limits(study: FrameLimits) -> Iterator[str]:
    names, table = _full_names(study.dataset), study.map
    if table.frame.isnull().all():
        yield "**The largest frame of no path is known**: no search ended."
        return
    rests_on = f"{counted(int(table.blocks.max()), 'block')}, {_evidence(study.dataset)} evidence"
    yield (
        f"**The search for the largest frame ends exactly at the limit that was set in {study.exact} of {int(table.frame.notnull().sum())} cases**: each path, both "
        f"ways, idle and under load ({rests_on})."
    )
    for fault in ("silent", "router"):
        paths = table[table.fault.str.contains(fault)].path.unique()
        if len(paths):
            where = " and the ".join(names[path] for path in paths)
            yield f"Larger frames are {FAULTS[fault]} at the {where}."
    limit = published.nemo()["frame_limit"]["smc_8505t"]["frame"]["value"]
    yield f"The source's switches carried frames of {limit} bytes [@nemo]."


def findings(study: Frames) -> Iterator[Finding]:
    """Whether the switch delivers as much as the cable, and every frame limit that was found, as data."""
    if study.sizes is not None:
        yield from _findings_of_sizes(study.sizes)
    source, names = origin("frames", study.limits.dataset), short_names(study.limits.dataset)
    table, today = study.limits.map, study.today
    said = "how many of the largest frames are found where the path's description puts them"
    found = int(table.frame.notnull().sum())
    share = study.limits.exact / found if found else None
    further = {"n": found, "n_of": "limit", "primary": True, "today": today and today.as_data}
    yield of_estimate(source, said, "share", "1", share, NO_INTERVAL, "", **further)
    for row in table.itertuples():
        said = f"the largest frame: {names[row.path]}, {row.way}, {LOADS[row.load]}; {row.expected} B by its description"
        alike = row.alike and row.frame == row.expected
        answer = ("as described" if alike else "differs") if row.blocks else ""
        further = {"n": row.blocks, "answer": answer, "reason": row.fault}
        yield of_estimate(source, said, "frame", "B", row.frame, NO_INTERVAL, "", **further)


def _findings_of_sizes(study: PacketSizes) -> Iterator[Finding]:
    source, names = origin("frames", study.dataset), short_names(study.dataset)
    pair = f"the share of datagrams that the {names[study.compared]} delivers over that of the {names[study.reference]}"
    said = f"{pair}, at the size that suffers most"
    yield replace(of_control(source, said, study.blocking[study.worst]), primary=True)
    for size, control in study.blocking.items():
        yield of_control(source, f"{pair}, frames of {size} B", control)


def figures(study: Frames) -> dict[str, Exhibit]:
    """What was offered and what was lost over the frame, where there are data."""
    if study.sizes is None:
        return {}
    n = study.sizes.points.sizes["block"]
    intervals = "harmonic means with 95 % t intervals (left), lost over sent with Fieller's 95 % intervals (right)"
    return {
        "packet_sizes": Exhibit(
            "packet_sizes",
            datagrams_over_size(study.sizes),
            "Datagrams that the sender offers each path, and those that do not reach the receiver's socket, over the frame",
            Basis(_evidence(study.sizes.dataset), n, intervals),
            "Datagrams sent per second and their loss over the frame size, for a cable and a switch",
            "Small marks are single blocks. An interval may end outside of the axes. Loss is that on the path and at the socket.",
            rests_on=FIGURES["packet_sizes"],
        )
    }


def datagrams_over_size(study: PacketSizes) -> Figure:
    """Datagrams sent [1/s] with the wire's limit (left) and their loss [%] (right), a step for each frame size [B]."""
    with style.styled():
        found, names = study.points, short_names(study.dataset)
        figure, (sent, loss) = drawing.new_figures(3.2, 2)
        steps = np.arange(found.sizes["frame_bytes"])
        limit = found.limit.sel(path=study.reference)
        sent.plot(steps, limit, "_", color=style.INK, ms=16, label="wire limit", gid=drawing.BOUND)
        for place, path in ((-SIDESTEP, study.reference), (SIDESTEP, study.compared)):
            x, chosen = steps + place, found.sel(path=path)
            drawing.runs(sent, path, x, chosen.sent, names[path])
            drawing.intervals(sent, path, x, chosen.sent, "rate")
            drawing.runs(loss, path, x, 100 * chosen.loss, names[path])
            lost = 100 * study.losses.sel(path=path)
            # Of losses that are all the same, rounding may put the mean outside of the interval.
            low, high = np.minimum(lost.low, lost.loss), np.maximum(lost.high, lost.loss)
            drawing.interval(loss, path, x, lost.loss.values, low.values, high.values)
        sent.set(yscale="log", ylabel="datagrams sent [1/s]")
        loss.set(ylabel="datagrams lost [%]", ylim=(0, 100))
        for axes in (sent, loss):
            axes.set_xticks(steps, [str(size) for size in found.frame_bytes.values], rotation=90)
            axes.set_xlabel("frame without FCS [B]")
        drawing.legend_below(figure, (sent, loss), 3)
        return figure


def limits_table(study: Frames) -> Table:
    """The largest frame of each path and way, idle and under load, beside its description."""
    table, names = study.limits.map, short_names(study.limits.dataset)
    ways: dict[tuple[str, ...], list[str]] = {}
    for (path, way), alone in table.groupby(["path", "way"], sort=False):
        ways.setdefault((names[path], *_limits_row(alone)), []).append(way)
    rows = [(path, " and ".join(alike), *cells) for (path, *cells), alike in ways.items()]
    sizes = ("Idle [B]", "Under load [B]", "By description [B]")
    columns = ("Path", "Way", *sizes, "Larger frames are", "Blocks")
    caption = "The largest frame, without its frame check sequence; where blocks differ, the least that one found"
    basis = Basis(
        _evidence(study.limits.dataset),
        max(int(table.blocks.max()), 1),
        "no interval: a limit is a number",
    )
    return Table("frame-limits", columns, "llrrrlr", rows, caption, basis)


def _limits_row(alone: pd.DataFrame) -> tuple[str, ...]:
    """Idle and under load of a path and way; a load that was not run is unknown."""
    frames = dict(zip(alone.load, alone.frame))
    faults = dict.fromkeys(fault for text in alone.fault for fault in text.split(" or ") if fault)
    blocks = " or ".join(dict.fromkeys(str(count) for count in alone.blocks))
    return (
        *(fixed(known(frames.get(load)), 0) for load in (False, True)),
        str(alone.expected.iloc[0]),
        " or ".join(FAULTS.get(fault, fault) for fault in faults) or UNKNOWN,
        blocks + ("" if alone.alike.all() else ", which differ"),
    )


def sizes_table(study: Frames) -> Table | None:
    """What each size of frame offers both paths and what the switch delivers; None without its campaign."""
    sizes = study.sizes
    if sizes is None:
        return None
    names = short_names(sizes.dataset)
    compared, reference = names[sizes.compared], names[sizes.reference]
    columns = (
        "Frame [B]",
        f"Offered, {reference}",
        f"Offered, {compared}",
        "Ratio of delivered shares (90 % interval)",
        "As much?",
        f"Lost in all, {compared}",
        "Blocks",
    )
    rows = [_size_row(sizes, size) for size in sorted(sizes.blocking)]
    caption = (
        f"Datagrams by the frame without its frame check sequence: what the sender offers of the wire's packet rate, and the share that the "
        f"{compared} delivers over that of the {reference}. They are *as much* where the interval lies within {percent(sizes.margin, 0)}, set before the run"
    )
    intervals = "geometric mean of the ratio with its 90 % t interval"
    basis = Basis(_evidence(sizes.dataset), sizes.points.sizes["block"], intervals)
    return Table("packet-sizes", columns, "rrrlrrr", rows, caption, basis)


def _size_row(study: PacketSizes, size: int) -> tuple[str, ...]:
    judged = study.blocking[size]
    offered = study.offered.sel(frame_bytes=size)
    answers = {"holds": "yes", "violated": "no", "undecided": "open"}
    interval = f" ({between(judged.interval, 3)})" if judged.interval else ""
    lost = study.losses.loss.sel(path=study.compared, frame_bytes=size)
    return (
        str(size),
        *(percent(known(offered.sel(path=path))) for path in (study.reference, study.compared)),
        fixed(judged.ratio, 3) + interval,
        answers[judged.kind],
        percent(known(lost)),
        str(judged.blocks),
    )


def _evidence(dataset: xr.Dataset) -> str:
    return dataset.evidence.values.ravel()[0].item()


def _full_names(dataset: xr.Dataset) -> dict[str, str]:
    """The name of every path, as a sentence has it."""
    described = attributes.interconnects(dataset)
    return {name: path["name"] for name, path in described.items()}


def _printed(design: Mapping) -> pd.DataFrame:
    """The largest frame [B] that the source printed of its switch."""
    source = published.nemo()
    frame = source["frame_limit"]["smc_8505t"]["frame"]
    told = f"{source['source']['short']}, {frame['where']}"
    return pd.DataFrame([{"path": "switch_8996", "load": 0, "value": frame["value"], "text": told}])


PRINTED = {("frame_limits", "frame_bytes_largest"): _printed}
