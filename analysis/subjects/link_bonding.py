"""What a second link in each node gives HPL and TCP: by hashing, MPTCP, MPI striping, and the bonding driver where it was
run."""

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, published, style
from analysis.attributes import design, interconnects
from analysis.claims.quantities import at, quantity
from analysis.contrasts import differences
from analysis.derive import at_only_level, over_factors
from analysis.statements import (
    Statement,
    above,
    at_place,
    estimated,
    evidence_of,
    judged_fall,
    origin,
)
from analysis.statistics.judgement import Judgement, judge, judge_control, within_campaign
from analysis.wire import wire_limit
from analysis.wording import counted, fixed, listed, percent, percent_range

NAMES = {
    "one_link": "one link",
    "ecmp_layer2": "hash of addresses",
    "ecmp_layer34": "hash of ports",
    "mptcp": "MPTCP",
    "mpi_striping": "MPI striping",
    "bond_balance_rr": "bond balance-rr",
}
BY_ADDRESSES = "ecmp_layer2"  # the default of the bonding driver at the time of the blog
NOT_BY_ADDRESSES = "no campaign used two links by a hash of the peers"
Way = tuple[str, int]  # a way of using two links, and the number of processes a node


def rate(dataset: xr.Dataset) -> xr.DataArray:
    """HPL's rate [Gflop/s] over (block, aggregation, nodes, ranks_per_node), NaN where a trial gave none.

    Raises FalloffError if there is no HPL trial, or HPL ran over several interconnects.
    """
    points = at_only_level(over_factors(dataset, rate=dataset.hpl_rate), "interconnect")
    return points.rate.drop_vars("interconnect")


def log_gain(dataset: xr.Dataset, rate: xr.DataArray) -> xr.DataArray:
    """The logarithm of each way's rate over that of one link in the same block, over (block, aggregation, nodes,
    ranks_per_node)."""
    one_link, log = design(dataset)["baseline"], np.log(rate)
    return log.drop_sel(aggregation=one_link) - log.sel(aggregation=one_link, drop=True)


def ways(log_gain: xr.DataArray) -> list[Way]:
    """Every way of using two links, with each number of processes a node."""
    places = product(log_gain.aggregation.values.tolist(), log_gain.ranks_per_node.values.tolist())
    return [*places]


def way_in_words(way: Way) -> str:
    """A way in words."""
    return f"{NAMES[way[0]]} with {processes(way[1])}"


def processes(ranks: int) -> str:
    """A number of processes in words."""
    return f"{ranks} {'process' if ranks == 1 else 'processes'}"


def best(ratios: xr.Dataset) -> Way | None:
    """The way with the largest gain on the most nodes, if possible among those surely above 0; None without a gain.

    `ratios` are the gains' means with 95 % t intervals, over (aggregation, ranks_per_node, nodes).
    """
    at = ratios.isel(nodes=-1).stack(way=("aggregation", "ranks_per_node"))
    sure = at.ratio.where(at.low > 1)
    chosen = sure if sure.notnull().any() else at.ratio
    if chosen.isnull().all():
        return None
    aggregation, ranks = chosen.way.values[int(np.nanargmax(chosen.values))]
    return str(aggregation), int(ranks)


def growths(dataset: xr.Dataset, log_gain: xr.DataArray) -> dict[Way, Judgement]:
    """Whether each way's gain grows from the fewest nodes that use a network to the most, judged as a fall of one link's rate
    against two and corrected for each other (Holm); empty without two such node counts."""
    fewest, most = design(dataset)["fewest_nodes"], int(log_gain.nodes.max())
    if most <= fewest:
        return {}
    margin, evidence = design(dataset)["margin"], evidence_of(dataset)
    judged = []
    for aggregation, ranks in ways(log_gain):
        gain = log_gain.sel(aggregation=aggregation, ranks_per_node=ranks, drop=True)
        falls = differences(-gain.reindex(nodes=[fewest, most]), fewest)
        judged.append(judge(falls.values, margin, evidence))
    return dict(zip(ways(log_gain), within_campaign(judged)))


