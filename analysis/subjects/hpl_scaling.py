"""HPL's efficiency over nodes: what the runs leave out, what their laws tell of the links, and what these foretell."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import xarray as xr

from analysis import derive, exhibit
from analysis.attributes import UNLIMITED, interconnects, names_in_text, testbed
from analysis.contrasts import differences, log_ratios
from analysis.derive import PACED
from analysis.fitting.scaling_laws import Law, Laws, fit_each, held_out, with_settings
from analysis.links import networks
from analysis.quoting import quoted
from analysis.statements import Statement, estimated, origin, within
from analysis.statistics import design as designs
from analysis.statistics.intervals import mean_over, ratios
from analysis.wire import wire_limit
from analysis.wording import UNKNOWN, counted, fixed, listed, number, percent
from runners.record import FalloffError

IDEAL = "ideal"  # simulated so that messages take no time
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


def method(points: xr.Dataset) -> str:
    """How HPL was run, by kind of evidence, and what *flat* is said of (Markdown); `points` is from `derive.points`."""
    name = quoted(testbed(points)["name"])
    sentences = [
        {
            "emulated": "Real HPL runs exchange real TCP messages between emulated nodes on one machine.",
            "simulated": f"HPL's own code runs in a simulation of the cluster {name}.",
        }.get(points.evidence.item(), f"HPL runs on the nodes of the cluster {name}.")
    ]
    if points.share.attrs["of"] == PACED:
        sentences.append(
            "Each node is paced: it computes for real and then sleeps until a slower node would be done. *Efficiency* is "
            "HPL's rate over the sum of these slower rates. Nodes, links and matrices are scaled down together, so that "
            'bytes cost as large a share of the time as in the paper (section "The scale model").'
        )
    if designs.read(points).control == UNLIMITED:
        sentences.append("*Unlimited links* have no set rate, and show what HPL loses without one.")
    sentences.append(
        "*Flat* and *falls off* are said of one network's rate over another's: a fall of 10 % from 2 to 8 nodes means that "
        "this ratio is 10 % smaller on 8 nodes."
    )
    return " ".join(sentences)


def limits(points: xr.Dataset, simulated: xr.DataArray | None = None) -> str:
    """What the runs do not say, by kind of evidence, where more nodes were `simulated` or not (Markdown)."""
    of_evidence = {
        "emulated": "No switch of this emulated network has queues of its own, there is no RDMA, and TCP costs its nodes no processor time.",
        "simulated": "The simulated network is a fluid: nothing is lost, repeated or queued.",
    }.get(points.evidence.item(), "What was measured holds for this cluster, its MPI and its BLAS.")
    beyond = "" if simulated is None else ", but for what the laws foretell beside the simulation"
    return f"**What it does not say.** {of_evidence} Nothing here holds for more nodes than were run{beyond}."


def levels(points: xr.Dataset) -> str:
    """HPL's efficiency on the fewest nodes with a network and on the most, network by network, in a sentence; empty where it
    is not known on both."""
    names, first = names_in_text(points), designs.read(points).baseline_nodes
    means = ratios(np.log(points.share)).ratio
    last = int(means.nodes.max())
    ends = means.reindex(nodes=[first, last]).dropna("interconnect")
    if not ends.size or first == last:
        return ""
    reached: list[str] = []
    for name, (start, end) in zip(ends.interconnect.values.tolist(), 100 * ends.values):
        if reached:
            reached.append(f"on {names[name]} from {fixed(start, 1)} to {percent(end / 100)}")
        else:
            reached.append(
                f"on {names[name]} HPL's efficiency goes from {fixed(start, 1)} % on {counted(first, 'node')} to {percent(end / 100)} on {last}"
            )
    text = "; ".join(reached)
    return f"{text[0].upper()}{text[1:]}."


def on_one_node(falls: Sequence[Statement]) -> str:
    """What the negative control says, in a sentence: the networks must not differ where no network is used."""
    controls = [one for one in falls if one.quantity == "ratio"]
    failed = next((one for one in controls if one.answer == "no"), None)
    if failed:
        return (
            f"**No verdict is given, because the negative control failed.** {failed.subject}: no, its rate is "
            f"{fixed(failed.estimate, 3)} times as large."
        )
    if any(one.interval is None or one.answer != "same" for one in controls):
        return "Whether the networks are equally fast on one node, where none is used, is open."
    if not controls:
        return ""
    off = max(abs(end - 1) for one in controls for end in one.interval or ())
    return f"On one node, where no network is used, the networks are equally fast within {percent(off)}."


def left_out(points: xr.Dataset, falls: Sequence[Statement]) -> str:
    """The number of invalid runs, and by how much the planned falls change if every valid run counts; empty if no block is
    left out."""
    reasons, blocks = points.reason, points.sizes["block"]
    invalid = int((~reasons.isin(["", "not run"])).sum())
    primary = [one for one in falls if one.primary]
    judged = max((one.n for one in primary), default=0)
    if judged == blocks and not invalid:
        return ""
    sentences = []
    if invalid:
        verb = "is" if invalid == 1 else "are"
        why = "" if judged == blocks else " A block with an invalid run is left out."
        sentences.append(f"{invalid} of {reasons.size} runs {verb} invalid.{why}")
    sentences.append(f"The verdicts rest on {judged} of the {blocks} blocks.")
    changes = []
    for planned, one in zip(designs.read(points).primary, primary):
        if one.estimate is not None:
            every = differences(
                log_ratios(points, planned.of, planned.against), planned.start, planned.end
            ).mean()
            changes.append(abs(one.estimate + float(np.expm1(every))))
    if changes:
        change = fixed(np.ceil(1000 * max(changes)) / 10, 1)
        sentences.append(
            f"With every valid run no fall changes by more than {change} percentage points."
        )
    return " ".join(sentences)


def host_bound(runs: xr.Dataset) -> str:
    """The networks whose links the machine could not fill, from the testbed's survey of itself; empty if there is none."""
    names, surveyed = names_in_text(runs), networks(runs)
    slow = surveyed[(surveyed.limit == "host-bound") & surveyed.wire_limit.notna()]
    return " ".join(
        f"The nodes, not the links, limit {names[name]}: one link carries {percent(row.goodput / row.wire_limit, 0)} of the payload "
        f"that its rate allows ({number(row.goodput / 1e9)} of {number(row.wire_limit / 1e9)} Gbit/s)."
        for name, row in slow.iterrows()
    )


