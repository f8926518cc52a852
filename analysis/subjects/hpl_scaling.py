"""The laws of HPL's efficiency over nodes: which one each network follows, what they predict, and
the links' rates that they tell.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
import xarray as xr

from analysis.dataset import derive
from analysis.dataset.accessor import UNLIMITED
from analysis.dataset.wire import wire_limit
from analysis.laws.scaling_laws import Law, Laws, fit_each, held_out, with_settings
from analysis.statements import exhibit
from analysis.statements.statement import Statement, within
from analysis.subjects import hpl_points
from analysis.wording import UNKNOWN, fixed, listed, number, percent
from runners.records.record import FalloffError

OF_MESSAGES = "hpl_messages"
NAMES = {
    "constant": "constant",
    "amdahl": "Amdahl",
    "universal_scalability": "universal scalability",
    "power_law": "power law",
    OF_MESSAGES: "HPL's messages",
}
CALLED = {  # in sentences
    "constant": "a constant",
    "amdahl": "Amdahl's law",
    "universal_scalability": "the universal scalability law",
    "power_law": "a power law",
    OF_MESSAGES: "the law of HPL's messages",
}
SEEN = 0.5  # a law is fitted to at most this share of the most nodes, and predicts these
NO_LAW = "none follows the points, or they are at too few node counts to choose between laws"
GOOD = 0.05  # a prediction, or a link's rate from HPL's times, is right within this
LINK_BOUND = 0.97  # from this share of the wire limit on, the link is the limit


def laws_of(points: xr.Dataset) -> Laws:
    """Every law fitted to the efficiency over nodes of each known network; `points` is from
    `hpl_points.points`.
    """
    return fit_each(_efficiency(points))


def _efficiency(points: xr.Dataset) -> xr.DataArray:
    """The share, with what the law of HPL's messages needs where that is known and the same in all
    runs on one node count.
    """
    try:
        share = with_settings(points)
    except FalloffError:
        share = points.share
    return share.sel(interconnect=share.interconnect != "").dropna("interconnect", how="all")


def followed(laws: Laws) -> dict[str, Law]:
    """The law with the most weight among those that follow a network's data, by network; networks
    that follow none are left out."""
    best = {network: laws.best(network) for network in laws.by_level}
    return {network: law for network, law in best.items() if law}


def predictions(points: xr.Dataset) -> pd.DataFrame:
    """What each law, fitted to at most half of the most nodes, is off on these: `error`, `low`,
    `high` [1] and `blocks`, with `seen` and `most` nodes, by (interconnect, law); empty where there
    are too few node counts."""
    columns = ["interconnect", "law", "error", "low", "high", "blocks", "seen", "most"]
    efficiency = _efficiency(points)
    counts = efficiency.dropna("nodes", how="all").nodes.values
    most = int(max(counts, default=0))
    seen = int(max((n for n in counts if n <= SEEN * most), default=0))
    try:
        errors = held_out(efficiency, seen, most).assign(seen=seen, most=most)
    except FalloffError:
        errors = pd.DataFrame(columns=columns)
    return errors.set_index(columns[:2])


def foretold(points: xr.Dataset, laws: Laws, predicted: pd.DataFrame) -> Iterator[Statement]:
    """Is the law that a network follows right within GOOD on nodes that it was not fitted to?
    `predicted` is from `predictions`."""
    names = points.falloff.names
    for network, law in followed(laws).items():
        if (network, law.model.name) in predicted.index:
            row = predicted.loc[network, law.model.name]
            called, count = CALLED[law.model.name], derive.counted_in(points)
            subject = f"{called[0].upper()}{called[1:]}, fitted to {row.seen} {count} or fewer, foretells {names[network]} on {row.most}"
            error = (row.error, row.low, row.high)
            about = {"quantity": "error", "margin": GOOD, "primary": network != UNLIMITED}
            about |= hpl_points.interval_fields(points)
            yield within(points, subject, error, int(row.blocks), -GOOD, GOOD, **about)


def recovered_link_rates(points: xr.Dataset, laws: Laws) -> Iterator[Statement]:
    """Do HPL's times alone tell the rate of each network's links within GOOD? By the law of HPL's
    messages, over the rate of payload that was set; networks without a set rate, or whose times do
    not follow the law, are left out."""
    names = points.falloff.names
    for network, described in points.falloff.networks.items():
        law = laws[network, OF_MESSAGES] if network in laws.by_level else None
        beta = law.parameters().get("beta") if law and law.follows else None
        # Where beta is not above 0 the time of bytes cannot be told from none.
        byte = 8 / wire_limit(described.rate_bit_s, described.mtu)
        if np.isnan(byte) or not beta or beta[0] <= 0:
            continue
        (estimate, low, high), blocks = beta, law.blocks.blocks
        ends = (byte / high, byte / low) if blocks > 1 and low > 0 else (np.nan, np.nan)
        subject = f"HPL's times alone tell the rate of {names[network]}'s links"
        about = {"quantity": "ratio", "margin": GOOD, **hpl_points.interval_fields(points)}
        rate = byte / estimate, *ends
        yield within(points, subject, rate, blocks, 1 - GOOD, 1 + GOOD, **about)


def followed_in_words(points: xr.Dataset, best: Mapping[str, Law]) -> str:
    """Which law each network follows, in a sentence (Markdown); `best` is from `followed`."""
    names = points.falloff.names
    networks: dict[str, list[str]] = {}
    for network, law in best.items():
        networks.setdefault(CALLED[law.model.name], []).append(names[network])
    if not networks:
        return f"**Which law the efficiency follows cannot be said**: {NO_LAW}."
    laws = "; ".join(f"{law} for {listed(who)}" for law, who in networks.items())
    return f"**The law that the points support best**: {laws}."


def laws_table(points: xr.Dataset, laws: Laws, predicted: pd.DataFrame) -> exhibit.Table:
    """Every law of every network: its weight, its parameters, how far it misses, and what it
    predicts.
    """
    names, rows, count = points.falloff.names, [], derive.counted_in(points)
    for network, fits in laws.by_level.items():
        for law in fits:
            error = predicted.error.get((network, law.model.name), np.nan)
            rows.append(
                (
                    names[network],
                    NAMES[law.model.name],
                    fixed(law.weight, 2),
                    parameters_in_words(law),
                    percent(law.farthest),
                    percent(error),
                    "not fitted" if law.refused else law.verdict,
                )
            )
    seen, most = (
        (predicted.seen.iloc[0], predicted.most.iloc[0]) if len(predicted) else ("half", "the most")
    )
    slowed = points.falloff.testbed.node.get("dilation")
    scale = f" Times are those of the scale model, slowed {slowed:g} times." if slowed else ""
    columns = (
        "Network", "Law", "AICc weight", "Parameters (95 % interval)", "Largest miss", f"Error on {most} {count}", "Verdict"
    )  # fmt: skip
    return exhibit.Table(
        exhibit.label_of("laws", points),
        columns,
        "llrlrrl",
        rows,
        "The laws of the efficiency over nodes. A law that misses its data, beyond the scatter of the means and 2 %, is not drawn. "
        f"The error on {most} {count} is of a fit to at most {seen}.{scale}",
        hpl_points.basis(points),
        widths=(9, 15, 7, 33, 8, 9, 12),
    )


def parameters_in_words(law: Law) -> str:
    """Every parameter with its interval; a message's time in us, inverse bandwidth as a rate in
    MB/s.
    """
    words = []
    for name, (estimate, low, high) in law.parameters().items():
        ends, unit = (low, high), ""
        if law.model.name == OF_MESSAGES and name == "beta":
            if estimate <= 0:
                continue
            name, unit, estimate = "1/β", " MB/s", 1e-6 / estimate
            ends = (1e-6 / high, 1e-6 / low) if low > 0 else (np.nan, np.nan)
        elif law.model.name == OF_MESSAGES:
            name, unit, estimate, ends = "α", " us", 1e6 * estimate, (1e6 * low, 1e6 * high)
        interval = (
            f" ({' to '.join(number(end) for end in ends)})" if np.isfinite(ends).all() else ""
        )
        words.append(f"{name} {number(estimate)}{unit}{interval}")
    return ", ".join(words) or UNKNOWN


def networks(dataset: xr.Dataset) -> pd.DataFrame:
    """One row for each interconnect of the survey, in the campaign's order.

    Columns: `goodput` [bit/s], the median over the links' own medians; `wire_limit` [bit/s], NaN if
    it is unshaped; and `limit`: `link-bound` if every measured link reaches 0.97 of the wire limit,
    else `host-bound`; empty if none was measured.
    """
    surveyed = dataset.role.values == "survey"
    keys = ["interconnect", "sender", "receiver"]
    trials = pd.DataFrame({name: dataset[name].values[surveyed] for name in (*keys, "goodput")})
    links = trials.groupby(keys).goodput.median().groupby("interconnect").agg(["median", "min"])
    limits = {
        name: wire_limit(network.rate_bit_s, network.mtu)
        for name, network in dataset.falloff.networks.items()
    }
    table = links.reindex([name for name in limits if name in links.index])
    limit = table.index.map(limits).astype(float)
    bound = np.where(table["min"] >= LINK_BOUND * limit, "link-bound", "host-bound")
    named = np.where(table["min"].isna(), "", bound)
    return pd.DataFrame({"goodput": table["median"], "wire_limit": limit, "limit": named})
