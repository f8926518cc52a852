"""How much of a node's time others take: the same work over and over, on all of its processors at once.

usage: python3 - SECONDS < node_noise.py

Fixed work quanta (Sottile and Minnich, Analysis of microbenchmarks for performance tuning of clusters, 2004):
a processor that is left alone needs the same time for each. A process is bound to each processor that may be
used, since a daemon would else run where nothing is measured. Prints a JSON object, `processors`: a list of
summaries.
"""

import gc
import json
import os
import sys
import time
from typing import Any, Dict, List

_LOOPS = 40000  # of a quantum: about a millisecond, of which one tick of the kernel's timer is little
_DISTURBED = 1.1  # times the median, beyond the interpreter's own scatter


def quanta(seconds: float) -> List[float]:
    """The durations in s of quanta of work, one after the other for so many seconds."""
    gc.disable()
    took, now = [], time.perf_counter()
    end = now + seconds
    while now < end:
        begin = now
        for _ in range(_LOOPS):
            pass
        now = time.perf_counter()
        took.append(now - begin)
    return took


def summary(took: List[float]) -> Dict[str, float]:
    """The distribution of durations in s; `noise_share` is the share of all time by which the disturbed ones exceed
    the median."""
    ordered, last = sorted(took), len(took) - 1
    median = ordered[last // 2]
    lost = sum(duration - median for duration in took if duration > _DISTURBED * median)
    return {
        "quanta": len(took),
        "least_s": ordered[0],
        "median_s": median,
        "p99_s": ordered[last * 99 // 100],
        "most_s": ordered[-1],
        "noise_share": lost / sum(took),
    }


def on_each(processors: List[int], seconds: float) -> List[Dict[str, Any]]:
    """The summaries of all processors, measured at the same time, each by a process that is bound to it."""
    pipes = []
    for processor in processors:
        reads, writes = os.pipe()
        if os.fork() == 0:
            try:
                os.sched_setaffinity(0, {processor})
                os.write(writes, json.dumps({"processor": processor, **summary(quanta(seconds))}).encode())
            finally:
                os._exit(0)  # the rest of this script is the parent's
        os.close(writes)
        pipes.append(reads)
    said = []
    for reads in pipes:
        with open(reads, encoding="ascii") as pipe:
            said.append(pipe.read())
        os.wait()
    return [json.loads(text) for text in said if text]


if __name__ == "__main__":
    print(json.dumps({"processors": on_each(sorted(os.sched_getaffinity(0)), float(sys.argv[1]))}))
