"""Which resource limits the flows of a fan-out: the one whose relief, and nothing else's, raises the goodput.

The model is goodput = min(capacity of each resource). Relieving one resource then raises the goodput if
and only if that resource alone is the limit; with two equal limits no single relief does.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from analysis.statistics.intervals import average
from analysis.wording import percent

# What can be changed, one thing at a time, against the same baseline.
CHANGES = {
    "receiver": "more receivers",
    "stream": "more streams in each flow",
    "port": "faster ports of the nodes",
    "cpu": "more CPU for the sender",
    "bridge": "a faster bridge",
}

UNDECIDED = "undecided"
LIMITS = {"receiver": "receiver", "port": "link", "cpu": "sender CPU", "bridge": "shared bridge"}

# The least growth that counts. A change should promise at least twice as much, or it cannot be told from
# none: one more receiver beside seven promises 1/7, four more promise 4/7.
LEAST_GROWTH = 0.10
_CONFIDENCE = 0.90  # each end of the interval is a one-sided test at 5 %


@dataclass(frozen=True)
class Response:
    """What a change did to the goodput: the ratio to the baseline, its 90 % interval, and `says`:

    `grows` (the interval lies above 1 + LEAST_GROWTH), `stays` (below it) or `unclear`.
    """

    ratio: float
    low: float
    high: float
    repeats: int
    says: str


@dataclass(frozen=True)
class Bottleneck:
    """The `limit` (a value of LIMITS, or `undecided`), the reason in a sentence, each change's response."""

    limit: str
    reason: str
    responses: Mapping[str, Response]


def bottleneck(baseline, changed: Mapping[str, np.ndarray]) -> Bottleneck:
    """Name the limit from aggregate goodputs [bit/s] of shape (repeats,); NaN is a failed repeat.

    `changed` maps keys of CHANGES to the goodputs with that one change; entry i of each belongs to the same
    block as entry i of `baseline`. The limit is the resource of the one change that grows while all others
    that were tried stay. Faster ports explain that another receiver grows too: the receivers' ports are
    the limit then. Raises ValueError for an unknown change.
    """
    if unknown := changed.keys() - CHANGES.keys():
        raise ValueError(f"unknown changes: {sorted(unknown)}")
    responses = {change: _response(baseline, changed[change]) for change in CHANGES if change in changed}
    grows, unclear = (
        [change for change, response in responses.items() if response.says == says]
        for says in ("grows", "unclear")
    )
    by_port = "port" in grows
    others = [change for change in grows if not (by_port and change == "receiver")]
    doubtful = [change for change in unclear if not (by_port and change == "receiver")]
    limit = UNDECIDED
    if doubtful:
        reason = f"it is not clear what {_listed(doubtful)} would do: repeat more, or change more"
    elif not others:
        untried = [change for change in LIMITS if change not in responses]
        reason = "nothing raises the goodput: two limits are equal"
        reason += f", or it is what was not tried ({_listed(untried)})" if untried else ""
    elif len(others) > 1:
        reason = f"{_listed(others)} each raise the goodput: there is not one limit"
    elif others == ["stream"]:
        reason = "with more streams the goodput grows: a single one does not fill the path"
    elif others == ["receiver"] and "port" not in responses:
        reason = "with more receivers the goodput grows: receivers or their ports; faster ones were not tried"
    else:
        limit = LIMITS[others[0]]
        whose = "; with more receivers too: the receivers' ports" if by_port and "receiver" in grows else ""
        growth = percent(responses[others[0]].ratio - 1)
        reason = f"with {_listed(others)} the goodput grows by {growth}{whose}"
    return Bottleneck(limit, reason, responses)


def _listed(changes: list[str]) -> str:
    return " and ".join(CHANGES[change] for change in changes)


def _response(baseline, goodput) -> Response:
    """The geometric mean of the blocks' ratios with its t interval, and what it says."""
    pairs = np.array([baseline, goodput], float)
    below, above = pairs[:, (np.isfinite(pairs) & (pairs > 0)).all(axis=0)]
    if not len(below):
        return Response(np.nan, np.nan, np.nan, 0, "unclear")
    ratio, low, high = (float(value) for value in average(above / below, "ratio", _CONFIDENCE))
    says = "grows" if low > 1 + LEAST_GROWTH else "stays" if high < 1 + LEAST_GROWTH else "unclear"
    return Response(ratio, low, high, len(below), says)
