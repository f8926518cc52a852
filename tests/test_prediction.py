"""Predictions from one node and a ping-pong: planted clusters, and those that others measured."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest
from command_line import run

from analysis import paths
from analysis.laws.models import _hpl_steps, hpl
from analysis.laws.models._hpl_steps import Algorithm
from analysis.laws.ping_pong import Curve, SharedLinks
from analysis.subjects import ping_pong_files, predicting, prediction
from analysis.subjects.cluster_model import ClusterModel
from analysis.subjects.prediction import CASE
from analysis.wording import percent
from runners.records.record import FalloffError

ALPHA, BETA, RATE = 5e-5, 9e-9, 2e10
LINE = Curve(np.array([1.0, 1e9]), ALPHA + BETA * np.array([1.0, 1e9]))
FREE = Curve(np.array([1.0, 1e9]), np.array([1e-15, 1e-12]))
CASES = pd.DataFrame(
    [(8000, 64, 1, 4), (8000, 64, 4, 1), (12000, 96, 2, 3), (16000, 128, 4, 4)], columns=CASE
)


def test_with_a_process_a_node_and_a_straight_line_it_is_the_law_of_messages():
    x = CASES.to_numpy(float).T
    law = 1e-9 * hpl.hpl(x, ALPHA, BETA, 1 / RATE)
    assert ClusterModel(LINE, LINE, RATE).rates(CASES) == pytest.approx(law, rel=0.005)


def test_messages_of_a_node_share_its_link_and_those_inside_do_not():
    links = SharedLinks(LINE, FREE, np.array([0, 0, 1, 1]), link=1 / BETA)
    size, nothing = np.full((1, 1), 1e6), np.zeros((1, 1))

    def time(there, back, *ends):
        a, b = (np.array(end)[:, None] for end in zip(*ends))
        return links.times(np.repeat(there, len(a), 0), np.repeat(back, len(a), 0), a, b)[:, 0, 0]

    (alone,) = time(size, nothing, (0, 2))
    assert alone == pytest.approx(ALPHA + BETA * 1e6, rel=1e-6)
    assert time(size, size, (0, 2)) == pytest.approx([alone])  # both ways at the same time
    shared = time(size, nothing, (0, 2), (1, 3))
    assert shared == pytest.approx(2 * [ALPHA + 2 * BETA * 1e6], rel=1e-3)
    inside, across = time(size, nothing, (0, 1), (2, 0))
    assert inside < 1e-6 and across == pytest.approx(alone)


def test_each_message_of_a_node_waits_for_the_processors_time_of_the_others():
    ends = np.array([[0], [1]]), np.array([[2], [3]])
    size = np.ones((2, 1))
    one, busy = (
        SharedLinks(LINE, FREE, np.array([0, 0, 1, 1]), 1 / BETA, send).times(size, size, *ends)
        for send in (0.0, 7e-6)
    )
    assert busy - one == pytest.approx(7e-6)


def test_processes_by_column_swap_rows_inside_a_node():
    """A grid of 4 x 2 on two nodes: by columns no row is swapped between nodes, so that a slow
    network costs less."""
    case = pd.DataFrame([(16000, 64, 4, 2)], columns=CASE)
    models = [
        ClusterModel(LINE, FREE, RATE, ranks_per_node=4, by_column=way) for way in (True, False)
    ]
    by_column, by_row = (model.rates(case)[0] for model in models)
    assert by_column > 1.05 * by_row


@pytest.mark.parametrize("bcast", ["1ring", "1ringM", "2ring"])
@pytest.mark.parametrize("Q", [1, 2, 3, 4, 7, 8])
def test_a_broadcast_reaches_each_column_once(bcast, Q):
    hops = _hpl_steps.broadcast_hops(Q, bcast)
    assert sorted(b for _, b in hops) == list(range(1, Q))
    reached = {0}
    for a, b in hops:
        assert a in reached
        reached.add(b)


def test_a_look_ahead_hides_messages():
    rates = [
        ClusterModel(LINE, LINE, RATE, algorithm=Algorithm(depth=depth)).rates(CASES)
        for depth in (0, 1)
    ]
    assert (rates[1] > 1.01 * rates[0])[[0, 2, 3]].all()
    ideal = 1e-9 * RATE * CASES.P * CASES.Q
    assert (rates[1] < ideal).all()


def test_a_planted_rate_is_found_again():
    model = ClusterModel(LINE, LINE, RATE)
    one = pd.DataFrame([(9000, 96, 1, 1)], columns=CASE)
    measured = one.assign(rate=model.rates(one))
    assert ClusterModel(LINE, LINE).calibrated(measured).rate == pytest.approx(RATE, rel=1e-6)
    several = pd.DataFrame([(N, 96, 2, 2) for N in (4000, 8000, 16000)], columns=CASE)
    slow = ClusterModel(LINE, LINE, RATE, panel_rate=2e9)
    fitted = ClusterModel(LINE, LINE).calibrated(several.assign(rate=slow.rates(several)))
    assert fitted.rate == pytest.approx(RATE, rel=0.01)
    assert fitted.panel_rate == pytest.approx(2e9, rel=0.02)


def test_a_rate_that_no_node_can_have_is_refused():
    with pytest.raises(FalloffError, match="no rate of a node"):
        ClusterModel(LINE, LINE).calibrated(CASES[:1].assign(rate=1e9))


def test_the_interval_holds_nine_tenths_of_the_ratios():
    """Each series has the same weight, whatever the number of its points."""
    ratio = np.linspace(0.8, 1.2, 101)
    table = pd.DataFrame({"series": "one", "law": 1.0, "measured": ratio})
    assert prediction.interval(table) == pytest.approx((0.82, 1.18), abs=0.005)
    twice = pd.concat([table, *[table[:1].assign(series="two", measured=1.0)] * 2])
    low, high = prediction.interval(twice)
    assert low > 0.83 and high < 1.17


def test_a_written_prediction_cannot_change_unnoticed(tmp_path):
    model = ClusterModel(LINE, LINE, RATE)
    file = tmp_path / "prediction.json"
    made = predicting.predict("planted", model, CASES)
    file.write_text(made.text())
    again = prediction.read(file)
    assert again.digest == made.digest and (again.cases.law == made.cases.law).all()
    content = json.loads(file.read_text())
    content["cases"][0]["law"] *= 1.01
    file.write_text(json.dumps(content))
    with pytest.raises(FalloffError, match="changed after it was written"):
        prediction.read(file)
    for text in (
        "",
        "[]",
        99999 * "[",
        "{}",
        '{"sha256": 1}',
        '{"sha256": "", "title": 3, "cases": [4]}',
    ):
        file.write_text(text)
        with pytest.raises(FalloffError, match="no prediction|changed"):
            prediction.read(file)


@pytest.mark.parametrize(
    "cases",
    [[], [{"N": 9}], [{"law": None}], [{"law": "3"}], [{"law": np.nan}], [{"simulation": "3"}]],
)
def test_what_holds_no_rates_is_no_prediction(cases, tmp_path):
    """Whoever wrote it: its digest is right."""
    whole = {"nodes": 8, "N": 9000, "NB": 64, "P": 2, "Q": 4, "law": 80.5}
    cases = [whole | case if "N" not in case else case for case in cases]
    content = {"title": "planted", "given": {}, "cases": cases}
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    (tmp_path / "p.json").write_text(json.dumps({"sha256": digest, **content}))
    with pytest.raises(FalloffError, match="no prediction"):
        prediction.read(tmp_path / "p.json")


def test_a_run_without_a_rate_is_left_out(tmp_path):
    file = tmp_path / "runs.csv"
    file.write_text("N,NB,P,Q,gflops\n9000,64,2,4,80\n9000,64,1,8,\n")
    assert predicting.measured_runs(file).rate.tolist() == [80]
    file.write_text("N,NB,P,Q,rate\n9000,64,2,4,80\n")
    with pytest.raises(FalloffError, match="needs the columns"):
        predicting.measured_runs(file)


# ---- clusters that others measured ----


@pytest.fixture(scope="module")
def errors():
    return prediction.errors()


def worst(rows, method="law"):
    return (rows[method] / rows.measured - 1).abs().max()


def test_the_stored_predictions_meet_what_was_asked(errors):
    of = dict(iter(errors.groupby("series")))
    assert worst(of["pi4_1"]) < 0.06 and worst(of["pi4_1"], "simulation") < 0.06
    assert set(of["pi4_1"].nodes) == set(range(2, 9))
    assert worst(of["alaska"]) < 0.03 and worst(of["alaska"], "simulation") < 0.03
    assert worst(of["taurus"]) < 0.10
    dahu = of["dahu"]
    sizes, grids = dahu[dahu.P * dahu.Q == 1024], dahu[dahu.P * dahu.Q == 960]
    assert worst(sizes, "hpl") < 0.02 and len(grids) == 28
    assert worst(grids[(grids.P > 5) & (grids.P <= 32)]) < 0.10
    assert len(of["paravance"]) == 5


def test_the_readme_says_how_far_it_misses(errors):
    readme = (paths.ROOT / "README.md").read_text(encoding="utf-8")
    size = (errors.law / errors.measured - 1).abs()
    said = f"{errors.cluster.nunique()} clusters that others measured"
    assert said in readme and f"{(errors.P * errors.Q).max():,} processes" in readme
    assert (
        f"median error {percent(size.median())}, worst {percent(size.max(), 0)}"
        in readme.replace(" %", "\u00a0%")
    )


@pytest.mark.parametrize("name", ["pi4_1", "alaska", "taurus"])
def test_a_stored_prediction_is_made_again(name, errors):
    """What was given and the law give what was written, to its digits; the simulation is stored."""
    made = predicting.of_measured(name)
    written = prediction.read(prediction.PREDICTIONS / f"{name}.json")
    assert made.cases.law.values == pytest.approx(written.cases.law.values, rel=1e-3)
    known, told = made.given, written.given
    assert known["rate"] == pytest.approx(told["rate"], rel=1e-3)
    assert known["between"] == told["between"] and known["link"] == told["link"]


def test_no_prediction_was_given_what_it_predicts():
    for points in prediction.series().values():
        given, held_out = (points[points.role == role] for role in ("given", "held_out"))
        assert held_out.merge(given, on=[*CASE, "nodes"]).empty and len(held_out)


# ---- the command ----

NODE = ("predict", "--node", "14.7", "--case", "52360,88,2,4")


@pytest.fixture
def ping_pong(tmp_path):
    file = tmp_path / "pp.csv"
    file.write_text("size,time_us\n8,93.957\n2000000,17669.2\n")
    return file


def test_a_prediction_is_asked_for_written_and_compared(tmp_path, ping_pong):
    out, runs = tmp_path / "mine.json", tmp_path / "runs.csv"
    runs.write_text("N,NB,P,Q,gflops\n52360,88,2,4,96.63\n")
    at = ("--run", "18360,216,1,1", "--ping-pong", str(ping_pong))
    asked = run(*NODE, *at, "--out", str(out))
    assert asked.returncode == 0, asked.stderr
    law = prediction.read(out).cases.law[0]
    assert law == pytest.approx(96.7, rel=0.005)
    compared = run("predict", str(out), "--measured", str(runs))
    assert f"{100 * (law / 96.63 - 1):+.1f} %" in compared.stdout
    again = run(*NODE, *at, "--out", str(out))
    assert again.returncode == 1 and "not replaced" in again.stderr


@pytest.mark.parametrize(
    "words,reason",
    [
        (("--node", "14.7"), "--ping-pong"),
        (("--node", "0", "--ping-pong", "PP", "--case", "9000,88,1,2"), "above 0"),
        (("--node", "14", "--ping-pong", "PP", "--case", "9000,88,1"), "N,NB,P,Q"),
        (("--node", "14", "--ping-pong", "PP", "--case", "9000,88,0,1"), "N,NB,P,Q"),
        (("--node", "inf", "--ping-pong", "PP", "--case", "9000,88,1,2"), "finite"),
        (("--node", "14", "--ping-pong", "PP", "--case", "999999999,88,1,2"), "at most"),
        (("--node", "14", "--ping-pong", "PP", "--case", "9000,88,99999,99999"), "at most"),
        (
            ("--node", "1", "--ping-pong", "PP", "--case", "9000,88,1,2", "--run", "900,8,2,2"),
            "2 x 2 processes",
        ),
        (("nothing.json",), "no prediction"),
        (("pi4_1", "--node", "3"), "predicted already"),
        (("pi4_1", "--ranks-per-node", "4"), "predicted already"),
        (("pi4_1", "--look-ahead"), "predicted already"),
    ],
)
def test_a_wrong_question_is_refused(words, reason, ping_pong):
    done = run("predict", *(str(ping_pong) if word == "PP" else word for word in words))
    assert done.returncode == 1 and reason in done.stderr and "Traceback" not in done.stderr


def test_netpipe_is_read(tmp_path):
    """NetPIPE's rows hold bytes, Mbit/s and s that agree; other tables of three numbers are not."""
    file = tmp_path / "np.out"
    times = {1: 3e-5, 64: 3.1e-5, 65536: 6e-4, 1048576: 9.1e-3}
    rows = [f"{b:8d} {b * 8 / 2**20 / t:12.5f} {t:15.10f}" for b, t in times.items()]
    file.write_text("\n".join(rows) + "\n")
    read = ping_pong_files.read(file).time.squeeze()
    assert read.to_series().to_dict() == pytest.approx(times, rel=1e-4)
    file.write_text("".join(f"{b} 3.5 7.25\n" for b in times))
    with pytest.raises(FalloffError):
        ping_pong_files.read(file)


def test_runs_that_differ_in_another_setting_are_not_pooled(tmp_path):
    file = tmp_path / "runs.csv"
    file.write_text("N,NB,P,Q,interconnect,gflops\n9000,88,1,2,gige,20\n9000,88,1,2,10gige,40\n")
    with pytest.raises(FalloffError, match="several values of interconnect"):
        predicting.measured_runs(file)
    file.write_text("N,NB,P,Q,interconnect,gflops\n9000,88,1,2,gige,20\n9000,88,1,2,gige,40\n")
    assert predicting.measured_runs(file).rate.tolist() == [30]
