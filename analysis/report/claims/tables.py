"""Show the judged claims: in a terminal the whole ledger; in the report a finding, the verdicts by
source and the ledger."""

import math
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence

from analysis.dataset import published
from analysis.descriptions.ledger import Claim, Confound, Ledger
from analysis.quoting import as_written, quoted
from analysis.report.claims.evaluate import Entry
from analysis.report.claims.judging import (
    CONSISTENT,
    INCONSISTENT,
    NO_CAMPAIGN,
    NO_NUMBER,
    PUBLISHED,
    RULE,
    ClaimVerdict,
)
from analysis.statements.exhibit import Table
from analysis.statistics.judgement import CONTRADICTED, SUPPORTED, UNDECIDED
from analysis.wording import MINUS, UNKNOWN, counted, listed, of_sessions, paragraphs

OF_RUNS = (SUPPORTED, CONTRADICTED, UNDECIDED)
OF_PRINTED = (CONSISTENT, INCONSISTENT)
INDENT = "    "
LEDGER = "claims-ledger"  # the label of its table
COLUMNS = ("Source", "Name", "Claim", "Supported by", "Verdicts", "What else differs")
DIGITS = 4  # significant digits; some ranges are too narrow for three
EXACT = 15  # significant digits of a number that somebody wrote down
# Units for writing a number, with their size in the claim's unit, the largest first.
WRITTEN_IN = {"s": {"s": 1.0, "ms": 1e-3, "µs": 1e-6}, "B/s": {"MB/s": 1e6}}


def text(ledger: Ledger, entries: Iterable[Entry], width: int | None = None) -> str:
    """The ledger for a terminal, wrapped to `width` columns (the terminal's if None)."""
    width = width or shutil.get_terminal_size().columns
    lines: list[str] = []
    for source, name, statement, *cells in whole(entries, ledger.confounds).rows:
        lines += ["", f"{name} ({source}): {statement}"]
        lines += [f"{INDENT}{head}: {cell}" for head, cell in zip(COLUMNS[3:], cells) if cell]
    return "\n".join(_wrapped(as_written(line), width) for line in [*lines[1:], "", RULE])


def _wrapped(line: str, width: int) -> str:
    """A line, wrapped so that continuation lines have one more level of indentation."""
    indent = INDENT * line.startswith(INDENT)
    indents = {"initial_indent": indent, "subsequent_indent": indent + INDENT}
    return textwrap.fill(line.strip(), width, break_on_hyphens=False, **indents)


def finding(entries: Sequence[Entry]) -> str:
    """How many claims runs can judge, and on which of them kinds of evidence disagree (Markdown)."""
    judged = [sum(v.answer in OF_RUNS for v in entry.verdicts) for entry in entries]
    words = (
        f"**Runs can judge {len(judged) - judged.count(0)} of {counted(len(judged), 'claim')}.**"
    )
    opposite = list(filter(None, map(_disagreement, entries)))
    several = counted(sum(count > 1 for count in judged), "claim")
    head = f"More than one kind of run can judge {several}. On {len(opposite)} of them the verdicts are opposite."
    return paragraphs([words], [head, *opposite])


def _disagreement(entry: Entry) -> str:
    """A claim that one kind of evidence supports and another contradicts, in words; empty for other
    claims."""
    verbs = {SUPPORTED: "support", CONTRADICTED: "contradict"}
    decided = [verdict for verdict in entry.verdicts if verdict.answer in verbs]
    if len({verdict.answer for verdict in decided}) < 2:
        return ""
    unit, statement = entry.claim.unit, quoted(entry.claim.statement)
    runs = [
        f"{verdict.evidence} runs {verbs[verdict.answer]} it ({amount(verdict.estimate, unit)}, {quoted(verdict.of)})"
        for verdict in decided
    ]
    return f"{_short(entry.claim.source)}: “{statement}” But {listed(runs)}."


def verdicts(entries: Sequence[Entry]) -> Table:
    """The number of each source's claims with each verdict, on each kind of evidence."""
    kinds = _kinds(entries)

    def row(name: str, of_source: Sequence[Entry]) -> tuple[str, ...]:
        runs = [_slashed(_counts(of_source, kind), OF_RUNS) for kind in kinds]
        return name, str(len(of_source)), *runs, _slashed(_counts(of_source, PUBLISHED), OF_PRINTED)

    rows = [row(_short(source), of_source) for source, of_source in _by_source(entries).items()]
    rows.append(row("**All**", entries))
    caption = (
        "Verdicts by source. Of runs: claims supported / contradicted / undecided. Of printed numbers: claims whose "
        "numbers agree / disagree with others of the source. A claim may be judged on several kinds of evidence."
    )
    of_runs = (f"{kind.capitalize()} runs" for kind in kinds)
    columns = ("Source", "Claims", *of_runs, "Printed numbers")
    return Table("claims", columns, "lr" + "r" * len(kinds) + "r", rows, caption)


