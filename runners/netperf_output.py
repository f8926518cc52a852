"""What netperf prints: tables, key=value lines (-k) and CSV (-o) become the same fields, then readings.

Units are those of netperf's manual (Care and Feeding of Netperf 2.7, option -f): G, M and K are 2^30, 2^20
and 2^10 bytes/s, g, m and k are 10^9, 10^6 and 10^3 bits/s.
"""

import csv
import re
from dataclasses import dataclass
from typing import Dict, List

from runners.record import Reading, Result, Unreadable

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
_NUMBER = r"-?\d+(?:\.\d+)?"
_BANNER = re.compile(r"^[ \t]*(?:MIGRATED )?([A-Z][\w|/ ]*?) TEST (?:from|to) ", re.M)
_KEYVAL = re.compile(r"^[ \t]*([A-Z][A-Z_0-9]*)=([^\r\n]*)\r?\n", re.M)
_STREAM = re.compile(r"^[ \t]*bytes\s+bytes\s+bytes\s+secs\.\s+(\S+?)\s*/s(?:ec)?\b([^\n]*)\n\s*", re.M)
_EXCHANGE = re.compile(r"^[ \t]*bytes\s+bytes\s+bytes\s+bytes\s+secs\.\s+per sec\b([^\n]*)\n\s*", re.M | re.I)
_OMNI = re.compile(rf"^(?:.*\s)?({_NUMBER})[ \t]+(\S+/s)\s", re.M)
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
}


@dataclass(frozen=True)
class Run:
    """One test in an output: its name as the banner gives it (TCP STREAM ...), or none, and its text."""

    test: str
    text: str


def results(text: str) -> List[Result]:
    """Every test in an output as a result, with its name, direction and any warning about its confidence.

    Raises Unreadable when there is no test, or none that can be used: then with the first reason.
    """
    found, refusals = [], []
    for run in runs(text):
        try:
            found.append(Result(tuple(readings(run)), _settings(run)))
        except Unreadable as error:
            refusals.append(error)
            found.append(Result((), _settings(run), refused=str(error)))
    if len(refusals) == len(found):
        raise refusals[0]
    return found


def runs(text: str) -> List[Run]:
    """The tests in an output, each up to the banner of the next; without a banner (-P 0), all as one.

    Raises Unreadable when netperf printed nothing.
    """
    if not text.strip():
        raise Unreadable("netperf printed nothing")
    banners = list(_BANNER.finditer(text))
    if not banners:
        return [Run("", text)]
    borders = [0, *(banner.start() for banner in banners[1:]), len(text)]  # complaints may precede a banner
    return [Run(banner[1], text[a:b]) for banner, a, b in zip(banners, borders, borders[1:])]


def readings(run: Run) -> List[Reading]:
    """What a test measured: goodput [bit/s], or transaction_rate [1/s] of a request/response test.

    netperf divides what the receiver counted by the time until it had all. Where they are printed:
    retransmits of the sender, mss [B], and the CPU: as shares of one core (cpu_sender, cpu_receiver) when
    the number of cores is printed too, else of the whole machine (machine_cpu_sender, machine_cpu_receiver).
    Raises Unreadable with netperf's own reason when it gives one, otherwise with what is missing.
    """
    if run.test.startswith("UDP") or re.search(r"^PROTOCOL=UDP", run.text, re.M):
        raise Unreadable("it is a test of UDP, whose throughput says nothing about TCP")
    found = fields(run)
    value, unit = _number(found, "THROUGHPUT"), found["THROUGHPUT_UNITS"].strip()
    if value <= 0:
        raise Unreadable("netperf counted no data")
    if unit == "Trans/s":
        return [Reading("transaction_rate", value, "1/s")]
    factor = _UNITS.get(unit.replace("/s", ""))
    if factor is None:
        raise Unreadable(f"netperf's unit {unit} is not one that can be trusted: use -f m")
    if value < _LEAST:
        raise Unreadable(f"netperf rounded {found['THROUGHPUT']} {unit} too coarsely: use -f m or -f k")
    sender, receiver = ("REMOTE", "LOCAL") if _is_reversed(run, found) else ("LOCAL", "REMOTE")
    cpu = [*_cpu(found, "sender", sender), *_cpu(found, "receiver", receiver)]
    return [
        Reading("goodput", value * factor, "bit/s"),
        *(Reading("retransmits", count, "1") for count in _known(found, f"{sender}_TRANSPORT_RETRANS", 0)),
        *(Reading("mss", size, "B") for size in _known(found, "TRANSPORT_MSS", 1)),
        *cpu,
        *([Reading("cpu_source", "tool", "")] if any(r.name.startswith("cpu_") for r in cpu) else []),
    ]


