"""The published numbers agree with themselves and with the wire, and carry unit and source."""

import pytest

from analysis.dataset import published
from analysis.dataset.wire import wire_limit

SMITH, NEMO = published.facts("fortinet"), published.facts("nemo")
BLOG = published.facts("bonding")


def quantities(facts):
    """Every table in `facts` that holds a value, at any depth."""
    if "value" in facts:
        return [facts]
    parts = [part for part in facts.values() if isinstance(part, dict)]
    return [found for part in parts for found in quantities(part)]


@pytest.mark.parametrize(
    ("facts", "table"),
    [
        (SMITH, "fortinet_table1"),
        (BLOG, "bonding"),
        (NEMO, "nemo_netperf"),
        (published.facts("grid5000"), None),
        (published.facts("beowulf"), None),
    ],
)
def test_every_number_has_its_unit_and_place(facts, table):
    """A number says where it is printed, or how it is derived; so does every row of a table."""
    assert quantities(facts) and {"author", "title", "year", "short"} <= set(facts["source"])
    for quantity in quantities(facts):
        assert quantity.get("where") or quantity.get("derived")
        assert isinstance(quantity["value"], str) or quantity["unit"]
    assert (
        not table or published.table(table)["source"].str.startswith(facts["source"]["short"]).all()
    )


def test_table1_is_one_process_a_node_in_hundreds_and_fits_the_memory():
    """P x Q = nodes; N is a hundred times what is printed, as Appendix B's deck shows: most of 16
    GB a node, never more.
    """
    table, deck = published.table("fortinet_table1"), published.facts("fortinet_appendix_b")["deck"]
    assert len(table) == 15 and (table.P * table.Q == table.nodes).all()
    assert (table.N == SMITH["table1"]["printed_n_unit"] * table.printed_n).all()
    assert table.set_index("nodes").N[36] == deck["N"][1]
    memory = SMITH["cluster"]["memory_per_node"]["value"] * 1e9
    assert (8 * table.N**2 / (table.nodes * memory)).between(0.75, 1).all()
    assert deck["P"] * deck["Q"] == 36


def test_smith_rpeak_follows_from_its_cores_and_clock():
    names = ("cores_per_node", "clock", "flop_per_cycle", "rpeak_per_node")
    cores, clock, flop, peak = (SMITH["cluster"][name]["value"] for name in names)
    assert peak == pytest.approx(cores * clock * flop)


def test_every_netperf_test_is_complete_and_below_its_wire():
    """One way at MTU 1500 every path is full, and jumbo frames through the switches are not."""
    tests = published.table("nemo_netperf")
    flows = tests.groupby(["path", "mtu", "direction"])["flow"].agg(list)
    assert len(flows) == 9
    for (_, _, direction), names in flows.items():
        assert names == (["forward", "reverse"] if direction == "both" else ["forward"])
    rate = NEMO["netperf"]["line_rate"]["value"]
    tests["share"] = 8 * published.KIBIBYTE * tests.goodput_kib_s / wire_limit(rate, tests.mtu)
    one_way = tests[tests.direction == "forward"].set_index(["path", "mtu"]).share
    assert one_way.xs(1500, level="mtu").between(0.999, 1).all()
    assert one_way.xs(8982, level="mtu").between(0.79, 0.80).all()
