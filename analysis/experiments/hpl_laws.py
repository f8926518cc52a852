"""Which law HPL's efficiency over nodes follows on each network, and what that law predicts."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from analysis import drawing, exhibit, style
from analysis.attributes import UNLIMITED, interconnects, names_in_text, testbed
from analysis.derive import at_only_level, points
from analysis.findings import Finding, interval_in_words, of_estimate, origin, resting_on
from analysis.fitting.scaling_laws import Law, Laws, fit_each, held_out, with_settings
from analysis.wire import wire_limit
from analysis.wording import UNKNOWN, counted, fixed, listed, number, paragraphs, percent
from runners.record import FalloffError

FIGURES = {"laws": ("hpl_scaling", "hpl_agreement")}  # what each rests on
OF_MESSAGES = "hpl_messages"
NAMES = {
    "constant": "constant",
    "amdahl": "Amdahl",
    "universal_scalability": "universal scalability",
    "power_law": "power law",
    OF_MESSAGES: "HPL's messages",
}
# A law is fitted to at most this share of the most nodes, and predicts these.
SEEN = 0.5


@dataclass(frozen=True)
class Scale:
    """The laws of a campaign's efficiency over nodes.

    `efficiency` [1] is over (block, interconnect, nodes), with HPL's settings over nodes. `predicted` has a row for each network and
    law: the error on `most` nodes of a fit to at most `seen`. `recovered` has a row for each network whose links have a set rate:
    that `rate` [B/s of payload], and `estimate`, `low` and `high`, what HPL's times alone say of it by the law of its messages.
    `simulated` [1] is the efficiency at the same rates over (interconnect, nodes), None without such a campaign.
    """

    dataset: xr.Dataset
    efficiency: xr.DataArray
    laws: Laws
    seen: int
    most: int
    predicted: pd.DataFrame
    recovered: pd.DataFrame
    simulated: xr.DataArray | None

    def followed(self, network: str) -> Law | None:
        """The law with the most weight among those that follow a network's data; None if none
        does."""
        return self.laws.best(network)


def analyse(hpl_scaling: xr.Dataset, hpl_agreement: xr.Dataset | None = None) -> Scale:
    """Fit every law to every network; `hpl_agreement` is the simulation at the same rates, with
    more nodes.

    Raises FalloffError if there is no HPL trial, or the runs at one node count had several
    settings.
    """
    efficiency = with_settings(points(hpl_scaling))
    known = efficiency.dropna("nodes", how="all").nodes.values
    most = int(max(known, default=0))
    seen = int(max((n for n in known if n <= SEEN * most), default=0))
    laws = fit_each(efficiency)
    try:
        predicted = held_out(efficiency, seen, most)
    except FalloffError:
        predicted = pd.DataFrame(columns=["interconnect", "law", "error", "low", "high", "blocks"])
    predicted = predicted.set_index(["interconnect", "law"])
    simulated = None
    if hpl_agreement is not None:
        model = with_settings(at_only_level(points(hpl_agreement), "block").expand_dims("block"))
        if np.isclose(model.node_rate.max(), efficiency.node_rate.max(), rtol=1e-6):
            simulated = model.isel(block=0)
    recovered = _recovered(hpl_scaling, laws)
    return Scale(hpl_scaling, efficiency, laws, seen, most, predicted, recovered, simulated)


def _recovered(dataset: xr.Dataset, laws: Laws) -> pd.DataFrame:
    """The links' rates estimated by the law of HPL's messages, beside the rates that were set, by
    network."""
    rows = {}
    for network, described in interconnects(dataset).items():
        found = laws[network, OF_MESSAGES].parameters() if network in laws.by_level else {}
        if "rate_bit_s" in described and found and laws[network, OF_MESSAGES].follows:
            estimate, low, high = found["beta"]
            if estimate <= 0:  # the time of bytes cannot be told from 0
                continue
            ends = np.nan, np.nan
            if laws[network, OF_MESSAGES].blocks.blocks > 1 and low > 0:
                ends = 1 / high, 1 / low
            rate = wire_limit(described["rate_bit_s"], described["mtu"]) / 8
            rows[network] = (rate, 1 / estimate, *ends)
    return pd.DataFrame.from_dict(rows, "index", columns=["rate", "estimate", "low", "high"])


def finding(study: Scale) -> str:
    """The law of each network, the link rates that it tells, and what it predicts, in plain English (Markdown)."""
    names, followed = names_in_text(study.dataset), {}
    for network in study.laws.by_level:
        if law := study.followed(network):
            followed.setdefault(NAMES[law.model.name], []).append(names[network])
    if not followed:
        return "**Which law the efficiency follows cannot be said**: none follows the points."
    told = "; ".join(f"{', '.join(networks)} by {law}" for law, networks in followed.items())
    sentences = [f"**The law that the points support best**: {told}."]
    for network, row in study.recovered.iterrows():
        interval = ""
        if np.isfinite([row.low, row.high]).all():
            interval = f"95 % interval {number(1e-6 * row.low)} to {number(1e-6 * row.high)}"
        sentences.append(
            f"From HPL's times alone, this law gives {names[network]}'s links {number(1e-6 * row.estimate)} MB/s "
            f"({resting_on(study.dataset, _blocks(study), interval)}); they are set to {number(1e-6 * row.rate)} MB/s."
        )
    return paragraphs(sentences, [*_predicted(study), _beyond(study)])


def in_short(study: Scale) -> str:
    """The laws that the networks follow, and how well they predict the most nodes: a sentence or two (Markdown), empty where
    none follows."""
    names = names_in_text(study.dataset)
    laws = {name: study.followed(name) for name in study.laws.by_level}
    followed = {name: law for name, law in laws.items() if law}
    titles = dict.fromkeys(NAMES[law.model.name] for law in followed.values())
    if not followed:
        return ""
    who = listed([names[name] for name in followed])
    every = "the law of " if [*titles] == [NAMES[OF_MESSAGES]] else ""
    sentence = (
        f"**{who} {'follows' if len(followed) == 1 else 'follow'} {every}{listed([*titles])}**"
    )
    if every:
        sentence += ", which counts the messages and bytes of HPL's own algorithm"
    return " ".join([f"{sentence}.", *_predicted(study)])


def _blocks(study: Scale) -> int:
    return study.efficiency.sizes["block"]


def _predicted(study: Scale) -> list[str]:
    """The error of the networks' best laws when they are asked for the most nodes."""
    names, found = names_in_text(study.dataset), []
    for network in study.laws.by_level:
        law = study.followed(network)
        place = (network, law.model.name) if law else None
        if place in study.predicted.index and np.isfinite(study.predicted.error[place]):
            row = study.predicted.loc[place]
            interval = interval_in_words((row.low, row.high))
            basis = f" ({interval})" if interval else ""
            found.append(f"{percent(row.error)} on {names[network]}{basis}")
    if not found:
        return []
    return [
        f"Fitted to at most {counted(study.seen, 'node')}, the laws predict the efficiency on {study.most} with an error of "
        f"{'; '.join(found)}."
    ]


