"""iperf3: the goodput of TCP streams between two nodes, one way, reversed or both ways at once."""

from dataclasses import replace
from typing import Any, Dict, List, Optional

from runners import iperf3_output
from runners.record import Command, Execution, InvalidRun, Reading, Runner, Settings, Transcript, Unreadable, mismatch

PORT = 5201

# Connecting, and the exchange of results at the end.
_MARGIN_S = 15.0

# The data flow from the client to the server, or the other way. Both ways at once are two programs at each end, as
# iperf3's own --bidir sends and receives in one thread: at an MTU of 1500 one way then stalled the other.
_CLIENTS = {"forward": ((),), "reverse": (("--reverse",),), "both": (("--reverse",), ())}
_EACH_WAY = ("goodput", "retransmits")
_OTHER_END = {"cpu_sender": "cpu_receiver", "cpu_receiver": "cpu_sender"}  # who sends one way receives the other
_BEHIND_S = 1  # by which the client in the background may end later than the other


def commands(point: Settings) -> List[Command]:
    """A server for one test on the receiver, then the client on the sender; both report in JSON.

    Both ways at once there are two servers, and two clients together. Of `point`, `sender`, `receiver` and
    `duration_s` are needed; `direction` (forward: the client sends), `streams`, `omit_s`, `window_bytes` (0: the
    kernel's choice) and `congestion_control` are iperf3's or the testbed's own choice where they are absent.
    """
    limit = point["duration_s"] + point.get("omit_s", 0) + _MARGIN_S

    def on(node: int, *argv: str, background: bool = False, listens: int = 0) -> Command:
        return Command(argv, node=node, timeout_s=limit, background=background, listens=listens)

    ways = _CLIENTS[point.get("direction", "forward")]
    ports = range(PORT, PORT + len(ways))
    servers = [
        on(
            point["receiver"], "iperf3", "--server", "--one-off", "--json", "--port", str(port),
            background=True, listens=port,
        )
        for port in ports
    ]  # fmt: skip
    address, seconds = f"{{node{point['receiver']}}}", str(point["duration_s"])
    *others, last = (
        ("iperf3", "--client", address, "--json", "--port", str(port), "--time", seconds, *way, *_options(point))
        for way, port in zip(ways, ports)
    )
    # What runs in the background ends with the trial: it is given the time to end by itself.
    wait = [on(point["sender"], "sleep", str(_BEHIND_S))] if others else []
    clients = [*(on(point["sender"], *argv, background=True) for argv in others), on(point["sender"], *last)]
    return [*servers, *clients, *wait]


def _options(point: Settings) -> tuple:
    values = {
        "--parallel": point.get("streams"),
        "--omit": point.get("omit_s"),
        "--window": point.get("window_bytes"),
        "--congestion": point.get("congestion_control"),
    }
    chosen = (word for option, value in values.items() if value for word in (option, str(value)))
    return tuple(chosen)


def parse(transcript: Transcript) -> List[Reading]:
    """The readings of one trial (see `iperf3_output.readings`), from the reports of both its ends.

    Both ways at once, goodput_reverse and retransmits_reverse are those of the test whose server sent, and cpu_sender
    and cpu_receiver the sums of what either end's programs used. Raises Unreadable as they do, also when a test is
    missing, and InvalidRun when a client's report is one of other settings.
    """
    point = transcript.trial.point
    ran = [execution for execution in transcript.executions if execution.tool == "iperf3"]
    servers, clients = (
        {_port(execution): execution for execution in ran if ("--server" in execution.argv) is serves}
        for serves in (True, False)
    )
    ways = ("reverse", "forward") if point.get("direction") == "both" else (point.get("direction", "forward"),)
    if len(clients) < len(ways):
        raise Unreadable("iperf3 did not run in every direction that was asked for")
    found = {
        way: _readings({**point, "direction": way}, client, servers.get(port))
        for way, (port, client) in zip(ways, sorted(clients.items()))
    }
    return _together(**found) if len(found) > 1 else [*found.values()][0]


def _port(execution: Execution) -> str:
    return execution.argv[execution.argv.index("--port") + 1] if "--port" in execution.argv else ""


def _readings(point: Settings, client: Execution, server: Optional[Execution]) -> List[Reading]:
    """The readings of one test, after a check of what it did."""
    reports = iperf3_output.reports(client.stdout)
    if len(reports) > 1:
        raise Unreadable("more than one iperf3 report in one output")
    found = iperf3_output.readings(reports[0], _report(server.stdout) if server else None)
    made = {"protocol": "TCP", **iperf3_output.settings(reports[0])}
    asked = {name: value for name, value in point.items() if name in iperf3_output.COMPARABLE}
    faults = mismatch({"protocol": "TCP", **asked}, made)
    if faults:
        raise InvalidRun("; ".join(faults))
    return found


def _together(forward: List[Reading], reverse: List[Reading]) -> List[Reading]:
    """The readings of both ways at once: the forward test's, and of the other one those that are of its own way."""
    back = {reading.name: reading for reading in reverse}
    joined = [
        replace(reading, value=reading.value + back[_OTHER_END[reading.name]].value)
        if reading.name in _OTHER_END and _OTHER_END[reading.name] in back
        else reading
        for reading in forward
    ]
    return joined + [replace(back[name], name=f"{name}_reverse") for name in _EACH_WAY if name in back]


def _report(text: str) -> Optional[Dict[str, Any]]:
    """The server's report, or None: what is lost with it are readings that the client does not have."""
    try:
        return iperf3_output.reports(text)[0]
    except Unreadable:
        return None


RUNNER = Runner("iperf3", commands, parse, iperf3_output.results)
