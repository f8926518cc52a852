"""Recordings of MPI programs: every rank's calls in order, as runners/src/record.c prints them.

A recording is for one number of ranks. It says what each rank computes and sends, without any clock
times, so that it can be replayed on any network (runners/recording/replay_actions.py). `of` gives
it also for numbers of ranks that were not recorded, where that is sound
(runners/recording/extrapolation.py).
"""

import hashlib
import lzma
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Callable

from runners import executables
from runners.recording import extrapolation, recorded_bytes
from runners.recording.calls import (
    COLLECTIVES,
    NON_BLOCKING,
    POINT_TO_POINT,
    SENDS,
    WITH_PARTS,
    Call,
    Recording,
)
from runners.records import archive
from runners.records.journal import write_whole
from runners.records.record import (
    Contradictory,
    Cut,
    FalloffError,
    Foreign,
    Unreadable,
    Unsupported,
    unknown,
)

STORE = executables.CHECKOUT / "data" / "programs"

_HEAD = re.compile(r"^Recording of (\d{1,6}) ranks, (wall|processor) time$")
_END = "end of recording"
_MONITORED = "monitored"  # the counts of Open MPI's monitoring follow

_FILE = re.compile(r"(.+)-(\d{1,6})\.txt\.xz")  # the program and its number of ranks
_NUMBER = re.compile(r"-?\d{1,15}")


@dataclass(frozen=True)
class Totals:
    """What a program did while it was recorded: the longest time from MPI_Init to MPI_Finalize of
    its ranks [s], 0 if unknown; its calls; those of them whose result depends on what came first;
    and the calls that the recording holds.
    """

    seconds: float
    calls: int
    first_come: int
    recorded: int


def read(text: str) -> Recording:
    """The one recording in a text. One that was too long is cut to a window: see `totals`.

    Raises Unreadable if it is cut off, damaged, contains calls that cannot be replayed, or its
    bytes differ from those that the MPI library counted.
    """
    lines, count = _lines(text)
    _require_known(lines)
    ranks: list[list[Call]] = []
    # A program makes the same calls again and again.
    parsed = cache(_parsed)
    for line in lines:
        if line == f"rank {len(ranks)}":
            ranks.append([])
        elif ranks:
            ranks[-1].append(_call(line, parsed))
        else:
            raise Contradictory(f"the recording has a line that is not its own: {line[:60]!r}")
    if len(ranks) != count or not all(calls and calls[-1].name == "end" for calls in ranks):
        raise Contradictory(
            f"the recording announces {count} ranks and has {len(ranks)}, or not their last calls"
        )
    if any(call.name == "cut" for calls in ranks for call in calls[-2:]):
        return _window(ranks)
    recorded = tuple(map(tuple, ranks))
    if is_monitored(text):
        counts = recorded_bytes.monitored(text.partition(_END)[2].splitlines())
        recorded_bytes.require_monitored(recorded, counts)
    return recorded


def _lines(text: str) -> tuple[list[str], int]:
    """The lines of the one recording in a text, and the number of ranks that it announces."""
    lines = [line.strip() for line in text.splitlines()]
    matches = [(place, _HEAD.match(line)) for place, line in enumerate(lines)]
    heads = [(place, int(head[1])) for place, head in matches if head]
    if len(heads) != 1 or _END not in lines[heads[0][0] :]:
        begin_here = f"{len(heads)} recordings begin here, and one that ends was expected"
        raise (Contradictory if heads[1:] else Cut if heads else Foreign)(begin_here)
    ((begin, ranks),) = heads
    return lines[begin + 1 : lines.index(_END, begin)], ranks


def is_monitored(text: str) -> bool:
    """Whether the monitoring's counts of all ranks follow a recording; `read` compares it with
    them."""
    head, _, rest = text.partition(_END)
    announced = re.search(r"Recording of (\d{1,6}) ranks", head)
    lines = rest.strip().splitlines()
    return bool(
        announced
        and lines[:1] == [_MONITORED]
        and recorded_bytes.counted_ranks(lines) == int(announced[1])
    )


