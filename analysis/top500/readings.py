"""What a sentence on a set of systems may mean: every reading of "average", "share" and "consistently"."""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

Readings = Mapping[str, float]

# Those who may "consistently exceed" an efficiency, and the columns that tell one from another.
OWNERS = {
    "vendors": ["manufacturer"],
    "sites": ["site"],
    "pairs of vendor and site": ["manufacturer", "site"],
}


def averages(systems: pd.DataFrame) -> Readings:
    """The average efficiency [1] of systems with rmax, rpeak and efficiency known, in each sense; none of no system."""
    if systems.empty:
        return {}
    efficiency, rmax, cores = systems.efficiency, systems.rmax, systems.cores
    by_cores = (efficiency * cores).sum() / cores.sum() if cores.notna().all() else math.nan
    return {
        "mean of the ratios": efficiency.mean(),
        "ratio of the sums": rmax.sum() / systems.rpeak.sum(),
        "median": efficiency.median(),
        "geometric mean": math.exp(np.log(efficiency).mean()),
        "harmonic mean": 1 / (1 / efficiency).mean(),
        "mean weighted by Rmax": (efficiency * rmax).sum() / rmax.sum(),
        "mean weighted by cores": by_cores,
    }


def best_ranked(systems: pd.DataFrame, column: str) -> Readings:
    """The best-ranked system's value in a column, by its rank."""
    return _by_rank(systems[systems["rank"] == systems["rank"].min()], column)


def most_efficient(systems: pd.DataFrame, column: str) -> Readings:
    """The same of the systems with the highest efficiency."""
    return _by_rank(systems[systems.efficiency == systems.efficiency.max()], column)


def least_efficient(systems: pd.DataFrame, column: str) -> Readings:
    """The same of the systems with the lowest efficiency."""
    return _by_rank(systems[systems.efficiency == systems.efficiency.min()], column)


def shares(systems: pd.DataFrame, everything: pd.DataFrame) -> Readings:
    """What part [1] of a list is of some of its systems: of their number, of Rmax and of Rpeak."""
    return {
        "share of systems": len(systems) / len(everything),
        "share of Rmax": systems.rmax.sum() / everything.rmax.sum(),
        "share of Rpeak": systems.rpeak.sum() / everything.rpeak.sum(),
    }


def consistent(systems: pd.DataFrame, threshold: float) -> Readings:
    """How many vendors, sites, or pairs of them have no system at or below an efficiency [1].

    All of them, and those with several systems, since one system is not consistent in much.
    """
    readings = {}
    for name, columns in OWNERS.items():
        owned = owners(systems, columns, threshold)
        above = owned[owned.lowest > threshold]
        readings[name] = float(len(above))
        readings[f"{name} with several systems"] = float((above.systems > 1).sum())
    return readings


def owners(systems: pd.DataFrame, columns: list[str], threshold: float) -> pd.DataFrame:
    """A row for each owner: `columns`, its systems, their lowest, median and highest efficiency, and the `above` ones."""
    by_owner = systems.assign(beyond=systems.efficiency > threshold).groupby(columns)
    found = by_owner.agg(
        systems=("efficiency", "size"),
        lowest=("efficiency", "min"),
        median=("efficiency", "median"),
        highest=("efficiency", "max"),
        above=("beyond", "sum"),
    ).reset_index()
    return found.sort_values(["lowest", *columns], ascending=[False, *[True] * len(columns)])


def agreeing(readings: Readings, printed: float, rounding: float) -> tuple[str, ...]:
    """The readings that are the printed number to its last digit, of which `rounding` is the unit."""
    slack = 0.5 * rounding * (1 + 1e-9)  # half a unit is in floating point at times a hair more
    return tuple(name for name, value in readings.items() if abs(value - printed) <= slack)


def _by_rank(systems: pd.DataFrame, column: str) -> Readings:
    ranked = zip(systems["rank"], systems[column])
    return {f"rank {rank}": float(value) for rank, value in ranked}
