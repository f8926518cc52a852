"""Where the levels of the horizontal axis are: doublings are steps, and what has no number stands in a row."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.explorer.trials import Trials

DOUBLING = 4.0  # levels this many times apart are laid out by doublings
ASIDE, BESIDE = 0.14, 0.55  # of the axis's mean step: between neighbouring series at one level, and all of them
SPREAD = 0.55  # of the distance between series: over which the blocks of one are spread
CLOSE = 0.045  # of the axis: tick labels that are closer would collide


@dataclass(frozen=True)
class Axis:
    """Places of the levels, their tick labels, and whether places are powers of two or numbers at all."""

    places: dict[Hashable, float]
    labels: dict[float, str]
    title: str
    step: float
    place: Callable[[np.ndarray], np.ndarray] | None

    def apart(self, series: int) -> float:
        """The distance between neighbouring series of so many at one level."""
        return self.step * min(ASIDE, BESIDE / series)

    def aside(self, position: int, series: int) -> float:
        """How far the series at a position is moved sideways, so that series at one level do not hide each other."""
        return self.apart(series) * (position - (series - 1) / 2)

    def spread(self, blocks: np.ndarray, series: int) -> np.ndarray:
        """How far each trial is moved from its series' place by its block, the first to the last; shape (trials,)."""
        ranks = np.unique(blocks, return_inverse=True)[1]
        return SPREAD * self.apart(series) * (ranks / max(ranks.max(initial=0), 1) - 0.5) * (ranks.max(initial=0) > 0)

    @property
    def ends(self) -> tuple[float, float]:
        """The range that shows all levels with room at either side."""
        places = list(self.places.values()) or [0.0]
        room = 0.03 * (max(places) - min(places)) + 0.3 * self.step
        return min(places) - room, max(places) + room


def axis(trials: Sequence[Trials], factor: str) -> Axis:
    """The axis of a factor, over the levels that any of the datasets has."""
    levels = list(dict.fromkeys(level for it in trials for level in it.factors.get(factor, [])))
    numbers = bool(levels) and all(isinstance(level, (int, float)) for level in levels)
    if not numbers:
        places = {level: float(at) for at, level in enumerate(levels)}
        labels = {place: trials[0].called(level) for level, place in places.items()}
        return Axis(places, labels, trials[0].axis(factor), 1.0, None)
    levels = sorted(levels)
    doubling = levels[0] > 0 and levels[-1] >= DOUBLING * levels[0]
    place = np.log2 if doubling else np.asarray
    places = {level: float(place(level)) for level in levels}
    spread = max(places.values()) - min(places.values())
    labels: dict[float, str] = {}
    for level, at in places.items():
        if not labels or at - max(labels) >= CLOSE * spread:
            labels[at] = _number(factor, level, trials[0])
    return Axis(places, labels, trials[0].axis(factor), spread / max(len(levels) - 1, 1) or 1.0, place)


def _number(factor: str, level: float, trials: Trials) -> str:
    if factor in ("window_bytes", "token_bytes") and level >= 1024 and math.log2(level).is_integer():
        return trials.placed(factor, level).replace("\u00a0", " ")
    return trials.called(level)
