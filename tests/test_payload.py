"""The payload of MPI programs: counted exactly, read strictly, and shown by `falloff profile`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import recorded
from hypothesis import given
from hypothesis import strategies as st
from test_hpl import DECK

from analysis.derive import broadcast_bytes
from runners import hpl, payload, tools
from runners.record import Execution, Transcript, Trial, Unreadable, judge

PROGRAM = Path(__file__).resolve().parent / "every_call.c"
FALLOFF = str(Path(sys.executable).with_name("falloff"))
TITLE = "Payload: messages that all ranks sent, by call and size"
HEAD = "call                         from B       to B        messages                 bytes"
SMALL = {**DECK, "N": 640, "NB": 32, "P": 2, "Q": 2, "nodes": 4, "payload": True, "timeout_s": 60}

needs_built = pytest.mark.skipif(
    not shutil.which("mpirun") or not (tools.BUILT / "payload.so").exists(),
    reason="not built: `make setup`",
)


def mpirun(ranks, *program):
    """The command line for so many ranks on this machine."""
    return [
        "mpirun",
        "--allow-run-as-root",
        "--oversubscribe",
        "-np",
        str(ranks),
        *map(str, program),
    ]


def run(*argv, folder, **environment):
    """Run a command line in a folder."""
    return subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, env={**os.environ, **environment}
    )


@pytest.fixture(scope="module")
def every_call(tmp_path_factory):
    """The program that sends something by every call, compiled."""
    program = tmp_path_factory.mktemp("payload") / "every_call"
    subprocess.run(["mpicc", str(PROGRAM), "-o", str(program)], check=True)
    return program


def sums(table):
    """Messages and bytes by call."""
    calls = dict.fromkeys(sent.call for sent in table)
    return {
        call: tuple(
            sum(getattr(sent, key) for sent in table if sent.call == call)
            for key in ("messages", "bytes")
        )
        for call in calls
    }


def rendered(table):
    """A table as payload.h prints it."""
    rows = [
        f"{s.call:<24} {s.least:>10} {'more' if s.most is None else s.most:>10} {s.messages:>15} {s.bytes:>21}"
        for s in table
    ]
    return "\n".join(["", TITLE, HEAD, *rows, "end of payload", ""])


SENT = payload.Sent("MPI_Send", 8, 15, 3, 40)


@needs_built
def test_every_call_is_counted_exactly(every_call, tmp_path):
    """Preloaded into a program of three ranks: messages and bytes of each call, as its source says."""
    printed = tmp_path / "table.txt"
    options = ["-x", f"LD_PRELOAD={tools.BUILT / 'payload.so'}", "-x", f"FALLOFF_PAYLOAD={printed}"]
    done = run(*mpirun(3, *options, every_call), folder=tmp_path)
    assert done.returncode == 0 and done.stdout == "", done.stderr
    (table,) = payload.tables(printed.read_text())
    one_to_one = {
        "MPI_Send": (3, 29),
        "MPI_Bsend": (1, 100),
        "MPI_Ssend": (1, 8),
        "MPI_Rsend": (1, 16),
    }
    non_blocking = {
        "MPI_Isend": (1, 32),
        "MPI_Ibsend": (1, 33),
        "MPI_Issend": (1, 64),
        "MPI_Irsend": (1, 128),
    }
    both_ways = {"MPI_Sendrecv": (3, 3 * 12), "MPI_Sendrecv_replace": (3, 3 * 28)}
    rooted = {"MPI_Bcast": (1, 80), "MPI_Scatter": (1, 24), "MPI_Scatterv": (1, 24)}
    reduced = {"MPI_Reduce": (3, 3 * 32), "MPI_Allreduce": (3, 3 * 16), "MPI_Scan": (3, 3 * 24)}
    reduced |= {
        "MPI_Exscan": (3, 3 * 40),
        "MPI_Reduce_scatter": (3, 3 * 24),
        "MPI_Reduce_scatter_block": (3, 3 * 24),
    }
    gathered = {"MPI_Gather": (3, 3 * 20), "MPI_Gatherv": (3, 4 + 8 + 12)}
    gathered |= {"MPI_Allgather": (3, 3 * 4), "MPI_Allgatherv": (3, 4 + 8 + 12)}
    exchanged = {
        "MPI_Alltoall": (3, 3 * 12),
        "MPI_Alltoallv": (3, 3 * 24),
        "MPI_Alltoallw": (3, 3 * 48),
    }
    assert sums(table) == {
        **one_to_one, **non_blocking, **both_ways, **rooted, **reduced, **gathered, **exchanged
    }  # fmt: skip
    assert [(s.least, s.messages) for s in table if s.call == "MPI_Send"] == [
        (0, 1),
        (4, 1),
        (16, 1),
    ]


@needs_built
def test_hpl_counts_its_own_messages(tmp_path):
    """xhpl_payload on 2 x 2 solves its system; its panels alone are less than what it sent."""
    (command,) = hpl.commands(SMALL)
    assert command.argv == ("xhpl_payload",)
    (tmp_path / "HPL.dat").write_text(command.files["HPL.dat"])
    done = run(*mpirun(4, tools.BUILT / "xhpl_payload"), folder=tmp_path, OPENBLAS_NUM_THREADS="1")
    outcome = recorded.judged("hpl", done.stdout, SMALL)
    assert outcome.status == "ok", outcome.reason
    found = {reading.name: reading.value for reading in outcome.readings}
    assert found["hpl_rate"] > 0 and found["hpl_residual"] < 16
    assert sum(found["payload_bytes"]) > broadcast_bytes(SMALL["N"], SMALL["Q"])
    cut = done.stdout[: done.stdout.index("end of payload")]
    assert recorded.judged("hpl", cut, SMALL).status == "unreadable"


def sent(draw):
    """One line of a table, of any class, with possible bytes."""
    index, messages = draw(st.integers(0, len(payload.LEAST) - 1)), draw(st.integers(1, 10**6))
    least = payload.LEAST[index]
    most = None if index == len(payload.LEAST) - 1 else payload.LEAST[index + 1] - 1
    size = draw(st.integers(messages * least, messages * (2 * least if most is None else most)))
    call = draw(st.sampled_from(["MPI_Send", "MPI_Bcast", "MPI_Alltoallw"]))
    return payload.Sent(call, least, most, messages, size)


tables_of_lines = st.lists(
    st.composite(sent)(), max_size=20, unique_by=lambda line: (line.call, line.least)
).map(tuple)


@given(table=tables_of_lines)
def test_what_was_printed_is_read(table):
    """Any table is read as it was; over the classes nothing is lost or moved."""
    assert payload.tables("before\n" + rendered(table) + "after\n") == [table]
    messages, sizes = (reading.value for reading in payload.readings(table))
    assert sum(messages) == sum(line.messages for line in table)
    assert sum(sizes) == sum(line.bytes for line in table)
    for least, following, count, size in zip(
        payload.LEAST, [*payload.LEAST[1:], None], messages, sizes
    ):
        assert count * least <= size and (
            following is None or count == 0 or size < count * following
        )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (("         3 ", "         6 "), "6 messages of 8 to 15 bytes are not 40 bytes"),
        (("         3 ", "         2 "), "2 messages of 8 to 15 bytes are not 40 bytes"),
        (("         3 ", "         0 "), "0 messages of 8 to 15"),
        ((" 15 ", " 31 "), "no sizes from 8 to 31"),
        ((" 8 ", " 9 "), "no sizes from 9 to 15"),
        (("MPI_Send ", "rank 3: done"), "a line that is not its own"),
        (
            ("end of payload", rendered([SENT]).splitlines()[3] + "\nend of payload"),
            "two lines for the same",
        ),
        ((HEAD + "\n", ""), "lacks its line of headings"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(changed, said):
    """The reason names the line's numbers."""
    before, after = changed
    text = rendered([SENT])
    assert before in text
    with pytest.raises(Unreadable, match=said):
        payload.tables(text.replace(before, after, 1))


