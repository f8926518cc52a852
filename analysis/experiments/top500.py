"""TOP500's lists: shares and efficiencies of interconnect families, and what the sources print of them.

A list is a census of its systems, not a sample: there is no interval and no test.
"""

import json
import math
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, paths, published, style
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import known
from analysis.top500 import readings
from analysis.top500.families import families
from analysis.top500.readings import Readings
from analysis.wording import UNKNOWN, counted, fixed, percent, percent_range, plain

# The campaigns, and the files of data/, that each figure rests on.
FIGURES = dict.fromkeys(("list_efficiency", "list_share"), ("published/top500.toml",))

UNITS = {"%": 0.01, "1": 1.0}
BASIS = Basis("published")
FOLDER = paths.TOP500.relative_to(paths.ROOT)
NAMED = 3  # numbers that a sentence may list
MOST_OWNERS = 30  # rows of a table that stays on a page
GOLDEN = 0.618  # of the way round: places of neighbouring ranks that never fall together
SPREAD = 0.7  # of a row's height, for its points
LINES = 7  # families with a line of their own; the rest is one more


@dataclass(frozen=True)
class FamilyOfList:
    """The systems of one family in one list: how many, and efficiencies [1] of the `usable` ones.

    `averages` and `shares` hold every reading; `quartiles` are NaN where nothing is usable.
    """

    family: str
    systems: int
    usable: int
    shares: Readings
    averages: Readings
    lowest: float
    quartiles: tuple[float, float]
    highest: float

    @property
    def title(self) -> str:
        """The family in words."""
        return families().titles[self.family]


@dataclass(frozen=True)
class OneList:
    """One list: its systems, those without an efficiency and those above 100 %, and its families, the largest first.

    `contradicted` counts systems by (listed family, family by the interconnect's name) where the two differ; `unknown`
    are names of interconnects, and listed families, that belong to none.
    """

    month: str
    systems: int
    usable: int
    above_peak: int
    families: tuple[FamilyOfList, ...]
    contradicted: tuple[tuple[str, str, int], ...]
    unknown: tuple[tuple[str, int], ...]


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
    where: str
    readings: Readings = field(default_factory=dict)
    agreeing: tuple[str, ...] = ()

    @property
    def nearest(self) -> str | None:
        """The reading that is nearest to the printed number; None without the list."""
        finite = {name: value for name, value in self.readings.items() if math.isfinite(value)}
        return min(finite, key=lambda name: abs(finite[name] - self.printed), default=None)

    def text(self, value: float | None) -> str:
        """A number of this kind with as many digits as the printed one."""
        decimals = max(0, round(-math.log10(self.rounding / UNITS[self.unit])))
        return percent(value, decimals) if self.unit == "%" else fixed(value, decimals)


@dataclass(frozen=True)
class Top500:
    """All lists that are there, in the order of time, and what the sources print; `dataset` is of their systems.

    `owners` are vendors and sites of DDR InfiniBand in the list of which the paper speaks, none without it; `threshold`
    [1] is the efficiency that they are said to exceed.
    """

    dataset: xr.Dataset
    lists: tuple[OneList, ...]
    aggregates: tuple[Aggregate, ...]
    owners: pd.DataFrame
    threshold: float

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

    @property
    def notes(self) -> list[str]:
        """What of the files was left out."""
        return json.loads(self.dataset.attrs["notes"])


def analyse(lists: xr.Dataset) -> Top500:
    """Analyse what `lists.read_folder` gave, be it of no list at all."""
    systems = table(lists)
    printed = published.top500()["aggregate"]
    (ddr,) = [one for one in printed if "threshold" in one]
    threshold, pairs = _threshold(ddr), readings.OWNERS["pairs of vendor and site"]
    return Top500(
        dataset=lists,
        lists=tuple(_one(month, own) for month, own in systems.groupby("list")),
        aggregates=tuple(_aggregate(one, systems) for one in printed),
        owners=readings.owners(_usable(_spoken_of(ddr, systems)), pairs, threshold),
        threshold=threshold,
    )


