"""Campaigns of fifteen points from every model's own curve, and the plain loop of fits to measure against."""

import lmfit
import numpy as np

NODES = np.array([1.0, 2, 4, 8, 16])
BLOCKS = 3
GRIDS = np.array(
    [2.0 ** np.arange(10, 15), np.full(5, 64), np.full(5, 2), np.full(5, 2)]
)  # N, NB, P, Q
TRUTHS = {
    "amdahl": (4.0, 0.05),
    "bandwidth_delay": (0.9, 40.0),
    "constant": (0.8,),
    "cpu_cost": (0.5, 2.0),
    "hockney": (2.0, 0.5),
    "hpl": (5e3, 20.0, 0.23),
    "power_law": (4.0, 0.9),
    "segmented": (0.9, 4.0, 0.1),
    "shared_capacity": (4.0, 0.2),
    "universal_scalability": (4.0, 0.03, 0.001),
}


def fifteen_points(model, fits, noise=0.01, seed=0):
    """x, and y of shape (fits, 15): five configurations in three blocks, with noise of this part of y."""
    x = np.tile(GRIDS if model.name == "hpl" else NODES, BLOCKS)
    y = model.function(x, *TRUTHS[model.name])
    return x, y * (1 + np.random.default_rng(seed).normal(0, noise, (fits, y.size)))


def plain_loop(model, x, y):
    """What one would write without thinking of speed: lmfit with its own defaults, a row at a time."""
    for row in y:
        parameters = lmfit.Parameters()
        for name, start in model.guess(x, row[None]).items():
            low, high = model.bounds[name]
            parameters.add(name, value=start[0], min=low, max=high)
        lmfit.minimize(lambda p: row - model.function(x, **p.valuesdict()), parameters)
