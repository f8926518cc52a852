"""What more pairs do to the throughput of all: models of contention compared on every path."""

from dataclasses import dataclass

import xarray as xr

from analysis import models
from analysis.fitting.compare import Comparison, compare
from analysis.studies.token_points import Place

# Curves of one pair's rate gamma and, but for the first, its part sigma of what is shared, whose capacity is
# gamma / sigma. Fair share: an exchange takes its own time and the wire's part as often as there are pairs,
# which is Amdahl's curve. Interference: every two pairs cost each other time too, which is Gunther's.
CONTENTION = {
    "proportional": "no contention",
    "shared_capacity": "shared capacity",
    "amdahl": "fair share",
    "universal_scalability": "interference",
}
DECISIVE = 2.0  # a smaller difference of AICc supports both models (Burnham and Anderson 2002, section 2.6)


@dataclass(frozen=True)
class Pairs:
    """System throughput [B/s] over (block, pairs) on a path, and the models of it, the best AICc first."""

    place: Place
    throughput: xr.DataArray
    comparisons: tuple[Comparison, ...]

    @property
    def best(self) -> Comparison | None:
        """The model supported beyond all others; None where one of them has no AICc or is nearly as good."""
        aiccs = [it.aicc for it in self.comparisons]
        if None in aiccs or aiccs[1] - aiccs[0] < DECISIVE:
            return None
        return self.comparisons[0]


def contention(place: Place, throughput: xr.DataArray) -> Pairs:
    """Compare the models on throughput [B/s] over (block, pairs), pairs ascending."""
    throughput = throughput.transpose("block", "pairs")
    compared = compare(map(models.find, CONTENTION), throughput.pairs.values, throughput.values)
    return Pairs(place, throughput, compared)
