"""The explorer's data: datasets, each as a table with a row for each trial, and the transcripts
behind them."""

import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from analysis import paths
from analysis.dataset import store
from analysis.dataset.derive import PEAK, counted_in, over_factors, points
from analysis.dataset.schema import COUNTS, schema, settings
from analysis.quoting import as_written
from analysis.statements.efficiency import efficiency
from analysis.statistics.design import Design
from analysis.statistics.intervals import Kind
from analysis.subjects.hpl_points import results_if_any
from analysis.subjects.hpl_sensitivity import meaning
from analysis.wording import byte_size, counted, readable
from runners.records.journal import Folder, read_transcript
from runners.records.record import FalloffError, Transcript
from runners.tools import all_tools

FIRST = "hpl_scaling"  # the page opens with this experiment
ABOUT_A_TRIAL = ["trial_id", "block", "order", "status", "reason"]
# Readings with several values per trial that are shown as one value, with its label.
COMBINED = {
    "dgemm_rate": "DGEMM rate of all nodes",
    "bytes_sent": "bytes sent by all nodes",
    "bytes_received": "bytes received by all nodes",
    "cpu_time": "CPU time of all nodes",
    "token_throughput": "tokens written by all pairs, mean of the runs",
    "token_round_trip": "median round trip of a token, mean of pairs and runs",
    "flow_makespan": "time until all flows had arrived, mean of the runs",
    "flow_mean": "mean time of the flows, mean of the runs",
}
RMAX_RPEAK = "efficiency, Rmax / Rpeak"
SIZE = "size"  # the factor of readings by message size
SHOWN_IN = {"bit/s": ("Gbit/s", 1e-9), "B/s": ("MB/s", 1e-6), "1": ("", 1.0)}
LONGEST_NAME = 24  # characters of a factor's name in a list
# The units of the model's numbers that a simulated campaign changes.
VARIED = {"latency": "s", "bandwidth": "B/s"}


@dataclass(frozen=True)
class Source:
    """A netCDF file, or a campaign's folder of transcripts; `fault` says why it cannot be
    opened."""

    path: Path
    campaign: str
    title: str
    fault: str = ""

    @property
    def name(self) -> str:
        """Its path relative to the repository."""
        return os.path.relpath(self.path, paths.ROOT)

    @property
    def transcripts(self) -> Path | None:
        """The folder of the raw outputs, None if it is not beside the file."""
        places = (self.path, paths.RAW / self.path.stem, self.path.with_suffix(""))
        return next((place for place in places if (place / "trials.json").is_file()), None)


def experiments(folder: Path | None = None) -> dict[str, Source]:
    """The datasets in a folder, or by default in the reference and in the runs here; FIRST comes
    first, those with a fault last.

    The first dataset of a campaign has the campaign's name, any other its own; the same title of
    several is followed by the file's name. Raises FalloffError if there is no such folder.
    """
    if folder is not None and not folder.is_dir():
        raise FalloffError(
            f"there is no folder {folder}: give one that holds datasets (*.nc) or campaigns"
        )
    sources: dict[Path, Source] = {}
    for place in (paths.REFERENCE, paths.DATASETS, paths.RAW) if folder is None else (folder,):
        plans = [*place.glob("trials.json"), *place.glob("*/trials.json")]
        for path in [*sorted(place.glob("*.nc")), *sorted(plan.parent for plan in plans)]:
            dataset = source(path)
            # A dataset goes before its own folder.
            sources.setdefault(dataset.transcripts or path, dataset)
    ordered = sorted(
        sources.values(),
        key=lambda source: (source.campaign != FIRST, bool(source.fault), source.campaign),
    )
    titles = Counter(dataset.title for dataset in ordered)
    named: dict[str, Source] = {}
    for dataset in ordered:
        name = dataset.name if dataset.campaign in named else dataset.campaign
        if titles[dataset.title] > 1:
            where = dataset.path.stem.replace("-", " on ").replace("_", " ")
            dataset = replace(dataset, title=f"{dataset.title} ({where})")
        named[name] = dataset
    return named


