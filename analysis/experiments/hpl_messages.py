"""The messages that HPL sends: how many of which size, over the nodes; and whether the simulation's take HPL's own time."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import paths, style
from analysis.derive import at_only_level, points
from analysis.exhibit import Basis, Exhibit
from analysis.findings import Finding, evidence_of, of_estimate, origin
from analysis.wording import byte_size, counted, number, percent

# B: messages below this are called small; it has to be the least size of a class. About what a GigE link transfers in
# the latency of a message.
SMALL = 4096
EVERY = 5  # classes of sizes from one tick to the next: a factor of 32
FIGURES = {"payload": ("hpl_paper", "hpl_payload")}
OPENS = {"hpl_payload": {"y": "payload_messages", "x": "size", "series": "nodes"}}
TRUST = paths.REFERENCE / "trust.csv"


@dataclass(frozen=True)
class Profile:
    """What all ranks of one campaign's runs on its first network sent.

    `sent` has the `messages` [1] and `bytes` [B] over (nodes, size) and the settings N, P and Q over (nodes); dim size
    is the least size [B] of each class, which reaches up to the next. Node counts without a count are left out, and are
    `missing`.
    """

    dataset: xr.Dataset
    sent: xr.Dataset
    missing: tuple[int, ...]

    @property
    def evidence(self) -> str:
        """The kind of the data."""
        return evidence_of(self.dataset)

    @property
    def most(self) -> xr.Dataset:
        """What `summarise` gives on the most nodes, with N, P and Q."""
        sent = self.sent.isel(nodes=-1)
        return summarise(sent.messages, sent.bytes).merge(sent[["N", "P", "Q"]])


@dataclass(frozen=True)
class Payload:
    """The emulated campaign's dataset, and a profile for each campaign that has one: simulated first, then emulated."""

    dataset: xr.Dataset
    profiles: tuple[Profile, ...]


def analyse(hpl_payload: xr.Dataset, hpl_paper: xr.Dataset | None = None) -> Payload:
    """The profiles of two campaigns over interconnect and nodes, of one block each.

    Raises FalloffError when a dataset holds no HPL trial or has several blocks.
    """
    campaigns = [dataset for dataset in (hpl_paper, hpl_payload) if dataset is not None]
    profiles = [_profile(dataset) for dataset in campaigns]
    return Payload(hpl_payload, tuple(each for each in profiles if each.sent.sizes["nodes"]))


def summarise(messages: xr.DataArray, sizes: xr.DataArray) -> xr.Dataset:
    """A profile over (size, ...) in numbers.

    `messages` [1] and `bytes` [B] of all; `median_size` [B] is the least size of the class that holds the median
    message, `half_bytes_size` [B] of that in which half of the bytes are reached from below; `small_messages` and
    `small_bytes` [1] are the shares of messages below SMALL.
    """
    small = messages["size"] < SMALL
    total, volume = messages.sum("size"), sizes.sum("size")
    return xr.Dataset(
        {
            "messages": total,
            "bytes": volume,
            "median_size": _class_of_half(messages),
            "half_bytes_size": _class_of_half(sizes),
            "small_messages": messages.where(small).sum("size") / total,
            "small_bytes": sizes.where(small).sum("size") / volume,
        }
    )


def _class_of_half(counts: xr.DataArray) -> xr.DataArray:
    """The class of sizes in which half of the counts is reached from below."""
    reached = counts.cumsum("size") >= counts.sum("size") / 2
    return counts["size"][reached.argmax("size")].drop_vars("size")


def _profile(dataset: xr.Dataset) -> Profile:
    planned = at_only_level(points(dataset), "block")
    is_run = (dataset.runner == "hpl") & (dataset.interconnect == planned.interconnect[0].item())
    ran = dataset.reset_coords().isel(trial=is_run.values)
    names = {"payload_messages": "messages", "payload_bytes": "bytes"}
    sent = ran[[*names, "N", "P", "Q", "nodes"]].rename(names).set_coords("nodes")
    sent = sent.swap_dims(trial="nodes").drop_vars("trial", errors="ignore").sortby("nodes")
    sent = sent.dropna("nodes", subset=["messages"])
    missing = tuple(n for n in planned.nodes.values.tolist() if n not in sent.nodes)
    return Profile(dataset, sent, missing)


def finding(study: Payload) -> str:
    """How small most messages are, and how large those that hold the bytes, in plain English (Markdown)."""
    if not study.profiles:
        return "**What HPL sends cannot be said**: no run counted its messages."
    return " ".join(map(_of_profile, study.profiles, ["**", *[""] * (len(study.profiles) - 1)]))


