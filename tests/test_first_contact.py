"""Outputs as people have them: damaged, mixed, of other versions. Each is read rightly, or refused in words."""

import json
import re
from time import process_time

import numpy as np
import pytest
import recorded
from command_line import run

import runners
from analysis import models, tables
from runners import hpcc, hpl, imb, iperf3, osu, outputs, runner_named
from runners.record import FalloffError, Reading, Unreadable

PING = recorded.text("ping/20221126-ok")
LOSS = recorded.text("ping/20221126-loss")
RR = recorded.text("netperf/2.7.0-rr")
STREAM = recorded.text("netperf/2.7.0-stream")
ROWS = recorded.text("hpl/2.0-several-rows")
NVIDIA = """================================================================================
HPL-NVIDIA 1.0.0  -- NVIDIA accelerated HPL benchmark -- NVIDIA
================================================================================
HPLinpack 2.1  --  High-Performance Linpack benchmark  --   October 26, 2012
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR03L2L2       72000   288     1     2             111.21              2.238e+03
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0029328 ...... PASSED
================================================================================

Finished      1 tests with the following results:
              1 tests completed and passed residual checks,
              0 tests completed and failed residual checks,
              0 tests skipped because of illegal input values.
--------------------------------------------------------------------------------

End of Tests.
================================================================================
"""


def value(tool, text, name):
    """The values of a reading in all results of a text."""
    found = [one for result in runner_named(tool).results(text) for one in result.readings]
    return [one.value for one in found if one.name == name]


def refusals(tool, text):
    """Why results of a text are refused, or the text itself."""
    try:
        return " ".join(result.refused for result in runner_named(tool).results(text))
    except Unreadable as reason:
        return str(reason)


def test_two_runs_of_ping_are_two_results():
    """Each with its own loss and times; without the second's first line they are mixed, and refused."""
    assert value("ping", PING + LOSS, "ping_loss") == [0, 0.55]
    times = [*value("ping", PING, "round_trip_time"), *value("ping", LOSS, "round_trip_time")]
    assert value("ping", PING + LOSS, "round_trip_time") == times
    for mixed in (PING + LOSS.split("\n", 1)[1], PING.split("\n\n")[0] + LOSS.split("\n", 1)[1]):
        assert "mixed" in refusals("ping", mixed) or "replies" in refusals("ping", mixed)


@pytest.mark.parametrize("case", ["20221126-ok", "busybox-1.35", "inetutils-2.4", "macos-unknown"])
def test_every_systems_ping_is_read_with_any_line_ends(case):
    """The median is of the replies, whatever the words around them, and CRLF changes nothing."""
    text = recorded.text(f"ping/{case}")
    times = [float(time) for time in re.findall(r"time=([\d.]+) ms", text)]
    for dressed in (text, text.replace("\n", "\r\n")):
        assert value("ping", dressed, "round_trip_time") == [pytest.approx(np.median(times) / 1e3)]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("20 packets transmitted, 20 received", "0 packets transmitted, 0 received", "no echo"),
        ("20 packets transmitted", "19 packets transmitted", "20 replies to 19"),
        ("= 0.038/", "= 0.030/", "ping's min is 0.030 ms, that of its lines 0.038"),
        ("icmp_seq=2 ", "icmp_seq=1 ", "two replies have one number"),
    ],
)
def test_a_ping_that_contradicts_itself_is_refused(old, new, said):
    """Its own counts and extremes are compared with its lines."""
    assert old in PING and said in refusals("ping", PING.replace(old, new, 1))


def test_sizes_that_begin_again_are_two_tables():
    """IMB without the line that begins the second table, and OSU likewise."""
    text = recorded.text("imb/2021.3-pingpong")
    rows = text[text.index("#bytes") :]
    assert "do not ascend" in refusals("imb", text + rows.split("\n", 1)[1])


