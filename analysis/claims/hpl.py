"""What the campaigns of HPL have of the claims of the HPL paper (Smith) and of the bonding blog.

Simulated values are of the paper's own cases, each on every variant of the model: its numbers as they are, and one of
them at either end of its range. Others are of the scaling campaign's blocks, as shares of the nodes' known rate. Two
links are used as the blog's kernel does unless it is told otherwise, by a hash of the peers' addresses, with one process
a node. Where two campaigns are of one kind of evidence, as a user's may be, the first is judged.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr

from analysis.claims.sample import SIMULATED, Estimate, Found, origin, sample, untestable
from analysis.contrasts import differences
from analysis.efficiency import PLATEAU, efficiency, rpeak
from analysis.experiments import Studies
from analysis.hpl_predictors import PAIR, paper_elasticities
from analysis.statistics import design as designs

FEWEST, MOST = "fewest", "most"  # of a campaign's nodes
SLOW, FAST = "slow", "fast"  # the paper's two networks
BY_PEER, RANKS = "ecmp_layer2", 1
NOT_BY_PEER = "no campaign used two links by a hash of the peers"
BONDED, SINGLE = "gige_bonded", "gige"  # of the simulated networks


@dataclass(frozen=True)
class _Curves:
    """Efficiencies over (repeat, interconnect, nodes), in units in which those of one repeat can be divided.

    `is_driven` is whether the nodes can fill a link of the fast network.
    """

    dataset: xr.Dataset
    values: xr.DataArray
    n_of: str
    networks: dict[str, str]
    fewest: int
    is_driven: bool = True

    def nodes(self, count: int | str) -> int:
        """A number of nodes, also FEWEST or the MOST that were planned."""
        return {FEWEST: self.fewest, MOST: int(self.values.nodes.max())}.get(count, count)

    def at(self, network: str, count: int | str) -> xr.DataArray:
        """A network's efficiencies on so many nodes, over (repeat); NaN where this was not run."""
        of_network = self.values.sel(interconnect=self.networks[network], drop=True)
        return _on(of_network, self.nodes(count))


def _curves(studies: Studies) -> Iterator[_Curves]:
    scaling, paper = studies.hpl_scaling, studies.hpl_paper
    if scaling:
        primary = scaling.contrasts[0]
        is_driven = scaling.networks.limit.get(primary.reference) != "host-bound"
        networks = {SLOW: primary.network, FAST: primary.reference}
        baseline = designs.read(scaling.dataset).baseline_nodes
        yield _Curves(scaling.dataset, scaling.points.share, "block", networks, baseline, is_driven)
    if paper:
        values = paper.efficiency.expand_dims("repeat")
        if paper.sensitivity:
            base, changes = paper.sensitivity.base, paper.sensitivity.changes
            varied = (base + changes).stack(repeat=("parameter", "side"))
            variants = [
                base.expand_dims("repeat"),
                varied.drop_vars(("repeat", "parameter", "side")),
            ]
            values = xr.concat(variants, "repeat", coords="minimal", compat="override")
        networks = {SLOW: paper.network, FAST: paper.reference}
        yield _Curves(paper.dataset, values, "variant", networks, int(values.nodes.min()))


def _over_nodes(
    studies: Studies, network: str, most: int | str, fewest: int | str
) -> Iterator[Found]:
    """A network's efficiency on one node count over that on a smaller one."""
    for curves in _curves(studies):
        larger, smaller = curves.nodes(most), curves.nodes(fewest)
        if larger <= smaller:
            yield untestable(curves.dataset, f"it has no case beyond {larger} nodes")
        elif network == FAST and not curves.is_driven:
            reason = "its nodes, and not the links, limit what they send over 10GE"
            yield untestable(curves.dataset, reason)
        else:
            text = f"efficiency on {larger} nodes over that on {smaller}"
            ratio = curves.at(network, most) / curves.at(network, fewest)
            yield sample(curves.dataset, ratio, text, curves.n_of)


def _fast_over_slow(studies: Studies) -> Iterator[Found]:
    """10GE's rate over Gigabit Ethernet's, or less than that where its nodes do not fill 10GE."""
    for curves in _curves(studies):
        ratio = curves.at(FAST, MOST) / curves.at(SLOW, MOST)
        yield sample(curves.dataset, ratio, f"on {curves.nodes(MOST)} nodes", curves.n_of)


def _gap_growth(studies: Studies) -> Iterator[Found]:
    """10GE's rate over Gigabit Ethernet's on the most nodes, over the same on the fewest."""
    for curves in _curves(studies):
        most, fewest = (curves.at(FAST, count) / curves.at(SLOW, count) for count in (MOST, FEWEST))
        text = f"{curves.nodes(MOST)} over {curves.nodes(FEWEST)} nodes"
        yield sample(curves.dataset, most / fewest, text, curves.n_of)


