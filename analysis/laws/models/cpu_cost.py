"""The processor's cost of a byte: a part for the byte itself, and its share of the cost of a
packet."""

import numpy as np

from analysis.laws.models import Model, Number, Values, _linear


def cpu_cost(payload: Values, per_byte: Number, per_packet: Number) -> Values:
    """y(p) = per_byte + per_packet / p for packets that carry p bytes of user data.

    y is CPU-seconds (or instructions) per byte; `per_byte` has its unit, `per_packet` that of y
    times bytes. With TCP over IPv4 the payload is `analysis.dataset.wire.tcp_payload` of the MTU,
    or the tool's MSS.
    """
    return per_byte + per_packet / payload


def guess(payload: Values, cost: Values) -> dict[str, float]:
    """The least-squares line over 1 / payload with no negative part, which is also the solution."""
    return dict(zip(("per_byte", "per_packet"), _linear.line(1 / payload, cost)))


MODEL = Model(
    title="CPU cost",
    equation=r"y(p) = c_{\mathrm{byte}} + \frac{c_{\mathrm{packet}}}{p}",
    source="J. Chase, A. Gallatin, K. Yocum, End system optimizations for high-speed TCP, IEEE "
    "Communications Magazine 39 (2001), p. 68-74, https://doi.org/10.1109/35.917506: overhead "
    "per byte and per packet",
    function=cpu_cost,
    bounds={"per_byte": (0.0, np.inf), "per_packet": (0.0, np.inf)},
    guess=guess,
)
