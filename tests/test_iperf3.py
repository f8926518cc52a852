"""iperf3: what is asked of it, and that no broken report of either end becomes a number."""

import json

import pytest
import recorded
from hypothesis import given, settings
from hypothesis import strategies as st

from runners import iperf3
from runners.record import Execution, Transcript, Trial, Unreadable, judge

LINK = {"sender": 1, "receiver": 3, "duration_s": 2}
OK, FORWARD, BOTH = (recorded.text(f"iperf3/3.12-{case}") for case in ("ok", "forward", "both"))


def judged(point, client, server):
    """The judgement of a trial whose two ends printed these reports."""
    ends = [("iperf3", "--server"), server], [("iperf3", "--client"), client]
    executions = tuple(Execution("iperf3", argv, text, "", 0, 0.0, 1.0) for argv, text in ends)
    trial = Trial("t1", "point", "iperf3", 1, 1, point)
    outcome = judge(Transcript(trial, "here", "emulated", executions, {}, {}), iperf3.parse)
    return outcome.status, {reading.name: reading.value for reading in outcome.readings}


def rates(case):
    """The rates of the full intervals in a recorded report that were not omitted."""
    sums = [
        interval["sum"]
        for interval in json.loads(recorded.text(f"iperf3/3.12-{case}"))["intervals"]
    ]
    return [
        total["bits_per_second"]
        for total in sums
        if not total["omitted"] and total["seconds"] > 0.5
    ]


@pytest.mark.parametrize(
    "point, options",
    [
        ({"direction": "forward", "omit_s": 0, "window_bytes": 0}, ()),
        ({"direction": "reverse"}, ("--reverse",)),
        ({"streams": 4}, ("--parallel", "4")),
        ({"omit_s": 3, "window_bytes": 65536}, ("--omit", "3", "--window", "65536")),
        ({"congestion_control": "reno"}, ("--congestion", "reno")),
    ],
)
def test_each_setting_is_an_option_of_the_client(point, options):
    """Nothing is added for a setting that is the tool's own choice; the warm-up lengthens the limit."""
    client = iperf3.commands({**LINK, **point})[-1]
    assert client.argv[len(iperf3.commands(LINK)[-1].argv) :] == options
    assert client.timeout_s > LINK["duration_s"] + point.get("omit_s", 0)


@pytest.mark.parametrize(
    "output, reason",
    [
        ("", "printed nothing"),
        ('{"error": "unable to connect to server: Connection refused"}', "Connection refused"),
        ('{"start": {}, "end": {}}', "end.sum_received"),
        ('{"end": []}', "end.sum_received"),
        ("[1]", "not a JSON object"),
        ("iperf3: error - unable to connect to server: Connection refused\n", "Connection refused"),
        (OK[: len(OK) // 2], "not whole JSON"),
        (OK[len(OK) // 2 :], "not a JSON object"),
        (OK + OK, "more than one"),
        (BOTH.replace("_bidir_reverse", ""), "both directions one name"),  # as 3.7 to 3.10 wrote it
        (OK.replace("952733829.4", "852733829.4"), "contradicts itself"),
    ],
)
def test_each_broken_report_is_refused_with_its_own_reason(output, reason):
    """No broken report becomes a throughput, least of all zero."""
    outcome = recorded.judged("iperf3", output, LINK)
    assert outcome.status == "unreadable" and reason in outcome.reason


def test_intervals_are_those_of_the_end_that_receives():
    """Forward they are the server's, reversed the client's; a server's last fragment is left out."""
    for point, case, receiver in (
        ({"direction": "forward"}, "forward", "forward-server"),
        ({"direction": "reverse"}, "reverse", "reverse"),
    ):
        client, server = (recorded.text(f"iperf3/3.12-{case}{end}") for end in ("", "-server"))
        status, found = judged(point, client, server)
        assert status == "ok" and found["goodput_interval"] == rates(receiver)
        assert len(found["goodput_interval"]) == 2
    assert (
        recorded.judged("iperf3", FORWARD, {}).readings
        and "goodput_interval" not in judged({}, FORWARD, "")[1]
    )


def both_ways(*ends):
    """The judgement of a trial both ways at once, of which the `ends` (program, port, recorded case) ran."""
    executions = [
        Execution(
            "iperf3",
            ("iperf3", program, "--port", port),
            recorded.text(f"iperf3/3.12-{case}"),
            "",
            0,
            0.0,
            1.0,
        )
        for program, port, case in ends
    ]
    waited = Execution("sleep", ("sleep", "1"), "", "", 0, 0.0, 1.0)
    trial = Trial("t1", "point", "iperf3", 1, 1, {"direction": "both", "duration_s": 2})
    return judge(Transcript(trial, "here", "emulated", (*executions, waited), {}, {}), iperf3.parse)


def test_each_way_has_its_own_tests_readings():
    """Goodput and retransmits of each, intervals and round trip of the forward one, CPU time of either end's two."""
    ends = (
        ("--server", "5201", "reverse-server"), ("--server", "5202", "forward-server"),
        ("--client", "5201", "reverse"), ("--client", "5202", "forward"),
    )  # fmt: skip
    outcome = both_ways(*ends)
    found = {reading.name: reading.value for reading in outcome.readings}
    forward = judged(
        {"direction": "forward"}, FORWARD, recorded.text("iperf3/3.12-forward-server")
    )[1]
    case = recorded.text("iperf3/3.12-reverse"), recorded.text("iperf3/3.12-reverse-server")
    reverse = judged({"direction": "reverse"}, *case)[1]
    for name in ("goodput", "retransmits"):
        assert (found[name], found[f"{name}_reverse"]) == (forward[name], reverse[name])
    assert (
        found["goodput_interval"] == forward["goodput_interval"]
        and found["rtt_mean"] == forward["rtt_mean"]
    )
    assert found["cpu_sender"] == pytest.approx(forward["cpu_sender"] + reverse["cpu_receiver"])
    assert both_ways(*ends[:3]).reason == "iperf3 did not run in every direction that was asked for"


@settings(max_examples=300, deadline=None)
@given(
    case=st.sampled_from(["3.12-forward", "3.12-reverse", "3.12-parallel", "3.0.11-forward"]),
    begin=st.floats(0, 1),
    length=st.integers(0, 400),
    instead=st.sampled_from(["", "0", "9", "e5", "-", "}", '"', "\x00", ",", "null"]),
)
def test_a_mutilated_report_never_gives_another_goodput(case, begin, length, instead):
    """Whatever is cut out or written over at one place, the goodput is the report's own or there is none."""
    text = recorded.text(f"iperf3/{case}")
    at = int(begin * len(text))
    try:
        found = recorded.listed("iperf3", text[:at] + instead + text[at + length :])
    except Unreadable:
        return
    (own,) = recorded.listed("iperf3", text)
    assert [result["goodput"] for result in found if "goodput" in result] == [
        pytest.approx(own["goodput"], rel=2e-3)
    ]
