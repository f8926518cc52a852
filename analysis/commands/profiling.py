"""What `falloff profile` does: count the messages of an MPI program, record its calls, replay them."""

import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from analysis import planning, running
from analysis.commands.progress import shown
from analysis.dataset import store
from analysis.statements import exhibit
from analysis.subjects import program
from analysis.subjects.what_if import WhatIf
from analysis.wording import number, percent, plain
from runners import executables, payload
from runners.recording import recorder, replay_actions
from runners.recording.calls import SENDS
from runners.recording.recorder import Recording
from runners.records.record import Unreadable

MOST_PRESSURE = (
    25  # % of the time in which somebody waits for a processor: what few background programs cause
)
UNSEEN = "it ended before MPI_Finalize, or is no MPI program that can be seen (--help says which)"


def count(argv: Sequence[str]) -> tuple[int, str]:
    """Run a program and count its messages: its exit code, and the table of its calls with the
    share of time in MPI; empty if nothing was seen.

    The table is payload.so's, which knows the functions by their names; where it sees none, as in a
    Fortran program, it is made from the recording.
    """
    code, (table, text) = payload.run(
        argv,
        {
            "FALLOFF_PAYLOAD": Path(executables.find("payload.so", {})),
            "FALLOFF_RECORD": Path(executables.find("record.so", {})),
        },
    )
    if not text:
        return code, table
    try:
        recorded = recorder.read(text)
    except Unreadable as reason:
        return code, "\n\n".join(
            filter(None, [table, f"The share of the time in MPI is unknown: {reason}."])
        )
    return code, f"{table or _table(recorded)}\n\n{_sentence(recorded)}"


def _table(recorded: Recording) -> str:
    """The calls of a recording with their number and bytes."""
    rows: dict[str, list[int]] = {}
    for calls in recorded:
        for call in calls:
            if call.collective or call.name in SENDS:
                row = rows.setdefault(f"MPI_{call.name.capitalize()}", [0, 0])
                row[0] += 1
                row[1] += call.size
    lines = [f"{name:24}{calls:12}{size:16}" for name, (calls, size) in sorted(rows.items())]
    return "\n".join([f"{'call':24}{'calls':>12}{'bytes':>16}", *lines])


def _sentence(recorded: Recording) -> str:
    """How much the ranks sent, and the share of their time in MPI."""
    done, ranks = recorder.totals(recorded), len(recorded)
    computed = [sum(call.seconds for call in calls) for calls in recorded]
    sent = [call for calls in recorded for call in calls if call.collective or call.name in SENDS]
    words = [
        f"{ranks} ranks took part in {len(sent)} messages and collectives with {number(sum(call.size for call in sent) / 1e6)} MB."
    ]
    if done.seconds and ranks > 1:  # one rank waits for no other
        share = 1 - sum(computed) / (ranks * done.seconds)
        waited = " or waiting for a processor" if _is_busy(ranks) else ""
        words.append(
            f"{percent(max(share, 0.0))} of their time of {number(done.seconds)} s was in MPI{waited}."
        )
    return " ".join(words)


def _is_busy(ranks: int) -> bool:
    """Whether so many ranks, or they and other programs, wanted more processors than there are."""
    wanted = max(ranks, os.getloadavg()[0])
    pressure = Path(
        "/proc/pressure/cpu"
    )  # the share of the last 10 s in which somebody waited for a processor
    text = pressure.read_text() if pressure.exists() else ""
    waited = re.search(r"some avg10=([\d.]+)", text)
    return wanted > (os.cpu_count() or 1) or bool(waited and float(waited[1]) > MOST_PRESSURE)


def record(argv: Sequence[str], name: str) -> tuple[int, list[str]]:
    """Run a program, and keep the recording of its calls under `name`: its exit code, and what to
    tell.

    Raises FalloffError if the program fails, or nothing of it is seen.
    """
    recorder.require_name(name)  # before the program runs
    library = Path(executables.find("record.so", {}))
    code, (printed,) = payload.run(argv, {"FALLOFF_RECORD": library})
    if code:
        return code, [
            f"{argv[0]} ended with exit code {code}: a program that fails is not recorded"
        ]
    if not printed:
        return 1, [f"no call of {argv[0]} was recorded: {UNSEEN}"]
    file = recorder.keep(printed, name)
    recorded = recorder.read(printed)
    ranks = ", ".join(map(str, recorder.by_ranks(name)))
    return 0, [
        *_recorded(recorded, recorder.is_monitored(printed), file),
        f"`falloff profile --replay {name}` replays it; there are recordings of {ranks} ranks",
    ]


def _recorded(recorded: Recording, is_monitored: bool, file: Path) -> list[str]:
    done = recorder.totals(recorded)
    lines = [
        f"{done.recorded} calls of {len(recorded)} ranks are in {file} ({file.stat().st_size / 1e3:.0f} kB)"
    ]
    if recorder.is_window(recorded):
        lines.append(
            f"They are the first of {done.calls} calls, up to a collective of all ranks: a replay is of that window alone, and the bytes "
            "of the whole run could not be compared"
        )
    elif is_monitored:
        lines.append(
            "Their bytes from each rank to each other agree with Open MPI's own monitoring within 1 %"
        )
    else:
        lines.append(
            "Their bytes are not compared: Open MPI's monitoring has left no counts of all ranks"
        )
    if done.first_come:
        lines.append(
            f"{done.first_come} calls took what came first (MPI_Waitany, MPI_Test, MPI_ANY_SOURCE): a replay keeps the order that was "
            "recorded, which may differ on another network"
        )
    return lines


def replay_report(
    name: str,
    testbed: str,
    nodes: Sequence[int],
    asked: WhatIf,
) -> list[str]:
    """Replay a recorded program on described networks: the table of times and POP's factors, and
    sentences.

    Raises FalloffError if there is no recording, none can be extrapolated, or the testbed does not
    describe a network.
    """
    recordings = recorder.by_ranks(name)
    wanted = sorted({*recordings, *nodes})
    began, size = time.monotonic(), 0
    for count_ in wanted:
        of = recorder.of(name, count_)  # raises now if the recording cannot be extrapolated
        size += recorder.totals(of).recorded
        replay_actions.files(of)
    plan = planning.plan_replay(name, wanted, testbed, asked)
    print(
        f"{name}: {size} calls of {', '.join(map(str, wanted))} ranks, read in {time.monotonic() - began:.1f} s",
        flush=True,
    )
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
    words += _limits(name, recordings, wanted)
    return list(filter(None, words))


def _limits(name: str, recordings: Mapping[int, Recording], wanted: Sequence[int]) -> list[str]:
    """What a replay of these recordings does not say."""
    limits = []
    carried = ", ".join(str(count) for count in wanted if count not in recordings)
    if carried:
        limits.append(
            f"Extrapolated from recordings of {', '.join(map(str, recordings))} ranks: {carried} nodes."
        )
    if cut := [str(ranks) for ranks, of in recordings.items() if recorder.is_window(of)]:
        limits.append(
            f"The recordings of {', '.join(cut)} ranks are windows: {name} made more calls than are kept."
        )
    if any(recorder.totals(of).first_come for of in recordings.values()):
        limits.append(
            f"{name} takes what comes first (MPI_Waitany, MPI_Test, MPI_ANY_SOURCE): the replay keeps the recorded order."
        )
    return limits
