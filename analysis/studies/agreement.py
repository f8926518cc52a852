"""What the model makes of the emulated campaigns, beside what was emulated, in one place."""

import json
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.contrasts import Contrast, differences, log_ratios
from analysis.derive import at_only_level, points
from analysis.inference.over_blocks import ratios, summary
from analysis.studies.phases import phases
from analysis.studies.scaling import Scaling
from analysis.studies.size import Size

EMULATED_GRID = "row"  # the level of the factor `grid` that the emulated points were run on: 1 x Q
PUBLISHED_GRID = "table1"  # the level whose grids are those of the paper's Table 1


@dataclass(frozen=True)
class TwinAgreement:
    """An emulated scaling campaign and its simulated twin, a deterministic model of the same nodes.

    `simulated` holds the twin's points over (interconnect, nodes, grid, DEPTH). `shares`, over
    (interconnect, nodes), compares the shares of DGEMM on the emulated grids and at the emulated look-ahead,
    `ratios`, over (nodes), the ratios of the rates of `contrast`, the primary one, and `sizes`, over
    (interconnect, N), the shares on the same nodes over the order of the matrix (None without those
    campaigns); `phases`, over (interconnect, nodes, phase), compares where HPL's time goes [s]. Each is as
    `compared` returns it. `falls` is the simulated fall of the contrast from
    `baseline_nodes` to the most nodes, over (grid, DEPTH), of which `depth` is the emulated one.
    """

    emulated: Scaling
    simulated: xr.Dataset
    depth: int
    baseline_nodes: int
    contrast: Contrast
    shares: xr.Dataset
    ratios: xr.Dataset
    phases: xr.Dataset
    falls: xr.DataArray
    emulated_size: Size | None
    sizes: xr.Dataset | None


def analyse(
    emulated: Scaling,
    simulated: xr.Dataset,
    emulated_size: Size | None = None,
    simulated_size: xr.Dataset | None = None,
) -> TwinAgreement:
    """Compare the studies of the emulated campaigns with the datasets of their simulated twins.

    Raises FalloffError when a simulated dataset holds no HPL trial or several blocks.
    """
    derived = points(simulated)
    twin = at_only_level(derived, "block")
    depth = json.loads(emulated.dataset.attrs["settings"])["DEPTH"]
    baseline = json.loads(emulated.dataset.attrs["design"])["baseline_nodes"]
    contrast = emulated.contrasts[0]
    log_ratio = log_ratios(twin, contrast.network, contrast.reference)
    as_emulated = {"grid": EMULATED_GRID, "DEPTH": depth}
    sizes = None
    if emulated_size is not None and simulated_size is not None:
        twin_size = at_only_level(points(simulated_size), "block", "nodes")
        sizes = compared(emulated_size.shares.rename(ratio="emulated"), twin_size.share)
    return TwinAgreement(
        emulated=emulated,
        simulated=twin,
        depth=depth,
        baseline_nodes=baseline,
        contrast=contrast,
        shares=compared(
            ratios(np.log(emulated.points.share)).rename(ratio="emulated"), twin.share.sel(as_emulated, drop=True)
        ),
        ratios=compared(
            contrast.ratios.rename(ratio="emulated"), np.exp(log_ratio.sel(as_emulated, drop=True))
        ),
        phases=compared(
            summary(phases(emulated.dataset, emulated.points)).rename(mean="emulated"),
            phases(simulated, derived).squeeze("block").sel(as_emulated, drop=True),
        ),
        falls=-np.expm1(differences(log_ratio, baseline)).rename("fall"),
        emulated_size=emulated_size,
        sizes=sizes,
    )


def compared(emulated: xr.Dataset, simulated: xr.DataArray) -> xr.Dataset:
    """The simulated values beside the emulated estimates, over the dims of the latter.

    `emulated` holds `emulated`, its 95 % interval `low`, `high` over the blocks, and `blocks`. The result
    adds `simulated`, the relative `error` simulated / emulated - 1 and its interval `error_low`,
    `error_high`, the latter NaN where the emulated interval reaches 0. The simulated value has no scatter, so
    that the error's interval holds 0 exactly where the emulated one holds the simulated value.
    """
    here = simulated.reset_coords(drop=True).reindex_like(emulated.emulated)
    return emulated.assign(
        simulated=here,
        error=here / emulated.emulated - 1,
        error_low=here / emulated.high - 1,
        error_high=here / emulated.low.where(emulated.low > 0) - 1,
    )
