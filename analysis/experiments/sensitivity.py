"""How much of the simulated efficiency is assumed: each number of the model is moved alone to either end of its range."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis import drawing, style
from analysis.derive import at_only_level, points
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import known
from analysis.attributes import testbed
from analysis.efficiency import PLATEAU, efficiency, shape
from analysis.attributes import short_names
from analysis.wording import UNKNOWN, between, counted, exact, fixed, listed

NOTHING = "none"  # the level of the factor `vary` at which every number has its own value
SIDES = ("low", "high")
FIGURES = {"sensitivity": ("hpl_sensitivity",)}
MEANINGS = {
    "rpeak": "theoretical peak",
    "bandwidth": "bandwidth",
    "latency": "latency",
    "dgemm_flop_s": "DGEMM, large matrices",
    "dgemm_k_half": "DGEMM, short inner side",
    "dgemm_mn_half": "DGEMM, short outer side",
    "dtrsm_share": "triangular solve",
    "node_byte_s": "memory, all cores",
    "core_byte_s": "memory, one core",
    "strided_s": "scattered access",
}  # what the names of the testbed's description stand for
UNITS = {
    "flop/s": (1e9, "Gflop/s"),
    "B/s": (1e6, "MB/s"),
    "s": (1e-6, "µs"),
    "1": (1, ""),
}  # of a unit of the description, another in which its numbers are plain, and what that is in the first


@dataclass(frozen=True)
class Sensitivity:
    """The campaign's dataset and all that follows from it.

    `base` is the efficiency [1] over (interconnect, nodes) with every number of the model at its value, and `changes` what
    is added to it, over (parameter, side, interconnect, nodes), when one is at the low or the high end of its range;
    `shape` and `shape_changes` are the same of the numbers of `efficiency.shape`.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    base: xr.DataArray
    changes: xr.DataArray
    shape: xr.Dataset
    shape_changes: xr.Dataset

    @property
    def nodes(self) -> list[int]:
        """The node counts, ascending."""
        return self.base.nodes.values.tolist()


def analyse(dataset: xr.Dataset) -> Sensitivity:
    """Derive the changes; raises FalloffError when there is no HPL trial or there are several blocks."""
    derived = points(dataset)
    reached = efficiency(at_only_level(derived, "block"))
    shapes = shape(reached)
    return Sensitivity(
        dataset=dataset,
        points=derived,
        base=reached.sel(vary=NOTHING, drop=True),
        changes=changes(reached),
        shape=shapes.sel(vary=NOTHING, drop=True),
        shape_changes=shapes.map(changes),
    )


def changes(values: xr.DataArray) -> xr.DataArray:
    """Differences to the value at vary = "none", with dims parameter and side in place of vary.

    Levels are named `<parameter>=low` and `<parameter>=high`; what is missing is NaN.
    """
    levels = [level for level in values.vary.values.tolist() if level != NOTHING]
    parameters = list(dict.fromkeys(level.partition("=")[0] for level in levels))
    names = np.array([[f"{parameter}={side}" for side in SIDES] for parameter in parameters])
    places = xr.DataArray(names, dims=("parameter", "side"))
    moved = values.reindex(vary=names.ravel()).sel(vary=places).drop_vars("vary")
    difference = moved - values.sel(vary=NOTHING, drop=True)
    return difference.assign_coords(parameter=parameters, side=list(SIDES)).transpose(
        "parameter", "side", ...
    )


def extent(changes: xr.DataArray) -> xr.Dataset:
    """The largest change down, `low`, and up, `high`, that any one parameter makes alone."""
    sides = ("parameter", "side")
    return xr.Dataset(
        {"low": changes.min(sides).clip(max=0), "high": changes.max(sides).clip(min=0)}
    )


def bracket(changes: xr.DataArray) -> xr.Dataset:
    """`low` and `high`: the sums of every parameter's worst change down and up.

    To first order in the changes, no choice of all parameters within their ranges goes beyond it.
    """
    return xr.Dataset(
        {
            "low": changes.min("side").clip(max=0).sum("parameter"),
            "high": changes.max("side").clip(min=0).sum("parameter"),
        }
    )


def meaning(parameter: str) -> str:
    """What a name of the testbed's description stands for; itself where it has no words yet."""
    return MEANINGS.get(parameter, parameter)


def ranked(changes: xr.DataArray) -> list[str]:
    """The parameters, that which moves most first; `changes` is over (parameter, side)."""
    swing = changes.max("side").clip(min=0) - changes.min("side").clip(max=0)
    return swing.sortby(-swing).parameter.values.tolist()


def is_assumed(described: Mapping, interconnect: str, parameter: str) -> bool:
    """Whether a parameter of the testbed's description is assumed there, as its source says."""
    entries = {**described["rates"], **described["network"][interconnect]}
    return entries[parameter]["source"].startswith("assumed")


def finding(study: Sensitivity) -> str:
    """How far a single number can move each network's fall, in plain English (Markdown)."""
    names = short_names(study.dataset)
    spans = []
    for network in study.base.interconnect.values.tolist():
        low, high = _range(study.shape.fall, study.shape_changes.fall, network, extent)
        if np.isfinite([low, high]).all():
            spans.append(f"{between((100 * low, 100 * high), 1)} points on {names[network]}")
    if not spans:
        return "How far the model's numbers can move the fall cannot be said: cases are missing."
    return f"Moving any single number of the model through its range leaves the fall at {listed(spans)}."


