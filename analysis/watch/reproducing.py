"""Compare a new run on this machine with each statement of an archive; the result is verdicts, text
and a file.

Only like is compared with like. The archive's dataset is first cut to the points that were run
again, and judged again. If the cut data do not reproduce a statement, the statement needs more
points, and the run is too short to tell.

The compared value is a ratio on the log scale (for a fall, loss or gain: of the remaining parts),
which stays the same on a faster machine. The rules are those of `analysis.statistics.same`, with
the margin of the campaign's design, else 5 %: `reproduced` is the same within it, `not reproduced`
a difference beyond it, or any difference if the two answers exclude each other. Whether it is the
same is asked of each statement by itself; Holm's correction over all statements with scatter keeps
differences rare that are only chance. The interval is Welch's: with the freedom of the side with
fewer blocks, which `falloff compare` takes, three blocks would hardly tell anything
(docs/reproduce.md has both error rates). A single block today is assumed to scatter like the
reference's.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy import stats

from analysis import paths
from analysis.evidence import verify
from analysis.quoting import as_data, quoted
from analysis.statements import notebooks
from analysis.statements.exhibit import WITHOUT_SCATTER
from analysis.statements.statement import Statement, finite
from analysis.statistics.intervals import welch
from analysis.statistics.judgement import (
    FALLS_OFF,
    FLAT,
    REFUSED,
    RISES,
    SIZE_OPEN,
    UNDECIDED,
    Interval,
)
from analysis.statistics.same import SAME, Differences, decide
from analysis.wording import between, counted, day, exact, fixed, level_in_words, number, percent
from runners.records import manifest
from runners.records.record import FalloffError

REPRODUCED, NOT_REPRODUCED, TOO_SHORT = "reproduced", "not reproduced", "too short to tell"
CANNOT = "cannot run here"
KINDS = (REPRODUCED, NOT_REPRODUCED, TOO_SHORT, CANNOT)
MARGIN = 0.05  # used if a campaign's design has none
# The cut archive must give the archived estimate again, to within this share of the margin.
_SAME = 0.1
_LEAVES_OUT = "Not all points and campaigns behind it were run."
RECORD = "reproduction.json"
_WIDTH = 2 + max(map(len, KINDS))
_LEFT = ("fall", "loss")  # quantities of which 1 - value is a ratio
_MORE = ("gain", "error")  # and 1 + value
_CONFIDENCE = re.compile(r"([\d.]+) % (t )?")
_EXCLUDE = [{FLAT, FALLS_OFF}, {FLAT, RISES}, {FALLS_OFF, RISES}, {SIZE_OPEN, RISES}]
# Answers of other statements than falls that leave them open.
_OPEN = {"", UNDECIDED, REFUSED}


class Estimate(NamedTuple):
    """An estimate on the log scale with its standard error `se`, from `n` repeats. `se` is 0 if
    nothing scatters and None if unknown."""

    log: float
    se: float | None
    n: int


@dataclass(frozen=True)
class Compared:
    """Today's estimate less the reference's on the log scale, `log`, with its standard `error` (NaN
    if unknown) and the degrees of `freedom`; `answers` are the reference's and today's.

    `margin` is the campaign's. It is reproduced `within` a margin, and not reproduced `beyond`
    another, all relative. `interval` is that of the `ratio`, which decided its `kind`, at this
    `confidence`; None if unknown. `reason` is a sentence.
    """

    log: float
    error: float
    freedom: float
    answers: tuple[str, str]
    margin: float
    within: float
    beyond: float
    reason: str = ""
    kind: str = TOO_SHORT
    interval: Interval | None = None
    confidence: float = math.nan

    @property
    def ratio(self) -> float:
        """Today's over the reference's."""
        return math.exp(self.log)


@dataclass(frozen=True)
class StatementVerdict:
    """The verdict of the new run on an archived statement: one of `KINDS`, and the `reason` in a
    sentence.

    `notebook` made the statement. `today` is the same statement from the new run. `compared` holds
    both on the ratio scale, None if nothing was compared.
    """

    notebook: str
    statement: Statement
    kind: str
    reason: str
    today: Statement | None = None
    compared: Compared | None = None


def verdicts(
    archived: Mapping[str, xr.Dataset],
    stated: Mapping[Path, notebooks.NotebookRun],
    again: Mapping[str, xr.Dataset],
    today: Mapping[str, xr.Dataset],
    not_run: Mapping[str, tuple[str, str]],
    references: Mapping[str, xr.Dataset] = MappingProxyType({}),
) -> list[StatementVerdict]:
    """A verdict on every statement on the archive's datasets `archived`, by campaign.

    `stated` is what notebooks state on them (`notebooks.stated`). `today` are the datasets of the
    new runs, and `again` the archive's, cut to the same points. For each other campaign `not_run`
    has the kind of verdict, too short or cannot, and its reason. What a notebook needs beside the
    archive it reads from the `references`.
    """
    by_itself: list[StatementVerdict] = []
    for file, executed in stated.items():
        others = {name: references[name] for name in executed.read if name not in archived}
        lacking = [not_run[name] for name in executed.read if name in not_run]
        same, new, why = {}, {}, "Not all campaigns behind it were run."
        if today.keys() & set(executed.read):
            same = by_subject(notebooks.statements(file, {**others, **again})[0])
            of_today, why = notebooks.statements(file, {**others, **today})
            new = by_subject(of_today)
        for statement in executed.statements:
            if statement.campaign not in archived:
                continue
            if statement.campaign in not_run:
                reason = not_run[statement.campaign]
                by_itself.append(StatementVerdict(file.stem, statement, *reason))
            elif lacking and statement.subject not in new:
                by_itself.append(StatementVerdict(file.stem, statement, *lacking[0]))
            else:
                margin = margin_of(archived[statement.campaign])
                both = same.get(statement.subject), new.get(statement.subject)
                by_itself.append(verdict(file.stem, statement, *both, margin, why))
    return together(by_itself)


def by_subject(statements: Iterable[Statement]) -> dict[str, Statement]:
    """The statements by what each judges."""
    return {statement.subject: statement for statement in statements}


def verdict(
    notebook: str,
    archived: Statement,
    same: Statement | None,
    new: Statement | None,
    margin: float,
    why: str,
) -> StatementVerdict:
    """The verdict on one statement, which `together` completes. `same` is the archive's statement
    at the points that ran again, `new` the new run's."""
    kind, reason, compared = TOO_SHORT, "", None
    if same is None or not _agree(archived, same, margin):
        reason = _LEAVES_OUT
    elif new is None:
        reason = why or "The new run has no valid reading of it."
    elif new.evidence != archived.evidence:
        kind = CANNOT
        reason = f"Published is {archived.evidence} evidence, this is {new.evidence}."
    elif archived.estimate is None or new.estimate is None:
        reason = "One of the two has no estimate."
        if archived.words and archived.words == new.words:
            kind, reason = REPRODUCED, "The answer is the same; there is no estimate."
    elif not (compared := compare(same, new, margin)):
        reason = "One of the two is no positive ratio."
    return StatementVerdict(notebook, archived, kind, reason, new, compared)


