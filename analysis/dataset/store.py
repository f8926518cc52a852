"""Turn a campaign's folder of raw transcripts into a dataset, and keep datasets on disk."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import xarray as xr

from analysis import paths
from analysis.dataset.accessor import IMPORTED  # and datasets have .falloff
from analysis.dataset.schema import check, schema
from runners import payload
from runners.records import archive, manifest, renamed
from runners.records.journal import Folder, read_transcript, replacing
from runners.records.record import (
    FalloffError,
    Outcome,
    Result,
    Transcript,
    Unreadable,
    judge,
    mismatch,
)
from runners.tools import token_exchange, tool_named

BLOCKS, UNORDERED = "blocks", "unordered"  # what runs of one imported point are
# Units in files, as UDUNITS knows them: there "B" is the bel, and operations are numbers.
CONVENTIONS = "CF-1.11"
UDUNITS = {
    "B": "byte",
    "B/s": "byte s-1",
    "bit/s": "bit s-1",
    "flop/s": "s-1",
    "Gflop/s": "1e9 s-1",
    "update/s": "s-1",
    "1/s": "s-1",
}
_LEAST_COMPRESSED = 4000  # B
EPOCH = "seconds since 1970-01-01 00:00:00"
_SHOWN = "shown_units"  # the attribute that keeps a unit as it is shown
# The netCDF library is not thread-safe, and the explorer's server runs in a thread beside the
# notebook's.
_NETCDF = threading.RLock()


def assemble(folder: Path) -> xr.Dataset:
    """Parse every transcript of a campaign again and lay the readings out by the schema.

    Returns a dataset with dims `trial` (sorted by block and order), `node`, `size`, `quantile`, and
    as many of `interval`, `message`, `pair`, `partner`, `run` and `place` as the longest
    measurement has. Trials without a valid reading are NaN with a status and a reason. An imported
    file has a trial for each of its results. Besides the schema's attributes, `transcripts_sha256`
    identifies the transcripts.

    Raises FalloffError if the folder is not a campaign's, holds no transcript, or a transcript is
    damaged.
    """
    source = Folder(folder)
    plan = source.plan()
    texts = dict(source.texts())
    transcripts = [read_transcript(text, source.place(name)) for name, text in texts.items()]
    transcripts.sort(key=lambda t: (t.trial.block, t.trial.order))
    if not transcripts:
        raise FalloffError(f"{folder} holds no finished trial yet")
    rows = [_row(*judged) for transcript in transcripts for judged in _judged(transcript)]
    dataset = laid_out(rows, plan.testbed["nodes"])
    ends = dataset.start.values + dataset.wall_time.fillna(0).values
    dataset.attrs = {
        "campaign": plan.name,
        "title": plan.title,
        "campaign_hash": plan.digest,
        "transcripts_sha256": manifest.together(texts),
        "started": _iso(dataset.start.min().item()),
        "ended": _iso(np.fmax.reduce(ends)),
        "stopped_by": source.stopped_by(),
        "sessions": json.dumps(_sessions(transcripts, source.sessions())),
        "design": json.dumps(plan.design),
        "interconnects": json.dumps(plan.interconnects),
        "caveat": _caveat(plan.testbed, plan.design["factors"]),
        "testbed_settings": json.dumps(plan.testbed),
        "settings": json.dumps(_shared_settings(transcripts)),
        "provenance": json.dumps(source.provenance()),
    }
    return check(dataset)


def read(folder: Path) -> xr.Dataset:
    """Like `assemble`, but cached until a file of the folder changes; returns the caller's own
    copy.

    Of a shipped reference whose files are all as recorded it is the dataset that was packed with
    it; `verify`, and with it a test, holds that against the transcripts.
    """
    return _read(folder.resolve(), _state(folder)).copy(deep=True)


@lru_cache(maxsize=96)  # all references, of one or two megabytes each, and some runs
def _read(folder: Path, state: tuple) -> xr.Dataset:
    packed = folder / manifest.DATASET
    with suppress(FalloffError):  # then the transcripts show what is wrong, if anything is
        if folder.parent == paths.REFERENCE and packed.exists() and manifest.is_unchanged(folder):
            return load(packed)
    return assemble(folder)


def _state(folder: Path) -> tuple:
    """Every file's name, size and time of change (ctime), which nobody can set back."""
    files = []
    for file in sorted(folder.rglob("*")):
        # A running campaign writes temporary files here and renames them.
        with suppress(FileNotFoundError):
            stat = file.stat()
            files.append((file.name, stat.st_size, stat.st_ctime_ns))
    return tuple(files)