def test_what_is_not_understood_is_counted():
    """A damaged row of a table or a summary leaves a note on the result, and nothing else changes."""
    latency = recorded.text("osu/5.4.3-latency")
    damaged = re.sub(r"^(1024 +)2\.80", r"\g<1>2,80", latency, flags=re.M)
    (whole,), (other,) = osu.results(latency), osu.results(damaged)
    assert (whole.note, other.note) == ("", "1 line was not understood")
    assert len(whole.readings[0].value) == len(other.readings[0].value) + 1
    two = recorded.text("hpcc/1.5.0-two-processes")
    (before,) = hpcc.results(two)
    (after,) = hpcc.results(re.sub("^MPIFFT_Gflops=.*", "MPIFFT_Gflops=0.77x", two, flags=re.M))
    assert (before.note, after.note) == ("", "1 value of the summary was not understood")
    assert len(before.readings) == len(after.readings) + 1
    row = re.search(r"^ +\d+ +\d+ +[\d.]+ +[\d.]+\n", recorded.text("imb/4.0-pingpong"), re.M)[0]
    text = recorded.text("imb/4.0-pingpong").replace(row, row.replace(".", ";"))
    assert imb.results(text)[0].note == "1 line was not understood"


def test_a_row_of_netperf_ends_with_its_rate():
    """A row of another test below a table's headings gives no number: its rate is not in that column."""
    row = "16384 131072 1 1 10.00 59421.52"
    text = re.sub(r"^131072 .*$", row, STREAM, flags=re.M)
    assert row in text and "missing or cut off" in refusals("netperf", text)


def test_settings_of_a_script_are_no_fields_of_netperf():
    """NODES=4 before a table changes nothing."""
    assert value("netperf", "NODES=4\nPPN=2\n" + STREAM, "goodput") == [95.54e6]
    keyed = recorded.text("netperf/2.7.0-rr-keyval")
    assert value("netperf", "NODES=4\n\n" + keyed, "transaction_rate") == [49735.0]


def test_transactions_in_bits_are_transactions():
    """With -f netperf counts the bits of request and response: 2.24 Mbit/s are 10 000 exchanges of 28 bytes."""
    row = "16384  131072 4        24      1.00     2.24   "
    text = re.sub(r"^16384  131072 1 .*$", row, RR, flags=re.M).replace("per sec   ", "10^6bits/s")
    assert value("netperf", text, "transaction_rate") == [pytest.approx(10_000)]
    keyed = recorded.text("netperf/2.7.0-rr-keyval").replace("Trans/s", "10^6bits/s")
    assert value("netperf", keyed, "transaction_rate") == [pytest.approx(49735e6 / 16)]
    assert not value("netperf", keyed, "goodput")
    lacking = keyed.replace("REQUEST_SIZE=1\n", "")
    assert "sizes of request and response are missing" in refusals("netperf", lacking)


@pytest.mark.parametrize("name", ["N", "NB", "P", "Q"])
def test_hpl_has_no_size_of_nothing(name):
    """A row whose grid, block or order is 0 is damaged, also in HPCC's summary."""
    row = re.search(r"^W[RC]\S+ +(\d+) +(\d+) +(\d+) +(\d+) ", ROWS, re.M)
    place = {"N": 1, "NB": 2, "P": 3, "Q": 4}[name]
    zeroed = ROWS[: row.start(place)] + "0" + ROWS[row.end(place) :]
    assert f"{name} = 0" in refusals("hpl", zeroed)
    theirs = {"N": "HPL_N", "NB": "HPL_NB", "P": "HPL_nprow", "Q": "HPL_npcol"}[name]
    text = recorded.text("hpcc/1.5.0-two-processes")
    assert f"{name} = 0" in refusals(
        "hpcc", re.sub(f"^{theirs}=.*", f"{theirs}=0", text, flags=re.M)
    )


def test_a_row_does_not_keep_its_neighbours_residual():
    """Whatever block of lines is lost, a rate stands beside the residual that it had, or is refused."""
    lines = ROWS.splitlines(keepends=True)
    rows = [number for number, line in enumerate(lines) if line.startswith(("WR", "WC"))]
    own = {str(result.readings) for result in hpl.results(ROWS) if result.readings}
    assert len(own) > 2
    for begin in range(rows[0], rows[2]):
        for end in range(begin + 1, rows[2] + 20):
            try:
                found = hpl.results("".join(lines[:begin] + lines[end:]))
            except Unreadable:
                continue
            assert {str(result.readings) for result in found if result.readings} <= own


