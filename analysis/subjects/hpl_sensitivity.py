"""How much of the simulated efficiency depends on assumptions: each number of the model is moved
alone to either end of its range."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis import drawing, exhibit, style
from analysis.attributes import names_in_text, testbed
from analysis.claims.quantities import quantity
from analysis.derive import at_only_level, points
from analysis.efficiency import efficiency, shape
from analysis.statements import Statement
from analysis.wording import UNKNOWN, between, exact, fixed, listed
from runners.record import FalloffError

NOTHING = "none"  # the level of the factor `vary` at which every number has its own value
SIDES = ("low", "high")
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
# For a unit of the description, a more readable one, and its size in the first.
UNITS = {"flop/s": (1e9, "Gflop/s"), "B/s": (1e6, "MB/s"), "s": (1e-6, "µs"), "1": (1, "")}


@dataclass(frozen=True)
class Sensitivity:
    """The campaign's dataset and all results.

    `base` is the efficiency [1] over (interconnect, nodes) with every number of the model at its
    value. `changes` is the change of it, over (parameter, side, interconnect, nodes), with one
    number at the low or the high end of its range. `fall` and `fall_changes` are the same for the
    fall from the fewest to the most nodes.
    """

    dataset: xr.Dataset
    base: xr.DataArray
    changes: xr.DataArray
    fall: xr.DataArray
    fall_changes: xr.DataArray


def analyse(dataset: xr.Dataset) -> Sensitivity:
    """Derive the changes; raises FalloffError if there is no HPL trial or there are several
    blocks."""
    reached = efficiency(at_only_level(points(dataset), "block"))
    fall = shape(reached).fall
    return Sensitivity(
        dataset=dataset,
        base=reached.sel(vary=NOTHING, drop=True),
        changes=_changes(reached),
        fall=fall.sel(vary=NOTHING, drop=True),
        fall_changes=_changes(fall),
    )


def _changes(values: xr.DataArray) -> xr.DataArray:
    """Differences to the value at vary = "none", with dims parameter and side instead of vary.

    Levels are named `<parameter>=low` and `<parameter>=high`; missing ones are NaN.
    """
    levels = [level for level in values.vary.values.tolist() if level != NOTHING]
    parameters = list(dict.fromkeys(level.partition("=")[0] for level in levels))
    names = np.array([[f"{parameter}={side}" for side in SIDES] for parameter in parameters])
    places = xr.DataArray(names, {"parameter": parameters, "side": list(SIDES)})
    moved = values.reindex(vary=names.ravel()).sel(vary=places).drop_vars("vary")
    difference = moved - values.sel(vary=NOTHING, drop=True)
    return difference.transpose("parameter", "side", ...)


def elasticity(study: Sensitivity, parameter: str, worse: str, better: str) -> xr.DataArray:
    """The change of log(HPL's rate) over the change of log(parameter), from one end of the
    parameter's range to the other.

    The parameter is one of a network's; over (interconnect, nodes), NaN if an end was not
    simulated.
    """
    described = testbed(study.dataset)["network"]
    ranges = [described[name][parameter] for name in study.base.interconnect.values]
    widths = [np.log(entry["high"] / entry["low"]) for entry in ranges]
    moved = np.log(study.base + study.changes.reindex(parameter=[parameter])[0])
    gained = moved.sel(side=better, drop=True) - moved.sel(side=worse, drop=True)
    return gained / xr.DataArray(widths, dims="interconnect")


def variants(study: Sensitivity) -> xr.DataArray:
    """The efficiency as it is modelled, and with each number of the model at either end of its range, over (variant,
    interconnect, nodes)."""
    moved = (study.base + study.changes).stack(variant=("parameter", "side"))
    moved = moved.drop_vars(("variant", "parameter", "side"))
    both = [study.base.expand_dims("variant"), moved]
    return xr.concat(both, "variant", coords="minimal", compat="override")


def elasticities(study: Sensitivity) -> list[Statement]:
    """-d ln rate / d ln latency in every case, and by how much d ln rate / d ln bandwidth is larger, as quantities."""
    latency = elasticity(study, "latency", worse="high", better="low")
    bandwidth = elasticity(study, "bandwidth", worse="low", better="high")
    text = f"{latency.nodes.size} node counts on {latency.interconnect.size} networks"
    about = {"n_of": "case", "is_ratio": False}
    return [
        quantity(
            study.dataset, "latency", f"elasticity of the rate to latency, {text}", latency, **about
        ),
        quantity(
            study.dataset,
            "bandwidth_over_latency",
            f"elasticity to bandwidth less that to latency, {text}",
            bandwidth - latency,
            **about,
        ),
    ]


def meaning(parameter: str) -> str:
    """The meaning of a name in the testbed's description; the name itself if it has no words
    yet."""
    return MEANINGS.get(parameter, parameter)


def require_same_model(dataset: xr.Dataset, varied: xr.Dataset) -> None:
    """Raise FalloffError unless both campaigns were simulated with the same numbers of a node and of the networks."""
    one, other = testbed(dataset), testbed(varied)
    if any(one[table] != other[table] for table in ("rates", "rpeak", "network")):
        raise FalloffError(
            f"Campaigns {dataset.attrs['campaign']} and {varied.attrs['campaign']} were simulated with "
            f"different rates of testbed {one['name']}; run the older one again."
        )


def reach(study: Sensitivity) -> str:
    """How far the model's numbers can move each network's fall, in a sentence or two."""
    names, falls = names_in_text(study.dataset), []
    known = (study.fall + study.fall_changes.min(["parameter", "side"])).dropna("interconnect")
    for network in known.interconnect.values.tolist():
        fall, changes = (
            100 * values.sel(interconnect=network) for values in (study.fall, study.fall_changes)
        )
        # To first order, no combination of numbers within their ranges exceeds the sum of the worst changes.
        down, up = changes.min("side").clip(max=0), changes.max("side").clip(min=0)
        single, all_ = (
            between([float(fall + end) for end in ends], 1)
            for ends in ((down.min(), up.max()), (down.sum(), up.sum()))
        )
        falls.append(f"by {fixed(float(fall), 1)} points on {names[network]} ({single}; {all_})")
    if not falls:
        return "How far the model's numbers can move the fall cannot be said: cases are missing."
    return (
        f"In the model the efficiency falls {listed(falls)}. In parentheses is how far that goes if any single number of the model is "
        "moved, and if all are, at worst."
    )


def figure(study: Sensitivity) -> Figure:
    """Change of the efficiency [percentage points] on the most nodes by each number of the model, one panel per
    network.

    The number with the largest effect on the first network is on top.
    """
    names, networks = names_in_text(study.dataset), study.base.interconnect.values
    on_most = 100 * study.changes.isel(nodes=-1)
    first = on_most.isel(interconnect=0)
    swing = first.max("side").clip(min=0) - first.min("side").clip(max=0)
    on_most = on_most.sortby(-swing)
    rows = np.arange(on_most.sizes["parameter"])
    with style.styled():
        height = 1.3 + 0.27 * len(rows)
        drawn, panels = drawing.new_figures(height, len(networks), sharex=True)
        for axes, network in zip(panels, networks):
            color, changes = style.look(network).color, on_most.sel(interconnect=network)
            for side, fill, place in (("low", color, -0.19), ("high", "white", 0.19)):
                widths = changes.sel(side=side).values
                axes.barh(rows + place, widths, 0.36, color=fill, edgecolor=color)
            axes.axvline(0, color=style.INK, linewidth=0.8)
            labels = map(meaning, changes.parameter.values.tolist())
            drawing.rows(axes, list(labels) if axes is panels[0] else [""] * len(rows))
            axes.set(title=names[network], xlabel="change [points]")
        ends = (("at the low end of its range", style.INK), ("at the high end", "white"))
        keys = [Patch(facecolor=fill, edgecolor=style.INK, label=label) for label, fill in ends]
        drawn.legend(handles=keys, loc="outside lower center", ncols=2)
    return drawn


def numbers_table(study: Sensitivity) -> exhibit.Table:
    """Every number of the model's node and networks, with its range and source."""
    described, names = testbed(study.dataset), names_in_text(study.dataset)
    tables = {"a node": {"rpeak": described["rpeak"], **described["rates"]}}
    for network in study.base.interconnect.values.tolist():
        tables[names[network]] = described["network"][network]
    rows = []
    for owner, entries in tables.items():
        for name, entry in entries.items():
            scale, unit = UNITS.get(entry["unit"], (1, entry["unit"]))
            ends = [exact(entry[side] / scale) for side in SIDES if side in entry]
            span, value = " to ".join(ends) or UNKNOWN, exact(entry["value"] / scale)
            rows.append((meaning(name), owner, value, span, unit, entry["source"]))
    caption = (
        'The numbers of the model. "Assumed": no source gives the number for this cluster. The ranges are thought possible; they '
        "are no intervals."
    )
    columns = ("Number", "Of", "Value", "Range", "Unit", "Source")
    return exhibit.Table("model-numbers", columns, "llrlll", rows, caption)
