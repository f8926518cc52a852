"""The ledger on real campaigns: verdicts follow the data, and every kind of evidence has an answer."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import commands
import experiment
from analysis import store, wording
from analysis.claims import evaluate, ledger, text
from analysis.claims.judge import NOT_TESTABLE, VERDICTS
from analysis.facts import claims as facts
from analysis.inference.in_range import CONTRADICTED, SUPPORTED
from analysis.publish import to_html
from analysis.studies import fan_out, long_path, switch, together, topology
from runners.record import FalloffError

CAMPAIGNS = (
    "tcp_mtu",
    "tcp_cost",
    "packet_sizes",
    "long_path",
    "long_repeats",
    "fan_out",
    "topology",
    "hpl_topology",
)
OWN = ledger.Ledger(
    tuple(claim for claim in ledger.load().claims if claim.source in ("nemo", "grid5000")), ledger.load().confounds
)
FRONT = "---\ntitle: T\nsubtitle: S\nlang: en\ncampaign: C\ndate: D\n---\n\n"


@pytest.fixture(scope="module")
def data():
    """The stored references that these claims are judged by, by their names."""
    return {name: experiment.stored(*together.DATASETS[name]) for name in CAMPAIGNS}


def studies_of(data):
    """The studies of these campaigns alone; what is missing is None, as when nobody ran it."""
    get, studies = data.get, {}
    if "tcp_mtu" in data:
        studies["switch"] = switch.analyse(get("tcp_mtu"), get("tcp_cost"), None, get("packet_sizes"))
    if "long_path" in data:
        studies["long_path"] = long_path.analyse(get("long_path"), get("long_repeats"))
    if "fan_out" in data:
        studies["fan_out"] = fan_out.analyse(get("fan_out"))
    if "topology" in data:
        studies["topology"] = topology.analyse(get("topology"), get("hpl_topology"))
    return together.Studies(datasets=data, scaling=None, **studies)


@pytest.fixture(scope="module")
def entries(data):
    return evaluate.evaluate(OWN, studies_of(data))


def verdict(entries, claim, evidence="emulated"):
    """The judgement of a claim on a kind of evidence."""
    (entry,) = [entry for entry in entries if entry.claim.id == claim]
    (found,) = [it for it in entry.judgements if it.evidence == evidence]
    return found


def scaled(dataset, reading, factor, **levels):
    """The dataset with a reading multiplied in the trials at these levels."""
    chosen = xr.ones_like(dataset.block, dtype=bool)
    for name, level in levels.items():
        chosen &= dataset[name] == level
    assert chosen.any()
    return dataset.assign({reading: xr.where(chosen, factor * dataset[reading], dataset[reading])})


def judged(data, claim, evidence="emulated"):
    """The verdict on one claim after its data were changed."""
    alone = replace(OWN, claims=tuple(it for it in OWN.claims if it.id == claim))
    return verdict(evaluate.evaluate(alone, studies_of(data)), claim, evidence)


@pytest.mark.parametrize(
    ("claim", "campaign", "reading", "factor", "levels", "before", "after"),
    [
        ("nemo_jumbo_gain", "tcp_mtu", "goodput", 1.05, {"path": "crossover", "mtu": 8982}, SUPPORTED, CONTRADICTED),
        (
            "nemo_both_ways_jumbo",
            "tcp_mtu",
            "goodput",
            0.79,
            {"path": "crossover", "mtu": 8982, "direction": "both"},
            CONTRADICTED,
            NOT_TESTABLE,  # below what the wire carries, the emulating machine is what limits
        ),
        (
            "nemo_8505t_is_cable",
            "tcp_mtu",
            "goodput",
            1.05,
            {"path": "switch_8996", "mtu": 1500},
            SUPPORTED,
            CONTRADICTED,
        ),
        ("nemo_cpu_byte_local", "tcp_cost", "goodput", 0.5, {"mtu": 9000}, SUPPORTED, CONTRADICTED),
        ("grid5000_stays_saturated", "fan_out", "aggregate_goodput", 0.7, {"receivers": 7}, SUPPORTED, CONTRADICTED),
        ("grid5000_buffers_need_tuning", "long_path", "goodput", 6, {"window_bytes": 65536}, SUPPORTED, CONTRADICTED),
    ],
)
def test_a_verdict_changes_with_its_data(data, entries, claim, campaign, reading, factor, levels, before, after):
    """The same campaign with some of its readings multiplied is judged otherwise."""
    assert verdict(entries, claim).verdict == before
    switch_tests = {name: data[name] for name in ("tcp_mtu", "tcp_cost") if campaign.startswith("tcp")}
    changed = judged({**switch_tests, campaign: scaled(data[campaign], reading, factor, **levels)}, claim)
    assert changed.verdict == after
    assert changed.estimate != verdict(entries, claim).estimate


def test_scatter_is_judged_by_its_own_interval(data):
    """Every second transfer at half the rate: the results are no longer alike, and some are much lower."""
    repeats = data["long_repeats"]
    slow = scaled(repeats, "goodput", 0.5, block=repeats.block.where(repeats.block % 2 == 0))
    changed = {"long_path": data["long_path"], "long_repeats": slow}
    assert judged(changed, "grid5000_scatter_from_rennes").verdict == "supported"
    assert judged(changed, "grid5000_much_lower").verdict == "supported"


def test_measured_data_are_judged_as_measured(data):
    """A user's own run has a row of its own: the machine is no excuse there, and a real switch can be asked."""
    own = {name: data[name].copy() for name in ("tcp_mtu", "packet_sizes")}
    for dataset in own.values():
        dataset["evidence"] = xr.full_like(dataset.evidence, "measured")
    entries = evaluate.evaluate(OWN, studies_of(own))
    assert {it.evidence for entry in entries for it in entry.judgements} == {"published", "measured"}
    assert verdict(entries, "nemo_non_blocking", "measured").verdict == "supported"
    assert verdict(entries, "nemo_8505t_jumbo", "measured").verdict == "contradicted"
    assert verdict(entries, "nemo_both_ways_1500", "measured").verdict != "not testable"


