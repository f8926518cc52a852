"""Any MPI program on paced nodes in slow motion: what it computes and sends takes the time that is
known, a slower node is seen, and the campaign of a user's own program is what the command line
says."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import users
from executed import executed, stated
from synthetic import of_plan
from undisturbed import alone
from wired import needs_network, run

from analysis import experiment, paths, planning
from analysis.descriptions import campaigns, testbeds
from analysis.subjects import program
from analysis.subjects.what_if import WhatIf
from runners import executables, payload
from runners.recording import recorder, replay_actions
from runners.records.record import Command, FalloffError, Trial, judge
from runners.testbeds import emulated, simulated
from runners.tools import program as program_tool
from runners.tools import replay as replay_tool

HERE = Path(__file__).parent / "support"
LAUNCH = ("mpirun", "-np", "5")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A reader's own folder, apart from the checkout."""
    monkeypatch.setattr(executables, "HOME", tmp_path)
    return tmp_path


def test_the_campaign_of_an_own_program_is_its_command_line(home):
    """On 2, 4 and all nodes, with words that a shell would split, in the folder where it was
    started; another program of that name is refused."""
    words = [*LAUNCH, "--oversubscribe", "./my program", 'it"s', "\u00e4"]
    name = program.described(words, "mine", home / "there")
    found = campaigns.read(name)
    assert found.factors == {
        "interconnect": ["gige", "10gige", "unshaped"],
        "nodes": [2, 4, 5],
        "program": ["mine"],
    }
    plan = planning.plan_campaign(name, preset="quick")
    (command,) = program_tool.commands(plan.trials()[-1].point)
    start = ["env", "-C", str(home / "there"), str(home / "there" / "my program"), 'it"s', "\u00e4"]
    assert list(command.argv) == start and not command.files
    assert {trial.point["nodes"] for trial in plan.trials()} == {2, 5}
    assert program.described(words, "mine", home / "there") == name
    with pytest.raises(FalloffError, match="says something else"):
        program.described([*LAUNCH, "other"], "mine", home)


def test_an_own_program_runs_on_the_networks_that_are_asked_for(home):
    """Twice the rate and half the latency as networks of their own; what the testbed does not
    describe is refused unwritten.
    """
    asked = WhatIf(["gige"], twice="bandwidth", half="latency")
    name = program.described([*LAUNCH, "a"], "mine", home, asked)
    networks = planning.plan_campaign(name).interconnects
    assert set(networks) == {"gige", "gige_twice_bandwidth", "gige_half_latency", "unshaped"}
    gige, fast, early = (
        [networks[key][of] for of in ("rate_bit_s", "latency_s")] for key in [*networks][:3]
    )
    assert fast == [2 * gige[0], gige[1]] and early == [gige[0], gige[1] / 2]
    with pytest.raises(FalloffError, match="network of this testbed '25gige'"):
        program.described([*LAUNCH, "a"], "other", home, WhatIf(["25gige"]))
    with pytest.raises(FalloffError, match="cannot have .*twice the bandwidth"):
        planning.plan_campaign(
            program.described([*LAUNCH, "a"], "third", home, WhatIf(["unshaped"], "bandwidth"))
        )
    with pytest.raises(FalloffError, match="its networks are as they are"):
        program.described([*LAUNCH, "a"], "fourth", home, asked, "example_ssh")


@pytest.mark.parametrize(
    ("words", "name", "reason"),
    [
        (["./program"], "mine", "start the program by mpirun"),
        (["mpirun", "-np", "1", "a"], "mine", "a number of ranks from 2"),
        (["mpirun", "-np", "4"], "mine", "and a program"),
        (["mpirun", "-np", "4", "-H", "x", "a"], "mine", "-H of mpirun has no meaning"),
        ([*LAUNCH, "a"], "../evil", "letters, digits and _"),
        ([*LAUNCH, "a"], "replay", "says something else"),  # program_replay is ours
    ],
)
def test_what_cannot_run_between_emulated_nodes_is_refused(home, words, name, reason):
    with pytest.raises(FalloffError, match=reason):
        program.described(words, name, home)
    assert not (home / "data").exists()


