"""What iperf3 --json prints: the reports in a text, and the readings of a test by the reports of its ends."""

import json
import math
import re
from typing import Any, Dict, List, Optional, Sequence, Tuple

from runners.record import Reading, Result, Unreadable

Report = Dict[str, Any]

# Settings of a trial that a report names too.
COMPARABLE = ("direction", "streams", "duration_s", "omit_s", "congestion_control")

# A report begins a line; a terminal's colours and other control characters may stand before it.
_BEGIN = re.compile(r"(?m)(?:\A\s*|^)(?:\x1b\[[\d;]*m|[\x00-\x08\x0b-\x1f\x7f\ufeff])*(?=\{)")
_ROUNDING = 1e-3  # of a rate against its own bytes and seconds: iperf 3.0 printed six digits


def results(text: str) -> List[Result]:
    """Every report in an output as a result with the settings that it names.

    Raises Unreadable when there is no whole report, or none that can be used: then with the first reason.
    """
    found, refusals = [], []
    for report in reports(text):
        try:
            found.append(Result(tuple(readings(report)), settings(report)))
        except Unreadable as error:
            refusals.append(error)
            found.append(Result((), settings(report), refused=str(error)))
    if len(refusals) == len(found):
        raise refusals[0]
    return found


def reports(text: str) -> List[Report]:
    """Every report in `text`, whatever other lines stand around them; at least one.

    Raises Unreadable when there is none, when one is not whole, or names a part of itself twice.
    """
    if not text.strip():
        raise Unreadable("iperf3 printed nothing")
    found: List[Report] = []
    begin = _BEGIN.search(text)
    while begin:
        try:
            report, end = json.JSONDecoder(object_pairs_hook=_unique).raw_decode(text, begin.end())
        except json.JSONDecodeError as error:
            raise Unreadable(f"iperf3's report is not whole JSON (line {error.lineno}: {error.msg})") from None
        except (ValueError, RecursionError):  # a number of thousands of digits, brackets without end
            raise Unreadable("iperf3's report is not one that iperf3 writes") from None
        found.append(report)
        begin = _BEGIN.search(text, end)
    if not found:
        raise Unreadable("iperf3's report is not a JSON object: it is written by --json")
    return found


def _unique(pairs: Sequence[Tuple[str, Any]]) -> Report:
    """A JSON object; iperf3 3.7 to 3.10 wrote the sums of both directions under one name, so one is lost."""
    sums = [name for name, _ in pairs if name.startswith("sum")]
    if len(set(sums)) < len(sums):
        raise Unreadable("iperf3's report gives both directions one name: for both ways at once use iperf3 3.12")
    return dict(pairs)


def settings(report: Report) -> Dict[str, Any]:
    """The settings that a report names, under the names that a trial's settings have, and the version."""
    asked = _part(report, "start", "test_start")
    direction = "both" if _goes_both_ways(report) else "reverse" if asked.get("reverse") else "forward"
    named = {
        "version": str(_part(report, "start").get("version", "unknown")).replace("iperf ", ""),
        "protocol": asked.get("protocol"),
        "direction": direction if asked else None,
        "streams": asked.get("num_streams"),
        "duration_s": asked.get("duration"),
        "omit_s": asked.get("omit"),
        "congestion_control": _part(report, "end").get("sender_tcp_congestion"),
    }
    return {name: value for name, value in named.items() if value is not None}


def readings(report: Report, server: Optional[Report] = None) -> List[Reading]:
    """What a test measured, from its client's report and, where it is there, its server's.

    TCP: goodput [bit/s] as the receiver counted it, and retransmits of the sender; for both ways at once
    these are of the client's sending, and goodput_reverse and retransmits_reverse of the server's. Where
    the reports have them: mss [B], rtt_mean [s] of the sending kernel, goodput_interval [bit/s] of the
    receiver without omitted intervals, and cpu_sender and cpu_receiver, shares of one core (both ways at
    once: of client and server). UDP: packets, lost_packets (not with a warm-up, whose
    losses iperf3 counts too) and jitter [s].
    Raises Unreadable with iperf3's own reason when it gives one, otherwise with what is missing.
    """
    if "error" in report:
        raise Unreadable(f"iperf3 says: {report['error']}")
    if "event" in report:
        raise Unreadable("the output is of --json-stream: --json writes the report that can be read")
    if _part(report, "start", "test_start").get("protocol") == "UDP":
        return _udp(report)
    reverse = bool(_part(report, "start", "test_start").get("reverse"))
    sender, receiver = (server, report) if reverse else (report, server)
    start = _part(report, "start")
    found = [Reading("goodput", _goodput(report, ""), "bit/s"), *_retransmits(report, "")]
    if _goes_both_ways(report):
        found.append(Reading("goodput_reverse", _goodput(report, "_bidir_reverse"), "bit/s"))
        found += _retransmits(report, "_bidir_reverse")
    found += _if_known("mss", start.get("tcp_mss", start.get("tcp_mss_default")), "B", least=1)
    found += [*_round_trip(sender or {}), *_intervals(receiver or {}), *_cpu(report, reverse)]
    return found


