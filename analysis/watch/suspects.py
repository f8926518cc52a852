"""Which node, link or switch port of a cluster is slower than the others: each is compared with the
median of its peers.
"""

import itertools
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.quoting import quoted
from analysis.statistics import outliers
from analysis.statistics.outliers import PeerComparison
from analysis.wording import counted, few, listed, number, percent, percent_range
from runners.records.record import FalloffError
from runners.tools.suspects import LEAST_NODES

INTERVAL = "simultaneous 95 % t interval over the blocks"
NAMED_PATHS = 6  # in the text; the figure shows all

# The compared quantities, a node's own first, and the verb for a member that is slower in it.
COMPUTE, MEMORY, SEND, RECEIVE, ANSWER = "compute", "memory", "send", "receive", "answer"
PATH, PATH_ANSWER = "path", "path answer"
QUANTITIES = {
    COMPUTE: ("DGEMM of a node", "computes"),
    MEMORY: ("STREAM triad of a node", "reads its memory"),
    SEND: ("bandwidth that a node sends", "sends"),
    RECEIVE: ("bandwidth that a node receives", "receives"),
    ANSWER: ("latency of a node", "answers"),
    PATH: ("bandwidth of a path", "carries"),
    PATH_ANSWER: ("latency of a path", "answers"),
}
# The faults that a testbed plants, and where each shows first; a slow link is slow both ways.
PLANTED = {COMPUTE: ("nodes", "node"), SEND: ("links", "link"), RECEIVE: ("links", "link")}
REMEDY = (
    " To tell adapter, cable and port apart, put its cable into the port of another node and run "
    "it again."
)


@dataclass(frozen=True)
class Family:
    """The members compared in one quantity: nodes, or pairs of nodes.

    `members` are the numbers of their nodes from 0, one number or (sender, receiver). `typical` is
    the median with its unit.
    """

    members: tuple[tuple[int, ...], ...]
    typical: str
    found: PeerComparison


@dataclass(frozen=True)
class NetworkFamilies:
    """All families on one interconnect by quantity, and the matrices of losses [1] over (sender,
    receiver), means over the blocks."""

    name: str
    families: Mapping[str, Family]
    bandwidth: np.ndarray
    latency: np.ndarray


@dataclass(frozen=True)
class Suspects:
    """The campaign's dataset and all results.

    `hosts` are the names of the nodes that every block has; `absent` are the others, each with the
    blocks that ran without it. `switches` are the nearest switch of each node according to Slurm,
    empty if unknown.
    """

    dataset: xr.Dataset
    hosts: tuple[str, ...]
    absent: Mapping[str, tuple[int, ...]]
    switches: tuple[str, ...]
    blocks: int
    networks: tuple[NetworkFamilies, ...]


def compare(runs: xr.Dataset) -> Suspects:
    """Compare all nodes and pairs of each network; raises FalloffError if no trial is valid or too
    few nodes are left."""
    dataset = runs.reset_coords()
    is_point = (dataset.role == "point") & (dataset.runner == "suspects")
    valid = dataset.isel(trial=np.flatnonzero(is_point & (dataset.status == "ok")))
    if not valid.sizes["trial"]:
        raise FalloffError(
            f"Campaign {runs.attrs['campaign']} holds no valid run yet; run at least one block."
        )
    names = [host_names(hosts) for hosts in valid.hosts.values.tolist()]
    hosts = tuple(host for host in names[0] if all(host in others for others in names))
    absent = _absent(runs, valid, names)
    if len(hosts) < LEAST_NODES:
        raise FalloffError(
            f"the blocks have {len(hosts)} nodes in common, {LEAST_NODES} are needed: run all "
            "blocks on the same nodes"
        )
    # For each trial, the positions of the nodes that all trials have in common.
    places = np.array([[others.index(host) for host in hosts] for others in names])
    planned, switches = runs.falloff.design, _switches(runs, hosts)
    chosen = {
        name: np.flatnonzero(valid.interconnect.values == name)
        for name in dict.fromkeys(valid.interconnect.values.tolist())
    }
    n = len(hosts)
    members = 5 * n
    if _have_all_met(valid, n):
        members += n * (n - 1) + n * (n - 1) // 2
    level = planned.false_alarms / len(chosen)
    limits = level, members, planned.tolerance, planned.smallest
    networks = tuple(
        _network(name, valid.isel(trial=trials), places[trials], switches, limits)
        for name, trials in chosen.items()
    )
    blocks = min(map(len, chosen.values()))
    named = tuple(map(quoted, hosts))
    return Suspects(runs, named, absent, switches, blocks, networks)


