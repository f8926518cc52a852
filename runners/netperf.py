"""netperf: the goodput of one TCP stream between two nodes, one way, reversed or both ways at once.

What it prints, tables, key=value lines (-k) or CSV (-o), becomes the same fields, then readings. Units are
those of netperf's manual (Care and Feeding of Netperf 2.7, option -f): G, M and K are 2^30, 2^20 and 2^10
bytes/s, g, m and k are 10^9, 10^6 and 10^3 bits/s.
"""

import csv
import re
from dataclasses import dataclass, replace
from typing import Dict, List

from runners.parsing import attempt, usable
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
)

PORT = 12865

# Connecting, and the exchange of results at the end.
_MARGIN_S = 15.0

# The data flow from netperf to netserver, or the other way.
_TESTS = {
    "forward": ("TCP_STREAM",),
    "reverse": ("TCP_MAERTS",),
    "both": ("TCP_STREAM", "TCP_MAERTS"),
}
_EACH_WAY = ("goodput", "retransmits")
_BEHIND_S = 2  # by which the netperf in the background may end later than the other
_ASKED_FOR = (
    "DIRECTION,ELAPSED_TIME,THROUGHPUT,THROUGHPUT_UNITS,TRANSPORT_MSS,LSS_SIZE,LSR_SIZE,RSS_SIZE,"
    "RSR_SIZE,LOCAL_TRANSPORT_RETRANS,REMOTE_TRANSPORT_RETRANS,LOCAL_CPU_UTIL,REMOTE_CPU_UTIL,"
    "LOCAL_CPU_COUNT,REMOTE_CPU_COUNT,LOCAL_CONG_CONTROL,REMOTE_CONG_CONTROL"
)

# bit/s in each unit of throughput. Not here: 2.7.0 with -f b prints bytes/s and calls them 10^0bits/s.
_UNITS = {
    "10^3bits": 1e3,
    "10^6bits": 1e6,
    "10^9bits": 1e9,
    "Bytes": 8,
    "KBytes": 8 * 2**10,
    "MBytes": 8 * 2**20,
    "GBytes": 8 * 2**30,
}
_LEAST = 1.0  # netperf prints two decimals: below it they are too few for 0.5 %
# Lengths are limited, so that no damaged row makes a number beyond what float can hold.
_NUMBER = r"-?\d{1,15}(?:\.\d{1,9})?"
_ALONE = re.compile(r"\S+")
_BANNER = re.compile(r"^[ \t]*(?:MIGRATED )?([A-Z][\w|/ ]*?) TEST (?:from|to) ", re.M)
_KEYVAL = re.compile(r"^[ \t]*([A-Z][A-Z_0-9]*)=([^\r\n]*)\r?\n", re.M)
_KEYVALS = re.compile(rf"(?:{_KEYVAL.pattern})+", re.M)
_STREAM = re.compile(
    r"^[ \t]*bytes\s+bytes\s+bytes\s+secs\.\s+(\S+?)\s*/s(?:ec)?\b([^\n]*)\n\s*", re.M
)
_EXCHANGE = re.compile(
    r"^[ \t]*(?:bytes\s+){4}secs\.\s+(per sec|[\w^]+ *(?=/s))(?:/s(?:ec)?)?\b([^\n]*)\n\s*",
    re.M | re.I,
)
_OMNI = re.compile(rf"^(?:.*\s)?({_NUMBER})[ \t]+(\S{{1,20}}/s)\s", re.M)
_WARNING = re.compile(r"^[ \t]*!!! (Desired confidence was not achieved)", re.M)
_COMPLAINT = re.compile(r"^(?:netperf|netserver|[a-z]+[_ ][a-z_]+): .*", re.M)
_CSV_NAMES = {
    "Throughput": "THROUGHPUT",
    "Throughput Units": "THROUGHPUT_UNITS",
    "Elapsed Time (sec)": "ELAPSED_TIME",
    "Direction": "DIRECTION",
    "Local CPU Util %": "LOCAL_CPU_UTIL",
    "Remote CPU Util %": "REMOTE_CPU_UTIL",
    "Local CPU Count": "LOCAL_CPU_COUNT",
    "Remote CPU Count": "REMOTE_CPU_COUNT",
    "Local Transport Retransmissions": "LOCAL_TRANSPORT_RETRANS",
    "Remote Transport Retransmissions": "REMOTE_TRANSPORT_RETRANS",
    "Transport MSS bytes": "TRANSPORT_MSS",
    "Request Size Bytes": "REQUEST_SIZE",
    "Response Size Bytes": "RESPONSE_SIZE",
}