def table(dataset: xr.Dataset) -> pd.DataFrame:
    """The systems as rows, with the dataset's names as columns."""
    return dataset.to_dataframe().reset_index(drop=True)


def _one(month: str, systems: pd.DataFrame) -> OneList:
    differing = systems[systems.contradicted_by != ""]
    contradicted = differing.groupby(["family", "contradicted_by"]).size()
    unknown = systems[systems.family == "other"]
    names = unknown.interconnect.where(unknown.interconnect != "", unknown.listed_family)
    found = [_family(name, own, systems) for name, own in systems.groupby("family")]
    return OneList(
        month=month,
        systems=len(systems),
        usable=int(systems.efficiency.notna().sum()),
        above_peak=int((systems.efficiency > 1).sum()),
        families=tuple(sorted(found, key=lambda one: (-one.systems, one.family))),
        contradicted=tuple((*pair, int(count)) for pair, count in contradicted.items()),
        unknown=tuple((name, int(n)) for name, n in names.value_counts().sort_index().items()),
    )


def _family(name: str, systems: pd.DataFrame, everything: pd.DataFrame) -> FamilyOfList:
    usable = _usable(systems)
    efficiency = usable.efficiency
    return FamilyOfList(
        family=name,
        systems=len(systems),
        usable=len(usable),
        shares=readings.shares(systems, everything),
        averages=readings.averages(usable),
        lowest=efficiency.min(),
        quartiles=(efficiency.quantile(0.25), efficiency.quantile(0.75)),
        highest=efficiency.max(),
    )


def _aggregate(printed: dict, systems: pd.DataFrame) -> Aggregate:
    own, scale = _spoken_of(printed, systems), UNITS[printed["unit"]]
    value, rounding = scale * printed["value"], scale * printed["rounding"]
    everything = systems[systems.list == printed["list"]]
    found = _readings(printed, own, everything) if len(own) else {}
    title = families().titles[printed["family"]]
    return Aggregate(
        id=printed["id"],
        what=printed["what"],
        month=printed["list"],
        family=" ".join(filter(None, [printed.get("generation"), title])),
        unit=printed["unit"],
        printed=value,
        rounding=rounding,
        source=printed["source"],
        where=printed["where"],
        readings=found,
        agreeing=readings.agreeing(found, value, rounding),
    )


def _spoken_of(printed: dict, systems: pd.DataFrame) -> pd.DataFrame:
    """The systems of the list and family of which a source speaks, whether or not all of their rates are usable."""
    is_of_family = (systems.list == printed["list"]) & (systems.family == printed["family"])
    wanted = printed.get("generation")
    return (
        systems[is_of_family & (systems.generation == wanted)] if wanted else systems[is_of_family]
    )


def _readings(printed: dict, own: pd.DataFrame, everything: pd.DataFrame) -> Readings:
    """Every reading of a printed number."""
    usable = _usable(own)
    match printed["id"]:
        case "gige_best_ranked":
            return readings.best_ranked(usable, "efficiency")
        case "gige_best_rank":
            return readings.best_ranked(own, "rank")
        case "gige_average":
            return readings.averages(usable)
        case "gige_highest":
            return readings.most_efficient(usable, "efficiency")
        case "gige_lowest":
            return readings.least_efficient(usable, "efficiency")
        case "gige_lowest_cores":
            return readings.least_efficient(usable, "cores")
        case "gige_share":
            return readings.shares(own, everything)
        case "ddr_above_threshold":
            return readings.consistent(usable, _threshold(printed))
    raise KeyError(printed["id"])


def _threshold(printed: dict) -> float:
    return UNITS[printed["threshold"]["unit"]] * printed["threshold"]["value"]


def _usable(systems: pd.DataFrame) -> pd.DataFrame:
    return systems[systems.efficiency.notna()]


