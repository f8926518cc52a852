"""HPL with two BLAS libraries: the planted factor comes back, and a claim needs its bound."""

import numpy as np
import pytest
from synthetic import NODE_RATE
from synthetic_studies import blas_campaign

from analysis.facts import blas as facts
from analysis.figures import blas as figures
from analysis.studies import blas


@pytest.mark.parametrize("factor", [1.5, 2.0, 6.0])
def test_planted_factor_comes_back(factor):
    """At every N the factor is the planted one, whatever the block's own speed, and both have their rate."""
    exact = blas.analyse(blas_campaign(blocks=3, factor=factor, noise=0, block_effect=0.2))
    np.testing.assert_allclose(exact.factors.ratio, factor)
    exact = blas.analyse(blas_campaign(blocks=3, factor=factor, noise=0, block_effect=0))
    np.testing.assert_allclose(exact.rates["mean"].sel(blas="openblas"), 0.9 * NODE_RATE, rtol=0.01)
    np.testing.assert_allclose(exact.rates["mean"].sel(blas="reference"), 0.9 * NODE_RATE / factor, rtol=0.01)


def test_intervals_hold_the_planted_factor():
    """Of many noisy campaigns, the 95 % intervals miss few."""
    held = []
    for seed in range(15):
        factors = blas.analyse(blas_campaign(blocks=4, factor=3.0, noise=0.03, seed=seed)).factors
        held += list((factors.low < 3) & (factors.high > 3))
    assert np.mean(held) > 0.85


@pytest.mark.parametrize(("factor", "answer"), [(5.0, "yes"), (2.2, "yes"), (2.0, "undecided"), (1.7, "no")])
def test_the_claim_is_judged_by_its_bound(factor, answer):
    """Beyond two with confidence, below two with confidence, or neither: and the bound says how far."""
    known = facts.collect(blas.analyse(blas_campaign(blocks=6, factor=factor, noise=0.01)))
    assert known["answer"] == answer
    if answer == "yes":
        assert 2 < known["bound"] < known["points"][-1]["factor"]
    if answer == "no":
        assert known["points"][-1]["factor"] < known["bound"] < 2


def test_the_claim_is_about_the_largest_matrix():
    """A run lost at the largest N costs the claim a block; one at another N does not."""
    largest = blas.analyse(blas_campaign(blocks=4, failed={(1, "unshaped", 1, "openblas", 1536)}))
    smallest = blas.analyse(blas_campaign(blocks=4, failed={(1, "unshaped", 1, "openblas", 768)}))
    assert (largest.claim.blocks, smallest.claim.blocks) == (3, 4)
    assert smallest.factors.blocks.values.tolist() == [3, 4, 4]
    (trial,) = facts.collect(largest)["faults"]["trials"]
    assert trial["reason"] == "planted fault"


def test_one_block_has_a_factor_and_no_answer():
    """A single block gives a factor, no interval, no bound and no answer."""
    known = facts.collect(blas.analyse(blas_campaign(blocks=1)))
    assert known["answer"] == "undecided" and known["bound"] is None
    assert all(p["factor"] and p["interval"] is None for p in known["points"])


@pytest.mark.parametrize("chance", [{"blocks": 4}, {"blocks": 1}, {"blocks": 2, "factor": 1.5}])
def test_figure_shows_every_run(chance):
    """Each share and each block's factor is a mark, however few."""
    study = blas.analyse(blas_campaign(**chance))
    left, right = figures.draw(study)["blas"].axes
    shares = study.points.rate.values.ravel()
    factors = np.exp(study.log_ratio.values.ravel())
    for axes, wanted in ((left, shares), (right, factors)):
        shown = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
        assert all(np.isclose(shown, value).any() for value in wanted[np.isfinite(wanted)])
