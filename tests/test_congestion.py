"""Programs beside a flood: the planted slowdown is found where it is, and nowhere else."""

import numpy as np
import pytest
from executed import executed, words
from synthetic import of_plan

from analysis import planning


def planted_victims(slow):
    """Operations of 1 ms at the median and 2 ms at the 99th percentile, `slow` times as long on
    links that are flooded.
    """
    plan = planning.plan_campaign("congestion", "", "full", 4)
    random = np.random.default_rng(7)

    def readings(point, block):
        is_slowed = point["sharing"] == "same links" and point["congestor"] != "none"
        factor = (slow if is_slowed else 1.0) * np.exp(random.normal(0, 0.02))
        alone = {"median_alone": 1e-3, "p99_alone": 2e-3}
        return {**alone, "median_loaded": 1e-3 * factor, "p99_loaded": 2e-3 * factor}

    return of_plan(plan, readings)


def test_the_planted_slowdown_is_found_where_links_are_shared():
    """Twenty times there, nothing elsewhere."""
    made = executed("58", congestion=planted_victims(20))
    for one in made.statements:
        is_slowed = "same links" in one.subject and "the others wait" not in one.subject
        assert one.words == ("yes" if is_slowed else "no")
        assert one.estimate == pytest.approx(20 if is_slowed else 1, rel=0.1)
        assert one.primary is ("the others wait" not in one.subject and "99th" in one.subject)
    text = words(made)
    assert "in 12 of 24 cases" in text
