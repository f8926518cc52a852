"""What prose may quote of the published sources."""

from analysis import published


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
