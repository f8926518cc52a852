"""The bytes that a recorded program sent from each rank to each other: by its recording, by Open
MPI's own monitoring of the same run, and by its replay. They must agree.

Open MPI counts a collective as what its ranks mean for each other, whatever way the bytes take: of
a broadcast the root's data for each rank, of a reduction each rank's vector for each other. The
same is counted here. Where it makes a collective of two others, by way of the communicator's first
rank, it counts these as well.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Callable

from runners.recording.calls import SENDS, Call, Recording
from runners.records.record import Contradictory

# Output of Open MPI's monitoring about a rank: bytes that it sent to each other rank, in messages
# (E) and by collectives (C).
_SENT = re.compile(r"^([EC])\t(\d{1,6})\t(\d{1,6})\t(\d{1,18}) bytes\b")
_HEAD = "# POINT TO POINT"
MOST_OFF = 0.01
_WAYS = {"E": "messages", "C": "collectives"}

# Messages of neighbours' collectives have a tag that no program's has (record_neighbours.h); of
# some, Open MPI's monitoring crashes, and they are not counted.
_WAY_BY_TAG = {-1: "C", -2: "-"}

# Small MPI_Allgatherv are a gather and a broadcast, reductions without commutativity a reduction
# and a scatter.
_IN_TWO_STEPS = ("allgather", "allgatherv", "allreduce", "reduce_scatter", "reduce_scatter_block")

Sent = dict[tuple[str, int, int], int]  # by E or C, sender and receiver [B]


def monitored(lines: Sequence[str]) -> Sent:
    """The counts in the monitoring's output."""
    matches = filter(None, map(_SENT.match, lines))
    return {(match[1], int(match[2]), int(match[3])): int(match[4]) for match in matches}


def counted_ranks(lines: Sequence[str]) -> int:
    """The number of ranks whose counts the monitoring's output has."""
    return list(lines).count(_HEAD)


def as_text(lines: Sequence[str], ranks: int) -> str:
    """The counts alone, in the monitoring's own form."""
    matches = filter(None, map(_SENT.match, lines))
    return "\n".join([*[_HEAD] * ranks, *(match[0] for match in matches), ""])


def sent(recording: Recording) -> Sent:
    """The bytes sent according to a recording, between different ranks."""
    sizes: Sent = defaultdict(int)
    for rank, call, ranks in _with_members(recording):
        if call.name in SENDS:
            sizes[_WAY_BY_TAG.get(call.tag, "E"), rank, call.partner] += call.size
        elif call.collective:
            for other, size in zip(ranks, _to_each(call, rank, ranks)):
                if size:
                    sizes["C", rank, other] += size
    return {key: size for key, size in sizes.items() if key[1] != key[2]}


def _with_members(recording: Recording) -> Iterator[tuple[int, Call, Sequence[int]]]:
    """Every call with its rank, and the ranks of its communicator."""
    for rank, calls in enumerate(recording):
        members = {0: tuple(range(len(recording)))}
        members.update({call.label: call.parts for call in calls if call.name == "comm"})
        for call in calls:
            yield rank, call, members.get(call.label, members[0])


def _of_second_steps(recording: Recording) -> Sent:
    """The most that the first rank of a communicator counts besides, for collectives that are made
    of two others.
    """
    sizes: Sent = defaultdict(int)
    for rank, call, ranks in _with_members(recording):
        if call.name in _IN_TWO_STEPS and rank == ranks[0]:
            parts = call.parts or (call.size,) * len(ranks)
            whole = call.size if call.name == "allreduce" else sum(parts)
            for other, part in zip(ranks, parts):
                sizes["C", rank, other] += whole + part
    return sizes


def _require_alike(recording: Recording) -> None:
    """Raise Contradictory if a member of a communicator made another number of some collective than
    its others.
    """
    counts: dict[tuple[Sequence[int], str], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for rank, call, ranks in _with_members(recording):
        if call.collective:
            counts[ranks, call.name][rank] += 1
    for (ranks, name), by_rank in counts.items():
        fewest, most = (pick(ranks, key=lambda rank: by_rank[rank]) for pick in (min, max))
        if by_rank[fewest] < by_rank[most]:
            of = f"{by_rank[fewest]} of rank {fewest} and {by_rank[most]} of rank {most}"
            raise Contradictory(f"the recording has {of} of the same MPI_{name.capitalize()}")


def _to_each(call: Call, rank: int, members: Sequence[int]) -> Sequence[int]:
    """What a rank means for each member of the communicator in one collective [B]."""
    name, ranks = call.collective, len(members)
    # The root counts for all, in either direction.
    if name in ("bcast", "reduce", "gather", "scatter"):
        return [call.size] * ranks if call.partner == rank else [0] * ranks
    if name in ("gatherv", "scatterv"):
        return call.parts or [0] * ranks
    if name in ("alltoallv", "alltoallw", "reduce_scatter"):
        return call.parts[:ranks]
    if name in ("scan", "exscan"):
        place = members.index(rank)
        return [call.size if other > place else 0 for other in range(ranks)]
    return [call.size] * ranks


def by_rank(recording: Recording) -> list[tuple[int, int]]:
    """The bytes that each rank sends to others in messages, and by collectives that are not of
    neighbours.
    """
    messages, collectives = [0] * len(recording), [0] * len(recording)
    for (_, sender, _), size in sent(_only(recording, lambda call: call.name in SENDS)).items():
        messages[sender] += size
    for (_, sender, _), size in sent(_only(recording, lambda call: call.collective)).items():
        collectives[sender] += size
    return list(zip(messages, collectives))


def require_monitored(recording: Recording, counted: Sent) -> None:
    """Raise Contradictory, with both numbers, for the pair of ranks with the largest difference
    from the monitoring's counts if that exceeds 1 %, or for a collective that not all its ranks
    made.

    Open MPI 4 does not count messages of persistent requests, and counts those inside of
    MPI_Alltoallw also as messages. Other versions may do otherwise: either way is accepted.
    """
    _require_alike(recording)
    all_sent, besides = sent(recording), _of_second_steps(recording)
    persistent = sent(_only(recording, lambda call: call.name == "psend"))
    inside = sent(_only(recording, lambda call: call.name == "alltoallw"))
    as_messages = {("E", *pair[1:]): size for pair, size in inside.items()}
    expected = [
        Counter(all_sent) - Counter(less) + Counter(more)
        for less, more in product(({}, persistent), ({}, as_messages))
    ]
    off, (how, sender, receiver), ours, theirs = min(
        _worst(sizes, besides, counted) for sizes in expected
    )
    if off > MOST_OFF:
        raise Contradictory(
            f"the recording has {ours} B from rank {sender} to rank {receiver} in {_WAYS[how]}, "
            f"and Open MPI's own monitoring {theirs} B"
        )


def _only(recording: Recording, is_meant: Callable[[Call], object]) -> Recording:
    return tuple(
        tuple(call for call in calls if call.name == "comm" or is_meant(call))
        for calls in recording
    )


def _worst(ours: Sent, besides: Sent, theirs: Sent) -> tuple[float, tuple[str, int, int], int, int]:
    """The largest relative difference, its pair of different ranks, and both numbers [B]; `besides`
    may be counted, too.
    """
    differences = [(0.0, ("E", 0, 0), 0, 0)]
    for pair in {*ours, *theirs}:
        if pair[1] != pair[2] and pair[0] in _WAYS:
            least, counted = ours.get(pair, 0), theirs.get(pair, 0)
            size = min(max(counted, least), least + besides.get(pair, 0))
            off = abs(size - counted) / max(size, counted, 1)
            differences.append((off, pair, size, counted))
    return max(differences)
