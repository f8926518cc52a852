"""Hubs: several places on one shared wire, of which one at a time sends."""

from pathlib import Path
from typing import Callable, List, Sequence, Tuple

from runners.testbeds import programs, taps


def lay(
    rate_bit_s: float,
    stations: Sequence[Tuple[Path, str]],
    start: Callable[[str, List[str]], programs.Started],
) -> programs.Started:
    """Lay a wire of `rate_bit_s` and make its stations: an interface of this name in each of these namespaces.

    `start(program, arguments)` starts the program that is the wire. Raises FalloffError when it ends at once.
    """
    words = [word for space, interface in stations for word in (f"{space}/net", interface)]
    return taps.awaited(start("shared_wire", [repr(rate_bit_s), *words]), *stations[-1])
