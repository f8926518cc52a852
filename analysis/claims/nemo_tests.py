"""The Nemo switch tests' printed lines, and the same ratios from the campaign that is like them (tcp_mtu)."""

from functools import cache

import pandas as pd
import xarray as xr

from analysis import published
from analysis.claims.sample import Found, Untestable, origin, sample
from analysis.experiments import Studies

BASIC, JUMBO, SWITCH_JUMBO = 1500, 9000, 8982  # B, the source's MTUs
EMULATED = "emulated"


def line(device: str, mtu: int, direction: str = "forward", flow: str = "forward") -> pd.Series:
    """The source's netperf line of a test, with the columns of `published.nemo_netperf`."""
    table = _tests()
    chosen = (table.path == device) & (table.mtu == mtu) & (table.direction == direction) & (table.flow == flow)
    return table[chosen].iloc[0]


def total(device: str, mtu: int) -> float:
    """Both flows' goodput [KB/s] of the source's test of both ways."""
    return sum(line(device, mtu, "both", flow).goodput_kib_s for flow in ("forward", "reverse"))


def largest_mtu(studies: Studies) -> int:
    """The largest MTU [B] that was run: it stands for the source's jumbo frames."""
    return int(studies.tcp_mtu.points.mtu.max()) if studies.tcp_mtu else SWITCH_JUMBO


def at(studies: Studies, path: str, mtu: int, direction: str = "forward") -> xr.Dataset | None:
    """The points of tcp_mtu at one place, over (block); None where they were not run."""
    points = studies.tcp_mtu.points if studies.tcp_mtu else None
    levels = _levels(path, mtu, direction)
    there = points is not None and all(level in points[name].values for name, level in levels.items())
    return points.sel(levels) if there else None


def ratio(studies: Studies, variable: str, of: tuple, against: tuple, times: float = 1.0) -> list[Found]:
    """`times` the ratio of a variable of tcp_mtu at two places, each as the arguments of `at`, in the same blocks."""
    ends = [at(studies, *place) for place in (of, against)]
    if any(end is None for end in ends):
        return []
    bound = host_bound(studies, of, against)
    text = f"{in_words(*of)} over {in_words(*against)}, in the same block"
    return bound or [sample(studies.tcp_mtu.dataset, times * ends[0][variable] / ends[1][variable], text)]


def host_bound(studies: Studies, *places: tuple) -> list[Found]:
    """That emulated evidence cannot tell, where the emulating machine limits one of the places and not its wire."""
    study = studies.tcp_mtu
    bound = [in_words(*place) for place in places if study.stamps.sel(_levels(*place)) == "host-bound"]
    if not bound or origin(study.dataset)["evidence"] != EMULATED:
        return []
    return [Untestable(EMULATED, f"the machine limits {' and '.join(bound)}, not the wire")]


def in_words(path: str, mtu: int, direction: str = "forward") -> str:
    """What a place is called in a text."""
    way = {"both": "both ways", "forward": "one way", "reverse": "one way back"}[direction]
    return f"{path} at MTU {mtu} {way}"


def _levels(path: str, mtu: int, direction: str = "forward") -> dict[str, str | int]:
    return {"path": path, "mtu": mtu, "direction": direction}


@cache
def _tests() -> pd.DataFrame:
    return published.nemo_netperf()
