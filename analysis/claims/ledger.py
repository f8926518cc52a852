"""The claims of the sources as their file has them, checked: what each says, and the values that support it."""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from analysis import paths, published
from analysis.claims import quantities
from runners.record import FalloffError

FILE = paths.PUBLISHED / "claims.toml"
SCALES = ("ratio", "difference")
EVIDENCE = ("published", "emulated", "simulated", "measured")
_NUMBERS = ("printed", "at_least", "at_most")


@dataclass(frozen=True)
class Confound:
    """What else differs, beside what a source compares or counts, in a sentence."""

    id: str
    source: str
    meaning: str


@dataclass(frozen=True)
class Claim:
    """One claim of a source about one quantity.

    `source` names its file in data/published and `where` the place there. `quantity` is a function of
    analysis.claims.quantities ("" where nothing here can compute it); it is judged as logarithms where `scale` is
    `ratio`, as it is where it is `difference`. `printed` is the source's number, NaN where it prints none, and
    `printed_how` how it follows from what is printed. `at_least` and `at_most` bound the values that support the
    claim, infinite where they do not, and `why` says how they follow from its words. `not_testable` has the reason
    for each kind of evidence that can never tell. Numbers are in `unit`.
    """

    id: str
    source: str
    where: str
    statement: str
    unit: str
    scale: str
    why: str
    quantity: str = ""
    printed: float = math.nan
    printed_how: str = ""
    at_least: float = -math.inf
    at_most: float = math.inf
    confounds: tuple[str, ...] = ()
    not_testable: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def has_range(self) -> bool:
        """Whether the source's words bound the values that support it."""
        return math.isfinite(self.at_least) or math.isfinite(self.at_most)


@dataclass(frozen=True)
class Ledger:
    """All claims and confounds, in the file's order."""

    claims: tuple[Claim, ...]
    confounds: tuple[Confound, ...]


def load(file: Path = FILE) -> Ledger:
    """Read the claims; raises FalloffError that names all faults of the file at once."""
    try:
        return check(tomllib.loads(file.read_text(encoding="utf-8")), str(file))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise FalloffError(f"{file} cannot be read as claims: {error}") from None


def of_source(ledger: Ledger, source: str) -> Ledger:
    """The claims of one source, of all where it is "", with the confounds that touch them.

    Raises FalloffError when it has no claim.
    """
    claims = tuple(claim for claim in ledger.claims if source in ("", claim.source))
    if not claims:
        known = ", ".join(dict.fromkeys(claim.source for claim in ledger.claims))
        raise FalloffError(f"no claim is of a source {source!r}; there are claims of {known}")
    touching = {name for claim in claims for name in claim.confounds}
    return Ledger(
        claims, tuple(confound for confound in ledger.confounds if confound.id in touching)
    )


def check(tables: Mapping[str, Any], file: str = "the claims") -> Ledger:
    """The ledger of the file's tables; raises FalloffError as `load`."""
    claims, confounds = tables.get("claim", []), tables.get("confound", [])
    faults = [f"unknown table {name!r}" for name in tables.keys() - {"claim", "confound"}]
    known, sources = [row.get("id") for row in confounds], list(published.sources())
    for kind, rows, of in (("confound", confounds, Confound), ("claim", claims, Claim)):
        faults += _twice(kind, rows)
        for number, row in enumerate(rows, 1):
            name = f"{kind} {row.get('id', number)}"
            found = _keys(row, of) or (
                _of_source(row, sources) + (_of_claim(row, known) if of is Claim else [])
            )
            faults += [f"{name}: {fault}" for fault in found]
    if faults:
        raise FalloffError(
            "\n".join([f"{file} has {len(faults)} faults; correct them there:", *faults])
        )
    return Ledger(tuple(map(_claim, claims)), tuple(Confound(**row) for row in confounds))


def _claim(row: Mapping[str, Any]) -> Claim:
    numbers = {name: float(row[name]) for name in _NUMBERS if name in row}
    not_testable = MappingProxyType(dict(row.get("not_testable", {})))
    confounds = tuple(row.get("confounds", ()))
    return Claim(**{**row, **numbers, "confounds": confounds, "not_testable": not_testable})


def _twice(kind: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    ids = [row.get("id") for row in rows]
    often = {name: ids.count(name) for name in ids}
    return [
        f"{kind} {name}: its id is there {count} times"
        for name, count in often.items()
        if count > 1
    ]


def _keys(row: Mapping[str, Any], of: type) -> list[str]:
    """Keys that are unknown, missing or of the wrong type."""
    types = {"confounds": list, "not_testable": dict, **dict.fromkeys(_NUMBERS, (int, float))}
    names = [known.name for known in fields(of)]
    optional = {"quantity", "printed_how", "confounds", "not_testable", *_NUMBERS}
    wrong = [
        name
        for name, value in row.items()
        if name in names
        and (isinstance(value, bool) or not isinstance(value, types.get(name, str)))
    ]
    return [
        *(f"unknown key {name!r}" for name in row if name not in names),
        *(f"{name!r} is missing" for name in names if name not in optional and not row.get(name)),
        *(f"{name!r} is {row[name]!r}, which is not of its type" for name in wrong),
    ]


def _of_source(row: Mapping[str, Any], sources: Sequence[str]) -> list[str]:
    return (
        []
        if row["source"] in sources
        else [f"source {row['source']!r} is not one of {', '.join(sources)}"]
    )


def _of_claim(row: Mapping[str, Any], confounds: Sequence[str]) -> list[str]:
    found = [
        f"confound {name!r} is not described"
        for name in row.get("confounds", ())
        if name not in confounds
    ]
    if row.get("quantity") and not quantities.find(row["source"], row["quantity"]):
        found.append(
            f"quantity {row['quantity']!r} is no function of analysis/claims/quantities/{row['source']}.py"
        )
    if row["scale"] not in SCALES:
        found.append(f"scale {row['scale']!r} is not one of {', '.join(SCALES)}")
    found += [f"{name!r} is not finite" for name in _NUMBERS if not math.isfinite(row.get(name, 0))]
    if not any(name in row for name in _NUMBERS):
        found.append("it has no printed number and no range: nothing can be said of it")
    if row.get("at_least", -math.inf) > row.get("at_most", math.inf):
        found.append("'at_least' is above 'at_most'")
    for kind, reason in row.get("not_testable", {}).items():
        if kind not in EVIDENCE or not isinstance(reason, str) or not reason:
            found.append(f"not_testable.{kind} has to be a reason for one of {', '.join(EVIDENCE)}")
    return found
