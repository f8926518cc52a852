"""What daemons cost HPL: each takes a share of every node's computing, in few long pauses or in many short ones."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.contrasts import differences
from analysis.derive import at_only_level, over_factors, points
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import T_INTERVAL, Finding, of_estimate, of_fall, origin
from analysis.statistics.intervals import ratio_of_means, ratios
from analysis.statistics import design as designs
from analysis.statistics.judgement import (
    FALLS_OFF,
    FLAT,
    RISES,
    SIZE_OPEN,
    Judgement,
    judge,
    within_campaign,
)
from analysis.attributes import short_names
from analysis.wording import between, counted, duration, fixed, percent, percent_range

# The campaigns, and the files of data/, that each figure rests on.
FIGURES = {
    "noise": ("hpl_noise",),
    "amplification": ("hpl_noise",),
}

SIDESTEP = 0.09  # of a doubling, between two frequencies
MECHANISM = "In a synchronised program one delayed node delays all."


@dataclass(frozen=True)
class Daemon:
    """One daemon against none, on the same nodes in the same block.

    It was asked to take the `share` [1] of a node's computing in `frequency` [Hz] pauses a second, at random times that
    differ from node to node. `log_ratio` is log(rate with / rate without) over (block, nodes). `losses` is over
    (nodes): `ratio` (geometric mean) with its 95 % t interval `low`, `high` and `blocks`, the share `taken` in fact,
    and the `amplification` with Fieller's 95 % interval `amplification_low`, `amplification_high`: the mean log-loss of the
    rate over that of one node's computing. It is 1 where HPL loses what one node loses, and n where n nodes' losses add
    up. `growth` judges what is lost on the most nodes beyond the loss on the fewest.
    """

    name: str
    share: float
    frequency: float
    log_ratio: xr.DataArray
    losses: xr.Dataset
    growth: Judgement

    @property
    def pause(self) -> float:
        """How long a pause lasts [s]."""
        return self.share / self.frequency


@dataclass(frozen=True)
class Noise:
    """The campaign's dataset and all that follows from it.

    `daemons` are in ascending order of share, then frequency; `primary` is the name of the one that the design judges:
    the growths of the others are corrected for each other. `rare` is over (share, nodes): the `ratio` of the rate
    with the fewest pauses a second to that with the most, geometric mean with its 95 % t interval `low`, `high`.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    network: str
    evidence: str
    primary: str
    daemons: tuple[Daemon, ...]
    rare: xr.Dataset

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
    log_ratio = (rate - rate.sel(daemon=design.control, drop=True)).rename("log_ratio")
    asked = _asked(hpl_noise)
    taken = taken_shares(hpl_noise).squeeze("interconnect", drop=True).where(log_ratio.notnull())
    evidence = derived.evidence.item()
    daemons = [
        _daemon(
            name,
            *asked[name],
            *(values.sel(daemon=name, drop=True) for values in (log_ratio, taken)),
            design,
            evidence,
        )
        for name in sorted(asked, key=asked.get)
        if name != design.control
    ]
    primary = design.pair[0]
    daemons = _corrected(daemons, primary)
    return Noise(
        dataset=hpl_noise,
        points=derived,
        network=short_names(hpl_noise)[derived.interconnect.item()],
        evidence=evidence,
        primary=primary,
        daemons=daemons,
        rare=_rare(daemons),
    )


def taken_shares(dataset: xr.Dataset) -> xr.DataArray:
    """The share of its computing that a daemon took from a node, mean over the nodes, over (block, *factors)."""
    taken = (dataset.pace_paused / dataset.pace_charged).mean("node")
    laid_out = over_factors(dataset, taken=taken).taken
    return laid_out.assign_attrs(
        units="1", long_name="share of a node's computing that the daemon took"
    )


