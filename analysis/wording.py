"""How the report's text writes numbers and names. Unknown values (None or NaN) become a dash."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TypeGuard

Interval = tuple[float, float] | None
UNKNOWN = "—"
HARD_SPACE = "\u00a0"
TO = f"{HARD_SPACE}to{HARD_SPACE}"
MINUS = "\u2212"
TINY = 1e-5
# The unit in which a value is read: from which value on, its factor, and its name.
_READABLE = {
    "bit/s": ((1e9, 1e-9, "Gbit/s"), (0, 1e-6, "Mbit/s")),
    "B/s": ((1e10, 1e-9, "GB/s"), (0, 1e-6, "MB/s")),
    "s": ((1e-2, 1e3, "ms"), (0, 1e6, "µs")),
}
_NO_PROSE = re.compile(r"(```.*?```|`[^`]*`|\$[^$\n]*\$|\]\([^)]*\)|\{[^}]*\}|https?://\S+)", re.S)
_MARKS = re.compile(r"\s*\[@[^\]]*\]|\*\*|`")  # of citations, emphasis and code
BYTE_UNITS = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "B": 1}


def is_known(value: float | None, *more: float | None) -> TypeGuard[float]:
    """Whether every argument is a finite number."""
    return all(number is not None and math.isfinite(number) for number in (value, *more))


def number(value: float | None, digits: int = 3) -> str:
    """A number with this many significant digits; an exponent only where it is tiny."""
    if not is_known(value):
        return UNKNOWN
    if 0 < abs(value) < TINY:
        return f"{value:.{digits - 1}e}".replace("-", MINUS)
    rounded = float(f"{value:.{digits - 1}e}")
    exponent = int(f"{rounded:e}".split("e")[1])
    return f"{rounded:.{max(digits - 1 - exponent, 0)}f}".replace("-", MINUS)


def fixed(value: float | None, decimals: int) -> str:
    """A number with this many decimals; a negative zero loses its sign."""
    if not is_known(value):
        return UNKNOWN
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", MINUS)


def exact(value: float | None) -> str:
    """A number exactly as somebody wrote it down, with all of its digits."""
    return f"{value:.15g}".replace("-", MINUS) if is_known(value) else UNKNOWN


def percent(fraction: float | None, decimals: int = 1) -> str:
    """A fraction as a percentage."""
    return f"{fixed(100 * fraction, decimals)}{HARD_SPACE}%" if is_known(fraction) else UNKNOWN


def level_in_words(confidence: float) -> str:
    """The level of an interval in percent, to two digits of what it leaves out, as "98.6 %"."""
    return f"{100 - float(f'{100 * (1 - confidence):.2g}'):g} %"


def levels_in_words(confidences: Iterable[float]) -> str:
    """The level of several intervals, or the lowest and the highest."""
    ends = min(confidences := [*confidences]), max(confidences)
    return " to ".join(dict.fromkeys(map(level_in_words, ends)))


def percent_range(interval: Interval, decimals: int = 1) -> str:
    """An interval of fractions as percentages."""
    text = _range(interval, lambda end: fixed(100 * end, decimals))
    return text if text == UNKNOWN else f"{text}{HARD_SPACE}%"


def between(interval: Interval, decimals: int) -> str:
    """An interval with this many decimals."""
    return _range(interval, lambda end: fixed(end, decimals))


def _range(interval: Interval, write: Callable[[float], str]) -> str:
    """An interval with its ends as `write` has them."""
    if interval is None or not is_known(interval[0], interval[1]):
        return UNKNOWN
    return TO.join(map(write, interval))


def estimate(
    value: float | None,
    low: float | None,
    high: float | None,
    write: Callable[[float | None], str] = number,
) -> str:
    """A number with its interval in parentheses, each formatted by `write`; without the interval if
    it is unknown."""
    return write(value) + (f" ({write(low)}{TO}{write(high)})" if is_known(low, high) else "")


def byte_size(size: float | None) -> str:
    """A number of bytes in the largest binary unit that fits at least once, without trailing
    zeros."""
    if not is_known(size):
        return UNKNOWN
    unit = next((name for name, least in BYTE_UNITS.items() if size >= least), "B")
    text = number(size / BYTE_UNITS[unit])
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{text}{HARD_SPACE}{unit}"


def byte_range(interval: Interval) -> str:
    """An interval of bytes, each end in its own unit."""
    return _range(interval, byte_size)


def readable(value: float, unit: str) -> tuple[float, str]:
    """The factor that takes a value into a readable unit, and that unit's name."""
    units = _READABLE.get(unit, ((0, 1, unit),))
    return next((row[1:] for row in units if value >= row[0]), units[-1][1:])


