"""Token exchange as a runner: who is started where, what is read from the table, and what is refused."""

import pytest
import recorded
from hypothesis import given
from hypothesis import strategies as st

from runners import token_exchange
from runners.record import FalloffError, InvalidRun, Unreadable
from runners.token_exchange import LEVELS, table

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
    """Consumers and producers of the pairs asked for, on their nodes; last the coordinator, beside a producer."""
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


def printed(rows, size=8192, window=0.2, pairs=2, runs=2, end="end of token\n"):
    """A table as token prints it, of rows (pair, run, begin, exchanges, levels [us], mean [us])."""
    lines = [
        f"token: {pairs} pairs, {size} bytes, {runs} runs, warm-up 0.100000 s, window {window:.6f} s, by TCP\n"
    ]
    for pair, run, begin, exchanges, levels, mean in rows:
        cells = " ".join(f"{level:11.3f}" for level in levels)
        lines.append(
            f"{pair:4} {size:8} {run:4} {begin:17.6f} {exchanges:9} {window:9.6f} {cells} {mean:14.6f}\n"
        )
    return "".join([*lines, end])


EVEN = (100.0,) * len(LEVELS)
SOUND = [(pair, run, 1.7e9 + run, 2000, EVEN, 100.0) for run in (1, 2) for pair in (1, 2)]


def changed(row, **cells):
    """Sound rows but for some cells of one row."""
    names = ("pair", "run", "begin", "exchanges", "levels", "mean")
    rows = list(SOUND)
    rows[row] = tuple({**dict(zip(names, rows[row])), **cells}.values())
    return rows


@pytest.mark.parametrize(
    ("output", "reason", "said"),
    [
        ("", Unreadable, "cut off"),
        (printed(SOUND, end=""), Unreadable, "cut off"),
        (printed(SOUND[:-1]), Unreadable, "3 rows, not 2 pairs in 2 runs"),
        (printed([*SOUND, SOUND[-1]]), Unreadable, "5 rows"),
        (printed(SOUND[::-1]), Unreadable, "4 rows"),
        (printed([], pairs=0), Unreadable, "0 rows"),
        (printed(SOUND).replace("    8192    2", "    4096    2", 1), Unreadable, "other tokens"),
        (
            printed(changed(1, exchanges=0)),
            InvalidRun,
            "pair 2 in run 1 completed no exchange in its window",
        ),
        (printed(changed(2, exchanges=2002)), Unreadable, "pair 1 in run 2 take longer"),
        (printed(changed(2, mean=101.0)), Unreadable, "pair 1 in run 2 are no distribution"),
        (printed(changed(2, levels=(100.001, *EVEN[1:]))), Unreadable, "no distribution"),
        (printed(changed(2, levels=(0.0,) * 9, mean=0.0)), Unreadable, "no distribution"),
        (printed(changed(2, levels=(float("nan"),) * 9)), Unreadable, "no distribution"),
        (
            printed(changed(3, begin=1.7e9 + 2.021)),
            InvalidRun,
            "run 2 had 0.179 of 0.2 s in common",
        ),
        (printed(changed(0, begin=1.6e9)), InvalidRun, "run 1 had 0.000 of 0.2 s in common"),
    ],
)
def test_a_table_that_is_not_sound_is_refused(output, reason, said):
    """Cut, doubled, reordered, of nothing, longer than its window, or of windows that were not one."""
    with pytest.raises(reason, match=said):
        table(output)


round_trips = st.lists(st.integers(1000, 10**9), min_size=1, max_size=50)


@given(st.lists(st.tuples(round_trips, round_trips), min_size=1, max_size=4), st.integers(1, 2**26))
def test_what_is_printed_is_what_is_read(runs, size):
    """For any round trips [ns] of two pairs, laid end to end in a window that holds them."""
    window = max(sum(own) for run in runs for own in run) / 1e9
    window = float(f"{window + 1e-6:.6f}")
    rows = []
    for run, both in enumerate(runs, start=1):
        for pair, own in enumerate(both, start=1):
            ordered = sorted(own)
            levels = [ordered[max(-int(-level * len(own) // 1), 1) - 1] / 1e3 for level in LEVELS]
            rows.append((pair, run, 1.7e9 + run, len(own), levels, sum(own) / len(own) / 1e3))
    found = table(printed(rows, size, window, runs=len(runs)))
    for pair, own in enumerate(found.by_pair()):
        assert [row.exchanges for row in own] == [len(both[pair]) for both in runs]
        assert [row.round_trips[0] for row in own] == pytest.approx(
            [min(both[pair]) / 1e9 for both in runs]
        )
        assert [row.round_trips[-1] for row in own] == pytest.approx(
            [max(both[pair]) / 1e9 for both in runs]
        )
        assert [row.mean * row.exchanges for row in own] == pytest.approx(
            [sum(both[pair]) / 1e9 for both in runs]
        )
