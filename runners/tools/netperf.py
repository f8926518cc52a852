"""netperf: the goodput of TCP streams and the rate of transactions; only read, never run from here.

Read are its classic tables and key=value lines (-k). Units are those of netperf's manual (Care and
Feeding of Netperf 2.7, option -f): G, M and K are 2^30, 2^20 and 2^10 bytes/s, g, m and k are 10^9,
10^6 and 10^3 bits/s.
"""

import re
from contextlib import suppress
from typing import Any, Optional

from runners.outputs import absent
from runners.parsing import GOODPUT, REQUEST, TEST, attempt, only_read, parts, usable
from runners.records.record import (
    Contradictory,
    Cut,
    Failed,
    Mark,
    Quantity,
    Readings,
    Result,
    Unreadable,
    Unsupported,
)

# bit/s in each unit of throughput. Not here: 2.7.0 with -f b prints bytes/s and calls them
# 10^0bits/s.
_UNITS = {
    "10^3bits": 1e3,
    "10^6bits": 1e6,
    "10^9bits": 1e9,
    "Bytes": 8,
    "KBytes": 8 * 2**10,
    "MBytes": 8 * 2**20,
    "GBytes": 8 * 2**30,
}
_SIZES = {
    "REQUEST_SIZE": "request_bytes",
    "RESPONSE_SIZE": "response_bytes",
    "LOCAL_SEND_SIZE": "send_bytes",
}
_LEAST = 1.0  # netperf prints two decimals: below it they are too few for 0.5 %
# Lengths are limited, so that no damaged row makes a number beyond what float can hold.
_NUMBER = r"-?\d{1,15}(?:\.\d{1,9})?"
_BANNER = re.compile(r"^[ \t]*(?:MIGRATED )?([A-Z][\w|/ ]*?) TEST (?:from|to) ", re.M)
_SIZES_HEADING = re.compile(r"^[ \t]*(?:bytes[ \t]+){3,4}secs\.", re.M | re.I)
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
_COMPLAINT = re.compile(
    r"^(?:netperf|netserver"
    r"|(?:establish|resolve|recv|send|create|connect|shutdown|remote)[_ ][a-z_]+): .*",
    re.M,
)
# The first line of a classic table's headings.
_CLASSIC = re.compile(r"^[ \t]*(?:Recv +Send|Local */Remote|Send +Recv)\b", re.M)
# What of a line below the banner is in every form: numbers or nothing, a warning, a field of -k.
_OWN_LINE = re.compile(r"[\d.\s-]*$|\s*(?:!!!|[A-Z][A-Z_0-9]*(?:\[\d+\])?=)")
_OTHER_FORM = "no throughput with its unit is here, as with -P 0, -o or -O: use -k"


def results(text: str) -> list[Result]:
    """Every test in an output as a result, with its name and any warning about its confidence.

    goodput [bit/s] is what the receiver counted over the time until it had all; a request/response
    test has transaction_rate [1/s]. Raises Unreadable when no test can be used.
    """
    if not text.strip():
        raise Cut("netperf printed nothing")
    tests = []
    # Complaints may precede the first banner, and with -P 0 there is none.
    for test in [test for _, test in parts(text, _BANNER, _SIZES_HEADING)] or [text]:
        banner, warning = _BANNER.search(test), _WARNING.search(test)
        name = banner[1] if banner else ""
        settings: dict[str, Any] = {}
        if name:
            settings["test"] = re.sub(r"[|/]", "-", name)  # a word of a dataset has neither
        with suppress(Unreadable):  # whose reason is the result's
            fields = _keyval(test) or _table(test)
            sizes = ((ours, fields.get(theirs, "").strip()) for theirs, ours in _SIZES.items())
            settings.update((ours, int(size)) for ours, size in sizes if size.isdecimal())
        note = warning[1] if warning else ""
        tests.append(attempt(lambda: _readings(name, test), settings, note))
    return usable(tests)


def _readings(name: str, text: str) -> Readings:
    """What one test measured."""
    if name.startswith("UDP") or re.search(r"^PROTOCOL=UDP", text, re.M):
        raise Unsupported("it is a test of UDP, whose throughput says nothing about TCP")
    fields = _keyval(text) or _table(text)
    if not {"THROUGHPUT", "THROUGHPUT_UNITS"} <= set(fields):
        raise _without_throughput(text)
    printed, unit = fields["THROUGHPUT"].strip(), fields["THROUGHPUT_UNITS"].strip()
    if not re.fullmatch(_NUMBER, printed):
        raise Contradictory(f"netperf's THROUGHPUT is not a number: {printed[:40]}")
    value, factor = float(printed), _UNITS.get(unit.replace("/s", ""))
    if value <= 0:
        raise Failed("netperf counted no data")
    if unit == "Trans/s":
        return {"transaction_rate": value}
    if factor is None:
        raise Unsupported(f"netperf's unit {unit} is not one that can be trusted: use -f m")
    if value < _LEAST:
        raise Unsupported(f"netperf rounded {printed} {unit} too coarsely: use -f m or -f k")
    if "REQUEST/RESPONSE" in name or "Send|Recv" in fields.get("DIRECTION", ""):
        return {"transaction_rate": value * factor / _exchanged_bits(fields)}
    return {"goodput": value * factor}


