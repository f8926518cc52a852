"""The simulation sends what HPL sends, when HPL sends it; and no time comes from nowhere."""

import csv
import re
import shutil
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_simulated import NETWORKS, SMITH, simulate

from analysis.derive import broadcast_bytes
from runners import hpl, payload, tools
from runners.record import FalloffError
from runners.testbeds import simulated, trust

AGREE = 0.01

needs_both = pytest.mark.skipif(
    not shutil.which("smpirun") or not (tools.BUILT / "xhpl_unmocked").exists(),
    reason="SimGrid is not here (libsimgrid-dev), or xhpl_unmocked is not built",
)

# Each grid with and without look-ahead, each broadcast once.
CASES = [
    trust.Case("gige", P, Q, 2048, 128, broadcast, broadcast % 2)
    for broadcast, (P, Q) in enumerate(grid for grid in trust.GRIDS for _ in (0, 1))
]


def difference(times):
    """By which fraction the second time is longer than the first."""
    return times[1] / times[0] - 1


@pytest.fixture(scope="module")
def unmocked(tmp_path_factory):
    """HPL itself on a case, which runs but once: its output, and the folder with its pivots."""

    @cache
    def run(case):
        folder = tmp_path_factory.mktemp("hpl")
        return trust.unmocked(case, folder), folder

    return run


@needs_both
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.P}x{case.Q} BCAST {case.BCAST} DEPTH {case.DEPTH}")
def test_without_computation_the_simulation_takes_hpls_own_time(case, unmocked):
    """HPL solves its system and passes its check; the simulation takes as long on the same network."""
    real, folder = unmocked(case)
    (row,) = hpl.rows(real)
    assert row.check == "PASSED" and (row.N, row.P, row.Q) == (2048, case.P, case.Q)
    assert abs(difference((trust.seconds(real), trust.seconds(trust.simulated(case, folder))))) < AGREE


@needs_both
def test_the_comparison_can_fail(unmocked, monkeypatch):
    """On a network that is 5 % slower the simulation takes so much longer, and that is seen."""
    gige = trust.NETWORKS["gige"]
    slower = {"bandwidth": gige["bandwidth"] / 1.05, "latency": gige["latency"] * 1.05}
    monkeypatch.setitem(trust.NETWORKS, "slower", slower)
    real, folder = unmocked(CASES[0])
    slower = trust.simulated(replace(CASES[0], network="slower"), folder)
    off = difference((trust.seconds(real), trust.seconds(slower)))
    assert off == pytest.approx(0.05, abs=0.002) and off > AGREE


@needs_both
@pytest.mark.parametrize("case", [CASES[0], CASES[3], CASES[4]], ids=lambda case: f"{case.P}x{case.Q}")
def test_every_message_has_its_size(case, tmp_path):
    """Messages and bytes of every call and class of sizes are HPL's; with drawn pivots they are not."""
    case = replace(case, N=1024)  # eight panels, which is enough of them
    real = payload.tables(trust.unmocked(case, tmp_path, check=False))
    assert payload.tables(trust.simulated(case, tmp_path)) == real
    assert sum(sent.bytes for sent in real[0]) > broadcast_bytes(case.N, case.Q)
    (tmp_path / "pivots.txt").unlink()
    assert payload.tables(trust.simulated(case, tmp_path)) != real


@needs_both
@pytest.mark.parametrize("column, row", [(0, 2048), (7, 6), (2047, None)], ids=["beyond", "gone", "lacking"])
def test_pivots_that_cannot_be_are_refused(column, row, tmp_path):
    """A row that never was or is taken already, or a column without one, ends the run with the reason."""
    rows = {other: other for other in range(2048)} | {column: row}
    lines = [f"{place} {found}\n" for place, found in rows.items() if found is not None]
    (tmp_path / "pivots.txt").write_text("".join(lines), encoding="utf-8")
    with pytest.raises(FalloffError, match=f"pivots.txt has no row .* for column {column} of N = 2048"):
        trust.simulated(CASES[0], tmp_path)


def test_a_failed_check_is_no_time():
    """Wrong numbers could have wrong pivots."""
    rule = "=" * 80
    output = (
        f"{rule}\nHPLinpack 2.0  --  High-Performance Linpack benchmark\n{rule}\n"
        "WR00C2C4        2048   128     2     2               0.29              1.994e+01\n"
        "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=       1.2e+10 ...... FAILED\n"
        f"{rule}\nFinished      1 tests with the following results:\n"
        f"              0 tests skipped because of illegal input values.\n{rule}\nEnd of Tests.\n{rule}\n"
    )
    with pytest.raises(FalloffError, match="residual check failed at N = 2048 on 2 x 2"):
        trust.seconds(output)


@pytest.fixture(scope="module")
def testbed():
    """The Smith cluster."""
    with simulated.open_testbed(SMITH, NETWORKS) as opened:
        yield opened


FEW = settings(max_examples=4, deadline=None, derandomize=True)
FACTOR = st.floats(1.0, 30.0)


def rate(testbed, vary):
    """HPL's rate in a tiny problem, of which the network takes most of the time."""
    return simulate(testbed, N=512, NB=64, DEPTH=0, vary=vary)[0]["hpl_rate"]


@needs_both
@FEW
@given(least=st.floats(1e-6, 1e-3), longer=FACTOR)
def test_no_run_is_faster_with_a_longer_latency(testbed, least, longer):
    """The rate falls, or stays, when only the latency rises."""
    assert rate(testbed, f"latency={least * longer!r}") <= rate(testbed, f"latency={least!r}")


@needs_both
@FEW
@given(least=st.floats(1e7, 1e9), wider=FACTOR)
def test_no_run_is_slower_with_a_wider_link(testbed, least, wider):
    """The rate rises, or stays, when only the bandwidth rises."""
    assert rate(testbed, f"bandwidth={least * wider!r}") >= rate(testbed, f"bandwidth={least!r}")


@needs_both
@pytest.mark.parametrize("grid", [(1, 1), (2, 2)])
def test_without_a_network_time_is_what_is_computed(testbed, grid):
    """One node's run lasts as long as it computes; that of several from what the busiest computes to what all do."""
    P, Q = grid
    readings, transcript = simulate(testbed, N=4000, P=P, Q=Q, nodes=P * Q, interconnect="unshaped")
    table = transcript.executions[0].stdout.split("Simulated:")[1]
    computed = [float(row[1]) for row in re.findall(r"^ *(\d+) +(\d+\.\d{6}) ", table, re.M)]
    took = hpl.operations(4000) / (1e9 * readings["hpl_rate"])
    assert len(computed) == P * Q and max(computed) <= 1.01 * took and took <= 1.01 * sum(computed)


def test_the_stored_study_covers_all_settings():
    """A row for every case in its order, every one within a per cent."""
    with open(trust.RESULTS, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = ("P", "Q", "N", "NB", "BCAST", "DEPTH")
    assert [trust.Case(row["network"], *(int(row[name]) for name in numbers)) for row in rows] == trust.cases()
    assert all(abs(difference((float(row["unmocked_s"]), float(row["simulated_s"])))) < AGREE for row in rows)
