"""Recordings of MPI programs: every rank's calls in order, as runners/src/record.c prints them and
SimGrid replays them.

A recording is for one number of ranks. `traces` gives the time-independent trace of each rank: what
it computes and sends, without any clock times, so that it can be replayed on any network. From
three recordings or more, `extrapolated` makes the recording for another number of ranks, where that
is sound.
"""

import hashlib
import lzma
import math
import re
from collections import defaultdict, deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Deque, Dict, Iterator, List, Mapping, Sequence, Tuple

from runners import archive, executables
from runners.journal import write_whole
from runners.record import (
    Contradictory,
    Cut,
    FalloffError,
    Foreign,
    Unreadable,
    Unsupported,
    unknown,
)

STORE = executables.CHECKOUT / "data" / "programs"

# The largest deviation of a size and of a time from a power law of the ranks that allows extrapolation.
_SIZE_OFF = 0.01
_TIME_OFF = 0.10
LEAST_RECORDINGS = 3

_HEAD = re.compile(r"^Recording of (\d{1,6}) ranks, (wall|processor) time$")
_END = "end of recording"
# Output of Open MPI's monitoring about a rank: bytes that it sent to each other rank, in messages (E) and by collectives (C).
_MONITORED = "monitored"
_OF_A_RANK = "# POINT TO POINT"
_SENT = re.compile(r"^([EC])\t(\d{1,6})\t(\d{1,6})\t(\d{1,18}) bytes\b")
_SENT_OFF = 0.01
_POINT_TO_POINT = {"send": 4, "recv": 4, "isend": 5, "irecv": 5}
# The fields after the name in SimGrid's action of a collective: sizes, data types (0: bytes) and the root.
_COLLECTIVES = {
    "barrier": "",
    "bcast": " {size} {root}",
    "reduce": " {size} 0 {root}",
    "allreduce": " {size} 0",
    "gather": " {size} {size} {root}",
    "allgather": " {size} {size}",
    "scatter": " {size} {size} {root}",
    "alltoall": " {size} {size}",
}
_WITH_ROOT = ("bcast", "reduce", "gather", "scatter")
_NUMBERS = {**_POINT_TO_POINT, **dict.fromkeys(_COLLECTIVES, 3), "wait": 1, "end": 0}


@dataclass(frozen=True)
class Call:
    """One call of one rank: the `seconds` computed before it, its `name` and its arguments.

    `partner` is a rank or a collective's root, `label` the communicator (0: all ranks in their
    order), `request` the number of a request that begins or ends, 0 for none.
    """

    seconds: float
    name: str
    partner: int = 0
    label: int = 0
    tag: int = 0
    size: int = 0
    request: int = 0


Recording = Tuple[Tuple[Call, ...], ...]  # over ranks


def read(text: str) -> Recording:
    """The one recording in a text. Raises Unreadable if it is cut off, damaged, contains calls that
    cannot be replayed, or its bytes differ from those that the MPI library counted."""
    lines = [line.strip() for line in text.splitlines()]
    heads = [number for number, line in enumerate(lines) if _HEAD.match(line)]
    if len(heads) != 1 or _END not in lines[heads[0] :]:
        begin_here = f"{len(heads)} recordings begin here, and one that ends was expected"
        raise (Contradictory if heads[1:] else Cut if heads else Foreign)(begin_here)
    begin = heads[0]
    count = int(_HEAD.match(lines[begin])[1])
    ranks: List[List[Call]] = []
    body = lines[begin + 1 : lines.index(_END, begin)]
    _require_known(body)
    for line in body:
        if line == f"rank {len(ranks)}":
            ranks.append([])
        elif ranks:
            ranks[-1].append(_call(line))
        else:
            raise Contradictory(f"the recording has a line that is not its own: {line[:60]!r}")
    if len(ranks) != count or not all(calls and calls[-1].name == "end" for calls in ranks):
        has = f"has {len(ranks)}, or not their last calls"
        raise Contradictory(f"the recording announces {count} ranks and {has}")
    recorded = tuple(map(tuple, ranks))
    if is_monitored(text):
        _compare(_sent(recorded), _monitored(text))
    return recorded


