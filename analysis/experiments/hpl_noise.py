"""What daemons cost HPL: each takes a share of every node's computing, in few long pauses or in many short ones."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.contrasts import differences
from analysis.derive import at_only_level, over_factors, points
from analysis.exhibit import Basis, Exhibit
from analysis.findings import T_INTERVAL, Finding, of_estimate, of_fall, origin
from analysis.statistics import design as designs
from analysis.statistics.intervals import ratio_of_means, ratios
from analysis.statistics.judgement import FALLS_OFF, FLAT, Judgement, judge, within_campaign
from analysis.wording import between, counted, fixed, percent, percent_range

FIGURES = {"noise": ("hpl_noise",)}  # what each rests on
SIDESTEP = 0.09  # of a doubling, between two frequencies
PANELS = 2  # of the largest shares: losses to smaller ones are lost in the scatter


@dataclass(frozen=True)
class Noise:
    """Daemons against none, on the same nodes in the same block.

    `daemons`, by name in ascending order, have the `share` [1] of a node's computing that each was asked to take and the
    `frequency` [Hz] of its pauses, at random times that differ from node to node. `log_ratio` is log(rate with / rate
    without) over (block, nodes, daemon). `losses`, over (nodes, daemon), has `ratio` (geometric mean) with its 95 % t
    interval `low`, `high` and `blocks`, and the `amplification` with Fieller's 95 % interval `amplification_low`,
    `amplification_high`: the mean log-loss of the rate over that of one node's computing. It is 1 where HPL loses what
    one node loses, and n where n nodes' losses add up. `growths` judge what each loses on the most nodes beyond the loss
    on the fewest; those of all but `primary`, which the design judges, are corrected for each other.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    primary: str
    daemons: pd.DataFrame
    log_ratio: xr.DataArray
    losses: xr.Dataset
    growths: dict[str, Judgement]

    @property
    def evidence(self) -> str:
        """The kind of the data."""
        return self.points.evidence.item()

    @property
    def nodes(self) -> list[int]:
        """The node counts, ascending."""
        return self.points.nodes.values.tolist()


def analyse(hpl_noise: xr.Dataset) -> Noise:
    """Derive the losses to each daemon; raises FalloffError when there is no HPL trial or several interconnects."""
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
    losses = _losses(log_ratio, trials.taken)
    return Noise(hpl_noise, derived, primary, daemons, log_ratio, losses, growths)


def _losses(log_ratio: xr.DataArray, taken: xr.DataArray) -> xr.Dataset:
    """As `Noise.losses`; a node that computes only loses log(1 + the share `taken` in fact)."""
    amplification = xr.apply_ufunc(
        ratio_of_means,
        -log_ratio,
        np.log1p(taken.sel(daemon=log_ratio.daemon)).where(log_ratio.notnull()),
        input_core_dims=[["block"], ["block"]],
        output_core_dims=[[], [], []],
        vectorize=True,
    )
    names = ("amplification", "amplification_low", "amplification_high")
    return ratios(log_ratio).assign(dict(zip(names, amplification)))


def finding(study: Noise) -> str:
    """What the largest share costs on the most nodes at each frequency, in plain English (Markdown)."""
    where = counted(study.nodes[-1], "node")
    losses = study.losses.isel(nodes=-1).dropna("daemon", subset=["ratio"])
    largest = study.daemons[study.daemons.share == study.daemons.share.max()]
    known = largest[largest.index.isin(losses.daemon.values)].frequency
    if known.empty:
        return f"**What daemons cost HPL on {where} cannot be said**: no block has the runs with and without them."
    loss, share = losses.sel(daemon=known.index[0]), percent(largest.share.iloc[0], 0)
    ends, interval = (float(1 - loss.high), float(1 - loss.low)), ""
    if np.isfinite(ends).all():
        interval = f"95 % t interval {percent_range(ends)}, "
    others = " and ".join(
        f"{percent(float(1 - losses.ratio.sel(daemon=name)))} at {frequency:g} Hz"
        for name, frequency in known.iloc[1:].items()
    )
    sentences = [
        f"**A planted daemon that takes {share} of each node's computing in {known.iloc[0]:g} pauses a second (Hz) costs HPL "
        f"{percent(float(1 - loss.ratio))} of its rate on {where}** "
        f"({interval}{counted(int(loss.blocks), 'block')}, {study.evidence} evidence).",
        f"The same share costs {others}." if others else "",
        _amplified(loss, f"At {known.iloc[0]:g} Hz"),
        *(_of_growth(study, name) for name in dict.fromkeys((known.index[0], study.primary))),
        _pauses(study, known.iloc[0]),
    ]
    return " ".join(filter(None, sentences))


