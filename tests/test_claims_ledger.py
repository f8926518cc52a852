"""The file of claims: what ships is whole, and a bad one is refused with all of its faults at once."""

import copy
import tomllib

import pytest

from analysis import published
from analysis.claims import ledger, quantities
from runners.record import FalloffError

TABLES = tomllib.loads(ledger.FILE.read_text(encoding="utf-8"))
CLAIM = {
    "id": "more",
    "source": "nemo",
    "where": "crossover cable, 1 and 2",
    "statement": "Jumbo frames carry more.",
    "quantity": "cable_jumbo_gain",
    "unit": "1",
    "scale": "ratio",
    "at_least": 1.0,
    "why": "more",
}
CONFOUND = {"id": "driver", "source": "nemo", "meaning": "One driver."}


def refused(tables):
    """The lines of the refusal."""
    with pytest.raises(FalloffError) as error:
        ledger.check(tables)
    return str(error.value).splitlines()


def test_the_shipped_claims_are_of_all_five_sources():
    """Each source has claims and every confound touches one; each claim's words decide a range or print a number."""
    shipped = ledger.load()
    assert {claim.source for claim in shipped.claims} == set(published.sources())
    touched = {name for claim in shipped.claims for name in claim.confounds}
    assert touched == {confound.id for confound in shipped.confounds}
    assert all(claim.has_range or claim.printed == claim.printed for claim in shipped.claims)


def test_every_quantity_has_a_claim():
    """No public function of the quantities' modules is left that no claim asks for."""
    asked = {
        quantities.find(claim.source, claim.quantity)
        for claim in ledger.load().claims
        if claim.quantity
    }
    there = {
        function
        for module in quantities.MODULES.values()
        for name, function in vars(module).items()
        if quantities.find(module.__name__.rpartition(".")[2], name)
        and not isinstance(function, type)
    }
    assert there <= asked, {function.__name__ for function in there - asked}


def test_all_faults_are_told_at_once():
    """A line for each fault, with the claim's id and what is wrong."""
    bad = {
        **CLAIM,
        "source": "nobody",
        "scale": "log",
        "at_least": 3,
        "at_most": 2,
        "confounds": ["gone"],
        "not_testable": {"guessed": "it is"},
    }
    lines = refused(
        {"claim": [bad, CLAIM, {"id": "bare"}], "confound": [CONFOUND, CONFOUND], "x": 1}
    )
    said = "\n".join(lines)
    for fault in (
        "unknown table 'x'",
        "claim more: its id is there 2 times",
        "confound driver: its id is there 2 times",
        "claim more: source 'nobody' is not one of",
        "claim more: scale 'log' is not one of ratio, difference",
        "claim more: 'at_least' is above 'at_most'",
        "claim more: confound 'gone' is not described",
        "claim more: quantity 'cable_jumbo_gain' is no function",
        "claim more: not_testable.guessed has to be",
        "claim bare: 'statement' is missing",
    ):
        assert fault in said, fault
    assert f"has {len(lines) - 1} faults" in lines[0]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"colour": "red"}, "unknown key 'colour'"),
        ({"at_least": "1"}, "'at_least' is '1', which is not of its type"),
        ({"printed": True}, "'printed' is True, which is not of its type"),
        ({"at_least": float("nan")}, "'at_least' is not finite"),
        ({"quantity": "published.nemo"}, "is no function"),
        ({"quantity": "_total"}, "is no function"),
        ({"quantity": "line"}, "is no function"),
        ({"statement": ""}, "'statement' is missing"),
        ({"confounds": "driver"}, "'confounds' is 'driver', which is not of its type"),
    ],
)
def test_single_faults(change, fault):
    """Unknown keys, wrong types and what is no quantity of its own; without the change it is a ledger."""
    good = {"claim": [CLAIM], "confound": [CONFOUND]}
    assert ledger.check(copy.deepcopy(good)).claims[0].at_most == float("inf")
    lines = refused({**good, "claim": [{**CLAIM, **change}]})
    assert len(lines) == 2 and fault in lines[1]


def test_a_claim_needs_a_number():
    """Without a printed number and a range nothing can be said of a claim."""
    lines = refused(
        {"claim": [{name: value for name, value in CLAIM.items() if name != "at_least"}]}
    )
    assert "no printed number and no range" in lines[1]


def test_unreadable_files_are_named(tmp_path):
    """A file that is not there, or no TOML, is named with its fault."""
    (tmp_path / "bad.toml").write_text("[[claim")
    for name in ("bad.toml", "none.toml"):
        with pytest.raises(FalloffError, match=name):
            ledger.load(tmp_path / name)


def test_one_source_alone():
    """Its claims and the confounds that touch them; a source without claims is refused with those that have some."""
    shipped = ledger.load()
    own = ledger.of_source(shipped, "nemo")
    assert {claim.source for claim in own.claims} == {"nemo"} and len(own.confounds) < len(
        shipped.confounds
    )
    assert ledger.of_source(shipped, "") == shipped
    with pytest.raises(FalloffError, match="there are claims of nemo, grid5000"):
        ledger.of_source(shipped, "nobody")
