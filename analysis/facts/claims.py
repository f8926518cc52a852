"""What prose may quote of the sources' claims: what each says, and what each kind of evidence says to it."""

from collections.abc import Iterable, Mapping, Sequence

import xarray as xr

from analysis import published
from analysis.claims.evaluate import NOTHING_OF_IT, Entry
from analysis.claims.judge import NO_NUMBER, NOT_TESTABLE, VERDICTS, Judgement
from analysis.claims.ledger import Claim, Ledger
from analysis.facts.plain import known, pair
from analysis.inference.in_range import SUPPORTED


def collect(ledger: Ledger, entries: Sequence[Entry], datasets: Mapping[str, xr.Dataset]) -> dict:
    """All facts; claims and confounds are numbered in the ledger's order. Numbers are in each claim's unit.

    `counts` has for each kind of evidence how many claims have each verdict; kinds are never counted together.
    `caveats` are those of the `datasets` that a judgement rests on.
    """
    used = {it.campaign for entry in entries for it in entry.judgements}
    notes = {confound.id: number for number, confound in enumerate(ledger.confounds, 1)}
    rows = [_row(number, entry, notes) for number, entry in enumerate(entries, 1)]
    sources = published.sources()
    return {
        "claims": len(rows),
        "verdicts": VERDICTS,
        "counts": _counts(entries),
        "caveats": _caveats(dataset for dataset in datasets.values() if dataset.attrs["campaign"] in used),
        "sources": [
            _source(sources[name]["short"], [row for row in rows if row["source"] == name])
            for name in dict.fromkeys(entry.claim.source for entry in entries)
        ],
        "notes": [
            {
                "number": notes[confound.id],
                "source": sources[confound.source]["short"],
                "meaning": confound.meaning,
                "claims": [row["number"] for row in rows if notes[confound.id] in row["notes"]],
            }
            for confound in ledger.confounds
        ],
    }


def _source(short: str, rows: list[dict]) -> dict:
    """A source's claims, and whether any of them is `tested` by more than its printed numbers."""
    on_runs = [it for row in rows for it in row["judged"] if it["evidence"] != "published"]
    return {"short": short, "claims": rows, "tested": any(it["verdict"] != NOT_TESTABLE for it in on_runs)}


def _caveats(datasets: Iterable[xr.Dataset]) -> list[str]:
    return list(dict.fromkeys(caveat for dataset in datasets if (caveat := dataset.attrs.get("caveat"))))


def _counts(entries: Sequence[Entry]) -> list[dict]:
    """For each kind of evidence, how many of the claims have which verdict."""
    kinds = [judgement.evidence for judgement in entries[0].judgements] if entries else []
    found = [[entry.judgements[number].verdict for entry in entries] for number in range(len(kinds))]
    return [
        {
            "evidence": kind,
            "judged": sum(verdict != NOT_TESTABLE for verdict in verdicts),
            "of": {verdict: verdicts.count(verdict) for verdict in VERDICTS},
        }
        for kind, verdicts in zip(kinds, found)
    ]


def _row(number: int, entry: Entry, notes: dict[str, int]) -> dict:
    claim = entry.claim
    return {
        "number": number,
        "id": claim.id,
        "source": claim.source,
        "where": claim.where,
        "statement": claim.statement,
        "unit": "" if claim.unit == "1" else claim.unit,
        "printed": known(claim.printed),
        "at_least": known(claim.at_least),
        "at_most": known(claim.at_most),
        "notes": sorted(notes[name] for name in claim.confounds),
        "judged": [_judged(claim, it) for it in entry.judgements if it.reason not in (NOTHING_OF_IT, NO_NUMBER)],
    }


def _judged(claim: Claim, it: Judgement) -> dict:
    """A judgement; its interval is what the verdict rests on, of `level` [1], None where it is a range of runs."""
    level = None if it.kind in ("range", "") else 0.90 if it.verdict == SUPPORTED else 0.95
    return {
        "evidence": it.evidence,
        "verdict": it.verdict,
        "estimate": known(it.estimate),
        "interval": pair(*(it.interval_90 if level == 0.90 else it.interval_95)),
        "level": level,
        "kind": it.kind,
        "n": it.n,
        "n_of": it.n_of,
        "reason": it.reason,
        "reading": it.reading,
    }
