"""SimGrid's SMPI: the modelled platform, and the command line that runs an MPI program on it."""

import math
from pathlib import Path
from typing import Any, Iterable, List, Mapping, Sequence

from runners import two_level
from runners.testbeds import tree

_PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="node" suffix="" radical="1-{nodes}" speed="1Gf"
           bw="{bandwidth:g}Bps" lat="{half_latency:g}s" sharing_policy="SPLITDUPLEX"{backplane}/>
</platform>
"""
_BACKPLANE = ' bb_bw="{bandwidth:g}Bps" bb_lat="0s" bb_sharing_policy="SHARED"'

_OPTIONS = {
    # Time passes only by what the shim charges and by messages, never by what this machine needs.
    "smpi/host-speed": "1Gf",
    "smpi/simulate-computation": "no",
    # Reading the clock or asking for a message costs nothing: each would be an event of its own.
    "smpi/wtime": "0",
    "smpi/iprobe": "0",
    # Rate and latency are those of the platform, not of the cluster on which SimGrid was calibrated.
    "smpi/bw-factor": "0:1.0",
    "smpi/lat-factor": "0:1.0",
    "network/weight-S": "0",
    "network/crosstraffic": "0",
    # Up to 64 KiB a message leaves before its receiver is ready, as with TCP's buffers.
    "smpi/async-small-thresh": "65536",
    "smpi/send-is-detached-thresh": "65536",
    "smpi/display-timing": "no",
}


def platform(nodes: int, network: Mapping[str, Any]) -> str:
    """The platform file of `nodes` nodes on one switch, each with a full-duplex link of its own, or on a tree.

    `network` has `bandwidth` [B/s of payload] and `latency` [s from one node to another], and may have a
    `backplane` [B/s] that all links share, unless it is infinite; or a `tree`, the table of `two_level.from_table`,
    whose rates hold between the switches and whose node count is that of a whole cluster, not of this job.
    Raises FalloffError as `two_level.from_table` does.
    """
    if "tree" in network:
        own = {"nodes": nodes, "node_bandwidth": network["bandwidth"], "latency": network["latency"]}
        return tree.platform(two_level.from_table({**network["tree"], **own}))
    backplane = network.get("backplane", math.inf)
    shared = "" if math.isinf(backplane) else _BACKPLANE.format(bandwidth=backplane)
    return _PLATFORM.format(
        nodes=nodes, bandwidth=network["bandwidth"], half_latency=network["latency"] / 2, backplane=shared
    )


def hosts(order: Iterable[int]) -> str:
    """The host file: a line for each rank with its node, counted from 1."""
    return "".join(f"node{node}\n" for node in order)


def smpirun(ranks: int, clock: Path, program: Sequence[str]) -> List[str]:
    """The command line for one rank on each node, in a folder with `platform.xml` and `hosts`.

    `clock` is noclock.so: with it SMPI does not ask the kernel for CPU times that it then ignores.
    """
    return [
        "smpirun",
        *("-wrapper", f"env LD_PRELOAD={clock}"),
        *("-np", str(ranks), "-hostfile", "hosts", "-platform", "platform.xml"),
        *(f"--cfg={name}:{value}" for name, value in _OPTIONS.items()),
        "--log=root.thres:warning",
        *program,
    ]
