"""`make fuzz`: real outputs, damaged in every way; a parser reads them rightly or refuses them in words.

A case damages one or two recorded outputs. Nothing but FalloffError may be raised. Where the damage leaves all digits as
they were (lines lost, doubled, swapped or mixed with another output's, letters changed), each result has to be one of the
undamaged outputs: the same numbers together, though some may be missing.

FALLOFF_FUZZ is the number of cases for each parser; without it there are as many as a test suite can afford.
"""

import os
import re

import pytest
import recorded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runners import foreign, runner_named
from runners.record import FalloffError

IN_SUITE = 60
CASES = int(os.environ.get("FALLOFF_FUZZ", IN_SUITE))
TOOLS = sorted({case.split("/")[0] for case in recorded.cases()})
LARGEST = (
    60_000  # characters of an output that is damaged; what is longer takes too long for many cases
)
HUGE = ["9" * 400, "1e999", "-1", "nan", "inf", "0", "0.0", "1.5e-400"]
LETTERS = st.sampled_from(list('xyz:;,%[]{}()=/ \t\0\ufffd\x1b\r#-+.e"'))


def texts(tool):
    """The recorded outputs of a tool that are short enough."""
    return [text for text in map(recorded.text, recorded.cases(tool)) if len(text) <= LARGEST]


@st.composite
def by_lines(draw, tool):
    """Lines of one or two outputs: some lost, doubled or swapped, or one output's within the other's."""
    one, other = (draw(st.sampled_from(texts(tool))).splitlines(keepends=True) for _ in range(2))
    lines = list(one)
    for _ in range(draw(st.integers(1, 3))):
        if not lines:
            break
        begin, end = sorted(draw(st.integers(0, len(lines))) for _ in range(2))
        match draw(st.sampled_from(["lose", "double", "move", "mix"])):
            case "lose":
                del lines[begin:end]
            case "double":
                lines[begin:begin] = lines[begin:end]
            case "move":
                block, lines[begin:end] = lines[begin:end], []
                place = draw(st.integers(0, len(lines)))
                lines[place:place] = block
            case "mix":
                first, last = sorted(draw(st.integers(0, len(other))) for _ in range(2))
                lines[begin:end] = other[first:last]
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
    foreign.describe(text, tool)
    foreign.complaint(text)
    try:
        found = runner_named(tool).results(text)
    except FalloffError:
        return []
    return [result for result in found if result.readings]


def columns(result):
    """A result as rows: of lists that belong together one for each place, of single numbers one for all."""
    values = {reading.name: reading.value for reading in result.readings}
    lists = {name: value for name, value in values.items() if isinstance(value, list)}
    single = frozenset((name, repr(value)) for name, value in values.items() if name not in lists)
    length = max(map(len, lists.values()), default=0)
    rows = [
        frozenset((name, repr(value[place])) for name, value in lists.items() if place < len(value))
        for place in range(length)
    ]
    return [single, *rows] if single else rows


@pytest.mark.parametrize("tool", TOOLS)
@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_digits_that_were_not_touched_give_no_other_number(tool, data):
    """Each row of a damaged output is a part of a row of a whole one."""
    own = [row for text in texts(tool) for result in listed(tool, text) for row in columns(result)]
    text = data.draw(by_lines(tool))
    for result in listed(tool, text):
        for row in columns(result):
            assert any(row <= other for other in own), (sorted(row), text[-2000:])


@pytest.mark.parametrize("tool", TOOLS)
@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_is_damaged_is_read_or_refused_in_words(tool, data):
    """No exception but ours, and no number that JSON cannot hold."""
    for result in listed(tool, data.draw(by_letters(tool))):
        for reading in result.readings:
            assert "inf" not in repr(reading.value) and "nan" not in repr(reading.value)
