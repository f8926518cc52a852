"""Emulation against simulation at the same rates: is the scale model as fast as its own description says?

SimGrid is given exactly the rates of data/testbeds/scale_model.toml, and none is fitted. A network whose points
agree therefore does what it is described to do; where they do not, HPL's own timers say where the time goes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.attributes import short_names, testbed
from analysis.derive import at_only_level, over_factors, points
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import T_INTERVAL, Finding, of_estimate, origin
from analysis.statistics.intervals import ratios, summary
from analysis.statistics.judgement import FALLS_OFF, FLAT, RISES, judge
from analysis.wording import UNKNOWN, between, counted, estimate, fixed, listed, number, percent
from runners.record import FalloffError

FIGURES = {"agreement": ("hpl_scaling", "hpl_agreement")}  # what each rests on
# What agreement is [1]: the slower the network, the less the emulation's own microseconds count.
GOALS = {"gige": 0.02}
GOAL = 0.03  # of every other network
ONE_SIDED = 0.025  # level of a 95 % interval
WITHIN, SLOWER, FASTER, OPEN = "within", "slower", "faster", "open"
# HPL's timers, each of the process that spent most in it; the second of each pair is a part of the first.
TIMERS = {
    "hpl_time": "whole run",
    "hpl_rfact_time": "panel factorisation",
    "hpl_mxswp_time": "of which pivot search and exchange",
    "hpl_update_time": "update",
    "hpl_laswp_time": "of which row swaps",
}


@dataclass(frozen=True)
class Agreement:
    """Two campaigns over the same points, emulated and simulated, and how well they agree.

    `points` are the emulated ones that were simulated, too. `shares`, over (interconnect, nodes), holds the shares of F [1]:
    `emulated` (geometric mean) with its 95 % t interval `low`, `high` over `blocks`, and `simulated`; their `ratio` emulated /
    simulated with its interval `ratio_low`, `ratio_high`; the `goal` [1] of its network, and the `answer`: WITHIN it, SLOWER or
    FASTER beyond it (the whole interval), else OPEN. `times`, over (timer, interconnect, nodes), holds HPL's timers [s] where both have them:
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
    hpl_scaling: xr.Dataset, hpl_agreement: xr.Dataset, token_nodes: xr.Dataset | None = None
) -> Agreement:
    """Compare the points that both campaigns have; `hpl_agreement` is simulated, `token_nodes` of tokens on the same links.

    Raises FalloffError when one holds no HPL trial, they have no point in common or were run with another rate of the
    nodes, or the simulated campaign has several blocks.
    """
    ran, model = points(hpl_scaling), at_only_level(points(hpl_agreement), "block")
    _check_rates(ran, model)
    ran, model = xr.align(ran, model, join="inner", exclude=["block"])
    if not ran.rate.size:
        names = hpl_scaling.attrs["campaign"], hpl_agreement.attrs["campaign"]
        raise FalloffError(f"Campaigns {names[0]} and {names[1]} have no point in common.")
    log_ratio = np.log(ran.share) - np.log(model.share.reset_coords(drop=True))
    between_them = ratios(log_ratio).rename(low="ratio_low", high="ratio_high").drop_vars("blocks")
    shares = ratios(np.log(ran.share)).rename(ratio="emulated")
    goal = xr.DataArray([goal_of(name) for name in ran.interconnect.values], dims="interconnect")
    shares = shares.assign(simulated=model.share.reset_coords(drop=True), goal=goal, **between_them)
    times = summary(_times(hpl_scaling).where(ran.rate.notnull())).rename(mean="emulated")
    of_model = _times(hpl_agreement).squeeze("block", drop=True).reindex_like(times)
    return Agreement(
        dataset=hpl_scaling,
        simulated=hpl_agreement,
        points=ran,
        evidence=ran.evidence.item(),
        shares=shares.assign(answer=_answers(log_ratio, goal)),
        times=times.assign(simulated=of_model),
        latency=None if token_nodes is None else measured_latency(token_nodes),
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


def ratios_over_nodes(study: Agreement) -> Figure:
    """Emulated over simulated rate [%] over nodes with its interval and the goal as an area, a panel a network."""
    shares, names = study.shares, short_names(study.dataset)
    with style.styled():
        figure, panels = drawing.new_figures(2.8, shares.sizes["interconnect"])
        for axes, name in zip(panels, shares.interconnect.values):
            axes.sharey(panels[0])
            at = shares.sel(interconnect=name)
            goal = 100 * float(at.goal)
            axes.axhspan(100 - goal, 1e4 / (100 - goal), color=style.MARGIN, zorder=0, label="goal")
            axes.axhline(100, color=style.INK, linewidth=0.8)
            ends = ("ratio", "ratio_low", "ratio_high")
            means = (100 * at[end].values for end in ends)
            drawing.interval(axes, name, at.nodes.values, *means)
            drawing.node_axis(axes, drawing.apart(at.nodes.values, 1.9))
            axes.margins(x=0.1)
            axes.set_title(f"{names[name]}, goal {goal:g} %")
        panels[0].set_ylabel("emulated / simulated rate [%]")
        for axes in panels[1:]:
            axes.tick_params(labelleft=False)
        return figure


def finding(study: Agreement) -> str:
    """How many points agree, which do not, and the largest difference, in plain English (Markdown)."""
    known = _known_points(study)
    if not known:
        return "**Whether emulation and simulation agree cannot be said**: no point has both."
    names = short_names(study.dataset)
    within = sum(at.answer == WITHIN for at in known)
    worst = max(known, key=lambda at: abs(np.log(float(at.ratio))))
    off = float(worst.ratio) - 1
    network = names[worst.interconnect.item()]
    where = f"{'the ' if network == 'control' else ''}{network} with {counted(int(worst.nodes), 'node')}"
    interval = ""
    if np.isfinite(worst.ratio_low):
        ends = between((100 * float(worst.ratio_low), 100 * float(worst.ratio_high)), 1)
        interval = f"95 % interval of the ratio {ends} %, "
    basis = f"({interval}{counted(int(worst.blocks), 'block')}, {study.evidence} evidence)"
    head = (
        "**The emulated cluster is as fast as it is described**"
        if within == len(known)
        else "**The emulated cluster is not everywhere as fast as it is described**"
        if any(at.answer in (SLOWER, FASTER) for at in known)
        else "**Whether the emulated cluster is as fast as it is described is partly open**"
    )
    said = [
        f"{head}: {int(within)} of {counted(len(known), 'point')} agree with a simulation at the same rates, within {_goals(study)}.",
        _beyond(study, names),
        f"The largest difference is {percent(abs(off))}: HPL on {where} is {'slower' if off < 0 else 'faster'} than simulated {basis}.",
    ]
    return " ".join(filter(None, said))


def _known_points(study: Agreement) -> list[xr.Dataset]:
    stacked = study.shares.stack(point=("interconnect", "nodes"))
    places = [stacked.isel(point=number) for number in range(stacked.sizes["point"])]
    return [at for at in places if np.isfinite(at.ratio)]


def _goals(study: Agreement) -> str:
    """Such as "2 % on GigE, 3 % on 10GE and control"."""
    names, goals = short_names(study.dataset), study.shares.goal
    parts = []
    for level in sorted(set(goals.values.tolist())):
        those = [names[name] for name in goals.interconnect.values[goals.values == level]]
        parts.append(f"{percent(level, 0)} on {listed(those)}")
    return ", ".join(parts)


def _beyond(study: Agreement, names: dict) -> str:
    """Which points do not agree, and for which it is open."""
    heads = {SLOWER: "Slower than the goal", FASTER: "Faster than the goal", OPEN: "Open"}
    said = []
    for answer, head in heads.items():
        where = "; ".join(_places(study, answer, names))
        if where:
            said.append(f"{head}: {where}.")
    return " ".join(said)


def _places(study: Agreement, answer: str, names: dict) -> Iterator[str]:
    """Such as "GigE on 8, 16 nodes", of the points with both values."""
    here = (study.shares.answer == answer) & study.shares.ratio.notnull()
    for name in here.interconnect.values:
        nodes = here.nodes.values[here.sel(interconnect=name).values]
        if len(nodes):
            yield f"{names[name]} on {', '.join(map(str, nodes))} nodes"


def findings(study: Agreement) -> Iterator[Finding]:
    """Every point's ratio, as data."""
    source, names = origin("hpl_agreement", study.dataset), short_names(study.dataset)
    for name in study.shares.interconnect.values.tolist():
        for nodes in study.shares.nodes.values.tolist():
            at = study.shares.sel(interconnect=name, nodes=nodes)
            statement = f"emulated over simulated rate of HPL on {names[name]}, {nodes} nodes, within {100 * float(at.goal):g} %"
            yield of_estimate(
                source,
                statement,
                "ratio",
                "1",
                float(at.ratio),
                (float(at.ratio_low), float(at.ratio_high)),
                T_INTERVAL,
                n=int(at.blocks),
                answer=at.answer.item(),
            )


def figures(study: Agreement) -> dict[str, Exhibit]:
    """The ratio of emulated and simulated rates over nodes."""
    return {
        "agreement": Exhibit(
            "agreement",
            ratios_over_nodes(study),
            "HPL's emulated rate over the rate that a simulation gives at the same speeds of nodes and links",
            _basis(study),
            "Emulated over simulated rate over nodes, a panel for each network, with the goal",
            "Marks are geometric means, bars their intervals; shaded is the goal, set for each network.",
            rests_on=FIGURES["agreement"],
        )
    }


def _basis(study: Agreement) -> Basis:
    return Basis(study.evidence, study.points.sizes["block"], "95 % t intervals")


def points_table(study: Agreement) -> Table:
    """Every point's emulated and simulated share, and their ratio."""
    names, rows = short_names(study.dataset), []
    for name in study.shares.interconnect.values.tolist():
        for n in study.shares.nodes.values.tolist():
            at = study.shares.sel(interconnect=name, nodes=n)
            answer = at.answer.item() if np.isfinite(at.ratio) else UNKNOWN
            share = estimate(*(100 * at[end] for end in ("emulated", "low", "high")))
            ends = (at[end] for end in ("ratio", "ratio_low", "ratio_high"))
            ratio = estimate(*ends, lambda value: fixed(value, 3))
            simulated = estimate(100 * at.simulated, np.nan, np.nan)
            rows.append((names[name], str(n), share, simulated, ratio, answer, str(int(at.blocks))))
    columns = (
        "Network",
        "Nodes",
        "Emulated [%] (95 % interval)",
        "Simulated [%]",
        "Emulated / simulated [1] (95 % interval)",
        "Agrees?",
        "Blocks",
    )
    caption = (
        f"Shares of what the nodes compute, emulated and simulated: geometric means. Within: the whole interval lies within "
        f"{_goals(study)}; slower or faster: beyond; open: neither"
    )
    return Table("agreement", columns, "lrlrllr", rows, caption, _basis(study))


def timers_table(study: Agreement) -> Table | None:
    """HPL's own timers on the most nodes, emulated and simulated; None where none has both."""
    names, nodes = short_names(study.dataset), int(study.times.nodes.max())
    rows = []
    for name in study.times.interconnect.values.tolist():
        of_point = study.times.sel(interconnect=name, nodes=nodes)
        whole = float(of_point.simulated.sel(timer="hpl_time"))
        for timer, words in TIMERS.items():
            at = of_point.sel(timer=timer)
            if np.isfinite(at.emulated) and np.isfinite(at.simulated):
                emulated = estimate(at.emulated, at.low, at.high)
                longer = fixed(100 * float(at.emulated - at.simulated) / whole, 1)
                rows.append((names[name], words, emulated, number(float(at.simulated)), longer))
    if not rows:
        return None
    columns = (
        "Network",
        "Timer",
        "Emulated [s] (95 % interval)",
        "Simulated [s]",
        "Longer, of the run [%]",
    )
    caption = (
        f"HPL's own timers on {counted(nodes, 'node')}, each of the process that spent most in it: arithmetic means. Waiting for "
        "broadcasts is in none of them, so that they do not add up to the run"
    )
    return Table("agreement-times", columns, "lllrr", rows, caption, _basis(study))


def latency_table(study: Agreement) -> Table | None:
    """What the simulation takes for a message's latency, and what one pair of nodes measures; None without a measurement."""
    if study.latency is None:
        return None
    described, names = testbed(study.simulated)["network"], short_names(study.dataset)
    rows = []
    for name in study.latency.interconnect.values.tolist():
        at = study.latency.sel(interconnect=name)
        if name in described:
            measured = estimate(1e6 * at["mean"], 1e6 * at.low, 1e6 * at.high)
            taken = number(1e6 * described[name]["latency"]["value"])
            rows.append((names[name], taken, measured, str(int(at.blocks))))
    columns = ("Network", "Simulated [µs]", "Measured [µs] (95 % interval)", "Blocks")
    caption = f"How long a short message takes between one pair of nodes ({study.evidence} evidence, arithmetic means)."
    return Table("agreement-latency", columns, "lrlr", rows, caption)
