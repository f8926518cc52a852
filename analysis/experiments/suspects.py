"""Suspects: which node, link or switch port of a cluster is slower than the others."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import style
from analysis.attributes import design, short_names, testbed
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import Finding, of_estimate, origin, without_reading
from analysis.statistics import outliers
from analysis.statistics.outliers import ALIKE, Comparison
from analysis.wording import counted, listed, number, percent, percent_range, plain
from runners.record import FalloffError
from runners.suspects import LEAST_NODES

FIGURES = {"suspects_pairs": ("suspects",), "suspects_nodes": ("suspects",)}  # what each rests on
INTERVAL = "simultaneous 95 % t interval over the blocks"
NAMED_PATHS = 6  # in the finding; the figure has all
WIDEST = 0.03  # loss at which a matrix has its full colour, unless a larger one is there

# What is compared, in the order in which a node's own comes first: heading, what a suspect does, what it may be.
COMPUTE, MEMORY, SEND, RECEIVE, ANSWER = "compute", "memory", "send", "receive", "answer"
PATH, PATH_ANSWER = "path", "path answer"
HEADINGS = {
    COMPUTE: "DGEMM of a node",
    MEMORY: "STREAM triad of a node",
    SEND: "bandwidth that a node sends",
    RECEIVE: "bandwidth that a node receives",
    ANSWER: "latency of a node",
    PATH: "bandwidth of a path",
    PATH_ANSWER: "latency of a path",
}
DOES = {
    COMPUTE: "computes",
    MEMORY: "reads its memory",
    SEND: "sends",
    RECEIVE: "receives",
    ANSWER: "answers",
}
OF_NODE = (COMPUTE, MEMORY)
REMEDY = " To tell adapter, cable and port apart, put its cable into the port of another node and run it again."


@dataclass(frozen=True)
class Family:
    """What is compared with each other: nodes, or pairs of them, in one `quantity`.

    `members` are the numbers of their nodes from 0, one or (sender, receiver). `typical` is the median [unit].
    """

    quantity: str
    members: tuple[tuple[int, ...], ...]
    typical: float
    unit: str
    found: Comparison


@dataclass(frozen=True)
class Network:
    """All families on one interconnect, and the matrices of losses [1] over (sender, receiver), means of the blocks."""

    name: str
    families: Mapping[str, Family]
    bandwidth: np.ndarray
    latency: np.ndarray


@dataclass(frozen=True)
class Suspects:
    """The campaign's dataset and all that follows from it.

    `hosts` are the names of the nodes that every block has; `absent` those that only some have. `tolerance`,
    `smallest` and `false_alarms` are the design's [1]. `switches` are the nearest switch of each node as Slurm names
    them, empty where it does not.
    """

    dataset: xr.Dataset
    hosts: tuple[str, ...]
    absent: tuple[str, ...]
    switches: tuple[str, ...]
    blocks: int
    tolerance: float
    smallest: float
    false_alarms: float
    networks: tuple[Network, ...]

    @property
    def evidence(self) -> str:
        """The kind of evidence."""
        return origin("suspects", self.dataset)["evidence"]


def analyse(suspects: xr.Dataset) -> Suspects:
    """Compare all nodes and pairs of each network; raises FalloffError when no trial is valid or too few nodes are left."""
    dataset = suspects.reset_coords()
    is_point = (dataset.role == "point") & (dataset.runner == "suspects")
    valid = dataset.isel(trial=np.flatnonzero(is_point & (dataset.status == "ok")))
    if not valid.sizes["trial"]:
        raise FalloffError(
            f"Campaign {suspects.attrs['campaign']} holds no valid run yet; run at least one block."
        )
    names = [_names(hosts) for hosts in valid.hosts.values.tolist()]
    hosts = tuple(host for host in names[0] if all(host in others for others in names))
    absent = sorted({host for others in names for host in others} - set(hosts))
    if len(hosts) < LEAST_NODES:
        raise FalloffError(
            f"the blocks have {len(hosts)} nodes in common, {LEAST_NODES} are needed: run all blocks on the same nodes"
        )
    # Of each trial, where the nodes that all have in common are.
    places = np.array([[others.index(host) for host in hosts] for others in names])
    planned = design(suspects)
    present = list(dict.fromkeys(valid.interconnect.values.tolist()))
    n = len(hosts)
    members = 5 * n + n * (n - 1) + n * (n - 1) // 2
    limits = {name: planned[name] for name in ("tolerance", "smallest", "false_alarms")}
    level = limits["false_alarms"] / (members * len(present))
    switches = _switches(suspects, hosts)
    networks = []
    for name in present:
        chosen = np.flatnonzero(valid.interconnect.values == name)
        trials = valid.isel(trial=chosen)
        networks.append(_network(name, trials, places[chosen], switches, level, limits))
    blocks = min(int((valid.interconnect.values == name).sum()) for name in present)
    return Suspects(
        suspects, hosts, tuple(absent), switches, blocks, **limits, networks=tuple(networks)
    )


def _names(hosts: str) -> list[str]:
    """The nodes' names; their numbers where several have the same name."""
    names = hosts.split(",")
    distinct = len(set(names)) == len(names)
    return names if distinct else [f"node {number}" for number in range(1, len(names) + 1)]