def is_monitored(text: str) -> bool:
    """Whether the monitoring's counts of all ranks follow a recording; `read` compares it with
    them."""
    head, _, rest = text.partition(_END)
    announced = re.search(r"Recording of (\d{1,6}) ranks", head)
    lines = rest.strip().splitlines()
    return bool(
        announced and lines[:1] == [_MONITORED] and lines.count(_OF_A_RANK) == int(announced[1])
    )


Sent = Dict[Tuple[str, int, int], int]  # by E or C, sender and receiver [B]


def _monitored(text: str) -> Sent:
    matches = map(_SENT.match, text.partition(_END)[2].splitlines())
    return {(one[1], int(one[2]), int(one[3])): int(one[4]) for one in matches if one}


def _sent(recording: Recording) -> Sent:
    """The bytes sent according to a recording. For a collective with a root, the root counts for
    all, in either direction."""
    sent: Sent = defaultdict(int)
    for rank, calls in enumerate(recording):
        to_all = 0
        for call in calls:
            if call.name in ("send", "isend"):
                sent["E", rank, call.partner] += call.size
            elif call.name in _COLLECTIVES and (
                call.name not in _WITH_ROOT or call.partner == rank
            ):
                to_all += call.size
        for other in range(len(recording)):
            if other != rank:
                sent["C", rank, other] = to_all
    return sent


def _compare(recorded: Sent, monitored: Sent) -> None:
    """Raise Unreadable, with both numbers, for the pair of ranks with the largest difference if
    that exceeds 1 %."""
    pairs = sorted({*recorded, *monitored})
    of_both = {pair: (recorded.get(pair, 0), monitored.get(pair, 0)) for pair in pairs}
    off = {
        pair: abs(ours - theirs) / max(ours, theirs, 1) for pair, (ours, theirs) in of_both.items()
    }
    worst = max(off, key=lambda pair: off[pair], default=None)
    if worst and off[worst] > _SENT_OFF:
        how, sender, receiver = worst
        ours, theirs = of_both[worst]
        way = "messages" if how == "E" else "collectives"
        whose = f"{ours} B from rank {sender} to rank {receiver} in {way}"
        raise Contradictory(f"the recording has {whose}, and Open MPI's own monitoring {theirs} B")


def _require_known(lines: Sequence[str]) -> None:
    """Raise Unreadable naming all calls that the recorder refused, and any loss of the calls'
    order."""
    marked = [line.split()[1:3] for line in lines]
    names = sorted({words[1] for words in marked if len(words) == 2 and words[0] == "unknown"})
    if names:
        raise Unsupported(f"the program calls {', '.join(names)}, which a replay cannot do")
    if ["crowded"] in marked:
        raise Unsupported("several threads of a rank call MPI at the same time: record it with one")
    if ["too_long"] in marked:
        few = "record fewer steps of the program"
        raise Unsupported(f"a rank makes too many calls to be recorded: {few}")


def _call(line: str) -> Call:
    nanoseconds, _, rest = line.partition(" ")
    name, *words = rest.split()[:7] or [""]
    are_numbers = all(re.fullmatch(r"-?\d{1,15}", word) for word in words)
    if not (re.fullmatch(r"\d{1,18}", nanoseconds) and are_numbers) or (
        len(words) != _NUMBERS.get(name, -1)
    ):
        raise Contradictory(f"the recording has a line that is not its own: {line[:60]!r}")
    seconds, numbers = int(nanoseconds) / 1e9, list(map(int, words))
    if name in _COLLECTIVES:
        label, size, root = numbers
        if label:
            whose = f"MPI_{name.capitalize()} of a part of the ranks, or of all in another order"
            raise Unsupported(f"the program calls {whose}, which a replay cannot do")
        return Call(seconds, name, root, size=size)
    if name in _POINT_TO_POINT:
        request = numbers.pop(0) if len(numbers) == 5 else 0
        return Call(seconds, name, *numbers, request=request)
    return Call(seconds, name, request=numbers[0] if numbers else 0)


