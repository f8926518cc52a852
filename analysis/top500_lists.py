"""Read TOP500's list files into one table of systems, with the family of each system's
interconnect."""

import csv
import io
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from python_calamine import CalamineWorkbook

from analysis import paths
from runners.record import FalloffError

OLE, ZIP = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"PK\x03\x04"  # how XLS and XLSX begin
# The columns that are read from a list, and their headings over the years, letters and digits only.
COLUMNS = {
    "rank": ("rank",),
    "rmax": ("rmax",),
    "rpeak": ("rpeak",),
    "interconnect": ("interconnect",),
    "listed_family": ("interconnectfamily",),
    "cores": ("totalcores", "cores", "processorcores", "processors"),
    "site": ("site",),
    "manufacturer": ("manufacturer",),
}
SYSTEMS = 500  # of a whole list
SEPARATORS = "\t,;:"
TITLE_ROWS = 20  # above the headings: the older workbooks begin with a title
UNITS = {"m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15, "e": 1e18}  # flop/s, of Mflop/s, GFlop/s, ...
OTHER, MIXED, NOT_STATED = "other", "mixed", "not_stated"
NOTHING = ("", "n a", "na", "none", "not specified", "unknown")

Rows = list[list[str]]


@dataclass(frozen=True)
class Lists:
    """The systems of all lists, a row each, and notes on anything left out or odd in the files.

    Columns are `list` (YYYY-MM), `rank`, `rmax` and `rpeak` [flop/s], `efficiency` (Rmax over
    Rpeak, NaN if either is not usable), `cores`, `site`, `manufacturer`, `interconnect`,
    `listed_family` (the list's own), `family` (a key of `families`) and `generation` (of
    InfiniBand, such as DDR, or "").
    """

    systems: pd.DataFrame
    notes: tuple[str, ...]


def read_folder(folder: Path) -> Lists:
    """Read all files in a folder except README.md. Without files, or without a folder, there are no
    systems.

    A file that cannot be read is left out with a note. Raises FalloffError naming all faults if no
    file can be read.
    """
    read: dict[str, pd.DataFrame] = {}
    notes, faults = [], []
    for file in sorted(folder.glob("[!.]*")):
        if not file.is_file() or file.name == "README.md":
            continue
        try:
            month = _month(file)
            if month in read:
                raise FalloffError(f"there is another list of {month}; keep one of them")
            read[month] = _systems(file.read_bytes(), month)
            notes += [f"{file.name}: {doubt}" for doubt in _doubts(read[month])]
        except (FalloffError, OSError) as error:
            faults.append(f"{file}: {error}")
    if faults and not read:
        raise FalloffError("\n".join(faults))
    notes += [f"Left out: {fault}" for fault in faults]
    blank = pd.DataFrame(columns=["list", "efficiency", "family", "generation", *COLUMNS])
    systems = pd.concat(read.values(), ignore_index=True) if read else blank
    return Lists(systems, tuple(notes))


def _doubts(systems: pd.DataFrame) -> Iterator[str]:
    """The ways in which a list differs from TOP500's own format."""
    lacking = int(systems.efficiency.isna().sum())
    if lacking:
        yield f"{lacking} systems have no usable RMax or RPeak"
    if len(systems) != SYSTEMS or set(systems["rank"]) != set(range(1, SYSTEMS + 1)):
        yield f"{len(systems)} of {SYSTEMS} systems are there, and every share is of these"
    above = systems[systems.efficiency > 1]
    if len(above):
        most = above.loc[above.efficiency.idxmax()]
        yield (
            f"{len(above)} with more than 100 % of RPeak, at most {100 * most.efficiency:.0f} % (rank {most['rank']}): "
            "RPeak may be at another clock, or wrong"
        )


def _month(file: Path) -> str:
    found = re.search(r"(?<!\d)((?:19|20)\d{2})[-_]?(0[1-9]|1[0-2])(?!\d)", file.stem)
    if not found:
        example = f"TOP500_200811{file.suffix}"
        raise FalloffError(f"its name does not hold the list's month, such as {example}")
    return "-".join(found.groups())


def _systems(content: bytes, month: str) -> pd.DataFrame:
    """The systems of one list: the rows that have a rank."""
    places = [
        (table, row) for table in _tables(content) for row in range(min(len(table), TITLE_ROWS))
    ]
    if not places:
        raise FalloffError("it holds no table")
    table, at = max(places, key=lambda place: len(_headings(place[0][place[1]])))
    titles, rows, width = table[at], table[at + 1 :], len(table[at])
    headings = _headings(titles)
    has_rates = {"rank", "rmax", "rpeak"} <= headings.keys()
    if not has_rates or headings.keys().isdisjoint({"interconnect", "listed_family"}):
        there = ", ".join(filter(None, titles))[:200] or "nothing"
        raise FalloffError(
            f"it needs the columns Rank, RMax, RPeak and Interconnect (or Interconnect Family); its headings are: {there}"
        )
    if any(any(row[width:]) for row in rows):
        raise FalloffError(
            "a row has more cells than there are headings: quote the fields with the separator in them"
        )
    whole = [[*row, *[""] * (width - len(row))][:width] for row in rows]
    cells = pd.DataFrame(whole, columns=range(width), dtype=str)
    columns = {name: cells[headings[name]] if name in headings else "" for name in COLUMNS}
    systems = pd.DataFrame(columns, index=cells.index, dtype=str)
    for name in ("rank", "rmax", "rpeak", "cores"):
        systems[name] = _numbers(systems[name])
    for name in ("rmax", "rpeak"):
        systems[name] = systems[name].where(systems[name] > 0) * _unit(titles[headings[name]])
    systems = systems[systems["rank"].notna()].astype({"rank": int})
    systems["efficiency"] = systems.rmax / systems.rpeak
    if not systems.efficiency.notna().any():
        raise FalloffError("no row has a rank, an RMax and an RPeak")
    pairs = zip(systems.listed_family, systems.interconnect)
    return systems.assign(
        list=month,
        family=[family(*pair) for pair in pairs],
        generation=systems.interconnect.map(generation),
    )


def _headings(cells: list[str]) -> dict[str, int]:
    """The position of each of COLUMNS in a row of headings; units in brackets are not part of a
    heading."""
    names = [re.sub(r"[\[(].*?[\])]|[^a-z0-9]", "", cell.lower()) for cell in cells]
    places = {
        name: [names.index(title) for title in titles if title in names]
        for name, titles in COLUMNS.items()
    }
    return {name: found[0] for name, found in places.items() if found}


def _numbers(cells: pd.Series) -> pd.Series:
    """The numbers of a column, NaN where a cell is not a number; a comma separates thousands."""
    grouped = cells.str.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?")
    numbers = pd.to_numeric(cells.mask(grouped, cells.str.replace(",", "")), errors="coerce")
    return numbers.where(np.isfinite(numbers)).astype(float)


def _unit(heading: str) -> float:
    """The unit in a heading's brackets, in flop/s. Lists without one are in Gflop/s."""
    unit = re.search(r"[\[(]\s*([mgtpe])flop", heading.lower())
    return UNITS[unit[1]] if unit else 1e9


def _tables(content: bytes) -> Iterator[Rows]:
    """Every table that the content may be read as, in rows of text: each sheet, or the text split
    by each separator and by aligned columns.

    An .xls may contain text as well. Raises FalloffError if the content is neither a workbook nor
    text.
    """
    if content.startswith((OLE, ZIP)):
        yield from _sheets(content)
        return
    if b"\0" in content:
        raise FalloffError("it is neither text nor an Excel workbook")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    for separator in SEPARATORS:
        with suppress(csv.Error):  # a field without an end: wrong separator
            lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
            yield [[cell.strip() for cell in row] for row in lines]
    yield _aligned(text.expandtabs().splitlines())


def _aligned(lines: list[str]) -> Rows:
    """The rows of a table with columns aligned by blanks, from its headings on; empty if no blanks
    separate two headings' columns.

    Two headings are two or more blanks apart; words within a heading are one blank apart.
    """
    found = [_headings(re.split(" {2,}", line.strip())) for line in lines[:TITLE_ROWS]]
    if not any(found):
        return []
    at = max(range(len(found)), key=lambda place: len(found[place]))
    spans = [match.span() for match in re.finditer(r"\S+(?: \S+)*", lines[at])]
    systems = [line for line in lines[at + 1 :] if line.strip()]
    ranked = [line for line in systems if line.split()[0].isdigit()]  # a footnote is not aligned
    cuts = [0]
    for (_, end), (begin, _) in zip(spans, spans[1:]):
        gaps = [
            place
            for place in range(end, begin)
            if not any(line[place : place + 1].strip() for line in ranked)
        ]
        if not gaps:
            return []
        cuts.append(gaps[-1])
    ends = [*cuts[1:], max(map(len, lines))]
    return [[line[a:b].strip() for a, b in zip(cuts, ends)] for line in [lines[at], *systems]]


def _sheets(content: bytes) -> list[Rows]:
    """The rows of each sheet; raises FalloffError if the content is not a readable workbook."""
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(content))
        sheets = [workbook.get_sheet_by_name(name).to_python() for name in workbook.sheet_names]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a damaged workbook can make the reader's native code panic
        reason = str(error)[:150]
        raise FalloffError(f"it is no readable Excel workbook: {reason}") from None
    return [
        [[str(cell).removesuffix(".0").strip() for cell in row] for row in rows] for rows in sheets
    ]