def limit_of_nodes(runs: xr.Dataset, network: str) -> str:
    """Why a network's rates say nothing of its links: its nodes limit what they send; empty if they do not."""
    names, limits = names_in_text(runs), networks(runs).limit
    is_bound = limits.get(network) == "host-bound"
    return (
        f"its nodes, and not the links, limit what they send over {names[network]}"
        if is_bound
        else ""
    )


def laws_of(points: xr.Dataset) -> Laws:
    """Every law fitted to each network's efficiency over nodes; none where one node count ran with several settings."""
    try:
        return fit_each(with_settings(points))
    except FalloffError:
        return Laws("interconnect", {})


def followed(laws: Laws) -> dict[str, Law]:
    """The law with the most weight among those that follow a network's data, by network; networks that follow none are left
    out."""
    best = {network: laws.best(network) for network in laws.by_level}
    return {network: law for network, law in best.items() if law}


def predictions(points: xr.Dataset, laws: Laws) -> pd.DataFrame:
    """What each law, fitted to at most half of the most nodes, is off on these: `error`, `low`, `high` [1] and `blocks`, with
    `seen` and `most` nodes, by (interconnect, law); empty where there are too few node counts."""
    columns = ["interconnect", "law", "error", "low", "high", "blocks", "seen", "most"]
    if not laws.by_level:
        return pd.DataFrame(columns=columns).set_index(columns[:2])
    known = points.share.dropna("nodes", how="all").nodes.values
    most = int(max(known, default=0))
    seen = int(max((n for n in known if n <= SEEN * most), default=0))
    try:
        found = held_out(with_settings(points), seen, most).assign(seen=seen, most=most)
    except FalloffError:
        found = pd.DataFrame(columns=columns)
    return found.set_index(columns[:2])


