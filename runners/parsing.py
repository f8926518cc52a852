"""What the parsers of several tools share: results with their reasons and notes, and printed numbers."""

import math
import re
from decimal import Decimal
from typing import Any, Callable, List, Optional, Sequence, Tuple

from runners.record import (
    KINDS,
    Contradictory,
    Cut,
    FalloffError,
    Foreign,
    InvalidRun,
    Quantity,
    Reading,
    Result,
    Settings,
    Tool,
    Transcript,
    Unreadable,
)

# What `mpirun --tag-output` (with or without the time) and `srun --label` put before a line.
_LABEL = re.compile(r"^(?:[^\n]{0,40}\[\d+,\d+\]<std\w+>:|\d{1,6}: )", re.M)
_SIMULATOR = re.compile(r"^simulator: (\d{1,12}\.\d{3}) CPU s, (\d{1,12}\.\d) MB$", re.M | re.ASCII)

# What several tools are told, and what several read.
ENDS = {"sender": Quantity("sending node", "1"), "receiver": Quantity("receiving node", "1")}
GOODPUT = {"goodput": Quantity("TCP payload received", "bit/s")}
MESSAGES = {
    "message_size": Quantity("size of the messages", "B", ("trial", "message")),
    "message_time": Quantity("half the round trip of a message", "s", ("trial", "message")),
    "message_bandwidth": Quantity(
        "bytes of the messages over their time", "B/s", ("trial", "message")
    ),
}


def parser(
    tool: str, results: Callable[[str], List[Result]]
) -> Callable[[Transcript], List[Reading]]:
    """A runner's `parse` for outputs of one result each, whose settings have to be those of the point.

    It raises Unreadable as `results` does or when there are several results, and InvalidRun when the output is one of
    other settings.
    """

    def parse(transcript: Transcript) -> List[Reading]:
        found = results(transcript.executions[-1].stdout)
        if len(found) != 1:
            raise Contradictory(f"{len(found)} results of {tool} in one output")
        (result,) = found
        if result.refused:
            raise KINDS[result.kind](result.refused)
        point = transcript.trial.point
        for name, value in result.settings.items():
            if value != point.get(name, value):
                raise InvalidRun(f"{tool} ran with {name} {value}, {point[name]} was asked for")
        return list(result.readings)

    return parse


def only_read(tool: str, results: Callable[[str], List[Result]], **further: Any) -> Tool:
    """A tool that is never run from here; `further` is what else is known of it."""

    def refuse(asked: Any) -> Any:
        remedy = f"run it yourself, then `falloff import {tool} FILE`"
        raise FalloffError(f"{tool} is only read: {remedy}")

    return Tool(tool, refuse, refuse, results, **further)


def attempt(read: Callable[[], Sequence[Reading]], settings: Settings, note: str = "") -> Result:
    """The result of these settings, refused with the reason when reading it raises Unreadable."""
    try:
        return Result(tuple(read()), settings, note=note)
    except Unreadable as refusal:
        return refused(refusal, settings)


def refused(reason: Unreadable, settings: Settings) -> Result:
    """The result of these settings that is refused for this reason."""
    return Result((), settings, str(reason), reason.kind)


def parts(text: str, begin: "re.Pattern[str]") -> List[Tuple["re.Match[str]", str]]:
    """Each run in a text, by the match of its first line; what stands before the first is the first's."""
    found = list(begin.finditer(text))
    borders = [0, *(match.start() for match in found[1:]), len(text)]
    return [(match, text[a:b]) for match, a, b in zip(found, borders, borders[1:])]


def usable(found: List[Result], what: str = "") -> List[Result]:
    """The results, if any is not refused; else raises Unreadable with the first reason, after `what`."""
    if all(result.refused for result in found):
        raise KINDS[found[0].kind](what + found[0].refused)
    return found


