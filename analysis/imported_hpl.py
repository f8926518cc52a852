"""Analyse HPL results that were run elsewhere: rates and efficiencies over nodes, the falls of each
network, the laws that they follow, and what the files do not tell."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr

from analysis import attributes
from analysis.derive import slowed
from analysis.file_facts import repeat_named
from analysis.fitting.scaling_laws import LAWS, SETTINGS, Laws, fit_each, held_out
from analysis.importing import BLOCKS, UNORDERED
from analysis.points import in_words, of_trials, plain, varying
from analysis.statistics.intervals import average
from analysis.statistics.judgement import Judgement, judge, within_campaign
from analysis.statistics.unordered import judge_unordered
from analysis.store import IMPORTED
from analysis.wording import listed
from runners.record import FalloffError

# Runs with the same values of all of these are repeats; `settings` are all further ones, in words.
ALIKE = ["interconnect", "nodes", "processes", "N", "NB", "P", "Q", "variant", "settings"]
# Another way to say how many processes there are, and the scale of time, which rates do not keep.
_NO_OTHER = ("ranks_per_node", "dilation")
NO_NETWORK = "Where no network is known there is no interval and no verdict: --set interconnect=NAME, or the column `network` of --map."
_WEAK = 0.2  # by which the memory of a node may differ in a series of one problem size a node
MARGIN = 0.05  # of a fall; a rule of Falloff's, not of who made the runs
PEAK, ONE_NODE, FEWEST = "Rpeak", "one node's rate", "the rate per node on the fewest"
# A law is fitted to at most this share of the most nodes, and predicts these.
SEEN = 0.5


@dataclass(frozen=True)
class Fall:
    """The judged fall of a network's efficiency from `start` to `end` nodes; of its ratio to the
    network `against`, if that is not empty. `before` and `after` are the efficiencies [1] there."""

    network: str
    against: str
    start: int
    end: int
    before: float
    after: float
    verdict: Judgement


@dataclass(frozen=True)
class Imported:
    """Imported HPL results over the nodes or, if no number of nodes is known, over the ranks.

    `count` is which of the two. `runs` has a row for each usable result: its `trial_id`, `file`, `block`, ALIKE,
    `x`, `rate` [Gflop/s] and `y`, the efficiency [1] or, where there is none, the rate. `best` has a row for
    each interconnect and x: the settings with the highest harmonic mean, with `runs`, `mean`, and
    the 95 % t interval over the runs, `low` and `high`, NaN for a single run and for an unknown
    interconnect. `points` are the runs of these settings as `points` returns them, `efficiency` [1] their share of what `of` says, None if nothing is
    known. `names` are the interconnects' short names. `notes` say what is missing and which
    conclusions it prevents.
    """

    dataset: xr.Dataset
    count: str
    of: str
    runs: pd.DataFrame
    best: pd.DataFrame
    points: xr.Dataset
    efficiency: xr.DataArray | None
    names: dict[str, str]
    notes: tuple[str, ...]

    @property
    def ordinate(self) -> str:
        """`efficiency`, or `rate` if there is no efficiency."""
        return "rate" if self.efficiency is None else "efficiency"

    @property
    def repeats(self) -> str:
        """What runs of one point are: BLOCKS or UNORDERED."""
        return self.points.attrs["repeats"]

    @cached_property
    def laws(self) -> Laws | None:
        """The laws of each network's efficiency over nodes; None without an efficiency."""
        return None if self.efficiency is None else laws(self.efficiency)

    @cached_property
    def falls(self) -> tuple[Fall, ...]:
        """The judged falls; none without an efficiency."""
        return () if self.efficiency is None else falls(self.efficiency)

    def tried(self) -> pd.Series:
        """The number of settings that were tried at each interconnect and x."""
        return self.runs.drop_duplicates(ALIKE).groupby(["interconnect", "x"]).size()

    def settings(self, row) -> list[str]:
        """The settings of a row of `best`, in words."""
        words = [f"N {row.N:g}", f"NB {row.NB:g}", f"{row.P:g} x {row.Q:g}"]
        if self.count == "nodes":
            words.append(f"{row.processes / row.x:g} processes a node")
        return [*words, *filter(None, (row.variant, row.settings))]

    def differing(self, fall: Fall) -> list[str]:
        """What else differs between the points of a fall than what it compares, with its values: between networks at one
        number of nodes, else over the nodes. A matrix that grows with the nodes' memory is one problem size."""
        best = self.best[self.best.interconnect.isin([fall.network, fall.against or fall.network])]
        best = best[best.x.isin([fall.start, fall.end])]
        memory = best.N**2 / best.x
        is_weak = not fall.against and memory.max() <= (1 + _WEAK) * memory.min()
        settings = best[
            ["NB", "variant", "settings"] if is_weak else ["N", "NB", "variant", "settings"]
        ]
        settings = settings.assign(**{"processes a node": best.processes / best.x})
        several = settings.groupby(best.x if fall.against else best.x > 0).nunique(dropna=False)
        values = {
            name: map(str, map(plain, settings[name].drop_duplicates().sort_values().tolist()))
            for name in settings
        }
        return [
            f"{name} ({listed(list(values[name]))})" for name in settings if several[name].max() > 1
        ]

    @cached_property
    def predicted(self) -> pd.DataFrame:
        """The errors of laws that saw at most half of the nodes; empty if there is nothing to see."""
        return foretold(self.efficiency)


