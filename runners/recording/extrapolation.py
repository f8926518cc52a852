"""The recording for a number of ranks that was not recorded, from recordings on others, where that
is sound."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from runners.recording.calls import CHECKSUMS, POINT_TO_POINT, Call, Recording
from runners.records.record import FalloffError

# The largest deviation of a size and of a time from a power law of the ranks that allows
# extrapolation.
_SIZE_OFF = 0.01
_TIME_OFF = 0.10
LEAST_RECORDINGS = 3


def extrapolated(program: str, recordings: Mapping[int, Recording], ranks: int) -> Recording:
    """The recording for a number of ranks that has none, from all existing recordings.

    It is made only where it is sound; otherwise FalloffError says why not. It needs at least three
    recordings. In these, all ranks but the first and the last make the same calls with partners at
    the same distances, whatever the number of ranks. Each size is a power of that number. So is the
    computing time, within 10 %: the fit leaves out the largest recording and is compared with it.
    """
    counts = sorted(recordings)
    why = f"{program} cannot be extrapolated to {ranks} ranks"
    if len(counts) < LEAST_RECORDINGS:
        raise FalloffError(
            f"{why} from recordings on {', '.join(map(str, counts))}: "
            f"record it on {LEAST_RECORDINGS} numbers of ranks or more"
        )
    if ranks < counts[0]:
        raise FalloffError(f"{why}: the smallest recording has {counts[0]}; record it there")
    classes = {count: _classes(recordings[count], why) for count in counts}
    made = {}
    for name in classes[counts[-1]]:
        of_class = {count: classes[count][name] for count in counts if name in classes[count]}
        whose = why if name == "middle" else f"{why}: of its {name} rank"
        made[name] = _carried(of_class, ranks, whose)
    # Name the members of each communicator of all ranks.
    labels = {call.label for calls in made.values() for call in calls if call.collective} - {0}
    members = tuple(range(ranks))
    named = [Call(0.0, "comm", label=label, parts=members) for label in sorted(labels)]
    return tuple((*named, *_shifted(made[_class(rank, ranks)], rank, ranks)) for rank in members)


def _alike_on_any_ranks(calls: Sequence[Call], why: str) -> tuple[Call, ...]:
    """The calls without what belongs to one number of ranks; raises FalloffError if a collective is
    of some ranks, or has parts of different sizes."""
    common_calls = []
    for call in calls:
        if call.collective and (call.label >= CHECKSUMS or call.parts):
            what = "parts of different sizes" if call.parts else "some of the ranks"
            raise FalloffError(f"{why}: it calls MPI_{call.name.capitalize()} of {what}")
        if call.name != "comm":
            common_calls.append(call._replace(parts=()))
    return tuple(common_calls)


def _class(rank: int, ranks: int) -> str:
    return {0: "first", ranks - 1: "last"}.get(rank, "middle")


def _shifted(calls: Sequence[Call], by: int, ranks: int) -> tuple[Call, ...]:
    """The calls with each partner `by` ranks further, modulo the number of ranks; a collective's
    root stays."""
    return tuple(
        call._replace(partner=(call.partner + by) % ranks) if call.name in POINT_TO_POINT else call
        for call in calls
    )


def _classes(recording: Recording, why: str) -> dict[str, tuple[Call, ...]]:
    """The calls of the first, the middle and the last rank, with distances as partners; times are
    means of the class."""
    ranks = len(recording)
    members: dict[str, list[tuple[Call, ...]]] = defaultdict(list)
    for rank, calls in enumerate(recording):
        members[_class(rank, ranks)].append(_shifted(_alike_on_any_ranks(calls, why), -rank, ranks))
    classes = {}
    for name, several in members.items():
        if len({tuple(call._replace(seconds=0.0) for call in calls) for calls in several}) > 1:
            raise FalloffError(
                f"{why}: on {ranks} ranks, "
                "those between the first and the last do not all make the same calls"
            )
        classes[name] = tuple(
            alike[0]._replace(seconds=sum(call.seconds for call in alike) / len(alike))
            for alike in zip(*several)
        )
    return classes


def _carried(of_class: Mapping[int, tuple[Call, ...]], ranks: int, why: str) -> tuple[Call, ...]:
    """One class's calls for another number of ranks, with distances as partners."""
    recorded = sorted(of_class)
    names = [
        [(call.name, call.tag, call.request) for call in of_class[count]] for count in recorded
    ]
    if any(call_names != names[0] for call_names in names):
        counts = ", ".join(map(str, recorded))
        raise FalloffError(f"{why}, the calls are not the same on {counts} ranks")
    slower = (ranks / recorded[-1]) ** _time_exponent(
        {count: sum(call.seconds for call in of_class[count]) for count in recorded}, why
    )
    made = []
    for alike in zip(*(of_class[count] for count in recorded)):
        last = alike[-1]
        partner = last.partner
        if last.name in POINT_TO_POINT:
            distances = {count: call.partner for count, call in zip(recorded, alike)}
            partner = _distance(distances, ranks, why)
        size = _size({count: call.size for count, call in zip(recorded, alike)}, ranks, why)
        made.append(last._replace(partner=partner, size=size, seconds=last.seconds * slower))
    return tuple(made)


def _distance(distances: Mapping[int, int], ranks: int, why: str) -> int:
    """The distance of a partner: the same upwards for all numbers of ranks, or the same downwards;
    if both fit, the nearer."""
    largest = max(distances)
    upwards = distances[largest]
    for candidate in sorted((upwards, upwards - largest), key=abs):
        if all(candidate % count == distance for count, distance in distances.items()):
            return candidate % ranks
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
        raise FalloffError(
            f"{why}, the time that is computed is no power of the number of ranks: "
            f"the others foretell {100 * off:+.0f} % on {largest} ranks"
        )
    return _power_law(times, largest)[0]


def _power_law(times: Mapping[int, float], at: int) -> tuple[float, float]:
    """The exponent by least squares on log scales, and the time for another number of ranks."""
    x, y = ([math.log(value) for value in values] for values in (times.keys(), times.values()))
    middle, level = sum(x) / len(x), sum(y) / len(y)
    spread = sum((log_ranks - middle) ** 2 for log_ranks in x)
    exponent = (
        sum((log_ranks - middle) * (value - level) for log_ranks, value in zip(x, y)) / spread
    )
    return exponent, math.exp(level + exponent * (math.log(at) - middle))
