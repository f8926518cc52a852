"""The payload of MPI programs: counted exactly, read strictly, and shown by `falloff profile`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import recorded
from test_hpl import DECK

from analysis.dataset.derive import broadcast_bytes
from runners import executables, payload
from runners.records.record import Execution, Transcript, Trial, Unreadable, judge
from runners.tools import hpl

PROGRAM = Path(__file__).resolve().parent / "support" / "every_call.c"
FALLOFF = str(Path(sys.executable).with_name("falloff"))
SMALL = {**DECK, "N": 640, "NB": 32, "P": 2, "Q": 2, "nodes": 4, "payload": True, "timeout_s": 60}

needs_built = pytest.mark.skipif(
    not shutil.which("mpirun") or not (executables.BUILT / "payload.so").exists(),
    reason="not built: `make setup`",
)

# Messages and bytes of each call that every_call.c makes on three ranks, as its source says.
SENT = {
    "MPI_Send": (3, 29),
    "MPI_Bsend": (1, 100),
    "MPI_Ssend": (1, 8),
    "MPI_Rsend": (1, 16),
    "MPI_Isend": (1, 32),
    "MPI_Ibsend": (1, 33),
    "MPI_Issend": (1, 64),
    "MPI_Irsend": (1, 128),
    "MPI_Sendrecv": (3, 3 * 12),
    "MPI_Sendrecv_replace": (3, 3 * 28),
    "MPI_Bcast": (1, 80),
    "MPI_Scatter": (1, 24),
    "MPI_Scatterv": (1, 24),
    "MPI_Reduce": (3, 3 * 32),
    "MPI_Allreduce": (3, 3 * 16),
    "MPI_Scan": (3, 3 * 24),
    "MPI_Exscan": (3, 3 * 40),
    "MPI_Reduce_scatter": (3, 3 * 24),
    "MPI_Reduce_scatter_block": (3, 3 * 24),
    "MPI_Gather": (3, 3 * 20),
    "MPI_Gatherv": (3, 4 + 8 + 12),
    "MPI_Allgather": (3, 3 * 4),
    "MPI_Allgatherv": (3, 4 + 8 + 12),
    "MPI_Alltoall": (3, 3 * 12),
    "MPI_Alltoallv": (3, 3 * 24),
    "MPI_Alltoallw": (3, 3 * 48),
}


def mpirun(ranks, *program):
    """The command line for so many ranks on this machine."""
    launch = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(ranks)]
    return [*launch, *map(str, program)]


def run(*argv, folder, **environment):
    """Run a command line in a folder."""
    environment = {**os.environ, **environment}
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, env=environment)


@needs_built
def test_profile_counts_every_call_exactly(tmp_path):
    """Preloaded into a program of three ranks: messages and bytes of each call; nothing is left in
    the folder.
    """
    program, folder = tmp_path / "every_call", tmp_path / "here"
    folder.mkdir()
    subprocess.run(["mpicc", str(PROGRAM), "-o", str(program)], check=True)
    done = run(FALLOFF, "profile", "--", *mpirun(3, program), folder=folder)
    assert done.returncode == 0, done.stderr
    table = payload.table(done.stdout)
    found = {
        call: tuple(
            sum(sent[of] for (name, _), sent in table.items() if name == call) for of in (0, 1)
        )
        for call, _ in table
    }
    assert found == SENT
    by_size = {size: count for (call, size), (count, _) in table.items() if call == "MPI_Send"}
    assert by_size == {0: 1, 4: 1, 16: 1}
    assert list(folder.iterdir()) == []


@needs_built
def test_hpl_counts_its_own_messages(tmp_path):
    """xhpl_payload on 2 x 2 solves its system; its panels alone are less than what it sent."""
    (command,) = hpl.commands(SMALL)
    assert command.argv == ("xhpl_payload",)
    (tmp_path / "HPL.dat").write_text(command.files["HPL.dat"])
    done = run(
        *mpirun(4, executables.BUILT / "xhpl_payload"), folder=tmp_path, OPENBLAS_NUM_THREADS="1"
    )
    outcome = recorded.judged("hpl", done.stdout, SMALL)
    assert outcome.status == "ok", outcome.reason
    found = outcome.readings
    assert found["hpl_rate"] > 0 and found["hpl_residual"] < 16
    assert sum(found["payload_bytes"]) > broadcast_bytes(SMALL["N"], SMALL["Q"])
    for cut in ("end of payload", payload._TITLE):
        damaged = done.stdout[: done.stdout.index(cut)]
        assert recorded.judged("hpl", damaged, SMALL).status == "unreadable"


TABLE = """
Payload: messages that all ranks sent, by call and size
call                         from B       to B        messages                 bytes
MPI_Bcast                         0          0               2                     0
MPI_Send                          8         15               3                    40
MPI_Bcast                2147483648       more               1            3000000000
end of payload
"""


def test_what_was_printed_is_read():
    """Each class of sizes has all calls together, from messages of nothing to the open last one."""
    messages, sizes = payload.readings("before\n" + TABLE + "after\n").values()
    found = {
        least: (count, size) for least, count, size in zip(payload.LEAST, messages, sizes) if count
    }
    assert found == {0: (2, 0), 8: (3, 40), 2**31: (1, 3 * 10**9)}
    assert payload.readings("no table\n") == {}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (" 8  ", " 9  ", "a line that is not its own"),
        ("MPI_Send ", "rank 3: done", "a line that is not its own"),
        ("end of payload", "MPI_Send  8 15 3 40\nend of payload", "two lines for the same"),
        ("call    ", "name    ", "lacks its line of headings"),
        ("end of payload", TABLE, "2 payload tables"),
        ("end of payload", "", "cut off"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(before, after, said):
    """The reason names the line's numbers."""
    assert before in TABLE
    with pytest.raises(Unreadable, match=said):
        payload.table(TABLE.replace(before, after, 1))


SIMULATED = """
Simulated: what each rank did, all problems together
rank      computed s  messages sent            bytes sent
   0        1.500000              3                    40
simulator: 38.123 CPU s, 65.2 MB
{}end of simulated
"""


@pytest.mark.parametrize(("tail", "expected"), [(SIMULATED.format(TABLE), 3 * 10**9 + 40), ("", 0)])
def test_a_simulated_run_has_its_payload(tail, expected):
    """HPL's row, the payload and what the simulator took are read from one output; without the
    latter two as well.
    """
    output = recorded.text("hpl/2.0-one-row") + tail
    execution = Execution("xhpl", ("smpirun",), output, "", 0, 0.0, 1.0)
    trial = Trial("t", "point", "hpl", 1, 1, {})
    outcome = judge(Transcript(trial, "smith", "simulated", (execution,), {}, {}), hpl.TOOL.parse)
    assert outcome.status == "ok", outcome.reason
    found = outcome.readings
    assert sum(found.get("payload_bytes", [])) == expected
    assert ("simulator_memory" in found) == bool(expected)


@pytest.mark.few(1)
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
