"""What is looked at, as a frozen description, and all that follows from it: curves with their model, and the judgement."""

import json
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache

import numpy as np
import pandas as pd
import xarray as xr

from analysis import experiments, models
from analysis.contrasts import Contrast, contrasts
from analysis.derive import points
from analysis.explorer import data
from analysis.explorer.data import PERCENT, SIZE, Trials
from analysis.fitting.adequacy import follows
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.inference.over_blocks import over_blocks, ratios
from analysis.statistics.judgement import LEVEL, REFUSED, judge
from analysis.wording import number, percent, percent_range
from runners.record import FalloffError

MOST_SERIES = 9  # shown at first of a factor with more levels
# Factors that a curve runs over, most typical first; and those that tell curves apart.
ALONG = (
    SIZE, "nodes", "N", "receivers", "window_bytes", "mtu", "frame_bytes", "pairs", "token_bytes",
    "bandwidth", "streams", "processes", "ranks_per_node",
)  # fmt: skip
APART = ("aggregation", "vary", "blas", "daemon", "latency", "interconnect", "path")
OF_FALLS = ("efficiency", "share", "hpl_rate")  # whose ratio within a block is that of the rates
OF_RATES = ("amdahl", "universal_scalability")  # of a share they describe n times the share
CODE = '''"""{title}

Made by `falloff explore`. In Falloff's environment and folder: python view.py. It prints what the page said, and
writes the trials, the summary and the figure that it showed.
"""

from analysis.explorer.plot import draw, save
from analysis.explorer.view import View, again

view = {view}

shown = again(view)
print(shown.judgement.text)
shown.points.to_csv("view-trials.csv", index=False)
shown.summary.to_csv("view-summary.csv", index=False)
save(draw(shown), "view.html")
'''


@dataclass(frozen=True)
class View:
    """What is on the page.

    `source` is the dataset's name, `y` a quantity, `x` the factor along the horizontal axis and `series` the one whose
    levels are curves, `shown` those that are. Of each other factor one level is `fixed`; imported runs, which have no
    design, are not. `without_blocks` and `without_levels` (of x) are left out by hand. `network` is judged against
    `reference`, both levels of the series' factor. With `log` the vertical axis is logarithmic.
    """

    source: str
    y: str = ""
    x: str = ""
    series: str = ""
    shown: tuple[Hashable, ...] = ()
    fixed: tuple[tuple[str, Hashable], ...] = ()
    without_blocks: tuple[int, ...] = ()
    without_levels: tuple[Hashable, ...] = ()
    network: Hashable = None
    reference: Hashable = None
    log: bool = False


@cache
def _declared(name: str) -> dict:
    """What the experiments' modules say in OPENS and PRINTED, and in MODEL of their own campaign."""
    entries = {}
    for module in experiments.modules():
        entry = getattr(module, name, {})
        if isinstance(entry, str):
            entry = {next(iter(experiments.campaigns(module))): entry}
        entries |= entry if isinstance(entry, dict) else {}
    return entries


def opening(source: str, trials: Trials) -> View:
    """What a dataset's page begins with: what its experiment says, else its own contrast and foremost quantity."""
    entry = _declared("OPENS").get(trials.campaign, {})
    parts = {part: value for part, value in entry.items() if part in ("y", "x", "series")}
    fixed = tuple((factor, level) for factor, level in entry.items() if factor not in parts)
    return settled(View(source, fixed=fixed, **parts), trials)


def settled(view: View, trials: Trials) -> View:
    """The view with all that it leaves open, or that the dataset does not have, as the page would begin with it."""
    y = view.y if view.y in trials.quantities else next(iter(trials.quantities))
    factors, asked = trials.factors_of(y), dict(view.fixed)
    x, series = _axes(view, factors, trials.design)
    others = [name for name in factors if name not in (x, series) and len(factors[name]) > 1]
    fixed = {
        name: asked[name] if asked.get(name) in factors[name] else factors[name][0]
        for name in others
    }
    shown = tuple(level for level in factors[series] if level in view.shown)
    shown = shown or tuple(factors[series][:MOST_SERIES])
    network, reference = _pair(view, series, shown, trials.design)
    return replace(
        view, y=y, x=x, series=series, shown=shown, network=network, reference=reference,
        fixed=() if trials.repeats else tuple(fixed.items()),
        without_levels=tuple(level for level in factors[x] if level in view.without_levels),
        without_blocks=tuple(sorted(n for n in view.without_blocks if isinstance(n, int))),
    )  # fmt: skip


