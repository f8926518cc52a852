"""HPL's points: those of a campaign as it planned them, and those of other results with the best
settings of each point.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from analysis.dataset import derive
from analysis.dataset.accessor import UNKNOWN_NETWORK
from analysis.dataset.contrasts import contrasts
from analysis.dataset.points import in_words, of_trials, plain, varying
from analysis.dataset.store import BLOCKS, UNORDERED
from analysis.imports.file_facts import repeat_named
from analysis.statements.exhibit import Basis, Table, label_of
from analysis.statements.statement import (
    Statement,
    basis_in_words,
    judged_fall,
    order_and_margin,
    planned_falls,
    ratio_change,
)
from analysis.statistics.intervals import mean_over
from analysis.statistics.judgement import (
    FALLS_OFF,
    FLAT,
    IF_ALIKE,
    RISES,
    SIZE_OPEN,
    UNDECIDED,
    Judgement,
    answers,
    judge,
    judge_unordered,
    within_campaign,
)
from analysis.statistics.reversals import reversals
from analysis.wording import counted, fixed, level_in_words, listed, number, percent, percent_range
from runners.records.record import FalloffError

# Runs with the same values of all of these are repeats; `settings` are all further ones, in words.
ALIKE = ["interconnect", "nodes", "processes", "N", "NB", "P", "Q", "variant", "settings"]
# Another way to say how many processes there are, and the scale of time, which rates do not keep.
_NO_OTHER = ("ranks_per_node", "dilation")
PLACE = ["interconnect", "x"]
# A variant has these alike on all nodes. N and the grid have to change with the nodes.
_VARIANT = ["NB", "variant", "settings", "each"]
MARGIN = 0.05  # of a fall; a rule of Falloff's, not of who made the runs
_WEAK = 0.2  # by which the memory of a node may differ in a series of one problem size a node
NO_NETWORK = (
    "Where no network is known there is no interval and no verdict "
    "(--set interconnect=NAME, or the column `network` of --map)"
)
_Groups = Sequence[tuple[int, Any]]  # a sign and logarithms each
_VERBS = {FALLS_OFF: "falls off", FLAT: "stays flat", RISES: "rises", SIZE_OPEN: "falls"}


@dataclass(frozen=True)
class HplResults:
    """The usable and distinct results of HPL in a dataset, over nodes or, if no number of nodes is
    known, over ranks.

    `runs` has a row for each result: its `trial_id`, `file`, `block`, ALIKE, `x`, `rate` [Gflop/s]
    and `share` [1]. `best` has a row for each interconnect and x: the settings with the highest
    harmonic mean. `points` are the runs with these, as the function `points` returns them.
    """

    runs: pd.DataFrame
    best: pd.DataFrame
    points: xr.Dataset


def most_tried(runs: pd.DataFrame) -> int:
    """The most settings that were tried at one interconnect and x."""
    return int(runs.drop_duplicates(ALIKE).groupby(PLACE).size().max())


def points(dataset: xr.Dataset) -> xr.Dataset:
    """HPL's points over (block, interconnect, nodes), as `derive.points` describes them.

    A campaign that varies networks and nodes is laid out as planned. Of any other dataset each
    point has the settings with the highest harmonic mean. Blocks are then only numbers of repeats
    where the order of runs is not known (`repeats` in the attributes), `nodes` are ranks where only
    these are known (its `long_name`), and the share is NaN at a single number of nodes without
    Rpeak; `notes` say what is missing, and how to supply it. `variant_rate` [Gflop/s], over
    (series, interconnect, nodes), is that of each variant, a series over the nodes. Raises
    FalloffError if no result is usable.
    """
    return derive.points(dataset) if _varies_nodes(dataset) else results(dataset).points


def is_planned(dataset: xr.Dataset) -> bool:
    """Whether a campaign planned to judge falls over nodes, from points that vary networks and
    nodes alone.
    """
    return _varies_nodes(dataset) and dataset.falloff.design.judges_falls


def _varies_nodes(dataset: xr.Dataset) -> bool:
    return dataset.falloff.design.factors.keys() == {"interconnect", "nodes"}


def results(dataset: xr.Dataset) -> HplResults:
    """The results of HPL with the best settings of each point; raises FalloffError if none is
    usable.
    """
    distinct, left_out = _usable(dataset)
    count = "nodes" if distinct.nodes.notna().any() else "ranks"
    runs = distinct.assign(x=distinct["nodes" if count == "nodes" else "processes"])
    if count == "ranks":
        runs["rpeak"] = np.nan  # it is a node's
    runs = runs.dropna(subset=["x", "rpeak"] if runs.rpeak.notna().any() else ["x"])
    if runs.empty:
        raise FalloffError("no result of HPL can be used: nothing tells its nodes or its grid")
    runs = runs.astype({"x": int})
    cost = (1 / runs.rate).groupby([runs[name] for name in [*ALIKE, "x"]], dropna=False).mean()
    tried = cost.reset_index(name="cost").sort_values("cost")
    best = tried.drop_duplicates(PLACE).drop(columns="cost")
    laid_out = _laid_out(dataset, runs.merge(best, on=[*ALIKE, "x"]), count)
    by_variant = _by_variant(tried).reindex_like(laid_out.rate).drop_vars(["interconnect", "nodes"])
    laid_out = laid_out.assign(variant_rate=by_variant)
    # Rates are known of points, or of numbers of nodes.
    known_rate = laid_out.known_rate.broadcast_like(laid_out.rate)
    at = {"nodes": runs.x.to_xarray(), "interconnect": runs.interconnect.to_xarray()}
    runs["share"] = runs.rate / mean_over(known_rate, "block", "cost").sel(at)
    notes = [*left_out, *_missing(distinct, runs, laid_out)]
    return HplResults(runs, best, laid_out.assign_attrs(notes=notes))


def unit(points: xr.Dataset) -> str:
    """What repeats of a point are: a "block", or a "run" where their order is not known."""
    return "run" if points.attrs.get("repeats") == UNORDERED else "block"


def results_if_any(dataset: xr.Dataset) -> HplResults | None:
    """The results of HPL; None if none is usable."""
    try:
        return results(dataset)
    except FalloffError:
        return None


def interval_fields(points: xr.Dataset, level: float = 0.95, of: str = "") -> dict[str, str]:
    """The fields of a statement that say what its interval is over, at this level: the unit `of`,
    by default that of the points."""
    of = of or unit(points)
    return {"kind": f"{level_in_words(level)} t interval over the {of}s", "n_of": of}


def medians(points: xr.Dataset) -> xr.Dataset:
    """The number of `variants` of each point, and the median of their `rate` [Gflop/s] and `share`
    [1], over (interconnect, nodes)."""
    rates = points.variant_rate
    of = {"variants": rates.count("series"), "rate": rates.median("series")}
    return xr.Dataset(of | {"share": of["rate"] * _share_of_rate(points)})


def _share_of_rate(points: xr.Dataset) -> xr.DataArray:
    """The share of 1 Gflop/s, over (interconnect, nodes)."""
    return (points.share / points.rate).mean("block")


def basis(points: xr.Dataset) -> Basis:
    """What figures and tables rest on: the blocks, or the fewest runs of a point."""
    runs = points.rate.count("block").values
    n = int(runs[runs > 0].min()) if unit(points) == "run" else points.sizes["block"]
    return replace(Basis.of_dataset(points, "95 % t intervals", n), of=unit(points))


def falls(points: xr.Dataset) -> list[Statement]:
    """The falls that a campaign planned to judge. Where nobody planned any, that of each network's
    share from its fewest to its most nodes, then that of its ratio to the network with the highest
    link rate, where all rates are known.

    Blocks are compared within each block, repeats without order as independent runs. Where there
    are more variants than such repeats at both ends, each variant is compared with itself. Each of
    the two groups is corrected for the number of its statements by Holm's procedure.
    """
    if is_planned(points):
        return [*planned_falls(points)]
    networks = points.falloff.names_by_rate(points.interconnect.values.tolist())
    *slower, fastest = [name for name in networks if name] or [""]
    alone = [(name, "") for name in (*slower, fastest) if name]
    rates = (points.falloff.networks[name].rate_bit_s for name, _ in alone)
    is_ranked = np.isfinite([*rates]).all()
    against_fastest = [(name, fastest) for name in slower if is_ranked]
    return [*_falls(points, alone), *_falls(points, against_fastest)]


def where_lost(points: xr.Dataset) -> str:
    """Before how many nodes most of the first planned loss comes: a later part of it is flat, and
    its interval ends below half of where that of the loss begins. Empty if the runs do not tell
    (Markdown)."""
    if not is_planned(points):
        return ""
    names = points.falloff.names
    loss, *others = contrasts(points)
    whole, lost = loss.verdict, loss.statement
    ends = lost.of, lost.against, lost.end
    for part in others:
        span, later = part.statement, part.verdict
        if (
            (span.of, span.against, span.end) == ends
            and (whole.answer, later.answer) == (FALLS_OFF, FLAT)
            and (whole.interval and later.interval)
            and later.interval[1] < whole.interval[0] / 2
        ):
            return (
                f"**Most of what {names[lost.of]} loses against {names[lost.against]} "
                f"it loses before {span.start} nodes**; "
                f"from there to {span.end} nodes their ratio stays flat. "
            )
    return ""


def table(points: xr.Dataset) -> Table:
    """Every point with its rate, its efficiency and its settings; means are geometric. Where
    variants were tried, also their number and the median of their rates."""
    names, count = points.falloff.names, derive.counted_in(points)
    means, rates, of_variants = (
        derive.means(points.share),
        derive.means(points.rate),
        medians(points),
    )
    cases = points[["N", "NB", "P", "Q"]].max("block").assign(rate=rates.ratio, runs=rates.blocks)
    cases = cases.assign(share=means.ratio, low=means.low, high=means.high)
    cases = cases.assign(variants=of_variants.variants, median=of_variants["rate"]).to_dataframe()
    is_tuned = bool((cases.variants > 1).any())
    rows = [
        (
            names[network],
            f"{nodes}",
            number(case.rate, 4),
            percent(case.share),
            percent_range((case.low, case.high)),
            f"{case.runs:.0f}",
            *([f"{case.variants:.0f}", number(case["median"], 4)] if is_tuned else []),
            *(fixed(case[name], 0) for name in ("N", "NB", "P", "Q")),
        )
        for (network, nodes), case in cases.dropna(subset="rate").iterrows()
    ]
    tuned = ("Variants", "Their median [Gflop/s]") if is_tuned else ()
    rate = "Best rate [Gflop/s]" if is_tuned else "Rate [Gflop/s]"
    heads = (rate, "Efficiency", "95 % t interval", "Runs", *tuned, "N", "NB", "P", "Q")
    return Table(
        label_of("points", points),
        ("Network", count.capitalize(), *heads),
        "l" + (1 + len(heads)) * "r",
        rows,
        "HPL's rates: geometric means of the runs with the best settings of each point. "
        f"The efficiency is the share of {points.share.attrs['of']}."
        + " The median is of the variants' rates, each with its best N and grid."
        * is_tuned,
    )


def _falls(points: xr.Dataset, pairs: Sequence[tuple[str, str]]) -> Iterator[Statement]:
    logs, places, verdicts = np.log(points.share), [], []
    evidence = points.evidence.item()
    # The explorer has none.
    variants = logs.isel(block=slice(0)).rename(block="series")
    if "variant_rate" in points:
        variants = np.log(points.variant_rate * _share_of_rate(points))
    for network, against in pairs:
        # The sign of each network's logarithms at the end.
        signs = {network: 1, against: -1} if against else {network: 1}
        counts = logs.sel(interconnect=[*signs]).count("block").min("interconnect")
        there = counts.nodes.values[counts.values > 0]
        if len(there) < 2:
            continue
        start, end = int(there.min()), int(there.max())
        signed, of_variants = (
            [
                (sign * at, values.sel(interconnect=name, nodes=n).values)
                for name, sign in signs.items()
                for n, at in ((end, 1), (start, -1))
            ]
            for values in (logs, variants)
        )
        by_best = None
        if unit(points) == "run":
            verdict, by_best = _unordered(signed, of_variants, evidence)
        else:
            verdict = judge(sum(sign * values for sign, values in signed), MARGIN, evidence)
        verdicts.append(verdict)
        places.append((network, against, start, end, by_best))
    names = points.falloff.names
    for (network, against, start, end, by_best), verdict in zip(places, within_campaign(verdicts)):
        over = unit(points) if by_best is None else "variant"
        name, of = names[network], f" against {names[against]}" if against else ""
        span = f"from {start} to {counted(end, derive.counted_in(points)[:-1])}"
        differing = listed(_differing(points, network, against, [start, end], over))
        subject, quantity = f"{name}'s efficiency", "its efficiency"
        if against:
            subject, quantity = f"{name}{of}", "the ratio of their rates"
        sentence = f"**{name} {_VERBS.get(verdict.answer, 'is undecided')}{of}** {span}"
        if differing:
            sentence += f", with different {differing}"
        if verdict.fall is not None:
            sentence += f": {quantity} {ratio_change(verdict.fall)}"
        if verdict.interval:
            n = counted(verdict.n, over) if over == "variant" else ""
            parts = basis_in_words(verdict, False), n, verdict.condition
            sentence += f" ({', '.join(filter(None, parts))})"
        if by_best is not None:
            sentence += f"; by the best of each point it {ratio_change(by_best)}"
        yield judged_fall(
            points,
            f"{subject} falls off {span}",
            verdict,
            **interval_fields(points, verdict.confidence or 0, over),
            primary=True,
            sentence=f"{sentence}." if verdict.decided else f"{sentence}. {verdict.reason}",
            series=network,
        )


def _unordered(runs: _Groups, variants: _Groups, evidence: str) -> tuple[Judgement, float | None]:
    """The judgement over runs without order, or over variants if these are more: then also the fall
    of the best of each point, which has to lie on the same side of the margin. Else variants of
    several sessions may be among them."""
    verdict = judge_unordered(runs, MARGIN, evidence)
    paired = judge(sum(sign * values for sign, values in variants), MARGIN, evidence)
    fall = verdict.fall
    if fall is None or paired.n <= max(verdict.n, 1):
        if verdict.n == 1 and any(np.isfinite(values).sum() > 1 for _, values in variants):
            few = f"{verdict.reason} Fewer than two variants ran at both ends."
            verdict = replace(verdict, reason=few)
        return verdict, None
    if paired.decided and answers(np.log1p(-fall), 0.0, MARGIN) != paired.answer:
        reason = "Variants and the best of each point lie on different sides of the margin."
        paired = replace(paired, answer=UNDECIDED, interval=None, confidence=None, p=None)
        paired = replace(paired, reason=reason)
    # All variants of a point may be of one session.
    return replace(paired, condition=IF_ALIKE), fall


def _differing(
    points: xr.Dataset, network: str, against: str, ends: list[int], over: str
) -> list[str]:
    """What else differs between the points of a fall than what it compares, with its values:
    between networks at one number of nodes, else over the nodes. A matrix that grows with the
    nodes' memory is one problem size. Over variants nothing differs that a variant keeps."""
    if "settings" not in points:
        return []
    networks = [network, against or network]
    chosen = points[["rate", *ALIKE[2:]]].sel(interconnect=networks, nodes=ends)
    table = chosen.to_dataframe().dropna(subset="rate").reset_index()
    table["processes a node"] = table.processes / table.nodes
    memory = table.N**2 / table.nodes
    is_weak = not against and memory.max() <= (1 + _WEAK) * memory.min()
    kept = ["NB", "variant", "settings", "processes a node"] * (over != "variant")
    columns = kept + ["N"] * (not is_weak)
    groups = table[columns].groupby(table.nodes if against else table.nodes > 0)
    several = groups.nunique(dropna=False).max() > 1
    values = {name: map(plain, sorted(table[name].unique())) for name in several.index[several]}
    return [f"{name} ({listed([*map(str, levels)])})" for name, levels in values.items()]


