"""A campaign of HPL's as a job of a real Slurm that loses a node."""

import descriptions
import pytest
import user
from kept import check_ran_once, outcomes
from waiting import until, until_none


@pytest.fixture(scope="module")
def someone(cluster, real_slurm):
    """A user of Slurm's on the head."""
    return user.clone(cluster, real_slurm.environment)


def test_a_lost_slurmd(someone, real_slurm, cluster):
    """A node's daemon dies in the middle: what is finished stays, what needs only the others goes on; with the node
    back, the next job does what was missing."""
    someone.describe("lossy", descriptions.slurm("lossy", 3600))
    lost = cluster.compute[3]
    first = someone.submit(*user.submission("lossy", 1))
    until(lambda: len(someone.kept("lossy")) >= 4, "some trials are finished", 120)
    kept = someone.kept("lossy")
    real_slurm.kill_slurmd(lost)
    real_slurm.await_end(first, 400)
    assert kept.items() < someone.kept("lossy").items(), someone.output("lossy", first)
    found = outcomes(someone.folder("lossy"))
    assert {outcome.status for needed, outcome in found.values() if needed < 3} == {"ok"}, found
    assert all(
        "n4" in outcome.reason for _, outcome in found.values() if outcome.status == "unavailable"
    ), found

    real_slurm.start_slurmd(lost)
    until(lambda: set(real_slurm.states().values()) == {"idle"}, "the node is back", 90)
    if any(outcome.status == "unavailable" for _, outcome in found.values()):
        second = someone.submit(*user.submission("lossy", 1))
        assert real_slurm.await_end(second, 300) == "COMPLETED", someone.output("lossy", second)
    check_ran_once(someone.folder("lossy"))
    until_none(cluster.commands, 60)
