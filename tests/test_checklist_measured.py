"""What was measured on nodes, as lines: reachable ports, noise and slow nodes, from canned answers."""

from hypothesis import given
from hypothesis import strategies as st

from runners import checklist
from runners.checklist import DIFFERS, HERE, MISSING

HOSTS = ("node01", "node02", "node03")


def visit(reason="", port=5201):
    """One node's word on another."""
    return {"ports": {str(port): reason}}


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


def noises(**shares):
    """Answers of node_noise.py with that share of each of two processors lost."""
    each = {"least_s": 1e-3, "median_s": 1e-3, "most_s": 5e-3}
    return {
        host: {"processors": [{**each, "noise_share": share}] * 2} for host, share in shares.items()
    }


def test_a_noisy_node_is_named():
    """The worst first, with the longest interruption."""
    line = checklist.noise(noises(node01=0.001, node02=0.05, node03=0.02))
    assert (
        line.mark == DIFFERS and "node02, node03, most 5.00% of node02, up to 4.0 ms" in line.text
    )
    assert "node01" not in line.text
    assert checklist.noise(noises(node01=0.001, node02=0.002)).mark == HERE


@given(st.lists(st.floats(0.98, 1.02), min_size=1, max_size=20), st.floats(0.1, 0.9))
def test_a_slow_node_is_named_whatever_the_unit(rates, factor):
    """Nodes within the scatter are alike; one far below them is named, and nobody else."""
    alike = {f"node{number}": 800 * rate for number, rate in enumerate(rates)}
    assert checklist.speeds("DGEMM", alike, "Gflop/s").mark == HERE
    several = {**alike, "another": 800.0}
    line = checklist.speeds("DGEMM", {**several, "slow": 800 * factor}, "Gflop/s")
    assert line.mark == DIFFERS and ": slow " in line.text
    assert not [host for host in several if f"{host} " in line.text]
