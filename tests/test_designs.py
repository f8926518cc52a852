"""Network designs: the shipped file against its source, what follows from it, and what is
refused.
"""

import copy
import csv
import json
import re
import tomllib

import pytest
from command_line import run

from analysis import paths, planning
from analysis.descriptions import switch_designs
from analysis.subjects import designs
from runners import two_level
from runners.records.record import FalloffError

NEMO = tomllib.loads((paths.DESIGNS / "nemo.toml").read_text(encoding="utf-8"))
CHECKED = switch_designs.checked(NEMO)
OF_THE_PAGE = ["cisco_dfc_2to1", "cisco_2to1", "e600_2to1", "e1200_2to1"]


def changed(**places):
    """The shipped file with values replaced, by place with `__` for a dot, or taken out for
    None.
    """
    described = copy.deepcopy(NEMO)
    for place, value in places.items():
        *tables, key = place.split("__")
        row = described
        for table in tables:
            row = row[table]
        row[key] = value
        if value is None:
            del row[key]
    return described


def number(value, unit, source="mine"):
    return {"value": value, "unit": unit, "source": source}


def test_the_parts_are_the_sources():
    """Ports and prices of the switches, and the rate of a node, are those of the published page."""
    page = tomllib.loads((paths.PUBLISHED / "nemo.toml").read_text(encoding="utf-8"))
    for name, switch in page["switch"].items():
        for key in ("ports", "price"):
            assert getattr(CHECKED.edges[name], key).value == switch[key]["value"]
    with (paths.PUBLISHED / "nemo_netperf.csv").open(encoding="utf-8") as file:
        (goodput,) = [
            float(row["goodput_kib_s"])
            for row in csv.DictReader(file)
            if (row["path"], row["mtu"], row["direction"]) == ("smc_8505t", "1500", "forward")
        ]
    assert CHECKED.cluster.node_bandwidth.value == pytest.approx(1024 * goodput, rel=1e-5)
    prices = [core.price.value for core in CHECKED.cores.values()]
    assert prices == [117e3, 94e3, 126e3, 141e3]


def test_a_design_by_hand():
    """The page's are oversubscribed by two: 240 switches of two nodes and the core; only Cisco's
    cores block.

    With every slot filled there are 8 cards of 48 such switches.
    """
    found = designs.table(CHECKED).loc[OF_THE_PAGE]
    assert (found.edge_oversubscription == 2).all()
    assert (found.core_oversubscription > 1).tolist() == [True, True, False, False]
    found = found.loc["cisco_2to1"]
    assert found.cost == 240 * 62 + 94e3 and found.cost_per_node == found.cost / 480
    assert found.largest_cluster == 8 * 48 * 2
    assert found.core_oversubscription == pytest.approx(48 * 117.66e6 / 4.706e9)
    assert found.bisection == pytest.approx(5 * 4.706e9 / 2)


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("cluster", None, "cluster is missing"),
        ("title", 3, "title = 3 must be a name"),
        ("spine", {}, "spine is unknown"),
        ("edges.smc_8505t.price", 62, "smc_8505t.price = 62 must be { value = a number above 0"),
        ("edges.smc_8505t.ports", number(5.0, "1"), "must be { value = a whole number from 1"),
        ("cluster.latency", number(40, "us"), 'above 0, unit = "s"'),
        ("cores.cisco_6509e.slots", None, "cores.cisco_6509e.slots is missing"),
        ("cores.cisco_6509e.slot", number(9, "1"), "cores.cisco_6509e.slot is unknown"),
        ("cores.cisco_6509e.cards", number(9, "1"), "cores.cisco_6509e has 9 slots"),
        ("cores.cisco_6509e", 9, "cores.cisco_6509e = 9 must be a table"),
        ("designs.cisco_2to1.core", "cisco", "designs.cisco_2to1 names edge"),
        ("designs.crossbar", NEMO["designs"]["cisco_2to1"], "designs.crossbar is the network"),
        ("edges.smc_8505t.uplinks", number(49, "1"), "needs a port of a card"),
        ("designs.e600_4to1.nodes_per_edge", number(5, "1"), "needs a port of SMC 8505T"),
    ],
)
def test_a_fault_is_named_with_its_place(place, value, said):
    """What is missing, unknown, in another unit or does not fit is said where it is."""
    with pytest.raises(FalloffError, match="design file nemo") as refusal:
        switch_designs.checked(changed(**{place.replace(".", "__"): value}))
    assert said in str(refusal.value)


def test_networks_are_the_crossbar_and_a_tree_for_each_design():
    """Only the designs have a tree, which survives JSON; no two are called alike."""
    made, called = CHECKED.networks(), CHECKED.names()
    assert list(made) == ["crossbar", *CHECKED.designs] == list(called)
    trees = json.loads(json.dumps({name: each.get("tree") for name, each in made.items()}))
    assert trees.pop("crossbar") is None
    for name, tree in trees.items():
        assert two_level.from_table(tree) == CHECKED.network(name)
    assert len({names["short"] for names in called.values()}) == len(called)


def test_the_text_has_every_design_and_every_assumption():
    """A line for each design, `unknown` where a price is; what cards beyond those in a price cost
    is not made up.
    """
    assert "cisco_2to1 " in run("report", "--design", str(paths.DESIGNS / "nemo.toml")).stdout
    lines = designs.text(
        switch_designs.checked(changed(cluster__nodes=number(500, "1")))
    ).splitlines()
    rows = {line.split()[0]: line for line in lines[2 : 2 + len(CHECKED.designs)]}
    assert [*rows] == list(CHECKED.designs)
    assert "unknown" in rows["e1200_2to1"] and "nan" not in "".join(lines)
    places = re.findall(r"^  (\S+) = ", "\n".join(lines), re.M)
    assert places == [place for place in CHECKED.assumed() if place != "cluster.nodes"]
    assert any(line.startswith("  cluster.latency = 4e-05 s: MPI over TCP") for line in lines)


def test_a_campaign_is_over_designs_and_prices_do_not_make_it_another(monkeypatch):
    """Designs are levels of `interconnect`, called as the file says; a new price leaves finished
    trials valid.
    """
    plan = planning.plan_campaign("oversubscription", "nemo", "full")
    assert plan.interconnects["cisco_2to1"]["short"] == "6509E, 2:1"
    dearer = switch_designs.checked(changed(cores__cisco_6509e__price=number(1e6, "USD")))
    monkeypatch.setattr(switch_designs, "read", lambda file: dearer)
    assert planning.plan_campaign("oversubscription", "nemo", "full").digest == plan.digest
