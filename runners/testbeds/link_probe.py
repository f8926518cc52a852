"""Message times on an emulated network as set up for a trial: ranks exchange tokens before the
trial's program runs.

A trial is refused if long messages do not get the rate of the link. Its buffers were then too
small, and it would measure them instead of the link.
"""

from dataclasses import replace
from statistics import mean, median

from runners.records.record import Command, FalloffError
from runners.testbeds import nodes
from runners.testbeds.network import Network
from runners.testbeds.programs import ExecutedCommand

KEPT = "kept"
SHORT, LONG = 4, 262144  # B: a pivot of HPL, and a large share of rows
# Share of the payload that a link carries: a long message's own latency takes one hundredth. Delay
# lines are programs, whose frames wait for a processor.
_LEAST_SHARE, _LEAST_SHARE_OF_LINES = 0.95, 0.90
_USUAL_SHARE = 1.03  # the most that links of a set rate were measured at
_MOST_SHARE = 1.10  # beyond this the rate is not in force
_OF_FRAME = 1448 / 1538  # TCP payload of a frame on the wire
_WARM_UP_S, _SHORTEST_S, _EXCHANGES, _LIMIT_S = 0.1, 0.2, 8, 60
# of long messages: other work on the machine can slow them, or stop a clock between two readings,
# for a moment
_TRIES = 3
_MEDIAN_COLUMN = 10  # in the rows that the token program prints, in microseconds


def probe(net: Network, around: nodes.Surroundings, ranks: int) -> dict[str, float]:
    """Exchange short and long messages between nodes 1 and 2, and also between 3 and 4 if these
    have ranks.

    Returns `short_message_time` [s], one way, the mean of the pairs' medians. If the link has a
    rate, it also returns `link_share` [1]: the rate of the long messages, by the same mean, over
    the payload that the link carries, the first try's if it is usual, else the median of a few; a
    delay of the network's own counts as latency. Raises FalloffError if the tokens fail.
    """
    rate = net.table.get("rate_bit_s")
    counters = {"short_message_time": short(net, around, ranks)}
    if rate:
        payload = rate * _OF_FRAME / 8
        window_s = max(_SHORTEST_S, _EXCHANGES * 2 * LONG / payload)
        # A network with a latency, which is no part of the rate, has programs that carry frames.
        latency = counters["short_message_time"] if net.graph.has_taps else 0.0
        shares: list[float] = []
        for _ in range(_TRIES):
            round_trip = _round_trip(net, around, ranks, LONG, window_s) - 2 * latency
            shares.append(2 * LONG / round_trip / payload)
            counters["link_share"] = median(shares)
            is_usual = len(shares) == 1 and shares[0] <= _USUAL_SHARE
            if is_usual and verdict(counters, net.graph.has_taps) == KEPT:
                break
    return counters


def short(net: Network, around: nodes.Surroundings, ranks: int) -> float:
    """The time of a short message, one way [s], as `probe` measures it."""
    return _round_trip(net, around, ranks, SHORT, _SHORTEST_S) / 2


def verdict(counters: dict[str, float], has_lines: bool = False) -> str:
    """KEPT, or a sentence with the share of its rate that the link, or its delay line, gives to
    long messages."""
    share = counters.get("link_share", 1.0)
    if (_LEAST_SHARE_OF_LINES if has_lines else _LEAST_SHARE) <= share <= _MOST_SHARE:
        return KEPT
    fault = "faster than set" if share > _MOST_SHARE else "window-bound"
    return f"{fault}: long messages get {100 * share:.0f} % of what the link carries"


def _round_trip(
    net: Network, around: nodes.Surroundings, ranks: int, size: int, window_s: float
) -> float:
    """The mean of the pairs' median round trips [s]."""
    pairs = ("0,1", "2,3") if ranks >= 4 else ("0,1",)
    argv = ("token_mpi", str(size), "1", str(_WARM_UP_S), repr(window_s), *pairs)
    command = Command(argv, ranks=2 * len(pairs), timeout_s=_LIMIT_S + window_s)
    ran: list[ExecutedCommand] = []
    if "PACE_STRETCH" in around.pacing:  # what a rank computes for a token is no message's time
        around = replace(around, pacing={**around.pacing, "PACE_STRETCH": "1"})
    nodes.execute([command], net, around, ran)
    execution = ran[-1].execution
    rows = [line.split() for line in execution.stdout.splitlines()]
    medians = [float(row[_MEDIAN_COLUMN]) for row in rows if row and row[0].isdigit()]
    if execution.exit_code or len(medians) != len(pairs):
        complaint = (execution.stderr.strip().splitlines() or ["no reason"])[-1]
        raise FalloffError(f"the tokens before the program ended with {complaint}")
    return 1e-6 * mean(medians)
