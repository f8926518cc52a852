"""Read the sessions of a history: campaign folders, datasets, tools' logs, or a CSV file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from analysis import attributes, importing, samples, store, tables
from analysis.evidence import verify
from analysis.points import labels, point, quantity, setting_columns
from analysis.quoting import quoted
from analysis.samples import Sample
from analysis.subjects.suspects import QUANTITIES, host_names
from runners import outputs
from runners.record import FalloffError

# Measurements that begin within this time of each other are one session, unless one of them would come twice.
TOGETHER = timedelta(hours=6)
_OF_SUSPECTS = {"compute": "dgemm_rate", "memory": "stream_rate"}
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
    switch of each node, as far as known. `sources` are the given files and folders; `copies` those that repeat another one
    and do not count.
    """

    sessions: tuple[Session, ...]
    values: pd.DataFrame
    units: Mapping[str, tuple[str, bool]]
    switches: Mapping[str, str]
    evidence: str
    sources: tuple[str, ...]
    copies: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Part:
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
    datasets, parts = list[tuple[str, xr.Dataset]](), list[_Part]()
    for source in sources:
        if source.is_dir():
            datasets += [(str(one), store.read(one)) for one in verify.folders([source])]
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


def of_csv(file: Path, better: str) -> _Part:
    """The values of a CSV file with the columns `time` and `rate`, and perhaps `block`, `node` and `switch`.

    A further column that is a setting, such as direction, tells courses apart if it differs within a day; any other is a
    fact about the session, such as its kernel. Raises FalloffError, with
    the line, if a time or a rate cannot be read, or a value stands twice.
    """
    table = tables.read(file, "time", "rate", whole=True)
    table = table[table.rate.notna()]
    if table.empty:
        raise FalloffError(f"{file} has no rate")
    try:
        tables.require_numbers(table, "rate")
        tables.refuse(table, table.rate <= 0, "column 'rate' has to be above 0")
        times = pd.to_datetime(table.time, format="ISO8601", utc=True, errors="coerce")
        is_none = times.isna() | (times.dt.year < _FIRST_YEAR)
        reason = "column 'time' is no date and time in ISO 8601, such as 2026-11-26T09:30,"
        tables.refuse(table, is_none, reason)
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
    tables.refuse(table, twice, f"{file}: a node's block stands twice at one time")
    session = rows.session
    known = [name for name in table if name not in _NO_FACTS]
    first = table.groupby(session)[known].first()
    facts = {
        number: {quoted(name): quoted(value) for name, value in row.items() if pd.notna(value)}
        for number, row in first.to_dict("index").items()
    }
    switches = {}
    if "switch" in table:
        named = table.switch.notna()
        switches = dict(zip(rows.node[named], map(quoted, table.switch[named])))
    starts = {number: time.to_pydatetime() for number, time in times.groupby(session).min().items()}
    return _Part(
        str(file), "measured", rows, starts, facts, dict.fromkeys(what, ("", sign < 0)), switches
    )


def _courses(table: pd.DataFrame, times: pd.Series) -> pd.Series:
    """What the rate of each row is of: a setting that differs within a day makes another course, any other is a fact."""
    apart = [
        name
        for name in setting_columns(table, *_NO_FACTS)
        if table.groupby(times.dt.date)[name].nunique().max() > 1
    ]
    points = [point("rate", levels) for levels in table[apart].to_dict("records")]
    return pd.Series(map(labels(points, {}), points), table.index)


def _nights(times: pd.Series, what: pd.Series) -> pd.Series:
    """The number of each row's session, by its time: a new one begins where something comes again,
    or after six hours."""
    order = times.sort_values(kind="stable").index
    number, begun, seen, found = -1, None, set(), {}
    for moment, rows in times.loc[order].groupby(times.loc[order], sort=False):
        names = set(what.loc[rows.index])
        if begun is None or moment - begun >= TOGETHER or names & seen:
            number, begun, seen = number + 1, moment, set()
        seen |= names
        found |= dict.fromkeys(rows.index, number)
    return pd.Series(found).reindex(times.index)


def _of_datasets(datasets: Sequence[tuple[str, xr.Dataset]]) -> list[_Part]:
    """The values of datasets, with labels that tell the points of all of them apart."""
    testbeds = sorted({attributes.testbed(each).get("name", "") for _, each in datasets})
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
    return [_of_dataset(*each, label, shown) for each in read]


