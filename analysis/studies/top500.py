"""TOP500's lists: shares and efficiencies of interconnect families, and what the sources print of them.

A list is a census of its systems, not a sample: there is no interval and no test.
"""

import json
from dataclasses import dataclass, field

import pandas as pd
import xarray as xr

from analysis import published
from analysis.studies import top500_readings as readings
from analysis.studies.top500_readings import Readings
from analysis.top500.families import families

UNITS = {"%": 0.01, "1": 1.0}


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


@dataclass(frozen=True)
class OneList:
    """One list: its systems, those without an efficiency and those above 100 %, and its families, the largest first.

    `contradicted` counts systems by (listed family, family by the interconnect's name) where the two differ;
    `unknown` are names of interconnects, and listed families, that belong to none.
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


@dataclass(frozen=True)
class Top500:
    """All lists that are there, in the order of time, and what the sources print; `dataset` is of their systems.

    `owners` are vendors and sites of DDR InfiniBand in the list of which the paper speaks, none without it.
    """

    dataset: xr.Dataset
    lists: tuple[OneList, ...]
    aggregates: tuple[Aggregate, ...]
    owners: pd.DataFrame
    threshold: float

    @property
    def shown(self) -> tuple[OneList, ...]:
        """The lists of which the sources speak, else the last one."""
        spoken_of = {it.month for it in self.aggregates}
        return tuple(it for it in self.lists if it.month in spoken_of) or self.lists[-1:]

    @property
    def notes(self) -> list[str]:
        """What of the files was left out."""
        return json.loads(self.dataset.attrs["notes"])


def analyse(dataset: xr.Dataset) -> Top500:
    """Analyse what `lists.read_folder` gave, be it of no list at all."""
    systems = table(dataset)
    printed = published.top500()["aggregate"]
    (ddr,) = [it for it in printed if "threshold" in it]
    threshold, pairs = _threshold(ddr), readings.OWNERS["pairs of vendor and site"]
    return Top500(
        dataset=dataset,
        lists=tuple(_one(month, own) for month, own in systems.groupby("list")),
        aggregates=tuple(_aggregate(it, systems) for it in printed),
        owners=readings.owners(_usable(_spoken_of(ddr, systems)), pairs, threshold),
        threshold=threshold,
    )


def table(dataset: xr.Dataset) -> pd.DataFrame:
    """The systems as rows, with the dataset's names as columns."""
    return dataset.to_dataframe().reset_index(drop=True)


def _one(month: str, systems: pd.DataFrame) -> OneList:
    contradicted = systems[systems.contradicted_by != ""].groupby(["family", "contradicted_by"]).size()
    unknown = systems[systems.family == "other"]
    names = unknown.interconnect.where(unknown.interconnect != "", unknown.listed_family).value_counts().sort_index()
    found = [_family(name, own, systems) for name, own in systems.groupby("family")]
    return OneList(
        month=month,
        systems=len(systems),
        usable=int(systems.efficiency.notna().sum()),
        above_peak=int((systems.efficiency > 1).sum()),
        families=tuple(sorted(found, key=lambda it: (-it.systems, it.family))),
        contradicted=tuple((*pair, int(count)) for pair, count in contradicted.items()),
        unknown=tuple((name, int(count)) for name, count in names.items()),
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
    return Aggregate(
        id=printed["id"],
        what=printed["what"],
        month=printed["list"],
        family=" ".join(filter(None, [printed.get("generation"), families().titles[printed["family"]]])),
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
    of_family = systems[(systems.list == printed["list"]) & (systems.family == printed["family"])]
    wanted = printed.get("generation")
    return of_family[of_family.generation == wanted] if wanted else of_family


def _readings(printed: dict, own: pd.DataFrame, everything: pd.DataFrame) -> Readings:
    """Every reading of a printed number."""
    usable = _usable(own)
    of = {
        "gige_best_ranked": lambda: readings.best_ranked(usable, "efficiency"),
        "gige_best_rank": lambda: readings.best_ranked(own, "rank"),
        "gige_average": lambda: readings.averages(usable),
        "gige_highest": lambda: readings.most_efficient(usable, "efficiency"),
        "gige_lowest": lambda: readings.least_efficient(usable, "efficiency"),
        "gige_lowest_cores": lambda: readings.least_efficient(usable, "cores"),
        "gige_share": lambda: readings.shares(own, everything),
        "ddr_above_threshold": lambda: readings.consistent(usable, _threshold(printed)),
    }
    return of[printed["id"]]()


def _threshold(printed: dict) -> float:
    return UNITS[printed["threshold"]["unit"]] * printed["threshold"]["value"]


def _usable(systems: pd.DataFrame) -> pd.DataFrame:
    return systems[systems.efficiency.notna()]
