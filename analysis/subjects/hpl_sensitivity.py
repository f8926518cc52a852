"""The numbers of the simulated model: what they mean, where they are from, and what moving each
alone to either end of its range changes; and the processor time of messages, which it leaves out.
"""

from collections.abc import Mapping
from typing import Any

import xarray as xr
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.dataset.derive import over_factors
from analysis.statements import drawing, exhibit, style
from analysis.wording import UNKNOWN, exact
from runners.records.record import FalloffError

MEANINGS = {
    "rpeak": "theoretical peak",
    "bandwidth": "bandwidth",
    "latency": "latency",
    "dgemm_flop_s": "DGEMM, large matrices",
    "dgemm_k_half": "DGEMM's inner size of half its rate",
    "dgemm_mn_half": "DGEMM's outer size of half its rate",
    "dtrsm_share": "triangular solve / DGEMM",
    "node_byte_s": "memory, all cores",
    "core_byte_s": "memory, one core",
    "strided_s": "scattered access",
}  # meaning of the names in the testbed's description
BITS = 8  # of a byte
# For a unit of the description, a more readable one, and its size in the first.
UNITS = {"flop/s": (1e9, "Gflop/s"), "B/s": (1e6, "MB/s"), "s": (1e-6, "µs"), "1": (1, "")}


def require_same_model(runs: xr.Dataset, *others: xr.Dataset | None) -> None:
    """Raise FalloffError if one of the other campaigns was simulated with other rates."""
    model, same = runs.falloff.testbed, ("rates", "rpeak", "network")
    for other in filter(None, others):
        if any(getattr(model, name) != getattr(other.falloff.testbed, name) for name in same):
            raise FalloffError(
                f"Campaigns {runs.attrs['campaign']} and {other.attrs['campaign']} were simulated "
                f"with different rates of testbed {model.name}; run the older one again."
            )


def tcp_time(runs: xr.Dataset, clock: float) -> xr.DataArray:
    """The part of one core's time [1] that TCP would take of nodes with this `clock` [Hz], over
    (interconnect, nodes): a cycle for each bit that is sent or received.

    HPL receives as much as it sends. NaN where no run counted its bytes. The rule of 1 GHz for
    1 Gbit/s: A. P. Foong et al., TCP performance re-visited, ISPASS 2003, who find it to fail where
    processors are faster than their memory: then it is more.
    """
    sent = runs.payload_bytes.sum("size", min_count=1)
    laid = over_factors(runs, sent=sent, time=runs.hpl_time).mean("block")
    return 2 * BITS * laid.sent / laid.nodes / laid.time / clock


def meaning(parameter: str) -> str:
    """The meaning of a name in the testbed's description; the name itself if it has no words
    yet."""
    return MEANINGS.get(parameter, parameter)


def figure(variants: xr.DataArray, names: Mapping[str, str]) -> Figure:
    """Change of the efficiency [percentage points] on the most nodes by each number of the model,
    one panel per network.

    `variants` is the efficiency [1] over (interconnect, nodes, vary). The number with the largest
    effect on the first network is on top.
    """
    on_most = 100 * variants.isel(nodes=-1)
    changes = (on_most - on_most.sel(vary="none")).drop_sel(vary="none")
    table: Any = changes.transpose("vary", "interconnect").to_pandas()
    table.index = table.index.str.split("=", expand=True)  # the number, and the end of its range
    bars = table.unstack(sort=False)
    first = bars[table.columns[0]]
    swing = first.max(axis=1).clip(lower=0) - first.min(axis=1).clip(upper=0)
    bars = bars.loc[(-swing).sort_values(kind="stable").index]
    with style.styled():
        drawn, panels = drawing.new_figures(1.3 + 0.27 * len(bars), table.shape[1], sharex=True)
        for axes, network in zip(panels, table):
            color = style.look(network).color
            look = {"color": [color, "white"], "edgecolor": color, "width": 0.72}
            bars[network][["low", "high"]].plot.barh(ax=axes, legend=False, ylabel="", **look)
            axes.axvline(0, color=style.INK, linewidth=0.8)
            drawing.rows(axes, [meaning(name) * (axes is panels[0]) for name in bars.index])
            axes.set(title=names[network], xlabel="change [points]")
        ends = (("at the low end of its range", style.INK), ("at the high end", "white"))
        keys = [Patch(facecolor=fill, edgecolor=style.INK, label=label) for label, fill in ends]
        drawn.legend(handles=keys, loc="outside lower center", ncols=2)
    return drawn


def numbers_table(dataset: xr.Dataset) -> exhibit.Table:
    """Every number of the model's node and networks, with its range and source."""
    described, names = dataset.falloff.testbed, dataset.falloff.names
    tables = {"a node": {"rpeak": described.rpeak, **described.rates}}
    tables |= {
        names[network]: described.network[network]
        for network in dataset.falloff.design.factors["interconnect"]
    }
    rows = []
    for owner, entries in tables.items():
        for name, entry in entries.items():
            scale, unit = UNITS.get(entry["unit"], (1, entry["unit"]))
            ends = [exact(entry[side] / scale) for side in ("low", "high") if side in entry]
            span, value = " to ".join(ends) or UNKNOWN, exact(entry["value"] / scale)
            rows.append((meaning(name), owner, value, span, unit, entry["source"]))
    caption = (
        'The numbers of the model. "Assumed": no source gives the number for this cluster. '
        "The ranges are thought possible; they are no intervals."
    )
    columns = ("Number", "Of", "Value", "Range", "Unit", "Source")
    return exhibit.Table("model-numbers", columns, "llrlll", rows, caption)
