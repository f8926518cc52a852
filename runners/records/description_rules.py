"""Rules for values: the types of descriptions (`analysis.descriptions`) are made from them, and
what was kept on disk is held against them (`typed_json`)."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Rule:
    """What a value must be: in words; one of these types; a number finite and within bounds, a text
    one of `values`, as the whole regular expression `pattern`, or else not empty. With `or_unknown`
    it may also be NaN or empty."""

    words: str
    kinds: tuple[type, ...]
    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf
    values: tuple[str, ...] = ()
    pattern: str = ""
    or_unknown: bool = False

    def allows(self, value: Any) -> bool:
        """Whether a value follows the rule."""
        if type(value) not in self.kinds:
            return False
        if isinstance(value, str):
            if self.values:
                return value in self.values
            return bool(re.fullmatch(self.pattern or "(?s:.+)", value)) or self.or_unknown
        if value != value:  # NaN
            return self.or_unknown
        return self.least <= value <= self.most and self.above < value < self.below


def one_of(values: Iterable[str]) -> Rule:
    """One of these words."""
    words = tuple(values)
    return Rule(f"one of {', '.join(words)}", (str,), values=words)


def up_to(most: int) -> Rule:
    """A count that something is listed or tried by, so that a slip does not take all memory or
    time.
    """
    return Rule(f"a whole number from 1 to {most}", (int,), least=1, most=most)


COUNT = Rule("a whole number from 1", (int,), least=1)
BLOCKS = RUNS = up_to(1000)
POSITIVE = Rule("a number above 0", (int, float), above=0)
WHOLE = Rule("a whole number from 0", (int,), least=0)
NOT_NEGATIVE = Rule("a number from 0", (int, float), least=0)
REAL = Rule("a number", (int, float))
NAME = Rule("a name", (str,))
NODES = Rule("nodes like 1,2,3", (int, str))
YES_OR_NO = Rule("true or false", (bool,))
