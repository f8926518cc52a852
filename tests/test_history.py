"""The history of a cluster: planted changes are found with their dates and places, and unchanged
years stay quiet.
"""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from calibration import alarms
from command_line import run
from history_years import BEGIN, year

from analysis.statistics import course_changes
from analysis.statistics.calibration import load, table
from analysis.watch import history_changes, history_report, history_sessions
from runners.records.record import FalloffError


def planted(what, change):
    """A kernel on night 74, a cable of node 7 that degrades from night 200, and one bad night."""
    change[74:] -= 0.03
    change[200:, 6] -= 0.0005 * np.arange(1, len(change) - 199)
    change[150] -= 0.2


def kernel(night):
    return "6.1.0-31" if night < 74 else "6.1.0-32"


@pytest.mark.more
def test_a_year_with_two_changes_and_a_bad_night():
    """Exactly these are told, with their dates, sizes, places and the kernel."""
    found = history_changes.judge(year(3, plant=planted, kernel=kernel))
    kernels, cable = found.changes
    assert kernels.shift.low <= 74 <= kernels.shift.high and not kernels.nodes
    assert kernels.facts == (("kernel", "6.1.0-31", "6.1.0-32"),)
    assert kernels.shift.named <= 80 and not kernels.shift.is_drift
    assert all(-0.035 < quantity.size < -0.025 for quantity in kernels.quantities)
    assert cable.nodes == ("n7",) and cable.shift.is_drift and cable.facts == ()
    assert abs(cable.shift.first - 200) <= 6 and cable.shift.named <= 225
    assert len(cable.quantities) == 2 and all(
        quantity.size == pytest.approx(-0.08, abs=0.015) for quantity in cable.quantities
    )
    (bad,) = found.bad_nights
    assert bad.session == 150 and not bad.nodes and bad.size == pytest.approx(-0.18, abs=0.03)
    assert found.answer == "slower" and history_changes.EXIT_CODES[found.answer] == 1


@pytest.mark.long
def test_ten_unchanged_years_stay_quiet():
    """At most ten alarms are allowed in ten years; nothing else is said of a night either, or
    rarely.
    """
    years = [history_changes.judge(year(seed, whats=("sends",))) for seed in range(10)]
    assert sum(len(one.changes) for one in years) <= 10
    assert sum(len(one.bad_nights) for one in years) <= 10
    assert {one.answer for one in years if not one.changes} == {"no change"}


def history_of(values, switches=None):
    """A history of log speeds over (sessions, nodes), NaN where a node was away."""
    session, node = np.nonzero(np.isfinite(values))
    columns = {"session": session, "what": "rate", "node": [f"n{at:02}" for at in node]}
    rows = pd.DataFrame({**columns, "block": "1", "log": values[session, node]})
    sessions = tuple(
        history_sessions.Session(BEGIN + timedelta(days=night), {}) for night in range(len(values))
    )
    units = {"rate": ("", False)}
    return history_sessions.History(sessions, rows, units, switches or {}, "measured", ("planted",))


def wandering(random, correlation, nights, nodes):
    """Log speeds (nights, nodes) of an unchanged cluster whose neighbouring nights are alike."""
    noise = random.normal(0, 0.005, (nights, nodes))
    for night in range(1, nights):
        fresh = np.sqrt(1 - correlation**2) * noise[night]
        noise[night] = correlation * noise[night - 1] + fresh
    return noise


@pytest.mark.few(2)
@pytest.mark.parametrize("nodes", [1, 4])
@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.8])
def test_the_promise_holds_for_the_correlation_that_was_learnt(correlation, nodes):
    """In ten unchanged years there are no more false alarms than are promised at that
    correlation.
    """
    random = np.random.default_rng(49)
    years = [
        history_changes.judge(history_of(wandering(random, correlation, 365, nodes)))
        for _ in range(10)
    ]
    promised = [course_changes.promised(one.alike) for one in years]
    assert None not in promised
    assert sum(len(one.changes) for one in years) <= sum(promised)
    assert np.median([one.alike for one in years]) == pytest.approx(correlation, abs=0.15)


