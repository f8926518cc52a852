"""How much of an Ethernet rate is left for TCP payload, after headers, gaps and check sequences of
full frames."""

from typing import Any

import numpy as np

PREAMBLE, GAP, ETHERNET_HEADER, CHECK_SEQUENCE = 8, 12, 14, 4  # bytes of each frame (IEEE 802.3)
OUTSIDE_MTU = PREAMBLE + GAP + ETHERNET_HEADER + CHECK_SEQUENCE
# Bytes inside the MTU (RFC 791, 9293, 7323 with padding).
IPV4_HEADER, TCP_HEADER, TIMESTAMPS = 20, 20, 12
INSIDE_MTU = IPV4_HEADER + TCP_HEADER + TIMESTAMPS


def tcp_payload(mtu: Any) -> Any:
    """Bytes of user data in a full TCP segment with timestamps over IPv4, for an MTU [B]: its
    MSS."""
    return mtu - INSIDE_MTU


def wire_limit(rate_bit_s: Any, mtu: Any) -> Any:
    """The most TCP payload [bit/s] that Ethernet of this rate [bit/s] and MTU [B] carries, in full
    frames.

    It holds for one direction alone: acknowledgements of a transfer in the other direction share
    the wire with it.
    """
    return rate_bit_s * tcp_payload(mtu) / (mtu + OUTSIDE_MTU)


def wire_limit_both_ways(rate_bit_s: Any, mtu: Any) -> Any:
    """The most TCP payload [bit/s] in each direction while the other carries as much.

    For every second full segment an acknowledgement without data (RFC 9293, section 3.8.6.3) shares
    the wire. If the kernel sends fewer, more is possible, up to `wire_limit`.
    """
    two_segments = 2 * (mtu + OUTSIDE_MTU)
    return wire_limit(rate_bit_s, mtu) * two_segments / (two_segments + INSIDE_MTU + OUTSIDE_MTU)


def packet_limit(rate_bit_s: Any, frame_bytes: Any) -> Any:
    """The most frames per second on Ethernet of this rate [bit/s]; `frame_bytes` is a frame without
    its FCS.
    """
    return rate_bit_s / (8 * (frame_bytes + PREAMBLE + GAP + CHECK_SEQUENCE))


def message_wire_bytes(size: Any, mtu: Any, headers: Any = INSIDE_MTU) -> Any:
    """Bytes [B] on the wire that Ethernet spends on a message of `size` [B] over TCP, with headers,
    preambles and gaps.

    The message fills full frames except the last, which is as short as its data. `headers` [B] are
    those inside each packet of at most `mtu` [B]; the default is IPv4's and TCP's, with timestamps.
    Acknowledgements come on top.
    """
    frames = np.ceil(size / (mtu - headers))
    return size + frames * (headers + OUTSIDE_MTU)
