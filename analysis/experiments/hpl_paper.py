"""The 15 cases of the FortiSwitch paper at their own scale: HPL's own code on a model of the
paper's cluster.

Simulated values have no interval, because the model repeats itself exactly. Any fall is the
model's; how wrong it may be depends on the model's numbers (see `sensitivity`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis import published, todays_run
from analysis.attributes import short_names, testbed
from analysis.derive import at_only_level, points
from analysis.efficiency import PLATEAU, efficiency, shape
from analysis.exhibit import Exhibit
from analysis.experiments import sensitivity
from analysis.experiments.sensitivity import Sensitivity
from analysis.findings import Finding, failed_today, gave_nothing, of_fall, origin, ratio_change
from analysis.statistics import design as designs
from analysis.statistics.judgement import judge
from analysis.wording import counted, fixed, paragraphs, percent
from runners.record import FalloffError

OPENS = {"hpl_sensitivity": {"x": "vary", "series": "interconnect", "nodes": 36}}


@dataclass(frozen=True)
class Paper:
    """The campaign's dataset and all results.

    `efficiency` is the share of Rpeak [1] over (interconnect, nodes). `spread` [1], over
    (interconnect), is the largest difference between any two cases from PLATEAU nodes on. `network`
    is compared with `reference`: `ratios` [1] are those of their efficiencies over (nodes), and
    `margin` [1] counts as no change. `sensitivity` is of the same model. `today` is the
    `efficiency` of a shorter run of the campaign made today. Both may be None.
    """

    dataset: xr.Dataset
    network: str
    reference: str
    efficiency: xr.DataArray
    spread: xr.DataArray
    ratios: xr.DataArray
    margin: float
    sensitivity: Sensitivity | None
    today: xr.DataArray | None
    today_run: xr.Dataset | None

    @property
    def nodes(self) -> list[int]:
        """The node counts, ascending."""
        return self.efficiency.nodes.values.tolist()


def analyse(
    hpl_paper: xr.Dataset,
    hpl_sensitivity: xr.Dataset | None = None,
    today: xr.Dataset | None = None,
) -> Paper:
    """Derive efficiencies and their sensitivity to the model's numbers.

    Raises FalloffError if a dataset holds no HPL trial, has several blocks, or was simulated with
    other numbers than the first.
    """
    if hpl_sensitivity is not None:
        one, other = testbed(hpl_paper), testbed(hpl_sensitivity)
        if any(one[table] != other[table] for table in ("rates", "rpeak", "network")):
            raise FalloffError(
                f"Campaigns {hpl_paper.attrs['campaign']} and {hpl_sensitivity.attrs['campaign']} were simulated with "
                f"different rates of testbed {one['name']}; run the older one again."
            )
    design, cases = designs.read(hpl_paper), _efficiency(hpl_paper)
    slow, fast = (cases.sel(interconnect=network, drop=True) for network in design.pair)
    return Paper(
        dataset=hpl_paper,
        network=design.pair[0],
        reference=design.pair[1],
        efficiency=cases,
        spread=shape(cases).spread,
        ratios=slow / fast,
        margin=design.margin,
        sensitivity=None if hpl_sensitivity is None else sensitivity.analyse(hpl_sensitivity),
        today=None if today is None or gave_nothing(today) else _efficiency(today),
        today_run=today,
    )


def _efficiency(dataset: xr.Dataset) -> xr.DataArray:
    return efficiency(at_only_level(points(dataset), "block"))


def finding(study: Paper) -> str:
    """How much both networks lose at the paper's scale, and where, in plain English (Markdown)."""
    names, ends = short_names(study.dataset), study.efficiency.isel(nodes=[0, -1])
    if ends.sel(interconnect=[study.network, study.reference]).isnull().any():
        return "**What HPL does at the paper's own scale cannot be said**: cases are missing."

    slow, fast = names[study.network], names[study.reference]
    of_fast, of_slow = (
        f"{fixed(100 * first, 1)} to {percent(last)}"
        for first, last in ends.sel(interconnect=[study.reference, study.network]).values
    )
    ratios, line = (
        study.ratios.values,
        published.facts("smith")["efficiency"]["line"]["value"] / 100,
    )
    off = float(abs(study.efficiency.sel(interconnect=study.reference) - line).max())
    cases = [
        f"**The paper prints one number, {percent(line, 0)} of the peak on {fast}; simulated at its own scale, between "
        f"{study.nodes[0]} and {study.nodes[-1]} nodes {fast} goes from {of_fast}, and {slow} goes from {of_slow}** "
        f"(simulated evidence, without scatter). Of {slow} the paper says only that it drops off.",
        f"The ratio of {slow}'s rate to {fast}'s {ratio_change(float(1 - ratios[-1] / ratios[0]))}.",
        _where_it_ends(study),
        f"{fast} stays within {fixed(100 * off, 1)} points of the printed number: its smallest case is calibrated to it, "
        "the others are predicted.",
    ]
    further = [sensitivity.finding(study.sensitivity) if study.sensitivity else "", _today(study)]
    return paragraphs(cases, further)


