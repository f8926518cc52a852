"""The contract of every tool: its real outputs are read, or refused, as the files beside them say;
a new pair tests itself.

Cut, damaged, with other line ends or of another tool, none of them gives a number that it should
not.
"""

import re
from time import process_time

import pytest
import recorded
from marks import firsts, the_rest_is_long

from analysis.dataset.schema import schema
from runners import outputs
from runners.parsing import without_labels
from runners.records.record import FalloffError
from runners.tools import names, node_rates, tool_named

CASES = recorded.cases()
EXPECTED = {case: recorded.expected(case) for case in CASES}
TRIALS = [case for case in CASES if "point" in EXPECTED[case]]
LISTED = [case for case in CASES if {"results", "no_result"} & set(EXPECTED[case])]
ONLY_READ = ("hpcc", "imb", "iperf2", "nccl_tests", "netperf", "osu", "reframe")
FOREIGN = (*ONLY_READ, "hpl", "iperf3", "ping", "sockperf")  # which people have outputs of


def tool(case):
    """The tool whose folder the case lies in."""
    return case.split("/")[0]


@pytest.mark.parametrize("case", TRIALS)
def test_a_trials_output_is_read_as_expected(case):
    """A whole output gives exactly the expected readings, or the expected status and reason."""
    expected = EXPECTED[case]
    outcome = recorded.judged(tool(case), recorded.text(case), expected["point"])
    if "readings" in expected:
        assert outcome.status == "ok", outcome.reason
        units = {name: row.get("units", "") for name, row in schema()["variables"].items()}
        units |= node_rates.UNITS
        units |= {name: row.units for name, row in tool_named(tool(case)).readings.items()}
        found = {name: [value, units[name]] for name, value in outcome.readings.items()}
        assert recorded.to_print_precision(found) == recorded.to_print_precision(
            expected["readings"]
        )
    else:
        assert (outcome.status, outcome.readings) == (expected["status"], {})
        assert expected["reason"] in outcome.reason


@pytest.mark.parametrize("case", LISTED)
def test_every_result_of_a_foreign_output_is_listed(case):
    """Whatever else is in the file: each result with its run, or the reason against it, with any
    line ends.
    """
    expected, text = EXPECTED[case], recorded.text(case)
    for ends in ("\n", "\r\n") if tool(case) in FOREIGN else ("\n",):
        dressed = text.replace("\n", ends)
        if "results" in expected:
            listed = recorded.listed(tool(case), dressed)
            assert recorded.to_print_precision(listed) == recorded.to_print_precision(
                expected["results"]
            )
        else:
            assert recorded.refusals(tool(case), dressed) == expected["no_result"]
            assert recorded.kinds(tool(case), dressed) == [expected["kind"]]


@pytest.mark.few(60)
@pytest.mark.parametrize("case", CASES)
def test_a_cut_output_gives_no_other_number(case):
    """Cut after any line, or at every eleventh byte: no trial is ok, and a foreign output has only
    rows of the whole.

    `complete_at` is the text with which a measurement is complete; without it that is the output's
    end.
    """
    expected, whole = EXPECTED[case], recorded.text(case).rstrip()
    complete = expected.get("complete_at", whole)
    whole = whole[: whole.index(complete) + len(complete)]
    lines = whole.splitlines(keepends=True)
    ends = {len("".join(lines[:kept])) for kept in range(len(lines))}
    own = {
        row
        for result in recorded.usable(tool(case), recorded.text(case))
        for row in recorded.rows(result)
    }
    for cut in sorted(ends | set(range(0, len(whole), 11))):
        if "point" in expected:
            outcome = recorded.judged(tool(case), whole[:cut], expected["point"])
            assert outcome.status != "ok", whole[:cut][-80:]
        if case in LISTED and not case.endswith(recorded.SEVERAL_STREAMS):
            for result in recorded.usable(tool(case), whole[:cut]):
                for row in recorded.rows(result):
                    assert any(row <= other for other in own), (sorted(row), whole[:cut][-80:])


