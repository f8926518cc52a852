"""iperf3: what is asked of it, which end's reports count, and that no broken report of either
becomes a number.
"""

import json

import pytest
import recorded

from runners.records.record import Execution, FalloffError, Transcript, Trial, judge
from runners.tools import iperf3, udp_sizes

LINK = {"sender": 1, "receiver": 3, "duration_s": 2}


def report(case):
    """A recorded report of iperf3 3.12."""
    return recorded.text(f"iperf3/3.12-{case}")


def judged(direction, *ends):
    """The judgement of a trial whose `ends` (program, port, recorded case) ran, and then a
    sleep.
    """
    executions = [
        Execution("iperf3", ("iperf3", program, "--port", port), report(case), "", 0, 0.0, 1.0)
        for program, port, case in ends
    ]
    waited = Execution("sleep", ("sleep", "1"), "", "", 0, 0.0, 1.0)
    trial = Trial("t1", "point", "iperf3", 1, 1, {"direction": direction, "duration_s": 2})
    return judge(Transcript(trial, "here", "emulated", (*executions, waited), {}, {}), iperf3.parse)


def readings(outcome):
    """The readings of a valid trial by name."""
    assert outcome.status == "ok", outcome.reason
    return outcome.readings


@pytest.mark.parametrize(
    ("point", "options"),
    [
        ({"direction": "forward", "omit_s": 0, "window_bytes": 0}, ()),
        ({"direction": "reverse"}, ("--reverse",)),
        ({"streams": 4, "congestion_control": "reno"}, ("--parallel", "4", "--congestion", "reno")),
        ({"omit_s": 3, "window_bytes": 65536}, ("--omit", "3", "--window", "65536")),
    ],
)
def test_each_setting_is_an_option_of_the_client(point, options):
    """Nothing is added for a setting that is the tool's own choice; the warm-up lengthens the
    limit.
    """
    client = iperf3.commands({**LINK, **point})[-1]
    assert client.argv[len(iperf3.commands(LINK)[-1].argv) :] == options
    assert client.timeout_s > LINK["duration_s"] + point.get("omit_s", 0)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_intervals_are_those_of_the_end_that_receives(direction):
    """Forward they are the server's, reversed the client's; a server's last fragment is left
    out.
    """
    client, server = ("--client", "5201", direction), ("--server", "5201", f"{direction}-server")
    found = readings(judged(direction, server, client))
    received = f"{direction}-server" if direction == "forward" else direction
    sums = [interval["sum"] for interval in json.loads(report(received))["intervals"]]
    rates = [each["bits_per_second"] for each in sums if each["seconds"] > 0.5]
    assert found["goodput_interval"] == rates and len(rates) == 2
    # What is lost with a server's report are readings that the client does not have.
    alone = readings(judged(direction, client))
    assert ("goodput_interval" in alone) == (direction == "reverse")


def test_each_way_has_its_own_tests_readings():
    """Goodput and retransmits of each, intervals and round trip of the forward one, CPU time of
    either end's two.
    """
    back = [("--server", "5201", "reverse-server"), ("--client", "5201", "reverse")]
    forth = [("--server", "5202", "forward-server"), ("--client", "5202", "forward")]
    found = readings(judged("both", *back, *forth))
    forward, reverse = readings(judged("forward", *forth)), readings(judged("reverse", *back))
    for name in ("goodput", "retransmits"):
        assert (found[name], found[f"{name}_reverse"]) == (forward[name], reverse[name])
    for name in ("goodput_interval", "rtt_mean"):
        assert found[name] == forward[name]
    assert found["cpu_sender"] == pytest.approx(forward["cpu_sender"] + reverse["cpu_receiver"])
    lacking = judged("both", *back, forth[0])
    assert lacking.reason == "iperf3 did not run in every direction that was asked for"


@pytest.mark.parametrize(
    ("frame", "said"), [(57, "too small"), (1515, "does not fit an MTU of 1500")]
)
def test_a_frame_that_cannot_be_sent_whole_is_refused(frame, said):
    """Smaller than iperf3's own header, or cut into fragments by the MTU."""
    with pytest.raises(FalloffError, match=said):
        udp_sizes.commands({**LINK, "frame_bytes": frame, "mtu": 1500})


def test_loss_of_datagrams_is_not_that_of_the_warm_up():
    """iperf3 3.12 counts lost datagrams of the omitted seconds too: bytes that arrived do not."""
    text = recorded.text("udp_sizes/3.12-warm-up")
    (found,) = recorded.listed("udp_sizes", text)
    printed = json.loads(text)["end"]["sum"]["lost_percent"] / 100
    assert printed > found["datagram_loss"] + 0.01
    ratio = found["packets_received_per_s"] / found["packets_sent_per_s"]
    assert ratio == pytest.approx(1 - found["datagram_loss"], rel=0.05)


@pytest.mark.parametrize(
    ("part", "number", "said"),
    [
        ("sum_received", {"bytes": 0}, "end.sum_received.bytes above 0"),
        ("sum_sent", {"packets": True}, "end.sum_sent.packets above 0"),
        ("sum_sent", {"packets": 1}, "datagrams of 1 sent"),
    ],
)
def test_datagrams_that_nobody_counted_are_no_measurement(part, number, said):
    """Nothing that is missing becomes a rate or a loss."""
    changed = json.loads(recorded.text("udp_sizes/3.12-warm-up"))
    changed["end"][part].update(number)
    assert said in recorded.refusals("udp_sizes", json.dumps(changed))


@pytest.mark.parametrize(
    "value", [1e19, 2**62, 0, 0.5, 2**63, float("inf"), float("nan"), True, "1", None]
)
def test_a_number_is_what_iperf3_counts(value):
    """Any finite float, and a whole number of 64 bits."""
    is_kept = value in (1e19, 2**62, 0, 0.5)
    number = iperf3.number({"value": value}, "value")
    assert number == value if is_kept else number != number
