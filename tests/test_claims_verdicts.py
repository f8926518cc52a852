"""The ledger on real campaigns: verdicts follow the data, and every kind of evidence has an answer."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from claimed import as_evidence, judged, scaled, shipped, studies_of

import commands
import experiment
from analysis import paths, store
from analysis.claims import evaluate, text
from analysis.claims.judge import NOT_TESTABLE, VERDICTS
from analysis.statistics.judgement import CONTRADICTED, SUPPORTED
from runners.record import FalloffError

ON_PATHS = (
    "tcp_mtu",
    "tcp_cost",
    "frame_limits",
    "packet_sizes",
    "long_path",
    "long_repeats",
    "fan_out",
)
ON_NEMO = ("topology", "hpl_topology")
OF_TWO = ("nemo", "grid5000")  # the sources that these campaigns are about
OWN = replace(
    shipped(), claims=tuple(claim for claim in shipped().claims if claim.source in OF_TWO)
)


@pytest.fixture(scope="module")
def data():
    """The stored references that these claims are judged by, by their names."""
    on_paths = {name: experiment.stored(name, "paths") for name in ON_PATHS}
    return {**on_paths, **{name: experiment.stored(name, "nemo") for name in ON_NEMO}}


@pytest.fixture(scope="module")
def entries(data):
    """These two sources' claims, judged."""
    return evaluate.evaluate(OWN, studies_of(data))


def found(entries, claim, evidence="emulated"):
    """The judgement of a claim on a kind of evidence."""
    (entry,) = [entry for entry in entries if entry.claim.id == claim]
    (judgement,) = [judgement for judgement in entry.judgements if judgement.evidence == evidence]
    return judgement


@pytest.mark.parametrize(
    ("claim", "campaign", "reading", "factor", "levels", "before", "after"),
    [
        (
            "nemo_jumbo_gain",
            "tcp_mtu",
            "goodput",
            1.05,
            {"path": "crossover", "mtu": 8982},
            SUPPORTED,
            CONTRADICTED,
        ),
        (
            "nemo_both_ways_jumbo",
            "tcp_mtu",
            "goodput",
            0.79,
            {"path": "crossover", "mtu": 8982, "direction": "both"},
            CONTRADICTED,
            NOT_TESTABLE,  # below what the wire carries, the emulating machine is what limits
        ),
        ("nemo_cpu_byte_local", "tcp_cost", "goodput", 0.5, {"mtu": 9000}, SUPPORTED, CONTRADICTED),
        (
            "grid5000_stays_saturated",
            "fan_out",
            "aggregate_goodput",
            0.7,
            {"receivers": 7},
            SUPPORTED,
            CONTRADICTED,
        ),
        (
            "grid5000_buffers_need_tuning",
            "long_path",
            "goodput",
            6,
            {"window_bytes": 65536},
            SUPPORTED,
            CONTRADICTED,
        ),
    ],
)
def test_a_verdict_changes_with_its_data(
    data, entries, claim, campaign, reading, factor, levels, before, after
):
    """The same campaign with some of its readings multiplied is judged otherwise."""
    assert found(entries, claim).verdict == before
    altered = judged(
        claim, studies_of({**data, campaign: scaled(data[campaign], reading, factor, **levels)})
    )
    assert altered.verdict == after and altered.estimate != found(entries, claim).estimate


def test_scatter_is_judged_by_its_own_interval(data):
    """Every second transfer at half the rate: the results are no longer alike, and some are much lower."""
    repeats = data["long_repeats"]
    slow = scaled(repeats, "goodput", 0.5, block=repeats.block.where(repeats.block % 2 == 0))
    studies = studies_of({"long_path": data["long_path"], "long_repeats": slow})
    assert judged("grid5000_scatter_from_rennes", studies).verdict == SUPPORTED
    assert judged("grid5000_much_lower", studies).verdict == SUPPORTED


def test_measured_data_are_judged_as_measured(data):
    """A user's own run has a row of its own: the machine is no excuse there, and a real switch can be asked."""
    own = {
        name: as_evidence(data[name], "measured")
        for name in ("tcp_mtu", "frame_limits", "packet_sizes")
    }
    entries = evaluate.evaluate(OWN, studies_of(own))
    assert {one.evidence for entry in entries for one in entry.judgements} == {
        "published",
        "measured",
    }
    assert found(entries, "nemo_non_blocking", "measured").verdict == SUPPORTED
    assert found(entries, "nemo_8505t_jumbo", "measured").verdict == CONTRADICTED
    assert found(entries, "nemo_both_ways_1500", "measured").verdict != NOT_TESTABLE


