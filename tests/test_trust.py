"""The simulation takes the time that HPL's messages take, and sends what HPL sends.

HPL itself, with a real BLAS, runs under SMPI with its computation not simulated: it solves its
system and passes its own check. Then the simulation runs the same problem on the same network with
computing for free and with the pivots that HPL found. `python tests/test_trust.py` does so for all
settings and writes data/reference/trust.csv.
"""

import csv
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from marks import the_rest_is_long

from analysis import paths
from analysis.dataset.derive import broadcast_bytes
from runners import executables, hpl_dat, payload
from runners.build import TRIAL_DECK
from runners.testbeds import smpi
from runners.tools import hpl

TRUST = paths.REFERENCE / "trust.csv"
AGREE = 0.01
# Bandwidth [B/s] and latency [s], about those of the paper's networks: both programs run on the
# same one.
NETWORKS = {
    "gige": {"bandwidth": 110e6, "latency": 40e-6},
    "10gige": {"bandwidth": 1210e6, "latency": 6e-6},
    "slower": {"bandwidth": 110e6 / 1.05, "latency": 40e-6 * 1.05},
}
GRIDS = ((2, 2), (3, 2), (4, 4))
COMPUTING_IS_FREE = (
    "dgemm_flop_s inf\ndgemm_k_half 0\ndgemm_mn_half 0\ndtrsm_share 1\n"
    "node_byte_s inf\ncore_byte_s inf\nstrided_s 0\n"
)
# HPL waits by asking again and again, so that asking must take a little time, and always the same.
ASKING_TAKES_TIME = ("--cfg=smpi/iprobe:1e-6", "--cfg=smpi/grow-injected-times:no")

needs_both = pytest.mark.skipif(
    not shutil.which("smpirun") or not (executables.BUILT / "xhpl_unmocked").exists(),
    reason="SimGrid is not here (libsimgrid-dev), or xhpl_unmocked is not built",
)


class Case(NamedTuple):
    """One problem: a name of `NETWORKS` and settings of HPL.dat; one rank on each of P x Q
    nodes.
    """

    network: str
    P: int
    Q: int
    N: int
    NB: int
    BCAST: int
    DEPTH: int


# Every broadcast, with and without look-ahead, on grids of 4, 6 and 16 nodes.
ALL = [
    Case(network, *grid, 2048, NB, BCAST, DEPTH)
    for network, grid, NB, BCAST, DEPTH in product(
        ("gige", "10gige"), GRIDS, (64, 128), range(6), (0, 1)
    )
]
# Each grid with and without look-ahead, each broadcast once.
CASES = [
    Case("gige", *GRIDS[broadcast // 2], 2048, 128, broadcast, broadcast % 2)
    for broadcast in range(6)
]


def run(program: str, case: Case, folder: Path, check: bool = False) -> str:
    """The output of `xhpl_unmocked`, which leaves its pivots in the folder, or of `xhpl_simulated`,
    which takes them.

    With `check` HPL computes the residual afterwards, which takes further messages.
    """
    nodes, options = case.P * case.Q, ASKING_TAKES_TIME if program == "xhpl_unmocked" else ()
    threshold = 16.0 if check else -1.0
    files = {
        "HPL.dat": hpl_dat.render({**TRIAL_DECK, **case._asdict(), "THRESHOLD": threshold}),
        "platform.xml": smpi.platform(nodes, NETWORKS[case.network]),
        "hosts": smpi.hosts(range(1, nodes + 1)),
        "rates.txt": COMPUTING_IS_FREE,
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    clock, binary = (
        Path(executables.find(name, {})).absolute() for name in ("noclock.so", program)
    )
    argv = smpi.smpirun(nodes, [*options, str(binary)], clock)
    # All ranks are one process: threads of the BLAS would be shared by them.
    environment = {**os.environ, "TMPDIR": str(folder), "LC_ALL": "C", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def seconds(output: str) -> float:
    """The time [s] of the one result in an output, by its rate, which has more digits than the time
    printed.
    """
    (row,) = hpl.rows(output)
    assert row.check != "FAILED", "HPL's residual check failed: is the BLAS sound?"
    return hpl.operations(row.sizes["N"]) / (1e9 * float(row.rate_text))


def compared(case: Case) -> tuple[float, float]:
    """The time [s] of HPL itself and of the simulation with the same pivots."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        real = seconds(run("xhpl_unmocked", case, folder, check=True))
        return real, seconds(run("xhpl_simulated", case, folder))


@needs_both
@pytest.mark.parametrize("case", the_rest_is_long(CASES, CASES[:2]), ids=str)
def test_without_computation_the_simulation_takes_hpls_own_time(case):
    """HPL solves its system and passes its check; the simulation takes as long on the same
    network.
    """
    real, simulated = compared(case)
    assert simulated == pytest.approx(real, rel=AGREE)


@needs_both
def test_every_message_has_its_size_and_the_comparison_can_fail(tmp_path):
    """Messages and bytes of every call and class of sizes are HPL's; with drawn pivots they are
    not, and on a network that is 5 % slower they take so much longer."""
    case = CASES[3]._replace(N=1024)  # eight panels, which is enough of them
    real, simulated = (
        run(program, case, tmp_path) for program in ("xhpl_unmocked", "xhpl_simulated")
    )
    sent = payload.table(real)
    assert payload.table(simulated) == sent
    assert sum(size for _, size in sent.values()) > broadcast_bytes(case.N, case.Q)
    slower = run("xhpl_simulated", case._replace(network="slower"), tmp_path)
    assert seconds(slower) / seconds(real) - 1 == pytest.approx(0.05, abs=0.002)
    (tmp_path / "pivots.txt").unlink()
    assert payload.table(run("xhpl_simulated", case, tmp_path)) != sent


def test_the_stored_study_covers_all_settings():
    """A row for every case in its order, every one within a per cent."""
    with open(TRUST, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [tuple(row.values())[:7] for row in rows] == [tuple(map(str, case)) for case in ALL]
    for row in rows:
        assert float(row["simulated_s"]) == pytest.approx(float(row["unmocked_s"]), rel=AGREE)


def main() -> None:
    """Compare all cases and write them to trust.csv."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        times = list(pool.map(compared, ALL))
    with open(TRUST, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([*Case._fields, "unmocked_s", "simulated_s"])
        rows.writerows([*case, *(f"{time:.5g}" for time in both)] for case, both in zip(ALL, times))


if __name__ == "__main__":
    main()
