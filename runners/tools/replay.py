"""replay: a recorded MPI program, replayed by SimGrid on a described network."""

import re
from functools import lru_cache

from runners.parsing import COMPUTED, computed
from runners.recording import recorder, replay_actions
from runners.recording.recorded_bytes import MOST_OFF
from runners.records.description_rules import COUNT, NAME, POSITIVE
from runners.records.record import (
    Command,
    Contradictory,
    Failed,
    Foreign,
    InvalidRun,
    Quantity,
    Result,
    Settings,
    Tool,
)

# Printed once, when the last rank has ended; the older replay by SMPI itself printed six decimals
# and no ranks.
_END = re.compile(r"Simulation time (\d{1,9}\.\d{6,9})$", re.M)
_RANK = re.compile(
    r"^replay: rank (\d+) computed (\d+\.\d+) ended \d+\.\d+ "
    r"messages (\d+) of (\d+) collectives (\d+) of (\d+)$",
    re.M,
)
# Half a unit of the last printed digit is 1e-4 of it.
_SHORTEST_S = 5e-3


def commands(point: Settings) -> list[Command]:
    """One replay on the point's number of nodes; raises FalloffError if there is no recording and
    none can be extrapolated.

    Ranks compute `computing` times as long as was recorded (1).
    """
    program, nodes = point["program"], point["nodes"]
    files = _files(program, nodes, recorder.digest(program))
    argv = ("replay", program, repr(float(point.get("computing", 1.0))))
    return [Command(argv, ranks=nodes, files=files, timeout_s=point["timeout_s"])]


@lru_cache(maxsize=32)  # the trials of a campaign come in random order
def _files(program: str, nodes: int, _: str) -> dict[str, str]:
    return replay_actions.files(recorder.of(program, nodes))


def results(text: str) -> list[Result]:
    """The replay in an output: replay_time, and of its ranks computing_mean and computing_most [s].

    Raises InvalidRun if the replay sent other bytes than the recording has, by more than 1 %.
    """
    times = _END.findall(text)
    if len(times) != 1:
        ended = f"the replay ended {len(times)} times, once was expected"
        raise (Contradictory if times else Foreign)(ended)
    if float(times[0]) < _SHORTEST_S:
        raise Failed(
            f"the program takes {times[0]} s, too short to be replayed: record more steps of it"
        )
    ranks = [tuple(map(float, row)) for row in _RANK.findall(text)]
    for rank, _, *counts in ranks:
        for way, ours, theirs in zip(("messages", "collectives"), counts[::2], counts[1::2]):
            if abs(ours - theirs) > MOST_OFF * max(ours, theirs):
                raise InvalidRun(
                    f"the replay sent {ours:.0f} B of rank {rank:.0f} in {way}, "
                    f"and the recording has {theirs:.0f} B"
                )
    computing = computed([row[1] for row in ranks]) if ranks else {}
    return [Result({"replay_time": float(times[0]), **computing})]


TOOL = Tool(
    "replay",
    commands,
    results,
    settings={
        "nodes": COUNT,
        "program": NAME,
        "recording": NAME,  # its checksum, because another recording means other trials
        "computing": POSITIVE,
        "timeout_s": POSITIVE,
    },
    readings={
        "replay_time": Quantity("time that the recorded program takes in the replay", "s"),
        **COMPUTED,
    },
    factors={
        "program": Quantity("program"),
    },
    packages=("libsimgrid-dev",),
)
