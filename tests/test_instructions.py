"""Instructions by perf: its output in every state, a count from start to end, and whose they are."""

import math
import time

import fake_perf
import pytest
from fake_perf import COUNTS

from runners.testbeds import host, instructions
from runners.testbeds.emulated import _of_nodes

# perf 6.1 on a virtual machine without counters, and the same machine's count of an event that it has.
WITHOUT = "CPU0,<not supported>,,instructions,0,100.00,,\nCPU1,<not supported>,,instructions,0,100.00,,\n"
OTHERS = "CPU0,10026,,context-switches,955123232,100.00,,\nCPU1,40193,,context-switches,954843672,100.00,,\n"
# The same form with a count, of processors with cores of two kinds.
TWO_KINDS = """\
CPU0,12,,cpu_core/instructions/,955123232,100.00,,
CPU1,<not counted>,,cpu_atom/instructions/,0,0.00,,
"""


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


@pytest.mark.parametrize(("output", "countable"), [(COUNTS, True), (WITHOUT, False)])
def test_a_machine_is_asked_whether_it_counts(tmp_path, monkeypatch, output, countable):
    """By counting a program that does nothing."""
    fake_perf.put(tmp_path, monkeypatch, output)
    assert instructions.are_countable() == countable


def test_without_perf_nothing_is_counted(monkeypatch, tmp_path):
    """No perf, no count, no error."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not instructions.are_countable()


def test_counts_are_there_afterwards(tmp_path, monkeypatch):
    """Nothing is counted while it goes on, all when it ends, with no file left."""
    fake_perf.put(tmp_path, monkeypatch)
    before = set(tmp_path.iterdir())
    with instructions.counted(tmp_path) as executed:
        while_counting = dict(executed.by_processor)
        time.sleep(0.5)  # until the stand-in has started, as perf does at once
    assert while_counting == {} and executed.by_processor == {0: 7303786493.0, 1: 5.0}
    assert executed.cpu_time > 0
    assert set(tmp_path.iterdir()) == before


def test_a_count_that_does_not_come_is_absent(tmp_path, monkeypatch):
    """A perf that does not end when it is interrupted is killed, and nothing was counted."""
    (tmp_path / "perf").write_text("#!/bin/sh\ntrap '' INT\nexec sleep 1000\n")
    (tmp_path / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(instructions, "_PATIENCE_S", 0.1)
    with instructions.counted(tmp_path) as executed:
        time.sleep(0.1)
    assert executed.by_processor == {}


@pytest.mark.parametrize(("nodes", "known"), [(2, [True, True]), (3, [False, True, False])])
def test_a_shared_processor_says_nothing_of_a_node(nodes, known, monkeypatch):
    """With three nodes on two processors, only the one that has its own is known."""
    monkeypatch.setattr(host, "processor", lambda node: (node - 1) % 2)
    found = _of_nodes({0: 10.0, 1: 20.0}, range(1, nodes + 1))
    assert [not math.isnan(value) for value in found] == known