def _axes(view: View, factors: Mapping[str, list], design: Mapping) -> tuple[str, str]:
    """The factor along the horizontal axis, and the one whose levels are curves."""
    compared = design.get("compared", "interconnect" if "primary" in design else "")
    several = [name for name, levels in factors.items() if len(levels) > 1] or list(factors)
    x, series = view.x, view.series
    if x not in factors:
        free = [name for name in several if name not in (compared, series)]
        x = next((name for name in ALONG if name in free), (free or list(factors))[0])
    if series not in factors or series == x:
        wanted = [name for name in (compared, *APART, *several) if name in several]
        wanted += [name for name in ("interconnect", "path", *factors) if name in factors]
        series = next((name for name in wanted if name != x), x)
    return x, series


def _pair(view: View, series: str, shown: tuple, design: Mapping) -> tuple[Hashable, Hashable]:
    """The two series that are compared: the view's, else the design's contrast, else the first two."""
    if view.network != view.reference and {view.network, view.reference} <= set(shown):
        return view.network, view.reference
    planned = design.get("primary") or ()
    planned = planned[0]["networks"] if planned and isinstance(planned[0], Mapping) else planned
    if design.get("compared", "interconnect") == series and planned and set(planned) <= set(shown):
        return tuple(planned)
    control = design.get("control", design.get("baseline"))
    others = [level for level in shown if level != control]
    if control in shown and others:
        return others[0], control
    return (shown[0], shown[1]) if len(shown) > 1 else (None, None)


def address(view: View, start: View) -> list[tuple[str, str]]:
    """A view's part of the page's address: names and values of all in which it differs from the first one."""
    changed = {name: value for name, value in vars(view).items() if value != getattr(start, name)}
    return [(name, json.dumps(value, separators=(",", ":"))) for name, value in changed.items()]


def at_address(parts: Iterable[tuple[str, str]], start: View, trials: Trials) -> View:
    """The view of an address; what cannot be understood is as in the first view."""
    asked = {}
    for name, text in parts:
        with suppress(ValueError):
            value = _frozen(json.loads(text))
            if name in vars(start) and isinstance(value, tuple) == isinstance(
                vars(start)[name], tuple
            ):
                asked[name] = value
    with suppress(TypeError, ValueError):  # of the right kind, and yet no view
        return settled(replace(start, **asked), trials)
    return start


def _frozen(value):
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


@dataclass(frozen=True)
class Curve:
    """One series.

    `table` is over (block, the levels of x) in the quantity's unit, NaN where a trial is not valid or was left out.
    `summary` has a row for each level: `median`, `mean`, the 95 % t interval `low` and `high`, NaN from one value, and
    `n`. `fit` is the experiment's model, None where its curve may not be drawn, and `refused` says why not.
    """

    level: Hashable
    table: pd.DataFrame
    summary: pd.DataFrame
    fit: BlockFit | None
    refused: str


@dataclass(frozen=True)
class Judgement:
    """What the data say of the view's contrast: a `sentence` with n and the kind of interval, and what else to know.

    `word` is the verdict, empty where none is drawn.
    """

    sentence: str
    notes: tuple[str, ...] = ()
    word: str = ""

    @property
    def text(self) -> str:
        """All of it in a line."""
        return " ".join((self.sentence, *self.notes))


