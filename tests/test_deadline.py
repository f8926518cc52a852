"""A session that must be over at a given time stops early enough, at a whole block where it can, and is continued."""

import time

import pytest
from campaigns import small_plan, use_echo
from local_testbed import LocalTestbed

import runners.campaign as engine
from runners.journal import Folder


@pytest.fixture(autouse=True)
def echo(monkeypatch):
    """The engine finds the echo runner in every test here."""
    use_echo(monkeypatch)


class Clock:
    """A clock that only a trial moves on."""

    def __init__(self, monkeypatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(time, "time", lambda: self.now)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


class Slow(LocalTestbed):
    """Every trial takes so many seconds by that clock."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        super().__init__()
        self._clock, self._seconds = clock, seconds

    def run(self, trial, commands):
        self._clock.now += self._seconds
        return super().run(trial, commands)


@pytest.fixture
def clock(monkeypatch):
    """The time of the engine."""
    return Clock(monkeypatch)


def session(clock: Clock, plan, folder: Folder, lasts: float, seconds: float) -> list[str]:
    """The trials of a session that may last so long, each of which takes so many seconds."""
    testbed, end = Slow(clock, seconds), clock.now + lasts
    engine.run(plan, testbed, folder, deadline=end)
    assert clock.now <= end or len(testbed.executed) <= 1
    return testbed.executed


def test_no_block_is_cut_in_two_that_a_session_could_hold(tmp_path, clock):
    """The other half would run on other nodes: what does not fit is left, whole, to the next session."""
    plan, folder = (
        small_plan(settings={"say": "1", "seconds": "0", "timeout_s": 8}),
        Folder(tmp_path),
    )
    first, second = plan.preamble + plan.blocks[0], plan.blocks[1] + plan.blocks[2]
    assert session(clock, plan, folder, 10 * len(first) * 1.5, 10) == [trial.id for trial in first]
    assert not engine.is_finished(plan, folder) and folder.stopped_by() == "interrupted"
    assert session(clock, plan, folder, 10 * len(second) * 1.1, 10) == [
        trial.id for trial in second
    ]
    assert (
        engine.is_finished(plan, folder)
        and folder.stopped_by() == "blocks"
        and folder.extensions() == 0
    )


def test_a_trial_that_is_not_admitted_ends_the_session_without_a_trace(tmp_path):
    """It did not fail by itself: the next session runs it."""
    plan, folder, refused = small_plan(), Folder(tmp_path), []

    def admit(transcript):
        if transcript.trial.order == 4:
            refused.append(transcript.trial.id)
            raise SystemExit(143)

    with pytest.raises(SystemExit):
        engine.run(plan, LocalTestbed(), folder, admit=admit)
    assert refused and refused[0] not in folder.finished() and len(folder.finished()) == 4
    again = LocalTestbed()
    engine.run(plan, again, folder)
    assert again.executed[0] == refused[0]


def test_what_lacked_nodes_is_tried_again(tmp_path):
    """A trial for which too few nodes were left is run by a later session, and its kind counts as never timed."""
    plan, folder = small_plan(), Folder(tmp_path)
    engine.run(plan, LocalTestbed(), folder)
    assert engine.is_finished(plan, folder)
    lacked = plan.blocks[1][3]
    folder.note("trial", id=lacked.id, status="unavailable", seconds=0.1)
    assert not engine.is_finished(plan, folder)
    again = LocalTestbed()
    engine.run(plan, again, folder)
    assert again.executed == [lacked.id] and engine.is_finished(plan, folder)
    assert folder.extensions() == 0, "no trial was added to the plan"