def test_what_is_planted_in_a_campaign_is_stated():
    """LAMMPS's trials with other times: on GigE it falls by a third from 2 nodes to 8, on 10GE it
    stays flat and saves 60 %; the replay is off by 3 %."""
    runs, replays = experiment.stored("program"), experiment.stored("program_replay")
    times = {"unshaped": (8.0, 2.0), "10gige": (8.1, 2.04), "gige": (10.0, 5.1)}
    at = [
        times[name][int(nodes > 2)]
        for name, nodes in zip(runs.interconnect.values, runs.nodes.values)
    ]
    of_replay = [
        1.03 * times.get(name, times["10gige"])[int(nodes > 2)]
        for name, nodes in zip(replays.interconnect.values, replays.nodes.values)
    ]
    scatter = 1 + 0.002 * np.sin(7 * np.arange(runs.sizes["trial"]))
    planted = runs.assign(program_time=runs.program_time.copy(data=np.array(at) * scatter))
    beside = replays.assign(replay_time=replays.replay_time.copy(data=np.array(of_replay)))
    run_ = executed("59", program=planted, program_replay=beside)
    slow, fast = (
        stated(run_, f"The emulated program lammps loses efficiency on {name}")
        for name in ("GigE", "10GE")
    )
    assert (slow.words, fast.words) == ("falls off", "flat") and slow.primary
    assert slow.estimate == pytest.approx(1 - (2 / 5.1) / (8 / 10), abs=0.01)
    saved = stated(run_, "10GE saves time of the emulated program lammps")
    assert saved.estimate == pytest.approx(1 - 2.04 / 5.1, abs=0.01)
    off = stated(run_, "A replay of lammps")
    assert off.words == "yes" and off.estimate == pytest.approx(0.03, abs=0.005)
    alone_ = executed("59", program=planted)
    assert not [one for one in alone_.statements if one.subject.startswith("A replay")]
    assert program.times(planted).sizes["nodes"] == 3
    single = executed("59", program=planted.isel(trial=planted.nodes.values == 2))
    one = stated(single, "The emulated program lammps loses efficiency on GigE")
    assert one.answer == "undecided" and one.estimate is None and "beyond 2 nodes" in one.subject


def test_several_programs_are_compared_with_their_replays():
    """They fall off by a third on GigE; OpenFOAM's replay is 10 % too slow there, by its transfer
    alone.
    """

    def seconds(point, off=1.0):
        computed = 4 / point["nodes"]
        slower = {"unshaped": 1.0, "10gige": 1.01, "gige": 1.25 + 0.1 * point["nodes"]}
        time = 1.1 * computed * slower.get(point["interconnect"], 1.005)
        return {"computing_mean": computed, "computing_most": 1.05 * computed}, time * off

    def ran(point, block):
        computed, time = seconds(point)
        return {**computed, "program_time": time * (1 + 0.001 * block)}

    def replayed(point, block):
        is_off = point["program"] == "openfoam" and point["interconnect"] == "gige"
        computed, time = seconds(point, 1.1 if is_off else 1.01)
        return {**computed, "replay_time": time}

    def in_order(point, block):
        computed, time = seconds(point, 1.04)
        return {**computed, "replay_time": time}

    datasets = {
        name: of_plan(planning.plan_campaign(name, "", "full", blocks), readings)
        for name, blocks, readings in (
            ("program_others_emulated", 3, ran),
            ("program_others_hpcc", 2, ran),
            ("program_others_replayed", 1, replayed),
            ("program_others_openmpi", 1, in_order),
        )
    }
    made = executed("62", **datasets)
    for name in ("peptide", "openfoam", "hpcc"):
        fall = stated(made, f"The emulated program {name} loses efficiency on GigE")
        assert fall.words == "falls off" and fall.estimate == pytest.approx(
            1 - 1.45 / 2.05, abs=0.01
        )
        assert stated(made, f"The emulated program {name} loses efficiency on 10GE").words == "flat"
    assert stated(made, "A replay of peptide").words == "yes"
    off = stated(made, "A replay of openfoam")
    assert off.words == "no" and off.estimate == pytest.approx(0.1, abs=0.01)
    within = made.names["within"].to_dataframe()
    assert (
        within.loc[["peptide", "hpcc"]].eq(6).all(axis=None)
    )  # the whole time, and the network's part
    assert within.loc["openfoam"].eq(3).all()
    words = made.names["text"].replace("\xa0", " ")
    assert "Open MPI's order of long messages, by 4 % to 4 %." in words
    (table,) = (one for one in made.tables if one.label.endswith("-times"))
    in_order_off = [float(row[-1].rpartition("; ")[2]) for row in table.rows]
    assert in_order_off == pytest.approx([4.0] * len(in_order_off), abs=0.3)


