"""The published figures of TOP500's lists: efficiencies by family, and the families' shares over the lists."""

import numpy as np
import pandas as pd
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.studies.top500 import Aggregate, OneList, Top500, table
from analysis.top500.families import families

GOLDEN = 0.618  # of the way round: places of neighbouring ranks that never fall together
SPREAD = 0.7  # of a row's height, for its points
LINES = 7  # families with a line of their own; the rest is one more


def draw(study: Top500) -> dict[str, Figure]:
    """The figures by name: list_efficiency, and with two lists or more list_share."""
    drawn = {"list_efficiency": efficiency_by_family(study) if study.lists else printed_efficiencies(study)}
    return drawn | {"list_share": share_over_lists(study)} if len(study.lists) > 1 else drawn


def printed_efficiencies(study: Top500) -> Figure:
    """The efficiencies [%] that the sources print, a row each."""
    with style.styled():
        figure, axes = drawing.new_figure(2.2)
        printed = _efficiencies(study.aggregates)
        for row, it in enumerate(printed):
            _cross(axes, 100 * it.printed, row)
        names = [it.what.replace("efficiency of the ", "").removesuffix(" efficiency") for it in printed]
        drawing.rows(axes, names)
        axes.set_title("; ".join(dict.fromkeys(f"{it.family}, {it.month}" for it in printed)), loc="left")
        axes.set(xlabel="efficiency, Rmax / Rpeak [%]", xlim=(0, 100))
        drawing.legend_below(figure, axes, 1)
        return figure


def efficiency_by_family(study: Top500) -> Figure:
    """The efficiency [%] of every system, a row for each family and a panel for each list shown, with medians."""
    with style.styled():
        rows = [len(it.families) for it in study.shown]
        figure = Figure(figsize=(style.WIDTH, 1.0 + sum(0.7 + 0.3 * count for count in rows)))
        panels = figure.subplots(len(rows), 1, squeeze=False, sharex=True, height_ratios=[1 + it for it in rows])
        systems = table(study.dataset)
        for axes, shown in zip(panels[:, 0], study.shown):
            _strips(axes, shown, systems[(systems.list == shown.month) & systems.efficiency.notna()])
            printed = [it for it in _efficiencies(study.aggregates) if it.month == shown.month]
            places = {families().titles[it.family]: row for row, it in enumerate(shown.families)}
            for it in printed:
                if it.family in places:
                    _cross(axes, 100 * it.printed, places[it.family])
            axes.set_title(f"{shown.month}, n = {shown.usable} systems", loc="left")
        panels[-1, 0].set(xlabel="efficiency, Rmax / Rpeak [%]", xlim=(0, None))
        drawing.legend_below(figure, panels[:, 0], 3)
        return figure


def share_over_lists(study: Top500) -> Figure:
    """The share of systems [%] of the largest families in every list; a cross is what a source prints."""
    with style.styled():
        figure, axes = drawing.new_figure(3.6)
        shares = _shares(study.lists)
        years = [_year(month) for month in shares.index]
        for name in shares:
            look, title = style.look(name), families().titles[name]
            label = "all others" if name == "other" else title
            axes.plot(years, shares[name], look.marker, linestyle=look.line, color=look.color, label=label)
        for it in study.aggregates:
            if "share" in it.what:
                _cross(axes, _year(it.month), 100 * it.printed)
        axes.set(xlabel="list", ylabel="share of systems [%]", ylim=(0, None))
        axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
        drawing.legend_below(figure, axes, 3)
        return figure


def _strips(axes: Axes, shown: OneList, systems: pd.DataFrame) -> None:
    for row, it in enumerate(shown.families):
        own = systems[systems.family == it.family].sort_values("rank")
        look = style.look(it.family)
        places = row + SPREAD * ((GOLDEN * np.arange(len(own)) + 0.5) % 1 - 0.5)  # the first in the middle
        axes.plot(100 * own.efficiency, places, look.marker, color=look.color, alpha=0.45, markersize=3, mew=0.5)
        if len(own):
            middle = 100 * own.efficiency.median()
            axes.plot(middle, row, "|", color=style.INK, markersize=14, mew=1.6, label="median")
    names = [f"{families().titles[it.family]} ({it.systems})" for it in shown.families]
    drawing.rows(axes, names)


def _cross(axes: Axes, x: float, y: float) -> None:
    """A number that a source prints."""
    look = {"color": style.INK, "markersize": 7, "zorder": 4}
    axes.plot(x, y, style.PUBLISHED_MARKERS["gige"], **look, label="printed by a source")


def _efficiencies(aggregates: tuple[Aggregate, ...]) -> list[Aggregate]:
    return [it for it in aggregates if "efficiency" in it.what and it.unit == "%"]


def _shares(lists: tuple[OneList, ...]) -> pd.DataFrame:
    """Shares [%] over (month, family), 0 where a list has none of it; what has no line of its own is `other`."""
    found = {it.month: {own.family: 100 * own.shares["share of systems"] for own in it.families} for it in lists}
    shares = pd.DataFrame(found).T.fillna(0.0)
    ranked = shares.drop(columns="other", errors="ignore").max().sort_values(ascending=False, kind="stable").index
    named = shares[ranked[:LINES]]
    rest = 100 - named.sum(axis="columns")
    return named.assign(other=rest) if rest.max() > 1e-9 else named


def _year(month: str) -> float:
    year, number = map(int, month.split("-"))
    return year + (number - 1) / 12
