"""What the scale model keeps of the paper's cluster: the shares of HPL's time that bytes and
messages take, at every point.

HPL sends about n (1/P + 1/Q) N^2 bytes and a few messages for each of its N columns, in a time that
goes as N^3 / (n F). So bytes take a share of F / (BW N) times what the grid says, and messages one
of m n F / N^2: for nodes of F flop/s, links of BW bytes/s and a short message of m seconds. Both
are measured here, by tokens on the emulated network just before each run.
"""

from typing import Any

import pandas as pd
import xarray as xr

from analysis.dataset import published
from analysis.dataset.derive import over_factors
from analysis.dataset.wire import wire_limit
from analysis.descriptions import testbeds
from analysis.wording import number, percent

PAPER = "smith"  # the testbed that describes the paper's cluster


def shares(dataset: xr.Dataset) -> pd.DataFrame:
    """Both shares of a scale model's runs over the paper's, a row for each network of the paper's
    and each of its cases.

    Columns: `dilation`, how many times slower than the paper's links the run's are; `message` [s],
    the time of a short message and `carried` [1], what long messages got of the link's payload,
    both medians of the blocks; `bytes` and `messages` [1], the shares over the paper's. Empty where
    the testbed has no nodes of a known rate, or no tokens were exchanged.
    """
    node = dataset.falloff.testbed.node
    paper: Any = testbeds.read(PAPER)
    columns = {"message": "short_message_time", "carried": "link_share", "dilation": "dilation"}
    if "flop_s" not in node or not {*columns.values()} <= {*dataset.variables}:
        return pd.DataFrame(columns=[*columns, "bytes", "messages"], dtype=float)
    values = {to: dataset[name] for to, name in columns.items()}
    ran = over_factors(dataset, "hpl", N=dataset.N, **values)
    links = {
        name: wire_limit(network.rate_bit_s, network.mtu) / 8
        for name, network in dataset.falloff.networks.items()
        if "rate_bit_s" in network.table
    }
    cases = published.table("fortinet_table1").set_index("nodes").N
    ran = ran.median("block").sel(interconnect=[*links], nodes=ran.nodes.isin(cases.index))
    table = ran.to_dataframe(["interconnect", "nodes"])
    network, nodes = map(table.index.get_level_values, ["interconnect", "nodes"])
    slower, smaller = table.dilation / node["dilation"], nodes.map(cases) / table.N
    flop_s, paper_flop_s = node["flop_s"] / slower, paper.rates.dgemm_flop_s.value
    byte_s = network.map(links) / slower * table.carried
    paper_byte_s = network.map({name: paper.network[name].bandwidth.value for name in links})
    latency = network.map({name: paper.network[name].latency.value for name in links})
    table["bytes"] = flop_s * smaller * paper_byte_s / (paper_flop_s * byte_s)
    table["messages"] = table.message * flop_s * smaller**2 / (latency * paper_flop_s)
    return table if table.message.notna().any() else table.iloc[:0]


def kept(shares: pd.DataFrame) -> str:
    """What the model keeps, in a sentence: how far the share of bytes is off, and the largest share
    of messages.
    """
    if shares[["bytes", "messages"]].isna().all().any():
        return ""
    off, most = (shares.bytes - 1).abs().max(), shares.messages.max()
    return (
        f"Bytes cost the share of time that they cost Fortinet's cluster, within {percent(off)}; "
        f"messages cost at most {number(most, 3)} times theirs."
    )
