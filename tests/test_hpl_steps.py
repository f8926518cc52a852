"""HPL's steps: every rank's messages are those of HPL's own code to the byte, and the time is the
simulation's.

`python tests/test_hpl_steps.py` simulates the cases of CASES anew, on SimGrid and with HPL's own
code, and writes tests/certified/hpl_times.csv; it takes half a minute.
"""

import csv
import os
import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hpl_sent import sent as sent_by_rank

from analysis.laws.fit import fit
from analysis.laws.models import _hpl_steps as hpl_steps
from analysis.laws.models import find
from runners import executables, hpl_dat, payload
from runners.build import TRIAL_DECK
from runners.testbeds import smpi
from runners.tools import hpl

CERTIFIED = Path(__file__).parent / "certified" / "hpl_times.csv"
PAPER = {2: (1, 2, 60000), 4: (2, 2, 84000), 8: (2, 4, 120000), 16: (4, 4, 170400)}
PAPER |= {24: (4, 6, 200400), 36: (6, 6, 260400)}  # nodes: P, Q, N
NODE = 39.67e9  # flop/s of the paper's nodes
NETWORKS = {"gige": (110e6, 40e-6), "10gige": (1210e6, 6e-6), "slow start": (110e6, 1.2e-3)}
EAGER = 256  # bytes: up to them a message leaves before its receiver is ready
DECK = {**TRIAL_DECK, "BCAST": 1, "DEPTH": 0, "SWAP": 2, "SWAP_THRESHOLD": 64, "THRESHOLD": -1.0}

needs_simgrid = pytest.mark.skipif(
    not shutil.which("smpirun") or not (executables.BUILT / "xhpl_unmocked").exists(),
    reason="SimGrid is not here (libsimgrid-dev), or xhpl_unmocked is not built",
)


class Case(NamedTuple):
    """A run on a modelled network; `rate` is a node's [flop/s]."""

    network: str
    N: int
    NB: int
    P: int
    Q: int
    rate: float
    bandwidth: float
    latency: float


def scaled(network: str, nodes: int, smaller: int, NB: int) -> Case:
    """The paper's case with a matrix that is so many times smaller, at the paper's shares of bytes
    and messages.
    """
    P, Q, order = PAPER[nodes]
    bandwidth, latency = NETWORKS[network]
    N, rate = round(order / smaller / NB) * NB, 2e8 / smaller  # so slow that HPL's time has digits
    bytes_, messages = rate / NODE * order / N, NODE / rate * (N / order) ** 2
    return Case(network, N, NB, P, Q, rate, bandwidth * bytes_, latency * messages)


CASES = [
    scaled(network, nodes, *size)
    for size, networks in (((50, 24), tuple(NETWORKS)), ((100, 12), ("gige", "10gige")))
    for network in networks
    for nodes in PAPER
]


