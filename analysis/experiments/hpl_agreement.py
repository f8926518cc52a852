"""Emulation against simulation at the same rates: is the scale model as fast as its own description says?

SimGrid is given exactly the rates of data/testbeds/scale_model.toml, and none is fitted. A network whose points
agree therefore does what it is described to do; where they do not, HPL's own timers say where the time goes.
"""

import json
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.derive import at_only_level, over_factors, points
from analysis.inference.over_blocks import ratios, summary
from analysis.statistics.judgement import FALLS_OFF, FLAT, RISES, judge
from analysis.studies.scaling import short_names
from analysis.wording import between, counted, fixed, micro, percent
from runners.record import FalloffError

GOALS = {
    "gige": 0.02
}  # what agreement is: the slower the network, the less the emulation's own microseconds count
GOAL = 0.03  # of every other network
ONE_SIDED = 0.025  # level of a 95 % interval
WITHIN, SLOWER, FASTER, OPEN = "within", "slower", "faster", "open"
TIMED_NODES = (8, 16)  # where HPL's timers are compared
# HPL's timers, each of the process that spent most in it; the second of each pair is a part of the first.
TIMERS = {
    "hpl_time": "whole run",
    "hpl_rfact_time": "panel factorisation",
    "hpl_mxswp_time": "of which pivot search and exchange",
    "hpl_update_time": "update",
    "hpl_laswp_time": "of which row swaps",
}
MANY_MESSAGES = ("hpl_mxswp_time", "hpl_laswp_time")


@dataclass(frozen=True)
class Agreement:
    """Two campaigns over the same points, emulated and simulated, and how well they agree.

    `points` are the emulated ones that were simulated, too. `shares`, over (interconnect, nodes), holds the shares of F [1]: `emulated` (geometric mean) with its 95 % t interval
    `low`, `high` over `blocks`, and `simulated`; their `ratio` emulated / simulated with its interval `ratio_low`,
    `ratio_high`; the `goal` [1] of its network, and the `answer`: WITHIN it, SLOWER or FASTER beyond it (the whole
    interval), else OPEN. `times`, over (timer, interconnect, nodes), holds HPL's timers [s] where both have them:
    `emulated` (arithmetic mean), `low`, `high`, `blocks` and `simulated`. `latency` is as `measured_latency` gives it,
    None without a campaign of tokens; the simulation's is to be that one.
    """

    dataset: xr.Dataset
    simulated: xr.Dataset
    points: xr.Dataset
    evidence: str
    shares: xr.Dataset
    times: xr.Dataset
    latency: xr.Dataset | None

    @property
    def blocks(self) -> int:
        """The most blocks that a point has."""
        return int(self.shares.blocks.max())


def analyse(
    emulated: xr.Dataset, simulated: xr.Dataset, tokens: xr.Dataset | None = None
) -> Agreement:
    """Compare the points that both campaigns have; `tokens` is the campaign of tokens on the same links.

    Raises FalloffError when one holds no HPL trial, they have no point in common or were run with another rate of the
    nodes, or the simulated campaign has several blocks.
    """
    ran, model = points(emulated), at_only_level(points(simulated), "block")
    _check_rates(ran, model)
    ran, model = xr.align(ran, model, join="inner", exclude=["block"])
    if not ran.rate.size:
        raise FalloffError(
            f"Campaigns {emulated.attrs['campaign']} and {simulated.attrs['campaign']} have no point in common."
        )
    log_ratio = np.log(ran.share) - np.log(model.share.reset_coords(drop=True))
    between_them = ratios(log_ratio).rename(low="ratio_low", high="ratio_high").drop_vars("blocks")
    shares = ratios(np.log(ran.share)).rename(ratio="emulated")
    goal = xr.DataArray([goal_of(name) for name in ran.interconnect.values], dims="interconnect")
    shares = shares.assign(simulated=model.share.reset_coords(drop=True), goal=goal, **between_them)
    times = summary(_times(emulated).where(ran.rate.notnull())).rename(mean="emulated")
    of_model = _times(simulated).squeeze("block", drop=True).reindex_like(times)
    return Agreement(
        dataset=emulated,
        simulated=simulated,
        points=ran,
        evidence=ran.evidence.item(),
        shares=shares.assign(answer=_answers(log_ratio, goal)),
        times=times.assign(simulated=of_model),
        latency=None if tokens is None else measured_latency(tokens),
    )


