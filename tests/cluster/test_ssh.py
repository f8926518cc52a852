"""Campaigns of HPL's by ssh and mpirun on real sshd: what somebody without a scheduler does, and
what may befall it.
"""

import pytest
from daemons import ENVIRONMENT
from user import (
    CAMPAIGN,
    by_ssh,
    check_measured,
    clone,
    outcomes,
    statuses,
    until,
    until_none,
)

GIGE = 'subnet = "10.81.0.0/24"\nrate_bit_s = 1e9\n'
ON_10GE = 'mpi = ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "10.81.1.0/24"]\n'


@pytest.fixture(scope="module")
def someone(cluster):
    """A user on the head."""
    return clone(cluster, ENVIRONMENT)


def test_interrupted_killed_and_resumed(someone, cluster, ssh_config):
    """Ctrl-C, SIGTERM and kill -9 while ranks run: nothing of it stays on any node, and the same
    command goes on.
    """
    someone.describe("four", by_ssh("four", ssh_config))
    words = ("run", CAMPAIGN, "--testbed", "four", "--repeats", "1")
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
    """MPI pinned to the second network where the first was asked for: no result of HPL's on several
    nodes counts.
    """
    astray = {GIGE: GIGE + ON_10GE}
    someone.describe("astray", by_ssh("astray", ssh_config, astray))
    found = someone.run_block("astray")
    several = [
        outcome for trial, (nodes, outcome) in found.items() if nodes > 1 and trial.endswith("hpl")
    ]
    assert several and {outcome.status for outcome in several} == {"invalid"}, several
    assert all(outcome.reason.startswith("fabric is") for outcome in several), several
    assert statuses(it for it in found.values() if it[0] == 1) == {"ok"}


def test_an_unknown_server_is_not_believed(someone, ssh_config):
    """Known hosts are respected: the run is refused at once, and says of which host."""
    strict = ssh_config.with_name("strict")
    strict.write_text(ssh_config.read_text().replace("/known_hosts", "/nobody"))
    someone.describe("unknown", by_ssh("unknown", strict))
    done = someone.falloff("run", CAMPAIGN, "--testbed", "unknown", limit_s=60)
    assert done.returncode == 1
    assert (
        "n1" in done.stderr
        and "Host key verification failed" in done.stderr
        and "Traceback" not in done.stderr
    )


def test_an_unplugged_node_costs_only_what_needs_it(someone, cluster, ssh_config):
    """A cable is pulled while four ranks run: that trial fails, the next block's that needs four
    nodes is unavailable with the node named, all others run; and with the cable back nothing runs
    on there."""
    longer = {
        "memory_bytes = 64e9": "memory_bytes = 5e7"
    }  # some seconds on four nodes, to pull the cable in
    someone.describe("cable", by_ssh("cable", ssh_config, longer))
    session = someone.start("run", CAMPAIGN, "--testbed", "cable", "--repeats", "2")
    lost = cluster.compute[3]
    until(lambda: lost.runs("xhpl"), "ranks run", 90)
    with cluster.unplugged(lost):
        code, said = session.end(300)
        # By itself, because nothing comes through to tell it.
        until(
            lambda: not lost.runs("python3") and not lost.runs("xhpl"),
            "what is ours ends on the lost node",
            120,
        )
    assert code == 0, said
    found = outcomes(someone.folder("cable"))
    check_without_n4(found)
    assert statuses(found.values()) & {"fault", "failed", "timeout"}, (
        "the trial in which it was lost"
    )
    until_none(cluster.commands, 180)


def check_without_n4(found):
    """What was unavailable says that n4 is lost, and all that needs two nodes is there."""
    unavailable = [outcome for _, outcome in found.values() if outcome.status == "unavailable"]
    assert unavailable and all(
        "n4" in outcome.reason and "n3" not in outcome.reason for outcome in unavailable
    )
    assert statuses(it for it in found.values() if it[0] < 3) == {"ok"}, found
