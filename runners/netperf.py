"""netperf: the goodput of one TCP stream between two nodes, one way, reversed or both ways at once."""

from typing import List

from runners import netperf_output
from runners.record import (
    Command,
    FalloffError,
    InvalidRun,
    Reading,
    Runner,
    Settings,
    Transcript,
    Unreadable,
    mismatch,
)

PORT = 12865

# Connecting, and the exchange of results at the end.
_MARGIN_S = 15.0

# The data flow from netperf to netserver, or the other way.
_TESTS = {"forward": ("TCP_STREAM",), "reverse": ("TCP_MAERTS",), "both": ("TCP_STREAM", "TCP_MAERTS")}
_EACH_WAY = ("goodput", "retransmits")
_BEHIND_S = 2  # by which the netperf in the background may end later than the other
_ASKED_FOR = (
    "DIRECTION,ELAPSED_TIME,THROUGHPUT,THROUGHPUT_UNITS,TRANSPORT_MSS,LSS_SIZE,LSR_SIZE,RSS_SIZE,RSR_SIZE,"
    "LOCAL_TRANSPORT_RETRANS,REMOTE_TRANSPORT_RETRANS,LOCAL_CPU_UTIL,REMOTE_CPU_UTIL,LOCAL_CPU_COUNT,"
    "REMOTE_CPU_COUNT,LOCAL_CONG_CONTROL,REMOTE_CONG_CONTROL"
)


def commands(point: Settings) -> List[Command]:
    """netserver on the receiver, then netperf on the sender; both ways at once are two netperfs together.

    Of `point`, `sender`, `receiver` and `duration_s` are needed; `direction` (forward: netperf sends),
    `window_bytes` (0: the kernel's choice) and `congestion_control` are netperf's or the
    testbed's own choice where they are absent. Raises FalloffError for what netperf cannot do: parallel
    streams, and a warm-up that is left out.
    """
    for setting, only in (("streams", 1), ("omit_s", 0)):
        if point.get(setting, only) != only:
            raise FalloffError(f"netperf cannot do {setting} = {point[setting]}: set it to {only}, or use iperf3")
    limit = point["duration_s"] + _MARGIN_S

    def at_sender(*argv: str, background: bool = False) -> Command:
        return Command(argv, node=point["sender"], timeout_s=limit, background=background)

    server = ("netserver", "-D", "-4", "-p", str(PORT))
    served = Command(server, node=point["receiver"], timeout_s=limit, background=True, listens=PORT)
    *others, last = (_netperf(point, test) for test in _TESTS[point.get("direction", "forward")])
    # What runs in the background ends with the trial: it is given the time to end by itself.
    wait = [at_sender("sleep", str(_BEHIND_S))] if others else []
    return [served, *(at_sender(*argv, background=True) for argv in others), at_sender(*last), *wait]


def _netperf(point: Settings, test: str) -> List[str]:
    address = f"{{node{point['receiver']}}}"
    argv = ["netperf", "-4", "-H", address, "-p", str(PORT), "-t", test, "-l", str(point["duration_s"]), "-c", "-C"]
    argv += ["--", "-k", _ASKED_FOR]
    window, control = point.get("window_bytes"), point.get("congestion_control")
    if window:
        argv += ["-s", str(window), "-S", str(window)]
    if control:
        argv += ["-K", f"{control},{control}"]
    return argv


def parse(transcript: Transcript) -> List[Reading]:
    """The readings of one trial: of the one netperf, or of the one that sent and the one that received.

    goodput [bit/s], retransmits and mss [B] as `netperf_output.results` gives them; both ways at once,
    goodput_reverse and retransmits_reverse are of the netperf that received. cpu_sender and cpu_receiver
    are shares of one core where a node is a machine of its own: netperf reads the whole machine's CPU.
    Raises Unreadable as `results` does, and InvalidRun when netperf did not do what was asked for.
    """
    point = transcript.trial.point
    ran = [execution for execution in transcript.executions if execution.tool == "netperf"]
    if len(ran) != len(_TESTS[point.get("direction", "forward")]):
        raise Unreadable("netperf did not run in every direction that was asked for")
    first, *second = [_readings(execution.stdout, point) for execution in ran]
    back = [Reading(f"{r.name}_reverse", r.value, r.unit) for r in sum(second, []) if r.name in _EACH_WAY]
    wrong = ("cpu_sender", "cpu_receiver", "cpu_source") if transcript.evidence == "emulated" else ()
    return [reading for reading in [*first, *back] if reading.name not in wrong]


def _readings(text: str, point: Settings) -> List[Reading]:
    """The readings in the output of one netperf of a trial, after a check of what it did."""
    (run,) = netperf_output.runs(text)[-1:]
    fields = netperf_output.fields(run)
    missing = [name for name in _ASKED_FOR.split(",") if name not in fields]
    if missing:
        raise Unreadable(f"netperf did not print {', '.join(missing)}: its output is cut off")
    found = netperf_output.readings(run)
    # Without a word netperf stops early when interrupted, and keeps the kernel's choice when refused another.
    if float(fields["ELAPSED_TIME"]) < 0.99 * point.get("duration_s", 0):
        raise InvalidRun(f"netperf measured {fields['ELAPSED_TIME']} s, not {point['duration_s']} s")
    ends = [fields[name] for name in ("LSS_SIZE", "LSR_SIZE", "RSS_SIZE", "RSR_SIZE")]
    if min(map(int, ends)) < point.get("window_bytes", 0):
        raise InvalidRun(f"netperf's socket buffers are {', '.join(ends)} B, {point['window_bytes']} was asked for")
    control = {} if not point.get("congestion_control") else {"congestion control": point["congestion_control"]}
    for end in ("LOCAL", "REMOTE"):
        faults = mismatch(control, {"congestion control": fields[f"{end}_CONG_CONTROL"]})
        if faults:
            raise InvalidRun("netperf's " + faults[0])
    return found


RUNNER = Runner("netperf", commands, parse, netperf_output.results)
