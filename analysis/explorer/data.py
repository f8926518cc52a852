"""What there is to explore: datasets, each as a table with a row for each trial, and the transcripts behind them."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from analysis import attributes, imported, paths, store
from analysis.attributes import design, interconnects
from analysis.derive import over_factors, points
from analysis.efficiency import efficiency
from analysis.statistics.intervals import Kind
from analysis.schema import schema
from analysis.wording import byte_size, counted, number
from runners.journal import Folder, read_transcript
from runners.record import FalloffError, Transcript

FIRST = "hpl_scaling"  # what the page opens with where it is there
# The vertical axis of a page that opens, the first that a dataset has.
FOREMOST = (
    "efficiency", "share", "hpl_rate", "aggregate_goodput", "goodput", "token_throughput",
    "packets_received_per_s", "frame_bytes_largest", "flow_makespan", "message_bandwidth",
)  # fmt: skip
NO_SETTINGS = ("trial_id", "role", "runner", "block", "order", "evidence", "testbed")
SETTINGS = [
    name
    for name, about in schema()["coordinates"].items()
    if about["dims"] == ["trial"] and name not in NO_SETTINGS
]
# Readings of several values a trial, as one value: what that is called.
TOGETHER = {
    "dgemm_rate": "DGEMM rate of all nodes",
    "bytes_sent": "bytes sent by all nodes",
    "bytes_received": "bytes received by all nodes",
    "cpu_time": "CPU time of all nodes",
    "token_throughput": "tokens written by all pairs, mean of the runs",
    "token_round_trip": "median round trip of a token, mean of pairs and runs",
    "flow_makespan": "time until all flows had arrived, mean of the runs",
    "flow_mean": "mean time of the flows, mean of the runs",
}
SIZE = "size"  # the factor of readings by size of message
SHOWN_IN = {"bit/s": ("Gbit/s", 1e-9), "B/s": ("MB/s", 1e-6), "1": ("", 1.0)}
PERCENT = ("efficiency", "share")
# Older plans name the emulated testbeds by what they are for.
KINDS = {"cluster": "measured", "simulated": "simulated", imported.TESTBED: "imported"}
NOUNS = {"nodes": "node", "receivers": "receiver", "streams": "stream", "pairs": "pair"}
IN_BYTES = ("window_bytes", "token_bytes", SIZE)
NAMES = {
    "vary": "change to the model", "window_bytes": "socket buffer", "token_bytes": "token size",
    "frame_bytes": "frame size", "mtu": "MTU", "N": "order N", "blas": "BLAS", SIZE: "message size",
    "dgemm_flop_s": "DGEMM rate", "dgemm_k_half": "DGEMM half k", "dgemm_mn_half": "DGEMM half m, n",
    "dtrsm_share": "DTRSM share", "node_byte_s": "a node's memory", "core_byte_s": "a core's memory",
    "strided_s": "strided access",
}  # fmt: skip
# Numbers of a simulated model that a campaign varies: the unit that they are shown in, and how many make one of theirs.
VARIED = {"latency": ("µs", 1e6), "bandwidth": ("MB/s", 1e-6), "backplane": ("MB/s", 1e-6)}


@dataclass(frozen=True)
class Source:
    """A dataset that can be opened: a netCDF file, or a campaign's folder of transcripts.

    `campaign` and `title` are as in its plan, `label` tells it from the campaign's other datasets. `transcripts` is the
    folder of the raw outputs, None where it is not beside the file. `fault` says why it cannot be opened and is empty
    otherwise; such a one is its own campaign.
    """

    path: Path
    campaign: str
    title: str
    label: str = ""
    transcripts: Path | None = None
    fault: str = ""

    @property
    def name(self) -> str:
        """What the source is called by: its path below the repository, or all of it."""
        inside = self.path.is_relative_to(paths.ROOT)
        return str(self.path.relative_to(paths.ROOT) if inside else self.path)


def experiments(folder: Path | None = None) -> dict[str, tuple[Source, ...]]:
    """The datasets of each campaign in a folder, or without one in the reference and in what was run here; FIRST first.

    Raises FalloffError when there is no such folder.
    """
    if folder is not None and not folder.is_dir():
        raise FalloffError(
            f"there is no folder {folder}: give one that holds datasets (*.nc) or campaigns"
        )
    found: dict[str, list[Source]] = {}
    seen: set[Path | None] = set()
    for place in (paths.REFERENCE, paths.DATASETS, paths.RAW) if folder is None else (folder,):
        for source in _sources(place):
            if source.path not in seen:  # transcripts whose dataset is there, too, are listed once
                found.setdefault(source.campaign, []).append(source)
                seen |= {source.path, source.transcripts}
    order = sorted(found, key=lambda name: (name != FIRST, bool(found[name][0].fault), name))
    return {name: tuple(found[name]) for name in order}


def named(name: str) -> Source:
    """The source of that name; raises FalloffError when there is none."""
    path = paths.ROOT / name  # of an absolute name the root has no part
    found = [source for source in _sources(path.parent) if source.path == path]
    if not found:
        raise FalloffError(f"there is no dataset {name}")
    return found[0]


def _sources(place: Path) -> Iterator[Source]:
    if place.is_dir():
        for file in sorted(place.glob("*.nc")):
            yield _file(file, _changed(file))
        for folder in [place, *sorted(place.iterdir())]:
            if (folder / "trials.json").is_file():
                yield _folder(folder, _changed(folder / "trials.json"))


def _changed(path: Path) -> float:
    """When a file or a folder of transcripts changed last: one that is being measured gets further ones."""
    within = [place for place in (path, path / "transcripts") if place.exists()]
    return max(place.stat().st_mtime for place in within)


@lru_cache(maxsize=1024)
def _folder(folder: Path, changed: float) -> Source:
    try:
        plan = Folder(folder).plan()
    except FalloffError as error:
        return Source(folder, folder.name, "A folder that cannot be read", fault=str(error))
    here = f", run {date.fromtimestamp(changed):%d %B %Y}"
    label = _label(plan.testbed) + ("" if folder.is_relative_to(paths.REFERENCE) else here)
    return Source(folder, plan.name, plan.title, label, folder)


@lru_cache(maxsize=1024)
def _file(file: Path, changed: float) -> Source:
    try:
        with store.opened(file) as found:
            campaign, title = found.attrs["campaign"], found.attrs["title"]
            label = f"{_label(attributes.testbed(found))}, {file.name}"
    except (OSError, ValueError, KeyError) as error:
        remedy = "`falloff run` or `falloff import` writes it anew"
        reason = f"{file} is not a readable dataset of Falloff's: {error}. {remedy}"
        return Source(file, file.name, "A file that cannot be read", fault=reason)
    beside = [place / file.stem for place in (paths.RAW, file.parent)]
    folders = [folder for folder in beside if (folder / "trials.json").is_file()]
    return Source(file, campaign, title, label, next(iter(folders), None))


def _label(testbed: dict) -> str:
    kind, name = KINDS.get(testbed["kind"], "emulated"), testbed["name"].replace("_", " ")
    return kind if name == kind else f"{kind}: {name}"


@dataclass(frozen=True)
class Quantity:
    """What can be on the vertical axis: its label, and its unit, empty where it has none.

    The table holds `scale` times the reading, which the schema has in its own unit.
    """

    name: str
    label: str
    unit: str
    scale: float = 1.0

    @property
    def kind(self) -> Kind:
        """Which mean it has: shares and indices the geometric one, what is per second the harmonic one."""
        if self.name in (*PERCENT, "fairness"):
            return "ratio"
        return "rate" if self.unit.endswith("/s") else "cost"

    def with_unit(self, label: str) -> str:
        """A label of its values with their unit."""
        return f"{label} [{self.unit}]" if self.unit else label


@dataclass(frozen=True, eq=False)  # one is itself alone, so that what follows from it can be kept
class Trials:
    """The trials of a dataset's design.

    `frame` has a row a trial: trial_id, block, order, status, reason, SETTINGS, and a column for each of `quantities`
    in their units. `valid` is False where the design's own rules leave the trial out (`reason` says why). `by_size` are
    the readings by size of message: a row for each trial and size. `factors` holds the levels of every factor in the
    design's order, `switches` those that are on or off. With `repeats` a block is only the number of a repeat: order and
    blocks of imported runs are not known.
    """

    dataset: xr.Dataset
    frame: pd.DataFrame
    quantities: dict[str, Quantity]
    by_size: dict[str, pd.DataFrame]
    factors: dict[str, list[Hashable]]
    switches: frozenset[str]
    repeats: bool

    @property
    def campaign(self) -> str:
        """The campaign's name."""
        return self.dataset.attrs["campaign"]

    @property
    def design(self) -> dict:
        """What was decided before the run."""
        return design(self.dataset)

    @property
    def evidence(self) -> str:
        """The kind of evidence, which is one."""
        return str(self.dataset.evidence.values[0])

    @property
    def unit_of_repetition(self) -> str:
        """What n counts."""
        return "run" if self.repeats else "block"

    def factors_of(self, quantity: str) -> dict[str, list[Hashable]]:
        """The factors over which a quantity can be shown, with their levels."""
        if quantity not in self.by_size:
            return self.factors
        return {SIZE: sorted(self.by_size[quantity][SIZE].unique().tolist()), **self.factors}

    def ticked(self, factor: str, level: Hashable) -> str:
        """What a level is called on an axis."""
        if isinstance(level, str) or factor in self.switches:
            return self.called(factor, level)
        if factor in IN_BYTES and level >= 1024 and level % 1024 == 0:
            return byte_size(level)
        return f"{level:.10g}"

    def called(self, factor: str, level: Hashable) -> str:
        """What a level is called in a sentence: with the factor's name or unit, where it is a number."""
        if isinstance(level, str):
            if (factor, level) == ("vary", "none"):
                return "nothing changed"
            if "=" in level:
                return ", ".join(_change(part) for part in level.split(","))
            about = interconnects(self.dataset).get(level, {})
            return about.get("short") or level.replace("_", " ") or "not known"
        if factor in self.switches:
            return f"{'with' if level else 'without'} {factor}"
        if factor in NOUNS:
            return counted(int(level), NOUNS[factor])
        if factor in IN_BYTES:
            return byte_size(level)
        unit = VARIED[factor][0] if factor in VARIED else ""
        return f"{factor_name(factor)} {self.ticked(factor, level)} {unit}".strip()


