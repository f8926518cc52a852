"""Programs: whether the efficiency of a recorded MPI program falls off with the nodes and the network."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis import drawing, exhibit, style
from analysis.attributes import short_names
from analysis.derive import at_only_level, over_factors
from analysis.statements import Statement, judged_fall, origin
from analysis.statistics import design as designs
from analysis.statistics.judgement import FALLS_OFF, FLAT, Judgement, judge
from analysis.wording import number, percent
from runners.record import FalloffError

FIGURES = {"programs": ("programs",)}
BASIS = exhibit.Basis("simulated")
IDEAL = "unshaped"  # the network on which messages cost almost nothing


@dataclass(frozen=True)
class Fall:
    """The fall of a program's efficiency on a network, from the fewest nodes to the most."""

    program: str
    interconnect: str
    from_nodes: int
    to_nodes: int
    efficiency: tuple[float, float]
    judgement: Judgement


@dataclass(frozen=True)
class Programs:
    """`time` [s] over (program, interconnect, nodes), NaN where unknown; `efficiency` [1], the time
    without a network over that on each network except `IDEAL`. There is no scatter."""

    dataset: xr.Dataset
    time: xr.DataArray
    efficiency: xr.DataArray
    falls: tuple[Fall, ...]


def analyse(programs: xr.Dataset) -> Programs:
    """Derive efficiencies and their falls; raises FalloffError without the ideal network."""
    laid = over_factors(programs, runner="replay", replay_time=programs.replay_time)
    time = at_only_level(laid.assign_attrs(programs.attrs), "block").replay_time
    time = time.transpose("program", "interconnect", "nodes")
    if IDEAL not in time.interconnect.values or time.sel(interconnect=IDEAL).isnull().all():
        remedy = f"add {IDEAL} to the campaign's interconnects"
        raise FalloffError(
            f"no program was replayed without a network, which tells what it computes: {remedy}"
        )
    ideal = time.sel(interconnect=IDEAL, drop=True)
    efficiency = (ideal / time).transpose(*time.dims).drop_sel(interconnect=IDEAL)
    margin = designs.read(programs).margin
    falls = (
        _fall(efficiency.sel(program=program, interconnect=network), margin)
        for program in efficiency.program.values.tolist()
        for network in efficiency.interconnect.values.tolist()
    )
    return Programs(programs, time, efficiency, tuple(filter(None, falls)))


def _fall(efficiency: xr.DataArray, margin: float) -> Fall | None:
    known = efficiency.dropna("nodes").sortby("nodes")
    if known.sizes["nodes"] < 2:
        return None
    first, last = known.values[[0, -1]].tolist()
    judged = judge([float(np.log(last / first))], margin, "simulated")
    ends = known.nodes.values[[0, -1]].tolist()
    return Fall(known.program.item(), known.interconnect.item(), *ends, (first, last), judged)


def finding(study: Programs) -> str:
    """Which program falls off on which network, in plain English (Markdown)."""
    if not study.falls:
        return "**Nothing can be said yet**: no program was replayed on two numbers of nodes."
    names, words = short_names(study.dataset), []
    for fall in study.falls:
        does = {FALLS_OFF: "falls off", FLAT: "stays flat"}.get(fall.judgement.answer, "rises")
        first, last = (percent(share) for share in fall.efficiency)
        words.append(
            f"- **`{fall.program}` {does} on {names[fall.interconnect]}**: its efficiency is {first} on {fall.from_nodes} nodes and "
            f"{last} on {fall.to_nodes}."
        )
    basis = (
        "Simulated evidence, without scatter, one rank a node. Efficiency is the time on a network that costs next to nothing over the "
        "time on the network."
    )
    return "\n".join([basis, "", *words])


def findings(study: Programs) -> Iterator[Statement]:
    """The fall of each program on each network; primary is the fall on the network where it is
    least efficient."""
    falls = sorted(study.falls, key=lambda fall: -fall.efficiency[1])
    least = {fall.program: fall for fall in falls}
    source, names = origin(study.dataset), short_names(study.dataset)
    for fall in study.falls:
        span = f"from {fall.from_nodes} to {fall.to_nodes} nodes"
        where = f"on {names[fall.interconnect]} {span}"
        statement = f"Program {fall.program} loses efficiency {where}"
        yield judged_fall(source, statement, fall.judgement, primary=fall is least[fall.program])


def figures(study: Programs) -> dict[str, exhibit.Exhibit]:
    names, programs = short_names(study.dataset), study.efficiency.program.values.tolist()
    with style.styled():
        figure, panels = drawing.new_figures(3.2, len(programs))
        for axes, program in zip(panels, programs):
            for cases in study.efficiency.sel(program=program):
                network = cases.interconnect.item()
                look = style.look(network)
                marks = {"marker": look.marker, "markersize": 6, "mec": "white", "mew": 0.6}
                line = {"lw": 0.8, "color": look.color, "label": names[network]}
                axes.plot(cases.nodes, 100 * cases, **marks, **line)
            axes.set_title(program)
            axes.set_ylim(0, 104)
            drawing.doubling_axis(axes, study.efficiency.nodes.values)
        panels[0].set_ylabel("efficiency [%]")
        drawing.legend_below(figure, panels, 3)
    return exhibit.only(
        FIGURES,
        figure,
        "Efficiency of recorded programs, replayed on described networks: their time without a network over that on it",
        BASIS,
        "Simulated efficiency over nodes, a panel for each program",
        "Lines join simulated points.",
    )


def table(study: Programs) -> exhibit.Table:
    """The replayed times [s]."""
    names, rows = short_names(study.dataset), []
    for program in study.time:
        for network in program:
            times = [*map(number, network.values)]
            rows.append((program.program.item(), names[network.interconnect.item()], *times))
    nodes = [f"{count} nodes [s]" for count in study.time.nodes.values.tolist()]
    caption, align = "Time of each program on each network", "ll" + "r" * len(nodes)
    columns = ("Program", "Network", *nodes)
    return exhibit.Table("programs-times", columns, align, rows, caption, BASIS)
