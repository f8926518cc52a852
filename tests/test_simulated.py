"""The simulated testbed: real HPL code on a modelled cluster, the same every time, as its model says."""

import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from test_hpl_dat import DECK

import experiment
from analysis import paths
from analysis.derive import broadcast_bytes
from runners import runner_named
from runners.record import FalloffError, Trial, judge
from runners.testbeds import modelled, simulated, smpi

SMITH = tomllib.loads((paths.TESTBEDS / "smith.toml").read_text(encoding="utf-8"))
NETWORKS = {"gige": {}, "10gige": {}, "unshaped": {}}
SMALL = {**DECK, "N": 2048, "NB": 128, "P": 2, "Q": 2, "nodes": 4, "THRESHOLD": -1.0, "timeout_s": 60}

needs_simgrid = pytest.mark.skipif(
    not shutil.which("smpirun") or not shutil.which("xhpl_simulated", path=str(experiment.tools.BUILT)),
    reason="SimGrid is not here: libsimgrid-dev",
)


@pytest.fixture(scope="module")
def testbed():
    """The Smith cluster."""
    with simulated.open_testbed(SMITH, NETWORKS) as opened:
        yield opened


def trial(runner="hpl", **point):
    """A trial of the small problem, on GigE unless the point says otherwise."""
    return Trial("t", "point", runner, 1, 1, {**SMALL, "interconnect": "gige", **point})


def simulate(testbed, runner="hpl", **point):
    """The readings of one simulated trial by name, and its transcript."""
    asked = trial(runner, **point)
    transcript = testbed.run(asked, runner_named(runner).commands(asked.point))
    outcome = judge(transcript, runner_named(runner).parse)
    assert outcome.status == "ok", (outcome.reason, transcript.executions[-1].stderr[-500:])
    return {reading.name: reading.value for reading in outcome.readings}, transcript


@needs_simgrid
def test_hpl_runs_with_all_of_its_messages(testbed):
    """There is a rate without a residual, and every panel crossed the network."""
    readings, transcript = simulate(testbed)
    assert transcript.evidence == "simulated" and "hpl_residual" not in readings
    sent = [sent for sent in transcript.counters["bytes_sent"] if sent == sent]
    assert len(sent) == 4 and len(transcript.counters["bytes_sent"]) == SMITH["nodes"]
    assert sum(sent) > broadcast_bytes(SMALL["N"], SMALL["Q"])


@needs_simgrid
def test_a_simulation_repeats_itself(testbed):
    """Nothing of this machine's speed is in the result, but for what the simulation itself took."""
    once, again = (simulate(testbed)[0] for _ in range(2))
    assert once.pop("simulator_cpu_time") > 0 and 1e6 < once.pop("simulator_memory") < 1e9
    assert once.items() <= again.items() and once["hpl_rate"] > 0


@needs_simgrid
def test_a_slower_network_is_slower(testbed):
    """GigE, 10GE and no network at all come in this order."""
    rates = [simulate(testbed, interconnect=name)[0]["hpl_rate"] for name in ("gige", "10gige", "unshaped")]
    assert rates == sorted(rates) and rates[0] < 0.7 * rates[2]


@needs_simgrid
def test_one_number_of_the_model_can_be_varied(testbed):
    """An end of its range, or a number; a backplane that all links share; anything else is a fault."""
    rates = {
        vary: simulate(testbed, vary=vary)[0]["hpl_rate"]
        for vary in ("none", "bandwidth=low", "bandwidth=55e6", "backplane=60e6", "backplane=1e12", "strided_s=high")
    }
    assert rates["bandwidth=55e6"] < rates["bandwidth=low"] < rates["none"]
    assert rates["backplane=60e6"] < 0.9 * rates["none"] and rates["backplane=1e12"] == rates["none"]
    assert 0.5 < rates["strided_s=high"] / rates["none"] < 1


