"""Is the scale model's answer the same at another scale of time?

A dilation says how many times slower than in the paper everything is: a node's F, the links' rates and the shaper's
times. What the machine itself takes for a message does not scale. If it counted, the share of F would rise with the
dilation, since a message's own time is then a smaller part of the run.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.derive import points
from analysis.inference.over_blocks import ratios
from analysis.statistics import design as designs
from analysis.statistics.judgement import FALLS_OFF, FLAT, RISES, judge
from analysis.studies.efficiency import testbed
from analysis.studies.scaling import short_names
from analysis.wording import between, counted, fixed, percent
from runners.record import FalloffError

ONE_SIDED = 0.05  # level of a 90 % interval, as for two one-sided tests
SAME, LOWER, HIGHER, OPEN = "the same", "lower", "higher", "open"
_ANSWERS = {FLAT: SAME, FALLS_OFF: LOWER, RISES: HIGHER}
SIDESTEP = 0.05  # of a doubling, between two series


@dataclass(frozen=True)
class Invariance:
    """The campaign's dataset, its points and each dilation's ratio to the described one.

    `reference` is the testbed's dilation and `margin` [1] what counts as the same. `shares`, over (interconnect, nodes,
    dilation), holds the share of F at that dilation: `ratio` (geometric mean), its 95 % t interval `low`, `high`, `blocks`.
    `compared`, over (interconnect, nodes, dilation) without the reference, holds the `ratio` of the shares of a block to
    those at the reference (geometric mean), `low`, `high`, its 90 % t interval, `blocks`, and the `answer`: SAME where
    the interval lies inside the margin, LOWER or HIGHER where it lies beyond, else OPEN.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    reference: float
    margin: float
    shares: xr.Dataset
    compared: xr.Dataset

    @property
    def evidence(self) -> str:
        """The kind of the data."""
        return self.points.evidence.item()


def analyse(dataset: xr.Dataset) -> Invariance:
    """Compare each dilation with the testbed's within the same block.

    Raises FalloffError when there is no HPL trial, the dilation is not varied, or the testbed's is not among its levels.
    """
    derived, reference = points(dataset), testbed(dataset).get("node", {}).get("dilation")
    if "dilation" not in derived.dims or reference not in derived.dilation.values:
        raise FalloffError(
            f"Campaign {dataset.attrs['campaign']} needs the factor dilation with the testbed's own, {reference}, among its levels."
        )
    margin = designs.read(dataset).margin
    log_share = np.log(derived.share)
    log_ratio = log_share.drop_sel(dilation=reference) - log_share.sel(
        dilation=reference, drop=True
    )
    return Invariance(
        dataset=dataset,
        points=derived,
        reference=reference,
        margin=margin,
        shares=ratios(log_share),
        compared=_compared(log_ratio, margin, derived.evidence.item()),
    )


def _compared(log_ratio: xr.DataArray, margin: float, evidence: str) -> xr.Dataset:
    def judged(values: np.ndarray) -> tuple:
        found = judge(values, margin, evidence, ONE_SIDED)
        fall, (high, low) = (
            np.nan if found.fall is None else found.fall,
            found.interval or (np.nan, np.nan),
        )
        return 1 - fall, 1 - low, 1 - high, found.blocks, _ANSWERS.get(found.answer, OPEN)

    names = ("ratio", "low", "high", "blocks", "answer")
    found = xr.apply_ufunc(
        judged,
        log_ratio,
        input_core_dims=[["block"]],
        output_core_dims=[[]] * len(names),
        vectorize=True,
        output_dtypes=[float, float, float, int, object],
    )
    table = xr.Dataset(dict(zip(names, found)))
    return table.assign(answer=table.answer.astype(str))


def draw(study: Invariance) -> dict[str, Figure]:
    """The figure by its name."""
    return {"invariance": over_dilation(study)}


def over_dilation(study: Invariance) -> Figure:
    """Left the share of F [%] over the dilation, right its ratio to the reference [%] with the margin as an area."""
    names, dilations = short_names(study.dataset), study.points.dilation.values
    with style.styled():
        figure, (left, right) = drawing.new_figures(3.4, 2)
        goal = 100 * study.margin
        right.axhspan(100 - goal, 1e4 / (100 - goal), color=style.MARGIN, zorder=0, label="margin")
        right.axhline(100, color=style.INK, linewidth=0.8)
        series = [
            (name, n)
            for name in study.points.interconnect.values
            for n in study.points.nodes.values
        ]
        for rank, (name, n) in enumerate(series):
            aside = 2 ** (SIDESTEP * (rank - (len(series) - 1) / 2))
            filled = n == study.points.nodes.values.max()
            label = f"{names[name]}, {counted(int(n), 'node')}"
            _series(left, name, study.shares.sel(interconnect=name, nodes=n), aside, filled, label)
            _series(right, name, study.compared.sel(interconnect=name, nodes=n), aside, filled, "")
        for axes in (left, right):
            drawing.doubling_axis(axes, dilations, "dilation [1]")
        right.set_xlim(left.get_xlim())
        left.set_ylabel("HPL rate / F of the nodes [%]")
        right.set_ylabel(f"share / share at {study.reference:g} [%]")
        drawing.legend_below(figure, (left, right), 3)
        return figure


