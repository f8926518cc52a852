"""Folders of real outputs as somebody's own cluster may have left them: HPL with a planted law of
efficiency.
"""

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest
from foreign_hpl import output

from analysis import paths
from analysis.dataset import store
from analysis.statistics.judgement import FALLS_OFF, FLAT
from runners.records import archive

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
    """Write folder/NETWORK/nNN/runK/HPL.out for all laws, node counts and runs; returns the planted
    falls.
    """
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


def require_planted(statements, planted) -> None:
    """Of each network the fall that was planted is stated, with its answer, from all runs."""
    falls = {
        one["subject"].split("'s efficiency")[0]: one
        for one in statements
        if one["quantity"] == "fall" and "against" not in one["subject"]
    }
    names = {"1gbe": "GigE", "10gbe": "10GE", "100gbe": "100GE"}
    for network, fall in planted.items():
        found = falls[names[network]]
        assert found["words"] == (FALLS_OFF if fall > 0.1 else FLAT)
        assert found["estimate"] == pytest.approx(fall, abs=0.02)
        assert found["n"] == 3 and found["evidence"] == "measured"


def write_cluster(folder, networks=("gige", "10gige"), nodes=(2, 4, 8, 16), blocks=3) -> None:
    """Write what a user has of two networks: HPL on 2 to 16 nodes in folder/hpl, and OSU's latency
    in folder/osu.

    HPL's outputs are real ones, of the emulated cluster with nodes of 0.085 Gflop/s; OSU's tables
    have its messages' times. HPL on one node is an output with that rate.
    """
    hpl, tokens = (
        paths.REFERENCE / name for name in ("twin_hpl-scale_model", "twin_tokens-scale_model")
    )
    for _, text in archive.read(hpl / archive.NAME):
        one = json.loads(text)
        point, block = one["trial"]["point"], one["trial"]["block"]
        if (
            one["trial"]["role"] == "point"
            and point["nodes"] in nodes
            and point["interconnect"] in networks
            and block <= blocks
        ):
            place = (
                folder / "hpl" / point["interconnect"] / f"n{point['nodes']:02d}" / f"run{block}"
            )
            place.mkdir(parents=True)
            (place / "HPL.out").write_text(one["executions"][0]["stdout"])
    for network, run in product(networks, range(1, blocks + 1)):
        place = folder / "hpl" / network / "n01" / f"run{run}"
        place.mkdir(parents=True)
        (place / "HPL.out").write_text(output(0.085, N=840, NB=24, P=1, Q=1))
    found = store.read(tokens)
    found = found.isel(
        trial=(
            (found.role == "point")
            & found.token_round_trip.notnull().any(["pair", "run", "quantile"])
        ).values
    )
    time = found.token_round_trip.sel(quantile=0.5).mean(["pair", "run"]) / 2
    table = pd.DataFrame(
        {name: found[name].values for name in ("interconnect", "block", "token_bytes")}
    ).assign(us=1e6 * time.values)
    table = table.sort_values("token_bytes")
    for (network, block), rows in table.groupby(["interconnect", "block"]):
        if network in networks and block <= blocks:
            lines = [f"{size:<10.0f}{us:>18.2f}" for size, us in zip(rows.token_bytes, rows.us)]
            place = folder / "osu" / network / f"run{block}"
            place.mkdir(parents=True)
            head = "# OSU MPI Latency Test v5.4.3\n# Size          Latency (us)\n"
            (place / "osu_latency.txt").write_text(head + "\n".join(lines) + "\n")