def recovered_link_rates(runs: xr.Dataset, laws: Laws) -> pd.DataFrame:
    """The links' rates that HPL's times alone tell, by the law of HPL's messages, beside those that were set.

    A row for each network with a set rate: `rate` [B/s of payload] and `estimate`, `low`, `high`, a 95 % t interval, NaN
    from one block.
    """
    rows = {}
    for network, described in interconnects(runs).items():
        found = laws[network, OF_MESSAGES] if network in laws.by_level else None
        beta = found.parameters().get("beta") if found and found.follows else None
        # Where beta is not above 0 the time of bytes cannot be told from none.
        if "rate_bit_s" not in described or not beta or beta[0] <= 0:
            continue
        estimate, low, high = beta
        ends = (1 / high, 1 / low) if found.blocks.blocks > 1 and low > 0 else (np.nan, np.nan)
        rate = wire_limit(described["rate_bit_s"], described["mtu"]) / 8
        rows[network] = (rate, 1 / estimate, *ends)
    return pd.DataFrame.from_dict(rows, "index", columns=["rate", "estimate", "low", "high"])


def foretold(runs: xr.Dataset, laws: Laws, predicted: pd.DataFrame) -> Iterator[Statement]:
    """Is the law that a network follows right within GOOD on nodes that it was not fitted to? `predicted` is from
    `predictions`."""
    source, names = origin(runs), names_in_text(runs)
    for network, law in followed(laws).items():
        if (network, law.model.name) in predicted.index:
            row = predicted.loc[network, law.model.name]
            called = CALLED[law.model.name]
            subject = f"{called[0].upper()}{called[1:]}, fitted to {row.seen} nodes or fewer, foretells {names[network]} on {row.most}"
            error = (row.error, row.low, row.high)
            about = {"words": within(error[1:], -GOOD, GOOD), "primary": network != UNLIMITED}
            yield estimated(source, subject, "error", error, int(row.blocks), margin=GOOD, **about)


def rates_told(runs: xr.Dataset, laws: Laws) -> Iterator[Statement]:
    """Do HPL's times alone tell the rate of each network's links within GOOD? By `recovered_link_rates`, over the set rate."""
    source, names = origin(runs), names_in_text(runs)
    for network, row in recovered_link_rates(runs, laws).iterrows():
        ratio = tuple(row[end] / row.rate for end in ("estimate", "low", "high"))
        subject = f"HPL's times alone tell the rate of {names[network]}'s links"
        blocks, words = (
            laws[network, OF_MESSAGES].blocks.blocks,
            within(ratio[1:], 1 - GOOD, 1 + GOOD),
        )
        one = estimated(source, subject, "ratio", ratio, blocks, words=words, margin=GOOD)
        rates = f"{number(1e-6 * row.estimate)} of {number(1e-6 * row.rate)} MB/s"
        yield replace(one, sentence=f"{one} That is {rates}.")


def followed_in_words(runs: xr.Dataset, best: Mapping[str, Law]) -> str:
    """Which law each network follows, in a sentence (Markdown); `best` is from `followed`."""
    names = names_in_text(runs)
    networks: dict[str, list[str]] = {}
    for network, law in best.items():
        networks.setdefault(CALLED[law.model.name], []).append(names[network])
    if not networks:
        return f"**Which law the efficiency follows cannot be said**: {NO_LAW}."
    told = "; ".join(f"{law} for {listed(who)}" for law, who in networks.items())
    return f"**The law that the points support best**: {told}."


