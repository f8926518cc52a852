"""The rates of one node at DGEMM, DTRSM, STREAM and row swaps, which are the rates of a simulated
node's model.

Their names are those of runners/src/simulated.h.
"""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from statistics import mean, median
from typing import Any

from runners import executables
from runners.parsing import whole
from runners.records import provenance
from runners.records.description_rules import COUNT, POSITIVE
from runners.records.record import (
    Command,
    Contradictory,
    FalloffError,
    Result,
    Settings,
    Tool,
    Trial,
    judge,
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

# Multiple of the longest length. Beyond it, rates differ by less than a fifth from rates that grow
# with k for ever, over all lengths, and F would be more than five times the longest loop's rate:
# extrapolated, not measured.
_LONGEST_HALF = 4

# For a node with a small share of a core, and large arrays that must be touched first.
_LIMIT_S = 900.0

_HEAD = re.compile(
    r"^node_rates: (?P<turns>\d{1,9}) turns of (?P<measurements>\d{1,9}) measurements, "
    r"window (?P<duration_s>\d+(?:\.\d+)?(?:e[-+]\d+)?) s, (?P<threads>\d{1,9}) threads$",
    re.M,
)
_ROW = re.compile(
    r"^ *(\d{1,9}) +([a-z]+) +(\d{1,18}) +(\d{1,9}) +(\d{1,9}) +(\d{1,9}\.\d{6}) +(\d{1,18})$", re.M
)

# Duration of each measurement; longer on a testbed, whose nodes have neighbours.
_HERE_S = 0.1
_ON_TESTBED_S = 0.5

_PROCESSORS = Path("/sys/devices/system/cpu")
_LEAST_ARRAY_MIB = 64  # even if the kernel names no caches

# Operations, bytes or elements of one repetition. STREAM counts the operands in the loop, read or
# written.
_WORK = {
    "dgemm": lambda m, n, k: 2 * m * n * k,
    "thin": lambda m, n, k: 2 * m * n * k,
    "dtrsm": lambda m, n, k: m * k * k,
    "triad": lambda m, n, k: 3 * 8 * m,
    "copy": lambda m, n, k: 2 * 8 * m,
    "strided": lambda m, n, k: 2 * m * n,
}

# A turn's measurements: kind -> {(m, n, k): work per second}.
_Sizes = tuple[int, int, int]
_Turn = Mapping[str, Mapping[_Sizes, float]]


def commands(point: Settings) -> list[Command]:
    """One run on node 1, with `duration_s` for each measurement, each made five times, and STREAM
    arrays of `array_mib` MiB."""
    argv = ("node_rates", str(point["duration_s"]), str(point["array_mib"]))
    return [Command(argv, timeout_s=_LIMIT_S)]


def results(text: str) -> list[Result]:
    """The seven rates, medians over the turns; `duration_s`, `array_mib`, `threads` as printed."""
    estimates, settings = of_turns(text)
    return [Result({name: median(rates) for name, rates in estimates.items()}, settings)]


def half_length(lengths: Sequence[float], rates: Sequence[float]) -> tuple[float, float]:
    """F and h of r(k) = F k / (k + h): the rate of long loops, and the length k that halves it.

    In 1/k this is a line, 1/r = 1/F + (h/F) / k, after Hockney's n_1/2 (Hockney and Jesshope,
    Parallel Computers, 1981). The sum of squares of r (1/F + (h/F) / k) - 1 is minimised, which
    weighs all rates equally. h is at least 0, because below it short loops would be faster, and at
    most four times the longest length. So F is finite and above 0 even for rates of a disturbed
    node, which grow as fast as k or faster. At least two different lengths are needed.
    """
    inverse = [rate / length for rate, length in zip(rates, lengths)]
    rr, ri, ii = _dot(rates, rates), _dot(rates, inverse), _dot(inverse, inverse)
    r, i = sum(rates), sum(inverse)
    determinant = rr * ii - ri * ri
    intercept, slope = (r * ii - i * ri) / determinant, (i * rr - r * ri) / determinant
    longest = _LONGEST_HALF * max(lengths)
    if 0 <= slope <= longest * intercept:
        return 1 / intercept, slope / intercept
    half = 0.0 if slope < 0 else longest  # the bound that was hit; then only F is fitted
    scaled = [rate + half * per for rate, per in zip(rates, inverse)]
    return _dot(scaled, scaled) / sum(scaled), half


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right))


def _estimate(turn: _Turn) -> dict[str, float]:
    """The rates of one turn, with the equations of simulated.h: DGEMM takes 2 m n k / F (1 + k_half
    / k) (1 + mn_half / min(m, n)), DTRSM of order k the share of F (1 + k_half / k)."""
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
        "dtrsm_share": mean(
            rate * (1 + k_half / k) / flop_s for (_, _, k), rate in turn["dtrsm"].items()
        ),
        "node_byte_s": triad,
        "core_byte_s": copy,
        "strided_s": 1 / strided,
    }