def analyse(dataset: xr.Dataset) -> Imported:
    """Derive efficiencies, or rates, and the best settings; raises FalloffError if no result is
    usable."""
    distinct, counts = _usable(dataset)
    count = "nodes" if distinct.nodes.notna().any() else "ranks"
    runs = distinct.assign(x=distinct["nodes" if count == "nodes" else "processes"])
    has_peak = count == "nodes" and runs.rpeak.notna().any()
    runs = runs.dropna(subset=["x", "rpeak"] if has_peak else ["x"])
    if runs.empty:
        raise FalloffError("no result of HPL can be used: nothing tells its nodes or its grid")
    runs["y"] = 1e9 * runs.rate / (runs.x * runs.rpeak) if has_peak else runs.rate
    best = _best(runs)
    found = _laid_out(dataset, runs, best, count)
    share = efficiency(found) if has_peak or runs.x.nunique() > 1 else None
    if share is not None and not has_peak:
        base = share.per_node.to_series()
        scale = runs.x * runs.interconnect.map(base)
        runs["y"] = runs.rate / scale
        best = _best(runs)
    names = networks(dataset, best.interconnect)
    notes = (*counts, *_unknown(distinct, count), *_limits(runs, best, share))
    columns = ["trial_id", "file", "block", *ALIKE, "x", "rate", "y"]
    runs, of = runs[columns].reset_index(drop=True), "" if share is None else share.attrs["of"]
    return Imported(dataset, count, of, runs, best, found, share, names, notes)


def networks(dataset: xr.Dataset, found: Iterable[str]) -> dict[str, str]:
    """The short names of these interconnects, those with a known link rate first, slowest first."""
    described = attributes.interconnects(dataset)
    rates = {
        name: described.get(name, {}).get("rate_bit_s", np.inf) for name in dict.fromkeys(found)
    }
    return {
        name: described[name]["short"] if name else "network not known"
        for name in sorted(rates, key=lambda name: (rates[name], name))
    }


def points(dataset: xr.Dataset) -> xr.Dataset:
    """The `rate` [Gflop/s] of every run with the best settings of its point, over (block,
    interconnect, nodes), with these settings and, if it is known, `rpeak` [flop/s] of a node.

    Blocks without order are only numbers of repeats (`repeats` in the attributes). The dim is
    called nodes also where only ranks are known, as its `long_name` says.
    """
    return analyse(dataset).points


