"""Run a campaign: every missing trial, block by block, until a stopping rule is met."""

import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Callable, Optional

from runners.records import manifest, provenance
from runners.records.journal import TRIED_AGAIN, Folder
from runners.records.plan import Kind, Plan, kind_of, planned_s
from runners.records.record import Command, FalloffError, Outcome, Transcript, Trial, judge
from runners.scale import together_s
from runners.tools import tool_named

# What `run` returns when time ran out, and when a session has run its blocks. These are not
# stopping rules: the next session continues from there.
DEADLINE, SESSION = "deadline", "session"

_TRIES = 3  # of a trial while other work on the machine disturbs it

# A trial may take this many times as long as the longest of its kind so far.
_ALLOWANCE = 1.25

# Trials run side by side as long as their loads, which are shares of the testbed, add up to at most
# 1.
_FULL = 1 + 1e-9
_MOST_AT_ONCE = 64
# s for each node of the previous trial: programs that start take the processors from running
# trials.
_APART_S = 0.25


@dataclass(frozen=True)
class Event:
    """An event that the engine reports: a trial `started` or `finished`, or the campaign `ended`.
    Before these, the engine may be `waiting` for another session or have a `message`.

    `done` of `total` trials are there. `varied` are the settings that differ among the campaign's
    points, besides network, path and number of nodes. `eta_s` is None as long as the duration of
    some kind of trial is unknown.
    """

    kind: str
    trial: Optional[Trial]
    outcome: Optional[Outcome]
    done: int
    total: int
    eta_s: Optional[float]
    message: str = ""
    varied: tuple[str, ...] = ()


Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """A listener that ignores all events."""


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
    """Run the missing trials of a plan on an open testbed, and return the rule that ended it.

    If looks are planned, `decided(folder)` is called after each block from the first look on. It
    returns whether further blocks would change nothing; it determines itself which blocks are
    valid, and so when a look is due. Trials that would not end before the `deadline` (seconds since
    the epoch) are left to the next session. `session` is added to the provenance of this session,
    besides host and testbed. `admit(transcript)` raises to reject a trial that was ended from
    outside; this ends the session.

    Raises FalloffError while another run writes in the folder. Returns `blocks`, `decided`, `time
    budget`, DEADLINE or SESSION. After any interruption, finished trials stay.
    """

    def execute(trial: Trial) -> tuple[Transcript, float]:
        begin = time.monotonic()
        for _ in range(_TRIES):
            transcript = testbed.run(trial, _commands(trial))
            admit(transcript)
            if judge(transcript, lambda _: {}).status != "busy":
                break
        return transcript, time.monotonic() - begin

    with folder.writing():
        folder.create_or_check(plan)
        manifest.forget(folder.path)
        for line in folder.set_aside():
            listen(Event("message", None, None, 0, len(plan.trials()), None, line))
        where = {"host": provenance.host(), "testbed": testbed.provenance(), **session}
        folder.write_provenance(where)
        folder.note("session", digest=plan.digest, testbed=plan.testbed["name"])
        # Trials whose result is in the journal but whose transcript was removed are run again.
        noted = {trial for trial, count in folder.results().items() if count > 0}
        for trial_id in sorted(noted - folder.finished()):
            folder.note("lost", id=trial_id)
        progress = _Progress(plan, folder, listen, testbed.load, deadline)
        pool = ThreadPoolExecutor(_MOST_AT_ONCE)
        try:
            ended_by = _run_in_order(
                plan, partial(_run_missing, execute, pool, progress), progress, decided
            )
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        if ended_by in (DEADLINE, SESSION):
            folder.note("paused", by=ended_by)
        else:
            folder.note("ended", by=ended_by, stopping=asdict(plan.stopping))
        manifest.write(folder.path)
    progress.tell("ended", None, message=ended_by)
    return ended_by


def commands_of(plan: Plan) -> list[Command]:
    """The commands that the trials of a plan execute."""
    return [command for trial in plan.trials() for command in _commands(trial)]


def _commands(trial: Trial) -> list[Command]:
    """The commands of a trial; raises FalloffError if a setting that the tool needs is missing."""
    try:
        return tool_named(trial.runner).commands(trial.point)
    except KeyError as error:
        raise FalloffError(
            f"{trial.runner} needs the setting {error.args[0]}, which trial {trial.id} does not have"
        ) from None


def missing(trials: Iterable[Trial], folder: Folder) -> set[str]:
    """The ids of the trials that must still be run, including those that lacked nodes, which may be
    back, and those that other work disturbed."""
    status = {note["id"]: note["status"] for note in folder.notes() if note["event"] == "trial"}
    finished = {trial for trial in folder.finished() if status.get(trial) not in TRIED_AGAIN}
    return {trial.id for trial in trials} - finished


