"""What the sources print about TOP500's lists, beside every reading of it from the lists; and the efficiency of families of
interconnects.

A list is a census of its systems, not a sample, so there is no interval and no test.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from analysis import paths, published
from analysis.exhibit import Basis, Table
from analysis.fitting.scaling_laws import best_of_systems
from analysis.top500_lists import families
from analysis.wording import UNKNOWN, counted, fixed, percent, percent_range

UNITS = {"%": 0.01, "1": 1.0}
LEAST_SYSTEMS = 10  # of a family, for a law to be fitted to them
BASIS = Basis("published")
FOLDER = paths.TOP500.relative_to(paths.ROOT)
# For a printed number: which quantity's extreme selects the system, and which of its quantities is printed.
EXTREMES = {
    "gige_best_ranked": ("rank", "min", "efficiency"),
    "gige_best_rank": ("rank", "min", "rank"),
    "gige_highest": ("efficiency", "max", "efficiency"),
    "gige_lowest": ("efficiency", "min", "efficiency"),
    "gige_lowest_cores": ("efficiency", "min", "cores"),
}
# Groups that may "consistently exceed" an efficiency, and the columns that identify them.
OWNERS = {
    "vendors": ["manufacturer"],
    "sites": ["site"],
    "pairs of vendor and site": ["manufacturer", "site"],
}

Readings = Mapping[
    str, float
]  # possible meanings of a number about a set of systems, by the sense of its words


@dataclass(frozen=True)
class Aggregate:
    """A number that a source prints about a list, and every reading of it from the list itself ({}
    without the list).

    `about` is its table in data/published/top500.toml. The readings are in base units.
    """

    about: Mapping[str, Any]
    readings: Readings

    @property
    def month(self) -> str:
        """The list that it is about, such as 2008-11."""
        return self.about["list"]

    @property
    def family(self) -> str:
        """The family that it is about, in words."""
        title = families()[self.about["family"]]
        return " ".join(filter(None, (self.about.get("generation"), title)))

    @property
    def printed(self) -> float:
        """The number in base units."""
        return UNITS[self.about["unit"]] * self.about["value"]

    @property
    def agreeing(self) -> list[str]:
        """The readings that equal the printed number to its last digit, whose unit is
        `rounding`."""
        # In floating point half a unit is sometimes slightly more.
        slack = 0.5 * UNITS[self.about["unit"]] * self.about["rounding"] * (1 + 1e-9)
        return [name for name, value in self.readings.items() if abs(value - self.printed) <= slack]

    @property
    def nearest(self) -> str | None:
        """The reading nearest to the printed number; None without the list."""
        finite = {name: value for name, value in self.readings.items() if math.isfinite(value)}
        return min(finite, key=lambda name: abs(finite[name] - self.printed), default=None)

    def text(self, value: float) -> str:
        """A number of this kind with as many digits as the printed one."""
        decimals = max(0, round(-math.log10(self.about["rounding"])))
        return percent(value, decimals) if self.about["unit"] == "%" else fixed(value, decimals)


def aggregates(systems: pd.DataFrame) -> tuple[Aggregate, ...]:
    """Every number that the sources print about the lists, with its readings; `systems` are those of all available lists, and
    may be empty."""
    printed = published.facts("top500")["aggregate"]
    return tuple(Aggregate(about, _readings(about, systems)) for about in printed)


def spoken_of(systems: pd.DataFrame, printed: Sequence[Aggregate]) -> pd.DataFrame:
    """The systems of the lists that the sources mention, else of the last list."""
    mentioned = systems[systems.list.isin([one.month for one in printed])]
    return systems[systems.list == systems.list.max()] if mentioned.empty else mentioned


def _readings(printed: Mapping[str, Any], systems: pd.DataFrame) -> Readings:
    """Every reading of a printed number about some systems, whether or not all of their rates are
    usable."""
    everything = systems[systems.list == printed["list"]]
    systems = everything[everything.family == printed["family"]]
    if generation := printed.get("generation"):
        systems = systems[systems.generation == generation]
    if systems.empty:
        return {}
    usable, name = systems.dropna(subset="efficiency"), printed["id"]
    if name == "gige_average":
        return averages(usable)
    if name == "gige_share":
        parts = {
            "systems": len(systems) / len(everything),
            "Rmax": systems.rmax.sum() / everything.rmax.sum(),
            "Rpeak": systems.rpeak.sum() / everything.rpeak.sum(),
        }
        return {f"share of {what}": part for what, part in parts.items()}
    if name == "ddr_above_threshold":
        threshold = printed["threshold"]
        return consistent(usable, UNITS[threshold["unit"]] * threshold["value"])
    by, extreme, column = EXTREMES[name]
    listed = systems if column == "rank" else usable
    chosen = listed[listed[by] == listed[by].agg(extreme)]
    return {f"rank {rank}": float(value) for rank, value in zip(chosen["rank"], chosen[column])}


def averages(systems: pd.DataFrame) -> Readings:
    """The average efficiency [1] of systems with known rmax, rpeak and efficiency, in each sense;
    empty without systems."""
    if systems.empty:
        return {}
    efficiency = systems.efficiency
    return {
        "mean of the ratios": efficiency.mean(),
        "ratio of the sums": systems.rmax.sum() / systems.rpeak.sum(),
        "median": efficiency.median(),
        "geometric mean": math.exp(np.log(efficiency).mean()),
        "harmonic mean": 1 / (1 / efficiency).mean(),
    }


def consistent(systems: pd.DataFrame, threshold: float) -> Readings:
    """The number of vendors, sites, or pairs of them without a system at or below an efficiency
    [1].

    It is counted for all of them, and for those with several systems, because one system alone
    proves no consistency.
    """
    readings = {}
    for name, columns in OWNERS.items():
        owners = systems.groupby(columns).efficiency.agg(["size", "min"])
        above = owners[owners["min"] > threshold]
        readings[name] = float(len(above))
        readings[f"{name} with several systems"] = float((above["size"] > 1).sum())
    return readings


def agreement_in_words(systems: pd.DataFrame, printed: Sequence[Aggregate]) -> str:
    """Whether the lists confirm what the sources print, in plain English (Markdown)."""
    absent = sorted({one.month for one in printed} - {*systems.list})
    months = " and ".join(map(month_name, absent))
    are = f"lists of {months} are" if len(absent) > 1 else f"list of {months} is"
    checked = [one for one in printed if one.readings]
    if not checked:
        return (
            f"**What the sources print of TOP500 cannot be checked here** [@bonding; @fortinet]: the {are} not shipped, and "
            f"`{FOLDER}/README.md` says where they come from."
        )
    others = [f"{one.about['what']} ({one.family})" for one in checked if not one.agreeing]
    words = [
        f"**TOP500's lists give {len(checked) - len(others)} of {counted(len(checked), 'number')} that the sources print, to the "
        "last digit** (published evidence, no sample and no test)."
    ]
    if others:
        words.append(f"They do not give: {'; '.join(others)}.")
    for one in checked:
        if one.about["id"] == "gige_average" and one.agreeing:
            words.append(f"The printed average is the {' or the '.join(one.agreeing)}.")
    if absent:
        words.append(f"Not all can be checked: the {are} not in `{FOLDER}`.")
    words.append(
        "A family's efficiency is no effect of its network: systems differ in processors, size and tuning, and their owners chose "
        "to enter the list."
    )
    return " ".join(words)


def printed_table(printed: Sequence[Aggregate]) -> Table:
    """What the sources print about the lists and, if the list is available, the reading that agrees
    or is nearest."""
    columns, align = ("List", "Of", "Printed", "Source", "In the list", "Reading"), "llrlrl"
    unchecked = all(one.nearest is None for one in printed)
    rows: list[tuple[str, ...]] = []
    for one in printed:
        source = published.sources()[one.about["source"]]["short"]
        row = (
            month_name(one.month),
            f"{one.family}: {one.about['what']}",
            one.text(one.printed),
            source,
        )
        if unchecked:
            rows.append(row)
        elif one.nearest is None:
            rows.append((*row, UNKNOWN, UNKNOWN))
        else:
            reading = "; ".join(one.agreeing) or f"none; nearest: {one.nearest}"
            rows.append((*row, one.text(one.readings[one.nearest]), reading))
    caption = "What the sources print of TOP500's lists. An efficiency is Rmax / Rpeak of HPL."
    if unchecked:
        columns, align = columns[:4], align[:4]
    else:
        caption += " The reading gives the printed digits, else it is the nearest; a dash: that list is not there"
    return Table("list-printed", columns, align, rows, caption, BASIS)


def families_table(shown: pd.DataFrame) -> Table | None:
    """The families of each list among these systems, the largest first; None without a system."""
    rows = []
    for month, systems in shown.groupby("list"):
        for name, count in systems.family.value_counts().items():
            efficiency = systems.efficiency[systems.family == name].dropna()
            ends = (efficiency.min(), efficiency.max()) if len(efficiency) else None
            share, median = percent(count / len(systems)), percent(efficiency.median())
            place = month_name(month), families()[name], str(count)
            rows.append((*place, share, median, percent_range(ends)))
    columns = ("List", "Family", "Systems", "Share", "Median", "Lowest to highest")
    caption = "Share of the systems and efficiency, Rmax / Rpeak, by the interconnect's family"
    return Table("list-families", columns, "llrrrl", rows, caption, BASIS) if rows else None


def laws_table(shown: pd.DataFrame) -> Table | None:
    """The law of efficiency over cores that each family's systems support best; None where no family has enough systems."""
    rows = []
    for (month, family), systems in shown.dropna(subset=["efficiency", "cores"]).groupby(
        ["list", "family"]
    ):
        cores = systems.cores.to_numpy(float)
        found = len(systems) >= LEAST_SYSTEMS and best_of_systems(
            cores, systems.efficiency.to_numpy()
        )
        if found:
            law, weight = found
            ends = np.array([cores.min(), cores.max()])
            at = [
                f"{percent(value)} on {number:.0f}"
                for number, value in zip(ends, law.model.function(ends, **law.estimates))
            ]
            place = month_name(month), families()[family], str(len(systems))
            spread = percent(law.sigma)
            rows.append((*place, law.model.title, fixed(weight, 2), " to ".join(at), spread))
    columns = ("List", "Family", "Systems", "Law", "Weight", "Efficiency on cores", "Scatter (sd)")
    caption = "The law of efficiency over cores that each family's systems support best, with its AICc weight; single systems allow no test of it"
    return Table("list-laws", columns, "llrlrlr", rows, caption, BASIS) if rows else None


def month_name(month: str) -> str:
    """A list's month in words."""
    return f"{date.fromisoformat(f'{month}-01'):%B %Y}"
