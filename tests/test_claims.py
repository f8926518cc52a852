"""The ledger of claims: what ships is whole, the rules of judging hold, and readers see what was judged."""

import math
import re

import numpy as np
import pytest
from command_line import run
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import experiment
from analysis import published
from analysis.claims import evaluate, ledger, tables
from analysis.claims.evaluate import QUANTITIES, Entry, judge, judge_printed
from analysis.claims.found import Judgement, Sample
from analysis.claims.ledger import EVIDENCE, Claim, Confound
from analysis.experiments import Studies, top500
from analysis.publish import to_html
from analysis.statistics.judgement import judge_range
from runners.record import FalloffError

SHIPPED = ledger.load()
NOTHING = Studies({}.get)
VALUES = st.lists(st.floats(0.2, 5), min_size=2, max_size=8)
ENDS = st.tuples(st.floats(0.2, 5), st.floats(0.01, 3)).map(lambda pair: (pair[0], sum(pair)))


def claim(at_least=-math.inf, at_most=math.inf, source="nemo", scale="ratio", unit="1", **more):
    """A claim on a ratio with this range."""
    words = {"where": "cable, 1", "statement": "It | holds.", "why": "more"}
    ends = {"at_least": at_least, "at_most": at_most}
    return Claim("more", source, unit=unit, scale=scale, **words, **ends, **more)


def blocks(*values, evidence="emulated"):
    return Sample(evidence, np.array(values, float), "of")


def test_the_shipped_claims_are_whole():
    """Each is named once, has a number or a range, and names what is there; what is computed has a range to judge it by."""
    claims = {one.id: one for one in SHIPPED.claims}
    assert len(claims) == len(SHIPPED.claims)
    assert {one.source for one in SHIPPED.claims} == set(published.sources())
    confounds = {one.id for one in SHIPPED.confounds}
    assert {name for one in SHIPPED.claims for name in one.confounds} == confounds
    for one in SHIPPED.claims:
        assert one.at_least <= one.at_most and (one.has_range or math.isfinite(one.printed))
        assert one.scale in ("ratio", "difference") and {*one.not_testable} <= set(EVIDENCE[1:])
    assert all(claims[name].has_range for name in QUANTITIES)
    assert evaluate.readings(NOTHING).keys() <= claims.keys()


def test_numbers_that_follow_from_others_follow_from_them():
    """`printed_how` of a quotient of two printed numbers gives the claim's number, to its digits."""
    hows = [
        (one.printed, re.fullmatch(r"([\d.]+) over ([\d.]+) \S+", one.printed_how))
        for one in SHIPPED.claims
    ]
    quotients = [(printed, float(how[1]) / float(how[2])) for printed, how in hows if how]
    assert len(quotients) > 8
    for printed, computed in quotients:
        assert printed == pytest.approx(computed, rel=5e-3)


def test_every_printed_aggregate_of_top500_is_a_claim():
    """With the same number in base units, judged to the same digit."""
    claimed = {
        one.aggregate: (one.printed, one.rounding) for one in SHIPPED.claims if one.aggregate
    }
    for one in published.facts("top500")["aggregate"]:
        unit = top500.UNITS[one["unit"]]
        printed = unit * one["value"], unit * one["rounding"]
        assert claimed.pop(one["id"]) == pytest.approx(printed)
    assert not claimed


@pytest.mark.parametrize("text", ["[[claim", '[[claim]]\nid = "more"', "[[confound]]"])
def test_a_broken_file_is_named(tmp_path, text):
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(FalloffError, match=r"bad.toml cannot be read as claims"):
        ledger.load(file=tmp_path / "bad.toml")


@given(values=VALUES, ends=ENDS, ratios=st.booleans(), wider=st.floats(0, 2))
def test_verdicts_follow_from_the_intervals(values, ends, ratios, wider):
    """A verdict is never against the estimate, and a wider range is no harder to support."""
    found = judge_range(values, *ends, ratios=ratios)
    near = 1e-9 * max(values)
    lows, highs = zip(found.interval_95, found.interval_90)
    assert lows[0] <= lows[1] + near and highs[1] <= highs[0] + near
    assert lows[1] - near <= found.estimate <= highs[1] + near
    inside = ends[0] <= found.estimate <= ends[1]
    assert found.kind == "undecided" or inside == (found.kind == "supported")
    wide = judge_range(values, ends[0] - wider, ends[1] + wider, ratios=ratios)
    assert found.kind != "supported" or wide.kind == "supported"
    assert wide.kind != "contradicted" or found.kind == "contradicted"


