"""Judge every figure and table of a document by the twelve rules; ours have to meet them, a user's get notes."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from matplotlib.figure import Figure

from analysis.rules import seen_figure, seen_text
from analysis.rules.exhibits import Exhibit
from analysis.rules.rules import BROKEN, RULES, Exhibited, Finding
from runners.record import FalloffError


@dataclass(frozen=True)
class Known:
    """What the report knows of its data: the runners of each campaign, the campaigns whose values were tested for
    normality (both None where it is not asked), the tools of which it says how they take the time, and the labels of
    the exhibits that another document of the same data holds."""

    runners: Mapping[str, frozenset[str]] | None = None
    checked: frozenset[str] = field(default_factory=frozenset)
    timed: frozenset[str] = field(default_factory=frozenset)
    elsewhere: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True)
class Judged:
    """An exhibit with what each rule finds of it, by the rule's number."""

    label: str
    findings: Mapping[int, Finding]


def judge(
    figures: Mapping[str, Figure], markdown: str, exhibits: Mapping[str, Exhibit], known: Known = Known()
) -> tuple[tuple[Judged, ...], tuple[str, ...]]:
    """Every exhibit of the document that has an entry, and in a sentence each what is broken, with the mend.

    An exhibit without an entry is broken, and so is an entry all of whose campaigns were run, but not its exhibit.
    """
    said = {it.label: it for it in seen_text.read(markdown)}
    faults = [
        f"{label} has no entry among the exhibits. Mend: declare it in analysis/rules/exhibits.toml"
        for label in said
        if label not in exhibits
    ]
    faults += [
        f"{label} is an entry without a figure or table. Mend: take it out, or say `when` it is there"
        for label, told in exhibits.items()
        if label not in (said.keys() | known.elsewhere) and not told.when and told.of and known.runners and set(told.of) <= set(known.runners)
    ]
    judged = []
    for label in exhibits.keys() & said.keys():
        words, about = said[label], exhibits[label]
        if about.whichever and known.runners:
            about = replace(about, of=tuple(name for name in about.of if name in known.runners) or about.of)
        drawn = seen_figure.look(figures[words.figure]) if words.figure in figures else None
        it = Exhibited(about, words, drawn, said.keys() | known.elsewhere, known.runners, known.checked, known.timed)
        judged.append(Judged(label, {number: rule(it) for number, rule in RULES.items()}))
    order = list(said)
    judged.sort(key=lambda it: order.index(it.label))
    faults += [
        f"{it.label} breaks rule {number}: {finding.what}. Mend: {finding.mend}"
        for it in judged
        for number, finding in it.findings.items()
        if finding.kind == BROKEN
    ]
    return tuple(judged), tuple(faults)


def labels(markdown: str) -> frozenset[str]:
    """The labels of a document's figures and tables."""
    return frozenset(it.label for it in seen_text.read(markdown))


def require(faults: tuple[str, ...], own: bool) -> None:
    """Raise FalloffError with every fault; of a user's `own` data, print them as notes to stderr instead."""
    if faults and not own:
        raise FalloffError("\n".join(faults))
    for fault in faults:
        print(f"note: {fault}", file=sys.stderr)
