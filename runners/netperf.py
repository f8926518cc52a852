"""netperf: the goodput of TCP streams and the rate of transactions; only read, never run from here.

Read are its classic tables and key=value lines (-k). Units are those of netperf's manual (Care and Feeding of Netperf
2.7, option -f): G, M and K are 2^30, 2^20 and 2^10 bytes/s, g, m and k are 10^9, 10^6 and 10^3 bits/s.
"""

import re
from typing import Dict, List

from runners.parsing import attempt, only_read, parts, usable
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
# Lengths are limited, so that no damaged row makes a number beyond what float can hold.
_NUMBER = r"-?\d{1,15}(?:\.\d{1,9})?"
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
_WARNING = re.compile(r"^[ \t]*!!! (Desired confidence was not achieved)", re.M)
_COMPLAINT = re.compile(r"^(?:netperf|netserver|[a-z]+[_ ][a-z_]+): .*", re.M)
_MISSING = (
    "no throughput with its unit is here: the test was stopped or its output cut off, "
    "or it is of -P 0, -o or -O, for which use -k"
)


def results(text: str) -> List[Result]:
    """Every test in an output as a result, with its name and any warning about its confidence.

    goodput [bit/s] is what the receiver counted over the time until it had all; a request/response test has
    transaction_rate [1/s]. Raises Unreadable when no test can be used.
    """
    if not text.strip():
        raise Unreadable("netperf printed nothing")
    found = []
    tests = [(banner[1], test) for banner, test in parts(text, _BANNER)]
    for name, test in tests or [("", text)]:  # without a banner: -P 0
        settings, warning = {"test": name} if name else {}, _WARNING.search(test)
        note = warning[1] if warning else ""
        found.append(attempt(lambda: [_reading(name, test)], settings, note))
    return usable(found)


def _reading(name: str, text: str) -> Reading:
    """What one test measured."""
    if name.startswith("UDP") or re.search(r"^PROTOCOL=UDP", text, re.M):
        raise Unreadable("it is a test of UDP, whose throughput says nothing about TCP")
    found = _keyval(text) or _table(text)
    if not {"THROUGHPUT", "THROUGHPUT_UNITS"} <= set(found):
        complaint = _COMPLAINT.search(text)
        said = f"netperf says: {complaint[0].strip()[:150]}" if complaint else _MISSING
        raise Unreadable(said)
    printed, unit = found["THROUGHPUT"].strip(), found["THROUGHPUT_UNITS"].strip()
    if not re.fullmatch(_NUMBER, printed):
        raise Unreadable(f"netperf's THROUGHPUT is not a number: {printed[:40]}")
    value, factor = float(printed), _UNITS.get(unit.replace("/s", ""))
    if value <= 0:
        raise Unreadable("netperf counted no data")
    if unit == "Trans/s":
        return Reading("transaction_rate", value, "1/s")
    if factor is None:
        raise Unreadable(f"netperf's unit {unit} is not one that can be trusted: use -f m")
    if value < _LEAST:
        raise Unreadable(f"netperf rounded {printed} {unit} too coarsely: use -f m or -f k")
    if "REQUEST/RESPONSE" in name or "Send|Recv" in found.get("DIRECTION", ""):
        raise Unreadable(f"netperf's unit of transactions is {unit}: leave out -f")
    return Reading("goodput", value * factor, "bit/s")


def _keyval(text: str) -> Dict[str, str]:
    """The fields of -k, which stand together; other lines such as NODES=4 may be a script's."""
    blocks = [_KEYVAL.findall(block[0]) for block in _KEYVALS.finditer(text)]
    pairs = [pair for block in blocks for pair in block if "THROUGHPUT" in dict(block)]
    if len(dict(pairs)) < len(set(pairs)):
        raise Unreadable("two values for one name: more than one netperf in one output")
    return dict(pairs)


def _table(text: str) -> Dict[str, str]:
    """The fields of the classic tables, under the names of -k: of streams three sizes, of exchanges four, then time
    and rate, and perhaps CPU and service demand of both ends.

    The row ends with a line's end: the last number of a cut output may lack digits.
    """
    headings, sizes = _STREAM.search(text), 3
    if not headings:
        headings, sizes = _EXCHANGE.search(text), 4
    if not headings:
        return {}
    count = sizes + 2 + (4 if "%" in headings[2] else 0)
    row = re.compile(rf"{_NUMBER}(?:[ \t]+{_NUMBER}){{{count - 1}}}[ \t]*\r?\n")
    numbers = row.match(text, headings.end())
    if not numbers:
        return {}
    cells = numbers[0].split()
    is_rate = headings[1].lower() == "per sec"
    return {
        "THROUGHPUT": cells[sizes + 1],
        "THROUGHPUT_UNITS": "Trans/s" if is_rate else f"{headings[1].strip()}/s",
    }


RUNNER = only_read("netperf", results)