def finding(study: Top500) -> str:
    """Whether the lists give what the sources print, and how efficient the families are, in plain English (Markdown)."""
    checked = [printed for printed in study.aggregates if printed.readings]
    if not checked:
        return (
            f"**What the sources print of TOP500 cannot be checked here**: {_absent(study.missing)}. {_printed(study)} "
            f"The lists are not shipped; `{FOLDER}/README.md` says where they come from."
        )
    agreed = [printed for printed in checked if printed.agreeing]
    others = [f"{one.what} ({one.family})" for one in checked if not one.agreeing]
    if len(others) > NAMED:
        rest = f"The table shows the other {len(others)}."
    else:
        rest = f"They do not give: {'; '.join(others)}." if others else ""
    average = next((one for one in agreed if one.id == "gige_average"), None)
    sentences = [
        f"**TOP500's lists give {len(agreed)} of {counted(len(checked), 'number')} that the sources print, to the last digit** "
        "(published evidence, no sample and no test).",
        rest,
        f"The printed average is the {' or the '.join(average.agreeing)}." if average else "",
        f"Not all can be checked: {_absent(study.missing)}." if study.missing else "",
        *(_medians(one) for one in study.shown),
    ]
    return " ".join(filter(None, sentences))


def _absent(months: list[str]) -> str:
    """That lists are not there."""
    names = " and ".join(month_name(month) for month in months)
    are = "lists of {} are" if len(months) > 1 else "list of {} is"
    return f"the {are.format(names)} not in `{FOLDER}`"


def _printed(study: Top500) -> str:
    """What the blog prints of Gigabit Ethernet."""
    by_id = {one.id: one for one in study.aggregates}
    average, lowest, highest = (by_id[f"gige_{name}"] for name in ("average", "lowest", "highest"))
    return (
        f"A blog prints that Gigabit Ethernet's systems of {month_name(average.month)} reach {average.text(average.printed)} "
        f"of their peak on average, from {lowest.text(lowest.printed)} to {highest.text(highest.printed)} [@bonding]."
    )


def _medians(one: OneList) -> str:
    """The median efficiencies of a list on the two families that the sources compare."""
    compared = [own for own in one.families if own.family in ("gige", "infiniband") and own.usable]
    if not compared:
        return ""
    each = " and ".join(
        f"{percent(own.averages['median'])} on {own.title} ({counted(own.usable, 'system')})"
        for own in compared
    )
    return f"In {month_name(one.month)} the median efficiency is {each}."


def notes(study: Top500) -> str:
    """What of the lists was left out or contradicts itself, as a Markdown list."""
    titles, lines = families().titles, list(map(plain, study.notes))
    for one in study.shown:
        month = month_name(one.month)
        for listed, named, count in one.contradicted:
            lines.append(
                f"{month}: {counted(count, 'system')} under {titles[listed]} by the list, {titles[named]} by name; "
                "the list's own family counts here."
            )
        if one.unknown:
            names = ", ".join(f"{plain(name)} ({count})" for name, count in one.unknown)
            lines.append(f"{month}: interconnects of no known family: {names}.")
        if one.above_peak:
            lines.append(
                f"{month}: {counted(one.above_peak, 'system')} above the peak; processors may run faster than the clock that the "
                "peak is computed from."
            )
    if len(study.owners) and not (study.owners.above > 0).any():
        pairs = counted(len(study.owners), "pair")
        threshold = percent(study.threshold, 0)
        lines.append(
            f"None of {pairs} of vendor and site has a DDR InfiniBand system above {threshold}."
        )
    return "\n".join(f"- {line}" for line in lines)


def figures(study: Top500) -> dict[str, Exhibit]:
    """Efficiencies by family, and with two lists or more the families' shares; none without lists."""
    drawn = {}
    if study.lists:
        drawn["efficiency"] = Exhibit(
            "list_efficiency",
            efficiency_by_family(study),
            "Efficiency of every system by the family of its interconnect, in parentheses the number of systems",
            BASIS,
            "Efficiency of every system, a row for each family of interconnects, a panel for each list",
            "Ticks are medians; crosses, below their row, are what the sources print.",
            rests_on=FIGURES["list_efficiency"],
        )
    if len(study.lists) > 1:
        drawn["share"] = Exhibit(
            "list_share",
            share_over_lists(study),
            f"Share of the systems by family of interconnect over {len(study.lists)} lists",
            BASIS,
            "Share of systems over lists, a line for each family of interconnects",
            "The cross is what the HPL paper prints of Gigabit Ethernet.",
            rests_on=FIGURES["list_share"],
        )
    return drawn


