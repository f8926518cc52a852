"""What paths and headers say of their runs, and what they must not be taken for."""

import pytest
import recorded

from analysis.imports.file_facts import (
    Facts,
    OutputFile,
    blocks_by_date,
    described,
    facts,
    network_named,
)

HPL = [{"N": 40000, "P": 4, "Q": 8}]


def alone(name, text="", results=HPL, is_pair=False) -> Facts:
    (found,) = facts([OutputFile(name, text, results)], is_pair)
    return found


@pytest.mark.parametrize(
    ("name", "network", "nodes", "repeat"),
    [
        ("results/1gbe/n02/run1/HPL.out", "gige", 2, 1),
        ("hpl_10g_8nodes_rep3.txt", "10gige", 8, 3),
        ("a/25GbE/nodes_16/r2.log", "25gige", 16, 2),
        ("2.5gbe/4n.iter7.out", "2.5gige", 4, 7),
        ("HPL-100G-4n.out", "100gige", 4, None),
        ("gigabit/node-8/take2", "gige", 8, 2),
        ("ib_edr/n8/1.out", "edr_infiniband", 8, None),
        ("10G_roce/n4.txt", "10gige_roce", 4, None),
        # N is HPL's order here, and 64 nodes cannot have run 32 processes.
        ("N40000_10ge.out", "10gige", None, None),
        ("10ge/n64/HPL.out", "10gige", None, None),
        ("plain/HPL.out", "", None, None),
    ],
)
def test_a_path_names_network_nodes_and_repeat(name, network, nodes, repeat):
    found = alone(name)
    assert (found.network, found.nodes, found.repeat) == (network, nodes, repeat)


def test_headers_name_nodes_ranks_and_the_moment():
    text = (
        "SLURM_JOB_NUM_NODES=4\nSLURM_NTASKS_PER_NODE=8\nHPL_pdgesv() start time Thu Mar 21 "
        "10:02:20 2024\n"
    )
    found = alone("job.out", text)
    assert (found.nodes, found.ranks_per_node) == (4, 8) and found.moment == "2024-03-21T10:02:20"
    assert alone("20240321_100220.out").moment == "2024-03-21T10:02:20"
    imb = alone("imb.txt", recorded.text("imb/2021.3-pingpong"), (), True)
    assert imb.moment == "2023-09-25T12:11:23"


def test_a_pair_is_two_hosts():
    assert alone("10g/n01-n02/osu_latency.txt", is_pair=True).pair == "n01-n02"
    assert alone("10g/osu_latency-2.txt", is_pair=True).pair == ""


def test_bare_numbers_are_nodes_only_if_the_processes_grow_with_them():
    """4 processes a node in every file; with another grid in one of them nothing is known."""

    def seen(nodes, run, processes):
        return OutputFile(f"{nodes}-{run}.out", "", [{"N": 1000, "P": 1, "Q": processes}])

    outputs = [seen(n, run, 4 * n) for n in (1, 2, 4) for run in (0, 1)]
    assert [(one.nodes, one.repeat) for one in facts(outputs)] == [
        (n, run) for n in (1, 2, 4) for run in (0, 1)
    ]
    outputs[0] = seen(1, 0, 6)
    assert {one.nodes for one in facts(outputs)} == {None}


def test_names_of_hosts_are_no_numbers_of_nodes():
    outputs = [OutputFile(f"node{n:02d}/HPL.out", "", HPL) for n in range(1, 9)]
    assert {one.nodes for one in facts(outputs)} == {None}


def test_the_only_folders_that_differ_are_networks():
    outputs = [
        OutputFile(f"{name}/n{n}/HPL.out", "", HPL) for name in ("blue", "red") for n in (1, 2)
    ]
    assert [one.network for one in facts(outputs)] == ["blue", "blue", "red", "red"]
    assert described("blue")["short"] == "blue" and network_named("blue/n1/x") == ""


def test_a_network_is_described_as_its_name_says():
    assert described("gige")["short"] == "GigE" and described("40gige")["rate_bit_s"] == 40e9
    assert described("edr_infiniband")["short"] == "EDR IB"
    assert described("10gige_roce")["short"] == "10GE (roce)"


def test_dates_tell_blocks_only_if_every_point_was_run_before_any_was_run_again():
    points = ["a", "b", "a", "b"]
    days = [f"2026-01-0{n}T00:00:00" for n in (1, 2, 3, 4)]
    assert blocks_by_date(points, days) == [1, 1, 2, 2]
    assert blocks_by_date(["a", "a", "b", "b"], days) is None
    assert blocks_by_date(points, [*days[:3], ""]) is None
    assert blocks_by_date(["a", "b", "a"], days[:3]) is None


@pytest.mark.parametrize(
    ("path", "network"),
    [
        ("ib-1/x.out", "infiniband"),
        ("roce-2/x.out", "roce"),
        ("ipoib/x.out", "ipoib"),
        ("10g/roce/x.out", "10gige_roce"),
        ("25g/roce/x.out", "25gige_roce"),
        ("10g/rocev2/run_tcp/x.out", "10gige_rocev2"),
        ("10g/tcp/x.out", "10gige"),
        ("16gb/x.out", ""),
        ("n4_64G_run1.out", ""),
        ("16gbit/x.out", "16gige"),
        ("mem_10g/x.out", ""),
        ("10g_ram/x.out", ""),
        ("10g/ram_10g/x.out", "10gige"),
        ("hpl_10g_ram_16gb.out", "10gige"),
        ("msg-100m.out", ""),
        ("1gb_size/x.out", ""),
    ],
)
def test_sizes_of_memory_are_no_networks_and_transports_are(path, network):
    assert network_named(path) == network


@pytest.mark.parametrize(
    ("name", "text", "moment"),
    [
        ("x.out", "Thu, 21 Mar 2024 10:02:20 +0200\n", "2024-03-21T10:02:20+02:00"),
        ("x.out", "Thu Mar 21 10:02:20 PM UTC 2024\n", "2024-03-21T22:02:20"),
        ("x.out", "Thu 21 Mar 2024 12:02:20 AM CET\n", "2024-03-21T00:02:20"),
        ("2024-03-21T10:02:20+02:00.out", "", "2024-03-21T10:02:20+02:00"),
        ("20240321T100220Z.out", "", "2024-03-21T10:02:20+00:00"),
        ("20240321-1002-03.out", "", "2024-03-21T10:02:03"),
        ("2024-13-41_10-02.out", "", ""),
    ],
)
def test_a_date_keeps_its_offset_and_half_of_the_day(name, text, moment):
    assert alone(name, text).moment == moment


def test_blocks_are_seen_in_dates_to_the_minute():
    """Runs of two points in one minute are of one block; two of one point are of nobody knows
    which.
    """
    minutes = [f"2026-01-01T10:0{minute}" for minute in (0, 0, 1, 1)]
    assert blocks_by_date("abab", minutes) == [1, 1, 2, 2]
    assert blocks_by_date("abba", minutes) == [1, 1, 2, 2]
    assert blocks_by_date("aabb", minutes) is None
    west = [
        "2026-01-01T10:00+02:00",
        "2026-01-01T08:30+00:00",
        "2026-01-01T09:00+00:00",
        "2026-01-01T12:00+02:00",
    ]
    assert blocks_by_date("abab", west) == [1, 1, 2, 2]
    assert blocks_by_date("abab", [*west[:3], "2026-01-01T12:00"]) is None