def _beyond(study: Scale) -> str:
    """What the laws predict for the most nodes that were simulated, beside the simulation."""
    if study.simulated is None or study.simulated.nodes.max() <= study.most:
        return ""
    end, names, found = study.simulated.isel(nodes=[-1]), names_in_text(study.dataset), []
    for network in study.laws.by_level:
        law = study.followed(network)
        if law and law.model.name == OF_MESSAGES and network in end.interconnect:
            mean = float(law.band(end)["mean"].item())
            simulated = float(end.sel(interconnect=network).item())
            found.append(f"{percent(mean)} on {names[network]} (simulated {percent(simulated)})")
    if not found:
        return ""
    return f"For {counted(int(end.nodes.item()), 'node')} the law of HPL's messages predicts {'; '.join(found)}."


def findings(study: Scale) -> Iterator[Finding]:
    """The link rates that HPL's times tell, over those that are set, and the errors of what was held out, as data."""
    source, names = origin("hpl_laws", study.dataset), names_in_text(study.dataset)
    blocks = _blocks(study)
    for network, row in study.recovered.iterrows():
        statement = f"The rate of {names[network]}'s links from HPL's times, over the set rate"
        ends = (row.estimate, row.low, row.high)
        told = tuple(end / row.rate for end in ends)
        yield of_estimate(source, statement, "ratio", told, blocks)
    for network in study.laws.by_level:
        law = study.followed(network)
        if law is None:
            continue
        statement = f"The law of {names[network]}, fitted to {study.seen} nodes or fewer, is off on {study.most}"
        about = {"answer": NAMES[law.model.name], "primary": network != UNLIMITED}
        place = (network, law.model.name)
        if place in study.predicted.index:
            row = study.predicted.loc[place]
            error = (row.error, row.low, row.high)
            yield of_estimate(source, statement, "error", error, int(row.blocks) or blocks, **about)