@pytest.mark.parametrize("case", [case for case in TRIALS if "readings" in EXPECTED[case]])
def test_a_result_of_other_settings_than_asked_for_is_invalid(case):
    """Whatever the output itself names and the point asks otherwise is no measurement of the
    point.
    """
    point, text = EXPECTED[case]["point"], recorded.text(case)
    for name in set(point) & set(recorded.listed(tool(case), text)[0]):
        value = point[name]
        other = f"not {value}" if isinstance(value, str) else value + 1
        if (tool(case), name) == ("iperf3", "direction"):
            other = "reverse" if value == "forward" else "forward"
        outcome = recorded.judged(tool(case), text, {**point, name: other})
        assert outcome.status == "invalid" and name in outcome.reason


# Case, what stands in it, what stands there instead, of which kind the refusal is, and what it
# says.
DAMAGED = [
    (
        "ping/20221126-ok",
        "20 packets transmitted, 20",
        "0 packets transmitted, 0",
        "contradictory",
        "20 are printed",
    ),
    (
        "ping/20221126-ok",
        "20 packets transmitted",
        "19 packets transmitted",
        "contradictory",
        "20 replies to 19",
    ),
    (
        "ping/20221126-ok",
        "icmp_seq=2 ",
        "icmp_seq=1 ",
        "contradictory",
        "two replies have one number",
    ),
    (
        "osu/5.4.3-latency",
        "MPI Latency Test",
        "MPI_Put Latency Test",
        "unsupported",
        "'mpi_put latency' is not read",
    ),
    (
        "osu/5.4.3-latency",
        "MPI Latency Test",
        "MPI Bandwidth Test",
        "contradictory",
        "with a column of Latency",
    ),
    ("osu/5.4.3-latency", "Latency (us)", "Latency (ms)", "unsupported", "columns are not read"),
    (
        "osu/5.4.3-latency",
        "0                       1.82",
        "0                       1.82     Fail",
        "failed",
        "validation",
    ),
    (
        "osu/5.4.3-latency",
        "1024                    2.80",
        "1                       2.80",
        "contradictory",
        "do not ascend",
    ),
    ("imb/4.0-pingpong", "5924.16", "7777.16", "contradictory", "fit neither as 10"),
    (
        "imb/2.3-sendrecv",
        "28.72        16.95",
        "29.72        16.95",
        "contradictory",
        "not between the least",
    ),
    (
        "imb/2.3-sendrecv",
        "28.72        16.95",
        "28.72        17.95",
        "contradictory",
        "fit neither as 10",
    ),
    (
        "nccl_tests/8-gpus",
        "2157.5  248.83",
        "2157.5  348.83",
        "contradictory",
        "is not the size over the time",
    ),
    (
        "nccl_tests/8-gpus",
        "466.57      0",
        "466.57      7",
        "contradictory",
        "wrong values at 1073741824",
    ),
    ("nccl_tests/8-gpus", "values : 0 OK", "values : 3 FAILED", "failed", "3 values out of bounds"),
    ("hpcc/1.5.0-two-processes", "Success=1", "Success=0", "failed", "Success=0"),
    (
        "hpcc/1.5.0-two-processes",
        "0.0039858 ...... PASSED",
        "31.5 ...... FAILED",
        "failed",
        "the residual check FAILED",
    ),
    (
        "hpcc/1.5.0-two-processes",
        "3.320e+00",
        "9.320e+00",
        "contradictory",
        "in HPL's part, N = 20352",
    ),
    ("hpl/2.0-several-rows", "  1     2  ", "  0     2  ", "contradictory", "P = 0"),
    (
        "hpl/2.0-one-row",
        "  3.719e+01",
        "  3.819e+01",
        "contradictory",
        "does not give the 3.819e+01 Gflop/s",
    ),
    (
        "ping/20221126-ok",
        "= 0.038/",
        "= 0.030/",
        "contradictory",
        "ping's min is 0.030 ms, that of its lines 0.038",
    ),
    ("hpcc/1.5.0-two-processes", "HPL_nprow=1", "HPL_nprow=0", "contradictory", "P = 0"),
    (
        "iperf3/3.12-both",
        "91829646.26",
        "81829646.26",
        "contradictory",
        "end.sum_received_bidir_reverse contradicts itself",
    ),
    # as 3.7 to 3.10 wrote it
    ("iperf3/3.12-both", "_bidir_reverse", "", "unsupported", "gives both ways one name"),
    (
        "hpl/2.0-one-row",
        "0.0034875 ...... PASSED",
        "-nan ...... PASSED",
        "failed",
        "scaled residual nan",
    ),
    ("netperf/2.7.0-stream-cpu-K", "11684.31", "0.00", "failed", "no data"),
    ("netperf/2.7.0-stream-cpu-K", "11684.31", "nan", "contradictory", "not of its headings"),
    (
        "netperf/2.7.0-stream-cpu-K",
        "KBytes  /s",
        "furlongs/s",
        "unsupported",
        "furlongs/s is not one that can be trusted",
    ),
    ("netperf/2.7.0-forward", "=95.72", "=0.11", "unsupported", "too coarsely"),
    ("netperf/2.7.0-forward", "=95.72", "=nan", "contradictory", "not a number"),
    (
        "netperf/2.7.0-forward",
        "ELAPSED_TIME",
        "THROUGHPUT",
        "contradictory",
        "two values for one name",
    ),
    # A row of another test: its rate is not in that column.
    (
        "netperf/2.7.0-stream",
        "131072  16384  16384    1.10       95.54",
        "16384 131072 1 1 10.00 59421.52",
        "contradictory",
        "not of its headings",
    ),
    ("iperf2/2.0-client", "1.93 Gbits", "377 Mbits", "contradictory", "contradicts itself"),
    ("iperf3/3.12-text", "300 Mbits", "377 Mbits", "contradictory", "contradicts itself"),
    ("iperf3/3.12-ok", "952733829.4", "852733829.4", "contradictory", "contradicts itself"),
    ("iperf3/3.12-ok", "952733829.4", "9" * 400, "contradictory", "no end.sum_received"),
    ("iperf3/3.12-ok", "952733829.4", "9" * 5000, "contradictory", "not one that iperf3 writes"),
    ("iperf3/3.12-ok", '"sum_received"', '"other"', "cut", "end.sum_received"),
    ("udp_sizes/3.12-warm-up", '"sum_received"', '"other"', "cut", "end.sum_received.bytes"),
    ("udp_sizes/3.12-warm-up", '"UDP"', '"TCP"', "unsupported", "not of UDP"),
    (
        "flows/3.32-permutation",
        "  2      12",
        "  4      12",
        "contradictory",
        "the rows of flows are not numbered 1 to 3 (runs): it has 3",
    ),
    (
        "fanout/3.12-forward",
        "fanout: 2 flows",
        "fanout: 3 flows",
        "contradictory",
        "the rows of fanout are not numbered 1 to 3 (flows): it has 2",
    ),
    (
        "fanout/3.12-forward",
        '"server_output_json"',
        '"other"',
        "cut",
        "lacks its receiver's intervals",
    ),
    (
        "fanout/3.12-forward",
        '{ "start":',
        '{ "start"',
        "contradictory",
        "for 10.9.0.2: iperf3's report is not whole JSON",
    ),
    (
        "fanout/3.12-forward",
        '"end":\t0.5',
        '"end":\t9.5',
        "contradictory",
        "do not follow each other",
    ),
    (
        "frame_limit/20221126-silent",
        "8941        10       10  carried",
        "8941        10       10  fine",
        "contradictory",
        "not its own",
    ),
    (
        "token_exchange/1-tcp",
        " 13296  0.200000",
        "     0  0.200000",
        "failed",
        "pair 1 in run 1 completed no exchange",
    ),
    (
        "token_exchange/1-tcp",
        "1795298776.676013",
        "1795298776.706013",
        "failed",
        "run 1 had 0.170 of 0.2 s in common",
    ),
    (
        "token_exchange/1-tcp",
        "   2     8192    2",
        "   1     8192    2",
        "contradictory",
        "4 rows, not 2 pairs in 2 runs",
    ),
    ("token_exchange/1-tcp", "2 runs", "3 runs", "contradictory", "4 rows, not 2 pairs in 3 runs"),
    ("node_rates/1-two-threads", "5 turns", "4 turns", "contradictory", "other rows follow"),
    ("node_rates/1-two-threads", "triad", "bogus", "contradictory", "reports"),
    (
        "suspects/5-nodes",
        "    1     1     2",
        "    1     1     3",
        "contradictory",
        "9 of the 10 pairs of 5 nodes in 10 rows",
    ),
    (
        "suspects/5-nodes",
        "   3  1.009407e+10",
        "   3  nan         ",
        "contradictory",
        "the rows of suspects are not numbered 1 to 5 (nodes): it has 4",
    ),
]


