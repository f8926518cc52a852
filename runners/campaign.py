"""Run a campaign: every trial that is not there yet, block by block, until a stopping rule is met."""

import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Tuple

from runners import manifest, provenance, runner_named
from runners.description import Stopping
from runners.journal import Folder
from runners.plan import Plan
from runners.progress import Event, Listener, Progress, missing
from runners.record import Transcript, Trial, judge, to_json

# What `run` returns when time ran out; no stopping rule, so that the next session goes on from there.
DEADLINE = "deadline"

_Execute = Callable[[Trial], Tuple[Transcript, float]]


def ignore(event: Event) -> None:
    """The listener of those who want to hear nothing."""


def run(
    plan: Plan,
    testbed: Any,
    folder: Folder,
    listen: Listener = ignore,
    decided: Callable[[Folder], bool] = lambda folder: False,
    deadline: Optional[float] = None,
    session: Mapping[str, Any] = {},
    admit: Callable[[Transcript], None] = lambda transcript: None,
) -> str:
    """Run what is missing of a plan on an open testbed and say which rule ended it.

    `decided(folder)` is asked, where looks are planned, after each block from the first look on whether
    further blocks would change nothing; which blocks are valid, and so when a look is due, it finds out itself.
    What would not end before the `deadline` (seconds since the epoch) is left to the next session. `session` is what
    the provenance tells of this one besides host and testbed. `admit(transcript)` raises to keep a trial out, which
    ends the session, when it did not fail by itself but was ended from outside.
    Returns `blocks`, `decided`, `time budget` or DEADLINE. Whatever interrupts it, finished trials stay.
    """
    folder.create_or_check(plan)
    manifest.forget(folder.path)
    folder.write_provenance({"host": provenance.host(), "testbed": testbed.provenance(), **session})
    folder.note("session", digest=plan.digest, testbed=plan.testbed["name"])
    progress = Progress(plan, folder, listen, testbed.at_once, deadline)
    ended_by = _run_in_order(plan, partial(_execute, testbed, admit), folder, progress, decided)
    if ended_by == DEADLINE:
        folder.note("paused", by=DEADLINE)
    else:
        folder.note("ended", by=ended_by, stopping=to_json(plan.stopping))
    manifest.write(folder.path)
    progress.ended(ended_by)
    return ended_by


def is_finished(plan: Plan, folder: Folder) -> bool:
    """Whether nothing is left to do: all trials are there, or this very stopping rule has left the rest out."""
    if not missing(plan.trials(), folder):
        return True
    notes = [note for note in folder.notes() if note["event"] in ("session", "ended")]
    ended = bool(notes) and _same_rules(notes[-1].get("stopping"), plan)
    return ended and notes[-1]["by"] != "blocks"


def _same_rules(noted: Any, plan: Plan) -> bool:
    """Whether a note's stopping rules are the plan's; an older note has no looks and one rule more."""
    if not isinstance(noted, Mapping):
        return False
    of_old = {rule: value for rule, value in noted.items() if rule != "precision"}
    rules = {**to_json(Stopping(0)), **of_old}
    return {**rules, "looks": tuple(rules["looks"])} == to_json(plan.stopping)


def _run_in_order(
    plan: Plan, execute: _Execute, folder: Folder, progress: Progress, decided: Callable[[Folder], bool]
) -> str:
    """Run the preamble, then block by block, and say what ended it."""
    if not _run_missing(plan.preamble, execute, folder, progress):
        return DEADLINE
    for number, block in enumerate(plan.blocks, start=1):
        if _too_late(plan, block, progress):
            return "time budget"
        if not (progress.can_end(block) and _run_missing(block, execute, folder, progress)):
            return DEADLINE
        looks = plan.stopping.looks
        if looks and number >= looks[0] and number < len(plan.blocks) and decided(folder):
            return "decided"
    return "blocks"


def _run_missing(trials: Iterable[Trial], execute: _Execute, folder: Folder, progress: Progress) -> bool:
    """Run those of the trials that are not there yet, in order; `at_once` of them where a testbed can.

    Returns whether the deadline left time for all. Only this thread writes: what an interruption leaves running ends
    with the testbed and is not kept.
    """
    waiting = deque(progress.not_kept(trials))
    if progress.at_once == 1:
        for trial in waiting:
            if not _in_time(trial, progress):
                return False
            progress.started(trial)
            _keep(trial, *execute(trial), folder, progress)
        return True
    running: Dict[Future, Trial] = {}
    pool = ThreadPoolExecutor(progress.at_once)
    try:
        while True:
            while waiting and len(running) < progress.at_once and _in_time(waiting[0], progress):
                trial = waiting.popleft()
                progress.started(trial)
                running[pool.submit(execute, trial)] = trial
            if not running:
                return not waiting
            for done in wait(running, return_when=FIRST_COMPLETED)[0]:
                _keep(running.pop(done), *done.result(), folder, progress)
    finally:
        pool.shutdown(wait=False)


def _in_time(trial: Trial, progress: Progress) -> bool:
    """Whether a trial will be over before the deadline: at the latest when the last of its commands is stopped."""
    commands = runner_named(trial.runner).commands(trial.point)
    return progress.has_time_for(trial, sum(command.timeout_s for command in commands if not command.background))


def _execute(testbed: Any, admit: Callable[[Transcript], None], trial: Trial) -> Tuple[Transcript, float]:
    """The trial's transcript, and the seconds that it took."""
    begin = time.monotonic()
    transcript = testbed.run(trial, runner_named(trial.runner).commands(trial.point))
    seconds = time.monotonic() - begin
    admit(transcript)
    return transcript, seconds


def _keep(trial: Trial, transcript: Transcript, seconds: float, folder: Folder, progress: Progress) -> None:
    folder.save(transcript)
    outcome = judge(transcript, runner_named(trial.runner).parse)
    folder.note("trial", id=trial.id, status=outcome.status, seconds=round(seconds, 4))
    progress.finished(trial, outcome, seconds)


def _too_late(plan: Plan, block: Tuple[Trial, ...], progress: Progress) -> bool:
    """Whether a block that has still to run would not end within the time budget."""
    budget = plan.stopping.time_budget_s
    if not budget or block is plan.blocks[0]:
        return False
    to_come = progress.expected(block)
    return to_come is not None and to_come > 0 and progress.spent_s + to_come > budget
