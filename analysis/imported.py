"""Files that somebody else's runs left, as trials: one of each result in a file."""

from collections.abc import Callable
from dataclasses import replace

from runners.record import Outcome, Result, Transcript, Unreadable, mismatch

TESTBED = "imported"  # of every transcript that was made from such a file


def judged(
    transcript: Transcript, results: Callable[[str], list[Result]]
) -> list[tuple[Transcript, Outcome]]:
    """Every result in an imported file as a trial of its own with its outcome; at least one.

    A trial's settings are those that the file names and those that were given for it. It is `invalid` when the two
    contradict each other, and `unreadable` when the file refuses the result or has none.
    """
    try:
        found = results(transcript.executions[0].stdout)
    except Unreadable as reason:
        return [(transcript, Outcome("unreadable", str(reason)))]
    return [_one(transcript, number, result) for number, result in enumerate(found, start=1)]


def _one(transcript: Transcript, number: int, result: Result) -> tuple[Transcript, Outcome]:
    given = transcript.trial.point
    trial = replace(
        transcript.trial, id=f"{transcript.trial.id}-{number}", point={**result.settings, **given}
    )
    named = {name: value for name, value in result.settings.items() if name in given}
    contradictions = mismatch({name: given[name] for name in named}, named)
    if result.refused:
        outcome = Outcome("unreadable", result.refused)
    elif contradictions:
        outcome = Outcome("invalid", "; ".join(contradictions))
    else:
        outcome = Outcome("ok", "", result.readings)
    return replace(transcript, trial=trial), outcome
