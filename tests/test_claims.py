"""The ledger of claims: what ships is whole, the rules of judging hold, and readers see what was judged."""

import copy
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
from analysis.claims.evaluate import QUANTITIES, Entry, Judgement, judge, judge_printed
from analysis.claims.ledger import Claim, Confound
from analysis.claims.sample import Estimate, Sample, Untestable
from analysis.experiments import Studies, top500
from analysis.publish import to_html
from analysis.statistics.judgement import judge_range
from runners.record import FalloffError

SHIPPED = ledger.load()
NOTHING = Studies({}.get)
VALUES = st.lists(st.floats(0.2, 5), min_size=2, max_size=8)
ENDS = st.tuples(st.floats(0.2, 5), st.floats(0.01, 3)).map(lambda pair: (pair[0], sum(pair)))
ROW = {
    "id": "more",
    "source": "nemo",
    "where": "cable, 1",
    "statement": "It | holds.",
    "unit": "1",
    "scale": "ratio",
    "why": "more",
}


def claim(at_least=-math.inf, at_most=math.inf, **more):
    """A claim on a ratio with this range."""
    return Claim(**{**ROW, "at_least": at_least, "at_most": at_most, **more})


def blocks(*values, evidence="emulated"):
    return Sample(evidence, "campaign", "digest", np.array(values, float), "of")


def test_the_shipped_claims_are_whole():
    """Every source has claims, every confound touches one; what is computed is of a claim with a range to judge it by."""
    claims = {one.id: one for one in SHIPPED.claims}
    assert {one.source for one in SHIPPED.claims} == set(published.sources())
    assert {name for one in SHIPPED.claims for name in one.confounds} == {
        c.id for c in SHIPPED.confounds
    }
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
    for one in published.top500()["aggregate"]:
        unit = top500.UNITS[one["unit"]]
        assert claimed.pop(one["id"]) == pytest.approx(
            (unit * one["value"], unit * one["rounding"])
        )
    assert not claimed


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"colour": "red"}, "unexpected keyword argument 'colour'"),
        ({"source": "nobody"}, "source 'nobody' is unknown"),
        ({"scale": "log"}, "is not one of ratio, difference"),
        ({"at_least": 3, "at_most": 2}, "'at_least' is above 'at_most'"),
        ({"at_least": -math.inf}, "no printed number and no range"),
        ({"confounds": ["gone"]}, "a confound is not described"),
        ({"not_testable": {"guessed": "it is"}}, "names no kind of evidence"),
    ],
)
def test_a_bad_claim_is_refused_by_name(change, fault):
    """Without the change it is a ledger; a claim that is there twice is none either."""
    row = {**ROW, "at_least": 1.0}
    good = {"claim": [row], "confound": []}
    assert ledger.check(copy.deepcopy(good)).claims[0].at_most == math.inf
    with pytest.raises(FalloffError, match=f"more: .*{fault}"):
        ledger.check({**good, "claim": [{**row, **change}]})
    with pytest.raises(FalloffError, match="twice"):
        ledger.check({**good, "claim": [row, row]})


def test_unreadable_files_are_named(tmp_path):
    (tmp_path / "bad.toml").write_text("[[claim")
    for name in ("bad.toml", "none.toml"):
        with pytest.raises(FalloffError, match=name):
            ledger.load(file=tmp_path / name)


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
    assert (found.n, found.kind) == (3, "t") and found.estimate == pytest.approx(
        back(values.mean())
    )


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
        ("simulated", (1.0, 1.1), "supported", ""),
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
    found = Estimate("measured", "c", "d", 0.4, ends, ends, "exact", 9, "of")
    assert judge(claim(at_most=0.45), "measured", found).verdict == verdict


def test_what_cannot_be_judged_says_why():
    """The ledger's reason goes before the campaign's; no logarithm is made up."""
    ruled_out = claim(1, not_testable={"emulated": "given"})
    for asked, found, reason in (
        (claim(1), Untestable("emulated", "host-bound"), "host-bound"),
        (claim(1), None, "no campaign"),
        (ruled_out, blocks(1.0, 1.0), "given"),
    ):
        judged = judge(asked, "emulated", found)
        assert judged.verdict == "not testable" and reason in judged.reason
    with pytest.raises(FalloffError, match="no logarithm"):
        judge(claim(1), "emulated", blocks(0.0, 1.0))