def _where_it_ends(study: Paper) -> str:
    """Whether the slower network continues to fall beyond PLATEAU nodes."""
    name = short_names(study.dataset)[study.network]
    spread = float(study.spread.sel(interconnect=study.network))
    if np.isnan(spread):
        return ""
    if spread > study.margin * float(study.efficiency.sel(interconnect=study.network).max()):
        return f"{name} is not level beyond {PLATEAU} nodes."
    return (
        f"{name} is level from {PLATEAU} nodes on: no two cases differ by more than {fixed(100 * spread, 1)} percentage "
        "points. If a real cluster falls on beyond that, look at the switch or at TCP, which the model leaves out."
    )


def _today(study: Paper) -> str:
    """Whether the cases simulated again today gave the stored rates, and how many failed."""
    if study.today_run is None:
        return ""
    failed = todays_run.failed_in_words(study.today_run)
    if study.today is None:
        return failed
    return " ".join(filter(None, [_compared(study, study.today), failed]))


def _compared(study: Paper, today: xr.DataArray) -> str:
    apart = abs(today / study.efficiency - 1)
    cases = counted(int(apart.notnull().sum()), "case")
    if not apart.notnull().any():
        return ""
    if not (apart > 0).any():
        return f"{cases} simulated again today gave the stored rate to the last digit."
    return (
        f"Of {cases} simulated again today {int((apart > 0).sum())} differ from the stored rate, by up to "
        f"{percent(float(apart.max()), 2)}: the model or HPL's source has changed."
    )


def findings(study: Paper) -> Iterator[Finding]:
    """The fall of the paper's contrast and of each network, over its cases, each simulated once."""
    source, names = origin("hpl_paper", study.dataset), short_names(study.dataset)
    slow, fast, cases = names[study.network], names[study.reference], study.efficiency
    is_failed = study.today_run is not None and gave_nothing(study.today_run)
    failed = failed_today(study.today_run) if is_failed else None
    falls = {f"{slow} loses rate against {fast}": study.ratios}
    falls |= {
        f"{names[name]} loses efficiency": cases.sel(interconnect=name)
        for name in cases.interconnect.values.tolist()
    }
    for rank, (loses, values) in enumerate(falls.items()):
        fall = judge([math.log(values[-1] / values[0])], study.margin, source["evidence"])
        statement = f"{loses} from {study.nodes[0]} to {study.nodes[-1]} nodes"
        yield of_fall(source, statement, fall, primary=rank == 0, today=failed)


def figures(study: Paper) -> dict[str, Exhibit]:
    """The effect of the model's numbers. The cases themselves are drawn beside the emulated
    ones."""
    return sensitivity.figures(study.sensitivity) if study.sensitivity else {}
