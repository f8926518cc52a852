"""The source's claims as ratios of two topologies' throughputs in the same blocks, each with its verdict."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from analysis.inference.averages import mean_over
from analysis.inference.in_range import UNDECIDED, judge_range
from analysis.studies.token_points import Place

Asked = Mapping[str, Any]  # of a claim: which topologies, and the range

NOT_RUN, HOST_BOUND = "not run", "host-bound"

# The machine limits a topology, and not its wires, when these carry less than the first while its processors are busy
# for more than the second of the time.
LITTLE_CARRIED, NEARLY_BUSY = 0.75, 0.85


@dataclass(frozen=True)
class Claim:
    """A claim that a ratio lies in a range, at one `rate` [bit/s] (None: nothing was run for it).

    `kind` is that of `judge_range`, of the geometric-mean ratio; it is `host-bound` whatever the ratio where the
    machine limits either topology, and `not run` where a path is missing; `reason` names them. `of_bests` is the
    ratio of the best runs, as the source took it, and `of_wires` that of what the two topologies' wires can carry.
    Unknown is NaN.
    """

    about: str
    rate: float | None
    at_least: float
    at_most: float
    kind: str
    reason: str = ""
    ratio: float = np.nan
    interval_90: tuple[float, float] = (np.nan, np.nan)
    interval_95: tuple[float, float] = (np.nan, np.nan)
    of_bests: float = np.nan
    of_wires: float = np.nan
    blocks: int = 0


def claims(design: Mapping[str, Asked], places: tuple[Place, ...], at: xr.Dataset) -> tuple[Claim, ...]:
    """Judge the design's claims at each rate.

    `at` holds `throughput` (block, path), `runs` (run, block, path) and `limit` (path), all in B/s, and
    `busy` (block, path), the share of its processors' time that the machine was busy, NaN where it is not known.
    """
    judged = []
    for about, asked in design.items():
        ends = [{it.rate: it for it in places if it.topology == asked[end]} for end in ("of", "against")]
        bounds = {"about": about, "at_least": asked["at_least"], "at_most": asked["at_most"]}
        rates = sorted(ends[0].keys() & ends[1].keys())
        for rate in rates:
            judged.append(Claim(rate=rate, **bounds, **_judged(at, *(it[rate] for it in ends), asked)))
        if not rates:
            missing = " and ".join(asked[end] for end, there in zip(("of", "against"), ends) if not there)
            reason = f"{missing} was not run" if missing else "the two were not run at the same rate"
            judged.append(Claim(rate=None, **bounds, kind=NOT_RUN, reason=reason))
    return tuple(judged)


def _judged(at: xr.Dataset, of: Place, against: Place, asked: Asked) -> dict[str, Any]:
    """What a claim has from the throughputs of its two topologies."""
    above, below = (at.sel(path=it.path) for it in (of, against))
    ratios = (above.throughput / below.throughput).values
    judged = judge_range(ratios, asked["at_least"], asked["at_most"], ratios=True)
    found = {
        "kind": judged.kind,
        "reason": judged.reason,
        "of_wires": float(above.limit / below.limit),
        "ratio": judged.estimate,
        "interval_90": judged.interval_90,
        "interval_95": judged.interval_95,
        "blocks": judged.n,
    }
    if not judged.n:
        return {**found, "reason": "no block has both readings"}
    found["of_bests"] = float(above.runs.max() / below.runs.max())
    limited = [place.topology for place in (of, against) if is_host_bound(at.sel(path=place.path))]
    if judged.n > 1 and limited:
        return {**found, "kind": HOST_BOUND, "reason": f"the machine limits {' and '.join(limited)}, not the wires"}
    return found


def is_host_bound(here: xr.Dataset) -> bool:
    """Whether the machine and not its wires limits a path; `here` is as `at` of `claims`, of one path."""
    carried = float(mean_over(here.throughput, "block", "rate") / here.limit)
    return carried < LITTLE_CARRIED and float(here.busy.mean()) > NEARLY_BUSY