def table(study: Scale) -> exhibit.Table:
    """Every law of every network: its weight, its parameters, how far it misses, and what it predicts."""
    names, rows = names_in_text(study.dataset), []
    for network, laws in study.laws.by_level.items():
        for law in laws:
            place = (network, law.model.name)
            error = study.predicted.error.get(place, np.nan)
            rows.append(
                (
                    names[network],
                    NAMES[law.model.name],
                    fixed(law.weight, 2) if np.isfinite(law.weight) else UNKNOWN,
                    _parameters(law),
                    percent(law.farthest) if np.isfinite(law.farthest) else UNKNOWN,
                    percent(error) if np.isfinite(error) else UNKNOWN,
                    law.verdict if not law.refused else "not fitted",
                )
            )
    columns = (
        "Network",
        "Law",
        "AICc weight",
        "Parameters (95 % interval)",
        "Largest miss",
        f"Error on {study.most} nodes",
        "Verdict",
    )
    slowed = testbed(study.dataset).get("node", {}).get("dilation")
    scale = f" Times are those of the scale model, slowed {slowed:g} times." if slowed else ""
    return exhibit.Table(
        "laws",
        columns,
        "llrlrrl",
        rows,
        "The laws of the efficiency over nodes. A law that misses its data, beyond the scatter of the means and 2 %, is not drawn. "
        f"The error on {study.most} nodes is of a fit to at most {study.seen}.{scale}",
        exhibit.Basis.of_dataset(study.dataset, "95 % t intervals"),
        widths=(9, 15, 7, 33, 8, 9, 12),
    )


def _parameters(law: Law) -> str:
    """Every parameter with its interval; latency in us, inverse bandwidth as a rate in MB/s."""
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


def figures(study: Scale) -> dict[str, exhibit.Exhibit]:
    """The laws beyond the nodes that were run, beside what is simulated there."""
    names, networks = names_in_text(study.dataset), list(study.laws.by_level)
    beside = study.simulated is not None
    with style.styled():
        figure, axes = drawing.new_figure(2.7)
        at = study.efficiency if study.simulated is None else study.simulated
        for name in networks:
            law = study.followed(name)
            look, mean = (
                style.look(name),
                100 * np.exp(np.log(study.efficiency.sel(interconnect=name)).mean("block")),
            )
            axes.plot(mean.nodes, mean, look.marker, color=look.color, label=names[name])
            if law is not None:
                band = 100 * law.band(at)
                drawing.band(
                    axes,
                    name,
                    band.nodes.values,
                    *(band[end].values for end in ("mean", "low", "high")),
                )
            if study.simulated is not None and name in study.simulated.interconnect:
                beyond = 100 * study.simulated.sel(interconnect=name)
                mark = {
                    "marker": look.marker,
                    "color": look.color,
                    "ls": "none",
                    "mfc": "white",
                    "ms": 7,
                    "zorder": 1,
                }
                axes.plot(beyond.nodes, beyond, **mark)
        drawing.doubling_axis(axes, drawing.apart(at.nodes.values, 1.4))
        axes.set_ylabel("HPL's efficiency [%]")
        drawing.legend_below(figure, axes, 3)
    return exhibit.only(
        FIGURES,
        figure,
        f"The law that each network's efficiency follows, fitted to at most {counted(study.most, 'node')}",
        exhibit.Basis.of_dataset(study.dataset, "95 % t bands"),
        f"HPL's efficiency over nodes: means of runs{', simulated points' * beside} and the law of each network",
        "Full marks are the means of the runs, lines and bands the laws."
        + " Open marks are simulated at the same rates." * beside,
    )