def _asked(dataset: xr.Dataset) -> dict[str, tuple[float, float]]:
    """Share [1] and frequency [Hz] of each daemon that ran."""
    settings = over_factors(dataset, noise=dataset.noise, noise_hz=dataset.noise_hz)
    dims = [dim for dim in settings.noise.dims if dim != "daemon"]
    most = settings[["noise", "noise_hz"]].max(dims).dropna("daemon")
    asked = zip(most.noise.values.tolist(), most.noise_hz.values.tolist())
    return dict(zip(most.daemon.values.tolist(), asked))


def _daemon(name, share, frequency, log_ratio, taken, design, evidence) -> Daemon:
    fall = differences(log_ratio, design.baseline_nodes)
    return Daemon(
        name=name,
        share=share,
        frequency=frequency,
        log_ratio=log_ratio,
        losses=ratios(log_ratio).assign(
            taken=taken.mean("block"), **_amplification(log_ratio, taken)
        ),
        growth=judge(fall.values, design.margin, evidence, design.one_sided),
    )


def _amplification(log_ratio: xr.DataArray, taken: xr.DataArray) -> dict[str, xr.DataArray]:
    """Ratio of the mean log-losses, and its interval, over (nodes); a node that computes only loses log(1 + taken)."""
    found = xr.apply_ufunc(
        ratio_of_means,
        -log_ratio,
        np.log1p(taken),
        input_core_dims=[["block"], ["block"]],
        output_core_dims=[[], [], []],
        vectorize=True,
    )
    return dict(zip(("amplification", "amplification_low", "amplification_high"), found))


def _corrected(daemons: list[Daemon], primary: str) -> tuple[Daemon, ...]:
    others = within_campaign([daemon.growth for daemon in daemons if daemon.name != primary])
    growths = dict(zip([daemon.name for daemon in daemons if daemon.name != primary], others))
    return tuple(
        replace(daemon, growth=growths.get(daemon.name, daemon.growth)) for daemon in daemons
    )


def _rare(daemons: tuple[Daemon, ...]) -> xr.Dataset:
    shares = sorted({daemon.share for daemon in daemons})
    of_share = {share: [daemon for daemon in daemons if daemon.share == share] for share in shares}
    compared = [ratios(each[0].log_ratio - each[-1].log_ratio) for each in of_share.values()]
    return xr.concat(compared, xr.DataArray(shares, dims="share", name="share"))


def loss_over_nodes(study: Noise) -> Figure:
    """Loss of the rate [%] over nodes, a panel a share: every block, and geometric means with 95 % t intervals."""
    with style.styled():
        figure, panels = drawing.new_figures(3.4, len(study.shares))
        for axes, share in zip(panels, study.shares):
            axes.sharey(panels[0])
            axes.axhline(0, color=style.INK, linewidth=0.8)
            for series, places, daemon in _series(study, share):
                drawing.runs(
                    axes, series, places, -100 * np.expm1(daemon.log_ratio), _frequency(daemon)
                )
                lost = 100 * (1 - daemon.losses)
                drawing.interval(
                    axes, series, places, *(lost[end].values for end in ("ratio", "high", "low"))
                )
            drawing.node_axis(axes, study.nodes)
            axes.set_title(f"{100 * share:g} % of computing")
        _finish(figure, panels, "loss of the HPL rate [%]")
        return figure


def amplification_over_nodes(study: Noise) -> Figure:
    """Log-loss of the rate over that of one node's computing [1], a panel a share, with Fieller's 95 % intervals."""
    with style.styled():
        figure, panels = drawing.new_figures(3.4, len(study.shares))
        along = np.geomspace(min(study.nodes), max(study.nodes), 80)
        for axes, share in zip(panels, study.shares):
            axes.sharey(panels[0])
            axes.plot(
                along,
                along,
                color=style.FAINT,
                linewidth=1,
                label="n: all nodes' losses",
                gid=drawing.COMPUTED,
            )
            axes.axhline(1, color=style.INK, linewidth=0.8, label="1: one node's loss")
            for series, places, daemon in _series(study, share):
                look = style.look(series)
                axes.plot(
                    [], [], look.marker, color=look.color, mfc="white", label=_frequency(daemon)
                )
                ends = ("amplification", "amplification_low", "amplification_high")
                drawing.interval(axes, series, places, *(daemon.losses[end].values for end in ends))
            drawing.node_axis(axes, study.nodes)
            axes.set_title(f"{100 * share:g} % of computing")
        # Intervals of a loss that can hardly be told from 0 have no end that a figure could show.
        panels[0].set_ylim(-0.25 * max(study.nodes), 1.25 * max(study.nodes))
        _finish(figure, panels, "amplification [1]")
        return figure


