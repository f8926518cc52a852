"""TOP500's lists: shares and efficiencies of interconnect families, and what the sources print of them.

A list is a census of its systems, not a sample: there is no interval and no test.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, paths, published, style
from analysis.exhibit import Basis, Exhibit, Table
from analysis.top500_lists import Lists, families
from analysis.wording import UNKNOWN, counted, fixed, percent, plain

FIGURES = {"list_efficiency": ("published/top500.toml",)}
UNITS = {"%": 0.01, "1": 1.0}
BASIS = Basis("published")
FOLDER = paths.TOP500.relative_to(paths.ROOT)
NAMED = 3  # numbers that a sentence may list
GOLDEN = 0.618  # of the way round: places of neighbouring ranks that never fall together
SPREAD = 0.7  # of a row's height, for its points
# Those who may "consistently exceed" an efficiency, and the columns that tell one from another.
OWNERS = {
    "vendors": ["manufacturer"],
    "sites": ["site"],
    "pairs of vendor and site": ["manufacturer", "site"],
}

Readings = Mapping[
    str, float
]  # what a number of a set of systems may mean, by the sense of its words


@dataclass(frozen=True)
class FamilyOfList:
    """The systems of one family in one list, `shares` [1] of the list, and their efficiencies [1] as far as there are any.

    The efficiencies are in the order of the ranks.
    """

    family: str
    systems: int
    shares: Readings
    efficiency: pd.Series

    @property
    def title(self) -> str:
        """The family in words."""
        return families()[self.family]


@dataclass(frozen=True)
class OneList:
    """The families of the list of a month, the largest first."""

    month: str
    families: tuple[FamilyOfList, ...]


@dataclass(frozen=True)
class Aggregate:
    """A number that a source prints of a list, and every reading of it from the list itself ({} without that).

    All numbers are in base units; `unit` is the one that it is printed in, `agreeing` names the readings that are the
    printed number to its last digit, of which `rounding` is the unit.
    """

    id: str
    what: str
    month: str
    family: str
    unit: str
    printed: float
    rounding: float
    source: str
    readings: Readings
    agreeing: tuple[str, ...]

    @property
    def nearest(self) -> str | None:
        """The reading that is nearest to the printed number; None without the list."""
        finite = {name: value for name, value in self.readings.items() if math.isfinite(value)}
        return min(finite, key=lambda name: abs(finite[name] - self.printed), default=None)

    def text(self, value: float) -> str:
        """A number of this kind with as many digits as the printed one."""
        decimals = max(0, round(-math.log10(self.rounding / UNITS[self.unit])))
        return percent(value, decimals) if self.unit == "%" else fixed(value, decimals)


@dataclass(frozen=True)
class Top500:
    """All lists that are there, in the order of time, and what the sources print; `notes` say what was left out."""

    lists: tuple[OneList, ...]
    aggregates: tuple[Aggregate, ...]
    notes: tuple[str, ...]

    @property
    def shown(self) -> tuple[OneList, ...]:
        """The lists of which the sources speak, else the last one."""
        spoken_of = {printed.month for printed in self.aggregates}
        return tuple(one for one in self.lists if one.month in spoken_of) or self.lists[-1:]

    @property
    def missing(self) -> list[str]:
        """The months of the lists of which the sources speak and that are not there."""
        present = {one.month for one in self.lists}
        return sorted({printed.month for printed in self.aggregates} - present)


def analyse(lists: Lists) -> Top500:
    """Analyse what `top500_lists.read_folder` gave, be it of no list at all."""
    printed = published.top500()["aggregate"]
    return Top500(
        lists=tuple(_one(month, systems) for month, systems in lists.systems.groupby("list")),
        aggregates=tuple(_aggregate(one, lists.systems) for one in printed),
        notes=lists.notes,
    )


def _one(month: str, systems: pd.DataFrame) -> OneList:
    by_family = [
        FamilyOfList(name, len(own), shares(own, systems), own.efficiency.dropna())
        for name, own in systems.sort_values("rank").groupby("family")
    ]
    return OneList(month, tuple(sorted(by_family, key=lambda one: -one.systems)))


def _aggregate(printed: Mapping, systems: pd.DataFrame) -> Aggregate:
    scale, title = UNITS[printed["unit"]], families()[printed["family"]]
    value, rounding = scale * printed["value"], scale * printed["rounding"]
    everything = systems[systems.list == printed["list"]]
    spoken_of = everything[everything.family == printed["family"]]
    if generation := printed.get("generation"):
        title, spoken_of = f"{generation} {title}", spoken_of[spoken_of.generation == generation]
    readings = _readings(printed, spoken_of, everything) if len(spoken_of) else {}
    return Aggregate(
        id=printed["id"],
        what=printed["what"],
        month=printed["list"],
        family=title,
        unit=printed["unit"],
        printed=value,
        rounding=rounding,
        source=printed["source"],
        readings=readings,
        agreeing=agreeing(readings, value, rounding),
    )


def _readings(printed: Mapping, systems: pd.DataFrame, everything: pd.DataFrame) -> Readings:
    """Every reading of a printed number of some systems, whether or not all of their rates are usable."""
    usable = systems.dropna(subset="efficiency")

    def by_rank(chosen: pd.DataFrame, column: str) -> Readings:
        return {f"rank {rank}": float(v) for rank, v in zip(chosen["rank"], chosen[column])}

    match printed["id"]:
        case "gige_best_ranked":
            return by_rank(usable[usable["rank"] == usable["rank"].min()], "efficiency")
        case "gige_best_rank":
            return by_rank(systems[systems["rank"] == systems["rank"].min()], "rank")
        case "gige_average":
            return averages(usable)
        case "gige_highest":
            return by_rank(usable[usable.efficiency == usable.efficiency.max()], "efficiency")
        case "gige_lowest":
            return by_rank(usable[usable.efficiency == usable.efficiency.min()], "efficiency")
        case "gige_lowest_cores":
            return by_rank(usable[usable.efficiency == usable.efficiency.min()], "cores")
        case "gige_share":
            return shares(systems, everything)
        case "ddr_above_threshold":
            threshold = printed["threshold"]
            return consistent(usable, UNITS[threshold["unit"]] * threshold["value"])
    raise KeyError(printed["id"])


def averages(systems: pd.DataFrame) -> Readings:
    """The average efficiency [1] of systems with rmax, rpeak and efficiency known, in each sense; none of no system."""
    if systems.empty:
        return {}
    efficiency, rmax, cores = systems.efficiency, systems.rmax, systems.cores
    by_cores = (efficiency * cores).sum() / cores.sum() if cores.notna().all() else math.nan
    return {
        "mean of the ratios": efficiency.mean(),
        "ratio of the sums": rmax.sum() / systems.rpeak.sum(),
        "median": efficiency.median(),
        "geometric mean": math.exp(np.log(efficiency).mean()),
        "harmonic mean": 1 / (1 / efficiency).mean(),
        "mean weighted by Rmax": (efficiency * rmax).sum() / rmax.sum(),
        "mean weighted by cores": by_cores,
    }


def shares(systems: pd.DataFrame, everything: pd.DataFrame) -> Readings:
    """What part [1] of a list is of some of its systems: of their number, of Rmax and of Rpeak."""
    return {
        "share of systems": len(systems) / len(everything),
        "share of Rmax": systems.rmax.sum() / everything.rmax.sum(),
        "share of Rpeak": systems.rpeak.sum() / everything.rpeak.sum(),
    }


def consistent(systems: pd.DataFrame, threshold: float) -> Readings:
    """How many vendors, sites, or pairs of them have no system at or below an efficiency [1].

    All of them, and those with several systems, since one system is not consistent in much.
    """
    readings = {}
    for name, columns in OWNERS.items():
        owners = systems.groupby(columns).efficiency.agg(["size", "min"])
        above = owners[owners["min"] > threshold]
        readings[name] = float(len(above))
        readings[f"{name} with several systems"] = float((above["size"] > 1).sum())
    return readings


def agreeing(readings: Readings, printed: float, rounding: float) -> tuple[str, ...]:
    """The readings that are the printed number to its last digit, of which `rounding` is the unit."""
    slack = 0.5 * rounding * (1 + 1e-9)  # half a unit is in floating point at times a hair more
    return tuple(name for name, value in readings.items() if abs(value - printed) <= slack)


def finding(study: Top500) -> str:
    """Whether the lists give what the sources print, and how efficient the families are, in plain English (Markdown)."""
    months = " and ".join(map(month_name, study.missing))
    are = f"lists of {months} are" if len(study.missing) > 1 else f"list of {months} is"
    checked = [printed for printed in study.aggregates if printed.readings]
    by_id = {one.id: one for one in study.aggregates}
    average, lowest, highest = (by_id[f"gige_{name}"] for name in ("average", "lowest", "highest"))
    if not checked:
        return (
            f"**What the sources print of TOP500 cannot be checked here**: the {are} not in `{FOLDER}`. A blog prints that "
            f"Gigabit Ethernet's systems of {month_name(average.month)} reach {average.text(average.printed)} of their peak on "
            f"average, from {lowest.text(lowest.printed)} to {highest.text(highest.printed)} [@bonding]. The lists are not "
            f"shipped; `{FOLDER}/README.md` says where they come from."
        )
    others = [f"{one.what} ({one.family})" for one in checked if not one.agreeing]
    words = [
        f"**TOP500's lists give {len(checked) - len(others)} of {counted(len(checked), 'number')} that the sources print, to the "
        "last digit** (published evidence, no sample and no test)."
    ]
    if len(others) > NAMED:
        words.append(f"The table shows the other {len(others)}.")
    elif others:
        words.append(f"They do not give: {'; '.join(others)}.")
    if average.agreeing:
        words.append(f"The printed average is the {' or the '.join(average.agreeing)}.")
    if study.missing:
        words.append(f"Not all can be checked: the {are} not in `{FOLDER}`.")
    for one in study.shown:
        medians = [
            f"{percent(own.efficiency.median())} on {own.title} ({counted(len(own.efficiency), 'system')})"
            for own in one.families
            if own.family in ("gige", "infiniband") and len(own.efficiency)
        ]
        if medians:
            words.append(
                f"In {month_name(one.month)} the median efficiency is {' and '.join(medians)}."
            )
    return "\n\n".join(filter(None, (" ".join(words), plain(" ".join(study.notes)))))


def figures(study: Top500) -> dict[str, Exhibit]:
    """Efficiencies by family; none without lists."""
    if not study.lists:
        return {}
    return {
        "efficiency": Exhibit(
            "list_efficiency",
            efficiency_by_family(study),
            "Efficiency of every system by the family of its interconnect, in parentheses the number of systems",
            BASIS,
            "Efficiency of every system, a row for each family of interconnects, a panel for each list",
            "Ticks are medians; crosses, below their row, are what the sources print.",
            rests_on=FIGURES["list_efficiency"],
        )
    }


def efficiency_by_family(study: Top500) -> Figure:
    """The efficiency [%] of every system, a row for each family and a panel for each list shown, with medians."""
    rows = [len(one.families) for one in study.shown]
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 1.0 + sum(0.7 + 0.3 * count for count in rows)))
        heights = [1 + count for count in rows]
        grid = figure.subplots(len(rows), 1, squeeze=False, sharex=True, height_ratios=heights)
        panels = grid[:, 0]
        for axes, one in zip(panels, study.shown):
            for row, own in enumerate(one.families):
                _strip(axes, row, own)
                for printed in study.aggregates:
                    is_efficiency = printed.unit == "%" and "efficiency" in printed.what
                    if is_efficiency and (printed.month, printed.family) == (one.month, own.title):
                        look = {"color": style.INK, "markersize": 7, "zorder": 4}
                        marker, label = style.PUBLISHED_MARKERS["gige"], "printed by a source"
                        # Below its row it hides no system.
                        axes.plot(100 * printed.printed, row + 0.5, marker, **look, label=label)
            drawing.rows(axes, [f"{own.title} ({own.systems})" for own in one.families])
            usable = sum(len(own.efficiency) for own in one.families)
            axes.set_title(f"{month_name(one.month)}, n = {usable} systems", loc="left")
        panels[-1].set(xlabel="efficiency, Rmax / Rpeak [%]", xlim=(0, None))
        drawing.legend_below(figure, panels, 3)
        return figure


def _strip(axes: Axes, row: int, own: FamilyOfList) -> None:
    """The systems of a family around their row, the best-ranked one in its middle, and their median."""
    efficiency, look = 100 * own.efficiency, style.look(own.family)
    places = row + SPREAD * ((GOLDEN * np.arange(len(efficiency)) + 0.5) % 1 - 0.5)
    marks = {"color": look.color, "alpha": 0.45, "markersize": 3, "mew": 0.5}
    axes.plot(efficiency, places, look.marker, **marks)
    if len(efficiency):
        median = {"color": style.INK, "markersize": 14, "mew": 1.6, "label": "median"}
        axes.plot(efficiency.median(), row, "|", **median)


def printed_table(study: Top500) -> Table:
    """What the sources print of the lists, and where these are there the reading that agrees or is nearest."""
    columns = ("List", "Of", "Printed", "Source", "In the list", "Reading")
    rows = []
    for one in study.aggregates:
        source = published.sources()[one.source]["short"]
        printed = month_name(one.month), f"{one.family}: {one.what}", one.text(one.printed), source
        if one.nearest is None:
            rows.append((*printed, UNKNOWN, UNKNOWN))
        else:
            reading = "; ".join(one.agreeing) or f"none; nearest: {one.nearest}"
            rows.append((*printed, one.text(one.readings[one.nearest]), reading))
    caption = (
        "What the sources print of TOP500's lists. An efficiency is Rmax / Rpeak of HPL. The reading gives the printed digits, "
        "else it is the nearest; a dash: that list is not there"
    )
    return Table("list-printed", columns, "llrlrl", rows, caption, BASIS)


def month_name(month: str) -> str:
    """A list's month in words."""
    return f"{date.fromisoformat(f'{month}-01'):%B %Y}"