def source(path: Path) -> Source:
    """The source at a path, with its fault if it is not a dataset."""
    try:
        if path.suffix == ".nc":
            about = store.attributes(path)
            xr.Dataset(attrs=about).falloff.testbed  # noqa: B018, raises if it is damaged
            return Source(path, str(about["campaign"]), as_written(str(about["title"])))
        plan = Folder(path).plan()
        return Source(path, plan.name, as_written(plan.title))
    except (FalloffError, OSError, ValueError, KeyError) as error:
        remedy = "`falloff run` or `falloff import` writes it anew"
        reason = f"{path} is not a readable dataset of Falloff's: {error}. {remedy}"
        return Source(path, path.name, "A file that cannot be read", reason)


def _changed(path: Path) -> float:
    """When a file or a folder of transcripts last changed: a running campaign gets further
    transcripts."""
    parts = [part for part in (path, path / "transcripts") if part.exists()]
    return max(part.stat().st_mtime for part in parts)


@dataclass(frozen=True)
class PlottedQuantity:
    """A quantity for the vertical axis, in its display unit."""

    name: str
    label: str
    unit: str

    @property
    def kind(self) -> Kind:
        """The kind of its mean: geometric for shares and indices, harmonic for rates per second."""
        if self.name in ("efficiency", "share", "fairness"):
            return "ratio"
        return "rate" if self.unit.endswith("/s") else "cost"


def with_unit(label: str, unit: str) -> str:
    """A label of values with their unit; a pure number has none."""
    return label if unit in ("", "1") else f"{label} [{unit}]"


@dataclass(frozen=True, eq=False)  # hashable, because results are cached by it
class Trials:
    """The trials of a dataset's design.

    `frame` has one row per trial: ABOUT_A_TRIAL, a column for each of the `factors`, whose levels
    are in the design's order, and one for each of `quantities` in their units. `valid` is False if
    the design's own rules leave the trial out (`reason` says why). `by_size` has the readings by
    message size: one row per trial and size. With `repeats` a block is only the number of a repeat,
    because order and blocks of imported runs are unknown.
    """

    dataset: xr.Dataset
    frame: pd.DataFrame
    quantities: dict[str, PlottedQuantity]
    by_size: dict[str, pd.DataFrame]
    factors: dict[str, list[Any]]
    repeats: bool

    @cached_property
    def design(self) -> Design:
        """What was fixed before the run."""
        return self.dataset.falloff.design

    @property
    def control(self) -> Any:
        """The level with which the others are compared; None if there is none."""
        return self.design.control or self.design.baseline

    @property
    def evidence(self) -> str:
        """The kind of evidence; there is only one."""
        return self.dataset.falloff.evidence

    def count(self, number: int) -> str:
        """A number of repeats, in words."""
        return counted(number, "run" if self.repeats else "block")

    def factors_of(self, quantity: str) -> dict[str, list[Any]]:
        """The factors over which a quantity can be shown, with their levels."""
        if quantity not in self.by_size:
            return self.factors
        return {SIZE: sorted(self.by_size[quantity][SIZE].unique().tolist()), **self.factors}

    def is_switch(self, factor: str) -> bool:
        """Whether the factor is on or off: its levels are 1 and 0."""
        return isinstance(self.design.factors.get(factor, [""])[0], bool)

    def is_number(self, factor: str) -> bool:
        """Whether the factor's levels can be placed on an axis by their size."""
        levels = self.factors.get(factor, [0])
        return not self.is_switch(factor) and not isinstance(levels[0], str)

    def ticked(self, factor: str, level: Any) -> str:
        """The name of a level on an axis."""
        if isinstance(level, str):
            if (factor, level) == ("vary", "none"):
                return "nothing changed"
            if factor == "vary" and "=" in level:
                return ", ".join(_change(part) for part in level.split(","))
            name = self.dataset.falloff.names.get(level) or level.replace("_", " ")
            return as_written(name) or "not known"
        if self.is_switch(factor):
            return f"{'with' if level else 'without'} {factor}"
        is_in_bytes = schema()["coordinates"][factor].get("units") == "B"
        if is_in_bytes and (level < 1024 or level % 1024 == 0):
            return byte_size(level)
        return f"{level:.10g}"

    def called(self, factor: str, level: Any) -> str:
        """The name of a level in a sentence; a number has its unit or the factor's name."""
        tick = self.ticked(factor, level)
        if factor in COUNTS:
            return counted(int(level), factor.removesuffix("s"))
        if isinstance(level, str) or not tick[-1].isdigit():
            return tick
        return f"{factor_name(factor)} {tick}"


