"""What messages cost on a cluster of several ranks a node, from a ping-pong by size."""

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Curve:
    """A ping-pong between two ranks: times one way [s] by size [B], both of shape (sizes,), the
    sizes ascending. Longer messages go on at the rate of the longest one.
    """

    sizes: np.ndarray
    times: np.ndarray

    @property
    def bandwidth(self) -> float:
        """The rate of the longest message [B/s]."""
        return float(self.sizes[-1] / self.times[-1])

    def time(self, size: np.ndarray) -> np.ndarray:
        """The time of one message [s], linear in its size between those measured."""
        beyond = np.maximum(size - self.sizes[-1], 0) / self.bandwidth
        return np.interp(size, self.sizes, self.times) + beyond


@dataclass(frozen=True)
class SharedLinks:
    """Ranks on nodes, each node with one link that sends and receives at the same time.

    `between` two nodes a message alone takes the ping-pong's time. Messages at the same time share
    a node's link: each takes at least the time of as many bytes as its own from all of them, and
    waits `send` [s] of the processor's time for each of the others. `inside` is the ping-pong
    within a node. `node` has the node of each rank, counted along the rows of HPL's grid.
    """

    between: Curve
    inside: Curve
    node: np.ndarray
    link: float
    send: float = 0.0
    nodes: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", int(self.node.max()) + 1)

    def times(
        self, there: np.ndarray, back: np.ndarray, a: np.ndarray, b: np.ndarray
    ) -> np.ndarray:
        """The times of exchanges at the same time [s], shape (exchanges, columns, 1): `there` [B]
        from the ranks `a` to `b` and `back`, all of shape (exchanges, columns).
        """
        there, back = (np.broadcast_to(size, a.shape).astype(float) for size in (there, back))
        ends, size = (self.node[a], self.node[b]), np.maximum(there, back)
        time, away = self.inside.time(size), ends[0] != ends[1]
        if away.any():
            a, b = (end[away] for end in ends)
            there, back, size = there[away], back[away], size[away]
            one = np.ones_like(size)
            messages = self._at(a, one, b, one)
            busiest = np.maximum(self._at(a, there, b, back), self._at(a, back, b, there))
            share = np.minimum(busiest, messages * size) / self.link
            time[away] = np.maximum(self.between.time(size), self.between.times[0] + share)
            time[away] += (messages - 1) * self.send
        return time[..., None]

    def _at(self, a: np.ndarray, of_a: np.ndarray, b: np.ndarray, of_b: np.ndarray) -> np.ndarray:
        """The sum over all that a node does, at the busier end of each exchange."""
        total = np.bincount(a, of_a, self.nodes) + np.bincount(b, of_b, self.nodes)
        return np.maximum(total[a], total[b])