def measured_latency(tokens: xr.Dataset) -> xr.Dataset:
    """The one-way time of a short message between one pair of nodes [s], over (interconnect).

    It is half of the median round trip of the smallest tokens: `mean` over the blocks (arithmetic; of runs before
    that), its 95 % t interval `low`, `high`, and `blocks`. Raises FalloffError when there is no token trial.
    """
    one_way = tokens.token_round_trip.sel(quantile=0.5).isel(pair=0).mean("run") / 2
    laid_out = over_factors(tokens, runner="token_exchange", latency=one_way).latency
    smallest = laid_out.sel(token_bytes=laid_out.token_bytes.min(), drop=True)
    return summary(
        smallest.squeeze(
            [dim for dim in smallest.dims if dim not in ("interconnect", "block")], drop=True
        )
    )


def goal_of(interconnect: str) -> float:
    """Within which part of the simulated rate an emulated one is to be [1]."""
    return GOALS.get(interconnect, GOAL)


def _check_rates(ran: xr.Dataset, model: xr.Dataset) -> None:
    rates = [float((each.known_rate / each.nodes).max()) for each in (ran, model)]
    if not np.isclose(*rates, rtol=1e-6):
        raise FalloffError(
            f"Campaign {ran.attrs['campaign']} ran on nodes of {rates[0]:g} Gflop/s, {model.attrs['campaign']} on nodes of "
            f"{rates[1]:g}: give the simulated testbed the emulated one's rates, and run it again."
        )


def _times(dataset: xr.Dataset) -> xr.DataArray:
    """HPL's timers [s] over (timer, block, *factors)."""
    found = over_factors(dataset, **{name: dataset[name] for name in TIMERS})
    return found[list(TIMERS)].to_array("timer")


def _answers(log_ratio: xr.DataArray, goal: xr.DataArray) -> xr.DataArray:
    said = {FLAT: WITHIN, FALLS_OFF: SLOWER, RISES: FASTER}

    def answer(values: np.ndarray, margin: float) -> str:
        return said.get(judge(values, float(margin), "emulated", ONE_SIDED).answer, OPEN)

    found = xr.apply_ufunc(
        answer,
        log_ratio,
        goal,
        input_core_dims=[["block"], []],
        vectorize=True,
        output_dtypes=[object],
    )
    return found.astype(str)


def draw(study: Agreement) -> dict[str, Figure]:
    """The figure by its name."""
    return {"agreement": over_nodes(study)}


def over_nodes(study: Agreement) -> Figure:
    """A column a network: above the share of F [%] over nodes, emulated marks with intervals and the simulated line;
    below their ratio [%] with its interval, and the goal as an area."""
    shares, names = study.shares, short_names(study.dataset)
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 4.2))
        panels = figure.subplots(
            2, shares.sizes["interconnect"], sharex=True, sharey="row", squeeze=False
        )
        figure.get_layout_engine().set(h_pad=0.06)
        for (above, below), name in zip(panels.T, shares.interconnect.values):
            at = shares.sel(interconnect=name)
            _shares(above, name, at)
            _ratios(below, name, at)
            above.set_title(names[name])
            drawing.node_axis(below, at.nodes.values)
            below.set_xticks(ticks := drawing.apart(at.nodes.values, 1.9), [str(n) for n in ticks])
        panels[0, 0].set_ylabel("HPL rate / F\nof the nodes [%]")
        panels[1, 0].set_ylabel("emulated /\nsimulated [%]")
        drawing.legend_below(figure, panels[:, 0], 3)
        return figure


def _shares(axes: Axes, name: str, at: xr.Dataset) -> None:
    axes.plot(
        at.nodes,
        100 * at.simulated,
        color=style.INK,
        linewidth=1,
        gid=drawing.MODEL,
        label="simulated",
    )
    drawing.interval(
        axes, name, at.nodes.values, *(100 * at[end].values for end in ("emulated", "low", "high"))
    )
    axes.plot([], [], "o", color=style.INK, mfc="white", label="emulated, 95 % interval")


def _ratios(axes: Axes, name: str, at: xr.Dataset) -> None:
    goal = 100 * float(at.goal)
    axes.axhspan(100 - goal, 1e4 / (100 - goal), color=style.MARGIN, zorder=0, label="goal")
    axes.axhline(100, color=style.INK, linewidth=0.8)
    ends = ("ratio", "ratio_low", "ratio_high")
    drawing.interval(axes, name, at.nodes.values, *(100 * at[end].values for end in ends))


