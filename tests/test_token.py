"""The token programs: pairs of processes that exchange tokens, and what happens to all when one of
them ends.
"""

import os
import re
import shutil
import subprocess
import time

import pytest
from token_programs import compiled, exchange
from undisturbed import alone, repeated

from runners.records.record import InvalidRun
from runners.tools.token_exchange import table

LOST = "ended before the measurement did"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """token, by TCP."""
    return compiled("token", "cc", tmp_path_factory.mktemp("built"))


def undisturbed(measure):
    """Settings and rows of the table that it gives, measured again where another program had the
    processor at a window's begin or end.
    """

    def attempt():
        try:
            found = measure()
        except InvalidRun as reason:
            return None, str(reason)
        filled = [row.exchanges * row.mean for row in found[1]]
        return found, "" if min(
            filled
        ) > 0.05 else f"the exchanges in windows of 0.1 s took {filled} s"

    found, complaint = repeated(attempt, lambda ended: ended[1] == "")[-1]
    assert complaint == ""
    return found


def run(program, pairs, size, runs, warm_up_s=0.02, window_s=0.1):
    """The table of a measurement in which everybody ended well."""
    with exchange(program, pairs) as started:
        started.coordinate(size, runs, warm_up_s, window_s)
        ended = started.ended(limit_s=20)
    assert [(code, complaint) for code, _, complaint in ended] == [(0, "")] * (2 * pairs + 1)
    return table(ended[-1][1])


@alone
def test_all_pairs_are_counted_over_one_window(program):
    """A row for each pair and run; the windows of a run overlap but for a tenth, no two runs do,
    and all are full.
    """
    settings, rows = undisturbed(lambda: run(program, pairs=3, size=64, runs=2))
    assert settings == {
        "pairs": 3,
        "token_bytes": 64,
        "runs": 2,
        "warm_up_s": 0.02,
        "window_s": 0.1,
        "transport": "tcp",
    }
    begins = [[row.begin for row in rows if row.run == run_] for run_ in (1, 2)]
    assert all(max(each) - min(each) < 0.01 for each in begins)
    assert max(begins[0]) + 0.1 < min(begins[1])
    assert_filled(rows)


def assert_filled(rows):
    """Round trips follow each other, so that those counted fill the window; on a busy machine most
    of it.
    """
    for row in rows:
        assert 0.05 < row.exchanges * row.mean < 0.1 + row.round_trips[-1]


@pytest.mark.parametrize("user", [0, 65534])
def test_in_real_time_or_not_at_all(program, user):
    """Root's ends of pairs run before ordinary work; somebody else is told what to do."""
    if os.geteuid() != 0:
        pytest.skip("only root may run in real time, or as somebody else")
    with program.open("rb") as opened:  # its folder is root's own
        argv = [f"/proc/self/fd/{opened.fileno()}", "consume", "0", "real-time"]
        started = subprocess.Popen(
            argv, pass_fds=[opened.fileno()], stderr=subprocess.PIPE, text=True, user=user
        )
    try:
        time.sleep(0.2)
        assert started.poll() == (1 if user else None)
        if not user:
            assert os.sched_getscheduler(started.pid) == os.SCHED_RR
    finally:
        started.kill()
    assert ("others leave real_time out" in started.communicate()[1]) == bool(user)


def test_a_window_without_an_exchange_has_no_throughput(program):
    """Tokens of 4 MiB do not come back within a microsecond: that is said, and no 0 read."""
    with pytest.raises(InvalidRun, match="pair 1 in run 1 completed no exchange"):
        run(program, pairs=1, size=2**22, runs=1, warm_up_s=0, window_s=1e-6)


@pytest.mark.parametrize("victim", ["consumer", "producer", "coordinator"])
def test_the_death_of_one_ends_all(program, victim):
    """Killed in mid-window, of which a minute is left: the others end within seconds, each saying
    whom it lost.
    """
    with exchange(program, 2) as started:
        started.coordinate(8192, 1, 0, 60)
        time.sleep(0.3)
        killed = {"consumer": started.consumers[1], "producer": started.producers[1]}.get(
            victim, started.coordinator
        )
        killed.kill()
        ended = started.ended(limit_s=4)
    left = [end for process, end in zip(started.processes, ended) if process is not killed]
    assert [code for code, *_ in left] == [1] * 4
    assert all(
        re.fullmatch(rf"token: the \w+( of pair \d)? {LOST}\n", complaint) for *_, complaint in left
    )


@alone
def test_by_mpi_it_is_the_same_measurement(tmp_path):
    """Two pairs of ranks beside one that rests: the same table, printed once."""
    program = compiled("token_mpi", "mpicc", tmp_path)
    if not shutil.which("mpirun"):
        pytest.skip("no mpirun: run `make setup`")
    root = (
        "OMPI_ALLOW_RUN_AS_ROOT",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
        "OMPI_MCA_mpi_yield_when_idle",
    )
    environment = {**os.environ, **dict.fromkeys(root, "1")}
    words = "8192 2 0.02 0.1 0,3 4,1".split()
    argv = ["mpirun", "--oversubscribe", "-np", "5", str(program), *words]

    def measured():
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, env=environment)
        assert done.returncode == 0, done.stderr
        return table(done.stdout)

    settings, rows = undisturbed(measured)
    assert settings["transport"] == "mpi" and settings["pairs"] == 2
    assert_filled(rows)
