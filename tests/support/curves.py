"""What every model's own curve is made of in tests: points at which it can be told from data, and
true parameters.
"""

import numpy as np

NODES = np.array([1.0, 2, 4, 8, 16])
ORDERS, GRIDS = (1000, 2000, 4000, 8000), ((1, 1), (1, 4), (2, 2), (4, 4))
HPL_X = np.array([(n, nb, *grid) for n in ORDERS for nb in (64, 128) for grid in GRIDS], float).T
TRUTHS = {
    "amdahl": (4.0, 0.05),
    "bandwidth_delay": (0.9, 40.0),
    "constant": (0.8,),
    "cpu_cost": (0.5, 2.0),
    "hockney": (2.0, 0.5),
    "hpl": (2e4, 5.0, 0.23),
    "hpl_messages": (5e-6, 1e-9),
    "power_law": (4.0, 0.9),
    "segmented": (0.9, 4.0, 0.1),
    "universal_scalability": (4.0, 0.03, 0.001),
}


def x_of(model):
    """Node counts, or HPL's own four quantities, and for its efficiency the rate of a node."""
    if model.name == "hpl_messages":
        return np.vstack([HPL_X, np.full(HPL_X.shape[1], 5e9)])
    return HPL_X if model.name == "hpl" else np.array([1.0, 2, 3, 4, 6, 8, 12, 16])


def noisy(y, part, seed=0):
    """y with normal noise of this part of its values."""
    return y * (1 + np.random.default_rng(seed).normal(0, part, np.shape(y)))