def finding(study: Agreement) -> str:
    """How many points agree, the largest difference and where its time goes, in plain English (Markdown)."""
    shares = study.shares.stack(point=("interconnect", "nodes"))
    shares = shares.sel(point=shares.ratio.notnull())
    if not shares.sizes["point"]:
        return "**Whether emulation and simulation agree cannot be said**: no point has both."
    names = short_names(study.dataset)
    within = int((shares.answer == WITHIN).sum())
    worst = shares.isel(point=int(np.argmax(np.abs(np.log(shares.ratio.values)))))
    off = float(worst.ratio) - 1
    where = f"{names[worst.interconnect.item()]} on {counted(int(worst.nodes), 'node')}"
    goals = " and ".join(dict.fromkeys(_goal_in_words(study)))
    interval = (
        ""
        if np.isnan(worst.ratio_low)
        else f"95 % t interval of the ratio {_interval(worst, 'ratio_', 3)}, "
    )
    basis = f"({interval}{counted(int(worst.blocks), 'block')}, {study.evidence} evidence)"
    said = [
        f"**Of {shares.sizes['point']} points {within} agree with a simulation at the same rates**, within {goals}.",
        f"The largest difference is {percent(abs(off))}, {'slower' if off < 0 else 'faster'} emulated: {where} {basis}.",
        _beyond(study, names),
        _where_time_goes(study, names),
    ]
    return " ".join(filter(None, said))


def _goal_in_words(study: Agreement) -> list[str]:
    names, goals = short_names(study.dataset), study.shares.goal
    levels = sorted(set(goals.values.tolist()))
    return [
        f"{percent(level, 0)} on {', '.join(names[name] for name in goals.interconnect.values[goals.values == level])}"
        for level in levels
    ]


def _beyond(study: Agreement, names: dict) -> str:
    """Which points do not agree, and for which it is open."""
    said = {"Slower than the goal": SLOWER, "Faster than the goal": FASTER, "Open": OPEN}
    places = {words: "; ".join(_places(study, answer, names)) for words, answer in said.items()}
    return " ".join(f"{words}: {where}." for words, where in places.items() if where)


def _places(study: Agreement, answer: str, names: dict) -> list[str]:
    """Such as "GigE on 8, 16 nodes", of the points with both values."""
    here = (study.shares.answer == answer) & study.shares.ratio.notnull()
    found = {
        name: here.nodes.values[here.sel(interconnect=name).values]
        for name in here.interconnect.values
    }
    return [
        f"{names[name]} on {', '.join(map(str, nodes))} nodes"
        for name, nodes in found.items()
        if len(nodes)
    ]


def _where_time_goes(study: Agreement, names: dict) -> str:
    """How much longer the emulation takes on the most nodes, and what part of it pivots and row swaps are."""
    nodes = int(study.times.nodes.max())
    longer = (study.times.emulated - study.times.simulated).sel(nodes=nodes)
    said = []
    for name in longer.interconnect.values:
        at = longer.sel(interconnect=name)
        whole, parts = (
            float(at.sel(timer="hpl_time")),
            float(at.sel(timer=list(MANY_MESSAGES)).sum(skipna=False)),
        )
        if np.isfinite(whole) and np.isfinite(parts):
            said.append(f"{fixed(whole, 2)} s on {names[name]} ({fixed(parts, 2)} s)")
    if not said:
        return ""
    return f"On {counted(nodes, 'node')} an emulated run takes longer by (in parentheses: in pivots and row swaps): {', '.join(said)}."


