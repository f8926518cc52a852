"""The ledger of claims: what ships is whole, the rules of judging hold, and readers see what was
judged.
"""

import math
import re

import numpy as np
import pytest
from command_line import run
from hypothesis import given
from hypothesis import strategies as st

from analysis import experiment
from analysis.dataset import published
from analysis.descriptions import ledger
from analysis.descriptions.ledger import EVIDENCE, Claim, Confound
from analysis.quoting import as_written
from analysis.report.claims import evaluate, tables
from analysis.report.claims.evaluate import (
    NO_CAMPAIGN,
    NO_NUMBER,
    ClaimVerdict,
    Entry,
    judge,
    judge_printed,
)
from analysis.statements.statement import Statement
from analysis.statistics.judgement import judge_range
from runners.records.record import FalloffError

SHIPPED = ledger.load()
VALUES = st.lists(st.floats(0.2, 5), min_size=2, max_size=8)
ENDS = st.tuples(st.floats(0.2, 5), st.floats(0.01, 3)).map(lambda pair: (pair[0], sum(pair)))


def claim(at_least=-math.inf, at_most=math.inf, source="nemo", scale="ratio", unit="1", **more):
    """A claim on a ratio with this range."""
    words = {"where": "cable, 1", "statement": "It | holds.", "why": "more"}
    ends = {"at_least": at_least, "at_most": at_most}
    return Claim(id="more", source=source, unit=unit, scale=scale, **words, **ends, **more)


def found(evidence, values=(), **more):
    """A quantity that a notebook stated."""
    about = {"campaign": "mine", "digest": "0" * 64, "unit": "1", "answer": "", "name": "gain"}
    about |= {"estimate": None, "interval": None, "interval_kind": "", "subject": "one over two"}
    values = tuple(one for one in values if np.isfinite(one))
    about |= {"quantity": "ratio", "n": len(values), "n_of": "block", "values": values}
    return Statement(evidence=evidence, **about | more)


def test_the_shipped_claims_are_whole():
    """Each is named once, has a number or a range, and names what is there; what is computed has a
    range to judge it by.
    """
    claims = {one.id: one for one in SHIPPED.claims}
    assert len(claims) == len(SHIPPED.claims)
    assert {one.source for one in SHIPPED.claims} == set(published.sources())
    confounds = {one.id for one in SHIPPED.confounds}
    assert {name for one in SHIPPED.claims for name in one.confounds} == confounds
    for one in SHIPPED.claims:
        assert one.at_least <= one.at_most and (one.has_range or math.isfinite(one.printed))
        assert one.scale in ("ratio", "difference") and {*one.not_testable} <= set(EVIDENCE[1:])
    assert all(one.has_range for one in SHIPPED.claims if one.judged_by)
    known = {*claims, *(one.aggregate for one in SHIPPED.claims)}
    assert evaluate.readings().keys() <= known


def test_numbers_that_follow_from_others_follow_from_them():
    """`printed_how` of a quotient of two printed numbers gives the claim's number, to its digits;
    each aggregate of TOP500 is a claim with the same number in base units, judged to the same
    digit."""
    quotient, computed = re.compile(r"([\d.]+) over ([\d.]+) \S+"), 0
    for one in SHIPPED.claims:
        if how := quotient.fullmatch(one.printed_how):
            computed += 1
            assert one.printed == pytest.approx(float(how[1]) / float(how[2]), rel=5e-3)
    assert computed > 8
    claimed = {
        one.aggregate: (one.printed, one.rounding) for one in SHIPPED.claims if one.aggregate
    }
    for one in published.facts("top500")["aggregate"]:
        unit = {"%": 0.01, "1": 1.0}[one["unit"]]
        assert claimed.pop(one["id"]) == pytest.approx(
            (unit * one["value"], unit * one["rounding"])
        )
    assert not claimed


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "bad.toml").write_text('[[claim]]\nid = "more"')
    with pytest.raises(
        FalloffError, match=r"bad.toml has 6 faults:\s+claim\[1\].source is missing"
    ):
        ledger.load(file=tmp_path / "bad.toml")


