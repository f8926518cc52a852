"""The samples that `falloff compare` compares: speeds of a campaign's points, or of a CSV file's,
block by block."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from analysis.dataset import csv_tables, points, store
from analysis.dataset.derive import counted_in, slowed
from analysis.dataset.points import Point
from analysis.dataset.schema import schema
from analysis.evidence import verify
from analysis.statistics.design import PlannedFall
from analysis.subjects.hpl_points import most_tried, results_if_any
from runners.records.journal import Folder, read_transcript
from runners.records.record import FalloffError

# The quantities in which trials are compared, those that a tool is run for. Lower is better in the
# second group.
HIGHER = (
    "hpl_rate goodput goodput_reverse aggregate_goodput packets_received_per_s transaction_rate "
    "token_throughput message_bandwidth dgemm_star_rate ptrans_bandwidth random_access_rate "
    "stream_triad_star_bandwidth fft_rate ping_pong_bandwidth_mean bus_bandwidth reported_rate"
).split()
LOWER = (
    "flow_makespan message_time round_trip_time half_round_trip_p50 ping_pong_latency_mean "
    "collective_time program_time computing_mean reported_time"
).split()
_SampleRow = tuple[Point, int, float, str]  # with block, log of the speed, and trial
# Facts about a machine that differ at every reading.
_FLEETING = ("cpu_clock_mhz", "available_bytes", "load", "uptime")


@dataclass(frozen=True)
class Sample:
    """One side of a comparison.

    `trials` has a row for each value: its `point`, its `block`, the `log` of its speed and the
    `trial` that it is from. A speed is the value in `units` of the point's quantity, or its inverse
    for quantities in `lower`, for which lower values are better. `repeats` is the name of a block
    ("run" for imported results, each of which counts as a block). `names` are the words for levels.
    `facts` holds what is known about machine, testbed and settings, by path. `statements` are the
    falls that the campaign was planned to judge, over nodes of the factor `compared`.
    """

    source: str
    evidence: str
    repeats: str
    trials: pd.DataFrame
    units: Mapping[str, str]
    lower: Sequence[str]
    names: Mapping[str, str]
    facts: Mapping[str, str]
    statements: tuple[PlannedFall, ...] = ()
    compared: str = ""
    ended: str = ""
    left_out: int = 0
    is_recorded: bool = True  # whether machine and settings are: imported files say nothing of them
    shown: Mapping[Point, str] = field(default_factory=dict)  # the unit of a point in its log
    digests: frozenset[str] = frozenset()  # the SHA-256 of each file or campaign that it is from

    def log_speeds(self) -> dict[Point, pd.Series]:
        """The logarithms of every point's speeds, by block; the mean if a block has several."""
        of_points = self.trials.groupby("point", sort=False)
        return {point: trials.groupby("block").log.mean() for point, trials in of_points}

    def unit(self, point: Point, shown: str = "") -> tuple[str, float]:
        """The unit in which a point is shown, by default as its log has it, and the logarithm of
        its size.
        """
        shown = shown or self.shown.get(point, "")
        if shown:
            return shown, math.log(points.in_base(shown)[0])
        return self.units[points.quantity(point)], 0.0


def read(source: Path, x: str, y: str, block: str, better: str) -> Sample:
    """The sample in a campaign's folder or a CSV file. `x`, `y` and `block` are columns of a CSV
    file; `better` is about its y.

    Raises FalloffError, with the reason, if there is nothing to compare.
    """
    if source.is_dir():
        folder = verify.only_folder(source)
        dataset = store.read(folder)
        return replace(of_dataset(dataset, str(folder)), digests=digests(dataset))
    if not source.exists():
        raise FalloffError(f"there is no folder or file {source}")
    return of_csv(source, x, y, block, better)


