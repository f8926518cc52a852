"""How far a campaign is: of each kind of trial what is kept and what is missing, block by block, and its job."""

from collections import Counter, defaultdict
from itertools import groupby
from typing import Dict, List, Sequence, Set

from runners import slurm, submission
from runners.journal import Folder
from runners.plan import Plan
from runners.progress import missing
from runners.record import FalloffError, Trial


def text(folder: Folder) -> str:
    """What there is to say of the campaign in a folder, in lines; raises FalloffError when it holds none."""
    plan = folder.plan()
    trials = plan.trials()
    wanting = missing(trials, folder)
    there = len(trials) - len(wanting)
    head = f"{folder.path.name}: {there} of {len(trials)} trials kept, {len(wanting)} missing{_end(folder)}"
    lines = [*_blocks(plan, wanting), *_parted(folder, plan), *_without_result(folder), *_job(folder)]
    return "\n".join([head, *(f"  {line}" for line in lines)])


def _end(folder: Folder) -> str:
    last = [note for note in folder.notes() if note["event"] in ("session", "paused", "ended")][-1:]
    said = {"ended": "; ended by its stopping rule: {by}", "paused": "; no time was left for more: submit again"}
    return "".join(said.get(note["event"], "").format(**note) for note in last)


def _blocks(plan: Plan, wanting: Set[str]) -> List[str]:
    """A line for each block: of each kind of trial how many are kept of how many; blocks that are alike share one."""
    numbered = enumerate((plan.preamble, *plan.blocks))
    kinds = [(number, _kinds(block, wanting)) for number, block in numbered if block]
    lines = []
    for said, alike in groupby(kinds, key=lambda pair: pair[1]):
        numbers = [number for number, _ in alike]
        which = f"block {numbers[0]}" if len(numbers) == 1 else f"blocks {numbers[0]} to {numbers[-1]}, each"
        lines.append(f"{which}: {said}")
    return lines


def _kinds(block: Sequence[Trial], wanting: Set[str]) -> str:
    of = Counter(trial.runner for trial in block)
    there = Counter(trial.runner for trial in block if trial.id not in wanting)
    return ", ".join(f"{runner} {there[runner]} of {total}" for runner, total in of.items())


def _parted(folder: Folder, plan: Plan) -> List[str]:
    """The blocks that were begun in one session and went on in another, which may have had other nodes."""
    block_of = {trial.id: trial.block for trial in plan.trials()}
    session = 0
    sessions: Dict[int, Set[int]] = defaultdict(set)
    for note in folder.notes():
        session += note["event"] == "session"
        if note["event"] == "trial" and block_of.get(note["id"]):
            sessions[block_of[note["id"]]].add(session)
    parted = [str(block) for block, of in sorted(sessions.items()) if len(of) > 1]
    return [f"measured in several sessions: block {', '.join(parted)}"] if parted else []


def _without_result(folder: Folder) -> List[str]:
    """How many trials gave no reading, by status; empty when all did."""
    last = {note["id"]: note["status"] for note in folder.notes() if note["event"] == "trial"}
    counts = Counter(status for status in last.values() if status != "ok")
    return [f"without a result: {', '.join(f'{n} {status}' for status, n in counts.items())}"] if counts else []


def _job(folder: Folder) -> List[str]:
    """The job that was submitted last, and what it said last if it is over."""
    for submitted in submission.jobs(folder)[-1:]:
        try:
            job = slurm.job(submitted["id"])
        except FalloffError as error:
            return [f"job {submitted['id']}: its state cannot be had ({error})"]
        times = f", {job.elapsed} of {job.limit}" if job.elapsed and job.limit else ""
        waits = f" ({job.reason})" if job.state == "PENDING" else ""
        return [f"job {job.id}: {job.state}{waits}{times}", *_last_words(folder, job)]
    return []


def _last_words(folder: Folder, job: slurm.Job) -> List[str]:
    """The last line that a job printed, once it is over."""
    output = folder.path / f"job-{job.id}.out"
    if job.is_active:
        return []
    if not output.exists():
        return ["it printed nothing here: do its nodes see this folder?"] if job.state == "FAILED" else []
    said = output.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return [f"it said last: {said[-1][:200]}"] if said else []
