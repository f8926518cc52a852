"""The Beowulf study's numbers agree with themselves, and only one reading of them fits its wires."""

import pytest
from test_published import quantities

from analysis import published
from analysis.experiments.token_exchange import readings

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


def test_only_the_writes_of_both_ends_fit():
    """Seven wires of 10 Mbit/s carry 8.75 MB/s: 6.3 and its headers are a part of it, twice that are too much."""
    of_one, of_both = readings()
    assert of_both.wires == of_one.wires == 7
    assert of_both.framed == pytest.approx(6.3 / 8.75 * (8192 + 6 * 78) / 8192)
    assert of_one.framed == 2 * of_both.framed
    assert of_both.framed < 1 < of_one.framed
