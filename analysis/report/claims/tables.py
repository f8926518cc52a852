"""Show the judged claims: in a terminal the whole ledger; in the report a finding, the verdicts by
source and the ledger."""

import math
import shutil
import textwrap
from collections.abc import Iterable, Sequence

from analysis.dataset import published
from analysis.descriptions.ledger import Claim, Confound, Ledger
from analysis.quoting import as_written, quoted
from analysis.report.claims.evaluate import (
    CONSISTENT,
    INCONSISTENT,
    NO_CAMPAIGN,
    NO_NUMBER,
    PUBLISHED,
    RULE,
    ClaimVerdict,
    Entry,
)
from analysis.statements.exhibit import Table
from analysis.statistics.judgement import CONTRADICTED, SUPPORTED, UNDECIDED
from analysis.wording import UNKNOWN, counted, exact, listed, of_sessions, readable

OF_RUNS = (SUPPORTED, CONTRADICTED, UNDECIDED)
OF_PRINTED = (CONSISTENT, INCONSISTENT)
INDENT = "    "
LEDGER = "claims-ledger"  # the label of its table
COLUMNS = ("Source", "Name", "Claim", "Supported by", "Verdicts", "What else differs")
DIGITS = 4  # significant digits; some ranges are too narrow for three
EXACT = 15  # significant digits of a number that somebody wrote down


def text(ledger: Ledger, entries: Iterable[Entry]) -> str:
    """The ledger for a terminal, wrapped to its width; continuation lines are indented further."""
    width, lines = shutil.get_terminal_size().columns, []
    for source, name, statement, *cells in whole(entries, ledger.confounds).rows:
        lines += ["", f"{name} ({source}): {statement}"]
        lines += [f"{INDENT}{head}: {cell}" for head, cell in zip(COLUMNS[3:], cells) if cell]
    return "\n".join(
        textwrap.fill(
            as_written(line),
            width,
            subsequent_indent=INDENT * (1 + line.startswith(INDENT)),
            break_on_hyphens=False,
        )
        for line in [*lines[1:], "", RULE]
    )


def finding(entries: Sequence[Entry]) -> str:
    """How many claims runs can judge, and on which of them kinds of evidence disagree
    (Markdown)."""
    judged = [sum(v.answer in OF_RUNS for v in entry.verdicts) for entry in entries]
    claims = counted(len(judged), "claim")
    opposite = list(filter(None, map(_disagreement, entries)))
    several = (
        f"More than one kind of run can judge {counted(sum(n > 1 for n in judged), 'claim')}. "
        f"On {len(opposite)} of them the verdicts are opposite."
    )
    head = f"**Runs can judge {len(judged) - judged.count(0)} of {claims}.**"
    return f"{head}\n\n{' '.join([several, *opposite])}"


def _disagreement(entry: Entry) -> str:
    """A claim that one kind of evidence supports and another contradicts, in words; empty for other
    claims."""
    verbs = {SUPPORTED: "support", CONTRADICTED: "contradict"}
    decided = [verdict for verdict in entry.verdicts if verdict.answer in verbs]
    if len({verdict.answer for verdict in decided}) < 2:
        return ""
    runs = [
        f"{verdict.evidence} runs {verbs[verdict.answer]} it "
        f"({amount(verdict.estimate, entry.claim.unit)}, {quoted(verdict.of)})"
        for verdict in decided
    ]
    return f"{_short(entry)}: “{quoted(entry.claim.statement)}” But {listed(runs)}."


