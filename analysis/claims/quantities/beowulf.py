"""The quantities that the Beowulf topology study's claims are about: each from the studies that there are.

Topologies are compared at the study's own rate, with the most pairs and the largest token unless it says otherwise.
Ratios are of throughputs of the same block, each the mean of its runs: the study kept the best one instead.
"""

from collections.abc import Sequence

import xarray as xr

from analysis import published
from analysis.claims.sample import Found, Printed, Untestable, origin, sample
from analysis.experiments import Studies
from analysis.experiments.token_exchange import TokenExchange, is_host_bound, readings

SLOWER = (
    "remote_switch",
    "remote_router",
    "bonded_switch",
    "bonded_shared",
)  # the study's, beside its local wires
TITLES = {
    "local_wire": "switched local wires",
    "local_router": "routed local wires",
    "remote_switch": "switched remote wires",
    "remote_router": "routed remote wires",
    "bonded_switch": "bonded switched wires",
    "bonded_shared": "the original dual net",
}


def token_capacity(studies: Studies) -> list[Found]:
    """What the study's own wires carry of its largest tokens [B/s], for each way to count the tokens written."""
    source = published.beowulf()
    rate = source["throughput"]["local_wire"]["value"]
    return [
        Printed(
            {
                f"on {reading.wires} wires, by the writes of {reading.writes}": rate
                / reading.framed
                for reading in readings()
            }
        )
    ]


def largest_over_smaller_token(studies: Studies) -> list[Found]:
    """Throughput of the switched local wires with the largest token over that with the next smaller one."""

    def ratio(study: TokenExchange, path: dict[str, str]) -> tuple[xr.DataArray, str]:
        crowded = study.points.throughput.isel(pairs=-1).sel(path=path["local_wire"])
        smaller, largest = (crowded.isel(token_bytes=at, drop=True) for at in (-2, -1))
        less, most = study.points.token_bytes.values[-2:]
        return largest / smaller, f"tokens of {most} B over {less} B"

    return _compared(studies, ("local_wire",), ratio)


def local_over_fastest_other(studies: Studies) -> list[Found]:
    """Switched local wires over the fastest of the study's other topologies in the same block."""

    def ratio(study: TokenExchange, path: dict[str, str]) -> tuple[xr.DataArray, str]:
        at = _crowded(study).throughput
        fastest = at.sel(path=[path[name] for name in SLOWER]).max("path", skipna=False)
        return at.sel(
            path=path["local_wire"]
        ) / fastest, f"{TITLES['local_wire']} over the fastest other"

    return _compared(studies, ("local_wire", *SLOWER), ratio)


def local_over_dual_net(studies: Studies) -> list[Found]:
    """Switched local wires over the original bonded dual net."""
    wires = _wires()
    by_wires = Printed({"the mesh's wires over the original's": wires["mesh"] / wires["original"]})
    return [by_wires, *_ratio(studies, "local_wire", "bonded_shared")]


def switched_remote_over_dual_net(studies: Studies) -> list[Found]:
    """Switched remote wires over the original bonded dual net."""
    return [_remote_by_wires(), *_ratio(studies, "remote_switch", "bonded_shared")]


def routed_remote_over_dual_net(studies: Studies) -> list[Found]:
    """Routed remote wires over the original bonded dual net."""
    return [_remote_by_wires(), *_ratio(studies, "remote_router", "bonded_shared")]


def local_over_switched_remote(studies: Studies) -> list[Found]:
    """Switched local wires over switched remote wires."""
    return _ratio(studies, "local_wire", "remote_switch")


def local_over_routed_remote(studies: Studies) -> list[Found]:
    """Switched local wires over routed remote wires."""
    return _ratio(studies, "local_wire", "remote_router")


def bonded_over_switched(studies: Studies) -> list[Found]:
    """Switched remote wires with bonding over those without."""
    return _ratio(studies, "bonded_switch", "remote_switch")


def switched_over_routed_local(studies: Studies) -> list[Found]:
    """Switched local wires over routed local wires."""
    return _ratio(studies, "local_wire", "local_router")


def switch_round_trip(studies: Studies) -> list[Found]:
    """The median round trip of one pair's smallest token through the switch over that on a local wire."""
    return _round_trips(studies, "remote_switch")


def router_round_trip(studies: Studies) -> list[Found]:
    """The median round trip of one pair's smallest token through the router over that on a local wire."""
    return _round_trips(studies, "remote_router")


def _wires() -> dict[str, float]:
    return {
        name: published.beowulf()["wires"][name]["value"] for name in ("rate", "mesh", "original")
    }


def _remote_by_wires() -> Printed:
    wires = _wires()
    return Printed(
        {"half of the mesh's wires over the original's": wires["mesh"] / 2 / wires["original"]}
    )


def _crowded(study: TokenExchange) -> xr.Dataset:
    return study.points.isel(token_bytes=-1, pairs=-1)


def _of(of: str, against: str) -> str:
    return f"{TITLES[of]} over {TITLES[against]}"


def _ratio(studies: Studies, of: str, against: str) -> list[Found]:
    def ratio(study: TokenExchange, path: dict[str, str]) -> tuple[xr.DataArray, str]:
        at = _crowded(study).throughput
        return at.sel(path=path[of]) / at.sel(path=path[against]), _of(of, against)

    return _compared(studies, (of, against), ratio)


def _round_trips(studies: Studies, of: str) -> list[Found]:
    def ratio(study: TokenExchange, path: dict[str, str]) -> tuple[xr.DataArray, str]:
        median = study.points.round_trip.sel(quantile=0.5).isel(token_bytes=0)
        alone = median.reindex(pairs=[1]).isel(
            pairs=0, drop=True
        )  # NaN where one pair was not planned
        return alone.sel(path=path[of]) / alone.sel(path=path["local_wire"]), _of(of, "local_wire")

    # One pair's small tokens leave the machine idle: nothing there is host-bound.
    return _compared(studies, (of, "local_wire"), ratio, crowded=False)


def _compared(
    studies: Studies, topologies: Sequence[str], ratio, crowded: bool = True
) -> list[Found]:
    """What `ratio` makes of the study and the paths of these topologies, unless these cannot be compared.

    It returns values over (block) and what they are. With `crowded`, the machine must not limit any topology.
    """
    study = studies.token_exchange
    if study is None:
        return []
    evidence, rate = origin(study.dataset)["evidence"], _wires()["rate"]
    path = {place.topology: place.path for place in study.places if place.rate == rate}
    missing = [TITLES[name] for name in topologies if name not in path]
    if missing:
        return [Untestable(evidence, f"not run at the study's rate: {', '.join(missing)}")]
    at = _crowded(study)
    bound = [name for name in topologies if is_host_bound(at.sel(path=path[name]))]
    limited = [TITLES[name] for name in bound] if crowded else []
    if limited:
        return [Untestable(evidence, f"the machine limits {', '.join(limited)}, and not the wires")]
    values, of = ratio(study, path)
    return [sample(study.dataset, values, of)]
