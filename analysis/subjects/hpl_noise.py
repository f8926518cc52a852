"""What daemons cost HPL: each takes a share of every node's computing time, in few long pauses or in many short ones."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.contrasts import differences
from analysis.derive import at_only_level, over_factors, points
from analysis.quoting import quoted
from analysis.statements import (
    Statement,
    at_place,
    estimated,
    interval_in_words,
    judged_fall,
    judged_in_words,
    origin,
)
from analysis.statistics import design as designs
from analysis.statistics.intervals import ratio_of_means, ratios
from analysis.statistics.judgement import FALLS_OFF, FLAT, judge, within_campaign
from analysis.wording import fixed, percent

GROWS = {FALLS_OFF: "grows", FLAT: "stays level"}  # a loss, by the answer on its growth
PANELS = 2  # for the largest shares; losses to smaller ones vanish in the scatter


def against_none(dataset: xr.Dataset) -> xr.Dataset:
    """Runs with daemons against runs without, on the same nodes in the same block, over (block, nodes, daemon).

    `log_ratio` is log(rate with / rate without), and `of_node` the log of how much longer a node's computing took. Over
    (daemon), in ascending order, are the coordinates `share` [1] of a node's computing that each was asked to take and the
    `frequency` [Hz] of its pauses, at random times that differ between nodes. Raises FalloffError if there is no HPL trial
    or there are several interconnects.
    """
    derived, control = at_only_level(points(dataset), "interconnect"), designs.read(dataset).control
    trials = over_factors(
        dataset,
        share=dataset.noise,
        frequency=dataset.noise_hz,
        taken=(dataset.pace_paused / dataset.pace_charged).mean("node"),
    ).squeeze("interconnect", drop=True)
    asked = trials[["share", "frequency"]].max(["block", "nodes"]).to_dataframe().dropna()
    asked = asked.drop(index=control, errors="ignore").sort_values(["share", "frequency"])
    log_rate = np.log(derived.rate)
    with_daemon = log_rate.sel(daemon=asked.index.values)
    found = xr.Dataset(
        {
            "log_ratio": with_daemon - log_rate.sel(daemon=control, drop=True),
            # A node that only computes needs 1 + the share actually taken times as long.
            "of_node": np.log1p(trials.taken.sel(daemon=asked.index.values)),
        }
    )
    by_daemon = {name: ("daemon", asked[name].values) for name in asked}
    return found.assign_coords(by_daemon).assign_attrs(dataset.attrs)


def with_largest_share(runs: xr.Dataset) -> list[str]:
    """The daemons that take the largest share, those with the fewest and longest pauses first; `runs` is from
    `against_none`."""
    return runs.daemon.values[(runs.share == runs.share.max()).values].tolist()


def planned(runs: xr.Dataset) -> list[str]:
    """The daemons that primary statements are about: that with the rarest pauses, and that of the design."""
    return list(dict.fromkeys([*with_largest_share(runs)[:1], designs.read(runs).pair[0]]))


def growths(runs: xr.Dataset) -> list[Statement]:
    """Does HPL lose more to each daemon on the most nodes than on the fewest, by the campaign's margin?

    `runs` is from `against_none`. The answer on the design's daemon stands by itself; the others are corrected for each
    other (Holm).
    """
    source, design, daemons = origin(runs), designs.read(runs), runs.daemon.values.tolist()
    few, many = runs.nodes.values[[0, -1]].tolist()
    falls = differences(runs.log_ratio, design.baseline_nodes).transpose("daemon", "block").values
    verdicts = {
        name: judge(fall, design.margin, source["evidence"], design.one_sided)
        for name, fall in zip(daemons, falls)
    }
    others = [name for name in daemons if name != design.pair[0]]
    verdicts |= zip(others, within_campaign([verdicts[name] for name in others]))
    means, statements = ratios(runs.log_ratio).ratio, []
    for name, verdict in verdicts.items():
        ends = (percent(1 - float(means.sel(daemon=name, nodes=n))) for n in (few, many))
        span = "it goes from {} on {} to {} on {} nodes".format(*_interleaved(ends, (few, many)))
        interval = judged_in_words(verdict, of="of the growth")
        basis = f" ({interval}, margin {percent(verdict.margin, 0)})" if interval else ""
        if verdict.fall is None:
            span = "no block has all of its runs"
        known = GROWS.get(verdict.answer)
        head = (
            f"The loss to {quoted(name)} {known}"
            if known
            else f"Whether the loss to {quoted(name)} grows is open"
        )
        subject = f"A daemon of {quoted(name)} costs more on {many} nodes than on {few}"
        one = judged_fall(source, subject, verdict, primary=name in planned(runs))
        statements.append(replace(one, sentence=f"{head}: {span}{basis}."))
    return statements


def _interleaved(values, nodes: Sequence[int]) -> list:
    return [part for pair in zip(values, nodes) for part in pair]


def costs(runs: xr.Dataset) -> list[Statement]:
    """The share of HPL's rate [1] that each daemon costs on the most nodes; `runs` is from `against_none`."""
    source, nodes, statements = origin(runs), int(runs.nodes[-1]), []
    losses = ratios(runs.log_ratio).sel(nodes=nodes)
    for name in runs.daemon.values.tolist():
        left, low, high = at_place(losses.sel(daemon=name))
        subject = f"What a daemon of {quoted(name)} costs HPL on {nodes} nodes"
        blocks = int(losses.blocks.sel(daemon=name))
        one = estimated(source, subject, "loss", (1 - left, 1 - high, 1 - low), blocks)
        sentence = f"A daemon of {quoted(name)} costs HPL {one.value} of its rate on {nodes} nodes."
        if not blocks:
            sentence = f"{subject} is not known: no block has the runs with and without it."
        statements.append(replace(one, sentence=sentence))
    return statements


