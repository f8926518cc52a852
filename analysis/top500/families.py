"""The family of an interconnect, by what a list calls it: whole words, so that Myrinet 10G is no Ethernet."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from analysis import paths

OTHER, MIXED, NOT_STATED = "other", "mixed", "not_stated"
_NOTHING = ("", "n a", "na", "none", "not specified", "unknown")

Words = tuple[str, ...]


@dataclass(frozen=True)
class Families:
    """Families of the file: their titles, and to which of them listed values and phrases of names belong."""

    titles: Mapping[str, str]
    listed: Mapping[Words, str]
    phrases: Mapping[Words, str]
    under: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Kind:
    """An interconnect's family, and what its name alone says where that contradicts the list ("" if it does not)."""

    family: str
    contradicted_by: str = ""


@cache
def families() -> Families:
    """The families of data/interconnect_families.toml, and the three that no name has."""
    tables = tomllib.loads(paths.FAMILIES.read_text(encoding="utf-8"))
    titles = {name: table["title"] for name, table in tables.items()}
    return Families(
        titles={**titles, OTHER: "other", NOT_STATED: "not stated"},
        listed={_words(value): name for name, table in tables.items() for value in table["listed"]},
        phrases={_words(phrase): name for name, table in tables.items() for phrase in table["phrases"]},
        under={name: tuple(table.get("under", ())) for name, table in tables.items()},
    )


def kind(listed: str, interconnect: str) -> Kind:
    """The family of a system by its list's "Interconnect Family" and "Interconnect", either of which may be "".

    The list's own family counts. Where it has none that is known, the name does.
    """
    own = families().listed.get(_words(listed), "")
    named = by_name(interconnect)
    if own:
        other = named not in ("", own) and own not in families().under[named]
        return Kind(own, named if other and own != MIXED else "")
    nothing = _nothing(listed) and _nothing(interconnect)
    return Kind(named or (NOT_STATED if nothing else OTHER))


def by_name(interconnect: str) -> str:
    """The family whose phrases a name has, MIXED when it has several families', "" when none."""
    words, found, place = _words(interconnect), set(), 0
    longest = max(map(len, families().phrases))
    while place < len(words):
        phrases = (words[place : place + length] for length in range(longest, 0, -1))
        phrase = next((it for it in phrases if it in families().phrases), ())
        found |= {families().phrases[phrase]} if phrase else set()
        place += len(phrase) or 1
    return MIXED if len(found) > 1 else next(iter(found), "")


def generation(interconnect: str) -> str:
    """InfiniBand's data rate as a name says it, such as DDR; "" when it does not."""
    rates = [word.upper() for word in _words(interconnect) if re.fullmatch(r"[sdqfehnx]dr\d*", word)]
    return rates[0] if len(set(rates)) == 1 else ""


def _nothing(text: str) -> bool:
    return " ".join(_words(text)) in _NOTHING


def _words(text: str) -> Words:
    return tuple(re.findall(r"[a-z0-9]+", text.lower()))
