"""What there is to explore: datasets, each as a table with a row for each trial, and the transcripts behind them."""

import json
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from analysis import imported, paths, store
from analysis.attributes import design, interconnects
from analysis.derive import over_factors, points
from analysis.efficiency import efficiency
from analysis.inference.averages import Kind
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
# Coordinates that say what was run, beside the factors.
SETTINGS = [
    name
    for name, described in schema()["coordinates"].items()
    if described["dims"] == ["trial"]
    and name not in ("trial_id", "role", "runner", "block", "order", "evidence", "testbed")
]
# Readings of several values a trial, as one: what they are then called, and how they become one.
TOGETHER = {
    **{
        name: (label, lambda values: values.sum("node", min_count=1))
        for name, label in (
            ("dgemm_rate", "DGEMM rate of all nodes"),
            ("bytes_sent", "bytes sent by all nodes"),
            ("bytes_received", "bytes received by all nodes"),
            ("cpu_time", "CPU time of all nodes"),
        )
    },
    "token_throughput": (
        "tokens written by all pairs, mean of the runs",
        lambda values: values.sum("pair", min_count=1).mean("run"),
    ),
    "token_round_trip": (
        "median round trip of a token, mean of pairs and runs",
        lambda values: values.sel(quantile=0.5, method="nearest").mean(["pair", "run"]),
    ),
    "flow_makespan": (
        "time until all flows had arrived, mean of the runs",
        lambda values: values.mean("run"),
    ),
    "flow_mean": ("mean time of the flows, mean of the runs", lambda values: values.mean("run")),
}
SIZE = "size"  # the factor of readings by size of message
SHOWN_IN = {"bit/s": ("Gbit/s", 1e-9), "B/s": ("MB/s", 1e-6)}
PERCENT = ("efficiency", "share")
NOUNS = {"nodes": "node", "receivers": "receiver", "streams": "stream", "pairs": "pair"}
NAMES = {
    "vary": "change to the model", "window_bytes": "socket buffer", "token_bytes": "token size",
    "frame_bytes": "frame size", "mtu": "MTU", "N": "order N", "blas": "BLAS", SIZE: "message size",
}  # fmt: skip
# Numbers of a simulated model that a campaign varies: the unit in which they are shown, and how many make one of theirs.
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
    label: str
    transcripts: Path | None
    fault: str = ""

    @property
    def name(self) -> str:
        """What the source is called by: its path below the repository, or all of it."""
        inside = self.path.is_relative_to(paths.ROOT)
        return str(self.path.relative_to(paths.ROOT) if inside else self.path)


@dataclass(frozen=True)
class Experiment:
    """The datasets of one campaign, of whatever evidence; they are shown side by side and never pooled."""

    name: str
    title: str
    sources: tuple[Source, ...]

    def source(self, name: str) -> Source:
        """The source of that name."""
        return next(source for source in self.sources if source.name == name)


def experiments(folder: Path | None = None) -> dict[str, Experiment]:
    """What there is in a folder, or without one in the reference and in what was run here, by name; FIRST first.

    Raises FalloffError when there is no such folder.
    """
    if folder is not None and not folder.is_dir():
        raise FalloffError(
            f"there is no folder {folder}: give one that holds datasets (*.nc) or campaigns"
        )
    places = (paths.REFERENCE, paths.DATASETS, paths.RAW) if folder is None else (folder,)
    found: dict[str, list[Source]] = {}
    seen: set[Path] = set()
    for place in places:
        for source in _sources(place):
            if source.path not in seen:  # transcripts whose dataset is there, too, are listed once
                found.setdefault(source.campaign, []).append(source)
                seen |= {source.path, source.transcripts or source.path}
    order = sorted(found, key=lambda name: (name != FIRST, bool(found[name][0].fault), name))
    return {name: Experiment(name, found[name][0].title, tuple(found[name])) for name in order}


def named(name: str) -> Source:
    """The source of that name; raises FalloffError when there is none."""
    path = paths.ROOT / name  # of an absolute name the root has no part
    found = [source for source in _sources(path.parent) if source.path == path]
    if not found:
        raise FalloffError(f"there is no dataset {name}")
    return found[0]


def _sources(place: Path) -> Iterator[Source]:
    if not place.is_dir():
        return
    for file in sorted(place.glob("*.nc")):
        yield _file(file, file.stat().st_mtime)
    for folder in [place, *sorted(place.iterdir())]:
        if (folder / "trials.json").is_file():
            yield _folder(folder, (folder / "trials.json").stat().st_mtime)


