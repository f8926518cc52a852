"""One's own HPL beside the shipped reference and its paper, where both have the same networks and node counts."""

from collections.abc import Iterator, Sequence

import numpy as np
import xarray as xr

from analysis import derive, imported_hpl, own_statements, paths, store
from analysis.exhibit import Table
from analysis.own_methods import is_import
from analysis.quoting import quoted
from analysis.statements import Statement, evidence_of, fall
from runners.record import FalloffError

REFERENCE = "hpl_scaling-fortinet_model"
NETWORKS = ("gige", "10gige")
TITLE = "Beside the shipped reference"


def section(datasets: Sequence[xr.Dataset]) -> str:
    """The report's section (Markdown): the fall of GigE's rate against 10GE's here and in the reference, between the same
    node counts; empty where no dataset has both networks on two of the reference's node counts from 2 on."""
    known = derive.points(store.read(paths.REFERENCE / REFERENCE))
    rows = [row for dataset in datasets for row in _rows(dataset, known)]
    if not rows:
        return ""
    columns = ("Runs", "Evidence", "Nodes", "Loss of GigE's rate against 10GE's", "n", "Answer")
    caption = "How much of the ratio of HPL's rates on GigE and 10GE is lost between the same node counts. Kinds of evidence stand side by side and are not pooled."
    table = Table("beside", columns, "lllrrl", rows, caption)
    return (
        f"# {TITLE}\n\nThe white paper that the reference follows [@fortinet] prints no rate. It says that HPL's rate follows a straight line on "
        "10GE, and falls off at small node counts on GigE. The reference is real HPL on 36 emulated nodes of the paper's cases, scaled down. Other nodes, "
        f"matrices and messages lose other shares: what is to be compared is the direction.\n\n{table.markdown}"
    )


def _rows(dataset: xr.Dataset, known: xr.Dataset) -> Iterator[tuple[str, ...]]:
    try:
        points = imported_hpl.points(dataset) if is_import(dataset) else derive.points(dataset)
    except FalloffError:  # no HPL, or none that can be used
        return
    is_of_both = set(NETWORKS) <= set(points.interconnect.values.tolist())
    if not is_of_both or set(points.rate.dims) != {"block", "interconnect", "nodes"}:
        return
    ran = points.rate.sel(interconnect=list(NETWORKS)).count("block").min("interconnect")
    both = sorted(set(points.nodes.values[ran.values > 0].tolist()) & {*known.nodes.values} - {1})
    if len(both) < 2 or evidence_of(dataset) != "measured":
        return
    ends = int(both[0]), int(both[-1])
    own = _imported(points, ends) if is_import(dataset) else fall(points, *NETWORKS, ends)
    yield _row(f"your {quoted(dataset.attrs['campaign'])}", own, ends)
    yield _row("the reference", fall(known, *NETWORKS, ends), ends)


def _imported(points: xr.Dataset, ends: tuple[int, int]) -> Statement:
    chosen = imported_hpl.efficiency(points).sel(interconnect=list(NETWORKS), nodes=list(ends))
    *_, one = imported_hpl.falls(chosen)
    return own_statements.fall(points, one.network, "GigE", one.verdict, *ends, (np.nan, np.nan), "10GE")  # fmt: skip


def _row(who: str, one: Statement, ends: tuple[int, int]) -> tuple[str, ...]:
    n = one.basis
    return who, one.evidence, f"{ends[0]} to {ends[1]}", one.value, n, one.words
