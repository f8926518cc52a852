"""Rules for the tables of a description, one for each key; every fault is a sentence."""

import math
import re
from typing import Any, Callable, Iterable, List, Mapping, Tuple

from runners.record import unknown_key

# A test of a value, and the requirement in words.
Rule = Tuple[Callable[[Any], bool], str]

# In a table of rules these stand for all other keys: any key, or those of letters, digits and _.
EACH, WORD = "each", "word"

ANYTHING: Rule = (lambda value: True, "")
TABLE: Rule = (lambda value: isinstance(value, dict), "a table")


def text(pattern: str, meaning: str) -> Rule:
    """A text that matches the whole pattern."""
    return lambda value: isinstance(value, str) and bool(re.fullmatch(pattern, value)), meaning


def listing(rule: Rule, meaning: str) -> Rule:
    """A list whose items follow the rule."""
    return lambda value: isinstance(value, list) and all(map(rule[0], value)), meaning


def number(meaning: str, *kinds: type) -> Rule:
    """A number above 0 of one of these kinds."""
    return lambda value: type(value) in kinds and 0 < value < math.inf, meaning


def one_of(values: Iterable[str]) -> Rule:
    """One of these words."""
    known = list(values)
    return lambda value: value in known, f"one of {', '.join(known)}"


def number_up_to(most: int) -> Rule:
    """A whole number from 1."""
    meaning = f"a whole number from 1 to {most}"
    return lambda value: type(value) is int and 1 <= value <= most, meaning


COUNT = number("a whole number from 1", int)
# These are limited because a plan lists every trial, and a trial every run.
BLOCKS = RUNS = number_up_to(1000)
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
SETTING: Rule = (
    lambda value: REAL[0](value) or isinstance(value, (str, bool)),
    "a number, a text, true or false",
)
NAME: Rule = (lambda value: isinstance(value, str) and bool(value), "a name")
NODES: Rule = (
    lambda value: type(value) is int or isinstance(value, str) and bool(value),
    "nodes like 1,2,3",
)
YES_OR_NO: Rule = (lambda value: isinstance(value, bool), "true or false")


def checked(
    rules: Mapping[str, Any], table: Mapping[str, Any], place: str = "", is_whole: bool = True
) -> List[str]:
    """The faults of a table by `rules`: for each key a Rule, or a table of rules. `place` precedes
    each key in messages.

    If `is_whole`, a key without a rule is a fault.
    """
    found = []
    for key, value in table.items():
        rule = rules.get(key) or rules.get(EACH) or rules.get(WORD)
        if WORD in rules and not re.fullmatch(r"\w+", key, re.ASCII):
            found.append(f"{place}{key} must be a name of letters, digits and _")
        elif rule is None and is_whole:
            found.append(unknown_key(place, key, rules))
        elif isinstance(rule, dict) and isinstance(value, dict):
            found += checked(rule, value, f"{place}{key}.", is_whole)
        elif isinstance(rule, dict):
            found.append(f"{place}{key} = {value!r} must be a table")
        elif rule and not rule[0](value):
            found.append(f"{place}{key} = {value!r} must be {rule[1]}")
    return found
