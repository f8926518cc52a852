"""What `falloff compare` compares: the speeds of a campaign's points, or of a CSV file's, block by block."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from analysis import attributes, imported, store, tables
from analysis.schema import schema
from analysis.statistics import design
from analysis.statistics.design import Statement
from runners.journal import Folder
from runners.record import FalloffError

HIGHER, LOWER = "higher", "lower"
# What trials are compared in: the quantities that a tool is run for, and which way is better.
QUANTITIES = {
    "hpl_rate": HIGHER,
    "goodput": HIGHER,
    "goodput_reverse": HIGHER,
    "aggregate_goodput": HIGHER,
    "packets_received_per_s": HIGHER,
    "transaction_rate": HIGHER,
    "token_throughput": HIGHER,
    "flow_makespan": LOWER,
    "message_time": LOWER,
    "message_bandwidth": HIGHER,
    "round_trip_time": LOWER,
    "dgemm_star_rate": HIGHER,
    "ptrans_bandwidth": HIGHER,
    "random_access_rate": HIGHER,
    "stream_triad_star_bandwidth": HIGHER,
    "fft_rate": HIGHER,
    "ping_pong_latency_mean": LOWER,
    "ping_pong_bandwidth_mean": HIGHER,
}
# Coordinates that say which trial it was, or where from, and not what was run.
_NO_SETTINGS = (
    "trial_id",
    "role",
    "runner",
    "block",
    "order",
    "evidence",
    "testbed",
    "file",
    "version",
    "rpeak",
)
# Of a machine, but different at every look.
_FLEETING = ("cpu_clock_mhz", "available_bytes", "load", "uptime")
CSV_COLUMNS = {"x": "nodes", "y": "rate", "block": "block"}

Setting = tuple[str, Any]
Point = tuple[Setting, ...]  # names and values, by name; the quantity is the one without a name
_QUANTITY = ""


@dataclass(frozen=True)
class Sample:
    """One side of a comparison.

    `trials` has a row for each value: its `point`, its `block`, the `value` in `units` of the point's quantity and the
    `trial` that it is from. `repeats` is what a block is called ("run" for imported results, each of which is taken as
    a block). `better` says of every quantity whether higher or lower values are. `names` are the words for levels.
    `facts` is what is known of machine, testbed and settings, by its path. `statements` are the falls that the
    campaign was planned to judge, over nodes of the factor `compared`.
    """

    source: str
    evidence: str
    repeats: str
    trials: pd.DataFrame
    units: Mapping[str, str]
    better: Mapping[str, str]
    names: Mapping[str, str]
    facts: Mapping[str, str]
    statements: tuple[Statement, ...] = ()
    compared: str = ""
    ended: str = ""
    left_out: int = 0

    def log_speeds(self) -> dict[Point, pd.Series]:
        """The logarithms of every point's speeds, by block.

        A speed is the value, or its inverse where lower values are better.
        """
        logs: dict[Point, dict] = {}
        for point, block, value in zip(self.trials.point, self.trials.block, self.trials.value):
            sign = -1 if self.better[quantity(point)] == LOWER else 1
            logs.setdefault(point, {})[block] = sign * math.log(value)
        return {point: pd.Series(blocks) for point, blocks in logs.items()}


def varying(points: Sequence[Point]) -> list[str]:
    """The settings that differ among points; one that some do not have differs."""
    return [
        name for name in settings_of(points) if len({dict(point).get(name) for point in points}) > 1
    ]


def settings_of(points: Sequence[Point]) -> list[str]:
    """The names of the points' settings in the schema's order, then the others."""
    names = dict.fromkeys(name for point in points for name, _ in point if name != _QUANTITY)
    return [
        *(name for name in schema()["coordinates"] if name in names),
        *(name for name in names if name not in schema()["coordinates"]),
    ]


def quantity(point: Point) -> str:
    """The quantity of a point."""
    return dict(point)[_QUANTITY]


def read(source: Path, columns: Mapping[str, str], better: str = HIGHER) -> Sample:
    """The sample in a campaign's folder or a CSV file; `columns` are x, y and block of a CSV file, `better` is of its y.

    Raises FalloffError where there is nothing to compare, and says why.
    """
    if source.is_dir():
        return of_dataset(store.read(campaign_folder(source)), str(source))
    if not source.exists():
        raise FalloffError(f"there is no folder or file {source}")
    return of_csv(source, columns, better)


def campaign_folder(folder: Path) -> Path:
    """The one campaign in a folder; raises FalloffError when there is none, or several."""
    if (folder / "trials.json").exists():
        return folder
    found = sorted(file.parent for file in folder.glob("*/trials.json"))
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(one.name for one in found[:3])
        raise FalloffError(f"{folder} holds {len(found)} campaigns: name one, such as {several}")
    raise FalloffError(f"{folder} is no campaign's folder (it has no trials.json), nor a CSV file")


def of_dataset(dataset: xr.Dataset, source: str) -> Sample:
    """The sample of a campaign's dataset, as `store.assemble` makes it.

    Only trials of the design count, and of these only valid ones. Raises FalloffError where none is left.
    """
    dataset = dataset.reset_coords()
    dataset = dataset.isel(trial=dataset.role.values == "point")
    is_imported = attributes.testbed(dataset).get("name") == imported.TESTBED
    kinds = sorted(set(dataset.evidence.values.tolist()))
    if len(kinds) > 1:
        raise FalloffError(f"{source} mixes kinds of evidence: {', '.join(kinds)}")
    rows = list(_rows(dataset, _settings(dataset)))
    if not rows:
        reasons = [reason for reason in dict.fromkeys(dataset.reason.values.tolist()) if reason]
        why = f": {reasons[0]}" if reasons else "; it may have no rate or time at all"
        raise FalloffError(f"{source} has no valid rate or time to compare{why}")
    trials = pd.DataFrame(rows, columns=["point", "block", "value", "trial"])
    if is_imported:  # each result was run by itself
        trials["block"] = trials.groupby("point").cumcount() + 1
    planned, networks = design.read(dataset), attributes.interconnects(dataset)
    quantities = dict.fromkeys(quantity(point) for point in trials.point)
    return Sample(
        source=source,
        evidence=kinds[0],
        repeats="run" if is_imported else "block",
        trials=trials,
        units={name: schema()["variables"][name]["units"] for name in quantities},
        better={name: QUANTITIES[name] for name in quantities},
        names={name: described.get("short", name) for name, described in networks.items()},
        facts=_facts(dataset),
        statements=(*planned.primary, *planned.secondary) if planned.judges_falls else (),
        compared=planned.compared,
        ended=dataset.attrs["ended"],
        left_out=int((dataset.status != "ok").sum()),
    )


def of_csv(file: Path, columns: Mapping[str, str], better: str = HIGHER) -> Sample:
    """The sample of a CSV file with a column for each of x, y and block.

    A row without a y is left out and counted. Raises FalloffError where a column is missing, a y is no number above 0,
    an x or a block is missing, or a block has two rows at one x.
    """
    x, y, block = (columns[role] for role in CSV_COLUMNS)
    if len({x, y, block}) < 3:
        raise FalloffError(f"--x, --y and --block name three columns, not {x}, {y} and {block}")
    try:
        table = tables.read(file, x, y, block)
    except FalloffError as error:
        if "has no column" not in str(error):
            raise
        raise FalloffError(f"{error}. Say which are meant by --x, --y and --block") from None
    values = pd.to_numeric(table[y], errors="coerce").astype(float)
    for wrong, why in (
        (table[y].notna() & ~np.isfinite(values), "is no number"),
        (values <= 0, "is not above 0, and has no ratio"),
        (table[x].isna(), f"stands without a value of {x}"),
        (table[block].isna(), f"stands without a value of {block}"),
    ):
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])  # the heading is line 1
            raise FalloffError(
                f"{file}, line {table.index[row] + 2}: {y} {table[y].iloc[row]} {why}"
            )
    tables.refuse_twice(table, x, block)
    known = table[values.notna()]
    if known.empty:
        raise FalloffError(f"{file} has no value of {y}")
    trials = pd.DataFrame(
        {
            "point": [
                tuple(sorted({_QUANTITY: y, x: _plain(level)}.items())) for level in known[x]
            ],
            "block": known[block].to_numpy(),
            "value": values[values.notna()].to_numpy(),
            "trial": [f"line {row + 2}" for row in known.index],
        }
    )
    return Sample(
        source=str(file),
        evidence="measured",
        repeats="block",
        trials=trials,
        units={y: ""},
        better={y: better},
        names={},
        facts={},
        left_out=len(table) - len(known),
    )


def printed(source: Path, sample: Sample, points: Sequence[Point]) -> Iterator[tuple[str, str]]:
    """Each trial of these points with what its tools printed; of a CSV file its lines."""
    from analysis.evidence import chain  # which needs this package's experiments
    from runners.journal import read_transcript

    trials = sample.trials.trial[[point in points for point in sample.trials.point]]
    if not source.is_dir():
        lines = source.read_text(encoding="utf-8", errors="replace").splitlines()
        yield from ((trial, lines[int(trial.split()[1]) - 1]) for trial in trials)
        return
    texts = dict(Folder(campaign_folder(source)).texts())
    for trial in trials:
        # An imported file has a transcript, and a trial for each of its results.
        name = trial if trial in texts else trial.rpartition("-")[0]
        yield trial, chain.raw(read_transcript(texts[name], name))


def _settings(dataset: xr.Dataset) -> list[dict[str, Any]]:
    """What each trial was run with, by name, without what is not known."""
    columns = {
        name: dataset[name].values.tolist()
        for name, described in schema()["coordinates"].items()
        if described["dims"] == ["trial"] and name not in _NO_SETTINGS
    }
    trials = (dict(zip(columns, values)) for values in zip(*columns.values()))
    return [
        {name: _plain(value) for name, value in trial.items() if not _is_unknown(value)}
        for trial in trials
    ]


def _is_unknown(value: Any) -> bool:
    return value == "" or isinstance(value, float) and math.isnan(value)


def _rows(dataset: xr.Dataset, settings: Sequence[dict]) -> Iterator[tuple[Point, int, float, str]]:
    """Each valid value above 0; of several pairs, runs and nodes of a trial the geometric mean."""
    # A bandwidth by message says nothing that the time does not.
    is_timed = bool(dataset.message_time.notnull().any())
    for name in QUANTITIES:
        if name == "message_bandwidth" and is_timed:
            continue
        for trial, row in enumerate(dataset[name].values):
            if not np.isfinite(row).any():
                continue
            by_size = "message" in dataset[name].dims
            sizes = dataset.message_size.values[trial] if by_size else [None]
            for size, values in zip(sizes, row if by_size else [row]):
                values = np.asarray(values, float)
                values = values[np.isfinite(values) & (values > 0)]
                if values.size:
                    bytes_ = {} if size is None else {"message_size": _plain(float(size))}
                    point = {_QUANTITY: name, **settings[trial], **bytes_}
                    yield (
                        tuple(sorted(point.items())),
                        int(dataset.block.values[trial]),
                        float(np.exp(np.log(values).mean())),
                        dataset.trial_id.values[trial].item(),
                    )


def _facts(dataset: xr.Dataset) -> dict[str, str]:
    """What the campaign's last session recorded of machine, code, testbed, networks and settings, by its path."""
    session = (json.loads(dataset.attrs["provenance"]).get("sessions") or [{}])[-1]
    told = {
        **session.get("host", {}),
        "session": session.get("testbed", {}),
        "slurm": session.get("slurm", {}),
        "testbed": attributes.testbed(dataset),
        "network": attributes.interconnects(dataset),
        "setting": attributes.settings(dataset),
    }
    return {name: text for name, text in _flat(told) if not name.endswith(_FLEETING)}


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}/{key}" if name else str(key))
    elif value is not None:
        yield name, value if isinstance(value, str) else json.dumps(value)


def _plain(value: Any) -> Any:
    """A whole number without its fraction, anything else as it is."""
    if isinstance(value, np.generic):
        value = value.item()
    is_whole = isinstance(value, float) and math.isfinite(value) and value == int(value)
    return int(value) if is_whole else value