def _of_efficiencies(
    studies: Studies, read: Callable[[xr.DataArray], xr.DataArray], text: str
) -> Iterator[Found]:
    """What `read` makes of 10GE's efficiencies on several nodes, over (nodes) or over (block, nodes)."""
    scaling, paper = studies.hpl_scaling, studies.hpl_paper
    if scaling and np.isnan(rpeak(scaling.points)):
        yield untestable(scaling.dataset, "the theoretical peak of its nodes is not known")
    elif scaling:
        reached = efficiency(scaling.points).sel(interconnect=scaling.contrasts[0].reference)
        yield sample(scaling.dataset, read(reached.sel(nodes=reached.nodes > 1)), text)
    if paper:
        reached = paper.efficiency.sel(interconnect=paper.reference)
        yield sample(paper.dataset, read(reached), text, "model")


def _larger_clusters(studies: Studies) -> Iterator[Found]:
    """10GE's efficiency on every cluster beyond the paper's over that on its largest case."""
    study = studies.hpl_beyond
    if study:
        reached = study.efficiency.sel(interconnect=PAIR[1])
        larger = reached.isel(nodes=slice(1, None)) / reached.isel(nodes=0)
        text = f"{_range(larger)} over {int(reached.nodes[0])} nodes"
        yield sample(study.dataset, larger, text, "case")


def _gains(studies: Studies, network: str, reference: str) -> list[xr.DataArray]:
    """HPL's rate on one network over that on another on the larger clusters, over (nodes)."""
    gains = studies.hpl_beyond.gains if studies.hpl_beyond else ()
    pair = (network, reference)
    return [1 + gain.rate for gain in gains if (gain.network, gain.reference) == pair]


def _infiniband_over_fast(studies: Studies) -> Iterator[Found]:
    for gain in _gains(studies, *PAIR):
        yield sample(studies.hpl_beyond.dataset, gain, f"on {_range(gain)} nodes", "case")


def _elasticities(
    studies: Studies, read: Callable[[xr.DataArray], xr.DataArray]
) -> Iterator[Found]:
    """What `read` makes of the elasticities -d ln rate / d ln parameter, in every case of the paper."""
    varied = studies.hpl_paper.sensitivity if studies.hpl_paper else None
    if varied:
        values = read(paper_elasticities(varied.dataset))
        text = f"{values.nodes.size} node counts on {values.interconnect.size} networks"
        yield sample(varied.dataset, values, text, "case")


def _noise(studies: Studies) -> Iterator[Found]:
    """What a daemon on every node leaves of HPL's rate on the most nodes, over what it leaves on the fewest."""
    study = studies.hpl_noise
    if study:
        (daemon,) = (daemon for daemon in study.daemons if daemon.name == study.primary)
        baseline = designs.read(study.dataset).baseline_nodes
        text = f"a daemon of {daemon.name}, {study.nodes[-1]} over {baseline} nodes"
        yield sample(study.dataset, np.exp(differences(daemon.log_ratio, baseline)), text)


def _order(studies: Studies) -> Iterator[Found]:
    """HPL's share of the nodes' rate at the largest order of the matrix over that at the least, same nodes, 10GE."""
    study = studies.hpl_size
    if study:
        blocks = study.points.share.sel(interconnect=study.reference).squeeze("nodes")
        text = f"N = {int(blocks.N[-1])} over {int(blocks.N[0])} on {study.nodes} nodes"
        yield sample(study.dataset, blocks.isel(N=-1) / blocks.isel(N=0), text)


def _messages(studies: Studies, name: str) -> Iterator[Found]:
    """A share of small messages on the most nodes; HPL sends the same in every run, so that it has no scatter."""
    for profile in studies.hpl_messages.profiles if studies.hpl_messages else ():
        most = profile.summary.isel(nodes=-1)
        value, nodes = float(most[name]), int(most.nodes)
        text = f"on {nodes} nodes, {int(most.P)} x {int(most.Q)} processes"
        if profile.evidence == SIMULATED:
            yield sample(profile.dataset, value, text, "case")
        else:
            exactly = (value, value)
            made = origin(profile.dataset)
            yield Estimate(*made, value, exactly, exactly, "count", 1, text, "run")


def _node_rate(studies: Studies) -> Iterator[Found]:
    """The rate of a node among four over that of a node among two, with one link each."""
    if studies.link_bonding:
        hpl = studies.link_bonding.hpl
        rate = hpl.points.rate.sel(aggregation=hpl.baseline, ranks_per_node=RANKS)
        per_node = rate / rate.nodes
        text = "one link, 4 over 2 nodes"
        yield sample(hpl.dataset, _on(per_node, 4) / _on(per_node, 2), text)
    paper = studies.hpl_paper
    if paper and SINGLE in paper.efficiency.interconnect:
        reached = paper.efficiency.sel(interconnect=SINGLE)
        text = "the HPL paper's cluster, 4 over 2 nodes"
        yield sample(paper.dataset, _on(reached, 4) / _on(reached, 2), text, "case")


