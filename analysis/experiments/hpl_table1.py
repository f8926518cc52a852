"""The 15 cases of the FortiSwitch paper's Table 1 in the scale model, beside their simulation at the paper's scale.

The paper printed one line, 80 % of Rpeak, and no point of its curves. The two scales meet on one axis, HPL's rate as a
share of F, what the nodes compute together. Rpeak enters by one calibrated constant, F / Rpeak of the simulated node.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, published, style
from analysis.contrasts import log_ratios
from analysis.derive import at_only_level, over_factors, points
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import Finding, known, of_fall, origin
from analysis.statistics.intervals import ratios
from analysis.statistics import design as designs
from analysis.statistics.judgement import FALLS_OFF, FLAT, RISES, SIZE_OPEN, Judgement, judge
from analysis.efficiency import PLATEAU, rpeak
from analysis.attributes import short_names
from analysis.wording import between, counted, fixed, listed, percent, percent_range
from runners.record import FalloffError

TICKS = (2, 4, 8, 12, 16, 20, 24, 28, 32, 36)  # nodes
SIDESTEP = 0.4  # nodes, by which single runs stand left of their mean
FIGURES = {"table1": ("hpl_table1", "hpl_paper", "published/smith.toml")}


@dataclass(frozen=True)
class Table1:
    """Both campaigns and what they say of the fall of `network` against `reference`.

    `points` are the emulated ones over (block, interconnect, nodes); `shares`, over (interconnect, nodes), the shares of
    F [1]: `emulated` (geometric mean), its 95 % t interval `low`, `high`, `blocks`, and `simulated` (NaN without that
    campaign). `ratios`, over (nodes), is `network` over `reference` within a block: `ratio`, `low`, `high`, `blocks`.
    `fall` judges the fall of that ratio from the fewest nodes to `end`, or to the most where the end is not known.
    `end` is the least node count from which on every later case is flat against it, at the margin; `simulated_end` the
    same of the simulation; None where there is none. `waiting`, over (interconnect, nodes), is the part of a run [1] in
    which a node's processes wait for a processor of the emulating machine, mean of nodes and blocks, NaN where that is
    not recorded. `constant` is F / Rpeak of the simulated node [1], None without it, and `line` [1] the printed share of
    Rpeak.
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
    def blocks(self) -> int:
        """How many blocks were begun."""
        return self.points.sizes["block"]

    @property
    def cases(self) -> np.ndarray:
        """The node counts, ascending, of which any run is valid."""
        return self.points.nodes.values[
            self.points.rate.notnull().any(["block", "interconnect"]).values
        ]


def analyse(hpl_table1: xr.Dataset, hpl_paper: xr.Dataset | None = None) -> Table1:
    """Derive both curves and where the fall ends, from the blocks that are there.

    `hpl_paper` is the campaign of the same cases at the paper's scale. Raises FalloffError when a dataset holds no HPL
    trial, or the simulated campaign has several blocks.
    """
    derived, design = points(hpl_table1), designs.read(hpl_table1)
    network, reference = design.pair
    ratio = log_ratios(derived, network, reference)
    evidence = derived.evidence.item()
    end = end_of_fall(ratio, design.margin, evidence)
    compared = ratio.nodes.values[ratio.notnull().any("block").values]
    last = end or (compared.max() if len(compared) else ratio.nodes.values.max())
    fall = ratio.sel(nodes=last) - ratio.sel(nodes=ratio.nodes.values.min())
    shares = ratios(np.log(derived.share)).rename(ratio="emulated")
    simulated, simulated_end, constant = np.nan * shares.emulated, None, None
    if hpl_paper is not None:
        model = at_only_level(points(hpl_paper), "block")
        simulated = model.share.reset_coords(drop=True).reindex_like(shares)
        of_model = log_ratios(model, network, reference).expand_dims("block")
        simulated_end = end_of_fall(of_model, design.margin, "simulated")
        constant = _constant(model)
    return Table1(
        dataset=hpl_table1,
        simulated=hpl_paper,
        points=derived,
        network=network,
        reference=reference,
        margin=design.margin,
        shares=shares.assign(simulated=simulated),
        ratios=ratios(ratio),
        fall=judge(fall.values, design.margin, evidence),
        end=end,
        simulated_end=simulated_end,
        waiting=_waiting(hpl_table1),
        constant=constant,
        line=published.smith()["efficiency"]["line"]["value"] / 100,
    )


def _waiting(dataset: xr.Dataset) -> xr.DataArray:
    part = (dataset.pace_delayed.mean("node") / dataset.hpl_time).where(dataset.status == "ok")
    return over_factors(dataset, part=part).part.mean("block")


