"""The 15 cases of the FortiSwitch paper's Table 1 in the scale model, beside their simulation at the paper's scale.

The paper printed one line, 80 % of Rpeak, and no point of its curves. The two scales meet on one axis, HPL's rate as a
share of F, what the nodes compute together. Rpeak enters by one calibrated constant, F / Rpeak of the simulated node.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, published, style
from analysis.contrasts import log_ratios
from analysis.derive import at_only_level, over_factors, points
from analysis.inference.over_blocks import ratios
from analysis.statistics import design as designs
from analysis.statistics.judgement import FLAT, Judgement, judge
from analysis.studies.efficiency import rpeak
from analysis.studies.scaling import short_names
from analysis.wording import between, counted, fixed, percent, percent_range
from runners.record import FalloffError

TICKS = (2, 4, 8, 16, 36)  # nodes
SIDESTEP = 0.05  # of a doubling, between the networks


@dataclass(frozen=True)
class Table1:
    """Both campaigns and what they say of the fall of `network` against `reference`.

    `points` are the emulated ones over (block, interconnect, nodes); `shares`, over (interconnect, nodes), the shares of
    F [1]: `emulated` (geometric mean), its 95 % t interval `low`, `high`, `blocks`, and `simulated` (NaN without that
    campaign). `ratios`, over (nodes), is `network` over `reference` within a block: `ratio`, `low`, `high`, `blocks`.
    `fall` judges the fall of that ratio from the fewest nodes to `end`, or to the most where the end is not known.
    `end` is the least node count from which on every later case is flat against it, at the margin; `simulated_end` the
    same of the simulation; None where there is none. `waiting`, over (nodes), is the part of a run [1] in which a rank waits
    for a processor of the emulating machine, mean of ranks, networks and blocks, NaN where that is not recorded. `constant` is
    F / Rpeak of the simulated node [1], None without it, and `line` [1] the printed share of Rpeak.
    """

    dataset: xr.Dataset
    simulated: xr.Dataset | None
    points: xr.Dataset
    network: str
    reference: str
    margin: float
    shares: xr.Dataset
    ratios: xr.Dataset
    fall: Judgement
    end: int | None
    simulated_end: int | None
    waiting: xr.DataArray
    constant: float | None
    line: float

    @property
    def evidence(self) -> str:
        """The kind of the emulated data."""
        return self.points.evidence.item()

    @property
    def cases(self) -> np.ndarray:
        """The node counts, ascending, of which any run is valid."""
        return self.points.nodes.values[self.points.rate.notnull().any(["block", "interconnect"]).values]


def analyse(emulated: xr.Dataset, paper: xr.Dataset | None = None) -> Table1:
    """Derive both curves and where the fall ends, from the blocks that are there.

    `paper` is the campaign of the same cases at the paper's scale. Raises FalloffError when a dataset holds no HPL
    trial, or the simulated campaign has several blocks.
    """
    derived, design = points(emulated), designs.read(emulated)
    network, reference = design.pair
    ratio = log_ratios(derived, network, reference)
    evidence = derived.evidence.item()
    end = end_of_fall(ratio, design.margin, evidence)
    shares = ratios(np.log(derived.share)).rename(ratio="emulated")
    model = None if paper is None else at_only_level(points(paper), "block")
    of_model = np.nan * shares.emulated if model is None else model.share.reset_coords(drop=True).reindex_like(shares)
    known = ratio.nodes.values[ratio.notnull().any("block").values]
    last = end or (known.max() if len(known) else ratio.nodes.values.max())
    first = ratio.nodes.values.min()
    return Table1(
        dataset=emulated,
        simulated=paper,
        points=derived,
        network=network,
        reference=reference,
        margin=design.margin,
        shares=shares.assign(simulated=of_model),
        ratios=ratios(ratio),
        fall=judge((ratio.sel(nodes=last) - ratio.sel(nodes=first)).values, design.margin, evidence),
        end=end,
        simulated_end=None
        if model is None
        else end_of_fall(log_ratios(model, network, reference).expand_dims("block"), design.margin, "simulated"),
        waiting=_waiting(emulated),
        constant=None if paper is None else _constant(model),
        line=published.smith()["efficiency"]["line"]["value"] / 100,
    )


def _waiting(dataset: xr.Dataset) -> xr.DataArray:
    part = (dataset.pace_delayed.mean("node") / dataset.hpl_time).where(dataset.status == "ok")
    return over_factors(dataset, part=part).part.mean(["block", "interconnect"])


def end_of_fall(log_ratio: xr.DataArray, margin: float, evidence: str) -> int | None:
    """The least node count against which every later case is flat; None where the last but one already is not.

    `log_ratio` is over (block, nodes); cases without a value are left out. The node counts are tested from the most
    downwards, up to the first that fails: a fixed sequence, so that no level needs a correction. "All later cases are
    flat" holds when each of their 90 % intervals lies inside the margin.
    """
    known = log_ratio.sel(nodes=log_ratio.notnull().any("block")).transpose("nodes", "block")
    values, found = known.values, None
    for at in range(len(values) - 2, -1, -1):
        later = (judge(case - values[at], margin, evidence) for case in values[at + 1 :])
        if not all(it.answer == FLAT for it in later):
            break
        found = int(known.nodes.values[at])
    return found


def _constant(model: xr.Dataset) -> float:
    constant = float((1e9 * model.known_rate / model.nodes).max()) / rpeak(model)
    if not np.isfinite(constant):
        raise FalloffError(f"Campaign {model.attrs['campaign']} was simulated on nodes of which no Rpeak is described.")
    return constant


def draw(study: Table1) -> dict[str, Figure]:
    """The figure by its name."""
    return {"table1": over_nodes(study)}


def over_nodes(study: Table1) -> Figure:
    """Share of F [%] over nodes: every emulated run, geometric means with 95 % t intervals, the simulated curve, and the
    printed line; on the right the same as Rmax / Rpeak."""
    names, networks = short_names(study.dataset), study.points.interconnect.values
    with style.styled():
        figure, axes = drawing.new_figure(3.8)
        for rank, name in enumerate(networks):
            x = study.points.nodes.values * 2 ** (SIDESTEP * (rank - (len(networks) - 1) / 2))
            look, at = style.look(name), 100 * study.shares.sel(interconnect=name)
            drawing.runs(axes, name, x, 100 * study.points.share.sel(interconnect=name), "")
            axes.plot([], [], look.marker, color=look.color, mfc="white", label=f"{names[name]}, emulated")
            drawing.interval(axes, name, x, *(at[end].values for end in ("emulated", "low", "high")))
            if study.simulated is not None:
                label = f"{names[name]}, simulated at the paper's scale"
                axes.plot(at.nodes, at.simulated, color=look.color, linestyle=look.line, gid=drawing.MODEL, label=label)
        drawing.node_axis(axes, [n for n in TICKS if n in study.points.nodes.values])
        axes.set_ylabel("HPL rate / F of the nodes [%]")
        if study.constant is not None:
            _published(axes, study)
        drawing.legend_below(figure, axes, 2)
        return figure


def _published(axes: Axes, study: Table1) -> None:
    line, constant = 100 * study.line, study.constant
    label = f"published: {line:g} % of Rpeak"
    axes.axhline(line / constant, color=style.INK, linewidth=0.9, linestyle="-.", label=label, zorder=1)
    right = axes.secondary_yaxis("right", functions=(lambda share: share * constant, lambda peak: peak / constant))
    right.set_ylabel("Rmax / Rpeak [%],\nby the calibrated constant")


def finding(study: Table1) -> str:
    """Where GigE's fall ends, in both scales, and what 10GE does, in plain English (Markdown)."""
    names, cases = short_names(study.dataset), study.cases
    network, reference = names[study.network], names[study.reference]
    if study.fall.fall is None:
        return f"**Where {network}'s fall ends cannot be said**: no block has both networks on the fewest and the most nodes."
    first, last = int(study.ratios.nodes.min()), int(cases.max())
    fall, basis = percent(study.fall.fall), _basis(study)
    if study.end is None:
        head = f"**Where {network}'s fall ends is open**: against {reference} it loses {fall} from {first} to {last} nodes {basis}."
    elif study.end == first:
        head = f"**{network} does not fall off against {reference}**: every case up to {last} nodes is within {percent(study.margin, 0)} of that on {first} nodes."
    else:
        head = (
            f"**{network}'s fall ends at {counted(study.end, 'node')}**: against {reference} it loses {fall} from {first} to {study.end} nodes "
            f"{basis}, and every case from there to {last} nodes is within {percent(study.margin, 0)}."
        )
    return " ".join(filter(None, [head, _in_simulation(study, network), _of_reference(study, reference), _of_machine(study)]))


