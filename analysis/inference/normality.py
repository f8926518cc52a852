"""Whether the values that t intervals take for normal look it: Shapiro and Wilk's test at every point."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analysis.inference.averages import Kind, on_scale

LEVEL = 0.05
FEWEST = 3  # values, which the test needs
SAME = 1e-9  # values that differ by no larger part have no distribution


@dataclass(frozen=True)
class Normality:
    """The test of all points of a quantity: how many were `tested`, from `least_blocks` to `most_blocks` values each,
    how many have p below LEVEL (`below`; LEVEL of them would, were all normal), and the least p after Holm's
    correction (`p_holm`, NaN without a test). `departs` is whether that is below LEVEL.
    """

    tested: int
    least_blocks: int
    most_blocks: int
    below: int
    p_holm: float

    @property
    def departs(self) -> bool:
        return self.p_holm < LEVEL


def check(values: xr.DataArray, kind: Kind) -> Normality:
    """Test the values over (block, ...) at every point, on the scale on which those of the kind are averaged.

    Of few blocks the test sees strong departures only (S. S. Shapiro and M. B. Wilk, Biometrika 52, 1965, 591-611).
    """
    table = on_scale(values, kind).transpose("block", ...).values.reshape(values.sizes["block"], -1)
    columns = [column[np.isfinite(column)] for column in table.T]
    tested = [it for it in columns if len(it) >= FEWEST and np.ptp(it) > SAME * np.abs(it).max()]
    if not tested:
        return Normality(0, 0, 0, 0, np.nan)
    p = np.array([stats.shapiro(column).pvalue for column in tested])
    counts = [len(column) for column in tested]
    least = float(multipletests(p, method="holm")[1].min())
    return Normality(len(tested), min(counts), max(counts), int((p < LEVEL).sum()), least)