def efficiency(points: xr.Dataset) -> xr.DataArray:
    """The share [1] of what the nodes could compute: of Rpeak if it is known, else of n times the
    rate on one node, or else on the fewest nodes. The attribute `of` says which; the coordinate
    `per_node` [Gflop/s] is what a node could compute, by network."""
    fewest = points.rate.dropna("nodes", how="all").nodes.min().item()
    if points.rpeak.notnull().any():
        per_node = points.rpeak.mean(["block", "nodes"]) / 1e9
        of = PEAK
    else:
        alone = points.rate.sel(nodes=fewest, drop=True) / fewest
        cost = (1 / alone).mean("block")
        # A network that lacks these runs has the others' mean.
        per_node = 1 / cost.fillna(cost.mean())
        is_one = fewest == 1 and points.nodes.attrs["long_name"] == "nodes"
        of = ONE_NODE if is_one else f"{FEWEST} {points.nodes.attrs['long_name']}"
    if points.rpeak.notnull().any():
        share = 1e9 * points.rate / (points.nodes * points.rpeak)
    else:
        share = points.rate / (points.nodes * per_node)
    settings = {}
    if (points.P * points.Q == points.nodes).where(points.rate.notnull()).all():
        known = {name: points[name] for name in ("N", "NB", "P", "Q")}
        spread = [each.max(["block", "interconnect"]) > each.min(["block", "interconnect"]) for each in known.values()]  # fmt: skip
        if not any(each.any() for each in spread):
            settings = {name: each.max(["block", "interconnect"]) for name, each in known.items()}
            rate = 1e9 * per_node.mean().item()
            settings["node_rate"] = xr.full_like(points.nodes, rate, float)
    share = share.assign_coords({name: ("nodes", each.values) for name, each in settings.items()})
    about = {"units": "1", "long_name": f"share of {of}", "of": of}
    return share.assign_coords(per_node=per_node).assign_attrs({**points.attrs, **about})


def falls(efficiency: xr.DataArray, margin: float = MARGIN) -> tuple[Fall, ...]:
    """Each network's fall from its fewest to its most nodes, then that of its ratio to the network with the highest link
    rate, where all rates are known.

    Blocks are compared within each block, repeats without order as independent runs. Each of the two
    groups is corrected for the number of its statements by Holm's procedure.
    """
    known = attributes.interconnects(efficiency)
    ordered = [
        name for name in networks(efficiency, efficiency.interconnect.values.tolist()) if name
    ]
    own = [_fall(efficiency, name, "", margin) for name in ordered]
    fastest = ordered[-1] if ordered else ""
    is_ranked = all("rate_bit_s" in known[name] for name in ordered)
    slower = ordered[:-1] if is_ranked else []
    against = [_fall(efficiency, name, fastest, margin) for name in slower]
    return (*_corrected(own), *_corrected(against))


def laws(efficiency: xr.DataArray) -> Laws:
    """The laws of each network's efficiency over nodes; that of HPL's messages only where each node
    runs one process, for which it holds."""
    has_settings = all(name in efficiency.coords for name in SETTINGS)
    return fit_each(efficiency, models=LAWS if has_settings else LAWS[:-1])


def foretold(efficiency: xr.DataArray | None) -> pd.DataFrame:
    """The errors of the laws on the most nodes, fitted to at most half of these, by network and law;
    empty where there is nothing to fit. Its attribute `seen` is the most nodes of the fit."""
    columns = ["interconnect", "law", "error", "low", "high", "blocks"]
    nodes = [] if efficiency is None else efficiency.dropna("nodes", how="all").nodes.values
    most = max(nodes, default=0)
    seen = max((n for n in nodes if n <= SEEN * most), default=0)
    try:
        found = held_out(efficiency, int(seen), int(most), models=LAWS[:-1])
    except (FalloffError, AttributeError):
        found = pd.DataFrame(columns=columns)
    found = found.set_index(["interconnect", "law"])
    found.attrs |= {"seen": int(seen), "most": int(most)}
    return found


