"""The HPC Challenge benchmarks (hpccoutf.txt of HPCC 1.x): only read, never run from here.

HPCC ends its output with a summary of `name=value` lines in which -1 stands for what was not
measured. The summary says nothing of HPL's residual check: that is taken from the part of the
output that HPL printed.
"""

import math
import re
from collections.abc import Sequence
from decimal import Decimal

from runners.outputs import absent
from runners.parsing import (
    attempt,
    not_understood,
    only_read,
    rate_agrees,
    refused,
    usable,
)
from runners.records.record import (
    KINDS,
    Contradictory,
    Cut,
    Failed,
    Mark,
    Quantity,
    Readings,
    Result,
    Unreadable,
)
from runners.tools import hpl

_TITLE = re.compile(r"^(?=This is the DARPA/DOE HPC Challenge Benchmark version )", re.M)
_VALUE = re.compile(r"^(\w+)=(\S+)$", re.M)
_NUMBER = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?(?:e[+-]\d\d)?", re.ASCII)

# HPCC's name: our name, our unit, the power of ten from HPCC's unit to ours, and what it is, empty
# for HPL's own. Star is the mean of one process while all work at once, Single is one process
# alone.
_QUANTITIES = {
    "HPL_Tflops": ("hpl_rate", "Gflop/s", 3, ""),
    "HPL_time": ("hpl_time", "s", 0, ""),
    "StarDGEMM_Gflops": ("dgemm_star_rate", "Gflop/s", 0, "DGEMM of one process while all work"),
    "SingleDGEMM_Gflops": ("dgemm_single_rate", "Gflop/s", 0, "DGEMM of one process alone"),
    "PTRANS_GBs": ("ptrans_bandwidth", "B/s", 9, "parallel transposition of a matrix"),
    "MPIRandomAccess_GUPs": (
        "random_access_rate",
        "update/s",
        9,
        "random updates of the memory of all processes",
    ),
    "StarSTREAM_Triad": (
        "stream_triad_star_bandwidth",
        "B/s",
        9,
        "STREAM triad of one process while all work",
    ),
    "SingleSTREAM_Triad": (
        "stream_triad_single_bandwidth",
        "B/s",
        9,
        "STREAM triad of one process alone",
    ),
    "MPIFFT_Gflops": ("fft_rate", "Gflop/s", 0, "Fourier transform over all processes"),
    "MinPingPongLatency_usec": (
        "ping_pong_latency_min",
        "s",
        -6,
        "least latency between two processes",
    ),
    "AvgPingPongLatency_usec": (
        "ping_pong_latency_mean",
        "s",
        -6,
        "mean latency between two processes",
    ),
    "MaxPingPongLatency_usec": (
        "ping_pong_latency_max",
        "s",
        -6,
        "largest latency between two processes",
    ),
    "MinPingPongBandwidth_GBytes": (
        "ping_pong_bandwidth_min",
        "B/s",
        9,
        "least bandwidth between two processes",
    ),
    "AvgPingPongBandwidth_GBytes": (
        "ping_pong_bandwidth_mean",
        "B/s",
        9,
        "mean bandwidth between two processes",
    ),
    "MaxPingPongBandwidth_GBytes": (
        "ping_pong_bandwidth_max",
        "B/s",
        9,
        "largest bandwidth between two processes",
    ),
    "NaturallyOrderedRingLatency_usec": (
        "natural_ring_latency",
        "s",
        -6,
        "latency in a ring in the order of the ranks",
    ),
    "NaturallyOrderedRingBandwidth_GBytes": (
        "natural_ring_bandwidth",
        "B/s",
        9,
        "bandwidth in a ring in the order of the ranks",
    ),
    "RandomlyOrderedRingLatency_usec": (
        "random_ring_latency",
        "s",
        -6,
        "latency in a ring in random order",
    ),
    "RandomlyOrderedRingBandwidth_GBytes": (
        "random_ring_bandwidth",
        "B/s",
        9,
        "bandwidth in a ring in random order",
    ),
}
_SETTINGS = {
    "CommWorldProcs": "processes",
    "HPL_N": "N",
    "HPL_NB": "NB",
    "HPL_nprow": "P",
    "HPL_npcol": "Q",
}


