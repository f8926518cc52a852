"""What Ethernet leaves to TCP."""

import pytest

from analysis.wire import tcp_payload, wire_limit

KB = 8 * 2**10  # bits of the 2^10 bytes in which netperf's -f K counts


def test_wire_limit_of_gigabit_ethernet():
    """TCP with timestamps carries 941.5 Mbit/s at MTU 1500, and 990 with jumbo frames."""
    assert wire_limit(1e9, 1500) == pytest.approx(941.5e6, rel=1e-4)
    assert wire_limit(1e9, 9000) == pytest.approx(990.0e6, rel=1e-3)


def test_the_segment_is_what_linux_calls_the_mss_with_timestamps():
    """1448 bytes in an MTU of 1500."""
    assert tcp_payload(1500) == 1448


def test_the_published_crossover_cable_is_at_its_limit():
    """Nemo's 114905.40 KB/s at MTU 1500 are 99.98 % of it, 120111.19 at 9000 are 99.4 %."""
    assert 114905.40 * KB / wire_limit(1e9, 1500) == pytest.approx(0.9998, abs=5e-5)
    assert 120111.19 * KB / wire_limit(1e9, 9000) == pytest.approx(0.994, abs=5e-4)
