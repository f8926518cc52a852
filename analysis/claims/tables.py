"""The claims in the report: what became of them in words, verdicts by source, and the whole ledger."""

from collections import Counter
from collections.abc import Iterator, Sequence

from analysis import published
from analysis.claims.evaluate import Entry
from analysis.claims.judge import CONSISTENT, INCONSISTENT, NOT_TESTABLE, PRINTED, Judgement
from analysis.claims.ledger import Claim, Confound
from analysis.claims.sample import PUBLISHED
from analysis.claims.text import amount, estimate, supporting, told
from analysis.exhibit import Table
from analysis.statistics.judgement import CONTRADICTED, SUPPORTED, UNDECIDED
from analysis.wording import UNKNOWN, counted, listed, plain

OF_RUNS = (SUPPORTED, CONTRADICTED, UNDECIDED)
OF_PRINTED = (CONSISTENT, INCONSISTENT)


def finding(entries: Sequence[Entry]) -> str:
    """How many claims each kind of evidence can judge, and what it says to them, in plain English (Markdown)."""
    kinds = [kind for kind in kinds_of_runs(entries) if _judged(entries, kind)]
    first, *others = [_of_runs(entries, kind) for kind in kinds] or ["no run can judge any"]
    unjudged = [entry for entry in entries if not any(_is_judged(entry, kind) for kind in kinds)]
    sentences = [
        f"**Of {counted(len(entries), 'claim')}, {first}.**",
        *(f"{other.capitalize()}." for other in others),
        f"No run can judge the other {len(unjudged)}." if kinds and unjudged else "",
    ]
    parts = [" ".join(filter(None, sentences)), _disagreement(entries), _inconsistency(entries)]
    return "\n\n".join(filter(None, parts))


def kinds_of_runs(entries: Sequence[Entry]) -> list[str]:
    """The kinds of evidence beside the published numbers."""
    kinds = [judgement.evidence for judgement in entries[0].judgements] if entries else []
    return [kind for kind in kinds if kind != PUBLISHED]


def verdicts(entries: Sequence[Entry]) -> Table:
    """How many of each source's claims have which verdict, on each kind of evidence."""
    kinds = kinds_of_runs(entries)
    sources = list(dict.fromkeys(entry.claim.source for entry in entries))
    rows = [_source_row(_short(source), _of_source(entries, source), kinds) for source in sources]
    rows.append(_source_row("**All**", entries, kinds))
    caption = (
        "Verdicts by source. Of runs: claims supported / contradicted / undecided. Of printed numbers: claims whose "
        "numbers agree / disagree with others of the source. A claim may be judged on several kinds of evidence."
    )
    columns = (
        "Source",
        "Claims",
        *(f"{kind.capitalize()} runs" for kind in kinds),
        "Printed numbers",
    )
    return Table("claims", columns, "lr" + "r" * len(kinds) + "r", rows, caption)


def whole(entries: Sequence[Entry], confounds: Sequence[Confound]) -> Iterator[Table]:
    """The ledger: a table of all claims for each source, and one of what else differs where they compare."""
    numbers = {entry.claim.id: number for number, entry in enumerate(entries, 1)}
    notes = {confound.id: number for number, confound in enumerate(confounds, 1)}
    for source in dict.fromkeys(entry.claim.source for entry in entries):
        rows = [
            (
                str(numbers[entry.claim.id]),
                _statement(entry.claim, notes),
                supporting(entry.claim) or UNKNOWN,
                _verdicts(entry),
            )
            for entry in _of_source(entries, source)
        ]
        columns = ("No.", "Claim", "Supported by", "Verdicts")
        caption = f"The claims of {_short(source)}: the values that support each, and its verdicts."
        label = f"claims-{source.replace('_', '-')}"
        yield Table(label, columns, "rlll", rows, caption, widths=(5, 30, 14, 51), long=True)
    if confounds:
        yield _confounds(entries, confounds, numbers)


def _of_runs(entries: Sequence[Entry], kind: str) -> str:
    verdicts = _counts(entries, kind)
    return (
        f"{kind} runs can judge {_judged(entries, kind)}: they support {verdicts[SUPPORTED]}, "
        f"contradict {verdicts[CONTRADICTED]} and leave {verdicts[UNDECIDED]} undecided"
    )


def _disagreement(entries: Sequence[Entry]) -> str:
    """The claims that one kind of evidence supports and another contradicts."""
    kinds = kinds_of_runs(entries)
    shared = [entry for entry in entries if sum(_is_judged(entry, kind) for kind in kinds) > 1]
    lines = [line for entry in shared if (line := _opposite(entry))]
    if not shared:
        return ""
    said = f"More than one kind of run can judge {counted(len(shared), 'claim')}"
    if not lines:
        return f"{said}, and they never contradict each other."
    return "\n".join([f"{said}. On {len(lines)} of them the verdicts are opposite:\n", *lines])


def _opposite(entry: Entry) -> str:
    """A claim with its verdicts, where they are opposite; else nothing."""
    decided = [one for one in entry.judgements if one.verdict in (SUPPORTED, CONTRADICTED)]
    if len({judgement.verdict for judgement in decided}) < 2:
        return ""
    said = [_on_runs(entry.claim, judgement) for judgement in decided]
    return f"- {_quoted(entry.claim)} {' '.join(said)}"