@dataclass(frozen=True)
class Run:
    """One test in an output: its name as the banner gives it (TCP STREAM ...), or none, and its text."""

    test: str
    text: str


def commands(point: Settings) -> List[Command]:
    """netserver on the receiver, then netperf on the sender; both ways at once are two netperfs together.

    Of `point`, `sender`, `receiver` and `duration_s` are needed; `direction` (forward: netperf sends),
    `window_bytes` (0: the kernel's choice) and `congestion_control` have defaults. Raises FalloffError
    for what netperf cannot do: parallel streams, and a warm-up that is left out.
    """
    for setting, only in (("streams", 1), ("omit_s", 0)):
        if point.get(setting, only) != only:
            remedy = f"set it to {only}, or use iperf3"
            raise FalloffError(f"netperf cannot do {setting} = {point[setting]}: {remedy}")
    sender, receiver, limit = point["sender"], point["receiver"], point["duration_s"] + _MARGIN_S
    serve = ("netserver", "-D", "-4", "-p", str(PORT))
    server = Command(serve, node=receiver, timeout_s=limit, background=True, listens=PORT)
    *others, last = [
        Command(_netperf(point, test), node=sender, timeout_s=limit)
        for test in _TESTS[point.get("direction", "forward")]
    ]
    # What runs in the background ends with the trial: it is given the time to end by itself.
    wait = [Command(("sleep", str(_BEHIND_S)), node=sender, timeout_s=limit)] if others else []
    return [server, *(replace(other, background=True) for other in others), last, *wait]


def _netperf(point: Settings, test: str) -> tuple:
    argv = ["netperf", "-4", "-H", f"{{node{point['receiver']}}}", "-p", str(PORT), "-t", test]
    argv += ["-l", str(point["duration_s"]), "-c", "-C", "--", "-k", _ASKED_FOR]
    window, control = point.get("window_bytes"), point.get("congestion_control")
    if window:
        argv += ["-s", str(window), "-S", str(window)]
    if control:
        argv += ["-K", f"{control},{control}"]
    return tuple(argv)


def parse(transcript: Transcript) -> List[Reading]:
    """The readings of one trial: of the one netperf, or of the one that sent and the one that received.

    goodput [bit/s], retransmits and mss [B] are as `readings` gives them; both ways at once,
    goodput_reverse and retransmits_reverse are of the netperf that received. There is no CPU time of
    emulated nodes: netperf reads the whole machine's.
    """
    point = transcript.trial.point
    ran = [execution for execution in transcript.executions if execution.tool == "netperf"]
    if len(ran) != len(_TESTS[point.get("direction", "forward")]):
        raise Unreadable("netperf did not run in every direction that was asked for")
    found, *second = [_readings(execution.stdout, point) for execution in ran]
    for reading in second[0] if second else []:
        if reading.name in _EACH_WAY:
            found.append(replace(reading, name=f"{reading.name}_reverse"))
    wrong = (
        ("cpu_sender", "cpu_receiver", "cpu_source") if transcript.evidence == "emulated" else ()
    )
    return [reading for reading in found if reading.name not in wrong]


def _readings(text: str, point: Settings) -> List[Reading]:
    """The readings in the output of one netperf of a trial, after a check of what it did."""
    run = runs(text)[-1]
    found = fields(run)
    missing = [name for name in _ASKED_FOR.split(",") if name not in found]
    if missing:
        raise Unreadable(f"netperf did not print {', '.join(missing)}: its output is cut off")
    measured = readings(run)
    # Without a word netperf stops early when interrupted, and keeps the kernel's choice when refused another.
    if float(found["ELAPSED_TIME"]) < 0.99 * point.get("duration_s", 0):
        raise InvalidRun(f"netperf measured {found['ELAPSED_TIME']} s, not {point['duration_s']} s")
    ends = [found[name] for name in ("LSS_SIZE", "LSR_SIZE", "RSS_SIZE", "RSR_SIZE")]
    window, control = point.get("window_bytes", 0), point.get("congestion_control")
    if min(map(int, ends)) < window:
        raise InvalidRun(f"socket buffers are {', '.join(ends)} B, {window} was asked for")
    for used in (found["LOCAL_CONG_CONTROL"], found["REMOTE_CONG_CONTROL"]):
        if control and used != control:
            raise InvalidRun(f"netperf's congestion control is {used}, {control} was asked for")
    return measured


