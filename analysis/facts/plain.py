"""Numbers as facts hold them: plain Python values, and None for what is not known."""

import math


def known(value) -> float | None:
    """A number, or None where it is not finite."""
    value = float(value)
    return value if math.isfinite(value) else None


def pair(low, high) -> tuple[float, float] | None:
    """An interval, or None where an end of it is not known."""
    ends = known(low), known(high)
    return None if None in ends else ends


def scaled(interval: tuple[float, float] | None, factor: float) -> tuple[float, float] | None:
    """An interval in another unit: both ends times a factor above 0."""
    return None if interval is None else (factor * interval[0], factor * interval[1])
