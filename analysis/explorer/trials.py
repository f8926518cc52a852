"""A dataset as a table with a row for each trial of its design: levels, settings and every quantity."""

import json
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from analysis.derive import over_factors, points
from analysis.imported import TESTBED
from analysis.inference.averages import Kind
from analysis.schema import schema
from analysis.efficiency import efficiency
from analysis.wording import byte_size, counted
from runners.record import FalloffError

# What a page begins with, where a dataset has it.
FOREMOST = (
    "efficiency",
    "share",
    "hpl_rate",
    "aggregate_goodput",
    "goodput",
    "token_throughput",
    "packets_received_per_s",
    "frame_bytes_largest",
    "flow_makespan",
    "message_bandwidth",
)
# Coordinates that say what was run, beside the factors.
SETTINGS = [
    name
    for name, it in schema()["coordinates"].items()
    if it["dims"] == ["trial"] and name not in ("trial_id", "role", "runner", "block", "order", "evidence", "testbed")
]
# Readings of several values a trial, as one: how, and what it is then called.
TOGETHER = {
    "dgemm_rate": ("DGEMM rate of all nodes", lambda it: it.sum("node", min_count=1)),
    "bytes_sent": ("bytes sent by all nodes", lambda it: it.sum("node", min_count=1)),
    "bytes_received": ("bytes received by all nodes", lambda it: it.sum("node", min_count=1)),
    "cpu_time": ("CPU time of all nodes", lambda it: it.sum("node", min_count=1)),
    "token_throughput": (
        "tokens written by all pairs, mean of the runs",
        lambda it: it.sum("pair", min_count=1).mean("run"),
    ),
    "token_round_trip": (
        "median round trip of a token, mean of pairs and runs",
        lambda it: it.sel(quantile=0.5, method="nearest").mean(["pair", "run"]),
    ),
    "flow_makespan": ("time until all flows had arrived, mean of the runs", lambda it: it.mean("run")),
    "flow_mean": ("mean time of the flows, mean of the runs", lambda it: it.mean("run")),
}
# What a unit is shown as, by which factor.
SHOWN = {"bit/s": ("Gbit/s", 1e-9), "B/s": ("MB/s", 1e-6)}
PERCENT = ("efficiency", "share")
COUNTED = {"nodes": "node", "receivers": "receiver", "streams": "stream", "pairs": "pair", "processes": "process"}


@dataclass(frozen=True)
class Quantity:
    """What can be on the vertical axis: its label and the table's unit, empty where it has none."""

    name: str
    label: str
    unit: str

    @property
    def kind(self) -> Kind:
        """Which mean it has: shares and indices the geometric one, what has a unit per second the harmonic one."""
        if self.name in (*PERCENT, "fairness"):
            return "ratio"
        return "rate" if self.unit.endswith("/s") else "cost"

    @property
    def axis(self) -> str:
        """The axis's label with its unit."""
        return f"{self.label} [{self.unit}]" if self.unit else self.label


@dataclass(frozen=True, eq=False)  # one is itself alone, so that what follows from it can be kept
class Trials:
    """The trials of a dataset's design.

    `frame` has a row a trial: trial_id, block, order, status, reason, SETTINGS, and a column for each of `quantities`
    in their units. `valid` is False where the design's own rules leave the trial out (`reason` says why). `factors`
    holds the levels of every factor in the design's order, `names` what a level is called. With `repeats` a block is
    only the number of a repeat: order and blocks of imported runs are not known.
    """

    dataset: xr.Dataset
    frame: pd.DataFrame
    quantities: dict[str, Quantity]
    factors: dict[str, list[Hashable]]
    names: dict[Hashable, str]
    evidence: str
    testbed: str
    repeats: bool

    @property
    def design(self) -> dict:
        """What was decided before the run."""
        return json.loads(self.dataset.attrs["design"])

    @property
    def unit_of_repetition(self) -> str:
        """What n counts."""
        return "run" if self.repeats else "block"

    def called(self, level: Hashable) -> str:
        """What a level is called by itself."""
        if isinstance(level, (int, float)):
            return f"{level:.10g}"
        return self.names.get(level) or str(level).replace("_", " ") or "not known"

    def placed(self, factor: str, level: Hashable) -> str:
        """What a level is called in a sentence: with the factor's name or unit, where it is a number."""
        if not isinstance(level, (int, float)):
            return self.called(level)
        if factor in COUNTED:
            return counted(int(level), COUNTED[factor])
        if factor in ("window_bytes", "token_bytes"):
            return byte_size(level)
        return f"{factor.replace('_', ' ')} {self.called(level)}"

    def axis(self, factor: str) -> str:
        """A factor's label with its unit."""
        described = schema()["coordinates"].get(factor, {})
        unit = described.get("units", "1")
        return described.get("long_name", factor) + ("" if unit == "1" else f" [{unit}]")


