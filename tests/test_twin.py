"""A twin: planted breaks and the paced cluster's known numbers are found, HPL is predicted, and
what cannot be fitted is refused.
"""

import json
import shutil
import tomllib

import numpy as np
import own_results
import pytest
from command_line import run
from executed import executed, words

from analysis import experiment, paths, planning, running
from analysis.dataset import derive, store
from analysis.descriptions import campaigns, testbeds
from analysis.descriptions.adaptation import for_testbed
from analysis.imports import importing
from analysis.subjects import twin, twin_prediction
from analysis.subjects.what_if import NOTHING, WhatIf
from runners.records.record import FalloffError
from runners.testbeds import simulated, smpi

SIZES = [2**power for power in range(0, 24)]
READ = ("twin_held_out", "twin_what_if", "twin_tokens", "twin_load", "suspects", "twin_hpl")
MICRO = ("twin_tokens-scale_model", "twin_load-scale_model", "suspects-suspect_model")


def messages(time, noise=0.005, blocks=5, sizes=SIZES, seed=7):
    """Blocks of times [s] by size, about a known curve."""
    random = np.random.default_rng(seed)
    return {size: (time(size) * np.exp(random.normal(0, noise, blocks))).tolist() for size in sizes}


def eager(size):
    """20 µs and 50 MB/s up to 8 KiB, then a rendezvous: 90 µs and 110 MB/s."""
    return 20e-6 + size / 50e6 if size <= 8192 else 90e-6 + size / 110e6


def test_a_planted_break_is_found_and_no_other():
    """Latency, bandwidth and the place of the break come out; a straight line has none. About 95 of
    100 intervals hold the truth: 87 or fewer would be rarer than 1 in 500."""
    link = twin._link(messages(eager), {})
    assert link.latency.value == pytest.approx(20e-6, rel=0.03)
    assert link.bandwidth.value == pytest.approx(110e6, rel=0.02)
    (start, *first), (second, latency, bandwidth) = twin.by_size(link)
    assert start == 0 and second == pytest.approx(8192 * 2**0.5, abs=1)
    assert latency == pytest.approx(90 / 20, rel=0.1) and bandwidth == 1
    assert first == [1, pytest.approx(50 / 110, rel=0.1)]
    assert len(twin._link(messages(lambda size: 30e-6 + size / 1e8), {}).pieces) == 1
    sizes = [4, 512, 4096, 65536, 524288, 4194304]
    links = [twin._link(messages(eager, sizes=sizes, seed=seed), {}) for seed in range(100)]
    for name, truth in (("latency", 20e-6), ("bandwidth", 110e6)):
        values = [getattr(link, name) for link in links]
        assert sum(value.low < truth < value.high for value in values) > 87


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        (messages(eager, sizes=[4, 4096, 65536]), "messages of 3 sizes, 4 are needed"),
        (messages(eager, sizes=[1, 2, 4, 8, 16, 4096, 8192]), "measure longer ones"),
        (messages(eager, noise=0.6), "misses a mean time|is known to"),
    ],
)
def test_what_is_no_description_is_refused(times, reason):
    """Too few sizes, no long message, scatter, and times that no line follows: each with its
    reason.
    """
    with pytest.raises(FalloffError, match=reason):
        twin._link(times, {})


@pytest.fixture(scope="module")
def found():
    return twin.fit(experiment.named(MICRO))


def test_the_paced_clusters_numbers_are_found(found):
    """Within 5 % of what the emulation was asked for, which the fit never reads."""
    described = testbeds.read("scale_model").plain()
    assert found.rate.value == pytest.approx(described["node"]["flop_s"], rel=0.05)
    for network in ("gige", "10gige"):
        payload = described["networks"][network]["rate_bit_s"] / 8 * 1448 / 1538
        assert found.links[network].bandwidth.value == pytest.approx(payload, rel=0.05)
    assert "unshaped" in found.refused and set(found.links) == {"gige", "10gige"}
    assert found.links["10gige"].load[16] > 2 and not found.links["gige"].load


def test_what_does_not_belong_together_is_refused():
    """Several kinds of evidence, several clusters, no compute rate, no messages, HPL that varies
    something else.
    """
    named = experiment.named
    for names, reason in (
        (("twin_tokens-scale_model", "hpl_paper_simulated-smith"), "mix evidence"),
        ((*MICRO, "hpl_blas-emulated"), "several clusters"),
        (("twin_tokens-scale_model",), "compute rate"),
        (("suspects-suspect_model",), "no campaign has messages by size"),
    ):
        with pytest.raises(FalloffError, match=reason):
            twin.fit(named(names))
    with pytest.raises(FalloffError, match="there is no|is unknown|no campaign"):
        named(["token_nods"])
    sized = named(["hpl_size-scale_model"])
    with pytest.raises(FalloffError, match="vary interconnect and nodes alone"):
        twin_prediction.held_out_points(sized, twin.fit(named(MICRO)))


