"""The Beowulf study's numbers agree with themselves, and only one reading of them fits its wires."""

import pytest
from test_published import quantities

from analysis import published
from analysis.framing import message_wire_bytes
from analysis.token_readings import ETHERNET_MTU, HEADERS, readings

BEOWULF = published.beowulf()


def test_every_number_has_its_unit_and_place():
    """A number says where it is printed, or how it is derived; statements are quoted with their place."""
    found = quantities(BEOWULF)
    assert len(found) > 10
    for quantity in found:
        assert quantity.get("where") or quantity.get("derived")
        assert isinstance(quantity["value"], str) or quantity["unit"]
    assert {"author", "title", "year"} <= set(BEOWULF["source"]) and BEOWULF["lost"]["what"]
    assert all(statement["quote"] and statement["where"] for statement in BEOWULF["statement"])


def test_words_and_numbers_of_the_ratios_agree():
    """The original is the local wire's throughput over the printed factor; the statements have the factors."""
    throughput, ratio = BEOWULF["throughput"], BEOWULF["ratio"]
    derived = throughput["local_wire"]["value"] / ratio["local_wire"]["value"]
    assert throughput["bonded_dual_net"]["value"] == pytest.approx(derived, rel=0.02)
    said = {statement["about"]: statement["quote"] for statement in BEOWULF["statement"]}
    assert "factor of four" in said["local wire"] and "factor of 2" in said["remote wire"]


def test_wires_alone_give_the_ratios():
    """8 wires against 2 are the factor of 4; a remote token takes two of the mesh's, which is the factor of 2."""
    wires = {name: BEOWULF["wires"][name]["value"] for name in ("mesh", "original")}
    assert wires["mesh"] / wires["original"] == BEOWULF["ratio"]["local_wire"]["value"]
    assert wires["mesh"] / 2 / wires["original"] == BEOWULF["ratio"]["remote_wire"]["value"]


def test_the_largest_token_takes_six_frames():
    """8192 bytes are 5 full segments of 1460 and one of 892, each with 40 bytes of headers and 38 of Ethernet's."""
    assert message_wire_bytes(8192, ETHERNET_MTU, HEADERS) == 8192 + 6 * (40 + 38)
    assert message_wire_bytes(1460, ETHERNET_MTU, HEADERS) == 1538
    assert message_wire_bytes(1461, ETHERNET_MTU, HEADERS) == 1461 + 2 * 78


def test_only_the_writes_of_both_ends_fit():
    """Seven wires of 10 Mbit/s carry 8.75 MB/s, a fast one 12.5: 6.3 are a part of it, twice that are too much."""
    shares = {(it.wires, it.writes): it.share for it in readings()}
    for wires, carried in ((7, 8.75), (1, 12.5)):
        assert shares[wires, "both ends"] == pytest.approx(6.3 / carried)
        assert shares[wires, "the producer"] == pytest.approx(12.6 / carried)
    assert {it.writes for it in readings() if it.possible} == {"both ends"}
    assert all(it.framed > it.share for it in readings())
