"""A night's session sees every node, fits its minutes, and runs as the documentation's timer runs
it.
"""

import json
import os
import re
import subprocess

import pytest
from command_line import ROOT

from analysis.descriptions import testbeds
from analysis.watch import nightly
from runners.records.record import FalloffError

CLUSTER = testbeds.read("example_ssh")


def session(nodes, minutes=5, **changes):
    """The campaigns of a cluster of so many nodes, by name."""
    hosts = [f"n{number}" for number in range(1, nodes + 1)]
    cluster = CLUSTER.changed(hosts=hosts, nodes=nodes, **changes)
    return {one.name: one for one in nightly.campaigns_of(cluster, minutes)}


@pytest.mark.parametrize("nodes", [4, 5, 16, 37, 1000])
def test_every_node_is_seen(nodes):
    found = session(nodes)
    settings = found["nightly_tokens"].settings
    ends = [int(one) for key in ("producers", "consumers") for one in settings[key].split(",")]
    assert sorted(ends) == [*range(1, nodes + 1 - nodes % 2)]
    assert found["nightly_hpl"].factors["nodes"] == [nodes]
    assert found["suspects"].factors["nodes"] == ["all"]
    assert {one.factors["interconnect"][0] for one in found.values()} == {"10gige"}


@pytest.mark.parametrize("minutes", [2, 5, 20])
@pytest.mark.parametrize("nodes", [4, 128])
def test_hpl_takes_its_share_of_the_minutes(nodes, minutes):
    """At half of the peak, from its 2/3 N^3 operations; never more than the matrix's share of the
    memory.
    """
    hpl = session(nodes, minutes)["nightly_hpl"]
    (order,), rate = hpl.factors["N"], 0.5 * nodes * CLUSTER.rpeak.resolved()["value"]
    assert 0.1 * minutes < 2 * (2 / 3 * order**3 / rate) / 60 < 0.3 * minutes
    little = session(nodes, minutes, memory_bytes=1e8)["nightly_hpl"]
    assert 0.7 * 0.8e8 * nodes < 8 * little.factors["N"][0] ** 2 <= 0.8e8 * nodes
    grid = little.levels["nodes"][str(nodes)]
    assert grid["P"] * grid["Q"] == nodes


def test_more_minutes_are_more_partners_up_to_twenty():
    rounds = [session(100, minutes)["suspects"].settings["rounds"] for minutes in (2, 2.5, 9)]
    assert 5 <= rounds[0] < rounds[1] <= rounds[2] == 20


@pytest.mark.parametrize(("testbed", "minutes"), [("example_ssh", 1), ("smith", 5)])
def test_what_no_session_fits_is_refused(testbed, minutes):
    with pytest.raises(FalloffError, match="at least"):
        nightly.campaigns_of(testbeds.read(testbed), minutes)


@pytest.mark.long
def test_the_timers_command_runs_twice(tmp_path):
    """The unit's commands in the documentation, with two minutes on four emulated nodes: two
    sessions, one history.
    """
    unit = (ROOT / "docs" / "history.md").read_text()
    commands = [
        line.replace("%%", "%").replace("--minutes 5", "--minutes 2")
        for line in re.findall(r"ExecStart=/bin/sh -c '(.*)'\n", unit)
    ]
    assert len(commands) == 2
    own = tmp_path / "data" / "testbeds"
    own.mkdir(parents=True)
    (own / "mycluster.toml").write_text('extends = "scale_model"\nname = "mycluster"\nnodes = 4\n')
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    around = {**os.environ, "FALLOFF_HOME": str(tmp_path)}

    def run(command):
        argv = ["/bin/sh", "-c", command]
        return subprocess.run(argv, cwd=tmp_path, env=around, capture_output=True, text=True)

    for minute in ("01", "02"):  # the same minute would be one folder
        measured = run(commands[0].replace("%H%M", f"00{minute}"))
        assert measured.returncode == 0, measured.stderr
    told = run(commands[1])
    assert told.returncode == 2, told.stderr  # so few sessions decide nothing
    assert "<svg" in (tmp_path / "cluster.html").read_text()
    found = json.loads(run(".venv/bin/falloff history nights --json").stdout)
    whats = {one["what"] for one in found["quantities"]}
    assert found["sessions"] == 2 and {"hpl rate, 4 nodes", "token throughput"} < whats
