"""The calibration judges as the whole path does and keeps its goals."""

import numpy as np
import pytest
from calibration.verdicts import error_rates

from analysis.statistics import design
from analysis.statistics.calibration import AT_MOST, draw, judge_all, load, table
from analysis.statistics.judgement import in_sequence, judge

SETTINGS = load()
FULL, QUICK = (SETTINGS["procedures"][name] for name in ("full", "quick"))
FALLS = (0.13, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(("design", "run_sd"), [(FULL, 0.03), (QUICK, 0.01)])
def test_many_campaigns_are_judged_as_each_alone(design, run_sd):
    """Every campaign's answers and number of blocks are those of the sequence, look by look."""
    falls = FALLS[: len(design.primary)]
    differences, controls = draw(np.random.default_rng(4), design, run_sd, 60, run_sd / 2)
    judged = judge_all(differences, controls, design, falls)
    of_session = design.blocks_a_session or 1
    for number, (apart, gates) in enumerate(
        zip(differences + np.log1p(-np.array(falls)), controls)
    ):
        for look in design.looks:
            blocks = look * of_session
            sessions = np.arange(blocks) // of_session if design.blocks_a_session else None
            gate = gates[:blocks].T if gates.size else None
            outcome = in_sequence(apart[:blocks].T, gate, design, "x", sessions)
            if outcome.is_over:
                break
        assert judged.answers[number].tolist() == [one.answer for one in outcome.judgements]
        assert judged.looked[number] == look


def test_the_scatter_of_d_is_twice_a_runs():
    """D holds four runs, the control two, without messages half as many; statements that share runs
    are correlated.
    """
    differences, controls = draw(np.random.default_rng(1), FULL, 0.01, 4000)
    assert differences.std(axis=(0, 1)) == pytest.approx(
        [0.02, 0.02, 0.01 * 2**0.5, 0.02], rel=0.03
    )
    assert controls.std(axis=(0, 1)) == pytest.approx(
        [2**0.5 * 0.01, 2**0.5 * 0.01, 0.01, 2**0.5 * 0.01], rel=0.03
    )
    assert differences.mean(axis=(0, 1)) == pytest.approx(0, abs=0.001)
    assert np.corrcoef(differences.reshape(-1, 4).T)[0, 1] == pytest.approx(-0.5, abs=0.05)


def test_what_is_wrong_is_counted():
    """A certain wrong claim comes in every campaign; without one, in none."""
    statement = {"networks": ["a", "b"], "from": 1, "to": 2}
    rules = {"margin": 0.05, "looks": [4], "one_sided": 0.4}
    certain = design.design_from({"compared": "any", "primary": [statement], **rules})
    drawn = draw(np.random.default_rng((1, 2)), certain, 0.01, 2000)
    at_margin = error_rates(*drawn, certain, (0.05,))
    assert at_margin["wrong_flat"] == pytest.approx(0.4, abs=0.04)
    assert at_margin["wrong_falls_off"] == pytest.approx(0.4, abs=0.04)
    large = error_rates(*drawn, certain, (0.5,))
    assert large["wrong_flat"] == large["wrong_falls_off"] == 0 and large["all_decided"] == 1


def test_the_stored_rates_keep_the_goals_and_are_the_codes():
    """At most 5 % wrong of either kind in every cell, 90 % of intervals hold the fall; one cell is
    computed again.
    """
    rates = table("error_rates")
    assert len(rates) == 4 * (3 * 81 + 9) and set(rates.day) == {0, 0.5, 1}
    assert (rates[["wrong_falls_off", "wrong_flat"]] <= AT_MOST).all().all()
    assert rates.coverage.min() > 0.9
    assert (
        rates[["wrong_falls_off", "wrong_flat"]].max().min() > 0.03
    )  # always 0 would test nothing
    first = int(np.flatnonzero(rates.procedure == "quick")[0])
    row = rates[first:].query("falls == '0.13 0.05'").iloc[0]
    random = np.random.default_rng([SETTINGS["seed"], first])
    drawn = draw(random, QUICK, row.run_sd, SETTINGS["campaigns"])
    again = error_rates(*drawn, QUICK, (0.13, 0.05))
    assert again == pytest.approx({name: row[name] for name in again}, abs=3e-4)
    again = table("reproduction")
    noise = 3 * (0.05 * 0.95 / SETTINGS["reproduction"]["campaigns"]) ** 0.5
    assert again[again.difference == "margin"].reproduced.max() <= 0.05 + noise
    assert again[again.difference == "none"].not_reproduced.max() <= 0.05 + noise


@pytest.mark.parametrize("day", [0.0, 0.5, 1.0])
def test_sessions_as_units_cover_what_blocks_as_units_do_not(day):
    """Where the blocks of a session share a part, an interval over sessions still holds the truth
    as often as it says, and one over blocks does so no more."""
    random, sessions = np.random.default_rng(5), np.repeat(np.arange(4), 3)
    parts = (
        random.normal(0, 0.01, (3000, 12)) + day * random.normal(0, 0.01, (3000, 4))[:, sessions]
    )
    held = {
        unit: np.mean(
            [
                low < 0 < high
                for low, high in (judge(row, 0.05, "x", 0.05, of).interval for row in parts)
            ]
        )
        for unit, of in (("block", None), ("session", sessions))
    }
    assert held["session"] == pytest.approx(0.9, abs=0.02)
    assert held["block"] == pytest.approx(0.9, abs=0.02) if not day else held["block"] < 0.87