def of_dataset(dataset: xr.Dataset, source: str) -> Sample:
    """The sample of a campaign's dataset, as made by `store.assemble`.

    Only valid trials of the design count. Raises FalloffError if none is left.
    """
    dataset = dataset.reset_coords().falloff.points
    is_imported = dataset.falloff.is_imported
    rows = _imported_rows(dataset) if is_imported else _rows(dataset)
    trials = pd.DataFrame(rows, columns=["point", "block", "log", "trial"])
    if trials.empty:
        reason = next(filter(None, dataset.reason.values.tolist()), "it may have none at all")
        raise FalloffError(f"{source} has no valid rate or time to compare: {reason}")
    in_blocks = not is_imported or dataset.falloff.design.repeats == store.BLOCKS
    if not in_blocks:  # each result was a run of its own
        trials["block"] = trials.groupby("point").cumcount() + 1
    first = trials.drop_duplicates("point")
    units = dict(zip(dataset.trial_id.values.tolist(), dataset.unit.values.tolist()))
    planned = dataset.falloff.design
    variables = schema()["variables"]
    return Sample(
        source=source,
        evidence=dataset.falloff.evidence,
        repeats="block" if in_blocks else "run",
        trials=trials,
        units={name: variables[name]["units"] for name in (*HIGHER, *LOWER)},
        lower=LOWER,
        names=dataset.falloff.names,
        facts=facts(dataset),
        statements=(*planned.primary, *planned.secondary) if planned.judges_falls else (),
        compared=planned.compared,
        ended=dataset.attrs["ended"],
        left_out=int((dataset.status != "ok").sum()),
        is_recorded=not is_imported,
        shown={
            point: units[trial] for point, trial in zip(first.point, first.trial) if units[trial]
        },
    )


def digests(dataset: xr.Dataset) -> frozenset[str]:
    """The identity of a dataset's files: the SHA-256 of each imported file, else that of all
    transcripts.
    """
    files = [
        file["sha256"]
        for session in dataset.falloff.sessions
        for file in session.get("imported", [])
    ]
    return frozenset(files or [dataset.attrs.get("transcripts_sha256", "")]) - {""}


def _imported_rows(dataset: xr.Dataset) -> Iterator[_SampleRow]:
    """The rows of imported files. Points of HPL are networks and nodes, unless several settings
    were tried at one: settings such as N are facts that may differ."""
    hpl = results_if_any(dataset)
    of_hpl = {}
    if hpl is not None and most_tried(hpl.runs) == 1:
        count = "nodes" if counted_in(hpl.points) == "nodes" else "processes"
        for trial, name, x in zip(hpl.runs.trial_id, hpl.runs.interconnect, hpl.runs.x):
            network = {"interconnect": name} if name else {}
            of_hpl[trial] = points.point("hpl_rate", {**network, count: points.plain(x)})
    for point, block, log, trial in _rows(dataset):
        if not of_hpl or points.quantity(point) != "hpl_rate":
            yield point, block, log, trial
        elif trial in of_hpl:
            yield of_hpl[trial], block, log, trial


def of_csv(file: Path, x: str, y: str, block: str, better: str) -> Sample:
    """The sample of a CSV file with a column for each of x, y and block; further columns that are
    settings, such as direction, are of the point, too.

    A row without a y is left out and counted. Raises FalloffError if a column is missing, a y is
    not a number above 0, an x or a block is missing, or a block has two rows at one x.
    """
    if len({x, y, block}) < 3:
        raise FalloffError(f"--x, --y and --block name three columns, not {x}, {y} and {block}")
    table = csv_tables.read(file, x, y, block, whole=True)
    of_point = [x, *points.setting_columns(table, x, y, block)]
    rows = table.dropna(subset=[y])
    if rows.empty:
        raise FalloffError(f"{file} has no value of {y}")
    try:
        csv_tables.require_numbers(table, y, *table[[x, block]].select_dtypes("number"))
        csv_tables.refuse(table, table[y] <= 0, f"column {y!r} has to be above 0")
        csv_tables.refuse(
            table, table[[x, block]].isna().any(axis=1), f"{x!r} or {block!r} is missing"
        )
        csv_tables.refuse_twice(table, x, block, *of_point[1:])
    except FalloffError as error:
        raise FalloffError(f"{file}: {error}") from None
    logs = np.log(rows[y].to_numpy(float)) * (1 if better == "higher" else -1)
    at = [points.point(y, levels) for levels in rows[of_point].to_dict("records")]
    lines = [f"line {row + 2}" for row in rows.index]  # the heading is line 1
    return Sample(
        source=str(file),
        evidence="measured",
        repeats="block",
        trials=pd.DataFrame({"point": at, "block": rows[block], "log": logs, "trial": lines}),
        units={y: ""},
        lower=[] if better == "higher" else [y],
        names={},
        facts={},
        left_out=len(table) - len(rows),
        is_recorded=False,
        digests=frozenset([hashlib.sha256(file.read_bytes()).hexdigest()]),
    )