def totals(recording: Recording) -> Totals:
    """What the program did while it was recorded; unknown numbers, of older recordings, are 0."""
    nanoseconds, made, first_come = zip(*(calls[-1].parts or (0, 0, 0) for calls in recording))
    held = sum(call.name not in ("comm", "end") for calls in recording for call in calls)
    return Totals(max(nanoseconds) / 1e9, sum(made) or held, sum(first_come), held)


def is_window(recording: Recording) -> bool:
    """Whether a recording holds only the beginning of the run, as a rank made too many calls."""
    return any(calls[-1].tag for calls in recording)


def _window(ranks: Sequence[Sequence[Call]]) -> Recording:
    """The calls up to the last collective of all ranks that each of them still recorded, without
    messages of which only one end is within; `tag` of the last call is 1. Raises Unsupported if
    there is no such collective."""
    borders = [
        [place for place, call in enumerate(calls) if call.name in COLLECTIVES and not call.label]
        for calls in ranks
    ]
    common = min(map(len, borders))
    if not common:
        raise Unsupported(
            "a rank makes too many calls to be recorded, "
            "and no collective of all ranks divides them: record fewer steps of the program"
        )
    return _whole_messages(
        [
            [*calls[: places[common - 1] + 1], calls[-1]._replace(seconds=0.0, tag=1)]
            for calls, places in zip(ranks, borders)
        ]
    )


def _whole_messages(ranks: Sequence[Sequence[Call]]) -> Recording:
    """The calls without messages that have only one end, and without ends of requests that did not
    begin.
    """
    ends = Counter(
        (call.name in SENDS, call.message(rank))
        for rank, calls in enumerate(ranks)
        for call in calls
        if call.name in POINT_TO_POINT
    )
    whole_calls = []
    for rank, calls in enumerate(ranks):
        seen: Counter[tuple] = Counter()
        begun, before, within = set(), 0.0, []
        for call in calls:
            is_left_out = call.name == "lost" or call.name == "wait" and call.request not in begun
            if call.name in POINT_TO_POINT:
                end, message = call.name in SENDS, call.message(rank)
                seen[end, message] += 1
                is_left_out = seen[end, message] > ends[not end, message]
            if is_left_out:
                before += call.seconds
                continue
            if call.request and call.name != "wait":
                begun.add(call.request)
            within.append(call._replace(seconds=call.seconds + before))
            before = 0.0
        whole_calls.append(tuple(within))
    return tuple(whole_calls)


def _require_known(lines: Sequence[str]) -> None:
    """Raise Unreadable naming all calls that the recorder refused, and any loss of the calls'
    order."""
    text = "\n".join(lines)
    names = sorted(set(re.findall(r"^\S+[ \t]+unknown[ \t]+(\S+)", text, re.M)))
    if names:
        raise Unsupported(f"the program calls {', '.join(names)}, which a replay cannot do")
    if re.search(r"^\S+[ \t]+crowded$", text, re.M):
        raise Unsupported("several threads of a rank call MPI at the same time: record it with one")
    if re.search(r"^\S+[ \t]+too_long$", text, re.M):
        raise Unsupported(
            "a rank makes too many calls to be recorded: record fewer steps of the program"
        )


def _call(line: str, parsed: Callable[[str], Call]) -> Call:
    """The call of a line, what follows its time read by `parsed`; raises Contradictory if the line
    is none.
    """
    nanoseconds, _, rest = line.partition(" ")
    try:
        seconds = int(nanoseconds) / 1e9
        if seconds < 0:
            raise ValueError
        return Call(seconds, *parsed(rest)[1:])
    except (ValueError, IndexError):
        raise Contradictory(
            f"the recording has a line that is not its own: {line[:60]!r}"
        ) from None


