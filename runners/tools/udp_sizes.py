"""udp_sizes: UDP datagrams of one frame size, as packets per second at both ends and their loss.

One trial for each `frame_bytes`, the whole frame without its FCS: Ethernet 14, IPv4 20 and UDP 8
bytes, then the payload. The smallest frame of Ethernet, 64 bytes with the FCS, is 60 here.
"""

import math

from runners.parsing import ENDS
from runners.records.description_rules import COUNT, NOT_NEGATIVE, POSITIVE
from runners.records.record import (
    Command,
    Contradictory,
    Cut,
    Failed,
    FalloffError,
    Quantity,
    Result,
    Settings,
    Tool,
    Unsupported,
)
from runners.tools import iperf3

ETHERNET_HEADER = 14
HEADERS = ETHERNET_HEADER + 20 + 8

# iperf3's own header; smaller datagrams it refuses.
_SMALLEST_PAYLOAD = 16

# Datagrams of the warm-up that were still under way at its end arrive afterwards.
_MOST_RECEIVED = 1.01


def commands(point: Settings) -> list[Command]:
    """A server on the receiver, then a client that offers `bitrate_bit_s` of payload (0: what it
    can).
    """
    payload = point["frame_bytes"] - HEADERS
    what, least = f"a frame of {point['frame_bytes']} B", _SMALLEST_PAYLOAD + HEADERS
    if payload < _SMALLEST_PAYLOAD:
        raise FalloffError(f"{what} is too small: iperf3's datagrams need {least} B")
    if payload + HEADERS > point.get("mtu", math.inf) + ETHERNET_HEADER:
        raise FalloffError(f"{what} does not fit an MTU of {point['mtu']} B: lower it")
    limit = iperf3.limit_s(point)
    client = ["iperf3", "--client", f"{{node{point['receiver']}}}", "--json", "--udp"]
    client += ["--port", str(iperf3.PORT), "--length", str(payload)]
    client += ["--bitrate", str(point.get("bitrate_bit_s", 0))]
    client += ["--time", str(point["duration_s"]), "--omit", str(point.get("omit_s", 0))]
    server = iperf3.server(point["receiver"], limit)
    return [server, Command(tuple(client), node=point["sender"], timeout_s=limit)]


def results(text: str) -> list[Result]:
    """packets_sent_per_s and packets_received_per_s, and datagram_loss: the share that did not
    arrive.

    Each end's packets are over its own seconds. Those that arrived are counted by their bytes: the
    packets that iperf3 3.12 reports as lost include those of the warm-up. iperf3 takes the whole
    seconds of a time only: `duration_s` is what it made of it. Raises Unreadable with what is
    missing, or when there is more than one report.
    """
    report = iperf3.only_report(text)
    made = iperf3.settings(report)
    if "protocol" not in made:
        raise Cut("iperf3's report does not name its protocol: its beginning is missing")
    if made["protocol"] != "UDP":
        raise Unsupported("iperf3's report is not of UDP datagrams")

    def positive(*names: str) -> float:
        table = iperf3.part(report, *names[:-1])
        value = iperf3.number(table, names[-1])
        if value > 0:
            return value
        lacking = f"iperf3's report has no {'.'.join(names)} above 0"
        if names[-1] not in table:
            raise Cut(f"{lacking}: the test did not end, or iperf3 is too old")
        raise Failed(f"{lacking}: nothing arrived")

    payload = positive("start", "test_start", "blksize")
    sent, sending = (positive("end", "sum_sent", name) for name in ("packets", "seconds"))
    size, receiving = (positive("end", "sum_received", name) for name in ("bytes", "seconds"))
    received = size / payload
    if received > _MOST_RECEIVED * sent:
        raise Contradictory(
            f"iperf3's receiver counted {received:.0f} datagrams of {sent:.0f} sent"
        )
    readings = {
        "packets_sent_per_s": sent / sending,
        "packets_received_per_s": received / receiving,
        "datagram_loss": max(1 - received / sent, 0.0),
    }
    return [Result(readings, {**made, "frame_bytes": payload + HEADERS})]


TOOL = Tool(
    "udp_sizes",
    commands,
    results,
    settings={
        "sender": COUNT,
        "receiver": COUNT,
        "frame_bytes": COUNT,
        "bitrate_bit_s": NOT_NEGATIVE,
        "duration_s": POSITIVE,
        "omit_s": NOT_NEGATIVE,
    },
    readings={
        "packets_received_per_s": Quantity("datagrams received", "1/s"),
        "packets_sent_per_s": Quantity("datagrams sent", "1/s"),
        "datagram_loss": Quantity("share of datagrams that did not arrive", "1"),
    },
    factors={
        **ENDS,
        "frame_bytes": Quantity("frame of each datagram without its FCS", "B"),
    },
    packages=("iperf3",),
)
