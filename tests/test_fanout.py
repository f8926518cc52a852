"""Several flows at once: started together, counted over their common window, and shared how fairly."""

import os
import shutil
import subprocess
import time

import pytest
import recorded
from hypothesis import given
from hypothesis import strategies as st

from runners import fanout
from runners.fanout import Flow, flows
from runners.probes import fanout as probe
from runners.testbeds import netns

POINT = {"sender": 2, "receivers": 3, "duration_s": 2}
RECORDED = {"sender": 1, "receivers": 2, "duration_s": 2}
FORWARD = recorded.text("fanout/3.12-forward")


def flow(start, rates):
    """A flow with these rates [bit/s] in one second after the other."""
    counts = [0.0]
    for rate in rates:
        counts.append(counts[-1] + rate / 8)
    return Flow("10.9.0.2", start, tuple(map(float, range(len(counts)))), tuple(counts))


def values(found):
    """The readings of flows, by name."""
    return {reading.name: reading.value for reading in fanout.readings(found)}


def test_servers_are_up_before_all_clients_start_together():
    """One server on each far node, one probe on the node that they share."""
    *servers, client = fanout.commands({**POINT, "omit_s": 1, "streams": 4, "window_bytes": 65536})
    assert [server.node for server in servers] == [1, 3, 4] and all(
        server.listens for server in servers
    )
    assert client.node == 2 and client.argv[:2] == ("fanout", "{node1},{node3},{node4}")
    options = dict(zip(client.argv, client.argv[1:]))
    assert (options["--parallel"], options["--omit"], options["--window"]) == ("4", "1", "65536")
    assert "--reverse" not in client.argv and "--congestion" not in client.argv


@given(st.lists(st.floats(1, 1e11), min_size=1, max_size=8))
def test_the_aggregate_is_the_sum_and_fairness_a_share(rates):
    """For any flows."""
    found = values([flow(0, [rate, rate]) for rate in rates])
    assert found["flow_goodput"] == pytest.approx(rates)
    assert found["aggregate_goodput"] == pytest.approx(sum(rates))
    assert 1 / len(rates) - 1e-9 <= found["fairness"] <= 1 + 1e-9


@given(st.floats(0, 1.9))
def test_flows_that_start_apart_do_not_exceed_the_link(skew):
    """Alone each flow has the whole link, together half of it: only the time in common counts."""
    link = 1e9

    def shares(alone):
        times = (0.0, *((alone, 4.0) if alone else (4.0,)))
        counts = (
            0.0,
            *((alone * link / 8,) if alone else ()),
            (alone * link + (4 - alone) * link / 2) / 8,
        )
        return times, counts

    early = Flow("10.9.0.2", 100.0, *shares(skew))
    times = (0.0, 4.0 - skew, 4.0) if skew else (0.0, 4.0)
    rising = (0.0, (4 - skew) * link / 16, (4 - skew) * link / 16 + skew * link / 8)
    late = Flow("10.9.0.3", 100.0 + skew, times, rising[: len(times)])
    found = values([early, late])
    assert found["aggregate_goodput"] == pytest.approx(link, rel=1e-6)
    assert found["start_skew"] == pytest.approx(skew, abs=1e-9)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("fanout: 2 flows", "fanout: 3 flows", "started 3 flows but reports 2"),
        ("   2  10.9.0.3", "   3  10.9.0.3", "started 2 flows"),
        ("end of fanout", "", "cut off"),
        ('"server_output_json"', '"other"', "lacks its receiver's intervals"),
        ('"intervals":', '"gaps":', "lacks its receiver's intervals"),
        ('{ "start":', '{ "start"', "for 10.9.0.2: iperf3's report is not whole JSON"),
        ('"end":\t0.5', '"end":\t9.5', "do not follow each other"),
    ],
)
def test_a_table_that_is_not_whole_is_refused(before, after, said):
    """Each with its reason, and the address where there is one."""
    assert before in FORWARD
    outcome = recorded.judged("fanout", FORWARD.replace(before, after), RECORDED)
    assert outcome.status == "unreadable" and said in outcome.reason, outcome.reason


def wait_for(space, address):
    """Wait until somebody listens at an address of the namespace, at most 5 s."""
    for _ in range(100):
        [listed] = netns.run([netns.Invocation(space, ["ss", "-Hltn"])])
        if address in listed:
            return
        time.sleep(0.05)
    raise TimeoutError(address)


@pytest.fixture
def hosts(tmp_path):
    """A namespace with a server of iperf3 on each of two addresses of its own."""
    space = tmp_path / "hosts"
    servers = []
    try:
        netns.create(space)
        lines = ["link set lo up", *(f"address add 10.9.0.{number}/24 dev lo" for number in (2, 3))]
        netns.run([netns.Invocation(space, ["ip", "-batch", "-"], "\n".join(lines) + "\n")])
        for number in (2, 3):
            argv = [*netns.inside(space), "iperf3", "-s", "-1", "--json", "-B", f"10.9.0.{number}"]
            servers.append(subprocess.Popen(argv, stdout=subprocess.DEVNULL))
            wait_for(space, f"10.9.0.{number}:5201")
        yield space
    finally:
        for server in servers:
            server.kill()
            server.wait()
        netns.release(tmp_path)


@pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "unshare", "iperf3"))),
    reason="needs root",
)
def test_the_probe_starts_real_flows_together(hosts):
    """Two clients of iperf3 within a tenth of a second, each held to 20 Mbit/s."""
    options = (
        "--json --interval 0.25 --get-server-output --time 1 --parallel 1 --bitrate 20M".split()
    )
    argv = [*netns.inside(hosts), probe.__file__, "10.9.0.2,10.9.0.3", *options]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = values(flows(done.stdout, {"duration_s": 1, "direction": "forward"}))
    assert (
        found["flow_goodput"] == pytest.approx([20e6, 20e6], rel=0.3) and found["start_skew"] < 0.5
    )


def test_the_probe_says_what_failed(tmp_path):
    """A client that fails is named with its address, after the table; without iperf3 there is none."""
    program = tmp_path / "iperf3"
    program.write_text('#!/bin/sh\necho "iperf3: parameter error - bad option" >&2\nexit 1\n')
    program.chmod(0o755)
    argv = [probe.__file__, "10.9.0.2,10.9.0.3", "--json"]
    done = subprocess.run(
        argv, capture_output=True, text=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}
    )
    assert done.returncode == 1 and done.stdout.endswith("end of fanout\n")
    assert "10.9.0.2: iperf3: parameter error - bad option; 10.9.0.3: " in done.stderr
