"""The published numbers agree with themselves and with the wire, and carry unit and source."""

import pytest

from analysis import published
from analysis.wire import wire_limit
from runners import hpl_dat

SMITH, BLOG = published.smith(), published.bonding_blog_facts()
NEMO, GRID, BEOWULF = published.nemo(), published.grid5000(), published.beowulf()
SOURCES = {"smith": SMITH, "blog": BLOG, "nemo": NEMO, "grid5000": GRID, "beowulf": BEOWULF}


def quantities(facts):
    """Every table in `facts` that holds a value, at any depth."""
    if "value" in facts:
        return [facts]
    parts = [part for part in facts.values() if isinstance(part, dict)]
    return [found for part in parts for found in quantities(part)]


@pytest.mark.parametrize("facts", SOURCES.values(), ids=SOURCES)
def test_every_number_has_its_unit_and_place(facts):
    """A number says where it is printed, or how it is derived."""
    assert quantities(facts) and {"author", "title", "year", "short"} <= set(facts["source"])
    for quantity in quantities(facts):
        assert quantity.get("where") or quantity.get("derived")
        assert isinstance(quantity["value"], str) or quantity["unit"]


def test_table1_is_one_process_a_node_in_hundreds_and_fits_the_memory():
    """P x Q = nodes; N is a hundred times what is printed, as Appendix B's deck shows: most of 16 GB a node, never more."""
    table = published.smith_table1()
    assert len(table) == 15 and (table.P * table.Q == table.nodes).all()
    assert (table.N == SMITH["table1"]["printed_n_unit"] * table.printed_n).all()
    assert table.set_index("nodes").N[36] == published.smith_deck()["deck"]["N"][1]
    memory = SMITH["cluster"]["memory_per_node"]["value"] * 1e9
    assert (8 * table.N**2 / (table.nodes * memory)).between(0.75, 1).all()


def test_smiths_peak_and_deck_are_those_of_its_nodes():
    """The peak follows from cores and clock; the mended deck of Appendix B writes as a whole HPL.dat for 36 processes."""
    cores, clock, flop, peak = (
        SMITH["cluster"][name]["value"]
        for name in ("cores_per_node", "clock", "flop_per_cycle", "rpeak_per_node")
    )
    assert peak == pytest.approx(cores * clock * flop)
    deck = published.smith_deck()["deck"]
    assert len(hpl_dat.render(deck).splitlines()) == 31 and deck["P"] * deck["Q"] == 36


def test_every_netperf_test_is_complete_and_below_its_wire():
    """One way at MTU 1500 every path is full, and jumbo frames through the switches are not."""
    tests = published.nemo_netperf()
    flows = tests.groupby(["path", "mtu", "direction"])["flow"].agg(list)
    assert len(flows) == 9
    for (_, _, direction), names in flows.items():
        assert names == (["forward", "reverse"] if direction == "both" else ["forward"])
    rate = NEMO["netperf"]["line_rate"]["value"]
    tests["share"] = 8 * published.KIBIBYTE * tests.goodput_kib_s / wire_limit(rate, tests.mtu)
    assert tests.share.between(0.3, 1).all()
    one_way = tests[tests.direction == "forward"].set_index(["path", "mtu"]).share
    assert one_way.xs(1500, level="mtu").between(0.999, 1).all()
    assert one_way.xs(8982, level="mtu").between(0.79, 0.80).all()
