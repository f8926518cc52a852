"""The published figures over the MTU, made again: throughput, CPU time and its cost, a panel for each path."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, published, style
from analysis.figures import frame_limits, packet_sizes, tcp_cost
from analysis.inference.averages import Kind
from analysis.studies.mtu import Mtu
from analysis.studies.scaling import short_names
from analysis.studies.switch import Switch

SIDESTEP = 90  # B of MTU between two directions
GIGA, NANO = 1e9, 1e-9
MACHINES = {"local": "machine 1", "remote": "machine 2"}


def draw(study: Switch) -> dict[str, Figure]:
    """The figures of all campaigns that there are data for: switch_throughput, of paths with a rate, and
    switch_unshaped, of those without, switch_cpu and switch_cost, then tcp_cost, frame_limits and packet_sizes."""
    drawn = {
        name: throughput(study.mtu, paths)
        for name, paths in zip(("switch_throughput", "switch_unshaped"), by_rate(study.mtu))
        if paths
    } | {
        "switch_cpu": cpu(study.mtu),
        "switch_cost": cost(study.mtu),
    }
    further = {
        "tcp_cost": (tcp_cost.cost_over_mtu, study.cost),
        "frame_limits": (frame_limits.largest_frames, study.limits),
        "packet_sizes": (packet_sizes.packets_over_size, study.sizes),
    }
    return drawn | {name: function(data) for name, (function, data) in further.items() if data}


def by_rate(study: Mtu) -> tuple[list[str], list[str]]:
    """The paths that have a rate, and those that have none; they differ too much in throughput for one axis."""
    rated = study.points.limit.notnull().any(["mtu", "direction"])
    return study.points.path[rated].values.tolist(), study.points.path[~rated].values.tolist()


def throughput(study: Mtu, paths: list[str]) -> Figure:
    """Total goodput [Gbit/s] with the wire limit (above) and mean CPU of both machines [%] over the MTU."""
    beside = study.published.assign(mean=study.published[["cpu_local", "cpu_remote"]].mean(axis=1))
    return _grid(
        study,
        paths,
        [
            ("total goodput\n[Gbit/s]", study.points.total / GIGA, beside.total / GIGA, "rate"),
            ("CPU, mean of both\n[%]", 100 * study.points.cpu_mean, 100 * beside["mean"], "cost"),
        ],
        limits=True,
    )


def cpu(study: Mtu) -> Figure:
    """CPU of each machine [%] over the MTU: emulated of a processor, published of a whole machine."""
    return _of_machines(study, "cpu", "CPU, {}\n[%]", 100)


def cost(study: Mtu) -> Figure:
    """CPU time per byte [ns/B] of each machine over the MTU: emulated of a processor, published of a machine."""
    return _of_machines(study, "cost", "cost, {}\n[ns/B]", 1 / NANO)


def _of_machines(study: Mtu, quantity: str, label: str, factor: float) -> Figure:
    """A row for each machine, of the paths on which something is known of one."""
    names = {f"{quantity}_{end}": machine for end, machine in MACHINES.items()}
    stated = study.points[[*names]].to_array().notnull().any(["variable", "block", "mtu", "direction"])
    known = stated | stated.path.isin(study.published.path.unique())
    return _grid(
        study,
        study.points.path[known].values.tolist() or study.points.path.values.tolist(),
        [
            (label.format(machine), factor * study.points[name], factor * study.published[name], "cost")
            for name, machine in names.items()
        ],
    )


def _grid(study: Mtu, paths, rows, limits=False) -> Figure:
    """A column of panels for each of the paths; rows are (label, values over (block, path, mtu, direction),
    published ones, kind of mean).

    With `limits` the first row has the wire limit, one way and both ways.
    """
    with style.styled():
        found, names = study.points, short_names(study.dataset)
        figure = Figure(figsize=(style.WIDTH, 1.1 + 1.6 * len(rows)))
        grid = figure.subplots(len(rows), len(paths), squeeze=False, sharex=True, sharey="row")
        for panels, (label, values, printed, kind) in zip(grid, rows):
            panels[0].set_ylabel(label)
            for axes, path in zip(panels, paths):
                _directions(axes, values.sel(path=path), kind)
                _published(axes, study, path, printed)
            panels[0].set_ylim(0, None)
        for axes, path in zip(grid[0], paths):
            axes.set_title(names[path].replace(" ", "\n") if len(paths) > 3 else names[path])
            if limits and found.limit.sel(path=path).notnull().any():
                for limit in np.unique(found.limit.sel(path=path), axis=1).T / GIGA:
                    axes.plot(found.mtu, limit, color=style.INK, linewidth=0.8, label="wire limit", gid=drawing.BOUND)
        for axes in grid[-1]:
            axes.set_xticks([found.mtu.min(), found.mtu.max()])
        grid[-1, len(paths) // 2].set_xlabel("MTU [B]", labelpad=-4 if len(paths) < 4 else None)
        drawing.legend_below(figure, grid.ravel(), 2)
        return figure


def _directions(axes: Axes, values, kind: Kind) -> None:
    directions = values.direction.values.tolist()
    for place, direction in enumerate(directions):
        x = values.mtu.values + SIDESTEP * (place - (len(directions) - 1) / 2)
        chosen = values.sel(direction=direction)
        drawing.runs(axes, direction, x, chosen, f"emulated, {direction}")
        drawing.intervals(axes, direction, x, chosen, kind)


def _published(axes: Axes, study: Mtu, path: str, values) -> None:
    """The source's points, each device with its own mark; both ways in the colour of both ways."""
    names = published.nemo()["device"]
    here = study.published[study.published.path == path]
    for mark, device in zip(style.PUBLISHED_DEVICES, study.published.device.unique()):
        for direction in ("forward", "both"):
            chosen = here[(here.device == device) & (here.direction == direction)]
            if len(chosen):
                edge, label = style.look(direction).color, f"published, {names[device]}"
                axes.plot(chosen.mtu, values[chosen.index], mark, color=style.INK, mec=edge, mew=1.5, markersize=7)
                axes.plot([], [], mark, linestyle="", color=style.INK, mew=1.5, markersize=7, label=label)
