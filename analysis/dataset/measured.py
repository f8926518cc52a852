"""What strangers measured on their own clusters (data/measured): facts with their sources, of the
kind `measured elsewhere`. They are never pooled with our runs, and no claim is judged by them.

Each answer is read once: copy it before you change it.
"""

import tomllib
from functools import cache
from typing import Any

import pandas as pd

from analysis.paths import MEASURED


@cache
def clusters() -> dict[str, dict[str, Any]]:
    """Every cluster's description by name: network, family, nodes, `node` with its `rate`
    [Gflop/s], `hpl` with its settings, `ping_pong` (a curve), `source`, `unknown` and `pitfalls`.
    """
    files = sorted(MEASURED.glob("*.toml"))
    return {file.stem: tomllib.loads(file.read_text(encoding="utf-8")) for file in files}


@cache
def hpl() -> pd.DataFrame:
    """HPL's results, a row each point: cluster, series, role, nodes, ranks, ranks_per_node, N, NB,
    P, Q, blas, mtu [B], runs, kind_of_runs, rate_median and rate_best [Gflop/s].

    A law may fit points of the role `given` and predict those `held_out`; `other` are for neither.
    The runs of a point are `repeats`, or `variants` with other settings of HPL. An empty blas or
    mtu is not known.
    """
    return pd.read_csv(MEASURED / "hpl.csv")


@cache
def ping_pong() -> pd.DataFrame:
    """Ping-pongs between two nodes, a row each size: curve, message_bytes, time_us (one way), n,
    send_us (in the sender's call; NaN where not known), and of the curve network, short (of one
    curve each family, which figures draw), family, cluster, mpi, statistic (what the time is, and
    what n counts), repository, commit and licence.

    Curves of more than 40 sizes are thinned: of each of 38 classes, equally wide in the logarithm,
    the size of median time, and the smallest and the largest.
    """
    times, curves = (pd.read_csv(MEASURED / f"{name}.csv") for name in ("ping_pong", "curves"))
    return times.merge(curves, on="curve", validate="many_to_one")
