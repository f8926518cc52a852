"""The 15 cases of the FortiSwitch paper at their own scale: HPL's own code on a model of the paper's cluster.

Simulated values carry no interval: the model repeats itself exactly. Its fall, as a difference, is the model's; how far
it may be wrong is a question of its numbers (`sensitivity`) and of what it leaves out (`contention`).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from analysis import published
from analysis.derive import at_only_level, points
from analysis.exhibit import Basis, Exhibit, Table
from analysis.experiments import contention, sensitivity
from analysis.experiments.contention import Contention
from analysis.experiments.sensitivity import Sensitivity
from analysis.findings import Finding, known, of_fall, origin, today_of
from analysis.statistics import design as designs
from analysis.statistics.judgement import judge
from analysis.statistics.reproduction import reproduction
from analysis.attributes import testbed
from analysis.efficiency import PLATEAU, efficiency, shape
from analysis.attributes import short_names
from analysis.wording import counted, fixed, number, percent
from runners.record import FalloffError

OPENS = {"hpl_sensitivity": {"x": "vary", "series": "interconnect", "nodes": 36}}


@dataclass(frozen=True)
class Paper:
    """The campaign's dataset and all that follows from it.

    `efficiency` is the share of Rpeak [1] over (interconnect, nodes), `shape` what `efficiency.shape` says of it. `network`
    is compared with `reference`: `ratios` [1] are their rates' over (nodes), and `relative_fall` [1] is the fall of that
    from the least to the most nodes, as the verdicts on other campaigns define it; `margin` [1] counts as none. `line` [1]
    is the efficiency that the paper prints. `sensitivity` and `contention` are of the same model, `today_run` is a shorter
    run of the campaign, made anew; None without them.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    network: str
    reference: str
    efficiency: xr.DataArray
    shape: xr.Dataset
    ratios: xr.DataArray
    relative_fall: xr.DataArray
    margin: float
    line: float
    sensitivity: Sensitivity | None
    contention: Contention | None
    today_run: xr.Dataset | None

    @property
    def nodes(self) -> list[int]:
        """The node counts, ascending."""
        return self.efficiency.nodes.values.tolist()

    @property
    def today_efficiency(self) -> xr.DataArray:
        """As `efficiency`, of the cases that were simulated anew."""
        return efficiency(at_only_level(points(self.today_run), "block"))


def analyse(
    hpl_paper: xr.Dataset,
    hpl_sensitivity: xr.Dataset | None = None,
    hpl_contention: xr.Dataset | None = None,
    today: xr.Dataset | None = None,
) -> Paper:
    """Derive efficiencies, their sensitivity to the model's numbers, and the contention that would change them.

    Raises FalloffError when a dataset holds no HPL trial, has several blocks, or was simulated with other numbers than the
    first.
    """
    for other in (hpl_sensitivity, hpl_contention):
        if other is not None:
            _check_model(hpl_paper, other)
    derived, design = points(hpl_paper), designs.read(hpl_paper)
    cases = efficiency(at_only_level(derived, "block"))
    ratio = _ratio(cases, *design.pair)
    return Paper(
        dataset=hpl_paper,
        points=derived,
        network=design.pair[0],
        reference=design.pair[1],
        efficiency=cases,
        shape=shape(cases),
        ratios=ratio,
        relative_fall=1 - ratio.isel(nodes=-1, drop=True) / ratio.isel(nodes=0, drop=True),
        margin=design.margin,
        line=published.smith()["efficiency"]["line"]["value"] / 100,
        sensitivity=None if hpl_sensitivity is None else sensitivity.analyse(hpl_sensitivity),
        contention=None if hpl_contention is None else contention.analyse(hpl_contention),
        today_run=today,
    )


def _ratio(cases: xr.DataArray, network: str, reference: str) -> xr.DataArray:
    return cases.sel(interconnect=network, drop=True) / cases.sel(interconnect=reference, drop=True)


def _check_model(dataset: xr.Dataset, other: xr.Dataset) -> None:
    if _model(dataset) != _model(other):
        raise FalloffError(
            f"Campaigns {dataset.attrs['campaign']} and {other.attrs['campaign']} were simulated with "
            f"different rates of testbed {testbed(other)['name']}; run the older one again."
        )


def _model(dataset: xr.Dataset) -> dict:
    """The numbers of a dataset's rates and networks, without the words beside them."""
    described = testbed(dataset)
    tables = {
        "rates": described["rates"],
        **described["network"],
        "": {"rpeak": described["rpeak"]},
    }
    return {
        (table, name): [entry.get(key) for key in ("value", "low", "high")]
        for table, entries in tables.items()
        for name, entry in entries.items()
    }


def is_level(study: Paper, network: str) -> bool | None:
    """Whether no two cases from PLATEAU nodes on differ by more than the margin; None where one is missing."""
    spread = float(study.shape.spread.sel(interconnect=network))
    if np.isnan(spread):
        return None
    return spread <= study.margin * float(study.efficiency.sel(interconnect=network).max())


def finding(study: Paper) -> str:
    """What both networks lose at the paper's scale, and where, in plain English (Markdown)."""
    if study.shape.fall.sel(interconnect=[study.network, study.reference]).isnull().any():
        return "**What HPL does at the paper's own scale cannot be said**: cases are missing."
    names = short_names(study.dataset)
    slow, fast = (_of_network(study, network) for network in (study.network, study.reference))
    parts = [
        f"**At the paper's own scale {slow} of the peak between {study.nodes[0]} and {study.nodes[-1]} nodes; {fast}** "
        "(simulated evidence, without scatter).",
        f"Against {names[study.reference]} {names[study.network]} loses {percent(float(study.relative_fall))}.",
        _where_it_ends(study),
        _of_line(study),
    ]
    further = [
        sensitivity.finding(study.sensitivity) if study.sensitivity else "",
        contention.finding(study.contention) if study.contention else "",
        _today(study),
    ]
    return "\n\n".join(filter(None, (" ".join(filter(None, part)) for part in (parts, further))))