def trials(dataset: xr.Dataset) -> Trials:
    """The table of a dataset; raises FalloffError when it has no reading of its design or mixes evidence."""
    chosen = dataset.isel(trial=np.flatnonzero(dataset.role == "point"))
    kinds = sorted(set(chosen.evidence.values.tolist()))
    if not kinds:
        raise FalloffError(
            f"Campaign {dataset.attrs['campaign']} holds no trial of its design yet: run at least one block."
        )
    if len(kinds) > 1:
        raise FalloffError(
            f"Campaign {dataset.attrs['campaign']} holds evidence of several kinds, {', '.join(kinds)}: never pooled."
        )
    names = ["trial_id", "block", "order", "runner", "status", "reason", *SETTINGS]
    frame = pd.DataFrame({name: chosen[name].values for name in names})
    repeats = chosen.testbed.values[0] == TESTBED
    factors = _factors(dataset, frame)
    if repeats:
        frame["block"] = (
            frame.groupby(list(factors), dropna=False).cumcount() + 1 if factors else np.arange(1, len(frame) + 1)
        )
    frame["valid"] = frame.status == "ok"
    quantities = {}
    for name, (label, unit, values) in _quantities(chosen).items():
        unit, scale = SHOWN.get(unit, ("" if unit == "1" else unit, 1.0))
        frame[name] = scale * values
        quantities[name] = Quantity(name, label, unit)
    if not quantities:
        raise FalloffError("None of its trials has a reading: `falloff status` says what became of them.")
    if "hpl_rate" in quantities and not repeats:
        frame, derived = _with_hpl(dataset, frame, list(factors))
        quantities |= derived
    order = sorted(quantities, key=lambda name: FOREMOST.index(name) if name in FOREMOST else len(FOREMOST))
    described = json.loads(dataset.attrs["interconnects"])
    return Trials(
        dataset=dataset,
        frame=frame.copy(),
        quantities={name: quantities[name] for name in order},
        factors=factors,
        names={name: it.get("short") or it.get("name") or name for name, it in described.items()},
        evidence=kinds[0],
        testbed=str(chosen.testbed.values[0]),
        repeats=repeats,
    )


def _factors(dataset: xr.Dataset, frame: pd.DataFrame) -> dict[str, list[Hashable]]:
    """The design's factors with the levels that were run; without a design, the settings that differ."""
    planned = json.loads(dataset.attrs["design"]).get("factors", {})
    if planned:
        # As `over_factors` has it: levels that are no or yes are 0 and 1.
        levels = {
            name: [int(it) if isinstance(it, bool) else it for it in values] for name, values in planned.items()
        }
        present = {name: set(frame[name].tolist()) for name in levels}
        return {name: [it for it in values if it in present[name]] for name, values in levels.items()}
    known = {
        name: sorted(frame[name].dropna().unique().tolist()) for name in SETTINGS if name not in ("file", "version")
    }
    return {
        name: values
        for name, values in known.items()
        if len(values) > 1 or name in ("interconnect", "nodes") and values
    }


def _quantities(chosen: xr.Dataset) -> dict[str, tuple[str, str, np.ndarray]]:
    """Label, unit and values over the trials of every reading that is there, by name."""
    found = {}
    for name, described in schema()["variables"].items():
        array = chosen[name]
        label, together = TOGETHER.get(name, (described.get("long_name", name), None))
        if name == "start" or array.dtype.kind not in "fiu" or (array.dims != ("trial",) and together is None):
            continue
        values = (array if together is None else together(array)).values
        if np.isfinite(values).any():
            found[name] = (label, described["units"], values)
    return found


def _with_hpl(
    dataset: xr.Dataset, frame: pd.DataFrame, factors: list[str]
) -> tuple[pd.DataFrame, dict[str, Quantity]]:
    """The table with HPL's share of what its nodes can do and of Rpeak [%], and what has no valid rate."""
    design = json.loads(dataset.attrs["design"])
    if not {"interconnect", "nodes"} <= set(design.get("factors", {})) or "margin" not in design:
        return frame, {}
    derived = points(dataset)
    found = derived[["share", "reason"]].assign(efficiency=efficiency(derived))
    found = found.assign(trial_id=over_factors(dataset, trial_id=dataset.trial_id).trial_id)
    columns = ["trial_id", "reason", *PERCENT]
    table = found[columns].to_dataframe()[columns].dropna(subset="trial_id")
    table[list(PERCENT)] *= 100
    merged = frame.drop(columns="reason").merge(table, on="trial_id", how="left")
    merged["valid"] &= merged.reason == ""
    labels = {"efficiency": "efficiency, Rmax / Rpeak", "share": f"HPL rate over {derived.share.attrs['of']}"}
    return merged, {name: Quantity(name, labels[name], "%") for name in PERCENT if merged[name].notna().any()}
