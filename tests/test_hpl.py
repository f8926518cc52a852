"""HPL's output: what is read, and what is refused with which reason."""

import re

import pytest
import recorded
from hypothesis import given
from hypothesis import strategies as st
from test_hpl_dat import DECK

from runners import hpl, hpl_dat
from runners.record import Unreadable

ONE_ROW = recorded.text("hpl/2.0-one-row")
POINT = {"N": 3000, "NB": 64, "P": 1, "Q": 2}


def with_result(n=3000, time="0.48", rate="3.719e+01", variant="WR11C2C4"):
    """The one-row output with another result line."""
    line = f"{variant}{n:12d} {64:5d} {1:5d} {2:5d} {time:>18}     {rate:>18}"
    return re.sub(r"^WR11C2C4 .*$", line, ONE_ROW, flags=re.M)


def test_a_residual_that_is_no_number_invalidates_the_run():
    """A nan residual is invalid, and so it stays when PASSED stands beside it."""
    for check in ("FAILED", "PASSED"):
        text = re.sub(r"= +\S+ \.\.\.\.\.\. PASSED", f"=             -nan ...... {check}", ONE_ROW)
        assert recorded.judged("hpl", text, POINT).status == "invalid"


@given(n=st.integers(100, 10**6), seconds=st.floats(0.01, 1e5), digits=st.sampled_from([3, 4]))
def test_accepts_whatever_rounding_does_to_a_consistent_result(n, seconds, digits):
    """A rate computed from the unrounded time agrees with the two rounded numbers, for any size."""
    rate = hpl.operations(n) / seconds / 1e9
    (row,) = hpl.rows(with_result(n, f"{seconds:.2f}", f"{rate:.{digits}e}"))
    assert hpl.readings(row)[0].value == pytest.approx(rate, rel=10.0**-digits)


@given(
    n=st.integers(100, 10**6),
    seconds=st.floats(10, 1e5),
    wrong=st.sampled_from([0.5, 0.99, 1.01, 2, 1000]),
)
def test_refuses_a_rate_that_contradicts_size_and_time(n, seconds, wrong):
    """A rate one per cent off, with a time printed to a thousandth, is not what HPL computes."""
    rate = wrong * hpl.operations(n) / seconds / 1e9
    (row,) = hpl.rows(with_result(n, f"{seconds:.2f}", f"{rate:.3e}"))
    with pytest.raises(Unreadable, match="Gflop/s"):
        hpl.readings(row)


def test_refuses_a_table_that_lost_a_row():
    """Rows are counted against HPL's own closing count."""
    text = re.sub(r"^WR11C2C4 .*\n", "", recorded.text("hpl/2.0-several-rows"), count=1, flags=re.M)
    with pytest.raises(Unreadable, match="7 results"):
        hpl.rows(text)


def test_commands_run_one_process_a_node_on_the_deck_of_the_point():
    """The point's deck reaches xhpl as HPL.dat, with one rank for each node and the point's time limit."""
    (command,) = hpl.commands(
        {**DECK, "P": 1, "Q": 4, "nodes": 4, "interconnect": "gige", "timeout_s": 90.0}
    )
    assert (command.argv, command.ranks, command.timeout_s) == (("xhpl",), 4, 90.0)
    assert hpl_dat.read(command.files["HPL.dat"]) == {**DECK, "P": 1, "Q": 4}


def test_the_phases_are_hpls_own_timers():
    """Each timer of the output is a reading; an xhpl that prints none has none, and its result counts all the same."""
    found = {r.name: r.value for r in recorded.judged("hpl", ONE_ROW, POINT).readings}
    assert [found[f"hpl_{phase}_time"] for phase in ("rfact", "update", "laswp", "ptrsv")] == [
        0.02,
        0.45,
        0.02,
        0.01,
    ]
    silent = re.sub(r"^.*Max aggregated.*\n", "", ONE_ROW, flags=re.M)
    without = recorded.judged("hpl", silent, POINT)
    assert without.status == "ok" and not any(
        "laswp" in reading.name for reading in without.readings
    )