def test_no_promise_is_made_where_none_holds():
    """A random walk raises alarms; it is said that no limit holds."""
    walk = np.random.default_rng(3).normal(0, 0.005, (365, 1)).cumsum(axis=0)
    found = history_changes.judge(history_of(walk))
    assert course_changes.promised(found.alike) is None and "no limit" in history_report.rule(found)
    assert history_report.as_data(found)["false_alarms_a_year"] is None


@pytest.mark.parametrize("loss", [0.03, 0.07])
@pytest.mark.parametrize(("before", "after"), [(25, 15), (60, 15), (15, 25)])
def test_a_step_is_not_taken_for_correlation(before, after, loss):
    """In 40 seeds at most one is missed or has an interval that says nothing."""
    useless = 0
    for seed in range(40):
        values = np.random.default_rng(seed).normal(0, 0.005, before + after)
        values[before:] += np.log1p(-loss)
        found = course_changes.course(values, alike=course_changes.correlation(values[None]))
        useless += (
            len(found) != 1 or np.ptp(found[0].ends) > 0.02 or abs(found[0].first - before) > 1
        )
    assert useless <= 1 + 2 * (loss < 0.05)


def test_a_drift_is_not_taken_for_correlation():
    """A course that loses 0.05 % each night from the middle on has no more correlation than one
    that does not.
    """
    values = np.random.default_rng(1).normal(0, 0.005, (20, 200))
    values[:, 100:] -= 0.0005 * np.arange(100)
    assert course_changes.correlation(values) < 0.15


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("nodes", "slow", "away", "loss"),
    [
        (16, [5], (20, 40), 0.06),
        (16, [5], (20, 40), 0.20),
        (16, [5], (15, 25), 0.20),
        (16, [5, 9], (20, 40), 0.06),
        (16, [4, 5, 6, 7], (20, 40), 0.06),
        (16, [*range(8)], (20, 40), 0.06),
        (4, [1], (20, 40), 0.06),
        (3, [1], (20, 40), 0.06),
        (2, [1], (20, 40), 0.06),
        (16, [5], (0, 30), 0.0),
        (16, [5], (20, 40), 0.0),
    ],
)
def test_who_returns_slow_is_named_and_nobody_else(nodes, slow, away, loss):
    """One node, two, a switch's or half of all, with few nodes, too; a new node, and one that
    returns as it was, are no change.
    """
    values = np.random.default_rng(7).normal(0, 0.005, (60, nodes))
    values[away[1] :, slow] += np.log1p(-loss)
    values[slice(*away), slow] = np.nan
    switches = {f"n{node:02}": f"s{node // 4}" for node in range(nodes)} if nodes > 4 else {}
    found = history_changes.judge(history_of(values, switches))
    named = {node for one in found.changes for node in one.nodes}
    assert named == ({f"n{node:02}" for node in slow} if loss else set())
    assert found.answer == ("slower" if loss else "no change")
    for one in found.changes:
        assert one.shift.first == away[1]
        assert one.quantities[0].size == pytest.approx(-loss, abs=0.01)


@pytest.mark.parametrize("scatter", [0.001, 0.02])
def test_the_rule_is_the_same_at_any_scale(scatter):
    """What is named does not depend on the unit: all values times ten are named on the same
    nights.
    """
    values = np.random.default_rng(8).normal(0, scatter, (40, 120))
    values[:, 60:] -= 2 * scatter
    threshold, weights = course_changes.log_threshold(40), np.ones(120)
    named = course_changes.alarms(values, weights, threshold)
    assert (named == course_changes.alarms(10 * values + 3, weights, threshold)).all()
    assert (named >= 60).mean() > 0.9


