"""Recorded outputs of real tools as transcripts, for the tests of their parsers.

Beside each output lies what is expected of it: `point` and `readings`, or `status` and `reason`,
when it comes from a campaign's own trial; `results`, or `no_result` with the reason, when its
origin is unknown. A refusal has its `kind`. `origin` and `kept` say where an output was found and
how much of it is here; without them it is this project's own.
"""

import json
from pathlib import Path

from runners import outputs
from runners.records.record import (
    Execution,
    FalloffError,
    Outcome,
    Transcript,
    Trial,
    Unreadable,
    judge,
)
from runners.tools import tool_named

FOLDER = Path(__file__).resolve().parents[1] / "transcripts"

# Of what is there, right whichever part that is; not what the whole output gives. A residual names
# no row: that one lost block of lines brings no other's is asked in test_hpl.py.
OF_WHAT_IS_THERE = ("rtt_mean", "goodput_interval", "hpl_residual")
# Streams, or an interval of them, that would be a whole run where the rest is lost: no reader could
# tell.
SEVERAL_STREAMS = ("3.12-text-parallel", "2.1.8-parallel", "2.0-intervals")


def cases(tool: str = "*") -> list[str]:
    """All recorded outputs `tool/version-case`, of one tool or of all."""
    return sorted(
        str(file.relative_to(FOLDER).with_suffix("")) for file in FOLDER.glob(f"{tool}/*.txt")
    )


def text(case: str) -> str:
    """The recorded output `tool/version-case`, as the tool printed it."""
    return (FOLDER / f"{case}.txt").read_text(encoding="utf-8")


def expected(case: str) -> dict:
    """What the file beside the output expects."""
    return json.loads((FOLDER / f"{case}.json").read_text(encoding="utf-8"))


def judged(tool: str, stdout: str, point: dict) -> Outcome:
    """The campaign's judgement of a trial of `tool` at `point` that printed `stdout` and ended
    well.
    """
    trial = Trial("t1", "point", tool, 1, 1, point)
    execution = Execution(tool, (tool,), stdout, "", 0, 0.0, 1.0)
    transcript = Transcript(trial, "here", "emulated", (execution,), {}, {})
    return judge(transcript, tool_named(tool).parse)


def listed(tool: str, output: str) -> list[dict]:
    """What `falloff import --print` lists of an output: each result's settings with its readings or
    its refusal.
    """
    return [
        {
            **result.settings,
            **({"refused": result.refused, "kind": result.kind} if result.refused else {}),
        }
        | ({"note": result.note} if result.note else {})
        | result.readings
        for result in tool_named(tool).results(output)
    ]


def values(tool: str, output: str, name: str) -> list:
    """The values of a reading in all results of an output."""
    return [result[name] for result in listed(tool, output) if name in result]


def refusals(tool: str, output: str) -> str:
    """Why results of an output are refused, or the output itself; empty when all are read."""
    try:
        return " ".join(result.refused for result in tool_named(tool).results(output))
    except Unreadable as reason:
        return str(reason)


def kinds(tool: str, output: str) -> list[str]:
    """Of which kind each refusal is, of a result in an output or of the output itself, as `falloff
    import` says it.
    """
    try:
        return [result.kind for result in tool_named(tool).results(output) if result.refused]
    except Unreadable as reason:
        return [outputs.refusal(tool, output, reason).kind]


def usable(tool: str, output: str) -> list:
    """The usable results of an output; none when it is refused, and whatever is not FalloffError is
    raised.
    """
    try:
        return [result for result in tool_named(tool).results(output) if result.readings]
    except FalloffError:
        return []


def rows(result) -> list[frozenset]:
    """A result as rows: of lists that belong together one for each place, of single numbers one for
    all.
    """
    found = {name: value for name, value in result.readings.items() if name not in OF_WHAT_IS_THERE}
    lists = {name: value for name, value in found.items() if isinstance(value, list)}
    single = frozenset((name, shown(value)) for name, value in found.items() if name not in lists)
    listed_ = [single] if single else []
    for place in range(max(map(len, lists.values()), default=0)):
        there = {name: shown(value[place]) for name, value in lists.items() if place < len(value)}
        listed_.append(frozenset(there.items()))
    return listed_


def shown(value) -> str:
    """A value to compare: the order of lines may change a computed number's last digits."""
    return f"{value:.9g}" if isinstance(value, float) else repr(value)


def to_print_precision(value):
    """Nested values with their numbers to nine digits: Pythons and processors compute other last
    ones.
    """
    if isinstance(value, dict):
        return {name: to_print_precision(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_print_precision(part) for part in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value
