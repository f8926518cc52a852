"""What follows from the sources' printed numbers alone: for each claim, every reading of them by
its meaning.

If a source's words leave the statistic or the unit open, each choice is a reading. Numbers that
were computed from printed ones (`printed_how`) have no reading, because there is nothing else to
check them against.
"""

from analysis.dataset import published
from analysis.dataset.wire import (
    ETHERNET_HEADER,
    IPV4_HEADER,
    TCP_HEADER,
    message_wire_bytes,
    wire_limit,
)

KIB, MIB, GIB = 2**10, 2**20, 2**30  # bytes
ICMP_HEADER = 8  # bytes
PERCENT = 0.01
SYSTEMS = 500  # of one of TOP500's lists
# By the id of a number about a family's systems: the columns of top500_families.csv that it may
# mean.
STATISTICS = {
    "gige_average": {
        "mean of the ratios": "mean_percent",
        "ratio of the sums": "ratio_of_sums_percent",
        "median": "median_percent",
    },
    "gige_highest": {"highest": "highest_percent"},
    "gige_lowest": {"lowest": "lowest_percent"},
}
Readings = dict[str, dict[str, float]]


def readings() -> Readings:
    """The readings by claim id, in the claim's unit; those of TOP500's lists by the aggregate's
    id."""
    return {**_nemo(), **_grid5000(), **_beowulf(), **_bonding(), **_smith(), **_top500()}


def _top500() -> Readings:
    """What the lists themselves have: of a family's systems, or of the one system that the number
    is about.
    """
    families = published.table("top500_families").set_index(["list", "family"])
    readings: Readings = {}
    for number in published.facts("top500")["aggregate"]:
        name, unit = number["id"], PERCENT if number["unit"] == "%" else 1.0
        family = families.loc[number["list"], number["family"]]
        if name == "gige_share":
            readings[name] = {"systems of 500": family.systems / SYSTEMS}
        elif name in STATISTICS:
            readings[name] = {
                meaning: PERCENT * family[column] for meaning, column in STATISTICS[name].items()
            }
        elif "in_list" in number:
            readings[name] = {"that system in the list": unit * number["in_list"]}
    return readings


def _nemo() -> Readings:
    tests = (
        published.table("nemo_netperf").groupby(["path", "direction", "mtu"]).goodput_kib_s.sum()
    )
    facts = published.facts("nemo")
    cable, switch = tests["crossover"], tests["smc_8505t"]
    frame = facts["frame_limit"]["smc_8505t"]["frame"]["value"]
    limit = wire_limit(facts["netperf"]["line_rate"]["value"], 8982) / 8 / KIB
    over_cable = "goodput of test 2 over the cable's"
    alone = cable["forward", 1500]
    return {
        "nemo_8505t_is_cable": {over_cable: switch["forward", 1500] / alone},
        "nemo_8508t_is_cable": {over_cable: tests["smc_8508t", "forward", 1500] / alone},
        "nemo_total_1500": _megabytes(switch["both", 1500]),
        "nemo_total_jumbo": _megabytes(switch["both", 8982]),
        "nemo_frames_8505t": _frames(facts["frame_limit"]["smc_8505t"]),
        "nemo_frames_8508t": _frames(facts["frame_limit"]["smc_8508t"]),
        "nemo_frames_cable": {"MTU 9000 and Ethernet's header": 9000 + ETHERNET_HEADER},
        "nemo_frames_9kb": {
            "frames of 8996 bytes, 1 kB = 1000 B": frame / 1000,
            "1 kB = 1024 B": frame / KIB,
        },
        "nemo_non_blocking": {
            "goodput of test 1 over what the wire carries at MTU 8982": switch["forward", 8982]
            / limit
        },
    }


def _megabytes(kib_s: float) -> dict[str, float]:
    """The sum of both flows in each possible meaning of a megabyte: totals are printed in MB/s,
    flows in KB/s of 2^10 bytes."""
    sizes = {"1000 KB": 1000, "1024 KB": 1024, "10^6 bytes": 1e6 / KIB}
    return {f"sum of both flows, 1 MB = {name}": kib_s / size for name, size in sizes.items()}


def _frames(limit: dict) -> dict[str, float]:
    ping = limit["payload"]["value"] + ICMP_HEADER + IPV4_HEADER
    return {
        "payload of the ping and its headers": ping + ETHERNET_HEADER,
        "MTU and Ethernet's header": limit["mtu"]["value"] + ETHERNET_HEADER,
    }


