"""`falloff doctor` on real sshd and a real Slurm: it reaches every node, and names those that differ or are gone."""

import descriptions
import pytest
import user


@pytest.fixture(scope="module")
def someone(cluster, real_slurm):
    """A user on the head, by ssh and of Slurm's."""
    return user.clone(cluster, real_slurm.environment)


def checklist(someone, testbed):
    """The lines of the checklist as (mark, text)."""
    done = someone.falloff("doctor", "--testbed", testbed, limit_s=200)
    assert "Traceback" not in done.stderr and done.returncode in (0, 1), done.stderr
    return [
        tuple(line.split(maxsplit=1)) for line in done.stdout.splitlines() if line.startswith("  ")
    ]


def test_with_slurm_it_asks_for_an_allocation(someone, real_slurm):
    """All nodes are reached in a job that is over with the command."""
    someone.describe("mine", descriptions.slurm("mine", 3600))
    lines = checklist(someone, "mine")
    assert ("here", "4 of 4 nodes answer") in lines, lines
    assert not real_slurm.ask("squeue", "-h")


def test_by_ssh_it_names_who_differs_and_who_is_gone(someone, cluster, ssh_config):
    """One node has another MTU, one has no cable: each is on a line of its own kind, the others are well."""
    someone.describe("four", descriptions.ssh("four", ssh_config))
    other, gone = cluster.compute[1], cluster.compute[3]
    other.run(["ip", "link", "set", "eth1", "mtu", "1400"])
    try:
        with cluster.unplugged(gone):
            lines = checklist(someone, "four")
    finally:
        other.run(["ip", "link", "set", "eth1", "mtu", "1500"])
    assert any(mark == "MISSING" and text.startswith("n4: ") for mark, text in lines), lines
    differing = [
        text for mark, text in lines if mark == "DIFFERS" and "MTU" in text and "10gige" in text
    ]
    assert differing and all("n2" in text for text in differing), lines
    assert any(mark == "here" and text.startswith("3 of 4 nodes answer") for mark, text in lines), (
        lines
    )