def own_waiting(points: xr.Dataset, agreement: xr.Dataset | None) -> str:
    """How much of what HPL loses on unlimited links is its own waiting, a sentence (Markdown); empty where the simulation
    `agreement` has other nodes, or no case on the most nodes, on unlimited links and on the ideal network."""
    if agreement is None or points.evidence.item() != "emulated":
        return ""
    model, most = derive.points(agreement), int(points.nodes.max())
    emulated, simulated, ideal = shares = [
        float(mean_over(each.share.reindex(interconnect=[name], nodes=[most]), ..., "ratio"))
        for each, name in ((points, UNLIMITED), (model, UNLIMITED), (model, IDEAL))
    ]
    if not same_node(points, model) or not np.isfinite(shares).all():
        return ""
    return (
        f"**On {counted(most, 'node')} without a rate limit HPL loses {fixed(100 * (1 - emulated), 1)} points of efficiency, of "
        f"which its ranks lose {fixed(100 * (1 - ideal), 1)} by waiting for each other, whatever the network**: simulated, it reaches "
        f"{percent(ideal)} if messages take no time and {percent(simulated)} on unlimited links; emulated it reaches {percent(emulated)}."
    )


def at_the_same_rates(points: xr.Dataset, agreement: xr.Dataset | None) -> xr.DataArray | None:
    """The simulated efficiency [1] over (interconnect, nodes), with HPL's settings; None unless its nodes have the rate of
    those that ran."""
    if agreement is None:
        return None
    model = derive.at_only_level(derive.points(agreement), "block").expand_dims("block")
    return with_settings(model).isel(block=0) if same_node(points, model) else None


def same_node(points: xr.Dataset, simulated: xr.Dataset) -> bool:
    """Whether two campaigns ran on nodes of one rate; both are from `derive.points`."""
    rates = [float((each.known_rate / each.nodes).max()) for each in (points, simulated)]
    return bool(np.isclose(*rates, rtol=1e-6))


def beyond_in_words(
    runs: xr.Dataset, best: Mapping[str, Law], simulated: xr.DataArray | None
) -> str:
    """What the law of HPL's messages foretells for the most nodes that were simulated, beside the simulation; empty if
    nothing was simulated. `simulated` [1] is over (interconnect, nodes), with HPL's settings."""
    if simulated is None:
        return ""
    names, end, found = names_in_text(runs), simulated.isel(nodes=[-1]), []
    for network, law in best.items():
        if (
            law.model.name == OF_MESSAGES
            and network in end.interconnect
            and end.nodes.item() > law.known.nodes.max()
        ):
            mean, other = (
                float(law.band(end)["mean"].item()),
                float(end.sel(interconnect=network).item()),
            )
            found.append(f"{percent(mean)} on {names[network]} (simulated {percent(other)})")
    if not found:
        return ""
    return f"For {counted(int(end.nodes.item()), 'node')} the law of HPL's messages predicts {'; '.join(found)}."


def laws_table(runs: xr.Dataset, laws: Laws, predicted: pd.DataFrame) -> exhibit.Table:
    """Every law of every network: its weight, its parameters, how far it misses, and what it predicts."""
    names, rows = names_in_text(runs), []
    for network, each in laws.by_level.items():
        for law in each:
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
    slowed = testbed(runs).get("node", {}).get("dilation")
    scale = f" Times are those of the scale model, slowed {slowed:g} times." if slowed else ""
    columns = (
        "Network", "Law", "AICc weight", "Parameters (95 % interval)", "Largest miss", f"Error on {most} nodes", "Verdict"
    )  # fmt: skip
    return exhibit.Table(
        "laws",
        columns,
        "llrlrrl",
        rows,
        "The laws of the efficiency over nodes. A law that misses its data, beyond the scatter of the means and 2 %, is not drawn. "
        f"The error on {most} nodes is of a fit to at most {seen}.{scale}",
        exhibit.Basis.of_dataset(runs, "95 % t intervals"),
        widths=(9, 15, 7, 33, 8, 9, 12),
    )


def parameters_in_words(law: Law) -> str:
    """Every parameter with its interval; a message's time in us, inverse bandwidth as a rate in MB/s."""
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