def of_turns(text: str) -> tuple[dict[str, list[float]], Settings]:
    """The seven rates by name, each over the turns of a run, in the order and units of UNITS; and
    the run's settings.

    Raises Unreadable, like `results`, for an output that is cut off or contradicts itself.
    """
    settings = whole("node_rates", text, _HEAD)
    count, measurements = settings.pop("turns"), settings.pop("measurements")
    rows = _ROW.findall(text)
    turns: dict[int, dict[str, dict[_Sizes, float]]] = {}
    for turn, kind, m, n, k, seconds, repetitions in rows:
        sizes = (int(m), int(n), int(k))
        work = _WORK[kind](*sizes) * int(repetitions) if kind in _WORK else 0
        if work <= 0 or float(seconds) < settings["duration_s"]:
            raise Contradictory(
                f"node_rates reports {repetitions} x {kind} {m} {n} {k} in {seconds} s"
            )
        turns.setdefault(int(turn), {}).setdefault(kind, {})[sizes] = work / float(seconds)
    measured = [sum(map(len, turn.values())) for turn in turns.values()]
    is_announced = list(turns) == list(range(1, count + 1)) and len(rows) == count * measurements
    if not is_announced or measured != [measurements] * count:
        raise Contradictory(
            f"node_rates announces {count} turns of {measurements} measurements, other rows follow"
        )
    try:
        estimates = list(map(_estimate, turns.values()))
        ((length, _, _),) = turns[1]["triad"]
    except (KeyError, ValueError, ZeroDivisionError):
        needed = ", ".join(_WORK)
        raise Contradictory(f"node_rates did not measure all of {needed} in every turn") from None
    settings["array_mib"] = length * 8 / 2**20
    return {name: [estimate[name] for estimate in estimates] for name in UNITS}, settings


TOOL = Tool(
    "node_rates",
    commands,
    results,
    settings={
        "nodes": COUNT,
        "duration_s": POSITIVE,
        "array_mib": POSITIVE,
    },
    packages=("libopenblas-dev",),
)


def run_here() -> str:
    """The output of node_rates on all cores of this machine; raises FalloffError when it fails."""
    (command,) = commands(_settings(_HERE_S))
    argv = [executables.find(command.argv[0], {}), *command.argv[1:]]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise FalloffError(f"node_rates still ran after {_LIMIT_S:.0f} s and was stopped") from None
    if done.returncode != 0:
        complaint = done.stderr.strip()[:200]
        raise FalloffError(f"node_rates ended with exit code {done.returncode}: {complaint}")
    return done.stdout


def run_on(testbed: Any, interconnect: str) -> str:
    """The same on node 1 of an opened testbed; raises FalloffError if the trial is not valid."""
    point = {"interconnect": interconnect, **_settings(_ON_TESTBED_S)}
    trial = Trial("rates", "survey", "node_rates", 0, 1, point)
    transcript = testbed.run(trial, commands(point))
    reason = judge(transcript, TOOL.parse).reason
    if reason:
        testbed_name = testbed.description["name"]
        raise FalloffError(f"a node's rates on testbed {testbed_name} cannot be measured: {reason}")
    return transcript.executions[-1].stdout


def as_toml(output: str, machine: str = "") -> str:
    """A table [rates.NAME] for each rate: its median over the turns of the run, and their range.

    `machine` names the measured machine, by default this one. Raises like `results`.
    """
    if not machine:
        host = provenance.host()
        machine = f"{host['hostname']} ({host['cpu_model']})"
    source = f"measured on {machine}, {date.today()}, by falloff doctor --rates: DGEMM and STREAM"
    lines = []
    for name, rates in of_turns(output)[0].items():
        lines += [f"[rates.{name}]", f"value = {median(rates):.4g}"]
        lines += [f"low = {min(rates):.4g}", f"high = {max(rates):.4g}"]
        lines += [f"unit = {json.dumps(UNITS[name])}"]
        lines += [f"source = {json.dumps(source, ensure_ascii=False)}", ""]
    return "\n".join(lines)


def array_mib() -> int:
    """The size of each STREAM array in MiB: four times all last-level caches of the machine
    together, as STREAM's rules require, and never small."""
    sizes: dict[int, dict[str, int]] = {}
    for cache in _PROCESSORS.glob("cpu[0-9]*/cache/index[0-9]*"):
        level, size, shared = (
            (cache / name).read_text().strip() for name in ("level", "size", "shared_cpu_list")
        )
        sizes.setdefault(int(level), {})[shared] = int(size.rstrip("K"))
    last_level_kib = sum(sizes[max(sizes)].values()) if sizes else 0
    return max(_LEAST_ARRAY_MIB, -(-4 * last_level_kib // 1024))


def _settings(duration_s: float) -> dict[str, Any]:
    return {"duration_s": duration_s, "array_mib": array_mib()}
