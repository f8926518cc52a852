"""replay: a recorded MPI program, replayed by SimGrid on a described network."""

import re
from typing import List

from runners import recording
from runners.description_rules import COUNT, NAME, POSITIVE
from runners.parsing import parser
from runners.record import (
    Command,
    Contradictory,
    Failed,
    Foreign,
    Quantity,
    Reading,
    Result,
    Settings,
    Tool,
)

# SMPI's trace replay prints this once, when the last rank has ended.
_END = re.compile(r"Simulation time (\d{1,9}\.\d{6})$", re.M)

# Half a unit of the last printed digit is 1e-4 of it.
_SHORTEST_S = 5e-3


def commands(point: Settings) -> List[Command]:
    """One replay on the point's number of nodes; raises FalloffError if there is no recording and
    none can be extrapolated."""
    recorded = recording.of(point["program"], point["nodes"])
    argv = ("replay", point["program"])
    files = recording.traces(recorded)
    return [Command(argv, ranks=point["nodes"], files=files, timeout_s=point["timeout_s"])]


def results(text: str) -> List[Result]:
    """The replay in an output: replay_time [s]."""
    times = _END.findall(text)
    if len(times) != 1:
        ended = f"the replay ended {len(times)} times, once was expected"
        raise (Contradictory if times else Foreign)(ended)
    if float(times[0]) < _SHORTEST_S:
        raise Failed(
            f"the program takes {times[0]} s, too short for a clock of a microsecond: record more steps of it"
        )
    return [Result((Reading("replay_time", float(times[0]), "s"),))]


parse = parser("replay", results)
SETTINGS = {
    "nodes": COUNT,
    "program": NAME,
    "recording": NAME,  # its checksum, because another recording means other trials
    "timeout_s": POSITIVE,
}

READINGS = {
    "replay_time": Quantity("time that the recorded program takes in the replay", "s"),
}
FACTORS = {
    "program": Quantity("recorded program"),
}

TOOL = Tool(
    "replay",
    commands,
    parse,
    results,
    SETTINGS,
    readings=READINGS,
    factors=FACTORS,
    packages=("libsimgrid-dev",),
)
