"""How far a campaign is: of each kind of trial what is kept and what is missing, block by block, and its job."""

from collections import Counter, defaultdict
from itertools import groupby
from typing import Dict, List, Sequence, Set

from runners import slurm
from runners.campaign import missing
from runners.journal import Folder
from runners.plan import Plan
from runners.record import FalloffError, Trial

_ENDS = {
    "ended": "; ended by its stopping rule: {by}",
    "paused": "; no time was left for more: submit again",
}


def text(folder: Folder) -> str:
    """How far the campaign in a folder is, in lines; raises FalloffError when it holds none."""
    plan, notes = folder.plan(), folder.notes()
    trials = plan.trials()
    lacking = missing(trials, folder)
    ends = [note for note in notes if note["event"] in ("session", "paused", "ended")][-1:]
    end = "".join(_ENDS.get(note["event"], "").format(**note) for note in ends)
    kept = f"{len(trials) - len(lacking)} of {len(trials)} trials kept, {len(lacking)} missing"
    lines = [*_blocks(plan, lacking), *_parted(notes, plan)]
    status = {note["id"]: note["status"] for note in notes if note["event"] == "trial"}
    counts = Counter(value for value in status.values() if value != "ok")
    if counts:
        listed = ", ".join(f"{count} {value}" for value, count in counts.items())
        lines.append(f"without a result: {listed}")
    lines += _job(folder)
    return "\n".join([f"{folder.path.name}: {kept}{end}", *(f"  {line}" for line in lines)])


def _blocks(plan: Plan, lacking: Set[str]) -> List[str]:
    """Of each kind of trial how many are kept of how many; blocks that are alike share a line."""
    blocks = [
        (number, block) for number, block in enumerate((plan.preamble, *plan.blocks)) if block
    ]
    kinds = [(number, _kinds(block, lacking)) for number, block in blocks]
    lines = []
    for kind, alike in groupby(kinds, key=lambda pair: pair[1]):
        numbers = [number for number, _ in alike]
        which = f"block {numbers[0]}"
        if len(numbers) > 1:
            which = f"blocks {numbers[0]} to {numbers[-1]}, each"
        lines.append(f"{which}: {kind}")
    return lines


def _kinds(block: Sequence[Trial], lacking: Set[str]) -> str:
    totals = Counter(trial.runner for trial in block)
    kept = Counter(trial.runner for trial in block if trial.id not in lacking)
    return ", ".join(f"{runner} {kept[runner]} of {total}" for runner, total in totals.items())


def _parted(notes: Sequence[Dict], plan: Plan) -> List[str]:
    """The blocks that one session began and another went on with, which may have had other nodes."""
    block_of = {trial.id: trial.block for trial in plan.trials()}
    session = 0
    sessions: Dict[int, Set[int]] = defaultdict(set)
    for note in notes:
        session += note["event"] == "session"
        if note["event"] == "trial" and block_of.get(note["id"]):
            sessions[block_of[note["id"]]].add(session)
    parted = [str(block) for block, numbers in sorted(sessions.items()) if len(numbers) > 1]
    return [f"measured in several sessions: block {', '.join(parted)}"] if parted else []


def _job(folder: Folder) -> List[str]:
    """The job that was submitted last, and the last line that it printed if it is over."""
    for submitted in slurm.jobs(folder)[-1:]:
        try:
            job = slurm.job(submitted["id"])
        except FalloffError as error:
            return [f"job {submitted['id']}: its state cannot be had ({error})"]
        times = f", {job.elapsed} of {job.limit}" if job.elapsed and job.limit else ""
        reason = f" ({job.reason})" if job.state == "PENDING" else ""
        line, output = (
            f"job {job.id}: {job.state}{reason}{times}",
            folder.path / f"job-{job.id}.out",
        )
        if job.is_active:
            return [line]
        if not output.exists():
            hint = ["it printed nothing here: do its nodes see this folder?"]
            return [line, *(hint if job.state == "FAILED" else [])]
        printed = output.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return [line, *(f"it said last: {last[:200]}" for last in printed[-1:])]
    return []
