"""Read the sessions of a history: campaign folders, datasets, tools' logs, or a CSV file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from analysis.dataset import csv_tables, store
from analysis.dataset.points import labels, point, quantity, setting_columns
from analysis.evidence import verify
from analysis.imports import importing
from analysis.quoting import quoted
from analysis.watch import samples
from analysis.watch.samples import Sample
from analysis.watch.suspects import QUANTITIES, host_names
from runners import outputs
from runners.records.record import FalloffError

# Measurements that begin within this time of each other are one session, unless one of them would
# come twice.
TOGETHER = timedelta(hours=6)
_FIRST_YEAR = 1970
_NO_FACTS = ("time", "rate", "block", "node", "switch")


@dataclass(frozen=True)
class Session:
    """When a session began, and what is known of machine and settings then, by path."""

    time: datetime
    facts: Mapping[str, str]


@dataclass(frozen=True)
class History:
    """All values of a cluster, session by session.

    `values` has a row for each value: the number of its `session` from 0, `what` was measured, the
    `node` (empty if it is of no single one), its `block`, and the `log` of its speed. `typical`
    holds the unit of each `what`, and whether lower values are better. `switches` holds the nearest
    switch of each node, as far as known. `sources` are the given files and folders; `copies` those
    that repeat another one and do not count.
    """

    sessions: tuple[Session, ...]
    values: pd.DataFrame
    units: Mapping[str, tuple[str, bool]]
    switches: Mapping[str, str]
    evidence: str
    sources: tuple[str, ...]
    copies: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _SourceValues:
    """Values of one source; `session` in the rows is the key of `times` and `facts`."""

    name: str
    evidence: str
    rows: pd.DataFrame
    times: Mapping
    facts: Mapping
    units: Mapping[str, tuple[str, bool]]
    switches: Mapping[str, str]


def read(sources: Sequence[Path], better: str = "higher") -> History:
    """The history in these sources; `better` is about the rates of a CSV file.

    Raises FalloffError if there is nothing, a time is unknown, or the kinds of evidence or the
    testbeds differ.
    """
    if not sources:
        raise FalloffError("name a campaign's folder, a CSV file or a log of ReFrame")
    datasets, parts = list[tuple[str, xr.Dataset]](), list[_SourceValues]()
    for source in sources:
        if source.is_dir():
            datasets += [(str(folder), store.read(folder)) for folder in verify.folders([source])]
        elif source.suffix == ".nc":
            datasets.append((str(source), store.load(source)))
        elif not source.exists():
            raise FalloffError(f"there is no folder or file {source}")
        elif tool := outputs.tool_of(outputs.read(source)):
            datasets.append((str(source), importing.dataset_of(tool, [source])))
        else:
            parts.append(of_csv(source, better))
    if datasets:
        parts += _of_datasets(datasets)
    kinds = sorted({part.evidence for part in parts})
    if len(kinds) > 1:
        raise FalloffError(
            f"these are {' and '.join(kinds)} evidence: kinds of evidence have no common history"
        )
    return _joined(parts, tuple(map(str, sources)))


def of_csv(file: Path, better: str) -> _SourceValues:
    """The values of a CSV file with the columns `time` and `rate`, and perhaps `block`, `node` and
    `switch`.

    A further column that is a setting, such as direction, makes separate courses if it differs
    within a day; any other is a fact about the session, such as its kernel. Raises FalloffError,
    with the line, if a time or a rate cannot be read, or a value stands twice.
    """
    table = csv_tables.read(file, "time", "rate", whole=True)
    table = table[table.rate.notna()]
    if table.empty:
        raise FalloffError(f"{file} has no rate")
    try:
        csv_tables.require_numbers(table, "rate")
        csv_tables.refuse(table, table.rate <= 0, "column 'rate' has to be above 0")
        times = pd.to_datetime(table.time, format="ISO8601", utc=True, errors="coerce")
        is_none = times.isna() | (times.dt.year < _FIRST_YEAR)
        reason = "column 'time' is no date and time in ISO 8601, such as 2026-11-26T09:30,"
        csv_tables.refuse(table, is_none, reason)
    except FalloffError as error:
        raise FalloffError(f"{file}: {error}") from None
    node = table.node.astype(str) if "node" in table else pd.Series("", table.index)
    what = _courses(table, times)
    repeat = table.groupby([times, node, what]).cumcount() + 1
    block = table.block.astype(str) if "block" in table else repeat.astype(str)
    sign = 1 if better == "higher" else -1
    rows = pd.DataFrame(
        {
            "session": _nights(times, what + "\0" + node + "\0" + block),
            "what": what,
            "node": [quoted(name) for name in node],
            "block": block,
            "log": sign * np.log(table.rate.to_numpy(float)),
        }
    )
    twice = rows.duplicated(["session", "what", "node", "block"])
    csv_tables.refuse(table, twice, f"{file}: a node's block stands twice at one time")
    session = rows.session
    first = table.groupby(session)[[name for name in table if name not in _NO_FACTS]].first()
    facts = {
        number: {quoted(name): quoted(value) for name, value in row.items() if pd.notna(value)}
        for number, row in first.to_dict("index").items()
    }
    switches = {}
    if "switch" in table:
        named = table.switch.notna()
        switches = dict(zip(rows.node[named], map(quoted, table.switch[named])))
    starts = {number: time.to_pydatetime() for number, time in times.groupby(session).min().items()}
    units = dict.fromkeys(what, ("", sign < 0))
    return _SourceValues(str(file), "measured", rows, starts, facts, units, switches)


def _courses(table: pd.DataFrame, times: pd.Series) -> pd.Series:
    """The course of each row. A setting that differs within a day makes another course; any other
    is a fact.
    """
    apart = [
        name
        for name in setting_columns(table, *_NO_FACTS)
        if table.groupby(times.dt.date)[name].nunique().max() > 1
    ]
    points = [point("rate", levels) for levels in table[apart].to_dict("records")]
    return pd.Series(map(labels(points, {}), points), table.index)


def _nights(times: pd.Series, what: pd.Series) -> pd.Series:
    """The number of each row's session, by its time."""
    moments = what.groupby(times).agg(set)  # in the order of time
    numbers = dict(zip(moments.index, _session_numbers(moments.items())))
    return times.map(numbers)