@pytest.mark.more
def test_a_replay_computes_as_long_as_the_emulated_program():
    """What the campaigns of replays state is the processor time in the emulated ones over that of
    the recordings.
    """
    names = ("program", "program_others_emulated", "program_others_hpcc")
    emulated_ = [experiment.stored(name) for name in names]
    stated_ = {
        f"lammps {at}": each
        for at, each in campaigns.read("program_replay").levels["interconnect nodes"].items()
    } | campaigns.read("program_others_replayed").levels["program interconnect nodes"]
    times = [program.times(runs) for runs in emulated_]
    for name, of_campaign in [(name, each) for each in times for name in each.program.values]:
        found = program.slower(of_campaign.sel(program=name), recorder.by_ranks(name))
        assert len(found) == 9
        for at, by in found.items():
            assert by == pytest.approx(stated_[f"{name} {at}"]["computing"], rel=0.01), (name, at)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ("nowhere", "no folder of data"),
        ("../tests", "no folder of data"),
        ("binary", "a.out is no text"),
    ],
)
def test_inputs_that_cannot_be_copied_are_refused(tmp_path, monkeypatch, inputs, said):
    """Only a folder of text files of data/ is."""
    monkeypatch.setattr(program_tool, "DATA", tmp_path)
    (tmp_path / "binary").mkdir()
    (tmp_path / "binary" / "a.out").write_bytes(b"\x7fELF\xff")
    with pytest.raises(FalloffError, match=said):
        program_tool.commands({"command": "./a.out", "inputs": inputs, "nodes": 2, "timeout_s": 1})


TESTBED = testbeds.read("program_model").plain()
# s and B on GigE, whose payload is 110 MB/s: as long again. Longer than a rank may compute in real
# time at once.
COMPUTED, BYTES, TIMES = 10e-3, 1_100_000, 4


def emulate(point, slow=None):
    """The outcome of a trial on two paced nodes, and what the program printed."""
    users.require("pace_program.so")
    plan = planning.plan_campaign("program")
    description = {**TESTBED, "nodes": 2, "slow": slow or {}}
    point = {"interconnect": "gige", "nodes": 2, "timeout_s": 120, **point}
    with emulated.open_testbed(description, plan.interconnects) as testbed:
        transcript = run(testbed, *program_tool.commands(point), runner="program", **point)
    outcome = judge(transcript, program_tool.parse)
    assert outcome.status == "ok", outcome.reason
    return outcome.readings, transcript.executions[-1].stdout


@alone
@pytest.mark.long
@needs_network
@pytest.mark.parametrize(("slow", "seconds"), [({}, 20e-3), ({"nodes": {"2": 0.5}}, 30e-3)])
def test_an_unchanged_program_takes_the_time_that_is_known(tmp_path, slow, seconds):
    """Two ranks compute for 10 ms and exchange what GigE carries in 10 ms, four times, in slow
    motion; a node of half the speed holds both up. Each exchange also has latencies of its own."""
    made = tmp_path / "exchanges"
    subprocess.run(["mpicc", "-O1", str(HERE / "exchanges.c"), "-o", str(made)], check=True)
    command = f"{made} pairs {TIMES} {COMPUTED} {BYTES}"
    values, printed = emulate({"program": "exchanges", "command": command}, slow)
    assert values["computing_most"] == pytest.approx(TIMES * COMPUTED, rel=0.03)
    assert values["program_time"] == pytest.approx(TIMES * seconds, rel=0.12)
    by_its_clock = float(re.search(r"took (\S+) s", printed)[1])  # MPI_Wtime
    assert by_its_clock == pytest.approx(values["program_time"], rel=0.05)