@pytest.mark.parametrize(
    ("vary", "reason"),
    [("luck=high", "is none of"), ("latency=much", "neither a number"), ("backplane=low", "neither a number")],
)
def test_a_variation_that_means_nothing_is_refused(vary, reason):
    """The words of the point are in the refusal."""
    with pytest.raises(FalloffError, match=f"{vary}.*{reason}"):
        modelled.model(SMITH, "gige", vary)


def test_a_described_end_is_what_is_varied_to():
    """Everything else stays as described."""
    rates, network = modelled.model(SMITH, "gige")
    changed, same = modelled.model(SMITH, "gige", "dtrsm_share=low")
    assert same == network and changed == {**rates, "dtrsm_share": SMITH["rates"]["dtrsm_share"]["low"]}
    assert modelled.model(SMITH, "gige", "backplane=4e8") == (rates, {**network, "backplane": 4e8})


@needs_simgrid
@pytest.mark.parametrize("broadcast", range(6))
@pytest.mark.parametrize("depth", [0, 1])
def test_every_broadcast_and_look_ahead_runs(testbed, broadcast, depth):
    """HPL.dat is read by HPL itself: its variants run, and say in their row which they are."""
    readings, transcript = simulate(testbed, BCAST=broadcast, DEPTH=depth, N=1024)
    assert readings["hpl_rate"] > 0 and f"WR{depth}{broadcast}" in transcript.executions[0].stdout


@needs_simgrid
def test_look_ahead_hides_communication(testbed):
    """With computation enough to hide it behind, DEPTH 1 is faster than DEPTH 0."""
    times = [simulate(testbed, DEPTH=depth, N=12000)[0]["hpl_time"] for depth in (0, 1)]
    assert times[1] < 0.99 * times[0]


@needs_simgrid
def test_dgemm_is_the_models_own(testbed):
    """The rate of every node is the asymptotic one, less what short dimensions cost."""
    rates, _ = simulate(testbed, "dgemm", K=128, duration_s=1.0, nodes=3)
    model = {name: rate["value"] for name, rate in SMITH["rates"].items()}
    order = 2048  # of the matrix that dgemm updates
    expected = model["dgemm_flop_s"] / (1 + model["dgemm_k_half"] / 128) / (1 + model["dgemm_mn_half"] / order)
    assert rates["dgemm_rate"] == pytest.approx([expected / 1e9] * 3, rel=1e-5)


@needs_simgrid
def test_what_cannot_be_simulated_is_a_fault(testbed):
    """A tool without a simulated program is named, and there is no reading."""
    asked = trial("ping", sender=1, receiver=2, count=3)
    transcript = testbed.run(asked, runner_named("ping").commands(asked.point))
    assert "ping cannot be simulated" in transcript.fault


@needs_simgrid
def test_a_simulation_beyond_its_limit_is_ended(testbed):
    """The simulator itself is gone, not only the script that started it."""
    asked = trial(N=40000)
    commands = [replace(command, timeout_s=0.3) for command in runner_named("hpl").commands(asked.point)]
    (execution,) = testbed.run(asked, commands).executions
    assert execution.timed_out and execution.exit_code is None
    assert not any(folder.startswith(str(testbed.folder)) for folder in working_folders())