def _gain(studies: Studies, most: int = 0, fewest: int | None = None) -> Iterator[Found]:
    """The rate over two links over that over one; with `fewest` this gain over that on so many nodes.

    Where these are 0, they are the campaign's own most and fewest.
    """
    if studies.link_bonding is None:
        return
    hpl = studies.link_bonding.hpl
    ways = [way for way in hpl.ways if (way.aggregation, way.ranks_per_node) == (BY_PEER, RANKS)]
    if not ways:
        yield untestable(hpl.dataset, NOT_BY_PEER)
        return
    gain, most = np.exp(ways[0].log_gain), most or hpl.most
    if fewest is None:
        yield sample(hpl.dataset, _on(gain, most), f"two links over one on {most} nodes")
    else:
        fewest = fewest or hpl.fewest
        text = f"two links over one, {most} over {fewest} nodes"
        yield sample(hpl.dataset, _on(gain, most) / _on(gain, fewest), text)


def _gain_grows(studies: Studies) -> Iterator[Found]:
    """As `_gain`, and on larger clusters of the HPL paper's kind, whose bonded links are one of twice the rate."""
    yield from _gain(studies, 0, 0)
    for gain in _gains(studies, BONDED, SINGLE):
        ratios, dataset = gain.dropna("nodes"), studies.hpl_beyond.dataset
        if ratios.sizes["nodes"] < 2:
            yield untestable(dataset, "both networks were simulated on one cluster only")
        else:
            first, last = int(ratios.nodes[0]), int(ratios.nodes[-1])
            text = f"a link of twice the rate, {last} over {first} nodes"
            yield sample(dataset, _on(ratios, last) / _on(ratios, first), text, "case")


def _connections(studies: Studies, place: int) -> Iterator[Found]:
    """What the fewest (0) or most (-1) connections between two nodes carry over two links, over one link's."""
    micro = studies.link_bonding.micro if studies.link_bonding else None
    if micro and BY_PEER not in micro.points.aggregation:
        yield untestable(micro.dataset, NOT_BY_PEER)
    elif micro:
        goodput = micro.points.goodput.isel(streams=place)
        one_link = goodput.sel(aggregation=studies.link_bonding.hpl.baseline, drop=True)
        streams = int(goodput.streams)
        text = f"{streams} connection{'s' if streams > 1 else ''}, two links over one"
        yield sample(micro.dataset, goodput.sel(aggregation=BY_PEER, drop=True) / one_link, text)


def _blas(studies: Studies) -> Iterator[Found]:
    """HPL's rate with the faster BLAS over that with the slower one, at the largest matrix."""
    study = studies.hpl_blas
    if study:
        largest = study.log_ratio.sel(N=study.log_ratio.N.max())
        text = f"{study.fast} over {study.slow} BLAS at N = {int(largest.N)}"
        yield sample(study.dataset, np.exp(largest), text)


def _on(values: xr.DataArray, nodes: int) -> xr.DataArray:
    """Values over dim nodes on so many; NaN where that was not run."""
    return values.reindex(nodes=[nodes]).isel(nodes=0, drop=True)


def _range(values: xr.DataArray) -> str:
    return f"{int(values.nodes[0])} to {int(values.nodes[-1])}"


QUANTITIES = {
    "smith_fast_straight": partial(_over_nodes, network=FAST, most=MOST, fewest=FEWEST),
    "smith_fast_level": partial(
        _of_efficiencies, read=lambda each: each.isel(nodes=-1), text="on the most nodes"
    ),
    "smith_fast_constant": partial(
        _of_efficiencies,
        read=lambda each: each.max("nodes") - each.min("nodes"),
        text="of all node counts",
    ),
    "smith_slow_declines_early": partial(_over_nodes, network=SLOW, most=PLATEAU, fewest=FEWEST),
    "smith_slow_goes_on": partial(_over_nodes, network=SLOW, most=MOST, fewest=PLATEAU),
    "smith_slow_drops": partial(_over_nodes, network=SLOW, most=MOST, fewest=FEWEST),
    "smith_drop_is_congestion": partial(_over_nodes, network=SLOW, most=MOST, fewest=FEWEST),
    "smith_fast_superior": _fast_over_slow,
    "smith_fast_far_exceeds": _fast_over_slow,
    "smith_gap_grows": _gap_growth,
    "smith_larger_cluster": _larger_clusters,
    "smith_infiniband_on_par": _infiniband_over_fast,
    "smith_latency_moderate": partial(
        _elasticities, read=lambda each: each.sel(parameter="latency")
    ),
    "smith_bandwidth_first": partial(
        _elasticities,
        read=lambda each: each.sel(parameter="bandwidth") - each.sel(parameter="latency"),
    ),
    "smith_monitoring": _noise,
    "smith_order": _order,
    "smith_few_small_messages": partial(_messages, name="small_messages"),
    "smith_few_small_bytes": partial(_messages, name="small_bytes"),
    "bonding_efficiency_falls": _node_rate,
    "bonding_gain_two_nodes": partial(_gain, most=2),
    "bonding_gain_four_nodes": partial(_gain, most=4),
    "bonding_gain_grows": _gain_grows,
    "bonding_gain_much_greater": partial(_gain, most=4, fewest=2),
    "bonding_one_connection": partial(_connections, place=0),
    "bonding_many_connections": partial(_connections, place=-1),
    "bonding_blas_doubled": _blas,
    "bonding_blas_matters_more": _blas,
}