def factor_name(factor: str) -> str:
    """What a factor is called among others."""
    return NAMES.get(factor, factor.replace("_", " "))


def axis_label(factor: str) -> str:
    """A factor's label with its unit."""
    about = schema()["coordinates"].get(factor, {})
    unit = VARIED[factor][0] if factor in VARIED else about.get("units", "1")
    label = NAMES.get(factor) or about.get("long_name", factor)
    return label if unit == "1" else f"{label} [{unit}]"


def known(value: float) -> str:
    """A number with four digits, a dash where there is none."""
    return number(value if np.isfinite(value) else None, 4)


def opened(source: Source) -> Trials:
    """The trials of a source; raises FalloffError when it is damaged or holds no trial of its design."""
    if source.fault:
        raise FalloffError(source.fault)
    return _opened(source, _changed(source.path))


@lru_cache(maxsize=32)  # datasets of about a megabyte each
def _opened(source: Source, changed: float) -> Trials:
    is_file = source.path.suffix == ".nc"
    return trials(store.load(source.path) if is_file else store.read(source.path))


def trials(dataset: xr.Dataset) -> Trials:
    """The table of a dataset; raises FalloffError when it has no reading of its design or mixes evidence."""
    named = f"Campaign {dataset.attrs['campaign']} holds"
    chosen = dataset.isel(trial=np.flatnonzero(dataset.role == "point"))
    kinds = sorted(set(chosen.evidence.values.tolist()))
    if not kinds:
        raise FalloffError(f"{named} no trial of its design yet: run at least one block.")
    if len(kinds) > 1:
        raise FalloffError(f"{named} evidence of several kinds, {', '.join(kinds)}: never pooled.")
    columns = ["trial_id", "block", "order", "status", "reason", *SETTINGS]
    frame = pd.DataFrame({name: chosen[name].values for name in columns})
    frame["valid"] = frame.status == "ok"
    repeats = str(chosen.testbed.values[0]) == imported.TESTBED
    factors, switches = _factors(chosen, frame)
    if repeats:
        frame["block"] = frame.groupby(list(factors), dropna=False).cumcount() + 1
    quantities, by_size = _readings(chosen, frame)
    if not quantities:
        raise FalloffError(
            "None of its trials has a reading: `falloff status` says what became of them."
        )
    if "hpl_rate" in quantities and not repeats:
        frame, shares = _with_shares(dataset, frame)
        quantities |= shares
    rank = {name: place for place, name in enumerate(FOREMOST)}
    ordered = sorted(quantities, key=lambda name: rank.get(name, len(rank)))
    quantities = {name: quantities[name] for name in ordered}
    return Trials(dataset, frame.copy(), quantities, by_size, factors, switches, repeats)


