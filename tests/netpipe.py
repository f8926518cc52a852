"""NetPIPE's ping-pong (Debian's netpipe-tcp) beside token's, on one path of the testbed of paths.

Debian's NetPIPE 3.7.2 repeats its ping-pong for about a tenth of a second, 3 times over, and prints half of the
lowest of the 3 means. The same is made of the rows of token. All programs run on one processor, before all other work:
where the scheduler puts them makes more of a difference than which of the two they are.
"""

import re
from dataclasses import replace

from runners import token_exchange, tools
from runners.record import Command, FalloffError, Trial

REPEATS = {"runs": 3, "window_s": 0.1, "warm_up_s": 0.05}
PORT = 5002  # NPtcp's own
PLACE = ("taskset", "-c", "0", "chrt", "--rr", "10")

ROW = re.compile(r"(\d+) bytes +\d+ times --> +\S+ Mbps in +(\d+\.\d+) usec")


def netpipe(testbed, path: str, size: int) -> float:
    """The round trip [s] of `size` bytes between nodes 1 and 2 of a path, as NetPIPE measures it."""
    only = (
        "-l",
        str(size),
        "-u",
        str(size),
        "-p",
        "0",
    )  # from this size to this size, and none nearby
    receiver = Command(("NPtcp", *only), node=2, background=True, listens=PORT)
    transmitter = Command(("NPtcp", "-h", "{node2}", *only), node=1)
    said = _run(testbed, path, [receiver, transmitter]).stderr
    (row,) = [row for row in ROW.findall(said) if int(row[0]) == size]
    return 2 * float(row[1]) / 1e6


def token(testbed, path: str, size: int) -> float:
    """The same by token: the lowest of the means of its runs."""
    point = {"pairs": 1, "producers": "1", "consumers": "2", "token_bytes": size, **REPEATS}
    said = _run(testbed, path, token_exchange.commands(point)).stdout
    return min(row.mean for row in token_exchange.table(said).rows)


def _run(testbed, path, commands):
    """The last command's execution; raises FalloffError when anything failed."""
    placed = [
        replace(one, argv=(*PLACE, tools.find(one.argv[0], {}), *one.argv[1:])) for one in commands
    ]
    transcript = testbed.run(Trial("bench", "point", "none", 1, 1, {"path": path}), placed)
    failed = [done for done in transcript.executions if done.exit_code != 0]
    if transcript.fault or failed:
        raise FalloffError(
            transcript.fault or f"{failed[0].tool}: {failed[0].stderr or failed[0].stdout}"
        )
    return transcript.executions[-1]