def _series(axes, name: str, at: xr.Dataset, aside: float, filled: bool, label: str) -> None:
    """Marks with intervals; those of the most nodes are filled."""
    look, mean = style.look(name), 100 * at.ratio.values
    ends = np.array([mean - 100 * at.low.values, 100 * at.high.values - mean])
    axes.errorbar(
        at.dilation.values * aside,
        mean,
        ends,
        fmt=look.marker,
        color=look.color,
        mfc=look.color if filled else "white",
        capsize=3,
        label=label or None,
    )


def finding(study: Invariance) -> str:
    """Whether the share of F stays the same, and where not, in plain English (Markdown)."""
    compared = study.compared.stack(point=("interconnect", "nodes", "dilation"))
    compared = compared.sel(point=compared.ratio.notnull())
    if not compared.sizes["point"]:
        return "**Whether the answer depends on the scale of time cannot be said**: no block has two dilations."
    same, whole = int((compared.answer == SAME).sum()), compared.sizes["point"]
    least, most = float(compared.ratio.min()), float(compared.ratio.max())
    dilations = ", ".join(f"{level:g}" for level in study.points.dilation.values)
    margin = percent(study.margin, 0)
    head = (
        f"**HPL's share of F does not depend on the scale of time**: it stays within {margin} at dilations {dilations}"
        if same == whole
        else f"**HPL's share of F stays within {margin} at {same} of {whole} other scales of time** (dilations {dilations})"
    )
    basis = f"({counted(int(compared.blocks.max()), 'block')}, {study.evidence} evidence)"
    ends = f"Ratios to dilation {study.reference:g} go from {fixed(least, 3)} to {fixed(most, 3)} {basis}."
    beyond = [
        _place(study, compared.isel(point=at)) for at in range(whole) if compared.answer[at] != SAME
    ]
    if same == whole:
        return f"{head}. {ends} Each 90 % t interval lies inside the margin."
    return f"{head}. {ends} Not the same, or open: {'; '.join(beyond)}."


def _place(study: Invariance, at: xr.Dataset) -> str:
    name = short_names(study.dataset)[at.interconnect.item()]
    interval = (
        "" if np.isnan(at.low) else f", 90 % interval {between((float(at.low), float(at.high)), 3)}"
    )
    where = f"{name} on {counted(int(at.nodes), 'node')} at dilation {float(at.dilation):g}"
    return f"{where} ({at.answer.item()}: {fixed(float(at.ratio), 3)}{interval})"


def section(study: Invariance) -> str:
    """The experiment's part of the report, Markdown: finding, figure and table."""
    unit = f"{study.evidence} evidence, n = {counted(int(study.shares.blocks.max()), 'block')}"
    return f"""# Does the scale of time matter?

In the scale model everything is {study.reference:g} times slower than in the paper: nodes and links alike. Here HPL runs at
other dilations too, with every rate changed by the same factor. What this machine itself takes for a message does not change. If it
counted, HPL would reach a larger share of F the slower everything is.

{finding(study)}

![Share of F over the dilation (left), and its ratio to that at dilation {study.reference:g} in the same block (right) ({unit}). Marks are geometric means; bars are 95 % t intervals on the left and 90 % t intervals on the right; open marks are of the fewest nodes, filled ones of the most; shaded is the margin.](figures/invariance.svg){{#fig:invariance alt="Left, the share of F at each dilation for each network and node count; right, its ratio to the described dilation, with the margin"}}

| Network | Nodes | Dilation [1] | Share of F [%] (95 % interval) | Ratio to dilation {study.reference:g} (90 % interval) | The same? | Blocks |
|:--|--:|--:|:---|:---|:--|--:|
{_rows(study)}

Table: Shares of F at each dilation, and their ratios within a block: geometric means with t intervals ({unit}, margin {percent(study.margin, 0)}, two one-sided tests). {{#tbl:invariance}}
"""


def _rows(study: Invariance) -> str:
    names, rows = short_names(study.dataset), []
    for name in study.shares.interconnect.values:
        for n in study.shares.nodes.values:
            for dilation in study.shares.dilation.values:
                place = {"interconnect": name, "nodes": n, "dilation": dilation}
                share = _with_interval(100 * study.shares[["ratio", "low", "high"]].sel(place), 1)
                blocks = str(int(study.shares.blocks.sel(place)))
                ratio, answer = "1", "—"
                if dilation != study.reference:
                    at = study.compared.sel(place)
                    ratio, answer = (
                        _with_interval(at, 3),
                        at.answer.item() if np.isfinite(at.ratio) else "—",
                    )
                rows.append((names[name], str(n), f"{dilation:g}", share, ratio, answer, blocks))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _with_interval(at: xr.Dataset, decimals: int) -> str:
    mean = fixed(float(at.ratio) if np.isfinite(at.ratio) else None, decimals)
    return mean + (
        f" ({between((float(at.low), float(at.high)), decimals)})" if np.isfinite(at.low) else ""
    )