@given(values=VALUES, ends=ENDS, ratios=st.booleans(), wider=st.floats(0, 2))
def test_verdicts_follow_from_the_intervals(values, ends, ratios, wider):
    """A verdict is never against the estimate, and a wider range is no harder to support."""
    judged = judge_range(values, *ends, ratios=ratios)
    near = 1e-9 * max(values)
    lows, highs = zip(judged.interval_95, judged.interval_90)
    assert lows[0] <= lows[1] + near and highs[1] <= highs[0] + near
    assert lows[1] - near <= judged.estimate <= highs[1] + near
    inside = ends[0] <= judged.estimate <= ends[1]
    assert judged.kind == "undecided" or inside == (judged.kind == "supported")
    wide = judge_range(values, ends[0] - wider, ends[1] + wider, ratios=ratios)
    assert judged.kind != "supported" or wide.kind == "supported"
    assert wide.kind != "contradicted" or judged.kind == "contradicted"


@pytest.mark.parametrize(
    ("evidence", "values", "verdict", "reason"),
    [
        ("emulated", (), "undecided", "no block has a value"),
        ("emulated", (1.0,), "undecided", "a single block has no interval"),
        ("emulated", (1.0, np.nan, 1.001, 0.999), "supported", ""),
        ("emulated", (1.0, 1.3, 0.7), "undecided", ""),
        ("emulated", (2.0, 2.001, 1.999), "contradicted", ""),
        ("simulated", (), "undecided", "no run has a value"),
        ("simulated", (1.0,), "supported", ""),
        ("simulated", (1.0, 2.0), "undecided", "1 of 2 runs lie in the range"),
        ("simulated", (2.0,), "contradicted", ""),
    ],
)
def test_blocks_need_an_interval_and_simulated_runs_all_count(evidence, values, verdict, reason):
    """What the ledger rules out is not tested, whatever there is; nor is what no campaign has."""
    stated = found(evidence, values)
    judged = judge(claim(0.9, 1.1), evidence, stated)
    assert (judged.answer, judged.reason) == (verdict, reason)
    assert judged.n == np.isfinite(values).sum()
    ruled_out = judge(claim(0.9, 1.1, not_testable={evidence: "given"}), evidence, stated)
    assert (ruled_out.answer, ruled_out.reason) == ("not testable", "given")
    assert judge(claim(1), evidence, None).reason == NO_CAMPAIGN


def test_no_logarithm_is_made_up():
    with pytest.raises(FalloffError, match="no logarithm"):
        judge(claim(1), "emulated", found("emulated", (0.0, 1.0)))


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [
        ((0.3, 0.4), "supported"),
        ((0.5, 0.6), "contradicted"),
        ((0.3, 0.6), "undecided"),
        (None, "undecided"),
    ],
)
def test_estimates_with_intervals_of_their_own_are_judged_alike(ends, verdict):
    stated = found("measured", estimate=0.4, interval=ends, interval_kind="exact")
    assert judge(claim(at_most=0.45), "measured", stated).answer == verdict


TWO = {"mean": 0.5052, "sum": 0.5313}


@pytest.mark.parametrize(
    ("asked", "readings", "verdict", "reading"),
    [
        ({"printed": 0.505, "printed_how": "a over b"}, {}, "printed", "a over b"),
        ({"at_least": 0.5}, {}, "not testable", ""),
        ({"printed": 0.505, "rounding": 0.001}, TWO, "consistent", "mean"),
        ({"printed": 0.507, "rounding": 0.001}, TWO, "inconsistent", "mean"),
        ({"at_least": 0.5, "at_most": 0.54}, TWO, "consistent", "mean or sum"),
    ],
)
def test_printed_numbers_have_no_statistical_verdict(asked, readings, verdict, reading):
    """Alone they are printed; a reading makes them consistent or not, and is named."""
    judged = judge_printed(claim(**asked), readings)
    assert (judged.answer, judged.reading, judged.n) == (verdict, reading, len(readings))