def results(text: str) -> List[Result]:
    """Every test in an output as a result, with its name and any warning about its confidence."""
    found = []
    for run in runs(text):
        settings = {"test": run.test} if run.test else {}
        warning = _WARNING.search(run.text)
        note = warning[1] if warning else ""
        found.append(attempt(lambda: readings(run), settings, note))
    return usable(found)


def runs(text: str) -> List[Run]:
    """The tests in an output, each up to the banner of the next; without a banner (-P 0), all as one."""
    if not text.strip():
        raise Unreadable("netperf printed nothing")
    banners = list(_BANNER.finditer(text))
    if not banners:
        return [Run("", text)]
    # Complaints may precede the first banner.
    borders = [0, *(banner.start() for banner in banners[1:]), len(text)]
    return [Run(banner[1], text[a:b]) for banner, a, b in zip(banners, borders, borders[1:])]


def readings(run: Run) -> List[Reading]:
    """What a test measured: goodput [bit/s], or transaction_rate [1/s] of a request/response test.

    netperf divides what the receiver counted by the time until it had all. Where they are printed:
    retransmits of the sender, mss [B], and the CPU: as shares of one core (cpu_sender, cpu_receiver) when
    the number of cores is printed too, else of the whole machine (machine_cpu_sender, machine_cpu_receiver).
    """
    if run.test.startswith("UDP") or re.search(r"^PROTOCOL=UDP", run.text, re.M):
        raise Unreadable("it is a test of UDP, whose throughput says nothing about TCP")
    found = fields(run)
    printed, unit = found["THROUGHPUT"].strip(), found["THROUGHPUT_UNITS"].strip()
    if not re.fullmatch(_NUMBER, printed):
        raise Unreadable(f"netperf's THROUGHPUT is not a number: {printed[:40]}")
    value, factor = float(printed), _UNITS.get(unit.replace("/s", ""))
    if value <= 0:
        raise Unreadable("netperf counted no data")
    words = f"{run.test} {found.get('DIRECTION', '')}".strip()
    if unit == "Trans/s":
        return [Reading("transaction_rate", value, "1/s")]
    if factor is None:
        raise Unreadable(f"netperf's unit {unit} is not one that can be trusted: use -f m")
    if value < _LEAST:
        raise Unreadable(f"netperf rounded {printed} {unit} too coarsely: use -f m or -f k")
    if "REQUEST/RESPONSE" in words or "Send|Recv" in words:
        return [Reading("transaction_rate", value * factor / _exchanged_bits(found), "1/s")]
    is_reversed = bool(re.search(r"MAERTS|Rec(?:v|eive)$", words))  # netserver sent
    sender, receiver = ("REMOTE", "LOCAL") if is_reversed else ("LOCAL", "REMOTE")
    if not words:  # nothing says which end sent
        return [Reading("goodput", value * factor, "bit/s")]
    cpu = [*_cpu(found, "sender", sender), *_cpu(found, "receiver", receiver)]
    has_source = any(reading.name.startswith("cpu_") for reading in cpu)
    return [
        Reading("goodput", value * factor, "bit/s"),
        *(Reading("retransmits", n, "1") for n in _known(found, f"{sender}_TRANSPORT_RETRANS", 0)),
        *(Reading("mss", size, "B") for size in _known(found, "TRANSPORT_MSS", 1)),
        *cpu,
        *([Reading("cpu_source", "tool", "")] if has_source else []),
    ]


def fields(run: Run) -> Dict[str, str]:
    """The fields of a test under the names that -k has for them, at least THROUGHPUT and THROUGHPUT_UNITS.

    A number counts only when something follows it: the last one of a cut output may lack digits.
    """
    found = _keyval(run.text) or _csv(run.text) or (_table(run.text) if run.test else {})
    if {"THROUGHPUT", "THROUGHPUT_UNITS"} <= set(found):
        return found
    complaint = _COMPLAINT.search(run.text)
    if complaint:
        raise Unreadable(f"netperf says: {complaint[0].strip()[:150]}")
    if found or not run.test:
        remedy = "leave out -P 0, or use -k"
        raise Unreadable(f"the output does not name the unit of the throughput: {remedy}")
    raise Unreadable("netperf's result is missing or cut off: the test did not reach its end")