def _factors(
    dataset: xr.Dataset, frame: pd.DataFrame
) -> tuple[dict[str, list[Hashable]], frozenset[str]]:
    """The design's factors with the levels that were run, and those that are on or off.

    Without a design they are the settings that differ.
    """
    planned = design(dataset).get("factors", {})
    if not planned:
        settings = [name for name in SETTINGS if name not in ("file", "version")]
        run = {name: sorted(frame[name].dropna().unique().tolist()) for name in settings}
        always = ("interconnect", "nodes")
        kept = [name for name, levels in run.items() if len(levels) > (name not in always)]
        return {name: run[name] for name in kept}, frozenset()
    switches = frozenset(name for name, levels in planned.items() if isinstance(levels[0], bool))
    # As `over_factors` has it, levels that are no or yes are 0 and 1.
    levels = {name: planned[name] if name not in switches else [0, 1] for name in planned}
    run = {name: set(frame[name].tolist()) for name in planned}
    factors = {name: [level for level in levels[name] if level in run[name]] for name in planned}
    return _with_numbers_varied(frame, factors), switches


def _with_numbers_varied(
    frame: pd.DataFrame, factors: dict[str, list[Hashable]]
) -> dict[str, list[Hashable]]:
    """The factors, where changes to the model that all set the same numbers are split: each number can be an axis."""
    changes = [level.split(",") for level in factors.get("vary", [])]
    set_by = {tuple(part.partition("=")[0] for part in parts) for parts in changes}
    numbers = next(iter(set_by)) if len(set_by) == 1 else ()
    if len(numbers) < 2:
        return factors
    for at, name in enumerate(numbers):
        values = [_in_shown_unit(parts[at]) for parts in changes]
        frame[name] = frame["vary"].map(dict(zip(factors["vary"], values)))
        factors = {**factors, name: sorted(set(values))}
    return {name: levels for name, levels in factors.items() if name != "vary"}