def _session_numbers(measured: Iterable[tuple[datetime, set]]) -> Iterator[int]:
    """The number of each moment's session from 0: a new one begins where something is measured
    again, or after six hours. `measured` are the moments in their order, each with what was
    measured then."""
    number, start, present = -1, None, set[Any]()
    for moment, names in measured:
        if start is None or moment - start >= TOGETHER or names & present:
            number, start, present = number + 1, moment, set()
        present |= names
        yield number


def _of_datasets(datasets: Sequence[tuple[str, xr.Dataset]]) -> list[_SourceValues]:
    """The values of datasets, with labels that tell the points of all of them apart."""
    testbeds = sorted({dataset.falloff.testbed.name for _, dataset in datasets})
    if len(testbeds) > 1:
        raise FalloffError(
            f"these are of the testbeds {', '.join(testbeds)}: a history is one cluster's"
        )
    read, points, names, shown = [], dict[tuple, None](), dict[str, str](), dict[tuple, str]()
    for source, dataset in datasets:
        sample = None
        if not (dataset.runner.values == "suspects").all():
            sample = samples.of_dataset(dataset, source)
            points |= dict.fromkeys(sample.trials.point)
            names |= sample.names
            shown = {**sample.shown, **shown}
        read.append((source, dataset.reset_coords(), sample))
    label = labels([*points], names) if points else None
    return [_of_dataset(*source, label, shown) for source in read]


