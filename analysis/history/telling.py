"""A judged history in words for a terminal, and as plain data."""

import math
from collections.abc import Iterator
from datetime import datetime

from analysis import quoting
from analysis.comparison import few
from analysis.history.judging import (
    EXIT_CODES,
    IN_TIME,
    NO_CHANGE,
    BadNight,
    Change,
    Course,
    Judged,
)
from analysis.statements import known
from analysis.statistics import sessions
from analysis.statistics.change import SLOWER
from analysis.statistics.judgement import UNDECIDED
from analysis.wording import counted, fixed, listed, number, percent, percent_range

_SHOWN = {"B/s": (1e-6, "MB/s"), "s": (1e6, "µs")}
_MOST_BAD = 10  # nights in a text


def text(found: Judged) -> str:
    """The history for a terminal: the answer first, then each change, bad night and course."""
    lines = [headline(found), ""]
    for one in found.changes:
        facts = facts_of(one)
        lines += [sentence(found, one), *([f"  {facts}"] if facts else []), ""]
    lines += [*bad_lines(found), ""] if found.bad_nights else []
    lines += [*_courses(found), "", rule(found)]
    if copies := found.history.copies:
        lines.append(f"Copies of other sources, left out: {few(copies)}.")
    return "\n".join(lines).replace("\u00a0", " ")


def headline(found: Judged) -> str:
    """The answer in a sentence or two."""
    times = [session.time for session in found.history.sessions]
    span = f"{counted(len(times), 'session')}, {date(times[0])} to {date(times[-1])}"
    changes, answer = found.counted, found.answer
    slower = [one for one in changes if one.answer == SLOWER]
    if answer == UNDECIDED and found.needed is None:
        said = f"Undecided: these sessions scatter too much to name a loss of {100 * found.margin:g} % within {IN_TIME} sessions"
    elif answer == UNDECIDED:
        said = f"Undecided: {counted(found.needed or 0, 'more session')} until a loss of {100 * found.margin:g} % can be named"
    elif answer == NO_CHANGE:
        said = "No change"
    else:
        rest = len(changes) - len(slower)
        words = [counted(len(slower), "change")] if slower else []
        words += [f"{counted(rest, 'change')} to faster"] if rest else []
        said = f"{answer.capitalize()}: {listed(words)}"
    return f"{said} ({span}, {found.history.evidence} evidence)."


def sentence(found: Judged, change: Change) -> str:
    """When, how much, and where a change was, in a sentence."""
    shift, first = change.shift, change.moved[0]
    low, high = (found.time(place) for place in (shift.low, shift.high))
    when = _between(found.time(shift.first), low, high)
    size = f"{_signed(first.size)} (95 % interval {percent_range(first.ends)})"
    several = len(found.courses) > 1
    what = f" in {first.what}" if several else ""
    others = change.moved[1:]
    also = f"; also {few([f'{one.what} {_signed(one.size)}' for one in others])}" if others else ""
    at = change.place or ("on all nodes" if any(len(c.nodes) > 1 for c in found.courses) else "")
    where = f", {at}" if at else ""
    begun = "Changed on"
    if shift.is_drift:
        is_over = shift.last < len(found.history.sessions) - 1
        until = f"to {date(found.time(shift.last))}" if is_over else "until now"
        begun, size = "Drifting since", f"{size} {until}"
    return f"{begun} {when}: {size}{what}{where}{also}. Named on {date(found.time(shift.named))}."


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


def facts_of(change: Change) -> str:
    """What else changed then; empty if nothing is known."""
    facts = [f"{what} {old} -> {new}" for what, old, new in change.facts]
    return f"together with {few(facts)}" if facts else ""


def bad_lines(found: Judged) -> Iterator[str]:
    """The latest bad nights, a sentence each, and how many more there were."""
    for one in found.bad_nights[-_MOST_BAD:]:
        yield bad_sentence(found, one)
    if len(found.bad_nights) > _MOST_BAD:
        yield f"There were {len(found.bad_nights) - _MOST_BAD} bad nights before these."


