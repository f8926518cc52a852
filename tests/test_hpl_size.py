"""HPL over the order of the matrix: planted costs come back, and what cannot be known is said."""

import re
from functools import cache

import numpy as np
import pytest
from shown import words
from synthetic_studies import COSTS, size_campaign

from analysis import models
from analysis.experiments import hpl_size as size
from analysis.fitting.fit import fit_rows
from analysis.models.hpl import hpl
from analysis.statistics.intervals import t_interval

OTHER_LIMIT = {**COSTS, "gige": {**COSTS["gige"], "gamma": 1.5}}


@cache
def noisy_study():
    """Eight blocks with scatter."""
    return size.analyse(size_campaign(blocks=8, noise=0.015, seed=4))


def test_planted_costs_and_ratios_come_back():
    """Without noise, costs and limits are the planted ones up to rounding, whatever a block's own speed does."""
    study = size.analyse(size_campaign(blocks=3, noise=0, block_effect=0))
    for curve in study.curves:
        planted = COSTS[curve.interconnect]
        for name, tolerance in (("alpha", 0.02), ("beta", 0.1), ("gamma", 0.02)):
            assert curve.blocks.parameter(name, "cost")[0] == pytest.approx(
                planted[name], rel=tolerance
            )
        assert curve.asymptotes.mean() == pytest.approx(1 / planted["gamma"], rel=0.02)
    assert study.agreement.kind == "holds" and study.agreement.ratio == pytest.approx(1, abs=0.01)
    uneven = size.analyse(size_campaign(blocks=3, noise=0, block_effect=0.2))
    x = size.settings(uneven.points, uneven.ratios.N)
    np.testing.assert_allclose(
        uneven.ratios.ratio, hpl(x, **COSTS["gige"]) / hpl(x, **COSTS["10gige"])
    )


def test_costs_may_be_negative_in_a_block():
    """Of many noisy campaigns, the 95 % intervals miss as few as they say; with costs cut off at 0, more."""
    planted = COSTS["10gige"]
    x = size.settings(noisy_study().points, noisy_study().points.N)
    scatter = np.random.default_rng(5).normal(0, 0.03, (100 * 8, x.shape[1]))
    table = hpl(x, **planted) * np.exp(scatter)

    def coverage(model):
        by_block = fit_rows(model, x, table).reshape(100, 8, 3)
        _, low, high = t_interval(np.swapaxes(by_block, 0, 1))
        truth = np.array(list(planted.values()))
        return np.mean((low <= truth) & (truth <= high), axis=0)

    assert (coverage(size.HPL) > 0.88).all()
    assert coverage(models.find("hpl")).min() < 0.88


def test_the_finding_follows_the_data():
    """Whether the limits agree; a network that slows every operation has its own limit."""
    text = words(size, size.analyse(size_campaign(blocks=4, noise=0.002)))
    assert re.search(r"with order 7168\*\* \(95 % interval", text)
    assert "tend to the same limit, within 5 %" in text
    study = size.analyse(size_campaign(blocks=6, noise=0.003, costs=OTHER_LIMIT))
    assert study.agreement.kind == "violated" and "tends to another limit than" in words(
        size, study
    )
    assert study.agreement.ratio == pytest.approx(1.15 / 1.5, rel=0.05)


def test_a_block_without_a_whole_curve_is_left_out():
    """A lost run costs its network's curve that block, and the comparison of both limits, too."""
    study = size.analyse(size_campaign(blocks=4, noise=0.003, failed={(2, "gige", 4, 1792)}))
    asymptotes = {
        curve.interconnect: curve.asymptotes.block.values.tolist() for curve in study.curves
    }
    assert asymptotes == {"gige": [1, 3, 4], "10gige": [1, 2, 3, 4]}
    assert study.agreement.blocks == 3


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
    """Two sizes, no valid run, or a rate that grows without end: no limit is made up, and the refusal says why."""
    study = size.analyse(size_campaign(**chance))
    gige = next(curve for curve in study.curves if curve.interconnect == "gige")
    assert reason in gige.refused and gige.asymptotes is None
    assert study.agreement.kind == "undecided" and study.agreement.ratio is None
    assert "gives no limit" in words(size, study) or "cannot be said" in words(size, study)
    size.figures(study)


def test_a_curve_that_misses_is_not_drawn():
    """Rates that jump at the largest sizes are not HPL's model: no curve, no limit, and the finding says so."""
    dataset = size_campaign(blocks=6, noise=0.002)
    jump = dataset.hpl_rate.where(dataset.N < 5000, 0.5 * dataset.hpl_rate)
    missed, followed = size.analyse(dataset.assign(hpl_rate=jump)), noisy_study()
    assert not any(curve.follows for curve in missed.curves) and "no limit" in words(size, missed)
    for study, curves in ((missed, 0), (followed, 2)):
        lines = size.figures(study)["size"].figure.axes[0].lines
        assert len([line for line in lines if line.get_gid() == "model"]) == curves
