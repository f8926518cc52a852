"""A replay makes every call that is recorded, sends the bytes of the recording, and takes the time
that is known.
"""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from test_recorder import FORTRAN, LAUNCH, needs_fortran, needs_mpi
from test_simulated import NETWORKS, needs_simgrid

from analysis import paths, planning
from analysis.commands import profiling
from analysis.descriptions import testbeds
from analysis.statistics.judgement import judge as judged
from analysis.subjects import program
from analysis.subjects.what_if import WhatIf
from runners import executables, payload
from runners.recording import recorder, replay_actions
from runners.recording.calls import COLLECTIVES, NON_BLOCKING, POINT_TO_POINT, Call
from runners.records.record import Command, FalloffError, Trial, judge
from runners.testbeds import simulated
from runners.tools import replay

HERE = Path(__file__).parent / "support"
SMITH = testbeds.read("smith").plain()
pytestmark = needs_simgrid


def recorded(program, *words, ranks):
    library = executables.find("record.so", {})
    code, (text,) = payload.run(
        [*LAUNCH, str(ranks), str(program), *words], {"FALLOFF_RECORD": library}
    )
    assert code == 0
    return recorder.read(text)


@pytest.fixture(scope="module")
def bed():
    with simulated.open_testbed(SMITH, NETWORKS) as opened:
        yield opened


def replayed(bed, files, network="gige", **more):
    """The outcome of a replay of these files, by name as `replay_actions.files` makes them; the
    point has `more` settings."""
    ranks = len(files) - 1
    command = Command(("replay", "it", "1.0"), ranks=ranks, files=files, timeout_s=60)
    point = {"interconnect": network, "nodes": ranks, **more}
    return judge(bed.run(Trial("t", "point", "replay", 1, 1, point), [command]), replay.TOOL.parse)


