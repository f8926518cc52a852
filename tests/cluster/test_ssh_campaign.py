"""A campaign of HPL's by ssh and mpirun on real sshd: what somebody without a scheduler does."""

import descriptions
import pytest
import user
from kept import check_measured, check_ran_once, outcomes, statuses
from slurm import ENVIRONMENT
from waiting import until, until_none

GIGE = 'subnet = "10.81.0.0/24"\nrate_bit_s = 1e9\n'
ON_10GE = 'mpi = ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "10.81.1.0/24"]\n'


@pytest.fixture(scope="module")
def someone(cluster):
    """A user on the head."""
    return user.clone(cluster, ENVIRONMENT)


def test_interrupted_killed_and_resumed(someone, cluster, ssh_config):
    """Ctrl-C, SIGTERM and kill -9 while ranks run: nothing of it stays on any node, and the same command goes on."""
    someone.describe("four", descriptions.ssh("four", ssh_config))
    words = ("run", user.CAMPAIGN, "--testbed", "four", "--repeats", "1")
    for how, code in (("INT", 130), ("TERM", 143), ("KILL", -9)):
        session = someone.start(*words)
        until(lambda: cluster.compute[1].runs("xhpl"), "ranks run", 90)
        session.signal(how)
        ended, said = session.end()
        assert ended == code, said
        until_none(cluster.commands, 40)
        assert not any(node.run(["sh", "-c", "ls -d /tmp/falloff*"]).stdout for node in cluster.all)
    done = someone.falloff(*words)
    assert done.returncode == 0, done.stderr
    check_measured(someone.folder("four"))
    assert not cluster.commands()


def test_bytes_on_another_network_make_it_invalid(someone, ssh_config):
    """MPI pinned to the second network where the first was asked for: no result of HPL's on several nodes counts."""
    astray = {GIGE: GIGE + ON_10GE}
    someone.describe("astray", descriptions.ssh("astray", ssh_config, astray))
    found = someone.run_block("astray")
    several = [
        outcome for trial, (nodes, outcome) in found.items() if nodes > 1 and trial.endswith("hpl")
    ]
    assert several and {outcome.status for outcome in several} == {"invalid"}, several
    assert all(outcome.reason.startswith("fabric is") for outcome in several), several
    assert statuses(it for it in found.values() if it[0] == 1) == {"ok"}


def test_a_wrong_mtu_is_invalid(someone, ssh_config):
    """It is read back, and a run on another than the description's must not be used."""
    smaller = {f"{GIGE}mtu = 1500": f"{GIGE}mtu = 1400"}
    someone.describe("as_it_is", descriptions.ssh("as_it_is", ssh_config, smaller))
    assert statuses(someone.run_block("as_it_is").values()) == {"invalid"}


def test_an_unknown_server_is_not_believed(someone, ssh_config):
    """Known hosts are respected: the run is refused at once, and says of which host."""
    strict = ssh_config.with_name("strict")
    strict.write_text(ssh_config.read_text().replace("/known_hosts", "/nobody"))
    someone.describe("unknown", descriptions.ssh("unknown", strict))
    done = someone.falloff("run", user.CAMPAIGN, "--testbed", "unknown", limit_s=60)
    assert done.returncode == 1
    assert (
        "n1" in done.stderr
        and "Host key verification failed" in done.stderr
        and "Traceback" not in done.stderr
    )


def test_all_nodes_and_pairs_are_compared(someone, ssh_config):
    """As many nodes as the description has, each by its own name, and every pair of them."""
    someone.describe("pairs", descriptions.ssh("pairs", ssh_config))
    done = someone.falloff("run", "suspects", "--testbed", "pairs", "--repeats", "2")
    assert done.returncode == 0, done.stderr
    folder = someone.folder("pairs", "suspects")
    check_ran_once(folder)
    found = outcomes(folder)
    assert statuses(found.values()) == {"ok"}, found
    readings = {one.name: one.value for _, outcome in found.values() for one in outcome.readings}
    assert readings["hosts"] == "n1,n2,n3,n4"
    assert sum(rate is not None for row in readings["pair_bandwidth"] for rate in row) == 12
