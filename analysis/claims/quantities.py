"""The quantities that the sources' claims are about. Each is a statement with a name, made by the notebook of its campaign;
`data/published/claims.toml` names the one that judges each claim."""

import numpy as np
import xarray as xr

from analysis.attributes import names_in_text
from analysis.efficiency import efficiency, rpeak
from analysis.statements import Said, Statement, bullets, evidence_of, say, value
from analysis.statistics import design as designs
from analysis.statistics.judgement import REFUSED, judge_range

SIMULATED = "simulated"
# Nodes: where the HPL paper's cases begin, and where its decline is over or goes on.
FEWEST, PLATEAU = 2, 8


def quantity(
    dataset: xr.Dataset,
    name: str,
    of: str,
    values,
    n_of: str = "block",
    unit: str = "1",
    is_ratio: bool = True,
    refused: str = "",
) -> Statement:
    """A quantity from `values` of any shape, one for each block of the dataset or each simulated run; NaN is left out.

    `of` says what it is. The estimate is the geometric mean of ratios, the mean of anything else, with Student's 95 % t
    interval. A simulation has no scatter to generalise from: its estimate is the median of its runs, and its interval their
    range. If the dataset cannot tell, `refused` says why. Raises FalloffError if a ratio is not above 0.
    """
    values = np.ravel(np.asarray(values, float))
    values = values[np.isfinite(values)]
    about = {}
    if refused:
        values, about = values[:0], {"answer": REFUSED, "reason": refused}
    if evidence_of(dataset) == SIMULATED:
        nothing = (np.nan,) * 3
        estimate = (np.median(values), values.min(), values.max()) if len(values) else nothing
        about["kind"] = "range of all runs"
    else:
        judged = judge_range(values, -np.inf, np.inf, is_ratio)
        estimate = judged.estimate, *judged.interval_95
        about["kind"] = "95 % t interval"
    return value(
        dataset,
        of,
        "ratio" if is_ratio else "difference",
        estimate,
        n=len(values),
        n_of=n_of,
        unit=unit,
        name=name,
        values=tuple(values.tolist()),
        **about,
    )


def at(values: xr.DataArray, **levels) -> xr.DataArray:
    """Values at one level of each of these factors; NaN if one of them was not run."""
    wanted = values.reindex({factor: [level] for factor, level in levels.items()})
    return wanted.isel(dict.fromkeys(levels, 0), drop=True)


def claimed(*quantities: Statement) -> Said:
    """Show the quantities that claims are judged by; those that were not run are left out."""
    stated = [quantity for quantity in quantities if quantity.n or quantity.reason]
    if not stated:
        return say("")
    text = f"Claims of the sources are judged by these quantities.\n\n{bullets(stated)}"
    return say(text, stated)


def over_nodes(
    dataset: xr.Dataset,
    efficiency: xr.DataArray,
    slow: str,
    fast: str,
    n_of: str,
    refused: str = "",
) -> list[Statement]:
    """How the efficiencies of a slow and a fast network change over nodes, and compare on the most.

    `efficiency` is over (interconnect, nodes) and a dim of repeats, in units that cancel within a repeat. `refused` says why
    the fast one's tells nothing of its network.
    """
    most, names = int(efficiency.nodes.max()), names_in_text(dataset)

    def change(name: str, network: str, start: int, end: int, refused: str = "") -> Statement:
        of = at(efficiency, interconnect=network)
        text = f"{names[network]}'s efficiency on {end} nodes over that on {start}"
        if end <= start:
            refused = f"it has no case beyond {end} nodes"
        values = at(of, nodes=end) / at(of, nodes=start)
        return quantity(dataset, name, text, values, n_of, refused=refused)

    gap = at(efficiency, interconnect=fast) / at(efficiency, interconnect=slow)
    here, text = at(gap, nodes=most), f"rate over {names[fast]} over that over {names[slow]}"
    growth = here / at(gap, nodes=FEWEST)
    return [
        change("fast_over_nodes", fast, FEWEST, most, refused),
        change("slow_to_8", slow, FEWEST, PLATEAU),
        change("slow_beyond_8", slow, PLATEAU, most),
        change("slow_over_nodes", slow, FEWEST, most),
        quantity(dataset, "fast_over_slow", f"{text} on {most} nodes", here, n_of),
        quantity(dataset, "gap_grows", f"{text}, {most} over {FEWEST} nodes", growth, n_of),
    ]


def over_peak(dataset: xr.Dataset, points: xr.Dataset, n_of: str) -> list[Statement]:
    """The fast network's rate over Rpeak on the most nodes, and how far it spreads over 2 nodes and more; refused if Rpeak is
    not known. `points` is from `derive.points`."""
    fast = designs.read(points).pair[1]
    shares = efficiency(points).sel(interconnect=fast, nodes=points.nodes >= FEWEST)
    refused = "the theoretical peak of its nodes is not known" * bool(np.isnan(rpeak(dataset)))
    about = {"n_of": n_of, "is_ratio": False, "refused": refused}
    most, spread = shares.isel(nodes=-1), shares.max("nodes") - shares.min("nodes")
    return [
        quantity(dataset, "fast_level", "rate over Rpeak on the most nodes, 10GE", most, **about),
        quantity(
            dataset, "fast_spread", "largest less smallest rate over Rpeak, 10GE", spread, **about
        ),
    ]
