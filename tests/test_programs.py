"""Recorded programs: what is recorded is what was called, a replay agrees with the direct
simulation, and nothing unsound is carried on to more ranks."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from executed import executed, stated
from test_simulated import NETWORKS, needs_simgrid

from analysis import experiment, planning
from analysis.commands import profiling
from analysis.descriptions import testbeds
from runners import executables, payload
from runners.recording import extrapolation, recorder, replay_actions
from runners.recording.calls import CHECKSUMS, Call
from runners.records.record import Command, FalloffError, Trial, Unreadable, judge
from runners.testbeds import simulated
from runners.tools import hpl
from runners.tools import replay as replay_tool

PROGRAM = Path(__file__).parent / "support" / "recorded_calls.c"
MODEL = testbeds.read("fortinet_model_simulated").plain()
needs_mpi = pytest.mark.skipif(not shutil.which("mpirun"), reason="Open MPI is not here")


def run(bed, point, command, parse):
    transcript = bed.run(Trial("t", "point", "hpl", 1, 1, point), [command])
    outcome = judge(transcript, parse)
    assert outcome.status == "ok", outcome.reason
    return transcript.executions[-1].stdout, outcome.readings


@needs_simgrid
def test_a_replay_of_hpl_agrees_with_its_direct_simulation():
    """HPL is recorded once, on 10GE. On GigE, where it takes a fifth longer, the replay is within 2
    % of HPL's own code; its time is that of the whole program, of which the factorisation is the
    most."""
    plan = planning.plan_campaign("hpl_agreement", "fortinet_model_simulated", "full")
    (point, *_) = (trial.point for trial in plan.trials() if trial.point["nodes"] == 8)
    direct, replayed = {}, {}
    with simulated.open_testbed(MODEL, NETWORKS) as bed:
        for network in ("gige", "10gige"):
            there = {**point, "interconnect": network, "vary": "none"}
            (command,) = hpl.commands(there)
            _, readings = run(bed, there, command, hpl.parse)
            direct[network] = 2 / 3 * point["N"] ** 3 / 1e9 / readings["hpl_rate"]
        recorded, _ = run(bed, there, replace(command, argv=("xhpl_recorded",)), hpl.parse)
        found = recorder.read(recorded)
        for network in direct:
            files = replay_actions.files(found)
            command = Command(("replay",), ranks=8, files=files, timeout_s=60)
            there = {**point, "interconnect": network}
            _, readings = run(bed, there, command, replay_tool.TOOL.parse)
            replayed[network] = readings["replay_time"]
    assert direct["gige"] > 1.15 * direct["10gige"]
    assert replayed == pytest.approx(direct, rel=0.02)


@needs_mpi
def test_the_recording_is_what_was_called(tmp_path):
    """Real MPI on two cores: processor time, partners as ranks of all behind a communicator that
    turns them round, the source and size that came, and no time for waiting."""
    program = str(tmp_path / "calls")
    subprocess.run(["mpicc", "-O1", str(PROGRAM), "-o", program], check=True)
    library = executables.find("record.so", {})
    launch = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "4", program]
    code, (text,) = payload.run(launch, {"FALLOFF_RECORD": library})
    assert code == 0
    ranks = recorder.read(text)
    assert len(ranks) == 4
    for rank, calls in enumerate(ranks):
        assert calls[0].name == "comm" and calls[0].parts == ((2, 0), (3, 1))[rank % 2]
        calls = calls[1:]
        names = [call.name for call in calls]
        assert names == ["irecv", "isend", "wait", "wait", "allreduce", "end"]
        received, sent = calls[:2]
        partner = (rank + 2) % 4
        assert (received.partner, received.size, received.tag) == (partner, 2000 + partner, 7)
        assert (sent.partner, sent.size) == (partner, 2000 + rank)
        assert received.label == sent.label == ranks[partner][0].label >= CHECKSUMS
        computed = sum(call.seconds for call in calls)
        assert 0.045 * (rank + 1) < computed < 0.08 * (rank + 1)


def ring(ranks, seconds=lambda ranks: 8 / ranks, size=lambda ranks: 64000 // ranks, is_closed=True):
    """A recording in which each rank sends to the next; the ends have one neighbour unless the ring
    is closed.
    """
    made = []
    for rank in range(ranks):
        calls = []
        if is_closed or rank < ranks - 1:
            calls.append(Call(seconds(ranks), "send", (rank + 1) % ranks, tag=1, size=size(ranks)))
        if is_closed or rank:
            calls.append(Call(0.0, "recv", (rank - 1) % ranks, tag=1, size=size(ranks)))
        made.append((*calls, Call(0.0, "allreduce", size=8), Call(0.0, "end")))
    return tuple(made)


def some(make=ring, counts=(4, 8, 16), **how):
    return {count: make(count, **how) for count in counts}


@pytest.mark.parametrize(("is_closed", "ranks"), [(True, 6), (True, 32), (False, 40)])
def test_what_follows_a_law_is_carried_on(is_closed, ranks):
    """A ring and a chain, whose times and sizes fall with the ranks: what is made for others is
    what they would record.
    """
    made = extrapolation.extrapolated("ring", some(is_closed=is_closed), ranks)
    wanted = ring(ranks, is_closed=is_closed)
    for calls, others in zip(made, wanted, strict=True):
        assert [call._replace(seconds=0, size=0) for call in calls] == [
            call._replace(seconds=0, size=0) for call in others
        ]
        assert np.allclose([call.size for call in calls], [call.size for call in others], atol=1)
        assert np.allclose([c.seconds for c in calls], [c.seconds for c in others], rtol=1e-6)
    replay_actions.files(made)


def uneven(ranks):
    return tuple(calls[rank % 2 :] for rank, calls in enumerate(ring(ranks)))


def butterfly(ranks):
    half = ranks // 2
    sent = [Call(1.0, "send", (rank + half) % ranks, tag=1, size=8) for rank in range(ranks)]
    return tuple(
        (one, Call(0.0, "recv", one.partner, tag=1, size=8), Call(0.0, "end")) for one in sent
    )


@pytest.mark.parametrize(
    ("recordings", "ranks", "reason"),
    [
        (some(counts=(4, 8)), 32, "record it on 3 numbers of ranks or more"),
        (some(), 2, "the smallest recording has 4"),
        (some(uneven), 32, "do not all make the same calls"),
        (some(butterfly), 32, "the distance of a partner changes"),
        (some(size=lambda ranks: {4: 100, 8: 50, 16: 40}[ranks]), 32, "size is no power"),
        (some(size=lambda ranks: 100 if ranks > 4 else 0), 32, "size is no power"),
        (some(seconds=lambda ranks: {4: 8, 8: 4, 16: 1.6}[ranks]), 32, r"foretell \+25 % on 16"),
    ],
)
def test_what_follows_no_law_is_not_carried_on(recordings, ranks, reason):
    """The reason is named; HPL is refused for the calls of its ranks."""
    with pytest.raises(FalloffError, match=reason):
        extrapolation.extrapolated("it", recordings, ranks)


TEXT = """Recording of 2 ranks, processor time
rank 0
1000 send 1 0 3 800
0 end
rank 1
0 recv 0 0 3 800
5 end
end of recording
"""


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (("end of recording\n", ""), "one that ends was expected"),
        (("rank 1\n", ""), "announces 2 ranks and has 1"),
        (("0 end\nrank", "rank"), "not their last calls"),
        (("send 1 0 3 800", "send 1 0 3"), "not its own"),
        (("send 1 0 3 800", "allreduce 5 8 0"), "does not name the members of communicator 5"),
        (("send 1 0 3 800", "too_long"), "too many calls"),
        (("recv 0", "recv 1"), "rank 1 receives what rank 1 never sends"),
        (("0 recv 0 0 3 800\n", ""), "rank 1 never receives what rank 0 sends"),
    ],
)
def test_a_damaged_recording_is_refused(damage, reason):
    """Cut, out of order, without a partner: a reason, never a replay of half a program."""
    assert len(replay_actions.files(recorder.read(TEXT))) == 3
    with pytest.raises(Unreadable, match=reason):
        replay_actions.files(recorder.read(TEXT.replace(*damage)))


def computed_s(ranks):
    return sum(call.seconds for calls in ranks for call in calls)


def test_the_stored_recordings_are_carried_on():
    """Both examples share out the same work: carried on to more ranks, these compute as much
    together as was recorded.
    """
    for program in ("stencil", "transpose"):
        kept = recorder.by_ranks(program)
        recorded = computed_s(kept[max(kept)])
        for ranks in (32, 64):
            found = recorder.of(program, ranks)
            assert len(found) == ranks
            assert computed_s(found) == pytest.approx(recorded, rel=0.15)
    with pytest.raises(FalloffError, match="did you mean 'stencil'"):
        recorder.by_ranks("stencill")
    with pytest.raises(FalloffError, match="cannot name a program"):
        recorder.keep(TEXT, "../evil")


def test_efficiency_falls_off_where_the_network_counts():
    """Of the stored replays: both programs fall off on GigE, and less on 10GE."""
    runs = experiment.stored("replay_examples", "smith")
    run = executed("54", replay_examples=runs)
    slow, fast = (run.names["efficiency"].sel(interconnect=name) for name in ("gige", "10gige"))
    assert bool((slow < fast).all()) and float(fast.max()) < 1
    for program in ("stencil", "transpose"):
        on_slow, on_fast = (
            stated(run, f"Program {program} loses efficiency on {name}")
            for name in ("GigE", "10GE")
        )
        assert on_slow.words == "falls off" and on_slow.primary and not on_fast.primary
        assert on_slow.estimate > on_fast.estimate
    only = runs.isel(trial=np.flatnonzero(runs.interconnect.values != "unshaped"))
    with pytest.raises(FalloffError, match="add unshaped to the campaign's interconnects"):
        executed("54", replay_examples=only)


@pytest.mark.parametrize(
    ("ranks", "busy", "said"),
    [
        (1, False, ()),
        (1, True, ()),
        (2, False, ("75.0 %", "was in MPI.")),
        (2, True, ("75.0 %", "in MPI or waiting for a processor")),
    ],
)
def test_waiting_for_a_processor_is_not_called_mpi(ranks, busy, said, monkeypatch):
    """Each rank computed 1 s of 4 s. One rank waits for no other, and on a busy machine the rest
    may be waiting.
    """
    end = Call(0.0, "end", parts=(4 * 10**9, 1, 0))
    own = (Call(1.0, "bcast", size=8), end)
    monkeypatch.setattr(profiling.payload, "run", lambda *_: (0, ["a table", "a recording"]))
    monkeypatch.setattr(profiling.recorder, "read", lambda _: (own,) * ranks)
    monkeypatch.setattr(profiling.os, "getloadavg", lambda: (99.0 if busy else 0.0, 0.0, 0.0))
    monkeypatch.setattr(profiling.os, "cpu_count", lambda: 4)
    monkeypatch.setattr(profiling, "MOST_PRESSURE", 100)
    _, text = profiling.count(["mpirun", "-np", str(ranks), "program"])
    assert f"{ranks} rank" in text and all(words in text.replace("\u00a0", " ") for words in said)
    assert ("in MPI" in text) == bool(said)
