"""The contrasts of a campaign: which network is judged against which, from its points."""

import json
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.derive import at_only_level
from analysis.inference.over_blocks import ratios
from analysis.inference.verdict import Control, Verdict, judge_control, judge_fall
from runners.record import FalloffError


@dataclass(frozen=True)
class Contrast:
    """One network against a reference: the verdict on its fall, the negative control and the ratios.

    `primary` is the contrast that the campaign was planned for. `control` is None when the campaign has
    no point on one node. `ratios` is over (nodes): `ratio` (geometric mean), `low`, `high` (95 %), `blocks`.
    """

    network: str
    reference: str
    primary: bool
    verdict: Verdict
    control: Control | None
    ratios: xr.Dataset


def contrasts(points: xr.Dataset) -> tuple[Contrast, ...]:
    """The primary contrast first, then each of its networks against the control.

    Raises FalloffError when one of these networks was not run.
    """
    design = json.loads(points.attrs["design"])
    primary, control = tuple(design["primary"]), design["control"]
    absent = {*primary, control} - set(points.interconnect.values)
    if absent:
        raise FalloffError(
            f"Campaign {points.attrs['campaign']} compares networks of which {', '.join(sorted(absent))} was not run: "
            "run it on a testbed that has them all."
        )
    others = [(network, control) for network in primary if network != control]
    pairs = dict.fromkeys([primary, *others])
    return tuple(_contrast(points, *pair, design, pair == primary) for pair in pairs)


def log_ratios(points: xr.Dataset, level, reference, along: str = "interconnect") -> xr.DataArray:
    """log(rate_level / rate_reference) within each block, for two levels of the factor `along`.

    The dims are those of `points.rate` but `along`; NaN where one of the two is missing.
    """
    log_rate = np.log(points.rate)
    ratio = log_rate.sel({along: level}, drop=True) - log_rate.sel({along: reference}, drop=True)
    return ratio.rename("log_ratio").assign_attrs(units="1", long_name=f"log-ratio {level} / {reference}")


def differences(log_ratio: xr.DataArray, baseline_nodes: int) -> xr.DataArray:
    """D, dims (block): the log-ratio at the largest node count minus the one at `baseline_nodes`."""
    largest = int(log_ratio.nodes.max())
    return log_ratio.sel(nodes=largest, drop=True) - log_ratio.sel(nodes=baseline_nodes, drop=True)


def primary_differences(points: xr.Dataset) -> xr.DataArray:
    """D of the primary contrast, dims (block), whatever factor the design compares.

    Raises FalloffError when the design judges no fall over nodes.
    """
    design = json.loads(points.attrs["design"])
    if "baseline_nodes" not in design:
        raise FalloffError(f"Campaign {points.attrs['campaign']} judges no fall over nodes.")
    along = design.get("compared", "interconnect")
    alone = at_only_level(points, *(set(design["factors"]) - {along, "nodes"}))
    return differences(log_ratios(alone, *design["primary"], along), design["baseline_nodes"])


def _contrast(points, network, reference, design, primary):
    log_ratio = log_ratios(points, network, reference)
    fall = differences(log_ratio, design["baseline_nodes"])
    alone = log_ratio.sel(nodes=1).values if 1 in log_ratio.nodes else None
    return Contrast(
        network=network,
        reference=reference,
        primary=primary,
        verdict=judge_fall(fall.values, design["margin"], points.evidence.item()),
        control=None if alone is None else judge_control(alone, design["margin"]),
        ratios=ratios(log_ratio),
    )
