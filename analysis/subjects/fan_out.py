"""One node sends to several over a bridge, or receives from them: their total goodput, and the
resource that limits it.

The model is goodput = min(capacity of each resource). Relieving one resource raises the goodput if
and only if that resource alone is the limit; with two equal limits no single relief does.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from analysis.statements.statement import interval_in_words
from analysis.statistics.intervals import average
from analysis.statistics.judgement import UNDECIDED
from analysis.wording import listed, percent

# Changes to the same baseline, one at a time, in words, and the resource that each relieves.
CHANGES = {
    "receiver": ("more nodes", "receiver"),
    "stream": ("more streams in each flow", "single stream"),
    "port": ("faster ports of the nodes", "link"),
    "bridge": ("a faster bridge", "shared bridge"),
}
# The least growth that counts. A change should promise at least twice as much, or it cannot be told
# from no growth: one more receiver beside seven promises 1/7, four more promise 4/7.
LEAST_GROWTH = 0.10
CONFIDENCE = 0.90  # each end of the interval is a one-sided test at 5 %


@dataclass(frozen=True)
class Response:
    """The effect of a change on the goodput: the ratio to the baseline with its 90 % interval, and
    `says`.

    `says` is `grows` (the interval lies above 1 + LEAST_GROWTH), `stays` (below it) or `unclear`.
    """

    ratio: float
    low: float
    high: float
    says: str


@dataclass(frozen=True)
class Bottleneck:
    """Each change's response, by key of CHANGES; the limiting resource, or UNDECIDED; and the
    reason, in a sentence."""

    responses: Mapping[str, Response]
    limit: str
    reason: str


def bottleneck(baseline: np.ndarray, changed: Mapping[str, np.ndarray]) -> Bottleneck:
    """Judge changes by aggregate goodputs [bit/s] of shape (repeats,); NaN is a failed repeat.

    `changed` maps keys of CHANGES to the goodputs with that one change; entry i of each belongs to
    the same block as entry i of `baseline`. A resource is the limit if its change raises the
    goodput while all others tried do not.
    """
    responses = {name: _response(baseline, changed[name]) for name in CHANGES if name in changed}
    says = {name: response.says for name, response in responses.items()}
    if says.get("port") == "grows":
        says.pop("receiver", None)  # more receivers prove nothing: their ports are the limit
    grows, unclear = ([n for n in says if says[n] == answer] for answer in ("grows", "unclear"))
    words = listed([CHANGES[name][0] for name in unclear or grows])
    if len(grows) == 1 and not unclear:
        response = responses[grows[0]]
        interval = interval_in_words((response.low - 1, response.high - 1), level=CONFIDENCE)
        growth = f"with {words} the goodput grows by {percent(response.ratio - 1)}, {interval}"
        return Bottleneck(responses, CHANGES[grows[0]][1], growth)
    reason = "nothing that was tried raises the goodput: two limits are equal, or it is another"
    if unclear:
        reason = f"it is not clear what {words} would do: repeat more, or change more"
    elif grows:
        reason = f"{words} each raise the goodput: there is not one limit"
    return Bottleneck(responses, UNDECIDED, reason)


def _response(baseline: np.ndarray, goodput: np.ndarray) -> Response:
    """The geometric mean of the blocks' ratios with its t interval, and the response."""
    ratios = np.asarray(goodput, float) / np.asarray(baseline, float)
    ratios = ratios[np.isfinite(ratios) & (ratios > 0)]
    if not len(ratios):
        return Response(np.nan, np.nan, np.nan, "unclear")
    ratio, low, high = map(float, average(ratios, "ratio", CONFIDENCE))
    says = "grows" if low > 1 + LEAST_GROWTH else "stays" if high < 1 + LEAST_GROWTH else "unclear"
    return Response(ratio, low, high, says)
