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

# Changes to the same baseline, one at a time, and the resource that each relieves.
CHANGES = {
    "receiver": "more nodes",
    "stream": "more streams in each flow",
    "port": "faster ports of the nodes",
    "bridge": "a faster bridge",
}
LIMITS = {
    "receiver": "receiver",
    "stream": "single stream",
    "port": "link",
    "bridge": "shared bridge",
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
    """Each change's response, by key of CHANGES, and the changes that decide what the limit is."""

    responses: Mapping[str, Response]

    def that(self, says: str) -> list[str]:
        """The changes with this response. If faster ports help, more receivers prove nothing,
        because their ports are the limit."""
        ports_help = "port" in self.responses and self.responses["port"].says == "grows"
        return [
            name
            for name, response in self.responses.items()
            if response.says == says and not (ports_help and name == "receiver")
        ]

    @property
    def relief(self) -> str:
        """The one change that raises the goodput while all others tried do not; "" if there is
        none."""
        grows = self.that("grows")
        return grows[0] if len(grows) == 1 and not self.that("unclear") else ""

    @property
    def limit(self) -> str:
        """The limiting resource, a value of LIMITS, or UNDECIDED."""
        return LIMITS.get(self.relief, UNDECIDED)

    @property
    def reason(self) -> str:
        """The reason, in a sentence."""
        grows, unclear = (
            [CHANGES[name] for name in self.that(says)] for says in ("grows", "unclear")
        )
        if unclear:
            return f"it is not clear what {listed(unclear)} would do: repeat more, or change more"
        if not grows:
            return (
                "nothing that was tried raises the goodput: two limits are equal, or it is another"
            )
        if len(grows) > 1:
            return f"{listed(grows)} each raise the goodput: there is not one limit"
        response = self.responses[self.relief]
        interval = interval_in_words((response.low - 1, response.high - 1), level=CONFIDENCE)
        return f"with {grows[0]} the goodput grows by {percent(response.ratio - 1)}, {interval}"


def bottleneck(baseline: np.ndarray, changed: Mapping[str, np.ndarray]) -> Bottleneck:
    """Judge changes by aggregate goodputs [bit/s] of shape (repeats,); NaN is a failed repeat.

    `changed` maps keys of CHANGES to the goodputs with that one change; entry i of each belongs to
    the same block as entry i of `baseline`.
    """
    responses = {name: _response(baseline, changed[name]) for name in CHANGES if name in changed}
    return Bottleneck(responses)


def _response(baseline: np.ndarray, goodput: np.ndarray) -> Response:
    """The geometric mean of the blocks' ratios with its t interval, and the response."""
    ratios = np.asarray(goodput, float) / np.asarray(baseline, float)
    ratios = ratios[np.isfinite(ratios) & (ratios > 0)]
    if not len(ratios):
        return Response(np.nan, np.nan, np.nan, "unclear")
    ratio, low, high = map(float, average(ratios, "ratio", CONFIDENCE))
    says = "grows" if low > 1 + LEAST_GROWTH else "stays" if high < 1 + LEAST_GROWTH else "unclear"
    return Response(ratio, low, high, says)
