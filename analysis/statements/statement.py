"""Statements: what a notebook judged of its data, each as one value.

A verb makes a statement: `fall`, `ratio`, `share`, `difference`, `within` and `count` answer a
question, `value` is a number that nothing was asked of. Shown, a statement words itself; the
executed notebook keeps it as data. The first table, `summary.json`, `falloff run`, `reproduce` and
the claims read that same value: nothing is judged twice. Every statement has one of five answers,
and `words` says it as its verb does, such as "falls off".
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from analysis.dataset.contrasts import (
    Contrast,
    basis,
    block_sessions,
    contrasts,
    differences,
    in_sessions,
    log_ratios,
    session_count,
    sessions_by_block,
    sessions_of,
)
from analysis.quoting import as_data, as_markdown, quoted
from analysis.statistics.design import PlannedFall
from analysis.statistics.intervals import BLOCK, units
from analysis.statistics.judgement import (
    ACROSS,
    FALLS_OFF,
    FLAT,
    IF_ALIKE,
    INSIDE,
    REFUSED,
    RISES,
    SIZE_OPEN,
    UNDECIDED,
    Control,
    Judgement,
    judge,
    judge_control,
    judge_range,
    place,
)
from analysis.wording import (
    TO,
    UNKNOWN,
    byte_range,
    byte_size,
    counted,
    evidence_in_words,
    few,
    is_known,
    is_mixed,
    level_in_words,
    number,
    of_sessions,
    percent,
    percent_range,
    readable,
)
from runners.records.record import BUSY, unknown

VERSION = 2  # of summary.json
KEY = "falloff"  # of what an output in an executed notebook says of itself
NO_INTERVAL = (None, None)
SIMULATED = "simulated"
T_INTERVAL = "95 % t interval over the blocks"
# Quantities that are shown in percent.
FRACTIONS = ("fall", "gain", "loss", "error", "share", "coefficient of variation")
NOTHING = 0.0005  # a smaller loss counts as none
# The first words of a trial's reason, and what they mean.
REASONS = {
    BUSY: "the machine was too busy",
    "pace is host-bound": "the machine could not hold a node at its set speed",
    "link is window-bound": "a socket's buffer, and not the link, limited long messages",
    "switch is ": "the program that is the switch handed frames over too late",
}
YES, NO, SAME = "yes", "no", "same"
ANSWERS = (YES, NO, SAME, UNDECIDED, REFUSED)
FALL_ANSWERS = {FALLS_OFF: YES, FLAT: SAME, RISES: NO, REFUSED: REFUSED}
CONTROL_ANSWERS = {"holds": SAME, "violated": NO}
RANGE_ANSWERS = {INSIDE: YES, ACROSS: UNDECIDED}


@dataclass(frozen=True)
class Statement:
    """One statement and what it rests on; unknown fields are None or empty.

    `subject` is the sentence that was judged, without its result. `answer` is one of ANSWERS, empty
    for a number that nothing was asked of. `estimate` and `interval` are of `quantity` in `unit`;
    falls, gains and shares are fractions. `interval_kind` is its level and method, and `n` counts
    `n_of`, which ran in this many `sessions` (None: not known, or of no interval). `evidence` is
    the kind of the trials, or the kinds that are compared (`wording.kinds`). `values` are the
    quantity in each block, and `series` is what it is of in figures, such as a network. `primary`
    statements are those that a campaign was planned for. A claim of a source is judged by the
    quantity that has this `name` in its notebook. `campaign` and `digest` identify the trials.
    `sentence` is the statement with its result, in Markdown. Raises ValueError for any other
    answer.
    """

    subject: str
    answer: str
    quantity: str
    unit: str
    estimate: float | None
    interval: tuple[float, float] | None
    interval_kind: str
    n: int
    n_of: str
    evidence: str
    campaign: str
    digest: str
    primary: bool = False
    reason: str = ""
    margin: float | None = None
    sentence: str = ""
    values: tuple[float, ...] = ()
    series: str = ""
    name: str = ""
    sessions: int | None = None

    def __post_init__(self) -> None:
        if self.answer not in ("", *ANSWERS):
            raise ValueError(f"{self.answer!r} is no answer; there are: {', '.join(ANSWERS)}")

    @property
    def words(self) -> str:
        """The answer as its verb says it."""
        if self.quantity != "fall":
            return "the same" if self.answer == SAME else self.answer
        if self.answer == UNDECIDED and self.interval and self.interval[0] > 0:
            return SIZE_OPEN
        return {YES: FALLS_OFF, SAME: FLAT, NO: RISES}.get(self.answer, self.answer)

    def as_data(self) -> dict:
        """The statement as it is kept in the executed notebook and in `summary.json`."""
        # A comparison of arrays gives a bool that JSON does not know.
        return {**asdict(self), "primary": bool(self.primary), "words": self.words}

    @classmethod
    def from_data(cls, data: dict) -> "Statement":
        """A statement as `as_data` wrote it; anything else that was kept beside it is left out."""
        fields = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        made = cls(**fields)
        ends = made.interval and (made.interval[0], made.interval[1])
        return replace(made, interval=ends, values=tuple(made.values))

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict, dict]:
        return say(str(self), self)._repr_mimebundle_()

    @property
    def basis(self) -> str:
        """What it rests on, such as "4 blocks of 5 sessions"."""
        return counted(self.n, self.n_of) + of_sessions(self.sessions)

    @property
    def value(self) -> str:
        """The estimate with its interval, or a range that has no level, in the unit of the
        quantity.
        """
        return self._with_interval(f"{self.level or 'range'}: ")

    def _with_interval(self, kind: str) -> str:
        """The estimate, and its interval in parentheses behind the `kind` of it."""
        if self.estimate is None:
            return UNKNOWN
        if self.quantity in FRACTIONS:
            value, ends = percent(self.estimate), percent_range(self.interval)
        elif self.unit == "B":
            value, ends = byte_size(self.estimate), byte_range(self.interval)
        else:
            unit = "" if self.unit == "1" else f" {self.unit}"
            value, ends = number(self.estimate) + unit, TO.join(map(number, self.interval or ()))
        return f"{value} ({kind}{ends})" if self.interval else value

    @property
    def level(self) -> str:
        """The level of the interval, such as "95 %", empty without one."""
        return "".join(re.findall(r"[\d.]+ %", self.interval_kind)[:1])

    def __str__(self) -> str:
        if self.sentence:
            return self.sentence
        if self.estimate is None:
            reason = f" ({self.reason.rstrip('.')})" if self.reason else ""
            return f"{self.subject}: **{self.words or UNDECIDED}**{reason}, {self.basis}."
        answer = f" **{self.words}**," if self.words else ""
        value = self._with_interval(f"{self.level} interval " if self.level else "range ")
        return f"{self.subject}:{answer} {value}, {self.basis}."


@dataclass(frozen=True)
class Text:
    """Text (Markdown) that a notebook shows, with the statements that it makes."""

    text: str
    statements: tuple[Statement, ...] = ()

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict, dict]:
        about = {
            "markdown": self.text,
            "statements": [statement.as_data() for statement in self.statements],
        }
        return {"text/markdown": as_markdown(self.text)}, {KEY: about}


def say(text: str, *statements: Statement | Iterable[Statement]) -> Text:
    """Show a text in Markdown, and keep the statements that it rests on, single ones or lists of
    them, with the notebook. A named one that was not run is left out.
    """
    made: list[Statement] = []
    for item in statements:
        made += [item] if isinstance(item, Statement) else item
    return Text(text.strip(), tuple(s for s in made if not s.name or s.n or s.reason))


def planned_falls(points: xr.Dataset) -> tuple[Statement, ...]:
    """The falls that a campaign planned to judge, the primary ones first, then the secondary ones,
    which are corrected for each other (Holm), then the negative controls.

    `points` is from `derive.points`, over (block, interconnect, nodes). A fall is what is lost of
    the ratio of two networks' rates from one node count to another, 1 - exp(D), with D over the
    blocks of the last planned look; margin, level and looks are those of the campaign's design. A
    failed negative control refuses all. Raises FalloffError if the campaign planned none, or one of
    its networks was not run.
    """
    judged = contrasts(points)
    return *_falls(points, judged), *_controls(points, judged)


def fall(
    points: xr.Dataset,
    network: str,
    against: str,
    nodes: tuple[int, int],
    margin: float = 0.05,
    primary: bool = False,
) -> Statement:
    """What is lost of the ratio of two networks' rates from the first number of nodes to the
    second, 1 - exp(D) over blocks.

    `points` is from `derive.points`, over (block, interconnect, nodes). The interval is Student's t
    at 90 %, two-sided, and `margin` is relative. A campaign's own statements, with its looks
    and corrections, are `planned_falls`. Raises FalloffError if a network or a node count was not
    run.
    """
    for there, wanted in ((points.interconnect, (network, against)), (points.nodes, nodes)):
        levels = there.values.tolist()
        if strange := [name for name in wanted if name not in levels]:
            raise unknown(str(there.name), str(strange[0]), map(str, levels))
    evidence = points.falloff.evidence
    blocks = differences(log_ratios(points, network, against), *nodes)
    verdict = judge(blocks.values, margin, evidence, sessions=block_sessions(points))
    judged = blocks.block.values[np.isfinite(blocks.values)].tolist()
    verdict = in_sessions(verdict, sessions_of(points, evidence, judged))
    statement = PlannedFall(network, against, *nodes)
    contrast = Contrast(statement, primary, verdict, None, blocks)
    return next(_falls(points, [contrast]))


def _falls(points: xr.Dataset, judged: Sequence[Contrast]) -> Iterator[Statement]:
    names = points.falloff.names
    for order, contrast in enumerate(judged):
        planned = contrast.statement
        name, against = names[planned.of], names[planned.against]
        span = f"from {planned.start} to {planned.end} nodes"
        yield judged_fall(
            points,
            f"{name} loses rate against {against} {span}",
            contrast.verdict,
            primary=contrast.primary,
            # The first also states the blocks, the margin and the evidence.
            sentence=fall_in_words(contrast.verdict, name, against, span, whole=not order),
            values=tuple((-np.expm1(contrast.differences.dropna("block").values)).tolist()),
            series=planned.of,
        )


def _controls(points: xr.Dataset, judged: Sequence[Contrast]) -> Iterator[Statement]:
    names = points.falloff.names
    # A pair's control, on one node, is the same for all of its node counts.
    pairs = {
        (contrast.statement.of, contrast.statement.against): contrast
        for contrast in judged
        if contrast.primary
    }
    for (network, reference), contrast in pairs.items():
        subject = f"{names[network]} is as fast as {names[reference]} without a network"
        if contrast.control:
            about = {name: getattr(contrast.verdict, name) for name in ("sessions", "evidence")}
            yield _same(points, subject, contrast.control, **about)


def text(statements: Iterable[dict]) -> str:
    """The text of `summary.json`, from statements as dictionaries."""
    content = {"version": VERSION, "statements": as_data(list(statements))}
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def by_evidence(*datasets: xr.Dataset | None, **texts: str) -> str:
    """The texts that hold for a kind of evidence, such as `emulated=`, of the kinds that the
    datasets have.
    """
    kinds = {dataset.falloff.evidence for dataset in datasets if dataset is not None}
    return " ".join(text for kind, text in texts.items() if kind in kinds)


def interval_in_words(ends: tuple[float, float] | None, level: float | None, of: str = "") -> str:
    """An interval of this level in percent; empty if unknown (None, NaN)."""
    if ends is None or level is None or not is_known(ends[0], ends[1]):
        return ""
    words = f"{level_in_words(level)} interval", of, percent_range(ends)
    return " ".join(filter(None, words))


def without_reading(dataset: xr.Dataset, noun: str = "trial") -> str:
    """How many trials of the design gave no reading, and why, in a sentence; empty if all gave
    one."""
    is_point = (dataset.role == "point").values
    reasons = Counter(dataset.reason.values[is_point & (dataset.status != "ok").values].tolist())
    if not reasons:
        return ""
    ((reason, _),) = reasons.most_common(1)
    known = (words for start, words in REASONS.items() if reason.startswith(start))
    most = ", most often" if len(reasons) > 1 else ""
    total = counted(int(is_point.sum()), noun)
    words = next(known, quoted(reason))
    return f"{reasons.total()} of {total} gave no reading{most}: {words}."


def gave_nothing(dataset: xr.Dataset) -> bool:
    """Whether trials of the design were run but none gave a reading."""
    status = dataset.status.values[(dataset.role == "point").values]
    return bool(status.size) and not (status == "ok").any()


def judged_fall(runs: xr.Dataset, subject: str, verdict: Judgement, **further: Any) -> Statement:
    """A fall that was judged, as one of several that are corrected for each other."""
    about = {"reason": verdict.reason, "sessions": verdict.sessions, "evidence": verdict.evidence}
    about["answer"] = FALL_ANSWERS.get(verdict.answer, UNDECIDED)
    return _judged(runs, subject, "fall", verdict.fall, verdict, **{**about, **further})


def ratio(
    runs: xr.Dataset, subject: str, log_ratios: ArrayLike, margin: float, **further: Any
) -> Statement:
    """Whether a ratio is 1 within a relative margin: its logarithms, one for each block, against
    two one-sided tests.
    """
    return _same(runs, subject, judge_control(log_ratios, margin), **further)


def _same(runs: xr.Dataset, subject: str, control: Control, **further: Any) -> Statement:
    answer = CONTROL_ANSWERS.get(control.kind, UNDECIDED)
    return _judged(runs, subject, "ratio", control.ratio, control, answer=answer, **further)


def _judged(
    runs: xr.Dataset,
    subject: str,
    quantity: str,
    estimate: Any,
    judged: Judgement | Control,
    **further: Any,
) -> Statement:
    ends = judged.interval or NO_INTERVAL
    over = judged.n_of.split()[0]
    kind = f"{level_in_words(judged.confidence or 0)} t interval over the {over}s"
    about = {"kind": kind, "margin": judged.margin, "n_of": judged.n_of, **further}
    return value(runs, subject, quantity, (estimate, *ends), judged.n, **about)


def share(
    runs: xr.Dataset, subject: str, estimate: Any, n: int, above: float, **further: Any
) -> Statement:
    """Whether a share [1] lies above a value with its whole interval; the arguments are those of
    `value`.
    """
    return difference(runs, subject, estimate, n, above, quantity="share", **further)


def difference(
    runs: xr.Dataset, subject: str, estimate: Any, n: int, above: float = 0, **further: Any
) -> Statement:
    """Whether a difference, or another `quantity`, lies above a value with its whole interval; the
    arguments are those of `value`."""
    return within(runs, subject, estimate, n, above, math.inf, **further)


def within(
    runs: xr.Dataset, subject: str, estimate: Any, n: int, low: float, high: float, **further: Any
) -> Statement:
    """Whether a whole interval lies from `low` to `high`; the arguments are those of `value`."""
    quantity = further.pop("quantity", "difference")
    answer = range_answer(estimate[1:], low, high)
    return value(runs, subject, quantity, estimate, n, answer=answer, **further)


def count(runs: xr.Dataset, subject: str, right: int, n: int, **further: Any) -> Statement:
    """Whether all of `n` are right; the estimate is the share of those that are."""
    answer = UNDECIDED if not n else YES if right == n else NO
    estimate = (right / n if n else None, *NO_INTERVAL)
    return value(runs, subject, "share", estimate, n, answer=answer, **further)


def value(
    runs: xr.Dataset,
    subject: str,
    quantity: str,
    estimate: Any,
    n: int,
    kind: str = T_INTERVAL,
    **further: Any,
) -> Statement:
    """A number that nothing was asked of, or whose `answer` was found elsewhere.

    `estimate` is (value, low, high), each None or NaN if unknown, from the trials of `runs`. It
    comes from `n` blocks, or from n of what `n_of` says, and `kind` is the kind of its interval. In
    how many `sessions` these ran, or whether these are the units, is asked of `runs` unless it is
    given. `further` are fields of Statement.
    """
    middle, low, high = map(finite, estimate)
    interval = None if low is None or high is None else (low, high)
    sessions, n_of = further.pop("sessions", None), further.pop("n_of", BLOCK)
    if not sessions and interval:
        by_block = sessions_by_block(runs)
        if n_of == BLOCK:
            n, n_of, sessions = basis(by_block, n)
        elif not n_of.startswith("session"):
            sessions = session_count(by_block, n)
    usual = {"unit": "1", "answer": "", "n_of": n_of, "evidence": runs.falloff.evidence}
    return Statement(
        subject=subject,
        quantity=quantity,
        estimate=middle,
        interval=interval,
        interval_kind=kind if interval else "",
        n=n,
        campaign=runs.attrs["campaign"],
        digest=runs.attrs["campaign_hash"],
        sessions=sessions if interval else None,
        **{**usual, **further},
    )


def run_mean(
    dataset: xr.Dataset,
    subject: str,
    quantity: str,
    mean: Any,
    n: int,
    unit: str = "1",
    **further: Any,
) -> Statement:
    """The statement on a mean (value, low, high) over n runs that nothing was asked of, in a
    readable unit.
    """
    factor, unit = readable(mean[0], unit)
    ends = tuple(factor * end for end in mean)
    about = {"kind": "95 % t interval over the runs", "unit": unit, "n_of": "run", **further}
    return value(dataset, subject, quantity, ends, n, **about)


def named(
    runs: xr.Dataset,
    name: str,
    subject: str,
    values: Any,
    refused: str = "",
    n_of: str = "block",
    is_ratio: bool = True,
) -> Statement:
    """A number by which claims of the sources are judged: data/published/claims.toml names it by
    its notebook and this `name`.

    `values`, of any shape, has one for each block or simulated run; NaN is left out, and blocks
    become `units` if they are an array with their sessions. The estimate
    is the geometric mean of ratios, the mean of anything else, with Student's 95 % t interval. A
    simulation has no scatter to generalise from: its estimate is the median of its runs, and its
    interval their range. `refused` says why the runs cannot tell. Raises FalloffError if a ratio is
    not above 0.
    """
    if isinstance(values, xr.DataArray):
        values = units(values, "ratio" if is_ratio else "cost")
    values = np.ravel(np.asarray(values, float))
    values = values[np.isfinite(values) & (not refused)]
    if runs.falloff.evidence == SIMULATED:
        kind, estimate = "range of all runs", (math.nan,) * 3
        if len(values):
            estimate = np.median(values), values.min(), values.max()
    else:
        judged = judge_range(values, -math.inf, math.inf, is_ratio)
        kind, estimate = "95 % t interval", (judged.estimate, *judged.interval_95)
    return value(
        runs,
        subject,
        "ratio" if is_ratio else "difference",
        estimate,
        len(values),
        kind,
        n_of=n_of,
        name=name,
        values=tuple(values.tolist()),
        answer=REFUSED if refused else "",
        reason=refused,
    )


def of_every_point(statement: Statement, read: xr.DataArray) -> Statement:
    """A statement on all points of a design: a yes is open while points are without a reading,
    which it then names. `read` says which points have one, over the factors."""
    if statement.answer != YES or read.all():
        return statement
    points = read.stack(point=read.dims)
    places = points.point.values[~points.values].tolist()
    lacking = [", ".join(quoted(str(level)) for level in place) for place in places]
    reason = f"no reading at {few(lacking, 3)}"
    statement = replace(statement, answer=UNDECIDED, reason=reason)
    return replace(statement, sentence=f"{str(statement).rstrip('.')}; {reason}.")


def at_place(means: xr.Dataset, of: str = "ratio") -> tuple[float, float, float]:
    """(mean, low, high) at a single place of means over blocks."""
    return float(means[of]), float(means.low), float(means.high)


def change(fall: float) -> str:
    """A fall [1] in words, as a loss or a gain."""
    return _moved(fall, "loses nothing", "loses", "gains")


def ratio_change(fall: float) -> str:
    """What a fall [1] does to the falling ratio, in words."""
    return _moved(fall, "does not change", "falls by", "rises by")


def _moved(fall: float, nothing: str, down: str, up: str) -> str:
    if abs(fall) < NOTHING:
        return nothing
    return f"{down} {percent(fall)}" if fall > 0 else f"{up} {percent(-fall)}"


def basis_in_words(judged: Judgement, whole: bool = True) -> str:
    """What a judgement rests on: its interval, and if `whole` also the blocks, the margin and the
    evidence, which is also named where two kinds are compared."""
    parts = []
    if judged.interval and judged.fall is not None:
        low, high = judged.interval
        # The interval of a gain has the gain's sign.
        ends = (-high, -low) if judged.fall <= -NOTHING else (low, high)
        of = "of the fall" if abs(judged.fall) < NOTHING else ""
        parts = [interval_in_words(ends, judged.confidence, of)]
        if whole:
            parts.append(counted(judged.n, judged.n_of) + of_sessions(judged.sessions))
    if whole:
        parts.append(f"margin {percent(judged.margin, 0)}")
    if whole or is_mixed(judged.evidence):
        parts.append(evidence_in_words(judged.evidence))
    return ", ".join(parts)


def fall_in_words(judged: Judgement, name: str, against: str, span: str, whole: bool = True) -> str:
    """How the ratio of HPL's rates on two networks changes, in plain English (Markdown). An open
    answer has no numbers.

    `span` says from where to where; `whole` is the same as in `basis_in_words`.
    """
    what = "" if judged.fall is None else ratio_change(judged.fall)
    if basis := basis_in_words(judged, whole):
        what += f" ({basis})"
    return {
        FALLS_OFF: f"**{name} falls off against {against}** {span}: the ratio of their rates "
        f"{what}.",
        FLAT: f"**{name} stays flat against {against}** {span}: their ratio {what}.",
        RISES: f"**{name} gains on {against}** {span}: their ratio {what}.",
        SIZE_OPEN: f"**{name} falls against {against}** {span}. Whether by more than the margin "
        f"of {percent(judged.margin, 0)} is open.",
    }.get(judged.answer, f"Whether {name} falls against {against} {span} is open. {judged.reason}")


def order_and_margin(is_unordered: bool, margin: float | None = None) -> Iterator[str]:
    """Notes on assumptions that no campaign planned, with the option of `falloff import` in
    parentheses.
    """
    if is_unordered:
        yield (
            "The order of the runs is not known, so runs of a point count as independent repeats: "
            f"intervals and answers hold {IF_ALIKE}, without what drifted meanwhile (--blocks, or "
            "the column `block` of --map)"
        )
    if margin is not None:
        words = f"The margin of {percent(margin, 0)}"
        yield f"{words} is Falloff's own, and was not set before the runs"


def in_sentences(notes: Iterable[str]) -> str:
    """Notes as a paragraph, without what they say of options."""
    return " ".join(f"{note.partition(' (--')[0]}." for note in notes)


def bullets(statements: Iterable[Statement]) -> str:
    """A Markdown list of statements. The number of sessions is printed only where it differs from
    the line above.
    """
    lines, previous = [], None
    for statement in statements:
        basis = statement.n, statement.n_of, statement.sessions
        lines.append(f"- {replace(statement, sessions=None) if basis == previous else statement}")
        previous = basis
    return "\n".join(lines)


def range_answer(interval: Sequence[float | None], low: float, high: float) -> str:
    """Whether a whole interval lies from `low` to `high`; undecided if it is unknown
    (None, NaN)."""
    start, end = (math.nan if end is None else end for end in interval)
    return RANGE_ANSWERS.get(place(start, end, low, high).item(), NO)


def unless_across(
    answer: str, interval: Sequence[float], low: float, high: float = math.inf
) -> str:
    """The answer, but "undecided" if an interval that is known (no NaN) crosses an end of the range
    from `low` to `high`.
    """
    start, end = interval
    is_across = is_known(start, end) and place(start, end, low, high) == ACROSS
    return UNDECIDED if is_across else answer


def finite(value: Any) -> float | None:
    """The value if it is a finite number, else None."""
    return float(value) if is_known(value) else None