def efficiency_by_family(study: Top500) -> Figure:
    """The efficiency [%] of every system, a row for each family and a panel for each list shown, with medians."""
    systems = _usable(table(study.dataset))
    rows = [len(one.families) for one in study.shown]
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 1.0 + sum(0.7 + 0.3 * count for count in rows)))
        heights = [1 + count for count in rows]
        panels = figure.subplots(len(rows), 1, squeeze=False, sharex=True, height_ratios=heights)[
            :, 0
        ]
        for axes, one in zip(panels, study.shown):
            for row, own in enumerate(one.families):
                is_own = (systems.list == one.month) & (systems.family == own.family)
                _strip(axes, row, own, systems[is_own].sort_values("rank"))
                for printed in study.aggregates:
                    is_efficiency = printed.unit == "%" and "efficiency" in printed.what
                    if is_efficiency and (printed.month, printed.family) == (one.month, own.title):
                        _cross(axes, 100 * printed.printed, row + 0.5)  # hides no system
            drawing.rows(axes, [f"{own.title} ({own.systems})" for own in one.families])
            axes.set_title(f"{month_name(one.month)}, n = {one.usable} systems", loc="left")
        panels[-1].set(xlabel="efficiency, Rmax / Rpeak [%]", xlim=(0, None))
        drawing.legend_below(figure, panels, 3)
        return figure


def _strip(axes: Axes, row: int, own: FamilyOfList, systems: pd.DataFrame) -> None:
    """The systems of a family around their row, the best-ranked one in its middle, and their median."""
    look = style.look(own.family)
    places = row + SPREAD * ((GOLDEN * np.arange(len(systems)) + 0.5) % 1 - 0.5)
    marks = {"color": look.color, "alpha": 0.45, "markersize": 3, "mew": 0.5}
    axes.plot(100 * systems.efficiency, places, look.marker, **marks)
    if len(systems):
        median = 100 * systems.efficiency.median()
        axes.plot(median, row, "|", color=style.INK, markersize=14, mew=1.6, label="median")


def share_over_lists(study: Top500) -> Figure:
    """The share of systems [%] of the largest families in every list; a cross is what a source prints."""
    shares = _shares(study.lists)
    years = [_year(month) for month in shares.index]
    with style.styled():
        figure, axes = drawing.new_figure(3.6)
        for name in shares:
            look = style.look(name)
            label = "all others" if name == "other" else families().titles[name]
            marks = {"color": look.color, "linestyle": look.line, "gid": drawing.COMPUTED}
            axes.plot(years, shares[name], look.marker, label=label, **marks)
        for printed in study.aggregates:
            if "share" in printed.what:
                _cross(axes, _year(printed.month), 100 * printed.printed)
        axes.set(xlabel="list [year]", ylabel="share of systems [%]", ylim=(0, None))
        axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
        drawing.legend_below(figure, axes, 3)
        return figure


def _shares(lists: tuple[OneList, ...]) -> pd.DataFrame:
    """Shares [%] over (month, family), 0 where a list has none of it; what has no line of its own is `other`."""
    found = {}
    for one in lists:
        found[one.month] = {
            own.family: 100 * own.shares["share of systems"] for own in one.families
        }
    shares = pd.DataFrame(found).T.fillna(0.0)
    largest = shares.drop(columns="other", errors="ignore").max()
    named = shares[largest.sort_values(ascending=False, kind="stable").index[:LINES]]
    rest = 100 - named.sum(axis="columns")
    return named.assign(other=rest) if rest.max() > 1e-9 else named


def _cross(axes: Axes, x: float, y: float) -> None:
    """A number that a source prints."""
    look = {"color": style.INK, "markersize": 7, "zorder": 4}
    axes.plot(x, y, style.PUBLISHED_MARKERS["gige"], **look, label="printed by a source")