def _amplified(loss: xr.Dataset, pauses: str) -> str:
    """The loss of all nodes beside the share that the daemon takes of one."""
    if np.isnan(loss.amplification):
        return ""
    ends, interval = (float(loss.amplification_low), float(loss.amplification_high)), ""
    if np.isfinite(ends).all():
        interval = f" (95 % interval {between(ends, 2)})"
    why = ": in a synchronised program one delayed node delays all" if ends[0] > 1 else ""
    times = fixed(float(loss.amplification), 2)
    return f"{pauses} HPL loses {times} times what one node loses{interval}{why}."


def _of_growth(study: Noise, name: str) -> str:
    """The verdict on whether a daemon's loss grows, with the losses on the fewest and on the most nodes."""
    growth, least = study.growths[name], designs.read(study.dataset).baseline_nodes
    lost = 1 - study.losses.ratio.sel(daemon=name, nodes=[least, study.nodes[-1]])
    span = f"from {fixed(100 * float(lost[0]), 1)} % on {least} to {percent(float(lost[1]))} on {study.nodes[-1]} nodes"
    planned = "" if name == study.primary else ", not planned"
    interval = ""
    if growth.interval:
        ends, margin = percent_range(growth.interval), percent(growth.margin, 0)
        interval = f" ({100 * growth.confidence:g} % interval of the growth {ends}, margin {margin}{planned})"
    says = {FALLS_OFF: "grows", FLAT: "stays level"}.get(growth.answer)
    if not says:
        return f"Whether the loss to {name} grows is open: it goes {span}{interval}."
    return f"The loss to {name} {says}: it goes {span}{interval}."


def _pauses(study: Noise, frequency: float) -> str:
    """How many pauses of the rarest daemon are in a run on the fewest and on the most nodes."""
    seconds, nodes = study.dataset.hpl_time, study.dataset.nodes
    ends = [float(seconds[nodes == n].median()) for n in (study.nodes[0], study.nodes[-1])]
    if not np.isfinite(ends).all():
        return ""
    fewest, most = (fixed(frequency * end, 0) for end in ends)
    return f"A run has {fewest} to {most} pauses of {frequency:g} Hz a node."


def findings(study: Noise) -> Iterator[Finding]:
    """Growth and largest loss of every daemon, as data."""
    source, nodes = origin("hpl_noise", study.dataset), study.nodes
    rarest = study.daemons[study.daemons.share == study.daemons.share.max()].index[0]
    for name, growth in study.growths.items():
        statement = (
            f"A planted daemon of {name} costs HPL more on {nodes[-1]} nodes than on {nodes[0]}"
        )
        yield of_fall(source, statement, growth, primary=name in (study.primary, rarest))
        most = study.losses.sel(nodes=nodes[-1], daemon=name)
        statement = f"What a daemon of {name} costs HPL on {nodes[-1]} nodes"
        loss, *ends = (1 - float(most[end]) for end in ("ratio", "high", "low"))
        blocks = int(most.blocks)
        yield of_estimate(source, statement, "loss", "1", loss, ends, T_INTERVAL, n=blocks)


def figures(study: Noise) -> dict[str, Exhibit]:
    """Losses over nodes."""
    return {
        "noise": Exhibit(
            "noise",
            loss_over_nodes(study),
            "HPL's loss to daemons over nodes",
            Basis(study.evidence, study.points.sizes["block"], "95 % t intervals"),
            "Loss of the HPL rate over nodes, a panel for each of the largest shares, a series for each frequency",
            "Small marks are single blocks. Open marks and bars are geometric means with their intervals.",
            rests_on=FIGURES["noise"],
        )
    }


def loss_over_nodes(study: Noise) -> Figure:
    """Loss of the rate [%] over nodes, a panel a share: every block, and geometric means with 95 % t intervals."""
    nodes, shares = np.array(study.nodes), study.daemons.groupby("share").frequency
    shares = [*shares][-PANELS:]
    with style.styled():
        figure, panels = drawing.new_figures(3.4, len(shares))
        for axes, (share, daemons) in zip(panels, shares):
            axes.sharey(panels[0])
            axes.axhline(0, color=style.INK, linewidth=0.8)
            for rank, (name, frequency) in enumerate(daemons.items()):
                series = f"noise {len(daemons) - rank}"
                places = nodes * 2 ** (SIDESTEP * (rank - (len(daemons) - 1) / 2))
                blocks = -100 * np.expm1(study.log_ratio.sel(daemon=name))
                drawing.runs(axes, series, places, blocks, f"{frequency:g} pauses a second")
                lost = 100 * (1 - study.losses.sel(daemon=name))
                ends = (lost[end].values for end in ("ratio", "high", "low"))
                drawing.interval(axes, series, places, *ends)
            drawing.node_axis(axes, study.nodes)
            axes.set_title(f"{100 * share:g} % of computing")
            axes.tick_params(labelleft=axes is panels[0])
        panels[0].set_ylabel("loss of the HPL rate [%]")
        drawing.legend_below(figure, panels, 2)
        return figure
