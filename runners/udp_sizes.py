"""udp_sizes: UDP datagrams of one frame size, as packets per second at both ends and their loss.

One trial for each `frame_bytes`, the whole frame without its FCS: Ethernet 14, IPv4 20 and UDP 8 bytes, then
the payload. The smallest frame of Ethernet, 64 bytes with the FCS, is 60 here.
"""

import math
from typing import Any, List

from runners import iperf3
from runners.iperf3 import PORT
from runners.record import (
    Command,
    FalloffError,
    InvalidRun,
    Reading,
    Result,
    Runner,
    Settings,
    Transcript,
    Unreadable,
    mismatch,
)

ETHERNET_HEADER = 14
HEADERS = ETHERNET_HEADER + 20 + 8

# iperf3's own header; smaller datagrams it refuses.
_SMALLEST_PAYLOAD = 16

# Datagrams of the warm-up that were still under way at its end arrive afterwards.
_MOST_RECEIVED = 1.01

# Connecting, and the exchange of results at the end.
_MARGIN_S = 15.0


def commands(point: Settings) -> List[Command]:
    """A server on the receiver, then a client that offers `bitrate_bit_s` of payload (0: what it can)."""
    payload = point["frame_bytes"] - HEADERS
    if payload < _SMALLEST_PAYLOAD:
        least = _SMALLEST_PAYLOAD + HEADERS
        raise FalloffError(
            f"a frame of {point['frame_bytes']} B is too small: iperf3's datagrams need {least} B"
        )
    if payload + HEADERS > point.get("mtu", math.inf) + ETHERNET_HEADER:
        raise FalloffError(
            f"a frame of {point['frame_bytes']} B does not fit an MTU of {point['mtu']} B: lower it"
        )
    duration, omit = point["duration_s"], point.get("omit_s", 0)
    limit = duration + omit + _MARGIN_S
    reporting = ("--json", "--port", str(PORT))
    server = ("iperf3", "--server", "--one-off", *reporting)
    client = ("iperf3", "--client", f"{{node{point['receiver']}}}", *reporting, "--udp")
    client += ("--length", str(payload), "--bitrate", str(point.get("bitrate_bit_s", 0)))
    client += ("--time", str(duration), "--omit", str(omit))
    return [
        Command(server, node=point["receiver"], timeout_s=limit, background=True, listens=PORT),
        Command(client, node=point["sender"], timeout_s=limit),
    ]


def parse(transcript: Transcript) -> List[Reading]:
    """The readings of the client's report; raises InvalidRun when other datagrams were sent than the
    point asks for (iperf3 takes the whole seconds of a time only), otherwise as `results` does."""
    point = transcript.trial.point
    clients = [each for each in transcript.executions if "--server" not in each.argv]
    (result,) = results(clients[-1].stdout)
    compared = {key: point[key] for key in ("frame_bytes", "duration_s", "omit_s") if key in point}
    different = mismatch({"omit_s": 0, **compared}, result.settings)
    if different:
        raise InvalidRun("; ".join(different))
    return list(result.readings)


def results(text: str) -> List[Result]:
    """packets_sent_per_s and packets_received_per_s, and datagram_loss: the share that did not arrive.

    Each end's packets are over its own seconds. Those that arrived are counted by their bytes: the packets
    that iperf3 3.12 reports as lost include those of the warm-up. Raises Unreadable with what is missing,
    or when there is more than one report.
    """
    report = iperf3.only_report(text)
    made = iperf3.settings(report)
    if made.get("protocol") != "UDP":
        raise Unreadable("iperf3's report is not of UDP datagrams")
    payload = _positive(report, "start", "test_start", "blksize")
    sent, sending = (_positive(report, "end", "sum_sent", name) for name in ("packets", "seconds"))
    size, receiving = (
        _positive(report, "end", "sum_received", name) for name in ("bytes", "seconds")
    )
    received = size / payload
    if received > _MOST_RECEIVED * sent:
        raise Unreadable(f"iperf3's receiver counted {received:.0f} datagrams of {sent:.0f} sent")
    readings = (
        Reading("packets_sent_per_s", sent / sending, "1/s"),
        Reading("packets_received_per_s", received / receiving, "1/s"),
        Reading("datagram_loss", max(1 - received / sent, 0.0), "1"),
    )
    return [Result(readings, {**made, "frame_bytes": payload + HEADERS})]


def _positive(report: Any, part: str, *names: str) -> float:
    """A number above 0 in a part of a report; raises Unreadable when it is not there."""
    value = iperf3.part(report, part, *names[:-1]).get(names[-1])
    if not iperf3.is_number(value) or value <= 0:
        where = ".".join((part, *names))
        raise Unreadable(
            f"iperf3's report has no {where} above 0: too old a version, or nothing arrived"
        )
    return value


RUNNER = Runner("udp_sizes", commands, parse, results)