def compare(archived: Statement, today: Statement, margin: float) -> Compared | None:
    """Both estimates on the ratio scale, not yet judged; None if either has no logarithm.

    An archived estimate without an interval is reproduced if the new one lies inside the margin. It
    is not reproduced only if the answers exclude each other, too, because its scatter is unknown. A
    simulation repeats itself exactly.
    """
    reference, again = _estimate(archived), _estimate(today)
    if reference is None or again is None:
        return None
    compared = of_estimates(reference, again, margin, (archived.words, today.words))
    if archived.evidence in WITHOUT_SCATTER:
        return replace(compared, error=0.0)
    if archived.interval is None:
        # Only answers that exclude each other are beyond what is unknown.
        return replace(compared, error=0.0, beyond=0.0 if are_excluding(compared.answers) else 1.0)
    return compared


def _estimate(statement: Statement) -> Estimate | None:
    """A statement's estimate on the log scale, with the standard error implied by its interval;
    None if the ratio is not above 0."""
    assert statement.estimate is not None
    sign = -1 if statement.quantity in _LEFT else 1
    offset = 1 if statement.quantity in (*_LEFT, *_MORE) else 0
    value, error = offset + sign * statement.estimate, None
    if value <= 0:
        return None
    parts = _CONFIDENCE.match(statement.interval_kind)
    if statement.interval and parts and (statement.n > 1 or not parts[2]):
        law = stats.t(statement.n - 1) if parts[2] else stats.norm()
        low, high = sorted(offset + sign * end for end in statement.interval)
        width = math.log(high / low) if low > 0 else (high - low) / value
        error = width / 2 / float(law.ppf((1 + float(parts[1]) / 100) / 2))
    return Estimate(math.log(value), error, statement.n)


