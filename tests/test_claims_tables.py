"""The claims in the report: what is counted and told is what was judged."""

import math
import re

import pytest

from analysis.claims.evaluate import Entry
from analysis.claims.judge import Judgement
from analysis.claims.ledger import Claim, Confound
from analysis.claims.tables import finding, verdicts, whole
from analysis.claims.text import amount, between, supporting
from analysis.publish import to_html

FRONT = "---\ntitle: T\nsubtitle: S\nlang: en\ncampaign: C\ndate: D\n---\n\n"
NOTHING = Judgement("published", "not testable", reason="the source prints no number of it")
CONFOUNDS = (Confound("old", "nemo", "The hosts were old."), Confound("few", "smith", "Few runs."))


def claim(name, source="nemo", **more):
    """A claim that is supported by 0.9 to 1.1."""
    told = {
        "id": name,
        "source": source,
        "where": "w",
        "statement": f"A {name} | holds.",
        "unit": "1",
    }
    return Claim(**{**told, "scale": "ratio", "why": "y", "at_least": 0.9, "at_most": 1.1, **more})


def on_runs(evidence, verdict, estimate=1.0):
    """A judgement by five blocks."""
    ends = {
        "interval_90": (estimate - 0.01, estimate + 0.01),
        "interval_95": (estimate - 0.02, estimate + 0.02),
    }
    return Judgement(
        evidence, verdict, estimate, **ends, kind="t", n=5, n_of="block", of="one over two"
    )


def silent(evidence):
    """That this evidence cannot tell."""
    return Judgement(evidence, "not testable", reason="a matter of prices")


ENTRIES = (
    Entry(
        claim("first", confounds=("old",)),
        (NOTHING, on_runs("emulated", "supported"), silent("simulated")),
    ),
    Entry(
        claim("second", confounds=("old",)),
        (NOTHING, on_runs("emulated", "supported"), on_runs("simulated", "contradicted", 1.5)),
    ),
    Entry(
        claim("third", "smith", confounds=("few",), printed=1.0),
        (
            Judgement("published", "inconsistent", 1.234567, reading="a over b"),
            *map(silent, ("emulated", "simulated")),
        ),
    ),
)


def plain(markdown):
    """The Markdown as it reads."""
    return re.sub(r"\\(.)", r"\1", markdown).replace("\u00a0", " ")


def test_the_finding_counts_each_kind_by_itself():
    """What runs can judge, which claims they differ on, and where printed numbers contradict each other."""
    said = plain(finding(ENTRIES))
    assert (
        "Of 3 claims, emulated runs can judge 2: they support 2, contradict 0 and leave 0 undecided."
        in said
    )
    assert "Simulated runs can judge 1: they support 0, contradict 1 and leave 0 undecided." in said
    assert "No run can judge the other 1." in said
    (differing, inconsistent) = [line for line in said.splitlines() if line.startswith("- ")]
    assert "A second | holds." in differing and "contradict it: 1.5 (95 % t" in differing
    assert "interval 1.48 to 1.52, 5 blocks), one over two." in differing
    assert (
        "A third | holds." in inconsistent
        and "give 1.235 (a over b); 0.9 to 1.1 would agree" in inconsistent
    )


def test_without_runs_it_says_so():
    """Then no run can judge any, and there is nothing that could disagree."""
    printed = [Entry(entry.claim, entry.judgements[:1]) for entry in ENTRIES]
    said = finding(printed)
    assert "no run can judge any" in said and "More than one kind" not in said
    assert verdicts(printed).columns == ("Source", "Claims", "Printed numbers")


def test_every_claim_has_a_row_and_every_note_its_claims(tmp_path):
    """A table for each source, claims numbered through; both outputs take what the sources' words hold."""
    nemo, smith, notes = whole(ENTRIES, CONFOUNDS)
    assert [row[0] for row in (*nemo.rows, *smith.rows)] == ["1", "2", "3"]
    assert [row[-1] for row in notes.rows] == ["1, 2", "3"]
    assert "Emulated and simulated: not testable, a matter of prices." in plain(smith.rows[0][-1])
    assert "prints no number" not in nemo.markdown and "(note 1)" in plain(nemo.rows[0][1])
    tables = [verdicts(ENTRIES), nemo, smith, notes]
    assert (
        to_html(FRONT + "\n\n".join(table.markdown for table in tables), tmp_path).count("<table")
        == 4
    )


def test_the_table_adds_up():
    """The last row is of all sources."""
    rows = verdicts(ENTRIES).rows
    assert rows[0][1:] == ("2", "2 / 0 / 0", "0 / 1 / 0", "—")
    assert rows[-1][1:] == ("3", "2 / 0 / 0", "0 / 1 / 0", "0 / 1")


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (6e-06, "s", "6 µs"),
        (1.45e9, "B/s", "1450 MB/s"),
        (120000, "USD", "120000 USD"),
        (0.99412, "1", "0.9941"),
    ],
)
def test_amounts_are_plain_numbers(value, unit, said):
    """Four digits at most, in a unit that suits them."""
    assert amount(value, unit) == said


def test_ranges_keep_what_was_written():
    """All digits, the unit once; ends that are not there are left out."""
    assert supporting(claim("a", at_least=0.95, at_most=1.0527)) == "0.95 to 1.0527"
    assert supporting(claim("a", at_most=math.inf, at_least=0.02, unit="s")) == "at least 20 ms"
    assert supporting(claim("a", at_least=-math.inf, at_most=math.inf)) == ""
    assert between(222.3, 222.8, "MB/s") == "222.3 to 222.8 MB/s"
