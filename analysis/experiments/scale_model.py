"""The scale model of the paper's cluster: what it keeps of each of the paper's 15 cases, and what it does not.

HPL computes 2 N^3 / (3 n) flop a node. A node sends and receives of the order of N^2 (1/P + 1/Q) matrix elements of
8 bytes, and of the order of N messages. With F flop/s a node, links of BW B/s and a latency of alpha s, over the time of
the computation these become the shares n F / (BW N) (1/P + 1/Q) [flop/B] of bytes and alpha n F / N^2 [flop] of messages,
up to constants that are the same for every cluster. Two clusters with the same shares lose the same part of their time.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from analysis import published
from analysis.paths import CAMPAIGNS, TESTBEDS
from analysis.statistics.judgement import judge
from analysis.wording import counted, fixed, micro, number, percent

NETWORK, FAST = "gige", "10gige"
OPEN = "open"  # the answer where an interval is neither inside nor beyond its margin
GIGE, TEN_GIGE = 1e9, 10e9  # bit/s on the paper's wires
# The simulation of the model has its payload rates and latency, with their sources.
TESTBED = {"paper": "smith", "model": "scale_model_simulated"}


@dataclass(frozen=True)
class Cluster:
    """What the balance of a cluster follows from: a node's rate `flop_s` [flop/s], and by network what a link carries,
    `byte_s` [B/s of payload], the one-way time of a short message, `latency_s` [s], and its `longest_s` [s] under load."""

    flop_s: float
    byte_s: dict[str, float]
    latency_s: dict[str, float]
    longest_s: dict[str, float]


@dataclass(frozen=True)
class ScaleModel:
    """The paper's cluster and its model.

    `cases` has a row for each of the paper's: `nodes`, `P`, `Q`, the order `N` of both matrices (`paper_N`, `model_N`),
    the shares of bytes on GigE [flop/B], `paper_bytes` and `model_bytes`, and `bytes_ratio`, model over paper; the shares
    of messages [flop] on GigE, `paper_messages`, `model_messages` and `messages_ratio`; and the same of 10GE, `fast_`
    before each. `dilation` is how many times slower than the paper's everything is.
    """

    paper: Cluster
    model: Cluster
    cases: pd.DataFrame
    dilation: float


def judged_ratios(
    log_ratio: xr.DataArray,
    margins: Mapping[str, float],
    evidence: str,
    one_sided: float,
    answers: Mapping[str, str],
) -> pd.DataFrame:
    """A table of log-ratios over (block, interconnect, ...), indexed by their other dims: are they 1?

    Columns: `ratio` (geometric mean), `low`, `high`, the t interval of this one-sided level, `blocks`, the `margin` of the
    interconnect [1], and the `answer`: that of a judged fall in the words of `answers`, or OPEN.
    """
    log_ratio = log_ratio.reset_coords(drop=True).transpose("block", "interconnect", "nodes", ...)
    dims = log_ratio.dims[1:]
    stacked = log_ratio.stack(point=dims).transpose("point", "block")
    rows = []
    for place, values in zip(stacked.point.values, stacked.values):
        margin = margins[place[0]]
        fall = judge(values, margin, evidence, one_sided)
        low, high = fall.interval or (np.nan, np.nan)
        ratio = np.nan if fall.fall is None else 1 - fall.fall
        answer = answers.get(fall.answer, OPEN)
        rows.append((*place, ratio, 1 - high, 1 - low, fall.blocks, margin, answer))
    columns = [*dims, "ratio", "low", "high", "blocks", "margin", "answer"]
    return pd.DataFrame(rows, columns=columns).set_index([*dims])


def analyse() -> ScaleModel:
    """Both shares of the paper's cases in both scales, from the descriptions in data/."""
    clusters = {scale: _cluster(testbed) for scale, testbed in TESTBED.items()}
    cases = published.table("smith_table1").sort_values("nodes", ignore_index=True)
    cases = cases.rename(columns={"N": "paper_N"})[["nodes", "P", "Q", "paper_N"]]
    levels = _toml(CAMPAIGNS / "hpl_table1.toml")["levels"]["nodes"]
    cases["model_N"] = [levels[str(n)]["N"] for n in cases.nodes]
    for before, network in (("", NETWORK), ("fast_", FAST)):
        for scale, cluster in clusters.items():
            rate, N = cases.nodes * cluster.flop_s, cases[f"{scale}_N"]
            of_grid = (1 / cases.P + 1 / cases.Q) / N
            cases[f"{before}{scale}_bytes"] = rate * of_grid / cluster.byte_s[network]
            cases[f"{before}{scale}_messages"] = rate * cluster.latency_s[network] / N**2
        for kind in ("bytes", "messages"):
            of_model, of_paper = (cases[f"{before}{scale}_{kind}"] for scale in ("model", "paper"))
            cases[f"{before}{kind}_ratio"] = of_model / of_paper
    dilation = _toml(TESTBEDS / "scale_model.toml")["node"]["dilation"]
    return ScaleModel(**clusters, cases=cases, dilation=dilation)


