"""The 15 cases of the FortiSwitch paper's Table 1 in the scale model, beside their simulation at the paper's scale.

The paper printed one line, 80 % of Rpeak, and no point of its curves. The two scales meet on one axis, HPL's rate as a
share of F, what the nodes compute together. Rpeak enters by one calibrated constant, F / Rpeak of the simulated node.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis import drawing, exhibit, published, style
from analysis.attributes import short_names
from analysis.contrasts import differences, log_ratios
from analysis.derive import at_only_level, points
from analysis.efficiency import PLATEAU, rpeak
from analysis.findings import (
    Finding,
    at_place,
    change,
    interval_in_words,
    judged_in_words,
    of_fall,
    origin,
    resting_on,
)
from analysis.statistics import design as designs
from analysis.statistics.intervals import ratios
from analysis.statistics.judgement import FALLS_OFF, FLAT, RISES, SIZE_OPEN, Judgement, judge
from analysis.wording import counted, fixed, listed, percent

TICKS = (2, 8, 16, 24, 30, 36)  # nodes
SIDESTEP = 0.4  # nodes, by which single runs stand left of their mean
FIGURES = {"table1": ("hpl_table1", "hpl_paper", "published/smith.toml")}


@dataclass(frozen=True)
class Table1:
    """Both campaigns and what they say of the fall of `network` against `reference`.

    `points` are the emulated ones over (block, interconnect, nodes); `shares`, over (interconnect, nodes), the shares of
    F [1]: `emulated` (geometric mean), its 95 % t interval `low`, `high`, `blocks`, and `simulated` (NaN without that
    campaign). `fall` judges the fall of `network` over `reference` within a block from the fewest nodes to `end`, or to
    the most where the end is not known. `end` is the least node count from which on every later case is flat against it,
    at the margin; `simulated_end` the same of the simulation; None where there is none. `constant` is F / Rpeak of the simulated node [1], NaN without that campaign.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    network: str
    reference: str
    shares: xr.Dataset
    fall: Judgement
    end: int | None
    simulated_end: int | None
    constant: float

    @property
    def cases(self) -> list[int]:
        """The node counts, ascending, of which any run is valid."""
        return self.points.rate.dropna("nodes", how="all").nodes.values.tolist()

    @property
    def simulated(self) -> xr.DataArray:
        """The simulated shares that are known, over (interconnect, nodes)."""
        return self.shares.simulated.dropna("nodes", how="all")


def analyse(hpl_table1: xr.Dataset, hpl_paper: xr.Dataset | None = None) -> Table1:
    """Derive both curves and where the fall ends, from the blocks that are there.

    `hpl_paper` is the campaign of the same cases at the paper's scale. Raises FalloffError when a dataset holds no HPL
    trial, or the simulated campaign has several blocks.
    """
    derived, design = points(hpl_table1), designs.read(hpl_table1)
    ratio, evidence = log_ratios(derived, *design.pair), derived.evidence.item()
    end = end_of_fall(ratio, design.margin, evidence)
    compared = ratio.dropna("nodes", how="all").nodes.values
    last = end or max(compared, default=ratio.nodes.values.max())
    shares = ratios(np.log(derived.share)).rename(ratio="emulated")
    simulated, simulated_end, constant = np.nan * shares.emulated, None, np.nan
    if hpl_paper is not None:
        model = at_only_level(points(hpl_paper), "block")
        simulated = model.share.reset_coords(drop=True).reindex_like(shares)
        of_model = log_ratios(model, *design.pair).expand_dims("block")
        simulated_end = end_of_fall(of_model, design.margin, "simulated")
        constant = float((1e9 * model.known_rate / model.nodes).max()) / rpeak(model)
    return Table1(
        dataset=hpl_table1,
        points=derived,
        network=design.pair[0],
        reference=design.pair[1],
        shares=shares.assign(simulated=simulated),
        fall=judge(differences(ratio, ratio.nodes.values.min(), last), design.margin, evidence),
        end=end,
        simulated_end=simulated_end,
        constant=constant,
    )


def end_of_fall(log_ratio: xr.DataArray, margin: float, evidence: str) -> int | None:
    """The least node count against which every later case is flat; None where the last but one already is not.

    `log_ratio` is over (block, nodes); cases without a value are left out. The node counts are tested from the most
    downwards, up to the first that fails: a fixed sequence, so that no level needs a correction. "All later cases are
    flat" holds when each of their 90 % intervals lies inside the margin.
    """
    cases = log_ratio.dropna("nodes", how="all").transpose("nodes", "block")
    values, end = cases.values, None
    for at in range(len(values) - 2, -1, -1):
        later = [judge(case - values[at], margin, evidence) for case in values[at + 1 :]]
        if any(judgement.answer != FLAT for judgement in later):
            break
        end = int(cases.nodes.values[at])
    return end