def _grid5000() -> Readings:
    facts = published.facts("grid5000")
    most = {name: row["value"] for name, row in facts["maximum"].items()}
    bridge, rate = facts["bridge"]["saturation"]["value"], facts["backbone"]["rate"]["value"]
    return {
        "grid5000_not_the_emulation": {
            "8.9 over 4.7 Gbit/s": most["node_to_node"] / most["lyon_to_rennes"]
        },
        "grid5000_64m_is_enough": {
            "64 MiB at 10 Gbit/s": 8 * facts["tcp"]["buffers"]["value"] / rate,
            "64 MB at 10 Gbit/s": 8 * 64e6 / rate,
        },
        "grid5000_bridge_limits_path": {"3.2 over 3 Gbit/s": most["rennes_to_lyon"] / bridge},
        "grid5000_not_the_sender": {"8.9 over 3 Gbit/s": most["node_to_node"] / bridge},
    }


def _beowulf() -> Readings:
    source = published.facts("beowulf")
    wires = {name: source["wires"][name]["value"] for name in ("mesh", "original")}
    exchange = source["exchange"]
    local = {"the mesh's wires over the original's": wires["mesh"] / wires["original"]}
    remote = {"half of the mesh's wires over the original's": wires["mesh"] / 2 / wires["original"]}
    # The wires are busses that both ways share. What both ends wrote crosses them once; what the
    # producers wrote crosses them again on its way back. The study's kernels did not have TCP
    # timestamps yet.
    token = exchange["largest_token"]["value"]
    framing = message_wire_bytes(token, 1500, IPV4_HEADER + TCP_HEADER) / token
    used = min(exchange["most_pairs"]["value"], wires["mesh"])
    most = used * source["wires"]["rate"]["value"] / 8 / framing
    return {
        "beowulf_peak_rate": {
            f"on {used} wires, by the writes of the producer": most / 2,
            f"on {used} wires, by the writes of both ends": most,
        },
        "beowulf_local_gain": local,
        "beowulf_switched_gain": remote,
        "beowulf_routed_gain": remote,
        "beowulf_switched_betters": remote,
        "beowulf_routed_betters": remote,
    }


def _bonding() -> Readings:
    """Efficiencies relative to the peak that all four printed results imply; the peak itself is not
    printed."""
    peak = published.facts("bonding")["cluster"]["rpeak_per_node"]["value"]
    rows = published.table("bonding").set_index(["nodes", "links_per_node"])
    reached = rows.rate_gflop_s / rows.index.get_level_values("nodes") / peak
    name = f"the rate over {peak} Gflop/s a node"
    return {
        "bonding_two_nodes": {name: reached[2, 1]},
        "bonding_two_nodes_bonded": {name: reached[2, 2]},
        "bonding_four_nodes": {name: reached[4, 1]},
        "bonding_four_nodes_bonded": {name: reached[4, 2]},
        "bonding_near_seventy": {
            "the efficiency printed with the rate": rows.efficiency_percent[2, 1] / 100
        },
    }


def _smith() -> Readings:
    facts, table = published.facts("fortinet"), published.table("fortinet_table1")
    networks = facts["micro_benchmarks"]
    fast, infiniband = networks["10gige"], networks["ddr_infiniband"]
    order = max(published.facts("fortinet_appendix_b")["deck"]["N"])
    unit = facts["table1"]["printed_n_unit"]
    memory = facts["cluster"]["memory_per_node"]["value"]
    matrix = (8 * table.N**2 / table.nodes).max()  # bytes per node
    printed = fast["bandwidth"]["value"]
    return {
        "fortinet_infiniband_raw": {
            "the ratio of bandwidths": infiniband["bandwidth"]["value"] / printed,
            "the inverse ratio of latencies": fast["latency"]["value"]
            / infiniband["latency"]["value"],
        },
        "fortinet_memory": {
            f"of {memory} GB a node": matrix / (memory * 1e9),
            f"of {memory} GiB a node": matrix / (memory * GIB),
        },
        "fortinet_largest_order": {
            "Appendix B's order": order,
            f"Appendix B's order over {unit}": order / unit,
        },
        "fortinet_fast_bandwidth": {
            f"{name} in frames of {mtu} B": 8 * printed * size / wire_limit(10e9, mtu)
            for name, size in {"10^6 B": 1e6, "2^20 B": MIB}.items()
            for mtu in (1500, 9000)
        },
    }
