"""The payload of an MPI program: messages and bytes that its ranks send, by call and size of message.

The table is printed by runners/src/payload.h when a program that is linked or preloaded with
runners/src/payload.c ends, and by the simulated HPL; payload.c says what is counted.
"""

import re
from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple

from runners.record import Reading, Result, Runner, Transcript, Unreadable, only_read

# Least bytes of each class of sizes: nothing, then from each power of two up to the next; the last is open.
LEAST = (0, *(2**power for power in range(32)))

_TITLE = "Payload: messages that all ranks sent, by call and size"
_HEAD = re.compile(r"call +from B +to B +messages +bytes$")
_ROW = re.compile(r"(MPI_\w+) +(\d{1,18}) +(\d{1,18}|more) +(\d{1,18}) +(\d{1,18})$", re.ASCII)
_END = "end of payload"


@dataclass(frozen=True)
class Sent:
    """One line of a table: what the ranks sent together by one call in messages of one class of sizes.

    `least` and `most` are the class's sizes [B]; `most` is None in the last class.
    """

    call: str
    least: int
    most: Optional[int]
    messages: int
    bytes: int


Table = Tuple[Sent, ...]


def tables(text: str) -> List[Table]:
    """Every payload table in an output, in its order; empty when there is none.

    Raises Unreadable when a table is cut off or contradicts itself.
    """
    lines = [line.strip() for line in text.splitlines()]
    return [_table(lines[start + 1 :]) for start, line in enumerate(lines) if line == _TITLE]


def readings(table: Table) -> List[Reading]:
    """payload_messages and payload_bytes, each a list over the classes of LEAST with all calls together."""
    by_class = [[sent for sent in table if sent.least == least] for least in LEAST]
    messages = [sum(sent.messages for sent in sents) for sents in by_class]
    sizes = [sum(sent.bytes for sent in sents) for sents in by_class]
    return [Reading("payload_messages", messages, "1"), Reading("payload_bytes", sizes, "B")]


def parse(transcript: Transcript) -> List[Reading]:
    """The `readings` of the one table in the output; raises Unreadable as `tables`, or when there are more."""
    found = tables(transcript.executions[-1].stdout)
    if len(found) != 1:
        raise Unreadable(f"{len(found)} payload tables where one was expected")
    return readings(found[0])


def results(text: str) -> List[Result]:
    """A result for every line of every table: its messages and bytes, by number of the table, call and sizes [B].

    Raises Unreadable when there is no table, or nothing was sent; otherwise as `tables` does.
    """
    listed = []
    for number, table in enumerate(tables(text), start=1):
        for sent in table:
            messages = Reading("payload_messages", sent.messages, "1")
            sizes = {"least_bytes": sent.least, "most_bytes": sent.most}
            settings = {"table": number, "call": sent.call, **sizes}
            listed.append(Result((messages, Reading("payload_bytes", sent.bytes, "B")), settings))
    if not listed:
        raise Unreadable("there is no payload table with a message in it")
    return listed


def _table(lines: Sequence[str]) -> Table:
    """The table that begins with these lines, after its title."""
    if _END not in lines:
        raise Unreadable("the payload table is cut off: its last line is missing")
    head, *rows = lines[: lines.index(_END)] or [""]
    if not _HEAD.match(head):
        raise Unreadable("the payload table lacks its line of headings")
    table = tuple(map(_sent, rows))
    if len({(sent.call, sent.least) for sent in table}) < len(table):
        raise Unreadable("the payload table has two lines for the same call and sizes")
    return table


def _sent(line: str) -> Sent:
    """A line of a table; raises Unreadable when it is none or its numbers contradict each other."""
    row = _ROW.match(line)
    if not row:
        raise Unreadable(f"the payload table has a line that is not its own: {line[:60]!r}")
    least, messages, size = int(row[2]), int(row[4]), int(row[5])
    most = None if least == LEAST[-1] else max(2 * least - 1, 0)
    if least not in LEAST or row[3] != ("more" if most is None else str(most)):
        raise Unreadable(f"the payload table has no sizes from {row[2]} to {row[3]}")
    if not messages or size < messages * least or (most is not None and size > messages * most):
        raise Unreadable(
            f"{messages} messages of {row[2]} to {row[3]} bytes cannot be {size} bytes"
        )
    return Sent(row[1], least, most, messages, size)


RUNNER = Runner("payload", only_read("payload", "parse"), parse, results)
