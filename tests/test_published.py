"""The published numbers agree with themselves and with the wire, and carry unit and source."""

import pytest

from analysis import published
from analysis.framing import message_wire_bytes
from analysis.token_readings import ETHERNET_MTU, HEADERS, readings
from analysis.wire import ETHERNET_HEADER, IPV4_HEADER, wire_limit
from runners import hpl_dat
from runners.record import FalloffError

SMITH, BLOG = published.smith(), published.bonding_blog_facts()
NEMO, GRID, BEOWULF = published.nemo(), published.grid5000(), published.beowulf()
SOURCES = {"smith": SMITH, "blog": BLOG, "nemo": NEMO, "grid5000": GRID, "beowulf": BEOWULF}


def quantities(facts):
    """Every table in `facts` that holds a value, at any depth."""
    if "value" in facts:
        return [facts]
    parts = [part for part in facts.values() if isinstance(part, dict)]
    return [found for part in parts for found in quantities(part)]


def kib_s(path, mtu, direction="forward"):
    """Goodput of all flows of a test [2^10 B/s]."""
    tests = published.nemo_netperf()
    chosen = (tests.path == path) & (tests.mtu == mtu) & (tests.direction == direction)
    return tests[chosen].goodput_kib_s.sum()


@pytest.mark.parametrize("facts", SOURCES.values(), ids=SOURCES)
def test_every_number_has_its_unit_and_place(facts):
    """A number says where it is printed, or how it is derived."""
    assert quantities(facts) and {"author", "title", "year", "short"} <= set(facts["source"])
    for quantity in quantities(facts):
        assert quantity.get("where") or quantity.get("derived")
        assert isinstance(quantity["value"], str) or quantity["unit"]


@pytest.mark.parametrize(
    ("table", "facts"),
    [
        (published.smith_table1(), SMITH),
        (published.bonding_blog(), BLOG),
        (published.nemo_netperf(), NEMO),
    ],
)
def test_every_row_names_its_source(table, facts):
    assert table["source"].str.startswith(facts["source"]["short"]).all()


def test_table1_is_one_process_a_node_in_hundreds_and_fits_the_memory():
    """P x Q = nodes; N is a hundred times what is printed, as Appendix B's deck shows: most of 16 GB a node, never more."""
    table = published.smith_table1()
    assert len(table) == 15 and (table.P * table.Q == table.nodes).all()
    assert (table.N == SMITH["table1"]["printed_n_unit"] * table.printed_n).all()
    assert table.set_index("nodes").N[36] == published.smith_deck()["deck"]["N"][1]
    memory = SMITH["cluster"]["memory_per_node"]["value"] * 1e9
    assert (8 * table.N**2 / (table.nodes * memory)).between(0.75, 1).all()


def test_smith_rpeak_follows_from_its_cores_and_clock():
    cores, clock, flop, peak = (
        SMITH["cluster"][name]["value"]
        for name in ("cores_per_node", "clock", "flop_per_cycle", "rpeak_per_node")
    )
    assert peak == pytest.approx(cores * clock * flop)


def test_appendix_b_deck_is_complete_and_is_the_36_node_case():
    """The mended deck writes as a whole HPL.dat; the printed text alone cannot be read as one."""
    appendix = published.smith_deck()
    deck = appendix["deck"]
    assert hpl_dat.read(hpl_dat.render(deck)) == deck and deck["P"] * deck["Q"] == 36
    with pytest.raises(FalloffError):
        hpl_dat.read(appendix["printed"])


def test_blogs_results_imply_one_rpeak():
    """All four rates and efficiencies agree on 8.8 Gflop/s a node, to a unit of the last printed digit."""
    units, peak = (
        BLOG["rounding"]["units_of_last_digit"],
        BLOG["cluster"]["rpeak_per_node"]["value"],
    )
    for row in published.bonding_blog().itertuples():
        slack = units * (0.01 / row.rate_gflop_s + 0.1 / row.efficiency_percent)
        implied = row.rate_gflop_s / (row.efficiency_percent / 100) / row.nodes
        assert implied == pytest.approx(peak, rel=slack)


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


def test_totals_are_in_thousands_of_1024_bytes():
    """The printed ranges hold the sums of the printed lines in that unit, and in no other."""
    totals = NEMO["totals"]
    printed = kib_s("smc_8505t", 1500, "both") * published.KIBIBYTE
    low, high = (totals["smc_8505t_1500"][end]["value"] for end in ("low", "high"))
    fitting = [unit for unit in (10**6, 1024000, 2**20) if low <= printed / unit <= high]
    assert fitting == [totals["megabyte"]["value"]] == [1024000]
    jumbo = totals["smc_8505t_8982"]
    assert (
        jumbo["low"]["value"] <= kib_s("smc_8505t", 8982, "both") / 1000 <= jumbo["high"]["value"]
    )


def test_frames_are_the_ping_payload_and_its_headers():
    """8954 + 8 + 20 = 8982, the MTU of the tests, and 14 more are 8996."""
    for switch in ("smc_8505t", "smc_8508t"):
        limit = NEMO["frame_limit"][switch]
        payload, mtu, frame = (limit[name]["value"] for name in ("payload", "mtu", "frame"))
        assert (mtu, frame) == (payload + 8 + IPV4_HEADER, mtu + ETHERNET_HEADER)
        assert kib_s(switch, mtu) > 0


def test_grid5000s_maxima_have_their_order():
    """Through the bridge outwards is slowest and near its saturation; two nodes of a site are fastest."""
    maximum = {name: rate["value"] for name, rate in GRID["maximum"].items()}
    assert list(maximum) == sorted(maximum, key=maximum.get)
    assert maximum["node_to_node"] < GRID["backbone"]["rate"]["value"]
    outwards = maximum[GRID["bridge"]["crossed_outwards_by"]]
    assert outwards == pytest.approx(GRID["bridge"]["saturation"]["value"], rel=0.1)


def test_beowulfs_words_and_numbers_agree():
    """The original is the local wire's throughput over the printed factor, which the wires alone give."""
    throughput, ratio = BEOWULF["throughput"], BEOWULF["ratio"]
    derived = throughput["local_wire"]["value"] / ratio["local_wire"]["value"]
    assert throughput["bonded_dual_net"]["value"] == pytest.approx(derived, rel=0.02)
    mesh, original = (BEOWULF["wires"][name]["value"] for name in ("mesh", "original"))
    assert mesh / original == ratio["local_wire"]["value"]
    assert mesh / 2 / original == ratio["remote_wire"]["value"]


def test_only_the_writes_of_both_ends_fit_beowulfs_wires():
    """Seven wires of 10 Mbit/s carry 8.75 MB/s, a fast one 12.5: 6.3 are a part of it, twice that are too much.

    8192 bytes are 5 full segments of 1460 and one of 892, each with 40 bytes of headers and 38 of Ethernet's.
    """
    assert message_wire_bytes(8192, ETHERNET_MTU, HEADERS) == 8192 + 6 * (40 + 38)
    shares = {(one.wires, one.writes): one.share for one in readings()}
    for wires, carried in ((7, 8.75), (1, 12.5)):
        assert shares[wires, "both ends"] == pytest.approx(6.3 / carried)
        assert shares[wires, "the producer"] == pytest.approx(12.6 / carried)
    assert {one.writes for one in readings() if one.possible} == {"both ends"}
