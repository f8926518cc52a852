"""What runners/src/replay.c does to replay a recording: a file of actions for each rank.

A recording names communicators, requests and messages as the program did. Here communicators are
numbered from 0 (all ranks), requests have the number of a place that is free, and every message
gets a tag of its own: the k-th message from one rank to another with a given tag is the k-th
received there with it, so sender and receiver always match.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

from runners.recording import recorded_bytes
from runners.recording.calls import POINT_TO_POINT, SENDS, Call, Recording
from runners.records.record import Contradictory, Unsupported

# The collectives of replay.c, by their numbers there.
KINDS = (
    *("barrier", "bcast", "reduce", "allreduce", "scan", "exscan", "reduce_scatter"),
    *("reduce_scatter_block", "gather", "gatherv", "allgather", "allgatherv", "scatter"),
    *("scatterv", "alltoall", "alltoallv"),
)
_MOST_BYTES = 2**31 - 1  # MPI counts with an int


def files(recording: Recording) -> dict[str, str]:
    """The files of a replay by name: `communicators`, and `rank-0` and so on with the actions.

    A computing time is in seconds. Raises Unreadable if a message has only one end, or moves 2 GiB
    or more at once.
    """
    members = _communicators(recording)
    numbers = {label: number for number, label in enumerate(members)}
    tags, sent = _tags(recording), recorded_bytes.by_rank(recording)
    most = max(_bytes_at_once(call, members) for calls in recording for call in calls)
    if most > _MOST_BYTES:
        raise Unsupported(
            f"a call moves {most / 2**30:.1f} GiB at once, which MPI's counts cannot hold"
        )
    lines = [" ".join(map(str, (len(ranks), *ranks))) for ranks in members.values()]
    texts = {"communicators": "\n".join([f"{most} {len(members)}", *lines, ""])}
    for rank, calls in enumerate(recording):
        head = " ".join(map(str, sent[rank]))
        actions = _actions(rank, calls, tags[rank], members, numbers)
        texts[f"rank-{rank}"] = "\n".join([head, *actions, "x", ""])
    return texts


def _communicators(recording: Recording) -> dict[int, tuple[int, ...]]:
    """The members of each communicator that has collectives, by label; all ranks first."""
    all_calls = [call for calls in recording for call in calls]
    used = {call.label for call in all_calls if call.collective}
    members = {0: tuple(range(len(recording)))}
    for call in all_calls:
        if call.name == "comm" and call.label in used:
            members.setdefault(call.label, call.parts)
    if unknown := used - set(members):
        raise Contradictory(
            f"the recording does not name the members of communicator {min(unknown)}"
        )
    return members


def _bytes_at_once(call: Call, members: dict[int, tuple[int, ...]]) -> int:
    if call.collective:
        return max(call.size * len(members[call.label]), sum(call.parts), 1)
    return max(call.size, 1)


def _tags(recording: Recording) -> list[list[int]]:
    """A number for each message of each rank's calls, the same at both ends; raises Unreadable if a
    message has only one end."""
    messages = [
        (rank, place, call)
        for rank, calls in enumerate(recording)
        for place, call in enumerate(calls)
        if call.name in POINT_TO_POINT
    ]
    waiting: dict[tuple[int, ...], deque[int]] = defaultdict(deque)  # positions of sends
    for rank, place, call in messages:
        if call.name in SENDS:
            waiting[call.message(rank)].append(place)
    numbers: dict[tuple[int, int], int] = defaultdict(int)
    tags = [[0] * len(calls) for calls in recording]
    for rank, place, call in messages:
        if call.name not in SENDS:
            sent = waiting[call.message(rank)]
            if not sent:
                raise Contradictory(f"rank {rank} receives what rank {call.partner} never sends")
            numbers[call.partner, rank] += 1
            tags[rank][place] = tags[call.partner][sent.popleft()] = numbers[call.partner, rank]
    for (sender, receiver, *_), sent in waiting.items():
        if sent:
            raise Contradictory(f"rank {receiver} never receives what rank {sender} sends")
    return tags


def _actions(
    rank: int,
    calls: Sequence[Call],
    tags: Sequence[int],
    members: dict[int, tuple[int, ...]],
    numbers: dict[int, int],
) -> Iterator[str]:
    places: dict[int, int] = {}  # of the requests under way
    free: list[int] = []
    due = 0.0
    for call, tag in zip(calls, tags):
        due += call.seconds
        place = -1
        if call.request and call.name != "wait":
            place = places[call.request] = free.pop() if free else len(places)
        if call.name in _LETTERS:
            request = f"{place} " if call.request else ""
            action = f"{_LETTERS[call.name]} {request}{call.partner} {tag} {call.size}"
        elif call.name == "wait" and call.request in places:
            place = places.pop(call.request)
            free.append(place)
            action = f"w {place}"
        elif call.collective:
            ranks = members[call.label]
            root = ranks.index(call.partner) if call.partner in ranks else 0
            kind = KINDS.index("alltoallv" if call.collective == "alltoallw" else call.collective)
            fields = (kind, numbers[call.label], place, call.size, root, len(call.parts))
            action = " ".join(map(str, ("k", *fields, *call.parts)))
        else:
            continue
        if due:
            yield f"c {due:.9f}"
            due = 0.0
        yield action
    if due:
        yield f"c {due:.9f}"
    yield from (f"w {place}" for place in places.values())  # requests that nobody waited for


_LETTERS = {"send": "s", "recv": "r", "isend": "i", "psend": "i", "irecv": "j"}