def _absent(
    runs: xr.Dataset, valid: xr.Dataset, names: Sequence[Sequence[str]]
) -> dict[str, tuple[int, ...]]:
    """The nodes that some blocks ran without, each with these blocks. Also a node that no block
    has, such as one that died in the first: a block runs on the first nodes of its testbed that
    answer."""
    of_testbed = [host.split(".")[0] for host in runs.falloff.testbed.hosts]
    seen = {host for others in names for host in others}
    first = of_testbed[: int(valid.nodes.max())] if seen <= {*of_testbed} else []
    hosts = dict.fromkeys([*first, *sorted(seen)])
    blocks = valid.block.values.tolist()
    absent = {}
    for host in hosts:
        without = [block for block, present in zip(blocks, names) if host not in present]
        if without:
            absent[quoted(host)] = tuple(dict.fromkeys(without))
    return absent


def host_names(hosts: str) -> list[str]:
    """The nodes' names, or their numbers if several have the same name."""
    names = hosts.split(",")
    distinct = len(set(names)) == len(names)
    return names if distinct else [f"node {number}" for number in range(1, len(names) + 1)]


def _switches(dataset: xr.Dataset, hosts: tuple[str, ...]) -> tuple[str, ...]:
    """The nearest switch of each node in the last session, by the first part of its name; empty
    unless all are known."""
    nearest = dataset.falloff.switches
    names = tuple(nearest.get(host.split(".")[0], "") for host in hosts)
    return names if all(names) else ()


def _level(speeds: np.ndarray, switches: tuple[str, ...]) -> np.ndarray:
    """Log speeds over (blocks, sender, receiver). Pairs between two switches and pairs within one
    are each centred on their own median, because a shared link and more hops belong to the
    network's design."""
    apart = ~np.eye(speeds.shape[1], dtype=bool)
    names = np.array(switches or [""] * speeds.shape[1])
    crosses = names[:, None] != names[None, :]
    level = speeds.copy()
    for cells in (apart & crosses, apart & ~crosses):
        if cells.any():
            level[:, cells] -= np.nanmedian(level[:, cells], axis=1, keepdims=True)
    return level


def _network(
    name: str,
    trials: xr.Dataset,
    places: np.ndarray,
    switches: tuple[str, ...],
    limits: tuple[float, int, float, float],
) -> NetworkFamilies:
    """All families of one interconnect; `limits` are its level, the number of all members that
    share it, and the design's tolerance and smallest loss."""
    blocks, n = places.shape
    rows = np.arange(blocks)[:, None]
    dgemm, triad = (trials[key].values[rows, places] for key in ("dgemm_rate", "stream_rate"))
    bandwidths, latencies = (
        trials[key].values[rows[:, :, None], places[:, :, None], places[:, None, :]]
        for key in ("pair_bandwidth", "pair_latency")
    )
    rates, answers = _level(np.log(bandwidths), switches), _level(-np.log(latencies), switches)
    sending, receiving, paths = outliers.of_pairs(rates)
    answering, _, paths_answer = outliers.of_pairs(answers)
    nodes = tuple((node,) for node in range(n))
    bandwidth = f"{number(np.nanmedian(bandwidths) / 1e6)} MB/s"
    latency = f"{number(np.nanmedian(latencies) * 1e6)} µs"
    rated: dict[str, tuple[tuple[tuple[int, ...], ...], np.ndarray, str]] = {
        COMPUTE: (nodes, outliers.of_each(np.log(dgemm)), f"{number(np.median(dgemm))} Gflop/s"),
        MEMORY: (nodes, outliers.of_each(np.log(triad)), f"{number(np.median(triad) / 1e9)} GB/s"),
        SEND: (nodes, sending, bandwidth),
        RECEIVE: (nodes, receiving, bandwidth),
        ANSWER: (nodes, answering, latency),
    }
    if _have_all_met(trials, n):  # else a path was met in few blocks or none
        both_ways = tuple(itertools.permutations(range(n), 2))
        once = tuple(itertools.combinations(range(n), 2))
        rated[PATH] = (both_ways, paths[:, *np.transpose(both_ways)], bandwidth)
        rated[PATH_ANSWER] = (once, paths_answer[:, *np.transpose(once)], latency)
    level, count, tolerance, smallest = limits
    shared = outliers.level_of_family([losses for _, losses, _ in rated.values()], level, tolerance)
    judged = level / count, shared, tolerance, smallest
    families = {
        quantity: Family(members, typical, outliers.compare(losses, members, *judged))
        for quantity, (members, losses, typical) in rated.items()
    }
    with warnings.catch_warnings():  # of pairs that never met the mean is NaN
        warnings.simplefilter("ignore", RuntimeWarning)
        losses = [outliers.share(-np.nanmean(speeds, axis=0)) for speeds in (rates, answers)]
    return NetworkFamilies(name, families, *losses)


def _have_all_met(trials: xr.Dataset, n: int) -> bool:
    """Whether every pair of n nodes met in every run, none of which was held in some `rounds`."""
    met = np.isfinite(trials.pair_bandwidth.values).sum(axis=(1, 2))
    return bool((met >= n * (n - 1)).all())


def families(study: Suspects) -> Iterator[tuple[NetworkFamilies, str, Family]]:
    """Each family with its network and quantity."""
    for network in study.networks:
        for quantity, family in network.families.items():
            yield network, quantity, family


