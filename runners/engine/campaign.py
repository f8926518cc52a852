"""Run a campaign: every missing trial, block by block, until a stopping rule is met."""

import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
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

_MACHINE = ("hostname", "boot_id")  # what tells where, and since which reboot, a session ran

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

    `trial` is a Trial, `outcome` an Outcome, of the events that have one. `done` of `total` trials
    are there. `varied` are the settings that differ among the campaign's points, besides network,
    path and number of nodes. `eta_s` is None as long as the duration of some kind of trial is
    unknown.
    """

    kind: str
    trial: Any = None
    outcome: Any = None
    done: int = 0
    total: int = 0
    eta_s: Optional[float] = None
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
    decided: Optional[Callable[[Folder], bool]] = None,
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
    with folder.writing():
        folder.create_or_check(plan)
        manifest.forget(folder.path)
        for line in folder.set_aside():
            listen(Event("message", message=line))
        host = provenance.host()
        _require_same_code(folder, host)
        folder.write_provenance({"host": host, "testbed": testbed.provenance(), **session})
        machine = {name: host[name] for name in _MACHINE}
        folder.note("session", digest=plan.digest, testbed=plan.testbed["name"], **machine)
        # Trials whose result is in the journal but whose transcript was removed are run again.
        noted = {trial for trial, count in folder.results().items() if count > 0}
        for trial_id in sorted(noted - folder.finished()):
            folder.note("lost", id=trial_id)
        progress = _Progress(plan, folder, listen, testbed, admit, deadline)
        try:
            ended_by = progress.run(decided)
        finally:
            progress.pool.shutdown(wait=False, cancel_futures=True)
        if ended_by in (DEADLINE, SESSION):
            folder.note("paused", by=ended_by)
        else:
            folder.note("ended", by=ended_by, stopping=asdict(plan.stopping))
        manifest.write(folder.path)
    progress.tell("ended", message=ended_by)
    if ended_by == SESSION:
        listen(Event("message", message=next_session(folder)))
    return ended_by


def next_session(folder: Folder) -> str:
    """When and where the next session of a campaign may begin, in a sentence."""
    begin = time.strftime("%Y-%m-%d %H:%M", time.localtime(folder.this_session()[1]))
    return (
        f"This session has its blocks. Run it again from {begin} on, after a reboot, or in a copy "
        f"of {folder.path} on another machine"
    )


def _require_same_code(folder: Folder, host: Mapping[str, Any]) -> None:
    """Raise FalloffError if the campaign was begun on another machine, or before a reboot, with
    another commit: then a session would differ from the others in more than the machine."""
    for session in folder.provenance_sessions():
        other = session.get("host", {})
        is_elsewhere = any(other.get(name) not in (None, host[name]) for name in _MACHINE)
        commits = other.get("git_commit"), host["git_commit"]
        if is_elsewhere and all(commits) and commits[0] != commits[1]:
            raise FalloffError(
                f"{folder.path} was begun on another machine with commit {commits[0][:12]}, and "
                f"this is {commits[1][:12]}: check that one out, or start afresh with --fresh"
            )


def commands_of(plan: Plan) -> list[Command]:
    """The commands that the trials of a plan execute."""
    return [command for trial in plan.trials() for command in _commands(trial)]


def _commands(trial: Trial) -> list[Command]:
    """The commands of a trial; raises FalloffError if a setting that the tool needs is missing."""
    try:
        return tool_named(trial.runner).commands(trial.point)
    except KeyError as error:
        needs = f"{trial.runner} needs the setting {error.args[0]}"
        raise FalloffError(f"{needs}, which trial {trial.id} does not have") from None


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


def _varied(plan: Plan) -> tuple[str, ...]:
    """The factors with several levels besides network, path and number of nodes, and the dilation
    if it differs."""
    names = dict.fromkeys([*plan.design["factors"], "dilation"])
    points = [trial.point for trial in plan.trials() if trial.role == "point"]
    several = [name for name in names if len({str(point.get(name)) for point in points}) > 1]
    return tuple(name for name in several if name not in ("interconnect", "path", "nodes"))


class _Progress:
    """Runs and keeps trials, counts them and the time that each kind takes, and informs the
    listener."""

    def __init__(
        self,
        plan: Plan,
        folder: Folder,
        listen: Listener,
        testbed: Any,
        admit: Callable[[Transcript], None],
        deadline: Optional[float],
    ) -> None:
        self._plan, self._folder, self._listen, self._testbed = plan, folder, listen, testbed
        self._admit, self._deadline = admit, deadline
        self.pool = ThreadPoolExecutor(_MOST_AT_ONCE)
        self._begin, self._has_begun, self._spent_s = time.time(), False, 0.0
        self._trials, self._varied = plan.trials(), _varied(plan)
        # Each trial's kind and load.
        self._sort = {trial.id: (kind_of(trial), testbed.load(trial)) for trial in self._trials}
        self._planned = {
            kind_of(trial): planned_s(trial, plan, tool_named(trial.runner))
            for trial in self._trials
        }
        self._missing = missing(self._trials, folder)
        # All that is asked after each trial is counted as trials end: there may be 100,000.
        self._waiting = Counter(map(self._sort.__getitem__, self._missing))
        # Of each kind's trials so far: how many, and their durations' sum and most [s].
        self._count: dict[Kind, int] = Counter()
        self._total: dict[Kind, float] = defaultdict(float)
        self._longest: dict[Kind, float] = defaultdict(float)
        for note in folder.notes():
            if note["event"] == "trial" and note["id"] in self._sort:
                self._add(note["id"], note["status"], note["seconds"])

    def run(self, decided: Optional[Callable[[Folder], bool]]) -> str:
        """Run the preamble, then block by block, and return the rule that ended it."""
        stopping, of_session = self._plan.stopping, self._folder.this_session()[0]
        # The blocks that began in this session, also by an earlier start.
        here = {trial.block for trial in self._trials if trial.id in of_session and trial.block}
        budget, looks, most = stopping.time_budget_s, stopping.looks, stopping.blocks_a_session
        if not self._run_missing(self._plan.preamble):
            return DEADLINE
        for number, block in enumerate(self._plan.blocks, start=1):
            waiting = self._waiting_of(block)
            if waiting and most and number not in here and len(here) >= most:
                return SESSION
            here |= {number} if waiting else set()
            seconds = self._together_s(Counter(self._sort[trial.id] for trial in waiting))
            if budget and number > 1 and seconds and self._spent_s + seconds > budget:
                return "time budget"
            if not (self._can_end(seconds) and self._run_missing(block)):
                return DEADLINE
            is_look = looks and looks[0] * (most or 1) <= number < len(self._plan.blocks)
            if is_look and decided and decided(self._folder):
                return "decided"
        return "blocks"

    def _run_missing(self, trials: Iterable[Trial]) -> bool:
        """Run the missing trials, as many side by side in threads of the pool as the testbed
        allows; each thread keeps its network.

        Returns whether the deadline left time for all. Only this thread writes. Trials that an
        interruption leaves running end with the testbed and are not kept.
        """
        running: dict[Future, Trial] = {}

        def keep_next(patience_s: Optional[float] = None) -> None:
            for done in wait(running, patience_s, FIRST_COMPLETED)[0]:
                self._keep(running.pop(done), *done.result())

        is_in_time, may_start = True, 0.0
        for trial in self._waiting_of(trials):
            load = self._load(trial)
            while running and load + sum(map(self._load, running.values())) > _FULL:
                keep_next()
            while running and (early := may_start - time.monotonic()) > 0:
                keep_next(early)
            is_in_time = self._has_time_for(trial)
            if not is_in_time:
                break
            self.tell("started", trial)
            if load < 1:
                running[self.pool.submit(self._execute, trial)] = trial
                may_start = time.monotonic() + _APART_S * trial.point.get("nodes", 1)
            else:  # in this thread, so that an interrupt also ends the trial
                self._keep(trial, *self._execute(trial))
        while running:
            keep_next()
        return is_in_time

    def _execute(self, trial: Trial) -> tuple[Transcript, float]:
        begin = time.monotonic()
        for _ in range(_TRIES):
            transcript = self._testbed.run(trial, _commands(trial))
            self._admit(transcript)
            if judge(transcript, lambda _: {}).status != "busy":
                break
        return transcript, time.monotonic() - begin

    def _load(self, trial: Trial) -> float:
        return self._sort[trial.id][1]

    def _together_s(self, waiting: Mapping[tuple[Kind, float], int]) -> Optional[float]:
        """The seconds that so many trials of each kind and load will take; None if no such trial
        was timed and the plan does not say."""
        times: dict[tuple[float, float], int] = Counter()
        for (kind, load), count in waiting.items():
            seconds = self._of_kind(kind)
            if seconds is None:
                return None
            times[seconds, load] += count
        return together_s(times)

    def _of_kind(self, kind: Kind) -> Optional[float]:
        """The time that a trial of this kind takes: that of earlier ones, or the planned time,
        scaled by how much longer others took."""
        if self._count[kind]:
            return self._total[kind] / self._count[kind]
        planned = self._planned[kind]
        if planned is None:
            return None
        longer = [
            self._total[other] / count / before
            for other, count in self._count.items()
            if (before := self._planned[other])
        ]
        return planned * statistics.median(longer or [1.0])

    def _can_end(self, expected_s: Optional[float]) -> bool:
        """Whether a block should begin. It should not if the session's end would split it although
        a whole session could hold it.

        The next session may run on other nodes, and its trials must not be compared with those of
        this session.
        """
        if self._deadline is None or not expected_s or expected_s > self._deadline - self._begin:
            return True
        return expected_s <= self._deadline - time.time()

    def _has_time_for(self, trial: Trial) -> bool:
        """Whether a trial would end before the deadline, judged by the longest of its kind, or else
        by its commands' limits.

        The first trial of a session always begins; otherwise a trial with a large limit would never
        run.
        """
        if self._deadline is None:
            return True
        left, kind = self._deadline - time.time(), self._sort[trial.id][0]
        needed = _ALLOWANCE * self._longest[kind]
        if not self._count[kind]:
            limits = (command.timeout_s for command in _commands(trial) if not command.background)
            needed = sum(limits)
        return left > 0 and (needed <= left or not self._has_begun)

    def _waiting_of(self, trials: Iterable[Trial]) -> list[Trial]:
        """The missing ones of the trials in the planned order, in which they begin, also side by
        side: it is random, so that a network does not always have the same companions."""
        return [trial for trial in trials if trial.id in self._missing]

    def _keep(self, trial: Trial, transcript: Transcript, seconds: float) -> None:
        """Write a trial's transcript and note its outcome."""
        self._folder.save(transcript)
        outcome = judge(transcript, tool_named(trial.runner).parse)
        self._folder.note("trial", id=trial.id, status=outcome.status, seconds=round(seconds, 4))
        self._missing.discard(trial.id)
        self._waiting -= Counter([self._sort[trial.id]])
        self._add(trial.id, outcome.status, seconds)
        self.tell("finished", trial, outcome)

    def tell(
        self,
        kind: str,
        trial: Optional[Trial] = None,
        outcome: Optional[Outcome] = None,
        message: str = "",
    ) -> None:
        """Inform the listener of an event."""
        self._has_begun = self._has_begun or kind == "started"
        eta, budget = self._together_s(self._waiting), self._plan.stopping.time_budget_s
        if budget:
            left = max(budget - self._spent_s, 0.0)
            eta = left if eta is None else min(eta, left)
        total = len(self._trials)
        done = total - len(self._missing)
        self._listen(Event(kind, trial, outcome, done, total, eta, message, self._varied))

    def _add(self, trial_id: str, status: str, seconds: float) -> None:
        kind, load = self._sort[trial_id]
        # How long these took says nothing about a trial's duration.
        if status not in TRIED_AGAIN:
            self._count[kind] += 1
            self._total[kind] += seconds
            self._longest[kind] = max(self._longest[kind], seconds)
        self._spent_s += seconds * load
