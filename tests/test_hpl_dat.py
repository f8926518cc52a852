"""HPL.dat: what is written can be read back, and what HPL would misread is refused."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runners import hpl_dat
from runners.build import TRIAL_DECK
from runners.record import FalloffError

DECK = {**TRIAL_DECK, "N": 4096, "NB": 128, "Q": 2}


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


# From public repositories: dwbeserra/hpl-automation-scripts (appendix), liuquan2049/hpcc-buaa (long_lists),
# sbm4757/Workload-interference-in-Vector-host-and-vector-engine (many_sizes), and notes on Intel's
# benchmarks_2024.0, of unnamed origin (numbers_in_comments). What differs from DECK:
REAL_DECKS = {
    "appendix": {"N": 19640, "NB": 192, "P": 2, "Q": 2, "PFACT": 2},
    "long_lists": {
        **{"N": [10000, 200000, 39007, 39000], "NB": 1408, "P": 4, "Q": 2, "PFACT": 0, "NBMIN": 2},
        **{"RFACT": 0, "BCAST": 0, "SWAP": 1, "SWAP_THRESHOLD": 192, "L1": 1, "U": 1},
    },
    "many_sizes": {
        **{
            "N": [1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500],
            "NB": 10,
            "P": 2,
            "Q": 4,
            "PFACT": 2,
        },
        **{"BCAST": 0, "DEPTH": 0},
    },
    "numbers_in_comments": {
        **{
            "N": 1000,
            "NB": 192,
            "PMAP": 1,
            "P": 4,
            "Q": 4,
            "THRESHOLD": 1.0,
            "PFACT": 2,
            "NBMIN": 2,
        },
        **{
            "BCAST": 0,
            "DEPTH": 0,
            "SWAP": 0,
            "SWAP_THRESHOLD": 1,
            "L1": 1,
            "U": 1,
            "EQUILIBRATION": 0,
        },
    },
}


@pytest.mark.parametrize("name", REAL_DECKS)
def test_reads_real_decks(name):
    """Lists longer than their count, numbers in comments, odd spacing and lines after the 31st do no harm."""
    text = (Path(__file__).with_name("decks") / f"{name}.dat").read_text()
    assert hpl_dat.read(text) == {**DECK, **REAL_DECKS[name]}


SPACINGS = {
    "tabs": lambda line: line.replace(" ", "\t"),
    "many blanks": lambda line: line.replace(" ", "     "),
    "indented": lambda line: "   " + line,
    "trailing blanks": lambda line: line + "  \t ",
    "crlf": lambda line: line + "\r",
    "comment with numbers": lambda line: line + " # 1 2 3 (4 of 5)",
    "no comment": lambda line: re.sub(r"\s+[A-Za-z#].*", "", line),
}


@pytest.mark.parametrize("spacing", SPACINGS)
@settings(max_examples=30)
@given(deck=DECKS)
def test_spacing_and_comments_have_no_meaning(spacing, deck):
    """Tabs, blanks, line ends and comments leave the deck as it was, as does a missing last newline."""
    lines = hpl_dat.render(deck).splitlines()
    assert hpl_dat.read("\n".join(map(SPACINGS[spacing], lines))) == deck


@pytest.mark.parametrize(
    "word", ["1_000", "0x10", "1e3", "nan", "inf", "9" * 5000, "12.5", "\u0663"]
)
def test_refuses_what_is_no_whole_number(word):
    """What Python would take for a number, HPL would not."""
    with pytest.raises(FalloffError, match="line 6"):
        hpl_dat.read(hpl_dat.render(DECK).replace("4096 ", f"{word} ", 1))
