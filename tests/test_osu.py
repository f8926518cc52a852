"""OSU Micro-Benchmarks: units, labels of launchers, and what must not be taken for a latency or a bandwidth."""

import pytest
import recorded

from runners import osu
from runners.record import Unreadable

LATENCY = recorded.text("osu/5.4.3-latency")
BANDWIDTH = recorded.text("osu/2.1-bandwidth")


def only(text):
    """The readings by name of the one table in a text."""
    (result,) = osu.results(text)
    assert not result.refused, result.refused
    return {reading.name: reading for reading in result.readings}


def test_megabytes_are_decimal_unless_the_output_says_otherwise():
    """A copy of the benchmark that counts 2^20 bytes says so, and its numbers mean 4.86 % more."""
    said = BANDWIDTH.replace("# Size", "# Modified to report: 1 MB == 2^20 bytes\n# Size")
    decimal, binary = (only(text)["message_bandwidth"].value for text in (BANDWIDTH, said))
    assert decimal[-1] == 1163132235.0
    assert all(b / d == pytest.approx(2**20 / 1e6) for d, b in zip(decimal, binary))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("MPI Latency Test", "MPI_Put Latency Test", "'mpi_put latency' is not read"),
        (
            "MPI Latency Test",
            "MPI Multi-threaded Latency Test",
            "'multi-threaded latency' is not read",
        ),
        ("MPI Latency Test", "MPI Bi-Directional Bandwidth Test", "is not read"),
        ("MPI Latency Test", "MPI Bandwidth Test", "names the columns"),
        ("Latency (us)", "Latency (ms)", "names the columns"),
        ("0                       1.82", "0                       1.82     Fail", "validation"),
        ("1024                    2.80", "1                       2.80", "do not ascend"),
    ],
)
def test_what_is_another_test_or_spoilt_is_refused(old, new, said):
    """One-sided and collective tests, other units, failed validation and mixed outputs give no number."""
    assert old in LATENCY
    with pytest.raises(Unreadable, match=said):
        osu.results(LATENCY.replace(old, new))
