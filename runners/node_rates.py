"""What one node delivers to DGEMM, DTRSM, STREAM and row swaps: the rates of the model of a simulated node.

Their names are those of runners/src/simulated.h.
"""

import re
from dataclasses import dataclass
from statistics import mean, median
from typing import Dict, List, Mapping, Sequence, Tuple

from runners.record import (
    Command,
    Reading,
    Result,
    Runner,
    Settings,
    Transcript,
    Unreadable,
    readings_as_asked,
)

UNITS = {
    "dgemm_flop_s": "flop/s",
    "dgemm_k_half": "elements",
    "dgemm_mn_half": "elements",
    "dtrsm_share": "1",
    "node_byte_s": "B/s",
    "core_byte_s": "B/s",
    "strided_s": "s",
}

# Of the longest length. Above it, rates differ from ones that grow with k for ever by less than a fifth over all
# lengths, and F would be more than five times what the longest loop delivered: not measured but extrapolated.
_LONGEST_HALF = 4

# A node with a small share of a core, and large arrays to be touched first.
_LIMIT_S = 900.0

_HEAD = re.compile(
    r"^node_rates: (\d{1,9}) turns of (\d{1,9}) measurements, "
    r"window (\d+(?:\.\d+)?(?:e[-+]\d+)?) s, (\d{1,9}) threads$",
    re.M,
)
_ROW = re.compile(
    r"^ *(\d{1,9}) +([a-z]+) +(\d{1,18}) +(\d{1,9}) +(\d{1,9}) +(\d{1,9}\.\d{6}) +(\d{1,18})$", re.M
)
_END = re.compile(r"^end of node_rates$", re.M)

# Operations, bytes or elements of one repetition. STREAM counts what the loop names, read or written.
_WORK = {
    "dgemm": lambda m, n, k: 2 * m * n * k,
    "thin": lambda m, n, k: 2 * m * n * k,
    "dtrsm": lambda m, n, k: m * k * k,
    "triad": lambda m, n, k: 3 * 8 * m,
    "copy": lambda m, n, k: 2 * 8 * m,
    "strided": lambda m, n, k: 2 * m * n,
}

# A turn's measurements: kind -> {(m, n, k): work per second}.
_Sizes = Tuple[int, int, int]
_Turn = Mapping[str, Mapping[_Sizes, float]]


@dataclass(frozen=True)
class Spread:
    """A rate's median over the turns of one run, and the least and the largest."""

    value: float
    low: float
    high: float


def commands(point: Settings) -> List[Command]:
    """One run on node 1: `duration_s` for each of the measurements, each five times, and
    STREAM's arrays of `array_mib` MiB."""
    argv = ("node_rates", str(point["duration_s"]), str(point["array_mib"]))
    return [Command(argv, timeout_s=_LIMIT_S)]


def parse(transcript: Transcript) -> List[Reading]:
    """The readings of the output; raises InvalidRun when something else ran than the point asks for,
    otherwise as `results` does."""
    (result,) = results(transcript.executions[-1].stdout)
    return readings_as_asked("node_rates", result, transcript.trial.point)


def results(text: str) -> List[Result]:
    """The seven rates, medians over the turns; `duration_s`, `array_mib` and `threads` as printed.

    Raises Unreadable when the output is cut off or contradicts itself.
    """
    turns, settings = _turns(text)
    readings = (Reading(name, spread.value, UNITS[name]) for name, spread in _spreads(turns).items())
    return [Result(tuple(readings), settings)]


def spreads(text: str) -> Dict[str, Spread]:
    """The seven rates by name, in the order and units of UNITS; raises as `results` does."""
    return _spreads(_turns(text)[0])


