"""How often the judgement of `suspects` is wrong when each node meets only some others, by planted
faults (`make calibrate`).
"""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from analysis.statistics import outliers


def pairs(random: np.random.Generator, nodes: int, rounds: int) -> np.ndarray:
    """The pairs (numbers from 0) that meet in so many rounds, shape (pairs, 2), as
    runners/src/suspects.c draws them.
    """
    count = nodes + nodes % 2
    seats, met = random.permutation(count), list[np.ndarray]()
    for number in range(min(rounds, count - 1)):
        circle = np.concatenate([seats[:1], np.roll(seats[1:], -number)])
        met.append(np.stack([circle[: count // 2], circle[: count // 2 - 1 : -1]], axis=1))
    found = np.concatenate(met)
    return found[(found < nodes).all(axis=1)]


def campaign(
    random: np.random.Generator,
    nodes: int,
    rounds: int,
    blocks: int,
    sd: float,
    slow: Sequence[int],
    loss: float,
) -> np.ndarray:
    """Log speeds over (blocks, sender, receiver), NaN where two did not meet. The links of `slow`
    lose a share both ways.
    """
    speeds = np.full((blocks, nodes, nodes), np.nan)
    for block in speeds:
        a, b = pairs(random, nodes, rounds).T
        for sender, receiver in ((a, b), (b, a)):
            is_slow = np.isin(sender, slow) | np.isin(receiver, slow)
            noise = random.normal(0, sd, len(a))
            block[sender, receiver] = noise + np.where(is_slow, np.log1p(-loss), 0.0)
    return speeds


def named(
    speeds: np.ndarray, level: float, tolerance: float, smallest: float
) -> tuple[set[int], set[int]]:
    """The nodes that are named as slow in sending, and in receiving; the level is a campaign's,
    shared by all five quantities of a node."""
    nodes = speeds.shape[1]
    members = [(node,) for node in range(nodes)]
    families = outliers.of_pairs(speeds)[:2]
    shared = outliers.level_of_family(families, level, tolerance)
    limits = level / (5 * nodes), shared, tolerance, smallest
    found = [outliers.compare(losses, members, *limits).slower for losses in families]
    return set(found[0].tolist()), set(found[1].tolist())


def simulate(settings: Mapping) -> pd.DataFrame:
    """`false_alarms`, the share of campaigns that name any healthy node, and `found`, the share of
    planted links that are named both ways, by number of nodes and scatter of a pair's rate, a row
    each."""
    sizes, rows = settings["tournament"], list[dict]()
    for (nodes, campaigns), sd in itertools.product(sizes["nodes"].items(), sizes["pair_sds"]):
        random = np.random.default_rng([settings["seed"], 5, len(rows)])
        wrong = found = planted = 0
        for _ in range(campaigns):
            slow = random.choice(int(nodes), sizes["slow"], replace=False).tolist()
            speeds = campaign(
                random, int(nodes), sizes["rounds"], sizes["blocks"], sd, slow, sizes["loss"]
            )
            sending, receiving = named(
                speeds, sizes["false_alarms"], sizes["tolerance"], sizes["loss"]
            )
            wrong += bool((sending | receiving) - set(slow))
            found += len(sending & receiving & set(slow))
            planted += len(slow)
        row = {"nodes": int(nodes), "pair_sd": sd, "campaigns": campaigns}
        rows.append(row | {"false_alarms": wrong / campaigns, "found": found / planted})
    return pd.DataFrame(rows)
