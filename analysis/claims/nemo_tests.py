"""The Nemo switch tests' printed lines, and the same ratios from the campaign that is like them (tcp_mtu)."""

from dataclasses import asdict, dataclass
from functools import cache

import pandas as pd
import xarray as xr

from analysis import published
from analysis.attributes import short_names
from analysis.claims.sample import Found, Untestable, origin, sample
from analysis.experiments import Studies
from analysis.experiments.tcp_mtu import TcpMtu

BASIC, JUMBO, SWITCH_JUMBO = 1500, 9000, 8982  # B, the source's MTUs
EMULATED = "emulated"
WAYS = {"both": "both ways", "forward": "one way", "reverse": "one way back"}


@dataclass(frozen=True)
class Place:
    """A point of tcp_mtu: a `path`, its `mtu` [B] and the `direction` of the transfer."""

    path: str
    mtu: int
    direction: str = "forward"


def line(device: str, mtu: int, direction: str = "forward", flow: str = "forward") -> pd.Series:
    """The source's netperf line of a test, with the columns of `published.nemo_netperf`."""
    tests = _tests()
    chosen = (tests.path == device) & (tests.mtu == mtu)
    chosen &= (tests.direction == direction) & (tests.flow == flow)
    return tests[chosen].iloc[0]


def total(device: str, mtu: int) -> float:
    """Both flows' goodput [KB/s] of the source's test of both ways."""
    return sum(line(device, mtu, "both", flow).goodput_kib_s for flow in ("forward", "reverse"))


def largest_mtu(studies: Studies) -> int:
    """The largest MTU [B] that was run: it stands for the source's jumbo frames."""
    return int(studies.tcp_mtu.points.mtu.max()) if studies.tcp_mtu else SWITCH_JUMBO


def at(studies: Studies, place: Place) -> xr.Dataset | None:
    """The points of tcp_mtu at a place, over (block); None where they were not run."""
    if studies.tcp_mtu is None:
        return None
    points, levels = studies.tcp_mtu.points, asdict(place)
    ran = all(level in points[name].values for name, level in levels.items())
    return points.sel(levels) if ran else None


def ratio(
    studies: Studies, variable: str, of: Place, against: Place, times: float = 1.0
) -> list[Found]:
    """`times` the ratio of a variable of tcp_mtu at two places, in the same blocks."""
    above, below = at(studies, of), at(studies, against)
    if above is None or below is None:
        return []
    study = studies.tcp_mtu
    text = f"{in_words(study, of)} over {in_words(study, against)}, in the same block"
    found = sample(study.dataset, times * above[variable] / below[variable], text)
    return host_bound(study, of, against) or [found]


def host_bound(study: TcpMtu, *places: Place) -> list[Found]:
    """That emulated evidence cannot tell, where the emulating machine limits one of the places and not its wire."""
    bound = [place for place in places if study.stamps.sel(asdict(place)) == "host-bound"]
    if not bound or origin(study.dataset)["evidence"] != EMULATED:
        return []
    names = " and ".join(in_words(study, place) for place in bound)
    return [Untestable(EMULATED, f"the machine limits {names}, not the wire")]


def in_words(study: TcpMtu, place: Place) -> str:
    """What a place is called in a text."""
    name = short_names(study.dataset)[place.path]
    return f"the {name} at MTU {place.mtu} {WAYS[place.direction]}"


@cache
def _tests() -> pd.DataFrame:
    return published.nemo_netperf()