def simulated(case: Case, folder: Path, program: str = "xhpl_simulated") -> str:
    """What HPL's own code prints on the case's network, its matrix products charged as time."""
    free = dict.fromkeys(("dgemm_k_half", "dgemm_mn_half", "strided_s"), 0)
    rates = {
        "dgemm_flop_s": case.rate,
        "dtrsm_share": 1,
        "node_byte_s": "inf",
        "core_byte_s": "inf",
        **free,
    }
    network = {"bandwidth": case.bandwidth, "latency": case.latency}
    files = {
        "HPL.dat": hpl_dat.render({**DECK, **case._asdict()}),
        "platform.xml": smpi.platform(case.P * case.Q, network),
        "hosts": smpi.hosts(range(1, case.P * case.Q + 1)),
        "rates.txt": "".join(f"{name} {value}\n" for name, value in rates.items()),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    clock, binary = (
        Path(executables.find(name, {})).absolute() for name in ("noclock.so", program)
    )
    eager = ("async-small-thresh", "send-is-detached-thresh")
    options = [f"--cfg=smpi/{name}:{EAGER}" for name in eager]
    if program == "xhpl_unmocked":  # which waits by asking
        options += ["--cfg=smpi/iprobe:1e-6", "--cfg=smpi/grow-injected-times:no"]
    argv = smpi.smpirun(case.P * case.Q, [*options, str(binary)], clock)
    environment = {**os.environ, "TMPDIR": str(folder), "LC_ALL": "C", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def of_each_rank(case: Case, folder: Path) -> np.ndarray:
    """Messages and bytes that each rank sent, shape (2, P, Q)."""
    rows = re.findall(r"^ *\d+ +\d+\.\d{6} +(\d+) +(\d+)$", simulated(case, folder), re.M)
    return np.array(rows, int).T.reshape(2, case.P, case.Q)


def quick(N, NB, P, Q) -> Case:
    """A run whose messages are counted and whose time is not asked for."""
    return Case("", N, NB, P, Q, 1e12, 1e9, 1e-6)


def stored() -> list[tuple[Case, float]]:
    """The certified cases with their times [s]."""
    with open(CERTIFIED, encoding="utf-8", newline="") as file:
        times = [float(row["seconds"]) for row in csv.DictReader(file)]
    return list(zip(CASES, times, strict=True))


@needs_simgrid
@pytest.mark.parametrize(
    "shape",
    [
        (96, 12, 1, 2),
        (250, 24, 2, 2),
        (480, 24, 3, 2),
        (1000, 24, 5, 3),
        (1210, 24, 4, 6),
        (900, 12, 6, 6),
        (300, 10, 13, 1),
    ],
)
def test_every_ranks_messages_are_hpls_own_to_the_byte(shape, tmp_path):
    """On grids that are powers of two and that are not, with and without a short last block; less
    what a run of order 1 sends, which is HPL's set-up."""
    there, set_up = (
        of_each_rank(quick(N, *shape[1:]), tmp_path) - sum(sent_by_rank(N, *shape[1:]).values())
        for N in (shape[0], 1)
    )
    assert (there == set_up).all()


@needs_simgrid
def test_the_messages_of_hpl_that_computes_are_told_from_its_pivots(tmp_path):
    """HPL with a real BLAS finds pivots of its own; with these, messages and bytes are right."""
    shape, sent = (24, 3, 2), []
    for N in (1, 300):
        (tmp_path / "pivots.txt").unlink(missing_ok=True)
        table = payload.table(simulated(quick(N, *shape), tmp_path, "xhpl_unmocked"))
        pivots = np.loadtxt(tmp_path / "pivots.txt", int, ndmin=2)[:, 1]
        told = sum(sent_by_rank(N, *shape, pivots).values()).sum(axis=(1, 2))
        sent.append(np.sum(list(table.values()), axis=0) - told)
    assert (sent[0] == sent[1]).all()
    drawn = sum(sent_by_rank(300, *shape).values()).sum(axis=(1, 2))
    assert (drawn != told).any()


def test_kinds_of_messages_on_grids_that_can_be_counted_by_hand():
    """On 1 x 2 nodes a panel is sent once, whole; on 2 x 1 every column's pivot is one exchange of
    two rows and a head.
    """
    N, NB = 96, 12
    row = sent_by_rank(N, NB, 1, 2)
    panels = [8 * (NB * (N - first) + NB + 1) for first in range(0, N, NB)]
    assert row["broadcast"][0].tolist() == [[4, 4]] and row["broadcast"][1].sum() == sum(panels)
    assert not row["pivots"].any() and not row["swaps"].any()
    column = sent_by_rank(N, NB, 2, 1)
    assert column["pivots"][0].tolist() == [[N], [N]] and not column["broadcast"].any()
    assert column["pivots"][1].sum() == N * 8 * ((4 + 2 * NB) + (4 + NB))


@pytest.mark.parametrize("case,seconds", stored() if CERTIFIED.exists() else [], ids=str)
def test_the_time_is_the_simulations(case, seconds):
    """Within 0.4 % at every node count, of networks whose messages and whose bytes matter."""
    network = hpl_steps.Linear(np.array([case.latency]), np.array([1 / case.bandwidth]))
    found = hpl_steps.time(*case[1:5], network, 1 / case.rate)
    assert found == pytest.approx(seconds, rel=0.004)


@needs_simgrid
def test_the_stored_times_are_simulated_again(tmp_path):
    """The smallest certified case of each network."""
    for case, seconds in stored():
        if case.P * case.Q == 4:
            (row,) = hpl.rows(simulated(case, tmp_path))
            assert hpl.operations(case.N) / (1e9 * float(row.rate_text)) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "network,size,of_alpha,of_beta",
    [
        ("gige", 50, None, 0.01),
        ("gige", 100, None, 0.01),
        ("10gige", 50, None, 0.03),
        ("10gige", 100, None, 0.03),
        ("slow start", 50, 0.05, 0.01),
    ],
)
def test_a_networks_rate_is_recovered_from_hpls_times_alone(network, size, of_alpha, of_beta):
    """Six runs on up to 36 nodes give back the bandwidth that was set, and the latency where it
    takes a share of the time.
    """
    runs = [one for one in stored() if one[0].network == network and one[0].rate == 2e8 / size]
    x = np.array([case[1:6] for case, _ in runs], float).T
    rates = [hpl.operations(case.N) / seconds for case, seconds in runs]
    found = fit(find("hpl_messages"), x, rates / (x[2] * x[3] * x[4]))
    case = runs[0][0]
    assert found.estimates["beta"] * case.bandwidth == pytest.approx(1, rel=of_beta)
    if of_alpha:
        assert found.estimates["alpha"] / case.latency == pytest.approx(1, rel=of_alpha)


@pytest.mark.parametrize(
    "shape", [(1200, 24, 1, 2), (2400, 24, 2, 4), (2600, 24, 3, 4), (1, 1, 1, 1)]
)
def test_the_longest_path_takes_the_time(shape):
    """Between the costs at which the paths were looked up it is at most 0.2 % short, and never
    longer.
    """
    random = np.random.default_rng(3)
    counts = hpl_steps.paths(*shape)
    unit = np.divide(counts[0, 2], counts.max(axis=0), out=np.ones(3), where=counts.max(axis=0) > 0)
    costs = np.exp(random.uniform(np.log(2e-3), np.log(3), (2, 200))) * unit[:2, None]
    times = hpl_steps.time(*shape, hpl_steps.Linear(*costs), 1.0)
    longest = (counts @ np.vstack([costs, np.ones(200)])).max(axis=0)
    assert longest == pytest.approx(times, rel=2e-3) and (longest <= times * (1 + 5e-4)).all()


def test_of_a_long_run_a_part_stands_for_the_whole():
    """A run of many panels is walked through in part, which changes its time little."""
    network = hpl_steps.Linear(np.array([1e5]), np.array([10.0]))
    whole, part = (hpl_steps.time(9600, 24, 3, 4, network, 1.0, panels) for panels in (400, 100))
    assert part == pytest.approx(whole, rel=0.01) and part != whole


def main() -> None:
    """Simulate all cases and write their times."""

    def seconds(case):
        with tempfile.TemporaryDirectory() as folder:
            (row,) = hpl.rows(simulated(case, Path(folder)))
        return hpl.operations(case.N) / (1e9 * float(row.rate_text))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        times = list(pool.map(seconds, CASES))
    with open(CERTIFIED, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([*Case._fields, "seconds"])
        rows.writerows([*case, f"{time:.7g}"] for case, time in zip(CASES, times))


if __name__ == "__main__":
    main()
