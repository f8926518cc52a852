"""What prose may quote of the simulation beside HPL itself, where only messages take time."""

import math
import tomllib
from pathlib import Path

import pandas as pd

from analysis import paths
from analysis.facts.plain import known

FILE = paths.REFERENCE / "trust.csv"


def collect(file: Path = FILE) -> dict:
    """All facts of the file that runners/testbeds/trust.py writes.

    A difference is the simulation's time over HPL's own less 1, without a sign but in `worst`, the case
    of the largest. `same` counts the cases in which both print the same rate; `grids` has, for each grid,
    the largest difference by DEPTH, None where no case has it.
    """
    interconnects = tomllib.loads(paths.INTERCONNECTS.read_text(encoding="utf-8"))
    cases = pd.read_csv(file)
    cases["network"] = [interconnects[name]["short"] for name in cases.network]
    cases["difference"] = cases.simulated_s / cases.unmocked_s - 1
    off = cases.difference.abs()
    levels = {name: cases[name].unique().tolist() for name in ("network", "N", "NB", "BCAST", "DEPTH")}
    return {
        "cases": len(cases),
        "levels": levels,
        "same": int((off == 0).sum()),
        "largest": float(off.max()),
        "median": float(off.median()),
        "worst": cases.loc[off.idxmax()].to_dict(),
        "grids": [
            {"P": P, "Q": Q, "cases": len(grid), "largest": _largest(grid, levels["DEPTH"])}
            for (P, Q), grid in cases.groupby(["P", "Q"], sort=False)
        ],
    }


def _largest(cases: pd.DataFrame, depths: list[int]) -> dict[int, float | None]:
    largest = cases.difference.abs().groupby(cases.DEPTH).max()
    return {depth: known(largest.get(depth, math.nan)) for depth in depths}