@cache
def _families() -> Mapping[str, Mapping]:
    return tomllib.loads(paths.FAMILIES.read_text(encoding="utf-8"))


def families() -> Mapping[str, str]:
    """Titles of the families of data/interconnect_families.toml, plus "other" and "not stated"."""
    titles = {name: table["title"] for name, table in _families().items()}
    return titles | {OTHER: "other", NOT_STATED: "not stated"}


def family(listed: str, interconnect: str) -> str:
    """The family of a system by its list's "Interconnect Family" and "Interconnect", either of
    which may be "".

    The list's own family counts if it is known. Otherwise the name decides: whole words count, and
    the longest matching phrase wins, so that Myrinet 10G is not Ethernet. A name with phrases of
    several families is MIXED.
    """
    listed, name = _words(listed), _words(interconnect)
    for title, table in _families().items():
        if listed in table["listed"]:
            return title
    phrases = {phrase: title for title, table in _families().items() for phrase in table["phrases"]}
    longest_first = "|".join(sorted(map(re.escape, phrases), key=len, reverse=True))
    named = {phrases[phrase] for phrase in re.findall(rf"(?<!\S)(?:{longest_first})(?!\S)", name)}
    if len(named) > 1:
        return MIXED
    nothing = listed in NOTHING and name in NOTHING
    return named.pop() if named else NOT_STATED if nothing else OTHER


def generation(interconnect: str) -> str:
    """InfiniBand's data rate according to the name, such as DDR; "" if the name has none."""
    rates = set(re.findall(r"(?<!\S)([sdqfehnx]dr\d*)(?!\S)", _words(interconnect)))
    return rates.pop().upper() if len(rates) == 1 else ""


def _words(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))