def _goes_both_ways(report: Report) -> bool:
    return "sum_received_bidir_reverse" in _part(report, "end")


def _goodput(report: Report, way: str) -> float:
    name = f"sum_received{way}"
    total = _sum(report, name, "receiver")
    rate, counted = (_number(total, name, key) for key in ("bits_per_second", "bytes"))
    if rate <= 0:
        if "accepted_connection" in _part(report, "start"):
            raise Unreadable("the report is the server's, which does not know what the client received")
        raise Unreadable("iperf3's receiver counted no data")
    # Versions differ in whether `seconds` is of the sender's or the receiver's clock; `end` is of the latter.
    times = (total.get("seconds"), total.get("end"))
    if not any(_is_number(time) and abs(rate * time / 8 - counted) <= _ROUNDING * counted for time in times):
        raise Unreadable(f"iperf3's end.{name} contradicts itself: its rate is not its bytes over its time")
    return rate


def _retransmits(report: Report, way: str) -> List[Reading]:
    """Only some systems count them, and only the end that sends."""
    count = _sum(report, f"sum_sent{way}", "sender").get("retransmits")
    return _if_known("retransmits_reverse" if way else "retransmits", count, "1", least=0)


def _sum(report: Report, name: str, role: str) -> Report:
    """A sum of the report's end; before iperf 3.0.3 a single stream had none and stands for it."""
    end = _part(report, "end")
    streams = end.get("streams")
    if name not in end and isinstance(streams, list) and len(streams) == 1:
        return _part(streams[0], role)
    return _part(end, name)


def _udp(report: Report) -> List[Reading]:
    total = _part(report, "end", "sum")
    packets, lost, jitter = (_number(total, "sum", key) for key in ("packets", "lost_packets", "jitter_ms"))
    if packets <= 0:
        raise Unreadable("iperf3 counted no packets")
    warm_up = _part(report, "start", "test_start").get("omit", 0)
    return [
        Reading("packets", packets, "1"),
        *([] if warm_up else [Reading("lost_packets", lost, "1")]),
        Reading("jitter", jitter / 1e3, "s"),
    ]


def _round_trip(report: Report) -> List[Reading]:
    """The mean over the streams that this end sent; of the others it does not know the sender's."""
    streams = _part(report, "end").get("streams")
    senders = [_part(stream, "sender") for stream in (streams if isinstance(streams, list) else [])]
    means = [sender.get("mean_rtt") for sender in senders if sender.get("sender", True)]
    known = [mean for mean in means if _is_number(mean) and mean > 0]
    return [Reading("rtt_mean", sum(known) / len(known) / 1e6, "s")] if known else []


def _intervals(report: Report) -> List[Reading]:
    """The full intervals of what this end received; after the last one a server adds a fragment."""
    intervals = report.get("intervals")
    sums = [_part(interval, "sum") for interval in (intervals if isinstance(intervals, list) else [])]
    if not all(_is_number(total.get(key)) for total in sums for key in ("seconds", "bits_per_second")):
        return []
    half = max((total["seconds"] for total in sums), default=0) / 2
    received = [total for total in sums if not total.get("omitted") and not total.get("sender")]
    rates = [total["bits_per_second"] for total in received if total["seconds"] > half]
    return [Reading("goodput_interval", rates, "bit/s")] if rates else []


def _cpu(report: Report, reverse: bool) -> List[Reading]:
    """iperf3 measures its own process, in % of one core; a server is not told of its client's."""
    used = _part(report, "end", "cpu_utilization_percent")
    client, server = used.get("host_total"), used.get("remote_total")
    if "accepted_connection" in _part(report, "start") or not (_is_number(client) and _is_number(server)):
        return []
    sender, receiver = (server, client) if reverse else (client, server)
    return [
        Reading("cpu_sender", sender / 100, "1"),
        Reading("cpu_receiver", receiver / 100, "1"),
        Reading("cpu_source", "tool", ""),
    ]


def _if_known(name: str, value: Any, unit: str, least: float) -> List[Reading]:
    return [Reading(name, value, unit)] if _is_number(value) and value >= least else []


def _part(report: Any, *names: str) -> Report:
    """A part of a report, by the names that lead to it; empty when it is not there."""
    for name in names:
        report = report.get(name) if isinstance(report, dict) else None
    return report if isinstance(report, dict) else {}


def _number(part: Report, where: str, name: str) -> float:
    value = part.get(name)
    if not _is_number(value):
        raise Unreadable(f"iperf3's report has no end.{where}.{name}: the test did not reach its end")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
