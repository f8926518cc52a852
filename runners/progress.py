"""How far a campaign is: which trials are there, how long each kind takes, and what the time left is enough for."""

import statistics
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Optional, Set

from runners.journal import Folder
from runners.plan import Plan
from runners.record import Outcome, Trial

# The status of a trial for which too few nodes were left: nothing was run.
UNAVAILABLE = "unavailable"
# A trial may take so much longer than the longest of its kind so far.
_ALLOWANCE = 1.25


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


def missing(trials: Iterable[Trial], folder: Folder) -> Set[str]:
    """The ids of those of the trials that have still to be run: also what lacked nodes, which may be back."""
    lacked = {note["id"]: note["status"] == UNAVAILABLE for note in folder.notes() if note["event"] == "trial"}
    kept = {trial_id for trial_id in folder.finished() if not lacked.get(trial_id)}
    return {trial.id for trial in trials} - kept


class Progress:
    """Keeps count of the trials, of how long each kind takes and of the time left, and tells the listener."""

    def __init__(
        self, plan: Plan, folder: Folder, listen: Listener, at_once: int, deadline: Optional[float] = None
    ) -> None:
        self._plan, self._listen, self.at_once = plan, listen, at_once
        self._deadline, self._begin, self._has_begun = deadline, time.time(), False
        self._trials = plan.trials()
        self._kind = {trial.id: (trial.runner, trial.point.get("nodes")) for trial in self._trials}
        self.missing = missing(self._trials, folder)
        self._seconds: Dict[Any, List[float]] = defaultdict(list)
        self.spent_s = 0.0
        for note in folder.notes():
            if note["event"] == "trial" and note["id"] in self._kind:
                self._count(note["id"], note["status"], note["seconds"])

    def expected(self, trials: Iterable[Trial]) -> Optional[float]:
        """Seconds that the missing ones of these trials will take; None while their kind was never timed."""
        kinds = [self._kind[trial.id] for trial in trials if trial.id in self.missing]
        if not all(kind in self._seconds for kind in kinds):
            return None
        return sum(statistics.mean(self._seconds[kind]) for kind in kinds) / self.at_once

    def can_end(self, block: Iterable[Trial]) -> bool:
        """Whether a block should begin: not if it would be cut in two that a whole session could hold.

        The next session may be on other nodes, with which the trials of this one must not be compared.
        """
        expected = self.expected(block)
        if self._deadline is None or not expected or expected > self._deadline - self._begin:
            return True
        return expected <= self._deadline - time.time()

    def has_time_for(self, trial: Trial, limit_s: float) -> bool:
        """Whether a trial would end before the deadline, judged by the longest of its kind, or else by its limit.

        The first of a session begins in any case: one with a large limit would never be run otherwise.
        """
        if self._deadline is None:
            return True
        left = self._deadline - time.time()
        timed = self._seconds.get(self._kind[trial.id])
        needed = _ALLOWANCE * max(timed) if timed else limit_s
        return left > 0 and (needed <= left or not self._has_begun)

    def not_kept(self, trials: Iterable[Trial]) -> List[Trial]:
        """Those of the trials that are missing; the listener hears of the others."""
        for trial in trials:
            if trial.id not in self.missing:
                self._tell("kept", trial)
        return [trial for trial in trials if trial.id in self.missing]

    def started(self, trial: Trial) -> None:
        self._has_begun = True
        self._tell("started", trial)

    def finished(self, trial: Trial, outcome: Outcome, seconds: float) -> None:
        self.missing.discard(trial.id)
        self._count(trial.id, outcome.status, seconds)
        self._tell("finished", trial, outcome)

    def ended(self, rule: str) -> None:
        self._tell("ended", None, message=rule)

    def _count(self, trial_id: str, status: str, seconds: float) -> None:
        if status != UNAVAILABLE:  # which took no time, and tells nothing of the time that the trial takes
            self._seconds[self._kind[trial_id]].append(seconds)
        self.spent_s += seconds / self.at_once

    def _tell(self, kind: str, trial: Optional[Trial], outcome: Optional[Outcome] = None, message: str = "") -> None:
        eta = self.expected(self._trials)
        if self._plan.stopping.time_budget_s:
            left = max(self._plan.stopping.time_budget_s - self.spent_s, 0.0)
            eta = left if eta is None else min(eta, left)
        done = len(self._trials) - len(self.missing)
        self._listen(Event(kind, trial, outcome, done, len(self._trials), eta, message))
