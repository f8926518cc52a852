"""Network designs: the shipped file against its source, what follows from it, and what is refused."""

import copy
import csv
import json
import math
import tomllib

import pytest

import experiment
from analysis import design_table, designs, paths
from runners import two_level
from runners.record import FalloffError

NEMO = tomllib.loads((paths.DESIGNS / "nemo.toml").read_text(encoding="utf-8"))
CHECKED = designs.check(NEMO)
OF_THE_PAGE = ["cisco_dfc_2to1", "cisco_2to1", "e600_2to1", "e1200_2to1"]


def changed(place: str, value):
    """The shipped file with one value replaced, or taken out for None."""
    described = copy.deepcopy(NEMO)
    *tables, key = place.split(".")
    row = described
    for table in tables:
        row = row[table]
    if value is None:
        del row[key]
    else:
        row[key] = value
    return described


def number(value, unit, source="mine"):
    return {"value": value, "unit": unit, "source": source}


def rows(nodes=0, prices=None, described=CHECKED):
    """The table by design."""
    return design_table.table(described, nodes, prices).set_index("design")


def test_the_parts_are_the_sources():
    """Ports and prices of the switches, and the rate of a node, are those of the published page."""
    page = tomllib.loads((paths.PUBLISHED / "nemo.toml").read_text(encoding="utf-8"))
    for name, switch in page["switch"].items():
        for key in ("ports", "price"):
            assert CHECKED.edges[name][key] == switch[key]["value"]
    with (paths.PUBLISHED / "nemo_netperf.csv").open(encoding="utf-8") as file:
        (goodput,) = [
            float(row["goodput_kib_s"])
            for row in csv.DictReader(file)
            if (row["path"], row["mtu"], row["direction"]) == ("smc_8505t", "1500", "forward")
        ]
    assert CHECKED.cluster["node_bandwidth"] == pytest.approx(1024 * goodput, rel=1e-5)
    assert {name: core["price"] for name, core in CHECKED.cores.items()} == {
        "cisco_6509e_dfc": 117e3,
        "cisco_6509e": 94e3,
        "force10_e600": 126e3,
        "force10_e1200": 141e3,
    }


def test_the_pages_designs_are_oversubscribed_by_two_and_leave_its_slots_free():
    """Twofold at the edges, five full cards, and as many free slots as the page counts; only Cisco's cores block."""
    found = rows().loc[OF_THE_PAGE]
    assert (found.edge_oversubscription == 2).all() and (found.cards == 5).all() and (found.free_ports == 0).all()
    assert found.free_slots.tolist() == [3, 3, 2, 9]
    assert (found.core_oversubscription > 1).tolist() == [True, True, False, False]


def test_a_design_by_hand():
    """240 switches of two nodes and the core; with every slot filled, 8 cards of 48 such switches."""
    found = rows().loc["cisco_2to1"]
    assert found.edges == 240 and found.cost == 240 * 62 + 94e3 and found.cost_per_node == found.cost / 480
    assert found.largest_cluster == 8 * 48 * 2
    assert found.core_oversubscription == pytest.approx(48 * 117.66e6 / 4.706e9)
    assert found.bisection == pytest.approx(5 * 4.706e9 / 2)


def test_forwarding_bounds_the_core_without_distributed_forwarding():
    """With 384 uplinks one supervisor forwards less than the cards would carry; forwarding on the cards does not."""
    found = rows(768)
    assert found.core_oversubscription["cisco_2to1"] == pytest.approx(384 * 117.66e6 / 28.96e9)
    assert found.core_oversubscription["cisco_dfc_2to1"] < found.core_oversubscription["cisco_2to1"]


def test_edge_switches_are_spread_over_the_cards_of_the_price():
    """120 uplinks on five cards are 24 on each, which none blocks; on three full cards they would be blocked."""
    network = CHECKED.network("cisco_4to1")
    assert (network.edges_per_card, network.cards, network.core_oversubscription) == (24, 5, 1)


