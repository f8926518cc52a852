"""Of which kind a refusal is: every real output is damaged in one way after another, and a false
reason fails.

Of what the whole output is refused for itself, its parts may be refused too.
"""

import re
from pathlib import Path

import pytest
import recorded

import runners
from runners import outputs
from runners.records.record import KINDS, Unreadable
from runners.tools import hpcc, names, tool_named

CASES = recorded.cases()
CUTS, NUMBERS, LINES = 120, 200, 100  # of each output, at most so many
NUMBER = re.compile(r"(?<![\w.^:-])\d+(?:\.\d+)?(?![\w^:.])")
# Runs of these need moments and windows in common, and that there are none is what they say
# themselves.
TOLD_BY_THE_TOOL = {"fanout": {"failed"}, "token_exchange": {"failed"}}
# A table of flows and datagrams by size are reports of iperf3.
ALIKE = {("iperf3", "udp_sizes"), ("udp_sizes", "iperf3")}


def tool(case):
    """The tool whose folder the case lies in."""
    return case.split("/")[0]


def spread(items, most):
    """At most so many of the items, spread over all of them."""
    return items[:: -(-len(items) // most) or 1]


def false_kinds(case, damaged, true_ones):
    """The kinds of a damaged output's refusals that are none of the true ones and not the whole
    output's own.

    What is too short to be known for its tool's may be called foreign.
    """
    strange = set(recorded.kinds(tool(case), damaged)) - set(true_ones)
    if not strange:
        return strange
    own = set(recorded.kinds(tool(case), recorded.text(case)))
    if not outputs.is_output_of(tool(case), damaged):
        own.add("foreign")
    return strange - own


@pytest.mark.few(60)
@pytest.mark.parametrize("case", CASES)
def test_what_is_cut_off_is_called_cut(case):
    """At places all over the output, in the middle of lines and of numbers."""
    text = recorded.text(case)
    for end in spread(range(len(text)), CUTS):
        assert not false_kinds(case, text[:end], ["cut"]), text[:end][-80:]


@pytest.mark.few(40)
@pytest.mark.parametrize("case", CASES)
def test_what_lacks_a_line_is_called_cut_or_contradictory(case):
    """Whichever line is lost, or printed twice: nothing else is wrong with it. Without its heading
    it may be of a version that is not read."""
    kinds = ["cut", "contradictory", "unsupported"]
    lines = recorded.text(case).splitlines(keepends=True)
    for place in spread(range(len(lines)), LINES):
        for damaged in (lines[:place] + lines[place + 1 :], lines[: place + 1] + lines[place:]):
            assert not false_kinds(case, "".join(damaged), kinds), lines[place]


@pytest.mark.few(40)
@pytest.mark.parametrize("case", CASES)
def test_what_has_another_number_is_called_contradictory(case):
    """Whichever number is another one: where others contradict it, that is said."""
    text = recorded.text(case)
    for match in spread(list(NUMBER.finditer(text)), NUMBERS):
        first, *rest = match[0]
        other = "".join([str((int(first) + 3) % 9 + 1), *rest])
        damaged = text[: match.start()] + other + text[match.end() :]
        true_ones = {"contradictory"} | TOLD_BY_THE_TOOL.get(tool(case), set())
        assert not false_kinds(case, damaged, true_ones), (match[0], other, match.start())


@pytest.mark.parametrize("name", names())
def test_what_another_tool_printed_is_called_foreign(name):
    """Every output of every other tool."""
    for case in CASES:
        if tool(case) != name and (tool(case), name) not in ALIKE:
            assert recorded.kinds(name, recorded.text(case)) == ["foreign"], case


@pytest.mark.parametrize("name", names())
def test_nothing_is_called_cut_and_prose_foreign(name):
    """An empty output ended before it began; a letter is no output."""
    for nothing in ("", "\n", " \n\n"):
        assert recorded.kinds(name, nothing) == ["cut"]
    assert recorded.kinds(name, "Dear all,\nthe cluster is down.\n") == ["foreign"]


def test_every_refusal_has_a_kind():
    """No module raises the class that has none."""
    assert set(KINDS) == {"cut", "contradictory", "foreign", "unsupported", "failed"}
    assert all(issubclass(each, Unreadable) and each.kind == kind for kind, each in KINDS.items())
    for file in Path(runners.__file__).parent.rglob("*.py"):
        assert "raise Unreadable(" not in file.read_text(encoding="utf-8"), file.name


# What real files have been damaged by.
INSIDE = [
    ("osu/5.4.3-latency", "osu/5.4.3-latency"),
    ("osu/5.4.3-latency", "osu/2.1-bandwidth"),
    ("imb/4.0-pingpong", "imb/2021.3-pingpong"),
]


@pytest.mark.parametrize(("outer", "inner"), INSIDE)
def test_an_output_inside_a_table_is_seen(outer, inner):
    """Wherever in a table another output stands: neither gives a number that is not its own, and
    neither is short without a word."""
    lines, other = recorded.text(outer).splitlines(keepends=True), recorded.text(inner)
    whole = [recorded.usable(tool(outer), text)[0].readings for text in ("".join(lines), other)]
    for place in range(len(lines)):
        mixed = "".join(lines[:place]) + other + "".join(lines[place:])
        assert set(recorded.kinds(tool(outer), mixed)) <= {"contradictory", "cut"}
        for result in recorded.usable(tool(outer), mixed):
            assert result.readings in whole, lines[place]


@pytest.mark.parametrize("case", recorded.cases("osu") + recorded.cases("imb"))
def test_a_table_says_which_sizes_it_lacks(case):
    """A lost row of the first table between two others is noted with the sizes beside it."""
    text = recorded.text(case)
    (whole, *_) = recorded.usable(tool(case), text)
    sizes = whole.readings["message_size"]
    lines = text.splitlines(keepends=True)
    for before, size, after in zip(sizes[1:], sizes[2:], sizes[3:]):
        place, *_ = (n for n, line in enumerate(lines) if line.split()[:1] == [str(size)])
        result, *_ = recorded.usable(tool(case), "".join(lines[:place] + lines[place + 1 :]))
        assert f"between {before} and {after}" in result.note and "between" not in whole.note


@pytest.mark.parametrize("case", recorded.cases("hpcc"))
def test_a_summary_says_which_values_it_lacks(case):
    """A lost value of HPCC's summary is noted by its name; without Success nothing is known of its
    parts, and none is read.
    """
    lines = recorded.text(case).splitlines(keepends=True)
    begin = lines.index("Begin of Summary section.\n")
    assert not tool_named("hpcc").results("".join(lines))[0].note
    names, noted = {*hpcc._SETTINGS, *hpcc._QUANTITIES}, 0
    for place in range(begin + 1, lines.index("End of Summary section.\n")):
        name = lines[place].partition("=")[0]
        damaged = "".join(lines[:place] + lines[place + 1 :])
        if name == "Success":
            assert recorded.kinds("hpcc", damaged) == ["cut"]
            continue
        (result,) = tool_named("hpcc").results(damaged)
        is_read = name in names
        assert (name in result.note) == is_read, name
        noted += is_read
    assert noted == len(names)


def test_a_first_interval_is_no_run_without_a_word():
    """iperf 2.0 with -i, cut off anywhere: what is read of it is the whole run, or says that it may
    be an interval.
    """
    text = recorded.text("iperf2/2.0-intervals")
    (whole,) = recorded.usable("iperf2", text)
    shorter = 0
    for end in range(len(text)):
        for result in recorded.usable("iperf2", text[:end]):
            if result.settings["duration_s"] != whole.settings["duration_s"]:
                assert "may be the first 5 s" in result.note
                shorter += 1
    assert shorter and "may be" not in whole.note
