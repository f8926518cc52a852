"""HPL's communication against its computation, to leading order: what makes two clusters comparable.

HPL computes 2 N^3 / (3 n) flop a node. A node sends and receives of the order of N^2 (1/P + 1/Q)
matrix elements of 8 bytes, and of the order of N messages; over the time of the computation these
become the two shares below, up to constants that are the same for every cluster.
"""

import xarray as xr

from analysis.inference.averages import mean_over
from runners.record import FalloffError


def bandwidth_share(n, node_rate, bandwidth, N, P, Q):
    """n F / (BW N) (1/P + 1/Q) [flop/B], proportional to the share of time that bytes cost.

    `n` nodes of `node_rate` F [flop/s] on links of `bandwidth` BW [B/s]; a matrix of order `N` on a
    `P` x `Q` grid. Arguments broadcast. Two clusters with the same value are in the same balance.
    """
    return n * node_rate / (bandwidth * N) * (1 / P + 1 / Q)


def latency_share(n, node_rate, latency, N):
    """alpha n F / N^2 [flop], proportional to the share of time that messages cost.

    `latency` alpha [s] is the one-way time of a short message; the rest is as in `bandwidth_share`.
    """
    return latency * n * node_rate / N**2


def balance(points: xr.Dataset, networks) -> xr.Dataset:
    """Both shares for every point of a campaign that had traffic, over dims (interconnect, nodes).

    `points` is from `derive.points`; F is the harmonic mean of the DGEMM rate of a node over the valid blocks. `networks`
    is from `links.networks`: BW is the link's goodput outside the quota (not the injection limit),
    alpha half the round-trip time there. n = 1 is left out: it has no traffic.
    Raises FalloffError when the survey has none of these interconnects.
    """
    measured = [name for name in points.interconnect.values if name in networks.index]
    if not measured:
        raise FalloffError(
            "The balance needs the survey of the links (iperf3 and ping); the campaign holds none."
        )
    chosen = points.sel(interconnect=measured, nodes=points.nodes > 1)
    network = xr.Dataset.from_dataframe(networks.loc[measured, ["goodput", "round_trip_time"]])
    settings = chosen[["N", "P", "Q"]].max("block")
    node_rate = 1e9 * mean_over(chosen.dgemm / chosen.nodes, "block", "rate")
    shares = xr.Dataset(
        {
            "bandwidth_share": bandwidth_share(
                chosen.nodes, node_rate, network.goodput / 8, settings.N, settings.P, settings.Q
            ),
            "latency_share": latency_share(chosen.nodes, node_rate, network.round_trip_time / 2, settings.N),
        }
    ).transpose("interconnect", "nodes")
    shares.bandwidth_share.attrs = {"units": "flop/B", "long_name": "n F / (BW N) (1/P + 1/Q)"}
    shares.latency_share.attrs = {"units": "flop", "long_name": "alpha n F / N^2"}
    return shares
