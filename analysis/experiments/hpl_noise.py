"""What daemons cost HPL: each takes a share of every node's computing, in few long pauses or in many short ones."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
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


@dataclass(frozen=True)
class Daemon:
    """One daemon against none, on the same nodes in the same block.

    It was asked to take the `share` [1] of a node's computing in `frequency` [Hz] pauses a second, at random times that
    differ from node to node. `log_ratio` is log(rate with / rate without) over (block, nodes). `losses` is over
    (nodes): `ratio` (geometric mean) with its 95 % t interval `low`, `high` and `blocks`, and the `amplification` with Fieller's 95 % interval `amplification_low`, `amplification_high`: the mean log-loss of
    the rate over that of one node's computing. It is 1 where HPL loses what one node loses, and n where n nodes' losses
    add up. `growth` judges what is lost on the most nodes beyond the loss on the fewest.
    """

    name: str
    share: float
    frequency: float
    log_ratio: xr.DataArray
    losses: xr.Dataset
    growth: Judgement


@dataclass(frozen=True)
class Noise:
    """The campaign's dataset and all that follows from it.

    `daemons` are in ascending order of share, then frequency; `primary` is the name of the one that the design judges:
    the growths of the others are corrected for each other.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    primary: str
    daemons: tuple[Daemon, ...]

    @property
    def evidence(self) -> str:
        """The kind of the data."""
        return self.points.evidence.item()

    @property
    def nodes(self) -> list[int]:
        """The node counts, ascending."""
        return self.points.nodes.values.tolist()

    @property
    def shares(self) -> list[float]:
        """The shares that were asked for, ascending."""
        return sorted({daemon.share for daemon in self.daemons})

    def with_share(self, share: float) -> tuple[Daemon, ...]:
        """The daemons that take it, by ascending frequency."""
        return tuple(daemon for daemon in self.daemons if daemon.share == share)


def analyse(hpl_noise: xr.Dataset) -> Noise:
    """Derive the losses to each daemon; raises FalloffError when there is no HPL trial or several interconnects."""
    derived = at_only_level(points(hpl_noise), "interconnect")
    design = designs.read(hpl_noise)
    rate = np.log(derived.rate)
    log_ratio = rate - rate.sel(daemon=design.control, drop=True)
    trials = over_factors(
        hpl_noise,
        share=hpl_noise.noise,
        frequency=hpl_noise.noise_hz,
        taken=(hpl_noise.pace_paused / hpl_noise.pace_charged).mean("node"),
    )
    asked = trials[["share", "frequency"]]
    asked = asked.max([dim for dim in trials.dims if dim != "daemon"]).to_dataframe().dropna()
    asked = asked.drop(index=design.control, errors="ignore").sort_values(["share", "frequency"])
    taken = trials.taken.squeeze("interconnect", drop=True).where(log_ratio.notnull())
    daemons = []
    for name, share, frequency in asked.itertuples():
        ratio = log_ratio.sel(daemon=name, drop=True)
        losses = _losses(ratio, taken.sel(daemon=name, drop=True))
        fall = differences(ratio, design.baseline_nodes).values
        growth = judge(fall, design.margin, derived.evidence.item(), design.one_sided)
        daemons.append(Daemon(name, share, frequency, ratio, losses, growth))
    primary = design.pair[0]
    others = [daemon for daemon in daemons if daemon.name != primary]
    growths = dict(
        zip([each.name for each in others], within_campaign([each.growth for each in others]))
    )
    daemons = [replace(each, growth=growths.get(each.name, each.growth)) for each in daemons]
    return Noise(hpl_noise, derived, primary, tuple(daemons))


def _losses(log_ratio: xr.DataArray, taken: xr.DataArray) -> xr.Dataset:
    """As `Daemon.losses`; a node that computes only loses log(1 + the share `taken` in fact)."""
    amplification = xr.apply_ufunc(
        ratio_of_means,
        -log_ratio,
        np.log1p(taken),
        input_core_dims=[["block"], ["block"]],
        output_core_dims=[[], [], []],
        vectorize=True,
    )
    names = ("amplification", "amplification_low", "amplification_high")
    return ratios(log_ratio).assign(dict(zip(names, amplification)))


