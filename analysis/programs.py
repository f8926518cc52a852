"""Recorded MPI programs, replayed on described networks: their times, efficiencies, and whether these fall off."""

import numpy as np
import xarray as xr

from analysis import exhibit
from analysis.attributes import short_names
from analysis.derive import at_only_level, over_factors
from analysis.statements import Statement, judged_fall, origin
from analysis.statistics import design as designs
from analysis.statistics.judgement import FALLS_OFF, FLAT, judge
from analysis.wording import number, percent
from runners.record import FalloffError

IDEAL = "unshaped"  # the network on which messages cost almost nothing
BASIS = "simulated evidence, without scatter, one rank a node"


def replay_times(runs: xr.Dataset) -> xr.DataArray:
    """The time of each program [s] over (program, interconnect, nodes), NaN where it is unknown; a replay has no scatter.

    Raises FalloffError if no program was replayed on the ideal network, which tells what it computes.
    """
    laid = over_factors(runs, runner="replay", replay_time=runs.replay_time)
    time = at_only_level(laid.assign_attrs(runs.attrs), "block").replay_time
    if IDEAL not in time.interconnect.values or time.sel(interconnect=IDEAL).isnull().all():
        remedy = f"add {IDEAL} to the campaign's interconnects"
        raise FalloffError(
            f"no program was replayed without a network, which tells what it computes: {remedy}"
        )
    return time.transpose("program", "interconnect", "nodes")


def efficiency(time: xr.DataArray) -> xr.DataArray:
    """The time on the ideal network over that on each other network [1], with the dims of `replay_times`."""
    ideal = time.sel(interconnect=IDEAL, drop=True)
    return (ideal / time).transpose(*time.dims).drop_sel(interconnect=IDEAL)


def falls(runs: xr.Dataset, efficiency: xr.DataArray) -> list[Statement]:
    """What each program's efficiency loses on each network from the fewest nodes to the most, 1 - last / first. Primary is
    the network on which a program ends least efficient."""
    source, names, margin = origin(runs), short_names(runs), designs.read(runs).margin
    made = []
    for program in efficiency.program.values.tolist():
        curves = {
            network: efficiency.sel(program=program, interconnect=network)
            .dropna("nodes")
            .sortby("nodes")
            for network in efficiency.interconnect.values.tolist()
        }
        curves = {network: curve for network, curve in curves.items() if curve.sizes["nodes"] > 1}
        for network, curve in curves.items():
            (first, last), (start, end) = curve.values[[0, -1]], curve.nodes.values[[0, -1]]
            verdict = judge([float(np.log(last / first))], margin, "simulated")
            does = {FALLS_OFF: "falls off", FLAT: "stays flat"}.get(verdict.answer, "rises")
            made.append(
                judged_fall(
                    source,
                    f"Program {program} loses efficiency on {names[network]} from {start} to {end} nodes",
                    verdict,
                    primary=bool(last == min(other.values[-1] for other in curves.values())),
                    sentence=f"**`{program}` {does} on {names[network]}**: its efficiency is {percent(first)} on {start} nodes and "
                    f"{percent(last)} on {end}.",
                )
            )
    return made


def times_table(runs: xr.Dataset, time: xr.DataArray) -> exhibit.Table:
    """The replayed times [s]; `time` is from `replay_times`."""
    names, rows = short_names(runs), []
    for program in time:
        for network in program:
            times = [*map(number, network.values)]
            rows.append((program.program.item(), names[network.interconnect.item()], *times))
    nodes = [f"{count} nodes [s]" for count in time.nodes.values.tolist()]
    caption, align = "Time of each program on each network", "ll" + "r" * len(nodes)
    columns = ("Program", "Network", *nodes)
    basis = exhibit.Basis("simulated")
    return exhibit.Table("programs-times", columns, align, rows, caption, basis)