def half_length(lengths: Sequence[float], rates: Sequence[float]) -> Tuple[float, float]:
    """F and h of r(k) = F k / (k + h): the rate of long loops, and the length k that halves it.

    In 1/k that is a line, 1/r = 1/F + (h/F) / k, after Hockney's n_1/2 (Hockney and Jesshope, Parallel
    Computers, 1981). The sum of squares of r (1/F + (h/F) / k) - 1 is least, which weighs all rates alike.
    h is not below 0, where short loops would be the faster ones, and at most four times the longest length, so
    that rates of a disturbed node, which grow as fast as k or faster, have a finite F above 0 too. Two or more
    different lengths are needed.
    """
    inverse = [rate / length for rate, length in zip(rates, lengths)]
    rr, ri, ii = _dot(rates, rates), _dot(rates, inverse), _dot(inverse, inverse)
    r, i = sum(rates), sum(inverse)
    determinant = rr * ii - ri * ri
    intercept, slope = (r * ii - i * ri) / determinant, (i * rr - r * ri) / determinant
    longest = _LONGEST_HALF * max(lengths)
    if 0 <= slope <= longest * intercept:
        return 1 / intercept, slope / intercept
    half = 0.0 if slope < 0 else longest  # the bound that is met: the fit is then of F alone
    scaled = [rate + half * per for rate, per in zip(rates, inverse)]
    return _dot(scaled, scaled) / sum(scaled), half


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right))


def _spreads(turns: Sequence[_Turn]) -> Dict[str, Spread]:
    estimates = [_estimate(turn) for turn in turns]
    found = {name: [estimate[name] for estimate in estimates] for name in UNITS}
    return {name: Spread(median(values), min(values), max(values)) for name, values in found.items()}


def _estimate(turn: _Turn) -> Dict[str, float]:
    """The rates of one turn, with the equations of simulated.h: DGEMM takes 2 m n k / F (1 + k_half / k)
    (1 + mn_half / min(m, n)), DTRSM of order k the share of F (1 + k_half / k)."""
    square = turn["dgemm"]
    ((order, _, _), *_) = square
    at_order, k_half = half_length([k for _, _, k in square], list(square.values()))
    _, mn_half = half_length([n for _, n, _ in turn["thin"]], list(turn["thin"].values()))
    flop_s = at_order * (1 + mn_half / order)
    (triad,), (copy,), (strided,) = (turn[kind].values() for kind in ("triad", "copy", "strided"))
    return {
        "dgemm_flop_s": flop_s,
        "dgemm_k_half": k_half,
        "dgemm_mn_half": mn_half,
        "dtrsm_share": mean(rate * (1 + k_half / k) / flop_s for (_, _, k), rate in turn["dtrsm"].items()),
        "node_byte_s": triad,
        "core_byte_s": copy,
        "strided_s": 1 / strided,
    }


def _turns(text: str) -> Tuple[List[_Turn], Settings]:
    """The turns of an output and its settings; raises Unreadable as `results` does."""
    head = _HEAD.search(text)
    if not head or not _END.search(text):
        raise Unreadable(
            "node_rates did not print its first and last line: the run was stopped or its output cut off"
        )
    count, measurements, window, threads = int(head[1]), int(head[2]), float(head[3]), int(head[4])
    rows = _ROW.findall(text)
    turns: Dict[int, Dict[str, Dict[_Sizes, float]]] = {}
    for turn, kind, m, n, k, seconds, repetitions in rows:
        sizes = (int(m), int(n), int(k))
        work = _WORK[kind](*sizes) * int(repetitions) if kind in _WORK else 0
        if work <= 0 or float(seconds) < window:
            raise Unreadable(f"node_rates reports {repetitions} x {kind} {m} {n} {k} in {seconds} s")
        turns.setdefault(int(turn), {}).setdefault(kind, {})[sizes] = work / float(seconds)
    measured = {frozenset((kind, *sizes) for kind in turn for sizes in turn[kind]) for turn in turns.values()}
    announced = list(range(1, count + 1))
    if list(turns) != announced or len(rows) != count * measurements or {*map(len, measured)} != {measurements}:
        raise Unreadable(f"node_rates announces {count} turns of {measurements} measurements, other rows follow")
    if len(measured) > 1 or not _suffices(turns[1]):
        raise Unreadable(f"node_rates did not measure all of {', '.join(_WORK)} in every turn")
    ((length, _, _),) = turns[1]["triad"]
    settings = {"duration_s": window, "array_mib": length * 8 / 2**20, "threads": threads}
    return list(turns.values()), settings


def _suffices(turn: _Turn) -> bool:
    """Whether `_estimate` has what it needs."""
    single = ("triad", "copy", "strided")
    return (
        set(turn) == set(_WORK)
        and all(len(turn[kind]) == 1 for kind in single)
        and len({k for _, _, k in turn["dgemm"]}) > 1
        and len({n for _, n, _ in turn["thin"]}) > 1
    )


RUNNER = Runner("node_rates", commands, parse, results)