def _usable(dataset: xr.Dataset) -> tuple[pd.DataFrame, list[str]]:
    """The usable and distinct results, and notes on those that are left out."""
    results = _results(dataset)
    measured = results[results.rate.notna()]
    hpl = measured[measured.variant.str.match("W[RC]|$")]
    if hpl.empty:
        mixed = "all are in mixed precision (HPL-AI), which is no share of Rpeak"
        reasons = "; ".join(filter(None, dict.fromkeys(results.reason))) or "there is none"
        why = reasons if measured.empty else mixed
        raise FalloffError(f"no result of HPL can be used: {why}")
    # Drop results that another file repeats to every digit, as HPL.out does beside the job's own output; not those of
    # another run by the numbers in the paths.
    hpl = hpl.assign(numbered=[repeat_named(name) for name in hpl.file])
    alike = [*ALIKE, "numbered", "rate", "time"]
    repeat = hpl.groupby(["file", *alike], dropna=False).cumcount()
    distinct = hpl[~hpl.assign(repeat=repeat).duplicated([*alike, "repeat"])]
    steps = (
        ("Results that cannot be used, as the list says", results, measured),
        ("Results in mixed precision (HPL-AI), no share of Rpeak, left out", measured, hpl),
        ("Results that another file has to every digit, counted once", hpl, distinct),
    )
    counts = [
        f"{what}: {len(before) - len(after)} of {len(before)}."
        for what, before, after in steps
        if len(after) < len(before)
    ]
    return distinct.copy(), counts


def _results(dataset: xr.Dataset) -> pd.DataFrame:
    """One row for each result: trial_id, file, block, ALIKE, rate [Gflop/s], time [s], rpeak [flop/s], and the
    reason if it is unusable."""
    names = [
        "trial_id",
        "file",
        "block",
        *ALIKE[:-1],
        "ranks_per_node",
        "rpeak",
        "reason",
        "hpl_rate",
        "hpl_time",
    ]
    chosen = dataset.isel(trial=np.flatnonzero(dataset.role.values == "point"))
    table = pd.DataFrame({name: chosen[name].values for name in names})
    table = table.rename(columns={"hpl_rate": "rate", "hpl_time": "time"})
    settings = of_trials(chosen)
    further = [name for name in varying(settings) if name not in (*ALIKE, *_NO_OTHER)]
    table["settings"] = [", ".join(in_words(each, further)) for each in settings]
    table["rate"] *= slowed(chosen).values  # a campaign's own runs may be on several scales of time
    table["processes"] = table.processes.fillna(table.P * table.Q)
    on_nodes = table.P * table.Q / table.ranks_per_node
    table["nodes"] = table.nodes.fillna(on_nodes.where(on_nodes % 1 == 0))
    return table


def _best(runs: pd.DataFrame) -> pd.DataFrame:
    alike = runs.groupby([*ALIKE, "x"], dropna=False).y
    table = alike.agg(runs="size").reset_index()
    averages = np.array([average(values, "rate") for _, values in alike])
    table["mean"], table["low"], table["high"] = averages.T
    # They may come from several networks, and so are no repeats.
    table.loc[table.interconnect == "", ["low", "high"]] = np.nan
    highest = table.groupby(["interconnect", "x"])["mean"].idxmax()
    return table.loc[highest].reset_index(drop=True)


def _laid_out(
    dataset: xr.Dataset, runs: pd.DataFrame, best: pd.DataFrame, count: str
) -> xr.Dataset:
    """The runs of the best settings over (block, interconnect, nodes), with the dataset's
    attributes."""
    chosen = runs.merge(best[[*ALIKE, "x"]], on=[*ALIKE, "x"]).sort_values("file", kind="stable")
    if count == "ranks":
        chosen["rpeak"] = np.nan  # it is a node's
    place = ["interconnect", "x"]
    is_import = attributes.testbed(dataset).get("kind") == IMPORTED
    repeats = attributes.design(dataset).get("repeats", UNORDERED if is_import else BLOCKS)
    if repeats == UNORDERED or chosen.duplicated([*place, "block"]).any():
        repeats = UNORDERED
        chosen["block"] = chosen.groupby(place).cumcount() + 1
    table = chosen.astype({"x": int}).rename(columns={"x": "at"}).set_index(["block", "interconnect", "at"])  # fmt: skip
    found = table[["rate", "N", "NB", "P", "Q", "rpeak"]].to_xarray().rename(at="nodes")
    found.nodes.attrs = {"units": "1", "long_name": count}
    for name, unit in (("rate", "Gflop/s"), ("rpeak", "flop/s")):
        found[name].attrs["units"] = unit
    found = found.assign_coords(evidence=str(dataset.evidence.values[0]))
    return found.assign_attrs({**dataset.attrs, "repeats": repeats})


