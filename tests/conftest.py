"""How all tests run: the whole suite has to stay within minutes."""

import atexit
import fcntl
import gc
import os
import shutil
import signal
import tempfile
from collections import defaultdict
from contextlib import contextmanager

import pytest
from hypothesis import settings

# Thirty of the usual hundred, however long each takes: another machine may have the processor in
# between. They are the same everywhere, so that what fails on another machine fails because of it;
# `make fuzz` draws its own.
settings.register_profile("suite", max_examples=30, deadline=None, derandomize=True)
settings.load_profile("suite")

# Started in the background it is ignored, and what tests start and interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Each of the suite's processes is a machine of its own: tests that need the machine to themselves
# are marked `alone`.
LOCKS = tempfile.mkdtemp(prefix="falloff-locks-")
os.chmod(LOCKS, 0o1777)  # some tests are run by other users
os.environ["FALLOFF_LOCKS"] = LOCKS
atexit.register(shutil.rmtree, LOCKS, ignore_errors=True)

collect_ignore = ["cluster"]  # asked for by itself: `make test-system`

# What takes longest begins first, so that no process is left alone with it at the end.
LONG = [
    f"test_{name}"
    for name in """notebooks reproduce notebook_runs cli hostile explorer_page own_report
    hpl_scaling claims_verdicts session network cluster explorer switch four_users
    transcripts""".split()
]


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items):
    """Long files first, those with tests that run alone last; all others stay in their order. Of a
    test marked `few`, all cases but some, spread over the whole list, are marked `more`."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("few"):
            cases[item.nodeid.split("[")[0]].append(item)
    for own in cases.values():
        (most,) = own[0].get_closest_marker("few").args
        for item in set(own) - {own[place * len(own) // most] for place in range(most)}:
            item.add_marker("more")
    done = yield  # the tests that are not asked for are gone
    waiting = {item.path for item in items if item.get_closest_marker("alone")}
    place = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: (item.path in waiting, place.get(item.path.stem, len(LONG))))
    return done


def pytest_collection_finish():
    """What was imported stays: statsmodels' Holm looks through all of it for garbage each time, a
    tenth of a second.
    """
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """A test marked `alone` waits for all others that run, and those that come later wait for
    it.
    """
    try:
        kind = fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH
        with _turn(item.config, kind):
            return (yield)
    finally:
        if nextitem and nextitem.path != item.path:
            gc.freeze()  # references that were read stay, too


@contextmanager
def _turn(config, kind: int):
    """A lock between the suite's processes; who waits for it holds the door, so that none
    overtakes.
    """
    folder = config.cache.mkdir("alone")
    with open(folder / "door", "w") as door, open(folder / "room", "w") as room:
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, kind)
        fcntl.flock(door, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(room, fcntl.LOCK_UN)  # for a forked child too, which may have it open still