@dataclass(frozen=True)
class Shown:
    """A view with its trials, and all that the page shows of them."""

    view: View
    trials: Trials

    @property
    def quantity(self) -> data.Quantity:
        """What is on the vertical axis."""
        return self.trials.quantities[self.view.y]

    @cached_property
    def points(self) -> pd.DataFrame:
        """A row for each trial shown: its levels and value, `valid` by the design's rules, and `counts` here."""
        view, frame = self.view, self.trials.by_size.get(self.view.y, self.trials.frame)
        for name, level in view.fixed:
            frame = frame[frame[name] == level]
        frame = frame[frame[view.series].isin(view.shown)]
        if self.trials.repeats:
            frame = frame.assign(block=frame.groupby([view.series, view.x]).cumcount() + 1)
        factors = dict.fromkeys([view.series, view.x, *dict(view.fixed)])
        frame = frame[["trial_id", "block", "order", *factors, view.y, "valid", "reason"]]
        out = frame.block.isin(view.without_blocks) | frame[view.x].isin(view.without_levels)
        return frame.assign(counts=frame.valid & frame[view.y].notna() & ~out)

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        """A curve for each series shown."""
        counted = self.points[self.points.counts]
        table = counted.pivot_table(
            self.view.y, [self.view.series, "block"], self.view.x, sort=False
        )
        order = [x for x in self.trials.factors_of(self.view.y)[self.view.x] if x in table]
        table, blocks = table.reindex(columns=order), sorted(counted.block.unique())
        return tuple(
            self._curve(
                level, table[table.index.get_level_values(0) == level].droplevel(0).reindex(blocks)
            )
            for level in self.view.shown
        )

    def _curve(self, level: Hashable, table: pd.DataFrame) -> Curve:
        means = over_blocks(xr.DataArray(table, dims=("block", "x")), self.quantity.kind)
        summary = means.to_dataframe().rename(columns={"blocks": "n"}).set_index(table.columns)
        summary.insert(0, "median", table.median())
        fit, refused = (
            self._fit(table.dropna(axis="columns", how="all")) if self.model else (None, "")
        )
        return Curve(level, table, summary, fit, refused)

    @cached_property
    def model(self) -> str:
        """The model that the experiment names, which is of what its page opens with; an empty text for all else."""
        name = _declared("MODEL").get(self.trials.campaign, "")
        start = opening("", self.trials)
        return name if (start.y, start.x) == (self.view.y, self.view.x) else ""

    @property
    def fits_multiples(self) -> bool:
        """Whether the model is of x times the values: a law of a rate, where a share is shown."""
        return self.view.y in PERCENT and self.model in OF_RATES

    def _fit(self, table: pd.DataFrame) -> tuple[BlockFit | None, str]:
        if self.trials.repeats or table.empty:
            return None, "There are no blocks to fit a model to."
        x = table.columns.to_numpy(float)
        values = table.to_numpy(float) / self.quantity.scale * (x if self.fits_multiples else 1.0)
        return _fitted(self.model, tuple(x), tuple(map(tuple, values)))

    def band(self, curve: Curve, x: np.ndarray) -> tuple[np.ndarray, ...]:
        """The fit's mean and 95 % band over the blocks at x in the quantity's unit: (mean, low, high), each over x."""
        scale = self.quantity.scale / (x if self.fits_multiples else 1.0)
        return tuple(scale * part for part in curve.fit.band(x, "cost"))

    @cached_property
    def published(self) -> pd.DataFrame:
        """What the sources printed of what is shown: the levels, `value` in the quantity's unit, and `text`, where."""
        view, factors = self.view, self.trials.factors
        printed = _declared("PRINTED").get((self.trials.campaign, view.y))
        rows = printed(self.trials.design) if printed else pd.DataFrame({"value": [], "text": []})
        if not {view.x, view.series} <= set(rows):
            return rows.iloc[:0]
        here = rows[view.series].isin(view.shown)
        for name, level in view.fixed:
            here &= rows[name] == level if name in rows else True
        if isinstance(factors[view.x][0], str):
            here &= rows[view.x].isin(factors[view.x])
        return rows[here].assign(value=rows.value * self.quantity.scale)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """A row for each point: median, the mean of the quantity's kind, its 95 % t interval over the blocks and n."""
        parts = [curve.summary.assign(**{self.view.series: curve.level}) for curve in self.curves]
        return pd.concat(parts).rename_axis(self.view.x).reset_index()

    @cached_property
    def judgement(self) -> Judgement:
        """What the data say of the view's two series."""
        view, trials = self.view, self.trials
        if view.network is None:
            return Judgement("One series alone: there is nothing to compare it with.")
        if trials.repeats:
            return Judgement(
                "Order and blocks of imported runs are not known, so no verdict on a fall is drawn."
            )
        tables = {curve.level: curve.table.where(curve.table > 0) for curve in self.curves}
        log_ratio = np.log(tables[view.network] / tables[view.reference]).dropna(how="all", axis=1)
        names = " against ".join(
            trials.called(view.series, one) for one in (view.network, view.reference)
        )
        by_hand = [trials.count(len(view.without_blocks))] if view.without_blocks else []
        by_hand += [trials.called(view.x, level) for level in view.without_levels]
        notes = []
        if by_hand:
            out = ", ".join(by_hand)
            notes = [f"Left out by hand: {out}; this explores, and is not the campaign's verdict."]
        if log_ratio.empty:
            return Judgement(f"{names}: no trial is left to compare.", tuple(notes))
        if not self._judges_fall:
            rule = "A ratio of geometric means; the campaign judges no fall of this quantity."
            return Judgement(self._ratio(names, log_ratio), (rule, *notes))
        planned = _planned(trials, view)
        ends = (
            (planned.start, planned.end)
            if planned
            else (trials.design["baseline_nodes"], max(trials.factors["nodes"]))
        )
        missing = [trials.called("nodes", n) for n in ends if n not in log_ratio]
        if missing:
            rule = f"No verdict: the campaign judges from or to {' and '.join(missing)}, left out here."
            return Judgement(self._ratio(names, log_ratio), (rule, *notes))
        sentence, word = self._fall(names, log_ratio, planned, ends)
        return Judgement(sentence, tuple(notes), word)

    @property
    def _judges_fall(self) -> bool:
        """Whether the campaign was designed to judge a fall over nodes, and the view compares what it compared."""
        view, design = self.view, self.trials.design
        compares = view.series == design.get("compared", "interconnect")
        return "baseline_nodes" in design and compares and view.x == "nodes" and view.y in OF_FALLS

    def _fall(
        self, names: str, log_ratio: pd.DataFrame, planned: Contrast | None, ends: tuple[int, int]
    ) -> tuple[str, str]:
        """The campaign's own verdict; of fewer blocks the same judged anew, unless it was refused."""
        trials, start_end = self.trials, f"from {ends[0]:g} to {ends[1]:g} nodes"
        verdict = planned.verdict if planned else None
        if verdict is None or self.view.without_blocks:
            falls = (
                planned.differences.to_series()
                if planned
                else log_ratio[ends[1]] - log_ratio[ends[0]]
            )
            falls = falls[~falls.index.isin(self.view.without_blocks)]
            level = trials.design.get("one_sided", LEVEL)
            verdict = judge(falls, trials.design["margin"], trials.evidence, level)
            if planned and planned.verdict.answer == REFUSED:
                verdict = replace(verdict, answer=REFUSED, reason=planned.verdict.reason)
        if verdict.fall is None:
            return f"{names} is undecided {start_end}. {verdict.reason}", verdict.answer
        n = (
            "a model, without scatter"
            if trials.evidence == "simulated"
            else f"n = {trials.count(verdict.blocks)}"
        )
        if verdict.interval:
            n = f"{100 * verdict.confidence:g} % interval {percent_range(verdict.interval)}, {n}"
        basis = f"{n}, margin {percent(verdict.margin, 0)}, {trials.evidence} evidence"
        answer = (
            verdict.answer
            if verdict.answer.startswith(("falls", "rises"))
            else f"is {verdict.answer}"
        )
        fall = f"its fall {start_end} is {percent(verdict.fall)} ({basis})"
        return f"{names} {answer}: {fall}. {verdict.reason}", verdict.answer

    def _ratio(self, names: str, log_ratio: pd.DataFrame) -> str:
        """The ratio at the last level."""
        trials, level = self.trials, log_ratio.columns[-1]
        summary = ratios(xr.DataArray(log_ratio[level], dims="block"))
        ratio, low, high = (float(summary[part]) for part in ("ratio", "low", "high"))
        n, basis = trials.count(int(summary.blocks)), "no interval from"
        if np.isfinite(low):
            basis = f"95 % t interval {number(low)} to {number(high)}, n ="
        place = f"at {trials.called(self.view.x, level)}"
        basis = f"in {self.quantity.label} ({basis} {n}, {trials.evidence} evidence)"
        return f"{names} {place}: ratio {number(ratio)} {basis}."

    def code(self, title: str) -> str:
        """Python that shows the view again, without the page."""
        fields = "".join(f"    {name}={value!r},\n" for name, value in vars(self.view).items())
        return CODE.format(
            title=title.replace("\\", " ").replace('"', "'"), view=f"View(\n{fields})"
        )