def _basis(study: Table1) -> str:
    interval = "" if study.fall.interval is None else f"{100 * study.fall.confidence:g} % t interval {percent_range(study.fall.interval)}, "
    return f"({interval}{counted(study.fall.blocks, 'block')}, {study.evidence} evidence)"


def _in_simulation(study: Table1, network: str) -> str:
    if study.simulated is None:
        return ""
    if study.simulated_end is None:
        return f"In the simulation at the paper's scale {network}'s fall does not end within its cases."
    return f"In the simulation at the paper's scale it ends at {counted(study.simulated_end, 'node')}."


def _of_reference(study: Table1, reference: str) -> str:
    at = study.shares.sel(interconnect=study.reference, nodes=[study.cases.min(), study.cases.max()])
    if at.emulated.isnull().any():
        return ""
    ends = " to ".join(fixed(float(100 * share), 1) for share in at.emulated)
    simulated = ""
    if at.simulated.notnull().all():
        simulated = f" (simulated: {' to '.join(fixed(float(100 * share), 1) for share in at.simulated)} %)"
    return f"{reference} goes from {ends} % of F{simulated} from {study.cases.min()} to {study.cases.max()} nodes."


def _of_machine(study: Table1) -> str:
    """How long ranks wait for the emulating machine, where that is beyond the margin."""
    waiting = study.waiting.sel(nodes=study.cases).values
    if not len(waiting) or not waiting[-1] > study.margin:
        return ""
    return (
        f"On {counted(int(study.cases[-1]), 'node')} a rank waits {percent(waiting[-1], 0)} of its time for a processor of this machine, on "
        f"{study.cases[0]} nodes {percent(waiting[0], 0)}: the machine slows down the largest cases, too."
    )