def amplification(runs: xr.Dataset, daemon: str) -> tuple[float, float, float]:
    """The mean log-loss of HPL's rate on the most nodes over that of one node's computing, with Fieller's 95 % interval.

    It is 1 if HPL loses what one node loses, and n if the losses of n nodes add up. `runs` is from `against_none`.
    """
    at = runs.isel(nodes=-1).sel(daemon=daemon)
    return ratio_of_means(-at.log_ratio, at.of_node)


def amplified(runs: xr.Dataset, daemon: str) -> str:
    """The `amplification` of a daemon, in a sentence; empty where it is not known."""
    times, low, high = amplification(runs, daemon)
    if np.isnan(times):
        return ""
    interval = interval_in_words((low, high), 2)
    why = ": in a synchronised program one delayed node delays all" if low > 1 else ""
    return (
        f"To {quoted(daemon)}, HPL loses {fixed(times, 2)} times what a single node loses"
        f"{interval and f' ({interval})'}{why}."
    )


def over_nodes(runs: xr.Dataset) -> Figure:
    """Loss of the rate [%] over nodes, a panel for each of the largest shares, a series for each frequency: every block, and
    geometric means with 95 % t intervals. `runs` is from `against_none`."""
    nodes, means = runs.nodes.values, ratios(runs.log_ratio)
    with style.styled():
        groups = [*runs.groupby("share")][-PANELS:]
        figure, panels = drawing.new_figures(3.4, len(groups), sharey=True)
        for axes, (share, group) in zip(panels, groups):
            axes.axhline(0, color=style.INK, linewidth=0.8)
            frequencies = dict(zip(group.daemon.values.tolist(), group.frequency.values))
            for rank, (name, frequency) in enumerate(frequencies.items()):
                losses = 100 * (1 - means.sel(daemon=name)).rename(low="high", high="low")
                drawing.runs_and_means(
                    axes,
                    f"noise {len(frequencies) - rank}",
                    drawing.beside(nodes, rank, len(frequencies)),
                    -100 * np.expm1(runs.log_ratio.sel(daemon=name)),
                    losses,
                    f"{frequency:g} pauses a second",
                )
            drawing.doubling_axis(axes, nodes)
            axes.set_title(f"{100 * share:g} % of computing")
        panels[0].set_ylabel("loss of the HPL rate [%]")
        drawing.legend_below(figure, panels, 2)
    return figure
