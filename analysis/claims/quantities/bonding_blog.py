"""The quantities that the bonding blog's claims are about: each from the studies that there are.

Two links are used as the blog's kernel does unless it is told otherwise, by a hash of the peers' addresses, with one
process a node.
"""

import numpy as np
import xarray as xr

from analysis import published
from analysis.claims.sample import Found, Printed, Untestable, first_of_each, origin, sample
from analysis.experiments import Studies
from analysis.experiments.link_bonding import BY_PEER

FEWEST, MOST = 2, 4  # the blog's nodes
ONE, TWO = 1, 2  # links a node
RANKS = 1
BONDED, SINGLE = "gige_bonded", "gige"  # of the simulated networks
NOT_BY_PEER = "no campaign used two links by a hash of the peers"
EFFICIENCY_DIGIT = 0.001  # the unit of the last printed digit of an efficiency


def efficiency_of_two_nodes(studies: Studies) -> list[Found]:
    """HPL's efficiency of two nodes with one link each."""
    return [_implied(FEWEST, ONE)]


def efficiency_of_two_nodes_bonded(studies: Studies) -> list[Found]:
    """HPL's efficiency of two nodes with two links each."""
    return [_implied(FEWEST, TWO)]


def efficiency_of_four_nodes(studies: Studies) -> list[Found]:
    """HPL's efficiency of four nodes with one link each."""
    return [_implied(MOST, ONE)]


def efficiency_of_four_nodes_bonded(studies: Studies) -> list[Found]:
    """HPL's efficiency of four nodes with two links each."""
    return [_implied(MOST, TWO)]


def printed_efficiency_of_two_nodes(studies: Studies) -> list[Found]:
    """The efficiency that the blog prints of two nodes with one link each, beside what it says of it in words."""
    return [
        Printed(
            {
                "the efficiency printed with the rate": _result(FEWEST, ONE)["efficiency_percent"]
                / 100
            }
        )
    ]


def efficiency_on_more_nodes(studies: Studies) -> list[Found]:
    """The rate of a node among four over that of a node among two, with one link each."""
    per_node = {
        "the rates of a node": _quotient("rate_gflop_s", ONE) * FEWEST / MOST,
        "the efficiencies": _quotient("efficiency_percent", ONE),
    }
    found, both = [Printed(per_node)], f"{MOST} over {FEWEST} nodes"
    if studies.link_bonding:
        hpl = studies.link_bonding.hpl
        rate = hpl.points.rate.sel(aggregation=hpl.baseline, ranks_per_node=RANKS)
        found.append(sample(hpl.dataset, _four_over_two(rate / rate.nodes), f"one link, {both}"))
    if studies.hpl_paper and SINGLE in studies.hpl_paper.efficiency.interconnect:
        reached = studies.hpl_paper.efficiency.sel(interconnect=SINGLE)
        found.append(
            sample(
                studies.hpl_paper.dataset,
                _four_over_two(reached),
                f"the HPL paper's cluster, {both}",
                "case",
            )
        )
    return first_of_each(found)


def gain_on_two_nodes(studies: Studies) -> list[Found]:
    """The rate of two nodes with two links each over that with one."""
    return _gain(studies, FEWEST)


def gain_on_four_nodes(studies: Studies) -> list[Found]:
    """The rate of four nodes with two links each over that with one."""
    return _gain(studies, MOST)


def gain_of_four_over_two_nodes(studies: Studies) -> list[Found]:
    """The gain from the second link on four nodes over that on two."""
    return [_printed_growth(), *_gain_in_blocks(studies, MOST, FEWEST)]


def gain_of_most_over_fewest_nodes(studies: Studies) -> list[Found]:
    """The gain from the second link on the most nodes of a campaign over that on its fewest with a network."""
    in_blocks = []
    if studies.link_bonding:
        hpl = studies.link_bonding.hpl
        in_blocks = _gain_in_blocks(studies, hpl.most, hpl.fewest)
    return first_of_each([_printed_growth(), *in_blocks, *_simulated_growth(studies)])


def goodput_of_one_connection(studies: Studies) -> list[Found]:
    """What one connection between two nodes carries over two links, over what it carries over one."""
    return _goodputs(studies, fewest=True)


def goodput_of_many_connections(studies: Studies) -> list[Found]:
    """What the most connections between two nodes carry over two links, over what they carry over one."""
    return _goodputs(studies, fewest=False)


def blas_factor(studies: Studies) -> list[Found]:
    """HPL's rate with the faster BLAS over that with the slower one, at the largest matrix."""
    study = studies.hpl_blas
    if study is None:
        return []
    largest = study.log_ratio.sel(N=study.log_ratio.N.max())
    return [
        sample(
            study.dataset,
            np.exp(largest),
            f"{study.fast} over {study.slow} BLAS at N = {int(largest.N)}",
        )
    ]


