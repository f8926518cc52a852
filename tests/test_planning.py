"""What a campaign costs until it is decided, and how probable that is, in rows and in words."""

import numpy as np
import pytest

import experiment
from analysis.statistics import calibration, planning
from analysis.statistics.planning import Effort
from runners.record import FalloffError

DESIGN = calibration.load()["procedures"]["full"]
EFFORT = Effort(180, 360, 0.01, "a folder", (0.13, 0.0, 0.0), ("as simulated", "assumed", "as simulated"))


def test_minutes_count_the_survey_once():
    """Four blocks of three minutes after six minutes of survey are 18 minutes; unknown blocks have no time."""
    assert EFFORT.minutes(4) == pytest.approx(18)
    assert Effort(None, 360, None, "", (), ()).minutes(4) is None


def test_a_decision_is_more_probable_later_and_with_less_scatter():
    """A row for each look; a fall at the margin is hardly ever decided."""
    calm, noisy = planning.outlook(DESIGN, EFFORT, 0.005), planning.outlook(DESIGN, EFFORT, 0.02)
    assert [row.blocks for row in calm] == [4, 6, 9] and calm[0].minutes == pytest.approx(18)
    assert calm[0].decided > 0.99 and noisy[0].decided < noisy[1].decided < noisy[2].decided < 0.9
    open_ended = Effort(180, 360, 0.01, "", (0.05, 0.0, 0.0), ("", "", ""))
    assert planning.outlook(DESIGN, open_ended, 0.01)[-1].decided < 0.15


def test_a_runs_scatter_is_half_of_ds():
    """Pooled over the statements, from whole blocks only; a single block has none."""
    apart = np.random.default_rng(3).normal(0, 0.02, (3, 2000))
    assert planning.run_sd(apart) == pytest.approx(0.01, rel=0.05)
    assert planning.run_sd(apart[:, :1]) is None
    apart[0, 1:] = np.nan
    assert planning.run_sd(apart) is None


def test_the_text_has_a_line_for_each_look():
    """With the minutes, the probability and where the falls are from; without a run, one column a scatter."""
    said = planning.text(DESIGN, EFFORT).splitlines()
    assert "gige against 10gige from 2 to 8 nodes: fall of 13.0 % (as simulated), expected: falls off" in said
    rows = [line.split() for line in said if line.split()[0] in ("4", "6", "9")]
    assert [row[:2] for row in rows] == [["4", "18"], ["6", "24"], ["9", "33"]] and 0.5 < float(rows[0][2]) < 0.7
    unknown = planning.text(DESIGN, Effort(None, 0.0, None, "no run", EFFORT.falls, EFFORT.assumed))
    assert "0.50 %" in unknown and "3.00 %" in unknown and "--repeats 1" in unknown


def test_a_plan_starts_from_the_simulated_fall():
    """GigE against 10GE as the simulation of the paper's cases has it; what repeats itself is not planned."""
    plan = experiment.plan_campaign("hpl_scaling", preset="full")
    effort = experiment.effort(plan)
    assert effort.assumed[0] == "as simulated" and 0.02 < effort.falls[0] < 0.4
    assert len(effort.falls) == len(experiment.design_of(plan).primary)
    with pytest.raises(FalloffError, match="repeats itself"):
        experiment.effort(experiment.plan_campaign("hpl_paper", "smith"))
    with pytest.raises(FalloffError, match="judges no fall"):
        experiment.effort(experiment.plan_campaign("fan_out"))
