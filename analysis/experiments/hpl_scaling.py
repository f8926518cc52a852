"""Does HPL's efficiency fall off with the number of nodes? GigE against 10GE against unlimited links."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, style, todays_run
from analysis.attributes import UNLIMITED, names_in_text, short_names, testbed
from analysis.contrasts import Contrast, contrasts, differences, log_ratios
from analysis.derive import PACED, points
from analysis.exhibit import Basis, Exhibit
from analysis.findings import Finding, fall_in_words, of_control, of_fall, origin, today_of
from analysis.fitting.scaling_laws import Law, fit_each, with_settings
from analysis.links import networks
from analysis.quoting import quoted
from analysis.statistics import design as designs
from analysis.statistics.intervals import ratios
from analysis.statistics.judgement import REFUSED
from analysis.statistics.reproduction import Reproduction, of_blocks, reproduction
from analysis.wording import counted, fixed, number, paragraphs, percent
from runners.record import FalloffError

FIGURES = {"share": ("hpl_scaling",), "falls": ("hpl_scaling",)}  # what each rests on


@dataclass(frozen=True)
class Scaling:
    """The campaign's dataset and all results; results without data are empty or None.

    `points` is from `derive.points`. `contrasts` are the judged statements, the primary ones first.
    `networks` is the testbed's survey of itself. `today` says for each statement, by
    `Contrast.what`, whether another run, the dataset `today_run`, reproduces it.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    contrasts: tuple[Contrast, ...]
    networks: pd.DataFrame
    today: dict[str, Reproduction]
    today_run: xr.Dataset | None

    @property
    def shares(self) -> xr.Dataset:
        """The share [1] over (interconnect, nodes): `ratio` (geometric mean), 95 % t interval `low`, `high`, `blocks`."""
        return ratios(np.log(self.points.share))

    @cached_property
    def laws(self) -> dict[str, Law]:
        """For each network the best-supported law of its efficiency over nodes; networks that
        follow no law are left out."""
        try:
            laws = fit_each(with_settings(self.points))
        except FalloffError:  # a node count ran with several settings
            return {}
        best = {network: laws.best(network) for network in laws.by_level}
        return {network: law for network, law in best.items() if law}

    @property
    def primary(self) -> list[Contrast]:
        """The statements that the campaign was planned for."""
        return [contrast for contrast in self.contrasts if contrast.primary]


def analyse(hpl_scaling: xr.Dataset, today: xr.Dataset | None = None) -> Scaling:
    """Derive points and statements; raises FalloffError when there is no HPL trial."""
    derived = points(hpl_scaling)
    judged = contrasts(derived)
    return Scaling(
        dataset=hpl_scaling,
        points=derived,
        contrasts=judged,
        networks=networks(hpl_scaling),
        today={} if today is None else _reproductions(judged, contrasts(points(today))),
        today_run=today,
    )


def _reproductions(
    reference: tuple[Contrast, ...], today: tuple[Contrast, ...]
) -> dict[str, Reproduction]:
    """Whether another run reproduces the statements that both have, by their `what`."""
    again, found = {contrast.what: contrast for contrast in today}, {}
    for stored in reference:
        if stored.what in again:
            other, verdict = again[stored.what], stored.verdict
            estimates = (
                of_blocks(one.differences.values, exact=verdict.evidence == "simulated")
                for one in (stored, other)
            )
            answers = verdict.answer, other.verdict.answer
            found[stored.what] = reproduction(*estimates, verdict.margin, answers)
    return found


def method(study: Scaling) -> str:
    """How the campaign was measured (Markdown)."""
    name = quoted(testbed(study.dataset)["name"])
    sentences = [
        {
            "emulated": "Real HPL runs exchange real TCP messages between emulated nodes on one machine.",
            "simulated": f"HPL's own code runs in a simulation of the cluster {name}.",
        }.get(study.points.evidence.item(), f"HPL runs on the nodes of the cluster {name}.")
    ]
    if study.points.share.attrs["of"] == PACED:
        sentences.append(
            "Each node is paced: it computes for real and then sleeps until a slower node would be done. *Efficiency* is "
            "HPL's rate over the sum of these slower rates. Nodes, links and matrices are scaled down together, so that "
            'bytes cost as large a share of the time as in the paper (section "The scale model").'
        )
    if designs.read(study.dataset).control:
        sentences.append(
            "Links of the *unlimited* network have no rate limit: it is the control, and shows what HPL loses without one."
        )
    sentences.append(
        "*Flat* and *falls off* are said of one network's rate over another's: a fall of 10 % from 2 to 8 nodes means that "
        "this ratio is 10 % smaller on 8 nodes."
    )
    return " ".join(sentences)


