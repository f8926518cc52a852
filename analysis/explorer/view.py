"""The current view as a frozen description, and everything derived from it: points, means and the
judgement."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from pydantic import TypeAdapter

from analysis import paths
from analysis.dataset.contrasts import (
    Contrast,
    block_sessions,
    contrasts,
    in_sessions,
    sessions_of,
)
from analysis.dataset.derive import points
from analysis.dataset.store import BLOCKS, UNORDERED
from analysis.explorer import data
from analysis.explorer.data import Trials
from analysis.laws.scaling_laws import SETTINGS, Law, fit_each, with_settings
from analysis.quoting import as_written
from analysis.statements.statement import basis_in_words, change, fall_in_words, order_and_margin
from analysis.statistics.design import PlannedFall
from analysis.statistics.intervals import over_blocks, ratios
from analysis.statistics.judgement import REFUSED, Judgement, judge
from analysis.subjects import hpl_points
from analysis.wording import listed, number
from runners.records.record import FalloffError

# The first view of a campaign where the design's own contrast, or the tool's first reading, is not
# the best one.
FIRST: dict[str, dict[str, Any]] = {
    "congestion": {"y": "p99_loaded"},
    "frame_size_limit": {"y": "frame_bytes_largest"},
    "frame_size_rate": {"y": "packets_received_per_s"},
    "halo_exchange": {"x": "bytes", "series": "rendezvous", "fixed": (("exchange", "halo"),)},
    "halo_exchange_simulated": {"x": "bytes", "series": "exchange"},
    "hpl_messages": {"y": "payload_messages", "x": "size", "series": "nodes"},
    "hpl_paper_sensitivity": {"x": "vary", "fixed": (("nodes", 36),)},
    "incast_dilation": {"x": "senders", "series": "dilation", "fixed": (("rto_min_s", 0.2),)},
    "mtu_cpu": {"y": "cpu_time"},
    "token_exchange": {"fixed": (("token_bytes", 8192),)},
    "oversubscription": {"x": "pattern", "fixed": (("nodes", 960), ("placement", "shuffled"))},
}
MOST_SERIES = 9  # series shown at first if a factor has more levels
# Quantities that follow a law over nodes, and their unit.
OF_LAWS, PER_CENT = ("efficiency", "share"), 100
# Quantities whose ratio within a block equals that of the rates.
OF_FALLS = ("efficiency", "share", "hpl_rate")
CODE = '''"""Made by `falloff explore`. In Falloff's environment and folder: python view.py