def whole(entries: Iterable[Entry], confounds: Iterable[Confound]) -> Table:
    """The ledger: a row for each claim, with what else differs where it compares or counts."""
    meanings = {confound.id: quoted(confound.meaning) for confound in confounds}
    rows = [
        (
            _short(entry.claim.source),
            quoted(entry.claim.id),
            quoted(entry.claim.statement),
            f"{supporting(entry.claim)}: {quoted(entry.claim.why)}"
            if entry.claim.has_range
            else "",
            _verdicts(entry),
            " ".join(meanings[name] for name in entry.claim.confounds),
        )
        for entry in entries
    ]
    caption = "The ledger: every claim, the values that support it, and its verdicts."
    widths = (8, 10, 20, 16, 28, 18)
    return Table(LEDGER, COLUMNS, "llllll", rows, caption, widths=widths, in_print=False)


def amount(value: float, unit: str, digits: int = DIGITS) -> str:
    """A number with at most `digits` significant digits, in a unit that makes it easy to read."""
    sizes = WRITTEN_IN.get(unit, {"" if unit == "1" else unit: 1.0})
    name = next((name for name, size in sizes.items() if abs(value) >= size), list(sizes)[-1])
    rounded = float(f"{value / sizes[name]:.{digits}g}")
    return f"{rounded:.15g} {name}".strip().replace("-", MINUS)


def between(low: float, high: float, unit: str, digits: int = DIGITS) -> str:
    """The two ends of a range, with the unit once if both have the same."""
    first, last = amount(low, unit, digits), amount(high, unit, digits)
    number, _, name = first.partition(" ")
    return f"{number if last.endswith(f' {name}') else first} to {last}"


def estimate(claim: Claim, verdict: ClaimVerdict) -> str:
    """The estimate with the interval behind its verdict and the number of values; empty if it is
    unknown."""
    if not math.isfinite(verdict.estimate):
        return ""
    value = amount(verdict.estimate, claim.unit)
    if verdict.evidence == PUBLISHED:
        return value
    n = counted(verdict.n, verdict.n_of) + of_sessions(verdict.sessions)
    ends = verdict.interval
    if math.isnan(ends[0]) or ends[0] == ends[1]:  # one value, or a count without scatter
        return f"{value} ({n})"
    return f"{value} ({verdict.kind} {between(*ends, claim.unit)}, {n})"


def supporting(claim: Claim) -> str:
    """The values that support a claim; empty if its words do not bound any."""
    if not claim.has_range:
        return ""
    if math.isinf(claim.at_most):
        return f"at least {amount(claim.at_least, claim.unit, EXACT)}"
    if math.isinf(claim.at_least):
        return f"at most {amount(claim.at_most, claim.unit, EXACT)}"
    if claim.at_least == claim.at_most:
        return amount(claim.at_least, claim.unit, EXACT)
    return between(claim.at_least, claim.at_most, claim.unit, EXACT)


def _verdicts(entry: Entry) -> str:
    """Every verdict in a sentence; kinds of evidence with the same verdict share one."""
    kinds: dict[str, list[str]] = {}
    for verdict in _speaking(entry):
        words = quoted(_verdict(entry.claim, verdict))
        kinds.setdefault(words, []).append(verdict.evidence)
    sentences = [f"{listed(names).capitalize()}: {words}." for words, names in kinds.items()]
    return " ".join(sentences) or f"{NO_CAMPAIGN.capitalize()}."


def _verdict(claim: Claim, verdict: ClaimVerdict) -> str:
    """The verdict with what it rests on, or the reason why there is none."""
    parts = (verdict.answer, estimate(claim, verdict), verdict.reading, verdict.of, verdict.reason)
    return "; ".join(filter(None, parts))


def _speaking(entry: Entry) -> list[ClaimVerdict]:
    """The verdicts, and the reasons why there can be none."""
    return [verdict for verdict in entry.verdicts if verdict.reason not in (NO_CAMPAIGN, NO_NUMBER)]


def _kinds(entries: Sequence[Entry]) -> list[str]:
    """The kinds of evidence other than the published numbers."""
    return [verdict.evidence for verdict in entries[0].verdicts if verdict.evidence != PUBLISHED]


def _by_source(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    sources: dict[str, list[Entry]] = {}
    for entry in entries:
        sources.setdefault(entry.claim.source, []).append(entry)
    return sources


def _counts(entries: Iterable[Entry], kind: str) -> Counter:
    """The number of claims with each verdict on one kind of evidence."""
    verdicts = (verdict for entry in entries for verdict in entry.verdicts)
    return Counter(verdict.answer for verdict in verdicts if verdict.evidence == kind)


def _slashed(counts: Counter, of: Sequence[str]) -> str:
    numbers = [counts[verdict] for verdict in of]
    return " / ".join(map(str, numbers)) if any(numbers) else UNKNOWN


def _short(source: str) -> str:
    return quoted(published.sources()[source]["short"])
