"""`make fuzz`: real outputs, damaged in every way; a parser reads them rightly or refuses them in words.

Nothing but FalloffError may be raised. Where lines of one run are lost, doubled or moved, so that all digits are as they
were, each result has to be one of the whole outputs': the same numbers together, though some may be missing. Not asked for
is what no reader could tell: whether the rest of two runs is one, or one of several streams all there was.

FALLOFF_FUZZ is the number of cases for each parser; without it there are as many as a test suite can afford.
"""

import json
import os
import re
from functools import cache

import pytest
import recorded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runners import hpl, outputs, runner_named
from runners.record import FalloffError

IN_SUITE = 200
CASES = int(os.environ.get("FALLOFF_FUZZ", IN_SUITE))
SAME_CASES = "FALLOFF_FUZZ" not in os.environ
TOOLS = sorted({case.split("/")[0] for case in recorded.cases()})
LARGEST = (
    60_000  # characters of an output that is damaged; what is longer takes too long for many cases
)
HUGE = ["9" * 400, "1e999", "-1", "nan", "inf", "0", "0.0", "1.5e-400"]
LETTERS = st.sampled_from(list('xyz:;,%[]{}()=/ \t\0\ufffd\x1b\r#-+.e"'))


# Streams, or an interval of them, that would be a whole run where the rest is lost.
SEVERAL_STREAMS = ("3.12-text-parallel", "2.1.8-parallel", "2.0-intervals")
# Of what is there, right whichever part that is; not what the whole output gives. A residual names no row: that one lost
# block of lines brings no other's is asked in test_first_contact.py.
OF_WHAT_IS_THERE = (
    "rtt_mean",
    "goodput_interval",
    "machine_cpu_sender",
    "machine_cpu_receiver",
    "hpl_residual",
)


@cache
def texts(tool):
    """The recorded outputs of a tool that are short enough."""
    return [text for text in map(recorded.text, recorded.cases(tool)) if len(text) <= LARGEST]


@cache
def single_runs(tool):
    """Those that are one run with a usable result."""
    found = []
    for case in recorded.cases(tool):
        text = recorded.text(case)
        if len(text) > LARGEST or case.endswith(SEVERAL_STREAMS) or not listed(tool, text):
            continue
        is_one = len(hpl.runs(text)) == 1 and "End of Tests." in text
        if is_one if tool == "hpl" else len(runner_named(tool).results(text)) == 1:
            found.append(text)
    return found


@cache
def whole_rows(tool):
    """Every row of every whole output."""
    outputs = [*texts(tool), *single_runs(tool)]
    return {row for text in outputs for result in listed(tool, text) for row in rows(result)}


@st.composite
def by_lines(draw, tool):
    """One run of which lines are lost, doubled or moved."""
    lines = draw(st.sampled_from(single_runs(tool))).splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 3))):
        begin, end = sorted(draw(st.integers(0, len(lines))) for _ in range(2))
        block = lines[begin:end]
        match draw(st.sampled_from(["lose", "double", "move"])):
            case "lose":
                del lines[begin:end]
            case "double":
                lines[begin:begin] = block
            case "move":
                del lines[begin:end]
                place = draw(st.integers(0, len(lines)))
                lines[place:place] = block
    return "".join(lines)


@st.composite
def by_letters(draw, tool):
    """An output with text overwritten, cut out and inserted anywhere, digits too."""
    text = draw(st.sampled_from(texts(tool)))
    for _ in range(draw(st.integers(1, 5))):
        place, length = draw(st.integers(0, len(text))), draw(st.integers(0, 40))
        inserted = draw(st.text(LETTERS, max_size=6) | st.sampled_from(HUGE))
        numbers = [match.span() for match in re.finditer(r"\d[\d.]*", text[place : place + 400])]
        if numbers and draw(st.booleans()):  # a whole number, so that the line still looks like one
            begin, end = draw(st.sampled_from(numbers))
            text = text[: place + begin] + inserted + text[place + end :]
        else:
            text = text[:place] + inserted + text[place + length :]
    return text


def listed(tool, text):
    """The usable results of a text, empty when it is refused; raises whatever is not FalloffError."""
    outputs.describe(text, tool)
    outputs.complaint(text)
    try:
        found = runner_named(tool).results(text)
    except FalloffError:
        return []
    return [result for result in found if result.readings]


def rows(result):
    """A result as rows: of lists that belong together one for each place, of single numbers one for all."""
    values = {
        reading.name: reading.value
        for reading in result.readings
        if reading.name not in OF_WHAT_IS_THERE
    }
    lists = {name: value for name, value in values.items() if isinstance(value, list)}
    single = frozenset((name, shown(value)) for name, value in values.items() if name not in lists)
    found = [single] if single else []
    for place in range(max(map(len, lists.values()), default=0)):
        there = {name: shown(value[place]) for name, value in lists.items() if place < len(value)}
        found.append(frozenset(there.items()))
    return found


def shown(value):
    """A value to compare: the order of lines may change a computed number's last digits."""
    return f"{value:.9g}" if isinstance(value, float) else repr(value)


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if single_runs(tool)])
@settings(
    max_examples=CASES,
    deadline=None,
    derandomize=SAME_CASES,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_digits_that_were_not_touched_give_no_other_number(tool, data):
    """Each row of a damaged output is a part of a row of a whole one."""
    own = whole_rows(tool)
    text = data.draw(by_lines(tool))
    for result in listed(tool, text):
        for row in rows(result):
            assert row in own or any(row <= other for other in own), sorted(row)


@pytest.mark.parametrize("tool", TOOLS)
@settings(
    max_examples=CASES,
    deadline=None,
    derandomize=SAME_CASES,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_whatever_is_damaged_is_read_or_refused_in_words(tool, data):
    """No exception but ours, and no number that JSON cannot hold."""
    for result in listed(tool, data.draw(by_letters(tool))):
        for reading in result.readings:
            json.dumps(reading.value, allow_nan=False)
