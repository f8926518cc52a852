"""The ledger for a terminal: each claim, the values that support it, and its verdicts with what they rest on."""

import math
import shutil
import textwrap
from collections.abc import Mapping, Sequence

from analysis import published
from analysis.claims.evaluate import NOTHING_OF_IT, RULE, Entry
from analysis.claims.judge import NO_NUMBER, NOT_TESTABLE, Judgement
from analysis.claims.ledger import Claim, Ledger
from analysis.claims.sample import PUBLISHED
from analysis.statistics.judgement import SUPPORTED
from analysis.wording import MINUS, counted

INDENT = "    "
DIGITS = 4  # significant ones: some ranges are narrower than three could show
EXACT = 15  # significant digits of what somebody wrote down
# Units in which a number is told, with their size in the claim's unit, the largest first.
TOLD_IN = {"s": {"s": 1.0, "ms": 1e-3, "µs": 1e-6}, "B/s": {"MB/s": 1e6}}


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


def told(entry: Entry) -> list[Judgement]:
    """The judgements that say something: a verdict, or why there can be none."""
    silent = (NOTHING_OF_IT, NO_NUMBER)
    return [judgement for judgement in entry.judgements if judgement.reason not in silent]


def amount(value: float, unit: str, digits: int = DIGITS) -> str:
    """A number with at most so many significant digits, in a unit in which it is a plain number."""
    sizes = TOLD_IN.get(unit, {"" if unit == "1" else unit: 1.0})
    fitting = (name for name, size in sizes.items() if abs(value) >= size)
    name = next(fitting, list(sizes)[-1])
    rounded = float(f"{value / sizes[name]:.{digits}g}")
    return f"{rounded:.15g} {name}".strip().replace("-", MINUS)


def between(low: float, high: float, unit: str, digits: int = DIGITS) -> str:
    """Two ends, with their unit once where both are told in the same."""
    first, last = amount(low, unit, digits), amount(high, unit, digits)
    number, _, name = first.partition(" ")
    return f"{number if last.endswith(f' {name}') else first} to {last}"


def estimate(claim: Claim, judgement: Judgement) -> str:
    """The estimate with the interval that its verdict rests on and how many values; nothing where it is not known."""
    if not math.isfinite(judgement.estimate):
        return ""
    value = amount(judgement.estimate, claim.unit)
    if judgement.evidence == PUBLISHED:
        return value
    ends, name = judgement.interval_95, f"95 % {judgement.kind} interval"
    if judgement.kind == "range":
        name = "range"
    elif judgement.verdict == SUPPORTED:
        ends, name = judgement.interval_90, f"90 % {judgement.kind} interval"
    n = counted(judgement.n, judgement.n_of)
    if math.isnan(ends[0]) or ends[0] == ends[1]:  # one value, or a count that has no scatter
        return f"{value} ({n})"
    return f"{value} ({name} {between(*ends, claim.unit)}, {n})"


def supporting(claim: Claim) -> str:
    """The values that support a claim; nothing where its words bound none."""
    if not claim.has_range:
        return ""
    if math.isinf(claim.at_most):
        return f"at least {amount(claim.at_least, claim.unit, EXACT)}"
    if math.isinf(claim.at_least):
        return f"at most {amount(claim.at_most, claim.unit, EXACT)}"
    if claim.at_least == claim.at_most:
        return amount(claim.at_least, claim.unit, EXACT)
    return between(claim.at_least, claim.at_most, claim.unit, EXACT)


def _claim(entry: Entry, notes: Mapping[str, int], width: int) -> list[str]:
    claim = entry.claim
    marks = "".join(f" [{notes[name]}]" for name in claim.confounds)
    judged = [_judged(claim, judgement) for judgement in told(entry)]
    supports = [f"supported by {supporting(claim)}: {claim.why}"] if claim.has_range else []
    lines = [*supports, *(judged or [f"{NOT_TESTABLE}: {NOTHING_OF_IT}"])]
    head = _wrapped(f"{claim.id}: {claim.statement}{marks}", width)
    return [*head, *(part for line in lines for part in _wrapped(line, width, INDENT))]


def _judged(claim: Claim, judgement: Judgement) -> str:
    """One verdict in a line: the estimate, the interval that it rests on, how many values, and the reason."""
    reading = f"reading: {judgement.reading}" if judgement.reading else ""
    parts = [
        f"{judgement.evidence}: {judgement.verdict}",
        estimate(claim, judgement),
        reading,
        judgement.of,
        judgement.reason,
    ]
    return "; ".join(filter(None, parts))


def _wrapped(line: str, width: int, indent: str = "") -> list[str]:
    indents = {"initial_indent": indent, "subsequent_indent": indent + INDENT}
    return textwrap.wrap(line, width, **indents, break_on_hyphens=False)
