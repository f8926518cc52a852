"""The quantities that the HPL paper's claims on its networks are about: each from the studies that there are.

Simulated values are of the paper's own cases, each on every variant of the model: its numbers as they are, and one of
them at either end of its range. Others are of the scaling campaign's blocks, as shares of the nodes' known rate.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis import attributes, published
from analysis.claims.sample import Found, Printed, Untestable, first_of_each, origin, sample
from analysis.efficiency import PLATEAU, efficiency, rpeak
from analysis.experiments import Studies
from analysis.experiments.hpl_paper import Paper
from analysis.experiments.hpl_scaling import Scaling
from analysis.hpl_predictors import PAIR

PERCENT = 0.01  # the unit of the last digit of a printed "20 %"


@dataclass(frozen=True)
class _Curves:
    """Efficiencies over (repeat, interconnect, nodes), in units in which those of one repeat can be divided.

    `slow` and `fast` are the paper's two networks. `driven` is whether the nodes can fill a link of the fast one.
    """

    dataset: xr.Dataset
    values: xr.DataArray
    n_of: str
    slow: str
    fast: str
    fewest: int
    driven: bool = True

    @property
    def most(self) -> int:
        """The most nodes that were planned."""
        return int(self.values.nodes.max())

    def at(self, network: str, nodes: int) -> xr.DataArray:
        """A network's efficiencies on so many nodes, over (repeat); NaN where this was not run."""
        return self.values.sel(interconnect=network).reindex(nodes=[nodes]).isel(nodes=0)

    def over_nodes(self, network: str, most: int, fewest: int) -> Found:
        """A network's efficiency on one node count over that on a smaller one."""
        if most <= fewest:
            return self.untestable(f"it has no case beyond {most} nodes")
        if network == self.fast and not self.driven:
            return self.untestable("its nodes, and not the links, limit what they send over 10GE")
        ratio = self.at(network, most) / self.at(network, fewest)
        return self.sample(ratio, f"efficiency on {most} nodes over that on {fewest}")

    def fast_over_slow(self, nodes: int) -> xr.DataArray:
        """The fast network's efficiency over the slow one's on so many nodes, over (repeat)."""
        return self.at(self.fast, nodes) / self.at(self.slow, nodes)

    def growth(self) -> Found:
        """`fast_over_slow` on the most nodes over that on the fewest."""
        ratio = self.fast_over_slow(self.most) / self.fast_over_slow(self.fewest)
        return self.sample(ratio, f"{self.most} over {self.fewest} nodes")

    def sample(self, values: xr.DataArray, of: str) -> Found:
        """The sample of values over (repeat)."""
        return sample(self.dataset, values, of, self.n_of)

    def untestable(self, reason: str) -> Untestable:
        """That these cannot tell."""
        return Untestable(origin(self.dataset)["evidence"], reason)


def fast_over_nodes(studies: Studies) -> list[Found]:
    """10GE's rate of a node on the most nodes over that on the fewest: 1 on a straight line from no nodes on."""
    return first_of_each(
        curves.over_nodes(curves.fast, curves.most, curves.fewest) for curves in _curves(studies)
    )


def slow_early(studies: Studies) -> list[Found]:
    """Gigabit Ethernet's efficiency on eight nodes over that on the fewest."""
    return first_of_each(
        curves.over_nodes(curves.slow, PLATEAU, curves.fewest) for curves in _curves(studies)
    )


def slow_late(studies: Studies) -> list[Found]:
    """Gigabit Ethernet's efficiency on the most nodes over that on eight."""
    return first_of_each(
        curves.over_nodes(curves.slow, curves.most, PLATEAU) for curves in _curves(studies)
    )


def slow_over_nodes(studies: Studies) -> list[Found]:
    """Gigabit Ethernet's efficiency on the most nodes over that on the fewest."""
    return first_of_each(
        curves.over_nodes(curves.slow, curves.most, curves.fewest) for curves in _curves(studies)
    )


def fast_over_slow(studies: Studies) -> list[Found]:
    """10GE's rate over Gigabit Ethernet's on the most nodes, or less than that where its nodes do not fill 10GE."""
    return first_of_each(
        curves.sample(curves.fast_over_slow(curves.most), f"on {curves.most} nodes")
        for curves in _curves(studies)
    )


def growth_of_fast_over_slow(studies: Studies) -> list[Found]:
    """10GE's rate over Gigabit Ethernet's on the most nodes, over the same on the fewest."""
    return first_of_each(curves.growth() for curves in _curves(studies))


def fast_efficiency(studies: Studies) -> list[Found]:
    """10GE's efficiency on the most nodes."""
    return _of_efficiencies(studies, lambda reached: reached.isel(nodes=-1), "on the most nodes")