def test_imported_messages_are_read_and_hpl_on_one_node_serves_as_rate(tmp_path):
    """A real PingPong of IMB within a node, whose rate still rises at the longest message, is
    refused for that.
    """
    file = paths.ROOT / "tests/transcripts/imb/2021.3-pingpong.txt"
    read = importing.read("imb", [file], {"interconnect": "gige"}, [])
    messages = store.read(importing.keep(read, tmp_path))
    times = twin._times([messages]).groupby("bytes").time.apply(list).to_dict()
    assert times[1] == [2.24e-6]
    with pytest.raises(FalloffError, match="measure longer ones"):
        twin._link(times, {})
    rate, source = twin._compute_rate(experiment.named(["hpl_scaling-fortinet_model"]))
    assert "HPL on one node" in source and rate.low < rate.value < rate.high
    paced = testbeds.read("fortinet_model").plain()["node"]["flop_s"]
    assert rate.value == pytest.approx(paced, rel=0.01)


def test_hpl_is_predicted_and_what_if_is_asked():
    """All of the stored points that the fit never saw are within 3 %; a change of the network does
    what it should.
    """
    made = executed("55", **{name: experiment.stored(name) for name in READ})
    study = made.names["study"]
    held_out = study.held_out
    assert len(held_out) == 12 and set(held_out.answer) == {"yes"}
    assert held_out.error.abs().max() < twin_prediction.MARGIN
    assert (held_out.low <= held_out.rate).all() and (held_out.rate <= held_out.high).all()
    rates = study.what_if.set_index(["network", "nodes"]).rate
    assert 1.03 < rates["gige_twice_bandwidth", 16] / rates["gige", 16] < 1.5
    assert rates["gige_tree", 16] < rates["gige", 16] < rates["gige", 32]
    right = [one for one in made.statements if one.quantity == "error"]
    assert {one.words for one in right} == {"yes"} and len(right) == 12
    assert sum(one.primary for one in right) == 2 and words(made)
    gains = {one.subject for one in made.statements if one.quantity == "gain" and one.primary}
    assert len(gains) == 2 and all("32\xa0nodes" in gain for gain in gains)
    assert "GigE, twice the bandwidth" in words(made)
    assert "12 of 12" in twin_prediction.text(study) and len(made.figures["twin"].figure.axes) == 2


@pytest.mark.more
def test_a_twin_is_written_and_simulated(found, tmp_path, monkeypatch):
    """The twin as written and read back is within 3 % of HPL on 2 nodes; another of its name is
    kept.
    """
    if reasons := simulated.unavailable({}):
        pytest.skip(reasons[0])
    shutil.copytree(paths.TESTBEDS, tmp_path / "testbeds")
    monkeypatch.setattr(paths, "TESTBEDS", tmp_path / "testbeds")
    hpl = experiment.named(["twin_hpl-scale_model"])
    points = twin_prediction.held_out_points(hpl, found)
    file = running.write_twin("copy", found, hpl, points)
    points = points.sel(nodes=[2])
    simulated_ = running.simulate_twin("copy", points, NOTHING, tmp_path / "raw")
    study = twin_prediction.predict(found, points, *simulated_)
    assert len(study.held_out) == 2 and set(study.held_out.answer) == {"yes"}
    plan = planning.plan_campaign("hpl_scaling", "copy")
    assert set(plan.interconnects) == {"gige", "10gige", "unshaped"}
    # With the matrix that its nodes had, not the campaign's own.
    sizes = {trial.point["nodes"]: trial.point["N"] for trial in plan.blocks[0]}
    assert sizes == {2: 1200, 8: 2400}
    file.write_text("# mine\n")
    with pytest.raises(FalloffError, match="says something else"):
        running.write_twin("copy", found, hpl)
    assert file.read_text() == "# mine\n"
    with pytest.raises(FalloffError, match="letters, digits"):
        running.write_twin("../x", found, hpl)


