"""Synthetic campaigns, thousands at a time: a design's log rates with planted falls, block effects and noise.

Arrays are laid out (campaigns, blocks, networks, nodes); rates are in units of one node's own rate, since
no statistic depends on more than ratios.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.contrasts import contrasts, log_ratios
from runners.record import FalloffError

HEAVY_TAILS = 3  # degrees of freedom of Student's t: the fewest whole number with a variance


@dataclass(frozen=True)
class Truth:
    """What campaigns are drawn from: the kind of `noise`, a run's `sigma` (log scale) and the `fall`.

    `fall` is the primary network's relative fall from the baseline to the most nodes; the other
    networks have none.
    """

    noise: str
    sigma: float
    fall: float


@dataclass(frozen=True)
class Design:
    """What of a campaign's description decides its statistics.

    `pairs` are the contrasts (network, reference) in the order of `contrasts.contrasts`.
    """

    networks: tuple[str, ...]
    nodes: tuple[int, ...]
    pairs: tuple[tuple[str, str], ...]
    baseline: int
    margin: float

    @classmethod
    def of(cls, campaign: Mapping) -> "Design":
        """The design of a campaign's description (data/campaigns/*.toml)."""
        design, factors = campaign["design"], campaign["factors"]
        primary = tuple(design["primary"])
        others = [(network, design["control"]) for network in primary if network != design["control"]]
        return cls(
            networks=tuple(factors["interconnect"]),
            nodes=tuple(factors["nodes"]),
            pairs=(primary, *others),
            baseline=design["baseline_nodes"],
            margin=design["margin"],
        )

    @property
    def limit(self) -> float:
        """The margin on the log scale."""
        return -math.log1p(-self.margin)

    def falls(self, fall: float) -> tuple[float, ...]:
        """The true fall of every contrast when the primary network alone has this one."""
        first = self.pairs[0][0]
        return tuple(fall if network == first else 0.0 for network, _ in self.pairs)


def log_rates(
    random: np.random.Generator,
    truth: Truth,
    design: Design,
    shape: tuple[int, int],
    settings: Mapping,
    pattern: np.ndarray,
) -> np.ndarray:
    """Log rates of `shape` (campaigns, blocks) campaigns, (campaigns, blocks, networks, nodes).

    `settings` is data/calibration/calibration.toml; `pattern`, shape (nodes,), is the scatter of `uneven`
    noise at each node count relative to sigma.
    """
    whole = (*shape, len(design.networks), len(design.nodes))
    effect = random.normal(0, settings["block_sigma"], (*shape, 1, 1))
    return effect + _planted(truth, design) + _noise(random, truth, whole, settings, pattern)


def differences(rates: np.ndarray, design: Design) -> np.ndarray:
    """D of every contrast, (campaigns, blocks, contrasts), from log rates laid out as `log_rates`."""
    fall = rates[..., -1] - rates[..., design.nodes.index(design.baseline)]
    place = design.networks.index
    return np.stack([fall[..., place(a)] - fall[..., place(b)] for a, b in design.pairs], axis=-1)


def run_sds(points: xr.Dataset) -> np.ndarray:
    """A run's standard deviation (log scale) at each node count of a campaign, shape (nodes,).

    From the scatter of the contrasts' log-ratios over the blocks, in which block effects cancel and each
    of which holds two runs; pooled over the contrasts.
    """
    ratios = [log_ratios(points, c.network, c.reference) for c in contrasts(points)]
    variances = [ratio.var("block", ddof=1).values for ratio in ratios]
    return np.sqrt(np.mean(variances, axis=0) / 2)


def _planted(truth, design):
    """Log rates without noise, (networks, nodes): the fall grows with log n from the baseline on."""
    nodes = np.array(design.nodes, float)
    progress = np.log(nodes / design.baseline) / np.log(nodes[-1] / design.baseline)
    planted = np.zeros((len(design.networks), len(nodes)))
    planted[design.networks.index(design.pairs[0][0])] = np.log1p(-truth.fall) * np.maximum(progress, 0)
    return planted


def _noise(random, truth, shape, settings, pattern):
    match truth.noise:
        case "normal":
            return truth.sigma * random.standard_normal(shape)
        case "heavy-tailed":
            return truth.sigma / np.sqrt(3) * random.standard_t(HEAVY_TAILS, shape)
        case "outliers":
            slowed = random.random(shape) < settings["outlier_share"]
            lost = slowed * random.uniform(0, settings["outlier_loss"], shape)
            return truth.sigma * random.standard_normal(shape) + np.log1p(-lost)
        case "uneven":
            return truth.sigma * pattern * random.standard_normal(shape)
        case other:
            raise FalloffError(
                f"noise {other!r} is unknown; there are normal, heavy-tailed, outliers, uneven"
            )
