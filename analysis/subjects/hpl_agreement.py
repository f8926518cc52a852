"""Checks of the scale model: at another scale of time, beside a simulation at its own rates, and step by step to the paper's size.

A dilation says how many times slower than in the paper time runs: a node's F, the links' rates and the shaper's times,
beside what the smaller matrices ask for. What the machine itself takes for a message does not scale. If it counted, the
share of F would rise with the dilation, since a message's own time is then a smaller part of the run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.attributes import factors, names_in_text, testbed
from analysis.contrasts import log_ratios
from analysis.derive import at_only_level, points
from analysis.quoting import quoted
from analysis.statements import Statement, estimated, interval_in_words, origin
from analysis.statistics import design as designs
from analysis.statistics.judgement import FALLS_OFF, FLAT, RISES, judge
from analysis.subjects import hpl_scaling
from analysis.wording import MINUS, counted, fixed, listed, percent
from runners.record import FalloffError

GOAL = 0.015  # what agreement with a simulation is [1]
COMPARED = ("gige", "10gige")  # the networks that the report is about
OPEN = "open"  # the answer where an interval is neither inside nor beyond its margin
SAME = {FLAT: "the same", FALLS_OFF: "different", RISES: "different"}
WITHIN = {FLAT: "within", FALLS_OFF: "beyond", RISES: "beyond"}
STEPS = {
    "scale_model": "the scale model",
    "buffers": "smaller buffers",
    "fine_blocks": "narrower blocks",
    "size": "the paper's size",
    "block_size": "the paper's block size",
    "node": "the paper's node",
}


def judged_ratios(
    log_ratio: xr.DataArray,
    margin: float,
    evidence: str,
    one_sided: float,
    words: Mapping[str, str],
) -> pd.DataFrame:
    """A table of log-ratios over (block, interconnect, nodes, ...), indexed by their other dims: are they 1?

    Columns: `ratio` (geometric mean), `low`, `high`, the t interval of this one-sided level, `blocks`, and the answer's
    `words`: those for the answer on a fall of this `margin` [1], or OPEN.
    """
    log_ratio = log_ratio.reset_coords(drop=True).transpose("block", "interconnect", "nodes", ...)
    dims = log_ratio.dims[1:]
    stacked = log_ratio.stack(point=dims).transpose("point", "block")
    rows = []
    for place, values in zip(stacked.point.values, stacked.values):
        fall = judge(values, margin, evidence, one_sided)
        low, high = fall.interval or (np.nan, np.nan)
        ratio = np.nan if fall.fall is None else 1 - fall.fall
        rows.append((*place, ratio, 1 - high, 1 - low, fall.blocks, words.get(fall.answer, OPEN)))
    columns = [*dims, "ratio", "low", "high", "blocks", "words"]
    return pd.DataFrame(rows, columns=columns).set_index([*dims])


def reference_dilation(runs: xr.Dataset) -> float:
    """The testbed's dilation, or the first of those that ran; raises FalloffError where the dilation was not varied."""
    levels = factors(runs).get("dilation", [])
    if len(levels) < 2:
        raise FalloffError(
            f"Campaign {runs.attrs['campaign']} needs the factor dilation with two levels: there is nothing to compare."
        )
    described = testbed(runs).get("node", {}).get("dilation")
    return described if described in levels else levels[0]


def at_other_dilations(runs: xr.Dataset) -> xr.DataArray:
    """log of a block's share of F over that at the `reference_dilation`, over (block, interconnect, nodes, dilation)."""
    log_share, reference = np.log(points(runs).share), reference_dilation(runs)
    return log_share.drop_sel(dilation=reference) - log_share.sel(dilation=reference, drop=True)


