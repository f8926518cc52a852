"""What nodes and their networks cost: the ranges of data/prices.toml, or what somebody types in instead."""

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from analysis.paths import DATA
from runners.record import FalloffError, faulty

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


def read(given: Mapping[str, Any] = MappingProxyType({})) -> tuple[Price, ...]:
    """The file's prices, those in `given` replaced: by name, such as `10gige.port`, a price or [low, value, high], in USD.

    Raises FalloffError naming every fault of what is given.
    """
    table = tomllib.loads(FILE.read_text(encoding="utf-8"))
    entries = {
        f"{of}.{part}": ([entry["low"], entry["value"], entry["high"]], entry["source"])
        for of, parts in table.items()
        for part, entry in parts.items()
    }
    known, faults = ", ".join(entries), []
    for name, price in given.items():
        ends = list(price) if isinstance(price, (list, tuple)) else [price] * 3
        if name not in entries:
            faults.append(f"there is no {name!r}, only {known}")
        elif len(ends) != 3 or not all(map(_is_price, ends)) or ends != sorted(ends):
            faults.append(f"{name} = {price!r} is no price and no range [low, value, high]")
        entries[name] = ends, TYPED
    if faults:
        raise faulty("prices", faults)
    prices = tuple(Price(*name.split("."), *ends, why) for name, (ends, why) in entries.items())
    if not any(price.low for price in prices if price.of == NODE):
        raise FalloffError(
            f"prices: a {NODE} may not cost nothing; type in what one costs without its network"
        )
    return prices


def total(prices: Iterable[Price], *owners: str) -> float:
    """What one node pays [USD] for all parts of these owners."""
    return sum(price.value for price in prices if price.of in owners)


def _is_price(end: Any) -> bool:
    is_number = isinstance(end, (int, float)) and not isinstance(end, bool)
    return is_number and 0 <= end < math.inf
