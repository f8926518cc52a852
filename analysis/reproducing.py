"""Compare a new run on this machine with each statement of an archive; the result is verdicts, text
and a file.

Only like is compared with like. The archive's dataset is first cut to the points that were run
again, and judged again. If this cut does not give a statement again, the statement rests on more points
and the run is too short to tell. The comparison uses a ratio on the log scale (for a fall, loss or
gain: the remaining part) and the rules of `analysis.statistics.reproduction`. The margin is that of
the campaign's design, else 5 %. Among hundreds of statements some differ by chance, so Holm's
correction over all statements with scatter keeps the probability of one false "not reproduced" at 5
%.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import xarray as xr
from scipy import stats

from analysis import attributes, notebooks, paths
from analysis.evidence import verify
from analysis.exhibit import WITHOUT_SCATTER
from analysis.quoting import as_data, quoted
from analysis.statements import Statement, known
from analysis.statistics.reproduction import (
    NOT_REPRODUCED,
    REPRODUCED,
    TOO_SHORT,
    Estimate,
    Reproduction,
    are_excluding,
    corrected,
    reproduction,
)
from analysis.wording import between, counted, day, exact, fixed, level_in_words, number, percent
from runners import manifest
from runners.record import FalloffError

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


@dataclass(frozen=True)
class Verdict:
    """The verdict of the new run on an archived statement: one of `KINDS`, and the `reason` in a
    sentence.

    `notebook` made the statement. `today` is the same statement from the new run. `compared` holds both on the ratio
    scale, None if nothing was compared.
    """

    notebook: str
    statement: Statement
    kind: str
    reason: str
    today: Statement | None = None
    compared: Reproduction | None = None


def verdicts(
    archived: Mapping[str, xr.Dataset],
    stated: Mapping[Path, notebooks.Executed],
    again: Mapping[str, xr.Dataset],
    today: Mapping[str, xr.Dataset],
    not_run: Mapping[str, tuple[str, str]],
    references: Mapping[str, xr.Dataset] = MappingProxyType({}),
) -> list[Verdict]:
    """A verdict on every statement on the archive's datasets `archived`, by campaign.

    `stated` is what notebooks state on them (`notebooks.stated`). `today` are the datasets of the new runs, and `again` the
    archive's, cut to the same points. For each other campaign `not_run` has the kind of verdict, too short or cannot, and
    its reason. What a notebook needs beside the archive it reads from the `references`.
    """
    told: list[Verdict] = []
    for file, executed in stated.items():
        beside = {name: references[name] for name in executed.read if name not in archived}
        lacking = [not_run[name] for name in executed.read if name in not_run]
        same, new, why = {}, {}, "Not all campaigns behind it were run."
        if today.keys() & set(executed.read):
            same = {one.subject: one for one in notebooks.statements(file, {**beside, **again})[0]}
            run, why = notebooks.statements(file, {**beside, **today})
            new = {one.subject: one for one in run}
        for one in executed.statements:
            if one.campaign not in archived:
                continue
            if one.campaign in not_run:
                told.append(Verdict(file.stem, one, *not_run[one.campaign]))
            elif lacking and one.subject not in new:
                told.append(Verdict(file.stem, one, *lacking[0]))
            else:
                margin = margin_of(archived[one.campaign])
                both = same.get(one.subject), new.get(one.subject)
                told.append(verdict(file.stem, one, *both, margin, why))
    return together(told)


def together(told: Sequence[Verdict]) -> list[Verdict]:
    """The same verdicts, corrected for their number (Holm)."""
    compared = corrected([one.compared for one in told])
    return [
        one
        if judged is None
        else replace(one, kind=judged.kind, reason=judged.reason, compared=judged)
        for one, judged in zip(told, compared)
    ]


def verdict(
    notebook: str,
    archived: Statement,
    same: Statement | None,
    new: Statement | None,
    margin: float,
    why: str,
) -> Verdict:
    """The verdict on one statement by itself. `same` is the archive's statement at the points that ran
    again, `new` the new run's."""
    if same is None or not _agree(archived, same, margin):
        return Verdict(notebook, archived, TOO_SHORT, _LEAVES_OUT, new)
    if new is None:
        return Verdict(
            notebook, archived, TOO_SHORT, why or "The new run has no valid reading of it."
        )
    if new.evidence != archived.evidence:
        reason = f"Published is {archived.evidence} evidence, this is {new.evidence}."
        return Verdict(notebook, archived, CANNOT, reason, new)
    if archived.estimate is None or new.estimate is None:
        if archived.words and archived.words == new.words:
            reason = "The answer is the same; there is no estimate."
            return Verdict(notebook, archived, REPRODUCED, reason, new)
        return Verdict(notebook, archived, TOO_SHORT, "One of the two has no estimate.", new)
    compared = compare(same, new, margin)
    if compared is None:
        return Verdict(notebook, archived, TOO_SHORT, "One of the two is no positive ratio.", new)
    return Verdict(notebook, archived, compared.kind, compared.reason, new, compared)


