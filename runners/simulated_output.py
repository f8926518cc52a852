"""What a simulated program says of its own simulation, in the table with which it ends."""

import re
from typing import List

from runners.record import Reading

_TABLE = re.compile(r"^Simulated: what each rank did.*?^end of simulated$", re.M | re.S)
_SIMULATOR = re.compile(r"^simulator: (\d{1,12}\.\d{3}) CPU s, (\d{1,12}\.\d) MB$", re.M | re.ASCII)


def readings(stdout: str) -> List[Reading]:
    """simulator_cpu_time [s] and simulator_memory [B] of all nodes' one process; none where it does not say so."""
    table = _TABLE.search(stdout)
    said = _SIMULATOR.search(table[0]) if table else None
    if not said:
        return []
    # Printed with one decimal in millions of bytes.
    memory = round(1e6 * float(said[2]))
    return [Reading("simulator_cpu_time", float(said[1]), "s"), Reading("simulator_memory", memory, "B")]