def readings(bed, found, network="gige", **more):
    outcome = replayed(bed, replay_actions.files(found), network, **more)
    assert outcome.status == "ok", outcome.reason
    return outcome.readings


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Programs of this folder by name, built when they are asked for."""
    folder = tmp_path_factory.mktemp("built")

    def build(name, *options):
        made = folder / name
        source, compiler = (f"{name}.F90", "mpifort") if options else (f"{name}.c", "mpicc")
        environment = {**os.environ, **({"OMPI_FC": FORTRAN} if FORTRAN else {})}
        command = [compiler, *options, str(HERE / source), "-o", str(made)]
        subprocess.run(command, check=True, env=environment)
        return made

    return build


@needs_mpi
def test_every_call_is_replayed_with_its_bytes(bed, built):
    """Each that moves data, of all ranks and of some, blocking and not: what the replay sends is
    what was recorded. A head that says other bytes, as for a call that is left out, is refused."""
    found = recorded(built("monitored_calls"), ranks=4)
    names = {call.name for call in found[0]}
    assert names >= {*COLLECTIVES, *NON_BLOCKING, *POINT_TO_POINT}
    files = replay_actions.files(found)
    outcome = replayed(bed, files)
    assert outcome.status == "ok", outcome.reason
    head, _, rest = files["rank-1"].partition("\n")
    messages, collectives = map(int, head.split())
    files["rank-1"] = f"{messages} {round(1.02 * collectives)}\n{rest}"
    outcome = replayed(bed, files)
    assert outcome.status == "invalid" and "of rank 1 in collectives" in outcome.reason


@needs_fortran
def test_a_fortran_program_is_replayed(bed, built):
    """Its ring of 4000 bytes and its sum, with a second to compute before them."""
    found = recorded(built("recorded_calls", "-cpp", "-DBINDING=90"), ranks=4)
    slower = tuple((calls[0]._replace(seconds=1.0), *calls[1:]) for calls in found)
    assert readings(bed, slower)["replay_time"] == pytest.approx(1.0, rel=0.01)


@needs_mpi
def test_the_same_exchange_by_another_function_is_judged_alike(bed, built):
    """A transpose by MPI_Alltoall and by MPI_Alltoallw, whose work and data are shared out to 2 and
    to 4 ranks.
    """
    program, answers, ends = built("exchanges"), {}, {}
    for kind in ("alltoall", "alltoallw"):
        efficiency = []
        for ranks in (2, 4):
            words = (kind, "5", str(0.008 / ranks), str(4_000_000 // ranks**2))
            found = recorded(program, *words, ranks=ranks)
            times = [readings(bed, found, name)["replay_time"] for name in ("unshaped", "gige")]
            efficiency.append(times[0] / times[1])
        ends[kind] = efficiency
        answers[kind] = judged([np.log(efficiency[1] / efficiency[0])], 0.05, "simulated").answer
    assert max(ends["alltoall"]) < 0.6
    assert ends["alltoallw"] == pytest.approx(ends["alltoall"], rel=0.1)
    assert answers["alltoallw"] == answers["alltoall"]


@pytest.mark.parametrize("ranks", [2, 4, 8, 16, 32])
def test_a_small_allreduce_doubles_as_with_open_mpi(bed, ranks):
    """A number of eight bytes takes a message's time for each doubling of the ranks: Open MPI has
    no ring for so few elements.
    """
    times = 100
    one = Call(0.0, "allreduce", size=8)
    calls = (one._replace(seconds=0.5), *[one] * (times - 1), Call(0.5, "end"))
    doublings = (readings(bed, (calls,) * ranks)["replay_time"] - 1.0) / times / 40e-6
    assert doublings == pytest.approx(np.log2(ranks), rel=0.1)


@needs_mpi
def test_a_program_that_makes_too_many_calls_is_cut_to_a_window(bed, built, monkeypatch):
    """With room for twenty calls of a rank: the recording ends with a collective of all ranks, says
    so, and is replayed.
    """
    monkeypatch.setenv("FALLOFF_RECORD_CALLS", "20")
    found = recorded(built("exchanges"), "alltoall", "50", "0.001", "1000", ranks=2)
    assert recorder.is_window(found)
    for calls in found:
        names = [call.name for call in calls]
        assert names[-1] == "end" and set(names[:-1]) == {"alltoall"} and 10 < len(names) <= 21
    done = recorder.totals(found)
    assert done.calls == 100 and done.recorded == 40
    assert readings(bed, found)["replay_time"] > 0.009


def test_what_ifs_are_networks_of_their_own():
    """By name: half the latency and twice the bandwidth of one network, which itself stays; and
    ranks that compute longer.
    """
    asked = WhatIf(["25gige"], twice="bandwidth", half="latency")
    plan = planning.plan_replay("stencil", [8, 4], "smith", asked)
    networks, own = plan.testbed["network"], SMITH["network"]["25gige"]
    names = ["25gige", "25gige_twice_bandwidth", "25gige_half_latency", "unshaped"]
    assert plan.design["factors"]["interconnect"] == names
    values = [
        [networks[name][of]["value"] for of in ("bandwidth", "latency")] for name in names[:3]
    ]
    fast, late = own["bandwidth"]["value"], own["latency"]["value"]
    assert values == [[fast, late], [2 * fast, late], [fast, late / 2]]
    asked = WhatIf(["gige", "gige", "unshaped"], twice="bandwidth")
    twice = planning.plan_replay("stencil", [4], "smith", asked)
    levels = twice.design["factors"]["interconnect"]
    assert len(levels) == len(set(levels)) and levels.count("unshaped") == 1
    slower = {f"{name} 4": 1.5 for name in ("gige", "unshaped")}
    plan = planning.plan_replay("stencil", [4], "smith", WhatIf(["gige"]), slower)
    assert [trial.point["computing"] for trial in plan.trials()] == [1.5, 1.5]
    with pytest.raises(FalloffError, match="did you mean '25gige'"):
        planning.plan_replay("stencil", [4], "smith", WhatIf(["25gig"]))
    with pytest.raises(FalloffError, match="did you mean 'latency'"):
        WhatIf(half="latencey")


def exchange(size, in_phase):
    """Two ranks send each other a message. The second first waits a second for a word of the first,
    who has announced its message before that word, unless they are in phase."""

    def calls(other):
        yield Call(0.0, "irecv", other, tag=1, size=size, request=1)
        yield Call(0.0, "isend", other, tag=1, size=size, request=2)
        yield Call(0.0, "wait", request=1)
        yield Call(0.0, "wait", request=2)

    receive, send, *waits = calls(1)
    word = Call(1.0, "send", 1, tag=2, size=8)
    heard = Call(0.0, "recv", 0, tag=2, size=8)
    first = (word, receive, send) if in_phase else (send, word, receive)
    ends = (Call(0.0, "end"),)
    return ((*first, *waits, *ends), (heard, *calls(0), *ends))


@pytest.mark.parametrize("size", [110_000, 22_000_000])
def test_in_open_mpis_order_one_of_two_messages_waits_for_the_other(bed, size):
    """Out of phase they take twice the time that each takes on GigE, with 110 MB/s of payload; in
    phase, and where nobody's order is kept, they go at once."""
    one = size / 110e6
    took = {
        (order, in_phase): readings(bed, exchange(size, in_phase), **given)["replay_time"] - 1.0
        for order, given in (("none", {}), ("put", {"rendezvous": "put"}))
        for in_phase in (True, False)
    }
    out_of_phase = took.pop(("put", False))
    assert list(took.values()) == pytest.approx([one] * 3, rel=0.02, abs=2e-4)
    assert out_of_phase == pytest.approx(2 * one, rel=0.02, abs=3e-4)
    same = readings(bed, exchange(size, False), rendezvous="independent")["replay_time"]
    assert same == took["none", False] + 1.0