def _switches(dataset: xr.Dataset, hosts: tuple[str, ...]) -> tuple[str, ...]:
    """The nearest switch of each node in the last session, by the first part of its name; empty unless all are known."""
    sessions = json.loads(dataset.attrs["provenance"]).get("sessions", [])
    told = sessions[-1].get("slurm", {}).get("switches", {}) if sessions else {}
    nearest = {host.split(".")[0]: above[0] for host, above in told.items() if above}
    names = tuple(nearest.get(host.split(".")[0], "") for host in hosts)
    return names if all(names) else ()


def _level(speeds: np.ndarray, switches: tuple[str, ...]) -> np.ndarray:
    """Log speeds over (blocks, sender, receiver), those between two switches and those within one each around a middle
    of their own: a link that many share, and more hops, are how the network was built."""
    apart = ~np.eye(speeds.shape[1], dtype=bool)
    names = np.array(switches or [""] * speeds.shape[1])
    crosses = names[:, None] != names[None, :]
    found = speeds.copy()
    for cells in (apart & crosses, apart & ~crosses):
        if cells.any():
            found[:, cells] -= np.median(found[:, cells], axis=1, keepdims=True)
    return found


def _network(
    name: str,
    trials: xr.Dataset,
    places: np.ndarray,
    switches: tuple[str, ...],
    level: float,
    limits: Mapping[str, float],
) -> Network:
    n = places.shape[1]
    rows = np.arange(len(places))
    of_node = {
        key: trials[key].values[rows[:, None], places] for key in ("dgemm_rate", "stream_rate")
    }
    of_pair = {
        key: trials[key].values[rows[:, None, None], places[:, :, None], places[:, None, :]]
        for key in ("pair_bandwidth", "pair_latency")
    }
    rates = _level(np.log(of_pair["pair_bandwidth"]), switches)
    answers = _level(-np.log(of_pair["pair_latency"]), switches)
    sending, receiving, paths = outliers.of_pairs(rates)
    answering, _, paths_answer = outliers.of_pairs(answers)
    nodes = tuple((node,) for node in range(n))
    both_ways = tuple((a, b) for a in range(n) for b in range(n) if a != b)
    once = tuple((a, b) for a in range(n) for b in range(a + 1, n))
    bandwidth = np.nanmedian(of_pair["pair_bandwidth"]) / 1e6, "MB/s"
    latency = np.nanmedian(of_pair["pair_latency"]) * 1e6, "µs"
    gflop_s = np.median(of_node["dgemm_rate"]), "Gflop/s"
    triad = np.median(of_node["stream_rate"]) / 1e9, "GB/s"
    rated = {
        COMPUTE: (nodes, outliers.of_each(np.log(of_node["dgemm_rate"])), gflop_s),
        MEMORY: (nodes, outliers.of_each(np.log(of_node["stream_rate"])), triad),
        SEND: (nodes, sending, bandwidth),
        RECEIVE: (nodes, receiving, bandwidth),
        ANSWER: (nodes, answering, latency),
        PATH: (both_ways, _listed(paths, both_ways), bandwidth),
        PATH_ANSWER: (once, _listed(paths_answer, once), latency),
    }
    families = {}
    for quantity, (members, losses, (typical, unit)) in rated.items():
        judged_by = level, limits["tolerance"], limits["smallest"]
        found = outliers.compare(losses, members, *judged_by)
        families[quantity] = Family(quantity, members, float(typical), unit, found)
    matrices = (outliers.share(-speeds.mean(axis=0)) for speeds in (rates, answers))
    return Network(name, families, *matrices)


