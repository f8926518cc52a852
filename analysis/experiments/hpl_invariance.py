"""Is the scale model's answer the same at another scale of time?

A dilation says how many times slower than in the paper time runs: a node's F, the links' rates and the shaper's times, beside what
the smaller matrices ask for. What the machine itself takes for a message does not scale. If it counted, the share of F would rise with the
dilation, since a message's own time is then a smaller part of the run.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.attributes import short_names, testbed
from analysis.derive import points
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import Finding, of_estimate, origin
from analysis.statistics.intervals import ratios
from analysis.statistics import design as designs
from analysis.statistics.judgement import FALLS_OFF, FLAT, RISES, judge
from analysis.wording import UNKNOWN, between, counted, estimate, fixed, percent
from runners.record import FalloffError

FIGURES = {"invariance": ("hpl_invariance",)}  # what each rests on
ONE_SIDED = 0.05  # level of a 90 % interval, as for two one-sided tests
SAME, LOWER, HIGHER, OPEN = "the same", "lower", "higher", "open"
_ANSWERS = {FLAT: SAME, FALLS_OFF: LOWER, RISES: HIGHER}
# Of a doubling: between two series, and from a mean to its blocks.
SIDESTEP, RUNS_ASIDE = 0.12, 0.04


@dataclass(frozen=True)
class Invariance:
    """The campaign's dataset, its points and each dilation's ratio to the described one.

    `reference` is the testbed's dilation and `margin` [1] what counts as the same. `log_ratio` is the log of a block's share of F
    over that at the reference, over (block, interconnect, nodes, dilation without the reference). `shares`, over
    (interconnect, nodes, dilation), holds the share of F at that dilation: `ratio` (geometric mean), its 95 % t interval
    `low`, `high`, `blocks`. `compared` has the same of `log_ratio`, with 90 % t intervals, and the `answer`: SAME where the
    interval lies inside the margin, LOWER or HIGHER where it lies beyond, else OPEN.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    reference: float
    margin: float
    log_ratio: xr.DataArray
    shares: xr.Dataset
    compared: xr.Dataset

    @property
    def evidence(self) -> str:
        """The kind of the data."""
        return self.points.evidence.item()


