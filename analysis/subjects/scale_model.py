"""What the scale model keeps of the paper's cluster: the shares of HPL's time that bytes and messages take, at every point.

HPL sends about n (1/P + 1/Q) N^2 bytes and a few messages for each of its N columns, in a time that goes as N^3 / (n F). So
bytes take a share of F / (BW N) times what the grid says, and messages one of m n F / N^2: for nodes of F flop/s, links of
BW bytes/s and a short message of m seconds. Both are measured here, by tokens on the emulated network just before each run.
"""

import numpy as np
import pandas as pd
import xarray as xr

from analysis import exhibit, published
from analysis.attributes import interconnects, names_in_text, testbed
from analysis.derive import over_factors
from analysis.descriptions import testbeds
from analysis.wire import wire_limit
from analysis.wording import UNKNOWN, counted, fixed, listed, micro, number, percent

PAPER = "smith"  # the testbed that describes the paper's cluster
GIGE = 1e9  # bit/s on the paper's wires


def shares(dataset: xr.Dataset) -> pd.DataFrame:
    """Both shares of a scale model's runs over the paper's, a row for each network of the paper's and each of its cases.

    Columns: `dilation`, how many times slower than the paper's links the run's are; `message` [s], the time of a short message
    and `carried` [1], what long messages got of the link's payload, both medians of the blocks; `bytes` and `messages` [1], the
    shares over the paper's; `missing` [s], what a message here lacks to the paper's share, on this scale of time. Empty where
    the testbed has no nodes of a known rate, or no tokens were exchanged.
    """
    node, paper = testbed(dataset).get("node", {}), testbeds.read(PAPER)
    measured = {"short_message_time", "link_share", "dilation"} <= {*dataset.variables}
    if "flop_s" not in node or not measured:
        return pd.DataFrame()
    ran = over_factors(
        dataset, N=dataset.N, message=dataset.short_message_time, carried=dataset.link_share
    ).median("block")
    slowed = over_factors(dataset, dilation=dataset.dilation).dilation.max("block")
    rows, cases = {}, published.table("fortinet_table1").set_index("nodes").N
    networks = {name: link for name, link in interconnects(dataset).items() if "rate_bit_s" in link}
    for name, link in networks.items():
        for nodes in [n for n in ran.nodes.values.tolist() if n in cases.index]:
            at = ran.sel(interconnect=name, nodes=nodes)
            dilation = float(slowed.sel(interconnect=name, nodes=nodes))
            slower = dilation / node["dilation"]
            flop_s, byte_s = (
                node["flop_s"] / slower,
                wire_limit(link["rate_bit_s"], link["mtu"]) / 8 / slower,
            )
            modelled, theirs = paper.network[name], paper.rates.dgemm_flop_s.value
            smaller = cases[nodes] / float(at.N)
            of_bytes = (
                flop_s * smaller * modelled.bandwidth.value / (theirs * byte_s * float(at.carried))
            )
            lasting = modelled.latency.value * theirs / (flop_s * smaller**2)
            message = float(at.message)
            rows[name, nodes] = (
                dilation,
                message,
                float(at.carried),
                of_bytes,
                message / lasting,
                lasting - message,
            )
    columns = ["dilation", "message", "carried", "bytes", "messages", "missing"]
    found = pd.DataFrame.from_dict(rows, "index", columns=columns)
    found.index = pd.MultiIndex.from_tuples(found.index, names=["interconnect", "nodes"])
    return found if found.message.notna().any() else found.iloc[:0]


def method(dataset: xr.Dataset) -> str:
    """How the scale model works, Markdown: what is smaller, what is slower, and what a network costs."""
    rule, node = testbed(dataset)["scale"], testbed(dataset)["node"]
    slowed = dataset.dilation.where((dataset.role == "point") & (dataset.nodes > 1))
    low, high = int(slowed.min()), int(slowed.max())
    fastest = f"{number(GIGE / low / 1e6)} Mbit/s"
    return f"""1. Each node computes for real, and then sleeps until a slower node would be done.
2. Matrices are {rule["smaller"]:g} times smaller in each dimension than the paper's.
3. Time is slowed {low} to {high} times. A rule gives each point the least factor at which a message takes no larger share of the run than on the paper's cluster, and this machine serves all nodes. GigE's links then carry {fastest} or less.
4. Nodes are slowed with the links: slowed {low} times, a node does {number(node["flop_s"] * node["dilation"] / low / 1e6)} Mflop/s.
5. Buffers shrink with the messages. Up to 4 KiB leave before their receiver is ready. What a socket holds is small against a panel of HPL, and large against the link's rate times its round trip.

Two shares of the time decide what a network costs: that of bytes and that of messages [@hpl]. For $n$ nodes of $F$ flop/s, links of $BW$ bytes/s and a matrix of order $N$ on a $P \\times Q$ grid, the share of bytes goes as
$\\frac{{n F}}{{BW\\,N}} \\left(\\frac{{1}}{{P}} + \\frac{{1}}{{Q}}\\right)$. The share of messages, each of which takes $\\alpha$ seconds, goes as
$\\alpha n F / N^2$."""


def kept(shares: pd.DataFrame) -> str:
    """What the model keeps, in a sentence: how far the share of bytes is off, and the largest share of messages."""
    off, most = (shares.bytes - 1).abs().max(), shares.messages.max()
    if not np.isfinite([off, most]).all():
        return ""
    return (
        f"Bytes cost the share of time that they cost Fortinet's cluster, within {percent(off)}; messages cost at most "
        f"{number(most, 3)} times theirs."
    )


def kept_in_words(dataset: xr.Dataset, found: pd.DataFrame) -> str:
    """What the model keeps of the paper's cluster, and how it is known (Markdown); `found` are the `shares` of the dataset."""
    names = names_in_text(dataset)
    if found.empty or not (told := kept(found)):
        return "**What the scale model keeps of the paper's cluster cannot be said**: no tokens were exchanged before its runs."
    networks = listed([names[name] for name in found.index.unique(0)])
    return f"**{told}** Both are measured by tokens before each run, on {networks} in {counted(len(found), 'case')}."


def table(dataset: xr.Dataset, found: pd.DataFrame) -> exhibit.Table | None:
    """The `shares` of a dataset at every point; None where no tokens were exchanged."""
    names = names_in_text(dataset)
    if found.empty:
        return None
    rows = [
        (
            names[network],
            str(nodes),
            f"{row.dilation:g}",
            fixed(row.carried, 3) if np.isfinite(row.carried) else UNKNOWN,
            micro(row.message) if np.isfinite(row.message) else UNKNOWN,
            fixed(row.bytes, 3) if np.isfinite(row.bytes) else UNKNOWN,
            fixed(row.messages, 2) if np.isfinite(row.messages) else UNKNOWN,
        )
        for (network, nodes), row in found.iterrows()
    ]
    return exhibit.Table(
        "shares",
        (
            "Network",
            "Nodes",
            "Time slowed",
            "Link's payload reached",
            "Short message",
            "Share of bytes",
            "Share of messages",
        ),
        "lrrrrrr",
        rows,
        "What bytes and messages cost in the scale model, over what they cost the paper's cluster. A link's payload and a short message's time are "
        "measured by tokens between two or four nodes just before each run.",
        exhibit.Basis.of_dataset(dataset, "medians of the blocks"),
        widths=(9, 7, 9, 12, 10, 10, 10),
    )
