"""Folders of real outputs as somebody's own cluster may have left them: HPL with a planted law of efficiency."""

import numpy as np
from foreign_hpl import output

NODES = (1, 2, 4, 8, 16)
NODE_RATE = 480.0  # Gflop/s
# The share of n nodes' rate that is left: GigE loses by Amdahl's law, 10GE a little, 100GE nothing.
LAWS = {
    "1gbe": lambda n: 1 / (1 + 0.02 * (n - 1)),
    "10gbe": lambda n: 1 / (1 + 0.0015 * (n - 1)),
    "100gbe": lambda n: 0 * n + 1.0,
}
README = 3  # the seed of the outputs that README.md shows
SCATTER = 0.006  # standard deviation of a run


def write_hpl(folder, runs=3, seed=README, laws=LAWS, nodes=NODES, scatter=SCATTER) -> dict:
    """Write folder/NETWORK/nNN/runK/HPL.out for all laws, node counts and runs; returns the planted falls."""
    rng = np.random.default_rng(seed)
    for network, law in laws.items():
        for n in nodes:
            for run in range(1, runs + 1):
                rate = NODE_RATE * n * law(n) * np.exp(rng.normal(0, scatter))
                place = folder / network / f"n{n:02d}" / f"run{run}"
                place.mkdir(parents=True)
                N = 40000 * int(np.sqrt(n) * 4) // 4
                (place / "HPL.out").write_text(output(rate, N=N, NB=192, P=4, Q=4 * n))
    return {network: 1 - law(nodes[-1]) / law(nodes[0]) for network, law in laws.items()}
