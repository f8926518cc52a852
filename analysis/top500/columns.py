"""Which column of a list is what: its headings changed over the years."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from analysis.top500.cells import Rows

# What is needed of a list, and what of it the headings were called, letters and digits only; the first that is there.
NAMES = {
    "rank": ("rank",),
    "rmax": ("rmax",),
    "rpeak": ("rpeak",),
    "interconnect": ("interconnect",),
    "listed_family": ("interconnectfamily",),
    "cores": ("totalcores", "cores", "processorcores", "processors"),
    "site": ("site",),
    "manufacturer": ("manufacturer",),
    "computer": ("computer",),
    "country": ("country",),
}
NEEDED = {"rank": "Rank", "rmax": "RMax", "rpeak": "RPeak"}
TITLE_ROWS = 20  # above the headings: the older workbooks begin with a title

_UNIT = re.compile(r"[\[(](.*?)[\])]")


@dataclass(frozen=True)
class Headings:
    """The row of a table that names its columns: where each of NAMES stands, and the unit written at it or ""."""

    row: int
    cells: tuple[str, ...]
    places: Mapping[str, int]
    units: Mapping[str, str]

    @property
    def lacking(self) -> list[str]:
        """The columns that are needed and are not there."""
        lacking = [title for name, title in NEEDED.items() if name not in self.places]
        if not {"interconnect", "listed_family"} & self.places.keys():
            lacking.append("Interconnect (or Interconnect Family)")
        return lacking


def best(tables: Iterable[Rows]) -> tuple[Rows, Headings] | None:
    """The table, and its row, in which the most columns are known; None when there is no row at all."""
    found = [(table, _headings(table, row)) for table in tables for row in range(min(len(table), TITLE_ROWS))]
    return max(found, key=lambda each: len(each[1].places), default=None)


def _headings(table: Rows, row: int) -> Headings:
    cells = tuple(table[row])
    names = [re.sub(r"[^a-z0-9]", "", _UNIT.sub("", cell).lower()) for cell in cells]
    places = {
        name: next(names.index(title) for title in titles if title in names)
        for name, titles in NAMES.items()
        if set(titles) & set(names)
    }
    units = {name: (_UNIT.findall(cells[place]) or [""])[0] for name, place in places.items()}
    return Headings(row, cells, places, units)
