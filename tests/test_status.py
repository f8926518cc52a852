"""`falloff status`: what is kept, what is missing, what became of the job; nothing is claimed that is not known."""

import json
import os

import fake_slurm
import pytest
from campaigns import small_plan, use_echo
from local_testbed import LocalTestbed

import runners.campaign as engine
from runners import status
from runners.journal import Folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A campaign that was interrupted after 4 trials, in a folder of campaigns that is first on PATH."""
    use_echo(monkeypatch)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("analysis.paths.RAW", tmp_path)
    made = Folder(tmp_path / "small-local-12345678")

    def interrupt(event):
        if event.kind == "finished" and event.done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.run(small_plan(), LocalTestbed(), made, interrupt)
    return made


def submitted(folder: Folder, *said: str) -> None:
    """Note a job in the campaign's folder, with its output."""
    (folder.path / "jobs.json").write_text(json.dumps([{"id": "11"}, {"id": "12"}]))
    (folder.path / "job-12.out").write_text("".join(f"{line}\n" for line in said))


def test_every_block_tells_what_it_has(folder):
    """Kept of all, by kind of trial; blocks that are alike share a line; no job where none was submitted."""
    assert status.text(folder).splitlines() == [
        "small-local-12345678: 4 of 19 trials kept, 15 missing",
        "  block 0: echo 1 of 1",
        "  block 1: echo 3 of 6",
        "  blocks 2 to 3, each: echo 0 of 6",
    ]


def test_the_end_and_its_reason(folder):
    """A campaign that has ended says by which rule; one that stopped for lack of time says what to do."""
    engine.run(small_plan(), LocalTestbed(), folder, deadline=0)
    assert "submit again" in status.text(folder)
    engine.run(small_plan(), LocalTestbed(), folder)
    end = "19 of 19 trials kept, 0 missing; ended by its stopping rule: blocks"
    assert status.text(folder).splitlines()[0].endswith(end)


@pytest.mark.parametrize(
    ("state", "line"),
    [
        ("PENDING", "job 12: PENDING (Resources), 0:12 of 5:00"),
        ("RUNNING", "job 12: RUNNING, 0:12 of 5:00"),
    ],
)
def test_a_job_that_waits_or_runs(folder, tmp_path, state, line):
    """The last one: its state, why it waits, its time and its limit; not what it printed so far."""
    submitted(folder, "[4/19] b001-003-echo: ok")
    fake_slurm.queue(tmp_path, state, reason="Resources")
    assert status.text(folder).splitlines()[-1] == f"  {line}"


def test_a_job_that_is_over_has_last_words(folder, tmp_path):
    """Whatever ended it, also when Slurm has forgotten it."""
    submitted(
        folder,
        "[4/19] b001-003-echo: ok",
        "slurmstepd: error: *** JOB 12 CANCELLED DUE TO TIME LIMIT ***",
    )
    fake_slurm.forgotten(tmp_path)
    *_, state, words = status.text(folder).splitlines()
    assert state == "  job 12: UNKNOWN" and words.endswith("CANCELLED DUE TO TIME LIMIT ***")


def test_a_state_that_cannot_be_had_is_not_made_up(folder, tmp_path):
    """Slurm does not answer: it is said so, and what is kept is shown all the same."""
    submitted(folder)
    fake_slurm.command(
        tmp_path, "squeue", complains="slurm_load_jobs error: Connection refused", code=1
    )
    said = status.text(folder)
    assert "4 of 19 trials kept" in said and "job 12: its state cannot be had (squeue: " in said