def _of_profile(profile: Profile, bold: str) -> str:
    """How many messages are small, and which hold the bytes; the first sentence between marks of `bold`."""
    most, missing = profile.most, ", ".join(map(str, profile.missing))
    n, little = int(most.nodes), float(most.small_bytes)
    small = "less than 0.01 %" if 0 < little < 1e-4 else percent(little, 2)
    return (
        f"{bold}On {n} {profile.evidence} nodes {percent(float(most.small_messages))} of HPL's messages are below "
        f"{byte_size(SMALL)} and hold {small} of the bytes; half of the bytes are in messages of "
        f"{byte_size(float(most.half_bytes_size))} or more{bold} (1 run, counted; {int(most.P)} × {int(most.Q)}, "
        f"N = {int(most.N)}). A node sends {number(float(most.messages) / n)} messages and "
        f"{byte_size(float(most.bytes) / n)}.{f' Without a count: {missing} nodes.' if missing else ''}"
    )


def findings(study: Payload) -> Iterator[Finding]:
    """The shares of small messages, and of the bytes in them, on the most nodes of every profile."""
    for profile in study.profiles:
        most, source = profile.most, origin("hpl_messages", profile.dataset)
        where = f"below {byte_size(SMALL)} ({counted(int(most.nodes), 'node')})"
        statements = {
            "small_messages": f"Most of HPL's messages are {where}",
            "small_bytes": f"Most of HPL's bytes are in messages {where}",
        }
        for name, statement in statements.items():
            share, is_planned = float(most[name]), name == "small_messages"
            further = {"n": 1, "n_of": "run", "answer": "yes" if share > 0.5 else "no"}
            counted_once = (source, statement, "share", "1", share, (np.nan, np.nan), "")
            yield of_estimate(*counted_once, primary=is_planned, **further)


def figures(study: Payload) -> dict[str, Exhibit]:
    """Messages and bytes by size."""
    if not study.profiles:
        return {}
    evidence = " and ".join(profile.evidence for profile in study.profiles)
    return {
        "payload": Exhibit(
            "payload",
            shares_by_size(study),
            "HPL's messages by size: share of messages (above) and of bytes (below)",
            Basis(evidence, 1, "counts without an interval", "run"),
            "Histogram of HPL's message sizes by number and by bytes",
            "A step is a class of sizes, from a power of two up to the next.",
            rests_on=FIGURES["payload"],
        )
    }


def shares_by_size(study: Payload) -> Figure:
    """Share of messages (above) and of bytes (below) [%] by size on the most nodes; a column a kind of evidence."""
    sent = [profile.sent.isel(nodes=-1) for profile in study.profiles]
    sizes = sent[0]["size"].values
    used = np.flatnonzero(sum(each.messages for each in sent) > 0)
    ticks = [at for at in range(1, len(sizes), EVERY) if used[0] <= at <= used[-1] + 1]
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 4.0))
        panels = figure.subplots(2, len(sent), sharex=True, sharey="row", squeeze=False)
        for column, profile, at in zip(panels.T, study.profiles, sent):
            for axes, counts in zip(column, (at.messages, at.bytes)):
                share = 100 * counts / counts.sum("size")
                axes.stairs(share.values, np.arange(len(sizes) + 1), color=style.INK, linewidth=1.5)
                axes.set_ylim(0, None)
            column[0].set_title(f"{profile.evidence}, {int(at.nodes)} nodes")
            column[1].set_xlabel("size of a message [B]")
            column[1].tick_params(axis="x", labelsize=8)
        panels[1, 0].set_xticks(ticks, [byte_size(int(sizes[at])) for at in ticks])
        panels[1, 0].set_xlim(used[0] - 0.5, used[-1] + 1.5)
        panels[0, 0].set_ylabel("share of messages [%]")
        panels[1, 0].set_ylabel("share of bytes [%]")
        return figure


def trust(file: Path = TRUST) -> pd.DataFrame:
    """The simulation beside HPL itself on modelled networks, where nothing but messages takes time.

    A row for each case of the file that tests/test_trust.py writes: network, P, Q, N, NB, BCAST and DEPTH as in
    HPL.dat, the times `unmocked_s` of HPL itself and `simulated_s`, and `difference` [1], the latter over the former
    less one.
    """
    cases = pd.read_csv(file)
    return cases.assign(difference=cases.simulated_s / cases.unmocked_s - 1)


def trust_finding(cases: pd.DataFrame) -> str:
    """How far the simulation's time is off HPL's own where only messages take time, in plain English (Markdown)."""
    largest = percent(cases.difference.abs().max(), 2)
    return (
        f"**With computation switched off, the simulation and HPL itself differ by at most {largest}** "
        f"({counted(len(cases), 'case')}, simulated evidence). In {int((cases.difference == 0).sum())} of them both "
        "print the same rate, to its last digit."
    )
