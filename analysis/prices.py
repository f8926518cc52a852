"""What nodes and their networks cost: the ranges of data/prices.toml, or what somebody types in instead."""

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from analysis.statistics.draws import triangular
from analysis.paths import DATA
from runners.record import FalloffError

FILE = DATA / "prices.toml"
NODE = "node"  # owner of the parts that are the same on every network
TYPED = "typed in"


@dataclass(frozen=True)
class Price:
    """What one part of a node or of its place in a network costs [USD], with the range that is thought possible.

    `of` is the part's owner: `node` or an interconnect.
    """

    of: str
    part: str
    low: float
    value: float
    high: float
    source: str

    @property
    def name(self) -> str:
        """What a reader calls it by, such as `10gige.port`."""
        return f"{self.of}.{self.part}"


def read(given: Mapping[str, Any] = MappingProxyType({}), file: Path = FILE) -> tuple[Price, ...]:
    """The file's prices, those in `given` replaced: by name, a price or [low, value, high], in USD.

    Raises FalloffError naming every fault of the file, or every fault of what is given.
    """
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise FalloffError(f"{file} is not valid TOML: {error}") from None
    entries = {f"{of}.{part}": entry for of, parts in table.items() for part, entry in parts.items()}
    _refuse(str(file), [fault for name, entry in entries.items() for fault in _entry_faults(name, entry)])
    unknown = [f"there is no {name!r}, only {', '.join(entries)}" for name in given if name not in entries]
    _refuse("prices", unknown + [fault for name, price in given.items() for fault in _faults(name, _range(price))])
    typed = {name: {"range": _range(price), "source": TYPED} for name, price in given.items()}
    listed = {name: {"range": _file_range(it), "source": it["source"]} for name, it in entries.items()}
    prices = tuple(Price(*name.split(".", 1), *it["range"], it["source"]) for name, it in (listed | typed).items())
    if not any(price.low for price in prices if price.of == NODE):
        raise FalloffError(f"prices: a {NODE} may not cost nothing; type in what one costs without its network")
    return prices


def total(prices: Iterable[Price], *owners: str) -> float:
    """What one node pays [USD] for all parts of these owners."""
    return sum(price.value for price in prices if price.of in owners)


def draws(prices: Iterable[Price], count: int, chance: np.random.Generator) -> dict[str, np.ndarray]:
    """So many draws of what one node pays [USD] for all parts of each owner, every part drawn on its own."""
    totals: dict[str, np.ndarray] = {}
    for price in prices:
        drawn = triangular(price.low, price.value, price.high, chance.random(count))
        totals[price.of] = totals.get(price.of, 0) + drawn
    return totals


def _range(price) -> list:
    return list(price) if isinstance(price, (list, tuple)) else [price] * 3


def _file_range(entry: Mapping) -> list:
    return [entry.get(key) for key in ("low", "value", "high")]


def _entry_faults(name: str, entry: Mapping) -> list[str]:
    missing = [] if entry.get("source") else [f"{name} has no source"]
    unit = [] if entry.get("unit") == "USD" else [f"{name} has unit {entry.get('unit')!r}, not 'USD'"]
    return missing + unit + _faults(name, _file_range(entry))


def _faults(name: str, ends: list) -> list[str]:
    if len(ends) == 3 and all(map(_is_price, ends)) and ends == sorted(ends):
        return []
    return [f"{name} = {ends} is no price and no range [low, value, high]"]


def _is_price(end) -> bool:
    return isinstance(end, (int, float)) and not isinstance(end, bool) and math.isfinite(end) and end >= 0


def _refuse(where: str, faults: list[str]) -> None:
    if faults:
        raise FalloffError(f"{where}: {'; '.join(faults)}")
