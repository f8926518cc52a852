"""program: any MPI program, unchanged, on nodes in slow motion (runners/src/pace_program.c)."""

import math
import shlex
from typing import Optional

from runners import executables, pace
from runners.parsing import COMPUTED, computed
from runners.records.description_rules import COUNT, NAME, POSITIVE
from runners.records.record import (
    Command,
    Cut,
    Description,
    FalloffError,
    Foreign,
    Quantity,
    Readings,
    Result,
    Settings,
    Tool,
    Transcript,
)

DATA = executables.CHECKOUT / "data"


def commands(point: Settings) -> list[Command]:
    """The program on the point's number of nodes, one rank on each.

    `command` is its command line, split as a shell would. It runs in `folder`, or in a folder of
    its own into which the text files of `inputs`, a folder of data/, are copied. Raises
    FalloffError if the command line is empty or cannot be split, or there is no such folder.
    """
    try:
        argv = shlex.split(point["command"])
    except ValueError as reason:
        raise FalloffError(f"command = {point['command']!r}: {reason}") from None
    if not argv:
        raise FalloffError("command = '' names no program")
    if "folder" in point:
        argv = ["env", "-C", point["folder"], *argv]
    files = _inputs(point["inputs"]) if "inputs" in point else {}
    ranks = point.get("ranks_per_node", 1)
    return [
        Command(
            tuple(argv), point["nodes"] * ranks, ranks, files=files, timeout_s=point["timeout_s"]
        )
    ]


def _inputs(name: str) -> dict[str, str]:
    folder = DATA / name
    if not folder.is_dir() or DATA not in folder.resolve().parents:
        raise FalloffError(f"inputs = {name!r} is no folder of data/")
    texts = {}
    for file in sorted(path for path in folder.iterdir() if path.is_file()):
        try:
            texts[file.name] = file.read_text("utf-8")
        except UnicodeDecodeError:
            raise FalloffError(
                f"inputs = {name!r}: {file.name} is no text; "
                "name a program or its data by its path in `command`"
            ) from None
    return texts


def parse(transcript: Transcript) -> Readings:
    """program_time [s], as it would be at full speed: what the slowest rank took from MPI_Init to
    MPI_Finalize over the stretch of time; computing_mean and computing_most [s], processor time."""
    execution = transcript.executions[-1]
    ranks = pace.reports(execution.stderr)
    whole = [rank for rank in ranks.values() if {"elapsed", "stretch", "computed"} <= rank.keys()]
    if not whole or len(whole) < len(ranks):
        raise Cut("a rank did not say how long it took: it ended before MPI_Finalize")
    times = [rank["elapsed"] / rank["stretch"] for rank in whole]
    if not all(map(math.isfinite, times)) or max(times) <= 0:
        raise Cut("no rank came to MPI_Finalize")
    return {"program_time": max(times), **computed([rank["computed"] for rank in whole])}


def results(text: str) -> list[Result]:
    """A program's own output has no time that means anything here."""
    raise Foreign("a program's output, whose time its ranks say on standard error")


def seconds(point: Settings, testbed: Description) -> Optional[float]:
    """How long a run takes, if `computing_s` says what a rank computes on one node [s]."""
    slower = testbed.get("node", {}).get("dilation")
    return point["computing_s"] * slower if slower and "computing_s" in point else None


TOOL = Tool(
    "program",
    commands,
    results,
    settings={
        "nodes": COUNT,
        "ranks_per_node": COUNT,
        "program": NAME,
        "command": NAME,
        "folder": NAME,
        "digest": NAME,  # of the program and its files
        "inputs": NAME,
        "computing_s": POSITIVE,
        "timeout_s": POSITIVE,
    },
    readings={
        "program_time": Quantity("time that the program takes, at full speed", "s"),
        **COMPUTED,
    },
    factors={
        "program": Quantity("program"),
    },
    packages=("openmpi-bin",),
    seconds=seconds,
    parse_trial=parse,
)