def test_hpl_is_simulated_as_its_outputs_say_it_ran(found, tmp_path):
    """With the processes a node and the grids of the files, also in campaigns that are run on the
    twin later; a network that is not there brings the ideal one."""
    laws = {name: own_results.LAWS[name] for name in ("1gbe", "10gbe")}
    own_results.write_hpl(tmp_path / "results", laws=laws, nodes=(1, 2, 4))
    kept = importing.keep(importing.read("hpl", [tmp_path / "results"], {}), tmp_path / "mine")
    points = twin_prediction.held_out_points([store.read(kept)], found)
    machine = testbeds.checked(tomllib.loads(twin.description(found, "mine", {}, points)))
    assert (machine.ranks_per_node, machine.matrix_bytes) == (16, 8 * 80000**2 / 4)
    held_out, what_if = twin_prediction.simulations(machine, points, NOTHING)
    assert held_out.levels["nodes"] == {
        "2": {"N": 50000, "P": 4, "Q": 8, "ranks_per_node": 16},
        "4": {"N": 80000, "P": 4, "Q": 16, "ranks_per_node": 16},
    }
    *_, named = twin_prediction.simulations(machine, points, WhatIf(["10gige", "100gige"]))
    networks = points.interconnect.values.tolist()
    assert named.factors["interconnect"][len(networks) :] == [
        f"{name}_at_100g" for name in networks
    ]
    assert named.factors["nodes"] == [2, 4]
    assert what_if.levels["nodes"]["8"]["P"] * what_if.levels["nodes"]["8"]["Q"] == 8 * 16
    assert machine.network["unshaped"].latency.value < 1e-8
    alone = machine.changed(interconnects=["gige", "unshaped"])
    fitted = for_testbed(campaigns.read("hpl_scaling"), alone)
    assert fitted.settings["ranks_per_node"] == 16 and fitted.settings["NB"] == 192
    assert fitted.levels["nodes"]["4"]["N"] == 80000 // 192 * 192
    (contrast,) = fitted.design.primary
    assert contrast.networks == ["gige", "unshaped"] and contrast.to == 8


@pytest.mark.long
def test_files_alone_say_what_a_faster_network_would_bring(tmp_path, monkeypatch):
    """From outputs of OSU and HPL on one network: the twin is right where HPL was run, and what it
    says of a network of ten times the rate is what real HPL reached on such a one. Then the report
    has it as a section."""
    if reasons := simulated.unavailable({}):
        pytest.skip(reasons[0])
    shutil.copytree(paths.TESTBEDS, tmp_path / "testbeds")
    monkeypatch.setattr(paths, "TESTBEDS", tmp_path / "testbeds")
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    own_results.write_cluster(tmp_path / "files", ["gige"], (2, 4), blocks=2)
    mine, out = str(tmp_path / "mine"), str(tmp_path / "report")
    for tool in ("hpl", "osu"):
        run("import", tool, str(tmp_path / "files" / tool), "--out", mine)
    figure = ("--figure", str(tmp_path / "twin.svg"))
    done = run("twin", mine, "--name", "own", "--network", "1gige", "--out", mine, *figure)
    assert done.returncode == 0 and (tmp_path / "twin.svg").exists(), done.stderr
    assert run("report", "--data", mine, "--out", out).returncode == 0
    stated = json.loads((tmp_path / "report" / "summary.json").read_text())["statements"]
    errors = [one["estimate"] for one in stated if one["subject"].startswith("The twin's")]
    (gain,) = (one["estimate"] for one in stated if one["quantity"] == "gain")
    real = (
        derive.points(*experiment.named(["twin_hpl-scale_model"])).rate.sel(nodes=4).mean("block")
    )
    truth = float(real.sel(interconnect="10gige") / real.sel(interconnect="gige")) - 1
    assert len(errors) == 2 and max(map(abs, errors)) < 0.03 and abs(gain - truth) < 0.03 < truth


def test_the_simulator_is_told_sizes_and_load():
    """Factors by size are SMPI's options; the latency's factor is linear between node counts and
    constant beyond.
    """
    argv = smpi.smpirun(2, ["x"], paths.ROOT, [[0, 1.0, 0.5], [8192, 4.5, 1.0]])
    assert "--cfg=smpi/lat-factor:0:1.0;8192:4.5" in argv
    assert "--cfg=smpi/bw-factor:0:0.5;8192:1.0" in argv
    assert [smpi._load(n, [[2, 1.0], [8, 4.0]]) for n in (1, 2, 4, 8, 99)] == [1, 1, 2, 4, 4]
    network = {"bandwidth": 1e8, "latency": 2e-5, "load": [[2, 1.0], [8, 4.0]]}
    assert 'lat="4e-05s"' in smpi.platform(8, network)  # half of 20 us x 4 on each end's link
