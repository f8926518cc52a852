"""What daemons cost HPL: each takes a share of every node's computing time, in few long pauses or
in many short ones."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from analysis import drawing, exhibit, style
from analysis.contrasts import differences
from analysis.derive import at_only_level, over_factors, points
from analysis.findings import (
    Finding,
    at_place,
    interval_in_words,
    judged_in_words,
    of_estimate,
    of_fall,
    origin,
    resting_on,
)
from analysis.statistics import design as designs
from analysis.statistics.intervals import ratio_of_means, ratios
from analysis.statistics.judgement import FALLS_OFF, FLAT, Judgement, judge, within_campaign
from analysis.wording import counted, fixed, percent

FIGURES = {"noise": ("hpl_noise",)}  # what each rests on
GROWS = {FALLS_OFF: "grows", FLAT: "stays level"}  # a loss, by the answer on its growth
PANELS = 2  # for the largest shares; losses to smaller ones vanish in the scatter


@dataclass(frozen=True)
class Noise:
    """Runs with daemons against runs without, on the same nodes in the same block.

    `daemons`, by name in ascending order, have the `share` [1] of a node's computing that each was
    asked to take and the `frequency` [Hz] of its pauses, at random times that differ between nodes.
    `log_ratio` is log(rate with / rate without) over (block, nodes, daemon), and `of_node` the
    log-loss of a node that only computes. `losses`, over (nodes, daemon), has `ratio` (geometric
    mean) with its 95 % t interval `low`, `high` and `blocks`. `growths` judge how much more is lost
    on the most nodes than on the fewest. The growths of all but `primary`, which the design judges,
    are corrected for each other.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    primary: str
    daemons: pd.DataFrame
    log_ratio: xr.DataArray
    of_node: xr.DataArray
    losses: xr.Dataset
    growths: dict[str, Judgement]

    @property
    def nodes(self) -> list[int]:
        """The node counts, ascending."""
        return self.points.nodes.values.tolist()

    @property
    def largest(self) -> pd.Series:
        """The frequencies [Hz] of the daemons with the largest share, the rarest first."""
        return self.daemons[self.daemons.share == self.daemons.share.max()].frequency

    def amplification(self, daemon: str) -> tuple[float, float, float]:
        """The mean log-loss of the rate on the most nodes over that of one node's computing, with
        Fieller's 95 % interval.

        It is 1 if HPL loses what one node loses, and n if the losses of n nodes add up.
        """
        place = {"daemon": daemon, "nodes": self.nodes[-1]}
        return ratio_of_means(-self.log_ratio.sel(place), self.of_node.sel(place))

    @property
    def rarest(self) -> str:
        """The daemon with the largest share and the fewest, longest pauses."""
        return self.largest.index[0]


def analyse(hpl_noise: xr.Dataset) -> Noise:
    """Derive the losses to each daemon; raises FalloffError if there is no HPL trial or there are
    several interconnects."""
    derived = at_only_level(points(hpl_noise), "interconnect")
    design = designs.read(hpl_noise)
    trials = over_factors(
        hpl_noise,
        share=hpl_noise.noise,
        frequency=hpl_noise.noise_hz,
        taken=(hpl_noise.pace_paused / hpl_noise.pace_charged).mean("node"),
    ).squeeze("interconnect", drop=True)
    asked = trials[["share", "frequency"]].max(["block", "nodes"]).to_dataframe().dropna()
    daemons = asked.drop(index=design.control, errors="ignore").sort_values(["share", "frequency"])
    rate = np.log(derived.rate)
    log_ratio = rate.sel(daemon=daemons.index.values) - rate.sel(daemon=design.control, drop=True)
    falls = differences(log_ratio, design.baseline_nodes).transpose("daemon", "block")
    judged = [
        judge(fall.values, design.margin, derived.evidence.item(), design.one_sided)
        for fall in falls
    ]
    growths, primary = dict(zip(daemons.index, judged)), design.pair[0]
    others = [name for name in growths if name != primary]
    growths |= zip(others, within_campaign([growths[name] for name in others]))
    # A node that only computes loses log(1 + the share actually taken).
    of_node = np.log1p(trials.taken.sel(daemon=log_ratio.daemon))
    losses = ratios(log_ratio)
    return Noise(hpl_noise, derived, primary, daemons, log_ratio, of_node, losses, growths)


