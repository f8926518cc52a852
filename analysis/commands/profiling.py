"""What `falloff profile` does: count the messages of an MPI program, record its calls, replay
them."""

import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis import planning, running
from analysis.commands.progress import shown
from analysis.dataset import store
from analysis.statements import exhibit
from analysis.subjects import program
from analysis.subjects.what_if import WhatIf
from analysis.wording import number, percent, plain
from runners import executables, payload
from runners.recording import recorder, replay_actions
from runners.recording.calls import SENDS, Call
from runners.recording.recorder import Recording
from runners.records.record import Unreadable

# % of the time in which somebody waits for a processor: what few background programs cause.
MOST_PRESSURE = 25
FIRST_COME = "MPI_Waitany, MPI_Test, MPI_ANY_SOURCE"
UNSEEN = "it ended before MPI_Finalize, or is no MPI program that can be seen (--help says which)"


# What `--mpi` says about a replay; without it nobody's order is kept.
RENDEZVOUS = {"openmpi": "put"}
OF_OPEN_MPI = (
    "Long messages kept the order of Open MPI over TCP: of two that two ranks send each other out "
    "of phase, one waits for the other. Those of collectives did not."
)


def _library(name: str) -> Path:
    return Path(executables.find(name, {}))


def count(argv: Sequence[str]) -> tuple[int, str]:
    """Run a program and count its messages: its exit code, and the table of its calls with the
    share of time in MPI; empty if nothing was seen.

    The table is payload.so's, which knows the functions by their names; where it sees none, as in a
    Fortran program, it is made from the recording.
    """
    libraries = {
        "FALLOFF_PAYLOAD": _library("payload.so"),
        "FALLOFF_RECORD": _library("record.so"),
    }
    code, (table, text) = payload.run(argv, libraries)
    if not text:
        return code, table
    try:
        recorded = recorder.read(text)
        table, share = table or _table(recorded), _sentence(recorded)
    except Unreadable as reason:
        share = f"The share of the time in MPI is unknown: {reason}."
    return code, f"{table}\n\n{share}".strip()


def _sent(recorded: Recording) -> list[Call]:
    """The messages and collectives of a recording."""
    return [call for calls in recorded for call in calls if call.collective or call.name in SENDS]


def _table(recorded: Recording) -> str:
    """The calls of a recording with their number and bytes."""
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for call in _sent(recorded):
        name = f"MPI_{call.name.capitalize()}"
        counts[name] += 1
        sizes[name] += call.size
    lines = [f"{name:24}{counts[name]:12}{sizes[name]:16}" for name in sorted(counts)]
    return "\n".join([f"{'call':24}{'calls':>12}{'bytes':>16}", *lines])


def _sentence(recorded: Recording) -> str:
    """How much the ranks sent, and the share of their time in MPI."""
    seconds, ranks, sent = recorder.totals(recorded).seconds, len(recorded), _sent(recorded)
    volume = number(sum(call.size for call in sent) / 1e6)
    words = f"{ranks} ranks took part in {len(sent)} messages and collectives with {volume} MB."
    if not seconds or ranks == 1:  # one rank waits for no other
        return words
    computed = sum(call.seconds for calls in recorded for call in calls)
    share = percent(max(1 - computed / (ranks * seconds), 0.0))
    waited = " or waiting for a processor" if _is_busy(ranks) else ""
    return f"{words} {share} of their time of {number(seconds)} s was in MPI{waited}."


def _is_busy(ranks: int) -> bool:
    """Whether so many ranks, or they and other programs, wanted more processors than there are."""
    wanted = max(ranks, os.getloadavg()[0])
    # The share of the last 10 s in which somebody waited for a processor.
    pressure = Path("/proc/pressure/cpu")
    text = pressure.read_text() if pressure.exists() else ""
    waited = re.search(r"some avg10=([\d.]+)", text)
    return wanted > (os.cpu_count() or 1) or bool(waited and float(waited[1]) > MOST_PRESSURE)


