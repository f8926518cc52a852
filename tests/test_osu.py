"""OSU Micro-Benchmarks: units, labels of launchers, and what must not be taken for a latency or a bandwidth."""

import recorded
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_what_is_too_small_to_be_printed_is_unknown():
    """0.00 MB/s is not zero: two digits were too few."""
    slow = "# OSU MPI Bandwidth Test v3.1.1\n# Size        Bandwidth (MB/s)\n1       0.00\n2       0.01\n"
    assert only(slow)["message_bandwidth"].value == [None, 10000.0]


@pytest.mark.parametrize("label", ["[1,0]<stdout>:", "Sun Dec 24 09:52:05 2017[1,0]<stdout>:", "0: "])
def test_labels_of_launchers_are_read_over(label):
    """mpirun --tag-output, also with the time, and srun --label."""
    labelled = "".join(label + line for line in LATENCY.splitlines(keepends=True))
    assert only(labelled) == only(LATENCY)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("MPI Latency Test", "MPI_Put Latency Test", "'mpi_put latency' is not read"),
        ("MPI Latency Test", "MPI Multi-threaded Latency Test", "'multi-threaded latency' is not read"),
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


def test_buffers_on_devices_are_two_sided_too():
    """OSU MPI-CUDA is the same test between other memories."""
    assert only(LATENCY.replace("OSU MPI ", "OSU MPI-CUDA ")) == only(LATENCY)


@given(st.lists(st.tuples(st.integers(0, 2**30), st.integers(1, 10**9)), min_size=1, unique_by=lambda row: row[0]))
def test_every_row_is_read_in_its_unit(rows):
    """Whatever sizes and latencies are printed, they come back as bytes and seconds."""
    rows.sort()
    table = "".join(f"{size:<10d}{hundredths / 100:>20.2f}\n" for size, hundredths in rows)
    found = only(f"# OSU MPI Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n{table}")
    assert found["message_size"].value == [size for size, _ in rows]
    assert found["message_time"].value == pytest.approx([hundredths / 1e8 for _, hundredths in rows])
