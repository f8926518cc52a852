"""Does the simulation take the time that HPL's messages take? Compared where nothing else takes time.

HPL itself, with a real BLAS, runs under SMPI with its computation not simulated: it solves its system and
passes its own check. Then the simulation runs the same problem on the same network with computing for free and
with the pivots that HPL found: both should print the same time. `python -m runners.testbeds.trust` does so for
many settings and writes data/reference/trust.csv.
"""

import csv
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import List, NamedTuple, Sequence, Tuple

from runners import hpl, hpl_dat, tools
from runners.build import TRIAL_DECK
from runners.record import FalloffError
from runners.testbeds import smpi

RESULTS = Path(__file__).resolve().parent.parent.parent / "data" / "reference" / "trust.csv"

# Bandwidth [B/s] and latency [s], about those of the paper's networks: both programs run on the same one.
NETWORKS = {
    "gige": {"bandwidth": 110e6, "latency": 40e-6},
    "10gige": {"bandwidth": 1210e6, "latency": 6e-6},
}
GRIDS = ((2, 2), (3, 2), (4, 4))

_FREE = """\
dgemm_flop_s inf
dgemm_k_half 0
dgemm_mn_half 0
dtrsm_share 1
node_byte_s inf
core_byte_s inf
strided_s 0
"""
# HPL waits by asking again and again, so that asking must take a little time, and always the same.
_ASKING_TAKES_TIME = ("--cfg=smpi/iprobe:1e-6", "--cfg=smpi/grow-injected-times:no")


class Case(NamedTuple):
    """One problem: a name of `NETWORKS` and settings of HPL.dat; one rank on each of P x Q nodes."""

    network: str
    P: int
    Q: int
    N: int
    NB: int
    BCAST: int
    DEPTH: int


def cases() -> List[Case]:
    """All that trust.csv compares: every broadcast, with and without look-ahead, on grids of 4, 6 and 16 nodes."""
    chosen = product(NETWORKS, GRIDS, (64, 128), range(6), (0, 1))
    return [
        Case(network, *grid, 2048, NB, BCAST, DEPTH) for network, grid, NB, BCAST, DEPTH in chosen
    ]


def unmocked(case: Case, folder: Path, check: bool = True) -> str:
    """The output of HPL itself, which leaves its pivots in `folder`, where there must be none yet.

    With `check` it computes the residual afterwards, which takes further messages. Raises FalloffError when
    it does not run.
    """
    return _run("xhpl_unmocked", case, folder, 16.0 if check else -1.0, _ASKING_TAKES_TIME)


def simulated(case: Case, folder: Path) -> str:
    """The output of the simulation with computing for free, and with the pivots that are in `folder`, if any.

    Raises FalloffError when it does not run.
    """
    return _run("xhpl_simulated", case, folder, -1.0)


def seconds(output: str) -> float:
    """The time [s] of the one result in an output, by its rate, which has more digits than the time printed.

    Raises Unreadable as `hpl.rows` does, and FalloffError when HPL's own check failed.
    """
    (row,) = hpl.rows(output)
    if row.check == "FAILED":
        N, _, P, Q = row.sizes.values()
        raise FalloffError(
            f"HPL's residual check failed at N = {N} on {P} x {Q}: is the BLAS sound?"
        )
    return hpl.operations(row.sizes["N"]) / (1e9 * float(row.rate_text))


def compare(case: Case) -> Tuple[float, float]:
    """The time [s] of HPL itself and of the simulation with the same pivots; raises as both runs and `seconds` do."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        return seconds(unmocked(case, folder)), seconds(simulated(case, folder))


def _run(
    program: str, case: Case, folder: Path, threshold: float, options: Sequence[str] = ()
) -> str:
    nodes = case.P * case.Q
    files = {
        "HPL.dat": hpl_dat.render({**TRIAL_DECK, **case._asdict(), "THRESHOLD": threshold}),
        "platform.xml": smpi.platform(nodes, NETWORKS[case.network]),
        "hosts": smpi.hosts(range(1, nodes + 1)),
        "rates.txt": _FREE,
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    clock, binary = (Path(tools.find(name, {})).absolute() for name in ("noclock.so", program))
    argv = smpi.smpirun(nodes, clock, [*options, str(binary)])
    # All ranks are one process: threads of the BLAS would be shared by them.
    environment = {**os.environ, "TMPDIR": str(folder), "LC_ALL": "C", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        last = ((done.stderr or done.stdout).strip().splitlines() or ["no message"])[-1]
        raise FalloffError(f"{program} fails with exit code {done.returncode}: {last}")
    return done.stdout


def main() -> int:
    """Compare all cases and write them to trust.csv; 1 when a program is missing or fails."""
    try:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            times = list(pool.map(compare, cases()))
    except FalloffError as error:
        print(f"falloff: {error}", file=sys.stderr)
        return 1
    with open(RESULTS, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([*Case._fields, "unmocked_s", "simulated_s"])
        for case, both in zip(cases(), times):
            rows.writerow([*case, *(f"{time:.5g}" for time in both)])
    print(f"{len(times)} cases: {RESULTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