def compare(archived: Statement, today: Statement, margin: float) -> Reproduction | None:
    """Both estimates on the ratio scale; None if either has no logarithm.

    An archived estimate without an interval is reproduced if the new one lies inside the margin. It
    is not reproduced only if the answers exclude each other, too, because its scatter is unknown. A
    simulation repeats itself exactly.
    """
    answers = archived.words, today.words
    estimates = _estimate(archived), _estimate(today)
    if None in estimates:
        return None
    is_exact = archived.evidence in WITHOUT_SCATTER
    is_bare = archived.interval is None and not is_exact
    if is_exact or is_bare:
        estimates = tuple(replace(one, se=0.0) for one in estimates)
    found = reproduction(*estimates, margin, answers)
    if found.kind == NOT_REPRODUCED and is_bare and not are_excluding(answers):
        reason = "It differs beyond the margin, and was archived without an interval."
        return replace(found, kind=TOO_SHORT, reason=reason)
    return found


def _estimate(one: Statement) -> Estimate | None:
    """A statement's estimate on the log scale, with the standard error implied by its interval."""
    sign = -1 if one.quantity in _LEFT else 1
    offset = 1 if one.quantity in (*_LEFT, *_MORE) else 0
    value, error = offset + sign * one.estimate, None
    if value <= 0:
        return None
    parts = _CONFIDENCE.match(one.interval_kind)
    if one.interval and parts and (one.n > 1 or not parts[2]):
        law = stats.t(one.n - 1) if parts[2] else stats.norm()
        low, high = sorted(offset + sign * end for end in one.interval)
        width = math.log(high / low) if low > 0 else (high - low) / value
        error = width / 2 / float(law.ppf((1 + float(parts[1]) / 100) / 2))
    return Estimate(math.log(value), error, one.n)


def _agree(one: Statement, same: Statement, margin: float) -> bool:
    if None in (one.estimate, same.estimate):
        return one.estimate is same.estimate and one.words == same.words
    return math.isclose(one.estimate, same.estimate, rel_tol=_SAME * margin, abs_tol=_SAME * margin)


def margin_of(dataset: xr.Dataset) -> float:
    """The margin of a campaign's design [1], MARGIN if it has none."""
    margin = attributes.design(dataset).get("margin")
    return MARGIN if margin is None else margin


def exit_code(told: Iterable[Verdict]) -> int:
    """0 if every statement is reproduced, 1 if one is not, else 2: some could not be judged."""
    kinds = {one.kind for one in told}
    return 1 if NOT_REPRODUCED in kinds else 0 if kinds == {REPRODUCED} else 2


