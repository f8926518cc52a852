"""Programs beside others that flood the network: how much longer the operations of the victims take.

The ratio of the times under load and alone is what GPCNeT calls congestion impact (Chunduri et al., SC 2019).
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib import ticker
from matplotlib.figure import Figure

from analysis import attributes, drawing, exhibit, style
from analysis.derive import at_only_level, over_factors
from analysis.statements import Statement, above, estimated, evidence_of, interval_in_words, origin
from analysis.statistics.intervals import over_blocks
from analysis.statistics.judgement import UNDECIDED
from analysis.wording import listed, number

QUANTILES = {"median": "median", "p99": "99th percentile"}
# What the others do, in a sentence and in a figure.
WHILE = {
    "none": "the others wait",
    "incast": "the others send many to one",
    "alltoall": "the others send all to all",
}
CONGESTORS = {"none": "the others wait", "incast": "many to one", "alltoall": "all to all"}
SHARING = {"own links": "on links of their own", "same links": "on the same links"}


def slowdown(runs: xr.Dataset) -> xr.Dataset:
    """Times of the victims' operation under load over those alone, in the same trial, as `median` and `p99` [1] over (block,
    setup, sharing, congestor); NaN where a trial gave no reading.

    Raises FalloffError if there is no trial of congestion, or several networks.
    """
    ratios = {name: runs[f"{name}_loaded"] / runs[f"{name}_alone"] for name in QUANTILES}
    laid_out = over_factors(runs, "congestion", **ratios)
    return at_only_level(laid_out.assign_attrs(runs.attrs), "interconnect")


def mean_slowdown(ratio: xr.DataArray) -> xr.Dataset:
    """`mean`, `low`, `high` (geometric, 95 % t interval over the blocks) and `blocks`, over all dims of a slowdown but
    `block`."""
    return over_blocks(ratio, "ratio")


def least(runs: xr.Dataset) -> float:
    """The least slowdown that counts [1], decided before the run."""
    return 1 + attributes.design(runs)["margin"]


class Slowdown(NamedTuple):
    """The place of a slowdown in the campaign, and what was judged of it."""

    quantile: str
    sharing: str
    congestor: str
    setup: str
    statement: Statement


def judged(runs: xr.Dataset, ratio: xr.Dataset) -> Iterator[Slowdown]:
    """Whether the victims are slowed by each flood, at the median and the 99th percentile, for each switch. Primary are the
    99th percentiles; where nobody floods it is a control."""
    control, limit = attributes.design(runs)["control"], least(runs)
    dims = (ratio[dim].values.tolist() for dim in ("sharing", "congestor", "setup"))
    for quantile, sharing, congestor, setup in product(QUANTILES, *dims):
        at = {"sharing": sharing, "congestor": congestor, "setup": setup}
        means = mean_slowdown(ratio[quantile].sel(at))
        estimate = tuple(float(means[name]) for name in ("mean", "low", "high"))
        statement = estimated(
            origin(runs),
            f"Victims {SHARING.get(sharing, sharing)} are slower while {WHILE.get(congestor, congestor)}, {QUANTILES[quantile]}: {setup}",
            "slowdown",
            estimate,
            int(means.blocks) or ratio.sizes["block"],
            words=above(estimate[1:], limit) or UNDECIDED,
            primary=congestor != control and quantile == "p99",
            margin=limit,
        )
        yield Slowdown(quantile, sharing, congestor, setup, statement)


def in_words(runs: xr.Dataset, slowdowns: Sequence[Slowdown]) -> str:
    """For victims on links of their own and on the same ones: whether floods slow them, and the worst at each quantile; and
    what the controls show (Markdown)."""
    control = attributes.design(runs)["control"]
    known = [one for one in slowdowns if one.statement.estimate is not None]
    parts = []
    for sharing in dict.fromkeys(one.sharing for one in slowdowns):
        floods = [one for one in known if one.sharing == sharing and one.congestor != control]
        parts.append(_of_sharing(runs, SHARING.get(sharing, sharing), floods))
    if waiting := [one.statement.estimate for one in known if one.congestor == control]:
        span = f"{number(min(waiting))} to {number(max(waiting))}"
        parts.append(f"Where nobody floods the ratios are {span}.")
    return "\n\n".join(parts)


def _of_sharing(runs: xr.Dataset, where: str, floods: Sequence[Slowdown]) -> str:
    evidence = f"{evidence_of(runs)} evidence"
    if not floods:
        return f"What a flood does to programs {where} cannot be said ({evidence})."
    answers = [one.statement.words for one in floods]
    yes, still_open = answers.count("yes"), answers.count(UNDECIDED)
    if yes:
        begin = f"**A flood slows programs {where}**"
    elif still_open:
        begin = f"Whether a flood slows programs {where} is open"
    else:
        begin = f"**A flood behind the same switch does not slow programs {where}**"
    told = listed([_worst(floods, quantile) for quantile in QUANTILES])
    blocks = min((one.statement for one in floods), key=lambda one: one.n).basis
    undecided = f" {still_open} of {len(answers)} answers are open." if yes and still_open else ""
    return f"{begin}: at most {told} ({blocks}, {evidence}).{undecided}"


def _worst(floods: Sequence[Slowdown], quantile: str) -> str:
    worst = max(
        (one for one in floods if one.quantile == quantile), key=lambda one: one.statement.estimate
    )
    by = CONGESTORS.get(worst.congestor, worst.congestor)
    times = number(worst.statement.estimate)
    return f"{times} times as long at the {QUANTILES[quantile]} ({by}; {worst.setup})"


def by_flood(runs: xr.Dataset, ratio: xr.Dataset) -> Figure:
    """The slowdowns [1] by what floods, at the median and the 99th percentile."""
    rows = list(product(ratio.sharing.values.tolist(), ratio.congestor.values.tolist()))
    with style.styled():
        figure, panels = drawing.new_figures(3.4, 2, sharey=True)
        for axes, (quantile, title) in zip(panels, QUANTILES.items()):
            axes.set_title(title)
            axes.axvline(1, color=style.FAINT, linewidth=0.9)
            axes.axvline(least(runs), color=style.INK, linewidth=0.9, linestyle=":")
            for rank, setup in enumerate(ratio.setup.values.tolist()):
                look = style.look(f"buffer {rank + 1}")
                sidestep = 0.22 * (rank - (ratio.sizes["setup"] - 1) / 2)
                for row, (sharing, congestor) in enumerate(rows):
                    at = {"sharing": sharing, "congestor": congestor, "setup": setup}
                    values = ratio[quantile].sel(at).values
                    label = setup if row == 0 else ""
                    places = np.full(values.size, row + sidestep)
                    axes.plot(values, places, look.marker, color=look.color, label=label)
            axes.set_xscale("log")
            axes.set_xticks([1, 10, 100], ["1", "10", "100"])
            axes.xaxis.set_minor_locator(ticker.NullLocator())
            axes.set_xlim(0.5, 1000)
            axes.set_xlabel("under load / alone [1]")
        names = [f"{CONGESTORS.get(flood, flood)},\n{sharing}" for sharing, flood in rows]
        drawing.rows(panels[0], names)
        drawing.legend_below(figure, panels, 3)
    return figure


def table(runs: xr.Dataset, ratio: xr.Dataset) -> exhibit.Table:
    """The slowdowns by floods with their intervals."""
    control, rows = attributes.design(runs)["control"], []
    means = {quantile: mean_slowdown(ratio[quantile]) for quantile in QUANTILES}
    for sharing, congestor, setup in product(
        ratio.sharing.values, ratio.congestor.values, ratio.setup.values
    ):
        if congestor == control:
            continue
        cells = []
        for quantile in QUANTILES:
            at = means[quantile].sel(sharing=sharing, congestor=congestor, setup=setup)
            interval = interval_in_words((float(at.low), float(at.high)), 1)
            cells.append(f"{number(float(at['mean']))}{f' ({interval})' if interval else ''}")
        rows.append((sharing, CONGESTORS.get(congestor, congestor), setup, *cells))
    columns = ("Victims", "Flood", "Switch", "Median [1]", "99th percentile [1]")
    basis = exhibit.Basis.of_dataset(
        runs, "geometric means, 95 % t intervals", ratio.sizes["block"]
    )
    caption = "Time of an allreduce under load over its time alone, at quantiles of all victims' operations"
    return exhibit.Table("congestion-slowdowns", columns, "lllrr", rows, caption, basis)
