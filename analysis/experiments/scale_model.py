"""The scale model of the paper's cluster: what it keeps of each of the paper's 15 cases, and what it does not.

HPL computes 2 N^3 / (3 n) flop a node. A node sends and receives of the order of N^2 (1/P + 1/Q) matrix elements of
8 bytes, and of the order of N messages; over the time of the computation these become the two shares below, up to
constants that are the same for every cluster. Two clusters with the same shares lose the same part of their time.
"""

import tomllib
from dataclasses import dataclass

import pandas as pd

from analysis import published
from analysis.paths import CAMPAIGNS, TESTBEDS
from analysis.wording import counted, fixed, micro, number, percent

NETWORK, FAST = "gige", "10gige"
PAPER, MODEL, SIMULATED = "smith", "scale_model", "scale_model_simulated"


@dataclass(frozen=True)
class Cluster:
    """What the balance of a cluster follows from: a node's rate `flop_s` [flop/s], and by network what a link carries,
    `byte_s` [B/s of payload], and the one-way time of a short message, `latency_s` [s]."""

    flop_s: float
    byte_s: dict[str, float]
    latency_s: dict[str, float]


@dataclass(frozen=True)
class ScaleModel:
    """The paper's cluster and its model.

    `cases` has a row for each of the paper's: `nodes`, `P`, `Q`, the order `N` of both matrices (`paper_N`, `model_N`),
    the shares of bytes on GigE [flop/B], `paper_bytes` and `model_bytes`, and `bytes_ratio`, model over paper; the shares
    of messages [flop] on GigE, `paper_messages` and `model_messages`. `fast_ratio` is that of the bytes on 10GE, the
    mean of its cases. `dilation` is how many times slower than the paper's everything is.
    """

    paper: Cluster
    model: Cluster
    cases: pd.DataFrame
    dilation: float
    fast_ratio: float


def bandwidth_share(n, node_rate, bandwidth, N, P, Q):
    """n F / (BW N) (1/P + 1/Q) [flop/B], proportional to the share of time that bytes cost.

    `n` nodes of `node_rate` F [flop/s] on links of `bandwidth` BW [B/s]; a matrix of order `N` on a
    `P` x `Q` grid. Arguments broadcast. Two clusters with the same value are in the same balance.
    """
    return n * node_rate / (bandwidth * N) * (1 / P + 1 / Q)


def latency_share(n, node_rate, latency, N):
    """alpha n F / N^2 [flop], proportional to the share of time that messages cost.

    `latency` alpha [s] is the one-way time of a short message; the rest is as in `bandwidth_share`.
    """
    return latency * n * node_rate / N**2


def analyse() -> ScaleModel:
    """Both shares of the paper's cases in both scales, from the descriptions in data/."""
    described = _toml(TESTBEDS / f"{MODEL}.toml")["node"]
    # The simulation of the model has its payload rates and latency, with their sources.
    paper, model = _cluster(PAPER), _cluster(SIMULATED)
    cases = (
        published.smith_table1()
        .sort_values("nodes", ignore_index=True)
        .rename(columns={"N": "paper_N"})
    )
    levels = _toml(CAMPAIGNS / "hpl_table1.toml")["levels"]["nodes"]
    cases["model_N"] = [levels[str(n)]["N"] for n in cases.nodes]
    for name, cluster in (("paper", paper), ("model", model)):
        cases[f"{name}_bytes"] = _bytes(cases, name, cluster, NETWORK)
        cases[f"{name}_messages"] = latency_share(
            cases.nodes, cluster.flop_s, cluster.latency_s[NETWORK], cases[f"{name}_N"]
        )
    cases["bytes_ratio"] = cases.model_bytes / cases.paper_bytes
    fast = _bytes(cases, "model", model, FAST) / _bytes(cases, "paper", paper, FAST)
    columns = ["nodes", "P", "Q", "paper_N", "model_N", "paper_bytes", "model_bytes", "bytes_ratio"]
    return ScaleModel(
        paper=paper,
        model=model,
        cases=cases[[*columns, "paper_messages", "model_messages"]],
        dilation=described["dilation"],
        fast_ratio=float(fast.mean()),
    )


def _bytes(cases: pd.DataFrame, scale: str, cluster: Cluster, network: str) -> pd.Series:
    return bandwidth_share(
        cases.nodes, cluster.flop_s, cluster.byte_s[network], cases[f"{scale}_N"], cases.P, cases.Q
    )


