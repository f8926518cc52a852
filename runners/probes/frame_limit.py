#!/usr/bin/env python3
"""The largest frame that a path carries, by bisection with echo requests that must not be
fragmented.

usage: frame_limit ADDRESS LEAST MOST REQUESTS   (payloads in bytes, requests of a batch)

Each payload is tried with batches of requests until more than half of all were answered
(`carried`), none of the first batch was, or five batches leave it `unclear`, which ends the search.
A payload that was not carried failed at the `local` interface's MTU, at a `router` that reported
it, or by `silent` loss. A reply is as large as its request, so a switch that drops frames silently
does so in either direction. Linux may fragment replies, however, so a router on the way back is
only seen from the other end.
"""

import json
import os
import re
import subprocess
import sys
from typing import Any, Callable, NamedTuple

CARRIED, LOCAL, ROUTER, SILENT, UNCLEAR = "carried", "local", "router", "silent", "unclear"

_ICMP_HEADER = 8  # ping counts these bytes in a reply, like those of the payload

_BATCHES = 5
_INTERVAL_S = (
    "0.02"  # as in runners/tools/ping.py: one reply is back before the next request leaves
)
# for replies to the last request; ping also tries so long when the interface's queue is full
_WAIT_S = "1"

_REPLY = re.compile(r"^((\d+) bytes from \S+ icmp_seq=(\d+) .*)$", re.M)
_SENT = re.compile(r"^(\d+) packets transmitted, ", re.M)
_COMPLAINT = re.compile(r"^(?:ping: |From ).*$", re.M)
# Lost in the sender's own queue: counts as a loss.
_FULL = "ping: sendmsg: No buffer space available"
_TOO_LONG = re.compile(r"ping: local error: [Mm]essage too long, mtu=(\d+)$")
_NEEDED = re.compile(r"From \S+(?: \(\S+\))? icmp_seq=\d+ Frag needed and DF set \(mtu = \d+\)$")


class Unusable(Exception):
    """Why nothing can be measured here, in a sentence."""


class Try(NamedTuple):
    """A payload [B], its requests and complete replies, the outcome, and ping's first error
    message."""

    payload: int
    requests: int
    replies: int
    outcome: str
    said: str = ""


def read(output: str, payload: int, mtu: int) -> Try:
    """Parse ping's output (stdout, then stderr) for a batch; raises Unusable if the batch was not
    sent.

    A reply counts, once, if it is as long as its request. `mtu` is the interface's. A lower MTU in
    the output was reported to the kernel by a router earlier, or belongs to the route.
    """
    summary = _SENT.search(output)
    replies = _REPLY.findall(output)
    complaints = [line for line, size, _ in replies if int(size) != payload + _ICMP_HEADER]
    complaints += _COMPLAINT.findall(output)
    message = complaints[0] if complaints else ""
    if not summary or not int(summary[1]):
        raise Unusable(message or "ping's summary is missing")
    requests = int(summary[1])
    whole = len({sequence for _, size, sequence in replies if int(size) == payload + _ICMP_HEADER})
    if 2 * whole > requests:
        return Try(payload, requests, whole, CARRIED)
    faults = {_fault(complaint, mtu) for complaint in complaints}
    outcome = next((fault for fault in (UNCLEAR, ROUTER, LOCAL) if fault in faults), SILENT)
    return Try(payload, requests, whole, UNCLEAR if whole else outcome, message)


def _fault(complaint: str, mtu: int) -> str:
    """Where a request was lost, according to one of ping's error messages."""
    if complaint == _FULL:
        return SILENT
    too_long = _TOO_LONG.match(complaint)
    if too_long:
        return LOCAL if int(too_long[1]) >= mtu else ROUTER
    return ROUTER if _NEEDED.match(complaint) else UNCLEAR


def attempt(send: Callable[[int], Try], payload: int) -> Try:
    """Call `send` for batches until a payload is carried or not, or is `unclear` after five."""
    requests = replies = 0
    for _ in range(_BATCHES):
        batch = send(payload)
        requests, replies = requests + batch.requests, replies + batch.replies
        if 2 * replies > requests:
            return Try(payload, requests, replies, CARRIED)
        if not replies:
            return batch
    return Try(payload, requests, replies, UNCLEAR, batch.said)


def search(send: Callable[[int], Try], least: int, most: int) -> list[Try]:
    """The tries, in order, that find the largest payload from `least` to `most` that is carried.

    They end early if `least` is not carried, `most` is carried, or a payload stays unclear.
    """
    tries = [attempt(send, least)]
    if tries[0].outcome != CARRIED:
        return tries
    tries.append(attempt(send, most))
    while tries[-1].outcome != UNCLEAR and most - least > 1 and tries[1].outcome != CARRIED:
        middle = (least + most) // 2
        tries.append(attempt(send, middle))
        if tries[-1].outcome == CARRIED:
            least = middle
        else:
            most = middle
    return tries


def source_towards(address: str) -> tuple[str, int]:
    """The address and the MTU [B] of the interface through which this node reaches an address;
    raises Unusable if it cannot."""
    (route,) = _ip("route", "get", address)
    (link,) = _ip("link", "show", "dev", route["dev"])
    return route["prefsrc"], link["mtu"]


def _ip(*words: str) -> list[dict]:
    done = _run(["ip", "-json", *words], "iproute2")
    if done.returncode:
        raise Unusable(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def version() -> str:
    """ping's version; raises Unusable unless it is that of iputils, which can forbid fragments."""
    answer = _ping(["-V"])
    if "iputils" not in answer:
        raise Unusable("this needs the ping of iputils, which can forbid fragments: install it")
    return answer.splitlines()[0].split(",")[-1].replace("ping from", "").strip()


def _ping(arguments: list[str]) -> str:
    done = _run(["ping", *arguments], "iputils")
    return done.stdout + done.stderr


def _run(argv: list[str], package: str) -> Any:
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        return subprocess.run(argv, capture_output=True, text=True, env=environment)
    except FileNotFoundError:
        raise Unusable(f"{argv[0]} is not on PATH: install {package}") from None


def table(tries: list[Try]) -> str:
    """The lines of a table, including headings."""
    rows = ["{:7} {:9} {:8}  {:7}  {}".format(*entry).rstrip() for entry in tries]
    return "\n".join(["payload  requests  replies  outcome  said", *rows])


def main(words: list[str]) -> None:
    """Search and print the table; raises Unusable if nothing can be measured."""
    try:
        address, least, most, requests = words[0], *map(int, words[1:])
    except (ValueError, IndexError):
        raise Unusable("usage: frame_limit ADDRESS LEAST MOST REQUESTS") from None
    if not 0 <= least < most <= 65507 or requests < 1:
        raise Unusable(
            "payloads are from 0 to 65507 bytes, LEAST below MOST, and REQUESTS at least 1"
        )
    ping, (source, mtu) = version(), source_towards(address)
    options = ["-4", "-n", "-M", "do", "-c", str(requests), "-i", _INTERVAL_S, "-W", _WAIT_S]

    def send(payload: int) -> Try:
        return read(_ping([*options, "-s", str(payload), address]), payload, mtu)

    print(
        f"frame_limit: {source} to {address}, payloads from {least} to {most} B, "
        f"{requests} requests a batch, interface MTU {mtu} B, {ping}"
    )
    print(table(search(send, least, most)))
    print("end of frame_limit")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Unusable as reason:
        sys.exit(f"frame_limit: {reason}")