def verdicts(entries: Sequence[Entry]) -> Table:
    """The number of each source's claims with each verdict, on each kind of evidence."""
    kinds = [v.evidence for v in entries[0].verdicts if v.evidence != PUBLISHED]

    def row(name: str, of_source: Sequence[Entry]) -> list[str]:
        cells = [name, str(len(of_source))]
        for kind, answers in (*((kind, OF_RUNS) for kind in kinds), (PUBLISHED, OF_PRINTED)):
            made = [v.answer for it in of_source for v in it.verdicts if v.evidence == kind]
            numbers = [made.count(answer) for answer in answers]
            cells.append(" / ".join(map(str, numbers)) if any(numbers) else UNKNOWN)
        return cells

    sources = dict.fromkeys(map(_short, entries))
    rows = [row(source, [it for it in entries if _short(it) == source]) for source in sources]
    caption = (
        "Verdicts by source. Of runs: claims supported / contradicted / undecided. Of printed "
        "numbers: claims whose numbers agree / disagree with others of the source. A claim may be "
        "judged on several kinds of evidence."
    )
    of_runs = (f"{kind.capitalize()} runs" for kind in kinds)
    columns = ("Source", "Claims", *of_runs, "Printed numbers")
    align = "lrr" + "r" * len(kinds)
    return Table("claims", columns, align, [*rows, row("**All**", entries)], caption)


def whole(entries: Iterable[Entry], confounds: Iterable[Confound]) -> Table:
    """The ledger: a row for each claim, with what else differs where it compares or counts."""
    meanings = {confound.id: quoted(confound.meaning) for confound in confounds}
    rows = [
        (
            _short(entry),
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
    return Table(LEDGER, COLUMNS, "llllll", rows, caption, widths=widths, box="screen")


def amount(value: float, unit: str, digits: int = DIGITS) -> str:
    """A number with at most `digits` significant digits, in a unit that makes it easy to read."""
    factor, name = readable(abs(value), "" if unit == "1" else unit)
    return f"{exact(float(f'{factor * value:.{digits}g}'))} {name}".strip()


def between(low: float, high: float, unit: str, digits: int = DIGITS) -> str:
    """The two ends of a range, with the unit once if both have the same."""
    last = amount(high, unit, digits)
    _, space, name = last.partition(" ")
    return f"{amount(low, unit, digits).removesuffix(space + name)} to {last}"


def estimate(claim: Claim, verdict: ClaimVerdict) -> str:
    """The estimate with the interval behind its verdict and the number of values; empty if it is
    unknown."""
    if not math.isfinite(verdict.estimate):
        return ""
    value, (low, high) = amount(verdict.estimate, claim.unit), verdict.interval
    if verdict.evidence == PUBLISHED:
        return value
    n = counted(verdict.n, verdict.n_of) + of_sessions(verdict.sessions)
    if low < high:  # else it is one value, or a count without scatter
        n = f"{verdict.kind} {between(low, high, claim.unit)}, {n}"
    return f"{value} ({n})"


def supporting(claim: Claim) -> str:
    """The values that support a claim; empty if its words do not bound any."""
    low, high = claim.at_least, claim.at_most
    if not claim.has_range:
        return ""
    if math.isinf(high):
        return f"at least {amount(low, claim.unit, EXACT)}"
    if math.isinf(low):
        return f"at most {amount(high, claim.unit, EXACT)}"
    if low == high:
        return amount(low, claim.unit, EXACT)
    return between(low, high, claim.unit, EXACT)


def _verdicts(entry: Entry) -> str:
    """Every verdict in a sentence, with what it rests on, or the reason why there is none; kinds of
    evidence with the same verdict share one."""
    kinds: dict[str, list[str]] = {}
    for it in entry.verdicts:
        if it.reason not in (NO_CAMPAIGN, NO_NUMBER):
            parts = (it.answer, estimate(entry.claim, it), it.reading, it.of, it.reason)
            words = quoted("; ".join(filter(None, parts)))
            kinds.setdefault(words, []).append(it.evidence)
    sentences = [f"{listed(names).capitalize()}: {words}." for words, names in kinds.items()]
    return " ".join(sentences) or f"{NO_CAMPAIGN.capitalize()}."


def _short(entry: Entry) -> str:
    """The short name of a claim's source."""
    return quoted(published.sources()[entry.claim.source]["short"])