def micro(seconds: float | None) -> str:
    """A time in seconds as whole microseconds."""
    return f"{fixed(1e6 * seconds, 0)}{HARD_SPACE}µs" if is_known(seconds) else UNKNOWN


def counted(count: int, noun: str) -> str:
    """A count with its noun, in the plural unless it is one: "3 sessions of 2 blocks"."""
    what, of, rest = noun.partition(" of ")
    return f"{count}{HARD_SPACE}{what}{'' if count == 1 else 's'}{of}{rest}"


def of_sessions(sessions: int | None) -> str:
    """In how many sessions something ran, as words behind a count; empty if that is not known
    (None).
    """
    if sessions is None:
        return ""
    return " of one session" if sessions == 1 else f" of {sessions} sessions"


def listed(words: Sequence[str], last: str = "and") -> str:
    """Words as in "a, b and c"."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def kinds(*evidence: str) -> str:
    """The kinds of evidence that a number compares, such as "emulated, simulated"."""
    return ", ".join(dict.fromkeys(evidence))


def is_mixed(evidence: str) -> bool:
    """Whether these are several kinds of evidence."""
    return ", " in evidence


def evidence_in_words(evidence: str) -> str:
    """One or several kinds in a sentence, such as "emulated and simulated evidence"."""
    return f"{listed(evidence.split(', '))} evidence"


def few(words: Sequence[str], most: int = 5) -> str:
    """The first words, and the number of those left out."""
    more = len(words) - most
    return "; ".join(words[:most]) + (f"; and {more} more" if more > 0 else "")


def paragraphs(*parts: Iterable[str]) -> str:
    """Paragraphs of sentences as Markdown; empty ones are left out."""
    return "\n\n".join(filter(None, (" ".join(filter(None, part)) for part in parts)))


def day(moment: str) -> str:
    """The date of an ISO 8601 moment in words; a dash when there is none."""
    if not moment:
        return UNKNOWN
    date = datetime.fromisoformat(moment)
    return f"{date.day}{HARD_SPACE}{date:%B %Y}"


def moment(instant: str) -> str:
    """An ISO 8601 moment to the minute; a dash when there is none."""
    return f"{datetime.fromisoformat(instant):%Y-%m-%d{HARD_SPACE}%H:%M}" if instant else UNKNOWN


def with_decimal_comma(markdown: str) -> str:
    """Markdown whose numbers have a comma for a point; code, formulas, links, attributes, versions
    and what was quoted stay.
    """
    parts = _NO_PROSE.split(markdown)
    for place in range(0, len(parts), 2):
        parts[place] = re.sub(r"(?<![\w.-])(\d+)\.(\d+)(?!\w|\.\d)", r"\1,\2", parts[place])
    return "".join(parts)


def plain(markdown: str) -> str:
    """Markdown as a line of plain text: without emphasis, citations and hard spaces."""
    return " ".join(_MARKS.sub("", markdown).split())


def within_words(sentences: Iterable[str], most: int) -> list[str]:
    """The first sentence, and each other one with which there are no more than `most` words."""
    chosen, words = list[str](), 0
    for sentence in sentences:
        count = len(sentence.removeprefix("- ").split())
        if words + count <= most or not chosen:
            chosen.append(sentence)
            words += count
    return chosen


def first_sentence(markdown: str) -> str:
    """The first sentence of a text, without emphasis and citations."""
    return re.split(r"(?<=[.!?])\s+(?=[^\sa-z(])", _MARKS.sub("", markdown).strip())[0]
