"""The time of an HPL run from its own messages, as the rate that HPL prints."""

import hashlib
import io
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from analysis.laws.models import Model, _hpl_steps, _linear
from analysis.laws.models._hpl_steps import PANELS
from runners.executables import HOME
from runners.records.journal import write_whole
from runners.records.record import FalloffError
from runners.tools.hpl import operations

TRIES = 10  # iterations of the guess to find the longest paths


def hpl(x, alpha, beta, gamma):
    """The rate of an HPL run: operations(N) / T(N, NB, P, Q; alpha, beta, gamma).

    The rows of x are the matrix order N, the block size NB and the process grid's rows P and
    columns Q. `alpha` is the time of a message of any length, `beta` that of each byte in it and
    `gamma` that of a floating-point operation, all in operations over the unit of the rate: rates
    in Gflop/s give times in ns.
    """
    return operations(np.asarray(x)[0]) / longest(counts(x), alpha, beta, gamma)


def counts(x, panels: int = PANELS) -> np.ndarray:
    """Messages, bytes and flops on the paths of each run, shape (points, paths, 3); see
    `hpl_steps.paths`.

    Raises FalloffError if x does not have the four rows, or they are not valid settings of HPL.
    """
    x = np.asarray(x, float)
    if x.ndim != 2 or len(x) != 4:
        raise FalloffError("HPL's law needs an x of four rows: N, NB, P and Q.")
    if not (np.rint(x) >= 1).all():
        raise FalloffError("HPL's law needs N, NB, P and Q of at least 1.")
    return _stacked(tuple(map(tuple, np.rint(x.T).astype(int).tolist())), panels)


@lru_cache(64)  # a fit needs the same runs again and again
def _stacked(runs: tuple[tuple[int, int, int, int], ...], panels: int) -> np.ndarray:
    return np.stack([_paths(*run, panels) for run in runs])


@lru_cache(256)
def _paths(N: int, NB: int, P: int, Q: int, panels: int) -> np.ndarray:
    """`hpl_steps.paths`, kept in build/: they take up to half a second, and every figure and fit of
    the same run needs them.
    """
    file = HOME / "build" / "hpl_paths" / f"{N}-{NB}-{P}-{Q}-{panels}-{_digest_of_code()}.npy"
    with suppress(OSError, ValueError, EOFError):  # not there yet, or damaged
        return np.load(file, allow_pickle=False)
    paths, content = _hpl_steps.paths(N, NB, P, Q, panels), io.BytesIO()
    np.save(content, paths)
    with suppress(OSError):  # it is only quicker
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, content.getvalue())
    return paths


@cache
def _digest_of_code() -> str:
    return hashlib.sha256(Path(_hpl_steps.__file__).read_bytes()).hexdigest()[:16]


def longest(counted, alpha, beta, gamma):
    """The time of the longest path: shape (points,), or (fits, points) for parameters of shape
    (fits, 1).
    """
    messages, bytes_, flops = np.moveaxis(counted, -1, 0)
    alpha, beta, gamma = (np.asarray(cost, float)[..., None] for cost in (alpha, beta, gamma))
    return (alpha * messages + beta * bytes_ + gamma * flops).max(axis=-1)


def at_longest(counted, alpha, beta, gamma) -> np.ndarray:
    """Messages, bytes and flops of each run on its longest path, shape (points, 3)."""
    along = (counted @ np.array([alpha, beta, gamma], float)).argmax(axis=-1)
    return counted[np.arange(len(counted)), along]


def guess(x, rate):
    """Along given paths the time is linear in the parameters; these give new paths, and so on until
    the paths stay the same."""
    counted = counts(x)
    costs = np.array([0.0, 0.0, 1.0])
    for _ in range(TRIES):
        columns = at_longest(counted, *costs)
        costs, before = _linear.reciprocal(operations(np.asarray(x)[0]), columns, rate), costs
        if np.allclose(costs, before, rtol=1e-9):
            break
    return dict(zip(("alpha", "beta", "gamma"), costs))


MODEL = Model(
    title="HPL's messages",
    equation=r"R = \frac{\frac{2}{3} N^3 + \frac{3}{2} N^2}{\max_k (\alpha m_k + \beta b_k + \gamma f_k)}",
    source="the longest path through HPL 2.0's own steps, https://www.netlib.org/benchmark/hpl, of m messages, b bytes and "
    "f flops; A. Petitet, R. C. Whaley, J. Dongarra, A. Cleary, HPL Scalability Analysis, count one path in closed form",
    function=hpl,
    bounds={"alpha": (0.0, np.inf), "beta": (0.0, np.inf), "gamma": (0.0, np.inf)},
    guess=guess,
)
