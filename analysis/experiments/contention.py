"""How much contention would make Gigabit Ethernet fall lower than the contention-free model does.

A shared backplane is a way to come to a lower efficiency, not a claim that it was so: the paper prints no value of that
network.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.interpolate import PchipInterpolator

from analysis import drawing, style
from analysis.attributes import short_names, testbed
from analysis.derive import at_only_level, points
from analysis.efficiency import efficiency
from analysis.exhibit import Basis, Exhibit
from analysis.experiments.sensitivity import NOTHING
from analysis.wording import counted, fixed, listed

TARGETS = (0.60, 0.55, 0.50)  # efficiencies at the most nodes; chosen, since the paper prints none
LEVEL = "backplane="  # of the factor `vary`, before the rate that all links share [B/s]
FIGURES = {"contention": ("hpl_contention",)}


@dataclass(frozen=True)
class Contention:
    """The campaign's dataset and all that follows from it, on its one `interconnect`.

    `efficiency` [1] is over (share), on the most `nodes`: a backplane's rate as a share [1] of all links' rates together,
    ascending; `ideal` is that without a backplane. `of_ports` has the share that gives each of TARGETS, as far as they are
    inside of what was simulated: nothing is extrapolated. `error` [1] is the largest of interpolating an inner level of
    the efficiency from the others, NaN where there is none.
    """

    dataset: xr.Dataset
    interconnect: str
    nodes: int
    efficiency: xr.DataArray
    ideal: float
    of_ports: Mapping[float, float]
    error: float


def analyse(dataset: xr.Dataset) -> Contention:
    """Derive the backplanes that give the targets.

    Raises FalloffError when there is no HPL trial, or there are several blocks or interconnects.
    """
    reached = efficiency(at_only_level(points(dataset), "block", "interconnect"))
    reached = reached.sortby("nodes").isel(nodes=-1)
    interconnect, nodes = reached.interconnect.item(), int(reached.nodes)
    links = nodes * testbed(dataset)["network"][interconnect]["bandwidth"]["value"]
    names = [name for name in reached.vary.values.tolist() if name.startswith(LEVEL)]
    shares = [float(name.removeprefix(LEVEL)) / links for name in names]
    levels = reached.sel(vary=names).rename(vary="share").assign_coords(share=shares)
    levels = levels.sortby("share").dropna("share")
    inner = levels.share.values[1:-1]
    errors = [_at(levels.drop_sel(share=share), share) - levels.sel(share=share) for share in inner]
    return Contention(
        dataset=dataset,
        interconnect=interconnect,
        nodes=nodes,
        efficiency=levels,
        ideal=float(reached.sel(vary=NOTHING)),
        of_ports={
            target: 1 / float(_times(levels).solve(1 / target).min())
            for target in TARGETS
            if levels.size > 1 and levels.min() <= target <= levels.max()
        },
        error=float(np.abs(errors).max()) if errors else np.nan,
    )


def _times(levels: xr.DataArray) -> PchipInterpolator:
    """Run time in units of that at Rpeak, 1 / efficiency, over 1 / share; NaN outside of the levels.

    Where the backplane binds, the time is nearly linear in its inverse; the interpolation keeps the order of the levels
    (Fritsch and Butland 1984, as in scipy).
    """
    slowest_last = levels.sortby("share", ascending=False)
    inverse = 1 / slowest_last.share.values
    return PchipInterpolator(inverse, 1 / slowest_last.values, extrapolate=False)


def _at(levels: xr.DataArray, share: float) -> float:
    """The efficiency [1] at a share, interpolated."""
    return 1 / _times(levels)(1 / share).item()


def finding(study: Contention) -> str:
    """What backplane would give each target, in plain English (Markdown); empty where none is reached."""
    if not study.of_ports:
        return ""
    network = short_names(study.dataset)[study.interconnect]
    targets = listed([fixed(100 * target, 0) for target in study.of_ports], "or")
    shares = listed([fixed(100 * share, 0) for share in study.of_ports.values()], "or")
    return (
        f"{network} would end at {targets} % on {counted(study.nodes, 'node')} if the switch carried only {shares} % of its "
        f"ports' rate. The paper prints no value of {network}."
    )


def figures(study: Contention) -> dict[str, Exhibit]:
    """The efficiency on the most nodes over the backplane's rate."""
    network = short_names(study.dataset)[study.interconnect]
    off = "" if np.isnan(study.error) else fixed(100 * study.error, 1)
    return {
        "contention": Exhibit(
            "contention",
            over_share(study),
            f"HPL's efficiency on {counted(study.nodes, 'node')} with {network} when its ports share a backplane",
            Basis("simulated"),
            f"Efficiency on {network} over the rate of a backplane that all ports share",
            "The line is without a backplane. No published value exists."
            + (f" Interpolating between the marks is off by at most {off} points." if off else ""),
            rests_on=FIGURES["contention"],
        )
    }


def over_share(study: Contention) -> Figure:
    """Efficiency [% of Rpeak] over the backplane's share of all ports' rate [%]."""
    look = style.look(study.interconnect)
    with style.styled():
        figure, axes = drawing.new_figure(2.6)
        axes.plot(100 * study.efficiency.share, 100 * study.efficiency, "o", color=look.color)
        axes.axhline(100 * study.ideal, color=style.INK, linewidth=0.8)
        axes.set(xlabel="backplane [% of all ports' rate]", ylabel="efficiency [% of Rpeak]")
        return figure