def _result(nodes: int, links: int) -> dict[str, float]:
    """The printed line of so many nodes with so many links each."""
    table = published.bonding_blog().set_index(["nodes", "links_per_node"])
    return table.loc[nodes, links].to_dict()


def _quotient(column: str, links: int) -> float:
    """Four nodes' printed number over two nodes'."""
    return _result(MOST, links)[column] / _result(FEWEST, links)[column]


def _implied(nodes: int, links: int) -> Printed:
    """The efficiency that a printed rate has of the peak that all four results imply, which is not printed."""
    peak = published.bonding_blog_facts()["cluster"]["rpeak_per_node"]["value"]
    readings = {
        f"the rate over {peak} Gflop/s a node": _result(nodes, links)["rate_gflop_s"]
        / (nodes * peak)
    }
    return Printed(readings, EFFICIENCY_DIGIT)


def _printed_growth() -> Printed:
    columns = {"the rates": "rate_gflop_s", "the efficiencies": "efficiency_percent"}
    return Printed(
        {name: _quotient(column, TWO) / _quotient(column, ONE) for name, column in columns.items()}
    )


def _gain(studies: Studies, nodes: int) -> list[Found]:
    columns = {"the rates": "rate_gflop_s", "the efficiencies": "efficiency_percent"}
    one, two = _result(nodes, ONE), _result(nodes, TWO)
    printed = {name: two[column] / one[column] for name, column in columns.items()}
    return [Printed(printed), *_gain_in_blocks(studies, nodes)]


def _gain_in_blocks(studies: Studies, nodes: int, fewest: int | None = None) -> list[Found]:
    """The rate over two links, used as the blog did, over that over one link.

    With `fewest`, a number of nodes, this gain over that on so many.
    """
    if studies.link_bonding is None:
        return []
    hpl = studies.link_bonding.hpl
    ways = [way for way in hpl.ways if (way.aggregation, way.ranks_per_node) == (BY_PEER, RANKS)]
    if not ways:
        return [Untestable(origin(hpl.dataset)["evidence"], NOT_BY_PEER)]
    gain = np.exp(ways[0].log_gain)
    if fewest is None:
        return [sample(hpl.dataset, _at(gain, nodes), f"two links over one on {nodes} nodes")]
    growth = _at(gain, nodes) / _at(gain, fewest)
    return [sample(hpl.dataset, growth, f"two links over one, {nodes} over {fewest} nodes")]


def _at(values: xr.DataArray, nodes: int) -> xr.DataArray:
    """Values over dim nodes on so many; NaN where that was not run."""
    return values.reindex(nodes=[nodes]).isel(nodes=0, drop=True)


def _four_over_two(values: xr.DataArray) -> xr.DataArray:
    return _at(values, MOST) / _at(values, FEWEST)


def _simulated_growth(studies: Studies) -> list[Found]:
    """Growth on the larger clusters of the HPL paper's kind, whose bonded links are one of twice the rate."""
    study = studies.hpl_beyond
    gains = study.gains if study else ()
    own = [gain.rate for gain in gains if (gain.network, gain.reference) == (BONDED, SINGLE)]
    if not own:
        return []
    ratios = (1 + own[0]).dropna("nodes")
    if ratios.sizes["nodes"] < 2:
        return [
            Untestable(
                origin(study.dataset)["evidence"],
                "both networks were simulated on one cluster only",
            )
        ]
    grown = ratios.isel(nodes=-1) / ratios.isel(nodes=0)
    of = f"a link of twice the rate, {int(ratios.nodes[-1])} over {int(ratios.nodes[0])} nodes"
    return [sample(study.dataset, grown, of, "case")]


def _goodputs(studies: Studies, fewest: bool) -> list[Found]:
    micro = studies.link_bonding.micro if studies.link_bonding else None
    if micro is None:
        return []
    streams = int(micro.points.streams.values[0 if fewest else -1])
    if BY_PEER not in micro.points.aggregation:
        return [Untestable(origin(micro.dataset)["evidence"], NOT_BY_PEER)]
    base = studies.link_bonding.hpl.baseline
    goodput = micro.points.goodput.sel(streams=streams)
    ratio = goodput.sel(aggregation=BY_PEER, drop=True) / goodput.sel(aggregation=base, drop=True)
    return [
        sample(
            micro.dataset,
            ratio,
            f"{streams} connection{'s' if streams > 1 else ''}, two links over one",
        )
    ]
