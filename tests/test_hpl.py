"""HPL's output: a row is read whole or not at all, whatever stands around it."""

import re
from time import process_time

import pytest
import recorded
from hypothesis import given
from hypothesis import strategies as st
from test_hpl_dat import DECK

from runners import hpl, hpl_dat
from runners.record import Unreadable

CASES = recorded.cases("hpl")
SEVERAL_ROWS = recorded.text("hpl/2.0-several-rows")
RULE = "=" * 80
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
    assert command.files["HPL.dat"] == hpl_dat.render({**DECK, "P": 1, "Q": 4})


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


def rows_of(text):
    """All rows of all runs, each with the number of its run, as text: there nan is like nan."""
    return [(number, repr(row)) for number, run in enumerate(hpl.runs(text)) for row in run.rows]


@pytest.mark.parametrize("case", CASES)
def test_a_prefix_holds_only_rows_that_were_complete_in_it(case):
    """Cut anywhere, an output gives the first rows of the whole, each one identical."""
    whole = recorded.text(case)
    rows = rows_of(whole)
    for cut in range(0, len(whole), 7):
        kept = rows_of(whole[:cut])
        assert kept == rows[: len(kept)]
    assert not rows or len(rows_of(whole[: len(whole) // 8])) < len(rows)


DRESSINGS = {
    "crlf": lambda line: line + "\r",
    "indented": lambda line: "    " + line,
    "trailing blanks": lambda line: line + "  \t",
    "mpirun --tag-output": lambda line: "[1,0]<stdout>:" + line,
    "srun --label": lambda line: "0: " + line,
    "pdsh": lambda line: "node-01.cluster: " + line,
    "coloured": lambda line: f"\x1b[1;32m{line}\x1b[0m",
    "progress": lambda line: (
        line + "\nnode1 : Column=000192 Fraction=0.005 Gflops=1.0\n Prog= 2.38% GF= 1.0"
    ),
    "prose": lambda line: (
        line + "\nWarning: slow\nWR is a variant\nWR11C2R4 took long\nmytest FAILED"
    ),
}


@pytest.mark.parametrize("dressing", DRESSINGS)
@pytest.mark.parametrize("case", CASES)
def test_what_stands_around_the_rows_changes_nothing(case, dressing):
    """Line ends, indentation, labels, colours, progress and prose leave every row as it was."""
    text = recorded.text(case)
    dressed = "\n".join(map(DRESSINGS[dressing], text.split("\n")))
    assert rows_of(dressed) == rows_of(text)


def test_each_result_belongs_to_its_run():
    """Of three runs in one file the second was stopped: rows know their run, and the stop is the second's."""
    one, other = recorded.text("hpl/2.0-one-row"), recorded.text("hpl/2.0-interrupted")
    found = hpl.results(one + "some shell: command FAILED\n" + other + one)
    assert [
        (result.settings["run"], "N" in result.settings, bool(result.refused)) for result in found
    ] == [
        (1, True, False),
        (2, True, False),
        (2, False, True),
        (3, True, False),
    ]
    assert "did not reach 'End of Tests.'" in found[2].refused


def test_nvidias_title_belongs_to_the_run_whose_title_follows():
    """Two titles, NVIDIA's and HPL's, begin one run; two outputs with both are two runs."""
    title = f"{RULE}\nHPL-NVIDIA 24.3.0  -- NVIDIA accelerated HPL benchmark -- NVIDIA\n"
    text = title + recorded.text("hpl/2.0-one-row")
    assert [(run.version, run.fault) for run in hpl.runs(text * 2)] == [("NVIDIA 24.3.0", "")] * 2


@pytest.mark.parametrize(
    "noise", [" Prog= 2.38%\tiGF=  2164.20\n", "WR11C2C4 ", " ", "||Ax-b||_oo/(", "\x1b[", "9"]
)
def test_time_grows_in_proportion_to_the_output(noise):
    """Eight times the noise, in lines or in one line, takes about eight times as long."""

    def seconds(size):
        text = SEVERAL_ROWS + noise * (size // len(noise))
        start = process_time()
        hpl.results(text)
        return process_time() - start

    seconds(10_000)
    assert min(seconds(4_000_000) for _ in range(2)) < 25 * min(seconds(500_000) for _ in range(3))
