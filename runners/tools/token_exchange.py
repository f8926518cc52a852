"""token: producers whose consumers return each token, several pairs of nodes at once, counted over
one window.

Not named `token`, as the program is: so is a module of Python's that many others import.
"""

import re
from dataclasses import dataclass
from itertools import product

from runners.parsing import whole
from runners.records.description_rules import (
    COUNT,
    NODES,
    NOT_NEGATIVE,
    POSITIVE,
    RUNS,
    YES_OR_NO,
    one_of,
)
from runners.records.record import (
    Command,
    Contradictory,
    FalloffError,
    InvalidRun,
    Mark,
    Quantity,
    Result,
    Settings,
    Tool,
)

PORT = 5310

# Starting everybody, and the last exchange of each run: tokens of 4 MB from seven pairs on one wire
# of 10 Mbit/s take most of a minute to return.
_MARGIN_S = 60.0

# Of the distribution of round trips: the shares of them that took no longer.
LEVELS = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)

# Less than this share of their windows in common and the pairs' throughputs must not be added.
_LEAST_IN_COMMON = 0.9

_TIME = r"\d{1,12}\.\d{6}"
_HEAD = re.compile(
    rf"^token: (?P<pairs>\d{{1,6}}) pairs, (?P<token_bytes>\d{{1,12}}) bytes, "
    rf"(?P<runs>\d{{1,6}}) runs, warm-up (?P<warm_up_s>{_TIME}) s, "
    rf"window (?P<window_s>{_TIME}) s, by (?P<transport>TCP|MPI)$",
    re.M,
)
_ROW = re.compile(
    rf"^ *(\d{{1,6}}) +(\d{{1,12}}) +(\d{{1,6}}) +({_TIME}) +(\d{{1,12}}) +({_TIME})"
    rf"((?: +(?:\d{{1,12}}\.\d{{3}}|-?nan)){{{len(LEVELS)}}}) +({_TIME}|-?nan)$",
    re.M,
)


def ends(point: Settings) -> list[tuple[int, int]]:
    """The nodes (producer, consumer) of the first `pairs` pairs that `producers` and `consumers`
    list.

    Both are numbers of nodes, with commas between them. Raises FalloffError when they are fewer
    than `pairs`, or a node is in two pairs.
    """
    listed = (str(point[key]).split(",") for key in ("producers", "consumers"))
    try:
        producers, consumers = (list(map(int, nodes)) for nodes in listed)
    except ValueError:
        raise FalloffError("`producers` and `consumers` have to be nodes like 1,2,3") from None
    pairs = list(zip(producers, consumers))[: point["pairs"]]
    if not 1 <= point["pairs"] == len(pairs):
        raise FalloffError(
            f"{point['pairs']} pairs asked for, `producers` and `consumers` list {len(pairs)}"
        )
    used = [node for pair in pairs for node in pair]
    if len(set(used)) < len(used):
        raise FalloffError("a node is in two pairs: correct `producers` or `consumers`")
    return pairs


def commands(point: Settings) -> list[Command]:
    """All consumers and producers as servers, then the coordinator, beside the first producer, who
    prints all rows.

    With `transport` "mpi" it is one MPI program on the nodes up to the last one needed; "tcp" where
    it is absent. With `real_time` the ends of the pairs run before all ordinary work of their
    nodes, which root may ask for.
    """
    pairs = ends(point)
    settings = [str(point[key]) for key in ("token_bytes", "runs", "warm_up_s", "window_s")]
    limit = point["runs"] * (point["warm_up_s"] + point["window_s"] + _MARGIN_S)
    transport, real_time = point.get("transport", "tcp"), point.get("real_time")
    if transport not in ("tcp", "mpi"):
        raise FalloffError(f"tokens travel by tcp or mpi, not {transport!r}: correct `transport`")
    if transport == "mpi" and real_time:
        raise FalloffError(
            "processes of MPI wait by computing and would keep all else from running: "
            "leave `real_time` out"
        )
    if transport == "mpi":
        ranks = [f"{producer - 1},{consumer - 1}" for producer, consumer in pairs]
        argv = ("token_mpi", *settings, *ranks)
        return [Command(argv, ranks=max(map(max, pairs)), timeout_s=limit)]
    producers, consumers = zip(*pairs)
    servers = []
    for role, nodes in (("consume", consumers), ("produce", producers)):
        serve = ("token", role, str(PORT), *(["real-time"] if real_time else []))
        servers += [
            Command(serve, node=node, timeout_s=limit, background=True, listens=PORT)
            for node in nodes
        ]
    addresses = [
        f"{{node{producer}}}:{PORT},{{node{consumer}}}:{PORT}" for producer, consumer in pairs
    ]
    coordinator = ("token", "coordinate", *settings, *addresses)
    return [*servers, Command(coordinator, node=pairs[0][0], timeout_s=limit)]


