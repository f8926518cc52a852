"""The messages that HPL sends: how many of which size, over the nodes; and whether the simulation's take HPL's own time."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import attributes, paths, style
from analysis.derive import at_only_level, over_factors
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import Finding, known, of_estimate, origin
from analysis.attributes import short_names
from analysis.wording import byte_range, byte_size, counted, fixed, number, percent

# B: messages below this are called small; it has to be the least size of a class. About what a GigE link
# transfers in the latency of a message.
SMALL = 4096
EVERY = 5  # classes of sizes from one tick to the next: a factor of 32
NO_MESSAGES = "**What HPL sends cannot be said**: no run counted its messages."
FIGURES = {"payload": ("hpl_paper", "hpl_payload")}
OPENS = {"hpl_payload": {"y": "payload_messages", "x": "size", "series": "nodes"}}
TRUST = paths.REFERENCE / "trust.csv"


@dataclass(frozen=True)
class Profile:
    """What all ranks of one campaign's runs on `network` sent.

    `messages` [1] and `bytes` [B] are over (nodes, size); dim size is the least size [B] of each class, which
    reaches up to the next. Node counts without a count are left out, and are `missing`. `summary` is over
    (nodes): what `summarise` gives, the settings N, P and Q, and `bytes_sent` [B] by all nodes' interfaces. `same` is
    whether every other network of the campaign had the same messages, None where there is nothing to compare.
    """

    dataset: xr.Dataset
    evidence: str
    network: str
    messages: xr.DataArray
    bytes: xr.DataArray
    summary: xr.Dataset
    missing: tuple[int, ...]
    same: bool | None

    @property
    def shown(self) -> list[int]:
        """The fewest, the middle and the most nodes, as far as they differ."""
        nodes = self.messages.nodes.values.tolist()
        return sorted({nodes[0], nodes[len(nodes) // 2], nodes[-1]})

    def class_of(self, least: float) -> tuple[float, float]:
        """The sizes [B] from the least of a class to the least of the next; the last class has no end."""
        sizes = self.messages["size"].values
        above = sizes[sizes > least]
        return float(least), float(above[0]) if above.size else np.inf


@dataclass(frozen=True)
class Payload:
    """The emulated campaign's dataset, and a profile for each campaign that has one: simulated first, then emulated.

    `again` is whether a run of today sent the very same messages as the emulation, None where they cannot be compared.
    """

    dataset: xr.Dataset
    profiles: tuple[Profile, ...]
    again: bool | None = None


@dataclass(frozen=True)
class Trust:
    """The simulation beside HPL itself on modelled networks, where nothing but messages takes time.

    `cases` has a row for each: network, P, Q, N, NB, BCAST and DEPTH as in HPL.dat, the times `unmocked_s` of HPL itself
    and `simulated_s`, and `difference` [1], the latter over the former less one.
    """

    cases: pd.DataFrame

    @property
    def largest(self) -> float:
        """The largest difference, without its sign."""
        return float(self.cases.difference.abs().max())

    @property
    def same(self) -> int:
        """In how many cases both print the same rate."""
        return int((self.cases.difference == 0).sum())


def analyse(
    hpl_payload: xr.Dataset, hpl_paper: xr.Dataset | None = None, today: xr.Dataset | None = None
) -> Payload:
    """The profiles of two campaigns over interconnect and nodes, of one block each.

    The campaign's first interconnect is taken; `today` is another run of the first. Raises FalloffError when a dataset
    holds no HPL trial or has several blocks.
    """
    emulated, simulated, again = (
        None if dataset is None else _profile(dataset)
        for dataset in (hpl_payload, hpl_paper, today)
    )
    profiles = tuple(profile for profile in (simulated, emulated) if profile is not None)
    return Payload(hpl_payload, profiles, _again(emulated, again))


def summarise(messages: xr.DataArray, sizes: xr.DataArray) -> xr.Dataset:
    """A profile over (nodes, size) in numbers over (nodes).

    `messages` [1], `bytes` [B] and `mean_size` [B] of all; `median_size` [B] is the least size of the class
    that holds the median message, `half_bytes_size` [B] of that in which half of the bytes are reached from
    below; `small_messages` and `small_bytes` [1] are the shares of messages below SMALL.
    """
    small = messages["size"] < SMALL
    total, volume = messages.sum("size"), sizes.sum("size")
    return xr.Dataset(
        {
            "messages": total,
            "bytes": volume,
            "mean_size": volume / total,
            "median_size": _class_of_half(messages),
            "half_bytes_size": _class_of_half(sizes),
            "small_messages": messages.where(small).sum("size") / total,
            "small_bytes": sizes.where(small).sum("size") / volume,
        }
    )


def trust(file: Path = TRUST) -> Trust:
    """The cases of the file that runners/testbeds/trust.py writes."""
    described = tomllib.loads(paths.INTERCONNECTS.read_text(encoding="utf-8"))
    cases = pd.read_csv(file)
    cases["network"] = [described[name]["short"] for name in cases.network]
    cases["difference"] = cases.simulated_s / cases.unmocked_s - 1
    return Trust(cases)


def _profile(dataset: xr.Dataset) -> Profile | None:
    trial = xr.DataArray(np.arange(dataset.sizes["trial"]), dims="trial")
    laid_out = over_factors(dataset, index=trial, N=dataset.N, P=dataset.P, Q=dataset.Q)
    laid_out = laid_out.assign_attrs(dataset.attrs)
    runs = at_only_level(laid_out, "block").drop_vars("block")
    network = runs.interconnect.values[0]
    of_all = [_at(dataset[name], runs.index) for name in ("payload_messages", "payload_bytes")]
    counts = of_all[0].sel(interconnect=network).notnull().all("size")
    if not counts.any():
        return None
    chosen = {"interconnect": network, "nodes": counts}
    messages, sizes = (values.sel(chosen).drop_vars("interconnect") for values in of_all)
    run = runs.sel(chosen).drop_vars("interconnect")
    bytes_sent = _at(dataset.bytes_sent, run.index).sum("node", min_count=1)
    summary = summarise(messages, sizes).merge(run[["N", "P", "Q"]])
    return Profile(
        dataset=dataset,
        evidence=str(dataset.evidence.values[0]),
        network=network,
        messages=messages,
        bytes=sizes,
        summary=summary.assign(bytes_sent=bytes_sent),
        missing=tuple(runs.nodes.values[~counts.values].tolist()),
        same=_same(xr.concat(of_all, "quantity")),
    )


def _at(values: xr.DataArray, index: xr.DataArray) -> xr.DataArray:
    """Values over (trial, other) at the trials of an index over other dims; NaN where that is NaN."""
    plain = values.reset_coords(drop=True)
    return plain.isel(trial=index.fillna(0).astype(int)).where(index.notnull())


def _class_of_half(counts: xr.DataArray) -> xr.DataArray:
    """The class of sizes in which half of the counts is reached from below."""
    reached = counts.cumsum("size") >= counts.sum("size") / 2
    return counts["size"][reached.argmax("size")].drop_vars("size")


def _same(values: xr.DataArray) -> bool | None:
    """Whether values are the same on every interconnect, where all have any; None without a comparison."""
    compared = values.dropna("nodes")
    if compared.sizes["interconnect"] < 2 or not compared.sizes["nodes"]:
        return None
    return bool((compared == compared.isel(interconnect=0)).all())


def _again(reference: Profile | None, today: Profile | None) -> bool | None:
    """Whether two runs sent the same, where both counted; None without a comparison."""
    if reference is None or today is None or reference.network != today.network:
        return None
    pairs = [
        xr.align(getattr(reference, name), getattr(today, name)) for name in ("messages", "bytes")
    ]
    if not pairs[0][0].sizes["nodes"]:
        return None
    return all(bool((one == other).all()) for one, other in pairs)


def finding(study: Payload) -> str:
    """How small most messages are, and how large those that hold the bytes, in plain English (Markdown)."""
    if not study.profiles:
        return NO_MESSAGES
    apart = min(_apart(profile) for profile in study.profiles)
    headline = (
        f"**Half of HPL's messages are short; half of its bytes are in messages at least {fixed(apart, 0)} times as long.**"
        if apart > 1
        else "**Half of HPL's messages and half of its bytes are of about the same size.**"
    )
    again = {
        True: "Today's run sent exactly the same messages as the stored emulation.",
        False: "Today's run sent other messages than the stored emulation.",
    }
    sentences = [headline, *map(_of_profile, study.profiles), again.get(study.again, "")]
    return " ".join(filter(None, sentences))


def _apart(profile: Profile) -> float:
    """Least size of the messages that hold half of the bytes, over the largest of the shorter half of messages [1]."""
    most = profile.summary.isel(nodes=-1)
    return float(most.half_bytes_size) / profile.class_of(float(most.median_size))[1]


def _of_profile(profile: Profile) -> str:
    most, fewest = (profile.summary.isel(nodes=at) for at in (-1, 0))
    first, last, names = int(fewest.nodes), int(most.nodes), short_names(profile.dataset)
    where = f"On {last} {profile.evidence} nodes ({int(most.P)} × {int(most.Q)}, N = {int(most.N)})"
    small, share = percent(float(most.small_messages)), _little(float(most.small_bytes))
    sentences = [
        f"{where} {small} of the messages are below {byte_size(SMALL)} and hold {share} of the bytes (1 run, counted).",
        f"Half of the bytes are in messages of {byte_size(float(most.half_bytes_size))} or more.",
    ]
    if last > first:
        messages, volume = (
            number(float(most[name] / last / (fewest[name] / first)), 2)
            for name in ("messages", "bytes")
        )
        sentences.append(
            f"From {first} to {last} nodes a node's messages grow {messages}-fold and its bytes {volume}-fold."
        )
    others = [name for network, name in _networks(profile).items() if network != profile.network]
    if profile.same is not None and others:
        which = "exactly the same" if profile.same else "other"
        sentences.append(
            f"On {' and '.join(others)} HPL sends {which} messages as on {names[profile.network]}."
        )
    carried = float(most.bytes_sent / most.bytes)
    if profile.evidence != "simulated" and np.isfinite(carried):
        sentences.append(
            f"The nodes' interfaces sent {number(carried)} times these bytes, with headers."
        )
    if profile.missing:
        sentences.append(f"Without a count: {', '.join(map(str, profile.missing))} nodes.")
    return " ".join(sentences)


def _networks(profile: Profile) -> dict[str, str]:
    names = short_names(profile.dataset)
    planned = attributes.factors(profile.dataset)["interconnect"]
    return {network: names[network] for network in planned}


def _little(share: float) -> str:
    return "less than 0.01 %" if 0 < share < 1e-4 else percent(share, 2)


def findings(study: Payload) -> Iterator[Finding]:
    """The shares of small messages, and of the bytes in them, on the most nodes of every profile."""
    for profile in study.profiles:
        most, source = profile.summary.isel(nodes=-1), origin("hpl_messages", profile.dataset)
        where = f"below {SMALL} B on {int(most.nodes)} nodes"
        statements = {
            "small_messages": f"the share of HPL's messages {where}",
            "small_bytes": f"the share of HPL's bytes in messages {where}",
        }
        for name, statement in statements.items():
            ends, further = (np.nan, np.nan), {"n": 1, "n_of": "run"}
            yield of_estimate(
                source, statement, "share", "1", float(most[name]), ends, "", **further
            )


def trust_finding(study: Trust) -> str:
    """How far the simulation's time is off HPL's own where only messages take time, in plain English (Markdown)."""
    cases = study.cases
    largest = cases.loc[cases.difference.abs().idxmax()]
    off = percent(study.largest, 2)
    sentences = [
        f"**With computation switched off, the simulation and HPL itself differ by at most {off}**",
        f"({counted(len(cases), 'case')}, simulated evidence).",
        f"In {study.same} of them both print the same rate, to its last digit.",
    ]
    if study.largest:
        sentences.append(
            f"The simulation takes {'less' if largest.difference < 0 else 'more'} time in the worst case: {largest.P} × {largest.Q} "
            f"nodes on {largest.network}, NB = {largest.NB}, BCAST = {largest.BCAST}, DEPTH = {largest.DEPTH}."
        )
    return " ".join(sentences)


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
            "Histogram of HPL's message sizes by number and by bytes, for a few node counts",
            "A step is a class of sizes, from a power of two up to the next.",
            rests_on=FIGURES["payload"],
        )
    }


def shares_by_size(study: Payload) -> Figure:
    """Share of messages (above) and of bytes (below) [%] by size; a column for each kind of evidence.

    The fewest, the middle and the most nodes of each campaign are shown.
    """
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 4.4))
        panels = figure.subplots(2, len(study.profiles), sharex=True, sharey="row", squeeze=False)
        for column, profile in zip(panels.T, study.profiles):
            _steps(column[0], profile, profile.messages)
            _steps(column[1], profile, profile.bytes)
            column[0].set_title(profile.evidence)
            column[0].legend(loc="upper right", handlelength=2.6)
            column[1].set_xlabel("size of a message [B]")
            column[1].tick_params(axis="x", labelsize=8)
        _size_axis(panels[1, 0], study)
        panels[0, 0].set_ylabel("share of messages [%]")
        panels[1, 0].set_ylabel("share of bytes [%]")
        return figure


def _steps(axes: Axes, profile: Profile, counts: xr.DataArray) -> None:
    """A step for each class of sizes, in its place among all classes, for some of the node counts."""
    share = 100 * counts / counts.sum("size")
    edges = np.arange(share.sizes["size"] + 1)
    for darkness, nodes in enumerate(profile.shown, start=4 - len(profile.shown)):
        look = style.look(f"nodes {darkness}")
        marks = {"color": look.color, "linestyle": look.line, "label": f"{nodes} nodes"}
        axes.stairs(share.sel(nodes=nodes).values, edges, linewidth=1.5, **marks)
    axes.set_ylim(0, None)


def _size_axis(axes: Axes, study: Payload) -> None:
    """Classes of sizes as far as any campaign has messages of them, named by their least bytes."""
    sent = [profile.messages.sum("nodes") for profile in study.profiles]
    used = np.flatnonzero(xr.concat(sent, "profile").sum("profile").values > 0)
    first, last, sizes = used[0], used[-1], sent[0]["size"].values
    places = [place for place in range(1, len(sizes), EVERY) if first <= place <= last + 1]
    axes.set_xticks(places, [byte_size(int(sizes[place])) for place in places])
    axes.set_xlim(first - 0.5, last + 1.5)


def messages_table(study: Payload) -> Table | None:
    """The profiles in numbers on the figure's node counts."""
    if not study.profiles:
        return None
    rows = [
        (profile.evidence, *_row(profile, nodes))
        for profile in study.profiles
        for nodes in profile.shown
    ]
    evidence = " and ".join(profile.evidence for profile in study.profiles)
    return _table("payload", "Evidence", "l", rows, "HPL's messages in numbers", evidence)


