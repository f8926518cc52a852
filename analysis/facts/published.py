"""What prose may quote of the published sources."""

import json

import xarray as xr

from analysis import published
from analysis.balance import bandwidth_share

PAPER_NETWORKS = ("gige", "10gige")  # the two that the paper compares


def published_sources() -> dict:
    """The paper's and the blog's facts; the gain from a second link is a fraction of the rate with one."""
    table, results = published.smith_table1(), published.bonding_blog()
    by_links = results.pivot(index="nodes", columns="links_per_node", values="rate_gflop_s")
    return {
        "paper": published.smith(),
        "table1": table.sort_values("nodes").to_dict("records"),
        "blog": published.bonding_blog_facts(),
        "blog_results": results.to_dict("records"),
        "blog_gains": [
            {"nodes": int(n), "gain": float(rates.iloc[-1] / rates.iloc[0] - 1)}
            for n, rates in by_links.iterrows()
        ],
    }


def smith_balance(dataset: xr.Dataset) -> dict[str, dict[int, float]]:
    """n F / (BW N) (1/P + 1/Q) [flop/B] of the paper's cases, for each of its networks over node counts.

    F is the Smith cluster's Rpeak a node and BW the rate on the wire of the dataset's interconnect of
    that name: nothing slower is published.
    """
    interconnects = json.loads(dataset.attrs["interconnects"])
    table = published.smith_table1().sort_values("nodes")
    rpeak = 1e9 * published.smith()["cluster"]["rpeak_per_node"]["value"]
    return {
        name: dict(
            zip(
                table.nodes.tolist(),
                bandwidth_share(
                    table.nodes, rpeak, interconnects[name]["rate_bit_s"] / 8, table.N, table.P, table.Q
                ).tolist(),
            )
        )
        for name in PAPER_NETWORKS
        if name in interconnects
    }
