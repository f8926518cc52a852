"""How all tests run, and what several files share: the whole suite has to stay within minutes."""

import signal
from types import SimpleNamespace

import command_line
import pytest
from hypothesis import settings

settings.register_profile("suite", max_examples=30)  # of the usual hundred
settings.load_profile("suite")

# Started in the background it is ignored, and what tests start and interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

collect_ignore = ["cluster"]  # asked for by itself: `make test-cluster`

# What takes longest begins first, so that no process is left alone with it at the end.
LONG = ("test_notebooks", "test_stored_report", "test_explorer_page", "test_explorer_states", "test_exhibits", "test_trust")


def pytest_collection_modifyitems(items):
    """Long files first; all others stay in their order."""
    items.sort(key=lambda item: item.path.stem not in LONG)


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
