"""What messages take on an emulated network as it is set up for a trial: tokens that ranks exchange before its program runs.

A program's trial is refused where long messages do not get what the link carries: its buffers were too small then, and
not the link but they would be measured.
"""

from statistics import mean
from typing import Dict, List

from runners.record import Command, FalloffError
from runners.testbeds import nodes
from runners.testbeds.network import Network
from runners.testbeds.programs import Ran

KEPT = "kept"
SHORT, LONG = 4, 262144  # B: a pivot of HPL's, and a large share of rows
# Of the payload that a link carries: a hundredth is a long message's own latency.
_LEAST_SHARE = 0.95
_OF_FRAME = 1448 / 1538  # TCP payload of a frame on the wire
_WARM_UP_S, _SHORTEST_S, _EXCHANGES, _LIMIT_S = 0.1, 0.2, 4, 60
_MEDIAN_COLUMN = 10  # of the rows that the tokens' program prints, in microseconds


def probe(net: Network, around: nodes.Surroundings, ranks: int) -> Dict[str, float]:
    """Exchange short and long messages between nodes 1 and 2, and between 3 and 4 where these have ranks, too.

    Returns `short_message_time` [s], one way, the mean of the pairs' medians, and where the link has a rate `link_share` [1]: the
    rate of the long messages, by the same mean, over the payload that the link carries. Raises FalloffError when the tokens fail.
    """
    rate = net.table.get("rate_bit_s")
    found = {"short_message_time": _round_trip(net, around, ranks, SHORT, _SHORTEST_S) / 2}
    if rate:
        payload = rate * _OF_FRAME / 8
        window_s = max(_SHORTEST_S, _EXCHANGES * 2 * LONG / payload)
        found["link_share"] = 2 * LONG / _round_trip(net, around, ranks, LONG, window_s) / payload
    return found


def verdict(found: Dict[str, float]) -> str:
    """KEPT, or in a sentence how much of its rate the link gives to long messages."""
    share = found.get("link_share", 1.0)
    if share >= _LEAST_SHARE:
        return KEPT
    return f"window-bound: long messages get {100 * share:.0f} % of what the link carries"


def _round_trip(
    net: Network, around: nodes.Surroundings, ranks: int, size: int, window_s: float
) -> float:
    """The mean of the pairs' median round trips [s]."""
    pairs = ("0,1", "2,3") if ranks >= 4 else ("0,1",)
    argv = ("token_mpi", str(size), "1", str(_WARM_UP_S), repr(window_s), *pairs)
    command = Command(argv, ranks=2 * len(pairs), timeout_s=_LIMIT_S + window_s)
    ran: List[Ran] = []
    nodes.execute([command], net, around, ran)
    execution = ran[-1].execution
    rows = [line.split() for line in execution.stdout.splitlines()]
    medians = [float(row[_MEDIAN_COLUMN]) for row in rows if row and row[0].isdigit()]
    if execution.exit_code or len(medians) != len(pairs):
        complaint = (execution.stderr.strip().splitlines() or ["no reason"])[-1]
        raise FalloffError(f"the tokens before the program ended with {complaint}")
    return 1e-6 * mean(medians)