def save(dataset: xr.Dataset, file: Path) -> None:
    """Write a dataset as netCDF-4 by the CF conventions, without the variables and settings that no
    trial has: `load` adds them again. The file is replaced in one step and never left half-written.

    Raises FalloffError if it cannot be written there.
    """
    dataset = _by_conventions(without_empty(dataset))
    encoding = {name: _encoding(array) for name, array in dataset.variables.items()}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with _NETCDF, replacing(file) as part:
            dataset.to_netcdf(part, engine="netcdf4", encoding=encoding)
    except (OSError, RuntimeError) as error:  # netCDF reports a full disk as "HDF error"
        reason = getattr(error, "strerror", None) or error
        remedy = "may you write there, and has the disk room?"
        raise FalloffError(f"{file} cannot be written ({reason}): {remedy}") from None


def _encoding(array: xr.Variable) -> dict[str, Any]:
    """How a variable is written. netCDF compresses no strings, but their letters; and what is
    compressed takes some kilobytes of its own."""
    letters = {"dtype": "S1"} if array.dtype.kind in "OU" else {}
    is_long = array.ndim and array.nbytes > _LEAST_COMPRESSED
    return {**letters, **({"zlib": True, "complevel": 9} if is_long else {})}


@contextmanager
def opened(file: Path) -> Iterator[xr.Dataset]:
    """Open a netCDF-4 file unchecked for the duration of the block; raises OSError or ValueError if
    it is not one, or unpacks to more than any dataset of its size."""
    with (
        _NETCDF,
        xr.open_dataset(
            file, engine="netcdf4", decode_times=False, create_default_indexes=False
        ) as dataset,
    ):
        if dataset.nbytes > archive.unpacked_at_most(Path(file).stat().st_size):
            raise ValueError(f"it unpacks to {dataset.nbytes / 1e6:.0f} MB")
        yield _as_shown(dataset)


def attributes(file: Path) -> dict[str, Any]:
    """The attributes of a netCDF-4 file, read without its variables; raises OSError if it is not
    one.
    """
    try:
        with _NETCDF, netCDF4.Dataset(file) as netcdf:
            attributes = {name: netcdf.getncattr(name) for name in netcdf.ncattrs()}
    except (RuntimeError, AttributeError) as error:  # netCDF's own, for damage inside the file
        raise OSError(str(error)) from None
    return {**attributes, **_present(attributes)}


