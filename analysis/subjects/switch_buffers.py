"""HPL and other programs through a switch with a buffer: what the buffer costs, and how much of it is used."""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import attributes, derive, drawing, exhibit, style
from analysis.derive import over_factors
from analysis.statements import Statement, above, estimated, origin
from analysis.statistics.intervals import over_blocks
from analysis.statistics.judgement import UNDECIDED
from analysis.wording import counted, fixed, percent

FRAME = 1518  # B of a full frame in the switch's memory
LOOKS = ("unshaped", "buffer 4", "buffer 2", "buffer 1", "buffer 3")


def baseline(runs: xr.Dataset) -> str:
    """The setup that the others are compared with, whose buffer is meant never to fill."""
    return attributes.design(runs)["baseline"]["setup"]


def margin(runs: xr.Dataset) -> float:
    """The largest loss that does not count [1], decided before the run."""
    return attributes.design(runs)["margin"]


def efficiency(runs: xr.Dataset) -> xr.DataArray:
    """HPL's rate as a share of what the nodes compute [1], over (block, interconnect, setup, nodes); NaN where a trial gave
    no reading. Raises FalloffError if there is no HPL trial."""
    return derive.points(runs).share


def speeds(runs: xr.Dataset) -> xr.DataArray:
    """The runs per second of each program at full speed [1/s], over (block, interconnect, program, setup, nodes). Raises
    FalloffError if no program ran."""
    return 1 / over_factors(runs, "program", time=runs.program_time).time


def loss_through_buffer(rate: xr.DataArray, endless: str) -> xr.Dataset:
    """The share of a rate that is lost [1] with each setup against the setup `endless`, all else being equal: `loss` with the
    ends `low` and `high` of its 95 % t interval over the `blocks`, over all dims of `rate` but block."""
    means = over_blocks(rate / rate.sel(setup=endless, drop=True), "ratio")
    return xr.Dataset(
        {
            "loss": 1 - means["mean"],
            "low": 1 - means["high"],
            "high": 1 - means["low"],
            "blocks": means.blocks,
        }
    )


def at_the_switch(runs: xr.Dataset) -> xr.Dataset:
    """What the switch counted, over (block, interconnect, setup, nodes): `queued` [B], the most bytes that waited at any
    port; `dropped`, the share of frames that it dropped [1]; and `pauses`, how often it paused a node."""
    carried = runs.port_frames.sum("node", min_count=1)
    drops = runs.port_drops.sum("node", min_count=1)
    return over_factors(
        runs,
        "hpl",
        queued=runs.port_most_queued.max("node"),
        dropped=drops / (carried + drops),
        pauses=runs.port_pauses.sum("node", min_count=1),
    )


def costly(runs: xr.Dataset, lost: xr.Dataset, program: str = "HPL") -> Iterator[Statement]:
    """Whether a program loses more than the margin through each buffer on the most nodes of each network; `lost` is over
    (interconnect, setup, nodes). Statements on the first network, Gigabit Ethernet, are primary. Nothing is stated where
    the machine was the limit in every block."""
    names, limit, most = attributes.names_in_text(runs), margin(runs), int(lost.nodes.max())
    endless = baseline(runs)
    for network in lost.interconnect.values.tolist():
        for setup in lost.setup.values.tolist():
            if setup == endless:
                continue
            place = lost.sel(interconnect=network, setup=setup, nodes=most)
            if not int(place.blocks):
                continue
            estimate = tuple(float(place[name]) for name in ("loss", "low", "high"))
            yield estimated(
                origin(runs),
                f"{program} on {most} nodes of {names[network]} loses more than {percent(limit, 0)} through a buffer of {setup}, against {endless}",
                "loss",
                estimate,
                int(place.blocks),
                words=above(estimate[1:], limit) or UNDECIDED,
                primary=network == lost.interconnect.values[0],
                margin=limit,
                series=network,
            )


def queues(runs: xr.Dataset, at_switch: xr.Dataset) -> str:
    """The longest queue where the buffer is meant never to fill, and what it dropped, in a sentence (Markdown); empty if
    unknown."""
    endless = at_switch.sel(setup=baseline(runs))
    queued, dropped = largest(endless.queued), largest(endless.dropped)
    if not np.isfinite(queued):
        return ""
    lost = "nothing" if not dropped else f"{fixed(1e6 * dropped, 0)} of a million frames at most"
    return (
        f"Of a buffer of {baseline(runs)} HPL used {fixed(queued / 1000, 1)} kB at most at one port, {fixed(queued / FRAME, 0)} full frames; "
        f"there the switch dropped {lost}."
    )