SIMULATED = """
Simulated: what each rank did, all problems together
rank      computed s  messages sent            bytes sent
   0        1.500000              3                    40
simulator: 38.123 CPU s, 65.2 MB
{}end of simulated
"""


def test_a_simulated_run_has_its_payload():
    """HPL's row, the payload and what the simulator took are read from one output; without the latter two as well."""
    row = recorded.text("hpl/2.0-one-row")
    for tail, expected in ((SIMULATED.format(rendered([SENT])), 40), ("", None)):
        execution = Execution("xhpl", ("smpirun",), row + tail, "", 0, 0.0, 1.0)
        transcript = Transcript(
            Trial("t", "point", "hpl", 1, 1, {}), "smith", "simulated", (execution,), {}, {}
        )
        outcome = judge(transcript, hpl.RUNNER.parse)
        assert outcome.status == "ok", outcome.reason
        found = {reading.name: reading.value for reading in outcome.readings}
        assert sum(found.get("payload_bytes", [])) == (expected or 0)
        assert ("simulator_memory" in found) == bool(expected)


@needs_built
def test_profile_shows_a_programs_messages(every_call, tmp_path):
    """The program's table and the sums by size follow its own output; nothing is left in the folder."""
    done = run(FALLOFF, "profile", "--", *mpirun(3, every_call), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (table,) = payload.tables(done.stdout)
    assert len(sums(table)) == 26
    assert list(tmp_path.iterdir()) == []


@needs_built
@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["echo", "hello"], 1, "no message of echo was counted"),
        (["sh", "-c", "exit 7"], 7, "no message of sh was counted"),
        (["no-such-program"], 1, "cannot run no-such-program: No such file or directory"),
    ],
)
def test_profile_without_a_table_says_so(argv, code, said, tmp_path):
    """A line on stderr; the exit code is the program's own unless that was 0."""
    done = run(FALLOFF, "profile", "--", *argv, folder=tmp_path)
    assert done.returncode == code and said in done.stderr and len(done.stderr.splitlines()) == 1
    assert done.stdout == ("hello\n" if argv[0] == "echo" else "")
