"""Judge every claim on every available kind of evidence."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

import xarray as xr

from analysis import paths
from analysis.descriptions.ledger import EVIDENCE, Claim, Ledger
from analysis.report.claims.judging import PUBLISHED, ClaimVerdict, judge, judge_printed
from analysis.report.claims.readings import readings
from analysis.statements import notebooks
from analysis.statements.statement import Statement


@dataclass(frozen=True)
class Entry:
    """A claim with one verdict for each available kind of evidence, in the order of EVIDENCE."""

    claim: Claim
    verdicts: tuple[ClaimVerdict, ...]


def evaluate(ledger: Ledger, stated: Mapping[str, Iterable[Statement]]) -> tuple[Entry, ...]:
    """Judge every claim by what the notebooks stated, by the notebook's name. If a kind of evidence
    cannot decide it, the verdict says why.

    If two quantities of a claim have the same kind of evidence, as a user's may, the first is
    judged.
    """
    kinds = {statement.evidence for statement in chain.from_iterable(stated.values())}
    printed, entries = readings(), []
    for claim in ledger.claims:
        verdicts = [judge_printed(claim, printed.get(claim.aggregate or claim.id, {}))]
        by_kind: dict[str, Statement] = {}
        for name in claim.judged_by:
            notebook, _, quantity = name.partition("/")
            for statement in stated.get(notebook, ()):
                if statement.name == quantity:
                    by_kind.setdefault(statement.evidence, statement)
        verdicts += [
            judge(claim, kind, by_kind.get(kind))
            for kind in EVIDENCE
            if kind in kinds and kind != PUBLISHED
        ]
        entries.append(Entry(claim, tuple(verdicts)))
    return tuple(entries)


def stated_on(ledger: Ledger, data: Mapping[str, xr.Dataset]) -> dict[str, tuple[Statement, ...]]:
    """The quantities that judge these claims on datasets by campaign: their notebooks are run in
    this process. One whose data are missing states nothing."""
    names = {name.partition("/")[0] for claim in ledger.claims for name in claim.judged_by}
    stated = {}
    for name in sorted(names):
        with suppress(*notebooks.INSUFFICIENT):
            stated[name] = notebooks.run(paths.NOTEBOOKS / f"{name}.ipynb", data).stated
    return stated
