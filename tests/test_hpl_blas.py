"""HPL with two BLAS libraries: the planted factor comes back, and a claim needs its bound."""

import numpy as np
import pytest
from synthetic_studies import blas_campaign

from analysis.experiments import hpl_blas


@pytest.mark.parametrize(
    ("factor", "words", "answer"),
    [
        (5.0, "more than the doubling", "falls off"),
        (2.0, "is open", "falls, size open"),
        (1.7, "less than the doubling", "flat"),
    ],
)
def test_the_claim_is_judged_by_its_bound(factor, words, answer):
    """The factor is the planted one whatever a block's own speed, and beyond two, or below, only with confidence."""
    data = blas_campaign(blocks=6, factor=factor, noise=0.01, block_effect=0.2)
    study = hpl_blas.analyse(data)
    np.testing.assert_allclose(study.factors.ratio, factor, rtol=0.03)
    claim, estimate = hpl_blas.findings(study)
    assert words in hpl_blas.finding(study) and claim.answer == answer and estimate.n == 6


def test_the_claim_is_about_the_largest_matrix():
    """A run lost at the largest N costs the claim a block; one at another N does not."""
    largest, smallest = (
        hpl_blas.analyse(blas_campaign(blocks=4, failed={(1, "unshaped", 1, "openblas", N)}))
        for N in (1536, 768)
    )
    assert (largest.claim.blocks, smallest.claim.blocks) == (3, 4)
    assert smallest.factors.blocks.values.tolist() == [3, 4, 4]
