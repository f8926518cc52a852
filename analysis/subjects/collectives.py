"""Collective operations, figures of merit and programs over the processes that take part."""

import pandas as pd
import xarray as xr

from analysis.dataset import points
from analysis.imports.dataset_sections import COLLECTIVES, NOTEBOOKS

_COUNTS = ("nodes", "processes", "ranks_per_node")


def values(dataset: xr.Dataset) -> pd.DataFrame:
    """Every time and rate as `points.by_series`, over the `count` of nodes, or of processes where
    the nodes do not differ: the attribute `count` says which."""
    trials = points.readings(dataset, NOTEBOOKS[COLLECTIVES]).trial.unique()
    settings = points.of_trials(dataset.isel(trial=trials))
    count = "nodes" if "nodes" in points.varying(settings) else "processes"
    counts = {trial: levels.get(count) for trial, levels in zip(trials, settings)}
    # What says no more than the count does
    alongside = [
        name
        for name in _COUNTS
        if len({(levels.get(count), levels.get(name)) for levels in settings})
        == len({*counts.values()})
    ]
    table = points.by_series(dataset, NOTEBOOKS[COLLECTIVES], but=alongside)
    table["count"] = table.trial.map(counts).astype(float)
    table.attrs["count"] = count
    return table
