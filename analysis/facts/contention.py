"""What prose may quote of contention: capacities in B/s, efficiencies and losses as fractions."""

import xarray as xr

from analysis.facts.common import common
from analysis.facts.plain import known
from analysis.studies.contention import FEWEST, LINK, SHARED, Contention, Sweep
from analysis.studies.efficiency import PLATEAU
from analysis.studies.scaling import short_names


def collect(study: Contention) -> dict:
    """All facts of the campaign; what is not known is None."""
    nodes = study.ideal.nodes.values.tolist()
    return {
        **common(study.dataset, study.points),
        "network": short_names(study.dataset)[study.interconnect],
        "nodes": nodes,
        "most_nodes": nodes[-1],
        "fewest": FEWEST,
        "plateau": PLATEAU,
        "bandwidth": study.bandwidth,
        "ideal": known(study.ideal[-1]),
        "backplane": _levels(study.sweeps[SHARED]),
        "errors": {it: _largest(study.sweeps[it].errors) for it in (SHARED, LINK)},
        "targets": [_target(study, target) for target in study.slopes],
    }


def _levels(sweep: Sweep) -> list[dict]:
    """Each level of a mechanism, the one without contention first; the capacity of that may be None."""
    levels = sweep.efficiency.sortby("capacity", ascending=False).transpose("capacity", "nodes")
    return [
        {"capacity": known(level.capacity), "efficiencies": [known(reached) for reached in level]}
        for level in levels
    ]


def _largest(differences: xr.DataArray) -> dict | None:
    """The largest difference of efficiencies, in size, and its place; None where none is known."""
    found = abs(differences).stack(place=differences.dims).dropna("place")
    if not found.size:
        return None
    most = found[found.argmax("place")]
    return {"difference": float(most), **{dim: float(most[dim]) for dim in differences.dims}}


def _target(study: Contention, target: float) -> dict:
    """What each mechanism needs for one efficiency; `part_of_links` is of the sum of all links' rates."""
    shared, link = (study.scenario(mechanism, target) for mechanism in (SHARED, LINK))
    links = study.bandwidth * study.ideal.nodes.values[-1]
    return {
        "target": target,
        "backplane": shared.capacity,
        "part_of_links": None if shared.capacity is None else shared.capacity / links,
        "backplane_reason": shared.reason,
        "link": link.capacity,
        "loss": link.loss,
        "link_reason": link.reason,
        "apart": None if None in (shared.capacity, link.capacity) else _largest(shared.curve - link.curve),
        "slope": known(study.slopes[target]),
    }