@pytest.mark.parametrize("scale", ["ratio", "difference"])
def test_intervals_are_students(scale):
    """Against scipy's own t interval, of logarithms for ratios; missing blocks are left out."""
    forth, back = (np.log, np.exp) if scale == "ratio" else (np.array, np.array)
    values = forth([0.9, 1.1, 1.3])
    expected = back(stats.t.interval(0.95, 2, values.mean(), stats.sem(values)))
    found = judge(claim(0.5, 2.0, scale=scale), "emulated", blocks(0.9, np.nan, 1.1, 1.3))
    assert found.interval_95 == pytest.approx(tuple(expected))
    assert (found.n, found.kind) == (3, "t")
    assert found.estimate == pytest.approx(back(values.mean()))


@pytest.mark.parametrize(
    ("evidence", "values", "verdict", "reason"),
    [
        ("emulated", (), "undecided", "no block has a value"),
        ("emulated", (1.0,), "undecided", "a single block has no interval"),
        ("emulated", (1.0, 1.001, 0.999), "supported", ""),
        ("emulated", (1.0, 1.3, 0.7), "undecided", ""),
        ("emulated", (2.0, 2.001, 1.999), "contradicted", ""),
        ("simulated", (), "undecided", "no run has a value"),
        ("simulated", (1.0,), "supported", ""),
        ("simulated", (1.0, 2.0), "undecided", "1 of 2 runs lie in the range"),
        ("simulated", (2.0,), "contradicted", ""),
    ],
)
def test_blocks_need_an_interval_and_simulated_runs_all_count(evidence, values, verdict, reason):
    found = judge(claim(0.9, 1.1), evidence, blocks(*values, evidence=evidence))
    assert (found.verdict, found.reason, found.n) == (verdict, reason, len(values))


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [
        ((0.3, 0.4), "supported"),
        ((0.5, 0.6), "contradicted"),
        ((0.3, 0.6), "undecided"),
        ((np.nan,) * 2, "undecided"),
    ],
)
def test_estimates_with_intervals_of_their_own_are_judged_alike(ends, verdict):
    found = Judgement("measured", estimate=0.4, interval_90=ends, interval_95=ends, kind="exact")
    assert judge(claim(at_most=0.45), "measured", found).verdict == verdict


def test_what_cannot_be_judged_says_why():
    """The ledger's reason goes before the campaign's; no logarithm is made up."""
    ruled_out = claim(1, not_testable={"emulated": "given"})
    host_bound = Judgement("emulated", "not testable", reason="host-bound")
    for asked, found, reason in (
        (claim(1), host_bound, "host-bound"),
        (claim(1), None, "no campaign"),
        (ruled_out, blocks(1.0, 1.0), "given"),
    ):
        judged = judge(asked, "emulated", found)
        assert judged.verdict == "not testable" and reason in judged.reason
    with pytest.raises(FalloffError, match="no logarithm"):
        judge(claim(1), "emulated", blocks(0.0, 1.0))


ROUNDED = {"printed": 0.505, "rounding": 0.001}


@pytest.mark.parametrize(
    ("asked", "readings", "verdict", "reading"),
    [
        ({"printed": 0.505}, {}, "printed", ""),
        ({"printed": 0.505, "printed_how": "a over b"}, {}, "printed", "a over b"),
        ({"at_least": 0.5}, {}, "not testable", ""),
        (ROUNDED, {"mean": 0.5052, "sum": 0.5313}, "consistent", "mean"),
        (ROUNDED, {"sum": 0.5313}, "inconsistent", "sum"),
        (
            {"at_least": 0.5, "at_most": 0.54},
            {"mean": 0.5052, "sum": 0.5313},
            "consistent",
            "mean or sum",
        ),
    ],
)
def test_printed_numbers_have_no_statistical_verdict(asked, readings, verdict, reading):
    """Alone they are printed; a reading makes them consistent or not, and is named."""
    found = judge_printed(claim(**asked), readings)
    assert (found.verdict, found.reading, found.n) == (verdict, reading, len(readings))