def finding(study: Noise) -> str:
    """The cost of the largest share on the most nodes at each frequency, in plain English
    (Markdown)."""
    where, losses = counted(study.nodes[-1], "node"), study.losses.isel(nodes=-1)
    costs = {name: lost(losses.sel(daemon=name)) for name in study.largest.index}
    cost, *ends = costs[study.rarest]
    if np.isnan(cost):
        return f"**What daemons cost HPL on {where} cannot be said**: no block has the runs with and without them."
    share, hertz = percent(study.daemons.share.max(), 0), f"{study.largest.iloc[0]:g}"
    blocks = int(losses.blocks.sel(daemon=study.rarest))
    others = [
        f"{percent(costs[name][0])} at {times:g} Hz"
        for name, times in study.largest[1:].items()
        if np.isfinite(costs[name][0])
    ]
    sentences = [
        f"**A planted daemon that takes {share} of each node's computing in {hertz} pauses a second (Hz) costs HPL "
        f"{percent(cost)} of its rate on {where}** ({resting_on(study.dataset, blocks, interval_in_words(ends))}).",
        f"The same share costs {' and '.join(others)}." if others else "",
    ]
    amplified, *ends = study.amplification(study.rarest)
    if np.isfinite(amplified):
        interval = interval_in_words(ends, 2)
        why = ": in a synchronised program one delayed node delays all" if ends[0] > 1 else ""
        sentences.append(
            f"At {hertz} Hz that is {fixed(amplified, 2)} times what a single node loses{interval and f' ({interval})'}{why}."
        )
    sentences += [_of_growth(study, name) for name in dict.fromkeys((study.rarest, study.primary))]
    return " ".join(filter(None, sentences))


def lost(losses: xr.Dataset) -> tuple[float, float, float]:
    """The loss at one point [1] and its interval."""
    left, low, high = at_place(losses)
    return 1 - left, 1 - high, 1 - low


def _of_growth(study: Noise, name: str) -> str:
    """The verdict on whether a daemon's loss grows, with the losses on the fewest and on the most nodes."""
    growth, ends = study.growths[name], (study.nodes[0], study.nodes[-1])
    few, many = (percent(lost(study.losses.sel(daemon=name, nodes=n))[0]) for n in ends)
    basis = ""
    if interval := judged_in_words(growth, of="of the growth"):
        planned = "" if name == study.primary else ", not planned"
        basis = f" ({interval}, margin {percent(growth.margin, 0)}{planned})"
    span = f"it goes from {few} on {ends[0]} to {many} on {ends[1]} nodes{basis}."
    if growth.answer not in GROWS:
        return f"Whether the loss to {name} grows is open: {span}"
    return f"The loss to {name} {GROWS[growth.answer]}: {span}"


def findings(study: Noise) -> Iterator[Finding]:
    """Growth and largest loss of every daemon, as data."""
    source, nodes = origin("hpl_noise", study.dataset), study.nodes
    for name, growth in study.growths.items():
        statement = f"A daemon of {name} costs more on {nodes[-1]} nodes than on {nodes[0]}"
        yield of_fall(source, statement, growth, primary=name in (study.primary, study.rarest))
        most = study.losses.sel(nodes=nodes[-1], daemon=name)
        statement = f"What a daemon of {name} costs HPL on {nodes[-1]} nodes"
        yield of_estimate(source, statement, "loss", lost(most), int(most.blocks))


def figures(study: Noise) -> dict[str, exhibit.Exhibit]:
    """Loss of the rate [%] over nodes, one panel per share: every block, and geometric means with
    95 % t intervals."""
    shares = [*study.daemons.groupby("share").frequency][-PANELS:]
    with style.styled():
        figure, panels = drawing.new_figures(3.4, len(shares), sharey=True)
        for axes, (share, daemons) in zip(panels, shares):
            axes.axhline(0, color=style.INK, linewidth=0.8)
            for rank, (name, frequency) in enumerate(daemons.items()):
                series = f"noise {len(daemons) - rank}"
                places = drawing.beside(np.array(study.nodes), rank, len(daemons))
                blocks = -100 * np.expm1(study.log_ratio.sel(daemon=name))
                means = 100 * (1 - study.losses.sel(daemon=name)).rename(low="high", high="low")
                label = f"{frequency:g} pauses a second"
                drawing.runs_and_means(axes, series, places, blocks, means, label)
            drawing.doubling_axis(axes, study.nodes)
            axes.set_title(f"{100 * share:g} % of computing")
        panels[0].set_ylabel("loss of the HPL rate [%]")
        drawing.legend_below(figure, panels, 2)
    return exhibit.only(
        FIGURES,
        figure,
        "HPL's loss to daemons over nodes",
        exhibit.Basis.of_dataset(study.dataset, "95 % t intervals"),
        "Loss of the HPL rate over nodes, a panel for each of the largest shares, a series for each frequency",
        drawing.RUNS_AND_MEANS,
    )
