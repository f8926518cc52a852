"""Packet sizes: the datagrams of a trial, and what each end counted."""

import json

import pytest
import recorded

from runners import udp_sizes
from runners.record import FalloffError

POINT = {"sender": 1, "receiver": 2, "frame_bytes": 60, "duration_s": 1}
WARM = {**POINT, "omit_s": 1}


def changed(case, **parts):
    """A recorded report with numbers of its end replaced."""
    report = json.loads(recorded.text(f"udp_sizes/{case}"))
    for part, numbers in parts.items():
        report["end"][part].update(numbers)
    return json.dumps(report)


@pytest.mark.parametrize(
    ("frame", "said"), [(57, "too small"), (1515, "does not fit an MTU of 1500")]
)
def test_a_frame_that_cannot_be_sent_whole_is_refused(frame, said):
    """Smaller than iperf3's own header, or cut into fragments by the MTU."""
    with pytest.raises(FalloffError, match=said):
        udp_sizes.commands({**POINT, "frame_bytes": frame, "mtu": 1500})


def test_loss_is_not_that_of_the_warm_up():
    """iperf3 3.12 counts lost datagrams of the omitted seconds too: bytes that arrived do not."""
    text = recorded.text("udp_sizes/3.12-warm-up")
    end = json.loads(text)["end"]
    found = {reading.name: reading.value for reading in udp_sizes.results(text)[0].readings}
    assert end["sum"]["lost_percent"] / 100 > found["datagram_loss"] + 0.01
    ratio = found["packets_received_per_s"] / found["packets_sent_per_s"]
    assert ratio == pytest.approx(1 - found["datagram_loss"], rel=0.05)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (changed("3.12-warm-up", sum_received={"bytes": 0}), "end.sum_received.bytes above 0"),
        (changed("3.12-warm-up", sum_sent={"packets": True}), "end.sum_sent.packets above 0"),
        (changed("3.12-warm-up", sum_sent={"packets": 1}), "datagrams of 1 sent"),
        (changed("3.12-warm-up").replace('"sum_received"', '"other"'), "end.sum_received.bytes"),
        (changed("3.12-warm-up").replace('"UDP"', '"TCP"'), "not of UDP"),
        ('{"error": "unable to connect to server: Connection refused"}', "Connection refused"),
        (2 * f"{changed('3.12-warm-up')}\n", "more than one"),
    ],
)
def test_a_report_without_a_receiver_is_no_measurement(text, reason):
    """Nothing that is missing becomes a rate or a loss."""
    outcome = recorded.judged("udp_sizes", text, WARM)
    assert outcome.status == "unreadable" and reason in outcome.reason
