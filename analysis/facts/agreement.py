"""What prose may quote of emulated points beside simulated ones: shares, errors and falls are fractions."""

import json

import numpy as np
import xarray as xr

from analysis.facts.common import common
from analysis.facts.plain import known, pair
from analysis.studies.agreement import EMULATED_GRID, PUBLISHED_GRID, TwinAgreement
from analysis.studies.scaling import short_names


def collect(study: TwinAgreement) -> dict:
    """All facts of the comparison, with those of the simulated campaign; what is not known is None."""
    dataset, names = study.emulated.dataset, short_names(study.emulated.dataset)
    verdict = study.contrast.verdict
    shares = study.shares
    points = [
        {"network": names[name], "nodes": int(n), "N": _order(study, n), **_compared(shares, name, nodes=n)}
        for name in shares.interconnect.values
        for n in shares.nodes.values
    ]
    return {
        **common(study.emulated.dataset, study.emulated.points),
        "simulated_evidence": study.simulated.evidence.item(),
        "pair": f"{names[study.contrast.network]} / {names[study.contrast.reference]}",
        "depth": study.depth,
        "cpu_share": json.loads(dataset.attrs["testbed_settings"]).get("cpu", {}).get("share"),
        "points": points,
        "summary": _summary(points),
        "ratios": [{"nodes": int(n), **_compared(study.ratios, nodes=n)} for n in study.ratios.nodes.values],
        "phases": _phases(study),
        "baseline_nodes": study.baseline_nodes,
        "most_nodes": int(study.simulated.nodes.max()),
        "emulated_fall": verdict.fall,
        "emulated_fall_interval": verdict.interval_95,
        "fall_inside": _inside(
            known(study.falls.sel(DEPTH=study.depth, grid=EMULATED_GRID)), verdict.interval_95
        ),
        "falls": [_fall(study, depth) for depth in study.falls.DEPTH.values],
        "size": None if study.sizes is None else _size(study),
    }


def _order(study: TwinAgreement, nodes: int) -> int | None:
    order = known(study.emulated.points.N.sel(nodes=nodes).max())
    return None if order is None else int(order)


def _compared(table: xr.Dataset, interconnect: str | None = None, **level) -> dict:
    """One row of a comparison; `inside` says whether the emulated interval holds the simulated value."""
    at = table.sel(level if interconnect is None else {"interconnect": interconnect, **level})
    error_interval = pair(at.error_low, at.error_high)
    return {
        "emulated": known(at.emulated),
        "interval": pair(at.low, at.high),
        "blocks": int(at.blocks),
        "simulated": known(at.simulated),
        "error": known(at.error),
        "error_interval": error_interval,
        "inside": _inside(0, error_interval),
    }


def _inside(value: float | None, interval: tuple[float, float] | None) -> bool | None:
    return None if value is None or interval is None else interval[0] <= value <= interval[1]


def _summary(points: list[dict]) -> dict:
    """Over the points that have both values: the errors' range and median size, and how many lie inside."""
    errors = [point["error"] for point in points if point["error"] is not None]
    judged = [point["inside"] for point in points if point["inside"] is not None]
    return {
        "points": len(errors),
        "judged": len(judged),
        "inside": sum(judged),
        "median_size": float(np.median(np.abs(errors))) if errors else None,
        "range": (min(errors), max(errors)) if errors else None,
    }


def _phases(study: TwinAgreement) -> list[dict]:
    """Where HPL's time goes on the fewest and the most nodes of the contrast's first network, in s; empty
    where no timer was printed."""
    table = study.phases.sel(interconnect=study.contrast.network)
    return [
        {
            "nodes": int(n),
            "network": short_names(study.emulated.dataset)[study.contrast.network],
            "phases": [{"phase": phase, **_compared(table, nodes=n, phase=phase)} for phase in table.phase.values],
        }
        for n in (table.nodes.values.min(), table.nodes.values.max())
        if table.sel(nodes=n).emulated.notnull().all()
    ]


def _fall(study: TwinAgreement, depth: int) -> dict:
    """The simulated falls at one look-ahead, and what part of the one on 1 x Q grids is the grid's."""
    row, published = (
        known(study.falls.sel(DEPTH=depth, grid=grid)) for grid in (EMULATED_GRID, PUBLISHED_GRID)
    )
    grids = None if row is None or published is None else row - published
    return {
        "depth": int(depth),
        "as_emulated": int(depth) == study.depth,
        "row": row,
        "table1": published,
        "grids": grids,
        "grids_part": grids / row if grids is not None and row > 0 else None,
    }


def _size(study: TwinAgreement) -> dict:
    names, sizes = short_names(study.emulated_size.dataset), study.sizes
    rows = [
        {"network": names[name], "N": int(N), **_compared(sizes, name, N=N)}
        for N in sizes.N.values
        for name in sizes.interconnect.values
    ]
    return {
        "nodes": study.emulated_size.nodes,
        "networks": [names[name] for name in sizes.interconnect.values],
        "points": rows,
        "summary": _summary(rows),
    }