def same_at_dilations(runs: xr.Dataset) -> list[Statement]:
    """Is HPL as efficient at every other dilation as at the reference, within the campaign's margin? By 90 % intervals.

    Primary are the most nodes at the fastest scale of time. Raises FalloffError when there is no HPL trial, or the dilation
    is not varied.
    """
    source, names, margin = origin(runs), names_in_text(runs), designs.read(runs).margin
    reference = reference_dilation(runs)
    compared = judged_ratios(at_other_dilations(runs), margin, source["evidence"], 0.05, SAME)
    most, fastest = compared.reset_index().agg({"nodes": "max", "dilation": "min"})
    statements = []
    for (name, nodes, dilation), at in compared.iterrows():
        subject = f"HPL is as efficient slowed {dilation:g} times as {reference:g}: {names[name]}, {nodes} nodes"
        one = estimated(
            source,
            subject,
            "ratio",
            (at.ratio, at.low, at.high),
            at.blocks,
            "90 % t interval over the blocks",
            words=at.words,
            primary=bool(nodes == most and dilation == fastest),
            margin=margin,
            series=name,
        )
        reached = (
            f"On {names[name]} with {counted(nodes, 'node')} HPL reaches {percent(at.ratio)} of its efficiency if slowed {dilation:g} instead "
            f"of {reference:g} times{_interval(one, 0.9)}"
        )
        statements.append(replace(one, sentence=_sentence(one, reached)))
    return statements


def as_simulated(emulated: xr.Dataset, simulated: xr.Dataset) -> list[Statement]:
    """Is the emulated cluster as fast as a simulation at the same rates, within GOAL? By 95 % intervals, at every point that
    both campaigns have. Primary are COMPARED on the most nodes.

    Raises FalloffError when one holds no HPL trial, they have no point in common or were run with another rate of the
    nodes, or the simulated campaign has several blocks.
    """
    source, names = origin(emulated), names_in_text(emulated)
    compared = judged_ratios(
        over_simulated(emulated, simulated), GOAL, source["evidence"], 0.025, WITHIN
    )
    most, statements = max(nodes for _, nodes in compared.index), []
    for (name, nodes), at in compared.iterrows():
        one = estimated(
            source,
            f"HPL is as simulated within {100 * GOAL:g} %: {names[name]}, {nodes} nodes",
            "ratio",
            (at.ratio, at.low, at.high),
            at.blocks,
            words=at.words,
            primary=nodes == most and name in COMPARED,
            margin=GOAL,
            series=name,
        )
        reached = f"On {names[name]} with {counted(nodes, 'node')} HPL reaches {percent(at.ratio)} of the simulated rate{_interval(one, 0.95)}"
        statements.append(replace(one, sentence=_sentence(one, reached)))
    return statements


def over_simulated(emulated: xr.Dataset, simulated: xr.Dataset) -> xr.DataArray:
    """log of the share of F emulated over that simulated, over (block, interconnect, nodes); raises as `as_simulated`."""
    ran, model = points(emulated), at_only_level(points(simulated), "block")
    if not hpl_scaling.same_node(ran, model):
        one, other = (float((each.known_rate / each.nodes).max()) for each in (ran, model))
        raise FalloffError(
            f"Campaign {ran.attrs['campaign']} ran on nodes of {one:g} Gflop/s, {model.attrs['campaign']} on nodes of "
            f"{other:g}: give the simulated testbed the emulated one's rates, and run it again."
        )
    ran, model = xr.align(ran, model, join="inner", exclude=["block"])
    if not ran.rate.size:
        names = emulated.attrs["campaign"], simulated.attrs["campaign"]
        raise FalloffError(f"Campaigns {names[0]} and {names[1]} have no point in common.")
    return np.log(ran.share) - np.log(model.share.reset_coords(drop=True))


def _sentence(one: Statement, reached: str) -> str:
    """What was reached with the answer, or that nothing is known."""
    return (
        f"{one.subject}: no block has both."
        if one.estimate is None
        else f"{reached}, **{one.words}**."
    )


def _interval(one: Statement, level: float) -> str:
    interval = interval_in_words(one.interval, level=level)
    return f" ({interval})" if interval else ""


