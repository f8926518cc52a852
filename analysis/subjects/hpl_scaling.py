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
from analysis.wording import UNKNOWN, fixed, is_known, listed, number, percent
from runners.records.record import FalloffError

OF_MESSAGES = "hpl_messages"
# In tables, and in sentences.
NAMES = {
    "constant": ("constant", "a constant"),
    "amdahl": ("Amdahl", "Amdahl's law"),
    "universal_scalability": ("universal scalability", "the universal scalability law"),
    "power_law": ("power law", "a power law"),
    OF_MESSAGES: ("HPL's messages", "the law of HPL's messages"),
}
SEEN = 0.5  # a law is fitted to at most this share of the most nodes, and predicts these
NO_LAW = "none follows the points, or they are at too few node counts to choose between laws"
GOOD = 0.05  # a prediction, or a link's rate from HPL's times, is right within this
LINK_BOUND = 0.97  # from this share of the wire limit on, the link is the limit


def laws_of(points: xr.Dataset) -> Laws:
    """Every law fitted to the efficiency over nodes of each known network; `points` is from
    `hpl_points.points`.
    """
    try:
        share = with_settings(points)
    except FalloffError:  # without settings the law of HPL's messages is refused
        share = points.share
    known = share.sel(interconnect=share.interconnect != "")
    return fit_each(known.dropna("interconnect", how="all"))


def followed(laws: Laws) -> dict[str, Law]:
    """The law with the most weight among those that follow a network's data, by network; networks
    that follow none are left out."""
    best = {network: laws.best(network) for network in laws.by_level}
    return {network: law for network, law in best.items() if law}


def predictions(laws: Laws) -> pd.DataFrame:
    """What each law, fitted to at most half of the most nodes, is off on these: `error`, `low`,
    `high` [1] and `blocks`, with `seen` and `most` nodes and why these are `beyond` what was seen,
    by (interconnect, law); empty where there are too few node counts."""
    columns = ["interconnect", "law", "error", "low", "high", "blocks", "beyond", "seen", "most"]
    most = max(laws.nodes(), default=0)
    seen = max((n for n in laws.nodes() if n <= SEEN * most), default=0)
    if not seen:
        return pd.DataFrame(columns=columns).set_index(columns[:2])
    return held_out(laws, seen, most).assign(seen=seen, most=most).set_index(columns[:2])


def foretold(points: xr.Dataset, laws: Laws, predicted: pd.DataFrame) -> Iterator[Statement]:
    """Is the law that a network follows right within GOOD on nodes that it was not fitted to?
    `predicted` is from `predictions`; a law of efficiency alone foretells nothing beyond what was
    seen."""
    names = points.falloff.names
    for network, law in followed(laws).items():
        if (network, law.model.name) in predicted.index:
            row = predicted.loc[network, law.model.name]
            if row.beyond and law.model.name != OF_MESSAGES:
                continue
            (_, called), count = NAMES[law.model.name], derive.counted_in(points)
            subject = (
                f"{called[0].upper()}{called[1:]}, fitted to {row.seen} {count} or fewer, "
                f"foretells {names[network]} on {row.most}"
                f"{', beyond what was seen' if row.beyond else ''}"
            )
            error = (row.error, row.low, row.high)
            about = {"quantity": "error", "margin": GOOD, "primary": network != UNLIMITED}
            about |= hpl_points.interval_fields(points)
            yield within(points, subject, error, int(row.blocks), -GOOD, GOOD, **about)


def not_foretold(predicted: pd.DataFrame) -> str:
    """Why the laws of efficiency alone predict nothing, in a sentence; empty if they do."""
    for row in predicted[predicted.beyond != ""].itertuples():
        return (
            f"Beyond what was seen no law of efficiency alone foretells {row.most} from {row.seen} "
            f"or fewer: {row.beyond}."
        )
    return ""


def recovered_link_rates(points: xr.Dataset, laws: Laws) -> Iterator[Statement]:
    """Do HPL's times alone tell the rate of each network's links within GOOD? By the law of HPL's
    messages, over the rate of payload that was set; networks without a set rate, or whose times do
    not follow the law, are left out."""
    names = points.falloff.names
    for network, described in points.falloff.networks.items():
        byte = 8 / wire_limit(described.rate_bit_s, described.mtu)
        law = laws[network, OF_MESSAGES] if network in laws.by_level else None
        told = law.parameters() if law and law.follows else {}
        if np.isnan(byte) or not told or not law or not law.blocks:
            continue
        (estimate, low, high), blocks = told["beta"], law.blocks.blocks
        if estimate <= 0:  # the time of bytes cannot be told from none
            continue
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
        networks.setdefault(NAMES[law.model.name][1], []).append(names[network])
    if not networks:
        return f"**Which law the efficiency follows cannot be said**: {NO_LAW}."
    laws = "; ".join(f"{law} for {listed(who)}" for law, who in networks.items())
    return f"**The law that the points support best**: {laws}."


def laws_table(points: xr.Dataset, laws: Laws, predicted: pd.DataFrame) -> exhibit.Table:
    """Every law of every network: its weight, its parameters, how far it misses, and what it
    predicts.
    """
    names, rows, count = points.falloff.names, [], derive.counted_in(points)
    for network, law in laws:
        error = predicted.error.get((network, law.model.name), np.nan)
        rows.append(
            (
                names[network],
                NAMES[law.model.name][0],
                fixed(law.weight, 2),
                parameters_in_words(law),
                percent(law.farthest),
                percent(error),
                "not fitted" if law.refused else law.verdict,
            )
        )
    seen, most = "half", "the most"
    if len(predicted):
        seen, most = predicted[["seen", "most"]].iloc[0]
    slowed = points.falloff.testbed.node.get("dilation")
    scale = f" Times are those of the scale model, slowed {slowed:g} times." if slowed else ""
    fitted = ("Network", "Law", "AICc weight", "Parameters (95 % interval)", "Largest miss")
    return exhibit.Table(
        exhibit.label_of("laws", points),
        (*fitted, f"Error on {most} {count}", "Verdict"),
        "llrlrrl",
        rows,
        "The laws of the efficiency over nodes. A law that misses its data, beyond the scatter of "
        "the means and 2 %, is not drawn. α and β are constants of the fit. "
        f"The error on {most} {count} is of a fit to at most {seen}.{scale}"
        f"{f' {refused}' if (refused := not_foretold(predicted)) else ''}",
        hpl_points.basis(points),
        widths=(9, 15, 7, 33, 8, 9, 12),
    )


def parameters_in_words(law: Law) -> str:
    """Every parameter with its interval, in the unit in which it is read."""
    words = []
    for name, ends in law.parameters().items():
        symbol, unit, value, low, high = law.model.readable(name, *ends)
        if is_known(value):
            interval = f" ({number(low)} to {number(high)})" if is_known(low, high) else ""
            words.append(f"{symbol} {number(value)} {unit}".rstrip() + interval)
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