def test_rows_alone_are_named_for_what_they_are():
    """What `grep WR` leaves is recognised, and lacks the residual checks."""
    alone = "".join(line for line in ROWS.splitlines(keepends=True) if line.startswith("WR"))
    found = hpl.results(alone)
    assert len(found) > 2 and {result.readings for result in found} == {()}
    assert all("residual check is not in this file" in result.refused for result in found)
    assert outputs.is_output_of("hpl", alone)


@pytest.mark.parametrize(
    ("rate", "note"), [("2.238e+03", ""), ("2.240e+03", "+0.11 % off"), ("2.260e+03", None)]
)
def test_nvidias_rate_may_be_a_little_off(rate, note):
    """Within the rounding of what is printed without a word, up to 0.2 % with a note, refused beyond; HPL's own is strict."""
    text = NVIDIA.replace("2.238e+03", rate)
    if note is None:
        assert "does not give" in refusals("hpl", text)
    else:
        (result,) = hpl.results(text)
        assert result.readings and note in result.note and bool(note) == bool(result.note)
    assert "N = 0" in refusals("hpl", text.replace("72000", "    0"))
    own = text.replace("HPL-NVIDIA 1.0.0  -- NVIDIA", "")
    assert bool(note == "") == (not refusals("hpl", own))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"error": "unable to connect to server: Connection refused"}', "Connection refused"),
        ("iperf3: error - unable to connect to server: Connection refused\n", "Connection refused"),
        (recorded.text("iperf3/3.12-text-interrupted"), "counted no data"),
        (recorded.text("iperf3/3.12-text-both"), "use --json"),
        (recorded.text("iperf3/3.12-text") * 2 + "[  5]   0.00", ""),
    ],
)
def test_iperf3s_own_words_are_shown(text, said, tmp_path):
    """The command's one line says what iperf3 said, whatever form it has."""
    (tmp_path / "out").write_text(text)
    done = run("import", "iperf3", str(tmp_path / "out"), "--print")
    assert said in done.stderr and bool(said) == bool(done.returncode)


def test_an_interrupted_shell_may_precede_json():
    """A terminal's ^C before the report is not part of it."""
    text = recorded.text("iperf3/3.12-ok")
    assert value("iperf3", "^C" + text, "goodput") == value("iperf3", text, "goodput")
    assert outputs.is_output_of("iperf3", "^C" + text)


@pytest.mark.parametrize("case", ["3.12-text", "3.12-text-reverse", "3.12-text-parallel"])
def test_a_text_that_is_cut_off_gives_no_rate(case):
    """Up to the receiver's line of all streams nothing is read; then it is the printed rate."""
    text = recorded.text(f"iperf3/{case}")
    end = text.rindex("receiver") + len("receiver")
    for cut in range(0, end, 5):
        try:
            assert not iperf3.results(text[:cut])[0].readings
        except Unreadable:
            pass
    printed = float(re.findall(r"(\d+) Mbits/sec +receiver", text)[-1])
    assert value("iperf3", text, "goodput") == [1e6 * printed]


@pytest.mark.parametrize("tool", ["iperf3", "iperf2"])
def test_a_text_row_that_contradicts_itself_is_refused(tool):
    """Bytes, seconds and rate of a row have to agree to their digits."""
    case = {"iperf3": "iperf3/3.12-text", "iperf2": "iperf2/2.0-client"}[tool]
    text = recorded.text(case)
    changed = re.sub(r"(300 M|1\.93 G)bits", "377 Mbits", text)
    assert changed != text and "contradicts itself" in refusals(tool, changed)


