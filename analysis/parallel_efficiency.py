"""Where the time of an MPI program goes: the factors of its parallel efficiency, by POP's names.

Source of the factors: POP Standard Metrics for Parallel Performance Analysis (Performance Optimisation and Productivity, a
centre of excellence). Serialisation and transfer are told apart by a run on a network without cost, after C. Rosas,
J. Gimenez, J. Labarta, Scalability prediction for fundamental performance factors, 2014.
"""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from analysis.what_if import IDEAL
from analysis.wording import number, percent

# In the order in which they are lost, with the words of tables.
FACTORS = {
    "load_balance": "Load balance [%]",
    "serialisation": "Serialisation [%]",
    "transfer": "Transfer [%]",
    "parallel": "Parallel efficiency [%]",
}
# What the time is spent on, with the colours of figures.
SHARES = {
    "computing": "#009E73",
    "imbalance": "#E69F00",
    "serialisation": "#CC79A7",
    "transfer": "#0072B2",
}


def factors(time: xr.DataArray, mean: xr.DataArray, most: xr.DataArray) -> xr.Dataset:
    """The factors [1] and their product `parallel`, over the dims of `time` (..., interconnect, nodes) without `IDEAL`.

    `time` is the program's [s], `mean` and `most` what its ranks compute [s], the mean of them and the most; `IDEAL` is the
    network without cost. `parallel` is mean / time, `load_balance` mean / most, `serialisation` most over the time without a
    network, `transfer` that over the time with it. Ranks are taken to compute as long on each network as on `IDEAL`.
    """
    ideal = time.sel(interconnect=IDEAL, drop=True)
    mean, most = (each.sel(interconnect=IDEAL, drop=True) for each in (mean, most))
    real = time.drop_sel(interconnect=IDEAL)
    found = {
        "load_balance": xr.ones_like(real) * (mean / most),
        "serialisation": xr.ones_like(real) * (most / ideal),
        "transfer": ideal / real,
        "parallel": mean / real,
    }
    return xr.Dataset({name: each.transpose(*time.dims) for name, each in found.items()})


def shares(factors: xr.Dataset) -> xr.Dataset:
    """The shares of the time [1] that are spent on each of SHARES, over the dims of the factors; they add up to 1."""
    lost, left = {"transfer": 1 - factors.transfer}, factors.transfer
    lost["serialisation"] = left * (1 - factors.serialisation)
    left = left * factors.serialisation
    lost["imbalance"] = left * (1 - factors.load_balance)
    lost["computing"] = left * factors.load_balance
    return xr.Dataset({name: lost[name] for name in SHARES})


def in_percent(factors: xr.Dataset) -> list[str]:
    """The factors at one place, as a table's cells; empty cells where they are unknown."""
    values = [100 * factors[name].item() for name in FACTORS]
    return [number(value) if np.isfinite(value) else "" for value in values]


def in_words(shares: xr.Dataset) -> str:
    """What the time at one place is spent on, as "5 % transfer, 2 % serialisation, 10 % imbalance"."""
    lost = ("transfer", "serialisation", "imbalance")
    return ", ".join(f"{percent(shares[name].item())} {name}" for name in lost)


def draw(axes: Axes, shares: xr.Dataset, names: Mapping[str, str]) -> None:
    """Stack the shares [%] over nodes: a group of bars for each level of the other dim, with its name above.

    `shares` is over (interconnect, nodes) or (program, nodes); `names` are the short names of networks.
    """
    (grouped,) = (dim for dim in shares.dims if dim != "nodes")
    nodes = shares.nodes.values.tolist()
    gap, groups = len(nodes) + 0.8, shares[grouped].values.tolist()
    starts = gap * np.arange(len(groups))
    places = np.arange(len(nodes))
    for start, group in zip(starts, groups):
        below = np.zeros(len(nodes))
        for name, color in SHARES.items():
            height = np.nan_to_num(100 * shares[name].sel({grouped: group}).values)
            label = name if group == groups[0] else None
            axes.bar(start + places, height, 0.85, below, color=color, label=label, linewidth=0)
            below = below + height
    axes.set_xticks(np.add.outer(starts, places).ravel(), [*map(str, nodes)] * len(groups))
    above = axes.secondary_xaxis("top")
    above.set_xticks(starts + places.mean(), [names.get(group, group) for group in groups])
    above.tick_params(length=0)
    above.spines["top"].set_visible(False)
    axes.set_ylim(0, 100)
    axes.grid(axis="x", visible=False)