def farthest(statements: Sequence[Statement]) -> str:
    """The statement whose ratio is farthest from 1, in its own words; empty where none is known."""
    known = [one for one in statements if one.estimate is not None]
    return str(max(known, key=lambda one: abs(np.log(one.estimate)))) if known else ""


def falls(dataset: xr.Dataset) -> xr.DataArray:
    """What GigE's rate loses against 10GE's from the fewest nodes on [1], over the dims of the rate without interconnect."""
    ratio = log_ratios(points(dataset), *COMPARED).reset_coords(drop=True)
    return -np.expm1(ratio - ratio.isel(nodes=0, drop=True))


def falls_by_step(chain: xr.Dataset) -> xr.DataArray:
    """`falls` over (step, nodes), NaN where a case is missing; raises FalloffError when there is no HPL trial, several
    blocks, or no step is varied."""
    if "step" not in factors(chain):
        raise FalloffError(
            f"Campaign {chain.attrs['campaign']} needs the factor step: there is nothing to compare."
        )
    return at_only_level(
        falls(chain).to_dataset(name="fall").assign_attrs(chain.attrs), "block"
    ).fall.transpose("step", "nodes")


def emulated_falls(dataset: xr.Dataset, like: xr.DataArray) -> xr.DataArray:
    """The mean of the emulated `falls` [1] over (nodes) of `like`, from its fewest nodes on; NaN where there is none."""
    derived, fewest = points(dataset), int(like.nodes[0])
    if (
        not {*COMPARED} <= {*derived.interconnect.values.tolist()}
        or fewest not in derived.nodes.values
    ):
        return like.isel(step=0, drop=True) * np.nan
    ratio = log_ratios(derived, *COMPARED).reset_coords(drop=True)
    lost = (ratio - ratio.sel(nodes=fewest, drop=True)).mean("block")
    return -np.expm1(lost).reindex(nodes=like.nodes)


def falls_stated(chain: xr.Dataset) -> list[Statement]:
    """GigE's fall on the most nodes in every step; primary are the ends of the chain. It is simulated once, so that it has
    no interval."""
    found = falls_by_step(chain)
    first, most = found.nodes.values[[0, -1]].tolist()
    source, steps, statements = origin(chain), found.step.values.tolist(), []
    for step in steps:
        subject = f"GigE loses rate against 10GE from {first} to {most} nodes: {STEPS.get(step, quoted(step))}"
        fall = float(found.sel(step=step, nodes=most)), None, None
        is_end = step in (steps[0], steps[-1])
        statements.append(estimated(source, subject, "fall", fall, 1, primary=is_end))
    return statements


def chain_in_words(found: xr.DataArray, emulated: xr.DataArray) -> str:
    """GigE's fall at both ends of the chain, the part of each step, and the emulated fall (Markdown).

    `found` is from `falls_by_step`, `emulated` from `emulated_falls`.
    """
    last, most = found.isel(nodes=-1), int(found.nodes[-1])
    first, end = float(last[0]), float(last[-1])
    if not np.isfinite([first, end]).all():
        return "**What the scale model adds to GigE's fall cannot be said**: a case of the chain is missing."
    parts = [
        f"{'+' if part > 0 else MINUS}{fixed(100 * abs(part), 1)} by {STEPS.get(step, quoted(step))}"
        for step, part in zip(last.step.values.tolist()[1:], np.diff(last.values))
        if np.isfinite(part)
    ]
    sentences = [
        f"**GigE falls by as much in the scale model as on the paper's cluster, within {fixed(100 * abs(first - end), 1)} points**: by "
        f"{percent(first)} from {int(found.nodes[0])} to {counted(most, 'node')}, and by {percent(end)} at the paper's size on the "
        f"paper's node (simulated evidence). Step by step, the fall changes by these points: {listed(parts)}."
    ]
    ran = float(emulated.sel(nodes=most))
    if np.isfinite(ran):
        sentences.append(
            f"Emulated, the fall is {percent(ran)}: {fixed(100 * abs(ran - first), 1)} points from its simulation, and "
            f"{fixed(100 * abs(ran - end), 1)} from the paper's size."
        )
    return " ".join(sentences)