@given(printed=st.integers(1, 9999), off=st.floats(-0.4999, 0.4999))
def test_rounding_to_the_printed_number(printed, off):
    """Whatever rounds to the last printed digit agrees, and no more."""
    number = claim(printed=printed / 100, rounding=0.01)
    assert judge_printed(number, {"x": (printed + off) / 100}).verdict == "consistent"
    beyond = (printed + off + np.sign(off or 1)) / 100
    assert judge_printed(number, {"x": beyond}).verdict == "inconsistent"


def on_runs(evidence, verdict, estimate=1.0):
    """A judgement by five blocks."""
    ends = (estimate - 0.01, estimate + 0.01)
    named = {"kind": "t", "n": 5, "n_of": "block", "of": "one over two"}
    return Judgement(evidence, verdict, estimate, ends, ends, **named)


def test_readers_see_every_verdict_and_where_they_differ(tmp_path):
    """What runs can judge by kind, opposite verdicts, printed numbers that contradict; rows with notes; HTML takes it all."""
    emulated, simulated = (
        Judgement(kind, "not testable", reason="of prices") for kind in ("emulated", "simulated")
    )
    bare = Judgement("published", "not testable", reason=evaluate.NO_NUMBER)
    wrong = Judgement("published", "inconsistent", 1.234567, reading="a over b")
    old, supported = claim(0.9, 1.1, confounds=["old"]), on_runs("emulated", "supported")
    opposite = on_runs("simulated", "contradicted", 1.5)
    entries = (
        Entry(old, (bare, supported, simulated)),
        Entry(old, (bare, supported, opposite)),
        Entry(claim(0.9, 1.1, "smith", confounds=["few"]), (wrong, emulated, simulated)),
    )
    text = re.sub(r"\\(.)", r"\1", tables.finding(entries)).replace("\u00a0", " ")
    assert "emulated runs can judge 2: they support 2, contradict 0 and leave 0 undecided." in text
    assert "Simulated runs can judge 1: they support 0, contradict 1" in text
    assert (
        "But emulated runs support it (1, one over two) and simulated runs contradict it (1.5"
        in text
    )
    assert "own numbers can check 1 claim and agree with 0." in text
    (row,) = tables.contradicted(entries).rows
    assert row[2:] == ("0.9 to 1.1", "1.5 simulated")
    printed = [Entry(entry.claim, entry.judgements[:1]) for entry in entries]
    assert "no run can judge any" in tables.finding(printed)

    confounds = (Confound("old", "nemo", "Old hosts."), Confound("few", "smith", "Few runs."))
    nemo, smith, notes = tables.whole(entries, confounds)
    assert [len(table.rows) for table in (nemo, smith, notes)] == [2, 1, 2]
    assert "(see 1)" in nemo.rows[0][0] and "(see 2)" in smith.rows[0][0]
    assert "Emulated and simulated: not testable" in smith.rows[0][-1]
    verdicts = tables.verdicts(entries)
    assert verdicts.rows[0][1:] == ("2", "2 / 0 / 0", "0 / 1 / 0", "—")
    assert verdicts.rows[-1][1:] == ("3", "2 / 0 / 0", "0 / 1 / 0", "0 / 1")
    front = "---\ntitle: T\nsubtitle: S\nlang: en\ncampaign: C\ndate: D\n---\n\n"
    page = front + "\n\n".join(table.markdown for table in (verdicts, nemo, smith, notes))
    assert to_html(page, tmp_path).count("<table") == 4


def test_numbers_and_ranges_keep_what_was_written():
    """In a unit that suits them, all digits, the unit once; ends that are not there are left out."""
    assert tables.amount(6e-06, "s") == "6 µs" and tables.amount(1.45e9, "B/s") == "1450 MB/s"
    assert tables.supporting(claim(0.95, 1.0527)) == "0.95 to 1.0527"
    assert tables.supporting(claim(0.02, unit="s")) == "at least 20 ms"
    assert tables.supporting(claim(222.3, 222.8, unit="MB/s")) == "222.3 to 222.8 MB/s"


def test_the_command_prints_one_source(monkeypatch):
    """`falloff report --claims grid5000`: that source's claims, wrapped; an unknown source is answered with those there are."""
    monkeypatch.setattr(experiment, "stored_studies", lambda: NOTHING)
    monkeypatch.setenv("COLUMNS", "60")
    done = run("report", "--claims", "grid5000")
    assert done.returncode == 0 and "grid5000_knee" in done.stdout and "nemo_" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 60
    refused = run("report", "--claims", "nobody")
    assert refused.returncode == 1 and "there are: beowulf, " in refused.stderr