def end_of_fall(log_ratio: xr.DataArray, margin: float, evidence: str) -> int | None:
    """The least node count against which every later case is flat; None where the last but one already is not.

    `log_ratio` is over (block, nodes); cases without a value are left out. The node counts are tested from the most
    downwards, up to the first that fails: a fixed sequence, so that no level needs a correction. "All later cases are
    flat" holds when each of their 90 % intervals lies inside the margin.
    """
    cases = log_ratio.sel(nodes=log_ratio.notnull().any("block")).transpose("nodes", "block")
    values, end = cases.values, None
    for at in range(len(values) - 2, -1, -1):
        later = [judge(case - values[at], margin, evidence) for case in values[at + 1 :]]
        if any(judgement.answer != FLAT for judgement in later):
            break
        end = int(cases.nodes.values[at])
    return end


def _constant(model: xr.Dataset) -> float:
    constant = float((1e9 * model.known_rate / model.nodes).max()) / rpeak(model)
    if not np.isfinite(constant):
        raise FalloffError(
            f"Campaign {model.attrs['campaign']} was simulated on nodes of which no Rpeak is described."
        )
    return constant


def finding(study: Table1) -> str:
    """Where the slower network's fall ends, and what the faster one does, in plain English (Markdown)."""
    if study.fall.fall is None:
        return (
            f"**Where {short_names(study.dataset)[study.network]}'s fall ends cannot be said**: "
            "no block has both networks on the fewest and the most nodes."
        )
    return " ".join(
        filter(
            None,
            [
                _head(study),
                _of_reference(study),
                _of_machine(study),
                _in_simulation(study),
                _apart(study),
            ],
        )
    )


def _head(study: Table1) -> str:
    """How much is lost, and where that ends."""
    names, fall = short_names(study.dataset), study.fall
    network, reference = names[study.network], names[study.reference]
    first, last = int(study.ratios.nodes.min()), int(study.cases.max())
    margin = percent(study.margin, 0)
    basis = f"{counted(fall.blocks, 'block')}, {study.evidence} evidence"
    if fall.interval is not None:
        basis = f"{100 * fall.confidence:g} % interval {percent_range(fall.interval)}, {basis}"
    if study.end == first:
        return (
            f"**{network} does not fall off against {reference}**: every case up to {last} nodes is within {margin} of that on "
            f"{counted(first, 'node')} ({basis})."
        )
    span = f"from {first} to {study.end or last} nodes"
    if fall.answer == RISES:
        return f"**{network} does not fall off against {reference}**: it gains {percent(-fall.fall)} {span} ({basis})."
    if fall.answer not in (FALLS_OFF, SIZE_OPEN):
        return f"**Whether {network} falls off against {reference} is open**: it loses {percent(fall.fall)} {span} ({basis})."
    if study.end is None:
        return (
            f"**{network} loses {percent(fall.fall)} against {reference} {span}** ({basis}).{_until_plateau(study)} "
            "Where its fall ends is open."
        )
    return (
        f"**{network} loses {percent(fall.fall)} against {reference} {span} and is level beyond** ({basis}). "
        f"Every case up to {last} nodes is within {margin} of that on {counted(study.end, 'node')}."
    )


def _until_plateau(study: Table1) -> str:
    """What is lost on fewer nodes already."""
    if PLATEAU not in study.cases[:-1]:
        return ""
    lost = known(1 - _change(_log_ratio(study), int(study.ratios.nodes.min()), PLATEAU).ratio)
    return "" if lost is None else f" By {PLATEAU} nodes it has lost {percent(lost)}."


def _log_ratio(study: Table1) -> xr.DataArray:
    return log_ratios(study.points, study.network, study.reference)


def _of_machine(study: Table1) -> str:
    """How long processes wait for the emulating machine, where that is beyond the margin."""
    waiting = study.waiting.mean("interconnect").sel(nodes=study.cases).values
    if not len(waiting) or not waiting[-1] > study.margin:
        return ""
    return (
        f"On {study.cases[-1]} nodes a process waits {percent(waiting[-1], 0)} of its time for a processor of this machine, on {study.cases[0]} nodes "
        f"{percent(waiting[0], 0)}: the machine slows down the largest cases, too."
    )


def _in_simulation(study: Table1) -> str:
    if study.simulated is None:
        return ""
    if study.simulated_end is None:
        return "Simulated at the paper's own scale, the fall does not end within the cases."
    return f"Simulated at the paper's own scale, the fall ends at {counted(study.simulated_end, 'node')}."


