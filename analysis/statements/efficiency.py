"""Efficiency over nodes where Rpeak is known, and where its fall ends."""

import math
from collections.abc import Mapping

import numpy as np
import xarray as xr

from analysis.dataset.derive import at
from analysis.statements.statement import Statement, judged_fall, named, ratio_change
from analysis.statistics.intervals import units
from analysis.statistics.judgement import FLAT, judge
from analysis.wording import fixed, listed, percent

# From this node count on a curve is checked for being level: the emulated campaign ends here.
PLATEAU = 8
FEWEST = 2  # nodes on which the HPL paper's cases begin


def rpeak(dataset: xr.Dataset) -> float:
    """A node's theoretical peak [flop/s] from its testbed's description; NaN if that does not state
    it."""
    value = dataset.falloff.testbed.rpeak.get("value")
    return value if isinstance(value, (int, float)) else np.nan


def efficiency(derived: xr.Dataset) -> xr.DataArray:
    """HPL's rate over the nodes' theoretical peak, Rmax / Rpeak, over the dims of the rate.

    `derived` is from `derive.points`. All values are NaN if the testbed's Rpeak is not known.
    """
    return 1e9 * derived.rate / (derived.nodes * rpeak(derived))


def end_of_fall(log_ratio: xr.DataArray, margin: float, evidence: str) -> int | None:
    """The least node count against which every later case is flat; None where the last but one
    already is not.

    `log_ratio` is over (block, nodes); cases without a value are left out. The node counts are
    tested from the most downwards, up to the first that fails: a fixed sequence, so that no level
    needs a correction. "All later cases are flat" holds when each of their 90 % intervals lies
    inside the margin.
    """
    cases = units(log_ratio, "cost").dropna("nodes", how="all").transpose("nodes", "block")
    values, end = cases.values, None
    for first in range(len(values) - 2, -1, -1):
        later = [judge(case - values[first], margin, evidence) for case in values[first + 1 :]]
        if any(judgement.answer != FLAT for judgement in later):
            break
        end = int(cases.nodes.values[first])
    return end


def losses(points: xr.Dataset, primary: tuple[str, ...] = ()) -> list[Statement]:
    """Does each simulated network's efficiency fall from the fewest nodes to the most that it was
    simulated on? A fall within the campaign's margin is none.

    `points` is from `derive.points`, at a single block. A network without a case on the fewest
    nodes and on more has no statement. Those in `primary` are primary.
    """
    names, margin = points.falloff.names, points.falloff.design.margin
    statements = []
    for cases in efficiency(points).sortby("nodes").transpose("interconnect", "nodes"):
        network, known = cases.interconnect.item(), cases.dropna("nodes")
        if known.size < 2 or np.isnan(cases[0]):
            continue
        fall = [math.log(known[-1] / known[0])]
        verdict = judge(fall, margin, points.falloff.evidence)
        span = f"from {int(known.nodes[0])} to {int(known.nodes[-1])} nodes"
        change = ratio_change(verdict.fall or 0)
        statement = judged_fall(
            points,
            f"{names[network]} loses efficiency {span}",
            verdict,
            primary=network in primary,
            series=network,
            sentence=f"{names[network]}'s efficiency {change} {span}: **{verdict.answer}**.",
        )
        statements.append(statement)
    return statements


def spans(shares: xr.DataArray, names: Mapping[str, str]) -> str:
    """From which share to which each network's goes along the other dim of `shares`, as "from 90.5
    to 74.9 % on GigE".
    """
    rows = shares.transpose("interconnect", ...).to_pandas()
    return listed(
        [
            f"from {fixed(100 * row.iloc[0], 1)} to {percent(row.iloc[-1])} on {names[name]}"
            for name, row in rows.iterrows()
        ]
    )


def over_nodes(
    runs: xr.Dataset, shares: xr.DataArray, slow: str, fast: str, n_of: str, refused: str = ""
) -> list[Statement]:
    """How the efficiencies of a slow and a fast network change over nodes, and compare on the most,
    as claims name it.

    `shares` are efficiencies over (interconnect, nodes) and a dim of repeats, in units that cancel
    within a repeat. `refused` says why the fast one's tells nothing of its network.
    """
    most, names = int(shares.nodes.max()), runs.falloff.names
    statements = []
    for name, network, start, end, reason in (
        ("fast_over_nodes", fast, FEWEST, most, refused),
        ("slow_to_8", slow, FEWEST, PLATEAU, ""),
        ("slow_beyond_8", slow, PLATEAU, most, ""),
        ("slow_over_nodes", slow, FEWEST, most, ""),
    ):
        of = at(shares, interconnect=network)
        subject = f"{names[network]}'s efficiency on {end} nodes over that on {start}"
        reason = reason if start < end else f"it has no case beyond {end} nodes"
        change = at(of, nodes=end) / at(of, nodes=start)
        statements.append(named(runs, name, subject, change, reason, n_of))
    gap = at(shares, interconnect=fast) / at(shares, interconnect=slow)
    subject = f"rate over {names[fast]} over that over {names[slow]}"
    last = at(gap, nodes=most)
    growth = last / at(gap, nodes=FEWEST)
    over_fewest = f"{subject}, {most} over {FEWEST} nodes"
    return [
        *statements,
        named(runs, "fast_over_slow", f"{subject} on {most} nodes", last, n_of=n_of),
        named(runs, "gap_grows", over_fewest, growth, n_of=n_of),
    ]


def over_peak(runs: xr.Dataset, points: xr.Dataset, n_of: str) -> Statement:
    """The fast network's rate over Rpeak on the most nodes, as a claim names it; refused if Rpeak
    is not known. `points` is from `derive.points`."""
    fast = points.falloff.design.pair[1]
    most = efficiency(points).sel(interconnect=fast, nodes=points.nodes.max())
    refused = "the theoretical peak of its nodes is not known" * bool(np.isnan(rpeak(runs)))
    subject = "rate over Rpeak on the most nodes, 10GE"
    return named(runs, "fast_level", subject, most, refused, n_of, is_ratio=False)