def record(argv: Sequence[str], name: str) -> tuple[int, list[str]]:
    """Run a program, and keep the recording of its calls under `name`: its exit code, and what to
    tell.

    Raises FalloffError if the program fails, or nothing of it is seen.
    """
    recorder.require_name(name)  # before the program runs
    code, (printed,) = payload.run(argv, {"FALLOFF_RECORD": _library("record.so")})
    if code:
        reason = f"{argv[0]} ended with exit code {code}"
        return code, [f"{reason}: a program that fails is not recorded"]
    if not printed:
        return 1, [f"no call of {argv[0]} was recorded: {UNSEEN}"]
    file, recorded = recorder.keep(printed, name), recorder.read(printed)
    done, size = recorder.totals(recorded), file.stat().st_size / 1e3
    agreement = (
        "Their bytes are not compared: Open MPI's monitoring has left no counts of all ranks"
    )
    if recorder.is_window(recorded):
        agreement = (
            f"They are the first of {done.calls} calls, up to a collective of all ranks: a replay "
            "is of that window alone, and the bytes of the whole run could not be compared"
        )
    elif recorder.is_monitored(printed):
        agreement = (
            "Their bytes from each rank to each other agree with Open MPI's own monitoring "
            "within 1 %"
        )
    lines = [f"{done.recorded} calls of {len(recorded)} ranks are in {file} ({size:.0f} kB)"]
    lines.append(agreement)
    if done.first_come:
        lines.append(
            f"{done.first_come} calls took what came first ({FIRST_COME}): a replay keeps the "
            "order that was recorded, which may differ on another network"
        )
    ranks = _listed(recorder.by_ranks(name))
    replay = f"`falloff profile --replay {name}` replays it"
    return 0, [*lines, f"{replay}; there are recordings of {ranks} ranks"]


def replay_report(
    name: str,
    testbed: str,
    nodes: Sequence[int],
    asked: Mapping[str, Any],
    mpi: str | None = None,
) -> list[str]:
    """Replay a recorded program on described networks: the table of times and POP's factors, and
    sentences. `asked` are the fields of a `WhatIf`, `mpi` one of RENDEZVOUS, whose order is kept.

    Raises FalloffError if there is no recording, none can be extrapolated, or the testbed does not
    describe a network.
    """
    recordings = recorder.by_ranks(name)
    wanted = sorted({*recordings, *nodes})
    began, size = time.monotonic(), 0
    for ranks in wanted:
        recorded = recorder.of(name, ranks)  # raises now if the recording cannot be extrapolated
        size += recorder.totals(recorded).recorded
        replay_actions.files(recorded)
    plan = planning.plan_replay(
        name, wanted, testbed, WhatIf(**asked), rendezvous=RENDEZVOUS.get(mpi or "", "")
    )
    took = f"read in {time.monotonic() - began:.1f} s"
    print(f"{name}: {size} calls of {_listed(wanted)} ranks, {took}", flush=True)
    with shown() as listen:
        runs = store.read(running.run_campaign(plan, listen=listen))
    times, names = program.times(runs), runs.falloff.names
    last = program.factors(times.mean("block")).isel(nodes=[-1])
    rows = [
        (names[line.interconnect.item()], *map(number, line.values)) for line in times.time[0, 0]
    ]
    columns = ("Network", *(f"{count} nodes [s]" for count in wanted))
    time_table = exhibit.Table("times", columns, "l" + "r" * len(wanted), rows, "Times")
    stated = [*program.falls(runs, times), *program.savings(runs, times)]
    words = [time_table.body, program.factors_table(runs, last).body]
    words += ["\n".join(f"- {plain(str(statement))}" for statement in stated)]
    words += [OF_OPEN_MPI] * bool(mpi)
    return [*filter(None, words), *_limits(name, recordings, wanted)]


def _listed(counts: Iterable[int]) -> str:
    return ", ".join(map(str, counts))


def _limits(name: str, recordings: Mapping[int, Recording], wanted: Iterable[int]) -> Iterator[str]:
    """What a replay of these recordings does not say."""
    if further := [ranks for ranks in wanted if ranks not in recordings]:
        of = f"Extrapolated from recordings of {_listed(recordings)} ranks"
        yield f"{of}: {_listed(further)} nodes."
    if cut := [ranks for ranks, calls in recordings.items() if recorder.is_window(calls)]:
        of = f"The recordings of {_listed(cut)} ranks are windows"
        yield f"{of}: {name} made more calls than are kept."
    if any(recorder.totals(calls).first_come for calls in recordings.values()):
        yield f"{name} takes what comes first ({FIRST_COME}): the replay keeps the recorded order."