def _series(study: Noise, share: float) -> Iterator[tuple[str, np.ndarray, Daemon]]:
    """Each frequency's series, the places of its marks and its daemon."""
    daemons = study.with_share(share)
    for rank, daemon in enumerate(daemons):
        sidestep = SIDESTEP * (rank - (len(daemons) - 1) / 2)
        yield f"noise {len(daemons) - rank}", daemon.losses.nodes.values * 2**sidestep, daemon


def _frequency(daemon: Daemon) -> str:
    return f"{daemon.frequency:g} pauses a second"


def _finish(figure: Figure, panels: np.ndarray, label: str) -> None:
    panels[0].set_ylabel(label)
    for axes in panels[1:]:
        axes.tick_params(labelleft=False)
    drawing.legend_below(figure, panels, 2)


def finding(study: Noise) -> str:
    """What the largest share costs on the most nodes at each frequency, in plain English (Markdown)."""
    share, nodes = study.shares[-1], study.nodes[-1]
    known = [(it, it.losses.sel(nodes=nodes)) for it in study.with_share(share)]
    known = [(it, at) for it, at in known if np.isfinite(at.ratio)]
    where = counted(nodes, "node")
    if not known:
        return f"**What daemons cost HPL on {where} cannot be said**: no block has the runs with and without them."
    (first, at), *others = known
    interval = "" if np.isnan(at.low) else f"95 % t interval {_lost(at)}, "
    beside = " and ".join(
        f"{percent(float(1 - it.ratio))} in {other.frequency:g} pauses" for other, it in others
    )
    said = [
        f"**A daemon that takes {percent(share, 0)} of each node's computing in {first.frequency:g} pauses a second "
        f"costs HPL {percent(float(1 - at.ratio))} of its rate on {where}** "
        f"({interval}{counted(int(at.blocks), 'block')}, {study.evidence} evidence).",
        f"The same share costs {beside}." if others else "",
        MECHANISM if at.amplification_low > 1 else "",
        _of_rare(study, share, nodes) if others else "",
    ]
    return " ".join(filter(None, said))


def _of_rare(study: Noise, share: float, nodes: int) -> str:
    ratio = study.rare.sel(share=share, nodes=nodes)
    if ratio.high < 1:
        return "Long rare pauses cost more than short frequent ones."
    if ratio.low > 1:
        return "Short frequent pauses cost more than long rare ones."
    return "Whether long rare pauses cost more than short frequent ones is open."


def findings(study: Noise) -> Iterator[Finding]:
    """Growth and largest loss of every daemon, as data."""
    source, nodes = origin("hpl_noise", study.dataset), study.nodes
    for daemon in study.daemons:
        statement = (
            f"the rate with a daemon of {daemon.name} falls from {nodes[0]} to {nodes[-1]} nodes"
        )
        yield of_fall(source, statement, daemon.growth, primary=daemon.name == study.primary)
        most = daemon.losses.sel(nodes=nodes[-1])
        ends = 1 - float(most.high), 1 - float(most.low)
        said = f"what a daemon of {daemon.name} costs HPL on {nodes[-1]} nodes"
        yield of_estimate(
            source, said, "loss", "1", 1 - float(most.ratio), ends, T_INTERVAL, n=int(most.blocks)
        )


