"""Show the judged claims: in a terminal the whole ledger; in the report a finding, the verdicts by
source and the ledger."""

import math
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from analysis import published
from analysis.claims.evaluate import Entry
from analysis.claims.judging import (
    CONSISTENT,
    INCONSISTENT,
    NO_CAMPAIGN,
    NO_NUMBER,
    NOT_TESTABLE,
    PUBLISHED,
    RULE,
    ClaimVerdict,
)
from analysis.claims.ledger import Claim, Confound, Ledger
from analysis.exhibit import Table
from analysis.quoting import quoted
from analysis.statistics.judgement import CONTRADICTED, SUPPORTED, UNDECIDED
from analysis.wording import MINUS, UNKNOWN, counted, listed, of_sessions, paragraphs

OF_RUNS = (SUPPORTED, CONTRADICTED, UNDECIDED)
OF_PRINTED = (CONSISTENT, INCONSISTENT)
INDENT = "    "
DIGITS = 4  # significant digits; some ranges are too narrow for three
EXACT = 15  # significant digits of a number that somebody wrote down
# Units for writing a number, with their size in the claim's unit, the largest first.
WRITTEN_IN = {"s": {"s": 1.0, "ms": 1e-3, "µs": 1e-6}, "B/s": {"MB/s": 1e6}}


def text(ledger: Ledger, entries: Iterable[Entry], width: int | None = None) -> str:
    """All claims for a terminal, source by source, wrapped to `width` columns (the terminal's if None)."""
    width = width or shutil.get_terminal_size().columns
    notes, lines = _notes(ledger.confounds), []
    for source, of_source in _by_source(entries).items():
        lines += ["", published.sources()[source]["short"]]
        for entry in of_source:
            claim = entry.claim
            marks = "".join(f" [{notes[name]}]" for name in claim.confounds)
            lines += ["", f"{claim.id}: {claim.statement}{marks}"]
            if claim.has_range:
                lines.append(f"{INDENT}supported by {supporting(claim)}: {claim.why}")
            verdicts = [
                f"{verdict.evidence}: {_verdict(claim, verdict)}" for verdict in _speaking(entry)
            ]
            lines += [INDENT + line for line in verdicts or [f"{NOT_TESTABLE}: {NO_CAMPAIGN}"]]
    lines += ["", RULE]
    lines += ["", "What else differs:"] if notes else []
    lines += [f"{INDENT}[{notes[confound.id]}] {confound.meaning}" for confound in ledger.confounds]
    return "\n".join(_wrapped(line, width) for line in lines[1:])


def _wrapped(line: str, width: int) -> str:
    """A line, wrapped so that continuation lines have one more level of indentation."""
    indent = INDENT * line.startswith(INDENT)
    indents = {"initial_indent": indent, "subsequent_indent": indent + INDENT}
    return textwrap.fill(line.strip(), width, break_on_hyphens=False, **indents)


def finding(entries: Sequence[Entry]) -> str:
    """How many claims each kind of evidence can judge, and its verdicts on them, in plain English
    (Markdown)."""
    counts = {kind: _counts(entries, kind) for kind in _kinds(entries)}
    of_runs = [
        f"{kind} runs can judge {sum(count[verdict] for verdict in OF_RUNS)}: they support {count[SUPPORTED]}, contradict "
        f"{count[CONTRADICTED]} and leave {count[UNDECIDED]} undecided"
        for kind, count in counts.items()
        if any(count[verdict] for verdict in OF_RUNS)
    ]
    first, *others = of_runs or ["no run can judge any"]
    words = [f"**Of {counted(len(entries), 'claim')}, {first}.**"]
    words += [f"{other.capitalize()}." for other in others]
    judged = [sum(v.answer in OF_RUNS for v in entry.verdicts) for entry in entries]
    if of_runs and 0 in judged:
        words.append(f"No run can judge the other {judged.count(0)}.")
    opposite = list(filter(None, map(_disagreement, entries)))
    several = counted(sum(count > 1 for count in judged), "claim")
    head = f"More than one kind of run can judge {several}. On {len(opposite)} of them the verdicts are opposite."
    agreeing, not_agreeing = (_counts(entries, PUBLISHED)[verdict] for verdict in OF_PRINTED)
    checked = counted(agreeing + not_agreeing, "claim")
    of_printed = f"The sources' own numbers can check {checked} and agree with {agreeing}."
    return paragraphs(words, [head, *opposite], [of_printed])


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


def contradicted(entries: Sequence[Entry]) -> Table:
    """The claims that runs contradict: the values that would support each and the values found, a
    row each."""
    rows = []
    for entry in entries:
        against = [verdict for verdict in entry.verdicts if verdict.answer == CONTRADICTED]
        estimates = [
            f"{amount(verdict.estimate, entry.claim.unit)} {verdict.evidence}: {verdict.of}"
            for verdict in against
        ]
        if estimates:
            source, statement = _short(entry.claim.source), quoted(entry.claim.statement)
            rows.append((source, statement, supporting(entry.claim), listed(estimates)))
    columns = ("Source", "Claim", "Range for it", "Found")
    caption = "The claims that runs contradict. Their intervals are in the supplement."
    return Table("claims-contradicted", columns, "llll", rows, caption, widths=(12, 42, 14, 34))


def whole(entries: Sequence[Entry], confounds: Sequence[Confound]) -> Iterator[Table]:
    """The ledger: for each source a table of all claims, and one of the confounds in their
    comparisons."""
    notes = _notes(confounds)
    for source, of_source in _by_source(entries).items():
        rows = []
        for entry in of_source:
            claim = entry.claim
            marks = ", ".join(notes[name] for name in claim.confounds)
            statement = quoted(claim.statement) + (f" (see {marks})" if marks else "")
            rows.append((statement, supporting(claim) or UNKNOWN, _verdicts(entry)))
        columns = ("Claim", "Range for it", "Verdicts")
        caption = f"The claims of {_short(source)}: the values that support each, and its verdicts."
        label = f"claims-{source.replace('_', '-')}"
        yield Table(label, columns, "lll", rows, caption, widths=(32, 14, 54), long=True)
    rows = [
        (notes[confound.id], quoted(confound.meaning), _short(confound.source))
        for confound in confounds
    ]
    if rows:
        columns = ("See", "What else differs", "Source")
        caption = "What else differs where a claim compares or counts."
        widths = (6, 74, 20)
        yield Table("claims-notes", columns, "rll", rows, caption, widths=widths, long=True)


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


def _notes(confounds: Iterable[Confound]) -> dict[str, str]:
    """The number of each confound's note."""
    return {confound.id: str(number) for number, confound in enumerate(confounds, 1)}


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
