"""What a byte costs the processor: a part for the byte itself and its share of the packet's."""

import numpy as np

from analysis.models import Model


def cpu_cost(payload, per_byte, per_packet):
    """y(p) = per_byte + per_packet / p for packets that carry p bytes of user data.

    y is CPU-seconds (or instructions) per byte; `per_byte` has its unit, `per_packet` that of y times
    bytes. With TCP over IPv4 the payload is `analysis.wire.tcp_payload` of the MTU, or the tool's MSS.
    """
    return per_byte + per_packet / payload


def guess(payload, cost):
    """The least-squares line over 1 / payload with no part below 0, which is also the solution.

    Where the best line has a negative part, the best one with non-negative parts lacks a part.
    """
    inverse = 1 / payload
    centered = inverse - inverse.mean()
    slope = cost @ centered / _or_one(centered @ centered)
    mean = cost.mean(axis=1)
    level = mean - slope * inverse.mean()
    flat = np.maximum(mean, 0.0)
    through_origin = np.maximum(cost @ inverse / _or_one(inverse @ inverse), 0.0)
    flat_is_better = flat**2 * len(payload) >= through_origin**2 * (inverse @ inverse)
    inside = (level >= 0) & (slope >= 0)
    return {
        "per_byte": np.where(inside, level, np.where(flat_is_better, flat, 0.0)),
        "per_packet": np.where(inside, slope, np.where(flat_is_better, 0.0, through_origin)),
    }


def _or_one(square):
    return square if square > 0 else 1.0


MODEL = Model(
    name="cpu_cost",
    title="CPU cost",
    equation=r"y(p) = c_{\mathrm{byte}} + \frac{c_{\mathrm{packet}}}{p}",
    source="J. Chase, A. Gallatin, K. Yocum, End system optimizations for high-speed TCP, IEEE "
    "Communications Magazine 39 (2001), p. 68-74, https://doi.org/10.1109/35.917506: overhead per byte "
    "and per packet",
    function=cpu_cost,
    bounds={"per_byte": (0.0, np.inf), "per_packet": (0.0, np.inf)},
    guess=guess,
)
