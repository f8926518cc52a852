"""The cost of a byte over the MTU: its parts and its bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from analysis.fitting.block_fit import fit_blocks
from analysis.models import find
from analysis.wire import tcp_payload

COST = find("cpu_cost")
PAYLOADS = tcp_payload(np.array([576.0, 1500, 3000, 6000, 9000]))
PER_BYTE, PER_PACKET = 0.3e-9, 2e-6  # s/B and s, of the size that this kind of machine has


def costs(blocks, noise=0.03, seed=0):
    """Blocks of CPU-seconds per byte over PAYLOADS, with noise on the log scale."""
    errors = np.random.default_rng(seed).normal(0, noise, (blocks, len(PAYLOADS)))
    return COST.function(PAYLOADS, PER_BYTE, PER_PACKET) * np.exp(errors)


def test_blocks_give_both_parts_with_intervals():
    """Seconds of a billionth, where absolute thresholds of a solver would bite."""
    found = fit_blocks(COST, PAYLOADS, costs(8))
    for name, truth in {"per_byte": PER_BYTE, "per_packet": PER_PACKET}.items():
        low, high = found.intervals[name]
        assert low < truth < high and high - low < 0.5 * truth


@given(st.lists(st.floats(-5, 5), min_size=5, max_size=5))
def test_the_guess_is_the_non_negative_solution(y):
    """It has the sum of squares of scipy's non-negative least squares, whatever the data."""
    y = np.array(y)
    columns = np.column_stack([np.ones(5), 1000 / PAYLOADS])
    _, norm = optimize.nnls(columns, y)
    found = {name: value[0] for name, value in COST.guess(PAYLOADS, y[None]).items()}
    assert np.linalg.norm(y - COST.function(PAYLOADS, **found)) == pytest.approx(
        norm, rel=1e-7, abs=1e-9
    )
