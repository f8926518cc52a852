"""What nodes and their networks cost: the ranges of data/prices.toml, or what somebody types in instead."""

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from analysis.paths import DATA
from runners.record import faulty

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
    prices, faults = {}, []
    for of, parts in tomllib.loads(FILE.read_text(encoding="utf-8")).items():
        for part, row in parts.items():
            ends = row["low"], row["value"], row["high"]
            prices[f"{of}.{part}"] = Price(of, part, *ends, row["source"])
    for name, price in given.items():
        ends = list(price) if isinstance(price, (list, tuple)) else [price] * 3
        if name not in prices:
            faults.append(f"there is no {name!r}, only {', '.join(prices)}")
        elif len(ends) != 3 or not all(map(_is_price, ends)) or ends != sorted(ends):
            faults.append(f"{name} = {price!r} is no price and no range [low, value, high]")
        elif name == "node.server" and not ends[0]:
            faults.append("a node may not cost nothing; type in what one costs without its network")
        else:
            low, value, high = ends
            prices[name] = replace(prices[name], low=low, value=value, high=high, source=TYPED)
    if faults:
        raise faulty("prices", faults)
    return tuple(prices.values())


def total(prices: Iterable[Price], *owners: str) -> float:
    """What one node pays [USD] for all parts of these owners."""
    return sum(price.value for price in prices if price.of in owners)


def _is_price(end: Any) -> bool:
    is_number = isinstance(end, (int, float)) and not isinstance(end, bool)
    return is_number and 0 <= end < math.inf