def section(study: Agreement) -> str:
    """The experiment's part of the report, Markdown: finding, figure and tables."""
    unit = f"{study.evidence} evidence, n = {counted(study.blocks, 'block')}"
    timed = _timed_rows(study)
    where = f"""
HPL's own timers say where the time goes on both sides ([](#tbl:agreement-times)). Each is that of the process that spent most in
it, printed to 0.01 s. They do not add up to the run: waiting for broadcasts is in none of them.

| Network | Nodes | Timer | Emulated [s] (95 % interval) | Simulated [s] | Longer, of the run [%] |
|:--|--:|:--|:---|--:|--:|
{timed}

Table: HPL's timers: arithmetic means with 95 % t intervals of the emulated runs ({unit}), beside the simulated run. {{#tbl:agreement-times}}
"""
    return f"""# Is the emulated cluster as fast as it is described?

The scale model's description says how fast a node computes and how much a link carries. SimGrid simulates HPL's own code at exactly
these rates, of which none is fitted. A rate is given as a share of F, what the nodes compute together. One setting of SimGrid was
chosen with these results in view, as the one that agrees best: up to which length a message leaves before its receiver is ready. It
is that of every other simulation here; on GigE the agreement is therefore not all prediction.

{finding(study)}

![Emulated and simulated share of F over nodes (above), and their ratio (below) ({unit}). Marks and bars are geometric means with 95 % t intervals, which may be smaller than the marks; the line is the simulation, which repeats itself exactly; shaded is the goal.](figures/agreement.svg){{#fig:agreement alt="Above, the share of F over nodes for each network, emulated and simulated; below, their ratio with the goal"}}

A simulated network only delays and limits. The emulated one also costs this machine's processors some microseconds a message,
and nodes that send at once share these processors. That is charged to no node, but a message arrives later. So the latency of
fast networks was measured with as many pairs of nodes at once as there are. GigE's own links space messages out: its latency is that
of one pair.
{_latency(study)}

| Network | Nodes | Emulated [%] (95 % interval) | Simulated [%] | Emulated / simulated (95 % interval) | Agrees? | Blocks |
|:--|--:|:---|--:|:---|:--|--:|
{_point_rows(study)}

Table: Shares of F, and the ratio of the two: geometric means with 95 % t intervals ({study.evidence} evidence). "Within": the whole interval lies within the goal of {" and ".join(_goal_in_words(study))}; "slower" or "faster": beyond it; "open": neither. {{#tbl:agreement}}
{where if timed else ""}"""


def _latency(study: Agreement) -> str:
    """What the simulation takes for a message's latency beside what one pair of nodes measures."""
    if study.latency is None:
        return ""
    described = json.loads(study.simulated.attrs["testbed_settings"])["network"]
    names = short_names(study.dataset)
    said = [
        f"{names[name]} {micro(described[name]['latency']['value'])} (measured {micro(float(at['mean']))}, n = {counted(int(at.blocks), 'block')})"
        for name in study.latency.interconnect.values
        if name in described and np.isfinite((at := study.latency.sel(interconnect=name))["mean"])
    ]
    return (
        f"Of one pair of nodes alone the simulated latencies are {', '.join(said)}.\n"
        if said
        else ""
    )


def _point_rows(study: Agreement) -> str:
    names = short_names(study.dataset)
    rows = []
    for name in study.shares.interconnect.values:
        for n in study.shares.nodes.values:
            at = study.shares.sel(interconnect=name, nodes=n)
            answer = at.answer.item() if np.isfinite(at.ratio) else "—"
            share, ratio = (
                _with_interval(100 * at[["emulated", "low", "high"]], "emulated", "", 1),
                _with_interval(at, "ratio", "ratio_", 3),
            )
            rows.append(
                (
                    names[name],
                    str(n),
                    share,
                    fixed(_known(100 * at.simulated), 1),
                    ratio,
                    answer,
                    str(int(at.blocks)),
                )
            )
    return _rows(rows)


def _timed_rows(study: Agreement) -> str:
    names, times = short_names(study.dataset), study.times
    rows = []
    for name in times.interconnect.values:
        for n in [n for n in TIMED_NODES if n in times.nodes.values]:
            of_point = times.sel(interconnect=name, nodes=n)
            whole = of_point.simulated.sel(timer="hpl_time")
            for timer, words in TIMERS.items():
                at = of_point.sel(timer=timer)
                if np.isfinite(at.emulated) and np.isfinite(at.simulated):
                    longer = fixed(float(100 * (at.emulated - at.simulated) / whole), 1)
                    emulated = _with_interval(at, "emulated", "", 2)
                    rows.append(
                        (
                            names[name],
                            str(n),
                            words,
                            emulated,
                            fixed(float(at.simulated), 2),
                            longer,
                        )
                    )
    return _rows(rows)


def _rows(rows) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _with_interval(at: xr.Dataset, name: str, ends: str, decimals: int) -> str:
    interval = f" ({_interval(at, ends, decimals)})" if np.isfinite(at[f"{ends}low"]) else ""
    return fixed(_known(at[name]), decimals) + interval


def _interval(at: xr.Dataset, ends: str, decimals: int) -> str:
    return between((float(at[f"{ends}low"]), float(at[f"{ends}high"])), decimals)


def _known(value) -> float | None:
    return float(value) if np.isfinite(value) else None