def _listed(matrices: np.ndarray, members: tuple[tuple[int, int], ...]) -> np.ndarray:
    senders, receivers = np.array(members).T
    return matrices[:, senders, receivers]


def findings(study: Suspects) -> Iterator[Finding]:
    """For each quantity who is slower, as data; the estimate is the loss of speed of the slowest."""
    source, names = origin("suspects", study.dataset), short_names(study.dataset)
    for network in study.networks:
        for family in network.families.values():
            found = family.found
            worst = int(np.argmax(found.mean))
            named = [_member(study, family, index) for index in found.slower]
            answer = ", ".join(named) or ("none" if (found.answers == ALIKE).all() else "undecided")
            yield of_estimate(
                source,
                f"Slower than the others: {HEADINGS[family.quantity]}, {names[network.name]}",
                "loss",
                "1",
                found.mean[worst],
                (found.low[worst], found.high[worst]),
                INTERVAL,
                n=study.blocks,
                answer=answer,
                primary=family.quantity in (COMPUTE, SEND),
                reason=f"the slowest is {_member(study, family, worst)}",
            )


def finding(study: Suspects) -> str:
    """Who is slower, what it may be, and what this campaign could not have found, in plain English (Markdown)."""
    paragraphs: list[str] = []
    for network in study.networks:
        several = len(study.networks) > 1
        where = f" over {short_names(study.dataset)[network.name]}" if several else ""
        paragraphs += [*_accusations(study, network, where), _others(study, network, where)]
    if study.absent:
        paragraphs.append(f"Not compared, as some blocks lack them: {plain(listed(study.absent))}.")
    paragraphs += [without_reading(study.dataset), _planted(study)]
    return "\n\n".join(filter(None, paragraphs))


def _planted(study: Suspects) -> str:
    """The faults that an emulated testbed was given: a sentence, empty where it has none."""
    planted = testbed(study.dataset).get("slow", {})
    faults = [
        f"{what} of node {node} has {percent(share, 0)} of the others' rate"
        for kind, what in (("nodes", "the processor"), ("links", "the link"))
        for node, share in planted.get(kind, {}).items()
    ]
    return f"Planted in this emulation, to test the method: {listed(faults)}." if faults else ""


def _accusations(study: Suspects, network: Network, where: str) -> Iterator[str]:
    basis = f"simultaneous 95 % t intervals over {counted(study.blocks, 'block')}, {study.evidence} evidence"
    by_node: dict[int, list[str]] = {}
    for quantity in DOES:
        for index in network.families[quantity].found.slower:
            by_node.setdefault(int(index), []).append(quantity)
    for node, quantities in by_node.items():
        name = plain(study.hosts[node])
        losses = [
            _loss(network.families[quantity], node, DOES[quantity]) for quantity in quantities
        ]
        slower = f"it {listed(losses)} slower than the middle of all"
        is_node = any(quantity in OF_NODE for quantity in quantities)
        port = f" on switch {plain(study.switches[node])}" if study.switches else ""
        what = f"Node {name}" if is_node else f"The link or the switch port{port} of node {name}"
        remedy = "" if is_node else REMEDY
        yield f"**{what} is slow{where}**: {slower} ({basis}).{remedy}"
    yield from _slow_paths(study, network, where, basis)
    if not by_node and not any(
        len(network.families[one].found.slower) for one in (PATH, PATH_ANSWER)
    ):
        yield f"**No node, port or path is named{where}** ({basis})."


