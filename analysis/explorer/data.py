"""The explorer's data: datasets, each as a table with a row for each trial, and the transcripts
behind them."""

import os
from collections.abc import Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from analysis import paths
from analysis.dataset import store
from analysis.dataset.derive import PEAK, counted_in, over_factors, points
from analysis.dataset.schema import schema
from analysis.quoting import as_written
from analysis.statements.efficiency import efficiency
from analysis.statistics.design import Design
from analysis.statistics.intervals import Kind
from analysis.subjects.hpl_points import results_if_any
from analysis.subjects.hpl_sensitivity import meaning
from analysis.wording import byte_size, counted
from runners.records.journal import Folder, read_transcript
from runners.records.record import FalloffError, Transcript
from runners.tools import all_tools

FIRST = "hpl_scaling"  # the page opens with this experiment
# The vertical axis when a page opens: the first of these that a dataset has, else its tool's first
# reading.
FOREMOST = (
    "efficiency", "share", "hpl_rate", "aggregate_goodput", "goodput", "token_throughput",
    "message_bandwidth", "message_time", "packets_received_per_s", "frame_bytes_largest", "flow_makespan",
)  # fmt: skip
ABOUT_A_TRIAL = ["trial_id", "block", "order", "status", "reason"]
NO_FACTORS = (*ABOUT_A_TRIAL, "role", "runner", "evidence", "testbed", "file", "version")
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
NOUNS = {"nodes": "node", "receivers": "receiver", "streams": "stream", "pairs": "pair"}
IN_BYTES = ("window_bytes", "token_bytes", SIZE)
NAMES = {
    "vary": "change to the model", "window_bytes": "socket buffer", "token_bytes": "token size",
    "frame_bytes": "frame size", "mtu": "MTU", "N": "order N", "blas": "BLAS", SIZE: "message size",
}  # fmt: skip
# Model numbers that a simulated campaign changes: the unit for display, and the factor from their
# own unit to it.
VARIED = {"latency": ("µs", 1e6), "bandwidth": ("MB/s", 1e-6)}


@dataclass(frozen=True)
class Source:
    """A netCDF file, or a campaign's folder of transcripts, on a testbed of a kind; `fault` says
    why it cannot be opened."""

    path: Path
    campaign: str
    title: str
    kind: str = ""
    testbed: str = ""
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

    The first dataset of a campaign has the campaign's name, any other its own. Raises FalloffError
    if there is no such folder.
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
    named: dict[str, Source] = {}
    for dataset in ordered:
        name = dataset.name if dataset.campaign in named else dataset.campaign
        named[name] = replace(dataset, title=_title(dataset, ordered))
    return named


def _title(source: Source, others: Iterable[Source]) -> str:
    """The source's title, with what distinguishes it from another of the same title: the kind of
    its testbed, the testbed, or the file's name."""
    alike = [other for other in others if other.title == source.title]
    if alike == [source]:
        return source.title
    for part in ("kind", "testbed"):
        if len({getattr(other, part) for other in alike}) == len(alike):
            return f"{source.title} ({getattr(source, part).replace('_', ' ')})"
    return f"{source.title} ({source.path.stem.replace('_', ' ')})"


def source(path: Path) -> Source:
    """The source at a path, with its fault if it is not a dataset."""
    try:
        stat = (path if path.suffix == ".nc" else path / "trials.json").stat()
    except OSError:
        return _source(path, None)
    return _source(path, (stat.st_ino, stat.st_size, stat.st_ctime_ns))


@lru_cache(maxsize=1000)  # each page lists all of them
def _source(path: Path, state: tuple[int, int, int] | None) -> Source:
    """As `source`; `state` changes with the file."""
    try:
        if path.suffix == ".nc":
            about = xr.Dataset(attrs=store.attributes(path))
            name, title = str(about.attrs["campaign"]), as_written(str(about.attrs["title"]))
            ran_on = about.falloff.testbed
            return Source(path, name, title, *map(str, (ran_on.kind, ran_on.name)))
        plan = Folder(path).plan()
    except (FalloffError, OSError, ValueError, KeyError) as error:
        remedy = "`falloff run` or `falloff import` writes it anew"
        reason = f"{path} is not a readable dataset of Falloff's: {error}. {remedy}"
        return Source(path, path.name, "A file that cannot be read", fault=reason)
    kind, name = (as_written(str(plan.testbed[part])) for part in ("kind", "name"))
    return Source(path, plan.name, as_written(plan.title), kind, name)


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

    def with_unit(self, label: str) -> str:
        """A label of its values with the unit."""
        return f"{label} [{self.unit}]" if self.unit else label


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
    factors: dict[str, list[Hashable]]
    repeats: bool

    @cached_property
    def design(self) -> Design:
        """What was fixed before the run."""
        return self.dataset.falloff.design

    @property
    def control(self) -> Hashable:
        """The level with which the others are compared; None if there is none."""
        return self.design.control or self.design.baseline

    @property
    def evidence(self) -> str:
        """The kind of evidence; there is only one."""
        return self.dataset.falloff.evidence

    def count(self, number: int) -> str:
        """A number of repeats, in words."""
        return counted(number, "run" if self.repeats else "block")

    def factors_of(self, quantity: str) -> dict[str, list[Hashable]]:
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

    def ticked(self, factor: str, level: Hashable) -> str:
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
        if factor in IN_BYTES and (level < 1024 or level % 1024 == 0):
            return byte_size(level)
        return f"{level:.10g}"

    def called(self, factor: str, level: Hashable) -> str:
        """The name of a level in a sentence; a number has the factor's name or unit."""
        tick = self.ticked(factor, level)
        if factor in NOUNS:
            return counted(int(level), NOUNS[factor])
        if factor in IN_BYTES or isinstance(level, str) or self.is_switch(factor):
            return tick
        return f"{factor_name(factor)} {tick}"