def test_messages_keep_open_mpis_order_beside_collectives(bed):
    """Of all kinds and sizes, to two neighbours at once, while collectives are under way: a rank
    that waits in one goes on with its messages. All bytes are sent, however they are ordered."""
    ranks, sizes = 4, (8, 65_535, 65_536, 1_000_000)

    def calls(rank):
        number = 0
        for size in (*sizes, *reversed(sizes)):
            for name in ("irecv", "isend"):
                for way in (-1, 1):
                    number += 1
                    other, tag = (rank + way) % ranks, 5
                    yield Call(1e-5 * rank, name, other, tag=tag, size=size, request=number)
            yield Call(0.0, "allreduce", size=size)
            if size < 65_536:
                yield Call(0.0, "barrier")
        yield from (Call(0.0, "wait", request=one + 1) for one in range(number))
        yield Call(0.0, "end")

    found = tuple(tuple(calls(rank)) for rank in range(ranks))
    plain, ordered = (readings(bed, found, **given) for given in ({}, {"rendezvous": "put"}))
    assert plain["replay_time"] > 2 * sum(sizes) * 2 / 110e6
    assert ordered["replay_time"] > 0.9 * plain["replay_time"]


def test_a_replay_in_open_mpis_order_says_so(capsys, monkeypatch, tmp_path):
    """And its plan keeps it; without the option the plan is as it was."""
    plans = [planning.plan_replay("stencil", [4], rendezvous=order) for order in ("", "put")]
    assert [plan.trials()[0].point.get("rendezvous") for plan in plans] == [None, "put"]
    monkeypatch.setattr(paths, "RAW", tmp_path)
    asked = {"networks": ["gige"], "twice": "", "half": ""}
    told = [
        profiling.replay_report("stencil", "smith", (), asked, mpi) for mpi in (None, "openmpi")
    ]
    assert [profiling.OF_OPEN_MPI in lines for lines in told] == [False, True]


def chain(seconds, size):
    """A recording in which rank r computes r + 1 times as long, each after it has got the message
    of the one before.
    """
    ranks = 4
    for rank in range(ranks):
        calls = []
        if rank:
            calls.append(Call(0.0, "recv", rank - 1, tag=1, size=size))
        calls.append(Call((rank + 1) * seconds, "send", (rank + 1) % ranks, tag=1, size=size))
        if not rank:
            calls.append(Call(0.0, "recv", ranks - 1, tag=1, size=size))
        yield (*calls, Call(0.0, "end"))


def test_pops_factors_are_those_of_a_program_whose_time_is_known(bed):
    """One rank after the other computes 1, 2, 3 and 4 s, and hands 55 MB on: 10 s without a
    network. On GigE, whose payload is 110 MB/s, four messages take half a second each."""
    found = tuple(chain(1.0, 55_000_000))
    networks = ("gige", "unshaped")
    got = {name: readings(bed, found, name) for name in networks}
    readings_of = {"time": "replay_time", "mean": "computing_mean", "most": "computing_most"}
    times = {
        name: xr.DataArray(
            [got[network][reading] for network in networks], {"interconnect": list(networks)}
        )
        for name, reading in readings_of.items()
    }
    factors = program.factors(xr.Dataset(times)).sel(interconnect="gige")
    known = {
        "load_balance": 2.5 / 4,
        "serialisation": 4 / 10,
        "transfer": 10 / 12,
        "parallel": 2.5 / 12,
    }
    assert {name: factors[name].item() for name in known} == pytest.approx(known, rel=0.02)
    shares = program.shares(factors)
    assert sum(shares[name].item() for name in shares) == pytest.approx(1)
    assert shares.computing.item() == pytest.approx(factors.parallel.item())