def finding(study: Scaling) -> str:
    """Efficiencies, the verdicts of the planned statements and their limits, in plain English
    (Markdown)."""
    is_refused = any(contrast.verdict.answer == REFUSED for contrast in study.primary)
    verdicts = [
        fall_in_words(
            contrast.verdict,
            *_in_a_sentence(study, contrast),
            f"from {contrast.start} to {contrast.end} nodes",
            whole=not place,  # the first one also states the blocks, the margin and the evidence
        )
        for place, contrast in enumerate(study.primary)
    ]
    today = {
        f"{_pair(study, one)} from {one.start} to {one.end} nodes": study.today.get(one.what)
        for one in study.primary
    }
    return paragraphs(
        [] if is_refused else [_levels(study)],
        [*([] if is_refused else verdicts), _on_one_node(study)],
        [_left_out(study), _host_bound(study)],
        [] if study.today_run is None else [todays_run.in_words(today, study.today_run)],
        [quoted(study.dataset.attrs.get("caveat", ""))],
    )


def _in_a_sentence(study: Scaling, contrast: Contrast) -> tuple[str, str]:
    """The two networks as a sentence names them."""
    names = names_in_text(study.dataset)
    return names[contrast.network], names[contrast.reference]


def _on_one_node(study: Scaling) -> str:
    """The negative control: the networks must not differ where no network is used."""
    controlled = [contrast for contrast in study.primary if contrast.control is not None]
    failed = [contrast for contrast in controlled if contrast.control.kind == "violated"]
    if failed:
        name, against = _in_a_sentence(study, failed[0])
        return (
            "**No verdict is given, because the negative control failed.** On one node no network is used, and yet "
            f"{name} has {fixed(failed[0].control.ratio, 3)} times the rate of {against}."
        )
    if any(contrast.control.kind == "undecided" for contrast in controlled):
        return "Whether the networks are equally fast on one node, where none is used, is open."
    if not controlled:
        return ""
    off = max(abs(end - 1) for contrast in controlled for end in contrast.control.interval)
    return f"On one node, where no network is used, the networks are equally fast within {percent(off)}."


def _levels(study: Scaling) -> str:
    """HPL's share on the fewest nodes with a network and on the most, network by network."""
    names, design = short_names(study.dataset), designs.read(study.dataset)
    first, last = design.baseline_nodes, int(study.shares.nodes.max())
    levels = study.shares.ratio.sel(nodes=[first, last]).dropna("interconnect")
    if not levels.size or first == last:
        return ""
    reached = []
    for name, ends in zip(levels.interconnect.values.tolist(), levels.values):
        on = "unlimited" if name == UNLIMITED else f"on {names[name]}"
        start, end = fixed(100 * ends[0], 1), percent(ends[1])
        further = f"{on} from {start} to {end}"
        head = f"{on} HPL's efficiency goes from {start} % on {counted(first, 'node')} to {end} on {last}"
        reached.append(further if reached else head)
    text = "; ".join(reached)
    return f"{text[0].upper()}{text[1:]}."


def _left_out(study: Scaling) -> str:
    """The number of invalid runs, and the falls if every valid run counted."""
    reasons, blocks = study.points.reason, study.points.sizes["block"]
    invalid = int((~reasons.isin(["", "not run"])).sum())
    judged = max((contrast.verdict.blocks for contrast in study.primary), default=0)
    if judged == blocks and not invalid:
        return ""
    sentences = [f"The verdicts rest on {judged} of the {blocks} blocks."]
    if invalid:
        verb = "is" if invalid == 1 else "are"
        why = "" if judged == blocks else " A block with an invalid run is left out."
        sentences.insert(0, f"{invalid} of {reasons.size} runs {verb} invalid.{why}")
    changes = []
    for contrast in study.primary:
        if contrast.verdict.fall is not None:
            ratio = log_ratios(study.points, contrast.network, contrast.reference)
            every = differences(ratio, contrast.start, contrast.end).mean()
            changes.append(abs(contrast.verdict.fall + float(np.expm1(every))))
    if changes:
        change = fixed(np.ceil(1000 * max(changes)) / 10, 1)
        sentences.append(
            f"With every valid run no fall changes by more than {change} percentage points."
        )
    return " ".join(sentences)


def _host_bound(study: Scaling) -> str:
    """The networks whose links the machine could not fill."""
    names, surveyed = short_names(study.dataset), study.networks
    slow = surveyed[(surveyed.limit == "host-bound") & surveyed.wire_limit.notna()]
    return " ".join(
        f"The machine limits {names[name]}: one link carries {percent(row.goodput / row.wire_limit, 0)} of the payload that "
        f"its set rate allows ({number(row.goodput / 1e9)} of {number(row.wire_limit / 1e9)} Gbit/s)."
        for name, row in slow.iterrows()
    )


def _pair(study: Scaling, contrast: Contrast) -> str:
    names = names_in_text(study.dataset)
    return f"{names[contrast.network]} / {names[contrast.reference]}"