@alone
@pytest.mark.long
@needs_network
def test_large_messages_both_ways_share_a_connection_with_their_acknowledgements(tmp_path):
    """At full speed, two nodes that send each other 2 MB again and again: much faster where Open
    MPI sends a message without waiting for its receiver. The replay knows no such wait,
    docs/profile.md says."""
    made = tmp_path / "exchanges"
    subprocess.run(["mpicc", "-O1", str(HERE / "exchanges.c"), "-o", str(made)], check=True)
    plan = planning.plan_campaign("hpl_scaling", testbed="emulated")
    description, took = {**testbeds.read("emulated").plain(), "nodes": 2}, {}
    with emulated.open_testbed(description, plan.interconnects) as testbed:
        for eager in (65536, 4194304):
            limits = (
                f"OMPI_MCA_btl_tcp_eager_limit={eager} OMPI_MCA_btl_tcp_rndv_eager_limit={eager}"
            )
            point = {"command": f"env {limits} {made} pairs 40 0 2000000", "timeout_s": 60}
            point |= {"interconnect": "gige", "nodes": 2}
            transcript = run(testbed, *program_tool.commands(point), runner="program", **point)
            took[eager] = float(re.search(r"took (\S+) s", transcript.executions[-1].stdout)[1])
    assert took[4194304] == pytest.approx(40 * 2e6 / 117e6, rel=0.15)
    assert took[65536] > 1.4 * took[4194304]


@alone
@pytest.mark.long
@needs_network
@pytest.mark.skipif(not shutil.which("lmp"), reason="LAMMPS is not here: apt-get install lammps")
def test_lammps_is_recorded_replayed_and_emulated(tmp_path, monkeypatch):
    """Debian's own, on two ranks: it sends what the shipped recording says, its energies are those
    of its own run, and in slow motion it takes as long as its replay."""
    library = executables.find("record.so", {})
    folder = paths.DATA / "programs" / "lammps"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    shutil.copy(folder / "in.melt", tmp_path)
    words = ("lmp", "-log", "none", "-in", "in.melt")
    launch = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2")
    code, (text,) = payload.run([*launch, *words], {"FALLOFF_RECORD": library})
    found, shipped = recorder.read(text), recorder.by_ranks("lammps")[2]
    assert code == 0 and recorder.is_monitored(text)
    for ours, theirs in zip(found, shipped, strict=True):
        assert sum(c.size for c in ours) == pytest.approx(sum(c.size for c in theirs), rel=0.01)
    point = {"program": "lammps", "command": " ".join(words), "inputs": "programs/lammps"}
    values, printed = emulate(point)
    alone_ = subprocess.run([*launch, *words], capture_output=True, text=True, check=True).stdout
    assert energies(printed) == energies(alone_)
    mean = sum(call.seconds for calls in found for call in calls) / 2
    command = replay_actions.files(found)
    smith = testbeds.read("smith").plain()
    with simulated.open_testbed(smith, {"gige": {}, "10gige": {}, "unshaped": {}}) as bed:
        argv = ("replay", "lammps", repr(values["computing_mean"] / mean))
        trial = Trial("t", "point", "replay", 1, 1, {"interconnect": "gige", "nodes": 2})
        outcome = judge(
            bed.run(trial, [Command(argv, ranks=2, files=command, timeout_s=60)]),
            replay_tool.TOOL.parse,
        )
    assert outcome.readings["replay_time"] == pytest.approx(values["program_time"], rel=0.1)


def energies(printed):
    """The table of temperatures, energies and pressures that LAMMPS prints."""
    return re.search(r"^ *Step .*?(?=^Loop time)", printed, re.M | re.S)[0].split()