@given(printed=st.integers(1, 9999), off=st.floats(-0.4999, 0.4999))
def test_rounding_to_the_printed_number(printed, off):
    """Whatever rounds to the last printed digit agrees, and no more."""
    number = claim(printed=printed / 100, rounding=0.01)
    assert judge_printed(number, {"x": (printed + off) / 100}).answer == "consistent"
    beyond = (printed + off + np.sign(off or 1)) / 100
    assert judge_printed(number, {"x": beyond}).answer == "inconsistent"


def on_runs(evidence, verdict, estimate=1.0):
    """A verdict by five blocks."""
    ends = (estimate - 0.01, estimate + 0.01)
    named = {"kind": "95 % t interval", "n": 5, "n_of": "block", "of": "one over two"}
    return ClaimVerdict(evidence, verdict, estimate, ends, **named)


def test_readers_see_every_verdict_and_where_they_differ(tmp_path):
    """What runs can judge, opposite verdicts, verdicts by kind; the ledger says what else differs,
    also as CSV.
    """
    emulated, simulated = (
        ClaimVerdict(kind, "not testable", reason="of prices") for kind in ("emulated", "simulated")
    )
    bare = ClaimVerdict("published", "not testable", reason=NO_NUMBER)
    wrong = ClaimVerdict("published", "inconsistent", 1.234567, reading="a over b")
    old, supported = claim(0.9, 1.1, confounds=["old"]), on_runs("emulated", "supported")
    opposite = on_runs("simulated", "contradicted", 1.5)
    entries = (
        Entry(old, (bare, supported, simulated)),
        Entry(old, (bare, supported, opposite)),
        Entry(claim(0.9, 1.1, "fortinet", confounds=["few"]), (wrong, emulated, simulated)),
    )
    text = re.sub(r"\\(.)", r"\1", tables.finding(entries)).replace("\u00a0", " ")
    for said in (
        "Runs can judge 2 of 3 claims.",
        "But emulated runs support it (1, one over two) and simulated runs contradict it (1.5",
    ):
        assert said in text
    printed = [Entry(entry.claim, entry.verdicts[:1]) for entry in entries]
    assert "Runs can judge 0 of" in tables.finding(printed)

    confounds = (
        Confound(id="old", source="nemo", meaning="Old hosts."),
        Confound(id="few", source="fortinet", meaning="Few runs."),
    )
    ledger = tables.whole(entries, confounds)
    assert [as_written(row[-1]) for row in ledger.rows] == ["Old hosts.", "Old hosts.", "Few runs."]
    assert "Emulated and simulated: not testable" in ledger.rows[2][4]
    ledger.save(tmp_path)
    assert (tmp_path / f"{tables.LEDGER}.csv").read_text("utf-8").count("Old hosts.") == 2
    verdicts = tables.verdicts(entries)
    assert verdicts.rows[0][1:] == ("2", "2 / 0 / 0", "0 / 1 / 0", "—")
    assert verdicts.rows[-1][1:] == ("3", "2 / 0 / 0", "0 / 1 / 0", "0 / 1")


def test_numbers_and_ranges_keep_what_was_written():
    """In a unit that suits them, all digits, the unit once; ends that are not there are left
    out.
    """
    assert tables.amount(6e-06, "s") == "6 µs" and tables.amount(1.45e9, "B/s") == "1450 MB/s"
    for ends, unit, written in (
        ((0.95, 1.0527), "1", "0.95 to 1.0527"),
        ((0.02, math.inf), "s", "at least 20 ms"),
        ((222.3, 222.8), "MB/s", "222.3 to 222.8 MB/s"),
    ):
        assert tables.supporting(claim(*ends, unit=unit)) == written


def test_the_command_prints_one_source(monkeypatch):
    """`falloff report --claims grid5000`: that source's claims, wrapped; an unknown source is
    answered with those there are.
    """
    monkeypatch.setattr(experiment, "stored_datasets", dict)
    monkeypatch.setenv("COLUMNS", "60")
    done = run("report", "--claims", "grid5000")
    assert done.returncode == 0 and "grid5000_knee" in done.stdout and "nemo_" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 60
    refused = run("report", "--claims", "nobody")
    assert refused.returncode == 1 and "there are: beowulf, " in refused.stderr
