"""Every recorded output is read, or refused, as the file beside it says; a new pair tests itself."""

import pytest
import recorded

from runners import runner_named
from runners.record import FalloffError, Unreadable

CASES = recorded.cases()
OF_UNKNOWN_ORIGIN = [
    case for case in CASES if {"results", "no_result"} & set(recorded.expected(case))
]


def tool(case):
    """The tool whose folder the case lies in."""
    return case.split("/")[0]


@pytest.mark.parametrize("case", CASES)
def test_reads_what_is_expected(case):
    """A whole output of a trial gives exactly the expected readings, or the expected status and reason."""
    expected = recorded.expected(case)
    outcome = recorded.judged(tool(case), recorded.text(case), expected["point"])
    if "readings" in expected:
        assert outcome.status == "ok", outcome.reason
        assert {
            reading.name: [reading.value, reading.unit] for reading in outcome.readings
        } == expected["readings"]
    else:
        assert (outcome.status, outcome.readings) == (expected["status"], ())
        assert expected["reason"] in outcome.reason


@pytest.mark.parametrize("case", OF_UNKNOWN_ORIGIN)
def test_lists_every_result_of_an_output_of_unknown_origin(case):
    """Whatever else is in the file: each result with its run, or the reason against it."""
    expected = recorded.expected(case)
    if "results" in expected:
        assert recorded.listed(tool(case), recorded.text(case)) == expected["results"]
    else:
        with pytest.raises(Unreadable) as refusal:
            recorded.listed(tool(case), recorded.text(case))
        assert str(refusal.value) == expected["no_result"]


@pytest.mark.parametrize("case", CASES)
def test_truncated_output_never_gives_a_number(case):
    """Cut after any line, or at every seventh byte, no output is a valid measurement.

    `complete_at` is the text with which a measurement is complete; without it that is the output's end.
    """
    expected, whole = recorded.expected(case), recorded.text(case).rstrip()
    complete = expected.get("complete_at", whole)
    whole = whole[: whole.index(complete) + len(complete)]
    lines = whole.splitlines(keepends=True)
    cuts = {len("".join(lines[:kept])) for kept in range(len(lines))} | set(range(0, len(whole), 7))
    point = expected["point"]
    accepted = [
        cut
        for cut in sorted(cuts)
        if recorded.judged(tool(case), whole[:cut], point).status == "ok"
    ]
    assert not accepted


@pytest.mark.parametrize("case", CASES)
def test_a_result_of_other_settings_than_asked_for_is_invalid(case):
    """Whatever the output itself names and the point asks otherwise is no measurement of the point."""
    expected, text = recorded.expected(case), recorded.text(case)
    if "readings" not in expected:
        return
    point = expected["point"]
    for name in set(point) & set(recorded.listed(tool(case), text)[0]):
        value = point[name]
        other = f"not {value}" if isinstance(value, str) else value + 1
        if (tool(case), name) == ("iperf3", "direction"):
            other = "reverse" if value == "forward" else "forward"
        outcome = recorded.judged(tool(case), text, {**point, name: other})
        assert outcome.status == "invalid" and name in outcome.reason


@pytest.mark.parametrize("tool", ["hpcc", "imb", "iperf2", "osu"])
def test_what_is_only_read_is_not_run(tool):
    """No campaign can ask for it; the message says what to do instead."""
    with pytest.raises(FalloffError, match=f"import {tool}|only read"):
        runner_named(tool).commands({"nodes": 2})


def test_ping_counts_only_the_first_of_duplicate_replies():
    """A duplicated reply changes neither the loss nor the median."""
    text, link = recorded.text("ping/20221126-ok"), {"sender": 1, "receiver": 3, "count": 50}
    first = next(line for line in text.splitlines() if "icmp_seq=1 " in line)
    doubled = text.replace(first, f"{first}\n{first} (DUP!)")
    doubled = doubled.replace("20 received,", "20 received, +1 duplicates,")
    assert recorded.judged("ping", doubled, link) == recorded.judged("ping", text, link)
