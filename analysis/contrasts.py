"""The contrasts of a campaign: which network is judged against which, from its points."""

import json
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.intervals import t_interval
from analysis.verdict import Control, Verdict, judge_control, judge_fall


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
    """The primary contrast first, then each of its networks against the unshaped control."""
    design = json.loads(points.attrs["design"])
    primary = tuple(design["primary"])
    others = [(network, design["control"]) for network in primary if network != design["control"]]
    return tuple(_contrast(points, *pair, design, pair == primary) for pair in [primary, *others])


def log_ratios(points: xr.Dataset, network: str, reference: str) -> xr.DataArray:
    """log(rate_network / rate_reference) within each block, dims (block, nodes); NaN where one is missing."""
    rate = points.rate
    ratio = np.log(rate.sel(interconnect=network, drop=True) / rate.sel(interconnect=reference, drop=True))
    return ratio.rename("log_ratio").assign_attrs(units="1", long_name=f"log-ratio {network} / {reference}")


def differences(log_ratio: xr.DataArray, baseline_nodes: int) -> xr.DataArray:
    """D, dims (block): the log-ratio at the largest node count minus the one at `baseline_nodes`."""
    largest = int(log_ratio.nodes.max())
    return log_ratio.sel(nodes=largest, drop=True) - log_ratio.sel(nodes=baseline_nodes, drop=True)


def ratios(log_ratio: xr.DataArray) -> xr.Dataset:
    """Geometric-mean ratio and its 95 % t interval over the valid blocks at each n, dims (nodes)."""
    rows = []
    for n in log_ratio.nodes.values:
        values = log_ratio.sel(nodes=n).dropna("block").values
        mean, _, low, high = t_interval(values) if len(values) else [np.nan] * 4
        rows.append((np.exp(mean), np.exp(low), np.exp(high), len(values)))
    ratio, low, high, blocks = map(np.array, zip(*rows))
    columns = {"ratio": ratio, "low": low, "high": high, "blocks": blocks}
    return xr.Dataset(
        {name: ("nodes", values) for name, values in columns.items()}, {"nodes": log_ratio.nodes}
    )


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
