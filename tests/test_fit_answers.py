"""What `falloff fit` answers: it gives back what was planted, and refuses what the runs cannot
tell."""

import json
from pathlib import Path

import command_line
import numpy as np
import pytest

from analysis.laws.models import hpl
from analysis.subjects import fit_answers
from runners.records.record import FalloffError

HERE = Path(__file__).parent
PI = HERE / "certified/pi4_hpl.csv"
# HPCC's between these nodes: 93.869 us for 8 bytes, 113.129 MB/s for 2,000,000.
PING_PONG = "size,time_us\n8,93.869\n2000000,17678.93\n"
TRUTH = {"alpha": 94e-6, "beta": 1 / 113e6, "gamma": 1 / 14e9}  # s, s/B, s/flop
GRIDS = ((1, 1), (1, 4), (2, 2), (2, 4), (4, 4))
X = np.array([(N, NB, *at) for N in (4000, 8000, 16000) for NB in (64, 128) for at in GRIDS]).T
SETTINGS = ("N", "NB", "P", "Q")
ROWS, ONE_N, ALONE = X[2] == 1, X[0] == 8000, X[2] * X[3] == 1


def answered(folder, runs=..., seed=0, ping_pong="", **costs):
    """The law fitted to runs with 1 % of noise, and these columns of a ping-pong beside them."""
    x = X[:, runs].reshape(4, -1)
    noise = np.random.default_rng(seed).normal(1, 0.01, x.shape[1])
    rates = hpl.MODEL.function(x, **TRUTH | costs) / 1e9 * noise
    lines = [",".join(map(str, row)) for row in zip(*x.tolist(), rates)]
    (folder / "runs.csv").write_text("\n".join(["N,NB,P,Q,gflops", *lines]))
    return of_runs(folder / "runs.csv", folder, ping_pong)


def of_runs(file, folder, ping_pong=""):
    beside = folder / "ping_pong.csv"
    beside.write_text(ping_pong)
    given = beside if ping_pong else None
    return fit_answers.of_model("hpl", file, "N,NB,P,Q", "gflops", given)


def test_planted_costs_lie_in_their_intervals(tmp_path):
    """In SI units, in 95 % of the cases; people read them in us, MB/s and Gflop/s."""
    inside = dict.fromkeys(TRUTH, 0)
    for seed in range(20):
        answer = answered(tmp_path, seed=seed)
        for name, (low, high) in answer.data["intervals_95"].items():
            inside[name] += low < TRUTH[name] < high
    assert min(inside.values()) >= 17
    assert answer.data["units"] == {"alpha": "s", "beta": "s/B", "gamma": "s/flop"}
    units = dict(zip(answer.table.parameter, answer.table.estimate.astype(float)))
    planted = {"α [us]": 94, "1/β [MB/s]": 113, "1/γ [Gflop/s]": 14}
    assert units == pytest.approx(planted, rel=0.05)


@pytest.mark.parametrize(
    ("runs", "remedy"),
    [(ROWS, "run a grid with more rows"), (ONE_N, "run another"), (X[3] == 1, "several nodes")],
    ids=["rows", "one N", "one node"],
)
def test_what_the_runs_cannot_tell_is_not_told(tmp_path, runs, remedy):
    """No latency and no bandwidth, but the rate of a node; a ping-pong helps."""
    answer = answered(tmp_path, runs)
    assert remedy in answer.sentence
    told = answer.data["estimates"]
    assert not told.get("alpha") and not told.get("beta")
    low, high = answer.data["intervals_95"]["gamma"]
    assert low < TRUTH["gamma"] < high < 1.1 * low
    helped = answered(tmp_path, runs, ping_pong="size,time_s\n8,94e-6\n2000000,0.0178\n")
    assert helped.data["given"]["alpha"] == pytest.approx(94e-6, rel=0.01)
    assert list(helped.data["estimates"]) == ["gamma"]