def _in_shown_unit(change: str) -> float:
    name, _, value = change.partition("=")
    return float(f"{float(value) * VARIED[name][1]:.10g}")  # without digits of a binary fraction


def _change(change: str) -> str:
    """A change to the model in words, such as "latency 10 µs"."""
    name, _, value = change.partition("=")
    if name in VARIED and value not in ("low", "high"):
        value = f"{_in_shown_unit(change):g} {VARIED[name][0]}"
    return f"{factor_name(name)} {value}"


def _readings(
    chosen: xr.Dataset, frame: pd.DataFrame
) -> tuple[dict[str, Quantity], dict[str, pd.DataFrame]]:
    """Put every reading that has one value a trial, or can be made one, into the table; others by size of message."""
    found, by_size = {}, {}
    for name, about in schema()["variables"].items():
        array = chosen[name]
        if name == "start" or about["type"] == "text" or not np.isfinite(array).any():
            continue
        label = TOGETHER.get(name, about["long_name"])
        quantity = Quantity(name, label, *SHOWN_IN.get(about["units"], (about["units"], 1.0)))
        if array.dims == ("trial",) or name in TOGETHER:
            found[name] = quantity
            frame[name] = quantity.scale * _one_value(array).values
        elif array.dims == ("trial", SIZE):
            row, size = np.nonzero((array > 0).values)
            columns = {SIZE: array[SIZE].values[size], name: array.values[row, size]}
            found[name], by_size[name] = quantity, frame.iloc[row].assign(**columns)
    return found, by_size


def _one_value(array: xr.DataArray) -> xr.DataArray:
    """Rates and amounts of nodes and pairs add up; of a distribution it is the median, of all else the mean."""
    if "quantile" in array.dims:
        array = array.sel(quantile=0.5, method="nearest")
    elif {"node", "pair"} & set(array.dims):
        array = array.sum([dim for dim in ("node", "pair") if dim in array.dims], min_count=1)
    return array.mean([dim for dim in array.dims if dim != "trial"])


def _with_shares(
    dataset: xr.Dataset, frame: pd.DataFrame
) -> tuple[pd.DataFrame, dict[str, Quantity]]:
    """The table with HPL's share of what its nodes can do and of Rpeak [%], and with what has no valid rate."""
    planned = design(dataset)
    if not {"interconnect", "nodes"} <= set(planned.get("factors", {})) or "margin" not in planned:
        return frame, {}
    derived = points(dataset)
    found = derived[["share", "reason"]].assign(efficiency=efficiency(derived))
    found = found.assign(trial_id=over_factors(dataset, trial_id=dataset.trial_id).trial_id)
    columns = ["trial_id", "reason", *PERCENT]
    table = found[columns].to_dataframe()[columns].dropna(subset="trial_id")
    table[list(PERCENT)] *= 100
    merged = frame.drop(columns="reason").merge(table, on="trial_id", how="left")
    merged["valid"] &= merged.reason == ""
    labels = {
        "efficiency": "efficiency, Rmax / Rpeak",
        "share": f"HPL rate over {derived.share.attrs['of']}",
    }
    has = [name for name in PERCENT if merged[name].notna().any()]
    return merged, {name: Quantity(name, labels[name], "%", 100.0) for name in has}


def transcript(source: Source, trial_id: str) -> Transcript:
    """One trial's transcript; raises FalloffError when it is not beside the dataset, or damaged."""
    if source.transcripts is None:
        remedy = "`falloff explore` on the campaign's own folder shows them"
        raise FalloffError(f"The transcripts are not beside {source.name}: {remedy}")
    texts = _texts(source.transcripts, _changed(source.transcripts))
    stem = trial_id
    while (
        stem not in texts and "-" in stem
    ):  # the results of one imported file have a number behind
        stem = stem.rpartition("-")[0]
    if stem not in texts:
        raise FalloffError(f"{source.transcripts} holds no transcript of trial {trial_id}")
    return read_transcript(texts[stem], stem)


@lru_cache(maxsize=4)  # archives of a few megabytes each
def _texts(folder: Path, changed: float) -> dict[str, bytes]:
    return dict(Folder(folder).texts())