def _slow_paths(study: Suspects, network: Network, where: str, basis: str) -> Iterator[str]:
    for quantity, verb in ((PATH, "carries"), (PATH_ANSWER, "answers")):
        family = network.families[quantity]
        slower = family.found.slower
        for index in slower[:NAMED_PATHS]:
            joined = " to " if quantity == PATH else " and "
            ends = joined.join(plain(study.hosts[node]) for node in family.members[index])
            between = "from" if quantity == PATH else "between"
            loss = f"it {_loss(family, index, verb)} slower than the middle of all"
            yield f"**The path {between} {ends} is slow{where}**: {loss} ({basis})."
        if len(slower) > NAMED_PATHS:
            yield f"{len(slower) - NAMED_PATHS} more paths are slow."
        yield _shared_link(study, family)


def _shared_link(study: Suspects, family: Family) -> str:
    """The two switches between which most slow paths lead, where several do: a sentence, else nothing."""
    slower = family.found.slower
    if not study.switches or len(slower) < 2:
        return ""
    ways = Counter(
        tuple(study.switches[node] for node in family.members[index]) for index in slower
    )
    (way, count), *_ = ways.most_common(1)
    if way[0] == way[1] or 2 * count <= len(slower):
        return ""
    ends = f"from switch {plain(way[0])} to switch {plain(way[1])}"
    return f"**{count} of the {len(slower)} slow paths lead {ends}**: suspect their link."


def _loss(family: Family, index: int, verb: str) -> str:
    found = family.found
    ends = percent_range((found.low[index], found.high[index]))
    return f"{verb} {percent(found.mean[index])} (interval {ends})"


def _others(study: Suspects, network: Network, where: str) -> str:
    """For which quantities a slowdown of the rest is excluded, and for which it is open, and from where on it would
    have been found."""
    smallest = percent(study.smallest, 0)
    clear, open_ = [], []
    for quantity, family in network.families.items():
        rest = np.delete(family.found.answers, family.found.slower)
        (clear if (rest == ALIKE).all() else open_).append(quantity)
    sentences = []
    if clear:
        names = listed([HEADINGS[quantity] for quantity in clear])
        sentences.append(
            f"A loss of {smallest} or more is excluded for everything else in: {names}."
        )
    if open_ and study.blocks < 2:
        sentences.append("A single block has no interval: run at least two.")
    elif open_:
        limits = [
            f"{HEADINGS[quantity]} (found from {percent(network.families[quantity].found.finds_from, 0)} on)"
            for quantity in open_
        ]
        sentences.append(f"It is open for some others{where} in: {listed(limits)}.")
    return " ".join(sentences)


def _member(study: Suspects, family: Family, index: int) -> str:
    return " to ".join(plain(study.hosts[node]) for node in family.members[index])


def table(study: Suspects) -> Table:
    """Each quantity with its typical value, its slowest member and the loss that would have been found."""
    rows = []
    for network in study.networks:
        for family in network.families.values():
            found, worst = family.found, int(np.argmax(family.found.mean))
            ends = (found.low[worst], found.high[worst]) if study.blocks > 1 else None
            rows.append(
                (
                    short_names(study.dataset)[network.name],
                    HEADINGS[family.quantity],
                    f"{number(family.typical)} {family.unit}",
                    str(len(family.members)),
                    str(len(found.slower)),
                    f"{_member(study, family, worst)}: {percent(found.mean[worst])} ({percent_range(ends)})",
                    percent(found.finds_from) if study.blocks > 1 else percent(None),
                )
            )
    return Table(
        "suspects-quantities",
        (
            "Network",
            "Compared",
            "Median",
            "Members",
            "Slower",
            "Slowest, loss of speed",
            "Found from",
        ),
        "lllrrlr",
        rows,
        f"What was compared. 'Slower' loses more than {percent(study.tolerance, 0)}; 'found from' is the loss that is "
        "found with a power of at least 90 %.",
        Basis(study.evidence, study.blocks, INTERVAL),
    )