def first_of(source: data.Source) -> Shown:
    """What a dataset's page begins with; raises FalloffError when it cannot be read."""
    trials = data.opened(source)
    return Shown(opening(source.name, trials), trials)


def again(view: View) -> Shown:
    """A view from its source's name alone; raises FalloffError when that is gone or cannot be read."""
    return Shown(view, data.opened(data.named(view.source)))


@lru_cache(maxsize=512)
def _fitted(
    model: str, x: tuple[float, ...], values: tuple[tuple[float, ...], ...]
) -> tuple[BlockFit | None, str]:
    """A model fitted to each block, or None, and why it may not be drawn."""
    try:
        fit = fit_blocks(models.find(model), np.array(x), np.array(values))
    except FalloffError as refusal:
        return None, str(refusal)
    except ValueError:
        return None, "There are too few points for this model."
    if follows(np.array(values), fit.band(np.array(x), "cost")[0], len(fit.model.parameters)):
        return fit, ""
    return None, "It misses the points, so that it is not drawn."


def _planned(trials: Trials, view: View) -> Contrast | None:
    """The campaign's first statement on the view's two networks."""
    statements = _statements(trials) if view.series == "interconnect" else ()
    pair = view.network, view.reference
    return next((one for one in statements if (one.network, one.reference) == pair), None)


@lru_cache(maxsize=8)  # of the datasets that are open
def _statements(trials: Trials) -> tuple[Contrast, ...]:
    try:
        return contrasts(points(trials.dataset))
    except FalloffError:  # a network that it compares was not run
        return ()
