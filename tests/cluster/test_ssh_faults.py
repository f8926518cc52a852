"""What may befall a campaign by ssh and mpirun: a pulled cable, a node that is dead."""

import descriptions
import pytest
import sshd
import user
from kept import outcomes, statuses
from nodes import up
from slurm import ENVIRONMENT
from waiting import until, until_none


@pytest.fixture(scope="module")
def someone(cluster):
    """A user on the head."""
    return user.clone(cluster, ENVIRONMENT)


def test_an_unplugged_node_costs_only_what_needs_it(someone, cluster, ssh_config):
    """A cable is pulled while four ranks run: that trial fails, the next block's that needs four nodes is unavailable
    with the node named, all others run; and with the cable back nothing runs on there."""
    longer = {
        "memory_bytes = 64e9": "memory_bytes = 5e7"
    }  # some seconds on four nodes, to pull the cable in
    someone.describe("cable", descriptions.ssh("cable", ssh_config, longer))
    session = someone.start("run", user.CAMPAIGN, "--testbed", "cable", "--repeats", "2")
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


def test_a_dead_node_is_named():
    """It is dead from the start: what needs four is unavailable, the rest runs on the others."""
    with up(4) as nodes:
        someone = user.clone(nodes, ENVIRONMENT)
        someone.describe("four", descriptions.ssh("four", sshd.serve(nodes)))
        nodes.compute[3].init.kill()
        found = someone.run_block("four")
        check_without_n4(found)
        assert statuses(it for it in found.values() if it[0] == 4) == {"unavailable"}


def check_without_n4(found):
    """What was unavailable says that n4 is lost, and all that needs two nodes is there."""
    unavailable = [outcome for _, outcome in found.values() if outcome.status == "unavailable"]
    assert unavailable and all(
        "n4" in outcome.reason and "n3" not in outcome.reason for outcome in unavailable
    )
    assert statuses(it for it in found.values() if it[0] < 3) == {"ok"}, found
