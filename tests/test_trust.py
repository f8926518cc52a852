"""The simulation sends what HPL sends, when HPL sends it; and no time comes from nowhere."""

import csv
import shutil
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_simulated import NETWORKS, SMITH, simulate

from analysis.derive import broadcast_bytes
from runners import hpl, payload, tools
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
@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.P}x{case.Q} BCAST {case.BCAST} DEPTH {case.DEPTH}"
)
def test_without_computation_the_simulation_takes_hpls_own_time(case, unmocked):
    """HPL solves its system and passes its check; the simulation takes as long on the same network."""
    real, folder = unmocked(case)
    (row,) = hpl.rows(real)
    assert row.check == "PASSED" and row.sizes == {
        "N": 2048,
        "NB": case.NB,
        "P": case.P,
        "Q": case.Q,
    }
    assert (
        abs(difference((trust.seconds(real), trust.seconds(trust.simulated(case, folder))))) < AGREE
    )


@needs_both
def test_the_comparison_can_fail(unmocked, monkeypatch):
    """On a network that is 5 % slower the simulation takes so much longer, and that is seen."""
    gige = trust.NETWORKS["gige"]
    slower = {"bandwidth": gige["bandwidth"] / 1.05, "latency": gige["latency"] * 1.05}
    monkeypatch.setitem(trust.NETWORKS, "slower", slower)
    real, folder = unmocked(CASES[0])
    slower = trust.simulated(CASES[0]._replace(network="slower"), folder)
    off = difference((trust.seconds(real), trust.seconds(slower)))
    assert off == pytest.approx(0.05, abs=0.002) and off > AGREE


@needs_both
@pytest.mark.parametrize("case", [CASES[0], CASES[3]], ids=lambda case: f"{case.P}x{case.Q}")
def test_every_message_has_its_size(case, tmp_path):
    """Messages and bytes of every call and class of sizes are HPL's; with drawn pivots they are not."""
    case = case._replace(N=1024)  # eight panels, which is enough of them
    real = payload.tables(trust.unmocked(case, tmp_path, check=False))
    assert payload.tables(trust.simulated(case, tmp_path)) == real
    assert sum(sent.bytes for sent in real[0]) > broadcast_bytes(case.N, case.Q)
    (tmp_path / "pivots.txt").unlink()
    assert payload.tables(trust.simulated(case, tmp_path)) != real


@needs_both
@settings(max_examples=3, deadline=None, derandomize=True)
@given(st.floats(1e-6, 1e-3), st.floats(1e7, 1e9), st.floats(1.0, 30.0))
def test_no_run_is_faster_on_a_worse_network(latency, bandwidth, factor):
    """The rate of a tiny problem falls, or stays, when only the latency rises, and rises when only the link widens."""
    with simulated.open_testbed(SMITH, NETWORKS) as testbed:

        def rate(vary):
            return simulate(testbed, N=512, NB=64, DEPTH=0, vary=vary)[0]["hpl_rate"]

        assert rate(f"latency={latency * factor!r}") <= rate(f"latency={latency!r}")
        assert rate(f"bandwidth={bandwidth * factor!r}") >= rate(f"bandwidth={bandwidth!r}")


def test_the_stored_study_covers_all_settings():
    """A row for every case in its order, every one within a per cent."""
    with open(trust.RESULTS, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = ("P", "Q", "N", "NB", "BCAST", "DEPTH")
    assert [
        trust.Case(row["network"], *(int(row[name]) for name in numbers)) for row in rows
    ] == trust.cases()
    assert all(
        abs(difference((float(row["unmocked_s"]), float(row["simulated_s"])))) < AGREE
        for row in rows
    )