@pytest.mark.parametrize(("case", "old", "new", "kind", "said"), DAMAGED)
def test_an_output_that_contradicts_itself_is_refused(case, old, new, kind, said):
    """Each with its own reason; nothing that is missing or wrong becomes a number."""
    text, expected = recorded.text(case), EXPECTED[case]
    assert old in text
    damaged = text.replace(old, new)
    assert set(recorded.kinds(tool(case), damaged)) == {kind}
    if "readings" in expected:
        outcome = recorded.judged(tool(case), damaged, expected["point"])
        assert outcome.status in ("unreadable", "invalid") and said in outcome.reason
    else:
        assert said in recorded.refusals(tool(case), damaged)


# A table of flows and datagrams by size are reports of iperf3.
ALIKE = ({"iperf3", "udp_sizes"},)


@pytest.mark.parametrize("name", names())
def test_an_output_of_another_tool_is_refused(name):
    """Nobody takes it for his own, and where it is a tool that people have, its name is told."""
    for case in [recorded.cases(other)[0] for other in sorted({tool(case) for case in CASES})]:
        other, text = tool(case), recorded.text(case)
        if other == name or {other, name} in ALIKE:
            continue
        assert recorded.refusals(name, text), case
        assert outputs.describe(text, name) or other not in FOREIGN


