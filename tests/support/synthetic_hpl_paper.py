"""Synthetic simulated campaigns on the paper's cluster: the truth is a formula of the model's
numbers.
"""

import json
import tomllib

import numpy as np
import xarray as xr
from synthetic import from_design

from analysis.paths import CAMPAIGNS, TESTBEDS


def _toml(file):
    return tomllib.loads(file.read_text(encoding="utf-8"))


SMITH = _toml(TESTBEDS / "smith.toml")
RPEAK = SMITH["rpeak"]["value"]


def planted(interconnect, n, vary="none"):
    """The efficiency of n nodes: a node's own time and that of its traffic, which ceases to grow at
    8 nodes.
    """
    described = {**SMITH["rates"], **SMITH["network"][interconnect]}
    used = {name: entry["value"] for name, entry in described.items()}
    for change in vary.split(",") if vary != "none" else ():
        name, _, end = change.partition("=")
        used[name] = described[name][end] if end in described[name] else float(end)
    node = RPEAK / used["dgemm_flop_s"] + 3e8 / used["node_byte_s"] + 0.005 / used["dtrsm_share"]
    traffic = 1e7 * np.log2(min(n, 8))  # bytes over a link while a node's peak would take 1 s
    return 1 / (node + traffic / used["bandwidth"] + 100 * used["latency"])


def smith_campaign(name, factors=None, reached=planted, **chance):
    """One exact block of a shipped campaign whose points have the efficiency that `reached` gives.

    `factors` replaces levels of its own; `chance` is for `from_design`.
    """
    shipped = _toml(CAMPAIGNS / f"{name}.toml")
    design = {**shipped["design"], "factors": {**shipped["factors"], **(factors or {})}}

    def rate(point):
        share = reached(point["interconnect"], point["nodes"], point.get("vary", "none"))
        return share * point["nodes"] * RPEAK / 1e9

    exact = {"blocks": 1, "noise": 0, "block_effect": 0, "surveyed": False}
    made = from_design(name, design, rate, **exact, **chance)
    made.attrs["testbed_settings"] = json.dumps(SMITH)
    return made.assign_coords(evidence=xr.full_like(made.evidence, "simulated", dtype="<U9"))
