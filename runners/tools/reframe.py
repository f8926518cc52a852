"""ReFrame's performance logs: only read, never run from here. Their first line names the columns.

Each row is a run of a test; each pair of columns NAME_value, NAME_unit is a figure of merit of it
(ReFrame 4; older logs have perf_var, perf_value, perf_unit). A unit of time makes it a time, for
which less is better, also a time for each step, iteration or message; any other a rate.
"""

import re
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any, Optional

from runners.outputs import absent
from runners.parsing import PROCESSES, TEST, only_read, refused, usable
from runners.records.record import Contradictory, Cut, Mark, Quantity, Result

_HEAD = re.compile(
    r"^(?=[\w|%]{1,4000}\|)[\w|]*\b(?:job_completion_time|result)\b[\w|]*\|[\w|]*$", re.M
)
_SECONDS = {
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "ns": 1e-9,
    "min": 60.0,
    "minutes": 60.0,
    "h": 3600.0,
    "hours": 3600.0,
}
_YEAR_10000 = 253_402_300_800  # seconds since the epoch
_UNKNOWN = ("", "null", "None", "nan")
_STRANGE = re.compile(r"[^\w .,=+-]+")
_PLATFORM = re.compile(r"@(\S{1,60})")  # system, partition and environment behind a test's name
_PLATFORM_COLUMNS = ("system", "partition", "environ")


def results(text: str) -> list[Result]:
    """One result for each figure of merit of each row, with its test, platform, processes and unit
    as far as the log has them: the reading reported_rate in the log's own unit, or reported_time
    [s], and when the run was over, as `start` [s since the epoch]; a time without a zone is taken
    as UTC.

    Raises Unreadable when no row can be used.
    """
    head = _HEAD.search(text)
    if not head:
        raise absent("reframe", text, "a performance log of ReFrame")
    columns = head[0].split("|")
    listed = []
    for line in text[head.end() :].splitlines(keepends=True):
        cells = line.strip("\r\n").split("|")
        if _HEAD.match(line):
            columns = cells
        if not line.strip() or cells == columns:
            continue
        test = {"test": _word(cells[0][:40])}
        if not line.endswith("\n"):
            listed.append(refused(Cut("the last row does not end: it is cut off"), test))
            continue
        if len(cells) != len(columns):
            under = f"a row of {len(cells)} cells under {len(columns)} columns"
            reason = f"{under}: cut off, or of another log"
            listed.append(refused(Contradictory(reason), test))
            continue
        listed += _of_row(dict(zip(columns, cells)))
    if not listed:
        raise Cut("the log has no row with a figure of merit")
    return usable(listed, "a performance log of ReFrame without a usable row: ")


def _of_row(row: dict[str, str]) -> Iterator[Result]:
    name = (
        row.get("display_name")
        or row.get("info", "").partition(" /")[0]
        or row.get("check_name", "")
    )
    moment = _moment(row.get("job_completion_time", ""))
    named = _PLATFORM.findall(row.get("info", "")) or map(row.get, _PLATFORM_COLUMNS)
    settings: dict[str, Any] = {
        "version": row.get("version", "").replace("reframe ", "") or "unknown"
    }
    if platform := " ".join(filter(None, named)):
        settings["platform"] = _word(platform)
    if (tasks := row.get("num_tasks", "")).isdecimal():
        settings["processes"] = int(tasks)
    for metric, value, unit in _figures(row):
        settings = {**settings, "test": _word(f"{name} {metric}")}
        try:
            number = float(value)
        except ValueError:
            yield refused(
                Contradictory(f"{metric} is {value[:40]!r}, which is no number"), settings
            )
            continue
        time, _, divisor = unit.lower().partition("/")
        if time in _SECONDS and divisor not in _SECONDS:
            readings = {"reported_time": number * _SECONDS[time]}
        else:
            readings = {"reported_rate": number}
            settings["unit"] = re.sub(r"[^\w/%.-]+|_", " ", unit)[:20].strip()
        if moment is not None:
            readings["start"] = moment
        yield Result(readings, settings)


def _figures(row: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Name, value and unit of each figure of merit in a row."""
    for column, value in row.items():
        metric = column[: -len("_value")]
        if not column.endswith("_value") or value in _UNKNOWN:
            continue
        named = row.get("perf_var", metric) if metric == "perf" else metric
        yield named, value, row.get(f"{metric}_unit", "")


def _moment(text: str) -> Optional[float]:
    """Seconds since the epoch of a time in ISO 8601, or of a number of seconds; None if it is
    neither.
    """
    try:
        moment = float(text)
    except ValueError:
        try:
            parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError:
            return None
        moment = (parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc)).timestamp()
    return moment if 0 <= moment < _YEAR_10000 else None


def _word(text: str) -> str:
    """A name without the letters that no level may have."""
    return re.sub(r"[ _-]{2,}|_ | _", " ", _STRANGE.sub(" ", text)).strip(" _%.-+=,") or "unnamed"


TOOL = only_read(
    "reframe",
    results,
    readings={
        "reported_rate": Quantity("figure of merit in the log's unit", "1"),
        "reported_time": Quantity("figure of merit in seconds", "s"),
    },
    factors={
        **TEST,
        **PROCESSES,
        "platform": Quantity("system, partition and environment of a test"),
        "unit": Quantity("unit of a figure of merit"),
    },
    marks=(Mark(_HEAD.pattern, "a performance log of ReFrame"),),
)