def of_estimates(
    reference: Estimate, today: Estimate, margin: float, answers: tuple[str, str] = ("", "")
) -> Compared:
    """What is to be judged of two estimates; `answers` are those on each.

    If today's standard error is unknown, as from a single block, its blocks are assumed to scatter
    like the reference's.
    """
    error, freedom = math.nan, 1.0
    if reference.se is not None and today.se is None:
        error = reference.se * math.sqrt(1 + reference.n / max(today.n, 1))
        freedom = max(reference.n - 1, 1)
    elif reference.se is not None:
        squares = np.array([reference.se, today.se]) ** 2
        error, freedom = map(float, welch(squares, np.array([reference.n, today.n])))
    # Within a margin of 0 is what repeats itself exactly.
    within, beyond = max(margin, 1e-12), margin
    if REFUSED in answers:
        within, beyond = 0.0, 1.0
    elif are_excluding(answers):
        within = beyond = 0.0
    return Compared(today.log - reference.log, error, freedom, answers, margin, within, beyond)


def are_excluding(answers: tuple[str, str]) -> bool:
    """Whether two answers cannot both be true: both are decided, and differ.

    For falls, one of open size agrees with both answers that it may turn into.
    """
    if set(answers) & set().union(*_EXCLUDE):
        return set(answers) in _EXCLUDE
    return not set(answers) & _OPEN and answers[0] != answers[1]


def judged(pairs: Sequence[Compared]) -> list[Compared]:
    """The same with their kinds, decided together."""
    values = [(pair.log, pair.error, pair.freedom, pair.within, pair.beyond) for pair in pairs]
    logs, errors, freedoms, margins, beyond = np.array(values).reshape(-1, 5).T
    differences = Differences(logs, errors, freedoms)
    decisions = decide(differences, margins, beyond, each_alone=True)
    ends = np.exp([decisions.low, decisions.high]).T.tolist()
    decided = zip(pairs, decisions.answer, ends, decisions.confidence.tolist())
    family = counted(int(differences.are_tested.sum()), "statement")
    kinds = {SAME: REPRODUCED, UNDECIDED: TOO_SHORT}
    return [
        replace(
            pair,
            kind=kinds.get(answer, NOT_REPRODUCED),
            reason=_reason(pair, answer, family),
            interval=(low, high) if math.isfinite(low) else None,
            confidence=confidence,
        )
        for pair, answer, (low, high), confidence in decided
    ]


def _reason(pair: Compared, answer: str, family: str) -> str:
    where = f"the margin of {100 * pair.margin:g} %"
    if math.isnan(pair.error):
        return "Too few blocks have a value."
    if answer == SAME:
        return f"The interval of the difference lies inside {where}."
    if REFUSED in pair.answers:
        return "A negative control failed, so that nothing can be compared."
    if answer == UNDECIDED and pair.beyond == 1:
        return "It differs beyond the margin, and was archived without an interval."
    if answer == UNDECIDED:
        among = f", among {family} (Holm)" if pair.error else ""
        return f"Neither inside {where} nor beyond it is shown{among}."
    if are_excluding(pair.answers):
        return f"The reference's answer is {pair.answers[0]!r}, today's {pair.answers[1]!r}."
    return f"The interval of the difference lies wholly beyond {where}."


def together(verdicts: Sequence[StatementVerdict]) -> list[StatementVerdict]:
    """The verdicts, with what they compare decided together."""
    pairs = iter(judged([verdict.compared for verdict in verdicts if verdict.compared]))
    return [
        replace(verdict, compared=(pair := next(pairs)), kind=pair.kind, reason=pair.reason)
        if verdict.compared
        else verdict
        for verdict in verdicts
    ]


def _agree(archived: Statement, same: Statement, margin: float) -> bool:
    if archived.estimate is None or same.estimate is None:
        return archived.estimate is same.estimate and archived.words == same.words
    slack = _SAME * margin
    return math.isclose(archived.estimate, same.estimate, rel_tol=slack, abs_tol=slack)


def margin_of(dataset: xr.Dataset) -> float:
    """The margin of a campaign's design [1], MARGIN if it has none."""
    margin = dataset.falloff.design.margin
    return MARGIN if margin is None else margin


def exit_code(verdicts: Iterable[StatementVerdict]) -> int:
    """0 if every statement is reproduced, 1 if one is not, else 2: some could not be judged."""
    kinds = {verdict.kind for verdict in verdicts}
    return 1 if NOT_REPRODUCED in kinds else 0 if kinds == {REPRODUCED} else 2


def text(verdicts: Sequence[StatementVerdict]) -> str:
    """All verdicts as lines: for each notebook the compared statements, then the rest by reason,
    and at the end the counts."""
    lines = []
    for notebook in dict.fromkeys(verdict.notebook for verdict in verdicts):
        of_notebook = [verdict for verdict in verdicts if verdict.notebook == notebook]
        lines.append(notebook)
        for kind in KINDS:
            lines += [
                _lines(v, v.compared, v.today)
                for v in of_notebook
                if v.kind == kind and v.compared and v.today
            ]
        rest = Counter((v.kind, v.reason) for v in of_notebook if not v.compared)
        lines += [
            f"  {kind:{_WIDTH}}{counted(count, 'statement')}: {reason}"
            for (kind, reason), count in rest.items()
        ]
    return "\n".join([*lines, "", in_short(Counter(verdict.kind for verdict in verdicts))])