def _usable(dataset: xr.Dataset) -> tuple[pd.DataFrame, list[str]]:
    """The usable and distinct results, and notes on those that are left out."""
    table = _table(dataset)
    measured = table[table.rate.notna()]
    hpl = measured[measured.variant.str.match("W[RC]|$")]
    if hpl.empty:
        why = "all are in mixed precision (HPL-AI), which is no share of Rpeak"
        if measured.empty:
            why = "; ".join(filter(None, table.reason.unique())) or "it holds no HPL trial"
        raise FalloffError(f"no result of HPL can be used: {why}")
    # Drop results that another file repeats to every digit, as HPL.out does beside the job's own
    # output; not those of another run by the numbers in the paths.
    hpl = hpl.assign(numbered=[repeat_named(name) for name in hpl.file])
    alike = [*ALIKE, "numbered", "rate", "time"]
    repeat = hpl.groupby(["file", *alike], dropna=False).cumcount()
    distinct = hpl[~hpl.assign(repeat=repeat).duplicated([*alike, "repeat"])]
    steps = (
        ("Results that cannot be used, as the list says", table, measured),
        ("Results in mixed precision (HPL-AI), no share of Rpeak, left out", measured, hpl),
        ("Results that another file has to every digit, counted once", hpl, distinct),
    )
    notes = [
        f"{what}: {len(before) - len(after)} of {len(before)}"
        for what, before, after in steps
        if len(after) < len(before)
    ]
    return distinct.copy(), notes


