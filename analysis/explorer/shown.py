"""All that follows from a view: what the page shows, an export repeats and a figure draws."""

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pandas as pd
import xarray as xr

from analysis import models
from analysis.contrasts import Contrast, contrasts, differences, log_ratios
from analysis.derive import points
from analysis.explorer import data
from analysis.explorer.data import PERCENT, Trials
from analysis.explorer.view import View, model_of, opening, printed
from analysis.fitting.adequacy import follows
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.statistics.intervals import over_blocks, ratios
from analysis.statistics.judgement import LEVEL, REFUSED
from analysis.statistics.judgement import Judgement as Fall
from analysis.statistics.judgement import judge as judge_fall
from analysis.wording import counted, number, percent, percent_range
from runners.record import FalloffError

OF_FALLS = ("efficiency", "share", "hpl_rate")  # whose ratio within a block is that of the rates
OF_RATES = (
    "amdahl",
    "universal_scalability",
)  # laws of a rate: of a share they describe n times the share
PUBLISHED = "published"
CODE = '''"""{title}

Made by `falloff explore`. In Falloff's environment and folder: python view.py. It prints what the page said, and
writes the trials, the summary and the figure that it showed.
"""

from analysis.explorer.plot import draw, save
from analysis.explorer.shown import again
from analysis.explorer.view import View

view = {view}

shown = again(view)
print(shown.text)
shown.points().to_csv("view-trials.csv", index=False)
shown.summary().to_csv("view-summary.csv", index=False)
save(draw(shown), "view.html")
'''


