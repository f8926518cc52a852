"""What the token exchanges measured of the claims of the Beowulf topology study.

Topologies are compared at the study's own rate, with the most pairs and the largest token unless a
claim says otherwise. Ratios are of throughputs in the same block, each the mean of its runs; the
study kept the best run instead.
"""

from collections.abc import Callable
from functools import partial

import xarray as xr

from analysis.claims.judging import Judgement, sample, untestable
from analysis.experiments.token_exchange import TokenExchange
from analysis.token_points import is_host_bound

TITLES = {
    "local_wire": "switched local wires",
    "local_router": "routed local wires",
    "remote_switch": "switched remote wires",
    "remote_router": "routed remote wires",
    "bonded_switch": "bonded switched wires",
    "bonded_shared": "the original dual net",
}
SLOWER = tuple(name for name in TITLES if not name.startswith("local"))


def _compared(
    study: TokenExchange,
    of: str,
    against: tuple[str, ...],
    ratio: Callable[[xr.Dataset, str, list[str]], xr.DataArray],
    text: str = "",
    is_crowded: bool = True,
) -> Judgement:
    """Apply `ratio` to the points and to the topologies' paths, over (block).

    If `is_crowded`, the machine must not limit any of them. Small tokens of one pair leave the
    machine idle.
    """
    path = study.paths
    missing = [TITLES[name] for name in (of, *against) if name not in path]
    if missing:
        return untestable(study.dataset, f"not run at the study's rate: {', '.join(missing)}")
    ends = {name: study.crowded.sel(path=path[name]) for name in (of, *against)}
    bound = [TITLES[name] for name, at in ends.items() if is_host_bound(at)]
    if bound and is_crowded:
        reason = f"the machine limits {', '.join(bound)}, and not the wires"
        return untestable(study.dataset, reason)
    values = ratio(study.points, path[of], [path[name] for name in against])
    return sample(study.dataset, values, text or f"{TITLES[of]} over {TITLES[against[0]]}")


def _throughput(points: xr.Dataset, of: str, against: list[str]) -> xr.DataArray:
    """The throughput over that of the fastest of the others."""
    at = points.throughput.isel(token_bytes=-1, pairs=-1)
    return at.sel(path=of) / at.sel(path=against).max("path", skipna=False)


def _round_trip(points: xr.Dataset, of: str, against: list[str]) -> xr.DataArray:
    """The ratio of median round trips of one pair's smallest token; NaN if one pair was not
    planned."""
    median = points.round_trip.sel(quantile=0.5).isel(token_bytes=0)
    alone = median.reindex(pairs=[1]).isel(pairs=0, drop=True)
    return alone.sel(path=of) / alone.sel(path=against[0])


def _largest_token(points: xr.Dataset, of: str, _: list[str]) -> xr.DataArray:
    """The throughput with the largest token over that with the next smaller one."""
    crowded = points.throughput.isel(pairs=-1).sel(path=of)
    return crowded.isel(token_bytes=-1, drop=True) / crowded.isel(token_bytes=-2, drop=True)


def _over(of: str, *against: str, ratio=_throughput, **more) -> list:
    return [("token_exchange", partial(_compared, of=of, against=against, ratio=ratio, **more))]


QUANTITIES = {
    "beowulf_peak_token": _over(
        "local_wire", ratio=_largest_token, text="the largest token over the next smaller one"
    ),
    "beowulf_local_highest": _over(
        "local_wire", *SLOWER, text="switched local wires over the fastest other"
    ),
    "beowulf_local_gain": _over("local_wire", "bonded_shared"),
    "beowulf_switched_gain": _over("remote_switch", "bonded_shared"),
    "beowulf_routed_gain": _over("remote_router", "bonded_shared"),
    "beowulf_switched_betters": _over("remote_switch", "bonded_shared"),
    "beowulf_routed_betters": _over("remote_router", "bonded_shared"),
    "beowulf_switched_below_local": _over("local_wire", "remote_switch"),
    "beowulf_routed_below_local": _over("local_wire", "remote_router"),
    "beowulf_bonded_not_better": _over("bonded_switch", "remote_switch"),
    "beowulf_bonded_worse": _over("bonded_switch", "remote_switch"),
    "beowulf_local_alike": _over("local_wire", "local_router"),
    "beowulf_switch_latency": _over(
        "remote_switch", "local_wire", ratio=_round_trip, is_crowded=False
    ),
    "beowulf_router_latency": _over(
        "remote_router", "local_wire", ratio=_round_trip, is_crowded=False
    ),
}
