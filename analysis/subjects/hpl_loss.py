"""What HPL loses from the paper's fewest nodes to its most, on any nodes and network."""

import numpy as np

from analysis.laws.models import hpl

DOUBLE = 8  # bytes of a matrix element
NB = 128  # columns of a block, as in the paper
GRIDS = {2: (1, 2), 36: (6, 6)}  # P and Q on the paper's fewest and most nodes


def loss(rate: np.ndarray, memory: np.ndarray, latency: float, bandwidth: float) -> np.ndarray:
    """The loss of efficiency by the law of HPL's messages [1], shape (rates, memories).

    A node computes matrix products at `rate` [flop/s], and its part of the matrix fills `memory`
    [B] on every number of nodes. A message takes `latency` [s] and its bytes over `bandwidth`
    [B/s].
    """
    efficiency = []
    for nodes, grid in GRIDS.items():
        order = NB * np.rint((memory * nodes / DOUBLE) ** 0.5 / NB)
        x = np.array([order, *(np.full_like(order, setting) for setting in (NB, *grid))])
        reached = hpl.hpl(x, latency, 1 / bandwidth, 1 / rate[:, None])
        efficiency.append(reached / (nodes * rate[:, None]))
    few, most = efficiency
    return 1 - most / few