def analyse(hpl_invariance: xr.Dataset) -> Invariance:
    """Compare each dilation with the testbed's within the same block.

    Raises FalloffError when there is no HPL trial, the dilation is not varied, or the testbed's is not among its levels.
    """
    derived, reference = (
        points(hpl_invariance),
        testbed(hpl_invariance).get("node", {}).get("dilation"),
    )
    if "dilation" not in derived.dims or reference not in derived.dilation.values:
        raise FalloffError(
            f"Campaign {hpl_invariance.attrs['campaign']} needs the factor dilation with the testbed's own, {reference}, among its levels."
        )
    margin = designs.read(hpl_invariance).margin
    log_share = np.log(derived.share)
    log_ratio = log_share.drop_sel(dilation=reference) - log_share.sel(
        dilation=reference, drop=True
    )
    return Invariance(
        dataset=hpl_invariance,
        points=derived,
        reference=reference,
        margin=margin,
        log_ratio=log_ratio,
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


def ratio_over_dilation(study: Invariance) -> Figure:
    """Share of F over that at the described dilation [%]: every block, means with 90 % intervals, the margin as an area."""
    names, fewest = short_names(study.dataset), study.points.nodes.values.min()
    with style.styled():
        figure, axes = drawing.new_figure(3.0)
        goal = 100 * study.margin
        axes.axhspan(100 - goal, 1e4 / (100 - goal), color=style.MARGIN, zorder=0, label="margin")
        axes.axhline(100, color=style.INK, linewidth=0.8)
        series = study.log_ratio.stack(series=("interconnect", "nodes"))
        for rank, (name, n) in enumerate(series.series.values):
            look, at = style.look(name), study.compared.sel(interconnect=name, nodes=n)
            place = at.dilation.values * 2 ** (SIDESTEP * (rank - (series.sizes["series"] - 1) / 2))
            blocks = 100 * np.exp(study.log_ratio.sel(interconnect=name, nodes=n))
            drawing.runs(axes, name, place / 2**RUNS_ASIDE, blocks, "")
            mean, low, high = (100 * at[end].values for end in ("ratio", "low", "high"))
            axes.errorbar(
                place,
                mean,
                [mean - low, high - mean],
                fmt=look.marker,
                color=look.color,
                mfc="white" if n == fewest else look.color,
                capsize=3,
                label=f"{names[name]}, {counted(int(n), 'node')}",
            )
        drawing.doubling_axis(
            axes, study.points.dilation.values, "time is slowed down by a factor of [1]"
        )
        axes.set_ylabel(f"share / share at {study.reference:g} [%]")
        drawing.legend_below(figure, axes, 3)
        return figure


def finding(study: Invariance) -> str:
    """Whether the share of F stays the same, and where not, in plain English (Markdown)."""
    compared = _known_points(study)
    if not compared:
        return "**Whether the answer depends on the scale of time cannot be said**: no block has two dilations."
    whole, margin = len(compared), percent(study.margin, 0)
    blocks = counted(max(int(at.blocks) for at in compared), "block")
    basis = f"({blocks}, 90 % t intervals, {study.evidence} evidence)"
    same = sum(at.answer.item() == SAME for at in compared)
    differ = sum(at.answer.item() in (LOWER, HIGHER) for at in compared)
    if same == whole:
        head = f"**HPL's efficiency does not depend on how much time is slowed down**: all {whole} comparisons are within {margin} {basis}."
    elif differ:
        head = f"**HPL's efficiency depends on how much time is slowed down**: {differ} of {whole} comparisons differ by more than {margin} {basis}."
    else:
        head = f"**{same} of {whole} comparisons show that the scale of time does not matter**, within {margin} {basis}."
    still_open = whole - same - differ
    others = f"{still_open} {'is' if still_open == 1 else 'are'} open." if still_open else ""
    return " ".join(filter(None, (head, others, _largest_change(study, compared))))


def _known_points(study: Invariance) -> list[xr.Dataset]:
    stacked = study.compared.stack(point=("interconnect", "nodes", "dilation"))
    places = [stacked.isel(point=number) for number in range(stacked.sizes["point"])]
    return [at for at in places if np.isfinite(at.ratio)]


def _largest_change(study: Invariance, compared: list[xr.Dataset]) -> str:
    """The largest change of which the interval excludes none."""
    changed = [at for at in compared if at.high < 1 or at.low > 1]
    if not changed:
        return ""
    most = max(changed, key=lambda at: abs(np.log(float(at.ratio))))
    ratio, name = float(most.ratio), short_names(study.dataset)[most.interconnect.item()]
    interval = between((100 * float(most.low), 100 * float(most.high)), 1)
    return (
        f"The largest change is on {name} with {counted(int(most.nodes), 'node')}: slowed down {float(most.dilation):g} instead of "
        f"{study.reference:g} times, HPL reaches {percent(ratio)} of its efficiency ({interval} %)."
    )


def findings(study: Invariance) -> Iterator[Finding]:
    """Every comparison of two dilations, as data."""
    source, names = origin("hpl_invariance", study.dataset), short_names(study.dataset)
    for name in study.compared.interconnect.values.tolist():
        for nodes in study.compared.nodes.values.tolist():
            for dilation in study.compared.dilation.values.tolist():
                at = study.compared.sel(interconnect=name, nodes=nodes, dilation=dilation)
                statement = (
                    f"HPL's share of F on {names[name]}, {nodes} nodes, at dilation {dilation:g} over that at "
                    f"{study.reference:g}"
                )
                yield of_estimate(
                    source,
                    statement,
                    "ratio",
                    "1",
                    float(at.ratio),
                    (float(at.low), float(at.high)),
                    "90 % t interval over the blocks",
                    n=int(at.blocks),
                    answer=at.answer.item(),
                )


def figures(study: Invariance) -> dict[str, Exhibit]:
    """Efficiency over the dilation, and its change."""
    fewest, most = int(study.points.nodes.min()), int(study.points.nodes.max())
    return {
        "invariance": Exhibit(
            "invariance",
            ratio_over_dilation(study),
            f"HPL at other scales of time: the share of what the nodes compute, over that at a factor of {study.reference:g}",
            _basis(study, "90 % t intervals"),
            "Ratio of the share at each dilation to that at the described one, for each network and node count, with the margin",
            "Links are so many times slower than in the paper, and nodes in proportion. Small marks are single blocks; large marks and bars are "
            f"geometric means with their intervals, open on {fewest} and filled on {counted(most, 'node')}; shaded is the margin.",
            rests_on=FIGURES["invariance"],
        )
    }


def _basis(study: Invariance, intervals: str) -> Basis:
    return Basis(study.evidence, study.points.sizes["block"], intervals)


def dilations_table(study: Invariance) -> Table:
    """Share and ratio at every dilation."""
    names, rows = short_names(study.dataset), []
    for name in study.shares.interconnect.values.tolist():
        for n in study.shares.nodes.values.tolist():
            for dilation in study.shares.dilation.values.tolist():
                place = {"interconnect": name, "nodes": n, "dilation": dilation}
                share = study.shares.sel(place)
                reached = estimate(*(100 * share[end] for end in ("ratio", "low", "high")))
                ratio, answer = _comparison(study, place)
                where = names[name], str(n), f"{dilation:g}"
                rows.append((*where, reached, ratio, answer, str(int(share.blocks))))
    columns = (
        "Network",
        "Nodes",
        "Slowed down by [1]",
        "Share [%] (95 % interval)",
        f"Over that at {study.reference:g} [1] (90 % interval)",
        "The same?",
        "Blocks",
    )
    caption = (
        f"HPL's share of what the nodes compute at each scale of time: geometric means. The same: the interval of the ratio lies "
        f"within {percent(study.margin, 0)}; open: it reaches beyond"
    )
    return Table("invariance", columns, "lrrlllr", rows, caption, _basis(study, "t intervals"))


def _comparison(study: Invariance, place: dict) -> tuple[str, str]:
    """The ratio to the reference's share with its interval, and the answer."""
    if place["dilation"] == study.reference:
        return "1", UNKNOWN
    at = study.compared.sel(place)
    ratio = estimate(at.ratio, at.low, at.high, lambda value: fixed(value, 3))
    return ratio, at.answer.item() if np.isfinite(at.ratio) else UNKNOWN