def programs(store: Path = STORE) -> List[str]:
    """The names of all recorded programs."""
    files = executables.described(store, "*-*.txt.xz")
    return sorted({file.name.rsplit("-", 1)[0] for file in files})


def kept(program: str, store: Path = STORE) -> Dict[int, Recording]:
    """The recordings of a program by their number of ranks; raises FalloffError when there is none."""
    found = executables.described(store, f"{program}-*.txt.xz")
    files = {int(file.name.split("-")[-1].split(".")[0]): file for file in found}
    if not files:
        raise unknown("recorded program", program, programs(store))
    return {ranks: _opened(files[ranks]) for ranks in sorted(files)}


def _opened(file: Path) -> Recording:
    try:
        return read(archive.decompressed(file.read_bytes()).decode("utf-8"))
    except (OSError, lzma.LZMAError, UnicodeDecodeError, Unreadable) as error:
        raise FalloffError(f"{file}: {error}; record the program anew") from None


def keep(text: str, program: str, store: Path = STORE) -> Path:
    """Keep a recording, compressed; raises Unreadable like `read`, and FalloffError for an invalid
    name."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,40}", program):
        raise FalloffError(f"{program!r} cannot name a program: letters, digits and _ can")
    ranks = len(read(text))
    whole = text[text.index("Recording of") : text.rindex(_END)] + _END + "\n"
    if is_monitored(text):
        rest = text[text.rindex(_END) :].splitlines()
        found = [_SENT.match(line) for line in rest]
        counts = [match[0] for match in found if match]
        whole += "\n".join([_MONITORED, *[_OF_A_RANK] * ranks, *counts, ""])
    executables.own(store).mkdir(parents=True, exist_ok=True)
    file = executables.own(store) / f"{program}-{ranks}.txt.xz"
    write_whole(file, lzma.compress(whole.encode()))
    return file


def digest(program: str, store: Path = STORE) -> str:
    """The checksum of all recordings of a program."""
    files = executables.described(store, f"{program}-*.txt.xz")
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def of(program: str, ranks: int, store: Path = STORE) -> Recording:
    """The recording of a program for this number of ranks, extrapolated if there is none; raises
    FalloffError like `extrapolated`."""
    recordings = kept(program, store)
    return recordings[ranks] if ranks in recordings else extrapolated(program, recordings, ranks)


def traces(recording: Recording) -> Dict[str, str]:
    """SimGrid's time-independent trace of each rank, and the list of traces, by file name.

    A node computes 1e9 units a second. Every message gets a unique tag: the k-th message from one
    rank to another with a given tag is the k-th received there with it, so sender and receiver
    always match.
    """
    tags = _tags(recording)
    files = {"traces": "".join(f"rank-{rank}.txt\n" for rank in range(len(recording)))}
    for rank, calls in enumerate(recording):
        files[f"rank-{rank}.txt"] = "\n".join(_actions(rank, calls, tags[rank])) + "\n"
    return files


def _tags(recording: Recording) -> List[List[int]]:
    """A number for each message of each rank's calls, the same at both ends; raises Unreadable if a
    message has only one end."""
    calls = [
        (rank, place, call)
        for rank, calls in enumerate(recording)
        for place, call in enumerate(calls)
    ]
    waiting: Dict[Tuple[int, ...], Deque[int]] = defaultdict(deque)  # positions of sends
    for rank, place, call in calls:
        if call.name in ("send", "isend"):
            waiting[rank, call.partner, call.label, call.tag].append(place)
    numbers: Dict[Tuple[int, int], int] = defaultdict(int)
    found = [[0] * len(calls) for calls in recording]
    for rank, place, call in calls:
        if call.name in ("recv", "irecv"):
            sent = waiting[call.partner, rank, call.label, call.tag]
            if not sent:
                raise Contradictory(f"rank {rank} receives what rank {call.partner} never sends")
            numbers[call.partner, rank] += 1
            found[rank][place] = found[call.partner][sent.popleft()] = numbers[call.partner, rank]
    for (sender, receiver, *_), sent in waiting.items():
        if sent:
            raise Contradictory(f"rank {receiver} never receives what rank {sender} sends")
    return found


def _actions(rank: int, calls: Sequence[Call], tags: Sequence[int]) -> Iterator[str]:
    ends: Dict[int, str] = {}
    yield f"{rank} init"
    for call, tag in zip(calls, tags):
        if call.seconds:
            yield f"{rank} compute {call.seconds * 1e9:.0f}"
        if call.name in _POINT_TO_POINT:
            if call.request:
                ways = (rank, call.partner) if call.name == "isend" else (call.partner, rank)
                ends[call.request] = f"{rank} wait {ways[0]} {ways[1]} {tag}"
            yield f"{rank} {call.name} {call.partner} {tag} {call.size}"
        elif call.name == "wait" and call.request in ends:
            yield ends.pop(call.request)
        elif call.name in _COLLECTIVES:
            sizes = _COLLECTIVES[call.name].format(size=call.size, root=call.partner)
            yield f"{rank} {call.name}{sizes}"
    yield from ends.values()  # sends that nobody waited for
    yield f"{rank} finalize"


def extrapolated(program: str, recordings: Mapping[int, Recording], ranks: int) -> Recording:
    """The recording for a number of ranks that has none, from all existing recordings.

    It is made only where it is sound; otherwise FalloffError says why not. It needs at least three
    recordings. In these, all ranks but the first and the last make the same calls with partners at
    the same distances, whatever the number of ranks. Each size is a power of that number. So is the
    computing time, within 10 %: the fit leaves out the largest recording and is compared with it.
    """
    known = sorted(recordings)
    why = f"{program} cannot be extrapolated to {ranks} ranks"
    if len(known) < LEAST_RECORDINGS:
        remedy = f"record it on {LEAST_RECORDINGS} numbers of ranks or more"
        raise FalloffError(f"{why} from recordings on {', '.join(map(str, known))}: {remedy}")
    if ranks < known[0]:
        raise FalloffError(f"{why}: the smallest recording has {known[0]}; record it there")
    classes = {count: _classes(recordings[count], why) for count in known}
    made = {}
    for name in classes[known[-1]]:
        of_class = {count: classes[count][name] for count in known if name in classes[count]}
        whose = why if name == "middle" else f"{why}: of its {name} rank"
        made[name] = _carried(of_class, ranks, whose)
    return tuple(_shifted(made[_class(rank, ranks)], rank, ranks) for rank in range(ranks))


def _class(rank: int, ranks: int) -> str:
    return {0: "first", ranks - 1: "last"}.get(rank, "middle")


def _shifted(calls: Sequence[Call], by: int, ranks: int) -> Tuple[Call, ...]:
    """The calls with each partner `by` ranks further, modulo the number of ranks; a collective's
    root stays."""
    return tuple(
        replace(call, partner=(call.partner + by) % ranks) if call.name in _POINT_TO_POINT else call
        for call in calls
    )


def _classes(recording: Recording, why: str) -> Dict[str, Tuple[Call, ...]]:
    """The calls of the first, the middle and the last rank, with distances as partners; times are
    means of the class."""
    ranks = len(recording)
    members: Dict[str, List[Tuple[Call, ...]]] = defaultdict(list)
    for rank, calls in enumerate(recording):
        members[_class(rank, ranks)].append(_shifted(calls, -rank, ranks))
    found = {}
    for name, several in members.items():
        if len({tuple(replace(call, seconds=0.0) for call in calls) for calls in several}) > 1:
            between = "those between the first and the last do not all make the same calls"
            raise FalloffError(f"{why}: on {ranks} ranks, {between}")
        found[name] = tuple(
            replace(alike[0], seconds=sum(call.seconds for call in alike) / len(alike))
            for alike in zip(*several)
        )
    return found


def _carried(of_class: Mapping[int, Tuple[Call, ...]], ranks: int, why: str) -> Tuple[Call, ...]:
    """One class's calls for another number of ranks, with distances as partners."""
    known = sorted(of_class)
    names = [[(call.name, call.tag, call.request) for call in of_class[count]] for count in known]
    if any(each != names[0] for each in names):
        counts = ", ".join(map(str, known))
        raise FalloffError(f"{why}, the calls are not the same on {counts} ranks")
    slower = (ranks / known[-1]) ** _time_exponent(
        {count: sum(call.seconds for call in of_class[count]) for count in known}, why
    )
    made = []
    for alike in zip(*(of_class[count] for count in known)):
        last = alike[-1]
        partner = last.partner
        if last.name in _POINT_TO_POINT:
            distances = {count: call.partner for count, call in zip(known, alike)}
            partner = _distance(distances, ranks, why)
        size = _size({count: call.size for count, call in zip(known, alike)}, ranks, why)
        made.append(replace(last, partner=partner, size=size, seconds=last.seconds * slower))
    return tuple(made)