@needs_simgrid
def test_the_next_start_clears_what_kill_9_left(tmp_path, monkeypatch):
    """A killed owner's simulator and folder go when the next testbed opens."""
    monkeypatch.setattr(simulated, "_ROOT", tmp_path / "simulated")
    script = (
        "import sys; from pathlib import Path; from test_simulated import SMITH, NETWORKS, simulated, trial, runner_named\n"
        "simulated._ROOT = Path(sys.argv[1])\n"
        "asked = trial(N=40000)\n"
        "with simulated.open_testbed(SMITH, NETWORKS) as testbed:\n"
        "    testbed.run(asked, runner_named('hpl').commands(asked.point))\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "simulated")], cwd=Path(__file__).parent)
    deadline = time.monotonic() + 30
    while not (left := {folder for folder in working_folders() if str(tmp_path) in folder}):
        assert time.monotonic() < deadline and owner.poll() is None
        time.sleep(0.02)
    owner.kill()
    owner.wait()
    assert left <= working_folders()
    with simulated.open_testbed(SMITH, NETWORKS):
        assert not left & working_folders() and not any(Path(folder).exists() for folder in left)
    assert [entry.name for entry in (tmp_path / "simulated").iterdir()] == ["turn"]


def working_folders():
    """The working folder of every process that can be asked."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            found.add(str(link.readlink()))
        except OSError:
            continue
    return found


def test_a_network_that_is_not_described_is_refused(monkeypatch):
    """One line names the testbed and the network."""
    monkeypatch.setattr(simulated, "unavailable", lambda description: [])
    with pytest.raises(FalloffError, match="smith describes no network myrinet"):
        with simulated.open_testbed(SMITH, {"myrinet": {}}):
            pass


def test_without_simgrid_the_remedy_is_named(monkeypatch):
    """The package that brings it."""
    monkeypatch.setenv("PATH", "")
    assert "apt-get install libsimgrid-dev" in simulated.unavailable(SMITH)[0]


def test_a_platform_has_half_the_latency_on_each_link():
    """Two links lie between two nodes; a backplane is shared only when asked for."""
    text = smpi.platform(3, {"bandwidth": 1e8, "latency": 40e-6})
    assert 'radical="1-3"' in text and 'lat="2e-05s"' in text and "bb_bw" not in text
    assert 'bb_bw="4e+08Bps"' in smpi.platform(3, {"bandwidth": 1e8, "latency": 4e-5, "backplane": 4e8})


def test_a_testbed_may_extend_another():
    """The Smith cluster with GigE alone has all that the Smith cluster has, and runs the same campaigns."""
    alone = experiment.read_testbed("smith_gige")
    assert alone["rates"] == SMITH["rates"] and alone["name"] == "smith_gige"
    plan = experiment.plan_campaign("hpl_scaling", "smith_gige", "full")
    assert {t.point["interconnect"] for t in plan.trials() if t.role == "point"} == {"gige"}


@pytest.mark.parametrize("campaign", ["hpl_scaling", "hpl_paper"])
def test_a_campaign_is_fitted_to_the_testbed(campaign):
    """No survey, no check of a residual, one block: a simulation repeats itself."""
    plan = experiment.plan_campaign(campaign, "smith", "full")
    assert {trial.runner for trial in plan.trials()} == {"hpl"} and len(plan.blocks) == 1
    assert {t.point["THRESHOLD"] for t in plan.trials() if t.runner == "hpl"} == {-1.0}


def test_every_rate_has_a_source_and_a_range():
    """Nothing of the model is unsaid: value inside its range, unit, and where it is from or that it is assumed."""
    described = [*SMITH["rates"].values(), *(e for network in SMITH["network"].values() for e in network.values())]
    assert len(described) > 10
    for entry in described:
        assert entry["low"] <= entry["value"] <= entry["high"] and entry["unit"] and entry["source"]


@needs_simgrid
@pytest.mark.parametrize("interconnect", ["gige", "10gige"])
def test_the_stored_runs_are_the_present_models(testbed, interconnect):
    """The paper's smallest case, simulated again, has the rate that the shipped campaign has, to the digit."""
    stored = experiment.stored("hpl_paper", "smith")
    (wanted,) = stored.hpl_rate.values[(stored.nodes == 2) & (stored.interconnect == interconnect) & (stored.runner == "hpl")]
    point = next(
        t.point
        for t in experiment.plan_campaign("hpl_paper", "smith", "full").blocks[0]
        if t.runner == "hpl" and t.point["nodes"] == 2 and t.point["interconnect"] == interconnect
    )
    assert simulate(testbed, **point)[0]["hpl_rate"] == wanted
