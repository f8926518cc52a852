"""The sources' claims from data/published/claims.toml: their statements, and the values that would
support them."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from analysis import paths
from analysis.descriptions.toml_tables import (
    Limit,
    Name,
    Ruled,
    TomlTable,
    fault,
    must_be,
    parse,
    read_toml,
    refuse,
)
from runners.records.description_rules import one_of
from runners.records.record import unknown, unknown_key

FILE = paths.PUBLISHED / "claims.toml"
EVIDENCE = "published", "emulated", "simulated", "measured"
Kind = Annotated[str, Ruled(one_of(EVIDENCE))]


class Confound(TomlTable):
    """Another difference between the things that a source compares or counts, in a sentence."""

    id: Name
    source: Name
    meaning: Name


class Claim(TomlTable):
    """One claim of a source about one quantity; all numbers are in `unit`.

    `source` names its file in data/published, and `where` the place in the source. The quantity is
    judged as a logarithm if `scale` is `ratio`, and unchanged if it is `difference`. `printed` is
    the source's number (NaN: none), `rounding` the unit of its last digit, and `printed_how` says
    how it follows from the printed text; `aggregate` names it in top500.toml. `at_least` and
    `at_most` bound the values that support the claim (infinite: no bound), and `why` says how the
    bounds follow from the source's words. `not_testable` has the reason for each kind of evidence
    that can never decide it. `judged_by` names the quantities that judge it, each by its notebook
    and its name there, such as `40_hpl_scaling/gap_grows`.
    """

    id: Name
    source: Name
    where: Name
    statement: Name
    unit: Name
    scale: Annotated[Literal["ratio", "difference"], must_be("ratio or difference")]
    why: Name
    printed: Limit = math.nan
    rounding: Limit = math.nan
    printed_how: str = ""
    aggregate: str = ""
    at_least: Limit = -math.inf
    at_most: Limit = math.inf
    judged_by: list[Name] = []
    confounds: list[Name] = []
    not_testable: dict[Kind, Name] = {}

    @model_validator(mode="after")
    def _is_range(self) -> Self:
        if not self.at_least <= self.at_most:
            raise ValueError("at_least is more than at_most")
        return self

    @property
    def has_range(self) -> bool:
        """Whether the source's words bound the supporting values."""
        return math.isfinite(self.at_least) or math.isfinite(self.at_most)


class ClaimsFile(TomlTable):
    """data/published/claims.toml."""

    claim: Annotated[list[Claim], Field(min_length=1)]
    confound: list[Confound] = []

    @model_validator(mode="after")
    def _are_named(self) -> Self:
        """Each claim is named once, and its confounds are there."""
        confounds, earlier, wrong = {confound.id for confound in self.confound}, set(), []
        for number, claim in enumerate(self.claim):
            for name in claim.confounds:
                if name not in confounds:
                    words = unknown_key("names a confound: ", name, confounds)
                    wrong.append(fault(("claim", number), None, words))
            if claim.id in earlier:
                wrong.append(fault(("claim", number, "id"), claim.id, "is there twice"))
            earlier.add(claim.id)
        refuse(wrong)
        return self


@dataclass(frozen=True)
class Ledger:
    """Claims in the file's order, and the confounds that affect them."""

    claims: tuple[Claim, ...]
    confounds: tuple[Confound, ...]


def load(source: str = "", file: Path = FILE) -> Ledger:
    """The claims of one source, or of all if it is ""; raises FalloffError if there are none or the
    file is invalid."""
    rows = parse(ClaimsFile, read_toml(file, "claims"), str(file))
    chosen = tuple(claim for claim in rows.claim if source in ("", claim.source))
    if not chosen:
        raise unknown("source", source, {claim.source for claim in rows.claim})
    touching = {name for claim in chosen for name in claim.confounds}
    return Ledger(chosen, tuple(confound for confound in rows.confound if confound.id in touching))
