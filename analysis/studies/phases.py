"""Where HPL's time goes, by its own timers."""

import numpy as np
import xarray as xr

from analysis.derive import over_factors

# Of the process that spent most in it; `update` is what remains of the update without its row swaps.
PHASES = ("factorisation", "update", "row swap", "solution")


def phases(dataset: xr.Dataset, points: xr.Dataset) -> xr.DataArray:
    """The time [s] of each phase of an HPL campaign's runs, over (block, *factors, phase).

    `points` is from `derive.points`: where its rate is NaN, and where HPL printed no timers, so is the time.
    Raises FalloffError when there is no HPL trial.
    """
    timers = ("hpl_rfact_time", "hpl_update_time", "hpl_laswp_time", "hpl_ptrsv_time")
    found = over_factors(dataset, **{name: dataset[name] for name in timers})
    times = [
        found.hpl_rfact_time,
        found.hpl_update_time - found.hpl_laswp_time,
        found.hpl_laswp_time,
        found.hpl_ptrsv_time,
    ]
    table = xr.concat(times, xr.IndexVariable("phase", np.array(PHASES))).rename("phase_time")
    return table.where(points.rate.notnull()).transpose(..., "phase")
