"""Prices of nodes and their networks, from data/prices.toml."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import model_validator

from analysis.descriptions.tables import Name, NotNegative, Table, made_each, read_toml, said
from analysis.paths import DATA

FILE = DATA / "prices.toml"
NODE = "node"  # owner of the parts that are the same on every network


class Row(Table):
    """The price of one part, with its plausible range."""

    value: NotNegative
    low: NotNegative
    high: NotNegative
    unit: Annotated[Literal["USD"], said("USD")]
    source: Name

    @model_validator(mode="after")
    def _is_range(self) -> Self:
        if not self.low <= self.value <= self.high:
            raise ValueError("must have low <= value <= high")
        return self


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
    """The file's prices; raises FalloffError naming every fault."""
    return tuple(
        Price(of, part, row.low, row.value, row.high, row.source)
        for of, parts in read_toml(FILE, "prices").items()
        for part, row in made_each(Row, parts, f"{FILE}: {of}").items()
    )


def total(prices: Iterable[Price], *owners: str) -> float:
    """The price of one node [USD] for all parts of these owners."""
    return sum(price.value for price in prices if price.of in owners)