def speeds_up(
    dataset: xr.Dataset, ratios: xr.Dataset, growths: Mapping[Way, Judgement]
) -> Iterator[Statement]:
    """Does a second link speed up HPL, by each way on each number of nodes, and does one link fall behind two?

    Primary are the largest gain on the most nodes, and its growth. `ratios` is as in `best`, `growths` from `growths`.
    """
    source, largest = origin(dataset), best(ratios)
    fewest, most = design(dataset)["fewest_nodes"], int(ratios.nodes.max())
    falls = f"HPL over one link falls behind two from {fewest} to {most} nodes"
    places = ways(ratios.ratio)
    for way in places:
        each = f": {way_in_words(way)} a node"
        at_way = ratios.sel(aggregation=way[0], ranks_per_node=way[1])
        for nodes in ratios.nodes.values.tolist():
            at = at_way.sel(nodes=nodes)
            is_best = way == largest and nodes == most
            picked = f" (best of {len(places)} gains)" if is_best else each
            subject = f"A second link speeds up HPL on {counted(nodes, 'node')}{picked}"
            gain = tuple(end - 1 for end in at_place(at))
            about = {"words": above(gain[1:], 0), "primary": is_best}
            yield estimated(source, subject, "gain", gain, int(at.blocks), **about)
        if way in growths:
            subject = falls if way == largest else falls + each
            yield judged_fall(source, subject, growths[way], primary=way == largest)


def best_in_words(ratios: xr.Dataset) -> str:
    """The way with the largest gain, and how much of the time HPL waits for its network then, in sentences (Markdown)."""
    way, most = best(ratios), int(ratios.nodes.max())
    if way is None:
        where = counted(most, "node")
        return f"**What a second link gives HPL on {where} cannot be said**: no block has valid runs over one link and over two."
    at = ratios.sel(aggregation=way[0], ranks_per_node=way[1], nodes=most)
    gain, *ends = (end - 1 for end in at_place(at))
    sentences = [
        f"The largest gain is by {way_in_words(way)} a node. It was picked after the run, and so may be somewhat too large."
    ]
    if above(ends, 0) == "yes":
        waits = percent_range([communication(end) for end in ends])
        sentences.append(
            "Only the time that HPL waits for its network can shrink. If a second link halves it, HPL waits "
            f"{percent(communication(gain))} of the time over one link (95 % interval {waits})."
        )
    return " ".join(sentences)


def communication(gain: float) -> float:
    """The share of the time over one link that two links have halved at this gain.

    Amdahl's law with two links for the share f: 1 + gain = 1 / (1 - f / 2), so that f = 2 (1 - 1 /
    (1 + gain)). It is below 0 if two links are slower.
    """
    return 2 * (1 - 1 / (1 + gain))


def on_one_node(dataset: xr.Dataset, log_gain: xr.DataArray) -> str:
    """How much two links differ from one where no link is used, in sentences; empty without an interval."""
    margin, alone = design(dataset)["margin"], log_gain.reindex(nodes=[1]).isel(nodes=0)
    controls = [
        judge_control(alone.sel(aggregation=way, ranks_per_node=ranks).values, margin)
        for way, ranks in ways(log_gain)
    ]
    known = [control for control in controls if control.interval]
    if not known:
        return ""
    most = max(abs(control.ratio - 1) for control in known)
    failed = sum(control.kind == "violated" for control in known)
    beyond = f", {failed} of {len(known)} ways beyond margin and chance" if failed else ""
    return (
        f"On one node, which uses no link, two links differ from one by up to {percent(most)}{beyond}. "
        "That much error is not in the intervals."
    )


def published_gains() -> pd.Series:
    """The gains [1] that the bonding blog printed, by number of nodes."""
    results = published.table("bonding")
    rates = results.pivot(index="nodes", columns="links_per_node", values="rate_gflop_s")
    return rates[2] / rates[1] - 1


def beside_the_blog(ratios: xr.Dataset) -> str:
    """The gains that the blog printed, each from a single pair of runs, beside the largest ones here, in sentences."""
    printed = published_gains()
    each = " and ".join(f"{percent(gain)} on {counted(n, 'node')}" for n, gain in printed.items())
    text = f"The bonding blog printed gains of {each}, of one pair of runs each [@bonding]."
    largest = (ratios.ratio - 1).max(["aggregation", "ranks_per_node"]).reindex(nodes=printed.index)
    here = [
        f"{percent(gain)} on {counted(n, 'node')}"
        for n, gain in zip(printed.index, largest.values.tolist())
        if np.isfinite(gain)
    ]
    return f"{text} The ways here give at most {' and '.join(here)}." if here else text


def goodput(dataset: xr.Dataset) -> xr.DataArray:
    """TCP's goodput between two nodes [bit/s] over (block, aggregation, streams), connections ascending.

    Raises FalloffError if there is no iperf3 trial, or there are several interconnects.
    """
    laid_out = over_factors(dataset, runner="iperf3", goodput=dataset.goodput).sortby("streams")
    return at_only_level(laid_out, "interconnect").goodput


