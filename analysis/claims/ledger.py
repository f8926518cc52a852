"""The sources' claims from data/published/claims.toml: their statements, and the values that would
support them."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from analysis import paths
from runners.record import FalloffError, unknown

FILE = paths.PUBLISHED / "claims.toml"
EVIDENCE = ("published", "emulated", "simulated", "measured")


@dataclass(frozen=True)
class Confound:
    """Another difference between the things that a source compares or counts, in a sentence."""

    id: str
    source: str
    meaning: str


@dataclass(frozen=True)
class Claim:
    """One claim of a source about one quantity; all numbers are in `unit`.

    `source` names its file in data/published, and `where` the place in the source. The quantity is
    judged as a logarithm if `scale` is `ratio`, and unchanged if it is `difference`. `printed` is
    the source's number (NaN: none), `rounding` the unit of its last digit, and `printed_how` says
    how it follows from the printed text; `aggregate` names it in top500.toml. `at_least` and
    `at_most` bound the values that support the claim (infinite: no bound), and `why` says how the
    bounds follow from the source's words. `not_testable` has the reason for each kind of evidence
    that can never decide it.
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
        """Whether the source's words bound the supporting values."""
        return math.isfinite(self.at_least) or math.isfinite(self.at_most)


@dataclass(frozen=True)
class Ledger:
    """Claims in the file's order, and the confounds that affect them."""

    claims: tuple[Claim, ...]
    confounds: tuple[Confound, ...]


def load(source: str = "", file: Path = FILE) -> Ledger:
    """The claims of one source, or of all if it is ""; raises FalloffError if there are none or the
    file is invalid."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        claims = [Claim(**row) for row in tables["claim"]]
        confounds = [Confound(**row) for row in tables["confound"]]
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise FalloffError(f"{file} cannot be read as claims: {error}") from None
    chosen = tuple(claim for claim in claims if source in ("", claim.source))
    if not chosen:
        raise unknown("source", source, {claim.source for claim in claims})
    touching = {name for claim in chosen for name in claim.confounds}
    return Ledger(chosen, tuple(one for one in confounds if one.id in touching))