def _fall(efficiency: xr.DataArray, network: str, against: str, margin: float) -> Fall | None:
    """The fall of a network, or of its ratio to another, over the node counts that are there; None
    if these are fewer than two."""
    logs = np.log(efficiency)
    levels = [network, against] if against else [network]
    known = logs.sel(interconnect=levels).count("block").min("interconnect")
    counts = known.nodes.values[known.values > 0]
    if len(counts) < 2 or network == against:
        return None
    start, end = int(counts.min()), int(counts.max())
    signed = [
        (of * at, logs.sel(interconnect=name, nodes=n).values)
        for (name, of), (n, at) in product(zip(levels, (1, -1)), ((end, 1), (start, -1)))
    ]
    evidence = efficiency.evidence.item()
    if efficiency.attrs["repeats"] == BLOCKS:
        verdict = judge(sum(sign * values for sign, values in signed), margin, evidence)
    else:
        verdict = judge_unordered(signed, margin, evidence)
    ends = (float(np.exp(logs.sel(interconnect=network, nodes=n).mean())) for n in (start, end))
    return Fall(network, against, start, end, *ends, verdict)


def _corrected(found: Sequence[Fall | None]) -> list[Fall]:
    known = [fall for fall in found if fall]
    verdicts = within_campaign([fall.verdict for fall in known])
    return [replace(fall, verdict=verdict) for fall, verdict in zip(known, verdicts)]


def _unknown(results: pd.DataFrame, count: str) -> Iterator[str]:
    """What is unknown about usable results, and how to state it."""
    homeless, without_peak = results.nodes.isna(), results.rpeak.isna()
    uneven = results[homeless & results.ranks_per_node.notna() & results.P.notna()]
    if len(uneven):
        one = uneven.iloc[0]
        grid = f"{one.P:g} x {one.Q:g} processes are no multiple of ranks_per_node = {one.ranks_per_node:g}"
        yield f"The number of nodes is not known for {len(uneven)} of {len(results)}: {grid}; --set nodes=N, or --map."
    elif homeless.all():
        yield "The number of nodes is not known, so all is over ranks: --set ranks_per_node=R, or nodes=N."
    elif homeless.any():
        yield f"Results without a number of nodes, left out: {homeless.sum()} (--set ranks_per_node=R, or nodes=N)."
    given = results.dropna(subset=["nodes", "ranks_per_node", "processes"])
    off = given[given.nodes * given.ranks_per_node != given.processes]
    if len(off):
        one = off.iloc[0]
        yield (
            f"{len(off)} results have other processes than nodes x ranks_per_node, such as {one.processes:g} on {one.nodes:g} nodes "
            f"with {one.ranks_per_node:g}: which is right?"
        )
    if count == "nodes" and not without_peak.all() and without_peak.any():
        yield f"Results without an Rpeak, left out: {without_peak.sum()} (--set rpeak=F, one node's flop/s)."
    if (results.interconnect == "").any():
        yield NO_NETWORK


def _limits(runs: pd.DataFrame, best: pd.DataFrame, share: xr.DataArray | None) -> Iterator[str]:
    """Conclusions that the number and the choice of runs do not allow."""
    if share is None:
        yield "Of a single number of nodes there is no efficiency without Rpeak: --set rpeak=F, one node's flop/s."
    elif share.attrs["of"] != PEAK:
        yield f"Rpeak is not known, so the efficiency is the share of {share.attrs['of']}: --set rpeak=F, one node's flop/s, such as 16*2.5e9*16."
    single = int((best.runs == 1).sum())
    if single:
        yield f"Points that are a single run, without an interval: {single} of {len(best)}."
    choices = runs.drop_duplicates(ALIKE).groupby(["interconnect", "x"]).size().max()
    if choices > 1:
        yield f"Each point is the best of up to {choices} settings, which favours what scatters more."
    if share is not None and share.attrs["of"] == PEAK and runs.y.max() > 1:
        yield "More than 100 % of Rpeak: rpeak has to be one node's, at the clock that it ran at."