@dataclass(frozen=True)
class Row:
    """A pair's window in a run: when it began [s since the epoch, by the producer's clock], the
    exchanges whose reply came within it, their round trips [s] at LEVELS, and their mean [s]."""

    run: int
    begin: float
    exchanges: int
    round_trips: tuple[float, ...]
    mean: float


def results(text: str) -> list[Result]:
    """The one table of an output, with its settings; readings are lists of pairs of lists of runs.

    token_throughput [B/s] counts what the producer wrote, tokens times their size over the window;
    both ends together wrote exactly twice that. token_exchanges is their number; token_round_trip
    [s] has for each run the round trips at LEVELS. Raises Unreadable when the table is not whole,
    InvalidRun when a pair completed no exchange or the pairs' windows were not the same time.
    """
    settings, rows = table(text)
    by_pair = [rows[pair :: settings["pairs"]] for pair in range(settings["pairs"])]
    scale = settings["token_bytes"] / settings["window_s"]
    readings = {
        "token_throughput": [[row.exchanges * scale for row in of_pair] for of_pair in by_pair],
        "token_round_trip": [[list(row.round_trips) for row in of_pair] for of_pair in by_pair],
        "token_exchanges": [[row.exchanges for row in of_pair] for of_pair in by_pair],
    }
    return [Result(readings, settings)]


def table(text: str) -> tuple[Settings, list[Row]]:
    """The settings of an output by their names in a point, and its rows in the order of runs, then
    pairs; raises as `results` does."""
    settings, matches = whole("token", text, _HEAD), list(_ROW.finditer(text))
    pairs, runs, window = settings["pairs"], settings["runs"], settings["window_s"]
    listed = [(int(row[3]), int(row[1])) for row in matches]
    if (
        not matches
        or not window
        or listed != list(product(range(1, runs + 1), range(1, pairs + 1)))
    ):
        raise Contradictory(f"token reports {len(matches)} rows, not {pairs} pairs in {runs} runs")
    rows = []
    for match in matches:
        pair, run, exchanges = int(match[1]), int(match[3]), int(match[5])
        if not exchanges:
            raise InvalidRun(
                f"pair {pair} in run {run} completed no exchange in its window: raise `window_s`"
            )
        levels = tuple(float(level) / 1e6 for level in match[7].split())
        rows.append(Row(run, float(match[4]), exchanges, levels, float(match[8]) / 1e6))
    for first in range(0, len(rows), pairs):
        begins = [row.begin for row in rows[first : first + pairs]]
        common = window - (max(begins) - min(begins))
        # Clocks and schedulers are off.
        if common < _LEAST_IN_COMMON * window:
            shared = f"{max(common, 0.0):.3f} of {window:g} s in common"
            raise InvalidRun(
                f"the pairs' windows in run {rows[first].run} had {shared}: "
                "do the nodes' clocks agree?"
            )
    return {**settings, "transport": settings["transport"].lower()}, rows


TOOL = Tool(
    "token_exchange",
    commands,
    results,
    settings={
        **dict.fromkeys(("producers", "consumers"), NODES),
        "pairs": COUNT,
        "token_bytes": COUNT,
        "transport": one_of(["tcp", "mpi"]),
        "real_time": YES_OR_NO,
        "runs": RUNS,
        "warm_up_s": NOT_NEGATIVE,
        "window_s": POSITIVE,
    },
    readings={
        "token_throughput": Quantity(
            "tokens that the producer wrote, by their size over the window",
            "B/s",
            dims=("trial", "pair", "run"),
        ),
        "token_exchanges": Quantity(
            "tokens that came back within the window", "1", dims=("trial", "pair", "run")
        ),
        "token_round_trip": Quantity(
            "round trip of a token", "s", dims=("trial", "pair", "run", "quantile")
        ),
    },
    factors={
        "pairs": Quantity("pairs of nodes that exchange tokens", "1"),
        "token_bytes": Quantity("size of a token", "B"),
        "transport": Quantity("what tokens travel by (none given: tcp)"),
    },
    marks=(Mark(r"^token: \d+ pairs, ", "a table of token exchanges"),),
    packages=("openmpi-bin", "libopenmpi-dev"),
)
