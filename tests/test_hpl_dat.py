"""HPL.dat: what is written can be read back, and what HPL would misread is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners import hpl_dat
from runners.record import FalloffError

DECK = {
    "N": 4096,
    "NB": 128,
    "P": 1,
    "Q": 2,
    "PMAP": 0,
    "THRESHOLD": 16.0,
    "PFACT": 1,
    "NBMIN": 4,
    "NDIV": 2,
    "RFACT": 1,
    "BCAST": 1,
    "DEPTH": 1,
    "SWAP": 2,
    "SWAP_THRESHOLD": 64,
    "L1": 0,
    "U": 0,
    "EQUILIBRATION": 1,
    "ALIGNMENT": 8,
}


def varied(least, most):
    """One whole number, or a list of two or more, within bounds."""
    number = st.integers(least, most)
    return number | st.lists(number, min_size=2, max_size=hpl_dat.MOST_VALUES)


GRIDS = st.lists(st.tuples(st.integers(1, 64), st.integers(1, 64)), min_size=2, max_size=5).map(
    lambda grids: {"P": [p for p, _ in grids], "Q": [q for _, q in grids]}
) | st.fixed_dictionaries({"P": st.integers(1, 64), "Q": st.integers(1, 64)})

DECKS = st.builds(
    lambda fields, grids: {**fields, **grids},
    st.fixed_dictionaries(
        {
            "N": varied(1, 10**7),
            "NB": varied(1, 1024),
            "PMAP": st.integers(0, 1),
            "THRESHOLD": st.floats(allow_nan=False, allow_infinity=False),
            "PFACT": varied(0, 2),
            "NBMIN": varied(1, 64),
            "NDIV": varied(2, 8),
            "RFACT": varied(0, 2),
            "BCAST": varied(0, 5),
            "DEPTH": varied(0, 9),
            "SWAP": st.integers(0, 2),
            "SWAP_THRESHOLD": st.integers(0, 999),
            "L1": st.integers(0, 1),
            "U": st.integers(0, 1),
            "EQUILIBRATION": st.integers(0, 1),
            "ALIGNMENT": st.integers(1, 64),
        }
    ),
    GRIDS,
)


@given(DECKS)
def test_reads_back_what_it_writes(deck):
    """Every field of any deck survives being written and read, in 31 lines."""
    text = hpl_dat.render(deck)
    assert hpl_dat.read(text) == deck
    assert len(text.splitlines()) == 31


def test_values_of_a_line_are_one_blank_apart():
    """HPL's own reader advances by the value's length plus one."""
    assert hpl_dat.render({**DECK, "N": [2000, 260000]}).splitlines()[5].startswith("2000 260000 ")


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


def test_refuses_an_incomplete_deck_and_names_what_is_missing():
    """There are no silent defaults."""
    with pytest.raises(FalloffError, match="BCAST, DEPTH"):
        hpl_dat.render({field: value for field, value in DECK.items() if field not in ("BCAST", "DEPTH")})


@pytest.mark.parametrize("kept", range(31))
def test_refuses_a_deck_that_ends_early(kept):
    """A deck cut after any line is refused with the line at which it ends."""
    lines = hpl_dat.render(DECK).splitlines()[:kept]
    with pytest.raises(FalloffError, match=f"line {max(kept, 4) + 1}"):
        hpl_dat.read("\n".join(lines))


def test_names_the_line_that_holds_no_number():
    """A word where a number belongs is quoted with its line."""
    text = hpl_dat.render(DECK).replace("128          NBs", "many         NBs")
    with pytest.raises(FalloffError, match="line 8: 'many'"):
        hpl_dat.read(text)