def tornado(study: Sensitivity) -> Figure:
    """Change of the efficiency [percentage points] on the most nodes by each number, a panel a network."""
    names, networks = short_names(study.dataset), study.base.interconnect.values
    on_most = 100 * study.changes.isel(nodes=-1)
    order = ranked(on_most.sel(interconnect=networks[0]))
    with style.styled():
        figure, panels = drawing.new_figures(1.3 + 0.27 * len(order), len(networks))
        for axes, network in zip(panels, networks):
            if axes is not panels[0]:
                axes.sharex(panels[0])
            _bars(axes, network, on_most.sel(interconnect=network, parameter=order).values)
            drawing.rows(axes, [meaning(it) if axes is panels[0] else "" for it in order])
            axes.set(title=names[network], xlabel="change [points]")
        ends = (("at the low end of its range", style.INK), ("at the high end", "white"))
        keys = [Patch(facecolor=fill, edgecolor=style.INK, label=label) for label, fill in ends]
        figure.legend(handles=keys, loc="outside lower center", ncols=2)
        return figure


def _bars(axes: Axes, network: str, changes: np.ndarray) -> None:
    """One row a parameter; `changes` has shape (parameter, side): at the low end filled, at the high open."""
    color, rows = style.look(network).color, np.arange(len(changes))
    for column, fill, place in ((0, color, -0.19), (1, "white", 0.19)):
        axes.barh(rows + place, changes[:, column], 0.36, color=fill, edgecolor=color)
    axes.axvline(0, color=style.INK, linewidth=0.8)


def figures(study: Sensitivity) -> dict[str, Exhibit]:
    """What each number of the model does to the efficiency on the most nodes."""
    return {
        "sensitivity": Exhibit(
            "sensitivity",
            tornado(study),
            f"Change of HPL's efficiency on {counted(study.nodes[-1], 'node')} when one number of the model is moved",
            Basis("simulated"),
            "Bars: change of the simulated efficiency by each number of the model, a panel for each network",
            "Changes are in percentage points. The ends of the ranges are thought possible; they are no intervals ([](#tbl:model-numbers)).",
            rests_on=FIGURES["sensitivity"],
        )
    }


def ranges_table(study: Sensitivity) -> Table:
    """Efficiencies and falls with their ranges over single changes, and over all changes at once."""
    columns = ("Network", "Quantity", "Value", "One number moved", "All moved, at worst")
    names, rows = short_names(study.dataset), []
    falls = {
        "fall": f"fall, {study.nodes[0]} to {study.nodes[-1]} nodes [points]",
        "late_fall": f"fall, {PLATEAU} to {study.nodes[-1]} nodes [points]",
    }
    for network in study.base.interconnect.values.tolist():
        for n in study.nodes:
            base, moved = study.base.sel(nodes=n), study.changes.sel(nodes=n)
            quantity = f"efficiency, {n} nodes [%]"
            rows.append((names[network], quantity, *_ranges(base, moved, network)))
        for name, quantity in falls.items():
            cells = _ranges(study.shape[name], study.shape_changes[name], network)
            rows.append((names[network], quantity, *cells))
    caption = (
        "Efficiency, and its fall in percentage points, with every number of the model at its value, and the ranges when one "
        "or all are moved. All moved adds up every number's worst change in one direction. Neither is a confidence interval."
    )
    return Table("sensitivity", columns, "llrll", rows, caption, Basis("simulated"))


def numbers_table(study: Sensitivity) -> Table:
    """Every number of the model's node and networks, with its range and source."""
    described, names = testbed(study.dataset), short_names(study.dataset)
    tables = {"a node": {"rpeak": described["rpeak"], **described["rates"]}}
    for network in study.base.interconnect.values.tolist():
        tables[names[network]] = described["network"][network]
    rows = [_number_row(of, name, table[name]) for of, table in tables.items() for name in table]
    caption = (
        'The numbers of the model. "Assumed": no source gives the number for this cluster. The ranges are thought possible; they '
        "are no intervals. With a short side of so many elements DGEMM has half of its rate; the triangular solve has that part of "
        "DGEMM's rate."
    )
    columns = ("Number", "Of", "Value", "Range", "Unit", "Source")
    return Table("model-numbers", columns, "llrlll", rows, caption)


def _number_row(of: str, name: str, entry: Mapping) -> tuple[str, ...]:
    scale, unit = UNITS.get(entry["unit"], (1, entry["unit"]))
    value, low, high = (
        exact(entry[key] / scale) if key in entry else None for key in ("value", "low", "high")
    )
    span = UNKNOWN if low is None else f"{low} to {high}"
    return meaning(name), of, value, span, unit, entry["source"]


def _range(base: xr.DataArray, moved: xr.DataArray, network: str, ends) -> tuple[float, float]:
    """A value with the ends of its changes, which `ends` gives (`extent` or `bracket`)."""
    value, apart = base.sel(interconnect=network), ends(moved.sel(interconnect=network))
    return float(value + apart.low), float(value + apart.high)


def _ranges(base: xr.DataArray, moved: xr.DataArray, network: str) -> tuple[str, str, str]:
    """Value, range of one and of all changes, times 100."""
    spans = [_range(base, moved, network, ends) for ends in (extent, bracket)]
    cells = [
        between((100 * low, 100 * high), 1) if np.isfinite([low, high]).all() else UNKNOWN
        for low, high in spans
    ]
    value = known(100 * base.sel(interconnect=network))
    return fixed(value, 1), *cells
