"""What the sources' claims take from the campaigns over the MTU; notebook 10 is their analysis."""

from dataclasses import dataclass

import xarray as xr

from analysis.derive import at_only_level
from analysis.tcp import points, stamps

OPENS = {"tcp_cost": {"y": "cpu_time"}}


@dataclass(frozen=True)
class Cost:
    """The campaign of CPU times, and its points over (block, mtu) on its only path, one way."""

    dataset: xr.Dataset
    points: xr.Dataset


@dataclass(frozen=True)
class TcpMtu:
    """The campaign's dataset, its `points` and `stamps` from `analysis.tcp`, and that of CPU times if there is one."""

    dataset: xr.Dataset
    points: xr.Dataset
    stamps: xr.DataArray
    cost: Cost | None = None


def analyse(tcp_mtu: xr.Dataset, tcp_cost: xr.Dataset | None = None) -> TcpMtu:
    """Lay both campaigns out; raises FalloffError if one holds no iperf3 trial, or `tcp_cost` has several paths or
    directions."""
    laid_out, cost = points(tcp_mtu), None
    if tcp_cost is not None:
        cost = Cost(tcp_cost, at_only_level(points(tcp_cost), "path", "direction"))
    return TcpMtu(tcp_mtu, laid_out, stamps(laid_out), cost)
