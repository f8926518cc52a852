"""exchange: messages one way, both ways in step, and both ways out of step, of the same bytes.

On full-duplex links a halo exchange takes as long as its messages of one direction take alone. With
Open MPI over TCP it may take up to twice as long: see docs/method.md.
"""

import re
from statistics import median

from runners.parsing import whole
from runners.records.description_rules import COUNT, POSITIVE, RUNS, one_of
from runners.records.record import Command, Contradictory, Mark, Quantity, Result, Settings, Tool

PATTERNS = ("one_way", "halo", "sendrecv", "roll")

_HEAD = re.compile(
    r"^exchange: (?P<nodes>\d{1,6}) ranks, (?P<rounds>\d{1,4}) rounds, "
    r"(?P<repetitions>\d{1,4}) repetitions$",
    re.M,
)
_TIME = r"\d{1,9}\.\d{9}"
_ROW = re.compile(
    rf"^({'|'.join(PATTERNS)}) (\d{{1,9}}) (\d{{1,9}}) ({_TIME})((?: {_TIME}){{1,1000}})$", re.M
)
_PRINTED_S = 1e-9  # the last digit of a printed time


def commands(point: Settings) -> list[Command]:
    """One MPI program with a rank on each of `nodes` nodes, of one pattern and one size."""
    argv = argv_of(point["rounds"], point["repetitions"], [point["exchange"]], [point["bytes"]])
    return [Command(argv, ranks=point["nodes"], timeout_s=point["timeout_s"])]


def argv_of(
    rounds: int, repetitions: int, patterns: list[str], sizes: list[int]
) -> tuple[str, ...]:
    """The command line for several patterns and sizes [B]."""
    return ("exchange", str(rounds), str(repetitions), ",".join(patterns), *map(str, sizes))


def results(text: str) -> list[Result]:
    """A result for each pattern and size of an output, with its settings.

    exchange_time [s] is over the repetitions (run): the time of one over the messages that a rank
    sends in it, so that all patterns would take the same on full-duplex links. exchange_median [s]
    is their median. Raises Unreadable if the output is incomplete or contradicts itself.
    """
    settings = whole("exchange", text, _HEAD)
    found = []
    for pattern, size, messages, printed, listed in _ROW.findall(text):
        times = [float(time) for time in listed.split()]
        if len(times) != settings["repetitions"]:
            raise Contradictory(
                f"{pattern} of {size} bytes has {len(times)} of "
                f"{settings['repetitions']} repetitions"
            )
        if not int(messages) or min(times) <= 0:
            raise Contradictory(f"{pattern} of {size} bytes took no time, or sent no message")
        if abs(median(times) - float(printed)) > _PRINTED_S:
            raise Contradictory(f"{pattern} of {size} bytes: {printed} s is not the median")
        each = [time / int(messages) for time in times]
        readings = {"exchange_time": each, "exchange_median": median(each)}
        found.append(Result(readings, {**settings, "exchange": pattern, "bytes": int(size)}))
    if not found:
        raise Contradictory("exchange reports no pattern")
    return found


TOOL = Tool(
    "exchange",
    commands,
    results,
    settings={
        "nodes": COUNT,
        "exchange": one_of(PATTERNS),
        "bytes": COUNT,
        "rounds": COUNT,
        "repetitions": RUNS,
        "timeout_s": POSITIVE,
    },
    readings={
        "exchange_time": Quantity(
            "time of an exchange over the messages that a node sends in it",
            "s",
            dims=("trial", "run"),
        ),
        "exchange_median": Quantity(
            "median time of an exchange over the messages that a node sends in it", "s"
        ),
    },
    factors={
        "exchange": Quantity("pattern in which nodes exchange messages"),
        "bytes": Quantity("size of an exchanged message", "B"),
    },
    marks=(Mark(r"^exchange: \d+ ranks, ", "times of exchanges"),),
    packages=("openmpi-bin", "libopenmpi-dev"),
)
