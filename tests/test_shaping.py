"""The shaper's arithmetic: an emulated link carries what the Ethernet of its name carries, no more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.testbeds.settings import Shaper, agreed, routes_text


def payload_bit_s(link: Shaper) -> float:
    """TCP payload of full frames (52 bytes of TCP and IP headers) through tc's count of MTU + 14."""
    return link.tbf_rate_bit_s * (link.mtu - 52) / (link.mtu + 14)


def test_gigabit_ethernet_carries_941_5_mbit_s():
    """The known goodput of GigE at MTU 1500, not the 955 Mbit/s of a shaper set to the link's name."""
    assert payload_bit_s(Shaper(1e9, 1500, True)) == pytest.approx(941.5e6, rel=1e-4)


@given(rate=st.floats(1e6, 1e11), mtu=st.integers(576, 9000))
def test_frames_are_never_faster_than_on_the_wire(rate, mtu):
    """For any rate and MTU the payload is (MTU - 52) / (MTU + 38) of the rate, rounded down to bytes."""
    wire = rate * (mtu - 52) / (mtu + 38)
    assert wire - 8 <= payload_bit_s(Shaper(rate, mtu, True)) <= wire * (1 + 1e-12)


def test_without_super_packets_tc_counts_every_frame_itself():
    """Offloads off: the rate is the link's own and tc adds what Ethernet adds, to small frames too."""
    link = Shaper(1e9, 1500)
    assert link.tbf_rate_bit_s == 1_000_000_000
    assert link.qdisc.startswith("stab overhead 24 mpu 84 tbf ")
    unshaped = Shaper(None, 1500, True)
    assert (unshaped.qdisc, unshaped.tbf_rate_bit_s) == ("noqueue", "unshaped")


def test_a_described_burst_is_read_back_within_what_tc_shows():
    """One frame and what the wire carries in 250 us; tc shows 4650 of 4663 bytes, and a frame less is another."""
    assert Shaper(1e9, 1500, burst_s=250e-6).burst_bytes == 32788 < Shaper(1e9, 1500).burst_bytes
    asked = Shaper(100e6, 1500, burst_s=250e-6)
    assert asked.burst_bytes == 4663 and "burst 4663 " in asked.qdisc
    assert asked.effective(100_000_000, 4650) == asked.settings()
    assert (
        asked.effective(100_000_000, 3125) != asked.settings() != asked.effective(10_000_000, 4663)
    )
    unshaped = Shaper(None, 1500, burst_s=250e-6)
    assert unshaped.effective("unshaped", "unshaped") == unshaped.settings()


def test_disagreeing_ends_are_named():
    """One end that differs turns a setting into a sentence that equals no request."""
    found = {
        "n1": {"mtu": 1500, "gro": True},
        "port n1": {"mtu": 1500},
        "n2": {"mtu": 9000, "gro": True},
    }
    assert agreed(found, "mtu") == "1500 on n1, port n1 and 9000 on n2"
    assert agreed(found, "gro") is True


def test_routes_are_told_by_subnet():
    """A node whose peers are reached alike has one word for all of them; one that strays is seen."""
    alike = {"10.81.0.2": [2, 1], "10.81.0.3": [1, 2], "10.81.1.2": [2]}
    assert routes_text(alike) == "10.81.0.0/24 by link 1 and 2, 10.81.1.0/24 by link 2"
    astray = routes_text({**alike, "10.81.0.3": [2]})
    assert astray.startswith("10.81.0.0/24 by link 1 and 2 or 2,")
