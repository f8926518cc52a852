"""Recorded outputs of real tools as transcripts, for the tests of their parsers.

Beside each output lies what is expected of it: `point` and `readings`, or `status` and `reason`, when it
comes from a campaign's own trial; `results`, or `no_result` with the reason, when its origin is unknown.
`origin` and `kept` say where an output was found and how much of it is here; without them it is this
project's own.
"""

import importlib
import json
from pathlib import Path

from runners.record import Execution, Outcome, Transcript, Trial, judge

FOLDER = Path(__file__).resolve().parent / "transcripts"


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
    """The campaign's judgement of a trial of `tool` at `point` that printed `stdout` and ended well."""
    trial = Trial("t1", "point", tool, 1, 1, point)
    execution = Execution(tool, (tool,), stdout, "", 0, 0.0, 1.0)
    transcript = Transcript(trial, "here", "emulated", (execution,), {}, {})
    return judge(transcript, importlib.import_module(f"runners.{tool}").RUNNER.parse)


def listed(tool: str, output: str) -> list[dict]:
    """What `falloff import --print` lists of an output: each result's settings with its readings or its refusal."""
    found = importlib.import_module(f"runners.{tool}").RUNNER.results(output)
    return [
        {**result.settings, **({"refused": result.refused} if result.refused else {})}
        | ({"note": result.note} if result.note else {})
        | {reading.name: reading.value for reading in result.readings}
        for result in found
    ]
