"""Measurements that other work can only spoil, never make better: alone on the machine, and until
one is good; waiting.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")
PATIENCE_S = 60

alone = pytest.mark.alone  # no other test runs meanwhile: conftest.py


def repeated(measure: Callable[[], T], good: Callable[[T], bool], at_least: int = 1) -> list[T]:
    """What it gives in one measurement after another, until one is good or a minute is over.

    Skips when none was and the hypervisor gave others more than a tenth of our time: that shows
    nothing.
    """
    begun, before, values = time.monotonic(), _wanted_and_stolen(), []
    while len(values) < at_least or not any(map(good, values)):
        values.append(measure())
        if time.monotonic() - begun > PATIENCE_S and not any(map(good, values)):
            wanted, stolen = (now - then for now, then in zip(_wanted_and_stolen(), before))
            if stolen > 0.1 * wanted:
                pytest.skip(
                    f"other machines took {stolen / wanted:.0%} of the time of ours; measured "
                    f"were {values}"
                )
            break
    return values


def within(seconds: float, holds: Callable[[], object]) -> bool:
    """Whether something comes to hold in so many seconds."""
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(holds())


def _wanted_and_stolen() -> tuple[int, int]:
    """Ticks so far in which something here was ready to run, and those of them in which others
    ran.
    """
    times = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
    user, nice, system, _, _, interrupts, soft_interrupts, stolen = times
    return user + nice + system + interrupts + soft_interrupts + stolen, stolen