def cases_table(study: Payload) -> Table | None:
    """The profile with the most node counts, on all of them."""
    if not study.profiles:
        return None
    profile = max(study.profiles, key=lambda each: each.messages.sizes["nodes"])
    rows = [
        (str(int(profile.summary.N.sel(nodes=nodes))), *_row(profile, nodes))
        for nodes in profile.messages.nodes.values.tolist()
    ]
    network = short_names(profile.dataset)[profile.network]
    caption = f"HPL's messages over {network} in all {profile.evidence} cases"
    return _table(f"payload-{profile.evidence}", "N", "r", rows, caption, profile.evidence)


def _row(profile: Profile, nodes: int) -> tuple[str, ...]:
    at = profile.summary.sel(nodes=nodes)
    return (
        f"{nodes} ({int(at.P)} × {int(at.Q)})",
        number(float(at.messages) / nodes),
        byte_size(float(at.bytes) / nodes),
        byte_range(profile.class_of(float(at.median_size))),
        byte_size(float(at.half_bytes_size)),
        f"{percent(float(at.small_messages))} ({_little(float(at.small_bytes))})",
    )


def _table(label: str, first: str, align: str, rows: list, caption: str, evidence: str) -> Table:
    columns = (
        first,
        "Nodes (grid)",
        "Messages a node",
        "Bytes a node",
        "Median message",
        "Half of the bytes from",
        f"Below {byte_size(SMALL)} (their bytes)",
    )
    caption += (
        ". Sizes are classes: half of the bytes or more are in messages of the size given or above. Nodes in a single row "
        "(1 × Q) swap no rows, which elsewhere are many short messages"
    )
    basis = Basis(evidence, 1, "counts without an interval", "run")
    return Table(label, columns, f"{align}lrrlrr", rows, caption, basis)


def trust_table(study: Trust) -> Table:
    """The largest difference on each process grid, without and with look-ahead."""
    off = study.cases.assign(off=100 * study.cases.difference.abs())
    depths = off.DEPTH.unique().tolist()
    rows = []
    for (P, Q), grid in off.groupby(["P", "Q"], sort=False):
        largest = grid.groupby("DEPTH").off.max().reindex(depths)
        rows.append((f"{P} × {Q}", *(fixed(known(value), 2) for value in largest), str(len(grid))))
    columns = ("Grid", *(f"DEPTH = {depth} [%]" for depth in depths), "Cases")
    levels = {name: study.cases[name].unique() for name in ("network", "N", "NB", "BCAST")}
    varied = "; ".join(f"{name} {', '.join(map(str, of))}" for name, of in levels.items())
    caption = (
        "Largest difference between the simulation's time and HPL's own, without look-ahead (DEPTH = 0) and with it. Varied: "
        f"{varied}"
    )
    align = "l" + "r" * (len(depths) + 1)
    return Table("trust", columns, align, rows, caption, Basis("simulated"))
