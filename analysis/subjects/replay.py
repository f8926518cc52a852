"""Recorded MPI programs, replayed on described networks: their times, where these go, and whether efficiency falls off."""

import numpy as np
import xarray as xr

from analysis import exhibit, parallel_efficiency
from analysis.attributes import short_names
from analysis.derive import at_only_level, over_factors
from analysis.statements import Statement, judged_fall, origin
from analysis.statistics import design as designs
from analysis.statistics.judgement import FALLS_OFF, FLAT, judge
from analysis.what_if import IDEAL
from analysis.wording import number, percent
from runners.record import FalloffError

BASIS = "simulated evidence, without scatter, one rank a node"


def replays(runs: xr.Dataset) -> xr.Dataset:
    """`time` of each program, and `mean` and `most` of what its ranks compute [s], over (program, interconnect, nodes); NaN
    where they are unknown. A replay has no scatter.

    Raises FalloffError if no program was replayed on the ideal network, which tells what it computes.
    """
    names = {"time": "replay_time", "mean": "computing_mean", "most": "computing_most"}
    columns = {name: runs[reading] for name, reading in names.items()}
    laid = over_factors(runs, runner="replay", **columns)
    laid = at_only_level(laid.assign_attrs(runs.attrs), "block")
    if (
        IDEAL not in laid.interconnect.values
        or laid.time.sel(interconnect=IDEAL).isnull().all().item()
    ):
        remedy = f"add {IDEAL} to the campaign's interconnects"
        raise FalloffError(
            f"no program was replayed on unlimited links, which tell what it computes: {remedy}"
        )
    return laid.transpose("program", "interconnect", "nodes")


def factors(replays: xr.Dataset) -> xr.Dataset:
    """POP's factors [1] over (program, interconnect, nodes), as `parallel_efficiency.factors` says."""
    return parallel_efficiency.factors(replays.time, replays["mean"], replays.most)


def falls(runs: xr.Dataset, transfer: xr.DataArray) -> list[Statement]:
    """What each program's transfer efficiency loses on each network from the fewest nodes to the most, 1 - last / first.
    Primary is the network on which a program ends least efficient."""
    source, names, margin = origin(runs), short_names(runs), designs.read(runs).margin
    made = []
    for program in transfer.program.values.tolist():
        curves = {
            network: transfer.sel(program=program, interconnect=network)
            .dropna("nodes")
            .sortby("nodes")
            for network in transfer.interconnect.values.tolist()
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
                    sentence=f"**`{program}` {does} on {names[network]}**: its transfer efficiency is {percent(first)} on {start} nodes and "
                    f"{percent(last)} on {end}.",
                )
            )
    return made


def saved(runs: xr.Dataset, replays: xr.Dataset, program: str) -> str:
    """What the other networks save of a program's time on the slowest one, on the most nodes, and where its time goes there;
    empty if there is only one network."""
    times = replays.time.sel(program=program).drop_sel(interconnect=IDEAL).dropna("nodes")
    if times.sizes["interconnect"] < 2 or not times.sizes["nodes"]:
        return ""
    times, names = times.isel(nodes=-1), short_names(runs)
    slowest = times.interconnect.values[np.argmax(times.values)]
    less = [
        f"{names[name]} saves {percent(1 - times.sel(interconnect=name).item() / times.max().item())}"
        for name in times.interconnect.values.tolist()
        if name != slowest
    ]
    place = {"program": program, "nodes": times.nodes.item(), "interconnect": slowest}
    spent = parallel_efficiency.shares(factors(replays)).sel(place)
    return (
        f"On {times.nodes.item()} nodes, of `{program}`'s time on {names[slowest]}: {'; '.join(less)}. "
        f"That time is {percent(spent.computing.item())} computing, {parallel_efficiency.in_words(spent)}."
    )


def times_table(runs: xr.Dataset, time: xr.DataArray) -> exhibit.Table:
    """The replayed times [s]; `time` is that of `replays`."""
    names, rows = short_names(runs), []
    for program in time:
        for network in program:
            times = [*map(number, network.values)]
            rows.append((program.program.item(), names[network.interconnect.item()], *times))
    nodes = [f"{count} nodes [s]" for count in time.nodes.values.tolist()]
    caption, align = "Time of each program on each network", "ll" + "r" * len(nodes)
    label = f"{runs.attrs['campaign'].replace('_', '-')}-times"
    return exhibit.Table(
        label, ("Program", "Network", *nodes), align, rows, caption, exhibit.Basis("simulated")
    )


def factors_table(runs: xr.Dataset, factors: xr.Dataset) -> exhibit.Table:
    """POP's factors of each program on each network [%], on the most nodes."""
    names, rows = short_names(runs), []
    last = factors.isel(nodes=int(np.argmax(factors.nodes.values)))
    for program in last.program.values.tolist():
        for network in last.interconnect.values.tolist():
            at = last.sel(program=program, interconnect=network)
            rows.append((program, names[network], *parallel_efficiency.in_percent(at)))
    caption = f"Factors of the parallel efficiency on {last.nodes.item()} nodes, by POP's names; the last is their product"
    return exhibit.Table(
        f"{runs.attrs['campaign'].replace('_', '-')}-factors",
        ("Program", "Network", *parallel_efficiency.FACTORS.values()),
        "llrrrr",
        rows,
        caption,
        exhibit.Basis("simulated"),
    )
