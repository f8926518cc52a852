"""HPL with two BLAS libraries: the planted factor comes back, and a claim needs its bound."""


import numpy as np
import pytest
from synthetic import NODE_RATE
from synthetic_studies import blas_campaign

from analysis.experiments import hpl_blas


@pytest.mark.parametrize("factor", [1.5, 2.0, 6.0])
def test_planted_factor_comes_back(factor):
    """At every N the factor is the planted one, whatever the block's own speed, and both have their rate."""
    exact = hpl_blas.analyse(blas_campaign(blocks=3, factor=factor, noise=0, block_effect=0.2))
    np.testing.assert_allclose(exact.factors.ratio, factor)
    exact = hpl_blas.analyse(blas_campaign(blocks=3, factor=factor, noise=0, block_effect=0))
    np.testing.assert_allclose(exact.rates["mean"].sel(blas="openblas"), 0.9 * NODE_RATE, rtol=0.01)
    np.testing.assert_allclose(
        exact.rates["mean"].sel(blas="reference"), 0.9 * NODE_RATE / factor, rtol=0.01
    )


def test_intervals_hold_the_planted_factor():
    """Of many noisy campaigns, the 95 % intervals miss few."""
    held = []
    for seed in range(15):
        factors = hpl_blas.analyse(
            blas_campaign(blocks=4, factor=3.0, noise=0.03, seed=seed)
        ).factors
        held += list((factors.low < 3) & (factors.high > 3))
    assert np.mean(held) > 0.85


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (5.0, "more than the doubling"),
        (2.2, "more than the doubling"),
        (2.0, "is open"),
        (1.7, "less than the doubling"),
    ],
)
def test_the_claim_is_judged_by_its_bound(factor, said):
    """Beyond two with confidence, below two with confidence, or neither: and the bound says how far."""
    study = hpl_blas.analyse(blas_campaign(blocks=6, factor=factor, noise=0.01))
    assert said in hpl_blas.finding(study)
    found = float(study.factors.ratio[-1])
    if "more" in said:
        assert 2 < hpl_blas.bound(study) < found
    if "less" in said:
        assert found < hpl_blas.bound(study) < 2


def test_the_claim_is_about_the_largest_matrix():
    """A run lost at the largest N costs the claim a block; one at another N does not."""
    largest = hpl_blas.analyse(
        blas_campaign(blocks=4, failed={(1, "unshaped", 1, "openblas", 1536)})
    )
    smallest = hpl_blas.analyse(
        blas_campaign(blocks=4, failed={(1, "unshaped", 1, "openblas", 768)})
    )
    assert (largest.claim.blocks, smallest.claim.blocks) == (3, 4)
    assert smallest.factors.blocks.values.tolist() == [3, 4, 4]


def test_one_block_has_a_factor_and_no_answer():
    """A single block gives a factor, no interval, no bound and no answer."""
    study = hpl_blas.analyse(blas_campaign(blocks=1))
    assert "is open" in hpl_blas.finding(study) and hpl_blas.bound(study) is None
    assert study.factors.ratio.notnull().all() and study.factors.low.isnull().all()


def test_the_finding_names_number_evidence_and_caveat():
    """With interval, blocks and kind of evidence; what the dataset warns of stands at its end."""
    dataset = blas_campaign(blocks=6, factor=5.0, noise=0.01)
    said = hpl_blas.finding(hpl_blas.analyse(dataset.assign_attrs(caveat="Nothing was paced.")))
    assert "times as fast as with the reference BLAS on one node" in said
    assert "6\u00a0blocks, emulated evidence" in said and said.endswith("Nothing was paced.")


def test_findings_are_the_claim_and_the_factor():
    """Both as data, with their blocks."""
    study = hpl_blas.analyse(blas_campaign(blocks=4, factor=5.0))
    claim, factor = hpl_blas.findings(study)
    assert claim.answer == "falls off" and factor.n == 4
    assert factor.interval[0] < factor.estimate < factor.interval[1]


@pytest.mark.parametrize("chance", [{"blocks": 4}, {"blocks": 1}, {"blocks": 2, "factor": 1.5}])
def test_figure_shows_every_run(chance):
    """Each share and each block's factor is a mark, however few."""
    study = hpl_blas.analyse(blas_campaign(**chance))
    left, right = hpl_blas.figures(study)["blas"].figure.axes
    shares = study.points.rate.values.ravel()
    factors = np.exp(study.log_ratio.values.ravel())
    for axes, wanted in ((left, shares), (right, factors)):
        shown = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
        assert all(np.isclose(shown, value).any() for value in wanted[np.isfinite(wanted)])