def bad_sentence(found: Judged, night: BadNight) -> str:
    """A bad night in a sentence."""
    which = "bad" if night.size < 0 else "good"
    where = f" on {few(night.nodes, 3)}" if night.nodes else ""
    last = len(found.history.sessions) - 1
    open_yet = (
        " Whether it is a change, the next two sessions tell." if night.session >= last - 1 else ""
    )
    what = f" in {few(night.whats, 2)}" if len(found.courses) > 1 else ""
    return f"One {which} night, no change: {date(found.time(night.session))}, {_signed(night.size)}{what}{where}.{open_yet}"


def _courses(found: Judged) -> Iterator[str]:
    """Each quantity with its typical value and its scatter between and within sessions."""
    for one in found.courses:
        nodes = f", {len(one.nodes)} nodes" if len(one.nodes) > 1 else ""
        value = typical(one, 4)
        within = f", blocks within one by {_sd(one.within)}" if math.isfinite(one.within) else ""
        yield f"{one.what}: {value}{nodes}; sessions scatter by {_sd(one.between)}{within}"


def typical(course: Course, digits: int) -> str:
    """A quantity's typical value with its unit; bandwidths in MB/s, times in microseconds."""
    factor, unit = _SHOWN.get(course.unit, (1, course.unit))
    return f"{number(factor * course.typical, digits)} {unit}".strip()


def _sd(value: float) -> str:
    return f"{fixed(100 * value, 2)} %"


def promise(found: Judged) -> str:
    """How often an unchanged cluster is called changed at most, as measured at this correlation."""
    among = f" among all {counted(found.tests, 'course')} together" if found.tests > 1 else ""
    most = sessions.promised(found.alike)
    if most is None:
        return f"At such a correlation no limit on false alarms holds{among}."
    return f"Expect at most {counted(most, 'false alarm')} in {sessions.YEAR} sessions{among}."


def rule(found: Judged) -> str:
    """How the answers are found, in three sentences."""
    power = (
        f"A loss of {100 * found.margin:g} % is named after about {counted(found.to_name, 'session')} now. "
        if found.to_name
        else ""
    )
    like = (
        f"Neighbouring sessions are alike (correlation up to {found.alike:.2g}), which is allowed for. "
        if found.alike >= 0.05
        else ""
    )
    return f"{power}{like}{promise(found)}"


def as_data(found: Judged) -> dict:
    """The history as plain data, for JSON; unknown values are None."""
    total = len(found.history.sessions)

    def at(place: int) -> str:
        return found.time(place).isoformat()

    changes = [
        {
            "answer": one.answer,
            "first": at(one.shift.first),
            "first_95": [at(one.shift.low), at(one.shift.high)],
            "complete": at(one.shift.last),
            "named": at(one.shift.named),
            "drift": one.shift.is_drift,
            "place": one.place or "all",
            "nodes": one.nodes,
            "quantities": [
                {"what": moved.what, "change": moved.size, "interval_95": moved.ends}
                for moved in one.moved
            ],
            "together_with": [dict(zip(("what", "before", "after"), fact)) for fact in one.facts],
        }
        for one in found.changes
    ]
    bad = [
        {"time": at(one.session), "quantities": one.whats, "nodes": one.nodes, "change": one.size}
        for one in found.bad_nights
    ]
    courses = [
        {
            "what": one.what,
            "unit": one.unit,
            "nodes": len(one.nodes),
            "typical": known(one.typical),
            "sd_between_sessions": known(one.between),
            "sd_within_a_session": known(one.within),
        }
        for one in found.courses
    ]
    data = {
        "answer": found.answer,
        "exit_code": EXIT_CODES[found.answer],
        "sessions": total,
        "from": at(0),
        "to": at(total - 1),
        "evidence": found.history.evidence,
        "margin": found.margin,
        "sessions_to_name_the_margin": found.to_name,
        "sessions_needed": found.needed,
        "correlation_of_neighbours": found.alike,
        "false_alarms_a_year": sessions.promised(found.alike),
        "courses_tested": found.tests,
        "changes": changes,
        "bad_nights": bad,
        "quantities": courses,
    }
    return quoting.as_data(data)
