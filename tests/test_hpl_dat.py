"""HPL.dat: every field stands in its line, and what HPL would replace without a word is refused."""

import pytest

from runners import hpl_dat
from runners.build import TRIAL_DECK
from runners.record import FalloffError

DECK = {**TRIAL_DECK, "N": 4096, "NB": 128, "Q": 2}


def values(text):
    """What stands before the comment in each of the lines that HPL reads, in order."""
    return [line.split("  ")[0].split() for line in text.splitlines()[4:]]


def test_each_field_has_its_line():
    """31 lines in HPL's own order; a list has its count before it, and one count is that of P and of Q."""
    text = hpl_dat.render(
        {**DECK, "N": [100, 200, 300], "P": [1, 2], "Q": [4, 2], "THRESHOLD": 16.0}
    )
    assert len(text.splitlines()) == 31
    assert values(text)[:9] == [
        *(["3"], ["100", "200", "300"]),
        *(["1"], ["128"], ["0"]),
        *(["2"], ["1", "2"], ["4", "2"], ["16.0"]),
    ]
    assert values(text)[-5:] == [
        [str(DECK[field])] for field in ("SWAP_THRESHOLD", "L1", "U", "EQUILIBRATION", "ALIGNMENT")
    ]


@pytest.mark.parametrize(
    "field, value",
    [
        ("BCAST", 6),
        ("PFACT", 3),
        ("NB", 0),
        ("NDIV", 1),
        ("N", 0),
        ("N", 10.5),
        ("ALIGNMENT", 0),
        ("SWAP", [1, 2]),
        ("N", []),
        ("N", list(range(1, 22))),
        ("Q", [1, 2]),
        ("L1", True),
        ("THRESHOLD", float("inf")),
    ],
)
def test_refuses_what_hpl_would_silently_replace(field, value):
    """Values outside HPL's range, or of another number than HPL takes, are refused by name."""
    with pytest.raises(FalloffError, match=field):
        hpl_dat.render({**DECK, field: value})


def test_a_missing_field_is_named():
    """A deck needs all of its fields."""
    with pytest.raises(FalloffError, match="needs DEPTH"):
        hpl_dat.render({field: value for field, value in DECK.items() if field != "DEPTH"})
