"""DGEMM on all nodes at once: the ceiling against which a node's share of HPL's rate is judged."""

import re

from runners.parsing import whole
from runners.records.description_rules import COUNT, POSITIVE
from runners.records.record import (
    Command,
    Contradictory,
    Mark,
    Quantity,
    Result,
    Settings,
    Tool,
)

# Order of the updated matrix: 32 MiB, far beyond the caches, as HPL's trailing matrix is.
ORDER = 2048

# Starting the ranks and the untimed pass, at a small share of a core.
_START_S = 60.0

_HEAD = re.compile(
    r"^dgemm: n = \d{1,18}, k = (?P<K>\d{1,18}), window \S+ s, (?P<nodes>\d{1,18}) ranks$", re.M
)
_RANK = re.compile(r"^ *(\d{1,18}) +(\d{1,12}\.\d{6}) +\d{1,12}\.\d{6} +\d{1,18}$", re.M)


def commands(point: Settings) -> list[Command]:
    """One dgemm over all nodes of the point, with HPL's block size as inner dimension."""
    argv = ("dgemm", str(ORDER), str(point["K"]), str(point["duration_s"]))
    return [Command(argv, ranks=point["nodes"], timeout_s=point["duration_s"] + _START_S)]


def results(text: str) -> list[Result]:
    """dgemm_rate in Gflop/s, a list with one rate for each node in rank order; `nodes` and `K` as
    printed.
    """
    settings = whole("dgemm", text, _HEAD)
    nodes = settings["nodes"]
    ranks = _RANK.findall(text)
    if not nodes or [int(rank) for rank, _ in ranks] != list(range(nodes)):
        raise Contradictory(f"dgemm ran on {nodes} ranks but reports {len(ranks)}")
    rates = [float(rate) for _, rate in ranks]
    return [Result({"dgemm_rate": rates}, settings)]


READINGS = {
    "dgemm_rate": Quantity("DGEMM rate of each node", "Gflop/s", dims=("trial", "node")),
}


TOOL = Tool(
    "dgemm",
    commands,
    results,
    settings={
        "nodes": COUNT,
        "K": COUNT,
        "duration_s": POSITIVE,
    },
    readings=READINGS,
    marks=(Mark(r"^dgemm: n = ", "an output of dgemm"),),
    packages=("libopenblas-dev",),
)
