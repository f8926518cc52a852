"""What token prints: a row for each pair and run, checked against the first line and against each other."""

import math
import re
from dataclasses import dataclass
from itertools import product
from typing import List, Tuple

from runners.record import InvalidRun, Settings, Unreadable

# Of the distribution of round trips: the shares of them that took no longer.
LEVELS = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)

# Less than this share of their windows in common and the pairs' throughputs must not be added.
_LEAST_IN_COMMON = 0.9

# Round trips are printed in whole nanoseconds, their mean in millionths of a microsecond.
_ROUNDING = 1e-6

_TIME = r"\d{1,12}\.\d{6}"
_HEAD = re.compile(
    rf"^token: (\d{{1,6}}) pairs, (\d{{1,12}}) bytes, (\d{{1,6}}) runs, "
    rf"warm-up ({_TIME}) s, window ({_TIME}) s, by (TCP|MPI)$",
    re.M,
)
_ROW = re.compile(
    rf"^ *(\d{{1,6}}) +(\d{{1,12}}) +(\d{{1,6}}) +({_TIME}) +(\d{{1,12}}) +({_TIME})"
    rf"((?: +(?:\d{{1,12}}\.\d{{3}}|-?nan)){{{len(LEVELS)}}}) +({_TIME}|-?nan)$",
    re.M,
)
_END = re.compile(r"^end of token$", re.M)


@dataclass(frozen=True)
class Row:
    """A pair's window in a run: when it began [s since the epoch, by the producer's clock], the exchanges whose
    reply came within it, their round trips [s] at LEVELS, and their mean [s]."""

    pair: int
    run: int
    begin: float
    exchanges: int
    round_trips: Tuple[float, ...]
    mean: float


@dataclass(frozen=True)
class Table:
    """A whole output: `settings` by their names in a point, and rows in the order of runs, then pairs."""

    settings: Settings
    rows: Tuple[Row, ...]

    def by_pair(self) -> List[List[Row]]:
        """The rows of each pair, in the order of the runs."""
        pairs = self.settings["pairs"]
        return [list(self.rows[pair::pairs]) for pair in range(pairs)]


def table(text: str) -> Table:
    """The table in an output.

    Raises Unreadable when it is not whole or contradicts itself, InvalidRun when a pair completed no exchange or the
    pairs' windows were not the same time.
    """
    head = _HEAD.search(text)
    if not head or not _END.search(text):
        raise Unreadable("token did not print its first and last line: the run was stopped or its output cut off")
    pairs, size, runs = (int(number) for number in head.groups()[:3])
    window = float(head[5])
    found = [match.groups() for match in _ROW.finditer(text)]
    there = [(int(run), int(pair)) for pair, _, run, *_ in found]
    if not found or there != list(product(range(1, runs + 1), range(1, pairs + 1))):
        raise Unreadable(f"token reports {len(found)} rows that are not of {pairs} pairs in {runs} runs")
    if any((int(own), float(length)) != (size, window) for _, own, _, _, _, length, *_ in found):
        raise Unreadable("token's rows are of other tokens or another window than its first line says")
    rows = tuple(
        _row(int(pair), int(run), float(begin), int(exchanges), levels.split(), mean, window)
        for pair, _, run, begin, exchanges, _, levels, mean in found
    )
    for first in range(0, len(rows), pairs):
        _require_common(rows[first : first + pairs], window)
    settings = {
        "pairs": pairs,
        "token_bytes": size,
        "runs": runs,
        "warm_up_s": float(head[4]),
        "window_s": window,
        "transport": head[6].lower(),
    }
    return Table(settings, rows)


def _row(pair: int, run: int, begin: float, exchanges: int, levels_us: List[str], mean_us: str, window: float) -> Row:
    """One row; round trips follow each other, so all of them together cannot last longer than the window and the
    first, which began before it."""
    where = f"pair {pair} in run {run}"
    if not exchanges:
        raise InvalidRun(f"{where} completed no exchange in its window of {window:g} s: raise `window_s`")
    levels, mean = [float(level) / 1e6 for level in levels_us], float(mean_us) / 1e6
    least, most = levels[0], levels[-1]
    if not (least > 0 and levels == sorted(levels) and least * (1 - _ROUNDING) <= mean <= most * (1 + _ROUNDING)):
        raise Unreadable(f"the round trips of {where} are no distribution")
    if exchanges * mean > (window + most) * (1 + _ROUNDING):
        raise Unreadable(f"the {exchanges} exchanges of {where} take longer than its window of {window:g} s")
    return Row(pair, run, begin, exchanges, tuple(levels), mean)


def _require_common(rows: Tuple[Row, ...], window: float) -> None:
    """Insist that the windows of one run are the same time, but for what clocks and schedulers are off."""
    begins = [row.begin for row in rows]
    common = window - (max(begins) - min(begins))
    if common < _LEAST_IN_COMMON * window:
        had = f"the pairs' windows in run {rows[0].run} had {max(common, 0.0):.3f} of {window:g} s in common"
        raise InvalidRun(f"{had}: do the nodes' clocks agree?")