def printed(sample: Sample, chosen: Sequence[Point]) -> Iterator[tuple[str, str]]:
    """Each trial of these points with the output of its tools; for a CSV file, its lines."""
    # Imported here because it imports the experiments, and they import this module.
    from analysis.evidence import chain

    source = Path(sample.source)
    trials = sample.trials.trial[[point in chosen for point in sample.trials.point]]
    if not source.is_dir():
        lines = source.read_text(encoding="utf-8", errors="replace").splitlines()
        yield from ((trial, lines[int(trial.split()[1]) - 1]) for trial in trials)
        return
    texts = dict(Folder(source).texts())
    for trial in trials:
        # An imported file has one transcript but a trial for each of its results.
        name = trial if trial in texts else trial.rpartition("-")[0]
        yield trial, chain.raw(read_transcript(texts[name], name))


def _rows(dataset: xr.Dataset) -> Iterator[_SampleRow]:
    """Each valid value above 0; of several pairs, runs and nodes of a trial the geometric mean.

    HPL's rates are on the time scale that the testbed describes, so that networks that were slowed
    down differently compare.
    """
    dataset = dataset.assign(hpl_rate=dataset.hpl_rate * slowed(dataset))
    table = points.readings(dataset, (*HIGHER, *LOWER))
    for name, other in (
        ("message_bandwidth", "message_time"),
        ("bus_bandwidth", "collective_time"),
    ):
        # In a trial that also has the times, bandwidths are their inverses.
        timed = table.trial[table.quantity == other]
        table = table[(table.quantity != name) | ~table.trial.isin(timed)]
    table = table[table.value > 0]
    settings = points.of_trials(dataset)
    blocks, ids = dataset.block.values.tolist(), dataset.trial_id.values.tolist()
    groups = table.groupby(["trial", "quantity", "size"], dropna=False, sort=False)
    for (trial, name, size), values in groups.value:
        levels = {**settings[trial], "message_size": size}
        factor, base = points.in_base(levels.get("unit", ""))
        point = points.point(name, {**levels, "unit": base})
        sign = 1 if name in HIGHER else -1
        yield point, blocks[trial], sign * float(np.log(factor * values).mean()), ids[trial]


def facts(dataset: xr.Dataset, number: int | None = None) -> dict[str, str]:
    """What a session of the campaign recorded about machine, code, testbed, networks and settings,
    by path. By default of all sessions; different values follow each other."""
    recorded = dataset.falloff.sessions
    recorded_once: dict[str, Any] = {
        "testbed": dataset.falloff.testbed.table,
        "network": {name: network.table for name, network in dataset.falloff.networks.items()},
        "setting": dataset.falloff.settings,
    }
    if dataset.falloff.is_imported:
        recorded_once["setting of HPL"] = _best_settings(dataset)
    by_path: dict[str, dict[str, None]] = {}
    for session in recorded if number is None else recorded[number : number + 1] or [{}]:
        of = {"session": session.get("testbed", {}), "slurm": session.get("slurm", {})}
        for name, text in _flat({**recorded_once, **session.get("host", {}), **of}):
            by_path.setdefault(name, {})[text] = None
    return {
        name: ", then ".join(texts)
        for name, texts in by_path.items()
        if not name.endswith(_FLEETING)
    }


def _best_settings(dataset: xr.Dataset) -> dict[str, str]:
    """N, NB, P and Q of the best runs of imported HPL results by point; empty if there is none."""
    hpl = results_if_any(dataset)
    if hpl is None:
        return {}
    names, count = hpl.points.falloff.names, counted_in(hpl.points)
    settings = {}
    for row in hpl.best.itertuples():
        words = [f"N {row.N:g}", f"NB {row.NB:g}", f"{row.P:g} x {row.Q:g}"]
        if count == "nodes":
            words.append(f"{row.processes / row.x:g} processes a node")
        words += filter(None, (row.variant, row.settings))
        settings[f"{names[row.interconnect]}, {row.x:g} {count}"] = ", ".join(words)
    return settings


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}/{key}" if name else str(key))
    elif value is not None:
        yield name, value if isinstance(value, str) else json.dumps(value)