def _of_reference(study: Table1) -> str:
    at = study.shares.emulated.sel(
        interconnect=study.reference, nodes=[study.cases.min(), study.cases.max()]
    )
    if at.isnull().any():
        return ""
    first, last = (fixed(float(100 * share), 1) for share in at)
    return (
        f"{short_names(study.dataset)[study.reference]} itself goes from {first} to {last} % of what its nodes compute "
        f"from {study.cases.min()} to {study.cases.max()} nodes."
    )


def _apart(study: Table1) -> str:
    """How far both scales are apart."""
    names, words = short_names(study.dataset), []
    difference = abs(study.shares.emulated - study.shares.simulated)
    for network in difference.interconnect.values.tolist():
        most = float(difference.sel(interconnect=network).max())
        if np.isfinite(most):
            words.append(f"{fixed(100 * most, 1)} points on {names[network]}")
    return f"Emulation and simulation differ by at most {listed(words)}." if words else ""


def findings(study: Table1) -> Iterator[Finding]:
    """The fall of the slower network against the faster one, up to where it ends."""
    names = short_names(study.dataset)
    first, last = int(study.ratios.nodes.min()), study.end or int(study.cases.max(initial=0))
    end = f"its fall ends at {study.end} nodes" if study.end else "where its fall ends is open"
    statement = f"{names[study.network]} falls against {names[study.reference]} from {first} to {last} nodes; {end}"
    yield of_fall(origin("hpl_table1", study.dataset), statement, study.fall, primary=True)


def over_nodes(study: Table1) -> Figure:
    """Share of F [%] over nodes: every emulated run, means with intervals, the simulated cases, and the printed line; on the
    right the same as Rmax / Rpeak."""
    names, networks = short_names(study.dataset), study.points.interconnect.values.tolist()
    nodes = study.points.nodes.values
    with style.styled():
        figure, axes = drawing.new_figure(4.2)
        for name in networks:
            look, at = style.look(name), 100 * study.shares.sel(interconnect=name)
            runs = 100 * study.points.share.sel(interconnect=name)
            drawing.runs(axes, name, nodes - SIDESTEP, runs, "")
            drawing.interval(
                axes, name, nodes, *(at[end].values for end in ("emulated", "low", "high"))
            )
            mark = {"color": look.color, "linestyle": "none"}
            axes.plot(
                [], [], marker=look.marker, mfc="white", label=f"{names[name]}, emulated", **mark
            )
            if study.simulated is not None:
                label = f"{names[name]}, simulated"
                axes.plot(
                    nodes, at.simulated, marker="_", markersize=8, mew=2.4, label=label, **mark
                )
        axes.set_xticks([n for n in TICKS if n in nodes])
        axes.set(xlabel="nodes", ylabel="HPL rate [% of what the nodes compute]")
        if study.constant is not None:
            _published(axes, study)
        drawing.legend_below(figure, axes, 3)
        return figure


def _published(axes: Axes, study: Table1) -> None:
    line, constant = 100 * study.line, study.constant
    label = f"published: {line:g} % of Rpeak"
    axes.axhline(
        line / constant, color=style.INK, linewidth=0.9, linestyle="-.", label=label, zorder=1
    )
    scales = (lambda share: share * constant, lambda peak: peak / constant)
    axes.secondary_yaxis("right", functions=scales).set_ylabel("Rmax / Rpeak [%]")


def figures(study: Table1) -> dict[str, Exhibit]:
    """Both scales over nodes."""
    names = short_names(study.dataset)
    marks = "Small marks are single runs, open marks and bars geometric means with intervals."
    if study.simulated is not None:
        marks += (
            " Dashes are the same cases simulated at the paper's own scale, without scatter. The horizontal line is what the paper "
            f"prints for {names[study.reference]}; one constant, calibrated to its smallest case, places it and the axis on the right."
        )
    marks = " ".join(filter(None, [marks, _of_machine(study)]))
    return {
        "table1": Exhibit(
            "table1",
            over_nodes(study),
            "HPL's rate over nodes in the paper's 15 cases, as a share of what the nodes compute together",
            _basis(study),
            "Share of what the nodes compute, over the number of nodes, for both networks",
            marks,
            rests_on=FIGURES["table1"],
        )
    }


