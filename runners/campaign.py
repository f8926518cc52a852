"""Run a campaign: every trial that is not there yet, block by block, until a stopping rule is met."""

import statistics
import time
from collections import defaultdict, deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from runners import provenance, runner_named
from runners.journal import Folder
from runners.plan import Plan
from runners.record import Outcome, Transcript, Trial, judge


@dataclass(frozen=True)
class Event:
    """What the engine reports: `started`, `finished` or `kept` trials, and the campaign's `ended`.

    `done` of `total` trials are there; `eta_s` is None until every kind of trial has been timed once.
    """

    kind: str
    trial: Optional[Trial]
    outcome: Optional[Outcome]
    done: int
    total: int
    eta_s: Optional[float]
    message: str = ""


Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The listener of those who want to hear nothing."""


def run(
    plan: Plan,
    testbed: Any,
    folder: Folder,
    listen: Listener = ignore,
    half_width: Callable[[Folder], Optional[float]] = lambda folder: None,
) -> str:
    """Run what is missing of a plan on an open testbed and say which rule ended it.

    `half_width(folder)` is asked after each block for the half-width of the 95 % interval of
    the primary contrast (a fraction, or None while there is none), if the plan wants a precision.
    Returns `blocks`, `precision` or `time budget`. Whatever interrupts it, finished trials stay.
    """
    folder.create_or_check(plan)
    folder.write_provenance({"host": provenance.host(), "testbed": testbed.provenance()})
    folder.note("session", digest=plan.digest, testbed=plan.testbed["name"])
    progress = _Progress(plan, folder, listen, testbed.at_once)
    _run_missing(plan.preamble, testbed, folder, progress)
    ended_by = "blocks"
    for block in plan.blocks:
        if _too_late(plan, block, progress):
            ended_by = "time budget"
            break
        _run_missing(block, testbed, folder, progress)
        width = half_width(folder) if plan.stopping.precision else None
        if width is not None and width <= plan.stopping.precision:
            ended_by = "precision"
            break
    folder.note("ended", by=ended_by, stopping=asdict(plan.stopping))
    progress.ended(ended_by)
    return ended_by


def is_finished(plan: Plan, folder: Folder) -> bool:
    """Whether nothing is left to do: all trials are there, or this very stopping rule has ended it."""
    if folder.finished().issuperset(trial.id for trial in plan.trials()):
        return True
    notes = [note for note in folder.notes() if note["event"] in ("session", "ended")]
    return bool(notes) and notes[-1].get("stopping") == asdict(plan.stopping)


def _run_missing(trials: Iterable[Trial], testbed: Any, folder: Folder, progress: "_Progress") -> None:
    """Run those of the trials that are not there yet, in order; `at_once` of them where a testbed can.

    Only this thread writes: what an interruption leaves running ends with the testbed and is not kept.
    """
    waiting = deque(progress.not_kept(trials))
    if testbed.at_once == 1:
        for trial in waiting:
            progress.started(trial)
            _keep(trial, *_execute(trial, testbed), folder, progress)
        return
    running: Dict[Future, Trial] = {}
    pool = ThreadPoolExecutor(testbed.at_once)
    try:
        while waiting or running:
            while waiting and len(running) < testbed.at_once:
                trial = waiting.popleft()
                progress.started(trial)
                running[pool.submit(_execute, trial, testbed)] = trial
            for done in wait(running, return_when=FIRST_COMPLETED)[0]:
                _keep(running.pop(done), *done.result(), folder, progress)
    finally:
        pool.shutdown(wait=False)


def _execute(trial: Trial, testbed: Any) -> Tuple[Transcript, float]:
    """The trial's transcript, and the seconds that it took."""
    begin = time.monotonic()
    transcript = testbed.run(trial, runner_named(trial.runner).commands(trial.point))
    return transcript, time.monotonic() - begin


def _keep(trial: Trial, transcript: Transcript, seconds: float, folder: Folder, progress: "_Progress") -> None:
    folder.save(transcript)
    outcome = judge(transcript, runner_named(trial.runner).parse)
    folder.note("trial", id=trial.id, status=outcome.status, seconds=round(seconds, 4))
    progress.finished(trial, outcome, seconds)


def _too_late(plan: Plan, block: Tuple[Trial, ...], progress: "_Progress") -> bool:
    """Whether a block that has still to run would not end within the time budget."""
    budget = plan.stopping.time_budget_s
    if not budget or block is plan.blocks[0]:
        return False
    to_come = progress.expected(block)
    return to_come is not None and to_come > 0 and progress.spent_s + to_come > budget


class _Progress:
    """Keeps count of the trials and of how long each kind takes, and tells the listener."""

    def __init__(self, plan: Plan, folder: Folder, listen: Listener, at_once: int) -> None:
        self._plan, self._listen, self._at_once = plan, listen, at_once
        self._trials = plan.trials()
        self._kind = {trial.id: (trial.runner, trial.point.get("nodes")) for trial in self._trials}
        self.missing = {trial.id for trial in self._trials} - folder.finished()
        self._seconds: Dict[Any, List[float]] = defaultdict(list)
        self.spent_s = 0.0
        for note in folder.notes():
            if note["event"] == "trial" and note["id"] in self._kind:
                self._count(note["id"], note["seconds"])

    def expected(self, trials: Iterable[Trial]) -> Optional[float]:
        """Seconds that the missing ones of these trials will take; None while their kind was never timed."""
        kinds = [self._kind[trial.id] for trial in trials if trial.id in self.missing]
        if not all(kind in self._seconds for kind in kinds):
            return None
        return sum(statistics.mean(self._seconds[kind]) for kind in kinds) / self._at_once

    def not_kept(self, trials: Iterable[Trial]) -> List[Trial]:
        """Those of the trials that are missing; the listener hears of the others."""
        for trial in trials:
            if trial.id not in self.missing:
                self._tell("kept", trial)
        return [trial for trial in trials if trial.id in self.missing]

    def started(self, trial: Trial) -> None:
        self._tell("started", trial)

    def finished(self, trial: Trial, outcome: Outcome, seconds: float) -> None:
        self.missing.discard(trial.id)
        self._count(trial.id, seconds)
        self._tell("finished", trial, outcome)

    def ended(self, rule: str) -> None:
        self._tell("ended", None, message=rule)

    def _count(self, trial_id: str, seconds: float) -> None:
        self._seconds[self._kind[trial_id]].append(seconds)
        self.spent_s += seconds / self._at_once

    def _tell(self, kind: str, trial: Optional[Trial], outcome: Optional[Outcome] = None, message: str = "") -> None:
        eta = self.expected(self._trials)
        if self._plan.stopping.time_budget_s:
            left = max(self._plan.stopping.time_budget_s - self.spent_s, 0.0)
            eta = left if eta is None else min(eta, left)
        done = len(self._trials) - len(self.missing)
        self._listen(Event(kind, trial, outcome, done, len(self._trials), eta, message))