It prints what the page said, and writes the trials, the summary and the figure that it showed.
"""

from analysis.explorer.plot import draw, save
from analysis.explorer.view import View, again

view = View(
{fields})

shown = again(view)
print(shown.judgement.sentence, *shown.judgement.notes)
shown.points.to_csv("view-trials.csv", index=False)
shown.summary.to_csv("view-summary.csv", index=False)
save(draw(shown), "view.html")
'''


@dataclass(frozen=True)
class View:
    """The view of the page.

    `source` is the dataset's name, `y` a quantity, `x` the factor along the horizontal axis and
    `series` the factor whose levels are curves; `shown` are the curves shown. Every other factor is
    `fixed` at one level, except for imported runs, which have no design. `without_blocks` and
    `without_levels` (of x) are left out by hand. With `log` the vertical axis is logarithmic. With
    `laws` an efficiency over nodes has the curve of the law that it follows.
    """

    source: str
    y: str = ""
    x: str = ""
    series: str = ""
    shown: tuple[Any, ...] = ()
    fixed: tuple[tuple[str, Any], ...] = ()
    without_blocks: tuple[int, ...] = ()
    without_levels: tuple[Any, ...] = ()
    log: bool = False
    laws: bool = True


def opening(source: str, trials: Trials) -> View:
    """The first view of a dataset: that of its campaign in FIRST, else its own contrast and main
    quantity."""
    entry = FIRST.get(trials.dataset.attrs["campaign"], {})
    return settled(View(source, **entry), trials)


def settled(view: View, trials: Trials) -> View:
    """The view, with everything that is missing or that the dataset lacks filled in from the first
    view."""
    y = view.y if view.y in trials.quantities else next(iter(trials.quantities))
    factors, asked = trials.factors_of(y), dict(view.fixed)
    x, series = _axes(view, factors, trials)
    fixed = {
        name: asked[name] if asked.get(name) in levels else levels[0]
        for name, levels in factors.items()
        if name not in (x, series) and len(levels) > 1 and not trials.repeats
    }
    shown = tuple(level for level in factors[series] if level in view.shown)
    return replace(
        view,
        y=y,
        x=x,
        series=series,
        shown=shown or tuple(factors[series][:MOST_SERIES]),
        fixed=tuple(fixed.items()),
        without_levels=tuple(level for level in factors[x] if level in view.without_levels),
        without_blocks=tuple(sorted(view.without_blocks)),
    )


def _axes(view: View, factors: Mapping[str, list], trials: Trials) -> tuple[str, str]:
    """The factor along the horizontal axis, numbers first, and the factor whose levels are curves,
    the compared one first."""
    taken = [name for name in factors if len(factors[name]) == 1 or name in dict(view.fixed)]
    compared = trials.design.compared
    x, series = view.x, view.series
    if x not in factors:
        x = min(
            factors,
            key=lambda name: (
                name in taken,
                name in (compared, series),
                not trials.is_number(name),
                name != "nodes",
            ),
        )
    if series not in factors or series == x:
        series = min(factors, key=lambda name: (name == x, name in taken, name != compared))
    return x, series


def address(view: View, start: View) -> list[tuple[str, str]]:
    """A view's part of the page's address: names and values of everything that differs from the
    first view."""
    changed = {name: value for name, value in vars(view).items() if value != getattr(start, name)}
    return [(name, json.dumps(value, separators=(",", ":"))) for name, value in changed.items()]


def at_address(parts: Iterable[tuple[str, str]], start: View, trials: Trials) -> View:
    """The view of an address; what cannot be understood is taken from the first view."""
    view, of_view = start, TypeAdapter(View)
    for name, text in parts:
        with suppress(ValueError):
            view = of_view.validate_python({**vars(view), name: json.loads(text)})
    return settled(view, trials)


@dataclass(frozen=True)
class Finding:
    """The result on the view's contrast, with n, the kind of interval and further notes.

    `word` is the verdict, empty if there is none.
    """

    sentence: str
    notes: tuple[str, ...] = ()
    word: str = ""


@dataclass(frozen=True)
class PageContent:
    """A view with its trials, and everything that the page shows of them."""

    view: View
    trials: Trials

    @property
    def quantity(self) -> data.PlottedQuantity:
        """The quantity on the vertical axis."""
        return self.trials.quantities[self.view.y]

    @cached_property
    def points(self) -> pd.DataFrame:
        """A row for each trial shown: its levels and value, `valid` by the design's rules, and
        `counts` in this view."""
        view, frame = self.view, self.trials.by_size.get(self.view.y, self.trials.frame)
        for name, level in view.fixed:
            frame = frame[frame[name] == level]
        frame = frame[frame[view.series].isin(view.shown) & frame[view.x].notna()]
        if self.trials.repeats:
            place = [view.series, view.x]
            is_block = self.trials.design.repeats == BLOCKS
            if not is_block or frame.duplicated([*place, "block"]).any():
                frame = frame.assign(block=frame.groupby(place).cumcount() + 1)
        factors = dict.fromkeys([view.series, view.x, *dict(view.fixed)])
        frame = frame[["trial_id", "block", "order", *factors, view.y, "valid", "reason"]]
        out = frame.block.isin(view.without_blocks) | frame[view.x].isin(view.without_levels)
        return frame.assign(counts=frame.valid & frame[view.y].notna() & ~out)

    @cached_property
    def values(self) -> xr.DataArray:
        """The values that count, in the quantity's unit, over (series, block, x); NaN where there
        are none."""
        view, rows = self.view, self.points[self.points.counts]
        index = {"series": rows[view.series], "block": rows.block, "x": rows[view.x]}
        values = pd.Series(rows[view.y].values, pd.MultiIndex.from_frame(pd.DataFrame(index)))
        if values.index.has_duplicates:
            remedy = "`falloff evidence verify` shows what was changed"
            raise FalloffError(f"two trials of a block are of the same point: {remedy}")
        values = values.to_xarray()
        levels = [x for x in self.trials.factors_of(view.y)[view.x] if x in values.x]
        return values.reindex(series=list(view.shown), x=levels)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """A row for each series and x: the mean of the quantity's kind, its 95 % t interval (low,
        high), and n.
        """
        means = over_blocks(self.values, self.quantity.kind).rename(blocks="n")
        columns = ["series", "x", "mean", "low", "high", "n"]
        return means.to_dataframe(dim_order=["series", "x"]).reset_index()[columns]

    @property
    def has_laws(self) -> bool:
        """Whether the view may follow a law: it is an efficiency over nodes."""
        return self.view.x == "nodes" and self.view.y in OF_LAWS

    @cached_property
    def laws(self) -> dict[Any, Law]:
        """For each series the law that its means follow best. Series that follow none are left out;
        all are if laws are not shown."""
        if not (self.view.laws and self.has_laws):
            return {}
        means = self.summary.set_index(["series", "x"])["mean"].to_xarray()
        efficiency = means.rename(x="nodes").expand_dims("block") / PER_CENT
        if self.trials.repeats:  # as in their report; these have no design with HPL's settings
            efficiency = self.values.rename(x="nodes") / PER_CENT
        else:
            # The law of HPL's messages is left out without HPL's settings.
            with suppress(FalloffError):
                shares = with_settings(points(self.trials.dataset)).reindex(nodes=efficiency.nodes)
                settings = {name: ("nodes", shares[name].values) for name in SETTINGS}
                efficiency = efficiency.assign_coords(settings)
        laws = fit_each(efficiency, "series")
        best = {level: laws.best(level) for level in self.view.shown if level in laws.by_level}
        return {level: law for level, law in best.items() if law}

    @cached_property
    def curves(self) -> pd.DataFrame:
        """A row for each series and x of a law's curve: `series`, `x` and `y`, in the quantity's
        unit.
        """
        curves = {level: PER_CENT * law.band()["mean"] for level, law in self.laws.items()}
        tables = [
            pd.DataFrame({"series": level, "x": curve.nodes, "y": curve})
            for level, curve in curves.items()
        ]
        return pd.concat(tables or [pd.DataFrame(columns=["series", "x", "y"])])

    @property
    def statement(self) -> PlannedFall | None:
        """The campaign's statement on two of the series shown, primary ones first; None if there is
        none."""
        design, shown = self.trials.design, {*self.view.shown}
        if design.compared != self.view.series:
            return None
        planned = (*design.primary, *design.secondary)
        return next((fall for fall in planned if {fall.of, fall.against} <= shown), None)

    @property
    def pair(self) -> tuple[Any, ...]:
        """The two compared series: those of the statement, else one and the control, else the first
        two."""
        if self.statement:
            return self.statement.of, self.statement.against
        shown = list(self.view.shown)
        if self.trials.control in shown:
            shown.remove(self.trials.control)
            shown.insert(1, self.trials.control)
        return tuple(shown[:2])

    @cached_property
    def judgement(self) -> Finding:
        """The result on the two compared series: a fall if the campaign judges one, else a
        ratio."""
        view, trials, statement = self.view, self.trials, self.statement
        if trials.repeats:
            return self._of_imported()
        if len(self.pair) < 2:
            return Finding("One series alone: there is nothing to compare it with.")
        of, against = (trials.called(view.series, level) for level in self.pair)
        notes, names = self._left_out(), f"{of} against {against}"
        values = self.values.where(self.values > 0).sel(series=list(self.pair))
        log_ratio: Any = (values[0] / values[1]).dropna("x", how="all").pipe(np.log)
        if not log_ratio.size:
            return Finding(f"{names}: no trial is left to compare.", notes)
        judged = trials.design.judges_falls and view.x == "nodes" and view.y in OF_FALLS
        if not (statement and judged):
            rule = "A ratio of geometric means; the campaign judges no fall of this quantity."
            return self._ratio(names, log_ratio, rule)
        ends = (statement.start, statement.end)
        if missing := [trials.called("nodes", n) for n in ends if n not in log_ratio.x]:
            left_out = " and ".join(missing)
            rule = f"No verdict: the campaign judges from or to {left_out}, left out here."
            return self._ratio(names, log_ratio, rule)
        verdict = self._verdict(statement, log_ratio)
        span = f"from {ends[0]:g} to {ends[1]:g} nodes"
        sentence = fall_in_words(verdict, of, against, span)
        if not verdict.decided:
            what = "" if verdict.fall is None else f"HPL {change(verdict.fall)}, "
            sentence += f" ({what}{basis_in_words(verdict)})"
        return Finding(sentence.replace("**", ""), notes, verdict.answer)

    def _of_imported(self) -> Finding:
        """The falls of imported runs over nodes, with what they rest on."""
        view, trials = self.view, self.trials
        if (view.x, view.series) != ("nodes", "interconnect") or view.y not in OF_FALLS:
            return Finding("Only falls of HPL's efficiency over nodes are judged of imported runs.")
        ran = trials.frame[trials.frame.trial_id.isin(self.points.trial_id[self.points.counts])]
        levels = ran.groupby([view.series, view.x])[[*trials.factors]].nunique().max()
        if apart := levels.index[levels > 1].tolist():
            why = (
                f"Runs of one point differ in {listed(apart)}: they are no repeats. See the report."
            )
            return Finding(why, self._left_out())
        repeats = trials.design.repeats or UNORDERED
        per_node = self.values if view.y in OF_LAWS else self.values / self.values.x
        per_node = per_node.rename(series="interconnect", x="nodes")
        per_node = per_node.assign_coords(evidence=trials.evidence)
        about = {**trials.dataset.attrs, "repeats": repeats}
        falls = hpl_points.falls(per_node.to_dataset(name="share").assign_attrs(about))
        alone = [fall for fall in falls if " against " not in fall.subject]
        if not alone:
            return Finding("One number of nodes, or no known network: there is no fall to judge.")
        notes = order_and_margin(repeats == UNORDERED, hpl_points.MARGIN)
        sentence = " ".join(as_written(str(fall)).replace("**", "") for fall in alone)
        words = {fall.words for fall in alone}
        return Finding(
            sentence, (*notes, *self._left_out()), words.pop() if len(words) == 1 else ""
        )

    def _left_out(self) -> tuple[str, ...]:
        """What was left out by hand, in words; empty if nothing was."""
        view, trials = self.view, self.trials
        out = [trials.count(len(view.without_blocks))] if view.without_blocks else []
        out += [trials.called(view.x, level) for level in view.without_levels]
        rule = "this explores, and is not the campaign's verdict"
        return (f"Left out by hand: {', '.join(out)}; {rule}.",) if out else ()

    def _verdict(self, statement: PlannedFall, log_ratio: xr.DataArray) -> Judgement:
        """The campaign's own verdict, or the judgement of the remaining blocks. What the campaign
        refuses stays refused."""
        design, without = self.trials.design, list(self.view.without_blocks)
        planned = _contrasts(self.trials).get(statement)
        if planned and not without:
            return planned.verdict
        falls = log_ratio.sel(x=statement.end) - log_ratio.sel(x=statement.start)
        falls = planned.differences if planned else falls
        falls = falls[~falls.block.isin(without)]
        evidence, left = self.trials.evidence, falls.dropna("block").block.values.tolist()
        sessions = block_sessions(falls)
        verdict = in_sessions(
            judge(falls, design.margin or 0.0, evidence, design.one_sided, sessions),
            sessions_of(self.trials.dataset, evidence, left),
        )
        if planned and planned.verdict.answer == REFUSED:
            return replace(verdict, answer=REFUSED, reason=planned.verdict.reason)
        return verdict

    def _ratio(self, names: str, log_ratio: xr.DataArray, rule: str) -> Finding:
        """The ratio at the last level, and why there is no verdict."""
        level, summary = log_ratio.x.values.tolist()[-1], ratios(log_ratio[:, -1])
        ratio, low, high = (float(summary[part]) for part in ("ratio", "low", "high"))
        basis = "no interval from"
        if np.isfinite(low):
            basis = f"95 % t interval {number(low)} to {number(high)}, n ="
        basis = f"{basis} {self.trials.count(int(summary.blocks))}, {self.trials.evidence} evidence"
        place = f"at {self.trials.called(self.view.x, level)}"
        sentence = f"{names} {place}: ratio {number(ratio)} in {self.quantity.label} ({basis})."
        return Finding(sentence, (rule, *self._left_out()))

    @property
    def code(self) -> str:
        """Python code that shows the same view without the page."""
        return CODE.format(
            fields="".join(f"    {name}={value!r},\n" for name, value in vars(self.view).items())
        )


def first_of(source: data.Source) -> PageContent:
    """The first view of a dataset; raises FalloffError if it cannot be read."""
    trials = data.opened(source)
    return PageContent(opening(source.name, trials), trials)


def again(view: View) -> PageContent:
    """A view from its source's name alone; raises FalloffError if that is gone or cannot be
    read."""
    return PageContent(view, data.opened(data.source(paths.ROOT / view.source)))


@lru_cache(maxsize=8)  # one for each open dataset
def _contrasts(trials: Trials) -> dict[PlannedFall, Contrast]:
    """The campaign's judgements of networks, by statement."""
    with suppress(FalloffError):  # no networks are compared, or one of them was not run
        return {judged.statement: judged for judged in contrasts(points(trials.dataset))}
    return {}
