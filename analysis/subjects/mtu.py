"""From a TCP campaign's trials to its points: goodput, share of the wire limit, CPU time at both
ends, and what limits a point."""

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.dataset import published
from analysis.dataset.derive import at, over_factors
from analysis.dataset.wire import wire_limit, wire_limit_both_ways
from analysis.statements import drawing, style
from analysis.statements.statement import Statement, named
from analysis.statistics.intervals import mean_over, rates

FULL = 0.99  # from this share of a full wire on, the path is the limit
# of the wire limit: a larger share means a faulty shaper; the ends' clocks differ by less
EXCESS = 1.001
LINK_BOUND, HOST_BOUND, SHAPER = "link-bound", "host-bound", "shaper"
WAYS = {"both": "both ways", "forward": "one way", "reverse": "one way, back"}
# What `compared` calls the variables of points.
OF_POINTS = {
    "goodput": "Goodput",
    "per_way": "Goodput of each way",
    "megabytes": "Goodput of both ways in the source's MB/s",
    "cpu_local": "CPU time of the sender in a second",
    "cpu_remote": "CPU time of the receiver in a second",
    "cost_local": "CPU time of the sender for a byte",
    "cost_remote": "CPU time of the receiver for a byte",
    "cost": "CPU time of both ends for a byte",
}
ENDS = {"local": "sender", "remote": "receiver"}  # netperf's names of both machines
# Share of the machine's CPU time. If more belongs to no node, it may include an end's work.
MOST_UNATTRIBUTED = 0.10
GIGA = 1e9
OUTSIDE = 0.17  # fraction of a doubling of the MTU between two published marks


def points(dataset: xr.Dataset) -> xr.Dataset:
    """Lay a campaign's iperf3 trials out over dims (block, path, mtu, direction).

    Variables: `goodput` one way or forward and `total` of all ways [bit/s], `share` of the wire
    limit [1], `cpu_local` and `cpu_remote` [processors], `cost_local` and `cost_remote` [s/B]: CPU
    time of an end, and that for each byte, both ways and warm-up included. These are NaN if more
    than MOST_UNATTRIBUTED of the machine's CPU time belongs to no node. `busy` is the number of the
    machine's processors in use. Over (path, mtu, direction): `limit` [bit/s] of all ways, NaN
    without a rate, and `full` [bit/s], which a path in full use reaches. Raises FalloffError if
    there is no iperf3 trial.
    """
    # Otherwise each step below carries all settings along.
    dataset = dataset.reset_coords()
    total = dataset.goodput + xr.where(dataset.direction == "both", dataset.goodput_reverse, 0)
    given = dataset.falloff.settings
    seconds = given["duration_s"] + given["omit_s"]
    unattributed = dataset.unattributed_cpu_time / dataset.host_cpu_time
    is_attributed = (np.abs(unattributed) <= MOST_UNATTRIBUTED) & (total > 0)
    cpu_time = {
        end: dataset.cpu_time.where(dataset.node == dataset[role]).sum("node", min_count=1)
        for end, role in ENDS.items()
    }
    laid_out = over_factors(
        dataset,
        "iperf3",
        goodput=dataset.goodput,
        total=total,
        busy=dataset.host_cpu_time / seconds,
        **{f"cpu_{end}": time.where(is_attributed) / seconds for end, time in cpu_time.items()},
    )
    for end in ENDS:
        laid_out[f"cost_{end}"] = laid_out[f"cpu_{end}"] / (laid_out.total / 8)
    described = dataset.falloff.networks
    rates = [described[path].rate_bit_s for path in laid_out.path.values]
    rate, is_both = xr.DataArray(rates, {"path": laid_out.path}), laid_out.direction == "both"
    one_way, both_ways = (limit(rate, laid_out.mtu) for limit in (wire_limit, wire_limit_both_ways))
    limit = one_way * xr.where(is_both, 2, 1)
    full = xr.where(is_both, 2 * both_ways, one_way)
    return laid_out.assign(limit=limit, full=full, share=laid_out.total / limit).assign_attrs(
        dataset.attrs
    )


