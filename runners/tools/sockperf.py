"""sockperf: half the round trip of small messages over TCP, with its percentiles (ping-pong and
under-load of sockperf 3.x).
"""

import re
from typing import Any

from runners.outputs import absent
from runners.parsing import ENDS, REQUEST, TEST, attempt, parts, usable, without_labels
from runners.records.description_rules import COUNT, POSITIVE
from runners.records.record import (
    Command,
    Contradictory,
    Cut,
    Failed,
    Mark,
    Quantity,
    Readings,
    Result,
    Settings,
    Tool,
    Unsupported,
)

PORT = 5211
# The server needs to start, and the client warms up and waits for late replies.
_MARGIN_S = 20.0

_PROTOCOL = re.compile(r"^\[ *\d+\] IP = .* # (TCP|UDP)", re.M)
_TITLE = re.compile(r"^sockperf: == version #(\d[\w.]*?)(?:[-+~]\S*)? ==", re.M)
_COMMAND = re.compile(r"\bsockperf +(ping-pong|pp|under-load|ul)\b(.*)")
_SIZE = re.compile(r" (?:-m|--msg-size)[ =]*(\d{1,6})\b")
_TESTS = {"pp": "ping-pong", "ul": "under-load"}
_NUMBER = r"(\d{1,12}\.\d{1,9})"
_MEAN = re.compile(rf"====> avg-(?:lat|latency|rtt)= *{_NUMBER}")
_SUMMARY = re.compile(rf"^sockperf: Summary: (?:Latency|Round trip) is {_NUMBER} usec$", re.M)
_COUNTS = re.compile(
    r"^sockperf: \[Valid Duration\] .*SentMessages=(\d{1,15}); ReceivedMessages=(\d{1,15})$", re.M
)
_LOST = re.compile(r"^sockperf: # dropped messages = (\d{1,15});", re.M)
_TOTAL = re.compile(r"^sockperf: Total (\d{1,15}) observations;", re.M)
_PLACE = re.compile(
    r"^sockperf: ---> (?:percentile (\d{1,2}\.\d{3}) =|<(MAX|MIN)> observation =) +"
    rf"{_NUMBER}\n",
    re.M,
)
_RATE = re.compile(r"^sockperf: Summary: Message Rate is ", re.M)
_ERROR = re.compile(r"sockperf: ERROR: (.+)$", re.M)
_PERCENTILES = {"50.000": "_p50", "99.000": "_p99", "99.900": "_p999"}


def commands(point: Settings) -> list[Command]:
    """A server on the receiver, and messages of `request_bytes` back and forth from the sender for
    `duration_s` seconds.
    """
    address, limit = f"{{node{point['receiver']}}}", point["duration_s"] + _MARGIN_S
    to = ("--tcp", "-i", address, "-p", str(PORT))
    serve = Command(
        ("sockperf", "server", *to),
        node=point["receiver"],
        timeout_s=limit,
        background=True,
        listens=PORT,
    )
    size = ("-t", str(point["duration_s"]), "-m", str(point["request_bytes"]))
    ask = Command(("sockperf", "ping-pong", *to, *size), node=point["sender"], timeout_s=limit)
    return [serve, ask]


def results(text: str) -> list[Result]:
    """One result for each run in an output, with its `version`, and the test and the size of its
    messages [B] where the command line above it states them: the mean, three percentiles and the
    largest of half the round trips [s], and the share of messages that were lost. Raises Unreadable
    when no run can be used."""
    text = without_labels(text)
    runs, above = [], 0
    for title, body in parts(text, _TITLE):
        settings: dict[str, Any] = {"version": title[1]}
        if protocol := _PROTOCOL.search(body):
            settings["protocol"] = protocol[1]
        # The last command line above an output states its test and the size of its messages.
        for test, options in _COMMAND.findall(text[above : title.start()])[-1:]:
            settings["test"] = _TESTS.get(test, test)
            if size := _SIZE.search(options):
                settings["request_bytes"] = int(size[1])
        above = title.end()
        runs.append(attempt(lambda: _readings(body), settings))
    if not runs:
        raise absent("sockperf", text, "an output of sockperf")
    return usable(runs, "an output of sockperf without a usable result: ")


