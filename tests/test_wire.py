"""What Ethernet leaves to TCP."""

import pytest

from analysis.wire import message_wire_bytes, packet_limit, tcp_payload, wire_limit


def test_wire_limit_of_gigabit_ethernet():
    """TCP with timestamps (1448 bytes a segment) carries 941.5 Mbit/s at MTU 1500, and 990 with jumbo frames."""
    assert tcp_payload(1500) == 1448
    assert wire_limit(1e9, 1500) == pytest.approx(941.5e6, rel=1e-4)
    assert wire_limit(1e9, 9000) == pytest.approx(990.0e6, rel=1e-3)


def test_the_most_packets_a_second_are_ethernets():
    """64 bytes with the FCS: 1488095 a second at 1 Gbit/s, the usual number."""
    assert int(packet_limit(1e9, 60)) == 1488095


def test_a_message_takes_full_frames_and_a_rest():
    """8192 bytes are 5 full segments of 1460 and one of 892, each with 40 bytes of headers and 38 of Ethernet's."""
    assert message_wire_bytes(8192, 1500, 40) == 8192 + 6 * (40 + 38)
    assert message_wire_bytes(1460, 1500, 40) == 1538
    assert message_wire_bytes(1461, 1500, 40) == 1461 + 2 * 78
