"""Where the levels of the horizontal axis are: doublings are steps, and what has no number stands in a row."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.explorer.trials import Trials

DOUBLING = 4.0  # levels this many times apart are laid out by doublings
ASIDE = 0.045  # of the axis's mean step, between neighbouring series at one level
CLOSE = 0.045  # of the axis: tick labels that are closer would collide


@dataclass(frozen=True)
class Axis:
    """Places of the levels, their tick labels, and whether places are powers of two or numbers at all."""

    places: dict[Hashable, float]
    labels: dict[float, str]
    title: str
    step: float
    place: Callable[[np.ndarray], np.ndarray] | None

    def aside(self, position: int, series: int) -> float:
        """How far the series at a position is moved sideways, so that points at one level do not hide each other."""
        return ASIDE * self.step * 2 * (position - (series - 1) / 2)

    @property
    def ends(self) -> tuple[float, float]:
        """The range that shows all levels with room at either side."""
        places = list(self.places.values()) or [0.0]
        room = 0.06 * (max(places) - min(places)) or 0.5
        return min(places) - room - 0.1 * self.step, max(places) + room + 0.1 * self.step


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
