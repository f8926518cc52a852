"""Prices of nodes and their networks, from data/prices.toml."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass

from analysis.paths import DATA
from runners.record import faulty

FILE = DATA / "prices.toml"
NODE = "node"  # owner of the parts that are the same on every network


@dataclass(frozen=True)
class Price:
    """The price of one part of a node, or of its place in a network [USD], with its plausible
    range.

    `of` is the part's owner: `node` or an interconnect.
    """

    of: str
    part: str
    low: float
    value: float
    high: float
    source: str


def read() -> tuple[Price, ...]:
    """The file's prices; raises FalloffError naming those whose value is not between low and
    high."""
    prices = tuple(
        Price(of, part, row["low"], row["value"], row["high"], row["source"])
        for of, parts in tomllib.loads(FILE.read_text(encoding="utf-8")).items()
        for part, row in parts.items()
    )
    faults = [
        f"{price.of}.{price.part} must have 0 <= low <= value <= high"
        for price in prices
        if not 0 <= price.low <= price.value <= price.high
    ]
    if faults:
        raise faulty(str(FILE), faults)
    return prices


def total(prices: Iterable[Price], *owners: str) -> float:
    """The price of one node [USD] for all parts of these owners."""
    return sum(price.value for price in prices if price.of in owners)
