"""What the HPL campaigns measured of the claims of the HPL paper (Smith) and of the bonding blog.

Simulated values are of the paper's own cases, each on every variant of the model: its numbers as
they are, and one of them at either end of its range. The other values are from the scaling
campaign's blocks, as shares of the nodes' known rate. Two links are used in the default mode of the
blog's kernel, a hash of the peers' addresses, with one process a node.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr

from analysis.claims.judging import SIMULATED, Judgement, sample, untestable
from analysis.contrasts import differences
from analysis.efficiency import PLATEAU, efficiency, rpeak
from analysis.experiments.hpl_beyond import PAIRS, Beyond
from analysis.experiments.hpl_blas import Blas
from analysis.experiments.hpl_messages import Payload
from analysis.experiments.hpl_noise import Noise
from analysis.experiments.hpl_paper import Paper
from analysis.experiments.hpl_scaling import Scaling
from analysis.experiments.hpl_size import Size
from analysis.experiments.link_bonding import LinkBonding
from analysis.sensitivity import elasticity
from analysis.statistics import design as designs

FEWEST, MOST = 2, None  # nodes: where the paper's cases and the campaign begin, and the end of each
BY_PEER, RANKS = "ecmp_layer2", 1
NOT_BY_PEER = "no campaign used two links by a hash of the peers"
INFINIBAND, BONDED = PAIRS  # simulated networks, each with the network that it is compared with


def _curves(study: Scaling | Paper) -> tuple[xr.DataArray, xr.DataArray, str]:
    """Efficiencies of the paper's slow and fast network over (repeat, nodes), in units that cancel
    within a repeat; and the name of a repeat."""
    if isinstance(study, Scaling):
        primary, values = study.contrasts[0], study.points.share
        pair, n_of = (primary.network, primary.reference), "block"
    else:
        pair, n_of = (study.network, study.reference), "variant"
        values = study.efficiency.expand_dims("repeat")
        if study.sensitivity:
            base, changes = study.sensitivity.base, study.sensitivity.changes
            varied = (base + changes).stack(repeat=("parameter", "side"))
            varied = varied.drop_vars(("repeat", "parameter", "side"))
            variants = [base.expand_dims("repeat"), varied]
            values = xr.concat(variants, "repeat", coords="minimal", compat="override")
    slow, fast = (values.sel(interconnect=network, drop=True) for network in pair)
    return slow, fast, n_of


def _over_nodes(
    study: Scaling | Paper, is_fast: bool, most: int | None, fewest: int
) -> Judgement | None:
    """A network's efficiency on `most` nodes, the largest count if None, over that on a smaller
    count."""
    *networks, n_of = _curves(study)
    reached = networks[is_fast]
    most = most or int(reached.nodes.max())
    if most <= fewest:
        return untestable(study.dataset, f"it has no case beyond {most} nodes")
    if is_fast and isinstance(study, Scaling):
        if study.networks.limit.get(study.contrasts[0].reference) == "host-bound":
            reason = "its nodes, and not the links, limit what they send over 10GE"
            return untestable(study.dataset, reason)
    text = f"efficiency on {most} nodes over that on {fewest}"
    return sample(study.dataset, _on(reached, most) / _on(reached, fewest), text, n_of)


def _fast_over_slow(study: Scaling | Paper, grows: bool = False) -> Judgement:
    """10GE's rate over Gigabit Ethernet's on the most nodes; it is smaller if the nodes do not fill
    10GE. If `grows`, that ratio over the same ratio on the fewest nodes."""
    slow, fast, n_of = _curves(study)
    ratio, most = fast / slow, int(slow.nodes.max())
    if not grows:
        return sample(study.dataset, _on(ratio, most), f"on {most} nodes", n_of)
    text = f"{most} over {FEWEST} nodes"
    return sample(study.dataset, _on(ratio, most) / _on(ratio, FEWEST), text, n_of)


def _efficiency(study: Scaling | Paper, is_spread: bool = False) -> Judgement:
    """10GE's efficiency on the most nodes, or how far apart the efficiencies on several node counts
    lie."""
    if isinstance(study, Scaling) and np.isnan(rpeak(study.points)):
        return untestable(study.dataset, "the theoretical peak of its nodes is not known")
    if isinstance(study, Scaling):
        reached, n_of = efficiency(study.points), "block"
        reached = reached.sel(interconnect=study.contrasts[0].reference, nodes=reached.nodes > 1)
    else:
        reached, n_of = study.efficiency.sel(interconnect=study.reference), "model"
    if is_spread:
        spread = reached.max("nodes") - reached.min("nodes")
        return sample(study.dataset, spread, "of all node counts", n_of)
    return sample(study.dataset, reached.isel(nodes=-1), "on the most nodes", n_of)


def _larger_clusters(study: Beyond) -> Judgement:
    """10GE's efficiency on every cluster larger than the paper's, over that on the paper's largest
    case."""
    reached = study.efficiency.sel(interconnect=INFINIBAND[1])
    larger = reached.isel(nodes=slice(1, None)) / reached.isel(nodes=0)
    text = f"{_range(larger)} over {int(reached.nodes[0])} nodes"
    return sample(study.dataset, larger, text, "case")


def _infiniband_over_fast(study: Beyond) -> Judgement | None:
    gain = study.gains.get(INFINIBAND)
    if gain is None:
        return None
    return sample(study.dataset, gain, f"on {_range(gain)} nodes", "case")


def _elasticities(study: Paper, is_bandwidth_first: bool = False) -> Judgement | None:
    """-d ln rate / d ln latency in every case of the paper; or how much larger d ln rate / d ln
    bandwidth is."""
    if study.sensitivity is None:
        return None
    varied = study.sensitivity
    values = elasticity(varied, "latency", worse="high", better="low")
    if is_bandwidth_first:
        values = elasticity(varied, "bandwidth", worse="low", better="high") - values
    text = f"{values.nodes.size} node counts on {values.interconnect.size} networks"
    return sample(varied.dataset, values, text, "case")


def _noise(study: Noise) -> Judgement:
    """The share of HPL's rate that a daemon on every node leaves on the most nodes, over the share
    on the fewest."""
    baseline = designs.read(study.dataset).baseline_nodes
    text = f"a daemon of {study.primary}, {study.nodes[-1]} over {baseline} nodes"
    left = differences(study.log_ratio.sel(daemon=study.primary), baseline)
    return sample(study.dataset, np.exp(left), text)


def _order(study: Size) -> Judgement:
    """HPL's share of the nodes' rate at the largest matrix order over that at the smallest, on the
    same nodes with 10GE."""
    blocks = study.points.share.sel(interconnect=study.reference).squeeze("nodes")
    text = f"N = {int(blocks.N[-1])} over {int(blocks.N[0])} on {study.nodes} nodes"
    return sample(study.dataset, blocks.isel(N=-1) / blocks.isel(N=0), text)


def _messages(study: Payload, name: str, campaign: str) -> Judgement | None:
    """A share of small messages on the most nodes. HPL sends the same messages in every run, so it
    has no scatter."""
    for profile in study.profiles:
        if profile.dataset.attrs["campaign"] == campaign:
            value, run = getattr(profile, name), profile.run
            text = f"on {profile.nodes} nodes, {int(run.P)} x {int(run.Q)} processes"
            found = sample(profile.dataset, value, text, "case")
            if profile.evidence == SIMULATED:
                return found
            ends = {"interval_90": (value, value), "interval_95": (value, value), "kind": "count"}
            return replace(found, values=None, estimate=value, n=1, n_of="run", **ends)
    return None


def _node_rate(study: LinkBonding) -> Judgement:
    """The rate of each of four nodes over that of each of two, with one link each."""
    rate = study.rate.sel(aggregation=study.baseline, ranks_per_node=RANKS)
    per_node = rate / rate.nodes
    text = "one link, 4 over 2 nodes"
    return sample(study.dataset, _on(per_node, 4) / _on(per_node, 2), text)


def _paper_node_rate(study: Paper) -> Judgement | None:
    """Like `_node_rate`, for the HPL paper's cluster."""
    if BONDED[1] not in study.efficiency.interconnect:
        return None
    reached = study.efficiency.sel(interconnect=BONDED[1])
    text = "the HPL paper's cluster, 4 over 2 nodes"
    return sample(study.dataset, _on(reached, 4) / _on(reached, 2), text, "case")


