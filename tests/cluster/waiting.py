"""Waiting for what daemons do in their own time."""

import time
from collections.abc import Callable

_PAUSE_S = 0.2  # to ask is to start processes, which should not slow down what is waited for


def until(holds: Callable[[], object], what: str, limit_s: float = 30) -> None:
    """Return once `holds()` is true; raises AssertionError that says `what` when that takes longer than `limit_s`."""
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline, f"{what}: not within {limit_s:g} s"
        time.sleep(_PAUSE_S)


def until_none(running: Callable[[], list[str]], limit_s: float = 30) -> None:
    """Return once nothing is `running()`; raises AssertionError that lists what still does after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while left := running():
        assert time.monotonic() < deadline, f"still running after {limit_s:g} s: {left}"
        time.sleep(_PAUSE_S)