def results(text: str) -> list[Result]:
    """One result for each run in the file (HPCC appends), with its processes and HPL's N, NB, P and
    Q.

    What was not measured has no reading. Raises Unreadable when no run has a reading.
    """
    parts = _TITLE.split(text.replace("\r", ""))
    runs = [part for part in parts if _TITLE.match(part) or "\nEnd of Summary section." in part]
    run_results = [_result(number, run) for number, run in enumerate(runs, start=1)]
    if not run_results:
        raise absent("hpcc", text, "an output of HPCC")
    return usable(run_results, "an output of HPCC without a usable result: ")


def _result(number: int, run: str) -> Result:
    section = _section(run, "Summary")
    pairs = _VALUE.findall(section)
    summary = dict(pairs)
    if not summary:
        reason = "HPCC did not reach the end of its summary: stopped or cut off"
        return refused(Cut(reason), {"run": number})
    numbers = {name: value for name, value in summary.items() if _NUMBER.fullmatch(value)}
    given = {ours: numbers.get(theirs, "") for theirs, ours in _SETTINGS.items()}
    sizes = {name: int(size) for name, size in given.items() if size.isdigit()}
    lines = sum(bool(line.strip()) and not _VALUE.match(line) for line in section.splitlines())
    # HPCC prints each of them, those that it did not measure too.
    lost = [name for name in (*_SETTINGS, *_QUANTITIES) if name not in numbers]
    printed = _section(run, "HPL")
    rows = [row for part in hpl.runs(printed) for row in part.rows]
    ran = float(numbers.get("HPL_Tflops", "0")) > 0
    notes = [
        not_understood(lines, "lines of the summary"),
        f"the summary has no number for {', '.join(lost)}" if lost else "",
        "HPL's own part, with its residual check, is missing" if ran and not rows else "",
    ]

    def read() -> Readings:
        if len(summary) < len(set(pairs)):
            raise Contradictory("two values for one name in HPCC's summary: runs are mixed")
        if "Success" not in summary:
            raise Cut("HPCC's line Success is missing: it alone says whether a part failed")
        if summary["Success"] == "0":
            raise Failed("HPCC says Success=0: one of its parts failed")
        if summary["Success"] != "1":
            raise Contradictory(
                f"HPCC prints Success={summary['Success']}, which is neither 0 nor 1"
            )
        _require_sound(numbers, sizes, rows)
        readings = {}
        for theirs, (ours, _, power, _) in _QUANTITIES.items():
            value = float(Decimal(numbers.get(theirs, "0")).scaleb(power))
            # HPCC prints -1, and for some parts 0, where it measured nothing.
            if value > 0:
                readings[ours] = value
        if not readings:
            raise Failed("nothing was measured")
        return readings

    return attempt(read, {"run": number, **sizes}, "; ".join(filter(None, notes)))


def _require_sound(numbers: dict[str, str], sizes: dict[str, int], rows: Sequence[hpl.Row]) -> None:
    """Raises Unreadable where a summary contradicts itself, or HPL, by the `rows` that it printed
    before, computed wrongly.
    """
    if 0 in sizes.values():
        nothing = ", ".join(name for name, size in sizes.items() if not size)
        raise Contradictory(f"HPCC prints {nothing} = 0, which no run has")
    if sizes.get("P", 1) * sizes.get("Q", 1) > sizes.get("processes", math.inf):
        raise Contradictory("HPL's process grid is larger than HPCC's number of processes")
    try:
        for row in rows:
            hpl.readings(row)
    except Unreadable as refusal:
        raise KINDS[refusal.kind](f"in HPL's part, {refusal}") from None
    rate, time = (numbers.get(name, "0") for name in ("HPL_Tflops", "HPL_time"))
    has_rate = "N" in sizes and float(rate) > 0 and float(time) > 0
    if has_rate and not rate_agrees(hpl.operations(sizes["N"]) / 1e12, time, rate):
        raise Contradictory("HPL's rate in HPCC's summary contradicts its N and time")


def _section(run: str, name: str) -> str:
    """What stands between the lines that begin and end a section, or empty."""
    head, tail = f"Begin of {name} section.\n", f"\nEnd of {name} section."
    start = run.find(head)
    end = run.find(tail, start)
    return run[start + len(head) : end] if 0 <= start < end else ""


TOOL = only_read(
    "hpcc",
    results,
    readings={
        name: Quantity(f"HPCC: {meaning}", unit) if meaning else hpl.READINGS[name]
        for name, unit, _, meaning in _QUANTITIES.values()
    },
    marks=(
        Mark(r"HPC Challenge Benchmark version|^End of Summary section\.", "an output of HPCC"),
    ),
    contains=("hpl",),
)