def section(study: Table1) -> str:
    """The experiment's part of the report, Markdown: finding, figure and table."""
    n = int(study.shares.blocks.max())
    unit = f"{study.evidence} evidence, n = {counted(n, 'block')}"
    line = ""
    if study.constant is not None:
        line = (
            f"The paper prints {percent(study.line, 0)} of Rpeak. One constant, F / Rpeak = {fixed(study.constant, 4)}, turns that into "
            f"{percent(study.line / study.constant)} of F. It is calibrated: with it the smallest 10GE case of the simulation gives the printed line. "
            "No other number is.\n"
        )
    return f"""# The paper's 15 cases

Table 1 of the paper has 15 cases from 2 to 36 nodes, on grids of its own. They ran in the scale model with matrices divided by 50,
and were simulated at the paper's scale. Both are given as a share of F, what the nodes compute together.
{line}
{finding(study)}

![Share of F over nodes in the paper's cases ({unit}; the lines are simulated at the paper's scale and have no scatter). Small marks are single runs; open marks and bars are geometric means with 95 % t intervals. The horizontal line is the published one, placed by the calibrated constant, as is the axis on the right.](figures/table1.svg){{#fig:table1 alt="Share of F over nodes for both networks, emulated with intervals and simulated, with the published line"}}

| Nodes | Grid | Network | Emulated [%] (95 % interval) | Simulated [%] | Blocks |
|--:|:--|:--|:---|--:|--:|
{_rows(study)}

Table: Shares of F in the paper's cases: geometric means with 95 % t intervals of the emulated runs ({unit}), beside the simulated ones at the paper's scale. {{#tbl:table1-shares}}
"""


def _rows(study: Table1) -> str:
    names, rows = short_names(study.dataset), []
    settings = study.points[["P", "Q"]].max(["block", "interconnect"])
    for n in study.cases:
        at_nodes = settings.sel(nodes=n)
        for name in study.shares.interconnect.values:
            at = 100 * study.shares.sel(interconnect=name, nodes=n)
            interval = f" ({between((float(at.low), float(at.high)), 1)})" if np.isfinite(at.low) else ""
            blocks = int(study.shares.blocks.sel(interconnect=name, nodes=n))
            grid = f"{int(at_nodes.P)} × {int(at_nodes.Q)}"
            shares = (fixed(_known(at.emulated), 1) + interval, fixed(_known(at.simulated), 1))
            rows.append((str(n), grid, names[name], *shares, str(blocks)))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _known(value) -> float | None:
    return float(value) if np.isfinite(value) else None