def figures(study: Suspects) -> dict[str, Exhibit]:
    """Losses of all pairs as matrices, and of all nodes."""
    pairs = Exhibit(
        "suspects_pairs",
        matrices(study),
        "Loss of speed of every pair of nodes against the middle of all",
        Basis(study.evidence, study.blocks, "means over the blocks, intervals in the supplement"),
        "Two matrices over nodes: the loss of bandwidth from each sender to each receiver, and the loss of speed by latency",
        "A slow port is a dark row, a dark column or both; a slow path is a single dark cell.",
        rests_on=FIGURES["suspects_pairs"],
    )
    nodes = Exhibit(
        "suspects_nodes",
        losses_of_nodes(study),
        "Loss of speed of every node against the middle of all",
        Basis(study.evidence, study.blocks, INTERVAL),
        "Losses of DGEMM, of STREAM, of sending and of receiving of each node",
        f"Dots are blocks. Diamonds: slower than the tolerance of {percent(study.tolerance, 0)} (dotted).",
        rests_on=FIGURES["suspects_nodes"],
    )
    return {"suspects_pairs": pairs, "suspects_nodes": nodes}


def matrices(study: Suspects) -> Figure:
    """For each network a row of two panels: losses by bandwidth and by latency [%] over senders and receivers."""
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 3.3 * len(study.networks)))
        for row, network in zip(_rows(figure, study), study.networks):
            left, right = row.subplots(1, 2)
            _draw_matrix(left, network.bandwidth, study.hosts, "loss of bandwidth [%]")
            _draw_matrix(right, network.latency, study.hosts, "loss by latency [%]")
            left.set_ylabel("sending nodes")
        return figure


def losses_of_nodes(study: Suspects) -> Figure:
    """For each network four panels: the losses [%] of every node's DGEMM, STREAM, sending and receiving."""
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 4.2 * len(study.networks)))
        for row, network in zip(_rows(figure, study), study.networks):
            panels = row.subplots(2, 2, sharex=True).ravel()
            for axes, quantity in zip(panels, (COMPUTE, MEMORY, SEND, RECEIVE)):
                _draw_nodes(axes, network.families[quantity], study)
            for axes in panels[::2]:
                axes.set_ylabel("loss [%]")
        return figure


def _rows(figure: Figure, study: Suspects) -> list:
    """A part of the figure for each network, with its name where there are several."""
    rows = list(np.atleast_1d(figure.subfigures(len(study.networks), 1)))
    if len(rows) > 1:
        names = short_names(study.dataset)
        for row, network in zip(rows, study.networks):
            row.suptitle(names[network.name])
    return rows


def _draw_matrix(axes: Axes, losses: np.ndarray, hosts: tuple[str, ...], label: str) -> None:
    widest = 100 * max(WIDEST, np.nanmax(losses))
    # Rectangles, so that every cell stays sharp and can be selected in the SVG.
    drawn = axes.pcolormesh(100 * losses, cmap="magma_r", vmin=0, vmax=widest)
    axes.set_aspect("equal")
    axes.grid(False)
    _name_nodes(axes, hosts, 0.5)
    axes.set_xlabel("receiving nodes")
    step = max(1, len(hosts) // 8)
    axes.set_yticks(np.arange(0, len(hosts), step) + 0.5, hosts[::step])
    axes.set_ylim(len(hosts), 0)
    axes.figure.colorbar(drawn, ax=axes, label=label, location="top", shrink=0.8)


def _draw_nodes(axes: Axes, family: Family, study: Suspects) -> None:
    found, look = family.found, style.look("forward")
    x = np.arange(len(study.hosts))
    every = np.broadcast_to(x, found.losses.shape).ravel()
    axes.plot(
        every, 100 * found.losses.ravel(), "o", color=look.color, alpha=0.35, markersize=2.5, mew=0
    )
    if study.blocks > 1:
        axes.vlines(x, 100 * found.low, 100 * found.high, color=look.color, linewidth=1)
    slower = found.slower
    marks = mpl.rcParams["lines.markersize"]
    axes.plot(slower, 100 * found.mean[slower], "D", color="#D55E00", markersize=1.6 * marks, mew=0)
    axes.axhline(0, color=style.FAINT, linewidth=0.9)
    axes.axhline(100 * study.tolerance, color=style.INK, linewidth=0.9, linestyle=":")
    axes.set_title(HEADINGS[family.quantity])
    _name_nodes(axes, study.hosts, 0.0)


def _name_nodes(axes: Axes, hosts: tuple[str, ...], offset: float) -> None:
    """As many names as fit."""
    step = max(1, len(hosts) // 8)
    axes.set_xticks(np.arange(0, len(hosts), step) + offset, hosts[::step], rotation=90)
