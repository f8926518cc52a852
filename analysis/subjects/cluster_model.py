"""HPL on a cluster by what is given of it: the rate of a node and a ping-pong. By the law of HPL's
own messages, and by HPL's own code on SimGrid.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq, isotonic_regression, least_squares

from analysis.descriptions import campaigns
from analysis.laws.models import _hpl_steps
from analysis.laws.models._hpl_steps import Algorithm
from analysis.laws.piecewise import Value, split
from analysis.laws.ping_pong import Curve, SharedLinks
from analysis.subjects.prediction import CASE
from analysis.subjects.twin import FittedLink, by_size
from runners.records.record import FalloffError
from runners.tools import hpl

RATES = (1e6, 1e15)  # flop/s of a process: a rate outside of these is a fault
PANELS = 400  # of a run; of more panels only a part is computed
ORDERS = 3  # matrices, each at least a tenth larger, that tell a panel's rate from the products'
NETWORK = "network"  # the name of a simulation's only one
# HPL.dat's numbers of what `Algorithm` names
BCAST, SWAP = {"1ring": 0, "1ringM": 1, "2ring": 2}, {"bin-exch": 0, "long": 1, "mix": 2}


@dataclass(frozen=True)
class ClusterModel:
    """What is given of a cluster.

    `rate` [flop/s] is that of a process' matrix products, and `panel_rate` that of all operations
    in a panel; without it a panel's products take their time alone. `between` nodes and `inside` a
    node are ping-pongs, `link` [B/s] is the rate of a node's link (0: that of the ping-pong's
    longest message), and `send` [s] the processor's time for a message. Processes fill node after
    node, in the order of the grid's rows, or `by_column`.
    """

    between: Curve
    inside: Curve
    rate: float = 1e9
    panel_rate: float | None = None
    link: float = 0.0
    send: float = 0.0
    ranks_per_node: int = 1
    by_column: bool = False
    algorithm: Algorithm = field(default_factory=Algorithm)

    def rates(self, cases: pd.DataFrame) -> np.ndarray:
        """HPL's rate [Gflop/s] of each case, a row of N, NB, P and Q."""
        return np.array([self._rate(*map(int, case)) for case in cases[CASE].values])

    def _rate(self, N: int, NB: int, P: int, Q: int) -> float:
        ranks = np.arange(P * Q)
        if self.by_column:
            ranks = ranks.reshape(Q, P).T.ravel()
        link = self.link or self.between.bandwidth
        node = ranks // self.ranks_per_node
        links = SharedLinks(self.between, self.inside, node, link, self.send)
        panel_gamma = 1 / self.panel_rate if self.panel_rate else None
        costs = links, 1 / self.rate, PANELS, panel_gamma, self.algorithm
        return float(1e-9 * hpl.operations(N) / _hpl_steps.time(N, NB, P, Q, *costs)[0])

    def calibrated(self, runs: pd.DataFrame) -> "ClusterModel":
        """The model with the rate that these runs show, rows of N, NB, P, Q and rate [Gflop/s]; of
        ORDERS matrices or more the panel's rate, too.

        Raises FalloffError if no rate gives what was measured.
        """
        logarithms = np.log(runs.rate.to_numpy(float))

        def misses(rates: np.ndarray) -> np.ndarray:
            given = dict(zip(("rate", "panel_rate"), np.exp(rates)))
            return np.log(replace(self, **given).rates(runs)) - logarithms

        orders = np.sort(runs.N.to_numpy(float))
        if (orders[1:] > 1.1 * orders[:-1]).sum() + 1 >= ORDERS:
            start = float(np.log(1e9 * (runs.rate / (runs.P * runs.Q)).max()))
            fitted = least_squares(misses, [start, start - 2], diff_step=0.02, xtol=1e-4)
            rate, panel_rate = np.exp(fitted.x).tolist()
            return replace(self, rate=rate, panel_rate=panel_rate)
        try:
            solved = brentq(lambda rate: misses(np.array([rate])).mean(), *np.log(RATES))
        except ValueError:
            raise FalloffError(
                "no rate of a node gives what HPL reached on it: are its N, grid and rate right?"
            ) from None
        return replace(self, rate=float(np.exp(solved)))

    def simulation(self, cases: pd.DataFrame) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """A testbed's description and HPL's points for `running.simulated_rates`: HPL's own code
        with these cases on SimGrid, whose panels cost their products alone, and whose messages
        inside a node cost nothing."""
        settings = {
            **campaigns.read("hpl_paper_simulated").settings,
            "THRESHOLD": -1.0,  # nothing is computed that could be checked
            "PMAP": int(self.by_column),
            "BCAST": BCAST[self.algorithm.bcast],
            "DEPTH": self.algorithm.depth,
            "SWAP": SWAP[self.algorithm.swap],
            "interconnect": NETWORK,
            "ranks_per_node": self.ranks_per_node,
        }
        rates = {
            **dict.fromkeys(("dgemm_k_half", "dgemm_mn_half", "strided_s"), 0.0),
            **dict.fromkeys(("node_byte_s", "core_byte_s"), float("inf")),
            "dtrsm_share": 1.0,
            "dgemm_flop_s": self.rate * self.ranks_per_node,
        }
        points = [
            {**settings, **case, "nodes": -(-case["P"] * case["Q"] // self.ranks_per_node)}
            for case in cases[CASE].astype(int).to_dict("records")
        ]
        description = {
            "name": NETWORK,
            "nodes": max(point["nodes"] for point in points),
            "runners": ["hpl"],
            "rates": {name: {"value": value} for name, value in rates.items()},
            "network": {NETWORK: self._network()},
        }
        return description, points

    def _network(self) -> dict[str, Any]:
        """The network as SimGrid has it: latency, bandwidth, and factors of both by size."""
        between, link = self.between, self.link or self.between.bandwidth
        sizes = between.sizes.astype(int).tolist()
        pieces = split({size: [time] for size, time in zip(sizes, between.times.tolist())})
        latency, bandwidth = pieces[0].offset, Value(link, link, link)
        fitted = FittedLink(latency, bandwidth, tuple(pieces), 0.0, tuple(sizes), {})
        return {
            "latency": {"value": latency.value},
            "bandwidth": {"value": link},
            "by_size": by_size(fitted),
        }


def curve(times: pd.DataFrame) -> Curve:
    """A ping-pong's curve, from rows of message_bytes and time_us: the times by least squares of
    relative errors that never fall with the size, since TCP's scatter."""
    times = times[times.message_bytes > 0].sort_values("message_bytes")
    growing = isotonic_regression(np.log(1e-6 * times.time_us.to_numpy(float))).x
    return Curve(times.message_bytes.to_numpy(float), np.exp(growing))
