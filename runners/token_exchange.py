"""token: producers whose consumers return each token, several pairs of nodes at once, counted over one window.

Not named `token`, as the program is: so is a module of Python's that many others import.
"""

from typing import List, Tuple

from runners import token_output
from runners.record import Command, FalloffError, Reading, Result, Runner, Settings, Transcript, readings_as_asked

PORT = 5310

# Starting everybody, and the last exchange of each run: tokens of 4 MB from seven pairs on one wire of 10 Mbit/s
# take most of a minute to return.
_MARGIN_S = 60.0


def ends(point: Settings) -> List[Tuple[int, int]]:
    """The nodes (producer, consumer) of the first `pairs` pairs that `producers` and `consumers` list.

    Both are numbers of nodes, with commas between them. Raises FalloffError when they are fewer than `pairs`, or a
    node is in two pairs.
    """
    try:
        producers, consumers = (list(map(int, str(point[key]).split(","))) for key in ("producers", "consumers"))
    except ValueError:
        raise FalloffError("`producers` and `consumers` are not numbers of nodes with commas between them") from None
    found = list(zip(producers, consumers))[: point["pairs"]]
    if not 1 <= point["pairs"] == len(found):
        raise FalloffError(f"{point['pairs']} pairs are asked for, `producers` and `consumers` list {len(found)}")
    used = [node for pair in found for node in pair]
    if len(set(used)) < len(used):
        raise FalloffError("a node is in two pairs: correct `producers` or `consumers`")
    return found


def commands(point: Settings) -> List[Command]:
    """All consumers and producers as servers, then the coordinator, beside the first producer, who prints all rows.

    With `transport` "mpi" it is one MPI program on the nodes up to the last one needed; "tcp" where it is absent.
    With `real_time` the ends of the pairs run before all ordinary work of their nodes, which root may ask for.
    Raises FalloffError as `ends` does, and for another transport, or one that cannot run in real time.
    """
    pairs = ends(point)
    settings = [str(point[key]) for key in ("token_bytes", "runs", "warm_up_s", "window_s")]
    limit = point["runs"] * (point["warm_up_s"] + point["window_s"] + _MARGIN_S)
    transport = point.get("transport", "tcp")
    real_time = ["real-time"] if point.get("real_time") else []
    if transport == "mpi" and real_time:
        raise FalloffError("processes of MPI wait by computing and would keep all else from running: leave `real_time` out")
    if transport == "mpi":
        ranks = [f"{producer - 1},{consumer - 1}" for producer, consumer in pairs]
        return [Command(("token_mpi", *settings, *ranks), ranks=max(map(max, pairs)), timeout_s=limit)]
    if transport != "tcp":
        raise FalloffError(f"tokens travel by tcp or mpi, not {transport!r}: correct `transport`")
    servers = [
        Command(("token", role, str(PORT), *real_time), node=pair[end], timeout_s=limit, background=True, listens=PORT)
        for end, role in ((1, "consume"), (0, "produce"))
        for pair in pairs
    ]
    addresses = [f"{{node{producer}}}:{PORT},{{node{consumer}}}:{PORT}" for producer, consumer in pairs]
    coordinator = ("token", "coordinate", *settings, *addresses)
    return [*servers, Command(coordinator, node=pairs[0][0], timeout_s=limit)]


def parse(transcript: Transcript) -> List[Reading]:
    """The readings of the table; raises InvalidRun when something else ran than the point asks for, otherwise as
    `results` does."""
    (result,) = results(transcript.executions[-1].stdout)
    return readings_as_asked("token", result, transcript.trial.point)


def results(text: str) -> List[Result]:
    """The one table of an output, with its settings; all readings are lists of pairs with lists of runs in them.

    token_throughput [B/s] counts what the producer wrote, tokens times their size over the window; what both ends
    wrote is exactly twice that. token_exchanges is their number; token_round_trip [s] has for each run the round
    trips at `token_output.LEVELS`. Raises Unreadable and InvalidRun as `token_output.table` does.
    """
    found = token_output.table(text)
    by_pair = found.by_pair()
    scale = found.settings["token_bytes"] / found.settings["window_s"]
    readings = (
        Reading("token_throughput", [[row.exchanges * scale for row in rows] for rows in by_pair], "B/s"),
        Reading("token_round_trip", [[list(row.round_trips) for row in rows] for rows in by_pair], "s"),
        Reading("token_exchanges", [[row.exchanges for row in rows] for rows in by_pair], "1"),
    )
    return [Result(readings, found.settings)]


RUNNER = Runner("token_exchange", commands, parse, results)