def test_the_time_of_all_messages_is_told_where_its_parts_are_not(tmp_path):
    """From grids of one row, within its interval in 95 % of the cases."""
    inside = 0
    for seed in range(20):
        sums = answered(tmp_path, ROWS, seed).data["messages"]
        paths = hpl.counts(np.array([[sums[name]] for name in SETTINGS]))[0]
        costs = np.array([*TRUTH.values()])
        true = paths[(paths @ costs).argmax()][:2] @ costs[:2]
        low, high = sums["interval_95"]
        inside += low < true < high < 1.2 * low
    assert inside >= 17


def test_grids_of_one_row_on_two_computers_do_not_tell_their_network(tmp_path):
    """Real runs, whose panels take time of their own: no latency of 69 ms, but that of the
    ping-pong."""
    alone = of_runs(PI, tmp_path)
    assert alone.data["estimates"]["alpha"] is None and "1 x Q" in alone.sentence
    beside = of_runs(PI, tmp_path, PING_PONG)
    network = beside.data["given"]
    assert network["alpha"] == pytest.approx(93.9e-6, rel=0.01)
    assert 1 / network["beta"] == pytest.approx(113.1e6, rel=0.01)
    assert "93.80 us" in beside.sentence and "113.7 MB/s" in beside.sentence
    for answer in (alone, beside):  # HPCC's DGEMM on these nodes
        assert 13e9 < 1 / answer.data["estimates"]["gamma"] < 16.3e9
    # Messages alone would take this long; the rest is of the panels.
    run, (_, high) = alone.data["messages"], alone.data["messages"]["interval_95"]
    assert run["N"] ** 2 / 2 * 8 * network["beta"] < high < 100


@pytest.mark.parametrize("costs", [{"alpha": 0.05}, {"beta": 0.0}])
def test_what_no_network_has_is_not_told(tmp_path, costs):
    """A latency of 50 ms or 1 ns, and bytes without a cost."""
    assert hpl.no_network(1e-9, 1e-9)
    answer = answered(tmp_path, **costs)
    assert answer.data["not_determined"] and answer.data["estimates"]["alpha"] is None
    assert "are not determined by these runs" in answer.sentence


@pytest.mark.parametrize(
    ("ping_pong", "reason"),
    [
        ("bytes,time_us\n8,94\n", "size"),
        ("size,time_us\n8,94\n1024,110\n", "bandwidth"),
        ("size,time_s\n8,94\n2000000,17679\n", "a latency of"),
        ("size,time_us\n8,-1\n2000000,17679\n", "line 2"),
        ("size,time_us\n8,x\n2000000,17679\n", "line 2"),
        ("size,time_us\n8,94\n2000000,900000\n", "leaves no time to compute"),
    ],
)
def test_a_ping_pong_that_tells_nothing_is_refused(tmp_path, ping_pong, reason):
    """Other columns, only short messages, another unit, no numbers, another network's."""
    with pytest.raises(FalloffError, match=reason):
        answered(tmp_path, ~ALONE, ping_pong=ping_pong)


@pytest.mark.parametrize(
    ("output", "alpha", "bandwidth"),
    [
        ("imb/4.0-pingpong", (2.5e-6, 4e-6), (5e9, 6.5e9)),
        ("osu/5.4.3-latency", (1e-6, 2e-6), (2.5e9, 3.2e9)),
        ("hpcc/1.5.0-two-processes", (2e-4, 3e-4), (2e8, 2.3e8)),
    ],
)
def test_a_tools_output_is_a_ping_pong(output, alpha, bandwidth):
    """Latency [s] and bandwidth [B/s] are near what it prints for its ends."""
    network = fit_answers.latency_bandwidth(HERE / f"transcripts/{output}.txt")
    assert alpha[0] < network["alpha"] < alpha[1]
    assert bandwidth[0] < 1 / network["beta"] < bandwidth[1]


