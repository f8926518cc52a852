"""Recorded outputs of real tools as transcripts, for the tests of their parsers."""

import importlib
import json
from pathlib import Path

from runners.record import Execution, Outcome, Transcript, Trial, judge

FOLDER = Path(__file__).resolve().parent / "transcripts"


def text(case: str) -> str:
    """The recorded output `tool/version-case`, as the tool printed it."""
    return (FOLDER / f"{case}.txt").read_text(encoding="utf-8")


def expected(case: str) -> dict:
    """What the file beside the output expects: its point, and its readings or its refusal."""
    return json.loads((FOLDER / f"{case}.json").read_text(encoding="utf-8"))


def judged(tool: str, stdout: str, point: dict) -> Outcome:
    """The campaign's judgement of a trial of `tool` at `point` that printed `stdout` and ended well."""
    trial = Trial("t1", "point", tool, 1, 1, point)
    execution = Execution(tool, (tool,), stdout, "", 0, 0.0, 1.0)
    transcript = Transcript(trial, "here", "emulated", (execution,), {}, {})
    return judge(transcript, importlib.import_module(f"runners.{tool}").RUNNER.parse)