def _table(dataset: xr.Dataset) -> pd.DataFrame:
    """One row for each result: trial_id, file, block, ALIKE, rate [Gflop/s], time [s], rpeak
    [flop/s], and the reason if it is unusable."""
    chosen = dataset.falloff.points
    about = ("trial_id", "file", "block", *ALIKE[:-1], "ranks_per_node", "rpeak", "reason")
    table = pd.DataFrame({name: chosen[name].values for name in about})
    settings = of_trials(chosen)
    further = [name for name in varying(settings) if name not in (*ALIKE, *_NO_OTHER)]
    table["settings"] = [", ".join(in_words(levels, further)) for levels in settings]
    # A campaign's own runs may be on several scales of time.
    table["rate"] = (chosen.hpl_rate * derive.slowed(chosen)).values
    table["time"] = chosen.hpl_time.values
    table["processes"] = table.processes.fillna(table.P * table.Q)
    on_nodes = table.P * table.Q / table.ranks_per_node
    table["nodes"] = table.nodes.fillna(on_nodes.where(on_nodes % 1 == 0))
    return table


def _by_variant(tried: pd.DataFrame) -> xr.DataArray:
    """The rate [Gflop/s] of each variant over (series, interconnect, nodes), with its best N and
    grid; `tried` are all settings with their mean `cost`, the best first. A matrix that fills the
    memory otherwise than that of the best settings is another problem."""
    memory = (tried.N / tried.groupby(PLACE).N.transform("first")) ** 2
    alike = tried[memory.isna() | memory.between(1 / (1 + _WEAK), 1 + _WEAK)]
    alike = alike.assign(each=alike.processes / alike.x)
    alike["series"] = alike.groupby(_VARIANT, dropna=False).ngroup()
    best = alike.drop_duplicates(["series", *PLACE]).set_index(["series", *PLACE])
    return 1 / best.cost.to_xarray().rename(x="nodes")