def _gain(study: LinkBonding, most: int = 0, fewest: int | None = None) -> Judgement:
    """The rate over two links divided by that over one. With `fewest`, this gain over the gain on
    that many nodes.

    If these are 0, they are the campaign's own most and fewest nodes.
    """
    gains = study.log_gain
    if BY_PEER not in gains.aggregation or RANKS not in gains.ranks_per_node:
        return untestable(study.dataset, NOT_BY_PEER)
    gain = np.exp(gains.sel(aggregation=BY_PEER, ranks_per_node=RANKS))
    most = most or study.most
    if fewest is None:
        return sample(
            study.dataset,
            _on(gain, most),
            f"two links over one on {most} nodes, by a hash of addresses",
        )
    fewest = fewest or study.fewest
    text = f"two links over one by a hash of addresses, {most} over {fewest} nodes"
    return sample(study.dataset, _on(gain, most) / _on(gain, fewest), text)


def _bonded_beyond(study: Beyond) -> Judgement | None:
    """How `_gain` grows on clusters larger than the HPL paper's, where bonded links are modelled as
    one link of twice the rate."""
    gain = study.gains.get(BONDED)
    if gain is None:
        return None
    gain = gain.dropna("nodes")
    if gain.sizes["nodes"] < 2:
        return untestable(study.dataset, "both networks were simulated on one cluster only")
    text = f"a link of twice the rate, {int(gain.nodes[-1])} over {int(gain.nodes[0])} nodes"
    return sample(study.dataset, gain[-1] / gain[0], text, "case")