def test_the_evidence_is_a_martingale():
    """Without a change the expected sum of all Bayes factors is at most the number of sessions: the
    bound of false alarms.
    """
    values = np.random.default_rng(2).normal(0, 1, (8000, 24))
    sums = np.exp(course_changes.log_evidence(values, np.ones(24))[:, -1])
    beginnings = 24 - course_changes.LEAST_BEFORE - course_changes.LEAST_AFTER + 1
    assert np.median(sums) < beginnings
    assert np.clip(sums, 0, 1e4).mean() == pytest.approx(beginnings, rel=0.35)


def test_one_night_alone_is_no_change():
    """However bad, and even as the last of all; three of them are a change."""
    values = np.random.default_rng(4).normal(0, 0.005, 90)
    for bad in ([60], [89], [20, 70]):
        night = values.copy()
        night[bad] -= 1.0
        assert course_changes.course(night) == []
        assert course_changes.outlying(night, 90).tolist() == bad
    values[60:] -= 0.1
    (shift,) = course_changes.course(values)
    assert shift.first == shift.low == shift.high == 60 and shift.named <= 63
    assert shift.ends[0] < -0.1 < shift.ends[1]


def test_sessions_with_more_blocks_weigh_more():
    """The two variances are those planted; a session's weight is its inverse variance."""
    random = np.random.default_rng(1)
    session = np.repeat(np.arange(400), 4)
    values = np.repeat(random.normal(0, 0.01, 400), 4) + random.normal(0, 0.02, 1600)
    between, within = course_changes.variances(values, session)
    assert between**0.5 == pytest.approx(0.01, rel=0.15) and within**0.5 == pytest.approx(
        0.02, rel=0.1
    )
    weights = course_changes.session_weights(np.array([1, 4, 4, 400]), 1e-4, 4e-4)
    assert weights == pytest.approx([0.4, 1, 1, 2 / 1.01])


def test_a_change_is_placed_behind_a_switch_or_on_nodes():
    """Four nodes behind one switch, two nodes behind none in common, and half of all nodes."""

    def behind(what, change):
        change[100:, 4:8] -= 0.04

    (found,) = history_changes.judge(year(5, plant=behind, whats=("sends",), nights=160)).changes
    assert found.place == "behind switch s2" and found.nodes == ("n5", "n6", "n7", "n8")

    def two(what, change):
        change[100:, [2, 12]] += 0.04

    found = history_changes.judge(year(6, plant=two, whats=("sends",), nights=160))
    assert {node for one in found.changes for node in one.nodes} == {"n3", "n13"}
    assert found.answer == "faster"


def test_undecided_until_enough_is_learnt():
    """A few nights decide nothing, and it is said how many more are needed; they then suffice."""
    found = history_changes.judge(year(1, whats=("sends",), nights=6))
    assert found.answer == "undecided" and found.needed and found.needed < 20
    assert f"{found.needed} more session" in history_report.text(found)
    assert (
        history_changes.judge(year(1, whats=("sends",), nights=2)).needed
        == history_changes.LEAST_KNOWN - 2
    )
    later = history_changes.judge(year(1, whats=("sends",), nights=6 + found.needed + 3))
    assert later.answer == "no change" and later.to_name


def csv_of(file, nights=90, loss=0.05, at=60, nodes=5):
    """A CSV of one block a node and night; all nodes lose at once."""
    random, rows = np.random.default_rng(7), []
    for night in range(nights):
        moment = (BEGIN + timedelta(days=night)).isoformat()
        common = random.normal(0, 0.004) - (loss if night >= at else 0)
        for node in range(nodes):
            rate = 100 * np.exp(common + random.normal(0, 0.002))
            rows.append((moment, f"c{node}", 1, rate, "a" if night < at else "b"))
    pd.DataFrame(rows, columns=["time", "node", "block", "rate", "firmware"]).to_csv(
        file, index=False
    )
    return file