def _laid_out(dataset: xr.Dataset, best: pd.DataFrame, count: str) -> xr.Dataset:
    """The runs of the best settings over (block, interconnect, nodes), networks with a known rate
    first, slowest first.
    """
    best = best.sort_values("file", kind="stable")
    repeats = BLOCKS
    if dataset.falloff.is_unordered or best.duplicated([*PLACE, "block"]).any():
        repeats = UNORDERED
        best["block"] = best.groupby(PLACE).cumcount() + 1
    table = best.drop(columns="nodes").rename(columns={"x": "nodes"})
    table = table.set_index(["block", "interconnect", "nodes"])
    laid_out = table[["rate", "rpeak", "reason", *ALIKE[2:]]].to_xarray()
    laid_out = laid_out.reindex(interconnect=[*dataset.falloff.names_by_rate(best.interconnect)])
    laid_out.nodes.attrs = {"units": "1", "long_name": count}
    known_rate = derive.known_rate(dataset.falloff.testbed, laid_out.rate, laid_out.rpeak)
    share = laid_out.rate / known_rate
    if known_rate.attrs["of"].startswith("n times") and laid_out.sizes["nodes"] == 1:
        share = np.nan * share
    networks = {**dataset.falloff.table("interconnects"), "": {"short": UNKNOWN_NETWORK}}
    return (
        laid_out.assign(known_rate=known_rate, share=share.assign_attrs(known_rate.attrs))
        .assign_coords(evidence=dataset.falloff.evidence)
        .assign_attrs({**dataset.attrs, "interconnects": json.dumps(networks), "repeats": repeats})
    )