def _of_dataset(
    source: str, dataset: xr.Dataset, sample: Sample | None, label: Any, shown: Mapping
) -> _SourceValues:
    blocks = dataset.falloff.block_sessions
    starts = dataset.start.values
    if not np.isfinite(starts).any():
        remedy = "write its results to a CSV file with the columns time, rate and block"
        raise FalloffError(f"{source} does not say when it was measured: {remedy}")
    is_imported = dataset.falloff.is_imported
    rows, units = [], {}
    # The journal has the session of a campaign's own trials; that of imported ones follows from
    # their time.
    numbers = [str((blocks.get(block) or [1])[-1]) for block in dataset.block.values.tolist()]
    if is_imported and sample is not None:
        what = dataset.trial_id.to_series().map(sample.trials.groupby("trial").point.agg(tuple))
        begun = pd.to_datetime(pd.Series(starts, what.index), unit="s", utc=True)
        numbers = _nights(begun[what.notna()], what).reindex(what.index).astype(str).tolist()
    session_of = dict(zip(dataset.trial_id.values.tolist(), numbers))
    if sample is not None:
        lower = set(sample.lower)
        for point, block, log, trial in sample.trials.itertuples(index=False):
            what = label(point)
            unit, size = sample.unit(point, shown.get(point, ""))
            units[what] = unit, quantity(point) in lower
            rows.append((session_of[trial], what, "", str(block), log - size))
    rows += _of_suspects(dataset, numbers, units)
    first_starts = pd.Series(starts).groupby(numbers).min().dropna()
    moments = {number: datetime.fromtimestamp(start, UTC) for number, start in first_starts.items()}
    facts = {
        number: samples.facts(dataset, None if is_imported else int(number) - 1)
        for number in moments
    }
    table = pd.DataFrame(rows, columns=["session", "what", "node", "block", "log"])
    table = table[table.session.isin(moments)]
    name = source if is_imported else dataset.attrs["campaign"]
    return _SourceValues(
        name, dataset.falloff.evidence, table, moments, facts, units, dataset.falloff.switches
    )


def _of_suspects(dataset: xr.Dataset, numbers: Sequence[str], units: dict) -> Iterator[tuple]:
    """The speeds of each node in the trials of `suspects`; what it sends and receives is the median
    over its partners."""
    short = dataset.falloff.names
    networks = set(dataset.interconnect.values.tolist())
    is_valid = (dataset.runner == "suspects") & (dataset.status == "ok")
    for trial in np.flatnonzero(is_valid).tolist():
        row = dataset.isel(trial=trial)
        hosts = [quoted(host.split(".")[0]) for host in host_names(row.hosts.item())]
        n = len(hosts)
        where = f", {short[row.interconnect.item()]}" if len(networks) > 1 else ""
        rates = np.log(row.pair_bandwidth.values[:n, :n])
        answers = -np.log(row.pair_latency.values[:n, :n])
        speeds = {"compute": np.log(row.dgemm_rate.values[:n])}
        speeds["memory"] = np.log(row.stream_rate.values[:n])
        with np.errstate(all="ignore"):
            speeds["send"], speeds["receive"] = np.nanmedian(rates, 1), np.nanmedian(rates, 0)
            speeds["answer"] = np.nanmedian(answers, 1)
        for name, values in speeds.items():
            what = f"{QUANTITIES[name][0]}{where}"
            units[what] = {"answer": "s", "compute": "Gflop/s"}.get(name, "B/s"), name == "answer"
            block = str(row.block.item())
            for host, value in zip(hosts, values.tolist()):
                if np.isfinite(value):
                    yield numbers[trial], what, host, block, value


def _joined(parts: Sequence[_SourceValues], sources: tuple[str, ...]) -> History:
    """The sessions of all sources in order of time. Measurements that begin together are one
    session, unless they are of one campaign or course."""
    distinct: dict[tuple, _SourceValues] = {}
    for part in parts:
        distinct.setdefault((*part.times.values(), *part.rows.log), part)
    copies = tuple(part.name for part in parts if part not in distinct.values())
    parts = list(distinct.values())
    begun = sorted(
        (time, part.name, place, key)
        for place, part in enumerate(parts)
        for key, time in part.times.items()
    )
    courses = [
        {key: {*zip(of.what, of.node)} for key, of in part.rows.groupby("session")}
        for part in parts
    ]
    measured = [(time, courses[place].get(key, {name})) for time, name, place, key in begun]
    numbers, sessions = dict[tuple, int](), list[Session]()
    for number, (time, _, place, key) in zip(_session_numbers(measured), begun):
        if number == len(sessions):
            sessions.append(Session(time, {}))
        numbers[place, key] = number
        facts = {**sessions[-1].facts, **parts[place].facts.get(key, {})}
        sessions[-1] = replace(sessions[-1], facts=facts)
    rows = [
        part.rows.assign(session=[numbers[place, key] for key in part.rows.session])
        for place, part in enumerate(parts)
    ]
    values = pd.concat(rows, ignore_index=True)
    if values.empty:
        raise FalloffError(f"{', '.join(sources)}: there is no valid rate or time")
    units = {what: unit for part in parts for what, unit in part.units.items()}
    switches = {node: name for part in parts for node, name in part.switches.items()}
    return History(tuple(sessions), values, units, switches, parts[0].evidence, sources, copies)