@pytest.mark.parametrize(
    ("asked", "readings", "verdict", "reading"),
    [
        ({"printed": 0.505}, {}, "printed", ""),
        ({"printed": 0.505, "printed_how": "a over b"}, {}, "printed", "a over b"),
        ({"at_least": 0.5}, {}, "not testable", ""),
        (
            {"printed": 0.505, "rounding": 0.001},
            {"mean": 0.5052, "sum": 0.5313},
            "consistent",
            "mean",
        ),
        ({"printed": 0.505, "rounding": 0.001}, {"sum": 0.5313}, "inconsistent", "sum"),
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
    ends = {f"interval_{p}": (estimate - 0.01, estimate + 0.01) for p in (90, 95)}
    return Judgement(
        evidence, verdict, estimate, **ends, kind="t", n=5, n_of="block", of="one over two"
    )


SILENT = [Judgement(kind, "not testable", reason="of prices") for kind in ("emulated", "simulated")]
BARE = Judgement("published", "not testable", reason=evaluate.NO_NUMBER)
WRONG = Judgement("published", "inconsistent", 1.234567, reading="a over b")
OLD = claim(0.9, 1.1, confounds=["old"])
ENTRIES = (
    Entry(OLD, (BARE, on_runs("emulated", "supported"), SILENT[1])),
    Entry(OLD, (BARE, on_runs("emulated", "supported"), on_runs("simulated", "contradicted", 1.5))),
    Entry(claim(0.9, 1.1, source="smith", confounds=["few"], printed=1.0), (WRONG, *SILENT)),
)
CONFOUNDS = (Confound("old", "nemo", "The hosts were old."), Confound("few", "smith", "Few runs."))


def test_the_finding_counts_each_kind_by_itself():
    """What runs can judge, which claims they differ on, and where printed numbers contradict each other."""
    text = re.sub(r"\\(.)", r"\1", tables.finding(ENTRIES)).replace("\u00a0", " ")
    assert "emulated runs can judge 2: they support 2, contradict 0 and leave 0 undecided." in text
    assert "Simulated runs can judge 1: they support 0, contradict 1" in text
    differing, inconsistent = [line for line in text.splitlines() if line.startswith("- ")]
    assert "contradict it: 1.5 (95 % t interval 1.49 to 1.51, 5 blocks), one over two." in differing
    assert "give 1.235 (a over b); 0.9 to 1.1 would agree" in inconsistent
    printed = [Entry(entry.claim, entry.judgements[:1]) for entry in ENTRIES]
    assert "no run can judge any" in tables.finding(printed)


def test_every_claim_has_a_row_and_its_notes(tmp_path):
    """The verdicts add up, and HTML takes what the sources' words hold."""
    nemo, smith, notes = tables.whole(ENTRIES, CONFOUNDS)
    assert [len(table.rows) for table in (nemo, smith, notes)] == [2, 1, 2]
    assert "(see 1)" in nemo.rows[0][0] and "(see 2)" in smith.rows[0][0]
    assert "Emulated and simulated: not testable" in smith.rows[0][-1]
    verdicts = tables.verdicts(ENTRIES)
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
    assert tables.between(222.3, 222.8, "MB/s") == "222.3 to 222.8 MB/s"


def test_the_command_prints_one_source(monkeypatch):
    """`falloff report --claims grid5000`: that source's claims, wrapped."""
    monkeypatch.setattr(experiment, "stored_studies", lambda: NOTHING)
    monkeypatch.setenv("COLUMNS", "60")
    done = run("report", "--claims", "grid5000")
    assert done.returncode == 0 and "grid5000_knee" in done.stdout and "nemo_" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 60
    refused = run("report", "--claims", "nobody")
    assert refused.returncode == 1 and "there are: beowulf, " in refused.stderr