def _missing(results: pd.DataFrame, runs: pd.DataFrame, points: xr.Dataset) -> Iterator[str]:
    """What is not known of the usable results, and how to state it; then what the number and the
    choice of runs do not allow.
    """
    homeless, without_peak = results.nodes.isna(), results.rpeak.isna()
    given = results[results.ranks_per_node.notna() & results.processes.notna()]
    off = given[given.processes != given.nodes * given.ranks_per_node]
    on_nodes = "(--set nodes=N, or --map)" if len(off) else "(--set ranks_per_node=R, or nodes=N)"
    for row in off[:1].itertuples():
        place = f"{row.processes:g} processes with ranks_per_node = {row.ranks_per_node:g}"
        yield f"The grid of {len(off)} results does not fit their nodes, such as {place} {on_nodes}"
    if homeless.any():
        left_out = "all is over ranks" if homeless.all() else "they are left out"
        which = f"{homeless.sum()} of {len(results)} results"
        yield f"The number of nodes is not known of {which}, so {left_out} {on_nodes}"
    if 0 < without_peak.sum() < len(results):
        yield f"Results without an Rpeak, left out: {without_peak.sum()} (--set rpeak=F)"
    if (results.interconnect == "").any():
        yield NO_NETWORK
    of, rpeak = points.share.attrs["of"], "(--set rpeak=16*2.5e9*16, one node's flop/s)"
    if points.share.isnull().all():
        yield f"Of a single number of nodes there is no efficiency without Rpeak {rpeak}"
    elif of.startswith("n times"):
        yield f"Rpeak is not known, so the efficiency is the share of {of} {rpeak}"
    repeats = points.rate.count("block").values
    yield from order_and_margin(unit(points) == "run" and repeats.max() > 1, MARGIN)
    if single := (repeats == 1).sum():
        of_all = f"{single} of {(repeats > 0).sum()}"
        yield f"Points that are a single run, without an interval: {of_all}"
    means = derive.means(points.share).sortby("nodes", ascending=False)
    node = derive.counted_in(points)[:-1]
    for network, name in points.falloff.names_by_rate(points.interconnect.values).items():
        cases = means.sel(interconnect=network).dropna("nodes", subset=["ratio"])
        for step in reversals(cases.ratio.values, cases.low.values, cases.high.values, MARGIN):
            low, high = (counted(cases.nodes[end].item(), node) for end in (step.end, step.start))
            yield (
                f"{name}'s efficiency on {low} lies outside, below that on {high}: "
                "are these runs comparable?"
            )
    if (choices := most_tried(runs)) > 1:
        most = int(runs.groupby([*ALIKE, "x"], dropna=False).size().max())
        ran = f"each with {'up to ' * (most > 1)}{counted(most, 'run')}"
        favours = "which favours what scatters more"
        yield f"Each point is the best of up to {choices} settings, {ran}, {favours}"
    if medians(points).variants.max() > 1:
        yield (
            "A variant keeps NB, algorithm and processes a node on all nodes, with its best N and "
            "grid on each; variants are no repeats, as they may share a session"
        )
    if of == derive.PEAK and points.share.max() > 1:
        yield "More than 100 % of Rpeak: rpeak has to be one node's, at the clock that it ran at"
