"""A judged history in words for a terminal, and as plain data."""

import math
from collections.abc import Iterator
from datetime import datetime

from analysis import quoting
from analysis.statements.statement import finite
from analysis.statistics import course_changes
from analysis.statistics.judgement import UNDECIDED
from analysis.statistics.same import SLOWER
from analysis.watch.history_changes import (
    EXIT_CODES,
    IN_TIME,
    NO_CHANGE,
    BadNight,
    ClusterChange,
    HistoryVerdict,
)
from analysis.wording import counted, few, fixed, listed, number, percent, percent_range

_SHOWN = {"B/s": (1e-6, "MB/s"), "s": (1e6, "µs")}
_MOST_BAD = 10  # nights in a text


def text(verdict: HistoryVerdict) -> str:
    """The history for a terminal: the answer first, then each change, bad night and course."""
    lines = [headline(verdict), ""]
    for change in verdict.changes:
        lines.append(sentence(verdict, change))
        if facts := [f"{what} {old} -> {new}" for what, old, new in change.facts]:
            lines.append(f"  together with {few(facts)}")
        lines.append("")
    lines += [bad_sentence(verdict, night) for night in verdict.bad_nights[-_MOST_BAD:]]
    if (earlier := len(verdict.bad_nights) - _MOST_BAD) > 0:
        lines.append(f"There were {earlier} bad nights before these.")
    lines += [""] if verdict.bad_nights else []
    lines += [*_courses(verdict), "", rule(verdict)]
    if copies := verdict.history.copies:
        lines.append(f"Copies of other sources, left out: {few(copies)}.")
    return "\n".join(lines).replace("\u00a0", " ")


def headline(verdict: HistoryVerdict) -> str:
    """The answer in a sentence or two."""
    times = [session.time for session in verdict.history.sessions]
    span = f"{counted(len(times), 'session')}, {date(times[0])} to {date(times[-1])}"
    changes, answer, loss = verdict.counted, verdict.answer, f"a loss of {100 * verdict.margin:g} %"
    slower = sum(change.answer == SLOWER for change in changes)
    if answer == UNDECIDED and verdict.needed is None:
        words = (
            f"Undecided: these sessions scatter too much to name {loss} within {IN_TIME} sessions"
        )
    elif answer == UNDECIDED:
        words = (
            f"Undecided: {counted(verdict.needed or 0, 'more session')} until {loss} can be named"
        )
    elif answer == NO_CHANGE:
        words = "No change"
    else:
        rest = len(changes) - slower
        parts = [counted(slower, "change")] if slower else []
        parts += [f"{counted(rest, 'change')} to faster"] if rest else []
        words = f"{answer.capitalize()}: {listed(parts)}"
    return f"{words} ({span}, {verdict.history.evidence} evidence)."


def sentence(verdict: HistoryVerdict, change: ClusterChange) -> str:
    """When, how much, and where a change was, in a sentence."""
    shift, (first, *others) = change.shift, change.quantities
    low, high = (verdict.time(place) for place in (shift.low, shift.high))
    when = _between(verdict.time(shift.first), low, high)
    size = f"{_signed(first.size)} (95 % interval {percent_range(first.ends)})"
    several = len(verdict.courses) > 1
    what = f" in {first.what}" if several else ""
    also = f"; also {few([f'{q.what} {_signed(q.size)}' for q in others])}" if others else ""
    everywhere = any(len(course.nodes) > 1 for course in verdict.courses)
    place = change.place or "on all nodes" * everywhere
    where = f", {place}" if place else ""
    begun = "Changed on"
    if shift.is_drift:
        is_over = shift.last < len(verdict.history.sessions) - 1
        until = f"to {date(verdict.time(shift.last))}" if is_over else "until now"
        begun, size = "Drifting since", f"{size} {until}"
    return f"{begun} {when}: {size}{what}{where}{also}. Named on {date(verdict.time(shift.named))}."


def date(moment: datetime) -> str:
    """A date in words."""
    return f"{moment.day} {moment:%B %Y}"


def _between(moment: datetime, low: datetime, high: datetime) -> str:
    """A date with its interval, as short as it can be: 14 March 2026 (13 to 15)."""
    if low.date() == high.date():
        return date(moment)
    same = (low.year, low.month) == (high.year, high.month) == (moment.year, moment.month)
    ends = f"{low.day} to {high.day}" if same else f"{date(low)} to {date(high)}"
    return f"{date(moment)} ({ends})"