@dataclass(frozen=True)
class Fitted:
    """The experiment's model on one curve, in the readings' own units, as the report has it.

    `refused` says why its curve may not be drawn, and is empty where it may. With `times_x` it was fitted to x times
    the values. The page shows `scale` times the readings.
    """

    fit: BlockFit | None
    refused: str
    times_x: bool
    scale: float

    def band(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean curve and 95 % band over the blocks at x in the page's unit: (mean, low, high), each of shape (x,)."""
        scale = self.scale / (x if self.times_x else 1.0)
        return tuple(scale * part for part in self.fit.band(x, "cost"))


@dataclass(frozen=True)
class Curve:
    """One series of one dataset.

    `table` is over (block, the levels of x) in the quantity's unit, NaN where a trial is not valid or was left out.
    `summary` has a row for each level: `median`, `mean`, the 95 % t interval `low` and `high`, NaN from one value, and
    `n`. `fitted` is the experiment's model, None where it names none for what is shown.
    """

    source: str
    level: Hashable
    table: pd.DataFrame
    summary: pd.DataFrame
    fitted: Fitted | None

    @property
    def is_drawn(self) -> bool:
        """Whether a model follows its points."""
        return self.fitted is not None and not self.fitted.refused


@dataclass(frozen=True)
class Judgement:
    """What the data say of the view's contrast: `word` is the verdict, or empty where none is drawn.

    `sentence` says it with n and the kind of interval, `note` what else has to be known. `fall` is the verdict that
    it rests on, None where two series are compared at the last level: then `ratio` [1] is theirs.
    """

    evidence: str
    sentence: str
    note: str = ""
    word: str = ""
    fall: Fall | None = None
    ratio: float = np.nan


@dataclass(frozen=True)
class Shown:
    """A view with the trials of its sources, its curves and its judgements."""

    view: View
    opened: Mapping[str, Trials]
    curves: tuple[Curve, ...]
    judgements: Mapping[str, Judgement]

    @property
    def first(self) -> Trials:
        """The trials of the first source."""
        return self.opened[self.view.sources[0]]

    @property
    def quantity(self) -> data.Quantity:
        """What is on the vertical axis."""
        return self.first.quantities[self.view.y]

    @property
    def text(self) -> str:
        """What the page says above the plot, a line for each dataset."""
        return "\n".join(f"{one.sentence} {one.note}".strip() for one in self.judgements.values())

    def printed(self) -> pd.DataFrame:
        """What the sources printed of what is shown: the levels, `value` in the quantity's unit, and `text`, where."""
        rows = printed(self.view.y, self.first)
        if not self.view.printed or not {self.view.x, self.view.series} <= set(rows):
            return rows.iloc[:0]
        for name, level in self.view.fixed:
            rows = rows[rows[name] == level] if name in rows else rows
        return rows[rows[self.view.series].isin(self.view.shown)].reset_index(drop=True)

    def points(self) -> pd.DataFrame:
        """A row for each trial shown: where it is from, its levels and value, and if and why it does not count.

        What the sources printed follows, of published evidence, without a trial and with its text as the source.
        """
        view, unit = self.view, self.quantity.unit
        factors = dict.fromkeys([view.series, view.x, *(name for name, _ in view.fixed)])
        columns = ["trial_id", "block", "order", *factors, view.y, "counts", "reason"]
        parts = [
            selected(view, trials)[columns].assign(source=name, evidence=trials.evidence, unit=unit)
            for name, trials in self.opened.items()
        ]
        beside = self.printed()
        if not beside.empty:
            said = {"trial_id": "", "counts": False, "reason": "printed", "unit": unit}
            levels = {name: level for name, level in view.fixed if name not in beside}
            told = beside.rename(columns={"value": view.y, "text": "source"})
            told = told.assign(evidence=PUBLISHED, **said, **levels)
            parts = [part.astype({"block": "Int64", "order": "Int64"}) for part in parts]
            parts.append(told[[name for name in parts[0] if name in told]])
        return pd.concat(parts, ignore_index=True)

    def summary(self) -> pd.DataFrame:
        """A row for each point: median, the mean of the quantity's kind, its 95 % t interval over the blocks and n."""
        parts = []
        for curve in self.curves:
            evidence = self.opened[curve.source].evidence
            named = {self.view.series: curve.level, "source": curve.source, "evidence": evidence}
            levels = curve.summary.rename_axis(self.view.x).reset_index()
            parts.append(levels.assign(**named))
        return pd.concat(parts, ignore_index=True)

    def code(self, title: str) -> str:
        """Python that shows the view again, without the page."""
        fields = "".join(f"    {name}={value!r},\n" for name, value in vars(self.view).items())
        said = title.replace("\\", " ").replace('"', "'")
        return CODE.format(title=said, view=f"View(\n{fields})")


def show(view: View, opened: Mapping[str, Trials]) -> Shown:
    """Derive all of it; `opened` holds the trials of the view's sources."""
    curves = {name: _curves(view, name, opened[name]) for name in view.sources}
    judgements = {name: judge(view, curves[name], opened[name]) for name in view.sources}
    return Shown(view, opened, tuple(sum(curves.values(), [])), judgements)


def first_of(source: data.Source) -> Shown:
    """What a dataset's page begins with; raises FalloffError when it cannot be read."""
    trials = data.opened(source)
    return show(opening(source.name, trials), {source.name: trials})


def again(view: View) -> Shown:
    """The same from the sources' names alone; raises FalloffError when one of them is gone or cannot be read."""
    return show(view, {name: data.opened(data.named(name)) for name in view.sources})


@lru_cache(maxsize=16)  # points, curves and sentences all begin with it; nobody changes it
def selected(view: View, trials: Trials) -> pd.DataFrame:
    """The rows of the series shown at the other factors' levels, with `counts`: is it in the statistics?"""
    frame = trials.by_size.get(view.y, trials.frame)
    for name, level in view.fixed:
        frame = frame[frame[name] == level]
    frame = frame[frame[view.series].isin(view.shown)]
    out = frame.block.isin(view.without_blocks) | frame[view.x].isin(view.without_levels)
    return frame.assign(counts=frame.valid & frame[view.y].notna() & ~out)


def _curves(view: View, name: str, trials: Trials) -> list[Curve]:
    rows = selected(view, trials)
    rows = rows[rows.counts]
    levels = [level for level in trials.factors_of(view.y)[view.x] if (rows[view.x] == level).any()]
    blocks = np.unique(rows.block)
    # Laid out at once: a page has to answer within a blink.
    table = np.full((len(view.shown), len(blocks), len(levels)), np.nan)
    if len(rows):
        series = pd.Index(view.shown).get_indexer(rows[view.series])
        x = pd.Index(levels).get_indexer(rows[view.x])
        table[series, np.searchsorted(blocks, rows.block), x] = rows[view.y]
    kind = trials.quantities[view.y].kind
    means = over_blocks(xr.DataArray(table, dims=("series", "block", "x")), kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the median of nothing is NaN
        medians = np.nanmedian(table, axis=1) if len(blocks) else means["mean"].values
    model, found = model_of(view, trials), []
    for at, level in enumerate(view.shown):
        parts = {part: means[part].values[at] for part in ("mean", "low", "high")}
        columns = {"median": medians[at], **parts, "n": means.blocks.values[at]}
        values = pd.DataFrame(table[at], blocks, levels)
        fitted = _fit(model, view, values, trials) if model else None
        found.append(Curve(name, level, values, pd.DataFrame(columns, levels), fitted))
    return found


def _fit(model: str, view: View, table: pd.DataFrame, trials: Trials) -> Fitted:
    times_x = view.y in PERCENT and view.x == "nodes" and model in OF_RATES
    scale = trials.quantities[view.y].scale
    table = table.dropna(axis="columns", how="all")
    if trials.repeats or table.empty:
        return Fitted(None, "There are no blocks to fit a model to.", times_x, scale)
    x = tuple(table.columns.to_numpy(float))
    values = table.to_numpy(float) / scale * (np.array(x) if times_x else 1.0)
    found, refused = _fitted(model, x, values.shape, values.tobytes())
    return Fitted(found, refused, times_x, scale)


@lru_cache(maxsize=512)
def _fitted(
    model: str, x: tuple[float, ...], shape: tuple[int, int], values: bytes
) -> tuple[BlockFit | None, str]:
    """A model fitted to each block, or None, and why it may not be drawn."""
    along, table = np.array(x), np.frombuffer(values).reshape(shape)
    try:
        found = fit_blocks(models.find(model), along, table)
    except FalloffError as refusal:
        return None, str(refusal)
    except ValueError:
        return None, "There are too few points for this model."
    does_follow = follows(table, found.band(along, "cost")[0], len(found.model.parameters))
    return found, "" if does_follow else "It misses the points, so that it is not drawn."


def judge(view: View, curves: Sequence[Curve], trials: Trials) -> Judgement:
    """The judgement on one dataset, from its curves."""
    evidence, pair = trials.evidence, (view.network, view.reference)
    if view.network is None:
        return Judgement(evidence, "One series alone: there is nothing to compare it with.")
    if trials.repeats:
        why = "Order and blocks of imported runs are not known, so no verdict on a fall is drawn."
        return Judgement(evidence, why)
    tables = {curve.level: curve.table for curve in curves}
    values = np.array([tables[level].to_numpy(float) for level in pair])
    named = " against ".join(trials.called(view.series, level) for level in pair)
    if not (values > 0).any():
        return Judgement(evidence, f"{named}: no trial is left to compare.")
    blocks, levels = tables[view.network].index, tables[view.network].columns
    coords = {"series": list(pair), "block": blocks, view.x: levels}
    rate = xr.DataArray(np.where(values > 0, values, np.nan), coords, ("series", "block", view.x))
    log_ratio = log_ratios(xr.Dataset({"rate": rate}), *pair, along="series")
    if judges_fall(view, trials) and log_ratio.sizes["nodes"] > 1:
        return _fall(view, trials, log_ratio, named)
    return _ratio(view, trials, log_ratio, named)


def judges_fall(view: View, trials: Trials) -> bool:
    """Whether the campaign was designed to judge a fall over nodes, and the view compares what it compared."""
    design = trials.design
    planned = "baseline_nodes" in design and view.series == design.get("compared", "interconnect")
    return planned and view.x == "nodes" and view.y in OF_FALLS


def _fall(view: View, trials: Trials, log_ratio: xr.DataArray, named: str) -> Judgement:
    """The campaign's own verdict; of fewer blocks the same judged anew; none where an end of the fall is left out."""
    planned, nodes = _planned(view, trials), log_ratio.nodes.values
    start, end = trials.design["baseline_nodes"], max(trials.factors["nodes"])
    start, end = (planned.start, planned.end) if planned else (start, end)
    missing = [counted(n, "node") for n in (start, end) if n not in nodes]
    notes = _by_hand(view, trials)
    if missing:
        start, end = (min(nodes, key=lambda n: abs(n - end)) for end in (start, end))
        start, end = (start, end) if start < end else (nodes.min(), nodes.max())
        said = f"No verdict: the campaign judges from or to {' and '.join(missing)}, left out here."
        notes.insert(0, said)
    if planned and not missing and not view.without_blocks:
        found = planned.verdict
    else:
        apart = planned.differences if planned and not missing else None
        apart = differences(log_ratio, start, end) if apart is None else apart
        kept = apart.sel(block=~apart.block.isin(view.without_blocks)).values
        level = trials.design.get("one_sided", LEVEL)
        found = judge_fall(kept, trials.design["margin"], trials.evidence, level)
        if planned and planned.verdict.answer == REFUSED:
            found = replace(found, answer=REFUSED, reason=planned.verdict.reason)
    span = f"from {start:g} to {end:g} nodes"
    if found.fall is None:
        said = f"{named} is undecided {span}. {found.reason}"
    elif missing:
        said = f"{named} {span}: the rate falls by {percent(found.fall)} ({_basis(found)})."
    else:
        verb = found.answer if found.answer.startswith(("falls", "rises")) else f"is {found.answer}"
        basis = f"{percent(found.fall)} ({_basis(found)})"
        said = f"{named} {verb}: its fall {span} is {basis}. {found.reason}"
    word = "" if missing else found.answer
    return Judgement(trials.evidence, said, " ".join(notes), word, found)


def _planned(view: View, trials: Trials) -> Contrast | None:
    """The campaign's first statement on the view's two networks."""
    if view.series != "interconnect":
        return None
    pair, statements = (view.network, view.reference), _statements(trials)
    return next((one for one in statements if (one.network, one.reference) == pair), None)


@lru_cache(maxsize=8)  # of the datasets that are open
def _statements(trials: Trials) -> tuple[Contrast, ...]:
    try:
        return contrasts(points(trials.dataset))
    except FalloffError:  # a network that it compares was not run
        return ()


def _ratio(view: View, trials: Trials, log_ratio: xr.DataArray, named: str) -> Judgement:
    place = f"at {trials.called(view.x, log_ratio[view.x].values.tolist()[-1])}"
    found = ratios(log_ratio.isel({view.x: -1}, drop=True))
    value, low, high = (float(found[part]) for part in ("ratio", "low", "high"))
    if not found.blocks:
        return Judgement(trials.evidence, f"{named} {place}: no block has both.")
    n = counted(int(found.blocks), trials.unit_of_repetition)
    basis = f"no interval from {n}"
    if np.isfinite(low):
        basis = f"95 % t interval {number(low)} to {number(high)}, n = {n}"
    basis = f"in {trials.quantities[view.y].label} ({basis}, {trials.evidence} evidence)"
    said = "A ratio of geometric means; the campaign judges no fall of this quantity."
    notes = [said, *_by_hand(view, trials)]
    sentence = f"{named} {place}: ratio {number(value)} {basis}."
    return Judgement(trials.evidence, sentence, " ".join(notes), ratio=value)


def _basis(found: Fall) -> str:
    n = f"n = {counted(found.blocks, 'block')}"
    n = "a model, without scatter" if found.evidence == "simulated" else n
    if found.interval:
        n = f"{100 * found.confidence:g} % interval {percent_range(found.interval)}, {n}"
    return f"{n}, margin {percent(found.margin, 0)}, {found.evidence} evidence"


def _by_hand(view: View, trials: Trials) -> list[str]:
    parts = [counted(len(view.without_blocks), "block")] if view.without_blocks else []
    parts += [trials.called(view.x, level) for level in view.without_levels]
    said = (
        f"Left out by hand: {', '.join(parts)}; this explores, and is not the campaign's verdict."
    )
    return [said] if parts else []
