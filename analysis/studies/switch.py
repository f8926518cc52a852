"""The switch tests: throughput and CPU time over the MTU, its cost model, frame limits and packet sizes."""

from dataclasses import dataclass

import xarray as xr

from analysis.studies import frame_limits, mtu, packet_sizes, tcp_cost
from analysis.studies.frame_limits import FrameLimits
from analysis.studies.mtu import Mtu
from analysis.studies.packet_sizes import PacketSizes
from analysis.studies.tcp_cost import TcpCost


@dataclass(frozen=True)
class Switch:
    """The study of each campaign of the switch tests; None where there are no data for it.

    `today` is of a shorter run of tcp_mtu, made anew.
    """

    mtu: Mtu
    cost: TcpCost | None = None
    limits: FrameLimits | None = None
    sizes: PacketSizes | None = None
    today: Mtu | None = None


def analyse(
    over_mtu: xr.Dataset,
    cost: xr.Dataset | None = None,
    limits: xr.Dataset | None = None,
    sizes: xr.Dataset | None = None,
    today: xr.Dataset | None = None,
) -> Switch:
    """Analyse the campaigns tcp_mtu, tcp_cost, frame_limits and packet_sizes, and today's run of the first.

    Raises FalloffError when one of them holds no trial of its tool.
    """
    return Switch(
        mtu=mtu.analyse(over_mtu),
        cost=None if cost is None else tcp_cost.analyse(cost),
        limits=None if limits is None else frame_limits.analyse(limits),
        sizes=None if sizes is None else packet_sizes.analyse(sizes),
        today=None if today is None else mtu.analyse(today),
    )