def _signed(size: float) -> str:
    return ("+" if size > 0 else "") + percent(size)


def bad_sentence(verdict: HistoryVerdict, night: BadNight) -> str:
    """A bad night in a sentence."""
    which = "bad" if night.size < 0 else "good"
    where = f" on {few(night.nodes, 3)}" if night.nodes else ""
    is_recent = night.session >= len(verdict.history.sessions) - 2
    open_yet = " The next two sessions will show whether it is a change." * is_recent
    what = f" in {few(night.whats, 2)}" if len(verdict.courses) > 1 else ""
    when = f"{date(verdict.time(night.session))}, {_signed(night.size)}"
    return f"One {which} night, no change: {when}{what}{where}.{open_yet}"


def _courses(verdict: HistoryVerdict) -> Iterator[str]:
    """Each quantity with its typical value and its scatter between and within sessions."""
    for course in verdict.courses:
        nodes = f", {len(course.nodes)} nodes" if len(course.nodes) > 1 else ""
        factor, unit = _SHOWN.get(course.unit, (1, course.unit))
        value = f"{number(factor * course.typical, 4)} {unit}".strip()
        between, within = (f"{fixed(100 * sd, 2)} %" for sd in (course.between, course.within))
        blocks = f", blocks within one by {within}" if math.isfinite(course.within) else ""
        yield f"{course.what}: {value}{nodes}; sessions scatter by {between}{blocks}"


def promise(verdict: HistoryVerdict) -> str:
    """The most false alarms to expect on an unchanged cluster, as measured at this correlation."""
    among = f" among all {counted(verdict.tests, 'course')} together" if verdict.tests > 1 else ""
    most = course_changes.promised(verdict.alike)
    if most is None:
        return f"At such a correlation no limit on false alarms holds{among}."
    return (
        f"Expect at most {counted(most, 'false alarm')} in {course_changes.YEAR} sessions{among}."
    )


def rule(verdict: HistoryVerdict) -> str:
    """How the answers are found, in three sentences."""
    sentences = []
    if verdict.to_name:
        after = counted(verdict.to_name, "session")
        sentences.append(f"A loss of {100 * verdict.margin:g} % is named after about {after} now.")
    if verdict.alike >= 0.05:
        sentences.append(
            f"Neighbouring sessions are alike (correlation up to {verdict.alike:.2g}), which is "
            "allowed for."
        )
    return " ".join([*sentences, promise(verdict)])


def as_data(verdict: HistoryVerdict) -> dict:
    """The history as plain data, for JSON; unknown values are None."""
    total = len(verdict.history.sessions)

    def at(place: int) -> str:
        return verdict.time(place).isoformat()

    changes = [
        {
            "answer": change.answer,
            "first": at(change.shift.first),
            "first_95": [at(change.shift.low), at(change.shift.high)],
            "complete": at(change.shift.last),
            "named": at(change.shift.named),
            "drift": change.shift.is_drift,
            "place": change.place or "all",
            "nodes": change.nodes,
            "quantities": [
                {"what": quantity.what, "change": quantity.size, "interval_95": quantity.ends}
                for quantity in change.quantities
            ],
            "together_with": [
                dict(zip(("what", "before", "after"), fact)) for fact in change.facts
            ],
        }
        for change in verdict.changes
    ]
    bad_nights = [
        {
            "time": at(night.session),
            "quantities": night.whats,
            "nodes": night.nodes,
            "change": night.size,
        }
        for night in verdict.bad_nights
    ]
    courses = [
        {
            "what": course.what,
            "unit": course.unit,
            "nodes": len(course.nodes),
            "typical": finite(course.typical),
            "sd_between_sessions": finite(course.between),
            "sd_within_a_session": finite(course.within),
        }
        for course in verdict.courses
    ]
    data = {
        "answer": verdict.answer,
        "exit_code": EXIT_CODES[verdict.answer],
        "sessions": total,
        "from": at(0),
        "to": at(total - 1),
        "evidence": verdict.history.evidence,
        "margin": verdict.margin,
        "sessions_to_name_the_margin": verdict.to_name,
        "sessions_needed": verdict.needed,
        "correlation_of_neighbours": verdict.alike,
        "false_alarms_a_year": course_changes.promised(verdict.alike),
        "courses_tested": verdict.tests,
        "changes": changes,
        "bad_nights": bad_nights,
        "quantities": courses,
    }
    return quoting.as_data(data)