def test_the_command_on_a_csv(tmp_path):
    """Exit codes and JSON."""
    file = csv_of(tmp_path / "year.csv")
    done = run("history", str(file), "--json")
    found = json.loads(done.stdout)
    assert done.returncode == found["exit_code"] == 1
    (change,) = found["changes"]
    assert change["first"].startswith("2026-03-02") and change["place"] == "all"
    assert change["together_with"] == [{"what": "firmware", "before": "a", "after": "b"}]
    assert run("history", str(file), "--since", "2026-03-20").returncode == 0
    assert run("history", str(csv_of(tmp_path / "short.csv", nights=5))).returncode == 2
    assert run("history", str(tmp_path / "none.csv")).returncode == 3


def test_what_is_wrong_in_a_csv_is_refused_with_its_line(tmp_path):
    file = tmp_path / "bad.csv"
    for text, reason in (
        ("time,rate\n2026-01-01,x\n", "line 2"),
        ("time,rate\nyesterday,3\n", "line 2"),
        ("time,rate\n2026-01-01,3\n2026-01-02,-1\n", "line 3"),
        ("rate\n3\n", "time"),
        ("time,rate,block\n2026-01-01,3,1\n2026-01-01,4,1\n", "line 3"),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(FalloffError, match=reason):
            history_sessions.read([file])


def test_nights_of_a_csv(tmp_path):
    """Blocks after midnight belong to the same session; what comes again begins another."""
    file = tmp_path / "nights.csv"
    file.write_text(
        "time,rate,block\n2026-01-01T23:00,3,1\n2026-01-02T01:00,3,2\n2026-01-02T23:00,3,1\n2026-01-02T23:30,3,1\n",
        encoding="utf-8",
    )
    history = history_sessions.read([file])
    assert history.values.session.tolist() == [0, 0, 1, 2]
    assert history.sessions[1].time == datetime(2026, 1, 2, 23, tzinfo=UTC)


def test_the_stored_rates_keep_the_goal_and_are_the_codes():
    """At most one alarm a year in every cell, two where nights are alike; one cell is computed
    again.
    """
    rates = table("history_alarms")
    settings = load()
    sizes = settings["history"]
    assert len(rates) == len(sizes["kinds"]) * len(sizes["nodes"]) * len(sizes["session_sds"])
    noise = 3 * (1 / rates.years) ** 0.5
    alike = rates.kind.isin(alarms.CORRELATIONS)
    assert (
        rates.alarms_a_year <= np.where(alike, 2, 1) + noise
    ).all() and rates.alarms_a_year.max() > 0
    losses = table("history_losses")
    small = {**sizes, "nodes": {"4": 1}, "session_sds": [0.001], "losses": [0.01]}
    again = alarms.simulate_losses({**settings, "history": small})
    same = losses[(losses.nodes == 4) & (losses.session_sd == 0.001) & (losses.loss == 0.01)]
    assert again.found.tolist() == pytest.approx(same.found.tolist(), abs=0.15)


@pytest.mark.more
def test_the_intervals_are_right():
    """Those of size and date contain what was planted in 93 of 100 cases at least; one cell is
    computed again.
    """
    rates = table("history_intervals")
    assert (rates[["size", "date"]] >= 0.93).all(axis=None) and (rates.named > 0.9).all()
    settings = load()
    few = {"kinds": ["heavy tails"], "after": [20], "losses": [2.5], "courses": 100}
    small = {**settings["history"]["intervals"], **few}
    again = alarms.simulate_intervals({**settings, "history": {"intervals": small}})
    assert again["size"].item() >= 0.86 and again["date"].item() >= 0.86


@pytest.mark.more
def test_a_strange_distribution_raises_no_more_alarms():
    """Of 128 courses in a year, with heavy tails and with frequent bad nights."""
    random = np.random.default_rng(5)
    for kind in (alarms.HEAVY, alarms.BAD):
        values = alarms.scatter(random, (128, 365), kind)
        assert (
            course_changes.alarms(values, np.ones(365), course_changes.log_threshold(256)) >= 0
        ).sum() <= 2
