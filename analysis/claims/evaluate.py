"""Judge every claim on every available kind of evidence."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import xarray as xr

from analysis import notebooks, paths
from analysis.claims.judging import PUBLISHED, Verdict, judge, judge_printed
from analysis.claims.ledger import EVIDENCE, Claim, Ledger
from analysis.claims.readings import readings
from analysis.statements import Statement


@dataclass(frozen=True)
class Entry:
    """A claim with one verdict for each available kind of evidence, in the order of EVIDENCE."""

    claim: Claim
    verdicts: tuple[Verdict, ...]


def evaluate(ledger: Ledger, stated: Mapping[str, Iterable[Statement]]) -> tuple[Entry, ...]:
    """Judge every claim by what the notebooks stated, by the notebook's name. If a kind of evidence cannot decide it, the
    verdict says why.

    If two statements on a claim have the same kind of evidence, as a user's may, the first is judged.
    """
    kinds = {statement.evidence for statements in stated.values() for statement in statements}
    printed, entries = readings(), []
    for claim in ledger.claims:
        judging: dict[str, Statement] = {}
        for path in claim.judged_by:
            notebook, _, name = path.partition("/")
            for statement in stated.get(notebook, ()):
                if statement.name == name:
                    judging.setdefault(statement.evidence, statement)
        verdicts = [judge_printed(claim, printed.get(claim.aggregate or claim.id, {}))]
        verdicts += [
            judge(claim, kind, judging.get(kind))
            for kind in EVIDENCE
            if kind in kinds and kind != PUBLISHED
        ]
        entries.append(Entry(claim, tuple(verdicts)))
    return tuple(entries)


def stated_on(ledger: Ledger, data: Mapping[str, xr.Dataset]) -> dict[str, tuple[Statement, ...]]:
    """The statements that judge these claims on datasets by campaign: their notebooks are run in this process. One whose
    data are missing states nothing."""
    names = {name.partition("/")[0] for claim in ledger.claims for name in claim.judged_by}
    stated = {}
    for name in sorted(names):
        with suppress(*notebooks.INSUFFICIENT):
            stated[name] = notebooks.run(paths.NOTEBOOKS / f"{name}.ipynb", data).quantities
    return stated
