"""Instructions by perf: its output in every state, a count from start to end, and whose they are."""

import math
import os
import sys
import time
from types import SimpleNamespace

import pytest

from runners.testbeds import instructions
from runners.testbeds.paths import _of_nodes

# perf 6.1 on a virtual machine without counters, and the same machine's count of an event that it has.
WITHOUT = "CPU0,<not supported>,,instructions,0,100.00,,\nCPU1,<not supported>,,instructions,0,100.00,,\n"
OTHERS = "CPU0,10026,,context-switches,955123232,100.00,,\nCPU1,40193,,context-switches,954843672,100.00,,\n"
# The same form with counts, of a processor with one kind of core and of one with two.
COUNTS = "CPU0,7303786493,,instructions,955123232,100.00,0.31,insn per cycle\nCPU1,5,,instructions,955123232,100.00,,\n"
TWO_KINDS = "CPU0,12,,cpu_core/instructions/,955123232,100.00,,\nCPU1,<not counted>,,cpu_atom/instructions/,0,0.00,,\n"


@pytest.mark.parametrize(
    ("output", "found"),
    [
        (WITHOUT, {}),
        (OTHERS, {}),
        ("", {}),
        ("Error:\nAccess to performance monitoring and observability operations is limited.\n", {}),
        (COUNTS, {0: 7303786493.0, 1: 5.0}),
        (TWO_KINDS, {0: 12.0}),
    ],
)
def test_only_counts_are_taken(output, found):
    """What a machine does not count is not 0 but absent."""
    assert instructions.by_processor(output) == found


@pytest.fixture
def perf(tmp_path, monkeypatch):
    """Put a program in perf's place that, like it, prints when it is interrupted or its command has ended."""

    def put(output):
        script = f"""#!{sys.executable}
import signal, sys
signal.signal(signal.SIGINT, lambda *_: sys.exit({output!r}))
if sys.argv[-1] == "true":
    sys.exit({output!r})
signal.pause()
"""
        (tmp_path / "perf").write_text(script)
        (tmp_path / "perf").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return put


@pytest.mark.parametrize(("output", "countable"), [(COUNTS, True), (WITHOUT, False)])
def test_a_machine_is_asked_whether_it_counts(perf, output, countable):
    """By counting a program that does nothing."""
    perf(output)
    assert instructions.are_countable() == countable


def test_without_perf_nothing_is_counted(monkeypatch, tmp_path):
    """No perf, no count, no error."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not instructions.are_countable()


def test_counts_are_there_afterwards(perf):
    """The dict is empty while counting goes on and filled when it ends."""
    perf(COUNTS)
    with instructions.counted() as executed:
        while_counting = dict(executed)
        time.sleep(0.5)  # until the stand-in has started, as perf does at once
    assert while_counting == {} and executed == {0: 7303786493.0, 1: 5.0}


@pytest.mark.parametrize(("nodes", "known"), [(2, [True, True]), (3, [False, True, False])])
def test_a_shared_processor_says_nothing_of_a_node(nodes, known):
    """With three nodes on two processors, only the one that has its own is known."""
    used = SimpleNamespace(
        quotas=SimpleNamespace(processor=lambda node: (node - 1) % 2), graph=SimpleNamespace(nodes=range(1, nodes + 1))
    )
    found = _of_nodes({0: 10.0, 1: 20.0}, used)["instructions"]
    assert [not math.isnan(value) for value in found] == known
    assert _of_nodes({}, used) == {}