def finding(study: Noise) -> str:
    """What the largest share costs on the most nodes at each frequency, in plain English (Markdown)."""
    share, nodes = study.shares[-1], study.nodes[-1]
    known = [
        (daemon, daemon.losses.sel(nodes=nodes))
        for daemon in study.with_share(share)
        if np.isfinite(daemon.losses.ratio.sel(nodes=nodes))
    ]
    where = counted(nodes, "node")
    if not known:
        return f"**What daemons cost HPL on {where} cannot be said**: no block has the runs with and without them."
    (first, loss), *others = known
    interval = ""
    if np.isfinite(loss.low):
        ends = percent_range((float(1 - loss.high), float(1 - loss.low)))
        interval = f"95 % t interval {ends}, "
    beside = " and ".join(
        f"{percent(float(1 - other.ratio))} in {daemon.frequency:g} pauses"
        for daemon, other in others
    )
    sentences = [
        f"**A daemon that takes {percent(share, 0)} of each node's computing in {first.frequency:g} pauses a second "
        f"costs HPL {percent(float(1 - loss.ratio))} of its rate on {where}** "
        f"({interval}{counted(int(loss.blocks), 'block')}, {study.evidence} evidence).",
        f"The same share costs {beside}." if others else "",
        _amplified(loss, f"In {first.frequency:g} pauses"),
        _of_growth(study),
    ]
    return " ".join(filter(None, sentences))


def _amplified(loss: xr.Dataset, pauses: str) -> str:
    """The loss of all nodes beside the loss of one."""
    if np.isnan(loss.amplification):
        return ""
    ends, interval = (float(loss.amplification_low), float(loss.amplification_high)), ""
    if np.isfinite(ends).all():
        interval = f" (Fieller's 95 % interval {between(ends, 2)})"
    why = ": in a synchronised program one delayed node delays all" if ends[0] > 1 else ""
    times = fixed(float(loss.amplification), 2)
    return f"{pauses} HPL loses {times} times what one node loses{interval}{why}."


def _of_growth(study: Noise) -> str:
    """The verdict on the statement that the campaign was planned for."""
    growth = next(daemon.growth for daemon in study.daemons if daemon.name == study.primary)
    span = f"from {designs.read(study.dataset).baseline_nodes} to {study.nodes[-1]} nodes"
    interval = ""
    if growth.interval:
        ends, margin = percent_range(growth.interval), percent(growth.margin, 0)
        interval = f" ({100 * growth.confidence:g} % interval {ends}, margin {margin})"
    if growth.answer == FALLS_OFF:
        return f"With a daemon of {study.primary} the loss grows by {percent(growth.fall)} {span}{interval}."
    if growth.answer == FLAT:
        return f"With a daemon of {study.primary} the loss does not grow {span}{interval}."
    return f"Whether the loss with a daemon of {study.primary} grows {span} is open{interval}."


def findings(study: Noise) -> Iterator[Finding]:
    """Growth and largest loss of every daemon, as data."""
    source, nodes = origin("hpl_noise", study.dataset), study.nodes
    for daemon in study.daemons:
        statement = f"A daemon of {daemon.name} costs more on {nodes[-1]} nodes than {nodes[0]}"
        yield of_fall(source, statement, daemon.growth, primary=daemon.name == study.primary)
        most = daemon.losses.sel(nodes=nodes[-1])
        statement = f"What a daemon of {daemon.name} costs HPL on {nodes[-1]} nodes"
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
            "Loss of the HPL rate over nodes, a panel for each share that daemons take, a series for each frequency",
            "Small marks are single blocks. Open marks and bars are geometric means with their intervals.",
            rests_on=FIGURES["noise"],
        )
    }


def loss_over_nodes(study: Noise) -> Figure:
    """Loss of the rate [%] over nodes, a panel a share: every block, and geometric means with 95 % t intervals."""
    with style.styled():
        figure, panels = drawing.new_figures(3.4, len(study.shares))
        for axes, share in zip(panels, study.shares):
            axes.sharey(panels[0])
            axes.axhline(0, color=style.INK, linewidth=0.8)
            daemons = study.with_share(share)
            for rank, daemon in enumerate(daemons):
                series = f"noise {len(daemons) - rank}"
                sidestep = SIDESTEP * (rank - (len(daemons) - 1) / 2)
                places = daemon.losses.nodes.values * 2**sidestep
                blocks, label = (
                    -100 * np.expm1(daemon.log_ratio),
                    f"{daemon.frequency:g} pauses a second",
                )
                drawing.runs(axes, series, places, blocks, label)
                lost = 100 * (1 - daemon.losses)
                ends = (lost[end].values for end in ("ratio", "high", "low"))
                drawing.interval(axes, series, places, *ends)
            drawing.node_axis(axes, study.nodes)
            axes.set_title(f"{100 * share:g} % of computing")
            axes.tick_params(labelleft=axes is panels[0])
        panels[0].set_ylabel("loss of the HPL rate [%]")
        drawing.legend_below(figure, panels, 2)
        return figure