def is_finished(plan: Plan, folder: Folder) -> bool:
    """Whether nothing is left to do: all trials are there, or this same stopping rule left the rest
    out."""
    if not missing(plan.trials(), folder):
        return True
    end = folder.end()
    if end.get("by") in (None, "blocks"):
        return False
    rules = end.get("stopping", {})
    added = {"blocks_a_session": 0}  # older journals lack it
    return {**added, **rules, "looks": tuple(rules.get("looks", ()))} == asdict(plan.stopping)


def _run_in_order(
    plan: Plan,
    run_missing: Callable[[Iterable[Trial]], bool],
    progress: "_Progress",
    decided: Callable[[Folder], bool],
) -> str:
    """Run the preamble, then block by block, and return the rule that ended it."""
    budget, looks = plan.stopping.time_budget_s, plan.stopping.looks
    if not run_missing(plan.preamble):
        return DEADLINE
    run_here, most = 0, plan.stopping.blocks_a_session
    for number, block in enumerate(plan.blocks, start=1):
        if progress.not_kept(block):
            if most and run_here == most:
                return SESSION
            run_here += 1
        seconds = progress.expected(block)
        if budget and number > 1 and seconds and progress.spent_s + seconds > budget:
            return "time budget"
        if not (progress.can_end(block) and run_missing(block)):
            return DEADLINE
        is_look = looks and looks[0] <= number < len(plan.blocks)
        if is_look and decided(progress.folder):
            return "decided"
    return "blocks"


def _run_missing(
    execute: Callable[[Trial], tuple[Transcript, float]],
    pool: ThreadPoolExecutor,
    progress: "_Progress",
    trials: Iterable[Trial],
) -> bool:
    """Run the missing trials, as many side by side in threads of the pool as the testbed allows;
    each thread keeps its network.

    Returns whether the deadline left time for all. Only this thread writes. Trials that an
    interruption leaves running end with the testbed and are not kept.
    """
    running: dict[Future, Trial] = {}

    def keep_next(patience_s: Optional[float] = None) -> None:
        for done in wait(running, patience_s, FIRST_COMPLETED)[0]:
            progress.keep(running.pop(done), *done.result())

    is_in_time, may_start = True, 0.0
    for trial in progress.in_order(trials):
        load = progress.load(trial)
        while running and load + sum(map(progress.load, running.values())) > _FULL:
            keep_next()
        while running and (early := may_start - time.monotonic()) > 0:
            keep_next(early)
        is_in_time = progress.has_time_for(trial)
        if not is_in_time:
            break
        progress.tell("started", trial)
        if load < 1:
            running[pool.submit(execute, trial)] = trial
            may_start = time.monotonic() + _APART_S * trial.point.get("nodes", 1)
        else:  # in this thread, so that an interrupt also ends the trial
            progress.keep(trial, *execute(trial))
    while running:
        keep_next()
    return is_in_time


def _varied(plan: Plan) -> tuple[str, ...]:
    """The factors with several levels besides network, path and number of nodes, and the dilation
    if it differs."""
    names = dict.fromkeys([*plan.design["factors"], "dilation"])
    points = [trial.point for trial in plan.trials() if trial.role == "point"]
    several = [name for name in names if len({str(point.get(name)) for point in points}) > 1]
    return tuple(name for name in several if name not in ("interconnect", "path", "nodes"))


@dataclass
class _Durations:
    """The durations [s] of the trials of one kind."""

    count: int = 0
    total: float = 0.0
    longest: float = 0.0

    @property
    def mean(self) -> float:
        return self.total / self.count

    def add(self, seconds: float) -> None:
        self.count, self.total = self.count + 1, self.total + seconds
        self.longest = max(self.longest, seconds)


