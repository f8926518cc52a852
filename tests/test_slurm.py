"""What Slurm's commands print is read as what it means; what they do not say stays unknown."""

import fake_slurm
import pytest

from runners import slurm

JOB = {"SLURM_JOB_ID": "12", "SLURM_JOB_NODELIST": "n[1-3]", "SLURM_JOB_PARTITION": "all"}


@pytest.fixture(autouse=True)
def commands(tmp_path, monkeypatch):
    """A folder for stand-ins, before all else on PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


@pytest.mark.parametrize(
    ("state", "is_active"),
    [("PENDING", True), ("RUNNING", True), ("COMPLETING", True), ("REQUEUE_HOLD", True), ("SUSPENDED", True),
     ("CANCELLED", False), ("COMPLETED", False), ("FAILED", False), ("NODE_FAIL", False), ("TIMEOUT", False)],
)  # fmt: skip
def test_a_job_in_the_queue(commands, state, is_active):
    """Its state, why, and its times; whatever has not ended may still write to the campaign's folder."""
    fake_slurm.queue(commands, state, reason="Resources")
    assert slurm.job("12") == slurm.Job("12", state, "Resources", "0:12", "5:00")
    assert slurm.job("12").is_active is is_active
    assert "--jobs=12" in fake_slurm.called(commands, "squeue")


@pytest.mark.parametrize(
    ("printed", "end"), [("1795308615\n", 1795308615.0), ("N/A\n", None), ("NONE\n", None)]
)
def test_an_allocation(commands, printed, end):
    """Its hosts in Slurm's order; its end in seconds since the epoch, by the format asked for, if it has one."""
    fake_slurm.command(commands, "squeue", printed)
    fake_slurm.command(commands, "scontrol", "n1\nn2\nn3\n")
    found = slurm.allocation(JOB)
    assert found == slurm.Allocation("12", ("n1", "n2", "n3"), end)
    assert fake_slurm.called(commands, "squeue")[0] == "%s"
    assert fake_slurm.called(commands, "scontrol")[1:] == ["show", "hostnames", "n[1-3]"]
    assert found.deadline is None if end is None else end - found.deadline > slurm.WARNING_S


@pytest.mark.parametrize(
    ("printed", "switches"),
    [
        ("SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]\n"
         "SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=leaf[1-2]\n", ["leaf1", "spine"]),
        ("", None),
    ],
)  # fmt: skip
def test_provenance_tells_the_switches_above_each_host(commands, printed, switches):
    """The nearest first; where the site describes no topology it is unknown, not empty."""
    fake_slurm.command(commands, "scontrol", printed)
    found = slurm.provenance(slurm.Allocation("12", ("n1", "n2"), None), JOB)
    assert found["switches"] == {"n1": switches, "n2": switches}
    assert found["hosts"] == ["n1", "n2"] and found["job"] == "12" and found["partition"] == "all"
    assert found["cluster"] is None