def _on_runs(claim: Claim, judgement: Judgement) -> str:
    verb = "support" if judgement.verdict == SUPPORTED else "contradict"
    value = estimate(claim, judgement)
    return f"{judgement.evidence.capitalize()} runs {verb} it: {value}, {plain(judgement.of)}."


def _inconsistency(entries: Sequence[Entry]) -> str:
    """The claims that other numbers of the same source contradict."""
    counts = _counts(entries, PUBLISHED)
    checked = counts[CONSISTENT] + counts[INCONSISTENT]
    said = f"The sources' own numbers can check {counted(checked, 'claim')}"
    lines = [line for entry in entries if (line := _inconsistent(entry))]
    if not lines:
        return f"{said}, and all agree." if checked else ""
    return "\n".join(
        [f"{said}. They agree with {counts[CONSISTENT]} and not with {len(lines)}:\n", *lines]
    )


def _inconsistent(entry: Entry) -> str:
    """A claim with the number that other printed ones give, where that is another one; else nothing."""
    claim = entry.claim
    found = [one for one in entry.judgements if one.verdict == INCONSISTENT]
    if not found:
        return ""
    value, reading = amount(found[0].estimate, claim.unit), plain(found[0].reading)
    return (
        f"- {_quoted(claim)} Its numbers give {value} ({reading}); {supporting(claim)} would agree."
    )


def _quoted(claim: Claim) -> str:
    return f"{_short(claim.source)}: “{plain(claim.statement)}”"


def _short(source: str) -> str:
    return plain(published.sources()[source]["short"])


def _of_source(entries: Sequence[Entry], source: str) -> list[Entry]:
    return [entry for entry in entries if entry.claim.source == source]


def _counts(entries: Sequence[Entry], kind: str) -> Counter:
    """How many claims have which verdict on a kind of evidence."""
    return Counter(verdict for entry in entries if (verdict := _verdict_on(entry, kind)))


def _verdict_on(entry: Entry, kind: str) -> str:
    return next((one.verdict for one in entry.judgements if one.evidence == kind), "")


def _is_judged(entry: Entry, kind: str) -> bool:
    return _verdict_on(entry, kind) in OF_RUNS


def _judged(entries: Sequence[Entry], kind: str) -> int:
    return sum(_is_judged(entry, kind) for entry in entries)


def _source_row(name: str, entries: Sequence[Entry], kinds: Sequence[str]) -> tuple[str, ...]:
    of_runs = [_slashed(_counts(entries, kind), OF_RUNS) for kind in kinds]
    return name, str(len(entries)), *of_runs, _slashed(_counts(entries, PUBLISHED), OF_PRINTED)


def _slashed(counts: Counter, verdicts: Sequence[str]) -> str:
    numbers = [counts[verdict] for verdict in verdicts]
    return " / ".join(map(str, numbers)) if any(numbers) else UNKNOWN


def _statement(claim: Claim, notes: dict[str, int]) -> str:
    numbers = sorted(notes[name] for name in claim.confounds)
    if not numbers:
        return plain(claim.statement)
    word = "note" if len(numbers) == 1 else "notes"
    return f"{plain(claim.statement)} ({word} {listed([str(number) for number in numbers])})"


def _verdicts(entry: Entry) -> str:
    """Every verdict in a sentence; kinds of evidence that say the same are told together."""
    kinds: dict[str, list[str]] = {}
    for judgement in told(entry):
        kinds.setdefault(_verdict(entry.claim, judgement), []).append(judgement.evidence)
    said = [f"{listed(names).capitalize()}: {verdict}." for verdict, names in kinds.items()]
    return " ".join(said) or "No campaign has what it is about."


def _verdict(claim: Claim, judgement: Judgement) -> str:
    """The verdict with what it rests on, or the reason why there is none."""
    if judgement.verdict == NOT_TESTABLE:
        return f"{NOT_TESTABLE}, {plain(judgement.reason)}"
    verdict = judgement.verdict if judgement.verdict == PRINTED else f"**{judgement.verdict}**"
    value = ", ".join(filter(None, (verdict, estimate(claim, judgement))))
    if judgement.evidence == PUBLISHED:
        return f"{value} ({plain(judgement.reading)})" if judgement.reading else value
    return f"{value}, {plain(judgement.reason)}" if judgement.reason else value


def _confounds(
    entries: Sequence[Entry], confounds: Sequence[Confound], numbers: dict[str, int]
) -> Table:
    rows = []
    for note, confound in enumerate(confounds, 1):
        touched = [entry.claim.id for entry in entries if confound.id in entry.claim.confounds]
        claims = ", ".join(str(numbers[name]) for name in touched)
        rows.append((str(note), plain(confound.meaning), _short(confound.source), claims))
    columns = ("Note", "What else differs", "Source", "Claims")
    caption = "What else differs where a claim compares or counts."
    return Table("claims-notes", columns, "rlll", rows, caption, widths=(5, 52, 15, 28), long=True)