class _Progress:
    """Keeps trials, counts them and the time that each kind takes, and informs the listener."""

    def __init__(
        self,
        plan: Plan,
        folder: Folder,
        listen: Listener,
        load: Callable[[Trial], float],
        deadline: Optional[float],
    ) -> None:
        self.folder, self.load, self.spent_s = folder, load, 0.0
        self._plan, self._listen, self._deadline = plan, listen, deadline
        self._begin, self._has_begun = time.time(), False
        self._trials = plan.trials()
        self._kind = {trial.id: kind_of(trial) for trial in self._trials}
        self._load = {trial.id: load(trial) for trial in self._trials}
        self._planned = {
            kind_of(trial): planned_s(trial, plan, tool_named(trial.runner))
            for trial in self._trials
        }
        self._varied = _varied(plan)
        self._missing = missing(self._trials, folder)
        # All that is asked after each trial is counted as trials end: there may be 100,000.
        self._waiting = Counter(map(self._sort, self._missing))
        self._timed: dict[Kind, _Durations] = defaultdict(_Durations)
        for note in folder.notes():
            if note["event"] == "trial" and note["id"] in self._kind:
                self._count(note["id"], note["status"], note["seconds"])

    def expected(self, trials: Iterable[Trial]) -> Optional[float]:
        """The seconds that the missing ones of these trials will take; None if no such trial was
        timed and the plan does not say."""
        missing = (trial.id for trial in trials if trial.id in self._missing)
        return self._together_s(Counter(map(self._sort, missing)))

    def _sort(self, trial_id: str) -> tuple[Kind, float]:
        return self._kind[trial_id], self._load[trial_id]

    def _together_s(self, waiting: Mapping[tuple[Kind, float], int]) -> Optional[float]:
        """The seconds that so many trials of each kind and load take; None as of `expected`."""
        seconds = {kind: self._of_kind(kind) for kind, _ in waiting}
        if None in seconds.values():
            return None
        times: dict[tuple[float, float], int] = Counter()
        for (kind, load), count in waiting.items():
            times[seconds[kind], load] += count
        return together_s(times)

    def _of_kind(self, kind: Kind) -> Optional[float]:
        """The time that a trial of this kind takes: that of earlier ones, or the planned time,
        scaled by how much longer others took."""
        if kind in self._timed:
            return self._timed[kind].mean
        planned = self._planned.get(kind)
        if planned is None:
            return None
        longer = [
            timed.mean / before
            for other, timed in self._timed.items()
            if (before := self._planned.get(other))
        ]
        return planned * (statistics.median(longer) if longer else 1.0)

    def can_end(self, block: Iterable[Trial]) -> bool:
        """Whether a block should begin. It should not if the session's end would split it although
        a whole session could hold it.

        The next session may run on other nodes, and its trials must not be compared with those of
        this session.
        """
        expected = self.expected(block)
        if self._deadline is None or not expected or expected > self._deadline - self._begin:
            return True
        return expected <= self._deadline - time.time()

    def has_time_for(self, trial: Trial) -> bool:
        """Whether a trial would end before the deadline, judged by the longest of its kind, or else
        by its commands' limits.

        The first trial of a session always begins; otherwise a trial with a large limit would never
        run.
        """
        if self._deadline is None:
            return True
        left, timed = self._deadline - time.time(), self._timed.get(self._kind[trial.id])
        if timed:
            needed = _ALLOWANCE * timed.longest
        else:
            needed = sum(
                command.timeout_s for command in _commands(trial) if not command.background
            )
        return left > 0 and (needed <= left or not self._has_begun)

    def not_kept(self, trials: Iterable[Trial]) -> list[Trial]:
        """The missing ones of the trials."""
        return [trial for trial in trials if trial.id in self._missing]

    def in_order(self, trials: Iterable[Trial]) -> list[Trial]:
        """The missing ones of the trials in the order in which they begin: the planned order, but
        among trials that run side by side the longest begin first. Otherwise one of these would
        often be left to run alone at the end."""
        waiting = self.not_kept(trials)
        if any(self._load[trial.id] >= 1 for trial in waiting):
            return waiting
        return sorted(waiting, key=lambda trial: -(self._of_kind(self._kind[trial.id]) or 0))

    def keep(self, trial: Trial, transcript: Transcript, seconds: float) -> None:
        """Write a trial's transcript and note its outcome."""
        self.folder.save(transcript)
        outcome = judge(transcript, tool_named(trial.runner).parse)
        self.folder.note("trial", id=trial.id, status=outcome.status, seconds=round(seconds, 4))
        self._missing.discard(trial.id)
        self._waiting -= Counter([self._sort(trial.id)])
        self._count(trial.id, outcome.status, seconds)
        self.tell("finished", trial, outcome)

    def tell(
        self,
        kind: str,
        trial: Optional[Trial],
        outcome: Optional[Outcome] = None,
        message: str = "",
    ) -> None:
        """Inform the listener of an event."""
        self._has_begun = self._has_begun or kind == "started"
        eta, budget = self._together_s(self._waiting), self._plan.stopping.time_budget_s
        if budget:
            left = max(budget - self.spent_s, 0.0)
            eta = left if eta is None else min(eta, left)
        done = len(self._trials) - len(self._missing)
        total = len(self._trials)
        self._listen(Event(kind, trial, outcome, done, total, eta, message, self._varied))

    def _count(self, trial_id: str, status: str, seconds: float) -> None:
        # How long these took says nothing about a trial's duration.
        if status not in TRIED_AGAIN:
            self._timed[self._kind[trial_id]].add(seconds)
        self.spent_s += seconds * self._load[trial_id]