@lru_cache(maxsize=1024)
def _folder(folder: Path, changed: float) -> Source:
    try:
        plan = Folder(folder).plan()
    except FalloffError as error:
        return Source(folder, folder.name, "A folder that cannot be read", "", None, str(error))
    label = _label(plan.testbed)
    if not folder.is_relative_to(paths.REFERENCE):
        label += f", run {date.fromtimestamp(changed):%d %B %Y}"
    return Source(folder, plan.name, plan.title, label, folder)


@lru_cache(maxsize=1024)
def _file(file: Path, changed: float) -> Source:
    try:
        with store.opened(file) as found:
            campaign, title, testbed = (
                found.attrs[name] for name in ("campaign", "title", "testbed_settings")
            )
            label = f"{_label(json.loads(testbed))}, file {file.stem.replace('_', ' ')}"
    except (OSError, ValueError, KeyError) as error:
        remedy = "`falloff run` or `falloff import` writes it anew"
        reason = f"{file} is not a readable dataset of Falloff's: {error}. {remedy}"
        return Source(file, file.name, "A file that cannot be read", "", None, reason)
    beside = [place / file.stem for place in (paths.RAW, file.parent)]
    folders = [folder for folder in beside if (folder / "trials.json").is_file()]
    return Source(file, campaign, title, label, folders[0] if folders else None)


def _label(testbed: dict) -> str:
    kind = "measured" if testbed["kind"] == "cluster" else testbed["kind"]
    name = testbed["name"].replace("_", " ")
    return kind if name == kind else f"{kind}: {name}"


@dataclass(frozen=True)
class Quantity:
    """What can be on the vertical axis: its label and the table's unit, empty where it has none.

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

    @property
    def axis(self) -> str:
        """The axis's label with its unit."""
        return f"{self.label} [{self.unit}]" if self.unit else self.label

    def written(self, value: float) -> str:
        """A value with its unit."""
        return f"{number(value, 4)} {self.unit}".strip() if np.isfinite(value) else "no reading"


@dataclass(frozen=True, eq=False)  # one is itself alone, so that what follows from it can be kept
class Trials:
    """The trials of a dataset's design.

    `frame` has a row a trial: trial_id, block, order, status, reason, SETTINGS, and a column for each of `quantities`
    in their units. `valid` is False where the design's own rules leave the trial out (`reason` says why). `by_size` are
    the readings by size of message: a row for each trial and size. `factors` holds the levels of every factor in the
    design's order, `switches` those that are on or off, `names` what a level is called. With `repeats` a block is only the
    number of a repeat: order and blocks of imported runs are not known.
    """

    dataset: xr.Dataset
    frame: pd.DataFrame
    quantities: dict[str, Quantity]
    factors: dict[str, list[Hashable]]
    names: dict[Hashable, str]
    evidence: str
    testbed: str
    repeats: bool
    by_size: dict[str, pd.DataFrame] = field(default_factory=dict)
    switches: frozenset[str] = frozenset()

    @property
    def design(self) -> dict:
        """What was decided before the run."""
        return design(self.dataset)

    @property
    def unit_of_repetition(self) -> str:
        """What n counts."""
        return "run" if self.repeats else "block"

    def rows(self, quantity: str) -> pd.DataFrame:
        """The table of a quantity's readings: `frame`, or that with a row for each size of message."""
        return self.by_size.get(quantity, self.frame)

    def factors_of(self, quantity: str) -> dict[str, list[Hashable]]:
        """The factors over which a quantity can be shown."""
        if quantity not in self.by_size:
            return self.factors
        return {SIZE: sorted(self.by_size[quantity][SIZE].unique().tolist()), **self.factors}

    def called(self, level: Hashable) -> str:
        """What a level is called by itself."""
        if isinstance(level, (int, float)):
            return f"{level:.10g}"
        if "=" in level:
            return ", ".join(_change(part) for part in level.split(","))
        return self.names.get(level) or level.replace("_", " ") or "not known"

    def placed(self, factor: str, level: Hashable) -> str:
        """What a level is called in a sentence: with the factor's name or unit, where it is a number."""
        if factor in self.switches:
            return f"{'with' if level else 'without'} {factor}"
        if not isinstance(level, (int, float)):
            return "nothing changed" if (factor, level) == ("vary", "none") else self.called(level)
        if factor in NOUNS:
            return counted(int(level), NOUNS[factor])
        if factor in ("window_bytes", "token_bytes", SIZE):
            return byte_size(level)
        unit = VARIED[factor][0] if factor in VARIED else ""
        return f"{factor_name(factor)} {self.called(level)} {unit}".strip()

    def axis(self, factor: str) -> str:
        """A factor's label with its unit."""
        described = schema()["coordinates"].get(factor, {})
        unit = VARIED[factor][0] if factor in VARIED else described.get("units", "1")
        label = NAMES.get(factor) or described.get("long_name", factor)
        return label if unit == "1" else f"{label} [{unit}]"


