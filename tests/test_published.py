"""The published numbers agree with themselves and with each other, and carry unit and source."""

import pytest

from analysis import published
from runners import hpl_dat
from runners.record import FalloffError


def quantities(facts):
    """Every table in `facts` that holds a value, at any depth."""
    if "value" in facts:
        return [facts]
    return [found for part in facts.values() if isinstance(part, dict) for found in quantities(part)]


def test_table1_grids_have_as_many_processes_as_nodes():
    """HPL ran one process a node: P x Q = nodes in all 15 cases."""
    table = published.smith_table1()
    assert len(table) == 15
    assert (table["P"] * table["Q"] == table["nodes"]).all()


def test_table1_is_printed_in_hundreds():
    """N is a hundred times what the table prints, as Appendix B's deck shows for 36 nodes."""
    table = published.smith_table1()
    assert (table["N"] == published.smith()["table1"]["printed_n_unit"] * table["printed_n"]).all()
    largest = table.set_index("nodes").loc[36]
    assert (largest["printed_n"], largest["N"]) == (2600, published.smith_deck()["deck"]["N"][1])


def test_table1_matrices_fill_but_fit_the_memory():
    """Each matrix takes most of 16 GB a node and never more: so n is in hundreds, not tens or thousands."""
    memory = published.smith()["cluster"]["memory_per_node"]["value"] * 1e9
    share = published.memory_share(published.smith_table1(), memory)
    assert share.between(0.75, 1).all()


def test_smith_rpeak_follows_from_its_cores_and_clock():
    """44.8 Gflop/s a node is 8 cores x 2.8 GHz x 2."""
    cluster = published.smith()["cluster"]
    parts = [cluster[name]["value"] for name in ("cores_per_node", "clock", "flop_per_cycle")]
    assert cluster["rpeak_per_node"]["value"] == pytest.approx(parts[0] * parts[1] * parts[2])


def test_appendix_b_deck_is_complete_and_is_the_36_node_case():
    """The mended deck writes as a whole HPL.dat; the printed text alone cannot be read as one."""
    appendix = published.smith_deck()
    deck = appendix["deck"]
    assert hpl_dat.read(hpl_dat.render(deck)) == deck
    assert deck["P"] * deck["Q"] == 36
    with pytest.raises(FalloffError):
        hpl_dat.read(appendix["printed"])
    assert {field for part in appendix["garbled"] for field in part["fields"]} == {"NB", "NDIV", "RFACT"}


def test_blogs_results_imply_one_rpeak():
    """All four rates and efficiencies agree on 8.8 Gflop/s a node, to a unit of the last printed digit."""
    facts = published.bonding_blog_facts()
    bounds = published.implied_rpeak(published.bonding_blog(), facts["rounding"]["units_of_last_digit"])
    rpeak = facts["cluster"]["rpeak_per_node"]["value"]
    assert ((bounds["low"] <= rpeak) & (rpeak <= bounds["high"])).all()
    assert (bounds["high"] / bounds["low"] < 1.01).all()


def test_every_number_has_its_unit_and_place():
    """A number says where it is printed, or how it is derived; every row of a table names its source."""
    for facts in (published.smith(), published.bonding_blog_facts()):
        found = quantities(facts)
        assert found
        for quantity in found:
            assert quantity.get("where") or quantity.get("derived")
            assert isinstance(quantity["value"], str) or quantity["unit"]
        assert {"author", "title", "year"} <= set(facts["source"])
    for table, facts in (
        (published.smith_table1(), published.smith()),
        (published.bonding_blog(), published.bonding_blog_facts()),
    ):
        assert table["source"].str.startswith(facts["source"]["short"]).all()


def test_what_is_lost_and_confounded_is_said():
    """No rate of the paper is stored, and its RDMA/TCP confound is quoted."""
    smith = published.smith()
    assert "rate" not in " ".join(published.smith_table1().columns)
    assert "TCP for Gigabit Ethernet" in smith["confound"]["quote"] and smith["lost"]["what"]
