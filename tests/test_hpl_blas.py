"""HPL with two BLAS libraries: the planted factor comes back, and a claim needs its bound."""

import numpy as np
import pytest
from executed import executed, words
from shown import failed
from synthetic_studies import blas_campaign


@pytest.mark.parametrize(
    ("factor", "doubled", "halved"),
    [
        (5.0, "yes", "falls off"),
        (2.0, "undecided", "falls, size open"),
        (1.7, "no", "flat"),
    ],
)
def test_the_claim_is_judged_by_its_bound(factor, doubled, halved):
    """The factor is the planted one whatever a block's own speed, and beyond two, or below, only
    with confidence.
    """
    data = blas_campaign(blocks=6, factor=factor, noise=0.01, block_effect=0.2)
    made = executed("43", hpl_blas=data)
    np.testing.assert_allclose(made.names["factors"].ratio, factor, rtol=0.03)
    half, twice = made.statements
    assert (half.words, twice.words) == (halved, doubled) and twice.primary and twice.n == 6
    assert twice.interval[0] < factor < twice.interval[1] and words(made)


def test_the_claim_is_about_the_largest_matrix():
    """A run lost at the largest N costs the claim a block; one at another N does not."""
    largest, smallest = (
        executed("43", hpl_blas=blas_campaign(blocks=4, failed={(1, "unshaped", 1, "openblas", N)}))
        for N in (1536, 768)
    )
    assert [made.statements[1].n for made in (largest, smallest)] == [3, 4]
    assert smallest.names["factors"].blocks.values.tolist() == [3, 4, 4]


def test_without_a_reading_nothing_is_said_in_numbers():
    """All trials failed: the claim is open."""
    made = executed("43", hpl_blas=failed(blas_campaign(blocks=2), "no library"))
    assert {(one.estimate, one.answer) for one in made.statements} == {(None, "undecided")}
    assert words(made)
