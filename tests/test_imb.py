"""Intel MPI Benchmarks: the unit of its Mbytes/sec follows from the rows, and other benchmarks are passed over."""

import pytest
import recorded
from hypothesis import given
from hypothesis import strategies as st

from runners import imb
from runners.record import Unreadable

OLD = recorded.text("imb/4.0-pingpong")
NEW = recorded.text("imb/2021.3-pingpong")
SENDRECV = """#-----------------------------------------------------------------------------
# Benchmarking Sendrecv
# #processes = 2
#-----------------------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
            0         1000         2.24         2.25         2.24         0.00
"""


def readings(text):
    """The readings by name of the one PingPong in a text."""
    (result,) = imb.results(text)
    assert not result.refused, result.refused
    return {reading.name: reading.value for reading in result.readings}


@given(st.sampled_from([10**6, 2**20]), st.lists(st.floats(50, 1e5), min_size=1, max_size=8))
def test_the_unit_follows_from_the_rows(mega, times):
    """Printed with two digits in either unit, a table is read in the one that it was printed in."""
    rows = [(2 ** (24 + power), time) for power, time in enumerate(times)]
    table = "".join(
        f"{size:13d}         1000 {time:12.2f} {size / time * 1e6 / mega:12.2f}\n"
        for size, time in rows
    )
    found = readings(OLD[: OLD.index("              0         1000")] + table)
    assert found["message_bandwidth"] == pytest.approx(
        [size / time * 1e6 for size, time in rows], rel=1e-3
    )


def test_a_rate_that_is_neither_is_refused():
    """A row whose rate is not its bytes over its time in any unit spoils the table."""
    with pytest.raises(Unreadable, match="fit neither as 10"):
        imb.results(OLD.replace("5924.16", "7777.16"))


def test_other_benchmarks_are_passed_over():
    """Of a whole run only the PingPongs are read; without one that is said."""
    several = imb.results(SENDRECV + NEW + SENDRECV + OLD)
    assert [result.settings["version"] for result in several] == ["2021.3", "4.0"]
    with pytest.raises(Unreadable, match="without a PingPong"):
        imb.results(SENDRECV)
