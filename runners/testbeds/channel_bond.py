"""Channel bonding: several interfaces of a place as one, over which frames leave in turn (round robin)."""

import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Callable, List, Optional, Sequence

from runners.testbeds import links, netns, programs, taps


@lru_cache(maxsize=None)
def has_driver() -> bool:
    """Whether the kernel has the bonding driver; it is tried in a namespace that ends with the attempt."""
    attempt = ["unshare", "--net", "ip", "link", "add", "bond", "type", "bond", "mode", "balance-rr"]
    return subprocess.run(attempt, capture_output=True).returncode == 0


def join(
    space: Path,
    name: str,
    interfaces: Sequence[str],
    start: Callable[[str, List[str]], programs.Started],
) -> Optional[programs.Started]:
    """Join `interfaces` of a namespace to a new one, `name`, and have it up: by the kernel, else by a program.

    `start(program, arguments)` starts it; None where the kernel does it. Raises FalloffError when it ends at once.
    """
    if has_driver():
        lines = [f"link add {name} type bond mode balance-rr"]
        # The driver takes in only what is down, and has it up when it is up itself.
        lines += [line for own in interfaces for line in (f"link set {own} down", f"link set {own} master {name}")]
        program = None
    else:
        program = taps.awaited(start("channel_bond", [f"{space}/net", name, *interfaces]), space, name)
        # Else the kernel would answer for the bond's address by the interface that the question came in by.
        lines = [f"link set {own} arp off" for own in interfaces]
    netns.run([links.batch("ip", space, [*lines, f"link set {name} up"])])
    netns.run([netns.Invocation(space, ["ethtool", "-K", name, "gro", "on"])])
    return program
