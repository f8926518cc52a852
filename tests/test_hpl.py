"""HPL's deck and output: every field stands in its line; a row is read whole or not at all,
whatever stands around it.
"""

import re
from time import process_time

import pytest
import recorded
from hypothesis import given
from hypothesis import strategies as st

from runners import hpl_dat, outputs
from runners.build import TRIAL_DECK
from runners.records.record import FalloffError, Unreadable
from runners.tools import hpl

DECK = {**TRIAL_DECK, "N": 4096, "NB": 128, "Q": 2}
ONE_ROW, SEVERAL = (recorded.text(f"hpl/2.0-{rows}") for rows in ("one-row", "several-rows"))
POINT = {"N": 3000, "NB": 64, "P": 1, "Q": 2}


def test_each_field_of_a_deck_has_its_line():
    """31 lines in HPL's own order; what HPL takes several of has their count, one, before it."""
    text = hpl_dat.render({**DECK, "THRESHOLD": 16.0})
    values = [line.split("  ")[0] for line in text.splitlines()[4:]]
    assert len(values) == 27
    assert values[:9] == ["1", "4096", "1", "128", "0", "1", "1", "2", "16.0"]
    last = ("SWAP_THRESHOLD", "L1", "U", "EQUILIBRATION", "ALIGNMENT")
    assert values[-5:] == [str(DECK[field]) for field in last]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("BCAST", 6),
        ("PFACT", 3),
        ("NB", 0),
        ("NDIV", 1),
        ("N", 10.5),
        ("N", [1000, 2000]),
        ("L1", True),
        ("THRESHOLD", float("inf")),
    ],
)
def test_refuses_what_hpl_would_silently_replace(field, value):
    """Values outside HPL's range, or of another number than a trial has, are refused by name."""
    with pytest.raises(FalloffError, match=field):
        hpl_dat.render({**DECK, field: value})
    with pytest.raises(FalloffError, match=f"needs {field}"):
        hpl_dat.render({name: value for name, value in DECK.items() if name != field})


def test_commands_run_one_process_a_node_on_the_deck_of_the_point():
    """The point's deck reaches xhpl as HPL.dat, with one rank for each node and the point's time
    limit.
    """
    point = {**DECK, "P": 1, "Q": 4, "nodes": 4, "interconnect": "gige", "timeout_s": 90.0}
    (command,) = hpl.commands(point)
    assert (command.argv, command.ranks, command.timeout_s) == (("xhpl",), 4, 90.0)
    assert command.files["HPL.dat"] == hpl_dat.render({**DECK, "P": 1, "Q": 4})
    with pytest.raises(FalloffError, match="'reference' with payload True"):
        hpl.commands({**point, "blas": "reference", "payload": True})


def test_a_residual_that_is_no_number_invalidates_the_run():
    """A nan residual is invalid, and so it stays when PASSED stands beside it."""
    for check in ("FAILED", "PASSED"):
        text = re.sub(r"= +\S+ \.\.\.\.\.\. PASSED", f"=             -nan ...... {check}", ONE_ROW)
        assert recorded.judged("hpl", text, POINT).status == "invalid"


@given(
    n=st.integers(100, 10**6),
    seconds=st.floats(10, 1e5),
    digits=st.sampled_from([3, 4]),
    wrong=st.sampled_from([1, 0.5, 0.99, 1.01, 1000]),
)
def test_a_rate_has_to_follow_from_size_and_time(n, seconds, digits, wrong):
    """Within what rounding does to both numbers it is accepted; one per cent off it is refused."""
    rate = wrong * hpl.operations(n) / seconds / 1e9
    line = f"WR11C2C4{n:12d}    64     1     2 {seconds:>18.2f}     {rate:>18.{digits}e}"
    (row,) = hpl.rows(re.sub(r"^WR11C2C4 .*$", line, ONE_ROW, flags=re.M))
    if wrong == 1:
        assert hpl.readings(row)["hpl_rate"] == pytest.approx(rate, rel=10.0**-digits)
    else:
        with pytest.raises(Unreadable, match="Gflop/s"):
            hpl.readings(row)


