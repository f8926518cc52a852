"""What was measured on nodes, as lines: reachable ports, clocks, noise and slow nodes, from canned answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners import checklist
from runners.checklist import DIFFERS, HERE, MISSING

HOSTS = ("node01", "node02", "node03")


def visit(reason="", offset_s=0.0, port=5201):
    """One node's word on another."""
    timing = {} if reason else {"offset_s": offset_s, "round_trip_s": 1e-3}
    return {"ports": {str(port): reason}, **timing}


def meeting(hosts=HOSTS, **reasons):
    """All hosts visit all others on one network; visits to (or with `of_` from) a host fail for a reason."""
    met = {}
    for host in hosts:
        of_host = reasons.get(f"of_{host}", "")
        others = {other: visit(reasons.get(other, of_host)) for other in hosts if other != host}
        met[host] = {"gige": {"taken": [], "others": others}}
    return met


def test_nodes_that_reach_each_other():
    """One line with the networks and ports."""
    (line,) = checklist.ports([meeting()])
    assert line.mark == HERE and "gige" in line.text and "5201" in line.text


def test_a_closed_port_is_named_where_it_is_closed():
    """Who is not reached is named, and the remedy is for the reason."""
    (line,) = checklist.ports([meeting(node02="no answer")])
    assert (
        line.mark == MISSING
        and "port 5201 of node02: no answer" in line.text
        and "firewall" in line.text
    )
    (line,) = checklist.ports([meeting(node02="full frames are lost")])
    assert "MTU" in line.text and "firewall" not in line.text


def test_a_node_that_reaches_nobody_is_named_and_not_the_others():
    """A cut cable fails both ways: the node behind it is the one that most do not reach."""
    hosts = (*HOSTS, "node04")
    (line,) = checklist.ports([meeting(hosts, node03="no answer", of_node03="no answer")])
    assert "of node03: no answer" in line.text and "node01" not in line.text


def test_a_port_of_another_program_is_no_firewall():
    """It is named once, and the visits that failed there are its."""
    met = meeting(node02="the connection was closed")
    met["node02"]["gige"]["taken"] = [5201]
    (line,) = checklist.ports([met])
    assert line.mark == MISSING and "port 5201 of node02 is another program's" in line.text


@pytest.mark.parametrize("wrong", HOSTS)
def test_the_clock_that_is_off_is_named(wrong):
    """Whichever it is, the first host included, against which all others are read."""
    met = meeting()
    clock = dict.fromkeys(HOSTS, 0.0) | {wrong: -5.0}
    for other, said in met[HOSTS[0]]["gige"]["others"].items():
        said["offset_s"] = clock[other] - clock[HOSTS[0]]
    line = checklist.clocks([met], HOSTS[0])
    assert line.mark == DIFFERS and f"{wrong} by -5.0 s" in line.text
    assert not [host for host in HOSTS if host != wrong and host in line.text]


def test_clocks_of_several_groups_are_read_against_the_first_host():
    """Groups share it; an offset that the round trip does not bound well enough is no fault."""
    near, far = meeting(HOSTS), meeting(("node01", "node04"))
    assert checklist.clocks([near, far], "node01").mark == HERE
    far["node01"]["gige"]["others"]["node04"]["offset_s"] = 3.0
    line = checklist.clocks([near, far], "node01")
    assert line.mark == DIFFERS and "node04 by +3.0 s" in line.text
    far["node01"]["gige"]["others"]["node04"]["round_trip_s"] = 7.0
    assert checklist.clocks([near, far], "node01").mark == HERE


def noises(**shares):
    """Answers of node_noise.py with that share of each of two processors lost."""
    each = {"least_s": 1e-3, "median_s": 1e-3, "most_s": 5e-3}
    return {
        host: {"processors": [{**each, "noise_share": share}] * 2} for host, share in shares.items()
    }


def test_a_noisy_node_is_named_with_what_runs_there():
    """The worst first, with the longest interruption and the busiest processes."""
    busiest = {"node02": [{"name": "collectd", "pid": 7, "share": 0.042}]}
    line = checklist.noise(noises(node01=0.001, node02=0.05, node03=0.02), busiest)
    assert (
        line.mark == DIFFERS and "node02, node03, most 5.00% of node02, up to 4.0 ms" in line.text
    )
    assert "collectd (4.2% of a processor)" in line.text and "node01" not in line.text
    assert checklist.noise(noises(node01=0.001, node02=0.002), {}).mark == HERE


@given(st.lists(st.floats(0.98, 1.02), min_size=1, max_size=20), st.floats(0.1, 0.9))
def test_a_slow_node_is_named_whatever_the_unit(rates, factor):
    """Nodes within the scatter are alike; one far below them is named, and nobody else."""
    alike = {f"node{number}": 800 * rate for number, rate in enumerate(rates)}
    assert checklist.speeds("DGEMM", alike, "Gflop/s").mark == HERE
    several = {**alike, "another": 800.0}
    line = checklist.speeds("DGEMM", {**several, "slow": 800 * factor}, "Gflop/s")
    assert line.mark == DIFFERS and ": slow " in line.text
    assert not [host for host in several if f"{host} " in line.text]
