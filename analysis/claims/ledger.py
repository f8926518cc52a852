"""The sources' claims as data/published/claims.toml has them: what each says, and the values that support it."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis import paths, published
from runners.record import FalloffError, unknown

FILE = paths.PUBLISHED / "claims.toml"
SCALES = ("ratio", "difference")
EVIDENCE = ("published", "emulated", "simulated", "measured")


@dataclass(frozen=True)
class Confound:
    """What else differs where a source compares or counts, in a sentence."""

    id: str
    source: str
    meaning: str


@dataclass(frozen=True)
class Claim:
    """One claim of a source about one quantity; all numbers are in `unit`.

    `source` names its file in data/published and `where` the place there. The quantity is judged as logarithms where
    `scale` is `ratio`, as it is where it is `difference`. `printed` is the source's number (NaN: none), `rounding` the
    unit of its last digit, and `printed_how` says how it follows from what is printed; `aggregate` names it in
    top500.toml. `at_least` and `at_most` bound the values that support the claim, infinite where they do not, and `why`
    says how they follow from its words. `not_testable` has the reason for each kind of evidence that can never tell.
    """

    id: str
    source: str
    where: str
    statement: str
    unit: str
    scale: str
    why: str
    printed: float = math.nan
    rounding: float = math.nan
    printed_how: str = ""
    aggregate: str = ""
    at_least: float = -math.inf
    at_most: float = math.inf
    confounds: list[str] = field(default_factory=list)
    not_testable: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_range(self) -> bool:
        """Whether the source's words bound the values that support it."""
        return math.isfinite(self.at_least) or math.isfinite(self.at_most)


@dataclass(frozen=True)
class Ledger:
    """Claims in the file's order, and the confounds that touch them."""

    claims: tuple[Claim, ...]
    confounds: tuple[Confound, ...]


def load(source: str = "", file: Path = FILE) -> Ledger:
    """The claims of one source, of all where it is ""; raises FalloffError when there are none, or naming a fault."""
    try:
        ledger = check(tomllib.loads(file.read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError, FalloffError) as error:
        raise FalloffError(f"{file} cannot be read as claims: {error}") from None
    claims = tuple(claim for claim in ledger.claims if source in ("", claim.source))
    if not claims:
        raise unknown("source", source, {claim.source for claim in ledger.claims})
    touching = {name for claim in claims for name in claim.confounds}
    return Ledger(claims, tuple(one for one in ledger.confounds if one.id in touching))


def check(tables: Mapping[str, Any]) -> Ledger:
    """The ledger of the file's tables; raises FalloffError naming the first claim with a fault."""
    confounds = tuple(_made(Confound, row) for row in tables.get("confound", ()))
    claims = tuple(_made(Claim, row) for row in tables.get("claim", ()))
    known, sources, ids = {confound.id for confound in confounds}, published.sources(), set()
    for claim in claims:
        faults = {
            "its id is there twice": claim.id in ids,
            f"source {claim.source!r} is unknown": claim.source not in sources,
            f"scale {claim.scale!r} is not one of {', '.join(SCALES)}": claim.scale not in SCALES,
            "a confound is not described": not known.issuperset(claim.confounds),
            "'at_least' is above 'at_most'": claim.at_least > claim.at_most,
            "it has no printed number and no range": math.isnan(claim.printed)
            and not claim.has_range,
            "not_testable names no kind of evidence": not set(claim.not_testable)
            <= set(EVIDENCE[1:]),
        }
        for fault, is_there in faults.items():
            if is_there:
                raise FalloffError(f"claim {claim.id}: {fault}")
        ids.add(claim.id)
    return Ledger(claims, confounds)


def _made(of: type, row: Mapping[str, Any]) -> Any:
    try:
        return of(**row)
    except TypeError as error:  # a key that is unknown or missing
        raise FalloffError(f"{row.get('id', 'a claim')}: {error}") from None