def over_dilations(runs: xr.Dataset) -> Figure:
    """Share of F over that at the reference dilation [%]: every block, means with 90 % intervals, the margin as an area."""
    names, log_ratio, margin = (
        names_in_text(runs),
        at_other_dilations(runs),
        designs.read(runs).margin,
    )
    compared = judged_ratios(log_ratio, margin, origin(runs)["evidence"], 0.05, SAME)
    with style.styled():
        figure, axes = drawing.new_figure(3.0)
        drawing.margin_around_100(axes, margin, "margin")
        series = compared.groupby(["interconnect", "nodes"], sort=False)
        for rank, ((name, n), at) in enumerate(series):
            dilations = at.index.get_level_values("dilation").values
            drawing.runs_and_means(
                axes,
                name,
                drawing.beside(dilations, rank, len(series)),
                100 * np.exp(log_ratio.sel(interconnect=name, nodes=n)),
                100 * at[["ratio", "low", "high"]],
                f"{names[name]}, {counted(int(n), 'node')}",
                "white" if n == log_ratio.nodes.values.min() else None,
            )
        label = "time is slowed down by a factor of [1]"
        drawing.doubling_axis(axes, log_ratio.dilation.values, label)
        axes.set_ylabel(f"share / share at {reference_dilation(runs):g} [%]")
        drawing.legend_below(figure, axes, 3)
    return figure


def over_nodes(emulated: xr.Dataset, simulated: xr.Dataset) -> Figure:
    """Emulated over simulated rate [%] over nodes with its 95 % interval and the goal as an area, a panel for each network."""
    log_ratio = over_simulated(emulated, simulated)
    compared = judged_ratios(log_ratio, GOAL, origin(emulated)["evidence"], 0.025, WITHIN)
    with style.styled():
        figure, panels = drawing.new_figures(2.8, log_ratio.sizes["interconnect"], sharey=True)
        for axes, name in zip(panels, log_ratio.interconnect.values):
            at = compared.loc[name]
            drawing.margin_around_100(axes, GOAL, "goal")
            means = (100 * at[end].values for end in ("ratio", "low", "high"))
            drawing.interval(axes, name, at.index.values, *means)
            drawing.doubling_axis(axes, drawing.apart(at.index.values, 1.9))
            axes.margins(x=0.1)
            axes.set_title(names_in_text(emulated)[name])
        panels[0].set_ylabel("emulated / simulated rate [%]")
    return figure


def by_step(found: xr.DataArray, emulated: xr.DataArray) -> Figure:
    """GigE's fall [%] in every step of the chain, a mark for each node count, and the emulated ones. The arguments are as of
    `chain_in_words`."""
    with style.styled():
        figure, axes = drawing.new_figure(2.2)
        nodes, rows = found.nodes.values[1:].tolist(), np.arange(found.sizes["step"])
        for rank, (count, marker) in enumerate(zip(nodes, "osD^v")):
            shift = 0.2 * (rank - (len(nodes) - 1) / 2)
            look = {"marker": marker, "color": style.INK, "ls": "none"}
            mark = {"mfc": "white", "label": f"{counted(count, 'node')}, simulated"}
            axes.plot(100 * found.sel(nodes=count), rows + shift, **look, **mark)
            if np.isfinite(emulated.sel(nodes=count)):
                label = f"{counted(count, 'node')}, emulated"
                axes.plot(100 * emulated.sel(nodes=count), shift, **look, label=label)
        drawing.rows(axes, [STEPS.get(step, quoted(step)) for step in found.step.values.tolist()])
        axes.set_xlabel("fall of GigE against 10GE [%]")
        drawing.legend_below(figure, axes, 3)
    return figure