def _parsed(text: str) -> Call:
    """The call, without its seconds, of the text after them; raises ValueError or IndexError if it
    has none.
    """
    name, *words = text.split() or [""]
    if not all(map(_NUMBER.fullmatch, words)):
        raise ValueError
    numbers = list(map(int, words))
    if name in POINT_TO_POINT:
        if len(numbers) != POINT_TO_POINT[name]:
            raise ValueError
        request = numbers.pop(0) if len(numbers) == 5 else 0
        partner, label, tag, size = numbers
        return Call(0.0, name, partner, label, tag, size, request)
    if name == "wait" and len(numbers) == 1:
        return Call(0.0, name, request=numbers[0])
    if name == "end" and len(numbers) in (0, 3) or name == "comm" and len(numbers) > 1:
        label = numbers.pop(0) if name == "comm" else 0
        return Call(0.0, name, label=label, parts=tuple(numbers))
    if name in ("cut", "lost") and not numbers:
        return Call(0.0, name)
    if name in COLLECTIVES or name in NON_BLOCKING:
        request = numbers.pop(0) if name in NON_BLOCKING else 0
        label, size, root, *parts = numbers
        if parts and NON_BLOCKING.get(name, name) not in WITH_PARTS:
            raise ValueError
        return Call(0.0, name, root, label, 0, size, request, tuple(parts))
    raise ValueError


def programs() -> list[str]:
    """The names of all recorded programs."""
    return sorted({program for program, _ in _stored()})


def _stored() -> dict[tuple[str, int], Path]:
    """The files of all recordings, by program and number of ranks."""
    files = executables.described(STORE, "*-*.txt.xz")
    names = [(_FILE.fullmatch(file.name), file) for file in files]
    return {(name[1], int(name[2])): file for name, file in names if name}


def by_ranks(program: str) -> dict[int, Recording]:
    """The recordings of a program by their number of ranks; raises FalloffError without any."""
    files = _files(program)
    return {ranks: _opened(files[ranks]) for ranks in sorted(files)}


def _files(program: str) -> dict[int, Path]:
    """The files of a program's recordings by their number of ranks; raises FalloffError when there
    is none.
    """
    files = {ranks: file for (name, ranks), file in _stored().items() if name == program}
    if not files:
        raise unknown("recorded program", program, programs())
    return files


def _opened(file: Path) -> Recording:
    return _read(file, file.read_bytes())


@lru_cache(maxsize=32)  # the trials of a campaign come in random order
def _read(file: Path, content: bytes) -> Recording:
    try:
        return read(archive.decompressed(content).decode("utf-8"))
    except (OSError, lzma.LZMAError, UnicodeDecodeError, Unreadable) as error:
        raise FalloffError(f"{file}: {error}; record the program anew") from None


def keep(text: str, program: str) -> Path:
    """Keep a recording, compressed; raises Unreadable like `read`, and FalloffError for an invalid
    name."""
    require_name(program)
    ranks = len(read(text))
    whole = text[text.index("Recording of") : text.rindex(_END)] + _END + "\n"
    if is_monitored(text):
        rest = text[text.rindex(_END) :].splitlines()
        whole += f"{_MONITORED}\n{recorded_bytes.as_text(rest, ranks)}"
    executables.users_folder(STORE).mkdir(parents=True, exist_ok=True)
    file = executables.users_folder(STORE) / f"{program}-{ranks}.txt.xz"
    write_whole(file, lzma.compress(whole.encode()))
    return file


def require_name(program: str) -> None:
    """Raise FalloffError unless a program can have this name."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,40}", program):
        raise FalloffError(f"{program!r} cannot name a program: letters, digits and _ can")


def digest(program: str) -> str:
    """The checksum of all recordings of a program; raises FalloffError when there is none."""
    files = _files(program).values()
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def of(program: str, ranks: int) -> Recording:
    """The recording of a program for this number of ranks, extrapolated if there is none; raises
    FalloffError like `extrapolation.extrapolated`."""
    files = _files(program)
    if ranks in files:
        return _opened(files[ranks])
    return extrapolation.extrapolated(program, by_ranks(program), ranks)
