"""HPL's output of unknown origin: whatever stands around the rows, a row is read whole or not at all."""

from time import process_time

import pytest
import recorded
from hypothesis import given
from hypothesis import strategies as st

from runners import hpl
from runners.hpl import Row

CASES = recorded.cases("hpl")
SEVERAL_ROWS = recorded.text("hpl/2.0-several-rows")
RULE, DASHES = "=" * 80, "-" * 80

# How the versions print time, rate and residual, and their titles.
FORMATS = {
    "2.0": (
        "2.0  --  High-Performance Linpack benchmark  --   September 10, 2008",
        ".2f",
        ".3e",
        ".7f",
    ),
    "2.3": (
        "2.3  --  High-Performance Linpack benchmark  --   December 2, 2018",
        ".2f",
        ".4e",
        ".8e",
    ),
    "intel": (
        "2.1  --  High-Performance Linpack benchmark  --   October 26, 2012",
        ".2f",
        ".5e",
        ".7f",
    ),
}


def printed(version, rows):
    """An output of xhpl in the format of a version, with these rows and nothing else that matters."""
    lines = [RULE, f"HPLinpack {FORMATS[version][0]}", RULE, ""]
    for row in rows:
        if version == "intel":
            lines.append(
                f"node1           : Column={row.N // 2:06d} Fraction=0.505 Mflops= 1000.00"
            )
        lines += [
            RULE,
            "T/V      N    NB     P     Q               Time                 Gflops",
            DASHES,
        ]
        time, rate = f"{row.time_text:>19}", f"{row.rate_text:>23}"
        lines.append(f"{row.variant}{row.N:12d} {row.NB:5d} {row.P:5d} {row.Q:5d} {time}{rate}")
        if version != "2.0":
            lines += ["HPL_pdgesv() start time Fri Jul  5 17:39:02 2024", ""]
        if row.residual is not None:
            verdict = f"{format(row.residual, FORMATS[version][3]):>17} ...... {row.check}"
            lines += [DASHES, f"||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)={verdict}"]
    failed = sum(row.check == "FAILED" for row in rows)
    return "\n".join(
        [*lines, RULE, "", f"Finished {len(rows):6d} tests with the following results:"]
        + [f"         {len(rows) - failed:6d} tests completed and passed residual checks,"]
        + [f"         {failed:6d} tests completed and failed residual checks,"]
        + ["              0 tests skipped because of illegal input values.", DASHES, ""]
        + ["End of Tests.", RULE, ""]
    )


@st.composite
def versions_and_rows(draw):
    """A version and rows with what it can print of them."""
    version = draw(st.sampled_from(sorted(FORMATS)))
    _, time_format, rate_format, residual_format = FORMATS[version]
    small = st.integers(1, 9999)
    sizes = st.fixed_dictionaries({"N": st.integers(1, 10**7), "NB": small, "P": small, "Q": small})
    rows = []
    for size in draw(st.lists(sizes, min_size=1, max_size=3)):
        checked = st.floats(0, 1e6).map(lambda value: float(format(value, residual_format)))
        residual = draw(st.none() | checked)
        rows.append(
            Row(
                variant=draw(st.sampled_from(["WR00L2L2", "WC11C2R4", "WR03R8C48", "WC0"])),
                time_text=format(draw(st.floats(0, 1e6)), time_format),
                rate_text=format(draw(st.floats(1e-9, 1e9)), rate_format),
                residual=residual,
                check="unchecked"
                if residual is None
                else draw(st.sampled_from(["PASSED", "FAILED"])),
                **size,
            )
        )
    return version, rows


@given(versions_and_rows())
def test_reads_back_what_each_version_prints(output):
    """Rows with any numbers, checked or not, passed or failed, survive being printed and read."""
    version, rows = output
    assert hpl.rows(printed(version, rows)) == rows


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
    "noise",
    [
        " Prog= 2.38%\tN_left= 71424\tTime= 2.74\tiGF=  2164.20\tGF=  2164.20\tiGF_per= 1082.10 \n",
        "WR11C2C4 ",
        "W ",
        " ",
        "||Ax-b||_oo/(",
        "=",
        "\x1b[",
        "9",
    ],
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