def figures(study: Noise) -> dict[str, Exhibit]:
    """Losses, and the amplification of one node's loss, over nodes."""
    marks = "Small marks are single blocks; open marks and bars are geometric means with their intervals."
    panels = "a panel for each share that daemons take, a series for each frequency"
    return {
        "noise": Exhibit(
            "noise",
            loss_over_nodes(study),
            "HPL's loss to daemons over nodes",
            _basis(study, "95 % t intervals"),
            f"Loss of the HPL rate over nodes, {panels}",
            marks,
            rests_on=FIGURES["noise"],
        ),
        "amplification": Exhibit(
            "amplification",
            amplification_over_nodes(study),
            "HPL's loss over the loss of one node's computing",
            _basis(study, "Fieller's 95 % intervals"),
            f"Amplification over nodes, {panels}",
            "Marks are ratios of arithmetic means over the blocks. An interval may end outside of the axes.",
            rests_on=FIGURES["amplification"],
        ),
    }


def losses_table(study: Noise) -> Table:
    """Loss and amplification of every daemon on every node count."""
    columns = (
        "Daemon",
        "A pause",
        "Nodes",
        "Taken",
        "Loss (95 % interval)",
        "Amplification (95 % interval)",
        "Blocks",
    )
    rows = [_loss_row(daemon, n) for daemon in study.daemons for n in study.nodes]
    basis = _basis(study, "95 % t intervals of the losses, Fieller's of the amplification")
    return Table(
        "noise",
        columns,
        "lrrrllr",
        rows,
        "HPL's losses to daemons: geometric means over the blocks",
        basis,
    )


def growth_table(study: Noise) -> Table:
    """The verdict on the growth of every daemon's cost with the nodes."""
    design = designs.read(study.dataset)
    level = percent(1 - 2 * design.one_sided, 0)
    rows = [_growth_row(daemon, daemon.name == study.primary) for daemon in study.daemons]
    caption = (
        f"Whether the loss grows from {design.baseline_nodes} to {counted(study.nodes[-1], 'node')}, beyond a margin of "
        f"{percent(design.margin, 0)}. The campaign was planned for the daemon in bold; Holm's procedure corrects the others."
    )
    columns = ("Daemon", "The loss", "Fall", f"{level} interval", "Blocks")
    return Table(
        "noise-growth", columns, "llrrr", rows, caption, _basis(study, f"{level} t intervals")
    )


def _basis(study: Noise, intervals: str) -> Basis:
    return Basis(study.evidence, study.points.sizes["block"], intervals)


def _loss_row(daemon: Daemon, nodes: int) -> tuple[str, ...]:
    at = daemon.losses.sel(nodes=nodes)
    loss, amplification = _known(1 - at.ratio), _known(at.amplification)
    return (
        daemon.name,
        duration(daemon.pause),
        str(nodes),
        percent(_known(at.taken), 2),
        percent(loss) + ("" if np.isnan(at.low) else f" ({_lost(at)})"),
        fixed(amplification, 2) + _in_parentheses(at.amplification_low, at.amplification_high),
        str(int(at.blocks)),
    )


def _growth_row(daemon: Daemon, primary: bool) -> tuple[str, ...]:
    growth = daemon.growth
    words = {
        FALLS_OFF: "grows",
        SIZE_OPEN: "grows, size open",
        FLAT: "does not grow",
        RISES: "shrinks",
    }
    answer = words.get(growth.answer, growth.answer)
    name = f"**{daemon.name}**" if primary else daemon.name
    return name, answer, percent(growth.fall), percent_range(growth.interval), str(growth.blocks)


def _lost(at: xr.Dataset) -> str:
    """The interval of a loss, from that of a ratio."""
    return percent_range((float(1 - at.high), float(1 - at.low)))


def _in_parentheses(low, high) -> str:
    return (
        f" ({between((float(low), float(high)), 2)})"
        if np.isfinite(low) and np.isfinite(high)
        else ""
    )


def _known(value) -> float | None:
    return float(value) if np.isfinite(value) else None
