"""What is kept of a campaign in a folder, for tests that look at it."""

from collections.abc import Iterable

from analysis import derive, store
from runners import runner_named
from runners.journal import Folder
from runners.record import Outcome, judge


def outcomes(folder: Folder) -> dict[str, tuple[int, Outcome]]:
    """Of every trial by id how many nodes it takes, and what became of it."""
    found = {}
    for transcript in folder.transcripts():
        runner = runner_named(transcript.trial.runner)
        needed = max(command.nodes for command in runner.commands(transcript.trial.point))
        found[transcript.trial.id] = (needed, judge(transcript, runner.parse))
    return found


def statuses(found: Iterable[tuple[int, Outcome]]) -> set[str]:
    """The different statuses of some outcomes."""
    return {outcome.status for _, outcome in found}


def check_ran_once(folder: Folder) -> None:
    """Every trial is there, and none that had been finished ran again."""
    notes = [
        note["id"]
        for note in folder.notes()
        if note["event"] == "trial" and note["status"] != "unavailable"
    ]
    assert len(notes) == len(set(notes)), "a finished trial ran again"
    assert folder.finished() == {trial.id for trial in folder.plan().trials()}


def check_measured(folder: Folder) -> None:
    """Every trial ran once and is valid evidence of the kind `measured`, and HPL's bytes are on its network."""
    check_ran_once(folder)
    dataset = store.assemble(folder.path)
    assert (dataset.status == "ok").all(), dataset.reason.values
    assert set(dataset.evidence.values.ravel()) == {"measured"}
    two = dataset.isel(trial=(dataset.role == "point").values & (dataset.nodes == 2).values)
    assert (
        two.sizes["trial"]
        and (two.bytes_sent.sum("node") >= derive.broadcast_bytes(two.N, two.Q)).all()
    )
