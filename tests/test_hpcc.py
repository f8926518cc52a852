"""HPCC's output: its summary in our units, and no number from a run that is unfinished or wrong."""

import pytest
import recorded

from runners import hpcc
from runners.record import FalloffError

TWO = recorded.text("hpcc/1.5.0-two-processes")
ONE = recorded.text("hpcc/1.5.0-one-process")


def readings(text):
    """The readings of the one result in an output, as name: (value, unit)."""
    (result,) = hpcc.results(text)
    return {reading.name: (reading.value, reading.unit) for reading in result.readings}


def test_what_was_not_measured_has_no_reading():
    """One process has no latency: HPCC prints -1, which is neither a number nor 0."""
    assert not [name for name in readings(ONE) if "ping_pong" in name or "ring" in name]
    assert "fft_rate" in readings(ONE)
    assert "fft_rate" not in readings(ONE.replace("MPIFFT_Gflops=5.17729", "MPIFFT_Gflops=0"))


def test_each_appended_run_is_a_result_of_its_own():
    """HPCC appends to hpccoutf.txt: a run that was stopped lies between two whole ones."""
    found = hpcc.results(ONE + ONE[: len(ONE) // 2] + "\n" + ONE)
    assert [result.settings["run"] for result in found] == [1, 2, 3]
    assert [bool(result.readings) for result in found] == [True, False, True]
    assert "did not reach the end of its summary" in found[1].refused


@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        ("Success=1", "Success=0", "Success=0"),
        (
            "0.0039858 ...... PASSED",
            "31.5 ...... FAILED",
            "in HPL's part, the residual check FAILED",
        ),
        ("3.320e+00", "9.320e+00", "in HPL's part, N = 20352"),
    ],
)
def test_a_run_that_computed_wrongly_gives_no_number(written, instead, said):
    """HPCC's own verdict, HPL's residual and HPL's arithmetic each refuse the whole run."""
    with pytest.raises(FalloffError, match=said):
        hpcc.results(TWO.replace(written, instead))