def link_limit(dataset: xr.Dataset, goodput: xr.DataArray) -> float:
    """The TCP payload that full frames carry over one link [bit/s]."""
    link = interconnects(dataset)[goodput.interconnect.item()]
    return wire_limit(link["rate_bit_s"], link["mtu"])


def links_filled(dataset: xr.Dataset, links: xr.Dataset) -> Iterator[Statement]:
    """How many links can so many TCP connections fill? `links` are means with 95 % t intervals over (aggregation, streams), in
    multiples of one link's limit."""
    source = origin(dataset)
    for way, streams in product(links.aggregation.values.tolist(), links.streams.values.tolist()):
        at = links.sel(aggregation=way, streams=streams)
        connections = counted(streams, "TCP connection")
        subject = f"{connections} can fill this many links: {NAMES[way]}"
        yield estimated(source, subject, "links", at_place(at, "mean"), int(at.blocks))


def connections(dataset: xr.Dataset, goodput: xr.DataArray) -> Iterator[Statement]:
    """The goodput of the fewest and of the most connections over two links by a hash of addresses, over one link's."""
    used = BY_ADDRESSES in goodput.aggregation
    for name, place in (("one_connection", 0), ("many_connections", -1)):
        of_streams = goodput.isel(streams=place)
        streams = counted(int(of_streams.streams), "connection")
        yield quantity(
            dataset,
            name,
            f"{streams}, two links over one by a hash of addresses",
            at(of_streams, aggregation=BY_ADDRESSES)
            / at(of_streams, aggregation=design(dataset)["baseline"]),
            refused="" if used else NOT_BY_ADDRESSES,
        )


def links_in_words(links: xr.Dataset) -> str:
    """How many links the fewest and the most connections fill, in a sentence; `links` is as in `links_filled`."""
    ends = links["mean"].isel(streams=[0, -1]).dropna("aggregation")
    ends = ends.sel(aggregation=ends.aggregation != "one_link")
    if not ends.size:
        return "What TCP connections get of two links cannot be said: no way of using both has a valid run."
    fewest, most = ends.streams.values.tolist()
    few, many = ([fixed(float(n), 2) for n in ends.isel(streams=at)] for at in (0, -1))
    names = [NAMES[way] for way in ends.aggregation.values.tolist()]
    filled = listed([f"{count} by {name}" for count, name in zip(few, names)])
    verb = "carries" if fewest == 1 else "carry"
    return (
        f"Between two nodes, {counted(fewest, 'TCP connection')} {verb} this many links' rate: {filled}; {most} connections: "
        f"{listed(many)}."
    )


def gains_figure(log_gain: xr.DataArray, ratios: xr.Dataset) -> Figure:
    """Gain over one link [%] over nodes, a panel for each number of processes a node: every block, means with 95 % t
    intervals, and what the blog printed. The scale is that of the blocks: intervals over few may be wider than all gains."""
    blog, gains = 100 * published_gains(), 100 * np.expm1(log_gain)
    ranks, names = log_gain.ranks_per_node.values.tolist(), log_gain.aggregation.values.tolist()
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 0.9 + 2.0 * len(ranks)))
        panels = figure.subplots(len(ranks), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
        for axes, count in zip(panels, ranks):
            axes.axhline(0, color=style.INK, linewidth=0.8)
            for rank, way in enumerate(names):
                at = {"aggregation": way, "ranks_per_node": count}
                places = drawing.beside(log_gain.nodes.values, rank, len(names))
                means = 100 * (ratios[["ratio", "low", "high"]].sel(at) - 1)
                drawing.runs_and_means(axes, way, places, gains.sel(at), means, NAMES[way])
            cross = {"color": style.INK, "markersize": 6, "label": "bonding blog (published)"}
            axes.plot(blog.index.values, blog.values, style.PUBLISHED_MARKER, **cross)
            axes.set_title(f"{processes(count)} a node", loc="left")
            axes.set_ylabel("gain over one link [%]")
        shown = np.concatenate([[0], blog.values, gains.values.ravel()])
        room = 0.1 * (np.nanmax(shown) - np.nanmin(shown))
        panels[0].set_ylim(np.nanmin(shown) - room, np.nanmax(shown) + room)
        drawing.doubling_axis(panels[-1], log_gain.nodes.values)
        drawing.legend_below(figure, panels, 3)
    return figure
