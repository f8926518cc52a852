"""Rules for the values of settings, each with what a value must be, in words."""

import math
from collections.abc import Iterable
from typing import Any, Callable

# A test of a value, and the requirement in words.
Rule = tuple[Callable[[Any], bool], str]


def number(meaning: str, *kinds: type) -> Rule:
    """A number above 0 of one of these kinds."""
    return lambda value: type(value) in kinds and 0 < value < math.inf, meaning


def one_of(values: Iterable[str]) -> Rule:
    """One of these words."""
    words = list(values)
    return lambda value: value in words, f"one of {', '.join(words)}"


COUNT = number("a whole number from 1", int)
# These are limited because a plan lists every trial, and a trial every run.
BLOCKS = RUNS = (
    lambda value: type(value) is int and 1 <= value <= 1000,
    "a whole number from 1 to 1000",
)
POSITIVE = number("a number above 0", int, float)
WHOLE: Rule = (lambda value: type(value) is int and value >= 0, "a whole number from 0")
NOT_NEGATIVE: Rule = (
    lambda value: type(value) in (int, float) and 0 <= value < math.inf,
    "a number from 0",
)
REAL: Rule = (
    lambda value: type(value) is int or type(value) is float and math.isfinite(value),
    "a number",
)
NAME: Rule = (lambda value: isinstance(value, str) and bool(value), "a name")
NODES: Rule = (
    lambda value: type(value) is int or isinstance(value, str) and bool(value),
    "nodes like 1,2,3",
)
YES_OR_NO: Rule = (lambda value: isinstance(value, bool), "true or false")
