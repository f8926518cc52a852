"""The state of a campaign: for each kind of trial how many are done and missing, block by block,
and its job."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from runners.engine import slurm
from runners.engine.campaign import SESSION, missing, next_session
from runners.records.journal import Folder, read_transcript
from runners.records.record import FalloffError, Trial

_ENDS = {
    "ended": "; ended by its stopping rule: {by}",
    "paused": "; paused, {by}: run or submit it again",
}


def text(folder: Folder) -> str:
    """The state of the campaign in a folder, as lines; raises FalloffError if there is none."""
    plan, notes = folder.plan(), folder.notes()
    trials = plan.trials()
    lacking = missing(trials, folder)
    end = _ENDS.get(folder.end().get("event", ""), "").format(**folder.end())
    progress = f"{len(trials) - len(lacking)} of {len(trials)} trials kept, {len(lacking)} missing"
    lines = []
    blocks = enumerate((plan.preamble, *plan.blocks))
    kinds = [(number, _kinds(block, lacking)) for number, block in blocks if block]
    for kind, alike in groupby(kinds, key=itemgetter(1)):
        first, *others = [number for number, _ in alike]
        which = f"blocks {first} to {others[-1]}, each" if others else f"block {first}"
        lines.append(f"{which}: {kind}")
    status = {note["id"]: note["status"] for note in notes if note["event"] == "trial"}
    counts = Counter(status.values())
    del counts["ok"]
    if counts:
        listed = ", ".join(f"{count} {value}" for value, count in counts.items())
        lines.append(f"without a result: {listed}")
    for name, content in folder.texts():
        try:
            read_transcript(content, folder.place(name))
        except FalloffError as error:
            lines.append(str(error))
    if folder.end().get("by") == SESSION:
        lines.append(next_session(folder))
    lines += _job(folder)
    return "\n".join([f"{folder.path.name}: {progress}{end}", *(f"  {line}" for line in lines)])


def _kinds(block: Sequence[Trial], lacking: set[str]) -> str:
    """For each kind of trial in a block, how many of how many are done."""
    totals = Counter(trial.runner for trial in block)
    finished = Counter(trial.runner for trial in block if trial.id not in lacking)
    return ", ".join(f"{runner} {finished[runner]} of {total}" for runner, total in totals.items())


def _job(folder: Folder) -> list[str]:
    """The job that was submitted last, and the last line of its output if it is over."""
    jobs = slurm.jobs(folder)
    if not jobs:
        return []
    try:
        job = slurm.job(jobs[-1]["id"])
    except FalloffError as error:
        return [f"job {jobs[-1]['id']}: its state is unknown ({error})"]
    times = f", {job.elapsed} of {job.limit}" if job.limit else ""
    reason = f" ({job.reason})" if job.state == "PENDING" else ""
    lines = [f"job {job.id}: {job.state}{reason}{times}"]
    output = folder.path / f"job-{job.id}.out"
    if not job.is_active and output.exists():
        printed = output.read_text(encoding="utf-8", errors="replace").strip()
        if printed:
            lines.append(f"its last output: {printed.splitlines()[-1][:200]}")
    elif job.state == "FAILED":
        lines.append("it left no output here: do its nodes share this folder?")
    return lines
