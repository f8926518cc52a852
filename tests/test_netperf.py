"""netperf: what is asked of it, its units, and that no broken output becomes a number."""

import re

import pytest
import recorded
from hypothesis import given, settings
from hypothesis import strategies as st

from runners import netperf
from runners.record import Execution, Transcript, Trial, Unreadable, judge

FORWARD, REVERSE = (recorded.text(f"netperf/2.7.0-{way}") for way in ("forward", "reverse"))
STREAM_K = recorded.text("netperf/2.7.0-stream-cpu-K")

# The words under "Throughput" for each letter of -f, and what one is [bit/s] by netperf's manual.
UNITS = {
    "GBytes/sec": 8 * 2**30,
    "MBytes/sec": 8 * 2**20,
    "KBytes  /s": 8 * 2**10,
    "Bytes   /s": 8,
    "10^9bits/s": 1e9,
    "10^6bits/sec": 1e6,
    "10^3bits/s": 1e3,
}


def judged(point, *outputs, evidence="emulated"):
    """The judgement of a trial whose netperfs printed these outputs, beside a server and a sleep."""
    programs = [("netserver", ""), *(("netperf", output) for output in outputs), ("sleep", "")]
    executions = tuple(Execution(tool, (tool,), text, "", 0, 0.0, 1.0) for tool, text in programs)
    trial = Trial("t1", "point", "netperf", 1, 1, point)
    return judge(Transcript(trial, "here", evidence, executions, {}, {}), netperf.parse)


def readings(outcome):
    """The readings of a valid trial by name."""
    assert outcome.status == "ok", outcome.reason
    return {reading.name: reading.value for reading in outcome.readings}


def in_unit(unit, value):
    """The table of a recorded output with another unit and throughput."""
    return STREAM_K.replace("KBytes  /s", unit).replace("11684.31", value)


def test_the_whole_machines_cpu_is_not_an_emulated_nodes():
    """On a machine of its own a node's CPU is what netperf says, in cores; on a shared one it says nothing."""
    assert not {"cpu_sender", "cpu_receiver", "cpu_source"} & set(readings(judged({}, FORWARD)))
    found = readings(judged({}, REVERSE, evidence="measured"))
    local = float(re.search(r"LOCAL_CPU_UTIL=(.*)", REVERSE)[1])
    assert found["cpu_receiver"] == local / 100 * 2 and found["cpu_source"] == "tool"


@pytest.mark.parametrize("unit", UNITS)
@given(hundredths=st.integers(100, 10**10))
def test_each_unit_is_what_the_manual_says(unit, hundredths):
    """The K of -f is 2^10 bytes and its k 10^3 bits, and so on for each letter."""
    (found,) = recorded.listed("netperf", in_unit(unit, f"{hundredths / 100:.2f}"))
    assert found["goodput"] == pytest.approx(hundredths / 100 * UNITS[unit], rel=1e-12)


@pytest.mark.parametrize(
    "output, reason",
    [
        ("", "printed nothing"),
        (in_unit("KBytes  /s", "0.00"), "no data"),
        (in_unit("KBytes  /s", "-1.00"), "no data"),
        (in_unit("KBytes  /s", "nan"), "missing or cut off"),
        (in_unit("furlongs/s", "95.10"), "furlongs/s is not one that can be trusted"),
        (in_unit("GBytes/sec", "0.11"), "too coarsely"),
        (FORWARD.replace("10^6bits/s", "inf"), "can be trusted"),
        (re.sub("THROUGHPUT=.*", "THROUGHPUT=nan", FORWARD), "not a number"),
        (FORWARD.replace("THROUGHPUT_UNITS", "OTHER"), "does not name the unit"),
        (FORWARD.replace("ELAPSED_TIME", "THROUGHPUT"), "two values for one name"),
    ],
)
def test_each_broken_output_is_refused_with_its_own_reason(output, reason):
    """No broken output becomes a throughput, least of all zero."""
    with pytest.raises(Unreadable, match=re.escape(reason)):
        netperf.results(output)


@settings(max_examples=300, deadline=None)
@given(
    case=st.sampled_from(["forward", "maerts-csv", "stream-cpu-K", "omni", "rr-cpu"]),
    begin=st.floats(0, 1),
    length=st.integers(0, 200),
    instead=st.sampled_from(["", " ", "\n", "-", "e5", "\x00", "=", ","]),
)
def test_a_mutilated_output_never_gives_a_number_that_it_does_not_hold(
    case, begin, length, instead
):
    """Whatever is cut out or written over at one place, a rate is a whole number of the text in a known unit."""
    text = recorded.text(f"netperf/2.7.0-{case}")
    at = int(begin * len(text))
    text = text[:at] + instead + text[at + length :]
    try:
        found = recorded.listed("netperf", text)
    except Unreadable:
        return
    held = {
        float(number)
        for number in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])", text.replace("=", " "))
    }
    for result in found:
        rate = result.get("goodput", result.get("transaction_rate"))
        units = (1, *UNITS.values())
        assert rate > 0 and any(
            pytest.approx(number * unit) == rate for number in held for unit in units
        )