def _exchanged_bits(found: Dict[str, str]) -> float:
    """Bits of a request and its response: in another unit than transactions netperf counts both (nettest_omni.c)."""
    sizes = [_known(found, name, 0) for name in ("REQUEST_SIZE", "RESPONSE_SIZE")]
    if not all(sizes) or not sum(size[0] for size in sizes):
        raise Unreadable("the sizes of request and response are missing: leave out -f")
    return 8 * sum(size[0] for size in sizes)


def _keyval(text: str) -> Dict[str, str]:
    """The fields of -k, which stand together; other lines such as NODES=4 may be a script's."""
    blocks = [_KEYVAL.findall(block[0]) for block in _KEYVALS.finditer(text)]
    pairs = [pair for block in blocks for pair in block if "THROUGHPUT" in dict(block)]
    if len(dict(pairs)) < len(set(pairs)):
        raise Unreadable("two values for one name: more than one netperf in one output")
    return dict(pairs)


def _csv(text: str) -> Dict[str, str]:
    lines = text.splitlines(keepends=True)
    for header, values in zip(lines, lines[1:]):
        if "Throughput" not in header or "," not in header:
            continue
        try:
            names, row = (next(csv.reader([line.strip()]), []) for line in (header, values))
        except csv.Error:  # a line far longer than any of netperf's
            continue
        if "Throughput" in names and len(names) == len(row) and values.endswith("\n"):
            return {
                _CSV_NAMES[name]: value for name, value in zip(names, row) if name in _CSV_NAMES
            }
    return {}


def _table(text: str) -> Dict[str, str]:
    """The fields of the classic tables; of -O only where the unit stands right of the throughput."""
    stream, exchange = _STREAM.search(text), _EXCHANGE.search(text)
    if stream:
        return _row(text, stream.end(), 3, f"{stream[1]}/s", with_cpu="%" in stream[2])
    if exchange:
        unit = "Trans/s" if exchange[1].lower() == "per sec" else f"{exchange[1].strip()}/s"
        found = _row(text, exchange.end(), 4, unit, with_cpu="%" in exchange[2])
        sizes = _ALONE.findall(text, exchange.end())[2:4]
        return {**found, **dict(zip(("REQUEST_SIZE", "RESPONSE_SIZE"), sizes))} if found else {}
    omni = _OMNI.search(text) if re.search(r"Throughput +Throughput", text) else None
    return {"THROUGHPUT": omni[1], "THROUGHPUT_UNITS": omni[2]} if omni else {}


def _row(text: str, begin: int, sizes: int, unit: str, with_cpu: bool) -> Dict[str, str]:
    """Socket and message sizes, then time and rate, then CPU and service demand of both ends."""
    count = sizes + 2 + (4 if with_cpu else 0)
    row = re.compile(rf"{_NUMBER}(?:[ \t]+{_NUMBER}){{{count - 1}}}[ \t]*\r?\n").match(text, begin)
    if not row:
        return {}
    names = ("ELAPSED_TIME", "THROUGHPUT", "LOCAL_CPU_UTIL", "REMOTE_CPU_UTIL")
    return {**dict(zip(names, row[0].split()[sizes:])), "THROUGHPUT_UNITS": unit}


def _cpu(found: Dict[str, str], role: str, end: str) -> List[Reading]:
    used, cores = _known(found, f"{end}_CPU_UTIL", 0), _known(found, f"{end}_CPU_COUNT", 1)
    if used and cores:
        return [Reading(f"cpu_{role}", used[0] / 100 * cores[0], "1")]
    return [Reading(f"machine_cpu_{role}", share / 100, "1") for share in used]


def _known(found: Dict[str, str], name: str, least: float) -> List[float]:
    """A field's number, or none where netperf has -1 for what it did not measure, or no number at all."""
    text = found.get(name, "").strip()
    return [float(text)] if re.fullmatch(_NUMBER, text) and float(text) >= least else []


RUNNER = Runner("netperf", commands, parse, results)