def whole(tool: str, text: str, head: "re.Pattern[str]") -> "re.Match[str]":
    """The first line of a table that one of our own programs prints; raises Cut or Foreign where it is not whole."""
    first, last = head.search(text), re.search(rf"^ *end of {tool}\s*$", text, re.M)
    if not first or not last:
        if not (first or last or re.search(rf"^{tool}: ", text, re.M)):
            raise Foreign(f"not an output of {tool}")
        reason = "the run was stopped or its output cut off"
        raise Cut(f"{tool} did not print its first and last line: {reason}")
    return first


def simulator(text: str) -> List[Reading]:
    """simulator_cpu_time [s] and simulator_memory [B] that a simulation took; none where it does not print them."""
    took = _SIMULATOR.search(text)
    if not took:
        return []
    memory = round(1e6 * float(took[2]))  # printed with one decimal in millions of bytes
    return [
        Reading("simulator_cpu_time", float(took[1]), "s"),
        Reading("simulator_memory", memory, "B"),
    ]


def not_understood(count: int, what: str = "lines") -> str:
    """A note on so many lines of a table that are not understood, empty when there are none."""
    return f"{what} that are not understood: {count}" if count else ""


def rate_agrees(work: float, time: str, rate: str, off: float = 0.0) -> bool:
    """Whether a printed rate is `work` over a printed time, within what rounding both may hide.

    It may be `off` by this part of itself besides.
    """
    time_slack, rate_slack = half_digit(time), half_digit(rate)
    slowest = work / (float(time) + time_slack)
    fastest = work / (float(time) - time_slack) if float(time) > time_slack else math.inf
    off = max(off, 1e-9)  # the least is for the arithmetic here
    above = slowest * (1 - off) <= float(rate) + rate_slack
    return above and float(rate) - rate_slack <= fastest * (1 + off)


def half_digit(printed: str) -> float:
    """Half a unit of the last printed digit of a number such as 12.34 or 1.234e+01."""
    mantissa, _, exponent = printed.partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def without_labels(text: str) -> str:
    """The text with plain line ends, and without what launchers put before each line to name the process."""
    return _LABEL.sub("", text.replace("\r\n", "\n"))


def strange_lines(table: str, row: "re.Pattern[str]") -> int:
    """How many lines between a table's first and last row, or that begin with a number, are no row of it.

    What launchers and other programs print after a table is none of its rows.
    """
    lines = table.splitlines(keepends=True)
    is_row = [bool(row.fullmatch(line)) for line in lines]
    last = max((place for place, whole in enumerate(is_row) if whole), default=-1)
    return sum(
        not whole
        and not line.lstrip().startswith("#")
        and (bool(line.strip()) and place < last or line.lstrip()[:1].isdigit())
        for place, (line, whole) in enumerate(zip(lines, is_row))
    )


def message_sizes(sizes: Sequence[int]) -> Reading:
    """message_size [B] of a table; raises Contradictory unless each size is above the one before."""
    if any(later <= earlier for earlier, later in zip(sizes, sizes[1:])):
        raise Contradictory("the sizes do not ascend: several outputs are mixed")
    return Reading("message_size", list(sizes), "B")


def lost_sizes(sizes: Sequence[int]) -> str:
    """A note on the rows that a table lacks, if each of its sizes is twice the one before; empty when it has all."""
    gaps = [f"{a} and {b}" for a, b in zip(sizes, sizes[1:]) if 0 < a < b and b != 2 * a]
    return f"no row stands between {', '.join(gaps)} B" if gaps else ""


def without_interrupted(found: List[Result], sizes: Sequence[Sequence[int]]) -> List[Result]:
    """The results of tables with these sizes; one is refused whose rest stands behind the next table."""
    checked = list(found)
    for number, (before, after) in enumerate(zip(sizes, sizes[1:])):
        ends = [place for place in range(1, len(after)) if after[place] <= after[place - 1]]
        if before and ends and after[ends[0]] > before[-1]:
            inside = Contradictory("another output begins inside this table")
            checked[number] = refused(inside, found[number].settings)
    return checked


def in_unit(printed: Sequence[str], unit: Decimal) -> List[Optional[float]]:
    """Printed numbers in our unit, None for one whose digits were too few to print anything but zeros."""
    return [float(Decimal(number) * unit) or None for number in printed]