def known(value: float) -> str:
    """A number with four digits, a dash where there is none."""
    return number(value if np.isfinite(value) else None, 4)


def factor_name(factor: str) -> str:
    """What a factor is called among others."""
    return NAMES.get(factor, factor.replace("_", " "))


def opened(source: Source) -> Trials:
    """The trials of a source; raises FalloffError when it is damaged or holds no trial of its design."""
    if source.fault:
        raise FalloffError(source.fault)
    return _opened(source, _changed(source.path))


@lru_cache(maxsize=32)  # datasets of about a megabyte each
def _opened(source: Source, changed: float) -> Trials:
    return trials(
        store.load(source.path) if source.path.suffix == ".nc" else store.read(source.path)
    )


def trials(dataset: xr.Dataset) -> Trials:
    """The table of a dataset; raises FalloffError when it has no reading of its design or mixes evidence."""
    campaign = dataset.attrs["campaign"]
    chosen = dataset.isel(trial=np.flatnonzero(dataset.role == "point"))
    kinds = sorted(set(chosen.evidence.values.tolist()))
    if not kinds:
        raise FalloffError(
            f"Campaign {campaign} holds no trial of its design yet: run at least one block."
        )
    if len(kinds) > 1:
        raise FalloffError(
            f"Campaign {campaign} holds evidence of several kinds, {', '.join(kinds)}: never pooled."
        )
    names = ["trial_id", "block", "order", "runner", "status", "reason", *SETTINGS]
    frame = pd.DataFrame({name: chosen[name].values for name in names})
    frame["valid"] = frame.status == "ok"
    repeats = str(chosen.testbed.values[0]) == imported.TESTBED
    factors, switches = _factors(dataset, frame)
    if repeats:
        alike = frame.groupby(list(factors), dropna=False) if factors else frame.groupby("valid")
        frame["block"] = alike.cumcount() + 1
    quantities = _add_readings(chosen, frame)
    by_size = _by_size(chosen, frame)
    quantities |= {name: _quantity(name, *_described(name)) for name in by_size}
    if not quantities:
        raise FalloffError(
            "None of its trials has a reading: `falloff status` says what became of them."
        )
    if "hpl_rate" in quantities and not repeats:
        frame, shares = _with_shares(dataset, frame)
        quantities |= shares
    rank = {name: place for place, name in enumerate(FOREMOST)}
    order = sorted(quantities, key=lambda name: rank.get(name, len(rank)))
    described = interconnects(dataset)
    return Trials(
        dataset=dataset,
        frame=frame.copy(),
        quantities={name: quantities[name] for name in order},
        factors=factors,
        names={name: about.get("short") or about.get("name") for name, about in described.items()},
        evidence=kinds[0],
        testbed=str(chosen.testbed.values[0]),
        repeats=repeats,
        by_size=by_size,
        switches=switches,
    )


def _factors(
    dataset: xr.Dataset, frame: pd.DataFrame
) -> tuple[dict[str, list[Hashable]], frozenset[str]]:
    """The design's factors with the levels that were run, and those that are on or off.

    Without a design they are the settings that differ.
    """
    planned = design(dataset).get("factors", {})
    if not planned:
        known = {name: sorted(frame[name].dropna().unique().tolist()) for name in SETTINGS}
        always = ("interconnect", "nodes")
        return {
            name: levels
            for name, levels in known.items()
            if name not in ("file", "version") and levels and (len(levels) > 1 or name in always)
        }, frozenset()
    switches = frozenset(
        name
        for name, levels in planned.items()
        if set(levels) <= {False, True} and isinstance(levels[0], bool)
    )
    factors = {}
    for name, levels in planned.items():
        run = set(frame[name].tolist())
        # As `over_factors` has it: levels that are no or yes are 0 and 1.
        levels = [int(level) for level in levels] if name in switches else levels
        factors[name] = [level for level in levels if level in run]
    return _with_numbers_varied(frame, factors), switches


