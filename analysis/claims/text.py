"""The ledger for a terminal: each claim, the values that support it, and its verdicts with what they rest on."""

import math
import shutil
import textwrap
from collections.abc import Sequence

from analysis import published
from analysis.claims.evaluate import NOTHING_OF_IT, RULE, Entry
from analysis.claims.judge import NO_NUMBER, NOT_TESTABLE, Judgement
from analysis.claims.ledger import Claim, Ledger
from analysis.claims.sample import PUBLISHED
from analysis.inference.in_range import SUPPORTED

INDENT = "    "


def table(ledger: Ledger, entries: Sequence[Entry], width: int | None = None) -> str:
    """All claims, source by source, wrapped to `width` columns (the terminal's if None); confounds are numbered."""
    width = width or shutil.get_terminal_size().columns
    notes = {confound.id: number for number, confound in enumerate(ledger.confounds, 1)}
    lines, source = [], ""
    for entry in entries:
        if entry.claim.source != source:
            source = entry.claim.source
            lines += ["", published.sources()[source]["short"]]
        lines += ["", *_claim(entry, notes, width)]
    lines += ["", *_wrapped(RULE, width)]
    if notes:
        lines += ["", "What else differs:"]
    for confound in ledger.confounds:
        lines += _wrapped(f"[{notes[confound.id]}] {confound.meaning}", width, INDENT)
    return "\n".join(lines).lstrip("\n")


def _claim(entry: Entry, notes: dict[str, int], width: int) -> list[str]:
    claim = entry.claim
    marks = "".join(f" [{notes[name]}]" for name in claim.confounds)
    head = f"{claim.id}: {claim.statement}{marks}"
    told = [it for it in entry.judgements if it.reason not in (NOTHING_OF_IT, NO_NUMBER)]
    lines = [_judged(claim, it) for it in told] or [f"{NOT_TESTABLE}: {NOTHING_OF_IT}"]
    supports = [f"supported by {_range(claim)}: {claim.why}"] if claim.has_range else []
    return [
        *_wrapped(head, width),
        *(part for line in [*supports, *lines] for part in _wrapped(line, width, INDENT)),
    ]


def _judged(claim: Claim, it: Judgement) -> str:
    """One verdict in a line: the estimate, the interval that it rests on, how many values, and the reason."""
    parts = [f"{it.evidence}: {it.verdict}"]
    if math.isfinite(it.estimate):
        parts.append(f"{it.estimate:.4g}{_unit(claim)}{_basis(it)}")
    if it.reading:
        parts.append(f"reading: {it.reading}")
    if it.of:
        parts.append(it.of)
    return "; ".join([*parts, *([it.reason] if it.reason else [])])


def _basis(it: Judgement) -> str:
    if it.evidence == PUBLISHED:
        return ""
    low, high = it.interval_90 if it.verdict == SUPPORTED and it.kind != "range" else it.interval_95
    count = f"{it.n} {it.n_of}{'' if it.n == 1 else 's'}"
    if math.isnan(low) or low == high:  # one value, or a count that has no scatter
        return f" ({count})"
    level = "range" if it.kind == "range" else f"{'90' if it.verdict == SUPPORTED else '95'} % {it.kind} interval"
    return f" ({level} {low:.4g} to {high:.4g}, {count})"


def _range(claim: Claim) -> str:
    low, high = (f"{end:.15g}" for end in (claim.at_least, claim.at_most))
    if math.isinf(claim.at_most):
        return f"at least {low}{_unit(claim)}"
    if math.isinf(claim.at_least):
        return f"at most {high}{_unit(claim)}"
    return (low if low == high else f"{low} to {high}") + _unit(claim)


def _unit(claim: Claim) -> str:
    return "" if claim.unit == "1" else f" {claim.unit}"


def _wrapped(line: str, width: int, indent: str = "") -> list[str]:
    indents = {"initial_indent": indent, "subsequent_indent": indent + INDENT}
    return textwrap.wrap(line, width, **indents, break_on_hyphens=False)
