"""The published TCP measurements agree with themselves, with the wire and with their own text."""

import pytest
from test_published import quantities

from analysis import published
from analysis.wire import ETHERNET_HEADER, IPV4_HEADER

ICMP_HEADER = 8
NEMO, GRID = published.nemo(), published.grid5000()


def of(path, mtu, direction):
    """The netperf rows of one test."""
    return published.nemo_netperf().query(
        "path == @path and mtu == @mtu and direction == @direction"
    )


def total(path, mtu, direction="both"):
    """Goodput of all flows of a test [2^10 B/s]."""
    return of(path, mtu, direction)["goodput_kib_s"].sum()


def test_every_test_is_complete():
    """One flow one way, two flows both ways; six tests of three paths one way, three both ways."""
    tests = published.nemo_netperf().groupby(["path", "mtu", "direction"])["flow"].agg(list)
    assert len(tests) == 9 and tests.index.get_level_values("path").nunique() == 3
    for (_, _, direction), flows in tests.items():
        assert flows == (["forward", "reverse"] if direction == "both" else ["forward"])


def test_no_goodput_exceeds_its_wire_limit():
    """One way at MTU 1500 every path is at 99.9 % or more, and jumbo frames through the switches are not."""
    table = published.nemo_netperf()
    table["share"] = published.wire_share(table, NEMO["netperf"]["line_rate"]["value"])
    assert table["share"].between(0.3, 1).all()
    one_way = table[table["direction"] == "forward"].set_index(["path", "mtu"])["share"]
    assert one_way.xs(1500, level="mtu").between(0.999, 1).all()
    assert one_way["crossover", 9000] == pytest.approx(0.994, abs=5e-4)
    assert one_way.xs(8982, level="mtu").between(0.79, 0.80).all()


def test_totals_are_in_thousands_of_1024_bytes():
    """The printed ranges hold the sums of the printed lines in that unit, and in no other."""
    totals = NEMO["totals"]
    printed = total("smc_8505t", 1500) * 1024
    low, high = (totals["smc_8505t_1500"][end]["value"] for end in ("low", "high"))
    units = {
        unit: low <= printed / unit <= high for unit in (1e6, totals["megabyte"]["value"], 2**20)
    }
    assert units == {1e6: False, 1024000: True, 2**20: False}
    assert printed == pytest.approx(
        totals["smc_8505t_1500"]["bytes_per_second"]["value"], abs=0.05e6
    )
    jumbo = totals["smc_8505t_8982"]
    assert jumbo["low"]["value"] <= total("smc_8505t", 8982) / 1000 <= jumbo["high"]["value"]


def test_jumbo_frames_through_the_switch_share_one_total():
    """Both ways at 8982 move as much as one way; at 1500 both ways move nearly twice as much."""
    assert total("smc_8505t", 8982) == pytest.approx(total("smc_8505t", 8982, "forward"), rel=0.01)
    assert total("smc_8505t", 1500) > 1.9 * total("smc_8505t", 1500, "forward")


def test_each_machine_has_one_cpu_share():
    """Both ways, one netperf's local machine is the other's remote one: the two readings differ little."""
    both = published.nemo_netperf().query("direction == 'both'")
    for _, flows in both.groupby(["path", "mtu"]):
        (here, there), (there_too, here_too) = flows[
            ["cpu_local_percent", "cpu_remote_percent"]
        ].to_numpy()
        assert here == pytest.approx(here_too, abs=0.3) and there == pytest.approx(
            there_too, abs=0.3
        )


def test_frames_are_the_ping_payload_and_its_headers():
    """8954 + 8 + 20 = 8982, the MTU of the tests, and 14 more are 8996; the cable's limit is above both."""
    for switch in ("smc_8505t", "smc_8508t"):
        limit = NEMO["frame_limit"][switch]
        payload, mtu, frame = (limit[name]["value"] for name in ("payload", "mtu", "frame"))
        assert (mtu, frame) == (payload + ICMP_HEADER + IPV4_HEADER, mtu + ETHERNET_HEADER)
        assert mtu == published.nemo_netperf().query("path == @switch")["mtu"].max()
    cable = {name: limit["value"] for name, limit in NEMO["frame_limit"]["crossover"].items()}
    assert cable["frame_above"] < cable["frame_low"] < cable["frame_high"] == 9000 + ETHERNET_HEADER


def test_grid5000s_maxima_have_their_order():
    """Through the bridge outwards is slowest and near its saturation; two nodes of a site are fastest."""
    maximum = {name: rate["value"] for name, rate in GRID["maximum"].items()}
    bridge = GRID["bridge"]
    assert list(maximum) == sorted(maximum, key=maximum.get)
    assert maximum["node_to_node"] < GRID["backbone"]["rate"]["value"]
    assert maximum[bridge["crossed_outwards_by"]] == pytest.approx(
        bridge["saturation"]["value"], rel=0.1
    )


def test_every_number_has_its_unit_and_place():
    """A number says where it is printed, or how it is derived; every netperf line names its source."""
    for facts in (NEMO, GRID):
        for quantity in quantities(facts):
            assert quantity.get("where") or quantity.get("derived")
            assert isinstance(quantity["value"], str) or quantity["unit"]
        assert {"author", "title", "year"} <= set(facts["source"]) and facts["lost"]["what"]
    assert published.nemo_netperf()["source"].str.startswith(NEMO["source"]["short"]).all()
