"""Shared code of the tools' parsers: results with their reasons and notes, and printed numbers."""

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, Callable, Optional

from runners.records.record import (
    KINDS,
    Contradictory,
    Cut,
    FalloffError,
    Foreign,
    Quantity,
    Readings,
    Result,
    Settings,
    Tool,
    Unreadable,
    Unsupported,
)

# What stands before a line's own text: the label of `mpirun --tag-output` or `--timestamp-output`
# (Open MPI, PRRTE) or of `srun --label`, or the escape of a forum.
_LABEL = re.compile(
    r"^(?:[^\n]{0,40}(?:\[[^\]\s]{1,80},\d{1,7}\](?:\[[^\]\s]{1,80}\])?)?<std\w{3,4}>: ?"
    r"| {0,5}\d{1,6}: |\\(?=#))",
    re.M,
)
# What may be a tool's own unless it stands before every line: a time, the rank of `mpiexec -l`
# (MPICH) or [host:rank], the host of pdsh, the mark of a quoted mail.
_TIME = (
    r"\[?(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?"
    r"|\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}|\w{3} [ \d]\d \d\d:\d\d:\d\d)\]? ?"
)
_EVERYWHERE = re.compile(rf"^(?:{_TIME}|\[(?:[\w.-]{{1,80}}:)?\d{{1,7}}\] ?|> ?)", re.M)
_HOST = re.compile(r"\s*([\w.-]{1,80}:)(?: |$)", re.M)
_FEWEST = 3  # lines that show that a label stands before every line
# The colours and movements of a terminal, and marks of the byte order, also inside a file.
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\n]*\x07|\ufeff")
# The table with which a simulated program ends.
SIMULATED = re.compile(r"^Simulated: what each rank did.*?^end of simulated$", re.M | re.S)
_SIMULATOR = re.compile(r"^simulator: (\d{1,12}\.\d{3}) CPU s, (\d{1,12}\.\d) MB$", re.M | re.ASCII)

# What several tools are told, and what several read.
ENDS = {"sender": Quantity("sending node", "1"), "receiver": Quantity("receiving node", "1")}
REQUEST = {"request_bytes": Quantity("size of the messages that go there and back", "B")}
GOODPUT = {"goodput": Quantity("TCP payload received", "bit/s")}
# What tests of several operations report; `falloff history` and `compare` tell them apart by
# `test`.
COLLECTIVES = {
    "message_size": Quantity("size of the messages", "B", ("trial", "message")),
    "message_time": Quantity("half the round trip of a message", "s", ("trial", "message")),
    "message_bandwidth": Quantity(
        "bytes of the messages over their time", "B/s", ("trial", "message")
    ),
    "collective_time": Quantity(
        "average time of an operation of several processes", "s", ("trial", "message")
    ),
}
COMPUTED = {
    "computing_mean": Quantity("time that a rank computes, mean over the ranks", "s"),
    "computing_most": Quantity("time that the rank computes that computes longest", "s"),
}


TEST = {"test": Quantity("test of the tool")}
DATATYPE = {"datatype": Quantity("type of the data, and their reduction")}
PROCESSES = {"processes": Quantity("processes, as an imported file names them", "1")}


def computed(seconds: Sequence[float]) -> dict[str, float]:
    """The readings of COMPUTED, from the time that each rank computes [s]."""
    return {"computing_mean": sum(seconds) / len(seconds), "computing_most": max(seconds)}


def only_read(tool: str, results: Callable[[str], list[Result]], **further: Any) -> Tool:
    """A tool that is never run from here; `further` is what else is known of it."""

    def refuse(asked: Any) -> Any:
        raise FalloffError(
            f"{tool} is only read: run it yourself, then `falloff import {tool} FILE`"
        )

    return Tool(
        tool,
        refuse,
        lambda text: results(without_labels(text)),
        parse_trial=refuse,
        **further,
    )


def attempt(read: Callable[[], Readings], settings: Settings, note: str = "") -> Result:
    """The result of these settings; if reading it raises Unreadable, the result is refused with
    that reason."""
    try:
        return Result(read(), settings, note=note)
    except Unreadable as refusal:
        return refused(refusal, settings)


def refused(reason: Unreadable, settings: Settings) -> Result:
    """A result of these settings that is refused for this reason."""
    return Result({}, settings, str(reason), reason.kind)


def parts(
    text: str, begin: re.Pattern[str], table: Optional[re.Pattern[str]] = None
) -> list[tuple[re.Match[str], str]]:
    """Each run in a text, by the match of its first line; text before the first match belongs to
    the first run.

    The heading of a `table` that is not the first one in its run begins a part of its own: its
    run's first lines are lost.
    """
    marks = list(begin.finditer(text))
    if table:
        marks = sorted([*marks, *table.finditer(text)], key=lambda mark: mark.start())
        pairs = zip([None, *marks], marks)
        marks = [b for a, b in pairs if b.re is begin or not a or a.re is table]
    borders = [0, *(mark.start() for mark in marks[1:]), len(text)]
    return [(mark, text[a:b]) for mark, a, b in zip(marks, borders, borders[1:])]


def without_rows(table: str, version: str) -> Unreadable:
    """Why a table has no row that is read: `version` of the tool writes them in another form, or it
    ends before its first size."""
    if re.search(r"^[ \t]*\d[^\n]*\n", table, re.M):
        return Unsupported(
            f"written with {version}, whose rows have another form than those that are read"
        )
    return Cut(f"{version} did not reach its first size: stopped or cut off")


def usable(results: list[Result], what: str = "") -> list[Result]:
    """The results, if any is not refused; otherwise raises Unreadable with the first reason, after
    `what`."""
    if all(result.refused for result in results):
        raise KINDS[results[0].kind](what + results[0].refused)
    return results


