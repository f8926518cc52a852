"""Several flows at once: started together, counted over their common window, and shared how
fairly.
"""

import shutil
import socket
import subprocess
import time

import pytest

from runners.probes import fanout as probe
from runners.tools import fanout
from runners.tools.fanout import Flow, flows

POINT = {"sender": 2, "receivers": 3, "duration_s": 2}


def flow(start, *steps):
    """A flow of `steps`, each so many seconds long with a rate [bit/s]."""
    times, counts = [0.0], [0.0]
    for seconds, rate in steps:
        times.append(times[-1] + seconds)
        counts.append(counts[-1] + seconds * rate / 8)
    return Flow("10.9.0.2", start, tuple(times), tuple(counts))


def values(found):
    """The readings of flows, by name."""
    return fanout.readings(found)


def test_servers_are_up_before_all_clients_start_together():
    """One server on each far node, one probe on the node that they share."""
    *servers, client = fanout.commands({**POINT, "omit_s": 1, "streams": 4})
    assert [server.node for server in servers] == [1, 3, 4]
    assert all(server.listens for server in servers)
    assert client.node == 2 and client.argv[:2] == ("fanout", "{node1},{node3},{node4}")
    options = dict(zip(client.argv, client.argv[1:]))
    assert (options["--parallel"], options["--omit"]) == ("4", "1")
    assert "--reverse" not in client.argv and "--congestion" not in client.argv


@pytest.mark.parametrize(
    ("rates", "fairness"), [([1e9], 1), ([1e9, 1e9, 1e9], 1), ([1e9, 1.0], 0.5), ([3e9, 1e9], 0.8)]
)
def test_the_aggregate_is_the_sum_and_fairness_a_share(rates, fairness):
    """Jain's index is 1 when all are equal and 1/n when one has everything."""
    found = values([flow(0, (1, rate), (1, rate)) for rate in rates])
    assert found["flow_goodput"] == pytest.approx(rates)
    assert found["aggregate_goodput"] == pytest.approx(sum(rates))
    assert found["fairness"] == pytest.approx(fairness)


@pytest.mark.parametrize("skew", [0.1, 1.0, 1.9])
def test_flows_that_start_apart_do_not_exceed_the_link(skew):
    """Alone each flow has the whole link, together half of it: only the time in common counts."""
    early = flow(100, (skew, 1e9), (4 - skew, 0.5e9))
    late = flow(100 + skew, (4 - skew, 0.5e9), (skew, 1e9))
    found = values([early, late])
    assert found["aggregate_goodput"] == pytest.approx(1e9, rel=1e-6)
    assert found["start_skew"] == pytest.approx(skew, abs=1e-9)


@pytest.mark.skipif(not shutil.which("iperf3"), reason="no iperf3: run `make setup`")
def test_the_probe_starts_real_flows_together():
    """Two clients of iperf3 within half a second, each held to 20 Mbit/s."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = ["--port", str(free.getsockname()[1])]
    addresses = ["127.0.0.2", "127.0.0.3"]
    listen = ["iperf3", "--server", "--json", *port, "--bind"]
    servers = [
        subprocess.Popen([*listen, address], stdout=subprocess.DEVNULL) for address in addresses
    ]
    options = "--json --interval 0.25 --get-server-output --time 1 --parallel 1 --bitrate 20M"
    argv = [probe.__file__, ",".join(addresses), *options.split(), *port]
    try:
        for _ in range(100):  # until both servers listen
            done = subprocess.run(argv, capture_output=True, text=True)
            if not done.returncode:
                break
            time.sleep(0.05)
    finally:
        for server in servers:
            server.kill()
            server.wait()
    assert done.returncode == 0, done.stderr
    found = values(flows(done.stdout, {"duration_s": 1, "direction": "forward"}))
    assert found["flow_goodput"] == pytest.approx([20e6, 20e6], rel=0.3)
    assert found["start_skew"] < 0.5


def test_the_probe_says_what_failed(tmp_path):
    """A client that fails is named with its address, after the table."""
    program = tmp_path / "iperf3"
    program.write_text('#!/bin/sh\necho "iperf3: parameter error - bad option" >&2\nexit 1\n')
    program.chmod(0o755)
    argv, path = [probe.__file__, "10.9.0.2,10.9.0.3", "--json"], f"{tmp_path}:/usr/bin:/bin"
    done = subprocess.run(argv, capture_output=True, text=True, env={"PATH": path})
    assert done.returncode == 1 and done.stdout.endswith("end of fanout\n")
    assert "10.9.0.2: iperf3: parameter error - bad option; 10.9.0.3: " in done.stderr
