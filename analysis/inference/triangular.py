"""Draws from what is thought possible of a number: its value is the likeliest, the ends of its range the least likely."""

import numpy as np


def draw(low: float, value: float, high: float, chance: np.ndarray) -> np.ndarray:
    """The quantiles at `chance` (uniform in [0, 1], any shape) of the triangular distribution, in the number's unit.

    Needs low <= value <= high; of a range without width every quantile is the value. Inverse of the distribution
    function F(x) = (x - low)^2 / ((high - low) (value - low)) below the value, and alike from the other end above
    it (Kotz and van Dorp 2004, Beyond Beta, chapter 1).
    """
    width, below = high - low, value - low
    rising = low + np.sqrt(chance * width * below)
    falling = high - np.sqrt((1 - chance) * width * (high - value))
    return np.where(chance * width <= below, rising, falling)