def _distance(distances: Mapping[int, int], ranks: int, why: str) -> int:
    """The distance of a partner: the same upwards for all numbers of ranks, or the same downwards;
    if both fit, the nearer."""
    largest = max(distances)
    upwards = distances[largest]
    for found in sorted((upwards, upwards - largest), key=abs):
        if all(found % count == distance for count, distance in distances.items()):
            return found % ranks
    raise FalloffError(f"{why}, the distance of a partner changes with the number of ranks")


def _size(sizes: Mapping[int, int], ranks: int, why: str) -> int:
    """The size [B] for another number of ranks, by the power law through the fewest and the
    most."""
    (first, start), (last, end) = min(sizes.items()), max(sizes.items())
    if len(set(sizes.values())) == 1:
        return end
    if all(sizes.values()):
        exponent = math.log(end / start) / math.log(last / first)
        off = (start * (count / first) ** exponent / size - 1 for count, size in sizes.items())
        if max(map(abs, off)) <= _SIZE_OFF:
            return round(end * (ranks / last) ** exponent)
    raise FalloffError(f"{why}, a message's size is no power of the number of ranks")


def _time_exponent(times: Mapping[int, float], why: str) -> float:
    """How computing time changes with the number of ranks; the largest recording must confirm the
    others."""
    if not all(times.values()):
        return 0.0
    *fewer, largest = sorted(times)
    exponent, foretold = _power_law({count: times[count] for count in fewer}, largest)
    off = foretold / times[largest] - 1
    if abs(off) > _TIME_OFF:
        law = "the time that is computed is no power of the number of ranks"
        said = f"the others foretell {100 * off:+.0f} % on {largest} ranks"
        raise FalloffError(f"{why}, {law}: {said}")
    return _power_law(times, largest)[0]


def _power_law(times: Mapping[int, float], at: int) -> Tuple[float, float]:
    """The exponent by least squares on log scales, and the time for another number of ranks."""
    x, y = ([math.log(value) for value in values] for values in (times.keys(), times.values()))
    middle, level = sum(x) / len(x), sum(y) / len(y)
    spread = sum((one - middle) ** 2 for one in x)
    exponent = sum((one - middle) * (value - level) for one, value in zip(x, y)) / spread
    return exponent, math.exp(level + exponent * (math.log(at) - middle))