def factor_name(factor: str) -> str:
    """The name of a factor in a list of factors: the schema's, if that is short."""
    name = schema()["coordinates"][factor]["long_name"]
    return name if len(name) <= LONGEST_NAME else factor.replace("_", " ")


def axis_label(factor: str) -> str:
    """A factor's label with its unit."""
    about = schema()["coordinates"][factor]
    return with_unit(about["long_name"], about.get("units", ""))


def opened(source: Source) -> Trials:
    """The trials of a source; raises FalloffError if it is damaged or holds no trial of its
    design."""
    if source.fault:
        raise FalloffError(source.fault)
    return _opened(source, _changed(source.path))


@lru_cache(maxsize=32)  # datasets of about a megabyte each
def _opened(source: Source, changed: float) -> Trials:
    return trials((store.load if source.path.suffix == ".nc" else store.read)(source.path))


def trials(dataset: xr.Dataset) -> Trials:
    """The table of a dataset; raises FalloffError if it has no reading of its design or mixes kinds
    of evidence."""
    campaign = f"Campaign {dataset.attrs['campaign']} holds"
    chosen = dataset.falloff.points
    kinds = sorted(set(chosen.evidence.values.tolist()))
    if not kinds:
        raise FalloffError(f"{campaign} no trial of its design yet: run at least one block.")
    if len(kinds) > 1:
        raise FalloffError(
            f"{campaign} evidence of several kinds, {', '.join(kinds)}: never pooled."
        )
    repeats = str(chosen.testbed.values[0]) == store.IMPORTED
    hpl = results_if_any(dataset) if repeats else None
    if hpl is not None and counted_in(hpl.points) == "nodes":
        nodes_of_trial = chosen.trial_id.to_series().map(hpl.runs.set_index("trial_id").nodes)
        nodes = nodes_of_trial.fillna(chosen.nodes.to_series()).values
        chosen = chosen.assign_coords(nodes=("trial", nodes, chosen.nodes.attrs))
    factors = _factors(chosen)
    frame = pd.DataFrame({name: chosen[name].values for name in (*ABOUT_A_TRIAL, *factors)})
    frame["valid"] = frame.status == "ok"
    quantities, by_size = _readings(chosen, frame)
    if not quantities:
        raise FalloffError("None of its trials has a reading; `falloff status` says why.")
    shares: dict[str, str] = {}
    if "hpl_rate" in quantities and not repeats:
        shares = _add_shares(dataset, frame)
    elif hpl is not None and hpl.runs.share.notna().any():
        frame["efficiency"] = 100 * frame.trial_id.map(hpl.runs.set_index("trial_id").share)
        of = hpl.points.share.attrs["of"]
        shares = {"efficiency": RMAX_RPEAK if of == PEAK else f"HPL rate over {of}"}
    for name, label in shares.items():
        if frame[name].notna().any():
            quantities[name] = PlottedQuantity(name, label, "%")
    # The first, a tool's main reading, is the vertical axis when a page opens.
    ran = set(chosen.runner.values.tolist())
    of_tools = [name for tool in all_tools() if tool.name in ran for name in tool.readings]
    order = dict.fromkeys([*shares, *of_tools, *quantities])
    quantities = {name: quantities[name] for name in order if name in quantities}
    return Trials(dataset, frame.copy(), quantities, by_size, factors, repeats)


def _factors(chosen: xr.Dataset) -> dict[str, list]:
    """The design's factors with the levels that were run; without a design, the settings that
    differ, and the networks and numbers of nodes."""
    columns = {name: pd.Series(chosen[name].values).dropna() for name in settings()}
    run = {name: column.unique().tolist() for name, column in columns.items()}
    if planned := chosen.falloff.design.factors:
        return {
            # No and yes are 0 and 1 in the table.
            name: [
                int(level) if level in (0, 1) else level for level in levels if level in run[name]
            ]
            for name, levels in planned.items()
        }
    least = {"interconnect": 1, "nodes": 1}
    several = {name: sorted(run[name]) for name in run if len(run[name]) >= least.get(name, 2)}
    if "interconnect" in several:
        several["interconnect"] = list(chosen.falloff.names_by_rate(several["interconnect"]))
    return several