def _readings(run: str) -> Readings:
    summary, mean = _SUMMARY.findall(run), _MEAN.findall(run)
    if _RATE.search(run):
        raise Unsupported("sockperf's throughput test is not read, only ping-pong and under-load")
    if not summary:
        if re.search(r"^sockperf: Summary:.*\n", run, re.M):
            raise Unsupported("written with options or a version whose summary is not read")
        if "sockperf: [SERVER] listen on" in run:
            raise Unsupported("the output of sockperf's server has no times: give the client's")
        error = _ERROR.search(run)
        if error:
            raise Failed(f"sockperf says: {error[1].strip()[:100]}")
        raise Cut("sockperf's summary is missing: the run was stopped or its output cut off")
    counts, lost, total = (pattern.findall(run) for pattern in (_COUNTS, _LOST, _TOTAL))
    rows = [(percentile or end, float(time)) for percentile, end, time in _PLACE.findall(run)]
    places = dict(rows)
    if len(places) < len(rows):
        raise Contradictory("two values for one percentile: runs of sockperf are mixed")
    if "MIN" not in places:
        raise Cut("sockperf's last line, of the least observation, is missing")
    if any(len(matches) != 1 for matches in (summary, mean, counts, lost, total)):
        raise Contradictory("sockperf prints each of its counts once: lines are missing or mixed")
    if summary != mean:
        raise Contradictory(f"sockperf's mean is {mean[0]} and {summary[0]} us")
    sent, received, observed = (int(number) for number in (*counts[0], total[0]))
    if observed == 0:
        raise Failed("sockperf got no reply in the time that counts")
    if not observed <= received <= sent:
        raise Contradictory(f"{observed} observations of {received} replies to {sent} messages")
    if "MAX" not in places:
        raise Contradictory("sockperf's largest observation is missing, smaller ones are there")
    middle = sorted(places.keys() - {"MIN", "MAX"}, key=float)
    ascending = [places[name] for name in ("MIN", *middle, "MAX")]
    if ascending != sorted(ascending):
        raise Contradictory("sockperf's percentiles do not ascend")
    half = float(mean[0])
    if not places["MIN"] <= half <= places["MAX"]:
        raise Contradictory(f"sockperf's mean of {half} us is not between its extremes")
    if int(lost[0]) > sent:
        raise Contradictory(f"{lost[0]} of {sent} messages were dropped")
    times = {"": half, "_max": places["MAX"]}
    times |= {ours: places[theirs] for theirs, ours in _PERCENTILES.items() if theirs in places}
    share = 0.5 if "====> avg-rtt" in run else 1  # --full-rtt: there and back
    readings = {f"half_round_trip{name}": time * share / 1e6 for name, time in times.items()}
    return {**readings, "messages_lost": int(lost[0]) / sent}


TOOL = Tool(
    "sockperf",
    commands,
    results,
    settings={
        "sender": COUNT,
        "receiver": COUNT,
        "request_bytes": COUNT,
        "duration_s": POSITIVE,
    },
    readings={
        "half_round_trip": Quantity("mean half round trip of a message", "s"),
        "half_round_trip_p50": Quantity("median half round trip of a message", "s"),
        "half_round_trip_p99": Quantity(
            "half round trip that 99 % of the messages do not exceed", "s"
        ),
        "half_round_trip_p999": Quantity(
            "half round trip that 99.9 % of the messages do not exceed", "s"
        ),
        "half_round_trip_max": Quantity("largest half round trip of a message", "s"),
        "messages_lost": Quantity("share of the messages without a reply", "1"),
    },
    factors={**ENDS, **REQUEST, **TEST, "protocol": Quantity("transport protocol")},
    marks=(Mark(r"^sockperf: (?:\x1b\[[\d;]*m)?== version #", "an output of sockperf"),),
    result_line=r"^.*Summary: Latency.*$",
    packages=("sockperf",),
    seconds=lambda point, testbed: point.get("duration_s", 0),  # but for its warm-up
)
