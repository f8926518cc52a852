"""Which cases of a test run always, and which only in `make test-all`."""

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

import pytest

Case = TypeVar("Case")


def the_rest_is_long(cases: Iterable[Case], always: Collection[Case]) -> list:
    """The cases of a test, all but these marked as long."""
    return [
        case if case in always else pytest.param(case, marks=pytest.mark.long) for case in cases
    ]


def firsts(cases: Sequence[str]) -> list[str]:
    """The first case of each folder."""
    return list({case.split("/")[0]: case for case in reversed(cases)}.values())