def text(told: Sequence[Verdict]) -> str:
    """All verdicts as lines: for each notebook the compared statements, then the rest by reason,
    and at the end the counts."""
    lines = []
    for notebook in dict.fromkeys(one.notebook for one in told):
        own = [one for one in told if one.notebook == notebook]
        lines.append(notebook)
        for kind in KINDS:
            lines += [_lines(one) for one in own if one.kind == kind and one.compared]
        rest = Counter((one.kind, one.reason) for one in own if not one.compared)
        lines += [
            f"  {kind:{_WIDTH}}{counted(count, 'statement')}: {reason}"
            for (kind, reason), count in rest.items()
        ]
    return "\n".join([*lines, "", in_short(Counter(one.kind for one in told))])


def _lines(one: Verdict) -> str:
    indent = " " * (2 + _WIDTH)
    values = f"archived {value_in_words(one.statement)}; today {value_in_words(one.today)}"
    if one.compared.interval and one.compared.interval[0] < one.compared.interval[1]:
        ratio = fixed(one.compared.today / one.compared.reference, 3)
        level = f"{level_in_words(one.compared.confidence)} interval"
        values += f"; today / archived {ratio} ({level} {between(one.compared.interval, 3)})"
    lines = [f"  {one.kind:{_WIDTH}}{one.statement.subject}", indent + values]
    return "\n".join(lines if one.kind == REPRODUCED else [*lines, indent + one.reason])


def value_in_words(one: Statement) -> str:
    """An estimate with its answer and what it rests on."""
    is_share = one.quantity in (*_LEFT, *_MORE, "share")
    is_count = one.estimate == round(one.estimate)
    value = (percent if is_share else exact if is_count else number)(one.estimate)
    unit = "" if is_share or one.unit == "1" else f" {one.unit}"
    answer = f"{one.words}, " if one.words else ""
    return f"{answer}{value}{unit} ({one.basis})"


def in_short(counts: Mapping[str, int]) -> str:
    """The number of statements with each verdict, in one line."""
    return ", ".join(f"{counts.get(kind, 0)} {kind}" for kind in KINDS)


def as_json(told: Iterable[Verdict], about: Mapping) -> str:
    """The text of `reproduction.json`: `about` describes the archive and this run; then come all
    verdicts."""
    rows = [
        {
            "verdict": one.kind,
            "reason": one.reason,
            "notebook": one.notebook,
            "statement": one.statement.as_data(),
            "today": one.today and one.today.as_data(),
            "ratio": one.compared and known(one.compared.today / one.compared.reference),
            "interval_of_ratio": one.compared and one.compared.interval,
            "interval_level": one.compared and one.compared.confidence,
        }
        for one in told
    ]
    whole = as_data({"version": 2, **about, "statements": rows})
    return json.dumps(whole, indent=1, allow_nan=False) + "\n"


def digest(folders: Iterable[Path]) -> str:
    """One SHA-256 for the content of an archive's campaigns, whatever their folders are called."""
    own = [manifest.read(folder) or manifest.digests(folder) for folder in folders]
    return manifest.digest(json.dumps(sorted(map(sorted, (each.items() for each in own)))).encode())


def kept(data: str = "") -> list[dict]:
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
            f"{paths.REPRODUCED} holds a damaged {RECORD} ({error}): delete it, and run `falloff reproduce` again"
        ) from None


def on_page(records: Sequence[Mapping]) -> str:
    """The results of the runs here for the report's first page (Markdown): the counts, then every
    statement that is not reproduced and every primary statement that could be compared."""
    paragraphs = []
    for record in records:
        rows = record["statements"]
        counts = in_short(Counter(row["verdict"] for row in rows))
        paragraphs.append(
            f"**Run again** on {quoted(record['machine'])}, {day(record['ended'])}, in {number(record['minutes'], 2)} "
            f"minutes. Of {counted(len(rows), 'statement')}: {counts}."
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


def told(records: Sequence[Mapping]) -> str:
    """`on_page`, or how to begin if nothing was run again (Markdown)."""
    nothing = "Nothing was run again for this report: `falloff reproduce data/reference --minutes 15` does it."
    return on_page(records) or nothing