def fields(run: Run) -> Dict[str, str]:
    """The fields of a test under the names that -k has for them, at least THROUGHPUT and THROUGHPUT_UNITS.

    A number counts only when something follows it: the last one of a cut output may lack digits.
    Raises Unreadable when the test has no such fields, or one of them twice with two values.
    """
    found = _keyval(run.text) or _csv(run.text) or (_table(run.text) if run.test else {})
    if {"THROUGHPUT", "THROUGHPUT_UNITS"} <= set(found):
        return found
    said = _COMPLAINT.search(run.text)
    if said:
        raise Unreadable(f"netperf says: {said[0].strip()[:150]}")
    if found or not run.test:
        raise Unreadable("the output does not name the unit of the throughput: leave out -P 0, or use -k")
    raise Unreadable("netperf's result is missing or cut off: the test did not reach its end")


def _keyval(text: str) -> Dict[str, str]:
    pairs = _KEYVAL.findall(text)
    if len(dict(pairs)) < len(set(pairs)):
        raise Unreadable("netperf's output has two values for one name: more than one test in one output")
    return dict(pairs)


def _csv(text: str) -> Dict[str, str]:
    lines = text.splitlines(keepends=True)
    for header, values in zip(lines, lines[1:]):
        names, row = (next(csv.reader([line.strip()]), []) for line in (header, values))
        if "Throughput" in names and len(names) == len(row) and values.endswith("\n"):
            return {_CSV_NAMES[name]: value for name, value in zip(names, row) if name in _CSV_NAMES}
    return {}


def _table(text: str) -> Dict[str, str]:
    """The fields of the classic tables; of -O only where the unit stands right of the throughput."""
    stream, exchange = _STREAM.search(text), _EXCHANGE.search(text)
    if stream:
        return _row(text, stream.end(), 3, f"{stream[1]}/s", with_cpu="%" in stream[2])
    if exchange:
        return _row(text, exchange.end(), 4, "Trans/s", with_cpu="%" in exchange[1])
    omni = _OMNI.search(text) if re.search(r"Throughput +Throughput", text) else None
    return {"THROUGHPUT": omni[1], "THROUGHPUT_UNITS": omni[2]} if omni else {}


def _row(text: str, begin: int, sizes: int, unit: str, with_cpu: bool) -> Dict[str, str]:
    """Socket and message sizes, then time and rate, then CPU and service demand of both ends."""
    count = sizes + 2 + (4 if with_cpu else 0)
    row = re.compile(rf"{_NUMBER}(?:[ \t]+{_NUMBER}){{{count - 1}}}[ \t]*\s").match(text, begin)
    if not row:
        return {}
    values = row[0].split()[sizes:]
    names = ("ELAPSED_TIME", "THROUGHPUT", "LOCAL_CPU_UTIL", "REMOTE_CPU_UTIL")
    return {**dict(zip(names, values)), "THROUGHPUT_UNITS": unit}


def _settings(run: Run) -> Dict[str, str]:
    warning = _WARNING.search(run.text)
    return {
        **({"test": run.test} if run.test else {}),
        **({"warning": warning[1]} if warning else {}),
    }


def _is_reversed(run: Run, found: Dict[str, str]) -> bool:
    """Whether netserver sent and netperf received."""
    return bool(re.search(r"MAERTS|Rec(?:v|eive)$", f"{run.test} {found.get('DIRECTION', '')}".strip()))


def _cpu(found: Dict[str, str], role: str, end: str) -> List[Reading]:
    used, cores = _known(found, f"{end}_CPU_UTIL", 0), _known(found, f"{end}_CPU_COUNT", 1)
    if used and cores:
        return [Reading(f"cpu_{role}", used[0] / 100 * cores[0], "1")]
    return [Reading(f"machine_cpu_{role}", share / 100, "1") for share in used]


def _known(found: Dict[str, str], name: str, least: float) -> List[float]:
    """A field's number, or none where netperf has -1 for what it did not measure, or no number at all."""
    text = found.get(name, "").strip()
    return [float(text)] if re.fullmatch(_NUMBER, text) and float(text) >= least else []


def _number(found: Dict[str, str], name: str) -> float:
    if not re.fullmatch(_NUMBER, found[name].strip()):
        raise Unreadable(f"netperf's {name} is not a number: {found[name].strip()[:40]}")
    return float(found[name])