def test_refuses_a_table_that_lost_a_row():
    """Rows are counted against HPL's own closing count."""
    text = re.sub(r"^WR11C2C4 .*\n", "", SEVERAL, count=1, flags=re.M)
    with pytest.raises(Unreadable, match="7 results"):
        hpl.rows(text)


def test_the_phases_are_hpls_own_timers():
    """Each timer of the output is a reading; an xhpl that prints none has none, and its result
    counts all the same.
    """
    phases = [f"hpl_{phase}_time" for phase in ("rfact", "update", "laswp", "ptrsv")]
    found = recorded.judged("hpl", ONE_ROW, POINT).readings
    assert [found[phase] for phase in phases] == [0.02, 0.45, 0.02, 0.01]
    silent = re.sub(r"^.*Max aggregated.*\n", "", ONE_ROW, flags=re.M)
    without = recorded.judged("hpl", silent, POINT)
    assert without.status == "ok" and not without.readings.keys() & set(phases)


def rows_of(text):
    """All rows of all runs, each with the number of its run, as text: there nan is like nan."""
    return [(number, repr(row)) for number, run in enumerate(hpl.runs(text)) for row in run.rows]


DRESSINGS = {
    "indented, with trailing blanks": lambda line: f"    {line}  \t",
    "mpirun --tag-output": lambda line: "[1,0]<stdout>:" + line,
    "srun --label": lambda line: "0: " + line,
    "pdsh": lambda line: "node-01.cluster: " + line,
    "coloured": lambda line: f"\x1b[1;32m{line}\x1b[0m",
    "progress": lambda line: line + "\nnode1 : Column=000192 Fraction=0.005\n Prog= 2.38% GF= 1.0",
    "prose": lambda line: line + "\nWR is a variant\nWR11C2R4 took long\nmytest FAILED",
}


@pytest.mark.parametrize("dressing", DRESSINGS)
@pytest.mark.parametrize("case", recorded.cases("hpl"))
def test_what_stands_around_the_rows_changes_nothing(case, dressing):
    """Indentation, labels, colours, progress and prose leave every row as it was."""
    text = recorded.text(case)
    assert rows_of("\n".join(map(DRESSINGS[dressing], text.split("\n")))) == rows_of(text)


def test_each_result_belongs_to_its_run():
    """Of three runs in one file the second was stopped: rows know their run, and the stop is the
    second's.
    """
    stopped = recorded.text("hpl/2.0-interrupted")
    found = recorded.listed("hpl", f"{ONE_ROW}some shell: command FAILED\n{stopped}{ONE_ROW}")
    assert [(each["run"], "N" in each, "refused" in each) for each in found] == [
        (1, True, False),
        (2, True, False),
        (2, False, True),
        (3, True, False),
    ]
    assert "did not reach 'End of Tests.'" in found[2]["refused"]


def test_hpls_own_count_stands_above_its_dates():
    """The clock was set during the test: read, with a note. Without the count rows may be missing:
    refused.
    """
    text = re.sub(
        r"(HPL_pdgesv\(\) end time .* )(\d\d):", r"\g<1>05:", recorded.text("hpl/amd-2.3-blis")
    )
    counted, cut_off, _ = hpl.results(text)
    assert (
        counted.readings
        and "by its dates" in counted.note
        and "lines are missing" in cut_off.refused
    )
    uncounted = hpl.results(re.sub(r"Finished +\d+ tests", "Finished all tests", text))
    assert not any(result.readings for result in uncounted)


def test_a_row_does_not_keep_its_neighbours_residual():
    """Whatever block of lines is lost, a rate stands beside the residual that it had, or is
    refused.
    """
    lines = SEVERAL.splitlines(keepends=True)
    rows = [number for number, line in enumerate(lines) if line.startswith("WR")]
    own = {str(result.readings) for result in hpl.results(SEVERAL) if result.readings}
    assert len(own) > 2
    for begin in range(rows[0], rows[2]):
        for end in range(begin + 1, rows[2] + 20):
            try:
                found = hpl.results("".join(lines[:begin] + lines[end:]))
            except Unreadable:
                continue
            assert {str(result.readings) for result in found if result.readings} <= own


