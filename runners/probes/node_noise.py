"""How much of a node's time others take: the same work over and over, on all of its processors at once.

usage: python3 - SECONDS < node_noise.py

Fixed work quanta (Sottile and Minnich, Analysis of microbenchmarks for performance tuning of clusters, 2004):
a processor that is left alone needs the same time for each. A process is bound to each processor that may be
used, since a daemon would else run where nothing is measured. Prints a JSON object, `processors`: a list of
summaries.
"""

import gc
import json
import multiprocessing
import os
import sys
import time
from typing import Any, Dict, List

# Of a quantum: about a millisecond, of which one tick of the kernel's timer is little
_LOOPS = 40000
_DISTURBED = 1.1  # times the median, beyond the interpreter's own scatter


def quanta(seconds: float) -> List[float]:
    """The durations in s of quanta of work, one after the other for so many seconds."""
    gc.disable()
    durations, now = [], time.perf_counter()
    end = now + seconds
    while now < end:
        begin = now
        for _ in range(_LOOPS):
            pass
        now = time.perf_counter()
        durations.append(now - begin)
    return durations


def summary(durations: List[float]) -> Dict[str, float]:
    """Least, median and longest duration in s; `noise_share` is the share of all time by which the disturbed ones
    exceed the median."""
    ordered = sorted(durations)
    median = ordered[(len(ordered) - 1) // 2]
    lost = sum(duration - median for duration in durations if duration > _DISTURBED * median)
    return {
        "least_s": ordered[0],
        "median_s": median,
        "most_s": ordered[-1],
        "noise_share": lost / sum(durations),
    }


def on(processor: int) -> Dict[str, Any]:
    """The summary of one processor, to which this process is bound."""
    os.sched_setaffinity(0, {processor})
    return {"processor": processor, **summary(quanta(float(sys.argv[1])))}


if __name__ == "__main__":
    processors = sorted(os.sched_getaffinity(0))
    with multiprocessing.get_context("fork").Pool(len(processors)) as pool:
        print(json.dumps({"processors": pool.map(on, processors, chunksize=1)}))
