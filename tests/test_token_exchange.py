"""Token exchange as a runner: who is started where, what is read from the table, and what is
refused.
"""

import pytest
import recorded

from runners.records.record import FalloffError
from runners.tools import token_exchange
from runners.tools.token_exchange import table

POINT = {
    "pairs": 2,
    "producers": "1,2,3",
    "consumers": "8,9,10",
    "token_bytes": 8192,
    "runs": 2,
    "warm_up_s": 0.1,
    "window_s": 0.2,
}
TCP = recorded.text("token_exchange/1-tcp")


def test_ends_listen_before_the_coordinator_calls():
    """Consumers and producers of the pairs asked for, on their nodes; last the coordinator, beside
    a producer.
    """
    *servers, coordinator = token_exchange.commands(POINT)
    assert [(server.argv[1], server.node) for server in servers] == [
        ("consume", 8), ("consume", 9), ("produce", 1), ("produce", 2),
    ]  # fmt: skip
    assert all(server.background and str(server.listens) == server.argv[2] for server in servers)
    assert coordinator.node == 1 and not coordinator.background
    assert coordinator.argv[:6] == ("token", "coordinate", "8192", "2", "0.1", "0.2")
    assert coordinator.argv[6:] == ("{node1}:5310,{node8}:5310", "{node2}:5310,{node9}:5310")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"pairs": 4}, "4 pairs asked for, .* list 3"),
        ({"pairs": 0}, "0 pairs asked for"),
        ({"consumers": "8,1"}, "a node is in two pairs"),
        ({"producers": "1;2"}, "nodes like 1,2,3"),
        ({"transport": "pigeon"}, "not 'pigeon'"),
        ({"transport": "mpi", "real_time": True}, "leave `real_time` out"),
    ],
)
def test_pairs_that_cannot_be_are_refused(other, said):
    """Before anything is started, with the setting to correct."""
    with pytest.raises(FalloffError, match=said):
        token_exchange.commands({**POINT, **other})


def test_what_is_printed_is_what_is_read():
    """Each pair's rows in the order of its runs, in seconds."""
    _, rows = table(TCP)
    first, second = rows[::2], rows[1::2]
    assert [row.exchanges for row in first] == [13296, 13277]
    assert [row.exchanges for row in second] == [13163, 13385]
    assert first[0].round_trips[0] == pytest.approx(14.211e-6)
    assert second[0].round_trips[-1] == pytest.approx(2843.583e-6)
    assert second[1].mean == pytest.approx(14.942245e-6)