def finding(study: Table1) -> str:
    """Where the slower network's fall ends, and what the faster one does, in plain English (Markdown)."""
    names = short_names(study.dataset)
    if study.fall.fall is None:
        return (
            f"**Where {names[study.network]}'s fall ends cannot be said**: "
            "no block has both networks on the fewest and the most nodes."
        )
    sentences, first, last = [_head(study)], study.cases[0], study.cases[-1]
    start, end = study.shares.emulated.sel(interconnect=study.reference, nodes=[first, last]).values
    if np.isfinite([start, end]).all():
        sentences.append(
            f"{names[study.reference]} itself goes from {fixed(100 * start, 1)} to {fixed(100 * end, 1)} % of its nodes' paced rate."
        )
    if study.simulated.size:
        end, where = study.simulated_end, "does not end within the cases"
        where = f"ends at {counted(end, 'node')}" if end else where
        sentences.append(f"Simulated at the paper's own scale, the fall {where}.")
    apart = abs(study.shares.emulated - study.shares.simulated).max("nodes").dropna("interconnect")
    points_apart = [
        f"{fixed(100 * float(most), 1)} points on {names[most.interconnect.item()]}"
        for most in apart
    ]
    if points_apart:
        sentences.append(
            f"As shares of the nodes' rate, emulation and this simulation differ by at most {listed(points_apart)}."
        )
    return " ".join(sentences)


def _head(study: Table1) -> str:
    """How much is lost, and where that ends."""
    names, fall = short_names(study.dataset), study.fall
    network, reference = names[study.network], names[study.reference]
    first, last = int(study.points.nodes.min()), study.cases[-1]
    basis = resting_on(study.dataset, fall.blocks, judged_in_words(fall))
    level = f"very case up to {last} nodes is within {percent(fall.margin, 0)} of that on"
    if study.end == first:
        return f"**{network} does not fall off against {reference}**: e{level} {counted(first, 'node')} ({basis})."
    span = f"from {first} to {study.end or last} nodes"
    if fall.answer not in (FALLS_OFF, SIZE_OPEN):
        head = f"Whether {network} falls off against {reference} is open"
        if fall.answer == RISES:
            head = f"{network} does not fall off against {reference}"
        return f"**{head}**: it {change(fall.fall)} {span} ({basis})."
    lost = percent(fall.fall)
    if study.end is not None:
        return (
            f"**{network} loses {lost} against {reference} {span} and is level beyond** ({basis}). "
            f"E{level} {counted(study.end, 'node')}."
        )
    head = f"**Emulated, {network} loses {lost} against {reference} {span}** ({basis})"
    if PLATEAU in study.cases[:-1]:
        ratio = log_ratios(study.points, study.network, study.reference)
        left, low, high = at_place(ratios(differences(ratio, first, PLATEAU)))
        early, interval = 1 - left, interval_in_words((1 - high, 1 - low))
        head = (
            f"**Emulated, {network} {change(early)} against {reference} from {first} to {PLATEAU} nodes** ({interval}) and "
            f"{lost} {span} ({basis})"
        )
    return f"{head}. Where {network}'s fall ends is open."


def findings(study: Table1) -> Iterator[Finding]:
    """The fall of the slower network against the faster one, up to where it ends."""
    names = short_names(study.dataset)
    first, last = int(study.points.nodes.min()), study.end or max(study.cases, default=0)
    end = " (ends there)" if study.end else ""
    statement = f"{names[study.network]} loses rate against {names[study.reference]} from {first} to {last} nodes{end}"
    yield of_fall(origin("hpl_table1", study.dataset), statement, study.fall, primary=True)


def figures(study: Table1) -> dict[str, exhibit.Exhibit]:
    """Efficiency [%] over nodes: emulated, every run and means with intervals; simulated, beside the printed line."""
    names, nodes = short_names(study.dataset), study.points.nodes.values
    with style.styled():
        figure, panels = drawing.new_figures(3.4, 2 if study.simulated.size else 1, sharey=True)
        for name in study.points.interconnect.values.tolist():
            look, at = style.look(name), 100 * study.shares.sel(interconnect=name)
            runs = 100 * study.points.share.sel(interconnect=name)
            drawing.runs(panels[0], name, nodes - SIDESTEP, runs)
            ends = (at[end].values for end in ("emulated", "low", "high"))
            drawing.interval(panels[0], name, nodes, *ends, names[name])
            for axes in panels[1:]:
                mark = {"marker": look.marker, "color": look.color, "ls": "none", "mfc": "white"}
                axes.plot(nodes, study.constant * at.simulated, **mark)
        panels[0].set_ylabel(f"emulated [% of {study.points.share.attrs['of']}]")
        for axes in panels[1:]:
            axes.set_ylabel("simulated [% of Rpeak]")
            line = published.facts("smith")["efficiency"]["line"]["value"]
            look = {"color": style.INK, "linewidth": 0.9, "linestyle": "-.", "zorder": 1}
            axes.axhline(line, label=f"published: {line:g} % of Rpeak", **look)
        for axes in panels:
            axes.set_xticks([n for n in TICKS if n in nodes])
            axes.set_xlabel("nodes")
        drawing.legend_below(figure, panels, 3)
    marks = drawing.RUNS_AND_MEANS
    if study.simulated.size:
        marks += (
            " On the right are the same cases simulated at the paper's own scale, without scatter. The line is what the "
            f"paper prints for {short_names(study.dataset)[study.reference]}; its smallest case is calibrated to that."
        )
    return exhibit.only(
        FIGURES,
        figure,
        "HPL's rate over nodes in the paper's 15 cases, as a share of the nodes' paced rate or of Rpeak",
        exhibit.Basis.of_dataset(study.dataset, "95 % t intervals"),
        "Efficiency over the number of nodes for both networks, emulated and simulated",
        marks,
    )