def factor_name(factor: str) -> str:
    """The name of a factor in a list of factors."""
    return NAMES.get(factor) or meaning(factor).replace("_", " ")


def axis_label(factor: str) -> str:
    """A factor's label with its unit."""
    about = schema()["coordinates"].get(factor, {})
    unit, label = about.get("units", "1"), NAMES.get(factor) or about.get("long_name", factor)
    return label if unit == "1" else f"{label} [{unit}]"


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
    if "hpl_rate" in quantities and not repeats:
        quantities |= _add_shares(dataset, frame)
    if hpl is not None and hpl.runs.share.notna().any():
        frame["efficiency"] = 100 * frame.trial_id.map(hpl.runs.set_index("trial_id").share)
        of = hpl.points.share.attrs["of"]
        label = RMAX_RPEAK if of == PEAK else f"HPL rate over {of}"
        quantities["efficiency"] = PlottedQuantity("efficiency", label, "%")
    ran = set(chosen.runner.values.tolist())
    of_tools = [name for tool in all_tools() if tool.name in ran for name in tool.readings]
    foremost = [name for name in (*FOREMOST, *of_tools) if name in quantities]
    quantities = {name: quantities[name] for name in dict.fromkeys([*foremost, *quantities])}
    return Trials(dataset, frame.copy(), quantities, by_size, factors, repeats)


def _factors(chosen: xr.Dataset) -> dict[str, list[Hashable]]:
    """The design's factors with the levels that were run; without a design, the settings that
    differ."""
    columns = {name: chosen.variables[name] for name in schema()["coordinates"]}
    names = [name for name, column in columns.items() if column.dims == ("trial",)]
    run = {name: pd.unique(pd.Series(columns[name].values).dropna()).tolist() for name in names}
    if planned := chosen.falloff.design.factors:
        return {
            # No and yes are 0 and 1 in the table.
            name: [
                int(level) if level in (0, 1) else level for level in levels if level in run[name]
            ]
            for name, levels in planned.items()
        }
    levels = {}
    for name in names:
        least = 1 if name in ("interconnect", "nodes") else 2
        if name not in NO_FACTORS and len(run[name]) >= least:
            levels[name] = sorted(run[name])
    if "interconnect" in levels:
        levels["interconnect"] = list(chosen.falloff.names_by_rate(levels["interconnect"]))
    return levels


def _change(change: str) -> str:
    """A change of the model in words, such as "latency 10 µs"."""
    name, _, value = change.partition("=")
    if name in VARIED and value not in ("low", "high"):
        unit, scale = VARIED[name]
        with suppress(ValueError):
            value = f"{float(value) * scale:.10g} {unit}"
    return f"{factor_name(name)} {value}"


def _readings(
    chosen: xr.Dataset, frame: pd.DataFrame
) -> tuple[dict[str, PlottedQuantity], dict[str, pd.DataFrame]]:
    """Put into the table every reading with one value per trial, or that can be reduced to one; the
    others go by message size."""
    quantities, by_size = {}, {}
    for name, about in schema()["variables"].items():
        if name == "start" or about["type"] == "text":
            continue
        if not np.isfinite(chosen.variables[name].values).any():
            continue
        array = chosen[name]
        unit, scale = SHOWN_IN.get(about["units"], (about["units"], 1.0))
        quantity = PlottedQuantity(name, COMBINED.get(name, about["long_name"]), unit)
        if array.dims == ("trial",) or name in COMBINED:
            quantities[name] = quantity
            frame[name] = scale * _one_value(array).values
            continue
        if array.dims == ("trial", SIZE):
            row, place = np.nonzero((array > 0).values)
            sizes = array[SIZE].values[place]
        elif array.dims == ("trial", "message") and name != "message_size":
            row, place = np.nonzero(np.isfinite(array.values))
            sizes = chosen.message_size.values[row, place].astype(int)
        else:
            continue
        columns = {SIZE: sizes, name: scale * array.values[row, place]}
        quantities[name], by_size[name] = quantity, frame.iloc[row].assign(**columns)
    return quantities, by_size


def _one_value(array: xr.DataArray) -> xr.DataArray:
    """One value from several: rates and amounts of nodes and pairs add up, a distribution gives its
    median, all others their mean."""
    if "quantile" in array.dims:
        array = array.sel(quantile=0.5, method="nearest")
    elif {"node", "pair"} & set(array.dims):
        array = array.sum([dim for dim in ("node", "pair") if dim in array.dims], min_count=1)
    return array.mean([dim for dim in array.dims if dim != "trial"])


def _add_shares(dataset: xr.Dataset, frame: pd.DataFrame) -> dict[str, PlottedQuantity]:
    """Add to the table HPL's share of its nodes' known rate and of Rpeak [%], and mark what the
    design leaves out."""
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
    return {
        name: PlottedQuantity(name, label, "%")
        for name, label in labels.items()
        if frame[name].notna().any()
    }


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