def findings(study: Scaling) -> Iterator[Finding]:
    """Every fall, and the negative control of the planned ones, as data."""
    source, names = origin("hpl_scaling", study.dataset), names_in_text(study.dataset)
    for contrast in study.contrasts:
        name, against = _in_a_sentence(study, contrast)
        statement = (
            f"{name} loses rate against {against} from {contrast.start} to {contrast.end} nodes"
        )
        today = today_of(study.today.get(contrast.what), study.today_run)
        yield of_fall(source, statement, contrast.verdict, primary=contrast.primary, today=today)
    # A pair's control, on one node, is the same for all of its node counts.
    pairs = {(one.network, one.reference): one.control for one in study.primary if one.control}
    for (network, reference), control in pairs.items():
        statement = f"{names[network]} is as fast as {names[reference]} without a network"
        yield of_control(source, statement, control)


def figures(study: Scaling) -> dict[str, Exhibit]:
    """Shares over nodes, and the falls against their margin."""
    names, dataset = names_in_text(study.dataset), study.dataset
    orders = study.points.N.max(["block", "interconnect"]).dropna("nodes").values
    order = f" N goes from {orders[0]:.0f} to {orders[-1]:.0f}." if orders.size else ""
    level = percent(1 - 2 * designs.read(dataset).one_sided, 0)
    judged = max((contrast.verdict.blocks for contrast in study.contrasts), default=0)
    return {
        "share": Exhibit(
            "share",
            share_over_nodes(study),
            f"HPL's efficiency over nodes: its rate as a share of {study.points.share.attrs['of']}",
            Basis.of_dataset(dataset, "95 % t intervals"),
            "Share of the nodes' known rate over the number of nodes, a series for each of "
            + ", ".join(names[name] for name in study.points.interconnect.values),
            f"{drawing.RUNS_AND_MEANS} Networks stand side by side at each node count.{order}"
            + (" Lines and bands are the law that each network follows." if study.laws else ""),
            rests_on=FIGURES["share"],
        ),
        "falls": Exhibit(
            "falls",
            falls(study),
            "How much of the ratio of two networks' rates is lost from one node count to another",
            Basis.of_dataset(dataset, f"{level} t intervals", judged),
            "The fall of each statement with its blocks, interval, margin and answer",
            "Small marks are single blocks, n of them in each row. Large marks and bars are geometric means with their "
            f"intervals. The shaded margin was set before the run.{' Diamonds are of today.' if study.today else ''}",
            rests_on=FIGURES["falls"],
        ),
    }


def share_over_nodes(study: Scaling) -> Figure:
    """Share of the known rate [%] over nodes: every run, and geometric means with 95 % t intervals."""
    with style.styled():
        figure, axes = drawing.new_figure(3.4)
        names, nodes = names_in_text(study.dataset), study.points.nodes.values
        networks = study.points.interconnect.values.tolist()
        for rank, name in enumerate(networks):
            places = drawing.beside(nodes, rank, len(networks))
            share = 100 * study.points.share.sel(interconnect=name)
            means = 100 * study.shares.sel(interconnect=name)
            drawing.runs_and_means(axes, name, places, share, means, names[name])
            if name in study.laws:
                curve = 100 * study.laws[name].band()
                ends = (curve[end].values for end in ("mean", "low", "high"))
                drawing.band(axes, name, curve.nodes.values, *ends)
        drawing.doubling_axis(axes, nodes)
        axes.set_ylabel(f"HPL rate [% of {study.points.share.attrs['of']}]")
        axes.legend(loc="lower left")
        return figure


def falls(study: Scaling) -> Figure:
    """The fall of each statement [%]: every block, the mean, its interval, the margin, the answer, and today's mean."""
    with style.styled():
        figure, axes = drawing.new_figure(1.0 + 0.5 * len(study.contrasts))
        margin = designs.read(study.dataset).margin
        band = (100 * (1 - 1 / (1 - margin)), 100 * margin)
        axes.axvspan(*band, color=style.MARGIN, zorder=0, label=f"margin {100 * margin:g} %")
        axes.axvline(0, color=style.INK, linewidth=0.8)
        for row, contrast in enumerate(study.contrasts):
            look = style.look(contrast.network)
            blocks = -100 * np.expm1(contrast.differences.dropna("block").values)
            below = row + 0.16 + 0.16 * np.linspace(0, 1, len(blocks))
            marks = {"color": look.color, "alpha": 0.6, "markersize": 3.5}
            axes.plot(blocks, below, look.marker, label="one block", **marks)
            drawing.judgement(axes, row, contrast, look)
            if contrast.what in study.today:
                drawing.today_mark(axes, row, study.today[contrast.what])
        names = [
            f"{_pair(study, contrast)}{', planned' if contrast.primary else ''}\n{contrast.start} to {contrast.end} nodes, n = {contrast.verdict.blocks}"
            for contrast in study.contrasts
        ]
        drawing.rows(axes, names)
        axes.set_xlabel("loss of the ratio [%]; below 0 it rises")
        drawing.legend_below(figure, axes, 4)
        return figure