def whole(tool: str, text: str, head: re.Pattern[str], *texts: str) -> dict[str, Any]:
    """The settings in the first line of a table that one of our own programs prints, by the names
    of the pattern's groups, as numbers except `texts`; raises Cut or Foreign if the table is not
    complete."""
    first, last = head.search(text), re.search(rf"^ *end of {tool}\s*$", text, re.M)
    if not first or not last:
        if not (first or last or re.search(rf"^{tool}: ", text, re.M)):
            raise Foreign(f"not an output of {tool}")
        raise Cut(
            f"{tool} did not print its first and last line: "
            "the run was stopped or its output cut off"
        )
    return {
        name: printed if name in texts else _value(printed)
        for name, printed in first.groupdict().items()
        if printed is not None
    }


def _value(printed: str) -> Any:
    """A whole number, another number, or the text itself."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(printed)
    return printed


def require_numbered(tool: str, rows: Sequence[Sequence[str]], count: int, what: str) -> None:
    """Raise Contradictory unless the first cells of a table's rows are the numbers 1 to `count`."""
    if [int(number) for number, *_ in rows] != list(range(1, count + 1)):
        wanted = f"1 to {count} ({what})"
        raise Contradictory(f"the rows of {tool} are not numbered {wanted}: it has {len(rows)}")


def simulator(text: str) -> dict[str, float]:
    """simulator_cpu_time [s] and simulator_memory [B] that a simulation took; empty if they are not
    printed."""
    took = _SIMULATOR.search(text)
    if not took:
        return {}
    memory = round(1e6 * float(took[2]))  # printed with one decimal in millions of bytes
    return {"simulator_cpu_time": float(took[1]), "simulator_memory": memory}


def not_understood(count: int, what: str = "lines") -> str:
    """A note on the number of lines of a table that are not understood, empty if there are none."""
    return f"{what} that are not understood: {count}" if count else ""


def rate_agrees(work: float, time: str, rate: str, off: float = 0.0) -> bool:
    """Whether a printed rate is `work` over a printed time, within the rounding of both.

    It may additionally be `off` by this share.
    """
    time_slack, rate_slack = half_digit(time), half_digit(rate)
    slowest = work / (float(time) + time_slack)
    fastest = work / (float(time) - time_slack) if float(time) > time_slack else math.inf
    off = max(off, 1e-9)  # the minimum allows for floating point
    above = slowest * (1 - off) <= float(rate) + rate_slack
    return above and float(rate) - rate_slack <= fastest * (1 + off)


def half_digit(printed: str) -> float:
    """Half a unit of the last printed digit of a number such as 12.34 or 1.234e+01."""
    mantissa, _, exponent = printed.partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def without_labels(text: str) -> str:
    """The text with plain line ends, and without a terminal's controls and what launchers put
    before each line."""
    text = _LABEL.sub("", _CONTROL.sub("", text.replace("\r\n", "\n")))
    labels, host = [_EVERYWHERE], _HOST.match(text)
    if host:
        labels.append(re.compile(rf"^{re.escape(host[1])}(?: |$)", re.M))
    for label in labels:
        lines = list(filter(str.strip, text.split("\n")))
        if len(lines) >= _FEWEST and all(map(label.match, lines)):
            text = label.sub("", text)
    return text


def table_note(table: str, row: re.Pattern[str], sizes: Sequence[int]) -> str:
    """A note on a table's lines that are not understood, and on missing rows, if each size is twice
    the one before; empty if it is complete.

    Not understood are lines that are no rows, between the first and the last row or beginning with
    a number. What launchers and other programs print after a table does not count.
    """
    lines = table.splitlines(keepends=True)
    is_row = [bool(row.fullmatch(line)) for line in lines]
    last = max((place for place, whole in enumerate(is_row) if whole), default=-1)
    strange = sum(
        not whole
        and not line.lstrip().startswith("#")
        and (bool(line.strip()) and place < last or line.lstrip()[:1].isdigit())
        for place, (line, whole) in enumerate(zip(lines, is_row))
    )
    gaps = [f"{a} and {b}" for a, b in zip(sizes, sizes[1:]) if 0 < a < b and b != 2 * a]
    lost = f"no row stands between {', '.join(gaps)} B" if gaps else ""
    return "; ".join(filter(None, [not_understood(strange), lost]))


def by_size(sizes: Sequence[int], **columns: tuple[Sequence[str], str]) -> dict[str, list]:
    """message_size [B] and the readings of a table's columns, each of which are numbers as printed
    and their unit in ours; None for a number with too few digits to print anything but zeros.

    Raises Contradictory unless each size is above the one before.
    """
    if any(later <= earlier for earlier, later in zip(sizes, sizes[1:])):
        raise Contradictory("the sizes do not ascend: several outputs are mixed")
    readings: dict[str, list] = {"message_size": list(sizes)}
    for name, (printed, unit) in columns.items():
        readings[name] = [float(Decimal(number) * Decimal(unit)) or None for number in printed]
    return readings


def without_interrupted(results: list[Result], sizes: Sequence[Sequence[int]]) -> list[Result]:
    """The results of tables with these sizes. A table whose rest stands behind the next one is
    refused."""
    checked = list(results)
    for number, (before, after) in enumerate(zip(sizes, sizes[1:])):
        ends = [size for last, size in zip(after, after[1:]) if size <= last]
        if before and ends and ends[0] > before[-1]:
            inside = Contradictory("another output begins inside this table")
            checked[number] = refused(inside, results[number].settings)
    return checked
