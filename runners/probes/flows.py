#!/usr/bin/python3
"""Flows between the hosts of a platform, simulated by SimGrid: the time until all of a run have
arrived, and the mean time.

usage: flows BYTES   (in a folder with platform.xml and flows.txt)

A line of flows.txt is a run: FROM-TO for each flow, by the hosts' numbers. All flows of a run start
at once and carry BYTES bytes each; a run begins when the one before has ended. Debian's
python3-simgrid works only with Debian's Python.
"""

import sys
import time
from pathlib import Path

from simgrid import (  # type: ignore[import-not-found]  # of Debian's Python
    Actor,
    Comm,
    Engine,
    Host,
    simgrid_version,
)

# A fluid model: a flow gets its fair share of the links on its way, at once.
OPTIONS = {
    "network/model": "CM02",
    "network/crosstraffic": "0",
    "network/weight-S": "0",
    "network/TCP-gamma": "0",
}


def simulate(runs: list[str], size: int) -> None:
    """Simulate the flows of each run and print its row: makespan and mean of the flows' times, in
    s."""
    for number, run in enumerate(runs, start=1):
        begin, going = Engine.clock, []
        for flow in run.split():
            source, sink = (Host.by_name(f"node{end}") for end in flow.split("-"))
            going.append(Comm.sendto_async(source, sink, size))
        Comm.wait_all(going)
        took = [flow.finish_time - begin for flow in going]
        print(f"{number:3}  {len(took):6}  {max(took):.15e}  {sum(took) / len(took):.15e}")


def peak_memory() -> int:
    """The peak memory of this process in bytes; the kernel's maxrss would include that of the
    program that started it."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def main(size: int) -> None:
    """Simulate the runs in this folder and print the table, followed by the simulator's own time
    and memory."""
    settings = [f"--cfg={name}:{value}" for name, value in OPTIONS.items()]
    engine = Engine(["flows", "--log=root.thres:warning", *settings])
    engine.load_platform("platform.xml")
    runs = Path("flows.txt").read_text(encoding="utf-8").splitlines()
    print(
        f"flows: {len(engine.all_hosts)} nodes, {len(runs)} runs, {size} bytes each, "
        f"by SimGrid {simgrid_version}"
    )
    print("run   flows  makespan s             mean s")
    Actor.create("flows", engine.all_hosts[0], simulate, runs, size)
    engine.run()
    print(f"simulator: {time.process_time():.3f} CPU s, {peak_memory() / 1e6:.1f} MB")
    print("end of flows")


if __name__ == "__main__":
    main(int(sys.argv[1]))