def _with_numbers_varied(
    frame: pd.DataFrame, factors: dict[str, list[Hashable]]
) -> dict[str, list[Hashable]]:
    """The factors, where changes to the model that all set the same numbers are split: each number can be an axis."""
    changes = {
        level: dict(part.split("=") for part in level.split(",") if "=" in part)
        for level in factors.get("vary", [])
    }
    numbers = set(map(tuple, changes.values()))
    if len(numbers) != 1 or len(next(iter(numbers))) < 2:
        return factors
    found = {name: levels for name, levels in factors.items() if name != "vary"}
    for name in next(iter(numbers)):
        values = {level: _in_shown_unit(name, change[name]) for level, change in changes.items()}
        frame[name] = frame["vary"].map(values)
        found[name] = sorted(set(values.values()))
    return found


def _in_shown_unit(name: str, value: str) -> float:
    return float(
        f"{float(value) * VARIED[name][1]:.10g}"
    )  # without the digits of a binary fraction


def _change(change: str) -> str:
    """A change to the model in words, such as "latency 10 µs"."""
    name, _, value = change.partition("=")
    if name in VARIED and value not in ("low", "high"):
        value = f"{_in_shown_unit(name, value):g} {VARIED[name][0]}"
    return f"{name.replace('_', ' ')} {value}"


def _described(name: str) -> tuple[str, str]:
    described = schema()["variables"][name]
    return described.get("long_name", name), described["units"]


def _quantity(name: str, label: str, unit: str) -> Quantity:
    return Quantity(name, label, *SHOWN_IN.get(unit, ("" if unit == "1" else unit, 1.0)))


def _add_readings(chosen: xr.Dataset, frame: pd.DataFrame) -> dict[str, Quantity]:
    """Put every reading that has one value a trial, or can be made one, into the table."""
    found = {}
    for name in schema()["variables"]:
        array = chosen[name]
        together = TOGETHER.get(name)
        if array.dtype.kind not in "fiu" or (array.dims != ("trial",) and not together):
            continue
        values = (together[1](array) if together else array).values
        if name != "start" and np.isfinite(values).any():
            label, unit = _described(name)
            found[name] = _quantity(name, together[0] if together else label, unit)
            frame[name] = found[name].scale * values
    return found


def _by_size(chosen: xr.Dataset, frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Tables of the readings by size of message, with a row for each trial and size that occurs."""
    found = {}
    for name, described in schema()["variables"].items():
        if described["dims"] == ["trial", SIZE] and (chosen[name] > 0).any():
            row, size = np.nonzero((chosen[name] > 0).values)
            columns = {SIZE: chosen[SIZE].values[size], name: chosen[name].values[row, size]}
            found[name] = frame.iloc[row].assign(**columns)
    return found


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
    known = [name for name in PERCENT if merged[name].notna().any()]
    return merged, {name: Quantity(name, labels[name], "%", 100.0) for name in known}


def transcript(source: Source, trial_id: str) -> Transcript:
    """One trial's transcript; raises FalloffError when it is not beside the dataset, or damaged."""
    if source.transcripts is None:
        raise FalloffError(
            f"The transcripts are not beside {source.name}: `falloff explore` on the campaign's own folder shows them"
        )
    texts = _texts(source.transcripts, _changed(source.transcripts))
    stem = trial_id
    while stem not in texts and "-" in stem:  # the results of an imported file have a number behind
        stem = stem.rpartition("-")[0]
    if stem not in texts:
        raise FalloffError(f"{source.transcripts} holds no transcript of trial {trial_id}")
    return read_transcript(texts[stem], stem)


def _changed(path: Path) -> float:
    """When a file or a folder of transcripts changed last: one that is being measured gets further ones."""
    within = [place for place in (path, path / "transcripts") if place.exists()]
    return max(place.stat().st_mtime for place in within)


@lru_cache(maxsize=4)  # archives of a few megabytes each
def _texts(folder: Path, changed: float) -> dict[str, bytes]:
    return dict(Folder(folder).texts())