def planted(study: Suspects, quantity: str) -> set[str]:
    """The nodes that an emulated testbed made slower in a quantity."""
    kind, _ = PLANTED.get(quantity, ("", ""))
    numbers = map(int, study.dataset.falloff.testbed.slow.get(kind, {}))
    return {study.hosts[number - 1] for number in numbers if number <= len(study.hosts)}


def accusations(study: Suspects, network: NetworkFamilies, where: str) -> Iterator[str]:
    """The slower members of a network and their likely faults, a sentence each (Markdown); `where`
    names it.
    """
    basis = counted(study.blocks, "block")
    if study.blocks > 1:
        basis = f"simultaneous 95 % t intervals over {basis}"
    families = network.families
    of_node = [quantity for quantity, family in families.items() if len(family.members[0]) == 1]
    named = [node for quantity in of_node for node in families[quantity].found.slower.tolist()]
    for node in dict.fromkeys(named):
        name = study.hosts[node]
        slow = [quantity for quantity in of_node if node in families[quantity].found.slower]
        losses = listed([_loss(network, quantity, node) for quantity in slow])
        slower = f"it {losses} slower than the median"
        is_node = COMPUTE in slow or MEMORY in slow
        port = f" on switch {study.switches[node]}" if study.switches else ""
        what = f"Node {name}" if is_node else f"The link or the switch port{port} of node {name}"
        yield f"**{what} is slow{where}**: {slower} ({basis}).{'' if is_node else REMEDY}"
    for quantity, words in ((PATH, "from {} to {}"), (PATH_ANSWER, "between {} and {}")):
        if quantity not in families:
            continue
        family = families[quantity]
        named += family.found.slower.tolist()
        groups = [*_by_node(family)]
        for node, group in groups[:NAMED_PATHS]:
            pairs = [[study.hosts[end] for end in family.members[index]] for index in group]
            ends = [words.format(*pair) for pair in pairs]
            loss = f"{_loss(network, quantity, group[0])} slower than the median of all paths"
            if len(group) == 1:
                yield f"**The path {ends[0]} is slow{where}**: it {loss} ({basis})."
            else:
                of_paths = f"{len(group)} paths of node {study.hosts[node]} are slow{where}"
                yield f"**{of_paths}**: {few(ends)}. The first {loss} ({basis})."
        if more := sum(len(group) for _, group in groups[NAMED_PATHS:]):
            yield f"More slow paths: {more}."
        if shared := _shared_link(study, family):
            yield shared
    if not named:
        yield f"**No node, port or path is named{where}** ({basis})."


def named(study: Suspects, family: Family) -> list[str]:
    """The slower members, the slowest first; several paths of one node are counted."""
    return [
        f"{len(group)} paths of {study.hosts[node]}"
        if group[1:]
        else member(study, family, group[0])
        for node, group in _by_node(family)
    ]


def _by_node(family: Family) -> Iterator[tuple[int, list[int]]]:
    """The slower members, the slowest first, with those of one node together: a node, and the
    indices of its members.
    """
    left = family.found.slower.tolist()
    while left:
        ends = Counter(node for index in left for node in family.members[index])
        node, _ = ends.most_common(1)[0]
        group = [index for index in left if node in family.members[index]]
        yield node, group
        left = [index for index in left if node not in family.members[index]]


def _shared_link(study: Suspects, family: Family) -> str:
    """A sentence about the two switches between which most slow paths lead, if there are several
    such paths; else empty."""
    slower = family.found.slower
    if not study.switches or len(slower) < 2:
        return ""
    ways = Counter(
        tuple(study.switches[node] for node in family.members[index]) for index in slower
    )
    ((start, end), count), *_ = ways.most_common(1)
    if start == end or 2 * count <= len(slower):
        return ""
    ends = f"from switch {start} to switch {end}"
    return f"**{count} of the {len(slower)} slow paths lead {ends}**: suspect their link."


def _loss(network: NetworkFamilies, quantity: str, index: int) -> str:
    comparison = network.families[quantity].found
    ends = percent_range((comparison.low[index], comparison.high[index]))
    return f"{QUANTITIES[quantity][1]} {percent(comparison.mean[index])} (interval {ends})"


def member(study: Suspects, family: Family, index: int) -> str:
    """The name of a node, or of the nodes of a pair."""
    return " to ".join(study.hosts[node] for node in family.members[index])


def largest(losses: np.ndarray, several: int) -> np.ndarray:
    """The largest known loss of each square of `several` nodes a side; NaN where none is known."""
    size = -(-len(losses) // several)
    padded = np.full((size * several,) * 2, -np.inf)
    padded[: len(losses), : len(losses)] = np.where(np.isnan(losses), -np.inf, losses)
    squares = padded.reshape(size, several, size, several).max(axis=(1, 3))
    return np.where(np.isinf(squares), np.nan, squares)
