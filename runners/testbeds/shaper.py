"""The shaper of an end of a link: the rate and burst for tc, with which frames leave as fast as on Ethernet."""

from dataclasses import dataclass
from typing import Any, Dict, Optional

UNSHAPED = "unshaped"

# The shaper's queue, as deep as the packet memory that a switch has for a port: 8 ms at 1 Gbit/s.
# A smaller one loses the start of a TCP flow to drops, a larger one is only delay.
_QUEUE = "1mb"
# Holds two of the 64 KiB super-packets that segmentation offload passes down: at one, 10 Gbit/s is never reached.
_BURST = 128 * 1024
# Without super-packets it holds what the wire carries while the kernel's timer is late, and two frames at least: on
# a busy machine 1 ms lost up to a quarter of 50 Mbit/s, 4 ms less than a hundredth.
_LATE_S = 4e-3

# Bytes of a frame that are on the wire but not in what tc counts: preamble 8, checksum 4, gap 12.
_UNCOUNTED = 24
_HEADER = 14
_SMALLEST_ON_WIRE = 84

# tc shows a burst in whole microseconds of the rate.
_SHOWN_S = 2e-6


@dataclass(frozen=True)
class Shaper:
    """What is asked of an end: bit/s on the wire (None: unshaped) for frames of an MTU in bytes.

    `super_packets` is whether tc sees packets of many frames, to be cut up behind it. With `burst_s` [s] the burst is
    one full frame and what the wire carries in that time; it is free bytes on every message, so it should be small.
    """

    rate_bit_s: Optional[float]
    mtu: int
    super_packets: bool = False
    burst_s: Optional[float] = None

    @property
    def tbf_rate_bit_s(self) -> Any:
        """The rate for tc, in whole bytes as tc keeps it, with which frames leave as fast as on Ethernet.

        tc counts MTU + 14 bytes for a full frame that occupies MTU + 38 on the wire, so the rate is
        smaller by that ratio. Without super-packets tc adds the difference to every frame itself.
        """
        if self.rate_bit_s is None:
            return UNSHAPED
        counted = self.mtu + _HEADER
        ratio = counted / (counted + _UNCOUNTED) if self.super_packets else 1.0
        return int(self.rate_bit_s * ratio / 8) * 8

    @property
    def burst_bytes(self) -> int:
        """How much leaves at once after a pause, before the rate holds again."""
        frame = self.mtu + _HEADER + _UNCOUNTED
        if self.burst_s is not None:
            return int(frame + self.rate_bit_s * self.burst_s / 8)
        return _BURST if self.super_packets else max(int(self.rate_bit_s * _LATE_S / 8), 2 * frame)

    @property
    def qdisc(self) -> str:
        """The queueing discipline in tc's words."""
        if self.rate_bit_s is None:
            return "noqueue"
        stab = "" if self.super_packets else f"stab overhead {_UNCOUNTED} mpu {_SMALLEST_ON_WIRE} "
        return f"{stab}tbf rate {self.tbf_rate_bit_s}bit burst {self.burst_bytes} limit {_QUEUE}"

    def settings(self) -> Dict[str, Any]:
        """What must be found when it is read back; the burst where one was asked for."""
        asked = {"tbf_rate_bit_s": self.tbf_rate_bit_s}
        if self.burst_s is not None:
            asked["tbf_burst_bytes"] = UNSHAPED if self.rate_bit_s is None else self.burst_bytes
        return asked

    def effective(self, rate_bit_s: Any, burst_bytes: Any) -> Dict[str, Any]:
        """What was found, under the names of `settings`; the burst as asked for, where tc can show no difference."""
        if self.burst_s is None:
            return {"tbf_rate_bit_s": rate_bit_s}
        asked = self.settings()["tbf_burst_bytes"]
        shaped = rate_bit_s == self.tbf_rate_bit_s != UNSHAPED
        if shaped and abs(burst_bytes - asked) <= _SHOWN_S * rate_bit_s / 8:
            burst_bytes = asked
        return {"tbf_rate_bit_s": rate_bit_s, "tbf_burst_bytes": burst_bytes}
