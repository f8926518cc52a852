"""Token exchange as a runner: who is started where, what is read from the table, and what is refused."""

from dataclasses import replace

import pytest
import recorded
from campaigns import small_plan, use_echo
from hypothesis import given
from hypothesis import strategies as st
from local_testbed import LocalTestbed
from netpipe import ROW

import runners.campaign as engine
from analysis import store
from runners import foreign, token_exchange
from runners.journal import Folder
from runners.record import FalloffError, InvalidRun, Reading, Unreadable
from runners.token_output import LEVELS, table

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


def test_by_mpi_it_is_one_program_on_all_nodes_up_to_the_last():
    """Ranks count from 0, nodes from 1."""
    (program,) = token_exchange.commands({**POINT, "transport": "mpi"})
    assert program.ranks == 9 and program.argv == ("token_mpi", "8192", "2", "0.1", "0.2", "0,7", "1,8")


def test_in_real_time_are_the_ends_of_pairs_only():
    """Not who only starts and ends the runs."""
    *servers, coordinator = token_exchange.commands({**POINT, "real_time": True})
    assert {command.argv[3:] for command in servers} == {("real-time",)}
    assert "real-time" not in coordinator.argv


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"pairs": 4}, "4 pairs are asked for, .* list 3"),
        ({"pairs": 0}, "0 pairs are asked for"),
        ({"consumers": "8,1"}, "a node is in two pairs"),
        ({"producers": "1;2"}, "not numbers of nodes"),
        ({"transport": "pigeon"}, "not 'pigeon'"),
        ({"transport": "mpi", "real_time": True}, "leave `real_time` out"),
    ],
)
def test_pairs_that_cannot_be_are_refused(other, said):
    """Before anything is started, with the setting to correct."""
    with pytest.raises(FalloffError, match=said):
        token_exchange.commands({**POINT, **other})


def test_throughput_is_what_the_producers_wrote():
    """Tokens times their size over the window, for each pair and run: half of what both ends wrote."""
    readings = {reading.name: reading for reading in recorded.judged("token_exchange", TCP, POINT).readings}
    rows = table(TCP).by_pair()
    assert readings["token_throughput"].unit == "B/s"
    assert readings["token_throughput"].value == [
        [pytest.approx(row.exchanges * 8192 / 0.2) for row in own] for own in rows
    ]
    assert readings["token_exchanges"].value == [[row.exchanges for row in own] for own in rows]
    assert all(len(levels) == len(LEVELS) for own in readings["token_round_trip"].value for levels in own)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"pairs": 3}, "pairs 2, 3 was asked for"),
        ({"token_bytes": 4}, "token_bytes 8192"),
        ({"runs": 1}, "runs 2"),
        ({"window_s": 0.25}, "window_s 0.2"),
        ({"warm_up_s": 0}, "warm_up_s 0.1"),
        ({"transport": "mpi"}, "transport tcp"),
    ],
)
def test_another_measurement_than_asked_for_is_invalid(other, said):
    """Whichever setting it is."""
    outcome = recorded.judged("token_exchange", TCP, {**POINT, **other})
    assert outcome.status == "invalid" and said in outcome.reason


def printed(rows, size=8192, window=0.2, pairs=2, runs=2, end="end of token\n"):
    """A table as token prints it, of rows (pair, run, begin, exchanges, levels [us], mean [us])."""
    lines = [f"token: {pairs} pairs, {size} bytes, {runs} runs, warm-up 0.100000 s, window {window:.6f} s, by TCP\n"]
    for pair, run, begin, exchanges, levels, mean in rows:
        cells = " ".join(f"{level:11.3f}" for level in levels)
        lines.append(f"{pair:4} {size:8} {run:4} {begin:17.6f} {exchanges:9} {window:9.6f} {cells} {mean:14.6f}\n")
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
        (printed(SOUND[:-1]), Unreadable, "3 rows that are not of 2 pairs in 2 runs"),
        (printed([*SOUND, SOUND[-1]]), Unreadable, "5 rows"),
        (printed(SOUND[::-1]), Unreadable, "4 rows"),
        (printed([], pairs=0), Unreadable, "0 rows"),
        (printed(SOUND).replace("    8192    2", "    4096    2", 1), Unreadable, "other tokens"),
        (printed(changed(1, exchanges=0)), InvalidRun, "pair 2 in run 1 completed no exchange in its window"),
        (printed(changed(2, exchanges=2002)), Unreadable, "pair 1 in run 2 take longer"),
        (printed(changed(2, mean=101.0)), Unreadable, "pair 1 in run 2 are no distribution"),
        (printed(changed(2, levels=(100.001, *EVEN[1:]))), Unreadable, "no distribution"),
        (printed(changed(2, levels=(0.0,) * 9, mean=0.0)), Unreadable, "no distribution"),
        (printed(changed(2, levels=(float("nan"),) * 9)), Unreadable, "no distribution"),
        (printed(changed(3, begin=1.7e9 + 2.021)), InvalidRun, "run 2 had 0.179 of 0.2 s in common"),
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
        assert [row.round_trips[0] for row in own] == pytest.approx([min(both[pair]) / 1e9 for both in runs])
        assert [row.round_trips[-1] for row in own] == pytest.approx([max(both[pair]) / 1e9 for both in runs])
        assert [row.mean * row.exchanges for row in own] == pytest.approx([sum(both[pair]) / 1e9 for both in runs])


def test_netpipe_tells_one_way():
    """A line of NetPIPE 3.7.2 has the size and the time of one way."""
    said = "Now starting the main loop\n  0:    8192 bytes   1370 times -->    342.51 Mbps in     182.48 usec\n"
    assert ROW.findall(said) == [("8192", "182.48")]


def test_another_tool_is_told_what_it_is():
    """A table handed to `falloff parse` as some other tool's output."""
    assert foreign.describe(TCP, "hpl") == "it is a table of token exchanges"
    assert not foreign.describe(TCP, "token_exchange")


def test_pairs_runs_and_levels_become_dimensions_of_a_dataset(tmp_path, monkeypatch):
    """As many pairs as the trial with the most; what another trial has fewer of is NaN, in memory and on disk."""

    def parse(transcript):
        pairs = 1 + transcript.trial.order % 3
        return [
            Reading("token_throughput", [[1e6 * pair, 2e6 * pair] for pair in range(1, pairs + 1)], "B/s"),
            Reading("token_round_trip", [[[1e-3] * len(LEVELS)] * 2] * pairs, "s"),
        ]

    use_echo(monkeypatch)
    runner = engine.runner_named
    monkeypatch.setattr(store, "runner_named", lambda name: replace(runner(name), parse=parse))
    engine.run(small_plan(), LocalTestbed(), Folder(tmp_path / "small"))
    dataset = store.assemble(tmp_path / "small")
    assert dataset.token_round_trip.dims == ("trial", "pair", "run", "quantile")
    assert dataset["pair"].values.tolist() == [1, 2, 3] and dataset["quantile"].values.tolist() == list(LEVELS)
    for name in ("token_throughput", "token_round_trip"):
        there = dataset[name].notnull()
        whole = there.all([dim for dim in there.dims if dim not in ("trial", "pair")])
        assert (whole.sum("pair") == 1 + dataset.order % 3).all()
    assert (dataset.token_throughput.sel(pair=2, run=2).dropna("trial") == 4e6).all()
    store.save(dataset, tmp_path / "small.nc")
    assert store.load(tmp_path / "small.nc").identical(dataset)