def test_rows_alone_are_named_for_what_they_are():
    """What `grep WR` leaves is recognised, and lacks the residual checks."""
    alone = "".join(line for line in SEVERAL.splitlines(keepends=True) if line.startswith("WR"))
    found = hpl.results(alone)
    assert len(found) > 2 and not any(result.readings for result in found)
    assert all("residual check is not in this file" in result.refused for result in found)
    assert outputs.is_output_of("hpl", alone)


@pytest.mark.parametrize(
    "variant",
    [
        "WR0XR8C48",
        "WRC07R8C48c 211",
        "WR06R8C24c 211",
        "WC0",
        "WC10R2R32_TTN8",
        "HPL_AI   WR03L2L2",
        "WR03L2L2 L",
    ],
)
def test_every_vendors_variant_is_a_row(variant):
    """Digits, small letters, a word before or behind: the same numbers, and `grep` leaves rows that
    are recognised.
    """
    text = ONE_ROW.replace("WR11C2C4 ", f"{variant} ")
    (result,), (own,) = hpl.results(text), hpl.results(ONE_ROW)
    assert result.readings == own.readings
    assert result.settings == {**own.settings, "variant": " ".join(variant.split())}
    (row,) = (line for line in text.splitlines() if line.startswith(variant))
    assert outputs.is_output_of("hpl", row)


def test_mixed_precision_is_told_by_its_functions():
    """AMD's HPL-MxP prints HPL's title and rows; its rate is no share of Rpeak, and its variant
    says so.
    """
    text = recorded.text("hpl/amd-zen-2023").replace("WR0XR8C48", "WC0      ")
    ((own,), (mixed,)) = map(hpl.results, (text, text.replace("HPL_pdgesv", "HPLMXP_pdgesv")))
    assert (own.settings["variant"], mixed.settings["variant"]) == ("WC0", "HPL_MxP WC0")


NVIDIA = (
    ONE_ROW.replace("HPLinpack 2.0", "HPL-NVIDIA 21.4  -- NVIDIA\nHPLinpack 2.1")
    .replace("WR11C2C4        3000    64", "WR03L2L2       72000   288")
    .replace("  0.48 ", "111.21 ")
)


@pytest.mark.parametrize(
    ("rate", "note"), [("2.238e+03", ""), ("2.240e+03", "+0.11 % off"), ("2.260e+03", None)]
)
def test_nvidias_rate_may_be_a_little_off(rate, note):
    """Within the rounding of what is printed without a word, up to 0.2 % with a note, refused
    beyond; HPL's own is strict.
    """
    text = NVIDIA.replace("3.719e+01", rate)
    assert [run.version for run in hpl.runs(2 * text)] == ["NVIDIA 21.4"] * 2
    if note is None:
        assert "does not give" in recorded.refusals("hpl", text)
    else:
        (result,) = hpl.results(text)
        assert result.readings and note in result.note and bool(note) == bool(result.note)
    own = text.replace("HPL-NVIDIA 21.4  -- NVIDIA", "")
    assert (note == "") == (not recorded.refusals("hpl", own))


@pytest.mark.parametrize(
    "noise", [" Prog= 2.38%\tiGF=  2164.20\n", "WR11C2C4 ", " ", "||Ax-b||_oo/(", "\x1b[", "9"]
)
def test_time_grows_in_proportion_to_the_output(noise):
    """Eight times the noise, in lines or in one line, takes about eight times as long."""

    def seconds(size):
        text, start = SEVERAL + noise * (size // len(noise)), process_time()
        hpl.results(text)
        return process_time() - start

    seconds(10_000)
    assert min(seconds(2_000_000) for _ in range(2)) < 25 * min(seconds(250_000) for _ in range(3))