def _change(change: str) -> str:
    """A change of the model in words, such as "latency 10 µs"."""
    name, _, value = change.partition("=")
    with suppress(KeyError, ValueError):  # such as an end of its range, "low" or "high"
        factor, unit = readable(float(value), VARIED[name])
        value = f"{float(value) * factor:.10g} {unit}"
    return f"{meaning(name).replace('_', ' ')} {value}"


def _readings(
    chosen: xr.Dataset, frame: pd.DataFrame
) -> tuple[dict[str, PlottedQuantity], dict[str, pd.DataFrame]]:
    """Put into the table every reading with one value per trial, or that can be reduced to one; the
    others go by message size."""
    quantities, by_size = {}, {}
    for name, about in schema()["variables"].items():
        if name in ("start", "message_size") or about["type"] == "text":
            continue
        array = chosen[name]
        has_value = np.isfinite(array.values)
        if not has_value.any():
            continue
        unit, scale = SHOWN_IN.get(about["units"], (about["units"], 1.0))
        label, values = COMBINED.get(name, about["long_name"]), scale * array
        if name in COMBINED:
            values = _one_value(values)
        if values.dims == ("trial",):
            frame[name] = values.values
        elif values.dims in (("trial", SIZE), ("trial", "message")):
            if SIZE in values.dims:
                has_value, sizes = (array > 0).values, values[SIZE]
            else:
                sizes = chosen.message_size.fillna(0).astype(int)
            row, place = np.nonzero(has_value)
            columns = {SIZE: sizes.broadcast_like(values), name: values}
            columns = {column: cells.values[row, place] for column, cells in columns.items()}
            by_size[name] = frame.iloc[row].assign(**columns)
        else:
            continue
        quantities[name] = PlottedQuantity(name, label, unit)
    return quantities, by_size


def _one_value(array: xr.DataArray) -> xr.DataArray:
    """One value from several: rates and amounts of nodes and pairs add up, a distribution gives its
    median, all others their mean."""
    if "quantile" in array.dims:
        array = array.sel(quantile=0.5, method="nearest")
    elif parts := {"node", "pair"} & {*array.dims}:
        array = array.sum(parts, min_count=1)
    return array.mean({*array.dims} - {"trial"})


def _add_shares(dataset: xr.Dataset, frame: pd.DataFrame) -> dict[str, str]:
    """Add to the table HPL's share of its nodes' known rate and of Rpeak [%], and mark what the
    design leaves out; the labels of both."""
    planned = dataset.falloff.design
    if not {"interconnect", "nodes"} <= planned.factors.keys() or planned.margin is None:
        return {}
    derived = points(dataset)
    labels = {"efficiency": RMAX_RPEAK, "share": f"HPL rate over {derived.share.attrs['of']}"}
    derived = derived.assign(efficiency=efficiency(derived))
    derived["trial_id"] = over_factors(dataset, trial_id=dataset.trial_id).trial_id
    rows = derived[["trial_id", "reason", *labels]].to_dataframe().dropna(subset="trial_id")
    rows = rows.set_index("trial_id")
    for name in labels:
        frame[name] = 100 * frame.trial_id.map(rows[name])
    frame["reason"] = frame.trial_id.map(rows.reason)
    frame["valid"] &= frame.reason == ""
    return labels


def transcript(source: Source, trial_id: str) -> Transcript:
    """One trial's transcript; raises FalloffError if it is not beside the dataset, or is
    damaged."""
    folder = source.transcripts
    if folder is None:
        remedy = "`falloff explore` on the campaign's own folder shows them"
        raise FalloffError(f"The transcripts are not beside {source.name}: {remedy}")
    texts = _texts(folder, _changed(folder))
    # Results of one imported file end in a number.
    stem = trial_id if trial_id in texts else trial_id.rpartition("-")[0]
    if stem not in texts:
        raise FalloffError(f"{folder} holds no transcript of trial {trial_id}")
    return read_transcript(texts[stem], stem)


@lru_cache(maxsize=4)  # archives of a few megabytes each
def _texts(folder: Path, changed: float) -> dict[str, bytes]:
    return dict(Folder(folder).texts())