def _cluster(testbed: str) -> Cluster:
    described = _toml(TESTBEDS / f"{testbed}.toml")
    networks = {name: described["network"][name] for name in (NETWORK, FAST)}
    return Cluster(
        flop_s=described["rates"]["dgemm_flop_s"]["value"],
        byte_s={name: it["bandwidth"]["value"] for name, it in networks.items()},
        latency_s={name: it["latency"]["value"] for name, it in networks.items()},
    )


def _toml(file) -> dict:
    return tomllib.loads(file.read_text(encoding="utf-8"))


def finding(study: ScaleModel) -> str:
    """What is kept, in plain English (Markdown)."""
    off = (study.cases.bytes_ratio - 1).abs().max()
    messages = (study.cases.model_messages / study.cases.paper_messages).mean()
    return (
        f"**The scale model keeps the share of time that bytes cost on GigE within {percent(off)} in all {counted(len(study.cases), 'case')} of "
        f"the paper.** Messages cost {fixed(messages, 1)} times as large a share as there."
    )


def section(study: ScaleModel) -> str:
    """The explanation for the report and the documentation, Markdown: five sentences, the table, and what is not kept."""
    paper, model, cases = study.paper, study.model, study.cases
    smaller = float((cases.paper_N / cases.model_N).median())
    shorter = float((cases.paper_N**3 / paper.flop_s / (cases.model_N**3 / model.flop_s)).median())
    return f"""# The scale model

1. Each node computes HPL for real and then sleeps, until as much time has passed as a node of {number(model.flop_s / 1e6, 2)} Mflop/s would take.
2. Matrices are {number(smaller, 2)} times smaller in each dimension than the paper's, and links are {fixed(study.dilation, 0)} times slower: 100 Mbit/s stands for GigE, 1 Gbit/s for 10GE.
3. A run takes 1/{number(shorter, 2)} of the paper's time, and nodes compute so little that 36 of them fit on two processors.
4. Bytes cost the same share of the time as in the paper: it goes as $\\frac{{n F}}{{BW\\,N}} \\left(\\frac{{1}}{{P}} + \\frac{{1}}{{Q}}\\right)$, for $n$ nodes of $F$ flop/s, links of $BW$ bytes/s and a matrix of order $N$ on a $P \\times Q$ grid [@hpl].
5. Messages cost a larger share than in the paper: it goes as $\\alpha n F / N^2$, and a message takes $\\alpha$ = {micro(model.latency_s[NETWORK])} here, {micro(paper.latency_s[NETWORK])} in the paper's model, and would have to take {micro(_balanced_latency(study))}.

{finding(study)}

| Nodes | Grid | N at paper scale | N at model scale | Bytes in paper [flop/B] | Bytes in model [flop/B] | Ratio | Messages in paper [flop] | Messages in model [flop] |
|--:|:--|--:|--:|--:|--:|--:|--:|--:|
{_rows(study)}

Table: What the scale model keeps of the paper's cases on GigE, computed from published and assumed numbers: the share of bytes and that of messages, each up to a constant that is the same in both. {{#tbl:scale-model}}

On 10GE bytes cost {fixed(study.fast_ratio, 2)} times the paper's share. In the paper's model GigE carries {_of_wire(paper, NETWORK, 1e9)} of its wire and 10GE,
by RDMA, {_of_wire(paper, FAST, 10e9)}; here TCP carries {_of_wire(model, NETWORK, 1e9 / study.dilation)} of both.

Not kept are RDMA, the queues of a switch, what TCP costs a node's processor (here no node pays for it), and the clocks inside TCP,
which are not slowed down.
"""


def _of_wire(cluster: Cluster, network: str, rate_bit_s: float) -> str:
    return percent(8 * cluster.byte_s[network] / rate_bit_s, 0)


def _balanced_latency(study: ScaleModel) -> float:
    """The latency [s] at which messages would cost the share that they cost in the paper, mean of the cases."""
    ratio = (study.cases.model_messages / study.cases.paper_messages).mean()
    return study.model.latency_s[NETWORK] / ratio


def _rows(study: ScaleModel) -> str:
    return "\n".join(
        f"| {it.nodes} | {it.P} × {it.Q} | {it.paper_N} | {it.model_N} | {number(it.paper_bytes)} | {number(it.model_bytes)} | "
        f"{fixed(it.bytes_ratio, 3)} | {number(it.paper_messages)} | {number(it.model_messages)} |"
        for it in study.cases.itertuples()
    )
