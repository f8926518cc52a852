"""HPL on a cluster, predicted from the rate of one node and a ping-pong, by the law of HPL's own
messages."""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from scipy.optimize import brentq, least_squares

from analysis.laws.models import _hpl_steps
from analysis.laws.models._hpl_steps import Algorithm
from analysis.laws.ping_pong import Curve, SharedLinks
from runners.records.record import FalloffError
from runners.tools.hpl import operations

RATES = (1e6, 1e15)  # flop/s of a process: a rate outside of these is a fault
PANELS = 400  # of a run; of more panels only a part is computed
SIZES = 3  # orders N, each at least a tenth apart, that tell a panel's rate from the products'


@dataclass(frozen=True)
class ClusterModel:
    """What is given of a cluster.

    `rate` [flop/s] is that of a process' matrix products, and `panel_rate` that of all operations
    in a panel; without it a panel's products take their time alone. `between` nodes and `inside` a
    node are ping-pongs, `send` [s] is the processor's time for a message. Processes fill node after
    node, in the order of the grid's rows, or `by_column`.
    """

    between: Curve
    inside: Curve
    rate: float = 1e9
    panel_rate: float | None = None
    send: float = 0.0
    link: float = 0.0
    ranks_per_node: int = 1
    by_column: bool = False
    algorithm: Algorithm = field(default_factory=Algorithm)

    def rates(self, cases: pd.DataFrame) -> np.ndarray:
        """HPL's rate [Gflop/s] of each case, a row of N, NB, P and Q."""
        return np.array(
            [self._rate(*map(int, case)) for case in cases[["N", "NB", "P", "Q"]].values]
        )

    def _rate(self, N: int, NB: int, P: int, Q: int) -> float:
        ranks = np.arange(P * Q).reshape((Q, P) if self.by_column else (P, Q))
        ranks = ranks.T if self.by_column else ranks
        node, link = ranks.ravel() // self.ranks_per_node, self.link or self.between.bandwidth
        links = SharedLinks(self.between, self.inside, node, link, self.send)
        panel_gamma = 1 / self.panel_rate if self.panel_rate else None
        costs = links, 1 / self.rate, PANELS, panel_gamma, self.algorithm
        return float(1e-9 * operations(N) / _hpl_steps.time(N, NB, P, Q, *costs)[0])

    def calibrated(self, runs: pd.DataFrame) -> "ClusterModel":
        """The model with the rate of these runs, rows of N, NB, P, Q and rate [Gflop/s]; of SIZES
        orders or more, with their panel's rate, too.

        Raises FalloffError if no rate gives what was measured.
        """
        logarithms = np.log(runs.rate.to_numpy(float))

        def misses(rates: np.ndarray) -> np.ndarray:
            given = dict(zip(("rate", "panel_rate"), np.exp(rates)))
            return np.log(replace(self, **given).rates(runs)) - logarithms

        start = float(np.log(1e9 * (runs.rate / (runs.P * runs.Q)).max()))
        steps = np.diff(np.sort(runs.N))
        if (steps > 0.1 * runs.N.min()).sum() + 1 >= SIZES:
            fitted = least_squares(misses, [start, start - 2], diff_step=0.02, xtol=1e-4)
            rate, panel_rate = map(float, np.exp(fitted.x))
            return replace(self, rate=rate, panel_rate=panel_rate)
        try:
            solved = brentq(lambda r: float(np.mean(misses(np.array([r])))), *np.log(RATES))
        except ValueError:
            raise FalloffError(
                "no rate of a node gives what HPL reached on it: are its N, grid and rate right?"
            ) from None
        return replace(self, rate=float(np.exp(solved)))
