"""The sentence above the plot: the verdict where the campaign judges a fall, else how two series compare."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
import xarray as xr

from analysis.contrasts import Contrast, contrasts, differences, log_ratios
from analysis.derive import points
from analysis.explorer.estimates import Curve, selected
from analysis.explorer.trials import Trials
from analysis.explorer.view import View
from analysis.inference.over_blocks import ratios
from analysis.statistics.judgement import LEVEL
from analysis.statistics.judgement import Judgement as Fall
from analysis.statistics.judgement import judge as judge_fall
from analysis.wording import counted, number, percent, percent_range
from runners.record import FalloffError

OF_FALLS = ("efficiency", "share", "hpl_rate")  # quantities whose ratio within a block is that of the rates


@dataclass(frozen=True)
class Judgement:
    """What the data say of the view's contrast: `word` is the verdict, or empty where none is drawn.

    `sentence` says it with n and the kind of interval, `note` what else has to be known. `fall` is the verdict that
    it rests on; `ratio` [1] with `interval` that of the two series at the largest level, and `blocks` its n.
    """

    word: str
    sentence: str
    note: str
    evidence: str
    fall: Fall | None = None
    ratio: float = np.nan
    interval: tuple[float, float] = (np.nan, np.nan)
    blocks: int = 0


def judge(view: View, curves: Sequence[Curve], trials: Trials) -> Judgement:
    """The judgement on one dataset, from its curves."""
    if view.network is None or view.reference is None:
        return Judgement("", "One series alone: there is nothing to compare it with.", "", trials.evidence)
    if trials.repeats:
        why = "Order and blocks of imported runs are not known, so no verdict on a fall is drawn."
        return Judgement("", why, "", trials.evidence)
    tables = [next(it.table for it in curves if it.level == level) for level in (view.network, view.reference)]
    values = np.array([table.to_numpy(float) for table in tables])
    if not (values > 0).any():
        return Judgement("", f"{_pair(view, trials)}: no trial is left to compare.", "", trials.evidence)
    coords = {"series": [view.network, view.reference], "block": tables[0].index, view.abscissa: tables[0].columns}
    rate = xr.DataArray(np.where(values > 0, values, np.nan), coords, ("series", "block", view.abscissa))
    log_ratio = log_ratios(xr.Dataset({"rate": rate}), view.network, view.reference, along="series")
    if judges_fall(view, trials) and log_ratio.sizes["nodes"] > 1:
        return _fall(view, trials, log_ratio)
    return _ratio(view, trials, log_ratio)


def judges_fall(view: View, trials: Trials) -> bool:
    """Whether the campaign was designed to judge a fall over nodes, and the view compares what it compared."""
    design = trials.design
    planned = "baseline_nodes" in design and view.series == design.get("compared", "interconnect")
    return planned and view.abscissa == "nodes" and view.ordinate in OF_FALLS


def _fall(view: View, trials: Trials, log_ratio: xr.DataArray) -> Judgement:
    design, nodes = trials.design, log_ratio.nodes.values.tolist()
    planned, level = _planned(view, trials, nodes), design.get("one_sided", LEVEL)
    if planned is None:
        baseline, most = design["baseline_nodes"] if design["baseline_nodes"] in nodes else nodes[0], max(nodes)
        found = judge_fall(differences(log_ratio, baseline).values, design["margin"], trials.evidence, level)
    else:
        baseline, most, found = planned.start, planned.end, planned.verdict
        if view.without_blocks:
            kept = planned.differences.sel(block=~planned.differences.block.isin(view.without_blocks))
            found = judge_fall(kept.values, design["margin"], trials.evidence, level)
    span = f"from {baseline:g} to {most:g} nodes"
    if found.fall is None:
        said = f"{_pair(view, trials)} is undecided {span}. {found.reason}"
    else:
        verb = found.answer if found.answer.startswith(("falls", "rises")) else f"is {found.answer}"
        basis = f"{percent(found.fall)} ({_basis(found, trials)})"
        said = f"{_pair(view, trials)} {verb}: its fall {span} is {basis}. {found.reason}"
    notes = []
    if planned is None and baseline != design["baseline_nodes"]:
        notes.append(f"The campaign's own baseline, {design['baseline_nodes']} nodes, is left out.")
    return Judgement(
        found.answer, said, " ".join([*notes, *_by_hand(view, trials)]), trials.evidence, found, blocks=found.blocks
    )


def _planned(view: View, trials: Trials, nodes: Sequence[int]) -> Contrast | None:
    """The campaign's first statement on the view's two networks, unless one of its node counts is left out by hand."""
    if view.series != "interconnect":
        return None
    pair = (view.network, view.reference)
    found = next((it for it in _statements(trials) if (it.network, it.reference) == pair), None)
    return found if found and {found.start, found.end} <= set(nodes) else None


@lru_cache(maxsize=8)  # of the datasets that are open
def _statements(trials: Trials) -> tuple[Contrast, ...]:
    try:
        return contrasts(points(trials.dataset))
    except FalloffError:  # a network that it compares was not run
        return ()


def _ratio(view: View, trials: Trials, log_ratio: xr.DataArray) -> Judgement:
    at = log_ratio[view.abscissa].values.tolist()[-1]
    found = ratios(log_ratio.isel({view.abscissa: -1}, drop=True))
    value, low, high, blocks = (float(found[it]) for it in ("ratio", "low", "high", "blocks"))
    place = f"at {trials.placed(view.abscissa, at)}"
    if not blocks:
        return Judgement("", f"{_pair(view, trials)} {place}: no block has both.", "", trials.evidence)
    n = counted(int(blocks), trials.unit_of_repetition)
    basis = f"no interval from {n}" if np.isnan(low) else f"95 % t interval {number(low)} to {number(high)}, n = {n}"
    label = trials.quantities[view.ordinate].label
    said = f"{_pair(view, trials)} {place}: ratio {number(value)} in {label} ({basis}, {trials.evidence} evidence)."
    notes = [
        "The campaign judges no fall of this quantity: a ratio of geometric means is no verdict.",
        *_by_hand(view, trials),
    ]
    return Judgement("", said, " ".join(notes), trials.evidence, None, value, (low, high), int(blocks))


def _basis(found: Fall, trials: Trials) -> str:
    interval = f"{100 * found.confidence:g} % interval {percent_range(found.interval)}, " if found.interval else ""
    n = "a model, without scatter" if trials.evidence == "simulated" else f"n = {counted(found.blocks, 'block')}"
    return f"{interval}{n}, margin {percent(found.margin, 0)}, {trials.evidence} evidence"


def _by_hand(view: View, trials: Trials) -> list[str]:
    if not view.without_blocks and not view.without_levels:
        return []
    blocks = [counted(len(view.without_blocks), "block")] if view.without_blocks else []
    levels = [trials.placed(view.abscissa, level) for level in view.without_levels]
    return [f"Left out by hand: {', '.join([*blocks, *levels])}; this explores, and is not the campaign's verdict."]


def _pair(view: View, trials: Trials) -> str:
    return f"{trials.placed(view.series, view.network)} against {trials.placed(view.series, view.reference)}"


def left_out(view: View, trials: Trials) -> pd.Series:
    """How many of the view's trials do not count, by the reason; what is left out by hand is no reason."""
    rows = selected(view, trials)
    return rows[~rows.valid].reason.replace("", "no reading").value_counts()