def test_a_server_of_iperf_2_counts_what_arrived():
    """In the CSV of 2.0 a server names itself first, a client likewise; -r gives both, and neither is taken for the other."""
    sent = "20140114124826,127.0.0.1,54402,127.0.0.1,5001,5,0.0-10.0,52551090176,42041052917\n"
    arrived = "20140114124826,127.0.0.1,5001,127.0.0.1,54402,4,0.0-10.0,52551090200,41999020136\n"
    assert value("iperf2", sent, "sent_rate") == [42041052917.0]
    assert value("iperf2", arrived, "goodput") == [41999020136.0]
    assert "several runs or streams" in refusals("iperf2", sent + arrived)
    assert "contradicts itself" in refusals("iperf2", sent.replace(",42041", ",32041"))
    assert "not an output" in refusals("iperf2", sent.rstrip())
    first, second = sent.replace("0.0-10.0,52", "0.0-5.0,26"), sent.replace("0.0-10.0", "5.0-10.0")
    assert value("iperf2", first + second + sent, "sent_rate") == [42041052917.0]
    assert "its last row is missing" in refusals("iperf2", first + second)


NOTHING = {
    "a line of 200 000 letters": "x" * 200_000 + "\n",
    "numbers beyond all": f"THROUGHPUT={'9' * 400}\nTHROUGHPUT_UNITS=10^6bits/s\n",
}


@pytest.mark.parametrize("tool", runners.names())
@pytest.mark.parametrize("blank", ["\n", " \n", "\t", " "])
def test_blank_lines_take_no_time(tool, blank):
    """Sixteen times the blanks take about sixteen times as long, to read and to name what the file is."""

    def seconds(size):
        text, start = blank * size + "x\n", process_time()
        with pytest.raises(FalloffError):
            runner_named(tool).results(text)
        outputs.describe(text, tool)
        return process_time() - start

    seconds(100)
    assert min(seconds(160_000) for _ in range(2)) < 0.02 + 60 * min(
        seconds(10_000) for _ in range(3)
    )


@pytest.mark.parametrize("nothing", NOTHING)
@pytest.mark.parametrize("tool", runners.names())
def test_long_lines_and_numbers_end_in_words(tool, nothing):
    """No field limit of a library, and no infinity, reaches the user."""
    with pytest.raises(FalloffError):
        runner_named(tool).results(NOTHING[nothing])


def test_no_reading_is_infinite():
    """JSON has no word for it: 400 nines in a report are refused, and so is any such reading."""
    text = recorded.text("iperf3/3.12-ok")
    for digits in ("9" * 400, "1e999"):
        broken = re.sub(r'("bits_per_second":\s*)[\d.e+]+', rf"\g<1>{digits}", text)
        assert refusals("iperf3", broken)
    with pytest.raises(Unreadable, match="goodput is no finite number"):
        Reading("goodput", [1.0, float("inf")], "bit/s")


def test_an_unknown_tool_gets_a_suggestion():
    """What there is, and the nearest; no module has to be written."""
    done = run("import", "ipref3", "README.md", "--print")
    assert (
        done.returncode == 1
        and "did you mean 'iperf3'?" in done.stderr
        and "RUNNER" not in done.stderr
    )
    assert runner_named("iperf").name == "iperf2"


def test_models_have_the_names_that_people_know(tmp_path):
    """usl, amdahl and hockney work beside the long ones."""
    assert models.find("usl") is models.find("universal_scalability")
    assert {models.find(name).name for name in ("Amdahl", "hockney")} == {"amdahl", "hockney"}
    table = tmp_path / "mine.csv"
    rows = [f"{n},{100 * n / (1 + 0.05 * (n - 1))}" for n in (1, 2, 4, 8, 16)]
    table.write_text("nodes,rate\n" + "\n".join(rows) + "\n")
    fit = json.loads(run("fit", "usl", str(table), "--x", "nodes", "--y", "rate").stdout)
    assert fit["estimates"]["sigma"] == pytest.approx(0.05, rel=1e-3)


def test_a_word_in_a_column_of_numbers_is_named(tmp_path):
    """With the line and the word."""
    table = tmp_path / "mine.csv"
    table.write_text("nodes,rate\n1,10\n2,fast\n4,40\n")
    done = run("fit", "constant", str(table), "--x", "nodes", "--y", "rate")
    assert done.returncode == 1 and "'fast' in line 3" in done.stderr
    with pytest.raises(FalloffError, match="numbers belong"):
        tables.require_numbers(tables.read(table, "nodes", "rate"), "nodes", "rate")