def _of_dataset(
    source: str, dataset: xr.Dataset, sample: Sample | None, label, shown: Mapping
) -> _Part:
    blocks = attributes.block_sessions(dataset)
    starts = dataset.start.values
    if not np.isfinite(starts).any():
        remedy = "write its results to a CSV file with the columns time, rate and block"
        raise FalloffError(f"{source} does not say when it was measured: {remedy}")
    is_imported = attributes.is_imported(dataset)
    rows, units = [], {}
    # Of a campaign's own trials the journal knows the session; of imported ones the time tells it.
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
    times, facts = dict[str, float](), dict[str, Mapping]()
    for number, start in zip(numbers, starts.tolist()):
        if np.isfinite(start):
            times[number] = min(start, times.get(number, start))
    for number in times:
        facts[number] = samples.facts(dataset, None if is_imported else int(number) - 1)
    table = pd.DataFrame(rows, columns=["session", "what", "node", "block", "log"])
    table = table[table.session.isin(times)]
    moments = {number: datetime.fromtimestamp(at, timezone.utc) for number, at in times.items()}
    named = attributes.sessions(dataset)[-1:] or [{}]
    above = named[0].get("slurm", {}).get("switches", {})
    switches = {host.split(".")[0]: names[0] for host, names in above.items() if names}
    evidence = dataset.evidence.values[0].item()
    name = source if is_imported else dataset.attrs["campaign"]
    return _Part(name, evidence, table, moments, facts, units, switches)


def _of_suspects(dataset: xr.Dataset, numbers: Sequence[str], units: dict) -> Iterator[tuple]:
    """The speeds of each node in the trials of `suspects`; what it sends and receives is the median
    over its partners."""
    short = attributes.short_names(dataset)
    networks = set(dataset.interconnect.values.tolist())
    for trial in np.flatnonzero((dataset.runner == "suspects") & (dataset.status == "ok")):
        row = dataset.isel(trial=int(trial))
        hosts = [quoted(host.split(".")[0]) for host in host_names(row.hosts.item())]
        n, where = len(hosts), ""
        if len(networks) > 1:
            where = f", {short[row.interconnect.item()]}"
        rates = np.log(row.pair_bandwidth.values[:n, :n])
        answers = -np.log(row.pair_latency.values[:n, :n])
        speeds = {name: np.log(row[key].values[:n]) for name, key in _OF_SUSPECTS.items()}
        with np.errstate(all="ignore"):
            speeds["send"], speeds["receive"] = np.nanmedian(rates, 1), np.nanmedian(rates, 0)
            speeds["answer"] = np.nanmedian(answers, 1)
        for name, values in speeds.items():
            what = f"{QUANTITIES[name][0]}{where}"
            lower = name == "answer"
            units[what] = ("s" if lower else "Gflop/s" if name == "compute" else "B/s"), lower
            block = str(row.block.item())
            for host, value in zip(hosts, values.tolist()):
                if np.isfinite(value):
                    yield numbers[trial], what, host, block, value


def _joined(parts: Sequence[_Part], sources: tuple[str, ...]) -> History:
    """The sessions of all parts in the order of time. Those that begin together are one, but of one campaign or of one
    course."""
    distinct: dict[tuple, _Part] = {}
    for part in parts:
        distinct.setdefault((*part.times.values(), *part.rows.log), part)
    copies = tuple(part.name for part in parts if part not in distinct.values())
    parts = list(distinct.values())
    begun = sorted(
        (time, part.name, place, key)
        for place, part in enumerate(parts)
        for key, time in part.times.items()
    )
    numbers, sessions = dict[tuple, int](), list[Session]()
    start, present = None, set[tuple]()
    courses = [
        {key: {*zip(of.what, of.node)} for key, of in part.rows.groupby("session")}
        for part in parts
    ]
    for time, name, place, key in begun:
        measured = courses[place].get(key, {name})
        if start is None or time - start >= TOGETHER or measured & present:
            sessions.append(Session(time, {}))
            start, present = time, set()
        present |= measured
        numbers[place, key] = len(sessions) - 1
        facts = {**sessions[-1].facts, **parts[place].facts.get(key, {})}
        sessions[-1] = Session(sessions[-1].time, facts)
    tables_of = []
    for place, part in enumerate(parts):
        session = [numbers[place, key] for key in part.rows.session]
        tables_of.append(part.rows.assign(session=session))
    values = pd.concat(tables_of, ignore_index=True)
    if values.empty:
        raise FalloffError(f"{', '.join(sources)}: there is no valid rate or time")
    units = {what: unit for part in parts for what, unit in part.units.items()}
    switches = {node: name for part in parts for node, name in part.switches.items()}
    return History(tuple(sessions), values, units, switches, parts[0].evidence, sources, copies)