def _lines(verdict: StatementVerdict, compared: Compared, today: Statement) -> str:
    indent = " " * (2 + _WIDTH)
    values = f"archived {value_in_words(verdict.statement)}; today {value_in_words(today)}"
    if compared.interval and compared.interval[0] < compared.interval[1]:
        level = f"{level_in_words(compared.confidence)} interval"
        ends = between(compared.interval, 3)
        values += f"; today / archived {fixed(compared.ratio, 3)} ({level} {ends})"
    lines = [f"  {verdict.kind:{_WIDTH}}{verdict.statement.subject}", indent + values]
    return "\n".join(lines if verdict.kind == REPRODUCED else [*lines, indent + verdict.reason])


def value_in_words(statement: Statement) -> str:
    """An estimate with its answer and what it rests on."""
    assert statement.estimate is not None
    is_share = statement.quantity in (*_LEFT, *_MORE, "share")
    is_count = statement.estimate == round(statement.estimate)
    value = (percent if is_share else exact if is_count else number)(statement.estimate)
    unit = "" if is_share or statement.unit == "1" else f" {statement.unit}"
    answer = f"{statement.words}, " if statement.words else ""
    return f"{answer}{value}{unit} ({statement.basis})"


def in_short(counts: Mapping[str, int]) -> str:
    """The number of statements with each verdict, in one line."""
    return ", ".join(f"{counts.get(kind, 0)} {kind}" for kind in KINDS)


def as_json(verdicts: Iterable[StatementVerdict], about: Mapping) -> str:
    """The text of `reproduction.json`: `about` describes the archive and this run; then come all
    verdicts."""
    rows = [
        {
            "verdict": verdict.kind,
            "reason": verdict.reason,
            "notebook": verdict.notebook,
            "statement": verdict.statement.as_data(),
            "today": verdict.today and verdict.today.as_data(),
            "ratio": verdict.compared and finite(verdict.compared.ratio),
            "interval_of_ratio": verdict.compared and verdict.compared.interval,
            "interval_level": verdict.compared and verdict.compared.confidence,
        }
        for verdict in verdicts
    ]
    whole = as_data({"version": 2, **about, "statements": rows})
    return json.dumps(whole, indent=1, allow_nan=False) + "\n"


def digest(folders: Iterable[Path]) -> str:
    """One SHA-256 for the content of an archive's campaigns, whatever their folders are called."""
    files = [manifest.read(folder) or manifest.digests(folder) for folder in folders]
    contents = sorted(sorted(digests.items()) for digests in files)
    return manifest.digest(json.dumps(contents).encode())


def saved_runs(data: str = "") -> list[dict]:
    """The records of runs here that reproduced what a report shows: the reference's campaigns, or
    those in the folder `data`, relative to the repository.

    Raises FalloffError if a record is damaged.
    """
    files = sorted(paths.REPRODUCED.glob(f"*/{RECORD}"))
    if not files:
        return []
    wanted = digest(verify.folders([paths.ROOT / data if data else paths.REFERENCE]))
    try:
        records = [json.loads(file.read_text(encoding="utf-8")) for file in files]
        return [record for record in records if record["archive_sha256"] == wanted]
    except (ValueError, KeyError, TypeError) as error:
        raise FalloffError(
            f"{paths.REPRODUCED} holds a damaged {RECORD} ({error}): delete it, and run "
            "`falloff reproduce` again"
        ) from None


def first_page_text(records: Sequence[Mapping]) -> str:
    """The results of the runs here for the report's first page (Markdown): the counts, then every
    statement that is not reproduced and every primary statement that could be compared."""
    paragraphs = []
    for record in records:
        rows = record["statements"]
        counts = in_short(Counter(row["verdict"] for row in rows))
        paragraphs.append(
            f"**Run again** on {quoted(record['machine'])}, {day(record['ended'])}, in "
            f"{number(record['minutes'], 2)} minutes. "
            f"Of {counted(len(rows), 'statement')}: {counts}."
        )
        shown = [
            f"- *{quoted(row['verdict'])}*: {quoted(row['statement']['subject'])}."
            for row in rows
            if row["verdict"] == NOT_REPRODUCED
            or row["statement"]["primary"]
            and row["ratio"] is not None
        ]
        paragraphs.append("\n".join(shown))
    return "\n\n".join(filter(None, paragraphs))
