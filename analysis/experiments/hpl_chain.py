"""From the scale model to the paper's cluster: what each difference between them does to GigE's fall, one at a time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis import drawing, exhibit, style
from analysis.attributes import factors
from analysis.contrasts import log_ratios
from analysis.derive import at_only_level, points
from analysis.findings import Finding, known, of_estimate, origin
from analysis.wording import MINUS, counted, fixed, listed, percent
from runners.record import FalloffError

FIGURES = {"chain": ("hpl_chain", "hpl_scaling")}  # what it rests on
NETWORK, REFERENCE = "gige", "10gige"
STEPS = {
    "scale_model": "the scale model",
    "buffers": "smaller buffers",
    "fine_blocks": "narrower blocks",
    "size": "the paper's size",
    "block_size": "the paper's block size",
    "node": "the paper's node",
}


@dataclass(frozen=True)
class Chain:
    """`falls` [1], over (step, nodes), are what the ratio of both networks' rates loses from the fewest nodes on, simulated; NaN
    where a case is missing. `emulated` [1] is the same of a campaign on the scale model, over (nodes) of both, or None."""

    dataset: xr.Dataset
    falls: xr.DataArray
    emulated: xr.DataArray | None

    @property
    def most(self) -> int:
        """The most nodes."""
        return int(self.falls.nodes.max())

    @property
    def parts(self) -> dict[str, float]:
        """What each step adds to the fall on the most nodes [1]; NaN where it is not known."""
        last = self.falls.sel(nodes=self.most)
        steps = last.step.values.tolist()
        return dict(zip(steps[1:], np.diff(last.values).tolist()))


def analyse(hpl_chain: xr.Dataset, hpl_scaling: xr.Dataset | None = None) -> Chain:
    """The falls of every step; raises FalloffError when there is no HPL trial, or no step is varied."""
    derived = at_only_level(points(hpl_chain), "block")
    if "step" not in factors(hpl_chain) or "step" not in derived.dims:
        raise FalloffError(
            f"Campaign {hpl_chain.attrs['campaign']} needs the factor step: there is nothing to compare."
        )
    falls, emulated = _falls(derived), None
    if hpl_scaling is not None:
        ran, fewest = points(hpl_scaling), int(falls.nodes.min())
        networks = set(ran.interconnect.values.tolist())
        if {NETWORK, REFERENCE} <= networks and fewest in ran.nodes.values:
            mean = np.log1p(-_falls(ran, fewest)).mean("block")
            emulated = -np.expm1(mean).reindex(nodes=falls.nodes)
    return Chain(hpl_chain, falls.transpose("step", "nodes"), emulated)


def _falls(derived: xr.Dataset, fewest: int | None = None) -> xr.DataArray:
    """What the ratio of both networks' rates loses from the fewest nodes on [1]."""
    ratio = log_ratios(derived, NETWORK, REFERENCE).reset_coords(drop=True)
    return -np.expm1(ratio - ratio.sel(nodes=fewest or ratio.nodes.min(), drop=True))


def finding(study: Chain) -> str:
    """The fall at both ends of the chain, and the largest steps, in plain English (Markdown)."""
    last = study.falls.sel(nodes=study.most)
    first, end = float(last[0]), float(last[-1])
    if not np.isfinite([first, end]).all():
        return "**What the scale model adds to GigE's fall cannot be said**: a case of the chain is missing."
    span = f"from {int(study.falls.nodes.min())} to {counted(study.most, 'node')}"
    sentences = [
        f"**GigE falls by as much in the scale model as on the paper's cluster, within {fixed(100 * abs(first - end), 1)} points**: by "
        f"{percent(first)} {span}, and by {percent(end)} at the paper's size on the paper's node (simulated evidence)."
    ]
    parts = [
        f"{'+' if part > 0 else MINUS}{fixed(100 * abs(part), 1)} by {STEPS.get(step, step)}"
        for step, part in study.parts.items()
    ]
    sentences.append(f"Step by step, the fall changes by these points: {listed(parts)}.")
    if study.emulated is not None and np.isfinite(
        emulated := float(study.emulated.sel(nodes=study.most))
    ):
        sentences.append(
            f"Emulated, the fall is {percent(emulated)}: {fixed(100 * abs(emulated - first), 1)} points from its simulation, and "
            f"{fixed(100 * abs(emulated - end), 1)} from the paper's size."
        )
    return " ".join(sentences)


def findings(study: Chain) -> Iterator[Finding]:
    """The fall of every step on the most nodes, as data; planned for are the ends of the chain."""
    source, span = (
        origin("hpl_chain", study.dataset),
        f"{int(study.falls.nodes.min())} to {study.most} nodes",
    )
    steps = study.falls.step.values.tolist()
    for step in steps:
        statement = f"GigE loses rate against 10GE from {span}: {STEPS.get(step, step)}"
        fall = float(study.falls.sel(step=step, nodes=study.most))
        estimate = (known(fall), None, None)
        yield of_estimate(
            source, statement, "fall", estimate, 1, primary=step in (steps[0], steps[-1])
        )


def figures(study: Chain) -> dict[str, exhibit.Exhibit]:
    """The fall [%] of every step, a mark for each node count, and the emulated ones."""
    with style.styled():
        figure, axes = drawing.new_figure(2.2)
        steps = study.falls.step.values.tolist()
        nodes = [n for n in study.falls.nodes.values.tolist() if n > study.falls.nodes.min()]
        rows = np.arange(len(steps))
        for rank, (count, marker) in enumerate(zip(nodes, "osD^v")):
            shift = 0.2 * (rank - (len(nodes) - 1) / 2)
            look = {"marker": marker, "color": style.INK, "ls": "none"}
            mark = {"mfc": "white", "label": f"{counted(count, 'node')}, simulated"}
            axes.plot(100 * study.falls.sel(nodes=count), rows + shift, **look, **mark)
            if study.emulated is not None:
                axes.plot(
                    100 * study.emulated.sel(nodes=count),
                    shift,
                    **look,
                    label=f"{counted(count, 'node')}, emulated",
                )
        drawing.rows(axes, [STEPS.get(step, step) for step in steps])
        axes.set_xlabel("fall of GigE against 10GE [%]")
        drawing.legend_below(figure, axes, 3)
    return exhibit.only(
        FIGURES,
        figure,
        "GigE's fall from the scale model to the paper's cluster, one change at a time; each row keeps the changes above it",
        exhibit.Basis("simulated"),
        "The fall of GigE against 10GE in six steps, for each number of nodes",
        "Full marks are the emulated means.",
    )