def _present(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The campaign's present name, which may have been renamed since a file was written."""
    return {
        name: renamed.campaign(value) for name, value in attributes.items() if name == "campaign"
    }


def _by_conventions(dataset: xr.Dataset) -> xr.Dataset:
    """The dataset with units that UDUNITS parses, times with their epoch, and the name of the
    conventions.
    """
    converted = dataset.copy().assign_attrs(Conventions=CONVENTIONS)
    for name, array in converted.variables.items():
        unit = array.attrs.get("units")
        written = EPOCH if name == "start" else UDUNITS.get(str(unit), unit)
        if written != unit:
            array.attrs.update({"units": written, _SHOWN: unit})
    return converted


def without_empty(dataset: xr.Dataset) -> xr.Dataset:
    """The dataset without the variables and settings that no trial has. Most have no value in a
    campaign, and an empty matrix over nodes would take many gigabytes."""
    optional = _optional()
    return dataset.drop_vars(
        str(name)
        for name, array in dataset.variables.items()
        if name in optional and _is_empty(array.values)
    )


def _is_empty(values: np.ndarray) -> bool:
    return bool((np.isnan(values) if values.dtype.kind == "f" else values == "").all())


def _optional() -> dict[str, dict]:
    """The schema's rows that are NaN, or an empty text, where a trial does not have them."""
    rows = {**schema()["coordinates"], **schema()["variables"]}
    return {
        name: row for name, row in rows.items() if row["type"] != "whole" and row["dims"] != [name]
    }


def _empty(wanted: Mapping, sizes: Mapping[Any, int]) -> tuple:
    """A variable that no trial has, as (dims, values, attributes), which takes no memory."""
    attributes = {key: wanted[key] for key in ("units", "long_name") if key in wanted}
    dims, absent = wanted["dims"], "" if wanted["type"] == "text" else np.nan
    return dims, np.broadcast_to(absent, [sizes[dim] for dim in dims]), attributes


def _as_shown(dataset: xr.Dataset) -> xr.Dataset:
    """What `save` was given."""
    arrays = {str(name): array for name, array in dataset.variables.items()}
    for name, wanted in _optional().items():
        if name not in arrays and {*wanted["dims"]} <= {*dataset.sizes}:
            arrays[name] = xr.Variable(*_empty(wanted, dataset.sizes))
    for name, array in arrays.items():
        if array.dtype == object:  # what is written as letters
            array = arrays[name] = xr.Variable(array.dims, array.values.astype(str), array.attrs)
        if unit := array.attrs.pop(_SHOWN, None):
            array.attrs["units"] = unit
    # At once: xarray compares all coordinates for each variable that is added alone.
    whole = xr.Dataset(arrays).set_coords([*schema()["coordinates"].keys() & {*arrays}])
    attributes = {name: value for name, value in dataset.attrs.items() if name != "Conventions"}
    return whole.assign_attrs({**attributes, **_present(attributes)})


def load(file: Path) -> xr.Dataset:
    """Read a dataset and check it against the schema; raises FalloffError if it does not match."""
    try:
        with opened(file) as dataset:
            return check(dataset.load())
    except FileNotFoundError:
        raise FalloffError(f"there is no dataset {file}") from None
    # netCDF's own are among them.
    except (OSError, ValueError, RuntimeError, AttributeError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise FalloffError(f"{file} is damaged, or no netCDF-4 dataset: {reason}") from None


def _judged(transcript: Transcript) -> list[tuple[Transcript, Outcome]]:
    """A trial with its outcome; of an imported file as many as it has results, at least one."""
    runner = tool_named(transcript.trial.runner)
    if transcript.testbed != IMPORTED:
        return [(transcript, judge(transcript, runner.parse))]
    try:
        results = runner.results(transcript.executions[0].stdout)
    except Unreadable as reason:
        return [(transcript, Outcome("unreadable", reason.with_kind()))]
    return [_of_result(transcript, *numbered) for numbered in enumerate(results, 1)]


def _of_result(transcript: Transcript, number: int, result: Result) -> tuple[Transcript, Outcome]:
    """A result of an imported file as a trial of its own, with the settings that the file states
    and those that the user gave; it is `invalid` if the two contradict each other."""
    given, name = transcript.trial.point, f"{transcript.trial.id}-{number}"
    trial = replace(transcript.trial, id=name, point={**result.settings, **given})
    named = {name: value for name, value in result.settings.items() if name in given}
    outcome = Outcome("ok", "", result.readings)
    if result.refused:
        outcome = Outcome("unreadable", f"{result.kind}: {result.refused}")
    elif contradictions := mismatch({name: given[name] for name in named}, named):
        outcome = Outcome("invalid", "; ".join(contradictions))
    return replace(transcript, trial=trial), outcome


def _row(transcript: Transcript, outcome: Outcome) -> dict:
    """All values that one trial contributes, by schema name."""
    trial = transcript.trial
    runs = transcript.executions
    start = min((run.start for run in runs), default=np.nan)
    end = max((run.start + run.wall_s for run in runs), default=np.nan)
    return {
        **trial.point,
        **transcript.counters,
        "trial_id": trial.id,
        "role": trial.role,
        "runner": trial.runner,
        "block": trial.block,
        "order": trial.order,
        "evidence": transcript.evidence,
        "testbed": transcript.testbed,
        "status": outcome.status,
        "reason": outcome.reason,
        "start": start,
        "wall_time": end - start,
        **outcome.readings,
    }


def laid_out(rows: Sequence[Mapping], nodes: int) -> xr.Dataset:
    """Lay out the values of trials, one row each by schema name, as the schema's arrays. Values
    that a row lacks are empty or NaN.

    A dimension that the schema does not fix is as long as the longest reading. A single number
    stands for all nodes.
    """
    coordinates, variables = schema()["coordinates"], schema()["variables"]
    sizes = {name: 0 for name, wanted in coordinates.items() if wanted["dims"] == [name]}
    held = {name for row in rows for name in row}
    for name, wanted in variables.items():
        for row in rows if name in held and len(wanted["dims"]) > 1 else ():
            try:
                shape = np.shape(row.get(name, ()))
            except ValueError:
                raise FalloffError(f"{name} of a trial is no list of numbers") from None
            for dim, size in zip(wanted["dims"][1:], shape):
                sizes[dim] = max(sizes[dim], size)
    labels = {dim: np.arange(1, size + 1) for dim, size in sizes.items()}
    fixed = {"size": payload.LEAST, "quantile": token_exchange.LEVELS}
    labels |= {name: np.array(levels) for name, levels in fixed.items()}
    labels["node"] = np.arange(1, nodes + 1)
    arrays, lengths = {}, {"trial": len(rows), **{dim: len(labels[dim]) for dim in labels}}
    for name, wanted in (*variables.items(), *coordinates.items()):
        if name not in held and name not in labels and wanted["type"] != "whole":
            arrays[name] = _empty(wanted, lengths)
            continue
        try:
            arrays[name] = _array(name, wanted, rows, labels)
        except (ValueError, TypeError, OverflowError, IndexError) as error:
            raise FalloffError(f"{name} of a trial is no {wanted['type']} ({error})") from None
    return xr.Dataset(arrays).set_coords(list(coordinates))


def _array(name: str, wanted: Mapping, rows: Sequence[Mapping], labels: Mapping) -> tuple:
    """One schema entry as (dims, values, attributes) over all trials; `labels` are those of the
    other dims."""
    attributes = {key: wanted[key] for key in ("units", "long_name") if key in wanted}
    if name in labels:
        return wanted["dims"], labels[name], attributes
    if further := wanted["dims"][1:]:
        values = np.full((len(rows), *(len(labels[dim]) for dim in further)), np.nan)
        for row, trial in zip(values, rows):
            reading = np.array(trial.get(name, np.nan), dtype=float)
            row[tuple(map(slice, reading.shape))] = reading
        return wanted["dims"], values, attributes
    absent, kind = {"text": ("", str), "whole": (None, int), "number": (np.nan, float)}[
        wanted["type"]
    ]
    values = np.array([row.get(name, absent) for row in rows], kind)
    if values.ndim != 1:
        raise ValueError("it is a list")
    return wanted["dims"], values, attributes


def _sessions(transcripts: list[Transcript], sessions: Mapping[str, int]) -> dict[int, list[int]]:
    """For each block, the sessions in which its points ran, without those that the journal does not
    record."""
    trials = [transcript.trial for transcript in transcripts if transcript.trial.id in sessions]
    ran = sorted({(trial.block, sessions[trial.id]) for trial in trials if trial.role == "point"})
    return {block: [number for _, number in pairs] for block, pairs in groupby(ran, itemgetter(0))}


def _shared_settings(transcripts: list[Transcript]) -> dict:
    """The settings that have the same value in all points of the design."""
    trials = [transcript.trial for transcript in transcripts if transcript.trial.role == "point"]
    return {
        key: value
        for key, value in (trials[0].point.items() if trials else ())
        if all(trial.point.get(key) == value for trial in trials)
    }


def _caveat(testbed: Mapping, factors: Mapping) -> str:
    """The caveat for every number from a testbed, in a sentence; empty if there is none."""
    # Older campaigns had a quota, a share of the processors.
    paced = {"flop_s", "stretched"} & testbed.get("node", {}).keys()
    own_pace = paced or "share" in testbed.get("cpu", {})
    if testbed.get("kind") == "emulated" and not own_pace and "interconnect" in factors:
        why = "they shared the machine's cores, so that part of a fall may be the machine's"
        return f"The nodes were not paced: {why}."
    return ""


def _iso(seconds: float) -> str:
    """A moment as ISO 8601; empty if it is not known."""
    if not np.isfinite(seconds):
        return ""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
