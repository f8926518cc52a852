"""Where HPL's time goes: the timers that it prints below a result when it was built with HPL_DETAILED_TIMING."""

import re
from typing import List

from runners.record import Reading

_TIMER = re.compile(r"^(?:\+ )?Max aggregated wall time (?P<name>[a-z ]+?) *(?:\. )*: +(?P<seconds>\d{1,12}\.\d\d)$", re.M)
_PRINTED = {
    "rfact": "hpl_rfact_time",
    "mxswp": "hpl_mxswp_time",
    "update": "hpl_update_time",
    "laswp": "hpl_laswp_time",
    "up tr sv": "hpl_ptrsv_time",
}


def readings(stdout: str) -> List[Reading]:
    """Times [s] of HPL's phases, each the most that any process spent in it; none where they are not printed.

    hpl_rfact_time is the panels' factorisation with hpl_mxswp_time, the search and exchange of pivots;
    hpl_update_time the trailing matrix's update with hpl_laswp_time, its row swaps; and hpl_ptrsv_time the triangular
    solution. With look-ahead they overlap other
    processes' phases, so that they need not add up to the run's time.
    """
    found = {row["name"]: float(row["seconds"]) for row in _TIMER.finditer(stdout)}
    return [Reading(reading, found[name], "s") for name, reading in _PRINTED.items() if name in found]
