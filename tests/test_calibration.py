"""The calibration judges as the whole path does, keeps its goals, and is of the campaign's own procedure."""

import numpy as np
import pandas as pd
import pytest

import experiment
from analysis import methods
from analysis.statistics import calibration
from analysis.statistics.calibration import AT_MOST, draw, error_rates, judge_all
from analysis.statistics.judgement import in_sequence
from analysis.wording import percent

SETTINGS = calibration.load()
FULL, QUICK = (SETTINGS["procedures"][name] for name in ("full", "quick"))
FALLS = (0.13, 0.0, 0.0)


@pytest.mark.parametrize(("design", "run_sd"), [(FULL, 0.01), (FULL, 0.03), (QUICK, 0.01)])
def test_many_campaigns_are_judged_as_each_alone(design, run_sd):
    """Every campaign's answers and number of blocks are those of `sequence`, look by look."""
    falls = FALLS[: len(design.primary)]
    differences, controls = draw(np.random.default_rng(4), design, falls, run_sd, 60)
    found = judge_all(differences, controls, design, falls)
    expected = [it.expected for it in design.primary]
    for number, (apart, gates) in enumerate(zip(differences, controls)):
        for look in design.looks:
            gate = list(gates[:look].T) if gates.size else [None] * len(expected)
            outcome = in_sequence(apart[:look].T, expected, gate, 0.05, "x", design.looks, design.one_sided)
            if outcome.is_over:
                break
        assert found.answers[number].tolist() == [one.answer for one in outcome.judgements]
        assert found.blocks[number] == look
    assert len(set(map(tuple, found.answers.tolist()))) > (run_sd > 0.01)


def test_the_scatter_of_d_is_twice_a_runs():
    """D holds four runs, the control two, and statements that share runs are correlated."""
    differences, controls = draw(np.random.default_rng(1), FULL, (0.13, 0.0, 0.05), 0.01, 4000)
    assert differences.std(axis=(0, 1)) == pytest.approx([0.02] * 3, rel=0.03)
    assert controls.std(axis=(0, 1)) == pytest.approx([0.01 * 2**0.5] * 3, rel=0.03)
    assert differences.mean(axis=(0, 1)) == pytest.approx([np.log(0.87), 0, np.log(0.95)], abs=0.001)
    assert np.corrcoef(differences.reshape(-1, 3).T)[0, 1] == pytest.approx(-0.5, abs=0.05)


def test_what_is_wrong_is_counted():
    """A certain wrong claim comes in every campaign; without one, in none."""
    certain = calibration.designed(
        {"margin": 0.05, "looks": [4], "one_sided": 0.4, "primary": [{"networks": ["a", "b"], "from": 1, "to": 2}]}
    )
    at_margin = error_rates(certain, (0.05,), 0.01, 2000, (1, 2))
    assert at_margin["wrong_flat"] == pytest.approx(0.4, abs=0.04)
    assert at_margin["wrong_falls_off"] == pytest.approx(0.4, abs=0.04)
    large = error_rates(certain, (0.5,), 0.01, 2000, (1, 2))
    assert large["wrong_flat"] == large["wrong_falls_off"] == 0 and large["all_decided"] == 1


def test_the_stored_rates_keep_the_goals():
    """At most 5 % wrong of either kind in every cell, and at least 90 % of the intervals hold the fall."""
    rates = calibration.results()
    assert set(rates.procedure) == {"full", "quick"} and set(rates.run_sd) == set(SETTINGS["run_sds"])
    assert len(rates) == 4 * (27 + 9)
    assert (rates[["wrong_falls_off", "wrong_flat"]] <= AT_MOST).all().all()
    assert rates.coverage.min() > 0.9
    assert rates[["wrong_falls_off", "wrong_flat"]].max().min() > 0.03  # a rate that is always 0 tests nothing


def test_the_stored_rates_are_the_codes():
    """One cell again, from its own random numbers."""
    rates = calibration.results()
    number = int(np.flatnonzero((rates.procedure == "quick") & (rates.falls == "0.13 0.05"))[0])
    row = rates.iloc[number]
    again = error_rates(QUICK, (0.13, 0.05), row.run_sd, SETTINGS["campaigns"], [SETTINGS["seed"], number])
    assert {name: round(value, 4) for name, value in again.items()} == pytest.approx(
        {name: row[name] for name in again}, abs=2e-4
    )


@pytest.mark.parametrize(("name", "preset"), [("full", "full"), ("quick", "quick")])
def test_the_procedures_are_the_campaigns(name, preset):
    """What is calibrated is what hpl_scaling does, once its plan has looks."""
    plan = experiment.plan_campaign("hpl_scaling", preset=preset)
    if "looks" not in plan.design:
        pytest.skip("hpl_scaling plans no looks yet")
    own, calibrated = experiment.design_of(plan), SETTINGS["procedures"][name]
    for part in ("margin", "negative_control", "primary", "looks", "one_sided"):
        assert getattr(own, part) == getattr(calibrated, part)


def test_a_reproduction_is_rarely_wrong():
    """A difference of the margin is called reproduced, and none called not reproduced, in some 5 % at most."""
    rates = pd.read_csv(calibration.FOLDER / "reproduction.csv")
    noise = 3 * (0.05 * 0.95 / SETTINGS["reproduction"]["campaigns"]) ** 0.5
    assert rates[rates.difference == "margin"].reproduced.max() <= 0.05 + noise
    assert rates[rates.difference == "none"].not_reproduced.max() <= 0.05 + noise
    calm = (rates.run_sd == min(SETTINGS["run_sds"])) & (rates.today_scatter == 1)
    least = rates[(rates.difference == "none") & calm]
    assert least.reproduced.item() > 0.95


def test_the_table_shows_the_worst():
    """The report's rows are the largest rates of each procedure and scatter, its words the worst of all."""
    rates = calibration.results()
    for row in calibration.summary(rates, SETTINGS).itertuples():
        cells = rates[(rates.procedure == row.procedure) & (rates.run_sd == row.run_sd)]
        assert row.wrong_flat == cells.wrong_flat.max() and row.coverage == cells.coverage.min()
    table = methods.error_rates()
    assert len(table.rows) == 8 and table.body.count("looks after 4, 6, 9") == 4
    assert percent(rates.wrong_flat.max()) in methods.error_rates_in_words().text