def printed_table(study: Top500) -> Table:
    """What the sources print of the lists, and where these are there the reading that agrees or is nearest."""
    columns, align = ("List", "Of", "Printed", "Source"), "llrl"
    caption = "What the sources print of TOP500's lists. An efficiency is Rmax / Rpeak of HPL"
    rows = [_printed_row(one) for one in study.aggregates]
    if study.lists:
        columns, align = (*columns, "In the list", "Reading"), f"{align}rl"
        rows = [(*row, *_read(one)) for row, one in zip(rows, study.aggregates)]
        caption += ". The reading gives the printed digits, else it is the nearest; a dash: that list is not there"
    return Table("list-printed", columns, align, rows, caption, BASIS)


def _printed_row(one: Aggregate) -> tuple[str, ...]:
    source = published.sources()[one.source]["short"]
    return month_name(one.month), f"{one.family}: {one.what}", one.text(one.printed), source


def _read(one: Aggregate) -> tuple[str, str]:
    if one.nearest is None:
        return UNKNOWN, UNKNOWN
    reading = "; ".join(one.agreeing) or f"none; nearest: {one.nearest}"
    return one.text(one.readings[one.nearest]), reading


def tables(study: Top500) -> tuple[Table, ...]:
    """A table of families for each list shown, one of all readings, and one of the owners of DDR InfiniBand."""
    by_family = [_family_table(number, one) for number, one in enumerate(study.shown, 1)]
    several = [one for one in study.aggregates if len(one.readings) > 2]
    rows = [
        (f"{one.family}: {one.what}", name, one.text(known(value)), one.text(one.printed))
        for one in several
        for name, value in one.readings.items()
    ]
    columns = ("Of", "Reading", "In the list", "Printed")
    caption = "Every reading of a printed number that may mean several things"
    read = [Table("list-readings", columns, "llrr", rows, caption, BASIS)] if rows else []
    above = study.owners[study.owners.above > 0]
    owners = [_owners_table(study, above[:MOST_OWNERS])] if len(above) else []
    return *by_family, *read, *owners


def _family_table(number: int, one: OneList) -> Table:
    columns = ("Family", "Systems", "Share", "Median", "Quartiles", "Mean", "Lowest to highest")
    caption = (
        f"Efficiency by the interconnect's family, {month_name(one.month)}: {one.usable} of "
        f"{counted(one.systems, 'system')} have one"
    )
    rows = [_family_row(own) for own in one.families]
    return Table(f"list-families-{number}", columns, "lrrrlrl", rows, caption, BASIS)


def _family_row(own: FamilyOfList) -> tuple[str, ...]:
    ends = (own.quartiles, (own.lowest, own.highest))
    quartiles, extremes = (percent_range(pair if own.usable else None) for pair in ends)
    median, mean = (own.averages.get(name) for name in ("median", "mean of the ratios"))
    share = percent(own.shares["share of systems"])
    return own.title, str(own.systems), share, percent(median), quartiles, percent(mean), extremes


def _owners_table(study: Top500, above: pd.DataFrame) -> Table:
    rows = [
        (
            plain(own.manufacturer),
            plain(own.site),
            str(own.systems),
            *(percent(float(own[name])) for name in ("lowest", "median", "highest")),
            str(own.above),
        )
        for _, own in above.iterrows()
    ]
    threshold = percent(study.threshold, 0)
    caption = (
        f"Vendors and sites with a system above {threshold} among those on DDR InfiniBand: {len(rows)} of "
        f"{counted(len(study.owners), 'pair')}. A system whose list names no data rate is not among them"
    )
    columns = ("Vendor", "Site", "Systems", "Lowest", "Median", "Highest", "Above")
    return Table("list-owners", columns, "llrrrrr", rows, caption, BASIS)


def month_name(month: str) -> str:
    """A list's month in words."""
    return f"{date.fromisoformat(f'{month}-01'):%B %Y}"


def _year(month: str) -> float:
    year, number = map(int, month.split("-"))
    return year + (number - 1) / 12
