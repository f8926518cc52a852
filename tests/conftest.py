"""How all tests run, and what several files share: the whole suite has to stay within minutes."""

import fcntl
import signal
from contextlib import contextmanager
from types import SimpleNamespace

import command_line
import pytest
from hypothesis import settings

# Thirty of the usual hundred, however long each takes: another machine may have the processor in between.
settings.register_profile("suite", max_examples=30, deadline=None)
settings.load_profile("suite")

# Started in the background it is ignored, and what tests start and interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

collect_ignore = ["cluster"]  # asked for by itself: `make test-cluster`

# What takes longest begins first, so that no process is left alone with it at the end.
LONG = ("test_notebooks", "test_stored_report", "test_explorer_page", "test_explorer_static", "test_exhibits", "test_trust")


def pytest_collection_modifyitems(items):
    """Long files first, those with tests that run alone last; all others stay in their order."""
    waiting = {item.path for item in items if item.get_closest_marker("alone")}
    items.sort(key=lambda item: (item.path in waiting, item.path.stem not in LONG))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """A test marked `alone` waits for all others that run, and those that come later wait for it."""
    with _turn(item.config, fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH):
        return (yield)


@contextmanager
def _turn(config, kind: int):
    """A lock between the suite's processes; who waits for it holds the door, so that none overtakes."""
    folder = config.cache.mkdir("alone")
    with open(folder / "door", "w") as door, open(folder / "room", "w") as room:
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, kind)
        fcntl.flock(door, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(room, fcntl.LOCK_UN)  # for a forked child too, which may have it open still


@pytest.fixture(scope="session")
def stored(tmp_path_factory):
    """The report of the stored references: how its command ended (`done`), its `folder`, and its `studies`."""
    from analysis.studies import together  # not for those tests that are done before it is imported

    folder, analyse, kept = tmp_path_factory.mktemp("stored"), together.analyse, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(together, "analyse", lambda *datasets: kept.append(analyse(*datasets)) or kept[-1])
        done = command_line.run("report", "--preset", "stored", "--out", str(folder))
    (studies,) = kept
    return SimpleNamespace(done=done, folder=folder, studies=studies)
