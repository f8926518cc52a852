"""`make fuzz`: real outputs, damaged in every way; a parser reads them rightly or refuses them in
words.

Nothing but FalloffError may be raised. Where lines of one run are lost, doubled or moved, so that
all digits are as they were, each result has to be one of the whole outputs': the same numbers
together, though some may be missing. Not asked for is what no reader could tell: whether the rest
of two runs is one, or one of several streams all there was.

FALLOFF_FUZZ is the number of cases for each parser; without it there are as many as a test suite
can afford.
"""

import json
import os
import re
from functools import cache

import pytest
import recorded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runners import outputs
from runners.tools import hpl, tool_named

fuzzed = settings(
    max_examples=int(os.environ.get("FALLOFF_FUZZ", 200)),
    deadline=None,
    derandomize="FALLOFF_FUZZ" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
FOREIGN = (
    "hpcc",
    "hpl",
    "imb",
    "iperf2",
    "iperf3",
    "netperf",
    "osu",
    "ping",
)  # which people have outputs of
TOOLS = sorted({case.split("/")[0] for case in recorded.cases()})
LARGEST = 60_000  # characters: what is longer takes too long for many cases
HUGE = ["9" * 400, "1e999", "-1", "nan", "inf", "0", "0.0", "1.5e-400"]
LETTERS = st.sampled_from(list('xyz:;,%[]{}()=/ \t\0\ufffd\x1b\r#-+.e"'))


@cache
def texts(tool):
    """The recorded outputs of a tool that are short enough."""
    return [text for text in map(recorded.text, recorded.cases(tool)) if len(text) <= LARGEST]


@cache
def single_runs(tool):
    """Those that are one run with a usable result."""
    several = {
        recorded.text(case)
        for case in recorded.cases(tool)
        if case.endswith(recorded.SEVERAL_STREAMS)
    }
    found = [text for text in texts(tool) if text not in several and recorded.usable(tool, text)]
    if tool == "hpl":
        return [text for text in found if len(hpl.runs(text)) == 1 and "End of Tests." in text]
    return [text for text in found if len(tool_named(tool).results(text)) == 1]


@cache
def whole_rows(tool):
    """Every row of every whole output."""
    results = [result for text in texts(tool) for result in recorded.usable(tool, text)]
    return {row for result in results for row in recorded.rows(result)}


@st.composite
def by_lines(draw, tool):
    """One run of which lines are lost, doubled or moved."""
    lines = draw(st.sampled_from(single_runs(tool))).splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 3))):
        begin, end = sorted(draw(st.integers(0, len(lines))) for _ in range(2))
        block, damage = lines[begin:end], draw(st.sampled_from(["lose", "double", "move"]))
        if damage != "double":
            del lines[begin:end]
        if damage != "lose":
            place = draw(st.integers(0, len(lines))) if damage == "move" else begin
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


@pytest.mark.few(2)
@pytest.mark.parametrize("tool", FOREIGN)
@fuzzed
@given(data=st.data())
def test_digits_that_were_not_touched_give_no_other_number(tool, data):
    """Each row of a damaged output is a part of a row of a whole one."""
    own = whole_rows(tool)
    for result in recorded.usable(tool, data.draw(by_lines(tool))):
        for row in recorded.rows(result):
            assert row in own or any(row <= other for other in own), sorted(row)


@pytest.mark.few(4)
@pytest.mark.parametrize("tool", TOOLS)
@fuzzed
@given(data=st.data())
def test_whatever_is_damaged_is_read_or_refused_in_words(tool, data):
    """No exception but ours, and no number that JSON cannot hold."""
    text = data.draw(by_letters(tool))
    outputs.describe(text, tool)
    outputs.complaint(text)
    for result in recorded.usable(tool, text):
        json.dumps(result.readings, allow_nan=False)
