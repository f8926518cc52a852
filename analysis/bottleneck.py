"""Which resource limits the flows of a fan-out: the one whose relief, and nothing else's, raises the goodput.

The model is goodput = min(capacity of each resource). Relieving one resource then raises the goodput if
and only if that resource alone is the limit; with two equal limits no single relief does.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from analysis.statistics.intervals import average
from analysis.wording import listed, percent

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
CONFIDENCE = 0.90  # each end of the interval is a one-sided test at 5 %


@dataclass(frozen=True)
class Response:
    """What a change did to the goodput: the ratio to the baseline, its 90 % interval, and `says`:

    `grows` (the interval lies above 1 + LEAST_GROWTH), `stays` (below it) or `unclear`.
    """

    ratio: float
    low: float
    high: float
    says: str


@dataclass(frozen=True)
class Bottleneck:
    """The `limit` (a value of LIMITS, or `undecided`), the reason in a sentence, each change's response."""

    limit: str
    reason: str
    responses: Mapping[str, Response]


def bottleneck(baseline: np.ndarray, changed: Mapping[str, np.ndarray]) -> Bottleneck:
    """Name the limit from aggregate goodputs [bit/s] of shape (repeats,); NaN is a failed repeat.

    `changed` maps keys of CHANGES to the goodputs with that one change; entry i of each belongs to the same
    block as entry i of `baseline`. The limit is the resource of the one change that grows while all others
    that were tried stay. Faster ports explain that another receiver grows too: the receivers' ports are
    the limit then.
    """
    responses = {name: _response(baseline, changed[name]) for name in CHANGES if name in changed}
    grows, unclear = (
        [name for name, response in responses.items() if response.says == says]
        for says in ("grows", "unclear")
    )
    also = ""
    if "port" in grows:
        also = "; with more receivers too: the receivers' ports" if "receiver" in grows else ""
        grows, unclear = ([n for n in names if n != "receiver"] for names in (grows, unclear))
    limit, raised = UNDECIDED, listed([CHANGES[name] for name in grows])
    if unclear:
        doubtful = listed([CHANGES[name] for name in unclear])
        reason = f"it is not clear what {doubtful} would do: repeat more, or change more"
    elif not grows:
        untried = listed([CHANGES[name] for name in LIMITS if name not in responses])
        reason = "nothing raises the goodput: two limits are equal"
        reason += f", or it is what was not tried ({untried})" if untried else ""
    elif len(grows) > 1:
        reason = f"{raised} each raise the goodput: there is not one limit"
    elif grows == ["stream"]:
        reason = "with more streams the goodput grows: a single one does not fill the path"
    elif grows == ["receiver"] and "port" not in responses:
        reason = "with more receivers the goodput grows: receivers or their ports; faster ones were not tried"
    else:
        limit, growth = LIMITS[grows[0]], percent(responses[grows[0]].ratio - 1)
        reason = f"with {raised} the goodput grows by {growth}{also}"
    return Bottleneck(limit, reason, responses)


def _response(baseline: np.ndarray, goodput: np.ndarray) -> Response:
    """The geometric mean of the blocks' ratios with its t interval, and what it says."""
    ratios = np.asarray(goodput, float) / np.asarray(baseline, float)
    ratios = ratios[np.isfinite(ratios) & (ratios > 0)]
    if not len(ratios):
        return Response(np.nan, np.nan, np.nan, "unclear")
    ratio, low, high = (float(value) for value in average(ratios, "ratio", CONFIDENCE))
    says = "grows" if low > 1 + LEAST_GROWTH else "stays" if high < 1 + LEAST_GROWTH else "unclear"
    return Response(ratio, low, high, says)
