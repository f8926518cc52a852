"""Exchanges both ways: the planted slowdown is found where it is, and what a damaged table says is
refused.
"""

import numpy as np
import pytest
import recorded
from executed import executed, stated, words
from synthetic import of_plan

from analysis import planning


def planted(campaign, slower):
    """Messages of 1 ms one way; `slower(point)` times as long in an exchange."""
    plan = planning.plan_campaign(campaign, "", "full")
    random = np.random.default_rng(7)

    def readings(point, block):
        scatter = np.exp(random.normal(0, 0.005))
        return {"exchange_median": 1e-3 * slower(point) * scatter}

    return of_plan(plan, readings)


def test_the_planted_order_is_found_where_it_is():
    """By put, from 64 KiB on, where neighbours are out of step; not simulated."""

    def slower(point):
        is_late = point["exchange"] in ("halo", "roll") and point["rendezvous"] == "put"
        return 1.7 if is_late and point["bytes"] >= 65536 else 1.0

    simulated = planted("halo_exchange_simulated", lambda point: 1.0)
    exchanges = planted("halo_exchange", slower)
    made = executed("63", halo_exchange=exchanges, halo_exchange_simulated=simulated)
    answers = {one.subject: one.words for one in made.statements}
    assert len(answers) == 9 and list(answers.values()).count("yes") == 2
    halo = stated(made, "A halo exchange of 256 KiB takes longer than one way: Open MPI")
    assert halo.primary and halo.words == "yes" and halo.estimate == pytest.approx(1.7, rel=0.02)
    said = words(made)
    assert "takes 1.7" in said and "with one setting" in said and "Simulated" in said
    alone = executed("63", halo_exchange=exchanges)
    assert "Simulated" not in words(alone)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (" 1.331061704\n", "\n", "has 2 of 3 repetitions"),
        ("8 1.331061704", "8 1.331061709", "is not the median"),
        ("8 1.331061704", "0 1.331061704", "sent no message"),
        ("halo", "circle", "reports no pattern"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(old, new, reason):
    """A lost repetition, another median, no message, an unknown pattern."""
    text = recorded.text("exchange/4-nodes")
    assert text.count(old) >= 1
    assert reason in recorded.refusals("exchange", text.replace(old, new, 1))