def largest(values: xr.DataArray) -> float:
    """The largest of all values; NaN if none is known."""
    known = values.values[np.isfinite(values.values)]
    return float(known.max()) if known.size else np.nan


def over_nodes(runs: xr.Dataset, share: xr.DataArray) -> Figure:
    """The efficiency [%] over the nodes by buffer, a panel for each network."""
    names = attributes.names_in_text(runs)
    with style.styled():
        networks = share.interconnect.values.tolist()
        figure, panels = drawing.new_figures(3.3, len(networks), sharey=True)
        for axes, network in zip(panels, networks):
            axes.set_title(names[network])
            setups = share.setup.values.tolist()
            for rank, setup in enumerate(setups):
                values = 100 * share.sel(interconnect=network, setup=setup)
                places = drawing.beside(share.nodes.values.astype(float), rank, len(setups))
                means, series = over_blocks(values, "rate"), LOOKS[rank % len(LOOKS)]
                drawing.runs_and_means(axes, series, places, values, means, setup)
            drawing.doubling_axis(axes, share.nodes.values)
        panels[0].set_ylabel("share of the nodes' rate [%]")
        panels[0].set_ylim(bottom=min(50, panels[0].get_ylim()[0]))
        drawing.legend_below(figure, panels, 4)
    return figure


def over_setups(runs: xr.Dataset, speed: xr.DataArray) -> Figure:
    """Each program's rate [%] of that through the largest buffer, by buffer, a panel for each network; `speed` is over
    (block, interconnect, program, setup, nodes) with one number of nodes."""
    names, relative = attributes.names_in_text(runs), speed / speed.sel(setup=baseline(runs))
    relative = 100 * relative.squeeze("nodes")
    with style.styled():
        networks, setups = relative.interconnect.values.tolist(), relative.setup.values.tolist()
        figure, panels = drawing.new_figures(2.8, len(networks), sharey=True)
        for axes, network in zip(panels, networks):
            axes.set_title(names[network])
            for rank, program in enumerate(relative.program.values.tolist()):
                values = relative.sel(interconnect=network, program=program)
                places, means = np.arange(len(setups)) + 0.2 * rank, over_blocks(values, "ratio")
                drawing.runs(axes, LOOKS[rank], places - 0.1, values.transpose("block", "setup"))
                ends = (means[name].values for name in ("mean", "low", "high"))
                drawing.interval(axes, LOOKS[rank], places, *ends, program)
            labels = [setup.replace(", ", ",\n") for setup in setups]
            axes.set_xticks(range(len(setups)), labels)
        panels[0].set_ylabel(f"rate [%], {baseline(runs)}: 100")
        panels[0].set_ylim(bottom=0)
        drawing.legend_below(figure, panels, 2)
    return figure


def table(
    runs: xr.Dataset, share: xr.DataArray, lost: xr.Dataset, at_switch: xr.Dataset
) -> exhibit.Table:
    """For each network, number of nodes and setup: efficiency, loss, the longest queue, frames dropped and pauses."""
    names, rows = attributes.names_in_text(runs), []
    for network in share.interconnect.values:
        for nodes in share.nodes.values:
            for setup in share.setup.values:
                at = {"interconnect": network, "setup": setup, "nodes": nodes}
                switch = at_switch.sel(at)
                rows.append(
                    (
                        f"{names[network]}, {counted(int(nodes), 'node')}",
                        setup,
                        percent(float(over_blocks(share.sel(at), "rate")["mean"])),
                        percent(float(lost.loss.sel(at))),
                        fixed(largest(switch.queued) / 1000, 1),
                        fixed(1e6 * float(switch.dropped.mean()), 0),
                        fixed(float(switch.pauses.mean()), 0),
                    )
                )
    columns = (
        "Case",
        "Buffer a port",
        "Share of the nodes' rate",
        "Lost to the buffer",
        "Longest queue [kB]",
        "Dropped of a million frames",
        "Pauses",
    )
    basis = exhibit.Basis.of_dataset(runs, "harmonic means", share.sizes["block"])
    caption = "HPL through a switch with a buffer"
    return exhibit.Table("hpl-buffers", columns, "llrrrrr", rows, caption, basis, long=True)
