"""What prose may quote of HPL beside a daemon: shares, losses and margins are fractions, times in s."""

import math
from dataclasses import asdict

import numpy as np
import xarray as xr

from analysis.facts.common import common
from analysis.facts.plain import known, pair
from analysis.studies.noise import Level, Noise
from analysis.studies.scaling import short_names

AMPLIFIED = {
    "author": "F. Petrini, D. J. Kerbyson, S. Pakin",
    "title": "The Case of the Missing Supercomputer Performance",
    "kind": "Proceedings of the ACM/IEEE conference on Supercomputing",
    "year": 2003,
    "short": "Petrini et al. 2003",
}


def collect(study: Noise) -> dict:
    """All facts of the campaign; what is not known is None."""
    nodes = study.points.nodes.values
    return {
        **common(study.dataset, study.points),
        "network": short_names(study.dataset)[study.points.interconnect.item()],
        "least_nodes": int(nodes.min()),
        "most_nodes": int(nodes.max()),
        "orders": {int(n): int(study.points.N.sel(nodes=n).max()) for n in nodes},
        "source": AMPLIFIED,
        "levels": [_level(level) for level in study.levels],
    }


def _level(level: Level) -> dict:
    return {
        "noise": level.noise,
        "taken": known(np.mean(level.losses.taken)),
        "growth": asdict(level.growth),
        "doubling": _doubling(level),
        "points": [_point(level.losses.sel(nodes=n)) for n in level.losses.nodes.values],
    }


def _point(at: xr.Dataset) -> dict:
    return {
        "nodes": int(at.nodes),
        "taken": known(at.taken),
        "loss": known(1 - at.ratio),
        "interval": pair(1 - at.high, 1 - at.low),
        "amplification": known(at.amplification),
        "amplification_interval": pair(at.amplification_low, at.amplification_high),
        "blocks": int(at.blocks),
    }


def _doubling(level: Level) -> dict | None:
    """What each doubling of the node count takes off the rate, from the power law's exponent."""
    if level.curve is None:
        return None
    interval = pair(*level.curve.intervals["b"])
    return {
        "loss": _lost(level.curve.estimates["b"]),
        "interval": None if interval is None else (_lost(interval[1]), _lost(interval[0])),
        "blocks": level.curve.blocks,
    }


def _lost(exponent: float) -> float:
    return -math.expm1(exponent * math.log(2))
