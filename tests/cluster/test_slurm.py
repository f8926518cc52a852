"""Campaigns of HPL's as jobs of a real Slurm: submitted, cancelled, out of time, and with a node
lost; and the doctor.
"""

import json

import pytest
from user import (
    by_slurm,
    by_ssh,
    check_measured,
    check_ran_once,
    clone,
    outcomes,
    submission,
    until,
    until_none,
)


@pytest.fixture(scope="module")
def someone(cluster, real_slurm):
    """A user on the head, by ssh and of Slurm's."""
    return clone(cluster, real_slurm.environment)


def test_submitted_cancelled_resubmitted_and_finished(someone, real_slurm, cluster):
    """The HPL campaign as it is shipped. Cancelled in the middle, finished trials stay as they are
    and nothing runs on; the next job does the rest, and then the same command makes the dataset."""
    campaign = "hpl_scaling"
    words = submission("mine", 2, campaign)  # a second block goes on while this asks
    someone.describe("mine", by_slurm("mine", 3600))
    first = someone.submit(*words)

    def of_hpl():
        kept = someone.kept("mine", campaign)
        return [trial for trial in kept if trial[:4] == "b001" and "hpl" in trial]

    until(of_hpl, "HPL is among the finished", 240)
    again = someone.falloff(*words)
    assert again.returncode == 1 and f"job {first}" in again.stderr and "RUNNING" in again.stderr
    real_slurm.ask("scancel", first)
    assert real_slurm.await_end(first) == "CANCELLED"
    until_none(cluster.commands, 40)
    kept, folder = someone.kept("mine", campaign), someone.folder("mine", campaign)
    total = len(folder.plan().trials())
    assert len(kept) < total
    status = someone.falloff("status", campaign).stdout
    assert f"{len(kept)} of {total}" in status and "CANCELLED" in status, status

    second = someone.submit(*words)
    assert real_slurm.await_end(second, 400) == "COMPLETED", someone.output(
        "mine", second, campaign
    )
    assert kept.items() <= someone.kept("mine", campaign).items(), (
        "a finished trial was written again"
    )
    check_measured(folder)
    check_provenance(folder, [first, second])
    assert f"{total} of {total}" in someone.falloff("status", campaign).stdout
    done = someone.falloff(*words)
    assert done.returncode == 0 and list(
        (someone.clone / "data/datasets").glob(f"{campaign}-mine-*.nc")
    ), done.stderr


def check_provenance(folder, jobs):
    """Of each job its number, its nodes in the campaign's order and the switch above each of
    them.
    """
    sessions = json.loads((folder.path / "provenance.json").read_text())["sessions"]
    told = [session["slurm"] for session in sessions]
    assert [one["job"] for one in told] == jobs
    for one, session in zip(told, sessions):
        assert one["hosts"] == ["n1", "n2", "n3", "n4"] == list(session["testbed"]["nodes"])
        assert one["switches"] == {host: ["bridge"] for host in one["hosts"]}


def test_it_stops_before_the_time_limit(someone, real_slurm):
    """A job ends by itself while there is still time, says that there is more to do, and the next
    goes on.
    """
    someone.describe("minutes", by_slurm("minutes", 120))
    kept = {}
    for _ in range(2):
        job = someone.submit(*submission("minutes", 40))
        assert real_slurm.await_end(job, 150) == "FAILED", someone.output("minutes", job)
        assert "ExitCode=75:0" in real_slurm.ask("scontrol", "show", "job", job)
        earlier, kept = kept, someone.kept("minutes")
        assert earlier.items() < kept.items(), someone.output("minutes", job)
    assert {outcome.status for _, outcome in outcomes(someone.folder("minutes")).values()} == {"ok"}


def test_a_lost_slurmd(someone, real_slurm, cluster):
    """A node's daemon dies in the middle: what is finished stays, what needs only the others goes
    on; with the node back, the next job does what was missing."""
    someone.describe("lossy", by_slurm("lossy", 3600))
    lost = cluster.compute[3]
    first = someone.submit(*submission("lossy", 1))
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
        second = someone.submit(*submission("lossy", 1))
        assert real_slurm.await_end(second, 300) == "COMPLETED", someone.output("lossy", second)
    check_ran_once(someone.folder("lossy"))
    until_none(cluster.commands, 60)


def checklist(someone, testbed):
    """The lines of the checklist as (mark, text)."""
    done = someone.falloff("doctor", "--testbed", testbed, limit_s=200)
    assert "Traceback" not in done.stderr and done.returncode in (0, 1), done.stderr
    return [
        tuple(line.split(maxsplit=1)) for line in done.stdout.splitlines() if line.startswith("  ")
    ]


def test_with_slurm_it_asks_for_an_allocation(someone, real_slurm):
    """All nodes are reached in a job that is over with the command."""
    someone.describe("mine", by_slurm("mine", 3600))
    lines = checklist(someone, "mine")
    assert ("here", "4 of 4 nodes answer") in lines, lines
    assert not real_slurm.ask("squeue", "-h")


def test_by_ssh_it_names_who_differs_and_who_is_gone(someone, cluster, ssh_config):
    """One node has another MTU, one has no cable: each is on a line of its own kind, the others are
    well.
    """
    someone.describe("four", by_ssh("four", ssh_config))
    other, gone = cluster.compute[1], cluster.compute[3]
    ten_gige = cluster.net.devices("n2")[1]
    other.run(["ip", "link", "set", ten_gige, "mtu", "1400"])
    try:
        with cluster.unplugged(gone):
            lines = checklist(someone, "four")
    finally:
        other.run(["ip", "link", "set", ten_gige, "mtu", "1500"])
    assert any(mark == "MISSING" and text.startswith("n4: ") for mark, text in lines), lines
    differing = [
        text for mark, text in lines if mark == "DIFFERS" and "MTU" in text and "10gige" in text
    ]
    assert differing and all("n2" in text for text in differing), lines
    assert any(mark == "here" and text.startswith("3 of 4 nodes answer") for mark, text in lines), (
        lines
    )