@pytest.mark.parametrize("name", ONLY_READ)
def test_what_is_only_read_is_not_run(name):
    """No campaign can ask for it; the message says what to do instead."""
    with pytest.raises(FalloffError, match=f"import {name}"):
        tool_named(name).commands({"nodes": 2})


NOTHING = {
    "a line of 200 000 letters": "x" * 200_000 + "\n",
    "numbers beyond all": f"THROUGHPUT={'9' * 400}\nTHROUGHPUT_UNITS=10^6bits/s\n",
    "nothing": "",
}


@pytest.mark.parametrize("nothing", NOTHING)
@pytest.mark.parametrize("name", names())
def test_long_lines_and_numbers_end_in_words(name, nothing):
    """No field limit of a library, and no infinity, reaches the user."""
    assert recorded.refusals(name, NOTHING[nothing])


# Repeated without end by a broken disk, by a program that loops, or by somebody who wants to hold
# us up.
NOISE = [*' \t\n\r\0x7[{"=-.:#W', "\x1b[", " \n", "7 ", "{}\n"]


def require_proportion(name, noise, begin="", end="", size=100_000):
    """Twice the noise takes about twice as long, to read and to name what the file is."""

    def seconds(size):
        text, start = begin + noise * (size // len(noise)) + end, process_time()
        recorded.refusals(name, text)
        outputs.describe(text, name)
        return process_time() - start

    # What is added is for the clock alone; below it half the noise need not be read.
    assert any(
        (whole := seconds(size)) < 0.05 or whole < 0.05 + 3 * seconds(size // 2) for _ in range(3)
    ), noise


@pytest.mark.few(5)
@pytest.mark.parametrize("name", names())
def test_time_grows_in_proportion_to_noise(name):
    """One character, or a line of the tool's own, over and over."""
    texts = map(recorded.text, recorded.cases(name))
    own = list(dict.fromkeys(line for text in texts for line in text.splitlines(keepends=True)))
    for noise in [*NOISE, *own[:: len(own) // 10 + 1]]:
        require_proportion(name, noise)


@pytest.mark.parametrize("case", the_rest_is_long(CASES, firsts(CASES)))
def test_time_grows_in_proportion_to_noise_inside(case):
    """Blank lines, numbers, and one of its own lines in the middle of every real output."""
    lines = recorded.text(case).splitlines(keepends=True)
    half = len(lines) // 2
    for noise in ("\n", "7 ", lines[half]):
        require_proportion(tool(case), noise, "".join(lines[:half]), "".join(lines[half:]))


def test_an_unknown_tool_gets_a_suggestion():
    """What there is, and the nearest; what people call a tool is known."""
    with pytest.raises(FalloffError, match="did you mean 'iperf3'"):
        tool_named("ipref3")
    assert tool_named("iperf").name == "iperf2" and tool_named("XHPL").name == "hpl"


# What only some tools need.


def test_two_runs_of_ping_are_two_results():
    """Each with its own loss and times; without the second's first line they are mixed, and
    refused.
    """
    whole, loss = recorded.text("ping/20221126-ok"), recorded.text("ping/20221126-loss")
    assert recorded.values("ping", whole + loss, "ping_loss") == [0, 0.55]
    times = [recorded.values("ping", text, "round_trip_time")[0] for text in (whole, loss)]
    assert recorded.values("ping", whole + loss, "round_trip_time") == times
    tail = loss.split("\n", 1)[1]
    for mixed in (whole + tail, whole.split("\n\n")[0] + tail):
        assert re.search("mixed|replies", recorded.refusals("ping", mixed))


@pytest.mark.parametrize(
    ("case", "old", "new", "note"),
    [
        ("osu/5.4.3-latency", " 2.80\n", " 2,80\n", "lines that are not understood: 1"),
        ("imb/4.0-pingpong", "5924.16", "5924;16", "lines that are not understood: 1"),
        (
            "hpcc/1.5.0-two-processes",
            "MPIFFT_Gflops=",
            "MPIFFT_Gflops=x",
            "no number for MPIFFT_Gflops",
        ),
    ],
)
def test_what_is_not_understood_is_counted(case, old, new, note):
    """A damaged row of a table or a summary leaves a note on the result, and nothing else
    changes.
    """
    text = recorded.text(case)
    assert old in text
    (before,), (after,) = (
        recorded.listed(tool(case), each) for each in (text, text.replace(old, new))
    )
    assert note in after.pop("note") and "note" not in before
    counts = [sum(len(str(value)) for value in each.values()) for each in (before, after)]
    assert counts[1] < counts[0]


def test_megabytes_of_osu_are_decimal_unless_the_output_says_otherwise():
    """A copy of the benchmark that counts 2^20 bytes says so, and its numbers mean 4.86 % more."""
    text = recorded.text("osu/2.1-bandwidth")
    said = text.replace("# Size", "# Modified to report: 1 MB == 2^20 bytes\n# Size")
    (decimal,), (binary,) = (
        recorded.values("osu", each, "message_bandwidth") for each in (text, said)
    )
    assert decimal[-1] == 1163132235.0
    assert [b / d for d, b in zip(decimal, binary)] == pytest.approx([1.048576] * len(decimal))


@pytest.mark.parametrize("mega", [10**6, 2**20])
def test_the_unit_of_imb_follows_from_the_rows(mega):
    """Printed in 10^6 or in 2^20 bytes, a table is read in the unit that it was printed in."""
    text, size, time = recorded.text("imb/4.0-pingpong"), 2**24, 14321.5
    row = f"{size:13d}         1000 {time:12.2f} {size / time * 1e6 / mega:12.2f}\n"
    table = text[: text.index("              0  ")] + row
    assert recorded.values("imb", table, "message_bandwidth") == [
        [pytest.approx(size / time * 1e6, rel=1e-5)]
    ]


def test_other_benchmarks_of_imb_are_passed_over():
    """Without one that is said; a second table without the line that begins it is refused."""
    new, old = recorded.text("imb/2021.3-pingpong"), recorded.text("imb/4.0-pingpong")
    other = new.replace("PingPong", "PingPing")
    several = recorded.listed("imb", other + new + old)
    assert [result["version"] for result in several] == ["2021.3", "4.0"]
    assert "without a PingPong" in recorded.refusals("imb", other)
    for whole in (new, old):  # old has another unit of Mbytes/sec
        second = whole[whole.index("#bytes") :].split("\n", 1)[1]
        assert "do not ascend" in recorded.refusals("imb", new + second)


def test_hpcc_appends_its_runs_and_prints_what_it_did_not_measure():
    """A run that was stopped lies between two whole ones; -1, and 0 of a rate, is no reading."""
    one = recorded.text("hpcc/1.5.0-one-process")
    found = recorded.listed("hpcc", one + one[: len(one) // 2] + "\n" + one)
    assert [each["run"] for each in found if "fft_rate" in each] == [1, 3]
    assert "did not reach the end of its summary" in found[1]["refused"]
    assert not [name for name in found[0] if "ping_pong" in name or "ring" in name]
    nothing = re.sub("MPIFFT_Gflops=.*", "MPIFFT_Gflops=0", one)
    assert recorded.values("hpcc", nothing, "fft_rate") == []


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


@pytest.mark.parametrize("unit", UNITS)
def test_each_unit_of_netperf_is_what_the_manual_says(unit):
    """The K of -f is 2^10 bytes and its k 10^3 bits, and so on for each letter."""
    text = recorded.text("netperf/2.7.0-stream-cpu-K").replace("KBytes  /s", unit)
    assert recorded.values("netperf", text, "goodput") == [pytest.approx(11684.31 * UNITS[unit])]


def test_settings_of_a_script_are_no_fields_of_netperf():
    """NODES=4 before a table or before the lines of -k changes nothing."""
    for case, name in (("stream", "goodput"), ("rr-keyval", "transaction_rate")):
        text = recorded.text(f"netperf/2.7.0-{case}")
        script = recorded.values("netperf", "NODES=4\nPPN=2\n\n" + text, name)
        assert script == recorded.values("netperf", text, name) != []


def test_transactions_in_bits_are_transactions():
    """With -f netperf counts the bits of request and response: 2.24 Mbit/s are 10 000 exchanges of
    28 bytes.
    """
    row = "16384  131072 4        24      1.00     2.24   "
    table = re.sub(r"^16384  131072 1 .*$", row, recorded.text("netperf/2.7.0-rr"), flags=re.M)
    table = table.replace("per sec   ", "10^6bits/s")
    assert recorded.values("netperf", table, "transaction_rate") == [pytest.approx(10_000)]
    keyed = recorded.text("netperf/2.7.0-rr-keyval").replace("Trans/s", "10^6bits/s")
    assert recorded.values("netperf", keyed, "transaction_rate") == [pytest.approx(49735e6 / 16)]
    lacking = recorded.refusals("netperf", keyed.replace("REQUEST_SIZE=1\n", ""))
    assert "sizes of request and response are missing" in lacking


def test_iperf3s_own_words_are_shown_and_a_shells_are_not():
    """A terminal's ^C before the report is not part of it; several reports are several results."""
    said = "iperf3: error - unable to connect to server: Connection refused\n"
    assert "Connection refused" in recorded.refusals("iperf3", said)
    text = recorded.text("iperf3/3.12-ok")
    assert recorded.listed("iperf3", "^C" + text + text) == 2 * recorded.listed("iperf3", text)
    assert outputs.is_output_of("iperf3", "^C" + text)
    assert "more than one" in recorded.judged("iperf3", text + text, {}).reason


LABELS = {
    "Open MPI 4, tagged": "[1,0]<stdout>:",
    "Open MPI 4, tagged with time": "Thu Nov  5 10:10:10 2020[1,0]<stdout>:",
    "Open MPI 4, with time": "Thu Nov  5 10:10:10 2020<stdout>:",
    "Open MPI 5, tagged": "[prterun-node01-4321@1,0]<stdout>: ",
    "Open MPI 5, tagged in detail": "[prterun-node01-4321@1,0][node01:4567]<stdout>: ",
    "srun -l": "0: ",
    "srun -l of more than ten tasks": " 0: ",
    "mpiexec -l of MPICH": "[0] ",
    "host and rank": "[node01:0] ",
    "pdsh": "node-01.cluster: ",
    "time of a container's log": "2026-11-28T06:10:43.123456789Z ",
    "time in brackets": "[2026-11-28 06:10:43] ",
    "ts": "Nov 28 06:10:43 ",
    "quoted mail": "> ",
    "a terminal's colour and movement": "\x1b[0m\x1b[F",
    "mark of byte order": "\ufeff",
}


@pytest.mark.few(16)
@pytest.mark.parametrize("label", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("name", FOREIGN)
def test_a_label_before_each_line_changes_nothing(name, label):
    """The tool is recognised and the results are those of the output without labels."""
    (text,) = [recorded.text(case) for case in LISTED if tool(case) == name][:1]
    labelled = "".join(label + line for line in text.splitlines(keepends=True))
    for ends in ("\n", "\r\n"):
        dressed = labelled.replace("\n", ends)
        assert outputs.tool_of(dressed) == outputs.tool_of(text) == name
        assert recorded.refusals(name, dressed) == recorded.refusals(name, text)
        assert not recorded.usable(name, text) or recorded.listed(name, dressed) == recorded.listed(
            name, text
        )


def test_what_is_a_tools_own_is_no_label():
    """Streams of three digits, complaints, and names with a colon before few lines."""
    for text in (
        "[100]   0.00-1.00   sec\n[ ID] Interval\n[101] x\n",
        "iperf3: error - x\n",
        "N: 1\nP: 2\nQ: 3\n",
    ):
        assert without_labels(text) == text


def rows_of(name, text):
    """Every row of the usable results of a text."""
    return [row for result in recorded.usable(name, text) for row in recorded.rows(result)]


# Where a version is printed, and one as developers' builds print it.
VERSIONS = [
    ("osu/5.4.3-latency", "v5.4.3", "v7.5-beta"),
    ("osu/5.4.3-bandwidth", "v5.4.3", "v6.1+git"),
    ("osu/5.6.3-alltoall", "v5.6.3", "v7.0-name3 (of a site)"),
    ("imb/2021.3-pingpong", "2021.3", "2021.7-beta+git"),
    ("hpl/2.0-one-row", "HPLinpack 2.0", "HPLinpack 2.3-rc1+git"),
    ("sockperf/3.7-ping-pong", "3.7-no.git", "3.10+dirty"),
    ("iperf3/3.12-forward", "iperf 3.12", "iperf 3.17+git-dirty"),
    (
        "nccl_tests/8-gpus",
        "#  Rank  7",
        "# nccl-tests version 2.17.1-rc+git-0123456789abcdef\\n#  Rank  7",
    ),
]


@pytest.mark.parametrize(("case", "old", "new"), VERSIONS)
def test_a_developers_version_is_read(case, old, new):
    text = recorded.text(case)
    assert old in text and rows_of(tool(case), text)
    assert rows_of(tool(case), text.replace(old, new.replace("\\n", "\n"))) == rows_of(
        tool(case), text
    )


def test_old_nccl_tests_print_an_error_instead_of_a_count():
    text = recorded.text("nccl_tests/old-two-gpus")
    old = re.sub(r"      0(?=\s)", "  5e-07", text.replace("#wrong", " error"))
    assert old.count("5e-07") == 8
    assert rows_of("nccl_tests", old) == rows_of("nccl_tests", text)
    assert recorded.kinds("nccl_tests", old.replace("values : 0 OK", "values : 2 FAILED")) == [
        "failed"
    ]


def test_sockperfs_summaries_of_all_versions_are_read():
    """Versions up to 3.5 print avg-lat; --full-rtt prints the way there and back."""
    text = recorded.text("sockperf/3.7-ping-pong")
    (mean,) = recorded.values("sockperf", text, "half_round_trip")
    old = text.replace("avg-latency=", "avg-lat= ")
    both = text.replace("avg-latency=", "avg-rtt=").replace("Latency is", "Round trip is")
    assert recorded.listed("sockperf", old) == recorded.listed("sockperf", text)
    for name in ("half_round_trip", "half_round_trip_p99", "half_round_trip_max"):
        (half,), (once,) = (recorded.values("sockperf", each, name) for each in (both, text))
        assert half == pytest.approx(once / 2)
    assert mean > 0


def test_iperf3s_debug_output_and_lists_of_reports_are_read():
    debug = 'send_parameters:\n{\n\t"tcp":\ttrue,\n\t"time":\t10\n}\n'
    text = recorded.text("iperf3/3.12-text")
    assert recorded.listed("iperf3", debug + text + debug) == recorded.listed("iperf3", text)
    report = recorded.text("iperf3/3.12-forward")
    for listed in (f"[{report},{report}]", f"[\n{report}\n,\n{report}]\n"):
        assert outputs.tool_of(listed) == "iperf3"
        assert recorded.listed("iperf3", listed) == 2 * recorded.listed("iperf3", report)


# Whole outputs in a form that is not read: unsupported, or of another tool, but nothing is missing.
UNREAD = [
    ("osu/5.4.3-latency", r"(?m)^(\d+) +", r"\1: "),
    ("osu/5.4.3-latency", "OSU MPI Latency Test", "OSU MPI Sense of Time Test"),
    ("osu/5.4.3-latency", "# OSU MPI Latency Test v5.4.3", "# OSU MPI Latency Tester"),
    ("nccl_tests/8-gpus", r"(?m)^( +\d+ +\d+) +float", r"\1 float/sum"),
    ("imb/2021.3-pingpong", r"(?m)^( +\d+ +\d+ +)", r"\1x "),
    ("sockperf/3.7-ping-pong", "Latency is", "Half of all is"),
]


@pytest.mark.parametrize(("case", "pattern", "other"), UNREAD)
def test_an_unknown_form_is_not_called_cut(case, pattern, other):
    text = recorded.text(case)
    changed = re.sub(pattern, other, text)
    assert changed != text
    assert set(recorded.kinds(tool(case), changed)) <= {"unsupported", "foreign"}


# A later part of a file, without its first lines: case, where that part begins, and what it must
# not take over.
LATER = [
    ("nccl_tests/8-gpus", "nccl_tests/old-two-gpus", r"(?s)^", {"test", "version", "processes"}),
    ("osu/5.4.3-latency", "osu/5.4.3-bandwidth", r"(?s)^.*?(?=# Size)", {"test", "version"}),
    ("osu/5.4.3-bandwidth", "osu/5.4.3-latency", r"(?s)^.*?(?=# Size)", {"test", "version"}),
    ("netperf/2.7.0-rr", "netperf/2.7.0-stream", r"(?s)^.*?(?=Recv)", {"test"}),
    ("imb/2.3-sendrecv", "imb/2021.3-pingpong", r"(?s)^.*?(?=# Benchmarking)", {"version"}),
]


@pytest.mark.parametrize(("first", "second", "lost", "settings"), LATER)
def test_no_part_of_a_file_takes_over_settings_of_another(first, second, lost, settings):
    """In both orders: each result is one of its own file alone, or has none of these settings."""
    name, later = tool(first), re.sub(lost, "", recorded.text(second), count=1)
    own = [
        result for case in (first, second) for result in recorded.usable(name, recorded.text(case))
    ]
    for parts in ([recorded.text(first), later], [later, recorded.text(first)]):
        found = recorded.usable(name, "\n".join(parts))
        assert found
        for result in found:
            like = [each for each in own if recorded.rows(each) == recorded.rows(result)]
            known = settings & result.settings.keys()
            assert any(
                result.settings[key] in (each.settings.get(key), "unknown")
                for each in like
                for key in known
            ) or (like and not known)


def test_a_log_of_reframe_with_other_columns_below_is_read_by_them():
    text = recorded.text("reframe/4.3.2-sombrero")
    head, *rest = text.splitlines()
    rows = [line.split("|") for line in (head, *rest)]
    turned = "".join("|".join([second, first, *others]) + "\n" for first, second, *others in rows)
    assert rows_of("reframe", text + turned) == 2 * rows_of("reframe", text)


@pytest.mark.parametrize("name", FOREIGN)
def test_time_grows_in_proportion_to_runs_in_a_file(name):
    """The shortest real output with a result, over and over."""
    texts = [recorded.text(case) for case in recorded.cases(name)]
    text = min(filter(lambda text: recorded.usable(name, text), texts), key=len)
    require_proportion(name, text + "\n", size=400_000)