def stamps(points: xr.Dataset) -> xr.DataArray:
    """What limits each point, over (path, mtu, direction), judged by its harmonic mean over the
    blocks.

    LINK_BOUND: at least FULL of what a full wire carries. HOST_BOUND: less. SHAPER: beyond the wire
    limit, so the shaper counts wrongly. Empty if there is no limit or no reading.
    """
    mean = mean_over(points.total, "block", "rate")
    is_known = mean.notnull() & points.limit.notnull()
    bound = xr.where(mean >= FULL * points.full, LINK_BOUND, HOST_BOUND)
    return xr.where(mean > EXCESS * points.limit, SHAPER, bound).where(is_known, "")


def goodput_over_mtu(
    dataset: xr.Dataset, points: xr.Dataset, nemo: pd.DataFrame, today: xr.Dataset | None = None
) -> Figure:
    """Total goodput [Gbit/s] over the MTU, a panel for each path with a rate, with the wire limit,
    what Nemo printed, and the mean of each point of a run of `today`.

    `points` and `today` are from `points`, and `nemo` from `published.nemo_points`.
    """
    now = None if today is None else rates(today.total)["mean"] / GIGA
    has_limit, names = points.limit.notnull().any(["mtu", "direction"]), dataset.falloff.names
    paths = points.path[has_limit].values.tolist() or points.path.values.tolist()
    directions, mtus = points.direction.values.tolist(), points.mtu.values
    with style.styled():
        figure, panels = drawing.new_figures(3.4, len(paths), sharex=True, sharey=True)
        for axes, path in zip(panels, paths):
            limit = points.limit.sel(path=path).transpose("mtu", "direction") / GIGA
            for ways in np.unique(limit, axis=1).T:
                axes.plot(mtus, ways, color=style.INK, lw=0.8, label="wire limit")
            for rank, direction in enumerate(directions):
                x = drawing.offset(mtus, rank, len(directions))
                values = points.total.sel(path=path, direction=direction) / GIGA
                label = "both ways" if direction == "both" else direction
                drawing.runs(axes, direction, x, values, label)
                if now is not None:
                    mean = now.reindex(path=[path], mtu=mtus, direction=[direction]).squeeze()
                    axes.plot(x, mean, **drawing.TODAY)
            _printed(axes, nemo, path, mtus)
            axes.set_title(names[path])
            axes.set_ylim(0, None)
            drawing.doubling_axis(axes, [mtus.min(), mtus.max()], "MTU [B]")
        panels[0].set_ylabel("goodput [Gbit/s]")
        drawing.legend_below(figure, [*panels], 2)
    return figure


def _printed(axes: Axes, nemo: pd.DataFrame, path: str, mtus: np.ndarray) -> None:
    """Nemo's points on a path: a mark for each device, outside the runs and side by side."""
    marks = dict(zip(nemo.device.unique(), style.PUBLISHED_DEVICES))
    middle = float(np.sqrt(mtus.min() * mtus.max()))
    here = nemo[nemo.path == path]
    for rank, (device, tests) in enumerate(here.groupby("device", sort=False), start=1):
        mark = {"marker": marks[device], "mew": 1.5, "ms": 5, "ls": ""}
        for test in tests.itertuples():
            outwards = 1 if test.mtu > middle else -1
            place = test.mtu * 2 ** (outwards * (drawing.SIDESTEP + OUTSIDE * rank))
            axes.plot(place, test.total / GIGA, color=style.look(test.direction).color, **mark)
        label = f"published: {published.facts('nemo')['device'][device]}"
        axes.plot([], [], color=style.INK, label=label, **mark)


def compared(
    runs: xr.Dataset, points: xr.Dataset, name: str, variable: str, *places: tuple[str, int, str]
) -> Statement:
    """A variable of `points` at one (path, MTU [B], direction), or its ratio over that at a second
    in the same block; refused where the machine limits one, or CPU time belongs to nobody."""
    names, values, texts, refused = runs.falloff.names, [], [], ""
    for path, mtu, direction in places:
        place = {"path": path, "mtu": mtu, "direction": direction}
        values.append(at(points[variable], **place))
        texts.append(f"the {names.get(path, path)} at MTU {mtu} {WAYS[direction]}")
        if at(stamps(points), **place) == HOST_BOUND:
            refused = f"the machine limits {texts[-1]}, not the wire"
        elif values[-1].isnull().all() and at(points.total, **place).notnull().any():
            refused = "too much CPU time belongs to neither end, such as the shaper's"
    ratio = values[0] / (values[1] if len(values) > 1 else 1)
    subject = f"{OF_POINTS[variable]} over {' against '.join(texts)}"
    return named(runs, name, subject, ratio, refused)