def fast_efficiency_spread(studies: Studies) -> list[Found]:
    """The difference of 10GE's largest and least efficiency on several nodes."""
    return _of_efficiencies(
        studies, lambda each: each.max("nodes") - each.min("nodes"), "of all node counts"
    )


def fast_on_larger_clusters(studies: Studies) -> list[Found]:
    """10GE's efficiency on every cluster beyond the paper's over that on its largest case."""
    if studies.hpl_beyond is None:
        return []
    reached = studies.hpl_beyond.efficiency.sel(interconnect=PAIR[1])
    larger = reached.isel(nodes=slice(1, None)) / reached.isel(nodes=0)
    return [
        sample(
            studies.hpl_beyond.dataset,
            larger,
            f"{_range(larger)} over {int(reached.nodes[0])} nodes",
            "case",
        )
    ]


def infiniband_over_fast(studies: Studies) -> list[Found]:
    """HPL's rate on DDR InfiniBand over that on 10GE, in every case that ran on both."""
    study = studies.hpl_beyond
    if study is None:
        return []
    gains = [gain.rate for gain in study.gains if (gain.network, gain.reference) == PAIR]
    return [sample(study.dataset, 1 + gain, f"on {_range(gain)} nodes", "case") for gain in gains]


def raw_infiniband_over_fast(studies: Studies) -> list[Found]:
    """DDR InfiniBand's advantage over 10GE in the raw numbers that the paper prints."""
    fast, infiniband = (
        published.smith()["micro_benchmarks"][name] for name in ("10gige", "ddr_infiniband")
    )
    bandwidth = infiniband["bandwidth"]["value"] / fast["bandwidth"]["value"]
    latency = fast["latency"]["value"] / infiniband["latency"]["value"]
    return [
        Printed(
            {"the ratio of bandwidths": bandwidth, "the inverse ratio of latencies": latency},
            PERCENT,
        )
    ]


def _range(values: xr.DataArray) -> str:
    return f"{int(values.nodes[0])} to {int(values.nodes[-1])}"


def _curves(studies: Studies) -> list[_Curves]:
    """Those of the scaling campaign's blocks, and of the paper's cases."""
    in_blocks = [_in_blocks(studies.hpl_scaling)] if studies.hpl_scaling else []
    simulated = [_simulated(studies.hpl_paper)] if studies.hpl_paper else []
    return [*in_blocks, *simulated]


def _simulated(paper: Paper) -> _Curves:
    """The paper's cases on all variants of the model, where their sensitivity was simulated."""
    names = {"n_of": "variant", "slow": paper.network, "fast": paper.reference}
    values = paper.efficiency.expand_dims("repeat")
    if paper.sensitivity:
        base, changes = paper.sensitivity.base, paper.sensitivity.changes
        varied = (
            (base + changes)
            .stack(repeat=("parameter", "side"))
            .drop_vars(("repeat", "parameter", "side"))
        )
        values = xr.concat(
            [base.expand_dims("repeat"), varied], "repeat", coords="minimal", compat="override"
        )
    return _Curves(paper.dataset, values, fewest=int(values.nodes.min()), **names)


def _in_blocks(scaling: Scaling) -> _Curves:
    primary = scaling.contrasts[0]
    return _Curves(
        dataset=scaling.dataset,
        values=scaling.points.share,
        n_of="block",
        slow=primary.network,
        fast=primary.reference,
        fewest=attributes.design(scaling.dataset)["baseline_nodes"],
        driven=scaling.networks.limit.get(primary.reference) != "host-bound",
    )


def _of_efficiencies(
    studies: Studies, read: Callable[[xr.DataArray], xr.DataArray], of: str
) -> list[Found]:
    """What `read` makes of 10GE's efficiencies on several nodes, over (nodes) or over (block, nodes)."""
    found = [_in_runs(studies.hpl_scaling, read, of)] if studies.hpl_scaling else []
    if studies.hpl_paper:
        reached = studies.hpl_paper.efficiency.sel(interconnect=studies.hpl_paper.reference)
        found.append(sample(studies.hpl_paper.dataset, read(reached), of, "model"))
    return first_of_each(found)


def _in_runs(scaling: Scaling, read: Callable[[xr.DataArray], xr.DataArray], of: str) -> Found:
    if np.isnan(rpeak(scaling.points)):
        return Untestable(
            origin(scaling.dataset)["evidence"], "the theoretical peak of its nodes is not known"
        )
    reached = efficiency(scaling.points).sel(interconnect=scaling.contrasts[0].reference)
    return sample(scaling.dataset, read(reached.sel(nodes=reached.nodes > 1)), of)