def _of_network(study: Paper, network: str) -> str:
    name, cases = short_names(study.dataset)[network], study.efficiency.sel(interconnect=network)
    return f"{name} goes from {fixed(100 * float(cases[0]), 1)} to {percent(float(cases[-1]))}"


def _where_it_ends(study: Paper) -> str:
    """Whether the slower network goes on falling beyond PLATEAU nodes."""
    name, level = short_names(study.dataset)[study.network], is_level(study, study.network)
    if level is None:
        return ""
    if not level:
        return f"{name} is not level beyond {PLATEAU} nodes."
    spread = float(study.shape.spread.sel(interconnect=study.network))
    return (
        f"{name} is level from {PLATEAU} nodes on: no two cases differ by more than {fixed(100 * spread, 1)} percentage points. "
        "A fall that goes on must come from the switch or from TCP, which the model leaves out."
    )


def _of_line(study: Paper) -> str:
    reference = study.efficiency.sel(interconnect=study.reference)
    return (
        f"{short_names(study.dataset)[study.reference]} stays within {fixed(100 * float(abs(reference - study.line).max()), 1)} points of the "
        f"{percent(study.line, 0)} that the paper prints; its smallest case is calibrated to that, the rest is predicted."
    )


def _today(study: Paper) -> str:
    """Whether the cases that were simulated again gave the stored rates."""
    if study.today_run is None:
        return ""
    apart = abs(study.today_efficiency / study.efficiency - 1)
    cases, same = int(apart.notnull().sum()), int((apart == 0).sum())
    if not cases:
        return ""
    if same == cases:
        return f"{counted(cases, 'case')} simulated again today gave the stored rate to the last digit."
    return (
        f"Of {counted(cases, 'case')} simulated again today {cases - same} differ from the stored rate, by up to "
        f"{percent(float(apart.max()), 2)}: the model or HPL's source has changed."
    )


def findings(study: Paper) -> Iterator[Finding]:
    """The fall of the paper's contrast, and each network's own, over its cases; they are simulated once."""
    source, names = origin("hpl_paper", study.dataset), short_names(study.dataset)
    span = f"from {study.nodes[0]} to {study.nodes[-1]} nodes"
    contrast = judge([math.log1p(-float(study.relative_fall))], study.margin, source["evidence"])
    statement = f"{names[study.network]} falls against {names[study.reference]} {span}"
    yield of_fall(source, statement, contrast, primary=True, today=_reproduced(study))
    for network in study.efficiency.interconnect.values.tolist():
        reached = np.log(study.efficiency.sel(interconnect=network))
        alone = judge([float(reached[-1] - reached[0])], study.margin, source["evidence"])
        yield of_fall(source, f"the efficiency on {names[network]} falls {span}", alone)


def _reproduced(study: Paper) -> dict | None:
    """Whether the ratio that differs most of those that were simulated again is the stored one."""
    if study.today_run is None:
        return None
    again = _ratio(study.today_efficiency, study.network, study.reference)
    stored, again = (np.log(values) for values in xr.align(study.ratios, again))
    apart = abs(again - stored)
    if not apart.notnull().any():
        return None
    at = {"nodes": int(apart.argmax("nodes"))}
    values = ([float(ratio.isel(at))] for ratio in (stored, again))
    return today_of(reproduction("", *values, study.margin, exact=True), study.today_run)


def figures(study: Paper) -> dict[str, Exhibit]:
    """What the model's numbers do, and scenarios of contention. The cases themselves are drawn beside the emulated ones."""
    drawn = {}
    if study.sensitivity:
        drawn |= sensitivity.figures(study.sensitivity)
    if study.contention:
        drawn |= contention.figures(study.contention)
    return drawn


def cases_table(study: Paper) -> Table:
    """Rate and efficiency of every case."""
    names, networks = short_names(study.dataset), study.efficiency.interconnect.values.tolist()
    rates = at_only_level(study.points, "block").rate
    columns = ["Nodes"]
    for network in networks:
        columns += [f"{names[network]} [Gflop/s]", f"{names[network]} [% of Rpeak]"]
    rows = []
    for n in study.nodes:
        row = [str(n)]
        for network in networks:
            at = {"interconnect": network, "nodes": n}
            share = known(100 * study.efficiency.sel(at))
            row += [number(known(rates.sel(at))), fixed(share, 1)]
        rows.append(row)
    caption = "HPL's rate and its share of the theoretical peak in the paper's cases, at the paper's scale"
    return Table("paper", columns, "r" * len(columns), rows, caption, Basis("simulated"))


def _printed(design: Mapping) -> pd.DataFrame:
    """The efficiency [1] of the paper's line, which it says holds for all of its cases."""
    source = published.smith()
    line = source["efficiency"]["line"]
    told = f"{source['source']['short']}, {line['where']}"
    nodes, value = published.smith_table1().nodes, line["value"] / 100
    return pd.DataFrame({"interconnect": "10gige", "nodes": nodes, "value": value, "text": told})


PRINTED = {("hpl_paper", "efficiency"): _printed}