def test_every_kind_of_evidence_has_an_answer(entries):
    """A verdict with an estimate, or a reason; intervals of all that is judged over blocks."""
    for entry in entries:
        assert [one.evidence for one in entry.judgements] == ["published", "emulated", "simulated"]
        for one in entry.judgements:
            assert one.verdict in VERDICTS and (math.isfinite(one.estimate) or one.reason)
            statistical = one.verdict in (SUPPORTED, CONTRADICTED)
            assert not statistical or (
                one.campaign and one.digest and np.isfinite(one.interval_95).all()
            )
            assert one.evidence != "published" or not statistical


def test_without_any_study_only_the_printed_numbers_speak():
    """No data, no verdict: the sources' own numbers are all that is left."""
    entries = evaluate.evaluate(OWN, studies_of({}))
    assert {one.evidence for entry in entries for one in entry.judgements} == {"published"}
    assert (
        found(entries, "nemo_total_1500", "published").reading
        == "sum of both flows, 1 MB = 1000 KB"
    )
    assert found(entries, "nemo_non_blocking", "published").verdict == "inconsistent"
    assert found(entries, "nemo_saving", "published").verdict == "printed"


def test_the_dataset_keeps_everything(entries, tmp_path):
    """It is the same after netCDF, with verdicts, intervals and origins over (claim, evidence)."""
    made = evaluate.dataset(entries, OWN)
    store.save(made, tmp_path / "claims.nc")
    with xr.open_dataset(tmp_path / "claims.nc", engine="netcdf4") as opened:
        xr.testing.assert_equal(opened.load(), made)
        assert opened.attrs == made.attrs
    at = made.sel(claim="nemo_jumbo_gain", evidence="emulated")
    assert (
        at.low_95 < at.low_90 < at.estimate < at.high_90 < at.high_95 and at.campaign == "tcp_mtu"
    )
    assert set(" ".join(made.confounds.values).split()) <= set(json.loads(made.attrs["confounds"]))
    assert evaluate.dataset((), replace(OWN, claims=())).sizes["claim"] == 0


@pytest.mark.parametrize("width", [40, 200])
def test_the_text_fits_the_terminal(entries, width):
    """Every claim with its verdicts, no line longer than the terminal is wide but for a single long word."""
    said = text.table(OWN, entries, width)
    assert all(len(line) <= width or " " not in line.strip() for line in said.splitlines())
    assert all(claim.id in said for claim in OWN.claims) and "nan" not in said.split()
    flat = " ".join(said.split())
    assert "emulated: supported; 1.053 (90 % t interval 1.053 to 1.053, 3 blocks)" in flat
    assert "emulated: not testable; a property of that switch" in flat


def test_the_command_prints_and_keeps_one_source(monkeypatch, capsys, tmp_path):
    """`falloff claims --source grid5000 --out FILE`: the claims of that source alone, and their dataset."""
    monkeypatch.setattr(experiment, "stored_studies", lambda: studies_of({}))
    assert commands.print_claims("grid5000", tmp_path / "own.nc") == 0
    said = capsys.readouterr().out
    assert "grid5000_knee" in said and "nemo_" not in said and "own.nc" in said
    with xr.open_dataset(tmp_path / "own.nc", engine="netcdf4") as kept:
        assert set(kept.source.values) == {"grid5000"}


def test_a_folder_of_ones_own_is_judged_alone(tmp_path):
    """With `data` a notebook has the studies of that folder, and no others."""
    shutil.copytree(paths.REFERENCE / "hpl_blas-emulated", tmp_path / "hpl_blas-emulated")
    studies = experiment.studies(experiment.Parameters("stored", "", 0, "out", str(tmp_path)))
    assert set(studies.datasets) == {"hpl_blas"} and studies.hpl_scaling is None
    assert judged("bonding_blas_matters_more", studies).verdict == SUPPORTED


def test_two_findings_of_one_kind_are_refused(monkeypatch):
    """A quantity that gives two for one kind of evidence would hide one: it is named."""
    twice = [evaluate.Untestable("emulated", "a")] * 2
    monkeypatch.setattr(evaluate.quantities, "find", lambda *_: lambda studies: twice)
    with pytest.raises(FalloffError, match="nemo_jumbo_gain: cable_jumbo_gain gives several"):
        evaluate.evaluate(OWN, studies_of({}))