def test_what_a_further_card_costs_is_not_made_up():
    """Beyond five cards the cost is unknown, unless the file has a price for them; what is free is known."""
    found = rows(500).loc["e1200_2to1"]
    assert math.isnan(found.cost) and math.isnan(found.cost_per_node) and (found.cards, found.free_slots) == (6, 8)
    priced = designs.check(changed("cores.force10_e1200.card_price", number(10e3, "USD")))
    assert rows(500, described=priced).cost["e1200_2to1"] == 250 * 62 + 141e3 + 10e3
    assert rows(480, described=priced).cost["e1200_2to1"] == rows(480).cost["e1200_2to1"]


def test_what_does_not_fit_into_the_slots_has_no_cost():
    """One node more than the largest cluster: neither a cost nor anything free, with a known price of cards too."""
    priced = designs.check(changed("cores.force10_e600.card_price", number(10e3, "USD")))
    most = int(rows().largest_cluster["e600_2to1"])
    last, beyond = (rows(nodes, described=priced).loc["e600_2to1"] for nodes in (most, most + 1))
    assert last.free_slots == 0 == last.free_ports and last.cost == most / 2 * 62 + 126e3 + 2 * 10e3
    assert beyond[["cost", "cost_per_node", "free_ports", "free_slots"]].isna().all()


def test_prices_can_be_given():
    """A part's price moves the designs that have it and no other; an unknown part is refused with the known ones."""
    before, after = rows(), rows(prices={"cisco_6509e": 90e3, "smc_8508t": 100})
    assert (before.cost - after.cost).loc[["cisco_2to1", "cisco_4to1", "e600_4to1"]].tolist() == [4e3, 4e3, 0]
    assert after.cost["e600_7to1"] - before.cost["e600_7to1"] == 11 * after.edges["e600_7to1"]
    for wrong in ({"smc": 3}, {"smc_8505t": -1}, {"smc_8505t": math.nan}):
        with pytest.raises(FalloffError, match=f"prices: {next(iter(wrong))}: .*smc_8505t.*force10_e600"):
            rows(prices=wrong)


def test_what_is_assumed_is_said_of_each_design_with_its_reason():
    """What the page does not print is marked with a reason; each design lists what it rests on and nothing else."""
    assert {"cluster.nodes", "cluster.latency", "edges.smc_8505t.uplinks"} <= set(CHECKED.assumed)
    assert all(len(reason) > len("assumed: ") for reason in CHECKED.assumed.values())
    assert not [place for place in CHECKED.assumed if place.endswith(("price", "slots", "ports", "cards"))]
    found = rows().assumed
    assert "cores.cisco_6509e.core_bandwidth" in found["cisco_2to1"]
    assert not [place for place in found["e600_2to1"] if place.startswith(("cores", "designs"))]
    assert "designs.e600_4to1.nodes_per_edge" in found["e600_4to1"]


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("cluster", None, "[cluster] is missing"),
        ("designs", {}, "[designs] is missing"),
        ("title", 3, "title must be a text"),
        ("spine", {}, "spine is unknown"),
        ("edges.smc_8505t.price", 62, 'edges.smc_8505t.price must be { value = a number above 0, unit = "USD"'),
        ("edges.smc_8505t.ports", number(5.0, "1"), "edges.smc_8505t.ports must be { value = a whole number from 1"),
        ("cluster.latency", number(40, "us"), 'cluster.latency must be { value = a number above 0, unit = "s"'),
        ("cores.cisco_6509e.card_bandwidth", number(math.inf, "B/s"), "cores.cisco_6509e.card_bandwidth must be"),
        ("cores.cisco_6509e.slots", None, "cores.cisco_6509e.slots is missing"),
        ("cores.cisco_6509e.slot", number(9, "1"), "cores.cisco_6509e.slot is unknown"),
        ("cores.cisco_6509e.cards", number(9, "1"), "cores.cisco_6509e: 9 slots do not hold"),
        ("cores.cisco_6509e", 9, "cores.cisco_6509e must be a table"),
        ("designs.cisco_2to1.core", "cisco", "designs.cisco_2to1: core 'cisco' is not in [cores]"),
        ("designs.crossbar", NEMO["designs"]["cisco_2to1"], "designs.crossbar: the network without oversubscription"),
        ("edges.cisco_6509e", NEMO["edges"]["smc_8505t"], "'cisco_6509e' is in both [edges] and [cores]"),
        ("edges.smc_8505t.uplinks", number(49, "1"), "a card of Cisco 6509E has no port for each uplink"),
        ("designs.cisco_2to1.edge", 3, "designs.cisco_2to1.edge must be a text"),
        ("designs.e600_4to1.nodes_per_edge", number(5, "1"), "designs.e600_4to1: SMC 8505T has no port for each"),
    ],
)
def test_a_fault_is_named_with_its_place(place, value, said):
    """What is missing, unknown, in another unit or does not fit is said where it is."""
    with pytest.raises(FalloffError, match="design file nemo: ") as refusal:
        designs.check(changed(place, value))
    assert said in str(refusal.value)