def _connections(study: LinkBonding, place: int) -> Judgement | None:
    """The goodput of the fewest (0) or most (-1) connections between two nodes over two links,
    relative to one link's."""
    micro = study.micro
    if micro is None:
        return None
    if BY_PEER not in micro.goodput.aggregation:
        return untestable(micro.dataset, NOT_BY_PEER)
    goodput = micro.goodput.isel(streams=place)
    one_link = goodput.sel(aggregation=study.baseline, drop=True)
    streams = int(goodput.streams)
    text = f"{streams} connection{'s' if streams > 1 else ''}, two links over one by a hash of addresses"
    return sample(micro.dataset, goodput.sel(aggregation=BY_PEER, drop=True) / one_link, text)


def _blas(study: Blas) -> Judgement:
    """HPL's rate with the faster BLAS over that with the slower one, at the largest matrix."""
    largest = study.log_ratio.sel(N=study.log_ratio.N.max())
    text = f"{study.fast} over {study.slow} BLAS at N = {int(largest.N)}"
    return sample(study.dataset, np.exp(largest), text)


def _on(values: xr.DataArray, nodes: int) -> xr.DataArray:
    """Values over dim nodes at one node count; NaN if it was not run."""
    return values.reindex(nodes=[nodes]).isel(nodes=0, drop=True)


def _range(values: xr.DataArray) -> str:
    return f"{int(values.nodes[0])} to {int(values.nodes[-1])}"


def _curve(is_fast: bool, most: int | None, fewest: int) -> list:
    return _both(partial(_over_nodes, is_fast=is_fast, most=most, fewest=fewest))


def _both(quantity: Callable[..., Judgement | None]) -> list:
    """The quantity from the scaling campaign and from the paper's own cases."""
    return [("hpl_scaling", quantity), ("hpl_paper", quantity)]


def _small(name: str) -> list:
    campaigns = "hpl_paper", "hpl_payload"
    return [("hpl_messages", partial(_messages, name=name, campaign=one)) for one in campaigns]


QUANTITIES = {
    "smith_fast_straight": _curve(True, MOST, FEWEST),
    "smith_fast_level": [("hpl_scaling", _efficiency)],
    "smith_fast_constant": _both(partial(_efficiency, is_spread=True)),
    "smith_slow_declines_early": _curve(False, PLATEAU, FEWEST),
    "smith_slow_goes_on": _curve(False, MOST, PLATEAU),
    "smith_slow_drops": _curve(False, MOST, FEWEST),
    "smith_drop_is_congestion": _curve(False, MOST, FEWEST),
    "smith_fast_superior": _both(_fast_over_slow),
    "smith_fast_far_exceeds": _both(_fast_over_slow),
    "smith_gap_grows": _both(partial(_fast_over_slow, grows=True)),
    "smith_larger_cluster": [("hpl_beyond", _larger_clusters)],
    "smith_infiniband_on_par": [("hpl_beyond", _infiniband_over_fast)],
    "smith_latency_moderate": [("hpl_paper", _elasticities)],
    "smith_bandwidth_first": [("hpl_paper", partial(_elasticities, is_bandwidth_first=True))],
    "smith_monitoring": [("hpl_noise", _noise)],
    "smith_order": [("hpl_size", _order)],
    "smith_few_small_messages": _small("small_messages"),
    "smith_few_small_bytes": _small("small_bytes"),
    "bonding_efficiency_falls": [("link_bonding", _node_rate), ("hpl_paper", _paper_node_rate)],
    "bonding_gain_two_nodes": [("link_bonding", partial(_gain, most=2))],
    "bonding_gain_four_nodes": [("link_bonding", partial(_gain, most=4))],
    "bonding_gain_grows": [
        ("link_bonding", partial(_gain, fewest=0)),
        ("hpl_beyond", _bonded_beyond),
    ],
    "bonding_gain_much_greater": [("link_bonding", partial(_gain, most=4, fewest=2))],
    "bonding_one_connection": [("link_bonding", partial(_connections, place=0))],
    "bonding_many_connections": [("link_bonding", partial(_connections, place=-1))],
    "bonding_blas_doubled": [("hpl_blas", _blas)],
    "bonding_blas_matters_more": [("hpl_blas", _blas)],
}