def _cluster(testbed: str) -> Cluster:
    described = _toml(TESTBEDS / f"{testbed}.toml")
    networks = {name: described["network"][name] for name in (NETWORK, FAST)}
    return Cluster(
        flop_s=described["rates"]["dgemm_flop_s"]["value"],
        byte_s={name: link["bandwidth"]["value"] for name, link in networks.items()},
        latency_s={name: link["latency"]["value"] for name, link in networks.items()},
        longest_s={name: link["latency"]["high"] for name, link in networks.items()},
    )


def _toml(file) -> dict:
    return tomllib.loads(file.read_text(encoding="utf-8"))


def method(study: ScaleModel) -> str:
    """How the scale model works, Markdown: four sentences, and what a network costs."""
    paper, model, cases = study.paper, study.model, study.cases
    smaller = float((cases.paper_N / cases.model_N).median())
    shorter = float((cases.paper_N**3 / paper.flop_s / (cases.model_N**3 / model.flop_s)).median())
    slow, fast = (f"{number(rate / study.dilation / 1e6)} Mbit/s" for rate in (GIGE, TEN_GIGE))
    return f"""1. Each node computes for real, and then sleeps until a node of {number(model.flop_s / 1e6, 2)} Mflop/s would be done.
2. Matrices are {number(smaller, 2)} times smaller in each dimension than the paper's.
3. Links are {fixed(study.dilation, 0)} times slower: {slow} stand for GigE, {fast} for 10GE.
4. A run takes 1/{number(shorter, 2)} of the paper's time, and all nodes fit on one machine.

Two shares of the time decide what a network costs: that of bytes and that of messages [@hpl]. For $n$ nodes of $F$ flop/s, links of $BW$ bytes/s and a matrix of order $N$ on a $P \\times Q$ grid, the share of bytes goes as
$\\frac{{n F}}{{BW\\,N}} \\left(\\frac{{1}}{{P}} + \\frac{{1}}{{Q}}\\right)$. The share of messages, each of which takes $\\alpha$ seconds, goes as
$\\alpha n F / N^2$."""


def finding(study: ScaleModel) -> str:
    """What the model keeps of the paper's cluster and what it does not, in plain English (Markdown)."""
    cases, paper, model = study.cases, study.paper, study.model
    off = (cases.bytes_ratio - 1).abs().max()
    fast_bytes = cases.fast_bytes_ratio.mean()
    messages, fast_messages = cases.messages_ratio.mean(), cases.fast_messages_ratio.mean()
    sentences = [
        f"**The scale model keeps the share of time that bytes cost on GigE**, within {percent(off)} in all "
        f"{counted(len(cases), 'case')} of the paper, if its GigE carries what is assumed.",
        f"On 10GE bytes cost {fixed(fast_bytes, 2)} times the paper's share.",
        f"**It does not keep the share of messages**: {number(messages, 2)} times the paper's on GigE, "
        f"{number(fast_messages, 2)} times on 10GE.",
        f"A message takes {micro(model.latency_s[NETWORK])} here between one pair of nodes; the paper's takes "
        f"{micro(paper.latency_s[NETWORK])} on GigE and {micro(paper.latency_s[FAST])} on 10GE, but its runs are far longer.",
        f"When all nodes send at once it takes up to {micro(model.longest_s[FAST])} on 10GE, which makes the share "
        f"{number(fast_messages * model.longest_s[FAST] / model.latency_s[FAST], 2)} times the paper's.",
    ]
    if min(fast_bytes, messages, fast_messages) > 1:
        sentences.append("So the model makes the networks cost more than they did, 10GE above all.")
    return " ".join(sentences)
