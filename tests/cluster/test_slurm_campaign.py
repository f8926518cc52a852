"""Campaigns of HPL's as jobs of a real Slurm: submitted, cancelled, out of time, and finished."""

import json

import descriptions
import pytest
import user
from kept import check_measured, outcomes
from waiting import until, until_none


@pytest.fixture(scope="module")
def someone(cluster, real_slurm):
    """A user of Slurm's on the head."""
    return user.clone(cluster, real_slurm.environment)


def test_submitted_cancelled_resubmitted_and_finished(someone, real_slurm, cluster):
    """The HPL campaign as it is shipped. Cancelled in the middle, finished trials stay as they are and nothing runs
    on; the next job does the rest, and then the same command makes the dataset."""
    campaign = "hpl_scaling"
    words = user.submission("mine", 1, campaign)
    someone.describe("mine", descriptions.slurm("mine", 3600))
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
    """Of each job its number, its nodes in the campaign's order and the switch above each of them."""
    sessions = json.loads((folder.path / "provenance.json").read_text())["sessions"]
    told = [session["slurm"] for session in sessions]
    assert [one["job"] for one in told] == jobs
    for one, session in zip(told, sessions):
        assert one["hosts"] == ["n1", "n2", "n3", "n4"] == list(session["testbed"]["nodes"])
        assert one["switches"] == {host: ["bridge"] for host in one["hosts"]}


def test_it_stops_before_the_time_limit(someone, real_slurm):
    """A job ends by itself while there is still time, says that there is more to do, and the next goes on."""
    someone.describe("minutes", descriptions.slurm("minutes", 120))
    kept = {}
    for _ in range(2):
        job = someone.submit(*user.submission("minutes", 40))
        assert real_slurm.await_end(job, 150) == "FAILED", someone.output("minutes", job)
        assert "ExitCode=75:0" in real_slurm.ask("scontrol", "show", "job", job)
        earlier, kept = kept, someone.kept("minutes")
        assert earlier.items() < kept.items(), someone.output("minutes", job)
    assert {outcome.status for _, outcome in outcomes(someone.folder("minutes")).values()} == {"ok"}