def test_the_unit_of_a_column_is_in_its_name(tmp_path):
    """Times in us or s, rates in Gflop/s or flop/s: the same answer in SI units."""
    file = tmp_path / "t.csv"
    file.write_text("size,time_us,s\n8,10,10e-6\n1000,20,20e-6\n2000,29,29e-6\n")
    us, s = (fit_answers.of_model("latency_bandwidth", file, "size", y) for y in ("time_us", "s"))
    assert us.data["estimates"] == pytest.approx(s.data["estimates"])
    assert "us" in us.sentence and "MB/s" in us.sentence
    answered(tmp_path)
    lines = (tmp_path / "runs.csv").read_text().replace("gflops", "flops").splitlines()
    rows = [line.rsplit(",", 1) for line in lines[1:]]
    (tmp_path / "f.csv").write_text(
        "\n".join([lines[0], *(f"{at},{float(rate) * 1e9}" for at, rate in rows)])
    )
    flops = fit_answers.of_model("hpl", tmp_path / "f.csv", "N,NB,P,Q", "flops")
    assert flops.data["estimates"] == pytest.approx(answered(tmp_path).data["estimates"])


@pytest.mark.parametrize(
    ("y", "unit"),
    [("rate_mflops", 1e6), ("rate [Tflop/s]", 1e12), ("HPL (GFLOPS)", 1e9), ("rate", 1e9)],
)
def test_a_rates_unit_ends_its_columns_name(tmp_path, y, unit):
    file = tmp_path / "t.csv"
    file.write_text(f"N,NB,P,Q,{y}\n8000,64,1,1,{12e9 / unit}\n")
    gamma = fit_answers.of_model("hpl", file, "N,NB,P,Q", y).data["estimates"]["gamma"]
    assert 1 / gamma == pytest.approx(12e9, rel=0.01)


def test_no_rate_of_a_node_is_below_0(tmp_path):
    """Runs that contradict each other: the interval ends at 0."""
    file = tmp_path / "t.csv"
    rows = ((4000, 2, 1), (8000, 2, 9), (4000, 4, 20), (8000, 4, 1), (12000, 4, 4))
    file.write_text("N,NB,P,Q,gflops\n" + "\n".join(f"{N},128,1,{Q},{y}" for N, Q, y in rows))
    answer = of_runs(file, tmp_path)
    assert answer.data["intervals_95"]["gamma"][0] == 0
    assert answer.table.iloc[0, -1] == "—"


def test_no_node_and_a_wrong_option_are_refused_in_a_line(tmp_path):
    """Nodes from 0 down, a ping-pong for another law, too few columns, one node for a network."""
    (tmp_path / "t.csv").write_text("nodes,rate\n1,1\n0,2\n-2,3\n")
    answered(tmp_path, ALONE)
    known = (tmp_path / "runs.csv").read_text().replace("gflops", "node,share")
    known = "\n".join(line.replace(",1,1,", ",1,1,1e10,") for line in known.splitlines())
    (tmp_path / "known.csv").write_text(known)
    table, runs = str(tmp_path / "t.csv"), str(tmp_path / "runs.csv")
    of_known = ("hpl_messages", str(tmp_path / "known.csv"), "--x", "N,NB,P,Q,node")
    for words, reason in (
        (("usl", table, "--x", "nodes", "--y", "rate"), "'nodes' has to be above 0"),
        (("usl", table, "--x", "nodes", "--y", "rate", "--ping-pong", table), "not for"),
        ((table, "--x", "nodes", "--y", "rate", "--ping-pong", table), "name it before"),
        (("hpl", runs, "--x", "N,NB", "--y", "gflops"), "four rows"),
        ((*of_known, "--y", "share"), "nothing of a network"),
    ):
        done = command_line.run("fit", *words)
        assert done.returncode == 1 and not done.stdout and reason in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_json_has_no_infinity(tmp_path):
    """As many runs as costs leave no interval."""
    few = answered(tmp_path, np.array([1, 6, 11]))
    assert json.dumps(few.data, allow_nan=False)