def test_every_kind_of_evidence_has_an_answer(entries):
    """A verdict with an estimate, or a reason; intervals of all that is judged over blocks."""
    for entry in entries:
        assert [it.evidence for it in entry.judgements] == ["published", "emulated", "simulated"]
        for it in entry.judgements:
            assert it.verdict in VERDICTS
            assert math.isfinite(it.estimate) or it.reason
            statistical = it.verdict in ("supported", "contradicted")
            assert not statistical or (it.campaign and it.digest and np.isfinite(it.interval_95).all())
            assert it.evidence != "published" or not statistical


def test_without_any_study_only_the_printed_numbers_speak():
    """No data, no verdict: the sources' own numbers are all that is left."""
    entries = evaluate.evaluate(OWN, together.Studies(datasets={}, scaling=None))
    assert {it.evidence for entry in entries for it in entry.judgements} == {"published"}
    assert verdict(entries, "nemo_total_1500", "published").reading == "sum of both flows, 1 MB = 1000 KB"
    assert verdict(entries, "nemo_non_blocking", "published").verdict == "inconsistent"
    assert verdict(entries, "nemo_saving", "published").verdict == "printed"


def test_the_dataset_keeps_everything(entries, tmp_path):
    """It is the same after netCDF, with verdicts, intervals and origins over (claim, evidence)."""
    made = evaluate.dataset(entries, OWN)
    store.save(made, tmp_path / "claims.nc")
    with xr.open_dataset(tmp_path / "claims.nc", engine="netcdf4") as opened:
        xr.testing.assert_equal(opened.load(), made)
        assert opened.attrs == made.attrs
    at = made.sel(claim="nemo_jumbo_gain", evidence="emulated")
    assert at.low_95 < at.low_90 < at.estimate < at.high_90 < at.high_95 and at.digest.item().startswith("452fec48")
    assert set(" ".join(made.confounds.values).split()) <= set(json.loads(made.attrs["confounds"]))
    empty = evaluate.dataset((), replace(OWN, claims=()))
    assert empty.sizes["claim"] == 0


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_text_fits_the_terminal(entries, width):
    """Every claim with its verdicts, no line longer than the terminal is wide but for a single long word."""
    said = text.table(OWN, entries, width)
    assert all(len(line) <= width or " " not in line.strip() for line in said.splitlines())
    assert all(claim.id in said for claim in OWN.claims) and "nan" not in said.split()
    flat = " ".join(said.split())
    assert "emulated: supported; 1.053 (90 % t interval 1.053 to 1.053, 3 blocks)" in flat
    assert "emulated: not testable; a property of that switch" in flat


def test_the_section_counts_what_it_shows(entries, tmp_path):
    """Each claim has a row, each confound a note that names its claims; counts are of each kind by itself."""
    known = facts.collect(OWN, entries, {})
    assert all(sum(row["of"].values()) == len(OWN.claims) for row in known["counts"])
    markdown = wording.templates().get_template("claims.md.j2").render(claims=known)
    rows = [line for line in markdown.splitlines() if line.startswith("| ") and line.split("|")[1].strip().isdigit()]
    assert len(rows) == len(OWN.claims) and "None" not in markdown and "nan" not in markdown.split()
    notes = {claim["number"]: claim["notes"] for source in known["sources"] for claim in source["claims"]}
    for note in known["notes"]:
        assert note["claims"] == [number for number, own in notes.items() if note["number"] in own]
    assert "<table" in to_html(FRONT + markdown, tmp_path)
    emulated = next(row for row in known["counts"] if row["evidence"] == "emulated")
    said = wording.finding("claims", known).replace("\u00a0", " ")
    assert f"{emulated['judged']} can be judged on emulated evidence" in said
    assert f"{emulated['of']['contradicted']} contradicted" in said


def test_the_command_prints_and_keeps_one_source(monkeypatch, capsys, tmp_path):
    """`falloff claims --source grid5000 --out FILE`: the claims of that source alone, and their dataset."""
    monkeypatch.setattr(together, "DATASETS", {})
    monkeypatch.setattr(together, "analyse", lambda datasets: together.Studies(datasets=datasets, scaling=None))
    assert commands.print_claims("grid5000", tmp_path / "own.nc") == 0
    said = capsys.readouterr().out
    assert "grid5000_knee" in said and "nemo_" not in said and "own.nc" in said
    with xr.open_dataset(tmp_path / "own.nc", engine="netcdf4") as kept:
        assert set(kept.source.values) == {"grid5000"}


def test_two_findings_of_one_kind_are_refused(monkeypatch):
    """A quantity that gives two for one kind of evidence would hide one: it is named."""
    twice = [evaluate.Untestable("emulated", "a")] * 2
    monkeypatch.setattr(evaluate.quantities, "find", lambda *_: lambda studies: twice)
    with pytest.raises(FalloffError, match="nemo_jumbo_gain: cable_jumbo_gain gives several"):
        evaluate.evaluate(OWN, together.Studies(datasets={}, scaling=None))
