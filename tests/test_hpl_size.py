"""HPL over the order of the matrix: planted costs come back, and what cannot be known is said."""

from functools import cache

import numpy as np
import pytest
from executed import executed, stated, words
from shown import failed
from synthetic_studies import COSTS, size_campaign

from analysis.dataset.contrasts import log_ratios
from analysis.dataset.derive import at_only_level, points
from analysis.laws import models
from analysis.laws.fit import fit_rows
from analysis.laws.models.hpl import hpl
from analysis.statistics.intervals import ratios, t_interval
from analysis.subjects import hpl_size

OTHER_LIMIT = {**COSTS, "gige": {**COSTS["gige"], "gamma": 1.5}}
LIMIT = "GigE and 10GE tend to one rate"


def derived(**chance):
    return at_only_level(points(size_campaign(**chance)), "nodes")


def notebook(dataset):
    return executed("41", hpl_size=dataset)


@cache
def noisy():
    """Eight blocks with scatter."""
    return derived(blocks=8, noise=0.015, seed=4)


def test_planted_costs_and_ratios_come_back():
    """Without noise, costs and limits are the planted ones up to rounding, whatever a block's own
    speed does.
    """
    exact = derived(blocks=3, noise=0, block_effect=0)
    for network, curve in hpl_size.curves(exact).items():
        planted = COSTS[network]
        for name, tolerance in (("alpha", 0.02), ("beta", 0.1), ("gamma", 0.02)):
            assert curve.fitted.parameter(name, "cost")[0] == pytest.approx(
                planted[name], rel=tolerance
            )
        assert curve.limits.mean() == pytest.approx(1 / planted["gamma"], rel=0.02)
    made = notebook(size_campaign(blocks=3, noise=0, block_effect=0))
    limit = stated(made, LIMIT)
    assert limit.words == "the same" and limit.estimate == pytest.approx(1, abs=0.01)
    uneven = derived(blocks=3, noise=0, block_effect=0.2)
    x = hpl_size.settings(uneven, uneven.N)
    found = ratios(log_ratios(uneven, "gige", "10gige")).ratio
    np.testing.assert_allclose(found, hpl(x, **COSTS["gige"]) / hpl(x, **COSTS["10gige"]))


@pytest.mark.long
def test_costs_may_be_negative_in_a_block():
    """Of many noisy campaigns, the 95 % intervals miss as few as they say; with costs cut off at 0,
    more.
    """
    planted = COSTS["10gige"]
    x = hpl_size.settings(noisy(), noisy().N)
    scatter = np.random.default_rng(5).normal(0, 0.03, (100 * 8, x.shape[1]))
    table = hpl(x, **planted) * np.exp(scatter)

    def coverage(model):
        by_block = fit_rows(model, x, table).reshape(100, 8, 3)
        _, low, high = t_interval(np.swapaxes(by_block, 0, 1))
        truth = np.array(list(planted.values()))
        return np.mean((low <= truth) & (truth <= high), axis=0)

    assert (coverage(hpl_size.HPL) > 0.88).all()
    assert coverage(models.find("hpl")).min() < 0.88


def test_the_statements_follow_the_data():
    """The share at the largest order is the planted one; a network that slows every operation has
    its own limit.
    """
    made = notebook(size_campaign(blocks=4, noise=0.002))
    x = hpl_size.settings(made.names["hpl"], [7168])
    truth = (hpl(x, **COSTS["gige"]) / hpl(x, **COSTS["10gige"])).item()
    largest, same = made.statements
    assert largest.interval[0] < truth < largest.interval[1] and largest.n == 4 and largest.primary
    assert same.words == "the same" and same.subject.startswith(LIMIT) and words(made)
    other = stated(notebook(size_campaign(blocks=6, noise=0.003, costs=OTHER_LIMIT)), LIMIT)
    assert other.words == "no" and other.estimate == pytest.approx(1.15 / 1.5, rel=0.05)


def test_a_block_without_a_whole_curve_is_left_out():
    """A lost run costs its network's curve that block, and the comparison of both limits, too."""
    made = notebook(size_campaign(blocks=4, noise=0.003, failed={(2, "gige", 4, 1792)}))
    curves = made.names["curves"]
    blocks = {name: curve.limits.block.values.tolist() for name, curve in curves.items()}
    assert blocks == {"gige": [1, 3, 4], "10gige": [1, 2, 3, 4]}
    assert stated(made, LIMIT).n == 3


@pytest.mark.parametrize(
    ("chance", "reason"),
    [
        ({"blocks": 3, "N": (1280, 2560)}, "3"),
        (
            {"blocks": 1, "N": (1280, 2560, 5056)}
            | {"failed": {(1, "gige", 4, N) for N in (1280, 2560, 5056)}},
            "none of 1 blocks",
        ),
        (
            {"blocks": 6, "noise": 0.05}
            | {"costs": dict.fromkeys(COSTS, {"alpha": 1e9, "beta": 0.0, "gamma": 1e-3})},
            "no limit in",
        ),
    ],
)
def test_what_the_data_cannot_carry_is_refused(chance, reason):
    """Two sizes, no valid run, or a rate that grows without end: no limit is made up, and the
    refusal says why.
    """
    made = notebook(size_campaign(**chance))
    curve, limit = made.names["curves"]["gige"], stated(made, LIMIT)
    assert reason in curve.refused and curve.limits is None and reason in words(made)
    assert limit.words == "undecided" and limit.estimate is None


def test_a_curve_that_misses_is_not_drawn():
    """Rates that jump at the largest sizes are not HPL's model: no curve, no limit."""
    dataset = size_campaign(blocks=6, noise=0.002)
    jump = dataset.hpl_rate.where(dataset.N < 5000, 0.5 * dataset.hpl_rate)
    missed = notebook(dataset.assign(hpl_rate=jump))
    assert "it misses the points" in words(missed)
    assert stated(missed, LIMIT).estimate is None
    for made, drawn in ((missed, 0), (notebook(dataset), 2)):
        assert sum(curve.follows for curve in made.names["curves"].values()) == drawn
        lines = made.figures["size"].figure.axes[0].lines
        assert len([line for line in lines if line.get_gid() == "model"]) == drawn


def test_without_a_reading_nothing_is_said_in_numbers():
    """All trials failed: the limit is open, and no share is known."""
    made = notebook(failed(size_campaign(blocks=2), "no library"))
    assert {one.estimate for one in made.statements} == {None} and words(made)
    assert stated(made, LIMIT).words == "undecided"
