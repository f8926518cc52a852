"""The shaper's arithmetic: an emulated link carries what the Ethernet of its name carries, no more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.testbeds.links import Link
from runners.testbeds.readback import agreed

TCP = {
    "congestion_control": "cubic",
    "no_metrics_save": True,
    "slow_start_after_idle": False,
    "rmem": [4096, 131072, 6291456],
    "wmem": [4096, 16384, 4194304],
}
ON = {"tso": True, "gso": True, "gro": True}
OFF = {"tso": False, "gso": False, "gro": False}


def payload_bit_s(link: Link) -> float:
    """TCP payload of full frames (52 bytes of TCP and IP headers) through tc's count of MTU + 14."""
    return link.tbf_rate_bit_s * (link.mtu - 52) / (link.mtu + 14)


def test_gigabit_ethernet_carries_941_5_mbit_s():
    """The known goodput of GigE at MTU 1500, not the 955 Mbit/s of a shaper set to the link's name."""
    assert payload_bit_s(Link(1e9, 1500, TCP, ON)) == pytest.approx(941.5e6, rel=1e-4)


@given(rate=st.floats(1e6, 1e11), mtu=st.integers(576, 9000))
def test_frames_are_never_faster_than_on_the_wire(rate, mtu):
    """For any rate and MTU the payload is (MTU - 52) / (MTU + 38) of the rate, rounded down to bytes."""
    wire = rate * (mtu - 52) / (mtu + 38)
    assert wire - 8 <= payload_bit_s(Link(rate, mtu, TCP, ON)) <= wire * (1 + 1e-12)


def test_without_super_packets_tc_counts_every_frame_itself():
    """Offloads off: the rate is the link's own and tc adds what Ethernet adds, to small frames too."""
    link = Link(1e9, 1500, TCP, OFF)
    assert link.tbf_rate_bit_s == 1_000_000_000
    assert link.qdisc.startswith("stab overhead 24 mpu 84 tbf ")


def test_segmentation_in_software_makes_super_packets_too():
    """GSO alone hands tc packets of many frames, so a per-packet overhead would be wrong."""
    assert "stab" not in Link(1e9, 1500, TCP, {**OFF, "gso": True}).qdisc


def test_unshaped_link_has_no_rate():
    """The control has no shaper, and says so instead of giving a number."""
    link = Link(None, 1500, TCP, ON)
    assert (link.qdisc, link.tbf_rate_bit_s) == ("noqueue", "unshaped")


def test_disagreeing_ends_are_named():
    """One end that differs turns a setting into a sentence that equals no request."""
    found = {"n1": {"mtu": 1500, "gro": True}, "port n1": {"mtu": 1500}, "n2": {"mtu": 9000, "gro": True}}
    assert agreed(found, "mtu") == "1500 on n1, port n1 and 9000 on n2"
    assert agreed(found, "gro") is True