def test_all_faults_are_named_at_once():
    """One run tells all that has to be mended."""
    described = changed("edges.smc_8505t.price", 62)
    described["cores"]["force10_e600"].pop("ports")
    described["designs"]["mine"] = {"edge": "smc_8505t"}
    with pytest.raises(FalloffError) as refusal:
        designs.check(described)
    for place in ("edges.smc_8505t.price", "cores.force10_e600.ports", "designs.mine.nodes_per_edge", "mine.core"):
        assert place in str(refusal.value)


def test_networks_are_the_crossbar_and_a_tree_for_each_design():
    """All have a node's own link; only the designs have a tree, which makes their network at any number of nodes."""
    made = designs.networks(CHECKED)
    assert list(made) == ["crossbar", *CHECKED.designs] == list(designs.names(CHECKED))
    assert "tree" not in made["crossbar"]
    for name in CHECKED.designs:
        assert made[name]["bandwidth"] == made["crossbar"]["bandwidth"]
        table = json.loads(json.dumps(made[name]["tree"], allow_nan=False))
        assert two_level.from_table({**table, "nodes": 120}) == CHECKED.network(name, 120)


def test_names_tell_designs_apart():
    """No two designs are called alike in a figure or a table."""
    called = designs.names(CHECKED).values()
    for key in ("name", "short"):
        assert len({each[key] for each in called}) == len(called)


def test_the_testbed_has_the_designs_networks_and_smiths_nodes():
    """Testbed nemo is described by the designs' networks alone, and by the node of the cluster that it extends."""
    nemo, smith = experiment.read_testbed("nemo"), experiment.read_testbed("smith")
    assert nemo["network"] == designs.networks(CHECKED) and nemo["rates"] == smith["rates"]
    assert nemo["kind"] == "simulated" and nemo["nodes"] >= 960


def test_a_campaign_is_over_designs_and_prices_do_not_make_it_another(tmp_path, monkeypatch):
    """Designs are levels of `interconnect`, called as the file says; a new price leaves finished trials valid."""
    campaign = (paths.CAMPAIGNS / "hpl_beyond.toml").read_text(encoding="utf-8")
    listed = campaign.index("interconnect = ["), campaign.index("]", campaign.index("interconnect = [")) + 1
    campaign = campaign[: listed[0]] + 'interconnect = ["crossbar", "cisco_2to1"]' + campaign[listed[1] :]
    campaign = campaign.replace('interconnect = "10gige"', 'interconnect = "crossbar"')
    (tmp_path / "mine.toml").write_text(campaign)
    monkeypatch.setattr(paths, "CAMPAIGNS", tmp_path)
    plan = experiment.plan_campaign("mine", "nemo", "full")
    assert plan.interconnects["cisco_2to1"]["short"] == "6509E, 2:1"
    dearer = designs.check(changed("cores.cisco_6509e.price", number(1e6, "USD")))
    monkeypatch.setattr(designs, "check", lambda described: dearer)
    assert experiment.plan_campaign("mine", "nemo", "full").digest == plan.digest


def test_the_text_has_every_design_and_every_assumption():
    """Aligned columns, a line for each design, `unknown` where a price is, and below it what is assumed."""
    lines = design_table.text(CHECKED, 500).splitlines()
    table = lines[1 : 2 + len(CHECKED.designs)]
    assert [line.split()[0] for line in table[1:]] == list(CHECKED.designs)
    assert len({len(line) for line in table}) == 1
    assert "unknown" in table[1 + list(CHECKED.designs).index("e1200_2to1")] and "nan" not in " ".join(lines)
    assert [line.split(" = ")[0].strip() for line in lines if line.startswith("  ")] == list(CHECKED.assumed)
    assert "  cluster.latency = 4e-05 s: MPI over TCP" in "\n".join(lines)
