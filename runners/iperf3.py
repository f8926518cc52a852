"""iperf3: the goodput of TCP streams between two nodes, one way, reversed or both ways at once."""

from typing import Any, Dict, List, Optional

from runners import iperf3_output
from runners.record import Command, InvalidRun, Reading, Runner, Settings, Transcript, Unreadable, mismatch

PORT = 5201

# Connecting, and the exchange of results at the end.
_MARGIN_S = 15.0

_DIRECTIONS = {"forward": (), "reverse": ("--reverse",), "both": ("--bidir",)}


def commands(point: Settings) -> List[Command]:
    """A server for one test on the receiver, then the client on the sender; both report in JSON.

    Of `point`, `sender`, `receiver` and `duration_s` are needed; `direction` (forward: the client sends),
    `streams`, `omit_s`, `window_bytes` (0: the kernel's choice), `congestion_control` and `in_quota` are
    iperf3's or the testbed's own choice where they are absent. Both ways at once needs iperf3 3.7 or later.
    """
    in_quota = point.get("in_quota", True)
    limit = point["duration_s"] + point.get("omit_s", 0) + _MARGIN_S
    server = ("iperf3", "--server", "--one-off", "--json", "--port", str(PORT))
    address = f"{{node{point['receiver']}}}"
    client = ("iperf3", "--client", address, "--json", "--port", str(PORT), "--time", str(point["duration_s"]))
    return [
        Command(
            server, node=point["receiver"], timeout_s=limit, background=True, listens=PORT, in_quota=in_quota
        ),
        Command(client + _options(point), node=point["sender"], timeout_s=limit, in_quota=in_quota),
    ]


def _options(point: Settings) -> tuple:
    values = {
        "--parallel": point.get("streams"),
        "--omit": point.get("omit_s"),
        "--window": point.get("window_bytes"),
        "--congestion": point.get("congestion_control"),
    }
    chosen = (word for option, value in values.items() if value for word in (option, str(value)))
    return (*_DIRECTIONS[point.get("direction", "forward")], *chosen)


def parse(transcript: Transcript) -> List[Reading]:
    """The readings of one trial (see `iperf3_output.readings`), from the reports of both its ends.

    Raises Unreadable as they do, and InvalidRun when the client's report is one of other settings.
    """
    server, client = (
        [execution for execution in transcript.executions if ("--server" in execution.argv) is serves]
        for serves in (True, False)
    )
    reports = iperf3_output.reports(client[-1].stdout)
    if len(reports) > 1:
        raise Unreadable("more than one iperf3 report in one output")
    found = iperf3_output.readings(reports[0], _report(server[-1].stdout) if server else None)
    made = {"protocol": "TCP", **iperf3_output.settings(reports[0])}
    asked = {name: value for name, value in transcript.trial.point.items() if name in iperf3_output.COMPARABLE}
    faults = mismatch({"protocol": "TCP", **asked}, made)
    if faults:
        raise InvalidRun("; ".join(faults))
    return found


def _report(text: str) -> Optional[Dict[str, Any]]:
    """The server's report, or None: what is lost with it are readings that the client does not have."""
    try:
        return iperf3_output.reports(text)[0]
    except Unreadable:
        return None


RUNNER = Runner("iperf3", commands, parse, iperf3_output.results)