def falls_table(study: Table1) -> Table:
    """Shares on the fewest, some and the most nodes, and what is lost between them, in both scales."""
    cases = study.cases.tolist() or study.points.nodes.values.tolist()
    ends = sorted({cases[0], *(n for n in cases if n == PLATEAU), cases[-1]})
    spans = list(zip(ends, ends[1:]))
    columns = [
        "Network",
        "Evidence",
        *(f"{n} nodes [%]" for n in ends),
        *(f"Lost, {start} to {end} nodes" for start, end in spans),
    ]
    rows = []
    for name, log_share, emulated, simulated in _compared(study):
        changes = [_change(log_share, *span) for span in spans]
        means = [fixed(known(100 * emulated.sel(nodes=n)), 1) for n in ends]
        rows.append((name, study.evidence, *means, *map(_lost, changes)))
        if study.simulated is not None:
            values = [known(100 * simulated.sel(nodes=n)) for n in ends]
            lost = [_relative(start, end) for start, end in zip(values, values[1:])]
            rows.append(
                (name, "simulated", *(fixed(value, 1) for value in values), *map(percent, lost))
            )
    caption = (
        "HPL's rate as a share of what the nodes compute together, the ratio of both networks, and how much of each is lost. Emulated: geometric means with 95 % t "
        f"intervals, n = {counted(study.blocks, 'block')}.{_of_simulation(study)}"
    )
    return Table("table1", columns, "ll" + "r" * (len(columns) - 2), rows, caption)


def _compared(study: Table1) -> Iterator[tuple[str, xr.DataArray, xr.DataArray, xr.DataArray]]:
    """Each network and then the ratio of both: name, logarithm over (block, nodes), emulated mean and simulated value."""
    names, shares = short_names(study.dataset), study.shares
    for network in study.points.interconnect.values.tolist():
        log_share = np.log(study.points.share.sel(interconnect=network))
        at = shares.sel(interconnect=network)
        yield names[network], log_share, at.emulated, at.simulated
    of, against = (
        shares.simulated.sel(interconnect=network, drop=True)
        for network in (study.network, study.reference)
    )
    name = f"{names[study.network]} / {names[study.reference]}"
    yield name, _log_ratio(study), study.ratios.ratio, of / against


def _change(logarithm: xr.DataArray, start: int, end: int) -> xr.Dataset:
    """The value at the end over that at the start, within the blocks."""
    return ratios(logarithm.sel(nodes=end, drop=True) - logarithm.sel(nodes=start, drop=True))


def _lost(change: xr.Dataset) -> str:
    lost = percent(known(1 - change.ratio))
    interval = (float(1 - change.high), float(1 - change.low))
    return f"{lost} ({percent_range(interval)})" if np.isfinite(interval).all() else lost


def _relative(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else 1 - end / start


def shares_table(study: Table1) -> Table:
    """The share of every case, emulated and simulated."""
    names, networks = short_names(study.dataset), study.shares.interconnect.values.tolist()
    has_simulated = study.simulated is not None
    columns, align = ["Nodes", "Grid"], "rl"
    for network in networks:
        columns += [f"{names[network]}, emulated [%]", *["simulated [%]"] * has_simulated]
        align += "l" + "r" * has_simulated
    settings, rows = study.points[["P", "Q"]].max(["block", "interconnect"]), []
    for n in study.cases.tolist():
        grid = settings.sel(nodes=n)
        row = [str(n), f"{int(grid.P)} × {int(grid.Q)}"]
        for network in networks:
            at = 100 * study.shares.sel(interconnect=network, nodes=n)
            interval = (
                f" ({between((float(at.low), float(at.high)), 1)})" if np.isfinite(at.low) else ""
            )
            row.append(fixed(known(at.emulated), 1) + interval)
            if has_simulated:
                row.append(fixed(known(at.simulated), 1))
        blocks = study.shares.blocks.sel(nodes=n).values
        rows.append((*row, str(int(blocks.min()))))
    caption = (
        "HPL's rate as a share of what the nodes compute together, in every case. Emulated: geometric means."
        f"{_of_simulation(study)} The last column counts the valid blocks of the network that has fewer."
    )
    return Table("table1-shares", (*columns, "Blocks"), align + "r", rows, caption, _basis(study))


def waiting_table(study: Table1) -> Table:
    """How long a process waits for a processor of the emulating machine, by nodes."""
    names, networks = short_names(study.dataset), study.waiting.interconnect.values.tolist()
    rows = []
    for n in study.cases.tolist():
        at = 100 * study.waiting.sel(nodes=n)
        rows.append(
            (str(n), *(fixed(known(at.sel(interconnect=network)), 1) for network in networks))
        )
    columns = ("Nodes", *(f"{names[network]} [%]" for network in networks))
    caption = (
        "The part of a run in which a process waits for a processor of the emulating machine: arithmetic means of nodes and blocks, "
        f"n = {counted(study.blocks, 'block')}. Paced computing makes up for it; waiting for a message does not."
    )
    return Table("table1-waiting", columns, "r" * len(columns), rows, caption)


def _of_simulation(study: Table1) -> str:
    """What a caption says of the simulated numbers, where there are any."""
    return (
        "" if study.simulated is None else " Simulated at the paper's own scale: without scatter."
    )


def _basis(study: Table1) -> Basis:
    return Basis(study.evidence, study.blocks, "95 % t intervals")