def _without_throughput(text: str) -> Unreadable:
    """Why a test has no throughput with its unit."""
    complaint = _COMPLAINT.search(text)
    if complaint:
        return Failed(f"netperf says: {complaint[0].strip()[:150]}")
    cut = Cut("no throughput with its unit is here: the test was stopped or its output cut off")
    headings, count = _headings(text)
    if headings:
        row, end, _ = text[headings.end() :].partition("\n")
        if end and len(row.split()) >= count:
            return Contradictory(f"netperf's row is not of its headings: {row.strip()[:80]}")
        return cut
    banner = _BANNER.search(text)
    if not banner and not _KEYVAL.search(text):
        if text.strip() and not re.search(r"[^\d.\s]", text):
            return Unsupported(_OTHER_FORM)
        return absent("netperf", text, "an output of netperf")
    lines = text[banner.start() :].split("\n")[1:-1] if banner else []
    is_other = any(not _OWN_LINE.match(line) for line in lines)
    return Unsupported(_OTHER_FORM) if is_other and not _CLASSIC.search(text) else cut


def _exchanged_bits(fields: dict[str, str]) -> float:
    """Bits of a request and its response: in another unit than transactions netperf counts both
    (nettest_omni.c).
    """
    sizes = [fields.get(name, "").strip() for name in ("REQUEST_SIZE", "RESPONSE_SIZE")]
    if not all(re.fullmatch(r"\d{1,12}", size) for size in sizes) or not sum(map(int, sizes)):
        raise Unsupported("the sizes of request and response are missing: leave out -f")
    return 8 * sum(map(int, sizes))


def _keyval(text: str) -> dict[str, str]:
    """The fields of -k, which stand together; other lines such as NODES=4 may be a script's."""
    blocks = [_KEYVAL.findall(block[0]) for block in _KEYVALS.finditer(text)]
    pairs = [pair for block in blocks if "THROUGHPUT" in dict(block) for pair in block]
    if len(dict(pairs)) < len(set(pairs)):
        raise Contradictory("two values for one name: more than one netperf in one output")
    return dict(pairs)


def _headings(text: str) -> tuple[Optional[re.Match[str]], int]:
    """The last line of a classic table's headings, if it is there, and how many numbers the row
    below it has.
    """
    headings, count = _STREAM.search(text), 5
    if not headings:
        headings, count = _EXCHANGE.search(text), 6
    return headings, count + (4 if headings and "%" in headings[2] else 0)


def _table(text: str) -> dict[str, str]:
    """The fields of the classic tables, under the names of -k: of streams three sizes, of exchanges
    four, then time and rate, and perhaps CPU and service demand of both ends.

    The row ends with a line's end: the last number of a cut output may lack digits.
    """
    headings, count = _headings(text)
    if not headings:
        return {}
    sizes = 3 if headings.re is _STREAM else 4
    row = re.compile(rf"{_NUMBER}(?:[ \t]+{_NUMBER}){{{count - 1}}}[ \t]*\r?\n")
    numbers = row.match(text, headings.end())
    if not numbers:
        return {}
    cells = numbers[0].split()
    is_rate = headings[1].lower() == "per sec"
    fields = {
        "THROUGHPUT": cells[sizes + 1],
        "THROUGHPUT_UNITS": "Trans/s" if is_rate else f"{headings[1].strip()}/s",
    }
    names = ("REQUEST_SIZE", "RESPONSE_SIZE") if sizes == 4 else ("LOCAL_SEND_SIZE",)
    return {**fields, **dict(zip(names, cells[2:]))}


TOOL = only_read(
    "netperf",
    results,
    readings={
        **GOODPUT,
        "transaction_rate": Quantity("requests that were answered", "1/s"),
    },
    factors={
        **TEST,
        **REQUEST,
        "response_bytes": Quantity("size of the answers to requests", "B"),
        "send_bytes": Quantity("bytes that are given to the kernel at once", "B"),
    },
    marks=(
        Mark(
            r"^[ \t]*(?:MIGRATED )?(?:TCP|UDP|SCTP|OMNI) .*TEST (?:from|to) ",
            "an output of netperf",
        ),
    ),
)
